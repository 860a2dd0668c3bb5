#include "lowering/kernel/split_reduction.h"

#include <algorithm>

namespace weft {
namespace {

using Kind = KernelNode::Kind;

constexpr double kWorthSplitting = 40000;  // nanoseconds
// Shorter reductions keep the order that they have in the interpreter (ir/prims/reduction_order.h).
constexpr double kFewestPoints = 65536;
// Columns of a unit, where the rows of a strip are read along memory (loop_plan.cc).
constexpr int64_t kColumnsOfAUnit = 256;
constexpr int64_t kEnoughUnits = 16, kMaxParts = 64, kMinPartPoints = 16384;

// Partial results keep the precision of registers.
DType PartialType(DType t) { return IsFloat(t) && ByteWidth(t) < 4 ? DType::kF32 : t; }

bool Inner(const KernelSpec& k, uint64_t mask) { return (mask >> k.num_outer) != 0; }

}  // namespace

std::optional<SplitReduction> SplitLongReduction(const KernelSpec& kernel) {
  const int outer = kernel.num_outer, rank = static_cast<int>(kernel.sizes.size());
  if (rank == outer || !kernel.spills.empty()) return std::nullopt;
  int64_t rows = 1, row = 1;
  int longest = outer;
  for (int v = 0; v < rank; ++v) {
    const std::optional<int64_t> n = kernel.sizes[v].TryValue();
    if (!n || *n == 0) return std::nullopt;
    (v < outer ? rows : row) *= *n;
    if (v >= outer && *n > *kernel.sizes[longest].TryValue()) longest = v;
  }
  const std::vector<int> phases = kernel.Phases();
  const std::vector<uint64_t> dependence = kernel.Dependence();
  bool lanes_outside = false;  // the last outer dimension goes into vector lanes, so that it makes few units
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const KernelNode& n = kernel.nodes[i];
    if (n.kind == Kind::kReduce && phases[i] != 0) return std::nullopt;
    if (n.kind == Kind::kLoad && outer > 0 && Inner(kernel, dependence[i]))
      lanes_outside = lanes_outside || n.access.offset.Coefficient(outer - 1) == Dim(1);
  }
  // A part knows no total: what is stored of every element must not be made from one.
  auto is_row = [&](const KernelStore& s) {
    return !Inner(kernel, dependence[s.node]) && !Inner(kernel, s.access.offset.VarMask());
  };
  auto after_total = [&](int node) { return phases[node] > 0 || kernel.nodes[node].kind == Kind::kReduce; };
  for (const KernelStore& s : kernel.stores) {
    bool late = after_total(s.node);
    for (const Access::Dynamic& d : s.access.dynamic) late = late || after_total(d.node);
    if (late && !is_row(s)) return std::nullopt;
  }
  if ((lanes_outside ? (rows + kColumnsOfAUnit - 1) / kColumnsOfAUnit : rows) >= kEnoughUnits) return std::nullopt;
  const double points = static_cast<double>(rows) * static_cast<double>(row);
  if (points < kFewestPoints || points * kernel.PointCost() < kWorthSplitting) return std::nullopt;
  const int64_t n = *kernel.sizes[longest].TryValue();
  const int64_t wanted = std::min<int64_t>({kMaxParts, static_cast<int64_t>(points) / kMinPartPoints, n / 2});
  if (wanted < 2) return std::nullopt;
  int64_t part = (n + wanted - 1) / wanted;
  if (part > 256) part = (part + 127) / 128 * 128;  // whole vectors
  const int64_t parts = n / part, rest = n - parts * part;
  if (parts < 2) return std::nullopt;

