// Element-wise functions without an inline expansion, and the exact versions of those that have one (for cold lanes).
#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "backends/cpu/core/runtime.h"
#include "base/complex_functions.h"
#include "base/dtype.h"
#include "base/product.h"
#include "base/special_functions.h"
#include "lowering/abi/math_table.h"

namespace weft::cpu {
namespace {

template <class T, class F>
WeftMath Unary(F) {
  return [](void* out, const void* a, const void*, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = F()(static_cast<const T*>(a)[i]);
  };
}
template <class T, class F>
WeftMath Binary(F) {
  return [](void* out, const void* a, const void* b, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      static_cast<T*>(out)[i] = F()(static_cast<const T*>(a)[i], static_cast<const T*>(b)[i]);
  };
}

template <class T>
T PowInts(T x, T w) {
  if constexpr (std::is_signed_v<T>) {
    if (w < 0) return x == 1 ? 1 : x == -1 ? (w % 2 ? -1 : 1) : 0;
  }
  uint64_t result = 1, base = static_cast<uint64_t>(x), n = static_cast<uint64_t>(w);
  for (; n != 0; n >>= 1, base *= base) {
    if (n & 1) result *= base;
  }
  return static_cast<T>(result);
}

std::complex<double> Quotient(std::complex<double> x, std::complex<double> w) { return x / w; }
// In double no product of floats overflows or vanishes, so nothing has to be scaled. Both parts are NaN where the
// standard (C, annex G.5.1) has infinities to find.
std::complex<float> Quotient(std::complex<float> x, std::complex<float> w) {
  const double a = x.real(), b = x.imag(), c = w.real(), d = w.imag(), norm = c * c + d * d;
  const double real = (a * c + b * d) / norm, imaginary = (b * c - a * d) / norm;
  if (std::isnan(real) && std::isnan(imaginary)) return x / w;
  return {static_cast<float>(real), static_cast<float>(imaginary)};
}

class Table {
 public:
  explicit Table(WeftMath* table) : table_(table) {}
  void Put(const char* op, DType dtype, WeftMath f) { table_[MathIndex(op, static_cast<int>(dtype))] = f; }

 private:
  WeftMath* table_;
};

// Calls f(dtype, TypeTag of its C++ type) for each of a set.
template <class F>
void ForEachDType(DTypeSet dtypes, const F& f) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtypes.Has(dtype)) VisitDType(dtype, [&](auto tag) { f(dtype, tag); });
  }
}

// The meanings of a row, for the dtypes that each is for.
template <class F>
auto Floats(F f) {
  return [f](Table& t, const char* op) {
    t.Put(op, DType::kF32, Unary<float>(f));
    t.Put(op, DType::kF64, Unary<double>(f));
  };
}
template <class F>
auto Complexes(F f) {
  return [f](Table& t, const char* op) {
    t.Put(op, DType::kC64, Unary<std::complex<float>>(f));
    t.Put(op, DType::kC128, Unary<std::complex<double>>(f));
  };
}
template <class F>
auto BinaryFloats(F f) {
  return [f](Table& t, const char* op) {
    t.Put(op, DType::kF32, Binary<float>(f));
    t.Put(op, DType::kF64, Binary<double>(f));
  };
}
template <class F>
auto BinaryComplexes(F f) {
  return [f](Table& t, const char* op) {
    t.Put(op, DType::kC64, Binary<std::complex<float>>(f));
    t.Put(op, DType::kC128, Binary<std::complex<double>>(f));
  };
}
template <class F>
auto BinaryIntegers(F f) {
  return [f](Table& t, const char* op) {
    ForEachDType(kInts, [&](DType dtype, auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) t.Put(op, dtype, Binary<T>(f));
    });
  };
}
template <class T, class F>
WeftMath ComplexToReal(F) {
  return [](void* out, const void* a, const void*, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = F()(static_cast<const std::complex<T>*>(a)[i]);
  };
}
template <class F>
auto ComplexesToReal(F f) {
  return [f](Table& t, const char* op) {
    t.Put(op, DType::kC64, ComplexToReal<float>(f));
    t.Put(op, DType::kC128, ComplexToReal<double>(f));
  };
}

template <class T>
void LoadFloat8(void* out, const void* a, const void*, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    static_cast<float*>(out)[i] = static_cast<float>(T::FromBits(static_cast<const uint8_t*>(a)[i]));
}
template <class T>
void StoreFloat8(void* out, const void* a, const void*, int64_t n) {
  for (int64_t i = 0; i < n; ++i) static_cast<uint8_t*>(out)[i] = T(static_cast<const float*>(a)[i]).bits();
}

template <class T>
auto InDouble(T x) {
  return static_cast<double>(x);
}
template <class T>
auto InDouble(std::complex<T> x) {
  return std::complex<double>(x);
}

}  // namespace

#define WEFT_OF_ONE(expression)                  \
  [](auto x) -> decltype(x) {                    \
    [[maybe_unused]] const auto v = InDouble(x); \
    return static_cast<decltype(x)>(expression); \
  }
#define WEFT_OF_TWO(expression)                                   \
  [](auto x, auto y) -> decltype(x) {                             \
    [[maybe_unused]] const auto v = InDouble(x), w = InDouble(y); \
    return static_cast<decltype(x)>(expression);                  \
  }
#define FLOATS(expression) Floats(WEFT_OF_ONE(expression))
#define FLOATS2(expression) BinaryFloats(WEFT_OF_TWO(expression))
#define COMPLEX(expression) Complexes(WEFT_OF_ONE(expression))
#define COMPLEX2(expression) BinaryComplexes(WEFT_OF_TWO(expression))
#define MAGNITUDE(expression)                                         \
  ComplexesToReal([](auto x) {                                        \
    const auto v = InDouble(x);                                       \
    return static_cast<typename decltype(x)::value_type>(expression); \
  })
#define INTEGERS2(expression) BinaryIntegers([](auto x, auto y) { return expression; })
#define LOAD_FLOAT8                                                                      \
  [](Table& t, const char* op) {                                                         \
    ForEachDType(kFloat8s, [&](DType dtype, auto tag) {                                  \
      using T = typename decltype(tag)::type;                                            \
      if constexpr (kIsSmallFloat<T> && sizeof(T) == 1) t.Put(op, dtype, LoadFloat8<T>); \
    });                                                                                  \
  }
#define STORE_FLOAT8                                                                      \
  [](Table& t, const char* op) {                                                          \
    ForEachDType(kFloat8s, [&](DType dtype, auto tag) {                                   \
      using T = typename decltype(tag)::type;                                             \
      if constexpr (kIsSmallFloat<T> && sizeof(T) == 1) t.Put(op, dtype, StoreFloat8<T>); \
    });                                                                                   \
  }

void FillMath(WeftMath* table) {
  Table t(table);
  const auto fill = [&t](const char* op, const auto&... meanings) { (meanings(t, op), ...); };
#define WEFT_FILL(name, ...) fill(name, __VA_ARGS__);
  WEFT_MATH_TABLE(WEFT_FILL)
#undef WEFT_FILL
}

#undef WEFT_OF_ONE
#undef WEFT_OF_TWO
#undef FLOATS
#undef FLOATS2
#undef COMPLEX
#undef COMPLEX2
#undef MAGNITUDE
#undef INTEGERS2
#undef LOAD_FLOAT8
#undef STORE_FLOAT8

}  // namespace weft::cpu
