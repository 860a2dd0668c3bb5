// Quotients that are written as products with a reciprocal: exp(x) * (1 / sum(exp(x))), exp(x) * (1 + exp(x))**-1.
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/shaped_sums.h"
#include "transforms/opt/stable_rules.h"

namespace weft {
namespace {

// What `a` is the reciprocal of.
std::optional<Atom> OfReciprocal(const Builder& b, const Atom& a) {
  enum class Form : uint8_t { kNone, kQuotient, kPower };
  static const auto& forms = *new PrimTable<Form>{{"div", Form::kQuotient}, {"integer_pow", Form::kPower}};
  const Eqn* e = b.Definition(a);
  const Form form = e == nullptr ? Form::kNone : forms[*e->prim];
  if (form == Form::kPower && e->attrs.GetInt("y") == -1) return e->operands[0];
  if (form != Form::kQuotient) return std::nullopt;
  const Atom* one = Splat(b, e->operands[0]);
  return one != nullptr && one->IsSplat(1) ? std::optional(e->operands[1]) : std::nullopt;
}

// The stable form of the quotient, where it has one.
std::optional<Atom> ByReciprocal(Builder& b, const Eqn& e, const Atoms& x) {
  static const Prim& div = FindPrim("div");
  if (!e.attrs.entries().empty() || !IsFloat(b.DTypeOf(x[0]))) return std::nullopt;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Shaped shaped = ThroughShapes(b, x[i]);
    const std::optional<Atom> of = OfReciprocal(b, shaped.inner);
    if (!of || Splat(b, *of) != nullptr || !(b.TypeOf(x[i]).dims == b.TypeOf(x[1 - i]).dims)) continue;
    const Atom divisor = Again(b, shaped, *of);
    const Eqn quotient{&div, {x[1 - i], divisor}, 0, 1, {}, {}, e.loc};
    if (std::optional<Atom> made = StableForm(b, quotient, quotient.operands)) return made;
  }
  return std::nullopt;
}

const SimplifyRule kRules[] = {
    {"quotient-by-reciprocal", "mul", Licence::kAccurate, ByReciprocal,
     R"(fn f(x: f32[3]) { a = exp x; s = reduce_sum[dims=[0]] a; r = div 1.0:f32 s; t = broadcast[dims=[], shape=<3>] r
        q = mul a t; return q })",
     false, RuleTime::kStabilizing},
    {"quotient-by-reciprocal", "mul", Licence::kAccurate, ByReciprocal,
     "fn f(x: f32[3]) { a = sin x; c = cos x; r = integer_pow[y=-1] c; q = mul r a; return q }", false,
     RuleTime::kStabilizing},
};

}  // namespace

absl::Span<const SimplifyRule> ReciprocalRules() { return kRules; }

}  // namespace weft