  SplitReduction out;
  // The parts of an argmax or argmin are pairs: the index, and the extreme value by a reduction of its own.
  KernelSpec in_parts = kernel;
  std::vector<int> reductions;
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    if (kernel.nodes[i].kind != Kind::kReduce) continue;
    if (kernel.nodes[i].FindsIndex()) {
      KernelNode extreme = kernel.nodes[i];
      extreme.op = extreme.op.substr(3);
      extreme.operands.resize(1);
      extreme.dtype = kernel.nodes[static_cast<size_t>(extreme.operands[0])].dtype;
      reductions.push_back(static_cast<int>(in_parts.nodes.size()));
      in_parts.nodes.push_back(std::move(extreme));
      in_parts.nodes[i].dtype = kernel.nodes[static_cast<size_t>(kernel.nodes[i].operands[1])].dtype;
    }
    reductions.push_back(static_cast<int>(i));
  }
  Affine at_row;  // position of an outer point among the rows
  Dim stride = 1;
  for (int v = outer; v-- > 0;) {
    at_row = at_row + Affine::Var(v) * stride;
    stride = stride * kernel.sizes[v];
  }
  for (int r : reductions)
    out.partial.push_back(
        Type{PartialType(in_parts.nodes[static_cast<size_t>(r)].dtype), {Dim(parts + (rest > 0)), Dim(rows)}, {}});
  auto partial_access = [&](size_t r, const Affine& offset) {
    return Access{kernel.num_operands + static_cast<int>(r), out.partial[r].dtype, offset, {}};
  };
  auto finish = [&](KernelSpec k) {
    k.num_operands += static_cast<int>(reductions.size());
    k.written.assign(static_cast<size_t>(k.num_operands), false);
    for (const KernelStore& s : k.stores) k.written[s.access.operand] = true;
    k.DropDeadNodes();
    k.Collapse();
    out.kernels.push_back(std::move(k));
  };

  // The parts: one more outer dimension.
  KernelSpec sums = in_parts;
  sums.stores.erase(std::remove_if(sums.stores.begin(), sums.stores.end(), is_row), sums.stores.end());
  KernelSpec left = sums;
  std::vector<Affine> moved, shifted;
  for (int v = 0; v < rank; ++v) {
    const Affine here = Affine::Var(v < outer ? v : v + 1);
    moved.push_back(v == longest ? Affine::Var(outer) * Dim(part) + here : here);
    shifted.push_back(v == longest ? Affine::Var(v) + Affine(Dim(parts * part)) : Affine::Var(v));
  }
  sums.Substitute(moved);
  sums.sizes[longest] = part;
  sums.sizes.insert(sums.sizes.begin() + outer, Dim(parts));
  ++sums.num_outer;
  left.Substitute(shifted);
  left.sizes[longest] = rest;
  for (size_t r = 0; r < reductions.size(); ++r) {
    sums.stores.push_back({reductions[r], partial_access(r, Affine::Var(outer) * Dim(rows) + at_row)});
    left.stores.push_back({reductions[r], partial_access(r, Affine(Dim(parts * rows)) + at_row)});
  }
  finish(std::move(sums));
  if (rest > 0) finish(std::move(left));

  // The combination: the same reductions over the parts, and what was made from them.
  KernelSpec total;
  total.num_outer = outer;
  total.sizes.assign(kernel.sizes.begin(), kernel.sizes.begin() + outer);
  total.sizes.push_back(Dim(parts + (rest > 0)));
  total.num_operands = kernel.num_operands;
  std::vector<int> to(kernel.nodes.size());
  for (size_t i = 0, r = 0; i < kernel.nodes.size(); ++i) {
    KernelNode node = kernel.nodes[i];
    if (node.kind == Kind::kReduce) {
      for (int& o : node.operands) {
        KernelNode load;
        load.kind = Kind::kLoad;
        load.dtype = in_parts.nodes[static_cast<size_t>(reductions[r])].dtype;
        load.access = partial_access(r++, Affine::Var(outer) * Dim(rows) + at_row);
        o = static_cast<int>(total.nodes.size());
        total.nodes.push_back(std::move(load));
      }
    } else {
      for (int& o : node.operands) o = to[o];
      for (auto& d : node.access.dynamic) d.node = to[d.node];
    }
    to[i] = static_cast<int>(total.nodes.size());
    total.nodes.push_back(std::move(node));
  }
  for (KernelStore s : kernel.stores) {
    if (!is_row(s)) continue;
    s.node = to[s.node];
    for (auto& d : s.access.dynamic) d.node = to[d.node];
    total.stores.push_back(std::move(s));
  }
  finish(std::move(total));
  return out;
}

}  // namespace weft
