// Along one dimension: argmax, argmin, and the cumulative operations.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "backends/cpu/core/runtime.h"
#include "backends/cpu/core/thread_pool.h"
#include "backends/cpu/core/wide.h"
#include "base/dtype.h"
#include "base/product.h"

namespace weft::cpu {
namespace {

// The array as [outer, n, inner] around dimension `dim`.
struct Around {
  int64_t outer = 1, n = 1, inner = 1;
  Around(const std::vector<int64_t>& shape, int64_t dim) {
    for (size_t d = 0; d < shape.size(); ++d) {
      if (static_cast<int64_t>(d) < dim)
        outer *= shape[d];
      else if (static_cast<int64_t>(d) == dim)
        n = shape[d];
      else
        inner *= shape[d];
    }
  }
  // Calls line(first offset) for each line, in parallel.
  template <class F>
  void ForEachLine(double nanoseconds_per_element, const F& line) const {
    const double work =
        static_cast<double>(outer) * static_cast<double>(n) * static_cast<double>(inner) * nanoseconds_per_element;
    ParallelFor(outer * inner, static_cast<int64_t>(work), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) line(i, i / inner * n * inner + i % inner);
    });
  }
};

#pragma GCC push_options
#pragma GCC optimize("O3")
// The largest (smallest) of n > 0 values, NaN if there is one; in lanes that the compiler makes vectors of.
template <bool kSmallest, class T>
[[gnu::always_inline]] inline Wide<T> ExtremeInLanes(const T* v, int64_t n) {
  constexpr int kLanes = 32;
  using W = Wide<T>;
  W top[kLanes], bad[kLanes];
  for (int l = 0; l < kLanes; ++l) top[l] = static_cast<W>(v[0]), bad[l] = W(0);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const W w = static_cast<W>(v[i + l]);
      bad[l] = w != w ? w : bad[l];
      top[l] = (kSmallest ? w < top[l] : w > top[l]) ? w : top[l];
    }
  }
  for (; i < n; ++i) {
    const W w = static_cast<W>(v[i]);
    bad[0] = w != w ? w : bad[0];
    top[0] = (kSmallest ? w < top[0] : w > top[0]) ? w : top[0];
  }
  for (int l = 0; l < kLanes; ++l) {
    if (bad[l] != bad[l]) return bad[l];
    top[0] = (kSmallest ? top[l] < top[0] : top[l] > top[0]) ? top[l] : top[0];
  }
  return top[0];
}
template <bool kSmallest, class T>
Wide<T> BlockExtremeAnywhere(const T* v, int64_t n) {
  return ExtremeInLanes<kSmallest>(v, n);
}
#ifdef __x86_64__
template <bool kSmallest, class T>
[[gnu::target("avx2")]] Wide<T> BlockExtremeAvx2(const T* v, int64_t n) {
  return ExtremeInLanes<kSmallest>(v, n);
}
#endif
#pragma GCC pop_options

template <bool kSmallest, class T>
Wide<T> BlockExtreme(const T* v, int64_t n) {
#ifdef __x86_64__
  static const bool avx2 = __builtin_cpu_supports("avx2");
  if (avx2) return BlockExtremeAvx2<kSmallest>(v, n);
#endif
  return BlockExtremeAnywhere<kSmallest>(v, n);
}

