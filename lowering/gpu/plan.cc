#include "lowering/gpu/plan.h"

#include <algorithm>
#include <bit>
#include <sstream>

#include "ir/error.h"

namespace weft {
namespace {

using Kind = KernelNode::Kind;

constexpr int64_t kThreads = 256, kWarp = 32, kMostThreads = 1024;
// Groups of lanes of a row that a thread may keep, and 32-bit registers that they may take.
constexpr int64_t kMostGroups = 8;
int64_t RegistersFor(int64_t threads) { return threads >= 1024 ? 24 : threads >= 512 ? 40 : 64; }

int64_t Static(const Dim& d) {
  const std::optional<int64_t> v = d.TryValue();
  if (!v)
    throw Error(ErrorKind::kUnsupported,
                "cuda: the size " + d.ToString() + " is not known when compiling; lower for arguments of fixed sizes");
  return *v;
}

int64_t CeilDiv(int64_t x, int64_t by) { return (x + by - 1) / by; }
int64_t PowerOfTwo(int64_t at_least) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, at_least))));
}

std::vector<const Access*> Accesses(const KernelSpec& spec) {
  std::vector<const Access*> list;
  for (const KernelNode& n : spec.nodes) {
    if (n.kind == Kind::kLoad) list.push_back(&n.access);
  }
  for (const KernelStore& s : spec.stores) list.push_back(&s.access);
  return list;
}

// The dimension along which most bytes lie one behind the other; results count twice.
int VectorDim(const KernelSpec& spec) {
  const int rank = static_cast<int>(spec.sizes.size());
  int best = rank - 1;
  double most = -1;
  for (int v = 0; v < rank; ++v) {
    double score = 0.001 * v;
    auto add = [&](const Access& a, double weight) {
      if (!(a.offset.Coefficient(v) == Dim(1))) return;
      double points = ByteWidth(a.dtype) * weight;
      for (int d = 0; d < rank; ++d) {
        if ((a.offset.VarMask() >> d) & 1) points *= static_cast<double>(Static(spec.sizes[d]));
      }
      score += points;
    };
    for (const KernelNode& n : spec.nodes) {
      if (n.kind == Kind::kLoad) add(n.access, n.access.dynamic.empty() ? 1 : 0.5);
    }
    for (const KernelStore& s : spec.stores) add(s.access, 2);
    if (score > most) {
      most = score;
      best = v;
    }
  }
  return best;
}

// As many lanes as 16 bytes hold of the widest type that lies along the vector dimension, or fewer, until results and
// at least half of the operands are whole vectors.
int Lanes(const KernelSpec& spec, int dim, bool may_have_tail) {
  if (dim < 0) return 1;
  int widest = 0;
  for (const Access* a : Accesses(spec)) {
    if (a->offset.Coefficient(dim) == Dim(1)) widest = std::max(widest, ByteWidth(a->dtype));
  }
  if (widest == 0) return 1;
  const int64_t size = Static(spec.sizes[dim]);
  for (int lanes = std::max(1, 16 / widest); lanes > 1; lanes /= 2) {
    if (size % lanes != 0 && !(may_have_tail && size > 4 * lanes)) continue;
    int whole = 0, broken = 0;
    bool stores = true;
    for (const KernelNode& n : spec.nodes) {
      if (n.kind != Kind::kLoad || !(n.access.offset.Coefficient(dim) == Dim(1))) continue;
      ++(IsWholeVector(n.access, dim, lanes) ? whole : broken);
    }
    for (const KernelStore& s : spec.stores) {
      if (s.access.offset.Coefficient(dim) == Dim(1)) stores = stores && IsWholeVector(s.access, dim, lanes);
    }
    if (stores && whole >= broken) return lanes;
  }
  return 1;
}

