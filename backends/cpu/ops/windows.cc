// Windows sliding over arrays: reduce_window and convolution. Convolution of f32 is oneDNN's where it has it; other
// convolutions of inexact numbers gather the windows of one image into a matrix (im2col) and multiply; the rest is a
// direct loop.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backends/cpu/core/buffer_cache.h"
#include "backends/cpu/core/runtime.h"
#include "backends/cpu/core/thread_pool.h"
#include "backends/cpu/core/wide.h"
#include "backends/cpu/ops/convolution.h"
#include "backends/cpu/ops/gemm.h"
#include "base/dtype.h"
#include "base/product.h"

namespace weft::cpu {
namespace {

// What windows are summed in.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, bool>, int32_t, Wide<T>>;

std::vector<int64_t> Strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> s(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) s[i - 1] = s[i] * shape[i];
  return s;
}
int64_t Count(const std::vector<int64_t>& shape, size_t from = 0) {
  int64_t n = 1;
  for (size_t i = from; i < shape.size(); ++i) n *= shape[i];
  return n;
}
void Unravel(int64_t i, const std::vector<int64_t>& shape, std::vector<int64_t>& at) {
  for (size_t d = shape.size(); d-- > 0;) {
    at[d] = i % shape[d];
    i /= shape[d];
  }
}
bool Next(std::vector<int64_t>& at, const std::vector<int64_t>& shape) {
  for (size_t d = shape.size(); d-- > 0;) {
    if (++at[d] < shape[d]) return true;
    at[d] = 0;
  }
  return false;
}

// Element under window position `at` in place `place`; -1 for padding and holes.
struct Windows {
  std::vector<int64_t> strides, lo, base_dilation, window_dilation;
  int64_t Source(size_t d, int64_t place, int64_t at, int64_t n) const {
    const int64_t i = place * strides[d] + at * window_dilation[d] - lo[d];
    return i < 0 || i % base_dilation[d] != 0 || i / base_dilation[d] >= n ? -1 : i / base_dilation[d];
  }
};

void ReduceWindow(WeftFrame* frame, const abi::ReduceWindow<InWords>& op) {
  using Kind = abi::WindowKind;
  const DenseTensor x(frame, op.x), y(frame, op.result);
  const Kind kind = op.kind;
  const std::vector<int64_t> window = Ints(op.window);
  const Windows w{Ints(op.strides), Ints(op.lo), Ints(op.base_dilation), Ints(op.window_dilation)};
  const std::vector<int64_t> xs = Strides(x.shape);
  VisitDType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using W = Sum<T>;
    W neutral = W(0);
    if constexpr (!kIsComplex<T>) {
      if constexpr (kIsInteger<T>) {
        using L = std::numeric_limits<T>;
        if (kind == Kind::kMax) neutral = static_cast<W>(L::lowest());
        if (kind == Kind::kMin) neutral = static_cast<W>(L::max());
      } else {
        const W infinity = std::numeric_limits<W>::infinity();
        if (kind != Kind::kSum) neutral = kind == Kind::kMax ? -infinity : infinity;
      }
    }
    const T* data = x.as<T>();
    T* out = y.as<T>();
    const int64_t size = Count(window);
    ParallelFor(y.size(), 2 * y.size() * size, [&](int64_t begin, int64_t end) {
      std::vector<int64_t> place(y.shape.size()), at(window.size());
      for (int64_t i = begin; i < end; ++i) {
        Unravel(i, y.shape, place);
        W sum = neutral;
        std::fill(at.begin(), at.end(), 0);
        if (size != 0) {
          do {
            int64_t offset = 0;
            bool inside = true;
            for (size_t d = 0; d < at.size() && inside; ++d) {
              const int64_t s = w.Source(d, place[d], at[d], x.shape[d]);
              inside = s >= 0;
              offset += s * xs[d];
            }
            if (!inside) continue;
            const W v = static_cast<W>(data[offset]);
            if (kind == Kind::kSum)
              sum = static_cast<W>(sum + v);
            else if constexpr (!kIsComplex<T>)
              sum = sum != sum ? sum : v != v ? v : kind == Kind::kMax ? std::max(sum, v) : std::min(sum, v);
          } while (Next(at, window));
        }
        out[i] = static_cast<T>(sum);
      }
    });
  });
}

