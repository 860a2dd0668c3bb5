// The parts of a snapshot_scan equation: a loop that sweeps forwards and, if it has a second region, backwards.
//
//   forward sweep, i = 0 ... n-1:   (s, y_i) = F(C, s, x_i)
//   backward sweep, i = n-1 ... 0:  (l, z_i) = B(C, s_i, l, x_i)     s_i: the state before step i of the forward sweep
//
//   operands: C | s | l | x | memo      results: s | l | y | z | kept
//
// `kept` are snapshots of forward carries on the first pass, as many as `snapshots` says; `memo` are such snapshots,
// which spare a later loop over the same states that pass. They are notes about other operands: no value depends on
// them and neither does a derivative.
#ifndef WEFT_IR_PRIMS_CONTROL_SWEEPS_H_
#define WEFT_IR_PRIMS_CONTROL_SWEEPS_H_

#include "ir/prims/control/regions.h"

namespace weft {

inline constexpr char kSnapshotScan[] = "snapshot_scan";

struct Sweeps {
  size_t consts, forward, backward, xs = 0, ys = 0, zs = 0;
  Ints memo, kept;  // forward carries
  int64_t snapshots;
  Dim length;
  bool reverse;
  FnRef fwd, bwd;  // bwd: nullptr when there is no backward sweep

  Sweeps(const Attrs& attrs, const std::vector<FnRef>& regions)
      : consts(Size(attrs, "num_consts")),
        forward(Size(attrs, "num_forward")),
        backward(Size(attrs, "num_backward")),
        memo(attrs.GetOr<Ints>("memo", {})),
        kept(attrs.GetOr<Ints>("kept", {})),
        snapshots(attrs.GetInt("snapshots")),
        reverse(attrs.GetBool("reverse")) {
    if (regions.empty() || regions.size() > 2)
      throw TypeError(kSnapshotScan, ": has ", regions.size(), " regions; expected 1 or 2");
    fwd = regions[0];
    if (regions.size() == 2) bwd = regions[1];
    const Dims& dims = attrs.Get<Dims>("length");
    if (dims.size() != 1 || !dims[0].is_static() || dims[0].value() < 0)
      throw ValueError(kSnapshotScan, ": length=<", ToString(dims), ">; the number of steps has to be known");
    length = dims[0];
    if (snapshots < 1) throw ValueError(kSnapshotScan, ": snapshots=", snapshots, "; expected at least 1");
    if (consts + forward > fwd->params().size() || forward > fwd->results().size())
      throw TypeError(kSnapshotScan, ": num_consts=", consts, " and num_forward=", forward,
                      " do not fit a forward sweep of ", fwd->params().size(), " parameters and ",
                      fwd->results().size(), " results");
    xs = fwd->params().size() - consts - forward;
    ys = fwd->results().size() - forward;
    const size_t bwd_results = bwd ? bwd->results().size() : 0;
    if (backward > bwd_results)
      throw TypeError(kSnapshotScan, ": num_backward=", backward, " does not fit a backward sweep of ", bwd_results,
                      " results");
    zs = bwd_results - backward;
    for (const Ints* list : {&memo, &kept}) {
      for (int64_t i : *list) {
        if (i < 0 || i >= static_cast<int64_t>(forward))
          throw ValueError(kSnapshotScan, ": there is no forward carry ", i, " of ", forward, " to have snapshots");
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
  static std::vector<FnRef> Regions(FnRef forward_sweep, FnRef backward_sweep) {
    std::vector<FnRef> regions = {std::move(forward_sweep)};
    if (backward_sweep) regions.push_back(std::move(backward_sweep));
    return regions;
  }

 private:
  static size_t Size(const Attrs& attrs, const char* name) {
    const int64_t n = attrs.GetInt(name);
    if (n < 0) throw ValueError(kSnapshotScan, ": ", name, "=", n, "; expected 0 or more");
    return static_cast<size_t>(n);
  }
};

// The split and transpose rules (snapshot_scan_reverse.cc).
void SplitSweeps(SplitContext& c);
OptionalAtoms TransposeSweeps(TransposeContext& c);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTROL_SWEEPS_H_
