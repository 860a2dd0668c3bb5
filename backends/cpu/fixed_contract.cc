// Contractions whose sums are taken in one order, whatever is computed beside them (transforms/fixed_order.h): terms in
// leaves, one after the other and in double precision; leaves, rounded, in a binary tree.
#include "backends/cpu/fixed_contract.h"

#include <algorithm>
#include <complex>
#include <type_traits>
#include <utility>

#include "backends/cpu/thread_pool.h"

namespace weft::cpu {
namespace {

template <class R>
using Wide = std::conditional_t<std::is_floating_point_v<R>, double, std::complex<double>>;

// One row of the result: n sums of k products. y is k rows of n numbers. The last three are room.
template <class T, class R>
void Row(const T* x, const std::vector<int64_t>& xk, const Wide<R>* y, int64_t terms_of_leaf, R* out,
         const std::vector<int64_t>& on, std::vector<Wide<R>>& leaf, std::vector<R>& sum,
         std::vector<std::vector<R>>& tree) {
  const size_t n = on.size(), k = xk.size();
  // tree[l] has the sum of 2^l leaves where bit l of the number of leaves so far is set.
  size_t leaves = 0;
  for (size_t first = 0; first < k || leaves == 0; first += static_cast<size_t>(terms_of_leaf)) {
    std::fill(leaf.begin(), leaf.end(), Wide<R>(0));
    const size_t end = std::min(k, first + static_cast<size_t>(terms_of_leaf));
    for (size_t t = first; t < end; ++t) {
      const Wide<R> a(x[xk[t]]);
      const Wide<R>* __restrict row = y + t * n;
      Wide<R>* __restrict to = leaf.data();
      for (size_t j = 0; j < n; ++j) to[j] += a * row[j];
    }
    size_t level = 0;
    if (tree.empty()) tree.emplace_back(n);
    for (size_t j = 0; j < n; ++j) sum[j] = static_cast<R>(leaf[j]);
    for (; leaves >> level & 1; ++level) {
      for (size_t j = 0; j < n; ++j) sum[j] = tree[level][j] + sum[j];
      if (tree.size() == level + 1) tree.emplace_back(n);
    }
    std::swap(tree[level], sum);
    ++leaves;
  }
  // What is left: the smallest first, as TreeMiddle (collectives.h) divides.
  size_t smallest = 0;
  while ((leaves >> smallest & 1) == 0) ++smallest;
  std::copy(tree[smallest].begin(), tree[smallest].end(), sum.begin());
  for (size_t level = smallest + 1; leaves >> level != 0; ++level) {
    for (size_t j = 0; leaves >> level & 1 && j < n; ++j) sum[j] = tree[level][j] + sum[j];
  }
  for (size_t j = 0; j < n; ++j) out[on[j]] = sum[j];
}

template <class T, class R>
void Run(const FixedContraction& c) {
  const T* x = static_cast<const T*>(c.x);
  const T* y = static_cast<const T*>(c.y);
  R* out = static_cast<R*>(c.out);
  const size_t n = c.yn.size(), k = c.xk.size();
  const auto rows = static_cast<int64_t>(c.xm.size());
  if (rows == 0 || n == 0) return;
  std::vector<Wide<R>> packed(k * n);
  for (size_t batch = 0; batch < c.xb.size(); ++batch) {
    for (size_t t = 0; t < k; ++t) {
      const T* row = y + c.yb[batch] + c.yk[t];
      for (size_t j = 0; j < n; ++j) packed[t * n + j] = Wide<R>(row[c.yn[j]]);
    }
    ParallelFor(rows, rows * static_cast<int64_t>(n * k + n) / 2, [&](int64_t begin, int64_t end) {
      std::vector<Wide<R>> leaf(n);
      std::vector<R> sum(n);
      std::vector<std::vector<R>> tree;
      for (int64_t m = begin; m < end; ++m)
        Row<T, R>(x + c.xb[batch] + c.xm[static_cast<size_t>(m)], c.xk, packed.data(), c.leaf,
                  out + c.ob[batch] + c.om[static_cast<size_t>(m)], c.on, leaf, sum, tree);
    });
  }
}

}  // namespace

std::string RunFixedContraction(const FixedContraction& c, DType operands, DType result) {
  using C64 = std::complex<float>;
  using C128 = std::complex<double>;
  if (operands == DType::kF32 && result == DType::kF32) return Run<float, float>(c), "";
  if (operands == DType::kF32 && result == DType::kF64) return Run<float, double>(c), "";
  if (operands == DType::kF64 && result == DType::kF64) return Run<double, double>(c), "";
  if (operands == DType::kF64 && result == DType::kF32) return Run<double, float>(c), "";
  if (operands == DType::kC64 && result == DType::kC64) return Run<C64, C64>(c), "";
  if (operands == DType::kC64 && result == DType::kC128) return Run<C64, C128>(c), "";
  if (operands == DType::kC128 && result == DType::kC128) return Run<C128, C128>(c), "";
  if (operands == DType::kC128 && result == DType::kC64) return Run<C128, C64>(c), "";
  return std::string("a contraction of fixed order from ") + Name(operands) + " to " + Name(result);
}

}  // namespace weft::cpu
