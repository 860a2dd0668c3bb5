// recursive and recur: functions that call themselves.
//
//   recursive: the region on the operands. Inside it, at any depth, recur[depth=0] is a call of that same region;
//   depth=1 one of the next enclosing `recursive`'s, and so on. So functions stay closed and immutable.
//
// Which values a recursive function differentiates, or knows before others, has to be the same at every call of it: all
// inexact values have tangents, and `split` finds the smallest set of unknown ones that fits all calls. What the linear
// half needs goes back from a call as one `box`, the boxes of the calls inside it among its contents.
#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/fibres.h"
#include "ir/prims/control/regions.h"
#include "ir/prims/control/tapes.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

// --- Meaning ---------------------------------------------------------------------------------------------------------

// The functions that are running, innermost last, as the code that runs now sees them.
struct Running {
  const Fn* fn;
  std::shared_ptr<const Running> outer;
};
struct Calls {
  std::shared_ptr<const Running> running;
  int depth = 0;
};
thread_local Calls t_calls;
Calls& TheseCalls() { return t_calls; }

class Within {
 public:
  explicit Within(std::shared_ptr<const Running> running) : saved_(std::move(t_calls.running)) {
    t_calls.running = std::move(running);
  }
  ~Within() { t_calls.running = std::move(saved_); }
  Within(const Within&) = delete;

 private:
  std::shared_ptr<const Running> saved_;
};

// The interpreter's own calls lie on the machine's stack, of which this much is left to others.
constexpr int kMostInterpretedCalls = 1500;
constexpr intptr_t kStackReserve = 1 << 20;

// Bytes of the stack that are left.
intptr_t StackLeft() { return reinterpret_cast<intptr_t>(__builtin_frame_address(0)) - StackEnd(); }

Tensors RunFunction(const EvalContext& c, const std::shared_ptr<const Running>& running, const Tensors& in) {
  struct Deeper {
    Deeper() { ++t_calls.depth; }
    ~Deeper() { --t_calls.depth; }
  } deeper;
  if (t_calls.depth > kMostInterpretedCalls || StackLeft() < kStackReserve) {
    throw UserError(ErrorKind::kRuntime, {}, "recursion: '", running->fn->name(), "' calls itself more than ",
                    t_calls.depth - 1, " calls deep in the interpreter; does it end?");
  }
  Within within(running);
  return c.run(*running->fn, in);
}

int64_t Depth(const Attrs& attrs) {
  const int64_t depth = attrs.GetInt("depth");
  if (depth < 0 || depth >= kMaxRegionDepth) throw ValueError("recur: depth=", depth, "; expected 0 or more");
  return depth;
}

// --- Differentiation -------------------------------------------------------------------------------------------------

Mask WithTangents(const Types& types) {
  Mask mask;
  for (const Type& t : types) mask.push_back(HasTangents(t.dtype));
  return mask;
}
Types OperandTypes(Builder& b, const Atoms& x) {
  Types types;
  for (const Atom& a : x) types.push_back(b.TypeOf(a));
  return types;
}

// Of both: every inexact operand and result has a series.
void RecursivePush(PushContext& c, const Types& results, const std::function<Atoms(const Atoms&)>& emit) {
  const Mask active = WithTangents(OperandTypes(c.b, c.x)), active_out = WithTangents(results);
  Atoms operands = c.x;
  Append(operands, Tangents(c.b, c.x, c.dx, active, c.count));
  const Atoms out = emit(operands);
  c.y = Part(out, 0, results.size());
  c.dy = Spread(Part(out, results.size(), out.size()), active_out, c.count);
}

// A `recursive` equation being split: what its calls agree on.
struct Splitting {
  Mask unknown, unknown_out;  // operands and results
  Strings varying;            // of the box
  bool grown = false;         // a call did not fit: they are larger now
};
thread_local std::vector<Splitting*> t_splitting;

Mask Including(const Mask& a, const Mask& b, bool* grown) {
  const Mask both = Union(a, b);
  *grown = *grown || both != a;
  return both;
}

// The operands of a half: those whose flag is `unknown`, made available there.
Atoms UnknownOperands(SplitContext& c, const Mask& unknown) {
  Atoms operands;
  for (size_t i = 0; i < unknown.size(); ++i) {
    if (unknown[i]) operands.push_back(c.unknown[i] ? c.unknown_x[i] : c.residual(c.known_x[i]));
  }
  return operands;
}

