// The pass `widen`: what cancels or overflows in f32 is computed in f64.
//
// A sum or difference whose operands were rounded and may cancel loses the digits that they lost; a quotient, root or
// logarithm of what has overflowed is wrong. Of such equations and all that leads up to them, as far as it is made of
// operations that have f64 forms, the program keeps no f32 in between. The types of parameters and results stay.
//
// With Licence::kRounding it is done to all of them. With Licence::kAccurate, to those that are a few operations on the
// elements of one value, such as x - sin(x), x**2 - 2*x + 1, sqrt(x*x - 4): what that costs does not depend on sizes,
// so neither do the digits.
//
// The same few operations are put in f64 before a derivative is taken, so that it is the derivative of what does not
// cancel or overflow: that of 1 / (1 + x^2)^2 is 0 times infinity at 1e15 in f32. There a quotient by a sum that may
// overflow may be of several values, as a density with a place and a scale is.
//
// Not in a function that computes with its own rounding errors: (s + y) - s, x + 12582912. Nor in one that draws random
// numbers, whose bits must not depend on how many there are.
#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/licences.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "transforms/opt/pass.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/rule_watch.h"
#include "transforms/opt/wide_forms.h"

namespace weft {
namespace {

class Widener {
 public:
  Widener(const Fn& fn, bool before_derivatives)
      : fn_(fn), before_derivatives_(before_derivatives), defined_(fn.num_vars(), -1), known_(fn.num_vars()) {
    const auto& eqns = fn.eqns();
    wide_.assign(eqns.size(), false);
    for (size_t i = 0; i < eqns.size(); ++i) {
      for (uint32_t r = 0; r < eqns[i].num_results; ++r) defined_[eqns[i].first_result + r] = static_cast<int64_t>(i);
    }
  }

  // Whether anything is to be computed in f64; `everywhere`: whatever it costs.
  bool Choose(bool everywhere) {
    const auto& eqns = fn_.eqns();
    std::vector<size_t> seeds;
    for (size_t i = 0; i < eqns.size(); ++i) {
      if (eqns[i].prim->family == Family::kRandom || FormOf(eqns[i]) == LossForm::kRandom) return false;
      if (!Can(eqns[i])) continue;
      if (ReadsItsOwnRounding(eqns[i])) return false;
      known_[eqns[i].first_result] = KnownOfResult(eqns[i]);
      if (Loses(eqns[i]) && (everywhere || IsFewOperationsOnOneValue(i))) seeds.push_back(i);
    }
    RuleWatch* const watch = RuleWatch::Current();
    std::vector<bool> wanted(eqns.size(), false);
    bool any = false;
    for (const size_t i : seeds) {
      if (watch != nullptr && !watch->Allows(kWiderType)) break;
      wanted[i] = any = true;
      if (watch != nullptr) watch->Applied(kWiderType, fn_, eqns[i]);
    }
    if (!any) return false;
    for (size_t i = eqns.size(); i-- > 0;) {
      if (!wanted[i]) continue;
      wide_[i] = true;
      for (const Atom& a : eqns[i].operands) {
        const int64_t at = a.is_var() ? defined_[a.id()] : -1;
        if (at >= 0 && (Can(eqns[static_cast<size_t>(at)]) || IsWide(eqns[static_cast<size_t>(at)])))
          wanted[static_cast<size_t>(at)] = true;
      }
    }
    if (before_derivatives_) ChooseUpToLimits();
    return true;
  }

