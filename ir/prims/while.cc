// while: repeats a region as long as a predicate holds.
//
//   operands: carries, invariants;  regions: cond (carries, invariants) -> bool[],  body (carries, invariants) ->
//   carries
#include <algorithm>

#include "ir/prims/families.h"
#include "ir/prims/regions.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

size_t Carries(const Attrs& attrs) { return static_cast<size_t>(attrs.GetInt("num_carry")); }

Types InferWhile(const Sig& s) {
  CheckRegionCount(s, 2);
  const size_t n = Carries(s.attrs);
  if (n > s.operands.size())
    throw ValueError("while: num_carry=", n, ", but there are ", s.operands.size(), " operands");
  CheckRegionParams(s, 0, s.operands);
  CheckRegionParams(s, 1, s.operands);
  const Types predicate = s.regions[0]->ResultTypes();
  if (predicate.size() != 1 || predicate[0].rank() != 0 || predicate[0].dtype != DType::kBool)
    throw TypeError("while: the condition gives (", ToString(predicate), "); expected (bool[])");
  const Types carry = Part(s.operands, 0, n);
  CheckRegionResults(s, 1, carry);
  return carry;
}

Tensors EvalWhile(const EvalContext& c, const Tensors& in) {
  const size_t n = Carries(c.sig.attrs);
  Tensors state = in;
  while (c.run(*c.sig.regions[0], state)[0].at<bool>(0)) {
    const Tensors carry = c.run(*c.sig.regions[1], state);
    std::copy(carry.begin(), carry.end(), state.begin());
  }
  return Part(state, 0, n);
}

// operands: carry dcarry | invariants dinvariants
void WhileJvp(JvpContext& c) {
  const size_t n = Carries(c.eqn.attrs);
  const FnRef &cond = c.eqn.regions[0], &body = c.eqn.regions[1];
  const Mask active = ActiveOf(c.dx), inv = Part(active, n, active.size());
  Mask carry = Part(active, 0, n);
  JvpFn jvp;
  while (true) {
    Mask mask = carry;
    Append(mask, inv);
    jvp = c.regions.jvp(body, mask, carry);
    const Mask grown = Union(carry, jvp.active_out);
    if (grown == carry) break;
    carry = grown;
  }
  const Types types = body->ParamTypes(), carry_types = Part(types, 0, n), inv_types = Part(types, n, types.size());
  auto region = [&](const FnRef& primal, bool is_body) {
    Builder b(primal->name());
    const Atoms p_carry = Parameters(b, carry_types), p_dcarry = Parameters(b, Where(carry_types, carry));
    const Atoms p_inv = Parameters(b, inv_types), p_dinv = Parameters(b, Where(inv_types, inv));
    Atoms args = p_carry;
    Append(args, p_inv);
    if (is_body) {
      Append(args, p_dcarry);
      Append(args, p_dinv);
    }
    return b.Build(b.Inline(is_body ? *jvp.fn : *primal, args));
  };
  const Atoms x_carry = Part(c.x, 0, n), x_inv = Part(c.x, n, c.x.size());
  Atoms operands = x_carry;
  Append(operands, Tangents(c.b, x_carry, Part(c.dx, 0, n), carry));
  const size_t num_carry = operands.size();
  Append(operands, x_inv);
  Append(operands, Tangents(c.b, x_inv, Part(c.dx, n, c.dx.size()), inv));
  const Atoms out = c.b.Emit(*c.eqn.prim, operands, {{"num_carry", static_cast<int64_t>(num_carry)}},
                             {region(cond, false), region(body, true)});
  c.y = Part(out, 0, n);
  c.dy = Spread(Part(out, n, out.size()), carry);
}

