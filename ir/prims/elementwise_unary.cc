// The element-wise primitives of one operand: one row each.
//   name, dtypes, meaning on one element, partial derivative (x: operand, y: result), documentation
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/complex_functions.h"
#include "base/product.h"
#include "base/special_functions.h"
#include "ir/prims/elementwise.h"
#include "ir/prims/families.h"

namespace weft {
namespace {

using Complex = std::complex<double>;
using MaybeExpr = std::optional<Expr>;

#define WEFT_F(expression) \
  [](auto x) {             \
    using std::abs;        \
    return expression;     \
  }
#define WEFT_D(expression)          \
  [](Expr x, Expr y) -> MaybeExpr { \
    (void)x;                        \
    (void)y;                        \
    return expression;              \
  }

constexpr double kTwoOverSqrtPi = 2 * std::numbers::inv_sqrtpi;

// Where x^2 + 1 rounds to x^2, and derivatives may leave the 1 out before x^2 overflows.
double FarFrom1(DType dtype) { return std::ldexp(1.0, RowOf(RealPart(dtype)).digits / 2 + 1); }

// 1 - x^2 without cancellation near 1, and with a derivative that has none near 0.
Expr OneMinusSquare(const Expr& x) { return Select(Lt(Abs(x), 0.5), 1.0 - x * x, (1.0 - x) * (1.0 + x)); }

// The root of 1 - x^2, on whose branch cut the sign of zero says which side is meant, as it does for asin.
Expr RootOfOneMinusSquare(const Expr& x) { return Sqrt(1.0 - x) * Sqrt(x + 1.0); }

// 1 / x with the sign that makes the real part positive: 1 / sqrt(x^2 + 1) where x is large.
Expr ReciprocalToTheRight(const Expr& x) { return Select(Lt(Real(x), 0.0), -1.0 / x, 1.0 / x); }

MaybeExpr AsinDerivative(const Expr& x, const Expr&) {
  return IsComplex(x.dtype()) ? 1.0 / RootOfOneMinusSquare(x) : Rsqrt(OneMinusSquare(x));
}
MaybeExpr AtanDerivative(const Expr& x, const Expr&) {
  return Select(Gt(Abs(x), FarFrom1(x.dtype())), Square(1.0 / x), 1.0 / (1.0 + x * x));
}
MaybeExpr AsinhDerivative(const Expr& x, const Expr&) {
  const Expr far = IsComplex(x.dtype()) ? ReciprocalToTheRight(x) : 1.0 / Abs(x);
  return Select(Gt(Abs(x), FarFrom1(x.dtype())), far, Rsqrt(x * x + 1.0));
}
MaybeExpr AcoshDerivative(const Expr& x, const Expr&) {
  if (IsComplex(x.dtype())) return 1.0 / (Sqrt(x - 1.0) * Sqrt(x + 1.0));
  return Select(Gt(Abs(x), FarFrom1(x.dtype())), 1.0 / Abs(x), Rsqrt((x - 1.0) * (x + 1.0)));
}
MaybeExpr AtanhDerivative(const Expr& x, const Expr&) {
  if (!IsComplex(x.dtype())) return 1.0 / OneMinusSquare(x);
  return Select(Gt(Abs(x), FarFrom1(x.dtype())), -Square(1.0 / x), 1.0 / ((1.0 - x) * (x + 1.0)));
}

double SignOf(double x) { return std::isnan(x) || x == 0 ? x : std::copysign(1, x); }

void Linear(Prim& p, TransposeRule transpose) {
  p.partials = nullptr;
  p.linear = {0};
  p.transpose = std::move(transpose);
}

Atom Ct(TransposeContext& c) { return *c.ct[0]; }

void RegisterRounding(PrimRegistry& r) {
  AddUnary(r, "floor", kAnyFloats, OnFloats<1>(WEFT_F(std::floor(x))), ZeroDerivative, "Largest integer not above x.");
  AddUnary(r, "ceil", kAnyFloats, OnFloats<1>(WEFT_F(std::ceil(x))), ZeroDerivative, "Smallest integer not below x.");
  AddUnary(r, "trunc", kAnyFloats, OnFloats<1>(WEFT_F(std::trunc(x))), ZeroDerivative, "x rounded towards zero.");
  Prim& round = AddUnary(r, "round", kAnyFloats, {}, ZeroDerivative,
                         "Nearest integer; ties to even (mode=\"even\") or away from zero (mode=\"away\").");
  auto base = round.infer;
  round.infer = [base](const Sig& s) {
    const std::string& mode = s.attrs.Get<std::string>("mode");
    if (mode != "even" && mode != "away")
      throw ValueError("round: mode is \"", mode, "\"; expected \"even\" or \"away\"");
    return base(s);
  };
  round.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    std::vector<double> x = LoadAs<double>(in[0]);
    const bool even = c.sig.attrs.Get<std::string>("mode") == "even";
    for (double& v : x) v = even ? std::nearbyint(v) : std::round(v);
    return {StoreAs<double>(in[0].dtype(), in[0].shape(), x)};
  };
  round.samples = [p = &round] {
    std::vector<Sample> samples = ElementwiseSamples(*p);
    for (size_t i = 0; i < samples.size(); ++i) samples[i].attrs.Set("mode", std::string(i % 2 ? "away" : "even"));
    return samples;
  };
}

// Twice the sum of u(j) u(k-j) over first <= j < k-j, and the square in the middle.
std::optional<Atom> SquareCoefficient(Builder& b, const std::function<std::optional<Atom>(int)>& u, int k, int first) {
  std::optional<Atom> sum;
  for (int j = first; 2 * j < k; ++j) {
    if (u(j) && u(k - j)) sum = AddTangents(b, sum, Mul(b, *u(j), *u(k - j)));
  }
  if (sum) sum = Mul(b, *sum, Atom::Scalar(b.DTypeOf(*sum), 2));
  if (k % 2 == 0 && u(k / 2)) sum = AddTangents(b, sum, Square(b, *u(k / 2)));
  return sum;
}

std::optional<Atom> Minus(Builder& b, const std::optional<Atom>& x, const std::optional<Atom>& y) {
  if (!y) return x;
  return x ? Sub(b, *x, *y) : Neg(b, *y);
}

std::optional<Atom> LogCoefficient(TaylorContext& c) {  // x y' = x'
  std::optional<Atom> sum;
  for (int j = 1; j < c.k; ++j) {
    if (!c.y(j) || !c.x(0, c.k - j)) continue;
    const Atom term = Mul(c.b, *c.y(j), *c.x(0, c.k - j));
    sum = AddTangents(c.b, sum, Mul(c.b, term, Atom::Scalar(c.b.DTypeOf(term), static_cast<double>(j) / c.k)));
  }
  const std::optional<Atom> rest = Minus(c.b, c.x(0, c.k), sum);
  return rest ? std::optional<Atom>(Div(c.b, *rest, *c.x(0, 0))) : std::nullopt;
}

std::optional<Atom> SqrtCoefficient(TaylorContext& c) {  // y y = x
  const std::optional<Atom> rest = Minus(c.b, c.x(0, c.k), SquareCoefficient(c.b, c.y, c.k, 1));
  if (!rest) return std::nullopt;
  return Div(c.b, Mul(c.b, *rest, Atom::Scalar(c.b.DTypeOf(*rest), 0.5)), *c.y(0));
}

double LogisticDensity(double x) {
  const double e = std::exp(-std::fabs(x));
  return e / ((1 + e) * (1 + e));
}

// Derivatives from the operand where the result has lost the digits: y + 1 where y is near -1, y (1 - y) and 1 - y^2
// where y is near 1.
MaybeExpr Expm1Derivative(const Expr& x, const Expr& y) {
  return IsComplex(x.dtype()) ? Exp(x) : Select(Gt(y, -0.5), y + 1.0, Exp(x));
}
MaybeExpr LogisticDerivative(const Expr& x, const Expr& y) {
  if (IsComplex(x.dtype())) return y * Logistic(-x);
  return Expr{x.b, x.b->Emit1(FindPrim("logistic_density"), {x})};
}
MaybeExpr NormalCdfDerivative(const Expr& x, const Expr&) {
  return Expr{x.b, x.b->Emit1(FindPrim("normal_density"), {x})};
}
// -x times the density, which at infinity is 0.
MaybeExpr NormalDensityDerivative(const Expr& x, const Expr& y) {
  return -(Select(Expr{x.b, Eq(y, y.Number(0))}, x.Number(0), x) * y);
}
MaybeExpr TanhDerivative(const Expr& x, const Expr& y) {
  if (!IsComplex(x.dtype())) return Expr{x.b, x.b->Emit1(FindPrim("sech_squared"), {x})};
  const Expr real = Real(x);
  const Expr e = Exp(x * Select(Lt(real, 0.0), x.Number(2), x.Number(-2)));
  return Select(Lt(Abs(real), 1.0), 1.0 - y * y, 4.0 * e / Square(1.0 + e));
}

void RegisterExponential(PrimRegistry& r) {
  AddUnary(r, "exp", kAnyFloats | kComplexes, OnInexact<1>(WEFT_F(std::exp(x))), WEFT_D(y), "e to the power x.",
           {.work = 15, .ulps = 1});
  AddUnary(r, "exp2", kAnyFloats | kComplexes, OnInexact<1>(WEFT_F(Exp2(x))), WEFT_D(y * std::numbers::ln2),
           "2 to the power x.", {.work = 15, .ulps = 1.5});
  AddUnary(r, "expm1", kAnyFloats | kComplexes, OnInexact<1>(WEFT_F(Expm1(x))), Expm1Derivative,
           "e^x - 1, accurate near 0.", {.work = 15, .ulps = 2});
  Prim& log = AddUnary(r, "log", kAnyFloats | kComplexes, OnInexact<1>(WEFT_F(std::log(x))), WEFT_D(1.0 / x),
                       "Natural logarithm. With accuracy=\"highest\" compiled code for CPUs calls the C library's, in "
                       "double precision; without, vector code computes it, several times as fast.",
                       {.work = 15, .ulps = 1});
  Prim& log1p = AddUnary(r, "log1p", kAnyFloats | kComplexes, OnInexact<1>(WEFT_F(Log1p(x))), WEFT_D(1.0 / (x + 1.0)),
                         "log(1 + x), accurate near 0.", {.work = 15, .ulps = 1.5});
  Prim& log2 = AddUnary(r, "log2", kAnyFloats, OnFloats<1>(WEFT_F(std::log2(x))), WEFT_D(std::numbers::log2e / x),
                        "Logarithm to base 2; of powers of 2 exact.", {.work = 15, .ulps = 1});
  Prim& log10 = AddUnary(r, "log10", kAnyFloats, OnFloats<1>(WEFT_F(std::log10(x))), WEFT_D(std::numbers::log10e / x),
                         "Logarithm to base 10; of powers of 10 exact.", {.work = 15, .ulps = 1});
  log.taylor = LogCoefficient;
  // Not dx times 1 / x, which is infinite of subnormal numbers: y log(x) has the slope y / x.
  log.jvp = [](JvpContext& c) {
    c.y = c.b.Emit(*c.eqn.prim, c.x, c.eqn.attrs);
    c.dy = {Div(c.b, *c.dx[0], c.x[0])};
  };
  for (Prim* p : {&log, &log1p, &log2, &log10}) {
    p->samples = [p] {
      std::vector<Sample> samples = ElementwiseSamples(*p);
      for (Sample& s : samples) s.low = 0.1, s.high = 4;
      return samples;
    };
  }
  log.infer = [base = log.infer](const Sig& s) {
    const auto accuracy = s.attrs.GetOr<std::string>("accuracy", "highest");
    if (accuracy != "highest") throw ValueError("log: accuracy is \"", accuracy, "\"; expected \"highest\" or none");
    return base(s);
  };
  log.samples = [base = log.samples] {
    std::vector<Sample> samples = base();
    for (size_t i = 0, n = samples.size(); i < n; ++i) {
      samples.push_back(samples[i]);
      samples.back().attrs.Set("accuracy", std::string("highest"));
    }
    return samples;
  };
  AddUnary(r, "logistic", kAnyFloats | kComplexes, OnInexact<1>(WEFT_F(Logistic(x))), LogisticDerivative,
           "1 / (1 + e^-x).", {.work = 15, .ulps = 3});
  AddUnary(r, "softplus", kAnyFloats, OnFloats<1>(WEFT_F((x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x))))),
           [](Expr x, Expr) { return MaybeExpr(Logistic(x)); }, "log(1 + e^x), which does not overflow.",
           {.work = 30, .ulps = 4, .formula = "max(x, 0) + log1p(exp(-abs(x)))"});
  AddUnary(r, "logistic_density", kAnyFloats, OnFloats<1>(LogisticDensity), WEFT_D(-Tanh(x * 0.5) * y),
           "e^-x / (1 + e^-x)^2, the derivative of logistic, accurate where logistic(x) rounds to 1.",
           {.work = 15, .ulps = 4});
  Prim& sqrt = AddUnary(r, "sqrt", kAnyFloats | kComplexes, OnInexact<1>(WEFT_F(std::sqrt(x))), WEFT_D(0.5 / y),
                        "Square root; principal branch for complex x.", {.work = 4});
  Prim& rsqrt = AddUnary(r, "rsqrt", kAnyFloats | kComplexes, OnInexact<1>(WEFT_F(1.0 / std::sqrt(x))),
                         WEFT_D((-0.5 * y) / x), "1 / sqrt(x).", {.work = 4, .ulps = 1.5});
  Prim& cbrt = AddUnary(r, "cbrt", kAnyFloats, OnFloats<1>(WEFT_F(CubeRoot(x))),
                        // As a power: its derivatives at 0 are infinite too, not NaN. Of 2 y: 1 / y^2 of the least half
                        // is too large.
                        [](Expr x, Expr y) { return MaybeExpr(Expr{x.b, IntegerPow(*x.b, y * 2.0, -2)} / 0.75); },
                        "Real cube root.", {.work = 15, .ulps = 1});
  sqrt.taylor = SqrtCoefficient;
  for (Prim* p : {&sqrt, &rsqrt, &cbrt}) {
    p->samples = [p] {
      std::vector<Sample> samples = ElementwiseSamples(*p);
      for (Sample& s : samples) s.low = 0.2, s.high = 4;
      return samples;
    };
  }
}

