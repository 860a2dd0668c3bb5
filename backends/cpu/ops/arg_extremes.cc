// argmax and argmin along one dimension: the first place of the largest or smallest number, of the first NaN if there
// is one.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>

#include "backends/cpu/core/runtime.h"
#include "backends/cpu/core/thread_pool.h"
#include "backends/cpu/core/wide.h"
#include "backends/cpu/ops/around.h"
#include "base/dtype.h"

namespace weft::cpu {
namespace {

// The loops below run over lanes that the compiler makes vectors of, for the processor at hand.
#pragma GCC push_options
#pragma GCC optimize("O3")

constexpr int kLanes = 32;

// The largest (smallest) of n > 0 values, NaN if there is one.
template <bool kSmallest, class T>
[[gnu::always_inline]] inline Wide<T> ExtremeInLanes(const T* v, int64_t n) {
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

// The first place of a value that is there; of a NaN, where it is one.
template <class T>
[[gnu::always_inline]] inline int64_t PlaceInLanes(const T* v, int64_t n, Wide<T> value) {
  using W = Wide<T>;
  const bool nan = value != value;
  const auto is_it = [&](const T& x) {
    const W w = static_cast<W>(x);
    return nan ? w != w : w == value;
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    int any = 0;
    for (int l = 0; l < kLanes; ++l) any |= is_it(v[i + l]) ? 1 : 0;
    if (any != 0) break;
  }
  while (!is_it(v[i])) ++i;
  return i;
}

// As many bits as the numbers have, so that a vector holds as many of both.
template <class T>
using PlaceOf = std::conditional_t<sizeof(Wide<T>) == 8, int64_t, int32_t>;
constexpr int kColumns = 64;

// Of `columns` neighbours, which n rows have `stride` apart.
template <bool kSmallest, class T>
[[gnu::always_inline]] inline void ColumnsInLanes(const T* v, int64_t n, int64_t stride, int columns,
                                                  PlaceOf<T>* places) {
  using W = Wide<T>;
  W top[kColumns];
  PlaceOf<T> best[kColumns];
  const auto row = [&](int64_t i, int width) __attribute__((always_inline)) {
    const T* x = v + i * stride;
    for (int c = 0; c < width; ++c) {
      const W w = static_cast<W>(x[c]), old = top[c];
      const bool better = (kSmallest ? w < old : w > old) | ((w != w) & (old == old));
      top[c] = better & (old == old) ? w : old;
      best[c] = better & (old == old) ? static_cast<PlaceOf<T>>(i) : best[c];
    }
  };
  for (int c = 0; c < columns; ++c) top[c] = static_cast<W>(v[c]), best[c] = 0;
  if (columns == kColumns) {
    for (int64_t i = 1; i < n; ++i) row(i, kColumns);
  } else {
    for (int64_t i = 1; i < n; ++i) row(i, columns);
  }
  std::copy(best, best + columns, places);
}

#define WEFT_FOR_PROCESSOR(suffix, attribute)                                                              \
  template <bool kSmallest, class T>                                                                       \
  attribute Wide<T> Extreme##suffix(const T* v, int64_t n) {                                               \
    return ExtremeInLanes<kSmallest>(v, n);                                                                \
  }                                                                                                        \
  template <class T>                                                                                       \
  attribute int64_t Place##suffix(const T* v, int64_t n, Wide<T> value) {                                  \
    return PlaceInLanes(v, n, value);                                                                      \
  }                                                                                                        \
  template <bool kSmallest, class T>                                                                       \
  attribute void Columns##suffix(const T* v, int64_t n, int64_t stride, int columns, PlaceOf<T>* places) { \
    ColumnsInLanes<kSmallest>(v, n, stride, columns, places);                                              \
  }
WEFT_FOR_PROCESSOR(Anywhere, )
#ifdef __x86_64__
WEFT_FOR_PROCESSOR(Avx2, [[gnu::target("avx2")]])
#endif
#undef WEFT_FOR_PROCESSOR
#pragma GCC pop_options

bool HasAvx2() {
#ifdef __x86_64__
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
#else
  return false;
#endif
}
#ifdef __x86_64__
#define WEFT_CALL(name, ...) (HasAvx2() ? name##Avx2 __VA_ARGS__ : name##Anywhere __VA_ARGS__)
#else
#define WEFT_CALL(name, ...) (name##Anywhere __VA_ARGS__)
#endif

