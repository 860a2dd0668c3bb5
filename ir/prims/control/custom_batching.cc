// custom_vmap: a function with a batching rule of its own, which a number names (ir/custom_rules.h).
//
// A transform that comes before vmap is done to the function, and its name is noted in `through`, so that vmap can do
// the same to what the rule gives: vmap(grad(f)) is the gradient of the rule's function. The steps are
//   push N MASK        a series for each operand in MASK (N = 1: jvp; otherwise jet of order N)
//   transpose MASK     of the linear map in the operands in MASK
//   keep MASK          of the results, those in MASK
// The region is the function after all steps. Split keeps the operands alone as residuals, as remat does.
#include "ir/prims/control/custom_batching.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "ir/custom_rules.h"
#include "ir/prims/control/regions.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

std::shared_ptr<BatchingRule> FindRule(int64_t id, Loc loc) {
  auto rule = std::static_pointer_cast<BatchingRule>(FindHostFunction(id, HostKind::kBatchingRule));
  if (rule == nullptr) {
    throw UserError(ErrorKind::kUnsupported, loc, "vmap: the batching rule of custom_vmap (number ", id,
                    ") is not known in this process: it belongs to another one, or is gone");
  }
  return rule;
}

struct Step {
  std::string kind;
  int count = 0;  // of push
  Mask mask;
};

std::string Text(const Step& s) {
  std::string text = s.kind + " ";
  if (s.kind == "push") text += std::to_string(s.count) + " ";
  for (bool flag : s.mask) text += flag ? '1' : '0';
  return text;
}

Step ParseStep(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  Step s;
  s.kind = words[0];
  const bool push = s.kind == "push";
  const bool known = push || s.kind == "transpose" || s.kind == "keep";
  if (!known || words.size() != (push ? 3u : 2u) || (push && !absl::SimpleAtoi(words[1], &s.count)))
    throw ValueError("custom_vmap: through has \"", text, "\"; expected push N MASK, transpose MASK or keep MASK");
  for (char c : words.back()) s.mask.push_back(c == '1');
  return s;
}

std::vector<Step> StepsOf(const Attrs& attrs) {
  std::vector<Step> steps;
  for (const std::string& text : attrs.GetOr<Strings>("through", {})) steps.push_back(ParseStep(text));
  return steps;
}

Attrs With(const Attrs& attrs, const Step& step) {
  Strings through = attrs.GetOr<Strings>("through", {});
  through.push_back(Text(step));
  return attrs.With("through", through);
}

// Calls visit(step, end) with where the function's own parameters end among the operands before each step, and gives
// where they end after the last.
template <class Visit>
size_t WalkOwnParameters(const Eqn& eqn, std::vector<Step>& steps, const Visit& visit) {
  const auto first = std::find_if(steps.begin(), steps.end(), [](const Step& s) { return s.kind != "keep"; });
  size_t end = first == steps.end() ? eqn.operands.size() : first->mask.size();
  for (Step& step : steps) {
    if (step.kind == "keep") continue;  // of results
    visit(step, end);
    if (step.kind == "transpose") {
      const auto place = step.mask.begin() + static_cast<int64_t>(end);
      end -= static_cast<size_t>(std::count(step.mask.begin(), place, true));
    }
  }
  return end;
}

Mask TangentResults(const Fn& fn) {
  Mask mask;
  for (const Type& t : fn.ResultTypes()) mask.push_back(HasTangents(t.dtype));
  return mask;
}

FnRef Keep(const FnRef& fn, const Mask& results) {
  Builder b(fn->name());
  return b.Build(Where(b.Inline(*fn, Parameters(b, fn->ParamTypes())), results));
}

FnRef Do(const Step& step, const FnRef& fn, const RegionRules& regions) {
  if (step.kind == "push") {
    const Mask all = TangentResults(*fn);
    return (step.count == 1 ? regions.jvp(fn, step.mask, all) : regions.jet(fn, step.mask, step.count, all)).fn;
  }
  return step.kind == "transpose" ? regions.transpose(fn, step.mask) : Keep(fn, step.mask);
}

Types InferCustomVmap(const Sig& s) {
  CheckRegionCount(s, 1);
  CheckRegionParams(s, 0, s.operands);
  const int64_t args = s.attrs.GetInt("num_args");
  s.attrs.GetInt("rule");
  const std::vector<Step> steps = StepsOf(s.attrs);
  if (args < 0 || (steps.empty() && args > static_cast<int64_t>(s.operands.size())))
    throw ValueError("custom_vmap: num_args=", args, " of ", s.operands.size(), " operands");
  return s.regions[0]->ResultTypes();
}

