//   forward:   scan over the steps; a state whose turn it is goes into the next row of a buffer of snapshots
//   backward:  scan over the steps, last to first. For step i: take the last stored state, at position p <= i;
//                while p < i and rows are free: advance by the schedule, store       (a while loop)
//                advance to i                                                        (a while loop)
//                run the backward sweep's step
//
// The rows of the buffer are a stack: positions ascend, and a row is free once its step has been turned. How far to
// advance is computed in the program, by a few integer operations for each snapshot.
#include "transforms/opt/expand_snapshot_scan.h"

#include <algorithm>
#include <functional>

#include "ir/ops.h"

namespace weft {
namespace {

const Type kIndex{DType::kI64, {}, {}};
Atom Number(int64_t n) { return Atom(Tensor::Scalar<int64_t>(DType::kI64, n)); }

template <class List>
List Slice(const List& list, size_t begin, size_t count) {
  return List(list.begin() + static_cast<int64_t>(begin), list.begin() + static_cast<int64_t>(begin + count));
}
void Append(Atoms& list, const Atoms& more) { list.insert(list.end(), more.begin(), more.end()); }
Atoms Joined(Atoms list, const Atoms& more) {
  Append(list, more);
  return list;
}
Atoms Parameters(Builder& b, const Types& types) {
  Atoms params;
  for (const Type& t : types) params.push_back(b.Parameter(t));
  return params;
}
Types TypesOf(const Builder& b, const Atoms& atoms) {
  Types types;
  for (const Atom& a : atoms) types.push_back(b.TypeOf(a));
  return types;
}

// Row i of an array.
Atom Row(Builder& b, const Atom& x, const Atom& i) {
  const Type type = b.TypeOf(x);
  Atoms start(static_cast<size_t>(type.rank()), Number(0));
  start[0] = i;
  Ints sizes = StaticSizes(type.dims, "snapshot_scan");
  sizes[0] = 1;
  return Reshape(b, DynamicSlice(b, x, start, sizes), Slice(type.dims, 1, type.dims.size() - 1));
}

Atom WithRow(Builder& b, const Atom& x, const Atom& i, const Atom& row) {
  Dims shape = b.TypeOf(row).dims;
  Atoms start(shape.size() + 1, Number(0));
  start[0] = i;
  shape.insert(shape.begin(), Dim(1));
  return DynamicUpdateSlice(b, x, Reshape(b, row, shape), start);
}

// What a loop that is under construction does: (carries, invariants) -> carries.
using Body = std::function<Atoms(Builder&, const Atoms& carries, const Atoms& invariants)>;

Atoms EmitWhile(Builder& b, const Atoms& carries, const Atoms& invariants, const Body& condition, const Body& step) {
  auto region = [&](const char* name, const Body& body) {
    Builder r(name);
    const Atoms c = Parameters(r, TypesOf(b, carries)), i = Parameters(r, TypesOf(b, invariants));
    return r.Build(body(r, c, i));
  };
  return b.Emit(FindPrim("while"), Joined(carries, invariants), {{"num_carry", static_cast<int64_t>(carries.size())}},
                {region("more", condition), region("step", step)});
}

// How far to go before the next snapshot; the same numbers as BinomialAdvance.
Atom EmitAdvance(Builder& b, const Atom& steps, const Atom& snapshots) {
  const Atoms found = EmitWhile(
      b, {Number(1), Add(b, snapshots, Number(1))}, {steps, snapshots},
      [](Builder& r, const Atoms& c, const Atoms& inv) -> Atoms { return {Lt(r, c[1], inv[0])}; },
      [](Builder& r, const Atoms& c, const Atoms& inv) -> Atoms {
        const Atom reps = Add(r, c[0], Number(1));
        return {reps, Div(r, Mul(r, c[1], Add(r, inv[1], reps)), reps)};
      });
  const Atom &r = found[0], &range = found[1], c_plus_r = Add(b, snapshots, r);
  const Atom before = Div(b, Mul(b, range, r), c_plus_r);
  const Atom after = Div(b, Mul(b, before, snapshots), Sub(b, c_plus_r, Number(1)));
  return Min(b, before, Sub(b, steps, after));
}

// A snapshot_scan taken apart, and the loops it becomes.
class Expansion {
 public:
  // `uses`: of each result.
  Expansion(Builder& b, const Eqn& e, const Atoms& operands, std::vector<int> uses)
      : b_(b), fwd_(e.regions[0]), bwd_(e.regions.size() == 2 ? e.regions[1] : nullptr), uses_(std::move(uses)) {
    auto count = [&](const char* name) { return static_cast<size_t>(e.attrs.GetInt(name)); };
    const size_t consts = count("num_consts"), forward = count("num_forward"), backward = count("num_backward");
    steps_ = e.attrs.Get<Dims>("length")[0].value("snapshot_scan");
    snapshots_ = e.attrs.GetInt("snapshots");
    reverse_ = e.attrs.GetBool("reverse");
    kept_ = e.attrs.GetOr<Ints>("kept", {});
    memo_ = e.attrs.GetOr<Ints>("memo", {});
    size_t at = 0;
    for (auto [part, size] : {std::pair<Atoms*, size_t>(&consts_, consts),
                              {&start_, forward},
                              {&back_start_, backward},
                              {&xs_, fwd_->params().size() - consts - forward},
                              {&given_, memo_.size()}}) {
      *part = Slice(operands, at, size);
      at += size;
    }
  }