// The shape, and where its windows read.
struct Convolution : ConvolutionShape {
  explicit Convolution(const ConvolutionShape& shape)
      : ConvolutionShape(shape), windows{strides, lo, base_dilation, window_dilation} {}
  Windows windows;
};

template <class T>
void Direct(const Convolution& c, const T* x, const T* w, T* y) {
  using W = Sum<T>;
  const std::vector<int64_t> xs = Strides(c.x), ws = Strides(c.w);
  const int64_t inputs = c.w[1], group = std::max<int64_t>(1, c.y[1] / std::max(c.feature_groups, c.batch_groups));
  const std::vector<int64_t> window(c.w.begin() + 1, c.w.end());
  const int64_t size = Count(window), total = Count(c.y);
  ParallelFor(total, 2 * total * size, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> out(c.y.size()), at(window.size());
    for (int64_t i = begin; i < end; ++i) {
      Unravel(i, c.y, out);
      const int64_t g = out[1] / group;
      const int64_t n = c.batch_groups > 1 ? g * c.y[0] + out[0] : out[0];
      const int64_t first = c.feature_groups > 1 ? g * inputs : 0;
      W sum = W(0);
      std::fill(at.begin(), at.end(), 0);
      int64_t k = out[1] * ws[0];
      if (size != 0) {
        do {
          int64_t from = n * xs[0] + (first + at[0]) * xs[1];
          bool inside = true;
          for (size_t d = 1; d < at.size() && inside; ++d) {
            const int64_t s = c.windows.Source(d - 1, out[d + 1], at[d], c.x[d + 1]);
            inside = s >= 0;
            from += s * xs[d + 1];
          }
          if (inside) sum = static_cast<W>(sum + Product(static_cast<W>(x[from]), static_cast<W>(w[k])));
          ++k;
        } while (Next(at, window));
      }
      y[i] = static_cast<T>(sum);
    }
  });
}