void EverythingUnknown(SplitContext& c) {
  c.y = c.unknown_b.Clone(c.eqn, UnknownOperands(c, Mask(c.unknown.size(), true)));
  c.unknown_out.assign(c.y.size(), true);
}

// Results of the two halves in the order of the equation's. `known` ends with the box.
void Merge(SplitContext& c, const Mask& unknown_out, const Atoms& known, const Atoms& unknown) {
  size_t k = 0, u = 0;
  for (bool is_unknown : unknown_out) c.y.push_back(is_unknown ? unknown[u++] : known[k++]);
  c.unknown_out = unknown_out;
}

Attrs HalfAttrs(int64_t depth, const Types& results, bool unknown_half) {
  Attrs attrs = {{"depth", depth}, {"results", results}};
  if (unknown_half) attrs.Set("num_known", int64_t{1});
  return attrs;
}

void RecurSplit(SplitContext& c) {
  const int64_t depth = Depth(c.eqn.attrs);
  if (depth >= static_cast<int64_t>(t_splitting.size())) return EverythingUnknown(c);
  Splitting& s = *t_splitting[t_splitting.size() - 1 - static_cast<size_t>(depth)];
  s.unknown = Including(s.unknown, c.unknown, &s.grown);
  const Types& results = c.eqn.attrs.Get<Types>("results");
  Types known_types = Where(results, s.unknown_out, false);
  known_types.push_back(Type{DType::kTape, {}, s.varying});
  Mask own_unknown = s.unknown;
  // An operand that the convention makes unknown may be known here; one that is unknown here is in the convention now.
  const Atoms known =
      c.known_b.Emit(*c.eqn.prim, Where(c.known_x, own_unknown, false), HalfAttrs(depth, known_types, false));
  Atoms operands = {c.residual(known.back())};
  Append(operands, UnknownOperands(c, own_unknown));
  const Atoms unknown = c.unknown_b.Emit(*c.eqn.prim, operands, HalfAttrs(depth, Where(results, s.unknown_out), true));
  Merge(c, s.unknown_out, known, unknown);
}

// The mesh axes over which any value of `fn` varies: those of meshes around it.
Strings VaryingWithin(const Fn& fn, std::unordered_set<const Fn*>& seen) {
  Strings axes;
  for (uint32_t v = 0; v < fn.num_vars(); ++v) axes = UnionOfAxes(axes, fn.TypeOf(Var{v}).varying);
  for (const Eqn& e : fn.eqns()) {
    if (e.attrs.Find("mesh") != nullptr) continue;
    for (const FnRef& r : e.regions) {
      if (seen.insert(r.get()).second) axes = UnionOfAxes(axes, VaryingWithin(*r, seen));
    }
  }
  return axes;
}

// The box of a call, of a type that all calls have. It is a content that is declared to vary, where there is one of
// numbers: that has a transpose.
Atom Box(Builder& b, Atoms contents, const Strings& varying) {
  const auto numbers =
      std::find_if(contents.begin(), contents.end(), [&](const Atom& a) { return b.DTypeOf(a) != DType::kTape; });
  if (numbers != contents.end()) *numbers = Pvary(b, *numbers, varying);
  return Pvary(b, b.Emit(FindPrim("box"), contents)[0], varying);
}