  Atoms Run() {
    if (steps_ == 0) return RunNothing();
    const size_t forward = start_.size(), ys = fwd_->results().size() - forward;
    Atoms snapshots = GivenForAll();
    const bool store = !kept_.empty() || (bwd_ && snapshots.empty() && forward > 0);
    const bool wanted = store || Used(0, forward) || Used(forward + back_start_.size(), ys);
    Atoms finals, y, stored;
    if (wanted || !bwd_) {
      Forward(store, &finals, &y, &stored);
    } else {  // no result of this sweep is read: any values of their types will do
      finals = start_;
      for (size_t i = 0; i < ys; ++i) {
        Type type = fwd_->ResultTypes()[forward + i];
        type.dims.insert(type.dims.begin(), Dim(steps_));
        y.push_back(Zeros(b_, type));
      }
    }
    Atoms back, z;
    if (bwd_) Backward(snapshots.empty() ? stored : snapshots, &back, &z);
    Atoms results = finals;
    for (const Atoms* more : {&back, &y, &z}) Append(results, *more);
    for (int64_t i : kept_) results.push_back(stored[static_cast<size_t>(i)]);
    return results;
  }

 private:
  // A loop of no steps: carries as they are, empty stacks; the first snapshot is the start.
  Atoms RunNothing() {
    Atoms results = Joined(start_, back_start_);
    auto stacks = [&](const Types& types, size_t first) {
      for (size_t i = first; i < types.size(); ++i) {
        Type type = types[i];
        type.dims.insert(type.dims.begin(), Dim(0));
        results.push_back(Zeros(b_, type));
      }
    };
    stacks(fwd_->ResultTypes(), start_.size());
    if (bwd_) stacks(bwd_->ResultTypes(), back_start_.size());
    for (int64_t i : kept_) {
      const Atom& s = start_[static_cast<size_t>(i)];
      Type type = b_.TypeOf(s);
      type.dims.insert(type.dims.begin(), Dim(snapshots_));
      results.push_back(WithRow(b_, Zeros(b_, type), Number(0), s));
    }
    return results;
  }

  bool Used(size_t first, size_t count) const {
    const auto begin = uses_.begin() + static_cast<int64_t>(first);
    return std::any_of(begin, begin + static_cast<int64_t>(count), [](int n) { return n > 0; });
  }

  // The snapshots that are operands, if they are those of every forward carry.
  Atoms GivenForAll() const {
    Atoms all(start_.size());
    std::vector<bool> has(start_.size(), false);
    for (size_t i = 0; i < memo_.size(); ++i) {
      all[static_cast<size_t>(memo_[i])] = given_[i];
      has[static_cast<size_t>(memo_[i])] = true;
    }
    return std::find(has.begin(), has.end(), false) == has.end() ? all : Atoms{};
  }

  Attrs ScanAttrs(size_t consts, size_t carries, bool reverse) const {
    return {{"num_consts", static_cast<int64_t>(consts)},
            {"num_carry", static_cast<int64_t>(carries)},
            {"length", Dims{Dim(steps_)}},
            {"reverse", reverse}};
  }

