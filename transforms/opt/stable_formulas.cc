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
#define WEFT_ABOVE_5 "select(x > 5, wide(x), 5)"
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
#define WEFT_LOG_MIXTURE(a, b)                                                                                      \
  "select(x - y == x - y, select(x > y, x + log1p(" b "/(" a " + " b ")*expm1(y - x)), y + log1p(" a "/(" a " + " b \
  ")*expm1(x - y))) + log(" a " + " b "), max(x, y))"
// Weights whose share of the sum is no rounding error.
#define WEFT_NEAR_ONE(a) "(" a " > 0.05)*(" a " < 20)"

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
    {"log-add-scaled-exps", kAccurate, "log(a*exp(x) + b*exp(y))", WEFT_LOG_MIXTURE("a", "b"),
     WEFT_NEAR_ONE("a") "*" WEFT_NEAR_ONE("b"), "a=0.75,b=0.25"},
    {"log-add-scaled-exp", kAccurate, "log(a*exp(x) + exp(y))",
     "select(x - y == x - y, select(x > y, x + log(a - (-0 - exp(select(x > y, y - x, 0)))), "
     "y + log1p(a*exp(select(x > y, 0, x - y)))), max(x, y))",
     WEFT_NEAR_ONE("a"), "a=0.5"},
    {"log-number-plus-scaled-exp", kAccurate, "log(a + b*exp(x))",
     "select(x > 8, x + log(b - (-0 - a*exp(-x))), log(a - (-0 - b*exp(select(x > 8, 0, x)))))",
     WEFT_NEAR_ONE("a") "*" WEFT_NEAR_ONE("b"), "a=0.75,b=0.5"},
    {"log-number-plus-exp", kAccurate, "log(a + exp(x))",
     "select(x > 8, x + log1p(a*exp(-x)), log(a - (-0 - exp(select(x > 8, 0, x)))))",
     WEFT_NEAR_ONE("a") "*(abs(a - 1) > 0)", "a=0.75"},
    {"log-scaled-exp", kAccurate, "log(a*exp(x))", "x + log(a)", "a > 0", "a=3"},
    {"log-exp-over-number", kAccurate, "log(exp(x)/a)", "x - log(a)", "a > 0", "a=3"},
    {"log-times-exp", kAccurate, "log(x*exp(y))", "log(wide(x)) + wide(y)"},
    {"log-times-exp-times", kAccurate, "log(x*exp(y)*z)", "log(wide(x)*wide(z)) + wide(y)"},
    {"log-times-exp-over", kAccurate, "log(x*exp(y)/z)", "log(wide(x)/wide(z)) + wide(y)"},
    {"log-times-quotient-of-exp", kAccurate, "log(x*(exp(y)/z))", "log(wide(x)/wide(z)) + wide(y)"},
    {"log-exp-over", kAccurate, "log(exp(x)/y)", "wide(x) - log(wide(y))"},
    {"log-over-exp", kAccurate, "log(x/exp(y))", "log(wide(x)) - wide(y)"},
    {"log-exp", kAccurate, "log(exp(x))", "x"},
    {"log-exp2", kAccurate, "log2(exp2(x))", "x"},
    {"log-sigmoid", kAccurate, "log(logistic(x))", "-softplus(-x)"},
    {"log-cosh", kAccurate, "log(cosh(x))",
     "select(abs(x) < 1, log1p(2*sinh(0.5*select(abs(x) < 1, x, 0))**2), "
     "abs(x) + log1p(exp(-2*abs(x))) - 0.6931471805599453)"},
    {"log-scaled-cosh", kAccurate, "log(a*cosh(x))",
     "select(abs(x) < 1, log1p(2*sinh(0.5*select(abs(x) < 1, x, 0))**2), "
     "abs(x) + log1p(exp(-2*abs(x))) - 0.6931471805599453) + log(a)",
     "a > 0", "a=2"},
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
    {"log-sqrt-square-minus-one", kAccurate, "log(x + sqrt(x**2 - 1))", "acosh(x)"},
    {"atanh-of-quotient", kAccurate, "log((1 + x)/(1 - x))", "2*atanh(x)"},
    {"atanh-of-difference", kAccurate, "log1p(x) - log1p(-x)", "2*atanh(x)"},
    {"log1p-minus-log", kAccurate, "log1p(x) - log(x)",
     "select(x > 1, log1p(1/select(x > 1, x, 1)), log1p(x) - log(select(x > 1, 1, x)))"},
    {"log1p-minus-log1p", kAccurate, "log1p(x) - log1p(y)",
     "select(abs(x - y) < 0.5*(1 + y), "
     "log1p(select(abs(x - y) < 0.5*(1 + y), x - y, 0)/select(abs(x - y) < 0.5*(1 + y), 1 + y, 1)), "
     "log1p(x) - select(abs(x - y) < 0.5*(1 + y), 0, log1p(y)))"},
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

    {"exp-over-erfc", kAccurate, "exp(-x**2)/erfc(x)",
     "select(x > 5, 1.772453850905516*" WEFT_ABOVE_5 "/(1 " WEFT_ERFC_TERMS(
         "(0.5/(" WEFT_ABOVE_5 "*" WEFT_ABOVE_5 "))") "), exp(-wide(x)**2)/erfc(select(x > 5, 0, wide(x))))"},

    // --- The logistic function ---
    {"sigmoid", kAccurate, "1/(1 + exp(x))", "logistic(-x)"},
    {"sigmoid-times", kAccurate, "y/(1 + exp(x))", "y*logistic(-x)"},
    {"sigmoid-of-quotient", kAccurate, "exp(x)/(1 + exp(x))", "logistic(x)"},
    {"sigmoid-of-product", kAccurate, "exp(x)*logistic(-x)", "logistic(x)"},
    {"sigmoid-of-two-exponentials", kAccurate, "exp(x)/(exp(x) + exp(y))", "logistic(x - y)"},
    {"sigmoid-complement", kAccurate, "1 - logistic(x)", "logistic(-x)"},
    {"sigmoid-minus-one", kAccurate, "logistic(x) - 1", "-logistic(-x)"},
    {"logistic-density-of-square", kAccurate, "exp(x)/(1 + exp(x))**2", "logistic_density(x)"},
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
    {"sqrt-difference", kAccurate, "sqrt(x + a) - sqrt(x)", "a/(sqrt(x + a) + sqrt(x))", "a > 0", "a=1"},
    {"sqrt-difference-below", kAccurate, "sqrt(x) - sqrt(x - a)", "a/(sqrt(x) + sqrt(x - a))", "a > 0", "a=1"},
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

    // --- Quotients ---
    {"reciprocal-difference", kAccurate, "1/x - 1/(x + a)", "(a/x)/(x + a)", "a > 0", "a=1"},
    {"reciprocal-difference-negative", kAccurate, "1/(x + a) - 1/x", "-((a/x)/(x + a))", "a > 0", "a=1"},
    {"quotient-complement", kAccurate, "1 - x/(x + a)", "a/(x + a)", "a > 0", "a=1"},
    {"quotient-complement-of-one", kAccurate, "1 - 1/(1 + x)",
     "select(abs(x) < 2, x/(1 + x), 1/(1 + 1/select(abs(x) < 2, 2, x)))"},
};

}  // namespace

absl::Span<const FormulaRule> StableFormulas() { return kRows; }

}  // namespace weft