void RecursiveSplit(SplitContext& c) {
  const FnRef& fn = c.eqn.regions[0];
  std::unordered_set<const Fn*> seen;
  Splitting s{c.unknown, Mask(c.eqn.num_results, false), VaryingWithin(*fn, seen)};
  SplitFn split;
  do {
    s.grown = false;
    t_splitting.push_back(&s);
    const absl::Cleanup pop = [] { t_splitting.pop_back(); };
    split = c.regions.split(fn, s.unknown, s.unknown_out);
    s.unknown_out = Including(s.unknown_out, split.unknown_out, &s.grown);
  } while (s.grown);
  const Types types = fn->ParamTypes();
  Builder kb(fn->name()), ub(fn->name());
  Atoms out = kb.Inline(*split.known, Parameters(kb, Where(types, s.unknown, false)));
  const size_t num_known = out.size() - split.residuals.size();
  const Atom box = Box(kb, Part(out, num_known, out.size()), s.varying);
  out.resize(num_known);
  out.push_back(box);
  const Atom parameter = ub.Parameter(Type{DType::kTape, {}, s.varying});
  const Atoms unknown_params = Parameters(ub, Where(types, s.unknown));
  Atoms args =
      split.residuals.empty() ? Atoms{} : ub.Emit(FindPrim("unbox"), {parameter}, {{"results", split.residuals}});
  Append(args, unknown_params);
  const Atoms unknown_results = ub.Inline(*split.unknown, args);
  const FnRef unknown_fn = std::move(ub).Build(unknown_results);

  const Atoms known = c.known_b.Emit(*c.eqn.prim, Where(c.known_x, s.unknown, false), {}, {kb.Build(out)});
  Atoms operands = {c.residual(known.back())};
  Append(operands, UnknownOperands(c, s.unknown));
  const Atoms unknown =
      Any(s.unknown_out) ? c.unknown_b.Emit(*c.eqn.prim, operands, {{"num_known", int64_t{1}}}, {unknown_fn}) : Atoms{};
  Merge(c, s.unknown_out, known, unknown);
}

// Of both: num_known operands are values; all others are linear, whether or not this call's happen to be.
OptionalAtoms RecursiveTranspose(TransposeContext& c, const Types& results,
                                 const std::function<Atoms(const Atoms&, const Types&, const Mask&)>& emit) {
  const size_t num_known = static_cast<size_t>(c.eqn.attrs.GetOr<int64_t>("num_known", 0));
  Mask linear(c.types.size(), true);
  Atoms operands;
  for (size_t i = 0; i < num_known; ++i) {
    if (c.linear(static_cast<int>(i)))
      throw UserError(ErrorKind::kDerivative, c.eqn.loc, "transpose: a recursive function is not linear in operand ",
                      i);
    linear[i] = false;
    operands.push_back(*c.x[i]);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const Atom ct = c.ct[i] ? *c.ct[i] : Zeros(c.b, results[i]);
    operands.push_back(MatchVarying(c.b, ct, results[i], /*sum=*/true));
  }
  OptionalAtoms cts = Spread(emit(operands, Where(c.types.list(), linear), linear), linear);
  for (size_t i = 0; i < cts.size(); ++i) {
    if (!c.linear(static_cast<int>(i))) cts[i] = std::nullopt;
  }
  return cts;
}

// --- Dead code -------------------------------------------------------------------------------------------------------

// A `recursive` equation whose dead code is being found: what some call of it needs, and the operands that takes.
struct Dropping {
  Mask results, operands;
  bool grown = false;  // a call needs more than was known: another round
};
thread_local std::vector<Dropping*> t_dropping;

Attrs KnownAmong(const Attrs& attrs, const Mask& operands) {
  const auto known = attrs.GetOr<int64_t>("num_known", 0);
  return known == 0 ? attrs : attrs.With("num_known", std::count(operands.begin(), operands.begin() + known, true));
}

Kept RecursiveDce(const DceContext& c) {
  const FnRef& fn = c.eqn.regions[0];
  Dropping d{c.needed, Mask(c.eqn.operands.size(), false)};
  t_dropping.push_back(&d);
  const absl::Cleanup pop = [] { t_dropping.pop_back(); };
  do {
    d.grown = false;
    d.operands = Including(d.operands, c.reads(fn, d.results), &d.grown);
  } while (d.grown);
  return {d.results, d.operands, KnownAmong(c.eqn.attrs, d.operands), {c.keep(fn, d.results, d.operands)}};
}

// A call of a function that is not being changed stays as it is.
Kept RecurDce(const DceContext& c) {
  const int64_t depth = Depth(c.eqn.attrs);
  if (depth >= static_cast<int64_t>(t_dropping.size())) return KeepWhole(c.eqn);
  Dropping& d = *t_dropping[t_dropping.size() - 1 - static_cast<size_t>(depth)];
  d.results = Including(d.results, c.needed, &d.grown);
  Attrs attrs = KnownAmong(c.eqn.attrs, d.operands);
  attrs.Set("results", Where(c.eqn.attrs.Get<Types>("results"), d.results));
  return {d.results, d.operands, attrs, {}};
}

