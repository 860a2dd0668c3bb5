// Logarithms of products, quotients and powers: of factors that are out of the range of the dtype where the logarithm
// is not; differences of squares. They come after all formulas, which know more of what the factors are.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "transforms/opt/defined_by.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/same_value.h"
#include "transforms/opt/stable_rules.h"

namespace weft {

namespace {

enum class FactorForm : uint8_t {
  kOther,
  kProduct,
  kQuotient,
  kNegative,
  kExponential,
  kPower,
  kSquare,
  kWholePower,
  kNearZero,  // has a logarithm of its own: the function is less than the least number where that is not large
};

FactorForm FormOf(const Eqn& e) {
  using enum FactorForm;
  static const auto& forms = *new PrimTable<FactorForm>{{"mul", kProduct},
                                                        {"div", kQuotient},
                                                        {"neg", kNegative},
                                                        {"exp", kExponential},
                                                        {"pow", kPower},
                                                        {"square", kSquare},
                                                        {"integer_pow", kWholePower},
                                                        {"logistic", kNearZero},
                                                        {"logistic_density", kNearZero},
                                                        {"erfc", kNearZero}};
  return forms[*e.prim];
}

// Of two factors there are operations for the logarithm. That of more is computed in f64: what is multiplied there is
// the product of so many numbers of f32 at most.
constexpr int kMostFactors = 6;

class LogarithmOfFactors {
 public:
  LogarithmOfFactors(Builder& b, DType dtype)
      : b_(b), dtype_(dtype), wide_(ByteWidth(dtype) < 8 ? DType::kF64 : dtype) {}

  // Whether the factors of `a` are found and are worth it: an exponential or a power among others, or what a wider
  // dtype holds.
  bool Find(const Atom& a) {
    if (!Add(a, 1)) return false;
    const bool powers = std::any_of(terms_.begin(), terms_.end(), [](const Term& t) { return t.base.has_value(); });
    if (!near_zero_.empty() || !even_.empty())
      return terms_.size() + plain_.size() + near_zero_.size() + even_.size() > 1;
    if (!terms_.empty() && (powers || terms_.size() > 1 || !plain_.empty())) return true;
    return IsOfTwo() || (wide_ != dtype_ && plain_.size() > 1);
  }

  Atom Emit() {
    if (IsOfTwo()) {
      const Factor &x = plain_[0], &y = plain_[1];
      if (x.power != y.power)
        return Logarithm("log_quotient", (x.power > 0 ? x : y).value, (x.power > 0 ? y : x).value);
      const Atom log = Logarithm("log_product", x.value, y.value);
      return x.power > 0 ? log : Neg(b_, log);
    }
    std::optional<Atom> product, sum;
    const auto multiply = [&](const Atom& a, bool below) {
      product = product ? (below ? Div(b_, *product, a) : Mul(b_, *product, a)) : (below ? Div(b_, Number(1), a) : a);
    };
    const auto add = [&](const Atom& a, bool below) {
      sum = sum ? (below ? Sub(b_, *sum, a) : weft::Add(b_, *sum, a)) : (below ? Neg(b_, a) : a);
    };
    for (const Factor& f : plain_) {
      const Atom base = Widened(f.value);
      const int n = std::abs(f.power);
      multiply(n == 1 ? base : n == 2 ? Mul(b_, base, base) : IntegerPow(b_, base, n), f.power < 0);
    }
    for (const Factor& f : near_zero_) {
      const Eqn log{&FindPrim("log"), {f.value}, 0, 1, {}, {}, b_.loc()};
      const std::optional<Atom> stable = StableForm(b_, log, log.operands);
      const Atom term = Widened(stable ? *stable : Log(b_, f.value));
      add(std::abs(f.power) == 1 ? term : Mul(b_, Number(std::abs(f.power)), term), f.power < 0);
    }
    for (const Factor& f : even_) {
      const Atom log = Log(b_, Abs(b_, Widened(f.value)));
      add(Mul(b_, Number(std::abs(f.power)), log), f.power < 0);
    }
    for (const Term& t : terms_) {
      if (!t.base) {
        add(Widened(t.exponent), t.below);
      } else {
        const auto [term, rest] = LogarithmOfPower(*t.base, t.exponent);
        add(term, t.below);
        multiply(rest, t.below);
      }
    }
    if (number_ != 1) multiply(Number(number_), false);
    if (product) {
      const Atom log = Log(b_, *product);
      sum = sum ? weft::Add(b_, log, *sum) : log;
    }
    return Convert(b_, *sum, dtype_);
  }

