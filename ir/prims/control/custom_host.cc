#include "ir/prims/control/custom_host.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_split.h"
#include "ir/custom_rules.h"
#include "ir/prims/control/regions.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

struct Vmap {
  Mask mapped;  // of the operands
  std::string axis;
  Dim size;
};

std::vector<Vmap> VmapsOf(const Attrs& attrs) {
  const Strings through = attrs.GetOr<Strings>("through", {});
  const Dims sizes = attrs.GetOr<Dims>("sizes", {});
  if (through.size() != sizes.size())
    throw ValueError("through has ", through.size(), " entries, sizes ", sizes.size(), "; expected one size for each");
  std::vector<Vmap> vmaps;
  for (size_t i = 0; i < through.size(); ++i) {
    const std::vector<std::string> words = absl::StrSplit(through[i], ' ');
    if (words.size() != 3 || words[0] != "vmap" || words[1].find_first_not_of("01") != std::string::npos)
      throw ValueError("through has \"", through[i], "\"; expected vmap MASK AXIS");
    Vmap v{{}, words[2], sizes[i]};
    for (char flag : words[1]) v.mapped.push_back(flag == '1');
    vmaps.push_back(std::move(v));
  }
  return vmaps;
}

std::string TextOf(const Mask& mapped, const std::string& axis) {
  std::string text = "vmap ";
  for (bool flag : mapped) text += flag ? '1' : '0';
  return text + " " + axis;
}

// What the types were before the vmaps.
Types Unmapped(Types types, const std::vector<Vmap>& vmaps) {
  for (size_t v = vmaps.size(); v-- > 0;) {
    for (size_t i = 0; i < types.size(); ++i) {
      if (vmaps[v].mapped[i]) types[i].dims.erase(types[i].dims.begin());
    }
  }
  return types;
}

template <class Rule>
std::shared_ptr<Rule> FindRule(const Eqn& eqn, HostKind kind, const char* attribute = "rule") {
  const int64_t number = eqn.attrs.GetInt(attribute);
  auto rule = std::static_pointer_cast<Rule>(FindHostFunction(number, kind));
  if (rule == nullptr) {
    throw UserError(ErrorKind::kDerivative, eqn.loc, eqn.prim->name, ": the derivative rule of ",
                    eqn.regions.empty() ? "a function" : "'" + eqn.regions[0]->name() + "'", " (number ", number,
                    ") belongs to another process, or is gone; differentiate where the function was traced");
  }
  return rule;
}

size_t NumCaptured(const Eqn& eqn) { return static_cast<size_t>(eqn.attrs.GetOr<int64_t>("num_consts", 0)); }

Types TypesOf(const Builder& b, const Atoms& atoms) {
  Types types;
  for (const Atom& a : atoms) types.push_back(b.TypeOf(a));
  return types;
}

// The operands for whose tangents the rule is asked. An equation that calls outwards is transformed whatever its
// operands: their tangents are zeros then.
Mask ActiveArguments(const JvpContext& c) {
  Mask active;
  for (size_t i = 0; i < c.x.size(); ++i)
    active.push_back(c.dx[i] || (c.eqn.CallsOutwards() && HasTangents(c.b.DTypeOf(c.x[i]))));
  std::fill(active.end() - static_cast<int64_t>(NumCaptured(c.eqn)), active.end(), false);
  return active;
}

// The derivative rule for operands of these types, after the vmaps.
JvpFn JvpOf(const Eqn& eqn, const Types& operands, const Mask& active, const RegionRules& regions) {
  const std::vector<Vmap> vmaps = VmapsOf(eqn.attrs);
  JvpFn rule = (*FindRule<JvpHostRule>(eqn, HostKind::kJvpRule))(Unmapped(operands, vmaps), active, eqn.loc);
  for (const Vmap& v : vmaps) {
    Mask mapped = v.mapped;  // a tangent is mapped where its operand is
    Append(mapped, Where(v.mapped, active));
    rule.fn = regions.batch_over(rule.fn, mapped, Mask(rule.fn->results().size(), true), v.size, v.axis).fn;
  }
  return rule;
}

// The forward rule likewise. `residuals`: how many the rule itself gives.
ForwardFn ForwardOf(const Eqn& eqn, const Types& operands, const Mask& active, const RegionRules& regions) {
  const std::vector<Vmap> vmaps = VmapsOf(eqn.attrs);
  ForwardFn rule = (*FindRule<ForwardRule>(eqn, HostKind::kForwardRule))(Unmapped(operands, vmaps), active, eqn.loc);
  for (const Vmap& v : vmaps)
    rule.fn = regions.batch_over(rule.fn, v.mapped, Mask(rule.fn->results().size(), true), v.size, v.axis).fn;
  return rule;
}