bool NeedsWideIndex(const KernelSpec& spec, int64_t points) {
  constexpr double kLimit = 2147483647.0;
  if (static_cast<double>(points) > kLimit - 1e6) return true;
  for (const Access* a : Accesses(spec)) {
    double reach = static_cast<double>(std::abs(Static(a->offset.constant())));
    for (const auto& [v, c] : a->offset.terms())
      reach += std::abs(static_cast<double>(Static(c))) * static_cast<double>(Static(spec.sizes[v]));
    for (const Access::Dynamic& d : a->dynamic)
      reach += static_cast<double>(Static(d.limit)) * std::abs(static_cast<double>(Static(d.stride)));
    if (reach * (IsComplex(a->dtype) ? 2 : 1) > kLimit) return true;
  }
  return false;
}

// 32-bit registers that one element of a row takes if it is kept: what is loaded per element of the reduced dimensions.
int64_t RowRegisters(const KernelSpec& spec) {
  int64_t registers = 0;
  const std::vector<uint64_t> dependence = spec.Dependence();
  for (size_t i = 0; i < spec.nodes.size(); ++i) {
    if (spec.nodes[i].kind == Kind::kLoad && (dependence[i] >> spec.num_outer) != 0)
      registers += SharedBytes(spec.nodes[i].dtype) / 4;
  }
  return std::max<int64_t>(1, registers);
}

}  // namespace

std::vector<DType> AccumulatorTypes(const KernelSpec& spec, const KernelNode& reduction) {
  if (!reduction.FindsIndex()) return {reduction.dtype};
  std::vector<DType> types;
  for (int o : reduction.operands) types.push_back(spec.nodes[static_cast<size_t>(o)].dtype);
  return types;
}

int SharedBytes(DType dtype) { return std::max(4, ByteWidth(dtype)); }

bool IsWholeVector(const Access& access, int dim, int lanes) {
  if (dim < 0 || !(access.offset.Coefficient(dim) == Dim(1))) return false;
  auto fits = [&](const Dim& d) { return Static(d) % lanes == 0; };
  if (!fits(access.offset.constant())) return false;
  for (const auto& [v, c] : access.offset.terms()) {
    if (v != dim && !fits(c)) return false;
  }
  for (const Access::Dynamic& d : access.dynamic) {
    if (!fits(d.stride)) return false;
  }
  return true;
}