 private:
  struct Factor {
    Atom value;
    int power;
  };
  // exp(exponent), or base to the power exponent.
  struct Term {
    std::optional<Atom> base;
    Atom exponent;
    bool below;
  };

  // Not sums, which are computed in f64 with the logarithm: log((x + 1) / x).
  bool IsOfTwo() const {
    static const PrimSet kSums{"add", "sub"};
    return terms_.empty() && near_zero_.empty() && even_.empty() && number_ == 1 && plain_.size() == 2 &&
           std::all_of(plain_.begin(), plain_.end(), [&](const Factor& f) {
             const Eqn* e = b_.Definition(f.value);
             return std::abs(f.power) == 1 && (e == nullptr || !kSums.Has(*e->prim));
           });
  }
  // The shapes are those of what they are factors of; one may be a number, repeated or not.
  Atom Logarithm(const char* prim, const Atom& x, const Atom& y) { return b_.Emit1(FindPrim(prim), {x, y}); }

  Atom Number(double value) const { return Atom::Scalar(wide_, value); }

  static bool IsNumber(const Atom& a) { return a.is_literal() && a.literal().rank() == 0; }
  static double NumberOf(const Atom& a) { return a.literal().Get(0).real(); }
  // Of a number: whether it is positive and finite. Others are looked at when the program runs.
  static bool HasLogarithm(const Atom& base) {
    return !IsNumber(base) || (NumberOf(base) > 0 && std::isfinite(NumberOf(base)));
  }

  bool Add(const Atom& a, int power) {
    if (const Atom* s = Splat(b_, a)) {
      number_ *= std::pow(s->literal().Get(0).real(), power);
      return std::isfinite(number_) && number_ != 0;
    }
    const Eqn* e = b_.Definition(a);
    const FactorForm form = e == nullptr || !e->regions.empty() ? FactorForm::kOther : FormOf(*e);
    const bool once = std::abs(power) == 1;
    switch (form) {
      case FactorForm::kProduct:
      case FactorForm::kQuotient: {
        const Atom first = e->operands[0], second = e->operands[1];
        return Add(first, power) && Add(second, form == FactorForm::kQuotient ? -power : power);
      }
      case FactorForm::kNegative: {
        if (power % 2 != 0) number_ = -number_;
        const Atom operand = e->operands[0];
        return Add(operand, power);
      }
      case FactorForm::kSquare: {
        const Atom operand = e->operands[0];
        return std::abs(power) <= kMostFactors && Add(operand, 2 * power);
      }
      case FactorForm::kWholePower: {
        const int64_t n = e->attrs.GetInt("y");
        const Atom operand = e->operands[0];
        if (n != 0 && std::abs(n) <= kMostFactors)
          return std::abs(power) <= kMostFactors && Add(operand, power * static_cast<int>(n));
        if (n % 2 != 0 || std::abs(n) > 1024 || std::abs(power) > kMostFactors) break;
        even_.push_back({operand, power * static_cast<int>(n)});
        return even_.size() <= kMostFactors;
      }
      case FactorForm::kExponential:
        if (!once || !e->attrs.entries().empty()) break;
        terms_.push_back({std::nullopt, e->operands[0], power < 0});
        return terms_.size() <= kMostFactors;
      case FactorForm::kPower:
        if (!once || terms_.size() >= kMostFactors || !HasLogarithm(e->operands[0]) ||
            (IsNumber(e->operands[0]) && IsNumber(e->operands[1])))
          break;
        terms_.push_back({e->operands[0], e->operands[1], power < 0});
        return true;
      case FactorForm::kNearZero: near_zero_.push_back({a, power}); return near_zero_.size() <= kMostFactors;
      default: break;
    }
    const auto at = std::find_if(plain_.begin(), plain_.end(), [&](const Factor& f) { return f.value == a; });
    num_plain_ += std::abs(power);
    if (at == plain_.end()) {
      plain_.push_back({a, power});
    } else {
      num_plain_ -= std::abs(at->power) + std::abs(power);
      at->power += power;
      num_plain_ += std::abs(at->power);
      if (at->power == 0) return false;  // a quotient of a value and itself: NaN at 0
    }
    return num_plain_ <= kMostFactors;
  }

