// sort and top_k. Highway sorts keys in vector lanes: words, or words with the places they come from.
#include <hwy/contrib/sort/vqsort.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <type_traits>

#include "backends/cpu/core/runtime.h"
#include "backends/cpu/core/thread_pool.h"
#include "base/dtype.h"
#include "base/out_of_memory.h"

namespace weft::cpu {
namespace {

template <class T>
constexpr bool kIsComplex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

// Ascending, NaN last, complex numbers by real, then imaginary part.
template <class T>
bool Less(const T& a, const T& b) {
  if constexpr (kIsComplex<T>) {
    if (Less(a.real(), b.real()) || Less(b.real(), a.real())) return Less(a.real(), b.real());
    return Less(a.imag(), b.imag());
  } else if constexpr (kIsSmallFloat<T>) {
    return Less(static_cast<float>(a), static_cast<float>(b));
  } else if constexpr (std::is_floating_point_v<T>) {
    return a < b || (!std::isnan(a) && std::isnan(b));
  } else {
    return a < b;
  }
}

template <int bytes>
using Word =
    std::conditional_t<bytes == 1, uint8_t,
                       std::conditional_t<bytes == 2, uint16_t, std::conditional_t<bytes == 4, uint32_t, uint64_t>>>;

// A word that is larger for what is larger in the total order of IEEE 754, in which NaN of one sign are all alike.
template <class T>
Word<sizeof(T)> Rank(T v) {
  using W = Word<sizeof(T)>;
  constexpr W kSign = static_cast<W>(W{1} << (8 * sizeof(T) - 1));
  W word = std::bit_cast<W>(v);
  if constexpr (kIsSmallFloat<T>) {
    constexpr W kAll = static_cast<W>((1u << kBitsOf<T>)-1);
    if (v != v) word = T::kNanHasSign ? static_cast<W>(word | static_cast<W>(kAll & ~T::kSign)) : kAll & ~T::kSign;
    return static_cast<W>(word & T::kSign ? kAll & ~word : word | T::kSign);
  } else if constexpr (std::is_floating_point_v<T>) {
    if (v != v) word = static_cast<W>(word | static_cast<W>(~kSign));
    return static_cast<W>(word & kSign ? ~word : word | kSign);
  } else {
    return std::numeric_limits<T>::is_signed ? static_cast<W>(word ^ kSign) : word;
  }
}

int64_t LogCost(int64_t elements, int64_t n) {
  return static_cast<int64_t>(static_cast<double>(elements) * 3 * std::max(1.0, std::log2(static_cast<double>(n) + 1)));
}

// Highway sorts in vector lanes; it puts a few kilobytes on the stack, and its call takes as long as a short sort.
constexpr int64_t kStackOfLibrary = 1 << 18, kShort = 32;
template <class Keys>
void SortKeys(Keys* keys, int64_t n) {
  if (n > kShort) return hwy::Sorter()(keys, static_cast<size_t>(n), hwy::SortAscending());
  for (int64_t i = 1; i < n; ++i) {
    const Keys key = keys[i];
    int64_t to = i;
    for (; to > 0 && key < keys[to - 1]; --to) keys[to] = keys[to - 1];
    keys[to] = key;
  }
}

// A word that is larger for what Less puts later, and the same for what it does not tell apart: zeros of both signs,
// and all NaN.
template <class T>
auto Key(T v) {
  if constexpr (std::is_same_v<T, std::complex<float>>) {
    return static_cast<uint64_t>(Key(v.real())) << 32 | Key(v.imag());
  } else if constexpr (kIsSmallFloat<T> || std::is_floating_point_v<T>) {
    // In 8 bits some dtypes have numbers up to the last word.
    using Wide = std::conditional_t<sizeof(T) == 1, uint16_t, Word<sizeof(T)>>;
    if (v != v) return std::numeric_limits<Wide>::max();
    return static_cast<Wide>(Rank(v == T(0.0f) ? T(0.0f) : v));
  } else {
    return Rank(v);
  }
}

// The number that has a key.
template <class T>
T OfKey(Word<sizeof(T)> key) {
  using W = Word<sizeof(T)>;
  constexpr W kSign = static_cast<W>(W{1} << (8 * sizeof(T) - 1));
  if constexpr (std::is_floating_point_v<T> || kIsSmallFloat<T>)
    return std::bit_cast<T>(static_cast<W>(key & kSign ? key ^ kSign : ~key));
  else
    return static_cast<T>(std::numeric_limits<T>::is_signed ? static_cast<W>(key ^ kSign) : key);
}

// Whether lines of T alone are sorted as words: numbers of 16 to 64 bits.
template <class T>
constexpr bool kSortsAsWords =
    !kIsComplex<T> && !std::is_same_v<T, bool> && (sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);

// One line of n elements, `step` apart, from x to y, which may not be the same. `keys` has room for n words.
template <class T>
void SortLine(const T* x, T* y, int64_t step, int64_t n, Word<sizeof(T)>* keys) {
  int64_t nans = 0, signs = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T v = x[i * step];
    keys[i] = Key(v);
    if constexpr (!std::is_integral_v<T>) {
      nans += v != v ? 1 : 0;
      signs += v == T(0.0f) && Rank(v) != Key(v) ? 1 : 0;
    }
  }
  SortKeys(keys, n);
  for (int64_t i = 0; i < n - nans; ++i) y[i * step] = OfKey<T>(keys[i]);
  // Equal elements keep their order: zeros of either sign, and NaN as they are.
  if (nans > 0) {
    int64_t to = n - nans;
    for (int64_t i = 0; i < n; ++i) {
      if (const T v = x[i * step]; v != v) y[to++ * step] = v;
    }
  }
  if (signs > 0) {
    int64_t to = std::lower_bound(keys, keys + n, Key(T(0.0f))) - keys;
    for (int64_t i = 0; i < n; ++i) {
      if (const T v = x[i * step]; v == T(0.0f)) y[to++ * step] = v;
    }
  }
}

// Puts what is at the places `order` of a line of keys into their order; what is equal stays as it is.
template <class T>
void SortOrder(const T* x, int64_t step, std::vector<int64_t>& order) {
  const auto n = static_cast<int64_t>(order.size());
  std::vector<int64_t> before;
  if constexpr (std::is_same_v<T, std::complex<double>>) {
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return Less(x[i * step], x[j * step]); });
  } else if (sizeof(T) <= 4 && n <= std::numeric_limits<uint32_t>::max()) {
    std::vector<uint64_t> keys(order.size());
    for (int64_t i = 0; i < n; ++i)
      keys[i] = static_cast<uint64_t>(Key(x[order[i] * step])) << 32 | static_cast<uint64_t>(i);
    SortKeys(keys.data(), n);
    before = order;
    for (int64_t i = 0; i < n; ++i) order[i] = before[keys[i] & 0xFFFFFFFF];
  } else {
    std::vector<hwy::uint128_t> keys(order.size());
    for (int64_t i = 0; i < n; ++i) keys[i].hi = Key(x[order[i] * step]), keys[i].lo = static_cast<uint64_t>(i);
    SortKeys(keys.data(), n);
    before = order;
    for (int64_t i = 0; i < n; ++i) order[i] = before[keys[i].lo];
  }
}