  // Where the snapshots of the first pass are, -1 for rows that stay free; and the last row that is not.
  Atoms Positions(Builder& b) const {
    const Type rows{DType::kI64, {Dim(snapshots_)}, {}};
    const Atom none = Full(b, rows, -1);
    const int64_t snapshots = snapshots_, steps = steps_;
    return EmitWhile(
        b, {Number(0), Number(0), WithRow(b, none, Number(0), Number(0))}, {},
        [=](Builder& r, const Atoms& c, const Atoms&) -> Atoms {
          return {And(r, Lt(r, Add(r, c[0], Number(1)), Number(snapshots)), Lt(r, c[1], Number(steps - 1)))};
        },
        [=](Builder& r, const Atoms& c, const Atoms&) -> Atoms {
          const Atom free = Sub(r, Number(snapshots), c[0]);
          const Atom at = Add(r, c[1], EmitAdvance(r, Sub(r, Number(steps), c[1]), free));
          const Atom top = Add(r, c[0], Number(1));
          return {top, at, WithRow(r, c[2], top, at)};
        });
  }

  // Carries of the loop: step, row to fill next; states; buffers.
  void Forward(bool store, Atoms* finals, Atoms* ys, Atoms* stored) {
    const size_t n = start_.size();
    if (!store) {
      const Atoms out = b_.Emit(FindPrim("scan"), Joined(Joined(consts_, start_), xs_),
                                ScanAttrs(consts_.size(), n, reverse_), {fwd_});
      *finals = Slice(out, 0, n);
      *ys = Slice(out, n, out.size() - n);
      return;
    }
    Atoms operands = consts_;
    operands.push_back(Positions(b_)[2]);
    const size_t num_consts = operands.size();
    Append(operands, {Number(0), Number(0)});
    Append(operands, start_);
    for (const Atom& s : start_) {
      Type type = b_.TypeOf(s);
      type.dims.insert(type.dims.begin(), Dim(snapshots_));
      operands.push_back(Zeros(b_, type));
    }
    Append(operands, xs_);
    Builder r(fwd_->name());
    const Atoms consts = Parameters(r, TypesOf(b_, consts_));
    const Atom positions = r.Parameter({DType::kI64, {Dim(snapshots_)}, {}});
    const Atom i = r.Parameter(kIndex), row = r.Parameter(kIndex);
    const Atoms state = Parameters(r, TypesOf(b_, start_));
    Atoms buffers;
    for (size_t k = 0; k < n; ++k) buffers.push_back(r.Parameter(b_.TypeOf(operands[num_consts + 2 + n + k])));
    Atoms args = Joined(consts, state);
    for (size_t k = args.size(); k < fwd_->params().size(); ++k) args.push_back(r.Parameter(fwd_->params()[k].type));
    const Atom hit = Eq(r, Row(r, positions, row), i);
    const Atom filled = Add(r, row, Select(r, hit, Number(1), Number(0)));
    Atoms results = {Add(r, i, Number(1)), Min(r, filled, Number(snapshots_ - 1))};
    const Atoms out = r.Inline(*fwd_, args);
    Append(results, Slice(out, 0, n));
    for (size_t k = 0; k < n; ++k) {
      const Atom kept = Row(r, buffers[k], row);
      const Atom here = Broadcast(r, hit, r.TypeOf(kept).dims, {});
      results.push_back(WithRow(r, buffers[k], row, Select(r, here, state[k], kept)));
    }
    Append(results, Slice(out, n, out.size() - n));
    const Atoms all =
        b_.Emit(FindPrim("scan"), operands, ScanAttrs(num_consts, 2 + 2 * n, reverse_), {r.Build(results)});
    *finals = Slice(all, 2, n);
    *stored = Slice(all, 2 + n, n);
    *ys = Slice(all, 2 + 2 * n, all.size() - 2 - 2 * n);
  }

  // The state before step `end`, from that before step `at`.
  Atoms EmitRunTo(Builder& b, const Atom& at, const Atom& end, const Atoms& state, const Atoms& consts,
                  const Atoms& xs) const {
    Atoms carries = {at}, invariants = {end};
    Append(carries, state);
    Append(invariants, consts);
    Append(invariants, xs);
    const size_t num_consts = consts.size();
    const Atoms out = EmitWhile(
        b, carries, invariants,
        [](Builder& r, const Atoms& c, const Atoms& inv) -> Atoms { return {Lt(r, c[0], inv[0])}; },
        [&](Builder& r, const Atoms& c, const Atoms& inv) -> Atoms {
          const Atom place = reverse_ ? Sub(r, Number(steps_ - 1), c[0]) : c[0];
          Atoms args = Joined(Slice(inv, 1, num_consts), Slice(c, 1, c.size() - 1));
          for (size_t k = 1 + num_consts; k < inv.size(); ++k) args.push_back(Row(r, inv[k], place));
          const Atoms next = r.Inline(*fwd_, args);
          return Joined({Add(r, c[0], Number(1))}, Slice(next, 0, c.size() - 1));
        });
    return Slice(out, 1, out.size() - 1);
  }