  // In f64, with the sums and products that lead up to it as far as they are few: 1 - x of a rounded difference would
  // have lost what the logarithm needs.
  Atom Widened(const Atom& a) {
    if (a.is_literal()) {
      const Tensor& t = a.literal();
      if (t.rank() == 0) return Number(t.Get(0).real());
    }
    if (wide_ == dtype_) return a;
    for (const auto& [narrow, wide] : made_) {
      if (narrow == a) return wide;
    }
    static const PrimSet kCheap{"add", "sub", "mul", "neg", "square", "integer_pow", "div"};
    const Eqn* found = b_.Definition(a);
    Atom made;
    if (found != nullptr && kCheap.Has(*found->prim) && --left_ >= 0) {
      const Eqn e = *found;  // emitting may move it
      Atoms in;
      for (const Atom& x : e.operands) in.push_back(Widened(x));
      made = b_.Emit1(*e.prim, in, e.attrs);
    } else {
      made = Convert(b_, a, wide_);
    }
    made_.emplace_back(a, made);
    return made;
  }

  // log(x^y) = y log(x) of finite x > 0 and y, beside what to take the logarithm of elsewhere: (term, factor).
  std::pair<Atom, Atom> LogarithmOfPower(const Atom& x, const Atom& y) {
    const auto infinitely = [&](const Atom& a) { return Sub(b_, a, a); };  // 0 but for infinities and NaN
    const Atom zero = Atom::Scalar(dtype_, 0), one = Atom::Scalar(dtype_, 1);
    std::optional<Atom> odd;
    if (!IsNumber(x)) odd = infinitely(x);
    if (!IsNumber(y)) odd = odd ? weft::Add(b_, *odd, infinitely(y)) : infinitely(y);
    Atom ordinary = Eq(b_, *odd, zero);
    if (!IsNumber(x)) ordinary = And(b_, ordinary, Gt(b_, x, zero));
    const auto or_one = [&](const Atom& a, bool where) {
      return where ? Select(b_, ordinary, a, one) : Select(b_, ordinary, one, a);
    };
    const Atom log = IsNumber(x) ? Number(std::log(NumberOf(x))) : Log(b_, Widened(or_one(x, true)));
    const Atom exponent = Widened(Select(b_, ordinary, y, zero));
    const Atom rest = b_.Emit1(FindPrim("pow"), {or_one(x, false), or_one(y, false)});
    return {Mul(b_, exponent, log), Widened(rest)};
  }

