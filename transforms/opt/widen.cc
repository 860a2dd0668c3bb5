// The rule wider-type: what cancels or overflows in f32 is computed in f64, where that costs next to nothing.
//
// A sum or difference whose operands were rounded and may cancel loses the digits that they lost; a quotient, root or
// logarithm of what has overflowed is wrong. Of such equations and all that leads up to them, as far as it is made of
// operations that have f64 forms, the program keeps no f32 in between. The types of parameters and results stay.
//
// Not in a function that computes with its own rounding errors: (s + y) - s, x + 12582912.
#include <algorithm>
#include <cmath>

#include "ir/licences.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "transforms/opt/pass.h"
#include "transforms/opt/rewrite.h"

namespace weft {
namespace {

// Operations times elements that a function may compute in f64: about a microsecond, what a call costs anyway. A trip
// of a loop costs less than a call.
constexpr double kMostWork = 8192, kMostWorkOfATrip = 256;

enum class Sign : uint8_t { kUnknown, kNotNegative, kNotPositive };

// What the pass knows of an operation on f32.
struct Row {
  bool widens = false;     // has an f64 form that takes the same attributes
  bool rounds = false;     // its result is rounded
  bool overflows = false;  // of ordinary operands may overflow, or underflow
  bool reads_range = false;  // turns what has overflowed into a wrong number
  Sign sign = Sign::kUnknown;
};
constexpr Row Moves() { return {.widens = true}; }
constexpr Row Rounds(Sign sign = Sign::kUnknown) { return {.widens = true, .rounds = true, .sign = sign}; }
constexpr Row Overflows(Sign sign = Sign::kUnknown) {
  return {.widens = true, .rounds = true, .overflows = true, .sign = sign};
}
constexpr Row Reads(Sign sign = Sign::kUnknown) {
  return {.widens = true, .rounds = true, .reads_range = true, .sign = sign};
}

const PrimTable<Row>& Rows() {
  constexpr Sign kPositive = Sign::kNotNegative;
  static const auto& rows = *new PrimTable<Row>{
      {"broadcast", Moves()},
      {"reshape", Moves()},
      {"transpose", Moves()},
      {"slice", Moves()},
      {"reverse", Moves()},
      {"concatenate", Moves()},
      {"neg", Moves()},
      {"abs", {.widens = true, .sign = kPositive}},
      {"max", Moves()},
      {"min", Moves()},
      {"select", Moves()},
      {"clamp", Moves()},
      {"reduce_max", Moves()},
      {"reduce_min", Moves()},
      {"add", Rounds()},
      {"sub", Rounds()},
      {"mul", Overflows()},
      {"square", Overflows(kPositive)},
      {"integer_pow", Overflows()},
      {"div", {.widens = true, .rounds = true, .overflows = true, .reads_range = true}},
      {"pow", {.widens = true, .rounds = true, .overflows = true, .reads_range = true, .sign = kPositive}},
      {"exp", Overflows(kPositive)},
      {"exp2", Overflows(kPositive)},
      {"expm1", Overflows()},
      {"sinh", Overflows()},
      {"cosh", Overflows(kPositive)},
      {"log", Reads()},
      {"log1p", Reads()},
      {"log2", Reads()},
      {"log10", Reads()},
      {"sqrt", Reads(kPositive)},
      {"rsqrt", Reads(kPositive)},
      {"cbrt", Reads()},
      {"tanh", Rounds()},
      {"sin", Rounds()},
      {"cos", Rounds()},
      {"tan", Rounds()},
      {"asin", Rounds()},
      {"acos", Rounds(kPositive)},
      {"atan", Rounds()},
      {"atan2", Reads()},
      {"asinh", Rounds()},
      {"acosh", Rounds(kPositive)},
      {"atanh", Rounds()},
      {"logistic", Rounds(kPositive)},
      {"logistic_density", Rounds(kPositive)},
      {"softplus", Rounds(kPositive)},
      {"sech_squared", Rounds(kPositive)},
      {"erf", Rounds()},
      {"erfc", Rounds(kPositive)},
      {"erf_inv", Rounds()},
      {"lgamma", Overflows()},
      {"digamma", Rounds()},
      {"trigamma", Rounds(kPositive)},
      {"reduce_sum", Rounds()},
      {"reduce_prod", Overflows()},
      {"cumsum", Rounds()},
      {"cumprod", Overflows()},
      {"contract", Overflows()},
  };
  return rows;
}

class Widener {
 public:
  explicit Widener(const Fn& fn) : fn_(fn), defined_(fn.num_vars(), -1), sign_(fn.num_vars(), Sign::kUnknown) {
    const auto& eqns = fn.eqns();
    wide_.assign(eqns.size(), false);
    for (size_t i = 0; i < eqns.size(); ++i) {
      for (uint32_t r = 0; r < eqns[i].num_results; ++r)
        defined_[eqns[i].first_result + r] = static_cast<int64_t>(i);
    }
  }

