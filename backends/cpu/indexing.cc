// Scatter: windows of updates combined into an array at positions that data decide.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "backends/cpu/runtime.h"
#include "ir/dtype.h"

namespace weft::cpu {
namespace {

enum ScatterKind { kSet, kAdd, kMul, kMin, kMax };

bool Has(const std::vector<int64_t>& list, int64_t v) { return std::find(list.begin(), list.end(), v) != list.end(); }

std::vector<int64_t> Strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> s(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) s[i - 1] = s[i] * shape[i];
  return s;
}

template <class T>
void Combine(T* to, T u, int64_t kind) {
  switch (kind) {
    case kSet: *to = u; return;
    case kAdd:
      if constexpr (std::is_same_v<T, bool>)
        *to = *to || u;
      else
        *to = static_cast<T>(*to + u);
      return;
    case kMul: *to = static_cast<T>(*to * u); return;
    default:
      if constexpr (!std::is_same_v<T, std::complex<float>> && !std::is_same_v<T, std::complex<double>>) {
        const T v = *to;
        if (v != v || u != u)
          *to = v != v ? v : u;  // NaN wins
        else if (kind == kMin ? u < v : u > v)
          *to = u;
      }
  }
}

// [operand (the result, updated in place), indices, updates, kind, clip, update_window_dims, inserted_dims,
//  operand_batch_dims, indices_batch_dims, scatter_dims], lists with their length in front.
void Scatter(WeftFrame* frame, const int64_t* desc) {
  DescReader r(frame, desc);
  const DenseTensor x(r), indices(r), updates(r);
  const int64_t kind = r.Int();
  const bool clip = r.Int() != 0;
  const std::vector<int64_t> window_dims = r.Ints(), inserted = r.Ints(), operand_batch = r.Ints(),
                             indices_batch = r.Ints(), scatter_dims = r.Ints();
  const std::vector<int64_t> xs = Strides(x.shape), is = Strides(indices.shape), us = Strides(updates.shape);
  const size_t rank = updates.shape.size();
  // Updates' dimensions: windows walk the operand, the others walk the indices.
  std::vector<int64_t> batch_dims, window_strides, window_sizes(x.shape.size(), 1), window_shape;
  size_t w = 0;
  for (size_t d = 0; d < x.shape.size(); ++d) {
    if (Has(inserted, static_cast<int64_t>(d)) || Has(operand_batch, static_cast<int64_t>(d))) continue;
    window_sizes[d] = updates.shape[window_dims[w++]];
    window_strides.push_back(xs[d]);
    window_shape.push_back(window_sizes[d]);
  }
  for (size_t d = 0; d < rank; ++d) {
    if (!Has(window_dims, static_cast<int64_t>(d))) batch_dims.push_back(static_cast<int64_t>(d));
  }
  int64_t batches = 1, window = 1;
  for (int64_t d : batch_dims) batches *= updates.shape[d];
  for (int64_t n : window_shape) window *= n;
  if (batches == 0 || window == 0) return;
  auto index_at = [&](int64_t offset) -> int64_t {
    return VisitDType(static_cast<DType>(indices.dtype), [&](auto tag) -> int64_t {
      using I = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<I>) {
        const I v = indices.as<I>()[offset];
        if constexpr (std::is_unsigned_v<I>) {
          if (static_cast<uint64_t>(v) > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
            return std::numeric_limits<int64_t>::max();
        }
        return static_cast<int64_t>(v);
      }
      return 0;
    });
  };
  VisitDType(static_cast<DType>(x.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = x.as<T>();
    const T* from = updates.as<T>();
    std::vector<int64_t> at(batch_dims.size(), 0), in(window_shape.size(), 0);
    for (int64_t b = 0; b < batches; ++b) {
      int64_t index_base = 0, base = 0, source = 0;
      for (size_t i = 0; i < at.size(); ++i) {
        index_base += at[i] * is[i];
        source += at[i] * us[batch_dims[i]];
      }
      bool inside = true;
      for (size_t k = 0; k < scatter_dims.size(); ++k) {
        const int64_t d = scatter_dims[k], last = x.shape[d] - window_sizes[d];
        int64_t start = index_at(index_base + static_cast<int64_t>(k) * (is.empty() ? 0 : is.back()));
        if (clip)
          start = std::clamp<int64_t>(start, 0, std::max<int64_t>(0, last));
        else
          inside = inside && start >= 0 && start <= last;
        base += start * xs[d];
      }
      for (size_t k = 0; k < operand_batch.size(); ++k) base += at[indices_batch[k]] * xs[operand_batch[k]];
      if (inside) {
        std::fill(in.begin(), in.end(), 0);
        for (int64_t i = 0; i < window; ++i) {
          int64_t offset = base, read = source;
          for (size_t d = 0; d < in.size(); ++d) {
            offset += in[d] * window_strides[d];
            read += in[d] * us[window_dims[d]];
          }
          Combine(to + offset, from[read], kind);
          for (size_t d = in.size(); d-- > 0;) {
            if (++in[d] < window_shape[d]) break;
            in[d] = 0;
          }
        }
      }
      for (size_t i = at.size(); i-- > 0;) {
        if (++at[i] < updates.shape[batch_dims[i]]) break;
        at[i] = 0;
      }
    }
  });
}

}  // namespace

void FillIndexing(WeftOp* ops) { ops[WEFT_OP_SCATTER] = Scatter; }

}  // namespace weft::cpu
