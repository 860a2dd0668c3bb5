// Rules for the logarithm of a sum of several exponentials that is written out: log(exp(x) + exp(y) + exp(z) + 3). Sums
// over dimensions are in stable_structure.cc, sums of two in stable_formulas.cc.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "transforms/opt/defined_by.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/same_value.h"
#include "transforms/opt/stable_rules.h"

namespace weft {
namespace {

enum class TermForm : uint8_t { kOther, kSum, kProduct, kQuotient, kExponential, kCosh, kSquare, kPower };

TermForm FormOf(const Eqn& e) {
  using enum TermForm;
  static const auto& forms =
      *new PrimTable<TermForm>{{"add", kSum},   {"mul", kProduct},   {"div", kQuotient},     {"exp", kExponential},
                               {"cosh", kCosh}, {"square", kSquare}, {"integer_pow", kPower}};
  return forms[*e.prim];
}

constexpr size_t kMostTerms = 16;

// The terms of a sum, each a positive number times an exponential, or a positive number.
class ExponentialsOf {
 public:
  // With `number` among the terms; 0: none.
  ExponentialsOf(Builder& b, double number) : b_(b), number_(number) {}

  // False where a term is something else, or there are too many.
  bool Sum(const Atom& a, double factor) {
    const Eqn* e = b_.Definition(a);
    if (e != nullptr && FormOf(*e) == TermForm::kSum) {
      const Atom first = e->operands[0], second = e->operands[1];
      return Sum(first, factor) && Sum(second, factor);
    }
    return Term(a, factor, 1, 6) && terms_.size() <= kMostTerms;
  }

  bool HasExponentials() const { return !terms_.empty(); }
  size_t num_terms() const { return terms_.size() + (number_ > 0 ? 1 : 0); }
  // Whether formulas of two terms leave it as it is: a factor is a small one, or a large one.
  bool IsFarFromOne() const {
    const auto far = [](double factor) { return factor < 0.05 || factor > 20; };
    return (number_ > 0 && far(number_)) ||
           std::any_of(terms_.begin(), terms_.end(), [&](const Exponential& t) { return far(t.factor); });
  }

  // The logarithm of the sum: of the largest term, and of 1 and the others divided by it.
  Atom Logarithm(DType dtype) {
    std::optional<Atom> largest, rest;
    const Atom zero = Atom::Scalar(dtype, 0), one = Atom::Scalar(dtype, 1);
    Atoms exponents;
    for (const Exponential& t : terms_) exponents.push_back(ExponentOf(t, dtype));
    if (number_ > 0) exponents.push_back(Atom::Scalar(dtype, std::log(number_)));
    for (const Atom& y : exponents) {
      if (!largest) {
        largest = y;
        continue;
      }
      Atom more = Sub(b_, y, *largest);
      // Infinities that are alike have no difference.
      if (y.is_var()) more = Select(b_, Or(b_, Ne(b_, y, *largest), IsFinite(b_, y)), more, zero);
      const Atom larger = Gt(b_, more, zero);
      const Atom before = Exp(b_, Select(b_, larger, Neg(b_, more), zero));
      const Atom after = Exp(b_, Select(b_, larger, zero, more));
      if (rest)
        rest = Select(b_, larger, Mul(b_, weft::Add(b_, one, *rest), before), weft::Add(b_, *rest, after));
      else
        rest = Select(b_, larger, before, after);
      largest = Select(b_, larger, y, *largest);
    }
    return weft::Add(b_, *largest, b_.Emit1(FindPrim("log1p"), {*rest}));
  }

 private:
  // factor exp(power exponent)
  struct Exponential {
    double factor;
    Atom exponent;
    int64_t power;
  };

  bool Add(double factor, const Atom& exponent, int64_t power) {
    if (!(factor > 0) || !std::isfinite(factor)) return false;
    terms_.push_back({factor, exponent, power});
    return true;
  }

