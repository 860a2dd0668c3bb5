// How a snapshot_scan is split, and its linear part transposed (sweeps.h says what it computes). The transpose of the
// linear part of a forward sweep is a backward sweep, and, since what a backward sweep makes of its carries is linear
// in them, the transpose of the linear part of a backward sweep is a forward sweep (of the cotangents m of l), followed
// by a backward sweep that reads m.
#include <algorithm>

#include "ir/prims/control/sweeps.h"

namespace weft {
namespace {

// What the masks of linear (or unknown) carries are, and the regions cut by them.
struct Halves {
  Mask consts, forward, backward, xs, ys, zs;
  SplitFn fwd, bwd;
};

Halves SplitRegions(const Sweeps& s, const Mask& operands, const RegionRules& regions) {
  Halves h;
  h.consts = s.Consts(operands);
  h.xs = s.Xs(operands);
  h.forward = CarryFixpoint(s.Forward(operands), [&](const Mask& m) {
                h.fwd = regions.split(s.fwd, s.OfForward(h.consts, m, h.xs), s.ForceForward(m));
                return std::make_pair(0, h.fwd.unknown_out);
              }).first;
  h.ys = Part(h.fwd.unknown_out, s.forward, s.forward + s.ys);
  h.backward = s.Backward(operands);
  if (s.bwd) {
    h.backward = CarryFixpoint(h.backward, [&](const Mask& m) {
                   h.bwd = regions.split(s.bwd, s.OfBackward(h.consts, h.forward, m, h.xs), s.ForceBackward(m));
                   return std::make_pair(0, h.bwd.unknown_out);
                 }).first;
    h.zs = Part(h.bwd.unknown_out, s.backward, s.backward + s.zs);
  }
  return h;
}

FnRef WithoutResiduals(const SplitFn& split) {
  Builder b(split.known->name());
  const Atoms out = b.Inline(*split.known, Parameters(b, split.known->ParamTypes()));
  return std::move(b).Build(Part(out, 0, out.size() - split.residuals.size()));
}

// The loop that transposes the linear part of another (see the head of the file):
//   C: known constants    s: known forward carries, cotangents m of linear backward carries
//   x: known arrays, cotangents of linear ys and zs
//   l: known backward carries, cotangents of linear forward carries, sums of cotangents of linear constants
//   z: cotangents of linear arrays
class TransposedSweeps {
 public:
  explicit TransposedSweeps(TransposeContext& c);
  // The cotangents of the linear operands.
  OptionalAtoms Emit();

 private:
  // The cotangents of linear ys or zs: the type of a step's, and which of them arrive.
  struct Arriving {
    Types types;
    Mask here;
  };
  // The parameters of a new region, in the order in which it takes them.
  struct Pieces {
    Atoms consts, forward, m, backward, d_forward, sums, xs, ct_y, ct_z;
  };

  FnRef TransposeUnknown(const SplitFn& split) const;
  Arriving ArrivingOf(const Mask& linear, const Types& types, size_t first_result) const;
  Pieces Take(Builder& b, bool back) const;
  // The known halves of a step, and the transpose of its unknown half: cotangents of linear constants, carries, arrays.
  Atoms KnownForward(Builder& b, const Pieces& p) const;
  Atoms KnownBackward(Builder& b, const Pieces& p, const Atoms& l) const;
  static Atoms Cotangents(Builder& b, const SplitFn& split, const FnRef& transpose, const Atoms& known,
                          const Atoms& ct_carry, const Atoms& ct_stack);
  FnRef ForwardSweep(bool with_backward_carries) const;
  FnRef BackwardSweep() const;
  void CheckAffine() const;
  Atoms Operands();
  Ints AddMemo(Atoms& operands) const;