// Samples inside (low, high), where the function is smooth.
void Domain(Prim& p, double low, double high) {
  p.samples = [prim = &p, low, high] {
    std::vector<Sample> samples = ElementwiseSamples(*prim);
    for (Sample& s : samples) s.low = low, s.high = high;
    return samples;
  };
}

// (1 - |tanh|) (1 + |tanh|), of which the first factor is 2 / (e^2|x| + 1).
double SechSquaredOf(double x) {
  if (std::fabs(x) > 20) return 4 * std::exp(-2 * std::fabs(x));
  const double rest = 2 / (std::expm1(2 * std::fabs(x)) + 2);
  return rest * (2 - rest);
}

// exp(-x^2 / 2) / sqrt(2 pi): an error of x^2 would be one of the exponent.
double NormalDensity(double x) {
  constexpr double kFactor = std::numbers::inv_sqrtpi / std::numbers::sqrt2, kFar = 64;  // beyond it is 0
  x = std::clamp(x, -kFar, kFar);
  const double square = x * x, rest = std::fma(x, x, -square);
  return std::exp(-0.5 * square) * (1 - 0.5 * rest) * kFactor;
}
// 0.5 erfc(-x / sqrt(2)), corrected for the rounding of its operand where that is in the exponent.
double NormalCdf(double x) {
  constexpr double kFar = 64;  // beyond are 0 and 1
  x = std::clamp(x, -kFar, kFar);
  const double z = -x / std::numbers::sqrt2, y = 0.5 * std::erfc(z);
  if (!(z > 0)) return y;
  const double square = x * x / 2, rest = std::fma(x / 2, x, -square), of_z = z * z, rest_of_z = std::fma(z, z, -of_z);
  return y * (1 - ((square - of_z) + (rest - rest_of_z)));
}

