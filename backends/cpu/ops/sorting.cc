// sort and top_k.
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

struct SortOperand {
  const void* data;
  DType dtype;
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
};

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
  ParallelFor(outer * inner, LogCost(outer * inner * n, n), [&](int64_t begin, int64_t end) {
    std::vector<int64_t> order(static_cast<size_t>(n));
    for (int64_t line = begin; line < end; ++line) {
      const int64_t base = line / inner * n * inner + line % inner;
      if (count == 1) {
        VisitDType(in[0].dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          const T* x = in[0].as<T>();
          T* y = static_cast<T*>(out[0]);
          if (inner == 1) {
            std::copy(x + base, x + base + n, y + base);
            std::stable_sort(y + base, y + base + n, [](const T& a, const T& b) { return Less(a, b); });
          } else {
            std::vector<char> raw(static_cast<size_t>(n) * sizeof(T));
            T* values = reinterpret_cast<T*>(raw.data());
            for (int64_t i = 0; i < n; ++i)
              std::memcpy(static_cast<void*>(values + i), x + base + i * inner, sizeof(T));
            std::stable_sort(values, values + n, [](const T& a, const T& b) { return Less(a, b); });
            for (int64_t i = 0; i < n; ++i)
              std::memcpy(static_cast<void*>(y + base + i * inner), values + i, sizeof(T));
          }
        });
        continue;
      }
      std::iota(order.begin(), order.end(), 0);
      // From the last key to the first: stable sorts compose.
      for (int64_t k = keys; k-- > 0;) {
        VisitDType(in[k].dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          const T* x = in[k].as<T>() + base;
          std::stable_sort(order.begin(), order.end(),
                           [&](int64_t i, int64_t j) { return Less(x[i * inner], x[j * inner]); });
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
