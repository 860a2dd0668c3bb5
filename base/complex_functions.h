// Functions of complex numbers that the C++ library has not, as the interpreter and the CPU's runtime mean them. Where
// the operand is infinite or NaN they are what exp and log of it give (C11, Annex G).
#ifndef WEFT_BASE_COMPLEX_FUNCTIONS_H_
#define WEFT_BASE_COMPLEX_FUNCTIONS_H_

#include <cmath>
#include <complex>
#include <numbers>

namespace weft {

inline double Log1p(double x) { return std::log1p(x); }
inline double Expm1(double x) { return std::expm1(x); }
inline double Exp2(double x) { return std::exp2(x); }
inline double Logistic(double x) { return 1 / (1 + std::exp(-x)); }

// log |1 + z| is half of log1p(2 x + x^2 + y^2), whose terms cancel near the circle |1 + z| = 1: they are summed with
// what their products and sums lose. Near z = -1 the sum is near -1, and log1p loses what is left; there 1 + x is
// exact.
inline std::complex<double> Log1p(const std::complex<double>& z) {
  const double x = z.real(), y = z.imag();
  const double angle = std::atan2(y, 1 + x);
  if (!(std::fabs(x + 1) < 2 && std::fabs(y) < 2)) return {std::log(std::complex<double>(1 + x, y)).real(), angle};
  if ((1 + x) * (1 + x) + y * y < 0.5) return {std::log(std::hypot(1 + x, y)), angle};
  const auto sum = [](double a, double b, double* rest) {  // Knuth, "The Art of Computer Programming 2", 4.2.2
    const double s = a + b, shadow = s - a;
    *rest += (a - (s - shadow)) + (b - shadow);
    return s;
  };
  const double xx = x * x, yy = y * y;
  double rest = std::fma(x, x, -xx) + std::fma(y, y, -yy);
  const double first = std::fabs(xx) > std::fabs(yy) ? xx : yy, second = first == xx ? yy : xx;
  const double most = sum(sum(2 * x, first, &rest), second, &rest);
  return {0.5 * std::log1p(most + rest), angle};
}

// e^z - 1 = expm1(x) cos y - 2 sin^2(y / 2) + i e^x sin y.
inline std::complex<double> Expm1(const std::complex<double>& z) {
  const double x = z.real(), y = z.imag();
  if (!std::isfinite(x) || !std::isfinite(y) || x > 700) return std::exp(z) - 1.0;
  const double half = std::sin(0.5 * y);
  // e^z - 1 is +0 at -0, too.
  return {0.0 + (std::expm1(x) * std::cos(y) - 2 * half * half), std::exp(x) * std::sin(y)};
}

inline std::complex<double> Exp2(const std::complex<double>& z) {
  const double x = z.real(), angle = z.imag() * std::numbers::ln2;
  if (!std::isfinite(x) || !std::isfinite(angle)) return std::exp(std::complex<double>(x * std::numbers::ln2, angle));
  const double size = std::exp2(x);
  if (angle == 0) return {size, angle};  // of infinite sizes too
  return {size * std::cos(angle), size * std::sin(angle)};
}

// 1 / (1 + e^-z), of which e^-z overflows to the left and e^z to the right.
inline std::complex<double> Logistic(const std::complex<double>& z) {
  if (!(z.real() < 0)) return 1.0 / (1.0 + std::exp(-z));
  const std::complex<double> e = std::exp(z);
  return e / (1.0 + e);
}

}  // namespace weft
#endif  // WEFT_BASE_COMPLEX_FUNCTIONS_H_