void RegisterTrigonometric(PrimRegistry& r) {
  AddUnary(r, "sin", kAnyFloats | kComplexes, OnInexact<1>(WEFT_F(std::sin(x))), WEFT_D(Cos(x)),
           "Sine of x in radians.", {.work = 15, .ulps = 1.5});
  AddUnary(r, "cos", kAnyFloats | kComplexes, OnInexact<1>(WEFT_F(std::cos(x))), WEFT_D(-Sin(x)),
           "Cosine of x in radians.", {.work = 15, .ulps = 1.5});
  Domain(AddUnary(r, "tan", kAnyFloats | kComplexes, OnInexact<1>(WEFT_F(std::tan(x))), WEFT_D(1.0 + y * y),
                  "Tangent of x in radians.", {.work = 30, .ulps = 3}),
         -1.2, 1.2);
  Domain(AddUnary(r, "asin", kAnyFloats | kComplexes, OnInexact<1>(WEFT_F(std::asin(x))), AsinDerivative,
                  "Inverse sine, in [-pi/2, pi/2] radians.", {.work = 30, .ulps = 2}),
         -0.9, 0.9);
  Domain(AddUnary(r, "acos", kAnyFloats | kComplexes, OnInexact<1>(WEFT_F(std::acos(x))),
                  WEFT_D(-*AsinDerivative(x, y)), "Inverse cosine, in [0, pi] radians.", {.work = 30, .ulps = 1.5}),
         -0.9, 0.9);
  AddUnary(r, "atan", kAnyFloats | kComplexes, OnInexact<1>(WEFT_F(std::atan(x))), AtanDerivative,
           "Inverse tangent, in (-pi/2, pi/2) radians.", {.work = 30, .ulps = 2});
  AddUnary(r, "sinh", kAnyFloats | kComplexes, OnInexact<1>(WEFT_F(std::sinh(x))), WEFT_D(Cosh(x)), "Hyperbolic sine.",
           {.work = 30, .ulps = 3});
  AddUnary(r, "cosh", kAnyFloats | kComplexes, OnInexact<1>(WEFT_F(std::cosh(x))), WEFT_D(Sinh(x)),
           "Hyperbolic cosine.", {.work = 30, .ulps = 3});
  AddUnary(r, "tanh", kAnyFloats | kComplexes, OnInexact<1>(WEFT_F(std::tanh(x))), TanhDerivative,
           "Hyperbolic tangent.", {.work = 15, .ulps = 4});
  AddUnary(r, "sech_squared", kAnyFloats, OnFloats<1>(SechSquaredOf), WEFT_D(-2.0 * Tanh(x) * y),
           "1 / cosh(x)^2, the derivative of tanh, accurate where tanh(x) rounds to 1.", {.work = 15, .ulps = 3});
  AddUnary(r, "asinh", kAnyFloats | kComplexes, OnInexact<1>(WEFT_F(std::asinh(x))), AsinhDerivative,
           "Inverse hyperbolic sine.", {.work = 30, .ulps = 2});
  Domain(AddUnary(r, "acosh", kAnyFloats | kComplexes, OnInexact<1>(WEFT_F(std::acosh(x))), AcoshDerivative,
                  "Inverse hyperbolic cosine, x >= 1.", {.work = 30, .ulps = 2}),
         1.2, 4);
  Domain(AddUnary(r, "atanh", kAnyFloats | kComplexes, OnInexact<1>(WEFT_F(std::atanh(x))), AtanhDerivative,
                  "Inverse hyperbolic tangent, |x| <= 1.", {.work = 30, .ulps = 2}),
         -0.9, 0.9);
}

