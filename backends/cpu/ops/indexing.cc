// Scatter: windows of updates combined into an array at positions that data decide.
#include <algorithm>
#include <bit>
#include <complex>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>

#include "backends/cpu/core/runtime.h"
#include "backends/cpu/core/thread_pool.h"
#include "base/dtype.h"
#include "base/product.h"

namespace weft::cpu {
namespace {

using Kind = abi::ScatterKind;

bool Has(std::span<const int64_t> list, int64_t v) { return std::find(list.begin(), list.end(), v) != list.end(); }

std::vector<int64_t> Strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> s(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) s[i - 1] = s[i] * shape[i];
  return s;
}

// Which one it is follows no pattern that a processor could predict: no branch.
template <class T>
T Choose(bool first, T a, T b) {
  using Word = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
  const Word x = std::bit_cast<Word>(a), y = std::bit_cast<Word>(b);
  return std::bit_cast<T>(static_cast<Word>(y ^ ((x ^ y) & -static_cast<Word>(first))));
}

template <class T>
void Combine(T* to, T u, Kind kind) {
  switch (kind) {
    case Kind::kSet: *to = u; return;
    case Kind::kAdd:
      if constexpr (std::is_same_v<T, bool>)
        *to = *to || u;
      else
        *to = static_cast<T>(*to + u);
      return;
    case Kind::kMul: *to = Product(*to, u); return;
    default:
      if constexpr (!std::is_same_v<T, std::complex<float>> && !std::is_same_v<T, std::complex<double>>) {
        const T v = *to;
        const bool beyond = kind == Kind::kMin ? u < v : u > v, only_nan = (u != u) & (v == v);  // NaN wins
        *to = Choose(beyond | only_nan, u, v);
      }
  }
}

// Calls f with the kind as a type, for loops in which it does not change.
template <class F>
void WithKind(Kind kind, const F& f) {
  switch (kind) {
    case Kind::kSet: return f(std::integral_constant<Kind, Kind::kSet>());
    case Kind::kAdd: return f(std::integral_constant<Kind, Kind::kAdd>());
    case Kind::kMul: return f(std::integral_constant<Kind, Kind::kMul>());
    case Kind::kMin: return f(std::integral_constant<Kind, Kind::kMin>());
    default: return f(std::integral_constant<Kind, Kind::kMax>());
  }
}

// Contiguous values at `to` combined with those at `from`.
template <class T>
void CombineRun(T* to, const T* from, int64_t n, Kind kind) {
  if (kind == Kind::kSet) return static_cast<void>(std::copy(from, from + n, to));
  WithKind(kind, [&](auto known) {
    for (int64_t i = 0; i < n; ++i) Combine(to + i, from[i], decltype(known)::value);
  });
}

// A scatter as a list of windows: each begins at `start` in the operand (-1: dropped) and at `source` in the updates,
// and has the same dimensions, of which the last is contiguous on both sides where possible.
struct Windows {
  std::vector<int64_t> shape, to_strides, from_strides;
  int64_t run = 1;  // contiguous elements in each of the points of `shape`