  // factor * a^power
  bool Term(const Atom& a, double factor, int64_t power, int depth) {
    if (const Atom* s = Splat(b_, a)) {
      const double value = factor * std::pow(s->literal().Get(0).real(), static_cast<double>(power));
      if (!(value >= 0)) return false;
      number_ += value;
      return true;
    }
    const Eqn* e = b_.Definition(a);
    if (e == nullptr || depth == 0) return false;
    const TermForm form = FormOf(*e);
    const Atoms x = e->operands;
    switch (form) {
      case TermForm::kProduct:
      case TermForm::kQuotient:
        for (const size_t i : {size_t{0}, size_t{1}}) {
          const Atom* s = Splat(b_, x[i]);
          if (s == nullptr || (form == TermForm::kQuotient && i == 0)) continue;
          const double number = s->literal().Get(0).real(), scale = form == TermForm::kProduct ? number : 1 / number;
          return Term(x[1 - i], factor * std::pow(scale, static_cast<double>(power)), power, depth - 1);
        }
        return form == TermForm::kProduct && SameValue(b_, x[0], x[1]) && Term(x[0], factor, 2 * power, depth - 1);
      case TermForm::kExponential: return e->attrs.entries().empty() && Add(factor, x[0], power);
      case TermForm::kCosh: return power == 1 && Add(factor / 2, x[0], 1) && Add(factor / 2, x[0], -1);
      case TermForm::kSquare: return Term(x[0], factor, 2 * power, depth - 1);
      case TermForm::kPower: {
        const int64_t n = e->attrs.GetInt("y");
        return std::abs(n) <= 64 && std::abs(power) <= 64 && Term(x[0], factor, power * n, depth - 1);
      }
      default: return false;
    }
  }

  Atom ExponentOf(const Exponential& t, DType dtype) {
    const double number = std::log(t.factor);
    Atom y = t.exponent;
    if (t.power == -1)
      y = Neg(b_, y);
    else if (t.power != 1)
      y = Mul(b_, Atom::Scalar(dtype, static_cast<double>(t.power)), y);
    return number == 0 ? y : weft::Add(b_, y, Atom::Scalar(dtype, number));
  }

  Builder& b_;
  std::vector<Exponential> terms_;
  double number_;  // the sum of those that are numbers
};

// log(number + sum). Of two terms like numbers there may be formulas.
std::optional<Atom> LogOfExponentials(Builder& b, const Eqn& e, const Atoms& x, double number) {
  const DType dtype = b.DTypeOf(x[0]);
  if (!e.attrs.entries().empty() || !IsFloat(dtype) || !x[0].is_var()) return std::nullopt;
  ExponentialsOf terms(b, number);
  if (!terms.Sum(x[0], 1) || !terms.HasExponentials()) return std::nullopt;
  const size_t n = terms.num_terms();
  if (n < 2 || (n == 2 && !terms.IsFarFromOne())) return std::nullopt;
  return terms.Logarithm(dtype);
}

std::optional<Atom> LogOfSum(Builder& b, const Eqn& e, const Atoms& x) { return LogOfExponentials(b, e, x, 0); }
std::optional<Atom> Log1pOfSum(Builder& b, const Eqn& e, const Atoms& x) { return LogOfExponentials(b, e, x, 1); }
constexpr RuleTime kStable = RuleTime::kStabilizing;

const SimplifyRule kRules[] = {
    {"log-of-exponentials", "log", Licence::kAccurate, LogOfSum,
     R"(fn f(x: f32[3], y: f32[3]) { a = exp x; b = exp y; c = mul 0.25:f32 b; d = add a c; e = add d 3.0:f32
        r = log e; return r })",
     false, kStable},
    {"log-of-exponentials", "log1p", Licence::kAccurate, Log1pOfSum,
     "fn f(x: f32[3], y: f32[3]) { a = exp x; b = exp y; c = add a b; r = log1p c; return r }", false, kStable},
};

}  // namespace

absl::Span<const SimplifyRule> StableExponentials() { return kRules; }

}  // namespace weft
