// Operations that carry rules of their own: custom_jvp, custom_vjp and what it becomes under jvp, and remat.
//
// Only inexact operands and results, and tapes, have tangents and cotangents; the rules' regions name only those:
//   custom_jvp {f: x -> y} {rule: (x, dx) -> (y, dy)}
//   custom_vjp {f: x -> y} {fwd: x -> (y, residuals)} {bwd: (residuals, ct y) -> ct x}
// The last `num_consts` operands are what the functions captured: rules say nothing about them, so they count as
// without tangents above, and a derivative with respect to them is an error.
//
// In the process that traced the function its rules are functions of the host: the equation has the region of the
// function alone, and `rule` names what is run when a derivative meets it (custom_host.h). The regions of rules are
// their form in programs that leave the process (transforms/ad/traced_rules.h). A custom_jvp or custom_vjp with neither
// has no derivative.
#include "ir/prims/control/custom.h"

#include <algorithm>

#include "ir/prims/control/custom_host.h"
#include "ir/prims/control/mapped_results.h"
#include "ir/prims/control/policy.h"
#include "ir/prims/control/regions.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {

const FnRef& LinearMap(const std::vector<FnRef>& regions, const Loc& loc) {
  if (regions.empty()) {
    throw UserError(ErrorKind::kDerivative, loc,
                    "custom_linear: the backward rule is a function of the host that was not run; such a program is a "
                    "step inside a transform");
  }
  if (regions.size() < 2) {
    throw UserError(ErrorKind::kDerivative, loc,
                    "forward mode through custom_vjp needs a backward rule that is linear in the cotangent; this one "
                    "is not, so only reverse mode can use it");
  }
  return regions[1];
}

std::vector<FnRef> LinearRegions(const Eqn& eqn, const Types& operands, const RegionRules& regions) {
  if (!eqn.regions.empty()) return eqn.regions;
  const FnRef backward = HostBackward(eqn, operands, Mask(eqn.num_results, true), regions);
  Mask linear(backward->params().size(), true);
  std::fill(linear.begin(), linear.begin() + eqn.attrs.GetInt("num_residuals"), false);
  std::vector<FnRef> out = {backward};
  // Forward mode transposes the backward rule, if that is linear; otherwise only reverse mode can use it.
  try {
    out.push_back(regions.transpose(backward, linear));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kDerivative) throw;
  }
  return out;
}

Atoms EmitLinear(Builder& b, Atoms operands, const Attrs& attrs, const std::vector<FnRef>& regions) {
  const Types cotangents = regions[0]->ResultTypes();
  const auto n = static_cast<size_t>(attrs.GetInt("num_residuals"));
  for (size_t i = 0; i < cotangents.size(); ++i) operands[n + i] = Pvary(b, operands[n + i], cotangents[i].varying);
  return b.Emit(FindPrim("custom_linear"), operands, {{"num_residuals", static_cast<int64_t>(n)}}, regions);
}

