// while: repeats a region as long as a predicate holds.
//
//   operands: carries, invariants;  regions: cond (carries, invariants) -> bool[],  body (carries, invariants) ->
//   (carries, rows);  results: final carries, tapes of the rows of all trips (base/tape.h)
//
// Reverse mode: `split` makes the known loop count its trips and record, trip by trip, what the linear half needs; the
// linear half is a tape_scan over the records. strategy="recount" runs the known loop twice, first only to count, so
// that the second time the tapes have their final size at once.
#include "ir/prims/control/while.h"

#include <algorithm>

#include "ir/prims/collectives.h"
#include "ir/prims/control/divergence.h"
#include "ir/prims/control/regions.h"
#include "ir/prims/control/residual_cut.h"
#include "ir/prims/control/tapes.h"
#include "ir/prims/control/varying_choice.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

Types InferWhile(const Sig& s) {
  CheckRegionCount(s, 2);
  const int64_t carries = s.attrs.GetInt("num_carry");
  if (carries < 0 || carries > static_cast<int64_t>(s.operands.size()))
    throw ValueError("while: num_carry=", carries, ", but there are ", s.operands.size(), " operands");
  const std::string strategy = s.attrs.GetOr<std::string>("strategy", "tape");
  if (strategy != "tape" && strategy != "recount")
    throw ValueError("while: strategy=\"", strategy, "\"; expected \"tape\" or \"recount\"");
  CheckRegionParams(s, 0, s.operands);
  CheckRegionParams(s, 1, s.operands);
  const Types predicate = s.regions[0]->ResultTypes();
  if (predicate.size() != 1 || predicate[0].rank() != 0 || predicate[0].dtype != DType::kBool)
    throw TypeError("while: the condition gives (", ToString(predicate), "); expected (bool[])");
  const While loop(s.attrs, s.regions);
  const Types carry = loop.Carries(s.operands), out = loop.body->ResultTypes();
  if (out.size() < loop.carries || loop.Carries(out) != carry) {
    throw TypeError("while: region 1 gives (", ToString(out), "); expected (", ToString(carry),
                    "), and after them rows to record");
  }
  CheckTapeDims("while", loop.tape_dims, loop.Rows(out));
  if (!predicate[0].varying.empty()) CheckVaryingChoice(s, predicate[0].varying, 0);
  Types results = carry;
  for (size_t i = loop.carries; i < out.size(); ++i)
    results.push_back(TapeOf(out[i], loop.tape_dims[i - loop.carries]));
  return results;
}

Tensors EvalWhile(const EvalContext& c, const Tensors& in) {
  const While loop(c.sig.attrs, c.sig.regions);
  Tensors state = in;
  std::vector<TapeWriter> writers;
  const Types out_types = loop.body->ResultTypes();
  for (size_t i = loop.carries; i < loop.results; ++i)
    writers.emplace_back(out_types[i], loop.tape_dims[i - loop.carries], 0);
  for (int64_t trip = 0; c.run(*loop.cond, state)[0].at<bool>(0); ++trip) {
    const Tensors out = c.run(*loop.body, state);
    for (size_t i = 0; i < writers.size(); ++i) writers[i].Write(trip, out[loop.carries + i]);
    std::copy(out.begin(), out.begin() + static_cast<int64_t>(loop.carries), state.begin());
  }
  Tensors results = loop.Carries(state);
  for (const TapeWriter& w : writers) results.push_back(w.tape());
  return results;
}