// The polygamma function of order 2, in operations whose own derivatives are those of order 3, 4 ...: A&S 6.4.6 ten
// times, then the asymptotic series 6.4.11; below 0 reflected, 6.4.7.
MaybeExpr TrigammaDerivative(const Expr& x, const Expr&) {
  constexpr int kSteps = 10;
  constexpr double kBernoulli[] = {1.0 / 6,         -1.0 / 30, 1.0 / 42,       -1.0 / 30,     5.0 / 66,
                                   -691.0 / 2730.0, 7.0 / 6,   -3617.0 / 510., 43867.0 / 798, -174611.0 / 330};
  const Expr below{x.b, Le(x, x.Number(0))};
  const Expr at = Select(below, 1.0 - x, x);
  Expr sum = x.Number(0);
  for (int k = 0; k < kSteps; ++k) {
    const Expr r = 1.0 / (at + static_cast<double>(k));
    sum = sum + r * r * r;
  }
  const Expr r = 1.0 / (at + static_cast<double>(kSteps)), square = r * r;
  Expr series = x.Number(0);
  for (int k = std::size(kBernoulli); k > 0; --k) series = (series + (2 * k + 1) * kBernoulli[k - 1]) * square;
  const Expr above = -2.0 * sum - square * (1.0 + r + series);
  // cos / sin^3 of pi x has the period 1.
  const Expr turn = Select(below, x - Floor(x + 0.5), x.Number(0.25)) * std::numbers::pi;
  const Expr sine = Sin(turn);
  constexpr double kCube = std::numbers::pi * std::numbers::pi * std::numbers::pi;
  return Select(below, above - 2 * kCube * Cos(turn) / (sine * sine * sine), above);
}