  TransposeContext& c_;
  const Sweeps s_;
  Mask linear_;  // of the operands
  Halves h_;
  FnRef fwd_t_, bwd_t_;
  Types consts_, forward_, backward_, xs_;          // of what is known
  Types d_consts_, d_forward_, d_backward_, d_xs_;  // of what is linear
  Arriving ct_y_, ct_z_;
};

TransposedSweeps::TransposedSweeps(TransposeContext& c) : c_(c), s_(c.eqn.attrs, c.eqn.regions) {
  for (const auto& x : c.x) linear_.push_back(!x);
  h_ = SplitRegions(s_, linear_, c.regions);
  fwd_t_ = TransposeUnknown(h_.fwd);
  if (s_.bwd) bwd_t_ = TransposeUnknown(h_.bwd);
  auto part = [](const Types& types, const Mask& linear, Types& known, Types& unknown) {
    known = Where(types, linear, false);
    unknown = Where(types, linear);
  };
  part(s_.ConstTypes(), h_.consts, consts_, d_consts_);
  part(s_.ForwardTypes(), h_.forward, forward_, d_forward_);
  part(s_.BackwardTypes(), h_.backward, backward_, d_backward_);
  part(s_.XTypes(), h_.xs, xs_, d_xs_);
  const Types ys = Part(s_.fwd->ResultTypes(), s_.forward, s_.forward + s_.ys),
              zs = s_.bwd ? Part(s_.bwd->ResultTypes(), s_.backward, s_.backward + s_.zs) : Types{};
  ct_y_ = ArrivingOf(h_.ys, ys, s_.forward + s_.backward);
  ct_z_ = ArrivingOf(h_.zs, zs, s_.forward + s_.backward + s_.ys);
}

FnRef TransposedSweeps::TransposeUnknown(const SplitFn& split) const {
  Mask linear(split.unknown->params().size(), true);
  std::fill(linear.begin(), linear.begin() + static_cast<int64_t>(split.residuals.size()), false);
  return c_.regions.transpose(split.unknown, linear);
}

TransposedSweeps::Arriving TransposedSweeps::ArrivingOf(const Mask& linear, const Types& types,
                                                        size_t first_result) const {
  Arriving a;
  for (size_t i = 0; i < types.size(); ++i) {
    if (!linear[i]) continue;
    a.types.push_back(types[i]);
    a.here.push_back(c_.ct[first_result + i].has_value());
  }
  return a;
}

TransposedSweeps::Pieces TransposedSweeps::Take(Builder& b, bool back) const {
  Pieces p;
  p.consts = Parameters(b, consts_);
  p.forward = Parameters(b, forward_);
  p.m = Parameters(b, d_backward_);
  if (back) {
    p.backward = Parameters(b, backward_);
    p.d_forward = Parameters(b, d_forward_);
    p.sums = Parameters(b, d_consts_);
  }
  p.xs = Parameters(b, xs_);
  auto cotangents = [&](const Arriving& a) {
    Atoms cts;
    for (size_t i = 0; i < a.types.size(); ++i)
      cts.push_back(a.here[i] ? b.Parameter(a.types[i]) : Zeros(b, a.types[i]));
    return cts;
  };
  p.ct_y = cotangents(ct_y_);
  p.ct_z = cotangents(ct_z_);
  return p;
}

Atoms TransposedSweeps::KnownForward(Builder& b, const Pieces& p) const {
  return b.Inline(*h_.fwd.known, s_.OfForward(p.consts, p.forward, p.xs));
}

Atoms TransposedSweeps::KnownBackward(Builder& b, const Pieces& p, const Atoms& l) const {
  return b.Inline(*h_.bwd.known, s_.OfBackward(p.consts, p.forward, l, p.xs));
}

Atoms TransposedSweeps::Cotangents(Builder& b, const SplitFn& split, const FnRef& transpose, const Atoms& known,
                                   const Atoms& ct_carry, const Atoms& ct_stack) {
  Atoms args = Part(known, known.size() - split.residuals.size(), known.size());
  Append(args, ct_carry);
  Append(args, ct_stack);
  return b.Inline(*transpose, args);
}

// The known states, and the cotangents of the backward carries. For what they are affine in, the known backward carries
// are zeros, or parameters after the others.
FnRef TransposedSweeps::ForwardSweep(bool with_backward_carries) const {
  Builder b(s_.fwd->name());
  const Pieces p = Take(b, false);
  Atoms l;
  for (const Type& t : backward_) l.push_back(with_backward_carries ? b.Parameter(t) : Zeros(b, t));
  Atoms results = Part(KnownForward(b, p), 0, forward_.size());
  if (!d_backward_.empty()) {
    const Atoms cts = Cotangents(b, h_.bwd, bwd_t_, KnownBackward(b, p, l), p.m, p.ct_z);
    const size_t first = d_consts_.size() + d_forward_.size();
    Append(results, Part(cts, first, first + d_backward_.size()));
  }
  return std::move(b).Build(results);
}

// The known carries, cotangents of the states, sums of those of constants; cotangents of arrays.
FnRef TransposedSweeps::BackwardSweep() const {
  Builder b(s_.bwd ? s_.bwd->name() : s_.fwd->name());
  const Pieces p = Take(b, true);
  const size_t nc = d_consts_.size(), nf = d_forward_.size();
  Atoms results;
  OptionalAtoms ct_forward(nf), ct_consts(nc), ct_xs(d_xs_.size());
  auto collect = [&](const Atoms& cts, size_t carries_after) {
    for (size_t i = 0; i < nc; ++i) ct_consts[i] = AddTangents(b, ct_consts[i], cts[i]);
    for (size_t i = 0; i < nf; ++i) ct_forward[i] = AddTangents(b, ct_forward[i], cts[nc + i]);
    for (size_t i = 0; i < ct_xs.size(); ++i) ct_xs[i] = AddTangents(b, ct_xs[i], cts[nc + nf + carries_after + i]);
  };
  collect(Cotangents(b, h_.fwd, fwd_t_, KnownForward(b, p), p.d_forward, p.ct_y), 0);
  if (s_.bwd) {
    const Atoms known = KnownBackward(b, p, p.backward);
    results = Part(known, 0, backward_.size());
    collect(Cotangents(b, h_.bwd, bwd_t_, known, p.m, p.ct_z), d_backward_.size());
  }
  for (const auto& ct : ct_forward) results.push_back(*ct);
  for (size_t i = 0; i < nc; ++i) results.push_back(*AddTangents(b, p.sums[i], ct_consts[i]));
  for (const auto& ct : ct_xs) results.push_back(*ct);
  return std::move(b).Build(results);
}

// What becomes of the cotangents of linear carries depends on the states alone, because a backward sweep is affine in
// its carries: any values do for the known ones. Where equations with regions hide that, linearity is checked.
void TransposedSweeps::CheckAffine() const {
  if (backward_.empty() || d_backward_.empty()) return;
  const FnRef probe = ForwardSweep(/*with_backward_carries=*/true);
  const std::vector<int> uses = probe->UseCounts();
  const auto first = uses.begin() + static_cast<int64_t>(probe->params().size() - backward_.size());
  if (std::all_of(first, first + static_cast<int64_t>(backward_.size()), [](int n) { return n == 0; })) return;
  Mask carries(s_.bwd->params().size(), false);
  for (size_t i = 0; i < s_.backward; ++i)
    carries[s_.consts + s_.forward + i] = HasTangents(s_.BackwardTypes()[i].dtype);
  c_.regions.transpose(s_.bwd, carries);  // raises where it is not linear
}

Atoms TransposedSweeps::Operands() {
  const size_t first_y = s_.forward + s_.backward, first_z = first_y + s_.ys;
  Atoms operands;
  auto known = [&](size_t first_operand, const Mask& linear) {
    for (size_t i = 0; i < linear.size(); ++i) {
      if (!linear[i]) operands.push_back(*c_.x[first_operand + i]);
    }
  };
  auto cotangents = [&](size_t first_result, const Mask& linear, const Types& types) {
    for (size_t i = 0; i < linear.size(); ++i) {
      if (linear[i]) operands.push_back(c_.ct[first_result + i] ? *c_.ct[first_result + i] : Zeros(c_.b, types[i]));
    }
  };
  auto stacked_cotangents = [&](size_t first_result, const Mask& linear) {
    for (size_t i = 0; i < linear.size(); ++i) {
      if (linear[i] && c_.ct[first_result + i]) operands.push_back(*c_.ct[first_result + i]);
    }
  };
  known(0, h_.consts);
  known(s_.consts, h_.forward);
  cotangents(s_.forward, h_.backward, s_.BackwardTypes());
  known(s_.consts + s_.forward, h_.backward);
  cotangents(0, h_.forward, s_.ForwardTypes());
  for (const Type& t : d_consts_) operands.push_back(Zeros(c_.b, t));
  known(s_.consts + s_.forward + s_.backward, h_.xs);
  stacked_cotangents(first_y, h_.ys);
  stacked_cotangents(first_z, h_.zs);
  return operands;
}

// Snapshots of the known states; beside cotangents m they are no help.
Ints TransposedSweeps::AddMemo(Atoms& operands) const {
  Ints memo;
  for (size_t i = 0; i < s_.memo.size() && d_backward_.empty(); ++i) {
    const size_t carry = static_cast<size_t>(s_.memo[i]), operand = s_.first_memo() + i;
    if (h_.forward[carry] || !c_.x[operand]) continue;
    memo.push_back(static_cast<int64_t>(CountOf(Part(h_.forward, 0, carry), false)));
    operands.push_back(*c_.x[operand]);
  }
  return memo;
}

OptionalAtoms TransposedSweeps::Emit() {
  CheckAffine();
  const FnRef fwd = ForwardSweep(/*with_backward_carries=*/false), bwd = BackwardSweep();
  Atoms operands = Operands();
  const Ints memo = AddMemo(operands);
  const size_t num_forward = forward_.size() + d_backward_.size(), first_d_forward = num_forward + backward_.size(),
               first_sum = first_d_forward + d_forward_.size(), first_z = first_sum + d_consts_.size();
  const Atoms out = c_.b.Emit(*c_.eqn.prim, operands,
                              s_.With(consts_.size(), num_forward, first_z - num_forward, memo, {}), {fwd, bwd});
  OptionalAtoms all(c_.x.size());
  auto give = [&](size_t first_operand, const Mask& mask, size_t first_result) {
    for (size_t i = 0; i < mask.size(); ++i) {
      if (!mask[i]) continue;
      if (linear_[first_operand + i]) all[first_operand + i] = out[first_result];
      ++first_result;
    }
  };
  give(0, h_.consts, first_sum);
  give(s_.consts, h_.forward, first_d_forward);
  give(s_.consts + s_.forward, h_.backward, forward_.size());
  give(s_.consts + s_.forward + s_.backward, h_.xs, first_z);
  return all;
}

}  // namespace

// The known half is the loop of what is known, which keeps snapshots; the unknown half is the whole loop again, from
// them.
void SplitSweeps(SplitContext& c) {
  // The linear half of an enclosing recursive function cannot call the function itself (see RecursiveSplit).
  if (c.eqn.CallsOutwards()) {
    throw UserError(ErrorKind::kDerivative, c.eqn.loc,
                    "strategy='binomial(k)' runs the steps of the loop again in reverse mode; a step that calls the "
                    "recursive function around the loop cannot be run again, so leave the strategy out");
  }
  const Sweeps s(c.eqn.attrs, c.eqn.regions);
  const Halves h = SplitRegions(s, c.unknown, c.regions);
  const size_t known_forward = CountOf(h.forward, false);
  Mask unknown_out = h.forward;
  for (const Mask* more : {&h.backward, &h.ys, &h.zs}) Append(unknown_out, *more);
  for (int64_t i : s.kept) unknown_out.push_back(h.forward[static_cast<size_t>(i)]);
  c.unknown_out = unknown_out;

  // The places of known forward carries among the known ones; which of them have a memo that is known.
  std::vector<int64_t> place(s.forward, -1);
  for (size_t i = 0, next = 0; i < s.forward; ++i) {
    if (!h.forward[i]) place[i] = static_cast<int64_t>(next++);
  }
  Ints memo;
  Atoms memo_of(s.forward), known_memo;
  Mask has_memo(s.forward, false);
  for (size_t i = 0; i < s.memo.size(); ++i) {
    const size_t carry = static_cast<size_t>(s.memo[i]), operand = s.first_memo() + i;
    if (c.unknown[operand] || place[carry] < 0) continue;
    memo.push_back(place[carry]);
    known_memo.push_back(c.known_x[operand]);
    memo_of[carry] = c.known_x[operand];
    has_memo[carry] = true;
  }
  Ints kept;  // of the known loop: what was asked for, and what the unknown half wants
  for (size_t i = 0; i < s.forward; ++i) {
    const bool asked = std::find(s.kept.begin(), s.kept.end(), static_cast<int64_t>(i)) != s.kept.end();
    if (!h.forward[i] && (asked || (!has_memo[i] && Any(unknown_out)))) kept.push_back(place[i]);
  }
  Atoms operands = Where(s.Consts(c.known_x), h.consts, false);
  const size_t num_consts = operands.size();
  Append(operands, Where(s.Forward(c.known_x), h.forward, false));
  Append(operands, Where(s.Backward(c.known_x), h.backward, false));
  Append(operands, Where(s.Xs(c.known_x), h.xs, false));
  Append(operands, known_memo);
  const size_t known_backward = CountOf(h.backward, false), known_ys = CountOf(h.ys, false),
               known_zs = CountOf(h.zs, false);
  const bool sweep_back = known_backward + known_zs > 0;
  const Atoms known =
      c.known_b.Emit(*c.eqn.prim, operands, s.With(num_consts, known_forward, known_backward, memo, kept),
                     s.Regions(WithoutResiduals(h.fwd), sweep_back ? WithoutResiduals(h.bwd) : nullptr));
  const size_t first_kept = known_forward + known_backward + known_ys + known_zs;
  auto snapshots_of = [&](size_t carry) {
    const size_t k = static_cast<size_t>(std::find(kept.begin(), kept.end(), place[carry]) - kept.begin());
    return known[first_kept + k];
  };

  Atoms unknown;
  if (Any(unknown_out)) {
    Ints all_memo;
    Atoms rest, snapshots;
    for (size_t i = 0; i < s.forward; ++i) {
      if (h.forward[i]) continue;
      snapshots.push_back(c.residual(has_memo[i] ? memo_of[i] : snapshots_of(i)));
      all_memo.push_back(static_cast<int64_t>(i));
    }
    for (size_t i = 0; i < s.first_memo(); ++i)
      rest.push_back(c.unknown[i] ? c.unknown_x[i] : c.residual(c.known_x[i]));
    Append(rest, snapshots);
    unknown =
        c.unknown_b.Emit(*c.eqn.prim, rest, s.With(s.consts, s.forward, s.backward, all_memo, s.kept), c.eqn.regions);
  }
  size_t next = 0;
  for (size_t i = 0; i < unknown_out.size(); ++i) {
    const size_t results = s.forward + s.backward + s.ys + s.zs;
    if (unknown_out[i])
      c.y.push_back(unknown[i]);
    else
      c.y.push_back(i < results ? known[next++] : snapshots_of(static_cast<size_t>(s.kept[i - results])));
  }
}

OptionalAtoms TransposeSweeps(TransposeContext& c) { return TransposedSweeps(c).Emit(); }

}  // namespace weft