  // Whether anything is to be computed in f64.
  bool Choose(double most_work) {
    const auto& eqns = fn_.eqns();
    std::vector<bool> wanted(eqns.size(), false);
    bool any = false;
    for (size_t i = 0; i < eqns.size(); ++i) {
      if (!Can(eqns[i])) continue;
      if (ReadsItsOwnRounding(eqns[i])) return false;
      if (const Row& row = Rows()[*eqns[i].prim]; eqns[i].num_results == 1)
        sign_[eqns[i].first_result] = row.sign != Sign::kUnknown ? row.sign : SignOfResult(eqns[i]);
      if (Loses(eqns[i])) wanted[i] = any = true;
    }
    if (!any) return false;
    double work = 0;
    for (size_t i = eqns.size(); i-- > 0;) {
      if (!wanted[i]) continue;
      wide_[i] = true;
      work += WorkOf(eqns[i]);
      for (const Atom& a : eqns[i].operands) {
        const int64_t at = a.is_var() ? defined_[a.id()] : -1;
        if (at >= 0 && Can(eqns[static_cast<size_t>(at)])) wanted[static_cast<size_t>(at)] = true;
      }
    }
    return work <= most_work || CurrentLicences().Allow(Licence::kRounding);
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
        if (t.rank() == 0) return Atom::Scalar(DType::kF64, t.Get(0).real());
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
      const ScopedLoc loc(b, e.loc);
      Atoms in;
      for (const Atom& a : e.operands) in.push_back(wide_[i] ? in_f64(a) : as_it_is(a));
      const Atoms out = b.Clone(e, std::move(in));
      for (uint32_t r = 0; r < e.num_results; ++r) {
        const uint32_t id = e.first_result + r;
        const bool is_wide = wide_[i] && fn_.TypeOf(Var{id}).dtype == DType::kF32;
        (is_wide ? wide : narrow)[id] = out[r];
        (is_wide ? has_wide : has_narrow)[id] = true;
      }
    }
    Atoms results;
    for (const Atom& a : fn_.results()) results.push_back(as_it_is(a));
    return std::move(b).Build(results);
  }

 private:
  const Eqn* Definition(const Atom& a) const {
    const int64_t at = a.is_var() ? defined_[a.id()] : -1;
    return at >= 0 ? &fn_.eqns()[static_cast<size_t>(at)] : nullptr;
  }

  bool Can(const Eqn& e) const {
    if (!Rows()[*e.prim].widens || e.num_results != 1 || !e.regions.empty()) return false;
    const Type& type = fn_.TypeOf(e.result());
    return type.dtype == DType::kF32 && type.is_static() && type.varying.empty();
  }

  double WorkOf(const Eqn& e) const {
    double elements = static_cast<double>(fn_.TypeOf(e.result()).size().value());
    for (const Atom& a : e.operands) {
      const Type& type = fn_.TypeOf(a);
      if (!type.is_static()) return INFINITY;
      if (e.prim->is_elementwise()) continue;
      const auto size = static_cast<double>(type.size().value());
      elements = e.prim->family == Family::kContraction ? std::sqrt(elements * size) * std::sqrt(size)
                                                        : std::max(elements, size);
    }
    return elements * e.prim->work;
  }

  Sign SignOf(const Atom& a) const {
    if (a.is_var()) return sign_[a.id()];
    bool positive = true, negative = true;
    for (int64_t i = 0; i < a.literal().size(); ++i) {
      positive &= a.literal().Get(i).real() >= 0;
      negative &= a.literal().Get(i).real() <= 0;
    }
    return positive ? Sign::kNotNegative : negative ? Sign::kNotPositive : Sign::kUnknown;
  }
  static Sign Negated(Sign s) {
    return s == Sign::kUnknown ? s : s == Sign::kNotNegative ? Sign::kNotPositive : Sign::kNotNegative;
  }

  Sign SignOfResult(const Eqn& e) const {
    static const auto& like_operand =
        *new PrimSet{"broadcast",  "reshape",    "transpose",  "slice",  "reverse",     "reduce_sum",
                     "reduce_max", "reduce_min", "reduce_prod", "cumsum", "concatenate"};
    static const auto& products = *new PrimSet{"mul", "div", "contract"};
    if (Is<"integer_pow">(*e.prim)) return e.attrs.GetInt("y") % 2 == 0 ? Sign::kNotNegative : SignOf(e.operands[0]);
    if (Is<"neg">(*e.prim)) return Negated(SignOf(e.operands[0]));
    if (Is<"max">(*e.prim) && (SignOf(e.operands[0]) == Sign::kNotNegative || SignOf(e.operands[1]) == Sign::kNotNegative))
      return Sign::kNotNegative;
    if (products.Has(*e.prim)) {
      if (e.operands[0] == e.operands[1]) return Sign::kNotNegative;
      const Sign x = SignOf(e.operands[0]), y = SignOf(e.operands[1]);
      if (x == Sign::kUnknown || y == Sign::kUnknown) return Sign::kUnknown;
      return x == y ? Sign::kNotNegative : Sign::kNotPositive;
    }
    static const auto& joins = *new PrimSet{"add", "max", "min"};
    if (joins.Has(*e.prim)) {
      const Sign x = SignOf(e.operands[0]), y = SignOf(e.operands[1]);
      return x == y ? x : Sign::kUnknown;
    }
    if (Is<"sub">(*e.prim)) {
      const Sign x = SignOf(e.operands[0]), y = Negated(SignOf(e.operands[1]));
      return x == y ? x : Sign::kUnknown;
    }
    if (Is<"select">(*e.prim)) {
      const Sign x = SignOf(e.operands[1]), y = SignOf(e.operands[2]);
      return x == y ? x : Sign::kUnknown;
    }
    return like_operand.Has(*e.prim) ? SignOf(e.operands[0]) : Sign::kUnknown;
  }