GpuPlan PlanGpu(const KernelSpec& spec, const GpuTarget& target) {
  GpuPlan plan;
  int64_t rows = 1, row = 1, reductions = 0;
  for (size_t v = 0; v < spec.sizes.size(); ++v)
    (static_cast<int>(v) < spec.num_outer ? rows : row) *= Static(spec.sizes[v]);
  int64_t reduced_bytes = 0;
  for (const KernelNode& n : spec.nodes) {
    if (n.kind != Kind::kReduce) continue;
    ++reductions;
    for (DType t : AccumulatorTypes(spec, n)) reduced_bytes += SharedBytes(t);
  }
  plan.vector_dim = VectorDim(spec);
  plan.wide_index = NeedsWideIndex(spec, rows * row);
  const bool reduces = static_cast<int>(spec.sizes.size()) > spec.num_outer;
  if (!reduces) {
    const bool one = spec.sizes.size() == 1;
    plan.lanes = Lanes(spec, plan.vector_dim, one);
    plan.tail = one && rows % plan.lanes != 0;
    plan.blocks = CeilDiv(CeilDiv(rows, plan.lanes), kThreads);
  } else if (plan.vector_dim >= spec.num_outer) {
    plan.kind = GpuPlan::Kind::kAlongMemory;
    plan.lanes = Lanes(spec, plan.vector_dim, false);
    const int64_t groups = row / plan.lanes, per_group = plan.lanes * RowRegisters(spec);
    int64_t threads = std::min(kWarp, PowerOfTwo(groups));
    auto kept = [&](int64_t t) { return CeilDiv(groups, t); };
    auto fits = [&](int64_t t) { return kept(t) <= kMostGroups && kept(t) * per_group <= RegistersFor(t); };
    while (threads < kMostThreads && (!fits(threads) || (threads > kWarp && kept(threads) > 4))) threads *= 2;
    plan.threads_per_row = static_cast<int>(threads);
    plan.registers = fits(threads) ? static_cast<int>(kept(threads)) : 0;
    int64_t per_block = std::max<int64_t>(1, kThreads / threads);
    while (per_block > 1 && per_block * threads > kWarp && CeilDiv(rows, per_block) < target.sm_count) per_block /= 2;
    plan.rows_per_block = static_cast<int>(per_block);
    plan.threads = static_cast<int>(per_block * threads);
    plan.blocks = CeilDiv(rows, per_block);
    if (threads > kWarp) plan.shared_bytes = reduced_bytes * per_block * (threads / kWarp);
  } else {
    plan.kind = GpuPlan::Kind::kAcrossMemory;
    plan.lanes = Lanes(spec, plan.vector_dim, false);
    // Narrow accesses of whole lines rather than idle multiprocessors.
    while (plan.lanes > 1 && rows / plan.lanes / kWarp < target.sm_count) plan.lanes /= 2;
    const int64_t groups = rows / plan.lanes;
    const int64_t per_block = std::min(kWarp, PowerOfTwo(groups));
    int64_t threads = std::max<int64_t>(1, kWarp / per_block);
    while (threads * per_block < kMostThreads && threads < row &&
           reduced_bytes * plan.lanes * per_block * threads * 2 <= target.shared_bytes_per_block &&
           groups * threads < target.sm_count * target.threads_per_sm)
      threads *= 2;
    plan.threads_per_row = static_cast<int>(threads);
    plan.rows_per_block = static_cast<int>(per_block);
    plan.threads = static_cast<int>(per_block * threads);
    plan.blocks = CeilDiv(groups, per_block);
    const int64_t kept = CeilDiv(row, threads);
    if (kept <= kMostGroups && kept * plan.lanes * RowRegisters(spec) <= RegistersFor(plan.threads))
      plan.registers = static_cast<int>(kept);
    if (threads > 1) plan.shared_bytes = reduced_bytes * plan.lanes * per_block * threads;
  }
  if (plan.shared_bytes > target.shared_bytes_per_block)
    throw Error(ErrorKind::kUnsupported, "cuda: " + std::to_string(reductions) + " reductions in one kernel need " +
                                             std::to_string(plan.shared_bytes) +
                                             " bytes of shared memory; a block has " +
                                             std::to_string(target.shared_bytes_per_block));
  if (plan.blocks > 2147483647)
    throw Error(ErrorKind::kUnsupported,
                "cuda: a kernel of " + std::to_string(plan.blocks) + " blocks; a launch has at most 2^31 - 1");
  return plan;
}

std::string GpuPlan::ToString() const {
  std::ostringstream out;
  if (kind == Kind::kElements) {
    out << "elements";
  } else if (kind == Kind::kAlongMemory) {
    out << "rows along memory, " << threads_per_row << (threads_per_row == 1 ? " thread" : " threads") << " a row, "
        << rows_per_block << (rows_per_block == 1 ? " row" : " rows") << " a block, "
        << (registers > 0 ? "row in registers" : "row read in each pass");
  } else {
    out << "rows across memory, " << threads_per_row << (threads_per_row == 1 ? " thread" : " threads") << " a row, "
        << rows_per_block * lanes << " rows a block, "
        << (registers > 0 ? "rows in registers" : "rows read in each pass");
  }
  out << "; " << lanes << (lanes == 1 ? " lane" : " lanes") << ", " << blocks << (blocks == 1 ? " block" : " blocks")
      << " of " << threads << " threads";
  if (shared_bytes > 0) out << ", " << shared_bytes << " bytes of shared memory";
  return out.str();
}

}  // namespace weft
