// Sums and products of many terms, collected: x + 2 y - x + 1 + 2 is 2 y + 3, and x x x / x is x^2. Of integers always,
// which wrap and lose nothing; of floats with the licence `reassociate`.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "transforms/opt/algebra_rules.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/rule_rows.h"

namespace weft {
namespace {

// Terms that are looked at from one equation, so that a long sum takes no longer for each of its equations.
constexpr size_t kMostTerms = 8;

enum class Does : uint8_t { kOther, kAdd, kSub, kNeg, kMul, kDiv, kSquare, kPower };
Does WhatDoes(const Eqn& e) {
  static const PrimTable<Does> kTable{{"add", Does::kAdd},          {"sub", Does::kSub}, {"neg", Does::kNeg},
                                      {"mul", Does::kMul},          {"div", Does::kDiv}, {"square", Does::kSquare},
                                      {"integer_pow", Does::kPower}};
  return kTable[*e.prim];
}

// A term and how often it is added, or its power.
struct Term {
  Atom value;
  double times;
};

// What an equation adds up, or multiplies: terms in the order in which they are first met, and a number.
class Collected {
 public:
  Collected(const Builder& b, DType dtype) : b_(b), dtype_(dtype) {}

  double number = 0;
  std::vector<Term> terms;
  int operations = 0;  // that this stands for
  bool fits = true;

  // Adds `times` a. What nobody else reads is taken apart.
  void AddValue(const Atom& a, double times) {
    if (const Atom* s = Splat(b_, a)) {
      number += times * Real(*s);
    } else if (const Eqn* e = Inner(a); e == nullptr || !AddEqn(*e, times)) {
      AddTerm(a, times);
    }
  }
  // The same of what an equation gives; false where it is no sum.
  bool AddEqn(const Eqn& e, double times) {
    const Does does = WhatDoes(e);
    if (does == Does::kOther) return false;
    const Atom left = e.operands[0], right = e.operands.back();
    // Stable forms write a + x as a - (-0 - x) where no pattern is to find the sum.
    if (does == Does::kSub && left.IsSplat(0)) return false;
    if (does == Does::kAdd || does == Does::kSub) {
      ++operations;
      AddValue(left, times);
      AddValue(right, does == Does::kSub ? -times : times);
      return true;
    }
    if (does == Does::kNeg) {
      ++operations;
      AddValue(left, -times);
      return true;
    }
    if (does != Does::kMul) return false;
    const Atom *first = Splat(b_, left), *second = Splat(b_, right);
    if (first == nullptr && second == nullptr) return false;
    ++operations;
    AddValue(first != nullptr ? right : left, times * Real(first != nullptr ? *first : *second));
    return true;
  }

  // Multiplies with a to the power `times`.
  void MultiplyValue(const Atom& a, int64_t times) {
    if (const Atom* s = Splat(b_, a)) {
      number *= std::pow(Real(*s), static_cast<double>(times));
    } else if (const Eqn* e = Inner(a); e == nullptr || !MultiplyEqn(*e, times)) {
      AddTerm(a, static_cast<double>(times));
    }
  }
  bool MultiplyEqn(const Eqn& e, int64_t times) {
    const Does does = WhatDoes(e);
    if (does == Does::kOther) return false;
    const Atom left = e.operands[0], right = e.operands.back();
    if (does == Does::kMul || (does == Does::kDiv && IsInexact(dtype_))) {
      ++operations;
      MultiplyValue(left, times);
      MultiplyValue(right, does == Does::kDiv ? -times : times);
      return true;
    }
    if (does != Does::kSquare && does != Does::kPower) return false;
    const int64_t power = does == Does::kSquare ? 2 : e.attrs.GetInt("y");
    operations += PowerCost(power);
    MultiplyValue(left, power * times);
    return true;
  }