  FnRef Widened() const {
    Builder b(fn_.name());
    std::vector<Atom> narrow(fn_.num_vars()), wide(fn_.num_vars());
    std::vector<bool> has_narrow(fn_.num_vars(), false), has_wide(fn_.num_vars(), false);
    for (size_t i = 0; i < fn_.params().size(); ++i) {
      const Param& p = fn_.params()[i];
      narrow[i] = b.Parameter(p.type, p.name, p.kind);
      has_narrow[i] = true;
    }
    const std::vector<double> narrow_numbers = NumbersOfNarrowEquations();
    const auto as_it_is = [&](const Atom& a) {
      if (a.is_literal()) return a;
      if (!has_narrow[a.id()]) {
        narrow[a.id()] = Convert(b, wide[a.id()], DType::kF32);
        has_narrow[a.id()] = true;
      }
      return narrow[a.id()];
    };
    const auto in_f64 = [&](const Atom& a) {
      if (fn_.TypeOf(a).dtype != DType::kF32) return as_it_is(a);
      if (a.is_literal()) {
        const Tensor& t = a.literal();
        if (t.rank() == 0) {
          const double number = t.Get(0).real();
          const bool is_narrow = std::binary_search(narrow_numbers.begin(), narrow_numbers.end(), number);
          return Atom::Scalar(DType::kF64, is_narrow ? number : Meant(number));
        }
        Tensor made(DType::kF64, t.shape());
        for (int64_t i = 0; i < t.size(); ++i) made.Set(i, t.Get(i));
        return Atom(std::move(made));
      }
      if (!has_wide[a.id()]) {
        wide[a.id()] = Convert(b, narrow[a.id()], DType::kF64);
        has_wide[a.id()] = true;
      }
      return wide[a.id()];
    };
    for (size_t i = 0; i < fn_.eqns().size(); ++i) {
      const Eqn& e = fn_.eqns()[i];
      const RuleWatch* const watch = RuleWatch::Current();
      const ScopedLoc loc(b, watch != nullptr && watch->marks && wide_[i] ? e.loc.Through(kWiderType) : e.loc);
      Atoms in;
      for (const Atom& a : e.operands) {
        const bool limited = before_derivatives_ && !wide_[i] && WideForms()[*e.prim].has_limits && a.is_var() &&
                             has_wide[a.id()] && !has_narrow[a.id()];
        in.push_back(wide_[i] ? in_f64(a) : limited ? Limited(b, wide[a.id()]) : as_it_is(a));
      }
      const Atoms out = wide_[i] && IsConversion(e) ? in : b.Clone(e, std::move(in));
      for (uint32_t r = 0; r < e.num_results; ++r) {
        const uint32_t id = e.first_result + r;
        // The real part of a complex number stays what it is.
        const bool is_wide =
            wide_[i] && fn_.TypeOf(Var{id}).dtype == DType::kF32 && b.TypeOf(out[r]).dtype == DType::kF64;
        (is_wide ? wide : narrow)[id] = out[r];
        (is_wide ? has_wide : has_narrow)[id] = true;
      }
    }
    Atoms results;
    for (const Atom& a : fn_.results()) results.push_back(as_it_is(a));
    return std::move(b).Build(results);
  }