  // Through what moves numbers only, whether an operation that rounds (or overflows) made this one.
  template <class Property>
  bool MadeBy(Atom a, const Property& property) const {
    for (int steps = 0; steps < 16; ++steps) {
      const Eqn* e = Definition(a);
      if (e == nullptr || !Can(*e)) return false;
      if (property(Rows()[*e->prim])) return true;
      if (Rows()[*e->prim].rounds || e->operands.empty()) return false;
      a = e->operands[e->operands.size() - 1];
    }
    return false;
  }

  // Whether its result may be far less accurate than its operands.
  bool Loses(const Eqn& e) const {
    const auto rounded = [&](const Atom& a) { return MadeBy(a, [](const Row& r) { return r.rounds; }); };
    if (Is<"add">(*e.prim) || Is<"sub">(*e.prim)) {
      const Sign x = SignOf(e.operands[0]);
      const Sign y = Is<"sub">(*e.prim) ? Negated(SignOf(e.operands[1])) : SignOf(e.operands[1]);
      return (x == Sign::kUnknown || x != y) && (rounded(e.operands[0]) || rounded(e.operands[1]));
    }
    static const auto& sums = *new PrimSet{"reduce_sum", "cumsum", "contract"};
    if (sums.Has(*e.prim)) return false;  // as part of what leads up to a difference only
    return Rows()[*e.prim].reads_range && std::any_of(e.operands.begin(), e.operands.end(), [&](const Atom& a) {
             return MadeBy(a, [](const Row& r) { return r.overflows; });
           });
  }

  // (s + y) - s and the like give the error of a rounding, and numbers as large as 2^22 are added to round.
  bool ReadsItsOwnRounding(const Eqn& e) const {
    const bool sum = Is<"add">(*e.prim), difference = Is<"sub">(*e.prim);
    if (!sum && !difference) return false;
    for (int i : {0, 1}) {
      const Atom &a = e.operands[static_cast<size_t>(i)], &other = e.operands[static_cast<size_t>(1 - i)];
      if (a.is_literal() && a.literal().size() > 0 && std::fabs(a.literal().Get(0).real()) >= 0x1p22 && other.is_var())
        return std::isfinite(a.literal().Get(0).real());
      if (!difference || other.is_literal()) continue;
      const Eqn* inner = Definition(a);
      if (inner == nullptr || !(Is<"add">(*inner->prim) || Is<"sub">(*inner->prim))) continue;
      if (inner->operands[0] == other || inner->operands[1] == other) return true;
    }
    return false;
  }

  const Fn& fn_;
  std::vector<int64_t> defined_;  // by variable: the equation that defines it, or -1
  std::vector<Sign> sign_;
  std::vector<bool> wide_;  // by equation
};

FnRef OfBody(const FnRef& fn, double most_work) {
  Widener widener(*fn);
  return widener.Choose(most_work) ? widener.Widened() : fn;
}

}  // namespace

FnRef WidenWhatCancels(FnRef fn) {
  if (!CurrentLicences().Allow(Licence::kAccurate)) return fn;
  const bool regions = std::any_of(fn->eqns().begin(), fn->eqns().end(), [](const Eqn& e) { return !e.regions.empty(); });
  if (regions) {
    fn = Rewrite(std::move(fn), [](Builder& b, const Eqn& e, const Atoms& x) -> std::optional<Atoms> {
      if (e.regions.empty()) return std::nullopt;
      Eqn changed = e;
      bool any = false;
      const RegionUse use = e.prim->region_use;
      const bool once = use == RegionUse::kCall || use == RegionUse::kBranches || use == RegionUse::kWithRules;
      for (FnRef& region : changed.regions) {
        FnRef made = OfBody(region, once ? kMostWork : kMostWorkOfATrip);
        any |= made != region;
        region = std::move(made);
      }
      if (!any) return std::nullopt;
      return b.Clone(changed, x);
    });
  }
  return OfBody(fn, kMostWork);
}

}  // namespace weft
