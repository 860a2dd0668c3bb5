#include "base/special_functions.h"

#include <math.h>

#include <cmath>
#include <limits>

namespace weft {
namespace {
constexpr double kPi = 3.14159265358979323846;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// c[0] t^n + ... + c[n]
template <int n>
double Polynomial(const double (&c)[n], double t) {
  double y = 0;
  for (double k : c) y = y * t + k;
  return y;
}

// pi x without whole periods of the tangent: the poles of digamma and trigamma are at integers, and pi x is rounded.
double TurnOf(double x) { return kPi * (x - std::nearbyint(x)); }
}  // namespace

double LogGamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

double Digamma(double x) {
  if (x <= 0 && x == std::floor(x)) return kNan;
  if (x < 0) return Digamma(1 - x) - kPi / std::tan(TurnOf(x));
  double shift = 0;
  for (; x < 10; ++x) shift -= 1 / x;
  // Bernoulli numbers B2k / 2k.
  const double f = 1 / (x * x);
  const double series = f * Polynomial({-691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12}, f);
  return shift + std::log(x) - 0.5 / x - series;
}

double Trigamma(double x) {
  if (x <= 0 && x == std::floor(x)) return kInf;
  if (x < 0) {
    const double s = std::sin(TurnOf(x));
    return kPi * kPi / (s * s) - Trigamma(1 - x);
  }
  double shift = 0;
  for (; x < 10; ++x) shift += 1 / (x * x);
  const double f = 1 / (x * x);
  return shift + 1 / x + f / 2 +
         f / x *
             Polynomial({-3617.0 / 510, 7.0 / 6, -691.0 / 2730, 5.0 / 66, -1.0 / 30, 1.0 / 42, -1.0 / 30, 1.0 / 6}, f);
}

double ErfInv(double x, bool single) {
  if (!(std::abs(x) <= 1)) return kNan;
  if (std::abs(x) == 1) return x * kInf;
  const double w = -std::log((1 - x) * (1 + x));
  double y = w < 5 ? Polynomial({2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                 -0.00125372503, -0.00417768164, 0.246640727, 1.50140941},
                                w - 2.5)
                   : Polynomial({-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                                 -0.0076224613, 0.00943887047, 1.00167406, 2.83297682},
                                std::sqrt(w) - 3);
  y *= x;
  if (std::abs(x) < 0.5) {
    for (int step = single ? 1 : 0; step < 2; ++step) y -= (std::erf(y) - x) * std::sqrt(kPi) / 2 * std::exp(y * y);
    return y;
  }
  // Near the ends by erfc, whose logarithm is nearly a parabola, which Newton's steps follow.
  const double rest = 1 - std::abs(x);
  y = std::abs(y);
  // The start has 7 digits up to w = 16, the end of single precision, and fewer beyond.
  for (int step = single ? 3 : w < 16 ? 2 : 0; step < 4; ++step) {
    const double e = std::erfc(y);
    y += std::log(e / rest) * e * std::sqrt(kPi) / 2 * std::exp(y * y);
  }
  return std::copysign(y, x);
}

}  // namespace weft