struct SortOperand {
  const void* data;
  DType dtype;
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
};

// The lines of one array.
void SortAlone(const SortOperand& in, void* out, int64_t outer, int64_t n, int64_t inner) {
  VisitDType(in.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ParallelFor(outer * inner, LogCost(outer * inner * n, n), [&](int64_t begin, int64_t end) {
      EnsureStack(kStackOfLibrary, "a sort");
      [[maybe_unused]] std::vector<Word<sizeof(T) <= 8 ? sizeof(T) : 8>> keys;
      std::vector<std::conditional_t<std::is_same_v<T, bool>, char, T>> values;
      for (int64_t line = begin; line < end; ++line) {
        const int64_t base = line / inner * n * inner + line % inner;
        const T* x = in.as<T>() + base;
        T* y = static_cast<T*>(out) + base;
        if constexpr (kSortsAsWords<T>) {
          keys.resize(static_cast<size_t>(n));
          SortLine(x, y, inner, n, keys.data());
        } else {
          values.resize(static_cast<size_t>(n));
          for (int64_t i = 0; i < n; ++i) values[i] = x[i * inner];
          std::stable_sort(values.begin(), values.end(), [](const T& a, const T& b) { return Less(a, b); });
          for (int64_t i = 0; i < n; ++i) y[i * inner] = static_cast<T>(values[i]);
        }
      }
    });
  });
}