// operands: carry dcarry | invariants dinvariants;   results: carry dcarry | tapes dtapes
void WhilePush(PushContext& c) {
  const While loop(c.eqn.attrs, c.eqn.regions);
  const Mask active = ActiveOf(c.dx), inv = loop.Invariants(active);
  Mask carry = loop.Carries(active);
  JvpFn jvp;
  while (true) {
    Mask mask = carry;
    Append(mask, inv);
    jvp = c.push(loop.body, mask, loop.ForceCarries(carry));
    const Mask grown = Union(carry, loop.Carries(jvp.active_out));
    if (grown == carry) break;
    carry = grown;
  }
  const Mask rows = loop.Rows(jvp.active_out);
  const Types types = loop.body->ParamTypes(), carry_types = loop.Carries(types), inv_types = loop.Invariants(types);
  const Types dcarry_types = Repeated(Where(carry_types, carry), c.count),
              dinv_types = Repeated(Where(inv_types, inv), c.count);
  const std::vector<size_t> places =
      Regrouped({carry_types.size(), inv_types.size(), dcarry_types.size(), dinv_types.size()}, {0, 2, 1, 3});
  const auto condition = [&] {
    if (loop.cond->OutwardCalls() > 0) {  // an enclosing function that it calls takes series now
      Mask mask = carry;
      Append(mask, inv);
      FnRef cond = c.push(loop.cond, mask, {false}).fn;
      const Atoms out = cond->results();
      Builder b(std::move(cond));
      b.KeepParameters(places);
      return std::move(b).Build(out);
    }
    const Atoms out = loop.cond->results();
    Builder b{FnRef(loop.cond)};
    Parameters(b, dcarry_types), Parameters(b, dinv_types);
    b.KeepParameters(places);
    return std::move(b).Build(out);
  };
  const auto body = [&] {
    const Atoms out = jvp.fn->results(), y = Part(out, 0, loop.results), dy = Part(out, loop.results, out.size());
    Builder b(std::move(jvp.fn));
    b.KeepParameters(places);
    Atoms results = loop.Carries(y);
    Append(results, Part(dy, 0, dcarry_types.size()));
    Append(results, loop.Rows(y));
    Append(results, Part(dy, dcarry_types.size(), dy.size()));
    return std::move(b).Build(results);
  };
  const Atoms x_carry = loop.Carries(c.x), x_inv = loop.Invariants(c.x);
  Atoms operands = x_carry;
  Append(operands, Tangents(c.b, x_carry, loop.Carries(c.dx), carry, c.count));
  const size_t num_carry = operands.size();
  Append(operands, x_inv);
  Append(operands, Tangents(c.b, x_inv, loop.Invariants(c.dx), inv, c.count));
  Ints tape_dims = loop.tape_dims;
  Append(tape_dims, Repeated(Where(loop.tape_dims, rows), c.count));
  const Atoms out =
      c.b.Emit(*c.eqn.prim, operands, WhileAttrs(c.eqn.attrs, num_carry, tape_dims), {condition(), body()});
  const size_t end_rows = num_carry + loop.tape_dims.size();
  c.y = Part(out, 0, loop.carries);
  Append(c.y, Part(out, num_carry, end_rows));
  Atoms tangents = Part(out, loop.carries, num_carry);
  Append(tangents, Part(out, end_rows, out.size()));
  Mask out_mask = carry;
  Append(out_mask, rows);
  c.dy = Spread(tangents, out_mask, c.count);
}

// One predicate for all batch elements: the loop as it is, on batch elements. See divergence.h for predicates that
// differ.
void WhileBatch(BatchContext& c) {
  const While loop(c.eqn.attrs, c.eqn.regions);
  const Mask inv = loop.Invariants(c.batched);
  Mask carry = loop.Carries(c.batched);
  BatchedFn cond_fn, body_fn;
  while (true) {
    Mask mask = carry;
    Append(mask, inv);
    cond_fn = c.regions.batch(loop.cond, mask, {false}, c.size);
    if (cond_fn.batched_out[0]) {
      RefuseMappedAxis(c, "the batch elements may end after different numbers of trips");
      return BatchVaryingChoice(c, loop.cond->ResultTypes()[0].varying, BatchDivergentWhile);
    }
    body_fn = c.regions.batch(loop.body, mask, loop.ForceCarries(carry), c.size);
    const Mask grown = Union(carry, loop.Carries(body_fn.batched_out));
    if (grown == carry) break;
    carry = grown;
  }
  const Mask rows = loop.Rows(body_fn.batched_out);
  Atoms operands;
  for (size_t i = 0; i < c.x.size(); ++i)
    operands.push_back(i < loop.carries && carry[i] ? c.Batched(static_cast<int>(i)) : c.x[i]);
  Ints tape_dims = loop.tape_dims;
  for (size_t i = 0; i < tape_dims.size(); ++i) tape_dims[i] += rows[i] ? 1 : 0;
  c.y = c.b.Emit(*c.eqn.prim, operands, WhileAttrs(c.eqn.attrs, loop.carries, tape_dims), {cond_fn.fn, body_fn.fn});
  c.batched_out = carry;
  Append(c.batched_out, rows);
}

