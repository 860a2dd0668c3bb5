// The product and the power of two numbers, and the cube root, as every part of Weft means them: the interpreter, the
// CPU's runtime and generated code.
//
// The product of complex numbers is the formula, (ac - bd) + (ad + bc)i, as in NumPy and XLA: (inf + inf i) * (1 + 0i)
// is NaN. C's own operator recovers the infinity there (C11, Annex G.5.1).
#ifndef WEFT_BASE_PRODUCT_H_
#define WEFT_BASE_PRODUCT_H_

#include <cmath>
#include <complex>
#include <limits>

namespace weft {

template <class T>
T Product(const T& x, const T& y) {
  return static_cast<T>(x * y);
}

template <class T>
std::complex<T> Product(const std::complex<T>& x, const std::complex<T>& y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}

template <class T>
T Power(const T& x, const T& w) {
  return std::pow(x, w);
}

// By exp and log, which 0 has none of: 0^0 is 1, and 0^w is 0 where the real part of w is positive, else NaN. x^1 is x,
// whatever its parts are.
template <class T>
std::complex<T> Power(const std::complex<T>& x, const std::complex<T>& w) {
  if (w == std::complex<T>(0)) return T(1);
  if (w == std::complex<T>(1)) return x;
  if (x != std::complex<T>(0)) return std::pow(x, w);
  if (w.real() > 0) return T(0);
  return {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::quiet_NaN()};
}

// The C library's with a step of Newton's method: that of glibc is off by three units in the last place.
inline double CubeRoot(double x) {
  // Powers of 8 are exact, and keep the cube a normal number.
  if (std::isinf(x)) return x;
  if (std::fabs(x) > 0x1p1000) return 0x1p100 * CubeRoot(x * 0x1p-300);
  if (std::fabs(x) < 0x1p-900) return x == 0 ? x : 0x1p-100 * CubeRoot(x * 0x1p300);
  const double y = std::cbrt(x), square = y * y, cube = square * y;
  const double rest = std::fma(square, y, -cube) + std::fma(y, y, -square) * y;  // of what y^3 lost
  return y - ((cube - x) + rest) / (3 * square);                                 // NaN stays NaN
}

}  // namespace weft
#endif  // WEFT_BASE_PRODUCT_H_