void ArgExtreme(WeftFrame* frame, const abi::ArgExtreme<InWords>& op) {
  const DenseTensor x(frame, op.x);
  void* out = frame->slots[op.result];
  const DType to = op.result_dtype;
  const Around a(x.shape, op.dim);
  const bool smallest = op.smallest;
  VisitDType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!kIsComplex<T>) {
      const T* data = x.as<T>();
      auto write = [&](int64_t line, int64_t best) {
        VisitDType(to, [&](auto out_tag) {
          using I = typename decltype(out_tag)::type;
          if constexpr (kIsInteger<I>) static_cast<I*>(out)[line] = static_cast<I>(best);
        });
      };
      constexpr int64_t kBlock = 4096;
      if (a.inner != 1 || a.n < 2 * kBlock) {
        return a.ForEachLine(1, [&](int64_t line, int64_t base) {
          int64_t best = 0;
          Wide<T> top = static_cast<Wide<T>>(data[base]);
          for (int64_t i = 1; i < a.n && top == top; ++i) {
            const Wide<T> v = static_cast<Wide<T>>(data[base + i * a.inner]);
            if (v != v || (smallest ? v < top : v > top)) top = v, best = i;
          }
          write(line, best);
        });
      }
      // Long lines: the extreme of each block of all of them, then the first block that has it, then its first place.
      const int64_t blocks = (a.n + kBlock - 1) / kBlock, lines = a.outer;
      const auto tops = std::make_unique<Wide<T>[]>(static_cast<size_t>(lines * blocks));
      ParallelFor(lines * blocks, lines * a.n / 4, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t first = i % blocks * kBlock;
          const T* v = data + i / blocks * a.n + first;
          const int64_t n = std::min(kBlock, a.n - first);
          tops[static_cast<size_t>(i)] = smallest ? BlockExtreme<true>(v, n) : BlockExtreme<false>(v, n);
        }
      });
      for (int64_t line = 0; line < lines; ++line) {
        const Wide<T>* top = tops.get() + line * blocks;
        int64_t block = 0;
        for (int64_t i = 1; i < blocks && top[block] == top[block]; ++i) {
          if (top[i] != top[i] || (smallest ? top[i] < top[block] : top[i] > top[block])) block = i;
        }
        const T* v = data + line * a.n + block * kBlock;
        const bool nan = top[block] != top[block];
        int64_t i = 0;
        while (nan ? static_cast<Wide<T>>(v[i]) == static_cast<Wide<T>>(v[i])
                   : static_cast<Wide<T>>(v[i]) != top[block])
          ++i;
        write(line, block * kBlock + i);
      }
    }
  });
}

void Cumulative(WeftFrame* frame, const abi::Cumulative<InWords>& op) {
  using Kind = abi::CumulativeKind;
  const DenseTensor x(frame, op.x);
  void* out = frame->slots[op.result];
  const Kind kind = op.kind;
  const Around a(x.shape, op.dim);
  const bool reverse = op.reverse;
  VisitDType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using W = Wide<T>;
    const T* data = x.as<T>();
    T* y = static_cast<T*>(out);
    auto run = [&](double cost, auto f) {
      a.ForEachLine(cost, [&](int64_t, int64_t base) {
        if (a.n == 0) return;
        const int64_t step = reverse ? -a.inner : a.inner;
        int64_t at = reverse ? base + (a.n - 1) * a.inner : base;
        W sum = static_cast<W>(data[at]);
        y[at] = data[at];
        for (int64_t i = 1; i < a.n; ++i) {
          at += step;
          sum = static_cast<W>(f(sum, static_cast<W>(data[at])));
          y[at] = static_cast<T>(sum);
        }
      });
    };
    if (kind == Kind::kSum) return run(1, [](W p, W q) { return p + q; });
    if (kind == Kind::kProduct) return run(1, [](W p, W q) { return Product(p, q); });
    if constexpr (!kIsComplex<T>) {
      if (kind == Kind::kMax) return run(1, [](W p, W q) { return p != p ? p : q != q ? q : std::max(p, q); });
      if (kind == Kind::kMin) return run(1, [](W p, W q) { return p != p ? p : q != q ? q : std::min(p, q); });
      if constexpr (std::is_floating_point_v<W>) {
        return run(20, [](W p, W q) {
          return p == q ? p + static_cast<W>(0.693147180559945309)
                        : std::max(p, q) + std::log1p(std::exp(-std::abs(p - q)));
        });
      }
    }
  });
}

}  // namespace

void FillScans(WeftOp* ops) {
  Put<ArgExtreme>(ops);
  Put<Cumulative>(ops);
}

}  // namespace weft::cpu
