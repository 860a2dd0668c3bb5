// Forms that lose no digits and do not overflow, in place of those that people write: one row each (docs/
// add_a_simplification.md). A rule sees what earlier rules made of its operands: log(1 - exp(x)) is log(-expm1(x)) by
// the time its logarithm is looked at.
//
// Replacements have to be right in every branch that select() leaves out too, in their derivatives: 0 times an
// infinite derivative is NaN. So what a branch reads is made harmless outside of it.
#include "transforms/opt/stable_rules.h"

namespace weft {
namespace {

constexpr Licence kAccurate = Licence::kAccurate, kRounding = Licence::kRounding, kNoNan = Licence::kNoNan;

// erfc(x) by its leading term exp(-x^2) / (x sqrt(pi)) for large x, less 1: 14 terms of the asymptotic series
// (Abramowitz & Stegun 7.1.23) in u = 1 / (2 x^2), right to the digits of f32 for x > 5, of f64 for x > 8.
#define WEFT_ERFC_TERMS(u)                                                                                          \
  "-" u "*(1 - 3*" u "*(1 - 5*" u "*(1 - 7*" u "*(1 - 9*" u "*(1 - 11*" u "*(1 - 13*" u "*(1 - 15*" u "*(1 - 17*" u \
  "*(1 - 19*" u "*(1 - 21*" u "*(1 - 23*" u "*(1 - 25*" u "*(1 - 27*" u ")))))))))))))"

#define WEFT_ERFC_SERIES(u) "log1p(" WEFT_ERFC_TERMS(u) ")"
#define WEFT_LARGE "select(x > 8, wide(x), 8)"
// 0.5723649429247001 is log(pi) / 2.
#define WEFT_LOG_ERFC_LARGE                          \
  "-" WEFT_LARGE "*" WEFT_LARGE " - log(" WEFT_LARGE \
  ") - 0.5723649429247001 + " WEFT_ERFC_SERIES("(0.5/(" WEFT_LARGE "*" WEFT_LARGE "))")

// The infinities have no difference.
#define WEFT_LOG_ADD_EXP(x, y)                                                                                        \
  "select(" x " - " y " == " x " - " y ", select(" x " > " y ", " x " + softplus(" y " - " x "), " y " + softplus(" x \
  " - " y ")), max(" x ", " y "))"
// Of weights a and b, by the difference of the exponents: exp(x) times a + b times exp(y - x) where x is larger.
#define WEFT_LOG_MIXTURE(a, b)                                                                                         \
  "select(x - y == x - y, select(x > y, x + log1p(" b "/(" a " + " b ")*expm1(select(x > y, y - x, 0))), y + log1p(" a \
  "/(" a " + " b ")*expm1(select(x > y, 0, x - y)))) + log(" a " + " b "), max(x, y))"
// y by the sum of two roots, which may be 0; infinite where y is.
#define WEFT_ROOT_DIFFERENCE(sum) \
  "select(abs(y) < inf, select(abs(y) < inf, wide(y), 0)/select(" sum " == 0, 1, " sum "), wide(y))"
// Weights whose share of the sum is no rounding error.
#define WEFT_NEAR_ONE(a) "(" a " > 0.05)*(" a " < 20)"

// A quotient that is 0 / 0 at 0: a series in S near 0, elsewhere as it is written, of F. Both are in f64: derivatives
// of the quotient are differences of terms that grow like 1 / x.
#define WEFT_S(limit) "select(abs(x) < " limit ", wide(x), 0)"
#define WEFT_F(limit) WEFT_HELD(limit, "-1e40", "1e40")
// The same held between numbers, outside of which an exponential has taken the result to 0 or 1.
#define WEFT_HELD(limit, lo, hi) "select(abs(x) < " limit ", " limit ", wide(x, " lo ", " hi "))"
#define WEFT_CASES(limit, near, far) "select(abs(x) < " limit ", " near ", " far ")"
#define WEFT_SQUARE(limit) "(" WEFT_S(limit) "*" WEFT_S(limit) ")"
#define WEFT_U WEFT_SQUARE("0.03")
#define WEFT_EVEN(series, far) WEFT_CASES("0.03", series, far)

// x / (exp(x) - 1) is an even function less x / 2; with Bernoulli's numbers.
#define WEFT_BERNOULLI(sign, far) \
  WEFT_EVEN("1 " sign " 0.5*" WEFT_S("0.03") " + " WEFT_U "*(1/12 - " WEFT_U "*(1/720 - " WEFT_U "/30240))", far)
#define WEFT_X_OVER_EXPM1 \
  WEFT_BERNOULLI("-", WEFT_HELD("0.03", "-1e40", "340") "/expm1(" WEFT_HELD("0.03", "-1e40", "340") ")")
#define WEFT_X_OVER_EXPM1_OF_NEGATIVE \
  WEFT_BERNOULLI("+", WEFT_HELD("0.03", "-340", "1e40") "/(-expm1(-" WEFT_HELD("0.03", "-340", "1e40") "))")

// exp(t^2) erfc(t) and exp(-t^2) / erfc(t) of t in f64.
#define WEFT_FROM_5(t) "select(" t " > 5, " t ", 5)"
#define WEFT_TO_5(t) "select(" t " > 5, 0, " t ")"
#define WEFT_LEADING(t) "(1 " WEFT_ERFC_TERMS("(0.5/(" WEFT_FROM_5(t) "*" WEFT_FROM_5(t) "))") ")"
// 0.5641895835477563 is 1 / sqrt(pi). The exponential reads another number than erfc where neither is taken, so that
// no rule finds itself in what it made.
#define WEFT_SCALED_ERFC(t)                                                                                  \
  "select(" t " > 5, 0.5641895835477563*" WEFT_LEADING(t) "/" WEFT_FROM_5(t) ", exp(select(" t " > 5, 1, " t \
                                                                             ")*select(" t " > 5, 1, " t     \
                                                                             "))*erfc(" WEFT_TO_5(t) "))"
#define WEFT_EXP_OVER_ERFC(t)                                                                 \
  "select(" t " > 5, 1.772453850905516*" WEFT_FROM_5(t) "/" WEFT_LEADING(t) ", exp(-" t "*" t \
                                                                            ")/erfc(" WEFT_TO_5(t) "))"
// In the normal distribution t is x / sqrt(2), of which f32 has a rounded number: t^2 is a x^2, and so t is meant.
#define WEFT_MEANT "(sqrt(abs(a))*wide(x))"
#define WEFT_ABOVE "(b > 0)*(abs(b*b/a - 1) < 1e-6)"
#define WEFT_BELOW "(b > 0)*(abs(b*b*a - 1) < 1e-6)"
#define WEFT_MINUS_ABOVE "(b > 0)*(abs(b*b/a + 1) < 1e-6)"
#define WEFT_MINUS_BELOW "(b > 0)*(abs(b*b*a + 1) < 1e-6)"
#define WEFT_HALF "a=0.25,b=0.5,c=3,d=0.5"
#define WEFT_MINUS_HALF "a=-0.25,b=0.5,c=3,d=0.5"
#define WEFT_HALF_BELOW "a=0.25,b=2,c=3,d=0.5"
#define WEFT_MINUS_HALF_BELOW "a=-0.25,b=2,c=3,d=0.5"
// With a factor that the pattern may have before or behind.
#define WEFT_HAZARD(name, above, below, factor)                                                                    \
  {                                                                                                                \
      name,           kAccurate, above "erfc(b*x)" below, factor WEFT_EXP_OVER_ERFC(WEFT_MEANT), WEFT_MINUS_ABOVE, \
      WEFT_MINUS_HALF},                                                                                            \
  {                                                                                                                \
    name "-below", kAccurate, above "erfc(x/b)" below, factor WEFT_EXP_OVER_ERFC(WEFT_MEANT), WEFT_MINUS_BELOW,    \
        WEFT_MINUS_HALF_BELOW                                                                                      \
  }
#define WEFT_MILLS(name, above, below, factor)                                                              \
  {name, kAccurate, above "erfc(b*x)" below, factor WEFT_SCALED_ERFC(WEFT_MEANT), WEFT_ABOVE, WEFT_HALF}, { \
    name "-below", kAccurate, above "erfc(x/b)" below, factor WEFT_SCALED_ERFC(WEFT_MEANT), WEFT_BELOW,     \
        WEFT_HALF_BELOW                                                                                     \
  }

#define WEFT_LOG_COSH                                                   \
  "select(abs(x) < 1, log1p(2*sinh(0.5*select(abs(x) < 1, x, 0))**2), " \
  "abs(x) - (0.6931471805599453 - log1p(exp(-2*abs(x)))))"
#define WEFT_IS_LOG_2 "abs(a - 0.6931471805599453) < 1e-7"

const FormulaRule kRows[] = {
    // --- Logarithms of sums and exponentials ---
    {"softplus", kAccurate, "log(1 + exp(x))", "softplus(x)"},
    {"softplus-of-log1p", kAccurate, "log1p(exp(x))", "softplus(x)"},
    {"softplus-of-branches", kAccurate, "max(x, 0) + softplus(-abs(x))", "softplus(x)"},
    {"log-expm1", kAccurate, "log(expm1(x))",
     "x + select(x > 0.6931471805599453, log1p(-0 - exp(-select(x > 0.6931471805599453, x, 1))), "
     "log(-0 - expm1(-select(x > 0.6931471805599453, 0.5, x))))"},
    {"log1mexp", kAccurate, "log(-expm1(x))",
     "select(x > -0.6931471805599453, log(-0 - expm1(select(x > -0.6931471805599453, x, -1))), "
     "log1p(-0 - exp(select(x > -0.6931471805599453, -1, x))))"},
    {"log1mexp-of-log1p", kAccurate, "log1p(-exp(x))",
     "select(x > -0.6931471805599453, log(-0 - expm1(select(x > -0.6931471805599453, x, -1))), "
     "log1p(-0 - exp(select(x > -0.6931471805599453, -1, x))))"},
    {"log-add-exp", kAccurate, "log(exp(x) + exp(y))", WEFT_LOG_ADD_EXP("x", "y")},
    {"log-difference-of-exps", kAccurate, "log(exp(x) - exp(y))",
     "select(x - y == x - y, x + select(y - x > -0.6931471805599453, log(-0 - expm1(select(y - x > "
     "-0.6931471805599453, y - x, -1))), log1p(-0 - exp(select(y - x > -0.6931471805599453, -1, y - x)))), "
     "select(x < 0, x, x - y))"},
    {"log-add-scaled-exps", kAccurate, "log(a*exp(x) + b*exp(y))", WEFT_LOG_MIXTURE("a", "b"),
     WEFT_NEAR_ONE("a") "*" WEFT_NEAR_ONE("b"), "a=0.75,b=0.25"},
    {"log-add-scaled-exp", kAccurate, "log(a*exp(x) + exp(y))",
     "select(x - y == x - y, select(x > y, x + log(a - (-0 - exp(select(x > y, y - x, 0)))), "
     "y + log1p(-0 - (-a)*exp(select(x > y, 0, x - y)))), max(x, y))",
     WEFT_NEAR_ONE("a"), "a=0.5"},
    {"log-number-plus-scaled-exp", kAccurate, "log(a + b*exp(x))",
     "select(x > 8, x + log(b - (-0 - a*exp(-select(x > 8, x, 8)))), log(a - (-0 - b*exp(select(x > 8, 0, x)))))",
     WEFT_NEAR_ONE("a") "*" WEFT_NEAR_ONE("b"), "a=0.75,b=0.5"},
    {"log-number-plus-exp", kAccurate, "log(a + exp(x))",
     "select(x > 8, x + log1p(-0 - (-a)*exp(-select(x > 8, x, 8))), log(a - (-0 - exp(select(x > 8, 0, x)))))",
     WEFT_NEAR_ONE("a") "*(abs(a - 1) > 0)", "a=0.75"},
    {"log1p-scaled-exp", kAccurate, "log1p(a*exp(x))",
     "select(x > 8, x + log(a - (-0 - exp(-select(x > 8, x, 8)))), log1p(-0 - (-a)*exp(select(x > 8, 0, x))))",
     WEFT_NEAR_ONE("a"), "a=0.5"},
    {"log-scaled-exp", kAccurate, "log(a*exp(x))", "x + log(a)", "a > 0", "a=3"},
    {"log-exp-over-number", kAccurate, "log(exp(x)/a)", "x - log(a)", "a > 0", "a=3"},
    {"log-exp", kAccurate, "log(exp(x))", "x"},
    {"log-exp2", kAccurate, "log2(exp2(x))", "x"},
    {"log-of-exp2", kAccurate, "log(exp2(x))", "0.6931471805599453*x"},
    {"log-sigmoid", kAccurate, "log(logistic(x))", "-softplus(-x)"},
    {"log-cosh", kAccurate, "log(cosh(x))", WEFT_LOG_COSH},
    {"log-cosh-by-softplus", kAccurate, "x + softplus(-2*x) - a", WEFT_LOG_COSH, WEFT_IS_LOG_2, "a=0.6931471805599453"},
    {"log-cosh-by-softplus-of-2x", kAccurate, "softplus(2*x) - x - a", WEFT_LOG_COSH, WEFT_IS_LOG_2,
     "a=0.6931471805599453"},
    {"log-cosh-by-softplus-less-log-2", kAccurate, "x - a + softplus(-2*x)", WEFT_LOG_COSH, WEFT_IS_LOG_2,
     "a=0.6931471805599453"},
    {"log-scaled-cosh", kAccurate, "log(a*cosh(x))", WEFT_LOG_COSH " + log(a)", "a > 0", "a=2"},
    {"log-sinh", kAccurate, "log(sinh(x))",
     "select(x > 1, x + log1p(-0 - exp(-2*select(x > 1, x, 1))) - 0.6931471805599453, "
     "log(-0 - sinh(-select(x > 1, 1, x))))"},
    {"log-scaled-sinh", kAccurate, "log(a*sinh(x))",
     "select(x > 1, x + log1p(-0 - exp(-2*select(x > 1, x, 1))) - 0.6931471805599453, "
     "log(-0 - sinh(-select(x > 1, 1, x)))) + log(a)",
     "a > 0", "a=2"},
    {"log-tanh", kAccurate, "log(tanh(x))",
     "select(x > 0.5, log1p(-2*logistic(-2*select(x > 0.5, x, 1))), log(-0 - tanh(-select(x > 0.5, 0.5, x))))"},
    {"log-sqrt", kAccurate, "log(sqrt(x))", "0.5*log(x)"},
    {"log-rsqrt", kAccurate, "log(rsqrt(x))", "-0.5*log(x)"},
    {"log-square", kAccurate, "log(x**2)", "2*log(abs(x))"},
    {"log-cube", kAccurate, "log(x**3)", "3*log(x)"},
    {"log-fourth", kAccurate, "log(x**4)", "4*log(abs(x))"},
    {"log-reciprocal", kAccurate, "log(1/x)", "-log(x)"},
    {"log-power", kNoNan, "log(pow(x, y))", "y*log(x)"},
    {"log-product", kNoNan, "log(x*y)", "log(x) + log(y)"},
    {"log-quotient", kNoNan, "log(x/y)", "log(x) - log(y)"},
    {"log1p", kAccurate, "log(1 + x)", "log1p(x)"},
    {"log1p-of-negative", kAccurate, "log(1 - x)", "log1p(-x)"},
    {"log1p-of-predecessor", kAccurate, "log1p(x - 1)", "log(x)"},
    {"log-sqrt-square-plus-one", kAccurate, "log(x + sqrt(1 + x**2))", "asinh(x)"},
    {"log-sqrt-scaled-square-plus-one", kAccurate, "log(a*x + sqrt(1 + b*x**2))", "asinh(a*x)",
     "abs(b/(a*a) - 1) < 1e-6", "a=2,b=4"},
    {"log-sqrt-scaled-twice-plus-one", kAccurate, "log(a*x + sqrt(1 + b*x*x))", "asinh(a*x)", "abs(b/(a*a) - 1) < 1e-6",
     "a=2,b=4"},
    {"log-sqrt-square-minus-one", kAccurate, "log(x + sqrt(x**2 - 1))", "acosh(x)"},
    {"atanh-of-quotient", kAccurate, "log((1 + x)/(1 - x))", "2*atanh(x)"},
    {"atanh-of-difference", kAccurate, "log1p(x) - log1p(-x)", "2*atanh(x)"},
    {"log-one-plus-square", kAccurate, "log(1 + x**2)", "log1p(wide(x)**2)"},
    {"log-one-plus-square-over", kAccurate, "log(1 + x**2/y)", "log1p(wide(x)**2/wide(y))"},
    {"log1p-square", kAccurate, "log1p(x**2)", "log1p(wide(x)**2)"},
    {"log1p-square-over", kAccurate, "log1p(x**2/y)", "log1p(wide(x)**2/wide(y))"},
    {"log1p-minus-log", kAccurate, "log1p(x) - log(x)",
     "select(x > 1, log1p(1/select(x > 1, x, 1)), log1p(x) - log(select(x > 1, 1, x)))"},
    {"log-of-successor-quotient", kAccurate, "log((x + a)/x)", "log1p(a/wide(x))", "abs(a) > 0", "a=2"},
    {"log-of-shifted-minus-log", kAccurate, "log(x + a) - log(x)",
     "select(x > a, log1p(a/select(x > a, x, a)), log(x + a) - log(select(x > a, a, x)))", "a > 0", "a=2"},
    {"log-minus-log-of-shifted", kAccurate, "log(x) - log(x + a)",
     "select(x > a, -log1p(a/select(x > a, x, a)), log(select(x > a, a, x)) - log(x + a))", "a > 0", "a=2"},
    {"log-of-shifted-minus-log-of-shifted", kAccurate, "log(x + a) - log(x + b)",
     "select(x > b, log1p((a - b)/(select(x > b, x, b) + b)), log(x + a) - log(select(x > b, b, x) + b))",
     "(a > 0)*(b > 0)*(abs(a - b) > 0)", "a=3,b=2"},
    {"log-of-shifted-minus-log1p", kAccurate, "log(x + a) - log1p(x)",
     "select(x > 1, log1p((a - 1)/(select(x > 1, x, 1) + 1)), log(x + a) - log1p(select(x > 1, 1, x)))",
     "(a > 0)*(abs(a - 1) > 0)", "a=2"},
    {"log1p-minus-log-of-shifted", kAccurate, "log1p(x) - log(x + a)",
     "select(x > 1, -log1p((a - 1)/(select(x > 1, x, 1) + 1)), log1p(select(x > 1, 1, x)) - log(x + a))",
     "(a > 0)*(abs(a - 1) > 0)", "a=2"},
    {"log1p-minus-log1p", kAccurate, "log1p(x) - log1p(y)",
     "select(abs(x - y) < 0.5*(1 + y), "
     "log1p(select(abs(x - y) < 0.5*(1 + y), x - y, 0)/select(abs(x - y) < 0.5*(1 + y), 1 + y, 1)), "
     "log1p(x) - select(abs(x - y) < 0.5*(1 + y), 0, log1p(y)))"},
    // Far from 1 by the reciprocal: 1 / (1 + x) and a / (1 + a x) are both almost 1 / x.
    {"log1p-minus-log1p-of-scaled", kAccurate, "log1p(x) - log1p(a*x)",
     "select(x > 1, log1p(1/select(x > 1, x, 1)) - select(x > 1, log1p((1/a)/select(x > 1, x, 1)), 0) - log(a), "
     "log1p(select(x > 1, 0.5, x)) - select(x > 1, 0, log1p(a*select(x > 1, 0.5, x))))",
     WEFT_NEAR_ONE("a") "*(abs(a - 1) > 0.05)", "a=2"},
    {"log1p-of-scaled-minus-log1p", kAccurate, "log1p(a*x) - log1p(x)",
     "select(x > 1, log1p((1/a)/select(x > 1, x, 1)) - select(x > 1, log1p(1/select(x > 1, x, 1)), 0) + log(a), "
     "log1p(a*select(x > 1, 0.5, x)) - select(x > 1, 0, log1p(select(x > 1, 0.5, x))))",
     WEFT_NEAR_ONE("a") "*(abs(a - 1) > 0.05)", "a=2"},
    {"log1p-of-scaled-minus-log1p-of-scaled", kAccurate, "log1p(a*x) - log1p(b*x)",
     "select(x > 1, log1p((1/a)/select(x > 1, x, 1)) - select(x > 1, log1p((1/b)/select(x > 1, x, 1)), 0) + log(a/b), "
     "log1p(a*select(x > 1, 0.5, x)) - select(x > 1, 0, log1p(b*select(x > 1, 0.5, x))))",
     WEFT_NEAR_ONE("a") "*" WEFT_NEAR_ONE("b") "*(abs(a/b - 1) > 0.05)", "a=2,b=3"},
    {"log-minus-log", kRounding, "log(x) - log(y)",
     "select(abs(x - y) < 0.5*y, "
     "log1p(select(abs(x - y) < 0.5*y, x - y, 0)/select(abs(x - y) < 0.5*y, y, 1)), "
     "log(x) - select(abs(x - y) < 0.5*y, 0, log(y)))"},
    {"exp-log", kAccurate, "exp(log(x))", "select(x < 0, nan, x)"},
    {"exp-scaled-log", kAccurate, "exp(y*log(x))", "select(x < 0, nan, pow(x, y))"},
    {"exp-log1p", kAccurate, "exp(log1p(x))", "select(x < -1, nan, 1 + x)"},
    {"expm1-log1p", kAccurate, "expm1(log1p(x))", "select(x < -1, nan, x)"},
    {"log1p-expm1", kAccurate, "log1p(expm1(x))", "x"},

    // --- Powers and reciprocals ---
    {"exp-reciprocal", kAccurate, "1/exp(x)", "exp(-x)"},
    {"reciprocal-sqrt", kAccurate, "1/sqrt(x)", "rsqrt(x)"},
    // Both are NaN below 0.
    {"power-of-power", kAccurate, "pow(pow(x, a), b)", "pow(x, a*b)",
     "(abs(a - floor(a)) > 0)*(abs(a*b - floor(a*b)) > 0)", "a=1.5,b=2.5"},
    {"power-of-power-of-positive", kNoNan, "pow(pow(x, a), b)", "pow(x, a*b)", "", "a=1.5,b=6"},

    // --- Exponentials less 1 ---
    {"expm1", kAccurate, "exp(x) - 1", "expm1(x)"},
    {"expm1-negative", kAccurate, "1 - exp(x)", "-expm1(x)"},
    {"exp-of-expm1", kAccurate, "1 + expm1(x)", "exp(x)"},
    {"expm1-after-difference", kAccurate, "exp(x) - y - 1", "expm1(x) - y"},
    {"expm1-after-sum", kAccurate, "exp(x) + y - 1", "expm1(x) + y"},

    // --- The logistic function ---
    {"sigmoid", kAccurate, "1/(1 + exp(x))", "logistic(-x)"},
    {"sigmoid-times", kAccurate, "y/(1 + exp(x))", "y*logistic(-x)"},
    {"sigmoid-of-quotient", kAccurate, "exp(x)/(1 + exp(x))", "logistic(x)"},
    {"sigmoid-of-product", kAccurate, "exp(x)*logistic(-x)", "logistic(x)"},
    {"sigmoid-of-two-exponentials", kAccurate, "exp(x)/(exp(x) + exp(y))", "logistic(x - y)"},
    {"sigmoid-complement", kAccurate, "1 - logistic(x)", "logistic(-x)"},
    {"sigmoid-minus-one", kAccurate, "logistic(x) - 1", "-logistic(-x)"},
    {"logistic-density-of-square", kAccurate, "exp(x)/(1 + exp(x))**2", "logistic_density(x)"},
    {"scaled-logistic-density-of-square", kAccurate, "exp(x)/(y*(1 + exp(x))**2)", "logistic_density(x)/y"},
    {"times-logistic-density-of-square", kAccurate, "y*exp(x)/(1 + exp(x))**2", "y*logistic_density(x)"},
    {"logistic-density", kAccurate, "logistic(x)*logistic(-x)", "logistic_density(x)"},
    {"tanh-of-sigmoid", kAccurate, "2*logistic(x) - 1", "tanh(0.5*x)"},
    {"tanh-of-sigmoid-negative", kAccurate, "1 - 2*logistic(x)", "-tanh(0.5*x)"},
    {"log-logistic-density", kAccurate, "log(logistic_density(x))", "-(softplus(x) + softplus(-x))"},
    {"exp-minus-softplus", kAccurate, "exp(-softplus(x))", "logistic(-x)"},
    {"softplus-difference", kAccurate, "softplus(x) - x", "softplus(-x)"},
    {"softplus-difference-negative", kAccurate, "x - softplus(x)", "-softplus(-x)"},
    {"logit", kAccurate, "log(x/(1 - x))",
     "select(abs(x - 0.5) < 0.25, 2*atanh(2*(select(abs(x - 0.5) < 0.25, x, 0.5) - 0.5)), log(x) - log1p(-x))"},
    {"sinh", kAccurate, "exp(x) - exp(-x)", "2*sinh(x)"},
    {"sinh-negative", kAccurate, "exp(-x) - exp(x)", "-2*sinh(x)"},
    {"cosh", kAccurate, "exp(x) + exp(-x)", "2*cosh(x)"},
    {"sinh-halves", kAccurate, "0.5*exp(x) - 0.5*exp(-x)", "sinh(x)"},
    {"cosh-halves", kAccurate, "0.5*exp(x) + 0.5*exp(-x)", "cosh(x)"},
    {"tanh-of-quotient", kAccurate, "sinh(x)/cosh(x)", "tanh(x)"},
    {"tanh-of-twice", kAccurate, "(2*sinh(x))/(2*cosh(x))", "tanh(x)"},
    {"tanh-of-expm1", kAccurate, "expm1(x)/(1 + exp(x))", "tanh(0.5*x)"},
    {"tanh-of-expm1-negative", kAccurate, "(-expm1(x))/(1 + exp(x))", "-tanh(0.5*x)"},
    {"tanh-of-expm1-plus-two", kAccurate, "expm1(x)/(2 + expm1(x))", "tanh(0.5*x)"},
    {"sech-squared", kAccurate, "1 - tanh(x)**2", "sech_squared(x)"},
    {"one-minus-tanh", kAccurate, "1 - tanh(x)", "2*logistic(-2*x)"},
    {"one-plus-tanh", kAccurate, "1 + tanh(x)", "2*logistic(2*x)"},
    {"cosh-minus-one", kAccurate, "cosh(x) - 1", "2*sinh(0.5*x)**2"},

    // --- Trigonometric functions ---
    {"one-minus-cos", kAccurate, "1 - cos(x)", "2*sin(0.5*x)**2"},
    {"cos-minus-one", kAccurate, "cos(x) - 1", "-2*sin(0.5*x)**2"},
    {"one-minus-cos-squared", kAccurate, "1 - cos(x)**2", "sin(x)**2"},
    {"one-minus-sin-squared", kAccurate, "1 - sin(x)**2", "cos(x)**2"},
    {"tan-of-quotient", kAccurate, "sin(x)/cos(x)", "tan(x)"},

    // --- The error function ---
    {"erfc", kAccurate, "1 - erf(x)", "erfc(x)"},
    {"erfc-negative", kAccurate, "1 + erf(x)", "erfc(-x)"},
    {"erfc-scaled", kAccurate, "a - a*erf(x)", "a*erfc(x)", "", "a=0.5"},
    {"erfc-scaled-negative", kAccurate, "a + a*erf(x)", "a*erfc(-x)", "", "a=0.5"},
    {"erf-complement", kAccurate, "1 - erfc(x)", "erf(x)"},
    {"erfc-complement", kAccurate, "2 - erfc(x)", "erfc(-x)"},
    {"log-erfc", kAccurate, "log(erfc(x))",
     "select(x > 8, " WEFT_LOG_ERFC_LARGE ", select(x < 0.5, log1p(-erf(select(x < 0.5, wide(x), 0))), "
     "0.6931471805599453*log2(erfc(select(x > 8, 8, wide(x))))))"},
    {"log-half-erfc", kAccurate, "log(0.5*erfc(x))",
     "select(x > 8, " WEFT_LOG_ERFC_LARGE
     " - 0.6931471805599453, select(x < 0, log1p(-0.5*erfc(select(x < 0, -wide(x), 0))), "
     "0.6931471805599453*(log2(erfc(select(x > 8, 8, wide(x)))) - 1)))"},

    // --- Roots and squares ---
    // Not x**2 - y**2, though (x - y)*(x + y) is better: its derivative is not, a difference of like numbers near 0.
    {"hypot", kAccurate, "sqrt(x**2 + y**2)", "sqrt(wide(x)**2 + wide(y)**2)"},
    {"sqrt-square", kAccurate, "sqrt(x**2)", "abs(x)"},
    {"square-sqrt", kAccurate, "sqrt(x)*sqrt(x)", "select(x < 0, nan, x)"},
    {"sqrt-difference", kAccurate, "sqrt(x + a) - sqrt(x)", "a/(sqrt(x + a) + sqrt(x))", "abs(a) > 0", "a=1"},
    {"sqrt-difference-negative", kAccurate, "sqrt(x) - sqrt(x + a)", "-a/(sqrt(x) + sqrt(x + a))", "abs(a) > 0", "a=1"},
    {"sqrt-difference-of-shifted-squares", kAccurate, "sqrt(x**2 + a) - sqrt(x**2 + b)",
     "(a - b)/(sqrt(wide(x)**2 + a) + sqrt(wide(x)**2 + b))", "(a > 0)*(b > 0)*(abs(a - b) > 0)", "a=2,b=1"},
    {"sqrt-difference-of-values", kAccurate, "sqrt(x + y) - sqrt(x)",
     WEFT_ROOT_DIFFERENCE("(sqrt(wide(x) + wide(y)) + sqrt(wide(x)))")},
    {"sqrt-difference-of-values-below", kAccurate, "sqrt(x) - sqrt(x - y)",
     WEFT_ROOT_DIFFERENCE("(sqrt(wide(x)) + sqrt(wide(x) - wide(y)))")},
    {"sqrt-difference-of-shifted", kAccurate, "sqrt(x + a) - sqrt(x + b)",
     "(a - b)/(sqrt(wide(x) + a) + sqrt(wide(x) + b))", "abs(a - b) > 0", "a=2,b=1"},
    {"sqrt-minus-one", kAccurate, "sqrt(1 + x) - 1", "x/(sqrt(1 + x) + 1)"},
    {"one-minus-sqrt", kAccurate, "1 - sqrt(1 - x)", "x/(sqrt(1 - x) + 1)"},
    {"sqrt-square-minus", kAccurate, "sqrt(x**2 + a) - x",
     "select(x > 0, a/(sqrt(wide(x)**2 + a) + abs(wide(x))), sqrt(wide(x)**2 + a) + abs(wide(x)))", "a > 0", "a=1"},
    {"minus-sqrt-square", kAccurate, "x - sqrt(x**2 - a)",
     "select(x > 0, a/(abs(wide(x)) + sqrt(wide(x)**2 - a)), -(abs(wide(x)) + sqrt(wide(x)**2 - a)))", "a > 0", "a=1"},

    // --- Numbers ---
    {"powers-of-two", kAccurate, "a*(b*x)", "(a*b)*x",
     "(floor(log2(abs(a))) == log2(abs(a)))*(floor(log2(abs(b))) == log2(abs(b)))", "a=0.5,b=-4"},
    {"number-times-negative", Licence::kExact, "a*(-x)", "-a*x", "", "a=3"},
    {"negative-times-itself", Licence::kExact, "(-x)*x", "-(x**2)"},

    // --- Quotients ---
    {"reciprocal-difference", kAccurate, "1/x - 1/(x + a)", "(a/x)/(x + a)", "a > 0", "a=1"},
    {"reciprocal-difference-negative", kAccurate, "1/(x + a) - 1/x", "-((a/x)/(x + a))", "a > 0", "a=1"},
    {"quotient-complement", kAccurate, "1 - x/(x + a)", "a/(x + a)", "a > 0", "a=1"},
    {"quotient-complement-of-one", kAccurate, "1 - 1/(1 + x)",
     "select(abs(x) < 2, x/(1 + x), 1/(1 + 1/select(abs(x) < 2, 2, x)))"},

    // --- By exp(x) - 1 ---
    {"number-over-expm1", kAccurate, "a/expm1(x)", "a/expm1(wide(x, -1e40, 340))", "", "a=1"},
    {"exp-over-expm1", kAccurate, "exp(x)/expm1(x)", "1/(-expm1(-wide(x, -340, 1e40)))"},
    {"x-over-expm1", kAccurate, "x/expm1(x)", WEFT_X_OVER_EXPM1},
    {"negative-x-over-expm1", kAccurate, "x/(-expm1(x))", "-" WEFT_X_OVER_EXPM1},
    {"x-over-expm1-of-negative", kAccurate, "x/expm1(-x)", "-" WEFT_X_OVER_EXPM1_OF_NEGATIVE},
    {"x-over-complement-of-exp", kAccurate, "x/(-expm1(-x))", WEFT_X_OVER_EXPM1_OF_NEGATIVE},
    {"x-times-exp-over-expm1", kAccurate, "x*exp(x)/expm1(x)", WEFT_X_OVER_EXPM1_OF_NEGATIVE},
    {"square-over-expm1", kAccurate, "x**2/expm1(x)", "wide(x, -1e40, 340)**2/expm1(wide(x, -1e40, 340))"},
    {"cube-over-expm1", kAccurate, "x**3/expm1(x)", "wide(x, -1e40, 340)**3/expm1(wide(x, -1e40, 340))"},
    {"cube-over-expm1-of-another", kAccurate, "y**3/expm1(x)", "wide(y)**3/expm1(wide(x, -1e40, 340))"},
    {"expm1-over-x", kAccurate, "expm1(x)/x",
     WEFT_CASES(
         "0.03",
         "1 + " WEFT_S("0.03") "*(1/2 + " WEFT_S("0.03") "*(1/6 + " WEFT_S("0.03") "*(1/24 + " WEFT_S(
             "0.03") "*(1/120 + " WEFT_S("0.03") "*(1/720 + " WEFT_S("0.03") "*(1/5040 + " WEFT_S("0.03") "/"
                                                                                                          "40320)))"
                                                                                                          ")))",
         "expm1(" WEFT_F("0.03") ")/" WEFT_F("0.03"))},

    // --- By logarithms ---
    {"log1p-over-x", kAccurate, "log1p(x)/x",
     WEFT_CASES("0.01",
                "1 - " WEFT_S("0.01") "*(1/2 - " WEFT_S("0.01") "*(1/3 - " WEFT_S("0.01") "*(1/4 - " WEFT_S(
                    "0.01") "*(1/5 - " WEFT_S("0.01") "*(1/6 - " WEFT_S("0.01") "*(1/7 - " WEFT_S("0.01") "/8))))))",
                "log1p(" WEFT_F("0.01") ")/" WEFT_F("0.01"))},
    {"x-over-log1p", kAccurate, "x/log1p(x)",
     WEFT_CASES(
         "0.01",
         "1 + " WEFT_S("0.01") "*(1/2 - " WEFT_S("0.01") "*(1/12 - " WEFT_S("0.01") "*(1/24 - " WEFT_S(
             "0.01") "*(19/720 - " WEFT_S("0.01") "*(3/160 - " WEFT_S("0.01") "*(863/60480 - " WEFT_S("0.01") "*(275/"
                                                                                                              "24192)))"
                                                                                                              "))))",
         WEFT_F("0.01") "/log1p(" WEFT_F("0.01") ")")},

    // --- Hyperbolic functions ---
    {"number-over-cosh", kAccurate, "a/cosh(x)", "a/cosh(wide(x, -340, 340))", "", "a=1"},
    {"number-over-sinh", kAccurate, "a/sinh(x)", "a/sinh(wide(x, -340, 340))", "", "a=1"},
    {"number-over-scaled-cosh", kAccurate, "a/(b*cosh(x))", "(a/b)/cosh(wide(x, -340, 340))", "abs(b) > 0", "a=2,b=2"},
    {"number-over-scaled-sinh", kAccurate, "a/(b*sinh(x))", "(a/b)/sinh(wide(x, -340, 340))", "abs(b) > 0", "a=2,b=2"},
    {"sech-squared-of-cosh", kAccurate, "1/cosh(x)**2", "sech_squared(x)"},
    {"coth", kAccurate, "cosh(x)/sinh(x)", "1/tanh(x)"},
    {"x-over-sinh", kAccurate, "x/sinh(x)",
     WEFT_EVEN("1 - " WEFT_U "*(1/6 - " WEFT_U "*(7/360 - " WEFT_U "*(31/15120)))",
               WEFT_HELD("0.03", "-340", "340") "/sinh(" WEFT_HELD("0.03", "-340", "340") ")")},
    {"x-over-tanh", kAccurate, "x/tanh(x)",
     WEFT_EVEN("1 + " WEFT_U "*(1/3 - " WEFT_U "*(1/45 - " WEFT_U "*(2/945 - " WEFT_U "/4725)))",
               WEFT_F("0.03") "/tanh(" WEFT_F("0.03") ")")},
    {"tanh-over-x", kAccurate, "tanh(x)/x",
     WEFT_EVEN("1 - " WEFT_U "*(1/3 - " WEFT_U "*(2/15 - " WEFT_U "*(17/315 - " WEFT_U "*(62/2835))))",
               "tanh(" WEFT_F("0.03") ")/" WEFT_F("0.03"))},
    {"sinh-over-x", kAccurate, "sinh(x)/x",
     WEFT_EVEN("1 + " WEFT_U "*(1/6 + " WEFT_U "*(1/120 + " WEFT_U "/5040))",
               "sinh(" WEFT_F("0.03") ")/" WEFT_F("0.03"))},

    // Of any other value above. (Of patterns of one length the first is tried first.)
    {"times-exp-over-expm1", kAccurate, "y*exp(x)/expm1(x)", "wide(y)/(-expm1(-wide(x, -340, 1e40)))"},
    {"over-expm1", kAccurate, "y/expm1(x)", "wide(y)/expm1(wide(x, -1e40, 340))"},
    {"over-negative-expm1", kAccurate, "y/(-expm1(x))", "wide(y)/(-expm1(wide(x, -1e40, 340)))"},
    {"over-cosh", kAccurate, "y/cosh(x)", "wide(y)/cosh(wide(x, -340, 340))"},
    {"over-sinh", kAccurate, "y/sinh(x)", "wide(y)/sinh(wide(x, -340, 340))"},

    {"coth-minus-reciprocal", kAccurate, "1/tanh(x) - 1/x",
     WEFT_CASES(
         "0.3",
         WEFT_S("0.3") "*(1/3 - " WEFT_SQUARE("0.3") "*(1/45 - " WEFT_SQUARE("0.3") "*(2/945 - " WEFT_SQUARE(
             "0.3") "*(1/4725 - " WEFT_SQUARE("0.3") "*(2/93555 - " WEFT_SQUARE("0.3") "*(1382/638512875 "
                                                                                       "- " WEFT_SQUARE("0.3") "*(4/"
                                                                                                               "1824322"
                                                                                                               "5))))))"
                                                                                                               ")",
         "1/tanh(" WEFT_F("0.3") ") - 1/" WEFT_F("0.3"))},

    // --- Trigonometric functions ---
    {"x-over-sin", kAccurate, "x/sin(x)",
     WEFT_EVEN("1 + " WEFT_U "*(1/6 + " WEFT_U "*(7/360 + " WEFT_U "*(31/15120 + " WEFT_U "*(127/604800))))",
               WEFT_F("0.03") "/sin(" WEFT_F("0.03") ")")},
    {"one-minus-cos-over-square", kAccurate, "(2*sin(0.5*x)**2)/x**2",
     WEFT_EVEN("1/2 - " WEFT_U "*(1/24 - " WEFT_U "*(1/720 - " WEFT_U "/40320))",
               "2*sin(0.5*" WEFT_F("0.03") ")**2/" WEFT_F("0.03") "**2")},

    // --- The error function ---
    {"exp-over-erfc", kAccurate, "exp(-x**2)/erfc(x)", WEFT_EXP_OVER_ERFC("wide(x)")},
    {"exp-times-erfc", kAccurate, "exp(x**2)*erfc(x)", WEFT_SCALED_ERFC("wide(x)")},
    {"half-erfc-complement", kAccurate, "1 - 0.5*erfc(x)", "0.5*erfc(-x)"},
    WEFT_MILLS("mills-ratio", "exp(a*x**2)*", "", ""),
    WEFT_MILLS("scaled-mills-ratio", "c*exp(a*x**2)*", "", "c*"),
    WEFT_MILLS("mills-ratio-of-scaled", "exp(a*x**2)*(d*", ")", "d*"),
    WEFT_HAZARD("normal-hazard", "exp(a*x**2)/", "", ""),
    WEFT_HAZARD("normal-hazard-of-scaled", "exp(a*x**2)/(d*", ")", "(1/d)*"),
    WEFT_HAZARD("scaled-normal-hazard", "c*exp(a*x**2)/", "", "c*"),
    WEFT_HAZARD("scaled-normal-hazard-of-scaled", "c*exp(a*x**2)/(d*", ")", "(c/d)*"),
    WEFT_HAZARD("divided-normal-hazard", "exp(a*x**2)/c/", "", "(1/c)*"),
    WEFT_HAZARD("divided-normal-hazard-of-scaled", "exp(a*x**2)/c/(d*", ")", "(1/(c*d))*"),
};

}  // namespace

absl::Span<const FormulaOfF64> FormulasOfF64() {
  static const FormulaOfF64 rows[] = {
      {"exp-over-expm1", "1/(-expm1(-x))"},
      {"times-exp-over-expm1", "y/(-expm1(-x))"},
      {"square-over-expm1", "x*(x/expm1(x))"},
      {"cube-over-expm1", "x*(x*(x/expm1(x)))"},
      {"one-minus-cos-over-square", "2*(sin(0.5*x)/x)**2"},
  };
  return rows;
}

absl::Span<const FormulaRule> StableFormulas() { return kRows; }

}  // namespace weft