// The attributes of the custom_linear that a custom_vjp with `operands` operands becomes.
Attrs LinearAttrs(const Eqn& eqn, const ForwardFn& forward, size_t operands, const Mask& active, const Types& results) {
  const size_t own = forward.fn->results().size() - eqn.num_results, captured = NumCaptured(eqn);
  Attrs attrs = {
      {"num_residuals", static_cast<int64_t>(own + captured)}, {"results", results}, {"rule", forward.backward}};
  const std::vector<Vmap> vmaps = VmapsOf(eqn.attrs);
  if (vmaps.empty()) return attrs;
  Strings through;
  for (const Vmap& v : vmaps) {
    Mask mapped(own, true);
    Append(mapped, Part(v.mapped, operands - captured, operands));
    Append(mapped, Where(v.mapped, active));
    through.push_back(TextOf(mapped, v.axis));
  }
  attrs.Set("through", through);
  attrs.Set("sizes", eqn.attrs.Get<Dims>("sizes"));
  return attrs;
}

// How often each variable is read. What an equation with a host rule has among its captured values for its rule alone
// is not read by it: a rule that calls its function hands on what it has itself. The equation may be inside of a
// branch, a loop or a call.
std::vector<int> RealUses(const Fn& fn) {
  std::vector<int> uses = fn.UseCounts();
  for (const Eqn& e : fn.eqns()) {
    if (e.regions.empty()) continue;
    const bool host = HasHostRule(e.attrs);
    // Operands of the equation itself, in front of those of its regions: a condition.
    const size_t own = e.operands.size() - std::min(e.operands.size(), e.regions[0]->params().size());
    std::vector<std::vector<int>> inside;
    for (const FnRef& region : e.regions) {
      if (region->params().size() + own == e.operands.size())
        inside.push_back(host ? region->UseCounts() : RealUses(*region));
    }
    if (inside.size() < e.regions.size()) continue;
    for (size_t i = host ? e.operands.size() - NumCaptured(e) : own; i < e.operands.size(); ++i) {
      const auto unread = [&](const std::vector<int>& of) { return of[i - own] == 0; };
      if (e.operands[i].is_var() && std::all_of(inside.begin(), inside.end(), unread)) --uses[e.operands[i].id()];
    }
  }
  return uses;
}

[[noreturn]] void RaiseCaptured(const Eqn& eqn, const std::string& name) {
  throw CapturedValueError(ErrorKind::kDerivative,
                           internal::Concat(eqn.prim->name, ": ", name,
                                            " is differentiated with respect to a value that it captured from outside, "
                                            "about which its rule says nothing; make that value an argument of the "
                                            "function"),
                           eqn.loc);
}

}  // namespace

Mask Moving(const Types& types) {
  Mask mask;
  for (const Type& t : types) mask.push_back(HasTangents(t.dtype));
  return mask;
}

Mask Movable(const Types& operands, const Attrs& attrs) {
  Mask mask = Moving(operands);
  const auto consts = static_cast<size_t>(attrs.GetOr<int64_t>("num_consts", 0));
  if (consts > mask.size()) throw TypeError("num_consts is ", consts, ", but there are ", mask.size(), " operands");
  std::fill(mask.end() - static_cast<int64_t>(consts), mask.end(), false);
  return mask;
}

Ints HostRuleOf(const Attrs& attrs) { return HasHostRule(attrs) ? Ints{attrs.GetInt("rule")} : Ints{}; }

void CheckHostRule(const Sig& s) {
  s.attrs.GetInt("rule");
  CheckThrough(s);
}

void CheckThrough(const Sig& s) {
  for (const Vmap& v : VmapsOf(s.attrs)) {
    if (v.mapped.size() != s.operands.size())
      throw ValueError(s.prim.name, ": through has a mask of ", v.mapped.size(), " operands; expected ",
                       s.operands.size());
  }
  std::vector<Vmap> vmaps = VmapsOf(s.attrs);
  for (size_t i = 0; i < s.operands.size(); ++i) {
    const auto mapped = std::count_if(vmaps.begin(), vmaps.end(), [i](const Vmap& v) { return v.mapped[i]; });
    if (mapped > s.operands[i].rank())
      throw TypeError(s.prim.name, ": operand ", i, " is ", s.operands[i], ", mapped ", mapped, " times");
  }
}

