#include "lowering/kernel/loop_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

namespace weft {
namespace {

// Halves are floats there, and complex numbers two of them.
int RegisterBytes(DType t) {
  if (IsComplex(t)) return ByteWidth(RealPart(t));
  return IsFloat(t) && !IsStored(t) ? std::max(4, ByteWidth(t)) : ByteWidth(t);
}

// How well dimension v suits vector lanes: contiguous accesses count, strided ones cost; each as often as it is made,
// so that a number per row weighs little beside the row.
double Score(const KernelSpec& spec, int v) {
  double score = 0, points = 1;
  const auto size = [&](size_t u) { return static_cast<double>(spec.sizes[u].TryValue().value_or(256)); };
  for (size_t u = 0; u < spec.sizes.size(); ++u) points *= std::max(1.0, size(u));
  auto add = [&](const Access& a, double weight) {
    const Dim c = a.offset.Coefficient(v);
    if (c == Dim(0)) return;
    const auto depends = [&](size_t u) {
      return !a.dynamic.empty() || !(a.offset.Coefficient(static_cast<int>(u)) == Dim(0));
    };
    // What lies within a row is read again for each of them, whether or not it depends on the row.
    bool in_row = false;
    for (size_t u = static_cast<size_t>(spec.num_outer); u < spec.sizes.size(); ++u) in_row |= depends(u);
    double times = 1;
    for (size_t u = 0; u < spec.sizes.size(); ++u) {
      if (depends(u) || (in_row && u < static_cast<size_t>(spec.num_outer))) times *= std::max(1.0, size(u));
    }
    score += (c == Dim(1) ? 1 : -0.5) * weight * times / points;
  };
  for (const KernelNode& n : spec.nodes) {
    if (n.kind == KernelNode::Kind::kLoad) add(n.access, 1);
  }
  for (const KernelStore& s : spec.stores) add(s.access, 1.5);
  if (auto size = spec.sizes[v].TryValue(); size && *size < 4) score -= 2;
  return score;
}

// About how many vector instructions the kernel takes with dimension v in lanes. What does not depend on v is computed
// once per step of the others, at the price of a whole vector; a jumping access takes an instruction per lane.
double Instructions(const KernelSpec& spec, int v, const Target& target) {
  const auto size = [&](int u) { return static_cast<double>(spec.sizes[u].TryValue().value_or(256)); };
  const std::vector<uint64_t> dependence = spec.Dependence();
  const auto steps = [&](uint64_t mask, double width) {
    double n = 1;
    for (int u = 0; u < static_cast<int>(spec.sizes.size()); ++u) {
      const bool depends = ((mask >> u) & 1) != 0;
      if (u == v)
        n *= depends ? std::ceil(size(u) / width) : 1;
      else if (depends || u < spec.num_outer)
        n *= size(u);
    }
    return n;
  };
  const auto access = [&](const Access& a, double width) {
    const Dim c = a.offset.Coefficient(v);
    return a.dynamic.empty() && (c == Dim(0) || c == Dim(1)) ? 1 : width;
  };
  double total = 0;
  for (size_t i = 0; i < spec.nodes.size(); ++i) {
    const KernelNode& n = spec.nodes[i];
    const double width = target.vector_bytes / static_cast<double>(RegisterBytes(n.dtype));
    if (n.kind == KernelNode::Kind::kLoad) total += steps(dependence[i], width) * access(n.access, width);
    if (n.kind == KernelNode::Kind::kOp) {
      KernelSpec alone;
      alone.nodes = {n};
      total += steps(dependence[i], width) * std::max(1.0, 16 * alone.PointCost());
    }
    if (n.kind == KernelNode::Kind::kReduce) {
      total += steps(dependence[n.operands[0]], width);
      if (v >= spec.num_outer) total += 2 * std::log2(width) * steps(dependence[i], width);  // the lanes' own sum
    }
  }
  const uint64_t outer = (uint64_t{1} << spec.num_outer) - 1;
  for (const KernelStore& s : spec.stores) {
    const double width = target.vector_bytes / static_cast<double>(RegisterBytes(s.access.dtype));
    total += steps(dependence[s.node] | outer, width) * access(s.access, width);
  }
  return total;
}

// A dimension along which every load that jumps along `vector_dim` is contiguous, and those loads.
bool FindTile(const KernelSpec& spec, const Target& target, int vector_dim, LoopPlan* plan) {
  const int rank = static_cast<int>(spec.sizes.size());
  if (rank != spec.num_outer || rank < 2) return false;
  for (const KernelStore& s : spec.stores) {
    if (!s.access.dynamic.empty() || !(s.access.offset.Coefficient(vector_dim) == Dim(1))) return false;
  }
  int tile = -1, bytes = 1;
  std::vector<int> loads;
  for (size_t i = 0; i < spec.nodes.size(); ++i) {
    const KernelNode& n = spec.nodes[i];
    bytes = std::max(bytes, RegisterBytes(n.dtype));
    if (n.kind != KernelNode::Kind::kLoad) continue;
    if (!n.access.dynamic.empty()) return false;
    const Dim step = n.access.offset.Coefficient(vector_dim);
    if (step == Dim(0) || step == Dim(1)) continue;
    if (IsComplex(n.dtype)) return false;
    int along = -1;
    for (int v = 0; v < rank; ++v) {
      if (n.access.offset.Coefficient(v) == Dim(1)) along = v;
    }
    if (along < 0 || (tile >= 0 && tile != along)) return false;
    tile = along;
    loads.push_back(static_cast<int>(i));
  }
  // More transposed arrays than fit into the nearest cache gain nothing from each other.
  if (tile < 0 || loads.size() > 4) return false;
  const int lanes = bytes == 8 ? 8 : 16;
  for (int v : {tile, vector_dim}) {
    const std::optional<int64_t> size = spec.sizes[v].TryValue();
    if (size && *size < lanes / 2) return false;
  }
  const std::optional<int64_t> size = spec.sizes[tile].TryValue();
  for (int i : loads) {
    const int width = ByteWidth(spec.nodes[i].dtype);
    const bool masked = target.vector_bytes >= 32 && (width >= 4 || target.masked_bytes);
    if (!masked && !(size && *size % lanes == 0)) return false;
  }
  plan->tile_dim = tile;
  plan->tile_loads = std::move(loads);
  plan->lanes = lanes;
  return true;
}

// Whether the vector may lie along v: of reductions in an order (KernelNode::integer) along the last reduced dimension,
// and only where other dimensions are too small if the elements are taken in one after the other.
bool MayHoldLanes(const KernelSpec& spec, int v) {
  const int64_t in_order = spec.ReductionLanes();
  if (v < spec.num_outer || in_order == 0) return true;
  if (v + 1 != static_cast<int>(spec.sizes.size())) return false;
  if (in_order > 1) return true;
  constexpr int64_t kFew = 4;
  for (int u = 0; u < spec.num_outer; ++u) {
    if (spec.sizes[u].TryValue().value_or(kFew) >= kFew) return false;
  }
  return true;
}

// Lanes along the reduced dimension, where the order of the reductions has so many. Cheap bodies have all of them in
// registers; others have fewer, and the rest of the sums in memory.
int ReducedLanes(const KernelSpec& spec, int lanes, bool cheap) {
  constexpr int kOneByOne = 16;  // as many scalar steps in a row
  int most = 0;
  for (const KernelNode& n : spec.nodes) {
    if (n.kind != KernelNode::Kind::kReduce || n.integer == 0) continue;
    const int order = n.integer == 1 ? kOneByOne : static_cast<int>(n.integer);
    most = most == 0 ? order : std::min(most, order);
  }
  return most == 0 ? lanes : cheap && most > kOneByOne ? most : std::min(lanes, most);
}

// About `block` elements, or more, that are whole rows and whole vectors. So few rows that what follows a product is
// cut where the product is.
int64_t BlockOfRows(int64_t row, int64_t block, int64_t lanes) {
  constexpr int64_t kMostRows = 16;
  int64_t rows = lanes / std::gcd(row, lanes);
  while (2 * rows <= kMostRows && 2 * rows * row <= block) rows *= 2;
  return rows * row;
}

// Units of a few microseconds: how much of a vector dimension of `size` one of them has.
void PlanBlocks(const KernelSpec& spec, std::optional<int64_t> size, LoopPlan* plan) {
  const double inner = plan->unit_points;
  const int64_t lanes = plan->lanes;
  int64_t block = static_cast<int64_t>(std::clamp(8192.0 / (inner * std::max(0.25, spec.PointCost())), 1.0, 16384.0));
  block = std::max<int64_t>((block + lanes - 1) / lanes, 1) * lanes;
  if (spec.row > 0)
    block = BlockOfRows(spec.row, block, lanes);
  else if (size && *size < block + block / 2)
    block = std::max<int64_t>((*size + lanes - 1) / lanes, 1) * lanes;
  plan->block = block;
  plan->unit_points *= static_cast<double>(size ? std::min(*size, block) : block);
}

constexpr int kStrip = 8;                            // rows: as many streams as processors follow at a time
constexpr int64_t kStripMemory = int64_t{16} << 10;  // bytes of accumulators, which stay in the nearest cache
constexpr int64_t kFewestColumns = 256, kMostColumns = 1024;

// Whether to walk in strips: reductions of arrays that are beyond the nearest caches, whose rows lie along the lanes
// and whose elements are read faster than they are computed.
bool WantsStrips(const KernelSpec& spec, const LoopPlan& plan) {
  const int rank = static_cast<int>(spec.sizes.size()), row = spec.num_outer;
  if (plan.vector_inner || plan.lanes == 0 || rank == row || plan.tile_dim >= 0 || spec.PointCost() > 2) return false;
  if (spec.ReductionLanes() > 1) return false;  // the last dimension is walked in another order
  const auto size = [&](int v) { return spec.sizes[v].TryValue().value_or(1024); };
  if (size(row) < 2 * kStrip || size(plan.vector_dim) < kFewestColumns) return false;
  int64_t points = 1;
  for (int v = 0; v < rank; ++v) points *= size(v);
  bool large = false;
  for (const KernelNode& n : spec.nodes) {
    if (n.FindsIndex()) return false;
    if (n.kind != KernelNode::Kind::kLoad || !n.access.dynamic.empty()) continue;
    if (!(n.access.offset.Coefficient(plan.vector_dim) == Dim(1))) continue;
    const int64_t step = n.access.offset.Coefficient(row).TryValue().value_or(1024);
    large = large || (std::abs(step) >= kFewestColumns && points * ByteWidth(n.dtype) >= 256 << 10);
  }
  return large;
}

// Blocks of columns that are wide, so that what is read lies together, yet make units for all threads.
void PlanStrips(const KernelSpec& spec, std::optional<int64_t> columns, int64_t vector, LoopPlan* plan) {
  int64_t units = 1, bytes = 0;
  for (int v : plan->unit_dims) units *= spec.sizes[v].TryValue().value_or(64);
  for (const KernelNode& n : spec.nodes)
    if (n.kind == KernelNode::Kind::kReduce) bytes += RegisterBytes(n.dtype) * (IsComplex(n.dtype) ? 2 : 1);
  const int64_t fits = std::max<int64_t>(kStripMemory / std::max<int64_t>(bytes, 1), kFewestColumns);
  const int64_t wanted = std::max<int64_t>((16 + units - 1) / std::max<int64_t>(units, 1), 1);
  const int64_t even = columns ? (*columns + wanted - 1) / wanted : kMostColumns;
  plan->strip = kStrip;
  plan->lanes = static_cast<int>(std::min<int64_t>(plan->lanes, 2 * vector));
  plan->may_have_tail = !columns || *columns % plan->lanes != 0;
  plan->block = std::clamp(even, std::min(kFewestColumns, fits), std::min(kMostColumns, fits));
  plan->block = (plan->block + plan->lanes - 1) / plan->lanes * plan->lanes;
  plan->unit_points *= static_cast<double>(columns ? std::min(*columns, plan->block) : plan->block);
}

// Sums in a fixed order have their lanes, and the rows that share registers with them, in outer dimensions only: within
// a sum one term follows the other.
LoopPlan PlanTree(const KernelSpec& spec, const Target& target) {
  LoopPlan plan;
  const int rank = static_cast<int>(spec.sizes.size());
  for (int v = spec.num_outer; v < rank; ++v)
    plan.unit_points *= static_cast<double>(spec.sizes[v].TryValue().value_or(256));
  const auto size = [&](int v) { return spec.sizes[v].TryValue().value_or(256); };
  const int64_t whole = target.vector_bytes / 8;  // lanes of a register of doubles
  std::vector<const Access*> loads;
  for (const KernelNode& n : spec.nodes) {
    if (n.kind == KernelNode::Kind::kLoad) loads.push_back(&n.access);
  }
  const auto step = [&](const Access& a, int v) {
    for (const Access::Dynamic& d : a.dynamic) {
      if ((spec.Dependence()[d.node] >> v) & 1) return Dim(-1);
    }
    return a.offset.Coefficient(v);
  };
  // Instructions for one term of one sum, with v in lanes.
  double least = 0;
  for (int v = 0; v < spec.num_outer; ++v) {
    double instructions = 1;
    for (const Access* a : loads) {
      const Dim s = step(*a, v);
      bool shared = false;
      for (int r = 0; r < spec.num_outer; ++r) shared = shared || (r != v && step(*a, r) == Dim(0));
      const bool gathered = !(s == Dim(0)) && !(s == Dim(1));
      instructions += (gathered ? static_cast<double>(whole) : 1) / (shared ? 4 : 1);
    }
    for (const KernelStore& s : spec.stores) instructions += s.access.offset.Coefficient(v) == Dim(1) ? 0 : 0.1;
    const int64_t vectors = (size(v) + whole - 1) / whole;
    instructions *= static_cast<double>(vectors) / static_cast<double>(std::max<int64_t>(1, size(v)));
    if (plan.vector_dim < 0 || instructions < least) {
      least = instructions;
      plan.vector_dim = v;
    }
  }
  if (plan.vector_dim < 0) return plan;  // one sum, in scalars

  // Accumulators fill half of the registers: lanes first, then rows. Lanes that are gathered are as few as a register
  // has: each reads a cache line of its own, and those of arrays whose sizes are powers of two displace each other.
  const std::optional<int64_t> columns = spec.sizes[plan.vector_dim].TryValue();
  const bool complex = IsComplex(spec.nodes[spec.nodes[spec.Tree()].operands[0]].dtype);
  const int64_t registers = (target.vector_bytes >= 64 ? 16 : 8) / (complex ? 2 : 1);
  int64_t across = target.vector_bytes >= 64 && !complex ? 4 : 2;
  for (const Access* a : loads) {
    const Dim s = step(*a, plan.vector_dim);
    if (!(s == Dim(0)) && !(s == Dim(1))) across = 1;
  }
  while (across > 1 && columns && (across / 2) * whole >= *columns) across /= 2;
  plan.lanes = static_cast<int>(across * whole);
  while (plan.lanes > 2 && columns && plan.lanes / 2 >= *columns) plan.lanes /= 2;
  plan.may_have_tail = !columns || *columns % plan.lanes != 0;
  bool sharing = false;
  for (int v = 0; v < spec.num_outer; ++v) {
    if (v == plan.vector_dim) continue;
    plan.unit_dims.push_back(v);
    bool shares = false;
    for (const Access* a : loads) shares = shares || (step(*a, v) == Dim(0) && !(step(*a, plan.vector_dim) == Dim(0)));
    if (plan.row_dim >= 0 && (sharing > shares || (sharing == shares && size(v) < size(plan.row_dim)))) continue;
    plan.row_dim = v;
    sharing = shares;
  }
  if (plan.row_dim >= 0) {
    // As many in each, so that few are computed twice at the end.
    const int64_t most = std::min<int64_t>(registers / across, 8), n = std::max<int64_t>(1, size(plan.row_dim));
    const int64_t tiles = (n + most - 1) / most;
    plan.rows = static_cast<int>((n + tiles - 1) / tiles);
    plan.unit_points *= plan.rows;
  }
  PlanBlocks(spec, columns, &plan);
  return plan;
}

}  // namespace

LoopPlan PlanLoops(const KernelSpec& spec, const Target& target) {
  if (spec.Tree() >= 0) return PlanTree(spec, target);
  LoopPlan plan;
  const int rank = static_cast<int>(spec.sizes.size());
  double best = -1e9;
  for (int v = 0; v < rank; ++v) {
    if (!MayHoldLanes(spec, v)) continue;
    const double score = Score(spec, v) + 0.01 * v;
    if (score > best) {
      best = score;
      plan.vector_dim = v;
    }
  }
  // A dimension of a few elements leaves most lanes empty, and what does not depend on it is computed one by one.
  const std::optional<int64_t> few = rank > 1 ? spec.sizes[plan.vector_dim].TryValue() : std::nullopt;
  if (few && *few < target.vector_bytes / 8) {
    double least = Instructions(spec, plan.vector_dim, target);
    for (int v = 0; v < rank; ++v) {
      if (!MayHoldLanes(spec, v)) continue;
      const double instructions = Instructions(spec, v, target);
      if (instructions < least) {
        least = instructions;
        plan.vector_dim = v;
      }
    }
  }
  plan.vector_inner = plan.vector_dim >= spec.num_outer;
  for (int v = 0; v < spec.num_outer; ++v) {
    if (v != plan.vector_dim) plan.unit_dims.push_back(v);
  }
  for (int v = spec.num_outer; v < rank; ++v)
    plan.unit_points *= static_cast<double>(spec.sizes[v].TryValue().value_or(256));
  if (rank == 0) return plan;

  // Two registers per value; four for short bodies; counting the widest type of the body.
  int bytes = 1;
  bool expensive = false, jumps = false, functions = false;
  int ops = 0;
  const std::vector<uint64_t> dependence = spec.Dependence();
  for (size_t i = 0; i < spec.nodes.size(); ++i) {
    const KernelNode& n = spec.nodes[i];
    if (((dependence[i] >> plan.vector_dim) & 1) == 0 && n.kind != KernelNode::Kind::kReduce) continue;
    bytes = std::max(bytes, RegisterBytes(n.dtype));
    if (n.kind == KernelNode::Kind::kOp) ++ops, functions = functions || n.Work() >= 15 || IsComplex(n.dtype);
    if (n.kind == KernelNode::Kind::kLoad) {
      const Dim c = n.access.offset.Coefficient(plan.vector_dim);
      if (!n.access.dynamic.empty() || !(c == Dim(1) || c == Dim(0))) bytes = 8, jumps = true;  // vectors of addresses
    }
  }
  if (spec.PointCost() > 0.45) expensive = true;
  int lanes = std::min(64, (expensive || ops > 20 ? 2 : 4) * target.vector_bytes / bytes);
  if (ops > 400) lanes = std::max(4, lanes / 2);
  const int few_ops = target.vector_bytes >= 64 ? 8 : 3;  // whose values have registers beside those of the sums
  if (plan.vector_inner) lanes = ReducedLanes(spec, lanes, !functions && !jumps && ops <= few_ops);
  const std::optional<int64_t> size = spec.sizes[plan.vector_dim].TryValue();
  if (size) {
    while (lanes > 2 && lanes / 2 >= *size) lanes /= 2;
    // A remainder of more than a quarter of a short row: narrower vectors waste less.
    while (lanes > 4 && *size < 4 * lanes && *size % lanes != 0 && *size % lanes <= lanes / 2) lanes /= 2;
  }
  plan.lanes = lanes;
  // Where the results are contiguous and operands are not, rather than the other way round.
  int store_dim = -1;
  for (int v = 0; v < spec.num_outer && !spec.stores.empty(); ++v) {
    if (spec.stores[0].access.offset.Coefficient(v) == Dim(1)) store_dim = v;
  }
  std::optional<int64_t> vector_size = size;
  if (store_dim >= 0 && FindTile(spec, target, store_dim, &plan)) {
    plan.vector_dim = store_dim;
    lanes = plan.lanes;
    vector_size = spec.sizes[store_dim].TryValue();
    plan.unit_dims.clear();
    for (int v = 0; v < spec.num_outer; ++v) {
      if (v != store_dim) plan.unit_dims.push_back(v);
    }
    plan.unit_points *= lanes;
  }
  plan.may_have_tail = !vector_size || *vector_size % lanes != 0;
  if (WantsStrips(spec, plan))
    PlanStrips(spec, vector_size, target.vector_bytes / bytes, &plan);
  else if (!plan.vector_inner)
    PlanBlocks(spec, vector_size, &plan);
  return plan;
}

}  // namespace weft