template <class T>
void ByProducts(const Convolution& c, const T* x, const T* w, T* y) {
  const std::vector<int64_t> xs = Strides(c.x), ys = Strides(c.y);
  const int64_t groups = std::max(c.feature_groups, c.batch_groups);
  const int64_t outputs = c.y[1] / groups, inputs = c.w[1];
  const std::vector<int64_t> places(c.y.begin() + 2, c.y.end()), window(c.w.begin() + 2, c.w.end());
  const int64_t num_places = Count(places), num_window = Count(window), depth = inputs * num_window;
  const size_t spatial = places.size();
  const int64_t images = c.y[0];
  // Rows of places, so many at a time that what their windows read stays in the nearer caches, but enough of them that
  // the weights are read for a reason.
  const int64_t width = spatial == 0 ? 1 : places[spatial - 1], num_rows = num_places / std::max<int64_t>(width, 1);
  const int64_t row_bytes = std::max<int64_t>(1, depth * width * static_cast<int64_t>(sizeof(T)));
  const int64_t block_rows = std::min(
      std::max<int64_t>(num_rows, 1),
      std::max<int64_t>({1, (int64_t{384} << 10) / row_bytes, (256 + width - 1) / std::max<int64_t>(width, 1)}));
  const int64_t blocks = num_rows == 0 ? 0 : (num_rows + block_rows - 1) / block_rows;
  // Where each place and window position read, one dimension at a time.
  auto image = [&](int64_t n, int64_t g, int64_t block) {
    const int64_t first_row = block * block_rows,
                  here = (std::min(num_rows, first_row + block_rows) - first_row) * width;
    std::vector<int64_t> first_place(spatial, 0);
    for (int64_t rest = first_row, d = static_cast<int64_t>(spatial) - 2; d >= 0; --d) {
      first_place[d] = rest % places[d];
      rest /= places[d];
    }
    const int64_t source = c.batch_groups > 1 ? g * images + n : n;
    const T* from = x + source * xs[0] + (c.feature_groups > 1 ? g * inputs : 0) * xs[1];
    const int64_t bytes = std::max<int64_t>(64, depth * here * static_cast<int64_t>(sizeof(T)));
    T* columns = static_cast<T*>(AllocateRaw(bytes));
    for (int64_t i = 0; i < inputs; ++i) {
      std::vector<int64_t> at(spatial, 0);
      for (int64_t k = 0; k < num_window; ++k) {
        T* row = columns + (i * num_window + k) * here;
        std::vector<int64_t> p = first_place;
        if (spatial == 0) {
          row[0] = from[i * xs[1]];
        } else {
          // Rows of the last dimension.
          const size_t last = spatial - 1;
          for (int64_t q = 0; q < here; q += width) {
            int64_t base = i * xs[1];
            bool inside = true;
            for (size_t d = 0; d < last && inside; ++d) {
              const int64_t s = c.windows.Source(d, p[d], at[d], c.x[d + 2]);
              inside = s >= 0;
              base += s * xs[d + 2];
            }
            if (!inside) {
              std::fill(row + q, row + q + width, T(0));
            } else if (c.windows.strides[last] == 1 && c.windows.base_dilation[last] == 1) {
              const int64_t shift = at[last] * c.windows.window_dilation[last] - c.windows.lo[last],
                            n_last = c.x[last + 2];
              const int64_t first = std::clamp<int64_t>(-shift, 0, width),
                            end = std::clamp<int64_t>(n_last - shift, first, width);
              std::fill(row + q, row + q + first, T(0));
              if (end > first)
                std::memcpy(static_cast<void*>(row + q + first), from + base + first + shift,
                            static_cast<size_t>(end - first) * sizeof(T));
              std::fill(row + q + end, row + q + width, T(0));
            } else if (c.windows.base_dilation[last] == 1) {
              // Every stride-th element, from the first place that reads inside to the last.
              const int64_t stride = c.windows.strides[last], n_last = c.x[last + 2],
                            shift = at[last] * c.windows.window_dilation[last] - c.windows.lo[last];
              const int64_t first = std::min(width, shift >= 0 ? 0 : (-shift + stride - 1) / stride);
              const int64_t end = std::clamp<int64_t>((n_last - shift + stride - 1) / stride, first, width);
              const T* in = from + base + shift;
              std::fill(row + q, row + q + first, T(0));
              for (int64_t j = first; j < end; ++j) row[q + j] = in[j * stride];
              std::fill(row + q + end, row + q + width, T(0));
            } else {
              for (int64_t j = 0; j < width; ++j) {
                const int64_t s = c.windows.Source(last, j, at[last], c.x[last + 2]);
                row[q + j] = s < 0 ? T(0) : from[base + s];
              }
            }
            for (size_t d = last; d-- > 0;) {
              if (++p[d] < places[d]) break;
              p[d] = 0;
            }
          }
        }
        Next(at, window);
      }
    }
    Gemm<T>(false, false, outputs, here, depth, w + g * outputs * depth, depth, columns, here,
            y + n * ys[0] + g * outputs * ys[1] + first_row * width, num_places);
    FreeRaw(columns, bytes);
  };
  const double flops = 2.0 * static_cast<double>(images) * static_cast<double>(groups) * static_cast<double>(outputs) *
                       static_cast<double>(num_places) * static_cast<double>(depth);
  ParallelFor(images * groups * blocks, static_cast<int64_t>(flops / 40), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) image(i / blocks / groups, i / blocks % groups, i % blocks);
  });
}