// --- Types -----------------------------------------------------------------------------------------------------------

// Raises kType unless calls of the function at `depth` have its signature.
void CheckCalls(const Fn& fn, int depth, const Types& operands, const Types& results,
                std::set<std::pair<const Fn*, int>>& checked) {
  for (const Eqn& e : fn.eqns()) {
    if (e.OutwardCalls() <= depth) continue;
    if (e.prim->recurs && e.attrs.GetInt("depth") == depth) {
      Types given;
      for (const Atom& a : e.operands) given.push_back(fn.TypeOf(a));
      if (given != operands || e.attrs.Get<Types>("results") != results) {
        throw TypeError("recursive: the function takes (", ToString(operands), ") and gives (", ToString(results),
                        "), but calls itself with (", ToString(given), ") for (",
                        ToString(e.attrs.Get<Types>("results")), ")");
      }
    }
    const int inside = depth + (e.prim->region_use == RegionUse::kRecursive ? 1 : 0);
    for (const FnRef& r : e.regions) {
      if (checked.emplace(r.get(), inside).second) CheckCalls(*r, inside, operands, results, checked);
    }
  }
}

void CheckKnown(const Sig& s) {
  const int64_t known = s.attrs.GetOr<int64_t>("num_known", 0);
  if (known < 0 || known > static_cast<int64_t>(s.operands.size()))
    throw ValueError(s.prim.name, ": num_known=", known, " of ", s.operands.size(), " operands");
}

// factorial: f(n, x) = n < 1 ? x : f(n - 1, n * x)   and   g(n, x) = n < 1 ? x : sin(x) * g(n - 1, x)
FnRef SampleFunction(DType t, bool tail) {
  const Type count{DType::kI32, {}, {}}, value{t, {}, {}};
  Builder base("base"), step("step"), b("f");
  base.Parameter(count);
  const FnRef on_false = base.Build({base.Parameter(value)});
  const Atom n = step.Parameter(count), x = step.Parameter(value);
  const Atom less = Sub(step, n, Atom(Tensor::Scalar<int32_t>(DType::kI32, 1)));
  const Atom argument = tail ? Mul(step, Convert(step, n, t), Sin(step, x)) : x;
  Atom y = step.Emit(FindPrim("recur"), {less, argument}, {{"depth", int64_t{0}}, {"results", Types{value}}})[0];
  if (!tail) y = Mul(step, Sin(step, x), y);
  const FnRef on_true = step.Build({y});
  const Atom m = b.Parameter(count), v = b.Parameter(value);
  return b.Build(b.Emit(FindPrim("cond"), {Gt(b, m, Atom(Tensor::Scalar<int32_t>(DType::kI32, 0))), m, v}, {},
                        {on_false, on_true}));
}

// h(n, x) = n < 1 ? (x, x) : (sin(x) * y, x + z) with (y, z) = h(n - 1, sin(x)).
FnRef PairFunction(DType t) {
  const Type count{DType::kI32, {}, {}}, value{t, {}, {}};
  Builder base("base"), step("step"), b("h");
  base.Parameter(count);
  const Atom end = base.Parameter(value);
  const FnRef on_false = base.Build({end, end});
  const Atom n = step.Parameter(count), x = step.Parameter(value), sine = Sin(step, x);
  const Atoms yz = step.Emit(FindPrim("recur"), {Sub(step, n, Atom(Tensor::Scalar<int32_t>(DType::kI32, 1))), sine},
                             {{"depth", int64_t{0}}, {"results", Types{value, value}}});
  const FnRef on_true = step.Build({Mul(step, sine, yz[0]), Add(step, x, yz[1])});
  const Atom m = b.Parameter(count), v = b.Parameter(value);
  return b.Build(b.Emit(FindPrim("cond"), {Gt(b, m, Atom(Tensor::Scalar<int32_t>(DType::kI32, 0))), m, v}, {},
                        {on_false, on_true}));
}

}  // namespace