  // Multiplications, about.
  static int PowerCost(int64_t power) {
    int cost = power < 0 ? 1 : 0;
    for (int64_t n = std::llabs(power); n > 1; n /= 2) cost += n % 2 == 0 ? 1 : 2;
    return cost;
  }

 private:
  double Real(const Atom& number) {
    const std::complex<double> value = number.literal().Get(0);
    if (value.imag() != 0) fits = false;
    return value.real();
  }
  const Eqn* Inner(const Atom& a) {
    if (terms.size() >= kMostTerms || !a.is_var() || !ReadOnce(b_, a)) return nullptr;
    return b_.Definition(a);
  }
  void AddTerm(const Atom& a, double times) {
    const auto at = std::find_if(terms.begin(), terms.end(), [&](const Term& t) { return t.value == a; });
    if (at != terms.end())
      at->times += times;
    else if (terms.size() < kMostTerms)
      terms.push_back({a, times});
    else
      fits = false;
  }

  const Builder& b_;
  const DType dtype_;
};

// Whether the dtype has the number, with all its digits.
bool IsSafe(DType dtype, double n) {
  if (IsInteger(dtype)) {
    const double most = std::ldexp(1.0, std::min(BitWidth(dtype), 32) - 1);
    return n == std::floor(n) && std::fabs(n) < most && (n >= 0 || !IsUnsigned(dtype));
  }
  const double most = std::ldexp(1.0, RowOf(RealPart(dtype)).max_exponent - 2);
  return n == 0 || (std::fabs(n) < most && std::fabs(n) > 1 / most);
}

// `a` as a value of `type`.
std::optional<Atom> Whole(Builder& b, const Type& type, const Atom& a) {
  const Type found = b.TypeOf(a);
  if (found == type) return a;
  if (found.rank() == 0 && found.varying == type.varying) return Broadcast(b, a, type.dims, {});
  return std::nullopt;
}

bool MayCollect(DType dtype, bool integers) {
  return integers ? IsInteger(dtype) : IsInexact(dtype) && !IsFloat8(dtype);
}

// The type of the operands, and so of the result; nothing where they have several.
std::optional<Type> CommonType(const Builder& b, const Atoms& x) {
  std::optional<Type> type;
  for (const Atom& a : x) {
    if (Splat(b, a) != nullptr) continue;
    if (type && !(b.TypeOf(a) == *type)) return std::nullopt;
    type = b.TypeOf(a);
  }
  return type;
}

template <bool kIntegers>
std::optional<Atom> CollectSum(Builder& b, const Eqn& e, const Atoms& x) {
  const std::optional<Type> type = CommonType(b, x);
  if (!type || !MayCollect(type->dtype, kIntegers)) return std::nullopt;
  Eqn root = e;
  root.operands = x;
  Collected c(b, type->dtype);
  if (!c.AddEqn(root, 1) || !c.fits || !IsSafe(type->dtype, c.number)) return std::nullopt;
  int operations = -1;  // additions are one fewer than what is added
  for (const Term& t : c.terms) {
    if (!IsSafe(type->dtype, t.times)) return std::nullopt;
    if (t.times != 0) operations += std::fabs(t.times) == 1 ? 1 : 2;
  }
  if (c.number != 0) ++operations;
  if (std::max(operations, 0) >= c.operations) return std::nullopt;
  // What is subtracted comes after what it is subtracted from.
  std::stable_partition(c.terms.begin(), c.terms.end(), [](const Term& t) { return t.times > 0; });
  std::optional<Atom> sum;
  for (const Term& t : c.terms) {
    if (t.times == 0) continue;
    const double size = std::fabs(t.times);
    const Atom term = size == 1 ? t.value : Mul(b, t.value, Atom::Scalar(type->dtype, size));
    sum = !sum ? (t.times > 0 ? term : Neg(b, term)) : t.times > 0 ? Add(b, *sum, term) : Sub(b, *sum, term);
  }
  if (!sum) return Full(b, *type, c.number);
  if (c.number != 0)
    sum = c.number > 0 ? Add(b, *sum, Atom::Scalar(type->dtype, c.number))
                       : Sub(b, *sum, Atom::Scalar(type->dtype, -c.number));
  return Whole(b, *type, *sum);
}

template <bool kIntegers>
std::optional<Atom> CollectProduct(Builder& b, const Eqn& e, const Atoms& x) {
  const std::optional<Type> type = CommonType(b, x);
  if (!type || !MayCollect(type->dtype, kIntegers)) return std::nullopt;
  Eqn root = e;
  root.operands = x;
  Collected c(b, type->dtype);
  c.number = 1;
  if (!c.MultiplyEqn(root, 1) || !c.fits || !IsSafe(type->dtype, c.number) || c.number == 0) return std::nullopt;
  int operations = -1;
  bool divides = false, multiplies = c.number != 1;
  for (const Term& t : c.terms) {
    if (t.times == 0) continue;
    operations += 1 + Collected::PowerCost(static_cast<int64_t>(std::fabs(t.times)));
    (t.times > 0 ? multiplies : divides) = true;
  }
  operations += (c.number != 1 ? 1 : 0) + (divides && !multiplies ? 1 : 0);
  if (std::max(operations, 0) >= c.operations) return std::nullopt;
  std::optional<Atom> above, below;
  for (const Term& t : c.terms) {
    if (t.times == 0) continue;
    std::optional<Atom>& side = t.times > 0 ? above : below;
    const auto power = static_cast<int64_t>(std::fabs(t.times));
    const Atom factor = power == 1 ? t.value : power == 2 ? Mul(b, t.value, t.value) : IntegerPow(b, t.value, power);
    side = side ? Mul(b, *side, factor) : factor;
  }
  if (c.number != 1 || !above) {
    const Atom number = Atom::Scalar(type->dtype, c.number);
    above = above ? Mul(b, *above, number) : number;
  }
  return Whole(b, *type, below ? Div(b, *above, *below) : *above);
}

std::vector<SimplifyRule> MakeRules() {
  constexpr Licence kExact = Licence::kExact, kReassociate = Licence::kReassociate;
  std::vector<SimplifyRule> rules = {
      {"collect-sum", "add", kReassociate, CollectSum<false>,
       "fn f(x: f32[3], y: f32[3]) { a = sub y x; b = add a 1.0:f32; c = add b x; return c }"},
      {"collect-sum", "sub", kReassociate, CollectSum<false>,
       "fn f(x: f32[3], y: f32[3]) { a = mul x 3.0:f32; b = add a y; c = sub b x; return c }"},
      {"collect-product", "mul", kReassociate, CollectProduct<false>,
       "fn f(x: f32[3], y: f32[3]) { a = mul x 3.0:f32; b = mul a y; c = mul b 2.0:f32; return c }"},
      {"collect-product", "div", kReassociate, CollectProduct<false>,
       "fn f(x: f32[3]) { a = mul x x; b = mul a x; c = div b x; return c }"},
      {"collect-integer-sum", "add", kExact, CollectSum<true>,
       "fn f(x: i32[3], y: i32[3]) { a = sub y x; b = add a 1:i32; c = add b x; return c }"},
      {"collect-integer-sum", "sub", kExact, CollectSum<true>,
       "fn f(x: i32[3], y: i32[3]) { a = add x y; b = add a 3:i32; c = sub b x; return c }"},
      {"collect-integer-product", "mul", kExact, CollectProduct<true>,
       "fn f(x: i32[3]) { a = mul x 3:i32; b = mul a 2:i32; return b }", true},
  };
  RoundAtLowering(rules);
  return rules;
}

}  // namespace

absl::Span<const SimplifyRule> CollectRules() {
  static const auto& rules = *new std::vector<SimplifyRule>(MakeRules());
  return rules;
}

}  // namespace weft