void CustomVmapPush(PushContext& c) {
  const FnRef& fn = c.eqn.regions[0];
  const Step step{"push", static_cast<int>(c.count), ActiveOf(c.dx)};
  const Mask all = TangentResults(*fn);
  const JvpFn f = c.push(fn, step.mask, all);
  Atoms operands = c.x;
  Append(operands, Tangents(c.b, c.x, c.dx, step.mask, c.count));
  const Atoms out = c.b.Emit(*c.eqn.prim, operands, With(c.eqn.attrs, step), {f.fn});
  c.y = Part(out, 0, c.eqn.num_results);
  c.dy = Spread(Part(out, c.eqn.num_results, out.size()), all, c.count);
}

OptionalAtoms CustomVmapTranspose(TransposeContext& c) {
  const FnRef& fn = c.eqn.regions[0];
  Step step{"transpose", 0, {}};
  Atoms operands;
  for (const auto& x : c.x) {
    step.mask.push_back(!x);
    if (x) operands.push_back(*x);
  }
  const Types results = fn->ResultTypes();
  for (size_t i = 0; i < results.size(); ++i) operands.push_back(c.ct[i] ? *c.ct[i] : Zeros(c.b, results[i]));
  return Spread(c.b.Emit(*c.eqn.prim, operands, With(c.eqn.attrs, step), {c.regions.transpose(fn, step.mask)}),
                step.mask);
}

// Results that a push made from the operands before its series are known where those are; all else is unknown.
void CustomVmapSplit(SplitContext& c) {
  // The half of an enclosing recursive function that the linear part is in cannot call the function itself, so that the
  // operands alone will not do. No rule is lost: recursive functions are batched one batch element after the other.
  if (c.eqn.CallsOutwards()) return SplitCall(c, {});
  const FnRef& fn = c.eqn.regions[0];
  const std::vector<Step> steps = StepsOf(c.eqn.attrs);
  size_t primals = 0, known_results = 0;
  if (!steps.empty() && steps.back().kind == "push") {
    const Step& push = steps.back();
    primals = push.mask.size();
    Types types = fn->ResultTypes();
    // Results are n values, then the series of the inexact ones, `count` each.
    for (size_t n = 0; n <= types.size(); ++n) {
      size_t inexact = 0;
      for (size_t i = 0; i < n; ++i) inexact += HasTangents(types[i].dtype) ? 1 : 0;
      if (n + inexact * static_cast<size_t>(push.count) == types.size()) known_results = n;
    }
  }
  const bool split = primals > 0 && !Any(Part(c.unknown, 0, primals));
  Atoms operands;
  for (size_t i = 0; i < c.unknown.size(); ++i)
    operands.push_back(c.unknown[i] ? c.unknown_x[i] : c.residual(c.known_x[i]));
  if (!split) {
    c.y = c.unknown_b.Clone(c.eqn, operands);
    c.unknown_out.assign(c.y.size(), true);
    return;
  }
  Mask series(c.unknown.size(), true), in_series(c.eqn.num_results, true);
  std::fill(series.begin(), series.begin() + static_cast<int64_t>(primals), false);
  std::fill(in_series.begin(), in_series.begin() + static_cast<int64_t>(known_results), false);
  const FnRef known = c.regions.split(fn, series, in_series).known;
  Mask primal_results(known->results().size(), false);
  std::fill(primal_results.begin(), primal_results.begin() + static_cast<int64_t>(known_results), true);
  Strings before = c.eqn.attrs.Get<Strings>("through");
  before.pop_back();
  c.y = c.known_b.Emit(*c.eqn.prim, Part(c.known_x, 0, primals), c.eqn.attrs.With("through", before),
                       {Keep(known, primal_results)});
  const Step keep{"keep", 0, in_series};
  Append(c.y, c.unknown_b.Emit(*c.eqn.prim, operands, With(c.eqn.attrs, keep), {Keep(fn, in_series)}));
  c.unknown_out = in_series;
}

// What the batching rule gives is cut down in the same way. After a push everything stays: `split` tells values from
// series by their places, and leaves halves that end in a keep.
Kept CustomVmapDce(const DceContext& c) {
  Kept k = KeepWhole(c.eqn);
  const std::vector<Step> steps = StepsOf(c.eqn.attrs);
  if (c.needed == k.results || (!steps.empty() && steps.back().kind == "push")) return k;
  k.results = c.needed;
  k.attrs = With(c.eqn.attrs, {"keep", 0, c.needed});
  k.regions = {c.keep(c.eqn.regions[0], c.needed, k.operands)};
  return k;
}

