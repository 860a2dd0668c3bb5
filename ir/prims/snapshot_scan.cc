// snapshot_scan: a counted loop whose reverse mode keeps a fixed number of states and runs the rest again.
//
//   forward sweep, i = 0 ... n-1:   (s, y_i) = F(C, s, x_i)
//   backward sweep, i = n-1 ... 0:  (l, z_i) = B(C, s_i, l, x_i)     s_i: the state before step i of the forward sweep
//
// The backward sweep is optional: what a user writes has none. Every transform maps such loops to such loops, so memory
// stays bounded at any order: the transpose of the linear part of a forward sweep is a backward sweep, and, since what
// a backward sweep makes of its carries is linear in them, the transpose of the linear part of a backward sweep is a
// forward sweep (of the cotangents m of l), followed by a backward sweep that reads m. transforms/snapshots.cc makes
// plain loops of it, by the binomial schedule (ir/prims/binomial.h).
//
//   operands: C | s | l | x | memo      results: s | l | y | z | kept
//
// `kept` are snapshots of forward carries on the first pass, as many as `snapshots` says; `memo` are such snapshots,
// which spare a later loop over the same states that pass. They are notes about other operands: no value depends on
// them and neither does a derivative.
#include <algorithm>

#include "ir/prims/binomial.h"
#include "ir/prims/families.h"
#include "ir/prims/regions.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

const char kName[] = "snapshot_scan";

size_t Count(const Attrs& attrs, const char* name) {
  const int64_t n = attrs.GetInt(name);
  if (n < 0) throw ValueError(kName, ": ", name, "=", n, "; expected 0 or more");
  return static_cast<size_t>(n);
}

struct Sweeps {
  size_t consts, forward, backward, xs = 0, ys = 0, zs = 0;
  Ints memo, kept;  // forward carries
  int64_t snapshots;
  Dim length;
  bool reverse;
  FnRef fwd, bwd;  // bwd: nullptr when there is no backward sweep

  Sweeps(const Attrs& attrs, const std::vector<FnRef>& regions)
      : consts(Count(attrs, "num_consts")),
        forward(Count(attrs, "num_forward")),
        backward(Count(attrs, "num_backward")),
        memo(attrs.GetOr<Ints>("memo", {})),
        kept(attrs.GetOr<Ints>("kept", {})),
        snapshots(attrs.GetInt("snapshots")),
        reverse(attrs.GetBool("reverse")) {
    if (regions.empty() || regions.size() > 2)
      throw TypeError(kName, ": has ", regions.size(), " regions; expected 1 or 2");
    fwd = regions[0];
    if (regions.size() == 2) bwd = regions[1];
    const Dims& dims = attrs.Get<Dims>("length");
    if (dims.size() != 1 || !dims[0].is_static() || dims[0].value() < 0)
      throw ValueError(kName, ": length=<", ToString(dims), ">; the number of steps has to be known");
    length = dims[0];
    if (snapshots < 1) throw ValueError(kName, ": snapshots=", snapshots, "; expected at least 1");
    if (consts + forward > fwd->params().size() || forward > fwd->results().size())
      throw TypeError(kName, ": num_consts=", consts, " and num_forward=", forward, " do not fit a forward sweep of ",
                      fwd->params().size(), " parameters and ", fwd->results().size(), " results");
    xs = fwd->params().size() - consts - forward;
    ys = fwd->results().size() - forward;
    const size_t bwd_results = bwd ? bwd->results().size() : 0;
    if (backward > bwd_results)
      throw TypeError(kName, ": num_backward=", backward, " does not fit a backward sweep of ", bwd_results,
                      " results");
    zs = bwd_results - backward;
    for (const Ints* list : {&memo, &kept}) {
      for (int64_t i : *list) {
        if (i < 0 || i >= static_cast<int64_t>(forward))
          throw ValueError(kName, ": there is no forward carry ", i, " of ", forward, " to have snapshots");
      }
    }
  }