void RegisterSpecial(PrimRegistry& r) {
  AddUnary(r, "erf", kAnyFloats, OnFloats<1>(WEFT_F(std::erf(x))), WEFT_D(kTwoOverSqrtPi * Exp(-(x * x))),
           "Error function 2/sqrt(pi) * integral of exp(-t^2) from 0 to x.", {.work = 15, .ulps = 1});
  AddUnary(r, "normal_density", kAnyFloats, OnFloats<1>(NormalDensity), NormalDensityDerivative,
           "The density of the standard normal distribution, exp(-x^2 / 2) / sqrt(2 pi).", {.work = 15, .ulps = 2});
  AddUnary(r, "normal_cdf", kAnyFloats, OnFloats<1>(NormalCdf), NormalCdfDerivative,
           "The integral of the standard normal distribution's density up to x, 0.5 erfc(-x / sqrt(2)).",
           {.work = 30, .ulps = 3});
  AddUnary(r, "erfc", kAnyFloats, OnFloats<1>(WEFT_F(std::erfc(x))), WEFT_D(-kTwoOverSqrtPi * Exp(-(x * x))),
           "1 - erf(x), accurate for large x.", {.work = 30, .ulps = 2});
  Domain(AddUnary(r, "erf_inv", kAnyFloats, OnFloats<1>(WEFT_F(ErfInv(x))), WEFT_D(Exp(y * y) / kTwoOverSqrtPi),
                  "The inverse of erf; +-inf at +-1, NaN outside [-1, 1].", {.work = 30, .ulps = 4}),
         -0.9, 0.9);
  Domain(AddUnary(r, "lgamma", kAnyFloats, OnFloats<1>(WEFT_F(LogGamma(x))), WEFT_D(Digamma(x)),
                  "log |Gamma(x)|. Near its roots below 0 the accuracy is that of 1.", {.work = 30, .ulps = 3}),
         0.3, 6);
  Domain(AddUnary(r, "digamma", kAnyFloats, OnFloats<1>(WEFT_F(Digamma(x))),
                  [](Expr x, Expr) -> MaybeExpr { return Expr{x.b, x.b->Emit1(FindPrim("trigamma"), {x})}; },
                  "The derivative of lgamma (Abramowitz & Stegun 6.3). Near its roots the accuracy is that of 1.",
                  {.work = 30, .ulps = 8}),
         0.3, 6);
  Domain(AddUnary(r, "trigamma", kAnyFloats, OnFloats<1>(WEFT_F(Trigamma(x))), TrigammaDerivative,
                  "The derivative of digamma (Abramowitz & Stegun 6.4).", {.work = 30, .ulps = 4}),
         0.3, 6);
}

