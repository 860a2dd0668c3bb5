// Reductions in the order of ir/prims/reduction_order.h, whichever dimension is in vector lanes.
#include <algorithm>
#include <bit>
#include <functional>
#include <map>

#include "lowering/cpu/mlir/emit_kernel.h"
#include "lowering/cpu/mlir/kernel_emitter.h"

namespace weft {

KernelEmitter::TakesIn KernelEmitter::HowToTakeIn(int reduction) const {
  const int64_t lanes = spec_.nodes[reduction].integer;
  if (!plan_.vector_inner || plan_.lanes == 0 || lanes == 0) return TakesIn::kLanes;
  if (lanes == 1) return TakesIn::kOneByOne;
  const std::optional<int64_t> size = spec_.sizes[plan_.vector_dim].TryValue();
  return lanes <= plan_.lanes || (size && *size <= plan_.lanes) ? TakesIn::kLanes : TakesIn::kMemory;
}

Lanes KernelEmitter::OneByOne(const KernelNode& n, Lanes sum, const Lanes& v) {
  for (int64_t l = 0; l < plan_.lanes; ++l)
    sum = body_.Combine(n.op, n.dtype, sum, {m_.Extract(v.re, l), v.im ? m_.Extract(v.im, l) : Value()});
  return sum;
}

Lanes KernelEmitter::ByHalves(const KernelNode& n, std::vector<Lanes> sums) {
  for (size_t half = sums.size() / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) sums[i] = body_.Combine(n.op, n.dtype, sums[i], sums[i + half]);
  }
  return sums[0];
}

void KernelEmitter::ClearKept(int reduction) {
  const KernelNode& n = spec_.nodes[reduction];
  for (int64_t at = 0; at < n.integer; at += plan_.lanes)
    KeepSum(reduction, m_.I64(at), body_.Neutral(n.op, n.dtype, plan_.lanes), n.integer);
}

Lanes KernelEmitter::FoldKept(int reduction, int64_t vectors) {
  std::vector<Lanes> sums;
  for (int64_t v = 0; v < vectors; ++v) sums.push_back(KeptSum(reduction, m_.I64(v * std::max(plan_.lanes, 1))));
  return ByHalves(spec_.nodes[reduction], std::move(sums));
}

void KernelEmitter::RunPass(const Pass& pass) {
  if (plan_.vector_inner) return RunPhase(pass);
  std::map<int64_t, std::vector<int>> by_lanes;
  for (int r : pass.reductions) by_lanes[std::max<int64_t>(spec_.nodes[r].integer, 1)].push_back(r);
  if (by_lanes.empty()) return RunPhase(pass);
  std::vector<const KernelStore*> stores = pass.stores;
  for (auto& [lanes, reductions] : by_lanes) {
    const Pass part{pass.phase, reductions, stores};
    stores.clear();
    if (lanes == 1)
      RunPhase(part);
    else
      RunInLanes(part, lanes);
  }
}

// An outer dimension is in the vector's lanes: each lane of the order is a sum of its own, over every `lanes`th element
// of the last reduced dimension. Of cheap terms eight or sixteen are totalled in registers.
void KernelEmitter::RunInLanes(const Pass& pass, int64_t lanes) {
  constexpr double kCheap = 1;  // nanoseconds
  const int last = static_cast<int>(spec_.sizes.size()) - 1;
  const std::optional<int64_t> size = spec_.sizes[last].TryValue();
  if (size) lanes = std::min<int64_t>(lanes, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(*size))));
  const int64_t unrolled = lanes <= 16 ? lanes : 8;
  const int64_t at_a_time = spec_.PointCost() <= kCheap ? unrolled : 1, groups = lanes / at_a_time;
  const int64_t width = std::max(plan_.lanes, 1);
  Value group = m_.I64(0);
  if (groups > 1) {
    auto loop = m_.b.create<scf::ForOp>(m_.loc, m_.I64(0), m_.I64(groups), m_.I64(1));
    OpenLoop(loop, 0);
    group = loop.getInductionVar();
  }
  // The total, by halves, of those sums of the group whose numbers are `first` modulo `apart`. One half after the
  // other, so that few totals wait in registers for their other half.
  std::function<std::vector<Lanes>(int64_t, int64_t)> total = [&](int64_t first, int64_t apart) {
    std::vector<Lanes> sums;
    if (apart < at_a_time) {
      const std::vector<Lanes> low = total(first, 2 * apart), high = total(first + apart, 2 * apart);
      for (size_t i = 0; i < low.size(); ++i) {
        const KernelNode& n = spec_.nodes[pass.reductions[i]];
        sums.push_back(body_.Combine(n.op, n.dtype, low[i], high[i]));
      }
      return sums;
    }
    const Stretch every{last,
                        m_.IAdd(group, m_.I64(first * groups)),
                        size == lanes ? Value() : Size(spec_.sizes[last]),
                        m_.I64(lanes),
                        {}};
    RunPhase(pass, &every);
    for (int r : pass.reductions) sums.push_back(MemoOf(r).value);
    return sums;
  };
  const std::vector<Lanes> sums = total(0, 1);
  for (size_t i = 0; i < sums.size(); ++i) {
    const int r = pass.reductions[i];
    if (groups > 1)
      KeepSum(r, m_.IMul(group, m_.I64(width)), sums[i], groups * width);
    else
      MemoOf(r) = {sums[i], static_cast<int>(loops_.size())};
  }
  if (groups == 1) return;
  CloseLoop();
  for (int r : pass.reductions) MemoOf(r) = {FoldKept(r, groups), static_cast<int>(loops_.size())};
}

}  // namespace weft
