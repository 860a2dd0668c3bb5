// Logarithms of other bases, of what is made of exponentials: the natural one by its stable form, times a number. Of
// others the function itself is right, and exact where the result is a whole number.
#include <algorithm>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "transforms/opt/stable_rules.h"

namespace weft {
namespace {

bool HasExponential(const Builder& b, const Atom& a, int depth = 10) {
  enum class Role : uint8_t { kNone, kExponential, kBetween };
  static const auto& roles = *new PrimTable<Role>{
      {"exp", Role::kExponential},      {"exp2", Role::kExponential},
      {"expm1", Role::kExponential},    {"logistic", Role::kExponential},
      {"cosh", Role::kExponential},     {"sinh", Role::kExponential},
      {"softplus", Role::kExponential}, {"logistic_density", Role::kExponential},
      {"add", Role::kBetween},          {"sub", Role::kBetween},
      {"mul", Role::kBetween},          {"div", Role::kBetween},
      {"neg", Role::kBetween},          {"square", Role::kBetween},
      {"integer_pow", Role::kBetween},  {"select", Role::kBetween},
      {"reshape", Role::kBetween},      {"broadcast", Role::kBetween},
      {"transpose", Role::kBetween},    {"reduce_sum", Role::kBetween},
      {"contract", Role::kBetween},
  };
  const Eqn* e = b.Definition(a);
  const Role role = e == nullptr || depth == 0 ? Role::kNone : roles[*e->prim];
  return role == Role::kExponential ||
         (role == Role::kBetween && std::any_of(e->operands.begin(), e->operands.end(),
                                                [&](const Atom& x) { return HasExponential(b, x, depth / 2); }));
}

std::optional<Atom> InOtherBase(Builder& b, const Eqn& e, const Atoms& x) {
  static const PrimTable<double> kFactors{{"log2", 1.4426950408889634}, {"log10", 0.4342944819032518}};
  static const Prim& log = FindPrim("log");
  if (!e.attrs.entries().empty() || !IsFloat(b.DTypeOf(x[0])) || !HasExponential(b, x[0])) return std::nullopt;
  const Eqn natural{&log, x, 0, 1, {}, {}, e.loc};
  const std::optional<Atom> made = StableForm(b, natural, x);
  return made ? std::optional(Mul(b, *made, Atom::Scalar(b.DTypeOf(*made), kFactors[*e.prim]))) : std::nullopt;
}

const SimplifyRule kRules[] = {
    {"log-in-other-base", "log2", Licence::kAccurate, InOtherBase,
     "fn f(x: f32[3]) { a = exp x; s = reduce_sum[dims=[0]] a; r = log2 s; return r }", false, RuleTime::kStabilizing},
    {"log-in-other-base", "log10", Licence::kAccurate, InOtherBase,
     "fn f(x: f32[3]) { a = logistic x; r = log10 a; return r }", false, RuleTime::kStabilizing},
};

}  // namespace

absl::Span<const SimplifyRule> BaseRules() { return kRules; }

}  // namespace weft