// The real or imaginary part: a complex operand, a real result.
Prim& PartOf(Prim& p, bool real) {
  p.infer = [](const Sig& s) -> Types {
    const Type t = InferElementwise(s);
    return {t.With(RealPart(t.dtype))};
  };
  p.eval = [real](const EvalContext& c, const Tensors& in) -> Tensors {
    std::vector<double> y;
    for (const Complex& v : LoadAs<Complex>(in[0])) y.push_back(real ? v.real() : v.imag());
    return {StoreAs<double>(c.results[0].dtype, in[0].shape(), y)};
  };
  return p;
}

// Arithmetic of signed integers modulo 2^n, as in the binary operations.
template <class F>
auto Wrapping(F f) {
  return [f](auto x) -> decltype(x) {
    if constexpr (std::is_same_v<decltype(x), int64_t>) {
      return static_cast<int64_t>(f(static_cast<uint64_t>(x)));
    } else {
      return f(x);
    }
  };
}

void RegisterSignAndParts(PrimRegistry& r) {
  Linear(AddUnary(r, "neg", kAnyNumbers, OnNumbers<1>(Wrapping(WEFT_F(-x))), nullptr, "-x."),
         [](TransposeContext& c) -> OptionalAtoms { return {Neg(c.b, Ct(c))}; });
  ScalarMeaning<1> sign = OnInts<1>([](auto x) -> decltype(x) { return x > 0 ? 1 : (x == 0 ? 0 : -1); });
  sign.on_double = SignOf;
  AddUnary(r, "sign", kAnyReals, sign, ZeroDerivative, "-1, 0 or 1 with the sign of x, zeros too; NaN for NaN.");
  ScalarMeaning<1> magnitude = OnReals<1>([](auto x) -> decltype(x) { return x < 0 ? Wrapping(WEFT_F(-x))(x) : x; });
  magnitude.on_double = WEFT_F(std::fabs(x));
  magnitude.on_complex = WEFT_F(Complex(std::abs(x)));
  Prim& abs = AddUnary(r, "abs", kAnyNumbers, magnitude, nullptr,
                       "|x|; for complex x the magnitude, of the real dtype. The derivative at 0 is 1, for complex x "
                       "0 (JAX's conventions).");
  abs.infer = [](const Sig& s) -> Types {
    const Type t = InferElementwise(s);
    return {t.With(RealPart(t.dtype))};
  };
  // Complex: d|x| = Re(conj(x) dx) / |x|.
  abs.jvp = [](JvpContext& c) {
    const Expr x{&c.b, c.x[0]}, dx{&c.b, *c.dx[0]};
    const Expr y = Abs(x);
    c.y = {y};
    if (!IsComplex(x.dtype())) {
      c.dy = {Select(Expr{&c.b, Ge(x, x.Number(0))}, x.Number(1), x.Number(-1)) * dx};
    } else {
      const Expr zero = y.Number(0), at_zero{&c.b, Eq(y, zero)};
      const Expr safe = Select(at_zero, y.Number(1), y);
      // The unit first: products of tiny numbers underflow, and so would those of its own derivative.
      const Expr unit{&c.b, MakeComplex(c.b, Real(x) / safe, -(Imag(x) / safe))};
      c.dy = {Select(at_zero, zero, Real(unit * dx))};
    }
  };
  Linear(PartOf(AddUnary(r, "real", kComplexes, {}, nullptr, "The real part, of the real dtype."), /*real=*/true),
         [](TransposeContext& c) -> OptionalAtoms { return {MakeComplex(c.b, Ct(c), Zeros(c.b, c.b.TypeOf(Ct(c))))}; });
  Linear(PartOf(AddUnary(r, "imag", kComplexes, {}, nullptr, "The imaginary part, of the real dtype."), /*real=*/false),
         [](TransposeContext& c) -> OptionalAtoms {
           return {MakeComplex(c.b, Zeros(c.b, c.b.TypeOf(Ct(c))), Neg(c.b, Ct(c)))};
         });
  Linear(AddUnary(r, "conj", kComplexes, OnInexact<1>([](auto x) -> decltype(x) {
                    if constexpr (std::is_same_v<decltype(x), double>)
                      return x;
                    else
                      return std::conj(x);
                  }),
                  nullptr, "The complex conjugate."),
         [](TransposeContext& c) -> OptionalAtoms { return {Conj(c.b, Ct(c))}; });
}