Attrs WithVmap(const BatchContext& c, const Mask& batched) {
  Strings through = c.eqn.attrs.GetOr<Strings>("through", {});
  Dims sizes = c.eqn.attrs.GetOr<Dims>("sizes", {});
  through.push_back(TextOf(batched, c.axis));
  sizes.push_back(c.size);
  return c.eqn.attrs.With("through", through).With("sizes", sizes);
}

Attrs WithUnmappedOperands(const Eqn& eqn, size_t count) {
  Strings through;
  for (Vmap v : VmapsOf(eqn.attrs)) {
    v.mapped.resize(v.mapped.size() + count, false);
    through.push_back(TextOf(v.mapped, v.axis));
  }
  return through.empty() ? eqn.attrs : eqn.attrs.With("through", through);
}

void CheckCaptured(const Eqn& eqn, const OptionalAtoms& dx, const Fn& fn) {
  const size_t first = dx.size() - NumCaptured(eqn);
  std::vector<int> uses;
  for (size_t i = first; i < dx.size(); ++i) {
    if (!dx[i]) continue;
    if (uses.empty()) uses = RealUses(fn);
    if (uses[i] > 0) RaiseCaptured(eqn, "'" + eqn.regions[0]->name() + "'");
  }
}

namespace {

// The operands for whose tangents the rule is asked. None where only captured values have tangents, which the function
// does not use: then the equation stays.
std::optional<Mask> AskedOf(JvpContext& c) {
  Mask active = ActiveArguments(c);
  CheckCaptured(c.eqn, c.dx, *c.eqn.regions[0]);
  if (Any(active)) return active;
  c.y = c.b.Emit(*c.eqn.prim, c.x, c.eqn.attrs, c.eqn.regions);
  c.dy.assign(c.y.size(), std::nullopt);
  return std::nullopt;
}

// What the rule gives for `args` behind the results of the function. These vary over what the function's do.
Atoms Ruled(JvpContext& c, const Fn& rule, const Atoms& args) {
  CheckCaptured(c.eqn, c.dx, rule);
  const Atoms out = c.b.Inline(rule, args);
  c.y = Part(out, 0, c.eqn.num_results);
  const Types results = c.eqn.regions[0]->ResultTypes();
  for (size_t r = 0; r < c.y.size(); ++r) c.y[r] = Pvary(c.b, c.y[r], results[r].varying);
  return Part(out, c.eqn.num_results, out.size());
}

}  // namespace

void HostJvp(JvpContext& c) {
  const std::optional<Mask> active = AskedOf(c);
  if (!active) return;
  const JvpFn rule = JvpOf(c.eqn, TypesOf(c.b, c.x), *active, c.regions);
  Atoms args = c.x;
  Append(args, Tangents(c.b, c.x, c.dx, *active));
  c.dy = Spread(Ruled(c, *rule.fn, args), rule.active_out);
  for (size_t r = 0; r < c.y.size(); ++r) {
    if (c.dy[r]) c.y[r] = Pvary(c.b, c.y[r], c.b.TypeOf(*c.dy[r]).varying);
  }
}

void HostVjp(JvpContext& c) {
  const std::optional<Mask> active = AskedOf(c);
  if (!active) return;
  const ForwardFn forward = ForwardOf(c.eqn, TypesOf(c.b, c.x), *active, c.regions);
  Atoms operands = Ruled(c, *forward.fn, c.x);
  // The backward rule may use what the function captured, too.
  Append(operands, Part(c.x, c.x.size() - NumCaptured(c.eqn), c.x.size()));
  const size_t num_residuals = operands.size();
  Append(operands, Tangents(c.b, c.x, c.dx, *active));
  const Types results = TypesOf(c.b, c.y);
  const Mask moving = Moving(results);
  Attrs attrs = LinearAttrs(c.eqn, forward, c.x.size(), *active, Where(results, moving));
  Ints captured;  // those that have tangents, which the backward rule may not use
  for (size_t i = c.x.size() - NumCaptured(c.eqn); i < c.x.size(); ++i) {
    if (c.dx[i]) captured.push_back(static_cast<int64_t>(num_residuals - (c.x.size() - i)));
  }
  if (!captured.empty()) attrs.Set("captured", captured);
  c.dy = Spread(c.b.Emit(FindPrim("custom_linear"), operands, attrs), moving);
}

