#include "transforms/opt/wide_forms.h"

#include <cmath>
#include <numbers>
#include <optional>

namespace weft {
namespace {

using Row = WideForm;

constexpr Row As(LossForm form, Row row) {
  row.form = form;
  return row;
}
constexpr Row Function(Row row) {
  row.cost = kCostOfFunction;
  return row;
}
constexpr Row Linear(Row row) {
  row.linear = true;
  return row;
}
constexpr Row KeepsSign(Row row) {
  row.keeps_sign = true;
  return row;
}
constexpr Row Moves() { return {.linear = true, .cost = 0, .widens = true}; }
constexpr Row MovesEach() { return KeepsSign(Moves()); }
constexpr Row Chooses() { return {.widens = true}; }
constexpr Row Rounds(KnownSign sign = KnownSign::kUnknown) { return {.widens = true, .rounds = true, .sign = sign}; }
constexpr Row Overflows(KnownSign sign = KnownSign::kUnknown) {
  return {.widens = true, .rounds = true, .overflows = true, .sign = sign};
}
constexpr Row Reads(KnownSign sign = KnownSign::kUnknown) {
  return {.cost = 2, .widens = true, .rounds = true, .reads_range = true, .sign = sign};
}
constexpr Row HasLimits(KnownSign sign = KnownSign::kUnknown) {
  return Function({.widens = true, .rounds = true, .has_limits = true, .sign = sign});
}
constexpr Row Logarithm() {
  return Function({.widens = true, .rounds = true, .reads_range = true, .logarithmic = true});
}

}  // namespace

const PrimTable<WideForm>& WideForms() {
  constexpr KnownSign kPositive = KnownSign::kNotNegative;
  static const auto& rows = *new PrimTable<Row>{
      {"convert",
       As(LossForm::kConversion, KeepsSign({.linear = true, .cost = 0, .widens = true, .rounds = true}))},  // of f64
      {"broadcast", MovesEach()},
      {"reshape", MovesEach()},
      {"transpose", Moves()},
      {"slice", Moves()},
      {"reverse", Moves()},
      {"concatenate", Moves()},
      {"threefry2x32", {.form = LossForm::kRandom}},
      {"neg", As(LossForm::kNegative, Moves())},
      {"abs", {.widens = true, .sign = kPositive}},
      {"max", As(LossForm::kMaximum, Chooses())},
      {"min", Chooses()},
      {"select", As(LossForm::kChoice, Chooses())},
      {"clamp", Chooses()},
      {"reduce_max", Chooses()},
      {"reduce_min", Chooses()},
      {"add", As(LossForm::kSum, Linear(Rounds()))},
      {"sub", As(LossForm::kDifference, Linear(Rounds()))},
      {"mul", As(LossForm::kProduct, Linear(Overflows()))},
      {"square", As(LossForm::kProduct, Overflows(kPositive))},
      {"integer_pow", As(LossForm::kPower, Overflows())},
      {"div", As(LossForm::kQuotient,
                 {.linear = true, .cost = 2, .widens = true, .rounds = true, .overflows = true, .reads_range = true})},
      {"pow", Function({.widens = true, .rounds = true, .overflows = true, .reads_range = true, .sign = kPositive})},
      {"exp", Function(Overflows(kPositive))},
      {"exp2", Function(Overflows(kPositive))},
      {"expm1", KeepsSign(Function(Overflows()))},
      {"sinh", KeepsSign(Function(Overflows()))},
      {"cosh", Function(Overflows(kPositive))},
      {"log", Logarithm()},
      {"log1p", KeepsSign(Logarithm())},
      {"log2", Logarithm()},
      {"log10", Logarithm()},
      {"log_product", Logarithm()},
      {"log_quotient", Logarithm()},
      {"sqrt", Reads(kPositive)},
      {"rsqrt", Reads(kPositive)},
      {"cbrt", KeepsSign(Function(Reads()))},
      {"tanh", KeepsSign(HasLimits())},
      {"sin", Function(Rounds())},
      {"cos", Function(Rounds())},
      {"tan", Function(Rounds())},
      {"asin", KeepsSign(Function(Rounds()))},
      {"acos", Function(Rounds(kPositive))},
      {"atan", KeepsSign(Function(Rounds()))},
      {"atan2", Function(Reads())},
      {"asinh", KeepsSign(Function(Rounds()))},
      {"acosh", Function(Rounds(kPositive))},
      {"atanh", KeepsSign(Function(Rounds()))},
      {"logistic", HasLimits(kPositive)},
      {"logistic_density", HasLimits(kPositive)},
      {"softplus", Function(Rounds(kPositive))},
      {"sech_squared", HasLimits(kPositive)},
      {"erf", KeepsSign(HasLimits())},
      {"erfc", HasLimits(kPositive)},
      {"normal_cdf", HasLimits(kPositive)},
      {"normal_density", HasLimits(kPositive)},
      {"erf_inv", KeepsSign(Function(Rounds()))},
      {"lgamma", Function({.widens = true, .rounds = true, .overflows = true, .logarithmic = true})},
      {"digamma", Function(Rounds())},
      {"trigamma", Function(Rounds(kPositive))},
      {"reduce_sum", Rounds()},
      {"reduce_prod", Overflows()},
      {"cumsum", Rounds()},
      {"cumprod", Overflows()},
      {"contract", As(LossForm::kProduct, Overflows())},
  };
  return rows;
}

double Meant(double value) {
  const double size = std::fabs(value);
  if (!(size >= 0x1p-20 && size <= 0x1p20)) return value;
  const auto is_it = [value](double exact) { return static_cast<double>(static_cast<float>(exact)) == value; };
  using std::numbers::pi;
  static const double roots[] = {pi,
                                 std::numbers::e,
                                 std::numbers::ln2,
                                 std::numbers::ln10,
                                 std::numbers::log2e,
                                 std::numbers::log10e,
                                 std::numbers::sqrt2,
                                 std::numbers::sqrt3,
                                 std::numbers::inv_sqrtpi,
                                 1 / pi,
                                 pi / 3,
                                 pi / 180,
                                 std::sqrt(pi),
                                 std::sqrt(2 * pi),
                                 1 / std::sqrt(2 * pi),
                                 std::log(pi),
                                 std::log(2 * pi)};
  for (const double root : roots) {
    for (const double scale : {1.0, 2.0, 0.5, 4.0, 0.25}) {
      for (const double sign : {1.0, -1.0}) {
        if (is_it(sign * scale * root)) return sign * scale * root;
      }
    }
  }
  int exponent;
  std::frexp(size, &exponent);
  const double step = std::ldexp(1.0, exponent - 24);  // between numbers of f32
  const auto fraction = [&](double of) -> std::optional<double> {
    if (of * step > 1e-3) return std::nullopt;  // there would be many such numbers
    const double exact = std::round(value * of) / of;
    return is_it(exact) ? std::optional<double>(exact) : std::nullopt;
  };
  for (int of = 1; of <= 128; ++of) {
    if (const auto exact = fraction(of)) return *exact;
  }
  for (const double of : {1e3, 1e4}) {
    if (const auto exact = fraction(of)) return *exact;
  }
  return value;
}

}  // namespace weft