  // Parts of the operands. Those of region 0 are Consts, Forward, Xs; of region 1 Consts, Forward, Backward, Xs.
  template <class L>
  L Consts(const L& l) const {
    return Part(l, 0, consts);
  }
  template <class L>
  L Forward(const L& l) const {
    return Part(l, consts, consts + forward);
  }
  template <class L>
  L Backward(const L& l) const {
    return Part(l, consts + forward, consts + forward + backward);
  }
  template <class L>
  L Xs(const L& l) const {
    return Part(l, consts + forward + backward, first_memo());
  }
  template <class L>
  L Memo(const L& l) const {
    return Part(l, first_memo(), first_memo() + memo.size());
  }
  size_t first_memo() const { return consts + forward + backward + xs; }
  // The operands (or flags of them) that a region takes.
  template <class L>
  L OfForward(const L& c, const L& s, const L& x) const {
    L all = c;
    Append(all, s);
    Append(all, x);
    return all;
  }
  template <class L>
  L OfBackward(const L& c, const L& s, const L& l, const L& x) const {
    L all = c;
    for (const L* more : {&s, &l, &x}) Append(all, *more);
    return all;
  }
  Mask ForceForward(Mask carry) const {
    carry.resize(forward + ys, false);
    return carry;
  }
  Mask ForceBackward(Mask carry) const {
    carry.resize(backward + zs, false);
    return carry;
  }
  Types ConstTypes() const { return Part(fwd->ParamTypes(), 0, consts); }
  Types ForwardTypes() const { return Part(fwd->ParamTypes(), consts, consts + forward); }
  Types BackwardTypes() const { return bwd ? Part(bwd->ResultTypes(), 0, backward) : Types{}; }
  Types XTypes() const { return Part(fwd->ParamTypes(), consts + forward, fwd->params().size()); }

  Type Stacked(Type slice) const {
    slice.dims.insert(slice.dims.begin(), length);
    return slice;
  }
  Type Snapshots(Type state) const {
    state.dims.insert(state.dims.begin(), Dim(snapshots));
    return state;
  }
  Attrs With(size_t num_consts, size_t num_forward, size_t num_backward, Ints new_memo, Ints new_kept) const {
    Attrs attrs = {{"num_consts", static_cast<int64_t>(num_consts)},
                   {"num_forward", static_cast<int64_t>(num_forward)},
                   {"num_backward", static_cast<int64_t>(num_backward)},
                   {"length", Dims{length}},
                   {"reverse", reverse},
                   {"snapshots", snapshots}};
    if (!new_memo.empty()) attrs.Set("memo", std::move(new_memo));
    if (!new_kept.empty()) attrs.Set("kept", std::move(new_kept));
    return attrs;
  }
};

std::vector<FnRef> Regions(FnRef fwd, FnRef bwd) {
  std::vector<FnRef> regions = {std::move(fwd)};
  if (bwd) regions.push_back(std::move(bwd));
  return regions;
}

int64_t CountOf(const Mask& m, bool value = true) { return std::count(m.begin(), m.end(), value); }

Types InferSweeps(const Sig& sig) {
  const Sweeps s(sig.attrs, sig.regions);
  if (sig.operands.size() != s.first_memo() + s.memo.size())
    throw TypeError(kName, ": has ", sig.operands.size(),
                    " operands; num_consts, num_forward, num_backward, the xs of ", "the forward sweep and memo make ",
                    s.first_memo() + s.memo.size());
  Types xs = s.Xs(sig.operands);
  for (Type& x : xs) {
    if (x.rank() == 0 || !(x.dims[0] == s.length))
      throw TypeError(kName, ": an array of xs is ", x, "; its leading dimension must be the length, ", s.length);
    x.dims.erase(x.dims.begin());
  }
  const Types consts = s.Consts(sig.operands), forward = s.Forward(sig.operands), backward = s.Backward(sig.operands);
  for (const Type& t : forward) {
    if (!t.is_static()) throw TypeError(kName, ": a carry is ", t, "; snapshots need sizes that are known");
  }
  CheckRegionParams(sig, 0, s.OfForward(consts, forward, xs));
  const Types out = s.fwd->ResultTypes();
  if (Part(out, 0, s.forward) != forward)
    throw TypeError(kName, ": region 0 gives (", ToString(out), "); expected the carries, (", ToString(forward),
                    "), first");
  Types results = forward, zs;
  if (s.bwd) {
    CheckRegionParams(sig, 1, s.OfBackward(consts, forward, backward, xs));
    const Types back = s.bwd->ResultTypes();
    if (Part(back, 0, s.backward) != backward)
      throw TypeError(kName, ": region 1 gives (", ToString(back), "); expected the carries, (", ToString(backward),
                      "), first");
    zs = Part(back, s.backward, back.size());
  }
  const Types memo = s.Memo(sig.operands);
  for (size_t i = 0; i < memo.size(); ++i) {
    const Type expected = s.Snapshots(forward[static_cast<size_t>(s.memo[i])]);
    if (!(memo[i] == expected)) throw TypeError(kName, ": memo ", i, " is ", memo[i], "; expected ", expected);
  }
  Append(results, backward);
  for (size_t i = s.forward; i < out.size(); ++i) results.push_back(s.Stacked(out[i]));
  for (const Type& z : zs) results.push_back(s.Stacked(z));
  for (int64_t i : s.kept) results.push_back(s.Snapshots(forward[static_cast<size_t>(i)]));
  return results;
}

