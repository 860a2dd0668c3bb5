// call and cond.
#include <algorithm>
#include <numeric>

#include "ir/prims/collectives.h"
#include "ir/prims/control/branch_slots.h"
#include "ir/prims/control/divergence.h"
#include "ir/prims/control/regions.h"
#include "ir/prims/control/varying_choice.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {

void CheckRegionCount(const Sig& s, size_t count) {
  if (s.regions.size() != count) throw TypeError(s.prim.name, ": has ", s.regions.size(), " regions; expected ", count);
}

void CheckRegionParams(const Sig& s, size_t index, const Types& types) {
  const Types given = s.regions[index]->ParamTypes();
  if (given != types)
    throw TypeError(s.prim.name, ": region ", index, " takes (", ToString(given), "); expected (", ToString(types),
                    ")");
}

void CheckRegionResults(const Sig& s, size_t index, const Types& types) {
  const Types given = s.regions[index]->ResultTypes();
  if (given != types)
    throw TypeError(s.prim.name, ": region ", index, " gives (", ToString(given), "); expected (", ToString(types),
                    ")");
}

Mask ActiveOf(const OptionalAtoms& dx) {
  Mask active;
  for (const auto& d : dx) active.push_back(d.has_value());
  return active;
}

Mask ActiveOf(const Series& dx) {
  Mask active;
  for (const auto& d : dx) active.push_back(d.has_value());
  return active;
}

size_t CountOf(const Mask& mask, bool value) {
  return static_cast<size_t>(std::count(mask.begin(), mask.end(), value));
}
bool Any(const Mask& mask) { return std::find(mask.begin(), mask.end(), true) != mask.end(); }

std::vector<size_t> Regrouped(absl::Span<const size_t> sizes, absl::Span<const size_t> order) {
  std::vector<size_t> places;
  for (size_t group : order) {
    const size_t first = std::accumulate(sizes.begin(), sizes.begin() + static_cast<int64_t>(group), size_t{0});
    for (size_t i = 0; i < sizes[group]; ++i) places.push_back(first + i);
  }
  return places;
}

Mask DependentResults(const FnRef& fn, const Mask& unknown, const Mask& force, const RegionRules& rules) {
  Mask depends = unknown;
  depends.resize(fn->num_vars(), false);
  const auto is_unknown = [&](const Atom& a) { return a.is_var() && depends[a.id()]; };
  for (const Eqn& e : fn->eqns()) {
    if (e.prim->split) return rules.split(fn, unknown, force).unknown_out;
    const bool any = e.CallsOutwards() || std::any_of(e.operands.begin(), e.operands.end(), is_unknown);
    for (uint32_t r = 0; r < e.num_results; ++r) depends[e.first_result + r] = any;
  }
  Mask results = force;
  results.resize(fn->results().size(), false);
  for (size_t i = 0; i < results.size(); ++i) results[i] = results[i] || is_unknown(fn->results()[i]);
  return results;
}

Mask Union(const Mask& a, const Mask& b) {
  Mask either(a.size());
  for (size_t i = 0; i < a.size(); ++i) either[i] = a[i] || b[i];
  return either;
}

Atoms Tangents(Builder& b, const Atoms& x, const OptionalAtoms& dx, const Mask& wanted) {
  Atoms out;
  for (size_t i = 0; i < x.size(); ++i) {
    if (wanted[i]) out.push_back(dx[i] ? *dx[i] : Zeros(b, b.TypeOf(x[i])));
  }
  return out;
}

Atoms Tangents(Builder& b, const Atoms& x, const Series& dx, const Mask& wanted, size_t count) {
  Atoms out;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!wanted[i]) continue;
    if (dx[i])
      Append(out, *dx[i]);
    else
      out.insert(out.end(), count, Zeros(b, b.TypeOf(x[i])));
  }
  return out;
}

Atoms Parameters(Builder& b, const Types& types) {
  Atoms params;
  for (const Type& t : types) params.push_back(b.Parameter(t));
  return params;
}

OptionalAtoms Spread(const Atoms& tangents, const Mask& active) {
  OptionalAtoms out(active.size());
  size_t next = 0;
  for (size_t i = 0; i < active.size(); ++i) {
    if (active[i]) out[i] = tangents[next++];
  }
  return out;
}

