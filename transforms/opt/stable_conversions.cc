// Functions of what was widened: log(f64(exp(x)) / 2.5), as numbers of NumPy's make it of an exponential in f32. What
// is widened first and then raised is at least as accurate, and lets rules see both functions.
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/stable_rules.h"

namespace weft {
namespace {

constexpr int kDepth = 8;

enum class Role : uint8_t { kNone, kFunction, kBetween };
Role RoleOf(const Eqn& e) {
  static const auto& roles = *new PrimTable<Role>{
      {"exp", Role::kFunction},       {"exp2", Role::kFunction},     {"expm1", Role::kFunction},
      {"logistic", Role::kFunction},  {"add", Role::kBetween},       {"sub", Role::kBetween},
      {"mul", Role::kBetween},        {"div", Role::kBetween},       {"neg", Role::kBetween},
      {"reshape", Role::kBetween},    {"broadcast", Role::kBetween}, {"transpose", Role::kBetween},
      {"reduce_sum", Role::kBetween},
  };
  return roles[*e.prim];
}

Atom Converted(Builder& b, const Atom& a, DType dtype) {
  if (!a.is_literal() || a.literal().rank() > 0) return Convert(b, a, dtype);
  return Atom::Scalar(dtype, a.literal().Get(0).real());  // which may stand beside arrays
}

// `a` as computed in `dtype` from a function on, where there is one; nothing if not.
std::optional<Atom> ComputedIn(Builder& b, const Atom& a, DType dtype, int depth) {
  const Eqn* found = b.Definition(a);
  const Role role = found == nullptr || depth == 0 ? Role::kNone : RoleOf(*found);
  if (role == Role::kNone || !ReadOnce(b, a)) return std::nullopt;
  const Eqn e = *found;  // emitting may move it
  std::vector<std::optional<Atom>> made(e.operands.size());
  bool any = role == Role::kFunction;
  for (size_t i = 0; i < made.size() && role == Role::kBetween; ++i) {
    made[i] = ComputedIn(b, e.operands[i], dtype, depth - 1);
    any |= made[i].has_value();
  }
  if (!any) return std::nullopt;
  Atoms in;
  for (size_t i = 0; i < made.size(); ++i) in.push_back(made[i] ? *made[i] : Converted(b, e.operands[i], dtype));
  return b.Emit1(*e.prim, in, e.attrs);
}

// `a` with widened values computed in the wider dtype; nothing where there are none.
std::optional<Atom> WithoutConversions(Builder& b, const Atom& a, int depth) {
  static const Prim& convert = FindPrim("convert");
  const Eqn* found = b.Definition(a);
  if (found == nullptr || depth == 0 || found->num_results != 1) return std::nullopt;
  const Eqn e = *found;  // emitting may move it
  if (e.prim == &convert) {
    const DType from = b.DTypeOf(e.operands[0]), to = b.DTypeOf(a);
    return IsFloat(from) && IsFloat(to) && ByteWidth(to) > ByteWidth(from) ? ComputedIn(b, e.operands[0], to, kDepth)
                                                                           : std::nullopt;
  }
  if (RoleOf(e) != Role::kBetween) return std::nullopt;
  Atoms in = e.operands;
  bool changed = false;
  for (Atom& x : in) {
    if (const std::optional<Atom> made = WithoutConversions(b, x, depth - 1)) {
      x = *made;
      changed = true;
    }
  }
  return changed ? std::optional(b.Emit1(*e.prim, in, e.attrs)) : std::nullopt;
}

std::optional<Atom> StableOfWidened(Builder& b, const Eqn& e, const Atoms& x) {
  if (!e.attrs.entries().empty() || !IsFloat(b.DTypeOf(x[0]))) return std::nullopt;
  Eqn of = e;
  bool changed = false;
  of.operands = x;
  for (Atom& a : of.operands) {
    if (const std::optional<Atom> made = WithoutConversions(b, a, kDepth)) {
      a = *made;
      changed = true;
    }
  }
  return changed ? StableForm(b, of, of.operands) : std::nullopt;
}

SimplifyRule Rule() {
  SimplifyRule rule{
      "stable-of-widened",
      "log",
      Licence::kAccurate,
      StableOfWidened,
      R"(fn f(x: f32[3]) { a = exp x; w = convert[dtype=f64] a; q = div w 2.5:f64; r = log q; return r })",
      false,
      RuleTime::kStabilizing};
  rule.other_prims = {"log2", "log10", "log1p", "div", "sub"};
  return rule;
}

}  // namespace

absl::Span<const SimplifyRule> ConversionRules() {
  static const auto& rules = *new std::vector<SimplifyRule>{Rule()};
  return rules;
}

}  // namespace weft