// Bit operations need more than the element's value: its width.
EvalFn WithDType(std::function<uint64_t(uint64_t bits, int width, bool is_bool)> f) {
  return [f](const EvalContext& c, const Tensors& in) -> Tensors {
    const DType dtype = in[0].dtype();
    const int width = BitWidth(dtype);
    std::vector<uint64_t> x = LoadAs<uint64_t>(in[0]);
    for (uint64_t& v : x) {
      if (width < 64) v &= (uint64_t{1} << width) - 1;
      v = f(v, width, IsBool(dtype));
    }
    return {StoreAs<uint64_t>(c.results[0].dtype, in[0].shape(), x)};
  };
}

void RegisterBits(PrimRegistry& r) {
  AddUnary(r, "not", kBools | kInts, {}, nullptr, "Logical not of booleans, bitwise complement of integers.").eval =
      WithDType([](uint64_t v, int, bool is_bool) { return is_bool ? v ^ 1 : ~v; });
  AddUnary(r, "population_count", kInts, {}, nullptr, "The number of one bits.").eval =
      WithDType([](uint64_t v, int, bool) { return static_cast<uint64_t>(std::popcount(v)); });
  AddUnary(r, "clz", kInts, {}, nullptr, "The number of leading zero bits.").eval =
      WithDType([](uint64_t v, int width, bool) { return static_cast<uint64_t>(std::countl_zero(v) - (64 - width)); });
}

}  // namespace