// A known loop cut in its carries: what its regions take and give when trips are counted in one carry more.
struct KnownLoop {
  Types carries, invariants;
  FnRef cond, body;  // (carries, invariants) -> bool[];  -> (carries, known rows, residuals)
  size_t rows;
  std::vector<size_t> recorded;  // the residuals that change from trip to trip
};

// The loop that counts its trips in the last carry; it records its rows, and the residuals if asked to.
// Takes the regions of `k`, unless what is not recorded here is recorded by another loop.
Atoms EmitCountingLoop(SplitContext& c, KnownLoop& k, const Atoms& operands, const Ints& row_tape_dims, bool record) {
  const Type count{DType::kI64, {}, k.cond->ResultTypes()[0].varying};
  const size_t n = k.carries.size();
  auto region = [&](FnRef fn, bool is_body) {
    const Atoms out = fn->results();
    Builder b(std::move(fn));
    const Atom trips = b.Parameter(count);
    b.KeepParameters(Regrouped({n, k.invariants.size(), 1}, {0, 2, 1}));
    if (!is_body) return std::move(b).Build(Part(out, 0, 1));
    Atoms results = Part(out, 0, n);
    results.push_back(Add(b, trips, Atom(Tensor::Scalar<int64_t>(DType::kI64, 1))));
    Append(results, Part(out, n, n + k.rows));
    for (size_t r : k.recorded) {
      if (record) results.push_back(out[n + k.rows + r]);
    }
    return std::move(b).Build(results);
  };
  Atoms all = Part(operands, 0, n);
  all.push_back(Pvary(c.known_b, Atom(Tensor::Scalar<int64_t>(DType::kI64, 0)), count.varying));
  Append(all, Part(operands, n, operands.size()));
  Ints tape_dims = row_tape_dims;
  if (record) tape_dims.resize(tape_dims.size() + k.recorded.size(), 0);
  return c.known_b.Emit(*c.eqn.prim, all, WhileAttrs(c.eqn.attrs, n + 1, tape_dims),
                        {region(std::move(k.cond), false), region(record ? std::move(k.body) : k.body, true)});
}

// The residuals of the trips of a loop that has been counted.
Atoms EmitRecordingScan(SplitContext& c, KnownLoop& k, const Atoms& operands, const Atom& trips) {
  const size_t n = k.carries.size();
  const Atoms out = k.body->results();
  Builder b(std::move(k.body));
  b.KeepParameters(Regrouped({n, k.invariants.size()}, {1, 0}));
  Atoms results = Part(out, 0, n), all = {trips};
  for (size_t r : k.recorded) results.push_back(out[n + k.rows + r]);
  Append(all, Part(operands, n, operands.size()));
  Append(all, Part(operands, 0, n));
  const Atoms y = c.known_b.Emit(FindPrim("tape_scan"), all,
                                 {{"num_consts", static_cast<int64_t>(k.invariants.size())},
                                  {"num_carry", static_cast<int64_t>(n)},
                                  {"lanes", Ints(k.recorded.size(), 0)},
                                  {"reverse", false}},
                                 {std::move(b).Build(results)});
  return Part(y, n, y.size());
}

