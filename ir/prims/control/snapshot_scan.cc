// snapshot_scan: a counted loop whose reverse mode keeps a fixed number of states and runs the rest again (sweeps.h
// says what it computes).
//
// The backward sweep is optional: what a user writes has none. Every transform maps such loops to such loops, so memory
// stays bounded at any order (snapshot_scan_reverse.cc has split and transpose). transforms/opt/snapshots.cc makes
// plain loops of it, by the binomial schedule (ir/prims/control/binomial.h).
#include <algorithm>

#include "ir/prims/control/binomial.h"
#include "ir/prims/control/sweeps.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

Types InferSweeps(const Sig& sig) {
  const Sweeps s(sig.attrs, sig.regions);
  if (sig.operands.size() != s.first_memo() + s.memo.size())
    throw TypeError(kSnapshotScan, ": has ", sig.operands.size(),
                    " operands; num_consts, num_forward, num_backward, the xs of ", "the forward sweep and memo make ",
                    s.first_memo() + s.memo.size());
  Types xs = s.Xs(sig.operands);
  for (Type& x : xs) {
    if (x.rank() == 0 || !(x.dims[0] == s.length))
      throw TypeError(kSnapshotScan, ": an array of xs is ", x, "; its leading dimension must be the length, ",
                      s.length);
    x.dims.erase(x.dims.begin());
  }
  const Types consts = s.Consts(sig.operands), forward = s.Forward(sig.operands), backward = s.Backward(sig.operands);
  for (const Type& t : forward) {
    if (!t.is_static()) throw TypeError(kSnapshotScan, ": a carry is ", t, "; snapshots need sizes that are known");
  }
  CheckRegionParams(sig, 0, s.OfForward(consts, forward, xs));
  const Types out = s.fwd->ResultTypes();
  if (Part(out, 0, s.forward) != forward)
    throw TypeError(kSnapshotScan, ": region 0 gives (", ToString(out), "); expected the carries, (", ToString(forward),
                    "), first");
  Types results = forward, zs;
  if (s.bwd) {
    CheckRegionParams(sig, 1, s.OfBackward(consts, forward, backward, xs));
    const Types back = s.bwd->ResultTypes();
    if (Part(back, 0, s.backward) != backward)
      throw TypeError(kSnapshotScan, ": region 1 gives (", ToString(back), "); expected the carries, (",
                      ToString(backward), "), first");
    zs = Part(back, s.backward, back.size());
  }
  const Types memo = s.Memo(sig.operands);
  for (size_t i = 0; i < memo.size(); ++i) {
    const Type expected = s.Snapshots(forward[static_cast<size_t>(s.memo[i])]);
    if (!(memo[i] == expected)) throw TypeError(kSnapshotScan, ": memo ", i, " is ", memo[i], "; expected ", expected);
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

// Every list of operands, carries and results is followed by that of its tangents. The primal carries keep their
// places, so memo and kept mean what they meant.
void SweepsJvp(JvpContext& c) {
  const Sweeps s(c.eqn.attrs, c.eqn.regions);
  const Mask active = ActiveOf(c.dx), consts = s.Consts(active), xs = s.Xs(active);
  const auto [forward, fwd] = CarryFixpoint(s.Forward(active), [&](const Mask& m) {
    const JvpFn f = c.regions.jvp(s.fwd, s.OfForward(consts, m, xs), s.ForceForward(m));
    return std::make_pair(f.fn, f.active_out);
  });
  Mask backward, zs;
  FnRef bwd;
  if (s.bwd) {
    const Mask& fm = forward;
    const auto [mask, back] = CarryFixpoint(s.Backward(active), [&](const Mask& m) {
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
    const size_t dcarries = CountOf(back ? backward : forward);
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
  const size_t nf = s.forward + CountOf(forward), nb = s.backward + CountOf(backward);
  const Atoms out = c.b.Emit(*c.eqn.prim, operands, s.With(s.consts + CountOf(consts), nf, nb, s.memo, s.kept),
                             s.Regions(region(*fwd.first, false), bwd ? region(*bwd, true) : nullptr));
  size_t at = 0;
  auto give = [&](size_t primals, const Mask& mask) {
    Append(c.y, Part(out, at, at + primals));
    const size_t tangents = CountOf(mask);
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
  const auto [forward, fwd] = CarryFixpoint(s.Forward(c.batched), [&](const Mask& m) {
    const BatchedFn f = c.regions.batch(s.fwd, s.OfForward(consts, m, xs), s.ForceForward(m), c.size);
    return std::make_pair(f.fn, f.batched_out);
  });
  Mask backward, zs;
  FnRef bwd;
  if (s.bwd) {
    const Mask& fm = forward;
    const auto [mask, back] = CarryFixpoint(s.Backward(c.batched), [&](const Mask& m) {
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
    const bool mapped = i < s.forward ? forward[i] : backward[i - s.forward];
    operands.push_back(mapped ? c.Batched(static_cast<int>(s.consts + i)) : c.x[s.consts + i]);
  }
  for (size_t i = s.first_memo() - s.xs; i < s.first_memo(); ++i)
    operands.push_back(c.batched[i] ? SwapLeading(c.b, c.x[i]) : c.x[i]);
  Ints memo;
  for (size_t i = 0; i < s.memo.size(); ++i) {
    const size_t operand = s.first_memo() + i;
    const bool mapped = forward[static_cast<size_t>(s.memo[i])];
    if (c.batched[operand] && !mapped) continue;  // snapshots of a state that has no batch elements: not these
    memo.push_back(s.memo[i]);
    operands.push_back(mapped ? SwapLeading(c.b, c.Batched(static_cast<int>(operand))) : c.x[operand]);
  }
  c.y =
      c.b.Emit(*c.eqn.prim, operands, s.With(s.consts, s.forward, s.backward, memo, s.kept), s.Regions(fwd.first, bwd));
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
  auto place = [&](int64_t carry) {
    return static_cast<int64_t>(CountOf(Part(forward, 0, static_cast<size_t>(carry))));
  };
  Ints memo, kept_carries;
  for (int64_t carry : s.memo) {
    const bool stays = forward[static_cast<size_t>(carry)];
    k.operands.push_back(stays);
    if (stays) memo.push_back(place(carry));
  }
  for (int64_t carry : Where(s.kept, kept)) kept_carries.push_back(place(carry));
  k.attrs = s.With(CountOf(consts), CountOf(forward), CountOf(backward), memo, kept_carries);
  k.regions = s.Regions(c.keep(s.fwd, fwd_results, s.OfForward(consts, forward, xs)),
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
      r.Add(kSnapshotScan, Family::kControl, -1,
            "A scan that reverse mode runs again from `snapshots` stored states, by the binomial schedule "
            "(Griewank and Walther, Revolve, 2000), instead of keeping every state. Region 0 is the forward "
            "sweep: constants, num_forward carries and slices of the xs to carries and slices of ys. Region 1, if "
            "there is one, is a backward sweep over the same steps: constants, the forward carries before the "
            "step, num_backward carries (in which it is affine) and slices of the xs to backward carries and "
            "slices of zs. Operands: constants, forward carries, backward carries, xs, memo; results: forward "
            "carries, backward carries, ys, zs, kept. memo and kept list forward carries whose snapshots on the "
            "first pass are given, or results: they decide nothing but how often steps are run.");
  p.region_use = RegionUse::kSnapshots;
  p.infer = InferSweeps;
  p.eval = EvalSweeps;
  p.jvp = SweepsJvp;
  p.batch = SweepsBatch;
  p.split = SplitSweeps;
  p.dce = SweepsDce;
  p.linear = {-1};
  p.transpose = TransposeSweeps;
  p.more_attributes = {"kept", "memo"};
  p.samples = SweepSamples;
}

}  // namespace weft