void RegisterRecursion(PrimRegistry& r) {
  RegisterFibreState<Calls, TheseCalls>();
  Prim& group = r.Add("recursive", Family::kControl, -1,
                      "The results of the region on the operands, where recur[depth=0] inside the region is a call of "
                      "the region itself. num_known (0 when absent): the leading operands in which it is not linear.");
  group.region_use = RegionUse::kRecursive;
  group.lane_by_lane = true;
  group.infer = [](const Sig& s) -> Types {
    CheckRegionCount(s, 1);
    CheckRegionParams(s, 0, s.operands);
    CheckKnown(s);
    const Types results = s.regions[0]->ResultTypes();
    std::set<std::pair<const Fn*, int>> checked;
    CheckCalls(*s.regions[0], 0, s.operands, results, checked);
    return results;
  };
  group.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    return RunFunction(c, std::make_shared<Running>(Running{c.sig.regions[0].get(), t_calls.running}), in);
  };
  group.push = [](PushContext& c) {
    const FnRef& fn = c.eqn.regions[0];
    const Types results = fn->ResultTypes();
    const JvpFn f = c.push(fn, WithTangents(fn->ParamTypes()), WithTangents(results));
    RecursivePush(c, results, [&](const Atoms& x) { return c.b.Emit(*c.eqn.prim, x, {}, {f.fn}); });
  };
  group.batch = BatchOneByOne;
  group.split = RecursiveSplit;
  group.dce = RecursiveDce;
  group.may_diverge = true;
  group.linear = {-1};
  group.transpose = [](TransposeContext& c) -> OptionalAtoms {
    return RecursiveTranspose(
        c, c.eqn.regions[0]->ResultTypes(), [&](const Atoms& x, const Types&, const Mask& linear) {
          return c.b.Emit(*c.eqn.prim, x, c.eqn.attrs, {c.regions.transpose(c.eqn.regions[0], linear)});
        });
  };
  group.more_attributes = {"num_known"};
  group.samples = [] {
    std::vector<Sample> samples;
    for (DType t : {DType::kF32, DType::kF64}) {
      for (const FnRef& f : {SampleFunction(t, false), SampleFunction(t, true), PairFunction(t)}) {
        Sample s = SampleOf({Type{DType::kI32, {}, {}}, Type{t, {}, {}}});
        s.regions = {f};
        s.values = {{0, Tensor::Scalar<int32_t>(DType::kI32, 3)}};
        samples.push_back(s);
      }
    }
    return samples;
  };

  Prim& call = r.Add("recur", Family::kControl, -1,
                     "A call of the enclosing recursive function: of the innermost one for depth=0. results are the "
                     "types of its results; num_known is as there.");
  call.recurs = true;
  call.lane_by_lane = true;
  call.says_varying = true;
  call.infer = [](const Sig& s) -> Types {
    Depth(s.attrs);
    CheckKnown(s);
    return s.attrs.Get<Types>("results");
  };
  call.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    std::shared_ptr<const Running> running = t_calls.running;
    for (int64_t d = Depth(c.sig.attrs); d > 0 && running; --d) running = running->outer;
    if (!running) throw ValueError("recur: there is no enclosing recursive function");
    return RunFunction(c, running, in);
  };
  call.push = [](PushContext& c) {
    const Types& results = c.eqn.attrs.Get<Types>("results");
    Types all = results;
    Append(all, Repeated(Where(results, WithTangents(results)), c.count));
    RecursivePush(c, results, [&](const Atoms& x) {
      return c.b.Emit(*c.eqn.prim, x, {{"depth", c.eqn.attrs.GetInt("depth")}, {"results", all}});
    });
  };
  call.batch = BatchOneByOne;
  call.split = RecurSplit;
  call.dce = RecurDce;
  call.may_diverge = true;
  call.linear = {-1};
  call.transpose = [](TransposeContext& c) -> OptionalAtoms {
    return RecursiveTranspose(c, c.eqn.attrs.Get<Types>("results"),
                              [&](const Atoms& x, const Types& results, const Mask&) {
                                return c.b.Emit(*c.eqn.prim, x, c.eqn.attrs.With("results", results));
                              });
  };
  call.has_effect = true;                               // it may be too deep
  call.samples = [] { return std::vector<Sample>{}; };  // only inside `recursive`
  call.more_attributes = {"depth", "num_known", "results"};
}

}  // namespace weft
