// Quotients that are written as products with a reciprocal: exp(x) * (1 / sum(exp(x))), exp(x) * (1 + exp(x))**-1.
#include <algorithm>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/contraction.h"
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

// An operand of a product that sums nothing, as the product has it.
Atom Spread(Builder& b, const Atom& a, const std::string& letters, const std::string& out, const Dims& dims) {
  Ints perm, into;
  for (size_t d = 0; d < out.size(); ++d) {
    const size_t at = letters.find(out[d]);
    if (at == std::string::npos) continue;
    perm.push_back(static_cast<int64_t>(at));
    into.push_back(static_cast<int64_t>(d));
  }
  return Broadcast(b, Transpose(b, a, perm), dims, into);
}

// einsum("ij,i->ij", exp(x), 1 / sum(exp(x), 1)): the same.
std::optional<Atom> ByReciprocalOfRows(Builder& b, const Eqn& e, const Atoms& x) {
  static const Prim& div = FindPrim("div");
  if (e.attrs.entries().size() != 1 || !IsFloat(b.DTypeOf(x[0]))) return std::nullopt;
  const ContractSpec spec = ContractSpec::Parse(e.attrs.Get<std::string>("spec"));
  const auto stays = [&](char c) { return spec.out.find(c) != std::string::npos; };
  if (!std::all_of(spec.lhs.begin(), spec.lhs.end(), stays) || !std::all_of(spec.rhs.begin(), spec.rhs.end(), stays))
    return std::nullopt;
  Dims dims;
  for (const char c : spec.out) {
    const size_t at = spec.lhs.find(c);
    dims.push_back(at != std::string::npos ? b.TypeOf(x[0]).dims[at] : b.TypeOf(x[1]).dims[spec.rhs.find(c)]);
  }
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Shaped shaped = ThroughShapes(b, x[i]);
    const std::optional<Atom> of = OfReciprocal(b, shaped.inner);
    if (!of || Splat(b, *of) != nullptr) continue;
    const std::string &own = i == 0 ? spec.lhs : spec.rhs, &other = i == 0 ? spec.rhs : spec.lhs;
    const Atom divisor = Spread(b, Again(b, shaped, *of), own, spec.out, dims);
    const Eqn quotient{&div, {Spread(b, x[1 - i], other, spec.out, dims), divisor}, 0, 1, {}, {}, e.loc};
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
    {"quotient-by-reciprocal", "contract", Licence::kAccurate, ByReciprocalOfRows,
     R"(fn f(x: f32[2,3]) { a = exp x; s = reduce_sum[dims=[1]] a; r = div 1.0:f32 s
        q = contract[spec="ij,i->ji"] a r; return q })",
     false, RuleTime::kStabilizing},
};

}  // namespace

absl::Span<const SimplifyRule> ReciprocalRules() { return kRules; }

}  // namespace weft