Tensor SliceOf(const Tensor& x, int64_t i) {
  Tensor y(x.dtype(), Shape(x.shape().begin() + 1, x.shape().end()));
  std::memcpy(y.raw(), x.data<char>() + i * y.bytes(), static_cast<size_t>(y.bytes()));
  return y;
}

void SetSlice(Tensor& x, int64_t i, const Tensor& y) {
  std::memcpy(x.data<char>() + i * y.bytes(), y.raw(), static_cast<size_t>(y.bytes()));
}

// The plain meaning: every state is kept.
Tensors EvalSweeps(const EvalContext& c, const Tensors& in) {
  const Sweeps s(c.sig.attrs, c.sig.regions);
  const int64_t n = s.length.value("eval");
  const Tensors consts = s.Consts(in), xs = s.Xs(in);
  auto slices = [&](int64_t step) {
    Tensors x;
    for (const Tensor& a : xs) x.push_back(SliceOf(a, s.reverse ? n - 1 - step : step));
    return x;
  };
  auto stacks = [&](size_t first, size_t count) {
    Tensors all;
    for (size_t i = first; i < first + count; ++i)
      all.push_back(Tensor::Zeros(c.results[i].dtype, StaticSizes(c.results[i].dims, "eval")));
    return all;
  };
  const size_t first_y = s.forward + s.backward;
  Tensors ys = stacks(first_y, s.ys), zs = stacks(first_y + s.ys, s.zs),
          kept = stacks(first_y + s.ys + s.zs, s.kept.size());
  std::vector<Tensors> states = {s.Forward(in)};
  for (int64_t i = 0; i < n; ++i) {
    const Tensors out = c.run(*s.fwd, s.OfForward(consts, states.back(), slices(i)));
    for (size_t k = 0; k < s.ys; ++k) SetSlice(ys[k], s.reverse ? n - 1 - i : i, out[s.forward + k]);
    states.push_back(Part(out, 0, s.forward));
  }
  const std::vector<int64_t> positions = FirstSnapshots(n, s.snapshots);
  for (size_t p = 0; p < positions.size(); ++p) {
    for (size_t k = 0; k < kept.size(); ++k)
      SetSlice(kept[k], static_cast<int64_t>(p),
               states[static_cast<size_t>(positions[p])][static_cast<size_t>(s.kept[k])]);
  }
  Tensors back = s.Backward(in);
  for (int64_t i = n; s.bwd && i-- > 0;) {
    const Tensors out = c.run(*s.bwd, s.OfBackward(consts, states[static_cast<size_t>(i)], back, slices(i)));
    for (size_t k = 0; k < s.zs; ++k) SetSlice(zs[k], s.reverse ? n - 1 - i : i, out[s.backward + k]);
    back = Part(out, 0, s.backward);
  }
  Tensors results = states.back();
  for (const Tensors* more : {&back, &ys, &zs, &kept}) Append(results, *more);
  return results;
}

// Repeats `transform(mask of carries)` -> (anything, mask of results) until the carries' masks agree.
template <class F>
auto Settle(Mask carry, F transform) {
  while (true) {
    auto result = transform(carry);
    const Mask grown = Union(carry, Part(result.second, 0, carry.size()));
    if (grown == carry) return std::make_pair(carry, result);
    carry = grown;
  }
}