namespace {

// The error of a function without rules.
[[noreturn]] void NoRule(const Eqn& eqn) {
  throw UserError(ErrorKind::kDerivative, eqn.loc, "the derivative rule of '", eqn.regions[0]->name(),
                  "' is not part of this program: it uses '", eqn.regions[0]->name(),
                  "' itself, or could not be traced without the function that it belongs to. Differentiate the Python "
                  "function before the program is written (weft.make_ir(weft.grad(f)))");
}

// A host rule and the region of the function alone, or the function alone.
bool FunctionAlone(const Sig& s) {
  if (s.regions.size() != 1) return false;
  if (HasHostRule(s.attrs)) CheckHostRule(s);
  return true;
}

Types Joined(Types a, const Types& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// What a backward rule says of them: a cotangent may vary over mesh axes over which its operand does not, and a tangent
// enters varying over them, too.
Types MovingTypes(const Types& operands, const Attrs& attrs, const Fn& backward) {
  Types types = Where(operands, Movable(operands, attrs));
  const Types given = backward.ResultTypes();
  for (size_t i = 0; i < std::min(types.size(), given.size()); ++i)
    types[i].varying = UnionOfAxes(types[i].varying, given[i].varying);
  return types;
}

// A function with a host rule, batched: so will be what the rule gives.
void BatchFunction(BatchContext& c) {
  const FnRef f = BatchAllResults(c, c.eqn.regions[0], c.batched);
  c.y = c.b.Emit(*c.eqn.prim, c.x, HasHostRule(c.eqn.attrs) ? WithVmap(c, c.batched) : c.eqn.attrs, {f});
  GiveResultsOfRuled(c);
}

// Of a function whose results are elementwise: an operand of a result's shape that is not mapped is repeated, so that
// it still has the result's shape. What guards a derivative holds such operands alone.
Mask RepeatedOfElementwise(const BatchContext& c) {
  Mask repeated(c.x.size(), false);
  if (!c.eqn.attrs.GetOr<bool>("elementwise", false) || !Any(c.batched)) return repeated;
  const Types types = c.eqn.regions[0]->ParamTypes(), results = c.eqn.regions[0]->ResultTypes();
  const Mask movable = Movable(types, c.eqn.attrs);
  for (size_t i = 0; i < c.x.size(); ++i) {
    repeated[i] = !c.batched[i] && c.x[i].is_var() && movable[i] && IsFloat(types[i].dtype) &&
                  std::any_of(results.begin(), results.end(), [&](const Type& r) { return r.dims == types[i].dims; });
  }
  return repeated;
}

void BatchRepeated(BatchContext& c, const Mask& repeated) {
  Atoms x = c.x;
  Mask batched = c.batched;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!repeated[i]) continue;
    x[i] = c.Batched(static_cast<int>(i));
    batched[i] = true;
  }
  BatchContext all{c.b, c.eqn, x, batched, c.size, c.axis, c.regions, {}, {}};
  c.eqn.prim->batch(all);
  c.y = all.y;
  c.batched_out = all.batched_out;
}

void CheckCapturedByRules(const Eqn& eqn, const OptionalAtoms& dx) {
  for (const FnRef& region : eqn.regions) {
    if (region->params().size() >= dx.size()) CheckCaptured(eqn, dx, *region);
  }
}

// The transpose of the function itself, where it is linear: that is what is transposed, and its rule, which says how it
// differs from its own derivative, has had its turn.
OptionalAtoms TransposeFunction(TransposeContext& c) {
  Mask linear;
  Atoms args;
  for (const auto& x : c.x) {
    linear.push_back(!x);
    if (x) args.push_back(*x);
  }
  const Types results = c.eqn.regions[0]->ResultTypes();
  for (uint32_t i = 0; i < c.eqn.num_results; ++i) args.push_back(c.ct[i] ? *c.ct[i] : Zeros(c.b, results[i]));
  return Spread(c.b.Inline(*c.regions.transpose(c.eqn.regions[0], linear), args), linear);
}

Types TypesOf(const Builder& b, const Atoms& atoms) {
  Types types;
  for (const Atom& a : atoms) types.push_back(b.TypeOf(a));
  return types;
}