Series Spread(const Atoms& series, const Mask& active, size_t count) {
  Series out(active.size());
  size_t next = 0;
  for (size_t i = 0; i < active.size(); ++i) {
    if (active[i]) out[i] = Part(series, next, next + count), next += count;
  }
  return out;
}

void PushCall(PushContext& c) {
  const Mask active = ActiveOf(c.dx);
  const JvpFn f = c.push(c.eqn.regions[0], active, Mask(c.eqn.num_results, false));
  Atoms operands = c.x;
  Append(operands, Tangents(c.b, c.x, c.dx, active, c.count));
  const Atoms out = c.b.Emit(*c.eqn.prim, operands, c.eqn.attrs, {f.fn});
  c.y = Part(out, 0, c.eqn.num_results);
  c.dy = Spread(Part(out, c.eqn.num_results, out.size()), f.active_out, c.count);
}

namespace {

// The known half of a region. A residual that is a parameter of it is an operand, and there without the region's help;
// one that is a result is there, too, where there is one region (`alone`): they are not handed over.
struct KnownHalf {
  struct Source {
    bool is_operand;
    uint32_t index;
  };
  FnRef fn;
  std::vector<std::optional<Source>> sources;  // per residual: the known operand or result that it is

  KnownHalf(const SplitFn& split, size_t num_known, bool alone) : fn(split.known) {
    const Atoms all = fn->results();
    Atoms handed = Part(all, 0, num_known);
    for (size_t i = num_known; i < all.size(); ++i) {
      sources.push_back(SourceOf(all[i], all, alone ? num_known : 0));
      if (!sources.back()) handed.push_back(all[i]);
    }
    if (handed.size() == all.size()) return;
    Builder b(std::move(fn));
    fn = std::move(b).Build(handed);
  }

 private:
  std::optional<Source> SourceOf(const Atom& residual, const Atoms& results, size_t num_known) const {
    if (!residual.is_var()) return std::nullopt;
    if (residual.id() < fn->params().size()) return Source{true, residual.id()};
    for (uint32_t k = 0; k < num_known; ++k) {
      if (results[k] == residual) return Source{false, k};
    }
    return std::nullopt;
  }
};

// The same split with the known parameters as residuals: the unknown half makes the others again.
SplitFn WithKnownHalfAgain(const SplitFn& split, size_t num_known, const Prim& call) {
  SplitFn again;
  again.unknown_out = split.unknown_out;
  again.residuals = split.known->ParamTypes();
  Builder known{FnRef(split.known)};
  Atoms results = Part(split.known->results(), 0, num_known);
  for (uint32_t i = 0; i < again.residuals.size(); ++i) results.push_back(Var{i});
  again.known = std::move(known).Build(results);
  Builder unknown(split.unknown->name());
  const Atoms made = unknown.Emit(call, Parameters(unknown, again.residuals), {}, {split.known});
  Atoms args = Part(made, num_known, made.size());
  const Types types = split.unknown->ParamTypes();
  Append(args, Parameters(unknown, Part(types, split.residuals.size(), types.size())));
  const Atoms out = unknown.Emit(call, args, {}, {split.unknown});
  again.unknown = std::move(unknown).Build(out);
  return again;
}

}  // namespace

bool CallsOften(const Fn& fn) {
  if (fn.NumEqns() == static_cast<int64_t>(fn.eqns().size())) return false;
  int64_t equations = 0;  // each function once
  AnyFunction(fn, [&](const Fn& f) {
    equations += static_cast<int64_t>(f.eqns().size());
    return false;
  });
  return fn.NumEqns() > equations;
}

bool IsBetterMadeAgain(const Fn& fn, const Types& values) {
  constexpr size_t kMany = size_t{1} << 16;
  constexpr double kMuch = 0x1p40;
  double bytes = 0;
  for (const Type& t : values) {
    double size = ByteWidth(t.dtype);
    for (const Dim& d : t.dims) size *= static_cast<double>(d.TryValue().value_or(1));
    bytes += size;
  }
  return (values.size() > kMany || bytes > kMuch) && CallsOften(fn) && !fn.HasEffects() && fn.OutwardCalls() == 0;
}