// Every list of operands, carries and results is followed by that of its tangents. The primal carries keep their
// places, so memo and kept mean what they meant.
void SweepsJvp(JvpContext& c) {
  const Sweeps s(c.eqn.attrs, c.eqn.regions);
  const Mask active = ActiveOf(c.dx), consts = s.Consts(active), xs = s.Xs(active);
  const auto [forward, fwd] = Settle(s.Forward(active), [&](const Mask& m) {
    const JvpFn f = c.regions.jvp(s.fwd, s.OfForward(consts, m, xs), s.ForceForward(m));
    return std::make_pair(f.fn, f.active_out);
  });
  Mask backward, zs;
  FnRef bwd;
  if (s.bwd) {
    const Mask& fm = forward;
    const auto [mask, back] = Settle(s.Backward(active), [&](const Mask& m) {
      const JvpFn f = c.regions.jvp(s.bwd, s.OfBackward(consts, fm, m, xs), s.ForceBackward(m));
      return std::make_pair(f.fn, f.active_out);
    });
    backward = mask;
    bwd = back.first;
    zs = Part(back.second, s.backward, s.backward + s.zs);
  }
  const Mask ys = Part(fwd.second, s.forward, s.forward + s.ys);
  const Types tc = s.ConstTypes(), tf = s.ForwardTypes(), tb = s.BackwardTypes(), tx = s.XTypes();
  auto region = [&](const Fn& jvp, bool back) {
    Builder b(jvp.name());
    Atoms args, tangents, carry;
    auto take = [&](const Types& types, const Mask& mask) {
      Append(args, Parameters(b, types));
      Append(tangents, Parameters(b, Where(types, mask)));
    };
    take(tc, consts);
    take(tf, forward);
    if (back) take(tb, backward);
    take(tx, xs);
    Append(args, tangents);
    const Atoms out = b.Inline(jvp, args);
    const size_t carries = back ? s.backward : s.forward, all = carries + (back ? s.zs : s.ys);
    const size_t dcarries = static_cast<size_t>(CountOf(back ? backward : forward));
    Atoms results = Part(out, 0, carries);
    Append(results, Part(out, all, all + dcarries));
    Append(results, Part(out, carries, all));
    Append(results, Part(out, all + dcarries, out.size()));
    return std::move(b).Build(results);
  };
  Atoms operands;
  auto with_tangents = [&](const Atoms& x, const OptionalAtoms& dx, const Mask& mask) {
    Append(operands, x);
    Append(operands, Tangents(c.b, x, dx, mask));
  };
  with_tangents(s.Consts(c.x), s.Consts(c.dx), consts);
  with_tangents(s.Forward(c.x), s.Forward(c.dx), forward);
  with_tangents(s.Backward(c.x), s.Backward(c.dx), backward);
  with_tangents(s.Xs(c.x), s.Xs(c.dx), xs);
  Append(operands, s.Memo(c.x));
  const size_t nf = s.forward + static_cast<size_t>(CountOf(forward)),
               nb = s.backward + static_cast<size_t>(CountOf(backward));
  const Atoms out =
      c.b.Emit(*c.eqn.prim, operands, s.With(s.consts + static_cast<size_t>(CountOf(consts)), nf, nb, s.memo, s.kept),
               Regions(region(*fwd.first, false), bwd ? region(*bwd, true) : nullptr));
  size_t at = 0;
  auto give = [&](size_t primals, const Mask& mask) {
    Append(c.y, Part(out, at, at + primals));
    const size_t tangents = static_cast<size_t>(CountOf(mask));
    Append(c.dy, Spread(Part(out, at + primals, at + primals + tangents), mask));
    at += primals + tangents;
  };
  give(s.forward, forward);
  give(s.backward, backward);
  give(s.ys, ys);
  give(s.zs, zs);
  Append(c.y, Part(out, at, out.size()));
  c.dy.resize(c.y.size());  // kept: notes, without tangents
}

Atom SwapLeading(Builder& b, const Atom& x) {
  Ints perm = Range(0, b.TypeOf(x).rank());
  std::swap(perm[0], perm[1]);
  return Transpose(b, x, perm);
}

void SweepsBatch(BatchContext& c) {
  const Sweeps s(c.eqn.attrs, c.eqn.regions);
  const Mask consts = s.Consts(c.batched), xs = s.Xs(c.batched);
  const auto [forward, fwd] = Settle(s.Forward(c.batched), [&](const Mask& m) {
    const BatchedFn f = c.regions.batch(s.fwd, s.OfForward(consts, m, xs), s.ForceForward(m), c.size);
    return std::make_pair(f.fn, f.batched_out);
  });
  Mask backward, zs;
  FnRef bwd;
  if (s.bwd) {
    const Mask& fm = forward;
    const auto [mask, back] = Settle(s.Backward(c.batched), [&](const Mask& m) {
      const BatchedFn f = c.regions.batch(s.bwd, s.OfBackward(consts, fm, m, xs), s.ForceBackward(m), c.size);
      return std::make_pair(f.fn, f.batched_out);
    });
    backward = mask;
    bwd = back.first;
    zs = Part(back.second, s.backward, s.backward + s.zs);
  }
  const Mask ys = Part(fwd.second, s.forward, s.forward + s.ys);
  Atoms operands = s.Consts(c.x);
  for (size_t i = 0; i < s.forward + s.backward; ++i) {
    const bool lanes = i < s.forward ? forward[i] : backward[i - s.forward];
    operands.push_back(lanes ? c.Batched(static_cast<int>(s.consts + i)) : c.x[s.consts + i]);
  }
  for (size_t i = s.first_memo() - s.xs; i < s.first_memo(); ++i)
    operands.push_back(c.batched[i] ? SwapLeading(c.b, c.x[i]) : c.x[i]);
  Ints memo;
  for (size_t i = 0; i < s.memo.size(); ++i) {
    const size_t operand = s.first_memo() + i;
    const bool lanes = forward[static_cast<size_t>(s.memo[i])];
    if (c.batched[operand] && !lanes) continue;  // snapshots of a state that has no lanes: not these
    memo.push_back(s.memo[i]);
    operands.push_back(lanes ? SwapLeading(c.b, c.Batched(static_cast<int>(operand))) : c.x[operand]);
  }
  c.y = c.b.Emit(*c.eqn.prim, operands, s.With(s.consts, s.forward, s.backward, memo, s.kept), Regions(fwd.first, bwd));
  c.batched_out = forward;
  Append(c.batched_out, backward);
  Append(c.batched_out, ys);
  Append(c.batched_out, zs);
  const size_t first_stack = s.forward + s.backward;
  for (int64_t i : s.kept) c.batched_out.push_back(forward[static_cast<size_t>(i)]);
  for (size_t i = first_stack; i < c.y.size(); ++i) {
    if (c.batched_out[i]) c.y[i] = SwapLeading(c.b, c.y[i]);
  }
}