// An operand of a convolution, which may lie by strides.
struct ConvOperand {
  const void* data;
  std::vector<int64_t> shape, strides;
  ConvOperand(WeftFrame* frame, const abi::Strided<InWords>& a)
      : data(static_cast<const char*>(frame->slots[a.place]) + a.start * ByteWidth(a.dtype)),
        shape(a.dims.begin(), a.dims.end()),
        strides(a.strides.begin(), a.strides.end()) {
    // Whatever a dimension of one element has, none overlaps with the next.
    for (size_t d = shape.size(); d-- > 0;) {
      if (shape[d] == 1) strides[d] = d + 1 < shape.size() ? std::abs(strides[d + 1]) * shape[d + 1] : 1;
    }
  }
};

// Its elements in row-major order: the array itself where it lies so, or a copy in `buffer`.
template <class T>
class Dense {
 public:
  explicit Dense(const ConvOperand& x) : data_(static_cast<const T*>(x.data)) {
    const int64_t size = Count(x.shape);
    if (x.strides == Strides(x.shape) || size == 0) return;
    bytes_ = std::max<int64_t>(64, size * static_cast<int64_t>(sizeof(T)));
    T* to = static_cast<T*>(AllocateRaw(bytes_));
    const T* from = data_;
    data_ = to, owned_ = to;
    const int64_t last = x.shape.empty() ? 1 : x.shape.back(), step = x.shape.empty() ? 1 : x.strides.back();
    ParallelFor(size / last, size, [&](int64_t begin, int64_t end) {
      std::vector<int64_t> at(x.shape.size(), 0);
      for (int64_t row = begin; row < end; ++row) {
        int64_t offset = 0, rest = row;
        for (size_t d = x.shape.size() - (x.shape.empty() ? 0 : 1); d-- > 0;) {
          offset += rest % x.shape[d] * x.strides[d];
          rest /= x.shape[d];
        }
        for (int64_t i = 0; i < last; ++i) to[row * last + i] = from[offset + i * step];
      }
    });
  }
  ~Dense() {
    if (owned_ != nullptr) FreeRaw(owned_, bytes_);
  }
  Dense(const Dense&) = delete;
  Dense& operator=(const Dense&) = delete;
  const T* data() const { return data_; }

 private:
  const T* data_;
  T* owned_ = nullptr;
  int64_t bytes_ = 0;
};

void Conv(WeftFrame* frame, const abi::Convolution<InWords>& op) {
  const ConvOperand x(frame, op.x), w(frame, op.w);
  const DenseTensor y(frame, op.result);
  const ConvolutionShape shape{x.shape,
                               w.shape,
                               y.shape,
                               x.strides,
                               w.strides,
                               Ints(op.strides),
                               Ints(op.lo),
                               Ints(op.base_dilation),
                               Ints(op.window_dilation),
                               op.feature_groups,
                               op.batch_groups};
  if (y.size() == 0) return;
  const bool some = Count(x.shape) != 0 && Count(w.shape) != 0;
  VisitDType(y.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, float>) {
      if (some && ConvolveByLibrary(shape, static_cast<const T*>(x.data), static_cast<const T*>(w.data), y.as<T>()))
        return;
    }
    const Convolution c(shape);
    const Dense<T> dense_x(x), dense_w(w);
    if constexpr (std::is_floating_point_v<T> || kIsComplex<T>) {
      if (Count(w.shape) != 0) return ByProducts<T>(c, dense_x.data(), dense_w.data(), y.as<T>());
    }
    if constexpr (!std::is_same_v<T, bool>) Direct<T>(c, dense_x.data(), dense_w.data(), y.as<T>());
  });
}

}  // namespace

void FillWindows(WeftOp* ops) {
  Put<ReduceWindow>(ops);
  Put<Conv>(ops);
}

}  // namespace weft::cpu