// A lane whose predicate is false keeps its carry; the loop ends when every lane's is false.
void WhileBatch(BatchContext& c) {
  const size_t n = Carries(c.eqn.attrs);
  const FnRef &cond = c.eqn.regions[0], &body = c.eqn.regions[1];
  const Mask inv = Part(c.batched, n, c.batched.size());
  Mask carry = Part(c.batched, 0, n);
  BatchedFn cond_fn, body_fn;
  bool batched_predicate = false;
  while (true) {
    Mask mask = carry;
    Append(mask, inv);
    cond_fn = c.regions.batch(cond, mask, {false}, c.size);
    batched_predicate = cond_fn.batched_out[0];
    if (batched_predicate) {
      carry.assign(n, true);
      mask = carry;
      Append(mask, inv);
      cond_fn = c.regions.batch(cond, mask, {true}, c.size);
    }
    body_fn = c.regions.batch(body, mask, carry, c.size);
    const Mask grown = Union(carry, body_fn.batched_out);
    if (grown == carry) break;
    carry = grown;
  }
  Atoms operands;
  for (size_t i = 0; i < c.x.size(); ++i)
    operands.push_back(i < n && carry[i] ? c.Batched(static_cast<int>(i)) : c.x[i]);
  FnRef cond_region = cond_fn.fn, body_region = body_fn.fn;
  if (batched_predicate) {
    Builder cb("any_lane");
    const Atoms lanes = cb.Inline(*cond_fn.fn, Parameters(cb, cond_fn.fn->ParamTypes()));
    cond_region = cb.Build({Reduce(cb, "reduce_or", lanes[0], {0})});
    Builder bb(body->name());
    const Atoms params = Parameters(bb, body_fn.fn->ParamTypes());
    const Atom running = bb.Inline(*cond_fn.fn, params)[0];
    Atoms next = bb.Inline(*body_fn.fn, params);
    for (size_t i = 0; i < next.size(); ++i)
      next[i] = Select(bb, Broadcast(bb, running, bb.TypeOf(next[i]).dims, {0}), next[i], params[i]);
    body_region = bb.Build(next);
  }
  c.y = c.b.Emit(*c.eqn.prim, operands, c.eqn.attrs, {cond_region, body_region});
  c.batched_out = carry;
}

// The carries that depend only on known values run in a known loop; the unknown loop repeats them beside the unknown
// ones, so nothing needs to be saved per trip.
void WhileSplit(SplitContext& c) {
  const size_t n = Carries(c.eqn.attrs);
  const FnRef &cond = c.eqn.regions[0], &body = c.eqn.regions[1];
  const Mask inv = Part(c.unknown, n, c.unknown.size());
  Mask carry = Part(c.unknown, 0, n);
  SplitFn body_split;
  bool predicate_unknown = false;
  while (true) {
    Mask mask = carry;
    Append(mask, inv);
    predicate_unknown = c.regions.split(cond, mask, {false}).unknown_out[0];
    if (predicate_unknown) carry.assign(n, true);
    body_split = c.regions.split(body, mask, carry);
    const Mask grown = Union(carry, body_split.unknown_out);
    if (grown == carry) break;
    carry = grown;
  }
  Atoms operands;
  for (size_t i = 0; i < c.unknown.size(); ++i)
    operands.push_back(c.unknown[i] ? c.unknown_x[i] : c.residual(c.known_x[i]));
  const Atoms unknown_y = c.unknown_b.Clone(c.eqn, operands);
  Atoms known_y;
  if (!predicate_unknown) {
    // The known part of the regions: unknown parameters are not read by it.
    Mask unknown = carry;
    Append(unknown, inv);
    Atoms known_operands;
    for (size_t i = 0; i < unknown.size(); ++i) {
      if (!unknown[i]) known_operands.push_back(c.known_x[i]);
    }
    const size_t num_known = static_cast<size_t>(std::count(carry.begin(), carry.end(), false));
    auto without_residuals = [&](const SplitFn& s) {
      Builder b(s.known->name());
      const Atoms out = b.Inline(*s.known, Parameters(b, s.known->ParamTypes()));
      return b.Build(Part(out, 0, out.size() - s.residuals.size()));
    };
    known_y =
        c.known_b.Emit(*c.eqn.prim, known_operands, {{"num_carry", static_cast<int64_t>(num_known)}},
                       {without_residuals(c.regions.split(cond, unknown, {false})), without_residuals(body_split)});
  }
  size_t k = 0;
  for (size_t i = 0; i < n; ++i) c.y.push_back(carry[i] ? unknown_y[i] : known_y[k++]);
  c.unknown_out = carry;
}

}  // namespace

void RegisterWhile(PrimRegistry& r) {
  Prim& p = r.Add("while", Family::kControl, -1,
                  "Repeats region 1 (the body) on the num_carry carries as long as region 0 (the condition) holds. "
                  "Further operands are invariants, given to both regions.");
  p.infer = InferWhile;
  p.eval = EvalWhile;
  p.jvp = WhileJvp;
  p.batch = WhileBatch;
  p.split = WhileSplit;
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