// The result: integers of any width, whose lower bytes come first.
struct Places {
  void* data;
  int64_t width;
  void Write(int64_t line, int64_t place) const {
    std::memcpy(static_cast<char*>(data) + line * width, &place, static_cast<size_t>(width));
  }
};

constexpr int64_t kBlock = 4096;

// Lines of neighbours: the extreme of each block, then the first block that has it, then its first place there.
template <bool kSmallest, class T>
void AlongLines(const Around& a, const T* data, const Places& out) {
  using W = Wide<T>;
  const auto better = [](W x, W y) { return x != x || (kSmallest ? x < y : x > y); };
  const int64_t blocks = (a.n + kBlock - 1) / kBlock, lines = a.outer;
  const auto block_of = [&](int64_t i) {
    const int64_t first = i % blocks * kBlock;
    const T* v = data + i / blocks * a.n + first;
    const int64_t n = std::min(kBlock, a.n - first);
    return WEFT_CALL(Extreme, <kSmallest>(v, n));
  };
  const auto place = [&](int64_t line, int64_t block, W top) {
    const T* v = data + line * a.n + block * kBlock;
    out.Write(line, block * kBlock + WEFT_CALL(Place, (v, std::min(kBlock, a.n - block * kBlock), top)));
  };
  const int64_t nanoseconds = lines * a.n / 8;
  if (blocks == 1) {
    ParallelFor(lines, nanoseconds, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) place(line, 0, block_of(line));
    });
    return;
  }
  const auto tops = std::make_unique<W[]>(static_cast<size_t>(lines * blocks));
  ParallelFor(lines * blocks, nanoseconds, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) tops[static_cast<size_t>(i)] = block_of(i);
  });
  ParallelFor(lines, lines * (blocks + kBlock / 8), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const W* top = tops.get() + line * blocks;
      int64_t block = 0;
      for (int64_t i = 1; i < blocks && top[block] == top[block]; ++i) {
        if (better(top[i], top[block])) block = i;
      }
      place(line, block, top[block]);
    }
  });
}

// Lines side by side: some of them at once, row after row.
template <bool kSmallest, class T>
void AlongColumns(const Around& a, const T* data, const Places& out) {
  const int64_t tiles = (a.inner + kColumns - 1) / kColumns;
  ParallelFor(a.outer * tiles, a.outer * a.inner * a.n / 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t outer = i / tiles, first = i % tiles * kColumns;
      const int columns = static_cast<int>(std::min<int64_t>(kColumns, a.inner - first));
      PlaceOf<T> places[kColumns];
      WEFT_CALL(Columns, <kSmallest>(data + outer * a.n * a.inner + first, a.n, a.inner, columns, places));
      for (int c = 0; c < columns; ++c) out.Write(outer * a.inner + first + c, places[c]);
    }
  });
}

void ArgExtreme(WeftFrame* frame, const abi::ArgExtreme<InWords>& op) {
  const DenseTensor x(frame, op.x);
  const Places out{frame->slots[op.result], ByteWidth(op.result_dtype)};
  const Around a(x.shape, op.dim);
  if (a.outer * a.inner == 0) return;
  VisitDType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!kIsComplex<T>) {
      const auto run = [&](auto smallest) {
        constexpr bool kSmallest = decltype(smallest)::value;
        if (a.inner == 1) return AlongLines<kSmallest>(a, x.as<T>(), out);
        if (a.n <= std::numeric_limits<int32_t>::max()) return AlongColumns<kSmallest>(a, x.as<T>(), out);
        a.ForEachLine(1, [&](int64_t line, int64_t base) {  // places that have more bits than numbers
          const T* v = x.as<T>() + base;
          int64_t best = 0;
          Wide<T> top = static_cast<Wide<T>>(v[0]);
          for (int64_t i = 1; i < a.n && top == top; ++i) {
            const Wide<T> w = static_cast<Wide<T>>(v[i * a.inner]);
            if (w != w || (kSmallest ? w < top : w > top)) top = w, best = i;
          }
          out.Write(line, best);
        });
      };
      op.smallest ? run(std::true_type()) : run(std::false_type());
    }
  });
}

}  // namespace

void FillArgExtremes(WeftOp* ops) { Put<ArgExtreme>(ops); }

}  // namespace weft::cpu