FnRef HostBackward(const Eqn& eqn, const Types& operands, const Mask& cotangents, const RegionRules& regions) {
  const std::vector<Vmap> vmaps = VmapsOf(eqn.attrs);
  const auto n = static_cast<size_t>(eqn.attrs.GetInt("num_residuals"));
  const Types residuals = Part(Unmapped(operands, vmaps), 0, n);
  FnRef fn = (*FindRule<BackwardRule>(eqn, HostKind::kBackwardRule))(residuals, cotangents, eqn.loc).fn;
  const std::vector<int> uses = RealUses(*fn);
  for (int64_t i : eqn.attrs.GetOr<Ints>("captured", {})) {
    if (i >= 0 && static_cast<size_t>(i) < uses.size() && uses[static_cast<size_t>(i)] > 0)
      RaiseCaptured(eqn, "'" + fn->name() + "'");
  }
  for (const Vmap& v : vmaps) {
    Mask mapped = Part(v.mapped, 0, n);
    mapped.resize(fn->params().size(), true);
    fn = regions.batch_over(fn, mapped, Mask(fn->results().size(), true), v.size, v.axis).fn;
    // An operand shared by all batch elements gets the sum of their cotangents.
    Builder b(fn->name());
    Atoms cts = b.Inline(*fn, Parameters(b, fn->ParamTypes()));
    for (size_t i = 0; i < cts.size(); ++i) {
      if (!v.mapped[n + i]) cts[i] = ReduceSum(b, cts[i], {0});
    }
    fn = std::move(b).Build(cts);
  }
  return fn;
}

FnRef HostTranspose(const Eqn& eqn, const Types& operands, const Mask& linear, const RegionRules& regions) {
  const std::vector<Vmap> vmaps = VmapsOf(eqn.attrs);
  const auto rule = FindRule<BackwardRule>(eqn, HostKind::kBackwardRule, "transpose");
  FnRef fn = (*rule)(Unmapped(operands, vmaps), linear, eqn.loc).fn;
  for (const Vmap& v : vmaps) {
    Mask mapped = Where(v.mapped, linear, false);
    mapped.resize(fn->params().size(), true);  // cotangents: all results are batched
    fn = regions.batch_over(fn, mapped, Mask(fn->results().size(), true), v.size, v.axis).fn;
    const Mask shared = Where(v.mapped, linear);
    Builder b(fn->name());
    Atoms cts = b.Inline(*fn, Parameters(b, fn->ParamTypes()));
    for (size_t i = 0; i < cts.size(); ++i) {
      if (!shared[i]) cts[i] = ReduceSum(b, cts[i], {0});
    }
    fn = std::move(b).Build(cts);
  }
  return fn;
}

std::vector<FnRef> HostRuleRegions(const Eqn& eqn, const Types& operands, const RegionRules& regions) {
  const Mask active = Movable(operands, eqn.attrs);
  const size_t captured = NumCaptured(eqn);
  const Types results = eqn.regions[0]->ResultTypes();
  const Mask moving = Moving(results);
  const auto as_function = [&](Builder& b, Atoms& out) {
    for (size_t r = 0; r < results.size(); ++r) out[r] = MatchVarying(b, out[r], results[r]);
  };
  if (FindHostFunction(eqn.attrs.GetInt("rule"), HostKind::kJvpRule) != nullptr) {
    const JvpFn rule = JvpOf(eqn, operands, active, regions);
    Builder b(rule.fn->name());
    Atoms params;
    for (const Param& p : rule.fn->params()) params.push_back(b.Parameter(p.type, p.name));
    Atoms out = b.Inline(*rule.fn, params);
    as_function(b, out);
    const OptionalAtoms given = Spread(Part(out, results.size(), out.size()), rule.active_out);
    out.resize(results.size());
    for (size_t r = 0; r < results.size(); ++r) {
      if (moving[r]) out.push_back(given[r] ? MatchVarying(b, *given[r], results[r]) : Zeros(b, results[r]));
    }
    return {b.Build(out)};
  }
  const ForwardFn forward = ForwardOf(eqn, operands, active, regions);
  Builder b(forward.fn->name());
  Atoms params;
  for (const Param& p : forward.fn->params()) params.push_back(b.Parameter(p.type, p.name));
  Atoms out = b.Inline(*forward.fn, params);
  as_function(b, out);
  Append(out, Part(params, params.size() - captured, params.size()));
  const FnRef fn = b.Build(out);
  Eqn linear;
  linear.prim = &FindPrim("custom_linear");
  linear.attrs = LinearAttrs(eqn, forward, operands.size(), active, Where(results, moving));
  linear.num_results = static_cast<uint32_t>(CountOf(moving));
  linear.loc = eqn.loc;
  Types types = Part(fn->ResultTypes(), results.size(), fn->results().size());
  Append(types, Where(operands, active));
  return {fn, HostBackward(linear, types, Mask(linear.num_results, true), regions)};
}

}  // namespace weft