// All results with a leading dimension.
FnRef AllBatched(const BatchedFn& f, const Dim& size) {
  Builder b(f.fn->name());
  Atoms results = b.Inline(*f.fn, Parameters(b, f.fn->ParamTypes()));
  for (size_t i = 0; i < results.size(); ++i) {
    if (f.batched_out[i]) continue;
    Type t = b.TypeOf(results[i]);
    Dims shape = t.dims;
    shape.insert(shape.begin(), size);
    results[i] = Broadcast(b, results[i], shape, Range(1, t.rank() + 1));
  }
  return b.Build(results);
}

// A derivative of which no argument is mapped together with its series: the rule may be told that none is, and what is
// mapped alone (tangents of constants, constant tangents) is mapped through the derivative of what it gives. So values
// stay the same for all batch elements under jacfwd, and the tangents of a linear function along one tangent do.
// False, with nothing done, where there are other steps, or where the rule gives no function or mapped results.
bool BatchedAlone(BatchContext& c, const std::vector<Step>& steps, const std::vector<int>& owner, const Types& types) {
  const auto pushes = std::count_if(steps.begin(), steps.end(), [](const Step& s) { return s.kind == "push"; });
  const bool others = std::any_of(steps.begin(), steps.end(), [](const Step& s) { return s.kind == "transpose"; });
  if (pushes != 1 || others) return false;
  const size_t params = types.size();
  Mask series(params, false), with_series(params, false);
  for (size_t i = params; i < c.x.size(); ++i) {
    const auto param = static_cast<size_t>(owner[i]);
    with_series[param] = true;
    if (c.batched[i]) series[param] = true;
  }
  for (size_t i = 0; i < params; ++i) {
    if (c.batched[i] && (series[i] || !with_series[i])) return false;
  }
  const BatchedFn rule = (*FindRule(c.eqn.attrs.GetInt("rule"), c.eqn.loc))(c.size, Mask(params, false), types);
  if (rule.fn == nullptr || Any(rule.batched_out)) return false;
  FnRef f = rule.fn;
  for (const Step& step : steps) f = Do(step, f, c.regions);
  const BatchedFn mapped = c.regions.batch(f, c.batched, Mask(c.eqn.num_results, false), c.size);
  c.y = c.b.Inline(*mapped.fn, c.x);
  c.batched_out = mapped.batched_out;
  return true;
}

void CustomVmapBatch(BatchContext& c) {
  const FnRef& fn = c.eqn.regions[0];
  const std::vector<Step> steps = StepsOf(c.eqn.attrs);
  const auto args = static_cast<size_t>(c.eqn.attrs.GetInt("num_args"));
  const int kCotangent = -1;
  // Which of the function's own parameters each operand belongs to; those in which it was transposed have to be mapped.
  const auto first = std::find_if(steps.begin(), steps.end(), [](const Step& s) { return s.kind != "keep"; });
  const size_t params = first == steps.end() ? c.x.size() : first->mask.size();
  std::vector<int> owner;
  Types types;
  for (size_t i = 0; i < params; ++i) owner.push_back(static_cast<int>(i));
  Mask linear(params, false);
  for (const Step& step : steps) {
    if (step.kind != "keep") owner.resize(step.mask.size(), kCotangent);  // after a transpose come cotangents
    if (step.kind == "push") {
      std::vector<int> more;
      for (size_t i = 0; i < step.mask.size(); ++i) {
        if (step.mask[i]) more.insert(more.end(), static_cast<size_t>(step.count), owner[i]);
      }
      Append(owner, more);
    } else if (step.kind == "transpose") {
      std::vector<int> kept;
      for (size_t i = 0; i < step.mask.size(); ++i) {
        if (!step.mask[i])
          kept.push_back(owner[i]);
        else if (owner[i] != kCotangent)
          linear[static_cast<size_t>(owner[i])] = true;
      }
      owner = kept;
    }
  }
  owner.resize(c.x.size(), kCotangent);
  Mask mapped(params, false);
  for (size_t i = 0; i < c.x.size(); ++i) {
    if (c.batched[i] && owner[i] != kCotangent) mapped[static_cast<size_t>(owner[i])] = true;
  }
  if (!Any(mapped)) {  // cotangents alone: the function is the same for all batch elements
    const BatchedFn f = c.regions.batch(fn, c.batched, Mask(c.eqn.num_results, false), c.size);
    c.y = c.b.Inline(*f.fn, c.x);
    c.batched_out = f.batched_out;
    return;
  }
  mapped = Union(mapped, linear);
  for (size_t i = args; i < params; ++i) {
    if (!mapped[i]) continue;
    throw UserError(
        ErrorKind::kUnsupported, c.eqn.loc, "custom_vmap: '", fn->name(),
        "' captured a value from around it that is mapped, about which its batching rule says nothing; make "
        "that value an argument of the function");
  }
  types.resize(params);
  for (size_t i = 0; i < c.x.size(); ++i) {
    Type t = c.b.TypeOf(c.x[i]);
    if (c.batched[i]) t.dims.erase(t.dims.begin());
    if (owner[i] != kCotangent) types[static_cast<size_t>(owner[i])] = t;
  }
  if (BatchedAlone(c, steps, owner, types)) return;
  const BatchedFn rule = (*FindRule(c.eqn.attrs.GetInt("rule"), c.eqn.loc))(c.size, mapped, types);
  if (steps.empty()) {
    c.y = c.b.Inline(*rule.fn, c.x);
    c.batched_out = rule.batched_out;
    return;
  }
  FnRef f = AllBatched(rule, c.size);
  for (const Step& step : steps) f = Do(step, f, c.regions);
  Atoms operands;
  for (size_t i = 0; i < c.x.size(); ++i) {
    const bool wanted = owner[i] == kCotangent || mapped[static_cast<size_t>(owner[i])];
    operands.push_back(wanted ? c.Batched(static_cast<int>(i)) : c.x[i]);
  }
  c.y = c.b.Inline(*f, operands);
  c.batched_out.assign(c.y.size(), true);
}