// What the masks of linear (or unknown) carries are, and the regions cut by them.
struct Halves {
  Mask consts, forward, backward, xs, ys, zs;
  SplitFn fwd, bwd;
};

Halves SplitRegions(const Sweeps& s, const Mask& operands, const RegionRules& regions) {
  Halves h;
  h.consts = s.Consts(operands);
  h.xs = s.Xs(operands);
  h.forward = Settle(s.Forward(operands), [&](const Mask& m) {
                h.fwd = regions.split(s.fwd, s.OfForward(h.consts, m, h.xs), s.ForceForward(m));
                return std::make_pair(0, h.fwd.unknown_out);
              }).first;
  h.ys = Part(h.fwd.unknown_out, s.forward, s.forward + s.ys);
  h.backward = s.Backward(operands);
  if (s.bwd) {
    h.backward = Settle(h.backward, [&](const Mask& m) {
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

// The known half is the loop of what is known, which keeps snapshots; the unknown half is the whole loop again, from
// them.
void SweepsSplit(SplitContext& c) {
  // The linear half of an enclosing recursive function cannot call the function itself (see RecursiveSplit).
  if (c.eqn.CallsOutwards()) {
    throw UserError(ErrorKind::kDerivative, c.eqn.loc,
                    "strategy='binomial(k)' runs the steps of the loop again in reverse mode; a step that calls the "
                    "recursive function around the loop cannot be run again, so leave the strategy out");
  }
  const Sweeps s(c.eqn.attrs, c.eqn.regions);
  const Halves h = SplitRegions(s, c.unknown, c.regions);
  const size_t known_forward = static_cast<size_t>(CountOf(h.forward, false));
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
  const size_t known_backward = static_cast<size_t>(CountOf(h.backward, false)),
               known_ys = static_cast<size_t>(CountOf(h.ys, false)),
               known_zs = static_cast<size_t>(CountOf(h.zs, false));
  const bool sweep_back = known_backward + known_zs > 0;
  const Atoms known =
      c.known_b.Emit(*c.eqn.prim, operands, s.With(num_consts, known_forward, known_backward, memo, kept),
                     Regions(WithoutResiduals(h.fwd), sweep_back ? WithoutResiduals(h.bwd) : nullptr));
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

// See the head of the file. The new loop:
//   C: known constants    s: known forward carries, cotangents m of linear backward carries
//   x: known arrays, cotangents of linear ys and zs
//   l: known backward carries, cotangents of linear forward carries, sums of cotangents of linear constants
//   z: cotangents of linear arrays
OptionalAtoms SweepsTranspose(TransposeContext& c) {
  const Sweeps s(c.eqn.attrs, c.eqn.regions);
  Mask operand_linear;
  for (const auto& x : c.x) operand_linear.push_back(!x);
  const Halves h = SplitRegions(s, operand_linear, c.regions);
  const size_t first_y = s.forward + s.backward, first_z = first_y + s.ys;
  auto transposed = [&](const SplitFn& split) {
    Mask linear(split.unknown->params().size(), true);
    std::fill(linear.begin(), linear.begin() + static_cast<int64_t>(split.residuals.size()), false);
    return c.regions.transpose(split.unknown, linear);
  };
  const FnRef fwd_t = transposed(h.fwd), bwd_t = s.bwd ? transposed(h.bwd) : nullptr;

  const Types consts = Where(s.ConstTypes(), h.consts, false), forward = Where(s.ForwardTypes(), h.forward, false),
              backward = Where(s.BackwardTypes(), h.backward, false), xs = Where(s.XTypes(), h.xs, false);
  const Types d_consts = Where(s.ConstTypes(), h.consts), d_forward = Where(s.ForwardTypes(), h.forward),
              d_backward = Where(s.BackwardTypes(), h.backward), d_xs = Where(s.XTypes(), h.xs);
  Types y_types, z_types;  // of cotangents that arrive
  Mask y_here, z_here;     // which of those of linear ys and zs arrive
  Types all_y, all_z;
  const Types y_all = Part(s.fwd->ResultTypes(), s.forward, s.forward + s.ys);
  for (size_t i = 0; i < s.ys; ++i) {
    if (!h.ys[i]) continue;
    y_here.push_back(c.ct[first_y + i].has_value());
    all_y.push_back(y_all[i]);
  }
  for (size_t i = 0; i < s.zs; ++i) {
    if (!h.zs[i]) continue;
    z_here.push_back(c.ct[first_z + i].has_value());
    all_z.push_back(s.bwd->ResultTypes()[s.backward + i]);
  }
  y_types = Where(all_y, y_here);
  z_types = Where(all_z, z_here);

  // Parameters of a new region, and the pieces that they are made into.
  struct Pieces {
    Atoms consts, forward, m, backward, d_forward, sums, xs, ct_y, ct_z;
  };
  auto parameters = [&](Builder& b, bool back) {
    Pieces p;
    p.consts = Parameters(b, consts);
    p.forward = Parameters(b, forward);
    p.m = Parameters(b, d_backward);
    if (back) {
      p.backward = Parameters(b, backward);
      p.d_forward = Parameters(b, d_forward);
      p.sums = Parameters(b, d_consts);
    }
    p.xs = Parameters(b, xs);
    auto filled = [&](const Types& all, const Mask& here) {
      Atoms cts;
      for (size_t i = 0; i < all.size(); ++i) cts.push_back(here[i] ? b.Parameter(all[i]) : Zeros(b, all[i]));
      return cts;
    };
    p.ct_y = filled(all_y, y_here);
    p.ct_z = filled(all_z, z_here);
    return p;
  };
  auto known_forward = [&](Builder& b, const Pieces& p) {
    return b.Inline(*h.fwd.known, s.OfForward(p.consts, p.forward, p.xs));
  };
  // The transpose of a region, given its known half's results: cotangents of linear constants, carries, arrays.
  auto transposed_at = [&](Builder& b, const SplitFn& split, const FnRef& transpose, const Atoms& known,
                           const Atoms& ct_carry, const Atoms& ct_stack) {
    Atoms args = Part(known, known.size() - split.residuals.size(), known.size());
    Append(args, ct_carry);
    Append(args, ct_stack);
    return b.Inline(*transpose, args);
  };
  auto known_backward = [&](Builder& b, const Pieces& p, const Atoms& l) {
    return b.Inline(*h.bwd.known, s.OfBackward(p.consts, p.forward, l, p.xs));
  };

  // Forward: the known states, and the cotangents of the backward carries.
  const size_t nc = d_consts.size(), nf = d_forward.size(), nb = d_backward.size();
  auto sweep_forward = [&](bool probe) {
    Builder b(s.fwd->name());
    const Pieces p = parameters(b, false);
    Atoms l;
    for (const Type& t : backward) l.push_back(probe ? b.Parameter(t) : Zeros(b, t));
    Atoms results = Part(known_forward(b, p), 0, forward.size());
    if (nb > 0) {
      const Atoms cts = transposed_at(b, h.bwd, bwd_t, known_backward(b, p, l), p.m, p.ct_z);
      Append(results, Part(cts, nc + nf, nc + nf + nb));
    }
    return std::move(b).Build(results);
  };
  if (!backward.empty() && nb > 0) {
    // What becomes of the cotangents of linear carries depends on the states alone, because a backward sweep is affine
    // in its carries: any values do for the known ones. Where equations with regions hide that, linearity is checked.
    const FnRef probe = sweep_forward(true);
    const std::vector<int> uses = probe->UseCounts();
    const auto first = uses.begin() + static_cast<int64_t>(probe->params().size() - backward.size());
    if (std::any_of(first, first + static_cast<int64_t>(backward.size()), [](int n) { return n > 0; })) {
      Mask carries(s.bwd->params().size(), false);
      for (size_t i = 0; i < s.backward; ++i)
        carries[s.consts + s.forward + i] = HasTangents(s.BackwardTypes()[i].dtype);
      c.regions.transpose(s.bwd, carries);  // raises where it is not linear
    }
  }
  const FnRef fwd = sweep_forward(false);

  // Backward: the known carries, cotangents of the states, sums.
  Builder b(s.bwd ? s.bwd->name() : s.fwd->name());
  const Pieces p = parameters(b, true);
  Atoms results;
  OptionalAtoms ct_forward(nf), ct_consts(nc), ct_xs(d_xs.size());
  auto collect = [&](const Atoms& cts, size_t carries_after) {
    for (size_t i = 0; i < nc; ++i) ct_consts[i] = AddTangents(b, ct_consts[i], cts[i]);
    for (size_t i = 0; i < nf; ++i) ct_forward[i] = AddTangents(b, ct_forward[i], cts[nc + i]);
    for (size_t i = 0; i < d_xs.size(); ++i) ct_xs[i] = AddTangents(b, ct_xs[i], cts[nc + nf + carries_after + i]);
  };
  collect(transposed_at(b, h.fwd, fwd_t, known_forward(b, p), p.d_forward, p.ct_y), 0);
  if (s.bwd) {
    const Atoms known = known_backward(b, p, p.backward);
    results = Part(known, 0, backward.size());
    collect(transposed_at(b, h.bwd, bwd_t, known, p.m, p.ct_z), nb);
  }
  for (const auto& ct : ct_forward) results.push_back(*ct);
  for (size_t i = 0; i < nc; ++i) results.push_back(*AddTangents(b, p.sums[i], ct_consts[i]));
  for (const auto& ct : ct_xs) results.push_back(*ct);
  const FnRef bwd = std::move(b).Build(results);

  // Operands.
  Atoms operands;
  auto value = [&](size_t operand) { return *c.x[operand]; };
  auto cotangent = [&](size_t result, const Type& t) { return c.ct[result] ? *c.ct[result] : Zeros(c.b, t); };
  for (size_t i = 0; i < s.consts; ++i) {
    if (!h.consts[i]) operands.push_back(value(i));
  }
  for (size_t i = 0; i < s.forward; ++i) {
    if (!h.forward[i]) operands.push_back(value(s.consts + i));
  }
  for (size_t i = 0; i < s.backward; ++i) {
    if (h.backward[i]) operands.push_back(cotangent(s.forward + i, s.BackwardTypes()[i]));
  }
  for (size_t i = 0; i < s.backward; ++i) {
    if (!h.backward[i]) operands.push_back(value(s.consts + s.forward + i));
  }
  for (size_t i = 0; i < s.forward; ++i) {
    if (h.forward[i]) operands.push_back(cotangent(i, s.ForwardTypes()[i]));
  }
  for (const Type& t : d_consts) operands.push_back(Zeros(c.b, t));
  for (size_t i = 0; i < s.xs; ++i) {
    if (!h.xs[i]) operands.push_back(value(s.consts + s.forward + s.backward + i));
  }
  for (size_t i = first_y; i < first_z + s.zs; ++i) {
    if ((i < first_z ? h.ys[i - first_y] : h.zs[i - first_z]) && c.ct[i]) operands.push_back(*c.ct[i]);
  }
  Ints memo;
  for (size_t i = 0; i < s.memo.size() && nb == 0; ++i) {  // beside cotangents, snapshots of the states are no help
    const size_t carry = static_cast<size_t>(s.memo[i]), operand = s.first_memo() + i;
    if (h.forward[carry] || !c.x[operand]) continue;
    memo.push_back(CountOf(Part(h.forward, 0, carry), false));
    operands.push_back(value(operand));
  }
  const size_t num_forward = forward.size() + nb, num_backward = backward.size() + nf + nc;
  const Atoms out =
      c.b.Emit(*c.eqn.prim, operands, s.With(consts.size(), num_forward, num_backward, memo, {}), {fwd, bwd});

  OptionalAtoms all(c.x.size());
  auto give = [&](size_t first_operand, const Mask& mask, size_t first_result) {
    for (size_t i = 0; i < mask.size(); ++i) {
      if (!mask[i]) continue;
      if (operand_linear[first_operand + i]) all[first_operand + i] = out[first_result];
      ++first_result;
    }
  };
  give(0, h.consts, num_forward + backward.size() + nf);
  give(s.consts, h.forward, num_forward + backward.size());
  give(s.consts + s.forward, h.backward, forward.size());
  give(s.consts + s.forward + s.backward, h.xs, num_forward + num_backward);
  return all;
}

Kept SweepsDce(const DceContext& c) {
  const Sweeps s(c.eqn.attrs, c.eqn.regions);
  const size_t first_y = s.forward + s.backward, first_kept = first_y + s.ys + s.zs;
  Mask forward = Part(c.needed, 0, s.forward), backward = Part(c.needed, s.forward, first_y), consts, xs;
  const Mask ys = Part(c.needed, first_y, first_y + s.ys), zs = Part(c.needed, first_y + s.ys, first_kept),
             kept = Part(c.needed, first_kept, c.needed.size());
  for (size_t i = 0; i < kept.size(); ++i) {
    const size_t carry = static_cast<size_t>(s.kept[i]);
    forward[carry] = forward[carry] || kept[i];
  }
  const bool back = s.bwd && (Any(backward) || Any(zs) || s.bwd->HasEffects());
  while (true) {  // a carry that a needed result reads is needed, and a state that the backward sweep reads
    Mask results = forward;
    Append(results, ys);
    const Mask reads = c.reads(s.fwd, results);
    consts = Part(reads, 0, s.consts);
    xs = Part(reads, s.consts + s.forward, reads.size());
    Mask more_forward = Union(forward, Part(reads, s.consts, s.consts + s.forward)), more_backward = backward;
    if (back) {
      Mask back_results = backward;
      Append(back_results, zs);
      const Mask back_reads = c.reads(s.bwd, back_results);
      consts = Union(consts, Part(back_reads, 0, s.consts));
      xs = Union(xs, Part(back_reads, s.consts + first_y, back_reads.size()));
      more_forward = Union(more_forward, Part(back_reads, s.consts, s.consts + s.forward));
      more_backward = Union(backward, Part(back_reads, s.consts + s.forward, s.consts + first_y));
    }
    if (more_forward == forward && more_backward == backward) break;
    forward = more_forward;
    backward = more_backward;
  }
  Mask fwd_results = forward, bwd_results = backward;
  Append(fwd_results, ys);
  Append(bwd_results, zs);
  Kept k;
  k.results = forward;
  for (const Mask& part : {backward, ys, zs, kept}) Append(k.results, part);
  k.operands = s.OfBackward(consts, forward, backward, xs);
  auto place = [&](int64_t carry) { return CountOf(Part(forward, 0, static_cast<size_t>(carry))); };
  Ints memo, kept_carries;
  for (int64_t carry : s.memo) {
    const bool stays = forward[static_cast<size_t>(carry)];
    k.operands.push_back(stays);
    if (stays) memo.push_back(place(carry));
  }
  for (int64_t carry : Where(s.kept, kept)) kept_carries.push_back(place(carry));
  k.attrs = s.With(static_cast<size_t>(CountOf(consts)), static_cast<size_t>(CountOf(forward)),
                   static_cast<size_t>(CountOf(backward)), memo, kept_carries);
  k.regions = Regions(c.keep(s.fwd, fwd_results, s.OfForward(consts, forward, xs)),
                      back ? c.keep(s.bwd, bwd_results, s.OfBackward(consts, forward, backward, xs)) : nullptr);
  return k;
}

std::vector<Sample> SweepSamples() {
  std::vector<Sample> samples;
  for (DType t : {DType::kF32, DType::kF64}) {
    const Type vector{t, {3}, {}};
    for (bool reverse : {false, true}) {
      Builder f("step");  // (w, s, x) -> (sin(s) * w + x, s * x)
      const Atom w = f.Parameter(vector), s = f.Parameter(vector), x = f.Parameter(vector);
      const FnRef step = f.Build({Add(f, Mul(f, Sin(f, s), w), x), Mul(f, s, x)});
      const Attrs attrs = {{"num_consts", int64_t{1}}, {"num_forward", int64_t{1}}, {"num_backward", int64_t{0}},
                           {"length", Dims{7}},        {"reverse", reverse},        {"snapshots", int64_t{3}}};
      Sample forward = SampleOf({vector, vector, Type{t, {7, 3}, {}}}, attrs);
      forward.regions = {step};
      samples.push_back(forward);
      Builder g("back");  // (w, s, l, x) -> (cos(s) * w * l + s * x, l * s)
      const Atom gw = g.Parameter(vector), gs = g.Parameter(vector), gl = g.Parameter(vector), gx = g.Parameter(vector);
      Sample both = SampleOf({vector, vector, vector, Type{t, {7, 3}, {}}}, attrs.With("num_backward", int64_t{1}));
      both.regions = {step, g.Build({Add(g, Mul(g, Mul(g, Cos(g, gs), gw), gl), Mul(g, gs, gx)), Mul(g, gl, gs)})};
      samples.push_back(both);
    }
  }
  return samples;
}

}  // namespace

void RegisterSnapshotScan(PrimRegistry& r) {
  Prim& p =
      r.Add(kName, Family::kControl, -1,
            "A scan that reverse mode runs again from `snapshots` stored states, by the binomial schedule "
            "(Griewank and Walther, Revolve, 2000), instead of keeping every state. Region 0 is the forward "
            "sweep: constants, num_forward carries and slices of the xs to carries and slices of ys. Region 1, if "
            "there is one, is a backward sweep over the same steps: constants, the forward carries before the "
            "step, num_backward carries (in which it is affine) and slices of the xs to backward carries and "
            "slices of zs. Operands: constants, forward carries, backward carries, xs, memo; results: forward "
            "carries, backward carries, ys, zs, kept. memo and kept list forward carries whose snapshots on the "
            "first pass are given, or results: they decide nothing but how often steps are run.");
  p.infer = InferSweeps;
  p.eval = EvalSweeps;
  p.jvp = SweepsJvp;
  p.batch = SweepsBatch;
  p.split = SweepsSplit;
  p.dce = SweepsDce;
  p.linear = {-1};
  p.transpose = SweepsTranspose;
  p.more_attributes = {"kept", "memo"};
  p.samples = SweepSamples;
}

}  // namespace weft