  void Collapse() {
    for (size_t d = shape.size(); d-- > 0;) {
      if (shape[d] != 1 && (to_strides[d] != run || from_strides[d] != run)) continue;
      run *= shape[d];
      shape.erase(shape.begin() + static_cast<int64_t>(d));
      to_strides.erase(to_strides.begin() + static_cast<int64_t>(d));
      from_strides.erase(from_strides.begin() + static_cast<int64_t>(d));
    }
  }
  template <class T>
  void Apply(T* to, const T* from, Kind kind) const {
    if (shape.empty()) return CombineRun(to, from, run, kind);
    int64_t few[16] = {};
    std::vector<int64_t> many(shape.size() > std::size(few) ? shape.size() : 0);
    int64_t* const at = many.empty() ? few : many.data();
    for (;;) {
      CombineRun(to, from, run, kind);
      size_t d = shape.size();
      for (; d-- > 0;) {
        to += to_strides[d], from += from_strides[d];
        if (++at[d] < shape[d]) break;
        to -= to_strides[d] * shape[d], from -= from_strides[d] * shape[d];
        at[d] = 0;
      }
      if (d == static_cast<size_t>(-1)) return;
    }
  }
};

// Where a run of windows begins: in the operand (-1: dropped) and in the updates.
struct Places {
  static constexpr int64_t kMost = 512;
  int64_t starts[kMost], sources[kMost];
};

// Combines single elements: `combine` takes a place and a value.
template <class T, class F>
void CombinePoints(T* to, const T* from, const Places& p, int64_t n, const F& combine) {
  for (int64_t i = 0; i < n; ++i) {
    if (p.starts[i] >= 0) combine(to + p.starts[i], from[p.sources[i]]);
  }
}

// Says where windows b ... b + n - 1 begin. It depends on the indices' type, all else on the values', and it is called
// for so many windows at a time that nothing is lost by not compiling the two for each other.
using Fill = std::function<void(int64_t b, int64_t n, Places& places)>;

// Combines, in order, the windows that begin in [first, last) of the operand; that may be all of it.
template <class T>
void ApplyWindows(T* to, const T* from, const Windows& windows, Kind kind, int64_t batches, int64_t first, int64_t last,
                  bool all, const Fill& fill) {
  const bool points = windows.shape.empty() && windows.run == 1;
  Places p;
  for (int64_t b = 0; b < batches; b += Places::kMost) {
    const int64_t n = std::min(Places::kMost, batches - b);
    fill(b, n, p);
    int64_t kept = n;
    if (!all) {
      // Which of them are in the range follows no pattern that a processor could predict: no branch.
      kept = 0;
      for (int64_t i = 0; i < n; ++i) {
        const int64_t start = p.starts[i], source = p.sources[i];
        p.starts[kept] = start, p.sources[kept] = source;
        kept += (start >= first) & (start < last);
      }
      for (int64_t i = 0; points && i < kept; ++i) __builtin_prefetch(to + p.starts[i], 1);
    }
    if (!points) {
      for (int64_t i = 0; i < kept; ++i) {
        if (p.starts[i] >= 0) windows.Apply(to + p.starts[i], from + p.sources[i], kind);
      }
    } else {
      WithKind(kind, [&](auto known) {
        CombinePoints(to, from, p, kept, [](T* y, T u) { Combine(y, u, decltype(known)::value); });
      });
    }
  }
}

// Calls f(number, position) for the numbers [begin, end) of the points of `shape`, in row-major order.
template <class F>
void ForEachPoint(const std::vector<int64_t>& shape, int64_t begin, int64_t end, const F& f) {
  std::vector<int64_t> at(shape.size());
  for (int64_t rest = begin, d = static_cast<int64_t>(shape.size()) - 1; d >= 0; --d) {
    at[d] = rest % shape[d];
    rest /= shape[d];
  }
  for (int64_t b = begin; b < end; ++b) {
    f(b, at);
    for (size_t d = at.size(); d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
}

// Updates of one element are combined in the order of the indices, however many threads work: each applies, in order,
// the windows that begin in its part of the operand.
void Scatter(WeftFrame* frame, const abi::Scatter<InWords>& op) {
  const DenseTensor x(frame, op.result), indices(frame, op.indices), updates(frame, op.updates);
  const Kind kind = op.kind;
  const bool clip = op.clip;
  const std::span<const int64_t> window_dims = op.update_window_dims, inserted = op.inserted_dims,
                                 operand_batch = op.operand_batch_dims, indices_batch = op.indices_batch_dims,
                                 scatter_dims = op.scatter_dims;
  const std::vector<int64_t> xs = Strides(x.shape), is = Strides(indices.shape), us = Strides(updates.shape);
  // Updates' dimensions: windows walk the operand, the others walk the indices.
  std::vector<int64_t> batch_shape, batch_strides, window_sizes(x.shape.size(), 1);
  Windows windows;
  for (size_t d = 0, w = 0; d < x.shape.size(); ++d) {
    if (Has(inserted, static_cast<int64_t>(d)) || Has(operand_batch, static_cast<int64_t>(d))) continue;
    window_sizes[d] = updates.shape[window_dims[w]];
    windows.shape.push_back(window_sizes[d]);
    windows.to_strides.push_back(xs[d]);
    windows.from_strides.push_back(us[window_dims[w++]]);
  }
  for (size_t d = 0; d < updates.shape.size(); ++d) {
    if (Has(window_dims, static_cast<int64_t>(d))) continue;
    batch_shape.push_back(updates.shape[d]);
    batch_strides.push_back(us[d]);
  }
  int64_t batches = 1, window = 1;
  for (int64_t n : batch_shape) batches *= n;
  for (int64_t n : windows.shape) window *= n;
  if (batches == 0 || window == 0 || x.size() == 0) return;
  windows.Collapse();
  // Windows that start in different places share no element, when they are not wider than a point along the dimensions
  // in which they are placed.
  bool disjoint = true;
  for (int64_t d : scatter_dims) disjoint = disjoint && window_sizes[d] == 1;

  const int64_t index_step = is.empty() ? 0 : is.back(), num_indices = static_cast<int64_t>(scatter_dims.size());
  // One index for each of a list of windows needs no position in the batch.
  const bool list = batch_shape.size() == 1 && num_indices == 1 && operand_batch.empty();
  Fill fill;
  VisitDType(indices.dtype, [&](auto index_tag) {
    using I = typename decltype(index_tag)::type;
    if constexpr (kIsInteger<I>) {
      const I* index = indices.as<I>();
      // Where a window begins along dimension d, in elements; -1: outside.
      const auto start_along = [&](int64_t d, int64_t last, I v) {
        int64_t start = static_cast<int64_t>(v);
        if constexpr (std::is_unsigned_v<I>) {
          if (static_cast<uint64_t>(v) > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
            start = std::numeric_limits<int64_t>::max();
        }
        if (clip) return std::clamp<int64_t>(start, 0, std::max<int64_t>(0, last)) * xs[d];
        return start >= 0 && start <= last ? start * xs[d] : int64_t{-1};
      };
      fill = [&, index, start_along](int64_t begin, int64_t n, Places& p) {
        if (list) {
          const int64_t d = scatter_dims[0], last = x.shape[d] - window_sizes[d], step = is[0],
                        stride = batch_strides[0];
          for (int64_t i = 0; i < n; ++i) {
            p.starts[i] = start_along(d, last, index[(begin + i) * step]);
            p.sources[i] = (begin + i) * stride;
          }
          return;
        }
        ForEachPoint(batch_shape, begin, begin + n, [&](int64_t b, const std::vector<int64_t>& at) {
          int64_t place = 0, base = 0, source = 0;
          for (size_t i = 0; i < at.size(); ++i) {
            place += at[i] * is[i];
            source += at[i] * batch_strides[i];
          }
          bool inside = true;
          for (int64_t k = 0; k < num_indices; ++k) {
            const int64_t d = scatter_dims[k];
            const int64_t start = start_along(d, x.shape[d] - window_sizes[d], index[place + k * index_step]);
            inside = inside && start >= 0;
            base += start;
          }
          for (size_t k = 0; k < operand_batch.size(); ++k) base += at[indices_batch[k]] * xs[operand_batch[k]];
          p.starts[b - begin] = inside ? base : -1;
          p.sources[b - begin] = source;
        });
      };
    }
  });
  VisitDType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = x.as<T>();
    const T* from = updates.as<T>();
    // Every part looks at all places. That pays where a place takes long to reach or to combine.
    constexpr int64_t kNear = 1 << 20;
    const int64_t elements = x.size(), bytes = elements * static_cast<int64_t>(sizeof(T));
    const bool far = bytes > kNear || window >= 16;
    const int64_t parts = disjoint && far ? std::min<int64_t>(NumThreads(), elements) : 1;
    const int64_t cost = batches * (3 + window * (sizeof(T) > 8 ? 2 : 1));
    ParallelFor(parts, cost, [&](int64_t begin, int64_t end) {
      const int64_t first = elements / parts * begin, last = end == parts ? elements : elements / parts * end;
      ApplyWindows(to, from, windows, kind, batches, first, last, parts == 1, fill);
    });
  });
}

}  // namespace

void FillIndexing(WeftOp* ops) { Put<Scatter>(ops); }

}  // namespace weft::cpu