void WhileSplit(SplitContext& c) {
  std::vector<FnRef> regions;
  for (const FnRef& f : c.eqn.regions) regions.push_back(VaryingOver(f, c.eqn.regions[0]->ResultTypes()[0].varying));
  const While loop(c.eqn.attrs, regions);
  const Mask inv = loop.Invariants(c.unknown);
  Mask carry = loop.Carries(c.unknown), mask;
  SplitFn split;
  while (true) {
    mask = carry;
    Append(mask, inv);
    if (c.regions.split(loop.cond, mask, {false}).unknown_out[0]) {  // when it ends is unknown, so everything is
      Atoms operands;
      for (size_t i = 0; i < c.unknown.size(); ++i)
        operands.push_back(c.unknown[i] ? c.unknown_x[i] : c.residual(c.known_x[i]));
      c.y = c.unknown_b.Clone(c.eqn, operands);
      c.unknown_out.assign(c.y.size(), true);
      return;
    }
    split = c.regions.split(loop.body, mask, loop.ForceCarries(carry));
    const Mask grown = Union(carry, loop.Carries(split.unknown_out));
    if (grown == carry) break;
    carry = grown;
  }
  Mask stored(CountOf(carry, false), false);  // invariants are there
  stored.resize(split.known->params().size(), true);
  split = WithFewestResiduals(std::move(split), stored);
  const Mask rows = loop.Rows(split.unknown_out);
  const Types types = loop.body->ParamTypes();
  KnownLoop k;
  k.carries = Where(loop.Carries(types), carry, false);
  k.invariants = Where(loop.Invariants(types), inv, false);
  k.cond = c.regions.split(loop.cond, mask, {false}).known;
  k.body = std::move(split.known);
  k.rows = CountOf(rows, false);
  const size_t n = k.carries.size(), first_residual = n + k.rows;
  // A residual that is an invariant passes as it is; others are recorded.
  std::vector<std::optional<size_t>> invariant(split.residuals.size());
  for (size_t r = 0; r < split.residuals.size(); ++r) {
    const Atom& a = k.body->results()[first_residual + r];
    if (a.is_var() && a.id() >= n && a.id() < k.body->params().size())
      invariant[r] = a.id();
    else
      k.recorded.push_back(r);
  }
  Atoms operands = Where(loop.Carries(c.known_x), carry, false);
  Append(operands, Where(loop.Invariants(c.known_x), inv, false));
  const bool recount = c.eqn.attrs.GetOr<std::string>("strategy", "tape") == "recount";
  const Atoms known = EmitCountingLoop(c, k, operands, Where(loop.tape_dims, rows, false), !recount);
  const Atom& trips = known[n];
  const Atoms tapes = k.recorded.empty() ? Atoms{}
                      : recount          ? EmitRecordingScan(c, k, operands, trips)
                                         : Part(known, n + 1 + k.rows, known.size());

  // The linear half. Constants: residual invariants, unknown invariants; tapes: recorded residuals.
  const size_t num_residuals = split.residuals.size();
  const Types unknown_carries = Where(loop.Carries(types), carry), unknown_inv = Where(loop.Invariants(types), inv);
  Atoms all = {c.residual(trips)};
  std::vector<size_t> places;  // of its parameters among those of the unknown body
  for (size_t r = 0; r < num_residuals; ++r) {
    if (!invariant[r]) continue;
    all.push_back(c.residual(operands[*invariant[r]]));
    places.push_back(r);
  }
  Append(all, Where(loop.Invariants(c.unknown_x), inv));
  for (size_t i = 0; i < unknown_inv.size(); ++i) places.push_back(num_residuals + unknown_carries.size() + i);
  const auto num_consts = static_cast<int64_t>(places.size());
  for (size_t i = 0; i < loop.carries; ++i) {
    if (carry[i]) all.push_back(c.unknown[i] ? c.unknown_x[i] : c.residual(c.known_x[i]));
  }
  for (size_t i = 0; i < unknown_carries.size(); ++i) places.push_back(num_residuals + i);
  for (size_t i = 0; i < tapes.size(); ++i) {
    all.push_back(c.residual(tapes[i]));
    places.push_back(k.recorded[i]);
  }
  Atoms unknown;
  if (Any(split.unknown_out)) {
    const Atoms step = split.unknown->results();
    Builder b(std::move(split.unknown));
    b.KeepParameters(places);
    unknown = c.unknown_b.Emit(FindPrim("tape_scan"), all,
                               {{"num_consts", num_consts},
                                {"num_carry", static_cast<int64_t>(unknown_carries.size())},
                                {"lanes", Where(loop.tape_dims, rows)},
                                {"reverse", false}},
                               {std::move(b).Build(step)});
  }
  Atoms known_results = Part(known, 0, n);
  Append(known_results, Part(known, n + 1, n + 1 + k.rows));
  size_t u = 0, next = 0;
  for (bool is_unknown : split.unknown_out) c.y.push_back(is_unknown ? unknown[u++] : known_results[next++]);
  c.unknown_out = split.unknown_out;
}

