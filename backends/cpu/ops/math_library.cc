// Element-wise functions without an inline expansion, and the exact versions of those that have one (for cold lanes).
#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "backends/cpu/core/runtime.h"
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

class Table {
 public:
  explicit Table(WeftMath* table) : table_(table) {}
  template <class T>
  void Set(const char* op, DType dtype, WeftMath f) {
    table_[MathIndex(op, static_cast<int>(dtype))] = f;
  }
  void Put(const char* op, DType dtype, WeftMath f) { table_[MathIndex(op, static_cast<int>(dtype))] = f; }
  template <class F>
  void Floats(const char* op, F f) {
    Put(op, DType::kF32, Unary<float>(f));
    Put(op, DType::kF64, Unary<double>(f));
  }
  template <class F>
  void Complexes(const char* op, F f) {
    Put(op, DType::kC64, Unary<std::complex<float>>(f));
    Put(op, DType::kC128, Unary<std::complex<double>>(f));
  }
  template <class F>
  void BinaryFloats(const char* op, F f) {
    Put(op, DType::kF32, Binary<float>(f));
    Put(op, DType::kF64, Binary<double>(f));
  }
  template <class F>
  void BinaryComplexes(const char* op, F f) {
    Put(op, DType::kC64, Binary<std::complex<float>>(f));
    Put(op, DType::kC128, Binary<std::complex<double>>(f));
  }

 private:
  WeftMath* table_;
};

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

template <class T>
void EightBit(Table& t, DType dtype) {
  t.Put("load_f8", dtype, [](void* out, const void* a, const void*, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      static_cast<float*>(out)[i] = static_cast<float>(T::FromBits(static_cast<const uint8_t*>(a)[i]));
  });
  t.Put("store_f8", dtype, [](void* out, const void* a, const void*, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<uint8_t*>(out)[i] = T(static_cast<const float*>(a)[i]).bits();
  });
}

}  // namespace

// Single precision through double: correctly rounded nearly always, and these calls are rare.
#define WEFT_F(expression)                   \
  [](auto x) {                               \
    using R = decltype(x);                   \
    const double v = static_cast<double>(x); \
    return static_cast<R>(expression);       \
  }
#define WEFT_C(expression)             \
  [](auto x) -> decltype(x) {          \
    using R = decltype(x);             \
    const std::complex<double> v(x);   \
    return static_cast<R>(expression); \
  }

void FillMath(WeftMath* table) {
  Table t(table);
  t.Floats("exp", WEFT_F(std::exp(v)));
  t.Floats("exp2", WEFT_F(std::exp2(v)));
  t.Floats("expm1", WEFT_F(std::expm1(v)));
  t.Floats("log", WEFT_F(std::log(v)));
  t.Floats("log1p", WEFT_F(std::log1p(v)));
  t.Floats("sqrt", WEFT_F(std::sqrt(v)));
  t.Floats("cbrt", WEFT_F(CubeRoot(v)));
  t.Floats("sin", WEFT_F(std::sin(v)));
  t.Floats("cos", WEFT_F(std::cos(v)));
  t.Floats("tan", WEFT_F(std::tan(v)));
  t.Floats("asin", WEFT_F(std::asin(v)));
  t.Floats("acos", WEFT_F(std::acos(v)));
  t.Floats("atan", WEFT_F(std::atan(v)));
  t.Floats("sinh", WEFT_F(std::sinh(v)));
  t.Floats("cosh", WEFT_F(std::cosh(v)));
  t.Floats("tanh", WEFT_F(std::tanh(v)));
  t.Floats("asinh", WEFT_F(std::asinh(v)));
  t.Floats("acosh", WEFT_F(std::acosh(v)));
  t.Floats("atanh", WEFT_F(std::atanh(v)));
  t.Floats("erf", WEFT_F(std::erf(v)));
  t.Floats("erfc", WEFT_F(std::erfc(v)));
  t.Floats("erf_inv", WEFT_F(ErfInv(v, sizeof(x) == sizeof(float))));
  t.Floats("lgamma", WEFT_F(LogGamma(v)));
  t.Floats("digamma", WEFT_F(Digamma(v)));
  t.Floats("trigamma", WEFT_F(Trigamma(v)));
  t.BinaryFloats("pow", [](auto x, auto w) {
    return static_cast<decltype(x)>(std::pow(static_cast<double>(x), static_cast<double>(w)));
  });
  t.BinaryFloats("atan2", [](auto x, auto w) {
    return static_cast<decltype(x)>(std::atan2(static_cast<double>(x), static_cast<double>(w)));
  });
  t.BinaryFloats("rem", [](auto x, auto w) { return std::fmod(x, w); });
  t.Complexes("exp", WEFT_C(std::exp(v)));
  t.Complexes("log", WEFT_C(std::log(v)));
  t.Complexes("sqrt", WEFT_C(std::sqrt(v)));
  t.Complexes("sin", WEFT_C(std::sin(v)));
  t.Complexes("cos", WEFT_C(std::cos(v)));
  t.Complexes("tan", WEFT_C(std::tan(v)));
  t.Complexes("sinh", WEFT_C(std::sinh(v)));
  t.Complexes("cosh", WEFT_C(std::cosh(v)));
  t.Complexes("tanh", WEFT_C(std::tanh(v)));
  t.Put("abs", DType::kC64, [](void* out, const void* a, const void*, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      static_cast<float*>(out)[i] =
          static_cast<float>(std::abs(std::complex<double>(static_cast<const std::complex<float>*>(a)[i])));
  });
  t.Put("abs", DType::kC128, [](void* out, const void* a, const void*, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      static_cast<double*>(out)[i] = std::abs(static_cast<const std::complex<double>*>(a)[i]);
  });
  t.BinaryComplexes("pow", [](auto x, auto w) {
    return static_cast<decltype(x)>(Power(std::complex<double>(x), std::complex<double>(w)));
  });
  t.BinaryComplexes("div", [](auto x, auto w) { return Quotient(x, w); });
  t.Put("pow", DType::kI8, Binary<int8_t>([](auto x, auto w) { return PowInts(x, w); }));
  t.Put("pow", DType::kI16, Binary<int16_t>([](auto x, auto w) { return PowInts(x, w); }));
  t.Put("pow", DType::kI32, Binary<int32_t>([](auto x, auto w) { return PowInts(x, w); }));
  t.Put("pow", DType::kI64, Binary<int64_t>([](auto x, auto w) { return PowInts(x, w); }));
  t.Put("pow", DType::kU8, Binary<uint8_t>([](auto x, auto w) { return PowInts(x, w); }));
  t.Put("pow", DType::kU16, Binary<uint16_t>([](auto x, auto w) { return PowInts(x, w); }));
  t.Put("pow", DType::kU32, Binary<uint32_t>([](auto x, auto w) { return PowInts(x, w); }));
  t.Put("pow", DType::kU64, Binary<uint64_t>([](auto x, auto w) { return PowInts(x, w); }));
  EightBit<Float8E4M3FN>(t, DType::kF8E4M3FN);
  EightBit<Float8E5M2>(t, DType::kF8E5M2);
}

#undef WEFT_F
#undef WEFT_C

}  // namespace weft::cpu