 private:
  // What equations that stay in f32 compute with, sorted. It is the same number where it is in f64: x % c is x - n * c
  // with a whole n that is found in f32.
  std::vector<double> NumbersOfNarrowEquations() const {
    std::vector<double> numbers;
    for (size_t i = 0; i < fn_.eqns().size(); ++i) {
      if (!wide_[i]) AddNumbers(fn_.eqns()[i], &numbers);
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  }
  static void AddNumbers(const Eqn& e, std::vector<double>* numbers) {
    for (const Atom& a : e.operands) {
      if (!a.is_literal() || a.literal().rank() != 0 || a.literal().dtype() != DType::kF32) continue;
      const double number = a.literal().Get(0).real();
      if (!std::isnan(number)) numbers->push_back(number);
    }
    for (const FnRef& region : e.regions) {
      for (const Eqn& inner : region->eqns()) AddNumbers(inner, numbers);
    }
  }

  // A number times what is in f64, up to a function that has a limit.
  void ChooseUpToLimits() {
    for (size_t i = 0; i < fn_.eqns().size(); ++i) {
      const Eqn& e = fn_.eqns()[i];
      if (wide_[i] || !Can(e) || (FormOf(e) != LossForm::kProduct && FormOf(e) != LossForm::kNegative)) continue;
      bool numbers = true, of_wide = false;
      for (const Atom& a : e.operands) {
        const int64_t at = a.is_var() ? defined_[a.id()] : -1;
        const bool is_wide = at >= 0 && wide_[static_cast<size_t>(at)];
        numbers &= is_wide || a.is_literal();
        of_wide |= is_wide;
      }
      wide_[i] = numbers && of_wide && e.prim->is_elementwise();
    }
  }

  // For a function that has long reached its limits there: derivatives beyond are 0, by which those of the operand may
  // be multiplied in f64, but not where they are infinite in f32.
  static Atom Limited(Builder& b, const Atom& x) {
    constexpr double kFar = 110;
    static const Prim& clamp = FindPrim("clamp");
    const DType f64 = DType::kF64;
    return Convert(b, b.Emit1(clamp, {Atom::Scalar(f64, -kFar), x, Atom::Scalar(f64, kFar)}), DType::kF32);
  }

  const Eqn* Definition(const Atom& a) const {
    const int64_t at = a.is_var() ? defined_[a.id()] : -1;
    return at >= 0 ? &fn_.eqns()[static_cast<size_t>(at)] : nullptr;
  }

  static bool IsConversion(const Eqn& e) { return FormOf(e) == LossForm::kConversion; }

  bool CanIn(const Eqn& e, DType dtype) const {
    if (!WideForms()[*e.prim].widens || e.num_results != 1 || !e.regions.empty()) return false;
    const Type& type = fn_.TypeOf(e.result());
    if (type.dtype != dtype || !type.is_static() || !type.varying.empty()) return false;
    return !IsConversion(e) || fn_.TypeOf(e.operands[0]).dtype == (dtype == DType::kF32 ? DType::kF64 : DType::kF32);
  }
  bool Can(const Eqn& e) const { return CanIn(e, DType::kF32); }
  // What a rule for stability computes in f64 leads up to f32 again.
  bool IsWide(const Eqn& e) const { return CanIn(e, DType::kF64); }

  KnownSign SignOf(const Atom& a) const {
    if (a.is_var()) return known_[a.id()].sign;
    bool positive = true, negative = true;
    for (int64_t i = 0; i < a.literal().size(); ++i) {
      positive &= a.literal().Get(i).real() >= 0;
      negative &= a.literal().Get(i).real() <= 0;
    }
    return positive ? KnownSign::kNotNegative : negative ? KnownSign::kNotPositive : KnownSign::kUnknown;
  }
  static KnownSign Negated(KnownSign s) {
    return s == KnownSign::kUnknown       ? s
           : s == KnownSign::kNotNegative ? KnownSign::kNotPositive
                                          : KnownSign::kNotNegative;
  }

  static LossForm FormOf(const Eqn& e) { return WideForms()[*e.prim].form; }

  KnownSign SignOfResult(const Eqn& e) const {
    const LossForm form = FormOf(e);
    static const auto& like_operand =
        *new PrimSet{"broadcast",  "reshape",    "transpose",   "slice",  "reverse",    "reduce_sum",
                     "reduce_max", "reduce_min", "reduce_prod", "cumsum", "concatenate"};
    static const auto& products = *new PrimSet{"mul", "div", "contract"};
    if (form == LossForm::kPower) return e.attrs.GetInt("y") % 2 == 0 ? KnownSign::kNotNegative : SignOf(e.operands[0]);
    if (form == LossForm::kNegative) return Negated(SignOf(e.operands[0]));
    if (form == LossForm::kMaximum &&
        (SignOf(e.operands[0]) == KnownSign::kNotNegative || SignOf(e.operands[1]) == KnownSign::kNotNegative))
      return KnownSign::kNotNegative;
    if (products.Has(*e.prim)) {
      if (e.operands[0] == e.operands[1]) return KnownSign::kNotNegative;
      const LikeSign first = LikeOf(e.operands[0]), second = LikeOf(e.operands[1]);
      if (first.of >= 0 && first.of == second.of && e.prim->is_elementwise())
        return first == second ? KnownSign::kNotNegative : KnownSign::kNotPositive;
      const KnownSign x = SignOf(e.operands[0]), y = SignOf(e.operands[1]);
      if (x == KnownSign::kUnknown || y == KnownSign::kUnknown) return KnownSign::kUnknown;
      return x == y ? KnownSign::kNotNegative : KnownSign::kNotPositive;
    }
    static const auto& joins = *new PrimSet{"add", "max", "min"};
    if (joins.Has(*e.prim)) {
      const KnownSign x = SignOf(e.operands[0]), y = SignOf(e.operands[1]);
      return x == y ? x : KnownSign::kUnknown;
    }
    if (form == LossForm::kDifference) {
      const KnownSign x = SignOf(e.operands[0]), y = Negated(SignOf(e.operands[1]));
      return x == y ? x : KnownSign::kUnknown;
    }
    if (form == LossForm::kChoice) {
      const KnownSign x = SignOf(e.operands[1]), y = SignOf(e.operands[2]);
      return x == y ? x : KnownSign::kUnknown;
    }
    return like_operand.Has(*e.prim) ? SignOf(e.operands[0]) : KnownSign::kUnknown;
  }

  // Whose sign a value has, or the other one; nobody's where its own is known.
  struct LikeSign {
    int64_t of = -1;  // a variable
    bool negated = false;
    friend bool operator==(const LikeSign&, const LikeSign&) = default;
  };
  LikeSign LikeOf(const Atom& a) const {
    if (!a.is_var() || SignOf(a) != KnownSign::kUnknown) return {};
    return known_[a.id()].like.of >= 0 ? known_[a.id()].like : LikeSign{a.id(), false};
  }
  static LikeSign Negated(LikeSign s) { return {s.of, !s.negated}; }
  // x + x^3: terms of one sign.
  LikeSign LikeOfResult(const Eqn& e) const {
    const LossForm form = FormOf(e);
    const LikeSign x = LikeOf(e.operands[0]);
    if (form == LossForm::kNegative) return x.of >= 0 ? Negated(x) : x;
    // Elements stay in order: what one number's is, is repeated alone.
    if (e.prim->expands && fn_.TypeOf(e.operands[0]).rank() > 0) return {};
    if (WideForms()[*e.prim].keeps_sign || (form == LossForm::kPower && e.attrs.GetInt("y") % 2 != 0)) return x;
    if (e.operands.size() != 2) return {};
    const LikeSign y = LikeOf(e.operands[1]);
    if (form == LossForm::kSum) return x == y ? x : LikeSign{};
    if (form == LossForm::kDifference) return x == Negated(y) ? x : LikeSign{};
    static const auto& products = *new PrimSet{"mul", "div"};
    if (!products.Has(*e.prim) || (x.of >= 0) == (y.of >= 0)) return {};
    const LikeSign like = x.of >= 0 ? x : y;
    const KnownSign other = SignOf(e.operands[x.of >= 0 ? 1 : 0]);
    return other == KnownSign::kUnknown ? LikeSign{} : other == KnownSign::kNotPositive ? Negated(like) : like;
  }

  // What is known of a value.
  struct Known {
    KnownSign sign = KnownSign::kUnknown;
    LikeSign like;  // where the sign is not known
    bool rounded = false;
    // Whether it may have overflowed or underflowed: 1 as a product, 2 as an exponential, a power or a quotient.
    int range = 0;
    bool logarithmic = false;
  };

  Known KnownOf(const Atom& a) const { return a.is_var() ? known_[a.id()] : Known{}; }

  Known KnownOfResult(const Eqn& e) const {
    static const auto& sums =
        *new PrimSet{"add", "sub", "reduce_sum", "cumsum", "mul", "square", "contract", "div", "integer_pow"};
    const WideForm& row = WideForms()[*e.prim];
    Known k;
    k.sign = row.sign != KnownSign::kUnknown ? row.sign : SignOfResult(e);
    if (k.sign == KnownSign::kUnknown) k.like = LikeOfResult(e);
    k.rounded = row.rounds;
    // A number times a value overflows where the value nearly did.
    const bool scales = row.form == LossForm::kProduct &&
                        std::any_of(e.operands.begin(), e.operands.end(), [](const Atom& a) { return a.is_literal(); });
    k.range = !row.overflows || scales ? 0 : row.form == LossForm::kProduct ? 1 : 2;
    k.logarithmic = row.logarithmic;
    if (!row.rounds || sums.Has(*e.prim)) {
      for (const Atom& a : e.operands) {
        const Known operand = KnownOf(a);
        k.rounded |= operand.rounded;
        k.range = std::max(k.range, operand.range);
        k.logarithmic |= operand.logarithmic;
      }
    }
    return k;
  }

  // Whether its result may be far less accurate than its operands.
  bool Loses(const Eqn& e) const {
    static const auto& exponentials = *new PrimSet{"exp", "exp2", "expm1", "sinh", "cosh"};
    const bool difference = FormOf(e) == LossForm::kDifference;
    if (FormOf(e) == LossForm::kSum || difference) {
      const KnownSign x = SignOf(e.operands[0]), second = SignOf(e.operands[1]),
                      y = difference ? Negated(second) : second;
      const LikeSign like = LikeOf(e.operands[0]), other = LikeOf(e.operands[1]);
      if (like.of >= 0 && like == (difference ? Negated(other) : other)) return false;
      return (x == KnownSign::kUnknown || x != y) && (KnownOf(e.operands[0]).rounded || KnownOf(e.operands[1]).rounded);
    }
    // A large and a small number.
    if (FormOf(e) == LossForm::kProduct && e.prim->is_elementwise())
      return KnownOf(e.operands[0]).range == 2 && KnownOf(e.operands.back()).range == 2;
    if (exponentials.Has(*e.prim)) return KnownOf(e.operands[0]).logarithmic;
    return WideForms()[*e.prim].reads_range &&
           std::any_of(e.operands.begin(), e.operands.end(), [&](const Atom& a) { return KnownOf(a).range > 0; });
  }

  // (s + y) - s and the like give the error of a rounding, and numbers as large as 2^22 are added to round.
  bool ReadsItsOwnRounding(const Eqn& e) const {
    const bool sum = FormOf(e) == LossForm::kSum, difference = FormOf(e) == LossForm::kDifference;
    if (!sum && !difference) return false;
    if (e.attrs.GetOr<bool>("fused", false)) return true;  // rounded as JAX rounds it
    for (int i : {0, 1}) {
      const Atom &a = e.operands[static_cast<size_t>(i)], &other = e.operands[static_cast<size_t>(1 - i)];
      if (a.is_literal() && a.literal().size() > 0 && std::fabs(a.literal().Get(0).real()) >= 0x1p22 && other.is_var())
        return std::isfinite(a.literal().Get(0).real());
      if (!difference || other.is_literal()) continue;
      const Eqn* inner = Definition(a);
      if (inner == nullptr || (FormOf(*inner) != LossForm::kSum && FormOf(*inner) != LossForm::kDifference)) continue;
      if (inner->operands[0] == other || inner->operands[1] == other) return true;
    }
    return false;
  }

  // Whether equation i, with all that leads up to it and can be computed in f64, is a few operations on the elements of
  // one value. Functions (exp, sin ...) may be among them, but not functions of functions, and only in a difference of
  // two terms that both vary, as in x - sin(x): a function and a number cancel near single points, and so do most sums
  // that derivatives have. Nor sums over dimensions, but in a root or logarithm of one, as of a norm.
  bool IsFewOperationsOnOneValue(size_t i) const {
    constexpr int kMostSteps = 32, kMostCost = 24;
    struct Found {
      int functions;  // that lie above each other
      bool varies;
      bool linear;  // but for a constant
    };
    std::unordered_map<int64_t, Found> seen;
    const size_t most_leaves = before_derivatives_ && IsQuotientByLargeSum(fn_.eqns()[i]) ? 4 : 1;
    std::vector<uint32_t> leaves;
    int cost = 0;
    static const auto& sums = *new PrimSet{"reduce_sum", "reduce_prod"};
    static const auto& repeats = *new PrimSet{"broadcast", "reshape"};
    const WideForm& outermost = WideForms()[*fn_.eqns()[i].prim];
    // The variance of a normalisation, to which a number is added, does not overflow.
    const Eqn* inside = Definition(fn_.eqns()[i].operands[0]);
    const bool added =
        inside != nullptr && (FormOf(*inside) == LossForm::kSum || FormOf(*inside) == LossForm::kDifference);
    const bool of_root = outermost.reads_range && outermost.form == LossForm::kOther && !added;
    int num_sums = 0;
    const auto visit = [&](const auto& self, const Atom& a) -> std::optional<Found> {
      if (a.is_literal()) return Found{0, false, true};
      const int64_t at = defined_[a.id()];
      if (at < 0 || !(Can(fn_.eqns()[static_cast<size_t>(at)]) || IsWide(fn_.eqns()[static_cast<size_t>(at)]))) {
        if (fn_.TypeOf(a).dtype != DType::kF32 && fn_.TypeOf(a).dtype != DType::kBool) return std::nullopt;
        if (fn_.TypeOf(a).dtype == DType::kBool) return Found{0, false, false};
        if (IsConstant(a)) return Found{0, false, true};
        if (std::find(leaves.begin(), leaves.end(), a.id()) == leaves.end()) leaves.push_back(a.id());
        if (leaves.size() > most_leaves) return std::nullopt;
        return Found{0, true, true};
      }
      if (const auto it = seen.find(at); it != seen.end()) return it->second;
      const Eqn& e = fn_.eqns()[static_cast<size_t>(at)];
      const WideForm& row = WideForms()[*e.prim];
      const bool sum = sums.Has(*e.prim);
      if (!e.prim->is_elementwise() && !repeats.Has(*e.prim) && !(of_root && sum && ++num_sums == 1))
        return std::nullopt;
      cost += row.cost;
      if (seen.size() >= kMostSteps || cost > kMostCost) return std::nullopt;
      Found found{0, false, false};
      int varying = 0;
      bool linear = row.linear, last_varies = false;
      for (const Atom& operand : e.operands) {
        const auto inner = self(self, operand);
        if (!inner) return std::nullopt;
        found.functions = std::max(found.functions, inner->functions);
        varying += inner->varies;
        last_varies = inner->varies;
        linear &= inner->linear;
      }
      found.varies = varying > 0;
      if (row.form == LossForm::kProduct) linear &= varying <= 1;
      if (row.form == LossForm::kQuotient) linear &= !last_varies;
      found.linear = linear || !found.varies;
      found.functions += row.cost >= kCostOfFunction;
      seen.emplace(at, found);
      return found;
    };
    const Eqn& e = fn_.eqns()[i];
    const auto whole = visit(visit, Atom(e.result()));
    if (!whole || !whole->varies || whole->functions > 1) return false;
    if (whole->linear) return false;  // grids, bins: programs count on the digits of f32, and one point is near 0
    if (whole->functions == 0) return true;
    if (FormOf(e) == LossForm::kSum) return false;
    return std::all_of(e.operands.begin(), e.operands.end(), [&](const Atom& a) {
      return a.is_var() &&
             (defined_[a.id()] < 0 || !seen.contains(defined_[a.id()]) || seen.at(defined_[a.id()]).varies);
    });
  }
  // 1 / (y (1 + x^2)): by a sum of what may have overflowed, and factors.
  bool IsQuotientByLargeSum(const Eqn& e) const {
    if (FormOf(e) != LossForm::kQuotient) return false;
    const auto is_sum = [&](const auto& self, const Atom& a, int depth) -> bool {
      const Eqn* inner = Definition(a);
      if (inner == nullptr || KnownOf(a).range == 0) return false;
      if (FormOf(*inner) == LossForm::kSum) return inner->prim->is_elementwise();
      if (depth == 0 || (FormOf(*inner) != LossForm::kProduct && FormOf(*inner) != LossForm::kPower)) return false;
      return std::any_of(inner->operands.begin(), inner->operands.end(),
                         [&](const Atom& x) { return self(self, x, depth - 1); });
    };
    return is_sum(is_sum, e.operands[1], 3);
  }
  bool IsConstant(const Atom& a) const {
    return a.id() < fn_.params().size() && fn_.params()[a.id()].kind == Param::Kind::kConstant;
  }

  const Fn& fn_;
  const bool before_derivatives_;
  std::vector<int64_t> defined_;  // by variable: the equation that defines it, or -1
  std::vector<Known> known_;
  std::vector<bool> wide_;  // by equation
};

}  // namespace

FnRef WidenWhatCancels(FnRef fn) {
  if (!CurrentLicences().Allow(Licence::kAccurate)) return fn;
  return RewriteBodies(std::move(fn), [](FnRef body) {
    Widener widener(*body, /*before_derivatives=*/false);
    return widener.Choose(CurrentLicences().Allow(Licence::kRounding)) ? widener.Widened() : body;
  });
}

FnRef WidenBeforeDerivatives(FnRef fn) {
  if (!CurrentLicences().Allow(Licence::kAccurate)) return fn;
  return RewriteBodies(std::move(fn), [](FnRef body) {
    Widener widener(*body, /*before_derivatives=*/true);
    return widener.Choose(/*everywhere=*/false) ? widener.Widened() : body;
  });
}

}  // namespace weft
