#include "lowering/kernel/transposed_operands.h"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

using Kind = KernelNode::Kind;

// Sums of more addends have enough of them for the lanes; of fewer, registers hold the components.
constexpr int64_t kShortest = 4, kLongest = 128;
constexpr int64_t kFewestResults = 32;  // along the lanes
constexpr int64_t kReadAgain = 8;       // how often an element that is moved once has to be read
constexpr int64_t kWorthIt = 1 << 16;   // points of the domain

// The outer dimension along which the results lie, if what jumps along it lies along the reduced dimension.
int Lanes(const KernelSpec& k) {
  int v = -1;
  for (int d = 0; d < k.num_outer; ++d) {
    if (k.stores[0].access.offset.Coefficient(d) == Dim(1)) v = d;
  }
  return v;
}

}  // namespace

std::optional<TransposedOperands> TransposeForLanes(const KernelSpec& kernel) {
  const int outer = kernel.num_outer, rank = static_cast<int>(kernel.sizes.size()), inner = outer;
  if (outer < 1 || rank != outer + 1 || kernel.stores.empty() || !kernel.spills.empty() || kernel.Tree() >= 0)
    return std::nullopt;
  std::vector<int64_t> sizes;
  int64_t points = 1;
  for (const Dim& d : kernel.sizes) {
    if (!d.is_static() || *d.TryValue() == 0) return std::nullopt;
    sizes.push_back(*d.TryValue());
    points *= sizes.back();
  }
  const int lanes = Lanes(kernel);
  if (lanes < 0 || sizes[inner] < kShortest || sizes[inner] > kLongest || sizes[lanes] < kFewestResults ||
      points < kWorthIt)
    return std::nullopt;
  const std::vector<uint64_t> dependence = kernel.Dependence();
  const auto depends = [](uint64_t mask, int d) { return ((mask >> d) & 1) != 0; };
  for (const KernelStore& s : kernel.stores) {
    const uint64_t mask = dependence[s.node] | s.access.offset.VarMask();
    if (depends(mask, inner) || !s.access.dynamic.empty() || !(s.access.offset.Coefficient(lanes) == Dim(1)))
      return std::nullopt;
  }

  TransposedOperands out;
  KernelSpec reduction = kernel;
  std::vector<std::pair<Access, Access>> moved;  // from, to
  for (KernelNode& n : reduction.nodes) {
    if (n.FindsIndex()) return std::nullopt;
    if (n.kind != Kind::kLoad) continue;
    if (!n.access.dynamic.empty()) return std::nullopt;
    const Dim along_lanes = n.access.offset.Coefficient(lanes), along_inner = n.access.offset.Coefficient(inner);
    if (along_lanes == Dim(0) || along_lanes == Dim(1) || along_inner == Dim(0)) continue;
    if (!(along_inner == Dim(1))) return std::nullopt;
    const auto known = std::find_if(moved.begin(), moved.end(), [&](const auto& m) {
      return m.first.operand == n.access.operand && m.first.offset == n.access.offset;
    });
    if (known != moved.end()) {
      n.access = known->second;
      continue;
    }
    // The copy: the reduced dimension outermost, the lanes' innermost.
    std::vector<int> order = {inner};
    for (int d = 0; d < outer; ++d) {
      if (d != lanes && depends(n.access.offset.VarMask(), d)) order.push_back(d);
    }
    order.push_back(lanes);
    int64_t elements = 1;
    Affine to, from(n.access.offset.constant()), place;
    for (size_t i = order.size(); i-- > 0;) {
      to = to + Affine::Var(order[i]) * Dim(elements);
      place = place + Affine::Var(static_cast<int>(i)) * Dim(elements);
      from = from + Affine::Var(static_cast<int>(i)) * n.access.offset.Coefficient(order[i]);
      elements *= sizes[static_cast<size_t>(order[i])];
    }
    if (elements * kReadAgain > points) return std::nullopt;
    const DType dtype = n.access.dtype;
    const Access copy{kernel.num_operands + static_cast<int>(moved.size()), dtype, to, {}};
    KernelSpec transpose;
    for (int d : order) transpose.sizes.push_back(kernel.sizes[static_cast<size_t>(d)]);
    transpose.num_outer = static_cast<int>(order.size());
    KernelNode load;
    load.kind = Kind::kLoad;
    load.dtype = n.dtype;
    load.access = {n.access.operand, dtype, from, {}};
    transpose.nodes = {load};
    transpose.stores = {{0, {copy.operand, dtype, place, {}}}};
    out.kernels.push_back(std::move(transpose));
    out.transposed.push_back(Type{dtype, {Dim(elements)}, {}});
    moved.emplace_back(n.access, copy);
    n.access = copy;
  }
  if (moved.empty()) return std::nullopt;
  out.kernels.push_back(std::move(reduction));
  for (KernelSpec& k : out.kernels) {
    k.num_operands = kernel.num_operands + static_cast<int>(moved.size());
    k.written.assign(static_cast<size_t>(k.num_operands), false);
    for (const KernelStore& s : k.stores) k.written[static_cast<size_t>(s.access.operand)] = true;
    k.Collapse();
  }
  return out;
}

}  // namespace weft