void Sort(WeftFrame* frame, const abi::Sort<InWords>& op) {
  std::vector<SortOperand> in;
  std::vector<void*> out;
  for (const auto& o : op.operands) {
    in.push_back({frame->slots[o.x], o.dtype});
    out.push_back(frame->slots[o.result]);
  }
  const auto count = static_cast<int64_t>(in.size());
  const int64_t keys = op.num_keys, dim = op.dim;
  const std::span<const int64_t> shape = op.dims;
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < dim; ++d) outer *= shape[d];
  for (size_t d = dim + 1; d < shape.size(); ++d) inner *= shape[d];
  const int64_t n = shape[dim];
  if (count == 1) return SortAlone(in[0], out[0], outer, n, inner);
  ParallelFor(outer * inner, LogCost(outer * inner * n, n), [&](int64_t begin, int64_t end) {
    EnsureStack(kStackOfLibrary, "a sort");
    std::vector<int64_t> order(static_cast<size_t>(n));
    for (int64_t line = begin; line < end; ++line) {
      const int64_t base = line / inner * n * inner + line % inner;
      std::iota(order.begin(), order.end(), 0);
      // From the last key to the first: stable sorts compose.
      for (int64_t k = keys; k-- > 0;) {
        VisitDType(in[k].dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          SortOrder(in[k].as<T>() + base, inner, order);
        });
      }
      for (int64_t k = 0; k < count; ++k) {
        const int64_t width = ByteWidth(in[k].dtype);
        const char* x = in[k].as<char>();
        char* y = static_cast<char*>(out[k]);
        for (int64_t i = 0; i < n; ++i)
          std::memcpy(y + (base + i * inner) * width, x + (base + order[i] * inner) * width,
                      static_cast<size_t>(width));
      }
    }
  });
}

void TopK(WeftFrame* frame, const abi::TopK<InWords>& op) {
  const DenseTensor x(frame, op.x);
  void* values = frame->slots[op.values];
  int32_t* indices = static_cast<int32_t*>(frame->slots[op.indices]);
  const int64_t k = op.k, n = x.shape.back(), rows = n == 0 ? 0 : x.size() / n;
  if (k == 0) return;
  VisitDType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!kIsComplex<T>) {
      struct Candidate {
        Word<sizeof(T)> rank;
        int32_t index;
      };
      const auto before = [](Candidate a, Candidate b) {
        return a.rank > b.rank || (a.rank == b.rank && a.index < b.index);
      };
      const T* data = x.as<T>();
      ParallelFor(rows, LogCost(rows * n, k), [&](int64_t begin, int64_t end) {
        std::vector<Candidate> best(static_cast<size_t>(k));  // a heap with the last of them on top
        for (int64_t row = begin; row < end; ++row) {
          const T* v = data + row * n;
          for (int32_t i = 0; i < k; ++i) best[i] = {Rank(v[i]), i};
          std::make_heap(best.begin(), best.end(), before);
          for (int64_t i = k; i < n; ++i) {
            const auto rank = Rank(v[i]);
            if (rank <= best.front().rank) continue;
            std::pop_heap(best.begin(), best.end(), before);
            best.back() = {rank, static_cast<int32_t>(i)};
            std::push_heap(best.begin(), best.end(), before);
          }
          std::sort_heap(best.begin(), best.end(), before);
          for (int64_t i = 0; i < k; ++i) {
            static_cast<T*>(values)[row * k + i] = v[best[i].index];
            indices[row * k + i] = best[i].index;
          }
        }
      });
    }
  });
}

}  // namespace

void FillSorting(WeftOp* ops) {
  Put<Sort>(ops);
  Put<TopK>(ops);
}

}  // namespace weft::cpu
