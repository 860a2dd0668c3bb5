#include "lowering/loop_plan.h"

#include <algorithm>

namespace weft {
namespace {

int RegisterBytes(DType t) {
  switch (t) {
    case DType::kBool: return 1;
    case DType::kF16:
    case DType::kBF16:
    case DType::kC64: return 4;
    case DType::kC128: return 8;
    default: return ByteWidth(t);
  }
}

// How well dimension v suits vector lanes: contiguous accesses count, strided ones cost.
double Score(const KernelSpec& spec, int v) {
  double score = 0;
  auto add = [&](const Access& a, double weight) {
    const Dim c = a.offset.Coefficient(v);
    if (c == Dim(1))
      score += weight;
    else if (!(c == Dim(0)))
      score -= 0.5 * weight;
  };
  for (const KernelNode& n : spec.nodes) {
    if (n.kind == KernelNode::Kind::kLoad) add(n.access, 1);
  }
  for (const KernelStore& s : spec.stores) add(s.access, 1.5);
  if (auto size = spec.sizes[v].TryValue(); size && *size < 4) score -= 2;
  return score;
}

}  // namespace

LoopPlan PlanLoops(const KernelSpec& spec, const Target& target) {
  LoopPlan plan;
  const int rank = static_cast<int>(spec.sizes.size());
  double best = -1e9;
  for (int v = 0; v < rank; ++v) {
    const double score = Score(spec, v) + 0.01 * v;
    if (score > best) {
      best = score;
      plan.vector_dim = v;
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
  bool expensive = false;
  int ops = 0;
  const std::vector<uint64_t> dependence = spec.Dependence();
  for (size_t i = 0; i < spec.nodes.size(); ++i) {
    const KernelNode& n = spec.nodes[i];
    if (((dependence[i] >> plan.vector_dim) & 1) == 0 && n.kind != KernelNode::Kind::kReduce) continue;
    bytes = std::max(bytes, RegisterBytes(n.dtype));
    if (n.kind == KernelNode::Kind::kOp) ++ops;
    if (n.kind == KernelNode::Kind::kLoad) {
      const Dim c = n.access.offset.Coefficient(plan.vector_dim);
      if (!n.access.dynamic.empty() || !(c == Dim(1) || c == Dim(0))) bytes = 8;  // vectors of addresses
    }
  }
  if (spec.PointCost() > 0.45) expensive = true;
  int lanes = std::min(64, (expensive || ops > 20 ? 2 : 4) * target.vector_bytes / bytes);
  if (ops > 400) lanes = std::max(4, lanes / 2);
  const std::optional<int64_t> size = spec.sizes[plan.vector_dim].TryValue();
  if (size) {
    while (lanes > 2 && lanes / 2 >= *size) lanes /= 2;
    // A remainder of more than a quarter of a short row: narrower vectors waste less.
    while (lanes > 4 && *size < 4 * lanes && *size % lanes != 0 && *size % lanes <= lanes / 2) lanes /= 2;
  }
  plan.lanes = lanes;
  plan.may_have_tail = !size || *size % lanes != 0;
  if (!plan.vector_inner) {
    // Blocks of a few microseconds.
    const double inner = plan.unit_points;
    int64_t block = static_cast<int64_t>(std::clamp(8192.0 / (inner * std::max(0.25, spec.PointCost())), 1.0, 16384.0));
    block = std::max<int64_t>((block + lanes - 1) / lanes, 1) * lanes;
    if (size && *size < block + block / 2) block = std::max<int64_t>((*size + lanes - 1) / lanes, 1) * lanes;
    plan.block = block;
    plan.unit_points *= static_cast<double>(size ? std::min(*size, block) : block);
  }
  return plan;
}

}  // namespace weft