  Builder& b_;
  const DType dtype_, wide_;
  double number_ = 1;
  int num_plain_ = 0;  // counted as often as they are multiplied
  int left_ = 12;      // equations that are computed in f64
  std::vector<Factor> plain_, near_zero_;
  std::vector<Factor> even_;  // to powers that f64 may not hold; the logarithm is that of the size
  std::vector<Term> terms_;
  std::vector<std::pair<Atom, Atom>> made_;
};

std::optional<Atom> LogOfFactors(Builder& b, const Eqn& e, const Atoms& x) {
  const DType dtype = b.DTypeOf(x[0]);
  if (!e.attrs.entries().empty() || !IsFloat(dtype) || !x[0].is_var()) return std::nullopt;
  LogarithmOfFactors factors(b, dtype);
  if (!factors.Find(x[0])) return std::nullopt;
  return factors.Emit();
}

// log(x^n), and that of another base. Of odd powers the sign is the argument's; below 0 that of -0 is another.
std::optional<Atom> LogOfPower(Builder& b, const Eqn& e, const Atoms& x) {
  if (!e.attrs.entries().empty() || !IsFloat(b.DTypeOf(x[0]))) return std::nullopt;
  static const Prim &pow = FindPrim("integer_pow"), &log = FindPrim("log");
  const Eqn* power = DefinedBy(b, x[0], pow);
  if (power == nullptr) return std::nullopt;
  constexpr int64_t kMost = 1 << 10;  // a number of every dtype
  const int64_t n = power->attrs.GetInt("y");
  const bool even = n % 2 == 0;
  if (n == 0 || std::abs(n) > kMost || (!even && n < 0)) return std::nullopt;
  const Atom base = even ? Abs(b, power->operands[0]) : power->operands[0];
  std::optional<Atom> of_base;
  if (e.prim == &log) of_base = StableForm(b, Eqn{&log, {base}, 0, 1, {}, {}, e.loc}, {base});
  if (!of_base) of_base = b.Emit1(*e.prim, {base});
  return Mul(b, Atom::Scalar(b.DTypeOf(base), static_cast<double>(n)), *of_base);
}

// Whether both are computed of one value, by operations on its elements.
bool OfOneValue(const Builder& b, const Atom& x, const Atom& y) {
  constexpr size_t kMostSteps = 32;
  std::vector<Atom> rest = {x, y};
  std::optional<Atom> leaf;
  for (size_t steps = 0; !rest.empty() && steps < kMostSteps; ++steps) {
    const Atom a = rest.back();
    rest.pop_back();
    if (Splat(b, a) != nullptr) continue;
    const Eqn* e = b.Definition(a);
    if (e != nullptr && e->prim->is_elementwise()) {
      rest.insert(rest.end(), e->operands.begin(), e->operands.end());
    } else if (leaf && !(*leaf == a)) {
      return false;
    } else {
      leaf = a;
    }
  }
  return true;
}

// x^2 - y^2 = (x - y) (x + y), which neither cancels nor overflows first. Not before a derivative is taken, which is 2
// x as it is written, and a difference of like numbers here. What is of one value, the pass `widen` computes in f64.
std::optional<Atom> DifferenceOfSquares(Builder& b, const Eqn& e, const Atoms& x) {
  if (!e.attrs.entries().empty() || !IsFloat(b.DTypeOf(x[0]))) return std::nullopt;
  const std::optional<Atom> first = RootOf(b, x[0]), second = RootOf(b, x[1]);
  if (!first || !second || !ReadOnce(b, x[0]) || !ReadOnce(b, x[1]) || OfOneValue(b, *first, *second))
    return std::nullopt;
  return Mul(b, Sub(b, *first, *second), Add(b, *first, *second));
}

const SimplifyRule kRules[] = {
    {"log-of-power", "log", Licence::kAccurate, LogOfPower,
     "fn f(x: f32[3]) { p = integer_pow[y=5] x; r = log p; return r }", false, RuleTime::kStabilizing},
    {"log-of-power", "log2", Licence::kAccurate, LogOfPower,
     "fn f(x: f32[3]) { p = integer_pow[y=40] x; r = log2 p; return r }", false, RuleTime::kStabilizing},
    {"log-of-power", "log10", Licence::kAccurate, LogOfPower,
     "fn f(x: f32[3]) { p = integer_pow[y=-6] x; r = log10 p; return r }", false, RuleTime::kStabilizing},
    {"log-of-factors", "log", Licence::kAccurate, LogOfFactors,
     "fn f(x: f32[3], y: f32[3]) { a = mul x y; r = log a; return r }", false, RuleTime::kStabilizing},
    {"log-of-factors", "log", Licence::kAccurate, LogOfFactors,
     R"(fn f(x: f32[3], y: f32[3], z: f32[3]) { a = exp x; b = div a z; c = mul y b; d = mul c 3.0:f32; r = log d
        return r })",
     false, RuleTime::kStabilizing},
    {"log-of-factors", "log", Licence::kAccurate, LogOfFactors,
     "fn f(x: f32[3], y: f32[3]) { a = pow x y; r = log a; return r }", false, RuleTime::kStabilizing},
    {"log-of-factors", "log", Licence::kAccurate, LogOfFactors,
     "fn f(x: f32[3]) { a = pow 2.5:f32 x; r = log a; return r }", false, RuleTime::kStabilizing},
    {"log-of-factors", "log", Licence::kAccurate, LogOfFactors,
     R"(fn f(x: f32[3], y: f32[3]) { a = pow x y; n = neg x; b = exp n; c = mul b a; d = div c 6.0:f32; r = log d
        return r })",
     false, RuleTime::kStabilizing},
    {"difference-of-squares", "sub", Licence::kAccurate, DifferenceOfSquares,
     "fn f(x: f32[3], y: f32[3]) { q = mul x x; r = mul y y; d = sub q r; return d }", false, RuleTime::kLowering},
};

}  // namespace

absl::Span<const SimplifyRule> StableFactors() { return kRules; }

}  // namespace weft