void SplitCall(SplitContext& c, const Attrs& attrs) {
  const Prim& call = FindPrim("call");
  SplitFn f = c.regions.split(c.eqn.regions[0], c.unknown, Mask(c.eqn.num_results, false));
  const size_t num_known = CountOf(f.unknown_out, false);
  const Atoms known_x = Where(c.known_x, c.unknown, false);
  if (IsBetterMadeAgain(*c.eqn.regions[0], f.residuals)) f = WithKnownHalfAgain(f, num_known, call);
  KnownHalf half(f, num_known, true);
  const BranchSlots slots(half.fn, num_known);
  if (slots.types().size() + num_known < half.fn->results().size()) {
    Builder kb(half.fn->name()), ub(f.unknown->name());
    const Atoms out = kb.Inline(*half.fn, Parameters(kb, half.fn->ParamTypes()));
    Atoms results = Part(out, 0, num_known), args;
    Append(results, slots.Fill(kb, 0, Part(out, num_known, out.size())));
    half.fn = std::move(kb).Build(results);
    // The residuals that are operands or results come first.
    std::vector<std::optional<KnownHalf::Source>> order;
    Atoms passed;
    for (size_t i = 0; i < half.sources.size(); ++i) {
      if (!half.sources[i]) continue;
      order.push_back(half.sources[i]);
      passed.push_back(ub.Parameter(f.residuals[i]));
    }
    const Atoms made = slots.Read(ub, 0, Parameters(ub, slots.types()));
    size_t p = 0, m = 0;
    for (const auto& source : half.sources) args.push_back(source ? passed[p++] : made[m++]);
    const Types types = f.unknown->ParamTypes();
    Append(args, Parameters(ub, Part(types, f.residuals.size(), types.size())));
    const Atoms unknown_results = ub.Inline(*f.unknown, args);
    f.unknown = std::move(ub).Build(unknown_results);
    order.resize(order.size() + slots.types().size());
    half.sources = std::move(order);
  }
  const Atoms known = c.known_b.Emit(call, known_x, attrs, {half.fn});
  Atoms operands;
  size_t next = num_known;
  for (const auto& source : half.sources) {
    if (!source)
      operands.push_back(c.residual(known[next++]));
    else
      operands.push_back(c.residual(source->is_operand ? known_x[source->index] : known[source->index]));
  }
  Append(operands, Where(c.unknown_x, c.unknown));
  const Atoms unknown = c.unknown_b.Emit(call, operands, attrs, {f.unknown});
  size_t k = 0, u = 0;
  for (bool is_unknown : f.unknown_out) c.y.push_back(is_unknown ? unknown[u++] : known[k++]);
  c.unknown_out = f.unknown_out;
}

Kept KeepOfRegions(const DceContext& c, size_t first) {
  Mask params(c.eqn.operands.size() - first, false);
  for (const FnRef& region : c.eqn.regions) params = Union(params, c.reads(region, c.needed));
  Kept k{c.needed, Mask(first, true), c.eqn.attrs, {}};
  Append(k.operands, params);
  for (const FnRef& region : c.eqn.regions) k.regions.push_back(c.keep(region, c.needed, params));
  return k;
}

Kept KeepWhole(const Eqn& eqn) {
  return {Mask(eqn.num_results, true), Mask(eqn.operands.size(), true), eqn.attrs, eqn.regions};
}

// One batch element after the other: each stops where it stops, and no batch element's values reach a branch that
// another one takes.
void BatchOneByOne(BatchContext& c) {
  RefuseMappedAxis(c, "runs one batch element after the other");
  Builder body(c.eqn.prim->name);
  Atoms args(c.x.size()), consts, xs;
  for (size_t i = 0; i < c.x.size(); ++i) {
    if (c.batched[i]) continue;
    args[i] = body.Parameter(c.b.TypeOf(c.x[i]));
    consts.push_back(c.x[i]);
  }
  for (size_t i = 0; i < c.x.size(); ++i) {
    if (!c.batched[i]) continue;
    Type element = c.b.TypeOf(c.x[i]);
    element.dims.erase(element.dims.begin());
    args[i] = body.Parameter(element);
    xs.push_back(c.x[i]);
  }
  const FnRef fn = body.Build(body.Clone(c.eqn, args));
  Atoms operands = consts;
  Append(operands, xs);
  c.y = c.b.Emit(FindPrim("scan"), operands,
                 {{"num_consts", static_cast<int64_t>(consts.size())},
                  {"num_carry", int64_t{0}},
                  {"length", Dims{c.size}},
                  {"reverse", false}},
                 {fn});
  c.batched_out.assign(c.y.size(), true);
}

