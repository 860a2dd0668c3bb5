#include "ir/prims/reduction_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <complex>

#include "base/product.h"
#include "ir/ops.h"
#include "ir/prims/elementwise.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

// The dimensions, all reduced, that count as the last one: their first, and how many elements they have.
struct LastDim {
  size_t first;
  Dim size = 1;
};
LastDim ReducedLast(const Dims& sizes, const Ints& dims) {
  LastDim last{sizes.size()};
  while (last.first > 0) {
    const size_t d = last.first - 1;
    const bool reduced = std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end();
    if (!reduced && !(sizes[d] == Dim(1))) break;
    last.first = d;
    last.size = last.size * sizes[d];
  }
  return last;
}

// Where the elements begin whose indices along the other dimensions are 0, in row-major order.
std::vector<int64_t> Offsets(const Shape& shape, const Ints& dims) {
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  std::vector<int64_t> offsets = {0};
  for (int64_t d : dims) {
    const size_t n = offsets.size();
    std::vector<int64_t> more;
    more.reserve(n * static_cast<size_t>(shape[d]));
    for (int64_t at : offsets)
      for (int64_t i = 0; i < shape[d]; ++i) more.push_back(at + i * strides[d]);
    offsets = std::move(more);
  }
  return offsets;
}

// T: of the accumulators; K: of the widest kind, which holds it exactly.
template <class T, class K, class F>
Tensor InOrder(const Tensor& x, const Type& result, const Ints& dims, T neutral, F f) {
  constexpr size_t kMostLanes = 64;
  const auto lanes = static_cast<size_t>(LanesOfReduction(x.type(), dims));
  const std::vector<K> values = LoadAs<K>(x);
  Ints kept = OtherDims(x.rank(), dims), rows = dims;
  int64_t in_lanes = 1;
  if (lanes > 1) {
    const LastDim last = ReducedLast(x.type().dims, dims);
    in_lanes = last.size.value();
    std::erase_if(kept, [&](int64_t d) { return static_cast<size_t>(d) >= last.first; });  // of size 1
    std::erase_if(rows, [&](int64_t d) { return static_cast<size_t>(d) >= last.first; });
  }
  const std::vector<int64_t> row_offsets = Offsets(x.shape(), rows);
  std::vector<K> y;
  for (int64_t at : Offsets(x.shape(), kept)) {
    std::array<T, kMostLanes> sums;
    const size_t used = std::min(lanes, std::bit_ceil(static_cast<size_t>(in_lanes)));
    std::fill_n(sums.begin(), used, neutral);
    for (int64_t row : row_offsets) {
      const K* const from = values.data() + at + row;
      for (int64_t j = 0; j < in_lanes; ++j) {
        T& sum = sums[static_cast<size_t>(j) & (used - 1)];
        sum = f(sum, static_cast<T>(from[j]));
      }
    }
    for (size_t half = used / 2; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i) sums[i] = f(sums[i], sums[i + half]);
    y.push_back(static_cast<K>(sums[0]));
  }
  return StoreAs<K>(result.dtype, StaticSizes(result.dims, "eval"), y);
}

template <class F>
Tensor InOrder(const Tensor& x, const Type& result, const Ints& dims, float neutral, F f) {
  using C = std::complex<double>;
  switch (x.dtype()) {
    case DType::kC128: return InOrder<C, C>(x, result, dims, static_cast<double>(neutral), f);
    case DType::kC64: return InOrder<std::complex<float>, C>(x, result, dims, neutral, f);
    case DType::kF64: return InOrder<double, double>(x, result, dims, neutral, f);
    default: return InOrder<float, double>(x, result, dims, neutral, f);
  }
}

}  // namespace

int LanesOfReduction(const Type& operand, const Ints& dims) {
  if (!IsInexact(operand.dtype)) return 0;
  const LastDim last = ReducedLast(operand.dims, dims);
  const std::optional<int64_t> size = last.size.TryValue();
  return size && *size < kShortestInLanes ? 1 : LanesOf(operand.dtype);
}

Tensor SumInOrder(const Tensor& x, const Type& result, const Ints& dims) {
  return InOrder(x, result, dims, 0, [](auto a, auto b) { return a + b; });
}

Tensor ProductInOrder(const Tensor& x, const Type& result, const Ints& dims) {
  return InOrder(x, result, dims, 1, [](auto a, auto b) { return Product(a, b); });
}

}  // namespace weft