void RegisterElementwiseUnary(PrimRegistry& r) {
  RegisterRounding(r);
  RegisterExponential(r);
  RegisterTrigonometric(r);
  RegisterSpecial(r);
  RegisterSignAndParts(r);
  RegisterBits(r);

  AddUnary(r, "square", kAnyNumbers, OnNumbers<1>(Wrapping(WEFT_F(Product(x, x)))), WEFT_D(x * 2.0), "x * x.").taylor =
      [](TaylorContext& c) { return SquareCoefficient(c.b, [&c](int j) { return c.x(0, j); }, c.k, 0); };
  Prim& finite = AddUnary(r, "is_finite", kAnyFloats, {}, nullptr, "Whether x is neither infinite nor NaN; bool.");
  finite.infer = [](const Sig& s) -> Types { return {InferElementwise(s).With(DType::kBool)}; };
  finite.eval = [](const EvalContext&, const Tensors& in) -> Tensors {
    std::vector<uint64_t> y;
    for (double v : LoadAs<double>(in[0])) y.push_back(std::isfinite(v));
    return {StoreAs<uint64_t>(DType::kBool, in[0].shape(), y)};
  };
  Prim& stop = AddUnary(r, "stop_gradient", kAll | DTypeSet{DType::kTape}, {}, ZeroDerivative,
                        "x itself; declared to have derivative zero.");
  stop.eval = [](const EvalContext&, const Tensors& in) -> Tensors { return {in[0]}; };
  stop.work = 0;
  stop.traffic = Traffic::kNone;
}

}  // namespace weft