Kept WhileDce(const DceContext& c) {
  const While loop(c.eqn.attrs, c.eqn.regions);
  Mask operands = c.reads(loop.cond, {true});
  for (size_t i = 0; i < loop.carries; ++i) operands[i] = operands[i] || c.needed[i];
  Mask results;
  while (true) {  // a carry that a needed result, or the condition, reads is needed
    results = loop.Carries(operands);
    Append(results, loop.Rows(c.needed));
    const Mask grown = Union(operands, c.reads(loop.body, results));
    if (grown == operands) break;
    operands = grown;
  }
  const auto carries = static_cast<size_t>(std::count(results.begin(), results.begin() + loop.carries, true));
  return {results,
          operands,
          WhileAttrs(c.eqn.attrs, carries, Where(loop.tape_dims, loop.Rows(results))),
          {c.keep(loop.cond, {true}, operands), c.keep(loop.body, results, operands)}};
}

}  // namespace

void RegisterWhile(PrimRegistry& r) {
  Prim& p = r.Add("while", Family::kControl, -1,
                  "Repeats region 1 (the body) on the num_carry carries as long as region 0 (the condition) holds. "
                  "Further operands are invariants, given to both regions. Results of the body after the carries are "
                  "rows: each trip's are recorded in tapes, which are results after the final carries; the lanes[k] "
                  "leading dimensions of row k have a tape each. strategy=\"recount\": reverse mode counts the trips "
                  "in a run of its own, so that tapes never grow.");
  p.region_use = RegionUse::kUncounted;
  p.infer = InferWhile;
  p.eval = EvalWhile;
  p.push = WhilePush;
  p.batch = WhileBatch;
  p.split = WhileSplit;
  p.dce = WhileDce;
  p.may_diverge = true;
  p.more_attributes = {"lanes", "strategy"};
  p.samples = [] {
    std::vector<Sample> samples;
    for (DType t : {DType::kF32, DType::kF64}) {
      const Type vector{t, {3}, {}}, i32{DType::kI32, {}, {}};
      Builder cb("cond"), bb("body");  // (i, x, w): i < 4;  (i + 1, sin(x) * w)
      const Atom i = cb.Parameter(i32);
      cb.Parameter(vector), cb.Parameter(vector);
      const FnRef cond = cb.Build({Lt(cb, i, Atom::Scalar(DType::kI32, 4))});
      const Atom j = bb.Parameter(i32), x = bb.Parameter(vector), w = bb.Parameter(vector);
      Sample s = SampleOf({i32, vector, vector}, {{"num_carry", int64_t{2}}});
      s.regions = {cond, bb.Build({Add(bb, j, Atom::Scalar(DType::kI32, 1)), Mul(bb, Sin(bb, x), w)})};
      s.values = {{0, Tensor::Scalar<int32_t>(DType::kI32, 0)}};
      samples.push_back(s);
    }
    return samples;
  };
}

}  // namespace weft
