// Functions with limits, of polynomials: tanh(c (x + a x^3)), as gelu has it. Where the polynomial overflows, the
// function is at its limit and its derivative 0, by which that of the polynomial, which is infinite, must not be
// multiplied. So before a derivative is taken, x goes no further than where the function has long reached its limit.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/stable_rules.h"

namespace weft {
namespace {

constexpr int kHighest = 6;       // degree
constexpr int kMostSteps = 24;    // operations of the polynomial
constexpr double kBeyond = 2000;  // where the functions have reached their limits, also in f64

enum class Step : uint8_t { kOther, kSum, kDifference, kProduct, kNegative, kSquare, kPower };

Step StepOf(const Eqn& e) {
  using enum Step;
  static const auto& steps = *new PrimTable<Step>{{"add", kSum},      {"sub", kDifference}, {"mul", kProduct},
                                                  {"neg", kNegative}, {"square", kSquare},  {"integer_pow", kPower}};
  return steps[*e.prim];
}

struct Polynomial {
  std::array<double, kHighest + 1> of{};  // coefficients, that of degree 0 first
  int Degree() const {
    int d = kHighest;
    while (d > 0 && of[static_cast<size_t>(d)] == 0) --d;
    return d;
  }
  // Of the sizes of the coefficients: no value for operands up to `x` is larger.
  double Largest(double x) const {
    double y = 0;
    for (int i = kHighest; i >= 0; --i) y = y * x + std::fabs(of[static_cast<size_t>(i)]);
    return y;
  }
};

std::optional<Polynomial> Product(const Polynomial& x, const Polynomial& y) {
  if (x.Degree() + y.Degree() > kHighest) return std::nullopt;
  Polynomial out;
  for (size_t i = 0; i <= static_cast<size_t>(x.Degree()); ++i) {
    for (size_t j = 0; j <= static_cast<size_t>(y.Degree()); ++j) out.of[i + j] += x.of[i] * y.of[j];
  }
  return out;
}

// The operations of a polynomial in one value.
class PolynomialIn {
 public:
  PolynomialIn(const Builder& b, Atom x) : b_(b), x_(std::move(x)) {}

  std::optional<Polynomial> Of(const Atom& a) {
    if (a == x_) return Polynomial{{0, 1}};
    if (const Atom* number = Splat(b_, a)) return Polynomial{{number->literal().Get(0).real()}};
    const Eqn* e = b_.Definition(a);
    if (e == nullptr || --left_ < 0) return std::nullopt;
    const Step step = StepOf(*e);
    if (step == Step::kOther || (step != Step::kPower && !e->attrs.entries().empty())) return std::nullopt;
    const std::optional<Polynomial> x = Of(e->operands[0]);
    const std::optional<Polynomial> y = e->operands.size() == 2 ? Of(e->operands[1]) : x;
    if (!x || !y) return std::nullopt;
    std::optional<Polynomial> out = x;
    switch (step) {
      case Step::kSum:
      case Step::kDifference:
        for (size_t i = 0; i <= kHighest; ++i) out->of[i] += step == Step::kSum ? y->of[i] : -y->of[i];
        break;
      case Step::kNegative:
        for (double& c : out->of) c = -c;
        break;
      case Step::kProduct:
      case Step::kSquare: out = Product(*x, *y); break;
      default: {
        const int64_t n = e->attrs.GetInt("y");
        if (n < 1 || n > kHighest) return std::nullopt;
        for (int64_t i = 1; out && i < n; ++i) out = Product(*out, *x);
      }
    }
    if (out) steps_.push_back(*out);
    return out;
  }
  // Of every operation that was met.
  const std::vector<Polynomial>& steps() const { return steps_; }

 private:
  const Builder& b_;
  const Atom x_;
  int left_ = kMostSteps;
  std::vector<Polynomial> steps_;
};

// What is multiplied by itself on the way to `a`.
std::optional<Atom> BaseOfPower(const Builder& b, const Atom& a, int& left) {
  const Eqn* e = b.Definition(a);
  if (e == nullptr || --left < 0) return std::nullopt;
  const Step step = StepOf(*e);
  if (step == Step::kOther) return std::nullopt;
  if (step == Step::kSquare || step == Step::kPower || (step == Step::kProduct && e->operands[0] == e->operands[1]))
    return e->operands[0];
  for (const Atom& x : e->operands) {
    if (std::optional<Atom> base = BaseOfPower(b, x, left)) return base;
  }
  return std::nullopt;
}

Atom WithOther(Builder& b, const Atom& a, const Atom& from, const Atom& to) {
  if (a == from) return to;
  if (Splat(b, a) != nullptr) return a;
  const Eqn e = *b.Definition(a);  // emitting may move it
  Atoms in;
  for (const Atom& x : e.operands) in.push_back(WithOther(b, x, from, to));
  return b.Emit1(*e.prim, in, e.attrs);
}

std::optional<Atom> LimitOfPolynomial(Builder& b, const Eqn& e, const Atoms& x) {
  constexpr int kF32 = 127;  // narrower numbers overflow before the functions have reached their limits
  static const Prim& clamp = FindPrim("clamp");
  const DType dtype = b.DTypeOf(x[0]);
  if (!IsFloat(dtype) || !x[0].is_var() || RowOf(dtype).max_exponent < kF32) return std::nullopt;
  int left = kMostSteps;
  const std::optional<Atom> base = BaseOfPower(b, x[0], left);
  if (!base || !base->is_var() || Splat(b, *base) != nullptr) return std::nullopt;
  if (const Eqn* made = b.Definition(*base); made != nullptr && made->prim == &clamp) return std::nullopt;
  PolynomialIn in(b, *base);
  const std::optional<Polynomial> whole = in.Of(x[0]);
  if (!whole) return std::nullopt;
  const auto degree = static_cast<size_t>(whole->Degree());
  const double highest = whole->of[degree], most = std::ldexp(1.0, RowOf(dtype).max_exponent - 4);
  if (degree < 2 || !std::isfinite(highest)) return std::nullopt;
  // The largest power of 2 for which nothing on the way overflows, nor the derivatives.
  int k = RowOf(dtype).max_exponent / 2;
  const auto fits = [&](const Polynomial& p) { return p.Largest(std::ldexp(1.0, k)) * kHighest * kHighest < most; };
  while (k > 0 && !std::all_of(in.steps().begin(), in.steps().end(), fits)) --k;
  const double bound = std::ldexp(1.0, k), first = std::fabs(highest) * std::pow(bound, static_cast<double>(degree));
  // From there on the sign is that of the highest power, and the size is beyond.
  if (!(first > 2 * (whole->Largest(bound) - first) + kBeyond)) return std::nullopt;
  const Atom limited = b.Emit1(clamp, {Atom::Scalar(dtype, -bound), *base, Atom::Scalar(dtype, bound)});
  return b.Emit1(*e.prim, {WithOther(b, x[0], *base, limited)}, e.attrs);
}

const SimplifyRule kRules[] = {
    {"limit-of-polynomial",
     "tanh",
     Licence::kExact,
     LimitOfPolynomial,
     "fn f(x: f32[3]) { a = integer_pow[y=3] x; c = mul a 0.5:f32; d = add x c; r = tanh d; return r }",
     false,
     RuleTime::kBeforeDerivatives,
     nullptr,
     {"logistic", "erf", "erfc", "sech_squared", "logistic_density", "normal_cdf", "normal_density"}},
};

}  // namespace

absl::Span<const SimplifyRule> LimitRules() { return kRules; }

}  // namespace weft