void RegisterCustomJvp(PrimRegistry& r) {
  Prim& p =
      r.Add("custom_jvp", Family::kControl, -1,
            "The results of region 0; differentiation runs the function of the host that `rule` names, and does to "
            "what it gives the vmaps that the equation went through (through, sizes). In programs that left their "
            "process it uses region 1, which takes operands and their tangents and gives results and their tangents. "
            "Without either, to differentiate it is an error. The last num_consts operands are captured values without "
            "tangents. elementwise=true: an element of a result, and its derivatives, depends on the elements of the "
            "operands at its place alone.");
  p.region_use = RegionUse::kWithRules;
  p.infer = [](const Sig& s) -> Types {
    const bool alone = FunctionAlone(s);
    if (!alone) CheckRegionCount(s, 2);
    CheckRegionParams(s, 0, s.operands);
    Types results = s.regions[0]->ResultTypes();
    if (alone) return results;
    CheckRegionParams(s, 1, Joined(s.operands, Where(s.operands, Movable(s.operands, s.attrs))));
    CheckRegionResults(s, 1, Joined(results, Where(results, Moving(results))));
    return results;
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors { return c.run(*c.sig.regions[0], in); };
  p.jvp = [](JvpContext& c) {
    if (HasHostRule(c.eqn.attrs)) return HostJvp(c);
    if (c.eqn.regions.size() == 1) NoRule(c.eqn);
    CheckCapturedByRules(c.eqn, c.dx);
    Atoms args = c.x;
    Append(args, Tangents(c.b, c.x, c.dx, Movable(TypesOf(c.b, c.x), c.eqn.attrs)));
    const Atoms out = c.b.Inline(*c.eqn.regions[1], args);
    c.y = Part(out, 0, c.eqn.num_results);
    c.dy = Spread(Part(out, c.eqn.num_results, out.size()), Moving(c.eqn.regions[0]->ResultTypes()));
  };
  p.linear = {-1};
  p.transpose = TransposeFunction;
  p.host_functions = HostRuleOf;
  p.more_attributes = {"rule", "through", "sizes", "num_consts", "elementwise"};
  p.batch = [](BatchContext& c) {
    if (const Mask repeated = RepeatedOfElementwise(c); Any(repeated)) return BatchRepeated(c, repeated);
    if (c.eqn.regions.size() == 1) return BatchFunction(c);
    Mask mask = c.batched;
    std::vector<FnRef> regions;
    for (const FnRef& region : c.eqn.regions) {  // the rule takes tangents too
      regions.push_back(BatchAllResults(c, region, mask));
      Append(mask, Where(c.batched, Movable(c.eqn.regions[0]->ParamTypes(), c.eqn.attrs)));
    }
    c.y = c.b.Emit(*c.eqn.prim, c.x, c.eqn.attrs, regions);
    GiveResultsOfRuled(c);
  };
  p.keeps_results = "its rule stands for it, inlined, as soon as it is differentiated, and its region in compiled code";
  p.samples = [] {
    std::vector<Sample> samples;
    for (DType t : {DType::kF32, DType::kF64}) {
      const Type type{t, {4}, {}};
      Builder f("f"), rule("rule");  // sin(x) * y, the rule spelled out
      const Atom x = f.Parameter(type), y = f.Parameter(type);
      Sample s = SampleOf({type, type});
      const Atom rx = rule.Parameter(type), ry = rule.Parameter(type), dx = rule.Parameter(type),
                 dy = rule.Parameter(type);
      const Atom primal = Mul(rule, Sin(rule, rx), ry);
      s.regions = {
          f.Build({Mul(f, Sin(f, x), y)}),
          rule.Build({primal, Add(rule, Mul(rule, Mul(rule, Cos(rule, rx), ry), dx), Mul(rule, Sin(rule, rx), dy))})};
      samples.push_back(s);
    }
    return samples;
  };
}

constexpr char kBackwardTakesAll[] =
    "the backward rule, a function of the user's, takes a cotangent of every result, zeros for one that is not read";

void RegisterCustomVjp(PrimRegistry& r) {
  Prim& p = r.Add(
      "custom_vjp", Family::kControl, -1,
      "The results of region 0; differentiation runs the function of the host that `rule` names: the forward rule, "
      "which names the backward rule in turn; the vmaps that the equation went through (through, sizes) are done to "
      "what they give. In programs that left their process reverse mode runs region 1 (operands -> results, residuals) "
      "and then region 2 (residuals, cotangents -> cotangents of the operands). Region 3, if given, is the linear map "
      "(residuals, tangents of the operands -> tangents of the results) whose transpose region 2 is; "
      "otherwise region 2 is transposed where the map is wanted. A cotangent that varies over mesh axes over which "
      "its operand does not is summed over them. The last num_consts operands are captured "
      "values without cotangents.");
  p.region_use = RegionUse::kWithRules;
  p.infer = [](const Sig& s) -> Types {
    const bool alone = FunctionAlone(s);
    if (!alone && s.regions.size() != 3 && s.regions.size() != 4)
      throw TypeError("custom_vjp: has ", s.regions.size(), " regions; expected 1, 3 or 4");
    CheckRegionParams(s, 0, s.operands);
    if (alone) return s.regions[0]->ResultTypes();
    CheckRegionParams(s, 1, s.operands);
    Types results = s.regions[0]->ResultTypes(), forward = s.regions[1]->ResultTypes();
    if (forward.size() < results.size() || Part(forward, 0, results.size()) != results) {
      throw TypeError("custom_vjp: the forward rule gives (", ToString(forward), "); expected (", ToString(results),
                      ") followed by residuals");
    }
    CheckRegionParams(s, 2, Joined(Part(forward, results.size(), forward.size()), Where(results, Moving(results))));
    const Types moving = MovingTypes(s.operands, s.attrs, *s.regions[2]);
    CheckRegionResults(s, 2, moving);
    if (s.regions.size() == 4) {
      CheckRegionParams(s, 3, Joined(Part(forward, results.size(), forward.size()), moving));
      CheckRegionResults(s, 3, Where(results, Moving(results)));
    }
    return results;
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors { return c.run(*c.sig.regions[0], in); };
  p.jvp = [](JvpContext& c) {
    if (HasHostRule(c.eqn.attrs)) return HostVjp(c);
    if (c.eqn.regions.size() == 1) NoRule(c.eqn);
    CheckCapturedByRules(c.eqn, c.dx);
    const Atoms out = c.b.Inline(*c.eqn.regions[1], c.x);
    c.y = Part(out, 0, c.eqn.num_results);
    Atoms operands = Part(out, c.eqn.num_results, out.size());
    const size_t residuals = operands.size();
    const FnRef& backward = c.eqn.regions[2];
    Append(operands, Tangents(c.b, c.x, c.dx, Movable(TypesOf(c.b, c.x), c.eqn.attrs)));
    std::vector<FnRef> regions = {backward};
    if (c.eqn.regions.size() == 4) {
      regions.push_back(c.eqn.regions[3]);
    } else {
      Mask linear(backward->params().size(), true);
      std::fill(linear.begin(), linear.begin() + static_cast<int64_t>(residuals), false);
      try {
        regions.push_back(c.regions.transpose(backward, linear));
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kDerivative) throw;
      }
    }
    const Atoms dy = EmitLinear(c.b, operands, {{"num_residuals", static_cast<int64_t>(residuals)}}, regions);
    c.dy = Spread(dy, Moving(c.eqn.regions[0]->ResultTypes()));
  };
  p.host_functions = HostRuleOf;
  p.more_attributes = {"rule", "through", "sizes", "num_consts"};
  p.batch = [](BatchContext& c) {
    if (c.eqn.regions.size() == 1) return BatchFunction(c);
    const FnRef primal = BatchAllResults(c, c.eqn.regions[0], c.batched);
    const FnRef fwd = BatchAllResults(c, c.eqn.regions[1], c.batched);
    const FnRef& backward = c.eqn.regions[2];
    const FnRef bwd = BatchAllResults(c, backward, Mask(backward->params().size(), true));
    // An operand shared by all batch elements gets the sum of their cotangents.
    const Mask shared = Where(c.batched, Movable(c.eqn.regions[0]->ParamTypes(), c.eqn.attrs));
    Builder b(bwd->name());
    Atoms cts = b.Inline(*bwd, Parameters(b, bwd->ParamTypes()));
    for (size_t i = 0; i < cts.size(); ++i) {
      if (!shared[i]) cts[i] = ReduceSum(b, cts[i], {0});
    }
    std::vector<FnRef> regions = {primal, fwd, std::move(b).Build(cts)};
    if (c.eqn.regions.size() == 4) {
      const FnRef& map = c.eqn.regions[3];
      Mask batched(map->params().size() - shared.size(), true);
      Append(batched, shared);  // tangents of shared operands are shared
      regions.push_back(BatchAllResults(c, map, batched));
    }
    c.y = c.b.Emit(*c.eqn.prim, c.x, c.eqn.attrs, regions);
    GiveResultsOfRuled(c);
  };
  p.keeps_results = kBackwardTakesAll;
  p.samples = [] {
    std::vector<Sample> samples;
    for (DType t : {DType::kF32, DType::kF64}) {
      const Type type{t, {4}, {}};
      Builder f("f"), fwd("fwd"), bwd("bwd");  // sin(x) * y
      const Atom x = f.Parameter(type), y = f.Parameter(type), fx = fwd.Parameter(type), fy = fwd.Parameter(type);
      const Atom bx = bwd.Parameter(type), by = bwd.Parameter(type), ct = bwd.Parameter(type);
      Sample s = SampleOf({type, type});
      s.regions = {f.Build({Mul(f, Sin(f, x), y)}), fwd.Build({Mul(fwd, Sin(fwd, fx), fy), fx, fy}),
                   bwd.Build({Mul(bwd, Mul(bwd, Cos(bwd, bx), by), ct), Mul(bwd, Sin(bwd, bx), ct)})};
      samples.push_back(s);
      Builder map("map");
      const Atom mx = map.Parameter(type), my = map.Parameter(type), dx = map.Parameter(type), dy = map.Parameter(type);
      s.regions.push_back(map.Build({Add(map, Mul(map, Mul(map, Cos(map, mx), my), dx), Mul(map, Sin(map, mx), dy))}));
      samples.push_back(s);
    }
    return samples;
  };
}

size_t Residuals(const Attrs& attrs) { return static_cast<size_t>(attrs.GetInt("num_residuals")); }

void RegisterCustomLinear(PrimRegistry& r) {
  Prim& p =
      r.Add("custom_linear", Family::kControl, -1,
            "What custom_vjp becomes under jvp: the linear map (residuals, dx) -> dy whose transpose is region "
            "0. Region 1, if the backward rule is linear, is the map itself. While a transform is under way the "
            "equation may have no regions, but results of the types `results` and the number of the backward rule "
            "(rule, through, sizes), which its transpose runs.");
  p.region_use = RegionUse::kWithRules;
  p.says_varying = true;
  p.infer = [](const Sig& s) -> Types {
    const size_t n = Residuals(s.attrs);
    if (s.regions.empty()) {
      CheckHostRule(s);
      if (n > s.operands.size())
        throw TypeError("custom_linear: ", s.operands.size(), " operands, but ", n, " residuals");
      return s.attrs.Get<Types>("results");
    }
    if (s.regions.size() > 2) throw TypeError("custom_linear: has ", s.regions.size(), " regions; expected at most 2");
    const Types params = s.regions[0]->ParamTypes();
    if (n > s.operands.size() || n > params.size() || Part(params, 0, n) != Part(s.operands, 0, n))
      throw TypeError("custom_linear: region 0 does not begin with the ", n, " residuals");
    CheckRegionResults(s, 0, Part(s.operands, n, s.operands.size()));
    Types results = Part(params, n, params.size());
    if (s.regions.size() == 2) {
      CheckRegionParams(s, 1, s.operands);
      CheckRegionResults(s, 1, results);
    }
    return results;
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors { return c.run(*LinearMap(c.sig.regions, {}), in); };
  // Once residuals have tangents too, the map is an ordinary function of both. Where they have none, it is the map of
  // the tangents, whose transpose is the one that was given.
  p.jvp = [](JvpContext& c) {
    const size_t n = Residuals(c.eqn.attrs);
    const bool linear = std::none_of(c.dx.begin(), c.dx.begin() + static_cast<int64_t>(n),
                                     [](const auto& dx) { return dx.has_value(); });
    if (linear && c.eqn.regions.size() == 2) {
      c.y = c.b.Clone(c.eqn, c.x);
      Atoms args = c.x;
      for (size_t i = n; i < args.size(); ++i) args[i] = c.dx[i] ? *c.dx[i] : Zeros(c.b, c.b.TypeOf(c.x[i]));
      const Atoms dy = c.b.Clone(c.eqn, args);
      c.dy.assign(dy.begin(), dy.end());
      return;
    }
    const std::vector<FnRef> regions = LinearRegions(c.eqn, TypesOf(c.b, c.x), c.regions);
    const Mask active = ActiveOf(c.dx);
    const JvpFn f = c.regions.jvp(LinearMap(regions, c.eqn.loc), active, Mask(c.eqn.num_results, false));
    Atoms args = c.x;
    Append(args, Tangents(c.b, c.x, c.dx, active));
    for (size_t i = 0; i < args.size(); ++i) args[i] = Pvary(c.b, args[i], f.fn->params()[i].type.varying);
    const Atoms out = c.b.Inline(*f.fn, args);
    c.y = Part(out, 0, c.eqn.num_results);
    c.dy = Spread(Part(out, c.eqn.num_results, out.size()), f.active_out);
  };
  p.linear = {-1};
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    const size_t n = Residuals(c.eqn.attrs);
    Atoms args;
    Mask linear;
    for (size_t i = 0; i < c.x.size(); ++i) {
      linear.push_back(i >= n);
      if (i < n) {
        if (!c.x[i])
          throw UserError(ErrorKind::kDerivative, c.eqn.loc, "custom_linear: a residual depends on the linear inputs");
        args.push_back(*c.x[i]);
      }
    }
    OptionalAtoms out;
    if (c.eqn.regions.empty()) {
      Mask given;
      for (const auto& ct : c.ct) {
        given.push_back(ct.has_value());
        if (ct) args.push_back(*ct);
      }
      const FnRef backward = HostBackward(c.eqn, c.types.list(), given, c.regions);
      Mask tangents(n, false);
      tangents.resize(c.x.size(), true);
      out = Spread(c.b.Inline(*backward, args), tangents);
    } else {
      const Types params = c.eqn.regions[0]->ParamTypes();
      for (uint32_t i = 0; i < c.eqn.num_results; ++i) args.push_back(c.ct[i] ? *c.ct[i] : Zeros(c.b, params[n + i]));
      out = Spread(c.b.Inline(*c.eqn.regions[0], args), linear);
    }
    for (size_t i = n; i < out.size(); ++i) {
      if (!c.linear(static_cast<int>(i))) out[i] = std::nullopt;
    }
    return out;
  };
  p.batch = [](BatchContext& c) {
    Atoms x;
    for (size_t i = 0; i < c.x.size(); ++i) x.push_back(c.Batched(static_cast<int>(i)));
    if (c.eqn.regions.empty()) {
      Types results = c.eqn.attrs.Get<Types>("results");
      for (Type& t : results) t.dims.insert(t.dims.begin(), c.size);
      c.y = c.b.Emit(*c.eqn.prim, x, WithVmap(c, Mask(x.size(), true)).With("results", results));
      return GiveResultsOfLinear(c);
    }
    std::vector<FnRef> regions;
    for (const FnRef& region : c.eqn.regions)
      regions.push_back(BatchAllResults(c, region, Mask(region->params().size(), true)));
    c.y = c.b.Emit(*c.eqn.prim, x, c.eqn.attrs, regions);
    GiveResultsOfLinear(c);
  };
  p.keeps_results = kBackwardTakesAll;
  p.host_functions = HostRuleOf;
  p.more_attributes = {"rule", "through", "sizes", "results", "captured"};
  p.samples = [] {
    std::vector<Sample> samples;
    for (DType t : {DType::kF32, DType::kF64}) {
      const Type type{t, {4}, {}};
      Builder bwd("bwd"), map("map");
      Sample s = SampleOf({type, type}, {{"num_residuals", int64_t{1}}});
      const Atom w = bwd.Parameter(type), ct = bwd.Parameter(type), mw = map.Parameter(type), dx = map.Parameter(type);
      s.regions = {bwd.Build({Mul(bwd, w, ct)}), map.Build({Mul(map, mw, dx)})};
      samples.push_back(s);
    }
    return samples;
  };
}

Policy PolicyOf(const Attrs& attrs) { return Policy::Parse(attrs.GetOr<std::string>("policy", "nothing_saveable")); }

void RegisterCheckpointName(PrimRegistry& r) {
  Prim& p = r.Add(
      "checkpoint_name", Family::kControl, 1,
      "The operand; the value has a name by which policies of remat choose (ir/prims/control/policy.h). Tangents and "
      "cotangents have none.");
  p.infer = [](const Sig& s) -> Types {
    s.attrs.Get<std::string>("name");
    return {s.operands[0]};
  };
  p.eval = [](const EvalContext&, const Tensors& in) -> Tensors { return in; };
  p.jvp = [](JvpContext& c) {
    c.y = c.b.Emit(*c.eqn.prim, c.x, c.eqn.attrs);
    c.dy = {c.dx[0]};
  };
  p.batch = [](BatchContext& c) {
    c.y = c.b.Emit(*c.eqn.prim, c.x, c.eqn.attrs);
    c.batched_out = c.batched;
  };
  p.linear = {-1};
  p.transpose = [](TransposeContext& c) -> OptionalAtoms { return {c.ct[0]}; };
  p.samples = [] {
    std::vector<Sample> samples;
    for (DType t : {DType::kF32, DType::kF64, DType::kI32})
      samples.push_back(SampleOf({Type{t, {4}, {}}}, {{"name", std::string("hidden")}}));
    return samples;
  };
}

void RegisterRemat(PrimRegistry& r) {
  Prim& p = r.Add(
      "remat", Family::kControl, -1,
      "The results of the region, whose intermediate values reverse mode computes again instead of keeping them: all "
      "but those that `policy` (ir/prims/control/policy.h; \"nothing_saveable\" by default) saves. prevent_cse=false: "
      "what is "
      "computed "
      "again may be merged with what is computed forwards, and is then kept after all.");
  p.region_use = RegionUse::kWithRules;
  p.infer = [](const Sig& s) -> Types {
    CheckRegionCount(s, 1);
    PolicyOf(s.attrs);
    s.attrs.GetOr<bool>("prevent_cse", true);
    CheckRegionParams(s, 0, s.operands);
    return s.regions[0]->ResultTypes();
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors { return c.run(*c.sig.regions[0], in); };
  p.host_functions = [](const Attrs& attrs) -> Ints {
    const auto policy = attrs.GetOr<std::string>("policy", "");
    return policy.find("callback") == std::string::npos ? Ints{} : Policy::Parse(policy).Callbacks();
  };
  p.push = PushCall;
  p.batch = [](BatchContext& c) {
    const BatchedFn f = c.regions.batch(c.eqn.regions[0], c.batched, Mask(c.eqn.num_results, false), c.size);
    c.y = c.b.Emit(*c.eqn.prim, c.x, c.eqn.attrs, {f.fn});
    c.batched_out = f.batched_out;
  };
  // Residuals are the known operands and what the policy saves; the unknown half makes the others from them.
  p.split = [](SplitContext& c) {
    const FnRef& f = c.eqn.regions[0];
    const SplitFn s = c.regions.split(f, c.unknown, Mask(c.eqn.num_results, false));
    const size_t num_known = s.known->results().size() - s.residuals.size();
    Mask needed(s.known->results().size(), true);
    std::fill(needed.begin(), needed.begin() + static_cast<int64_t>(num_known), false);
    const CutFn cut = CutByPolicy(s.known, PolicyOf(c.eqn.attrs), needed);
    const Atoms known_x = Where(c.known_x, c.unknown, false), known = c.known_b.Inline(*cut.keep, known_x);
    Atoms unknown;
    if (Any(s.unknown_out)) {
      const Types types = f->ParamTypes();
      Builder b(f->name());
      Atoms args = Parameters(b, cut.saved);
      Append(args, Parameters(b, Where(types, c.unknown, false)));
      Atoms all = b.Inline(*cut.rest, args);
      Append(all, Parameters(b, Where(types, c.unknown)));
      const Atoms inner = b.Inline(*s.unknown, all);
      const FnRef whole = std::move(b).Build(inner);
      // An operand that is not read is no residual.
      Atoms values = Part(known, s.known->results().size(), known.size()), operands;
      Append(values, known_x);
      const std::vector<int> uses = whole->UseCounts();
      const size_t num_values = values.size();
      Builder region(f->name());
      Atoms params;
      for (size_t i = 0; i < whole->params().size(); ++i) {
        const Type& type = whole->params()[i].type;
        const bool read = i >= num_values || uses[i] > 0;
        params.push_back(read ? region.Parameter(type) : Zeros(region, type));
        if (read && i < num_values) operands.push_back(c.residual(values[i]));
      }
      Append(operands, Where(c.unknown_x, c.unknown));
      unknown = c.unknown_b.Emit(*c.eqn.prim, operands, c.eqn.attrs, {region.Build(region.Inline(*whole, params))});
    }
    size_t k = 0, u = 0;
    for (bool is_unknown : s.unknown_out) c.y.push_back(is_unknown ? unknown[u++] : known[k++]);
    c.unknown_out = s.unknown_out;
  };
  p.dce = [](const DceContext& c) -> Kept { return KeepOfRegions(c, 0); };
  p.linear = {-1};
  // A call that stays out of line, so that its recomputation is not merged with the values computed forwards.
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    Mask linear;
    Atoms operands;
    for (const auto& x : c.x) {
      linear.push_back(!x);
      if (x) operands.push_back(*x);
    }
    const Types results = c.eqn.regions[0]->ResultTypes();
    for (uint32_t i = 0; i < c.eqn.num_results; ++i) operands.push_back(c.ct[i] ? *c.ct[i] : Zeros(c.b, results[i]));
    Attrs attrs;
    if (c.eqn.attrs.GetOr<bool>("prevent_cse", true)) attrs.Set("out_of_line", true);
    return Spread(c.b.Emit(FindPrim("call"), operands, attrs, {c.regions.transpose(c.eqn.regions[0], linear)}), linear);
  };
  p.samples = [] {
    std::vector<Sample> samples;
    for (DType t : {DType::kF32, DType::kF64}) {
      const Type type{t, {4}, {}};
      Builder b("f");
      const Atom x = b.Parameter(type), y = b.Parameter(type);
      Sample s = SampleOf({type, type});
      s.regions = {b.Build({Sin(b, Mul(b, Sin(b, x), y)), Add(b, x, y)})};
      samples.push_back(s);
      Builder n("named");
      const Atom nx = n.Parameter(type), ny = n.Parameter(type);
      const Atom product =
          n.Emit1(FindPrim("checkpoint_name"), {Mul(n, Sin(n, nx), ny)}, {{"name", std::string("product")}});
      s.regions = {n.Build({Sin(n, Exp(n, product)), Add(n, nx, ny)})};
      s.attrs = {{"policy", std::string("save_only_these_names(\"product\")")}, {"prevent_cse", false}};
      samples.push_back(s);
    }
    return samples;
  };
}

}  // namespace

void RegisterCustom(PrimRegistry& r) {
  RegisterCustomJvp(r);
  RegisterCustomVjp(r);
  RegisterCustomLinear(r);
  RegisterRemat(r);
  RegisterCheckpointName(r);
}

}  // namespace weft