// sin(x) * w and x + w, whose rule says so of whole arrays. Samples are the same in every process, so its number is.
int64_t SampleRule() {
  const BatchingRule rule = [](const Dim& size, const Mask& batched, const Types& types) {
    Builder b("rule");
    Atoms x;
    for (size_t i = 0; i < types.size(); ++i) {
      Type t = types[i];
      if (batched[i]) t.dims.insert(t.dims.begin(), size);
      x.push_back(b.Parameter(t));
    }
    Dims shape = types[0].dims;
    shape.insert(shape.begin(), size);
    for (size_t i = 0; i < 2; ++i) {
      if (!batched[i]) x[i] = Broadcast(b, x[i], shape, Range(1, static_cast<int64_t>(shape.size())));
    }
    return BatchedFn{b.Build({Mul(b, Sin(b, x[0]), x[1]), Add(b, x[0], x[1])}), {true, true}};
  };
  static const auto& held = *new HostFunctions(HoldRule(rule, 0));
  return held.number();
}

}  // namespace

size_t EndOfOwnParameters(const Eqn& eqn) {
  std::vector<Step> steps = StepsOf(eqn.attrs);
  return WalkOwnParameters(eqn, steps, [](const Step&, size_t) {});
}

Attrs WithMoreParameters(const Eqn& eqn, size_t count) {
  std::vector<Step> steps = StepsOf(eqn.attrs), longer = steps;
  size_t i = 0;
  WalkOwnParameters(eqn, steps, [&](const Step& step, size_t end) {
    while (longer[i].kind == "keep") ++i;
    Mask& mask = longer[i++].mask;
    mask = step.mask;
    mask.insert(mask.begin() + static_cast<int64_t>(end), count, false);
  });
  Strings through;
  for (const Step& step : longer) through.push_back(Text(step));
  return through.empty() ? eqn.attrs : eqn.attrs.With("through", through);
}

void RegisterCustomBatching(PrimRegistry& r) {
  Prim& p = r.Add("custom_vmap", Family::kControl, -1,
                  "The results of the region on the operands; vmap uses the batching rule of that number. After the "
                  "num_args arguments come captured values, which cannot be mapped. `through` are the transforms that "
                  "the function has gone through and that vmap does to what the rule gives.");
  p.region_use = RegionUse::kWithRules;
  p.infer = InferCustomVmap;
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors { return c.run(*c.sig.regions[0], in); };
  p.push = CustomVmapPush;
  p.linear = {-1};
  p.transpose = CustomVmapTranspose;
  p.split = CustomVmapSplit;
  p.dce = CustomVmapDce;
  p.batch = CustomVmapBatch;
  p.host_functions = [](const Attrs& attrs) -> Ints { return {attrs.GetInt("rule")}; };
  p.more_attributes = {"through"};
  p.samples = [] {
    std::vector<Sample> samples;
    for (DType t : {DType::kF32, DType::kF64}) {
      const Type type{t, {4}, {}};
      Builder b("f");
      const Atom x = b.Parameter(type), w = b.Parameter(type);
      Sample s = SampleOf({type, type}, {{"rule", SampleRule()}, {"num_args", int64_t{2}}});
      s.regions = {b.Build({Mul(b, Sin(b, x), w), Add(b, x, w)})};
      samples.push_back(s);
    }
    return samples;
  };
}

}  // namespace weft