  // Carries of the loop: step, row of the last snapshot; positions, buffers; backward carries.
  void Backward(const Atoms& snapshots, Atoms* back, Atoms* zs) {
    const size_t n = start_.size(), lead = n > 0 ? 3 : 1;
    Atoms operands = Joined(consts_, xs_);
    const size_t num_consts = operands.size();
    operands.push_back(Number(steps_ - 1));
    if (n > 0) {
      const Atoms first = Positions(b_);
      Append(operands, {first[0], first[2]});
    }
    Append(operands, snapshots);
    Append(operands, back_start_);
    const size_t num_carry = operands.size() - num_consts;
    Append(operands, xs_);

    Builder r(bwd_->name());
    const Atoms consts = Parameters(r, TypesOf(b_, consts_)), arrays = Parameters(r, TypesOf(b_, xs_));
    const Atoms carries = Parameters(r, TypesOf(b_, Slice(operands, num_consts, num_carry)));
    const Atom& i = carries[0];
    Atoms results = {Sub(r, i, Number(1))}, state;
    if (n > 0) {
      // A snapshot of a step that has been turned is none any more.
      const Atom passed = Gt(r, Row(r, carries[2], carries[1]), i);
      const Atom top = Sub(r, carries[1], Select(r, passed, Number(1), Number(0)));
      Atoms loop = {top, Row(r, carries[2], top), carries[2]};
      for (size_t k = 0; k < n; ++k) loop.push_back(Row(r, carries[lead + k], top));
      Append(loop, Slice(carries, lead, n));
      const int64_t free_rows = snapshots_;
      const size_t num = consts.size();
      const Atoms stored = EmitWhile(
          r, loop, Joined(Joined({i}, consts), arrays),
          [&](Builder& w, const Atoms& c, const Atoms& inv) -> Atoms {
            return {And(w, Lt(w, c[1], inv[0]), Lt(w, Add(w, c[0], Number(1)), Number(free_rows)))};
          },
          [&](Builder& w, const Atoms& c, const Atoms& inv) -> Atoms {
            const Atom left = Sub(w, Add(w, inv[0], Number(1)), c[1]);
            const Atom at = Add(w, c[1], EmitAdvance(w, left, Sub(w, Number(free_rows), c[0])));
            const Atom row = Add(w, c[0], Number(1));
            const Atoms there =
                EmitRunTo(w, c[1], at, Slice(c, 3, n), Slice(inv, 1, num), Slice(inv, 1 + num, inv.size() - 1 - num));
            Atoms next = {row, at, WithRow(w, c[2], row, at)};
            Append(next, there);
            for (size_t k = 0; k < n; ++k) next.push_back(WithRow(w, c[3 + n + k], row, there[k]));
            return next;
          });
      state = EmitRunTo(r, stored[1], i, Slice(stored, 3, n), consts, arrays);
      Append(results, {stored[0], stored[2]});
      Append(results, Slice(stored, 3 + n, n));
    }
    Atoms args = Joined(Joined(consts, state), Slice(carries, carries.size() - back_start_.size(), back_start_.size()));
    for (size_t k = args.size(); k < bwd_->params().size(); ++k) args.push_back(r.Parameter(bwd_->params()[k].type));
    Append(results, r.Inline(*bwd_, args));
    const Atoms out =
        b_.Emit(FindPrim("scan"), operands, ScanAttrs(num_consts, num_carry, !reverse_), {r.Build(results)});
    *back = Slice(out, num_carry - back_start_.size(), back_start_.size());
    *zs = Slice(out, num_carry, out.size() - num_carry);
  }

  Builder& b_;
  FnRef fwd_;
  FnRef bwd_;
  std::vector<int> uses_;
  int64_t steps_ = 0, snapshots_ = 0;
  bool reverse_ = false;
  Ints kept_, memo_;
  Atoms consts_, start_, back_start_, xs_, given_;
};

}  // namespace

Atoms ExpandSnapshotScan(Builder& b, const Eqn& e, const Atoms& operands, const std::vector<int>& uses) {
  return Expansion(b, e, operands, uses).Run();
}

}  // namespace weft