namespace {

// Cotangents of all results: zeros where none arrived.
Atoms AllCotangents(TransposeContext& c) {
  Atoms cts;
  for (uint32_t i = 0; i < c.eqn.num_results; ++i) {
    const Types results = c.eqn.regions[0]->ResultTypes();
    cts.push_back(c.ct[i] ? *c.ct[i] : Zeros(c.b, results[i]));
  }
  return cts;
}

void RegisterCall(PrimRegistry& r) {
  Prim& p = r.Add("call", Family::kControl, -1,
                  "The results of the region on the operands. Inlined before lowering unless out_of_line=true, or the "
                  "region is large and called more than once.");
  p.region_use = RegionUse::kCall;
  p.infer = [](const Sig& s) -> Types {
    CheckRegionCount(s, 1);
    CheckRegionParams(s, 0, s.operands);
    return s.regions[0]->ResultTypes();
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors { return c.run(*c.sig.regions[0], in); };
  p.push = PushCall;
  p.batch = [](BatchContext& c) {
    const BatchedFn f = c.regions.batch(c.eqn.regions[0], c.batched, Mask(c.eqn.num_results, false), c.size);
    c.y = c.b.Emit(*c.eqn.prim, c.x, c.eqn.attrs, {f.fn});
    c.batched_out = f.batched_out;
  };
  p.split = [](SplitContext& c) { SplitCall(c, c.eqn.attrs); };
  p.dce = [](const DceContext& c) -> Kept { return KeepOfRegions(c, 0); };
  p.linear = {-1};
  p.transposes_mixed_regions = true;
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    Mask linear;
    Atoms operands;
    for (const auto& x : c.x) {
      linear.push_back(!x);
      if (x) operands.push_back(*x);
    }
    Append(operands, AllCotangents(c));
    return Spread(c.b.Emit(*c.eqn.prim, operands, c.eqn.attrs, {c.regions.transpose(c.eqn.regions[0], linear)}),
                  linear);
  };
  p.samples = [] {
    std::vector<Sample> samples;
    for (DType t : {DType::kF32, DType::kF64}) {
      const Type type{t, {5}, {}};
      Builder b("f");
      const Atom x = b.Parameter(type), y = b.Parameter(type);
      Sample s = SampleOf({type, type});
      s.regions = {b.Build({Mul(b, Sin(b, x), y), Add(b, x, y)})};
      samples.push_back(s);
      s.attrs = {{"out_of_line", true}};
      samples.push_back(s);
    }
    return samples;
  };
}

// The index of the taken branch: false/true, or an i32 clamped to the number of branches.
int64_t TakenBranch(const Tensor& index, size_t branches) {
  if (index.dtype() == DType::kBool) return index.at<bool>(0) ? 1 : 0;
  return std::clamp<int64_t>(index.at<int32_t>(0), 0, static_cast<int64_t>(branches) - 1);
}

// Every branch transformed so that all agree on which results are active (or batched, or unknown): once to find out,
// once more where a branch disagrees.
template <class F>
auto Agreeing(const std::vector<FnRef>& branches, size_t results, F transform) {
  Mask force(results, false);
  using Result = decltype(transform(branches[0], force));
  std::vector<Result> out;
  while (true) {
    out.clear();
    Mask found = force;
    for (const FnRef& f : branches) {
      out.push_back(transform(f, force));
      found = Union(found, out.back().second);
    }
    if (found == force || std::all_of(out.begin(), out.end(), [&](const Result& r) { return r.second == found; }))
      return out;
    force = found;
  }
}

void CondPush(PushContext& c) {
  const Atoms x = Part(c.x, 1, c.x.size());
  const Series dx = Part(c.dx, 1, c.dx.size());
  const Mask active = ActiveOf(dx);
  const auto branches = Agreeing(c.eqn.regions, c.eqn.num_results, [&](const FnRef& f, const Mask& force) {
    const JvpFn j = c.push(f, active, force);
    return std::make_pair(j.fn, j.active_out);
  });
  Atoms operands = c.x;
  Append(operands, Tangents(c.b, x, dx, active, c.count));
  std::vector<FnRef> regions;
  for (const auto& [fn, out] : branches) regions.push_back(fn);
  const Atoms out = c.b.Emit(*c.eqn.prim, operands, c.eqn.attrs, regions);
  c.y = Part(out, 0, c.eqn.num_results);
  c.dy = Spread(Part(out, c.eqn.num_results, out.size()), branches[0].second, c.count);
}

void CondBatch(BatchContext& c) {
  if (c.batched[0]) {
    RefuseMappedAxis(c, "the batch elements may take different branches");
    return BatchVaryingChoice(c, c.b.TypeOf(c.x[0]).varying, BatchDivergentCond);
  }
  const Mask batched = Part(c.batched, 1, c.batched.size());
  const auto branches = Agreeing(c.eqn.regions, c.eqn.num_results, [&](const FnRef& f, const Mask& force) {
    const BatchedFn b = c.regions.batch(f, batched, force, c.size);
    return std::make_pair(b.fn, b.batched_out);
  });
  std::vector<FnRef> regions;
  for (const auto& [fn, out] : branches) regions.push_back(fn);
  c.y = c.b.Emit(*c.eqn.prim, c.x, c.eqn.attrs, regions);
  c.batched_out = branches[0].second;
}

void CondSplit(SplitContext& c) {
  const Mask unknown = Part(c.unknown, 1, c.unknown.size());
  if (c.unknown[0]) {  // which branch runs is unknown, so everything is
    Atoms operands;
    for (size_t i = 0; i < c.unknown.size(); ++i)
      operands.push_back(c.unknown[i] ? c.unknown_x[i] : c.residual(c.known_x[i]));
    c.y = c.unknown_b.Clone(c.eqn, operands);
    c.unknown_out.assign(c.y.size(), true);
    return;
  }
  const Strings predicate_axes = c.known_b.TypeOf(c.known_x[0]).varying;
  std::vector<FnRef> branches;
  for (const FnRef& f : c.eqn.regions) branches.push_back(VaryingOver(f, predicate_axes));
  std::vector<SplitFn> splits;
  Agreeing(branches, c.eqn.num_results, [&](const FnRef& f, const Mask& force) {
    if (splits.size() == branches.size()) splits.clear();
    splits.push_back(c.regions.split(f, unknown, force));
    return std::make_pair(f, splits.back().unknown_out);
  });
  const Mask unknown_out = splits[0].unknown_out;
  const size_t num_known = CountOf(unknown_out, false);
  const Types operand_types = branches[0]->ParamTypes();
  const Types known_types = Where(operand_types, unknown, false), unknown_types = Where(operand_types, unknown);
  std::vector<KnownHalf> halves;
  std::vector<FnRef> known_halves;
  Mask passed(known_types.size(), false);  // operands that are residuals of a branch
  for (const SplitFn& split : splits) {
    halves.emplace_back(split, num_known, false);
    known_halves.push_back(halves.back().fn);
    for (const auto& source : halves.back().sources) {
      if (source) passed[source->index] = true;
    }
  }
  const BranchSlots slots(known_halves, std::vector<size_t>(splits.size(), num_known));
  std::vector<FnRef> known_regions, unknown_regions;
  for (size_t k = 0; k < splits.size(); ++k) {
    Builder kb(c.eqn.regions[k]->name()), ub(c.eqn.regions[k]->name());
    const Atoms out = kb.Inline(*known_halves[k], Parameters(kb, known_types));
    Atoms results = Part(out, 0, num_known);
    Append(results, slots.Fill(kb, k, Part(out, num_known, out.size())));
    known_regions.push_back(std::move(kb).Build(results));
    const Atoms given = Parameters(ub, Where(known_types, passed)), filled = Parameters(ub, slots.types());
    const Atoms made = slots.Read(ub, k, filled);
    OptionalAtoms operands = Spread(given, passed);
    Atoms args;
    size_t next = 0;
    for (const auto& source : halves[k].sources) args.push_back(source ? *operands[source->index] : made[next++]);
    Append(args, Parameters(ub, unknown_types));
    const Atoms unknown_results = ub.Inline(*splits[k].unknown, args);
    unknown_regions.push_back(std::move(ub).Build(unknown_results));
  }
  const Atoms known_x = Where(Part(c.known_x, 1, c.known_x.size()), unknown, false);
  Atoms known_operands = {c.known_x[0]};
  Append(known_operands, known_x);
  const Atoms known = c.known_b.Emit(*c.eqn.prim, known_operands, c.eqn.attrs, known_regions);
  Atoms operands = {c.residual(c.known_x[0])};
  for (const Atom& a : Where(known_x, passed)) operands.push_back(c.residual(a));
  for (const Atom& a : Part(known, num_known, known.size())) operands.push_back(c.residual(a));
  Append(operands, Where(Part(c.unknown_x, 1, c.unknown_x.size()), unknown));
  const Atoms unknown_y =
      Any(unknown_out) ? c.unknown_b.Emit(*c.eqn.prim, operands, c.eqn.attrs, unknown_regions) : Atoms{};
  size_t k = 0, u = 0;
  for (bool is_unknown : unknown_out) c.y.push_back(is_unknown ? unknown_y[u++] : known[k++]);
  c.unknown_out = unknown_out;
}

OptionalAtoms CondTranspose(TransposeContext& c) {
  Mask linear;
  Atoms operands;
  for (size_t i = 0; i < c.x.size(); ++i) {
    if (i > 0) linear.push_back(!c.x[i]);
    if (c.x[i]) operands.push_back(*c.x[i]);
  }
  Append(operands, AllCotangents(c));
  std::vector<FnRef> regions;
  for (const FnRef& f : c.eqn.regions) regions.push_back(c.regions.transpose(f, linear));
  OptionalAtoms out = Spread(c.b.Emit(*c.eqn.prim, operands, c.eqn.attrs, regions), linear);
  out.insert(out.begin(), std::nullopt);
  return out;
}

void RegisterCond(PrimRegistry& r) {
  Prim& p = r.Add("cond", Family::kControl, -1,
                  "The results of one of the regions on operands 1, 2, ...: the one chosen by operand 0, which is "
                  "bool[] (region 0 for false, 1 for true) or i32[] (clamped). "
                  "Only the chosen region runs.");
  p.region_use = RegionUse::kBranches;
  p.infer = [](const Sig& s) -> Types {
    if (s.operands.empty() || s.operands[0].rank() != 0 ||
        (s.operands[0].dtype != DType::kBool && s.operands[0].dtype != DType::kI32)) {
      throw TypeError("cond: the predicate is ", s.operands.empty() ? std::string("missing") : s.operands[0].ToString(),
                      "; expected bool[] or i32[]");
    }
    if (s.operands[0].dtype == DType::kBool) CheckRegionCount(s, 2);
    if (s.regions.empty()) throw TypeError("cond: needs at least one branch");
    for (size_t i = 0; i < s.regions.size(); ++i) {
      CheckRegionParams(s, i, Part(s.operands, 1, s.operands.size()));
      CheckRegionResults(s, i, s.regions[0]->ResultTypes());
    }
    CheckVaryingChoice(s, s.operands[0].varying, 1);
    return s.regions[0]->ResultTypes();
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    return c.run(*c.sig.regions[TakenBranch(in[0], c.sig.regions.size())], Part(in, 1, in.size()));
  };
  p.push = CondPush;
  p.batch = CondBatch;
  p.split = CondSplit;
  p.dce = [](const DceContext& c) -> Kept { return KeepOfRegions(c, 1); };
  p.linear = {-1};
  p.transposes_mixed_regions = true;
  p.transpose = CondTranspose;
  p.samples = [] {
    auto branch = [](int k, const Type& type) {
      Builder b("branch");
      const Atom x = b.Parameter(type), y = b.Parameter(type);
      if (k == 0) return b.Build({Mul(b, Sin(b, x), y), x});
      if (k == 1) return b.Build({Add(b, x, y), Exp(b, x)});
      return b.Build({Zeros(b, type), Mul(b, x, x)});
    };
    std::vector<Sample> samples;
    for (int i = 0; i < 8; ++i) {
      const Type type{i < 4 ? DType::kF32 : DType::kF64, {4}, {}};
      Sample s = SampleOf({i % 4 < 2 ? Type{DType::kBool, {}, {}} : Type{DType::kI32, {}, {}}, type, type});
      s.regions = {branch(0, type), branch(1, type)};
      if (i % 4 < 2) {
        s.values = {{0, Tensor::Scalar<bool>(DType::kBool, i % 4 == 1)}};
      } else {
        s.regions.push_back(branch(2, type));
        s.values = {{0, Tensor::Scalar<int32_t>(DType::kI32, i % 4 == 2 ? 1 : 17)}};
      }
      samples.push_back(s);
    }
    return samples;
  };
}

}  // namespace

void RegisterControl(PrimRegistry& r) {
  RegisterCall(r);
  RegisterCond(r);
}

}  // namespace weft
