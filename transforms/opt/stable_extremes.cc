// Logarithms of what is kept above or below a number: log(max(sigmoid(x), 1e-30)), log(clip(p, 1e-7, 1)).
#include <limits>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/stable_rules.h"

namespace weft {
namespace {

// What is kept above `least` and below `most`; one of them at least is given.
struct Kept {
  Atom value;
  std::optional<Atom> least, most;
};
std::optional<Kept> KeptOf(const Builder& b, const Atom& a) {
  enum class Form : uint8_t { kNone, kMax, kMin, kClamp };
  static const auto& forms = *new PrimTable<Form>{{"max", Form::kMax}, {"min", Form::kMin}, {"clamp", Form::kClamp}};
  const Eqn* e = b.Definition(a);
  const Form form = e == nullptr ? Form::kNone : forms[*e->prim];
  if (form == Form::kClamp) {
    const Atom *lo = Splat(b, e->operands[0]), *hi = Splat(b, e->operands[2]);
    if (lo == nullptr || hi == nullptr) return std::nullopt;
    return Kept{e->operands[1], *lo, *hi};
  }
  if (form == Form::kNone) return std::nullopt;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Atom* number = Splat(b, e->operands[i]);
    if (number == nullptr) continue;
    const Atom& value = e->operands[1 - i];
    return form == Form::kMax ? Kept{value, *number, std::nullopt} : Kept{value, std::nullopt, *number};
  }
  return std::nullopt;
}

double NumberOf(const Atom& a) { return a.literal().Get(0).real(); }

// The same number as this dtype has it.
Atom LogOfNumber(Builder& b, const Eqn& e, const Atom& number) {
  Eqn log = e;
  log.operands = {number};
  return FoldNumbers(b, log, log.operands)[0];
}

// The logarithm increases: the extremes are of logarithms. One that has a stable form, that is.
std::optional<Atom> LogOfKept(Builder& b, const Eqn& e, const Atoms& x) {
  const DType dtype = b.DTypeOf(x[0]);
  if (!e.attrs.entries().empty() || !IsFloat(dtype)) return std::nullopt;
  const std::optional<Kept> kept = KeptOf(b, x[0]);
  if (!kept || !(b.TypeOf(kept->value).dims == b.TypeOf(x[0]).dims)) return std::nullopt;
  if ((kept->least && !(NumberOf(*kept->least) >= 0)) || (kept->most && !(NumberOf(*kept->most) > 0)))
    return std::nullopt;
  const Eqn of{e.prim, {kept->value}, 0, 1, {}, {}, e.loc};
  const std::optional<Atom> log = StableForm(b, of, of.operands);
  if (!log) return std::nullopt;
  Atom made = *log;
  if (kept->least) {
    // What is less than 0 has no logarithm, and is not NaN when it is kept above a number.
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const Atom negative = Lt(b, kept->value, Atom::Scalar(dtype, 0));
    made = GuardedSelect(b, negative, Full(b, b.TypeOf(x[0]), -kInfinity), made);
    made = Max(b, made, LogOfNumber(b, e, *kept->least));
  }
  return kept->most ? Min(b, made, LogOfNumber(b, e, *kept->most)) : made;
}

SimplifyRule Rule(const char* sample) {
  SimplifyRule rule{"log-of-kept", "log", Licence::kAccurate, LogOfKept, sample, false, RuleTime::kStabilizing};
  rule.other_prims = {"log2", "log10"};
  return rule;
}

}  // namespace

absl::Span<const SimplifyRule> ExtremeRules() {
  static const auto& rules = *new std::vector<SimplifyRule>{
      Rule("fn f(x: f32[3]) { e = exp x; a = add 1.0:f32 e; m = max a 1.0:f32; r = log m; return r }"),
      Rule("fn f(x: f32[3]) { e = exp x; a = max 0.5:f32 e; m = min a 1.0:f32; r = log m; return r }"),
      Rule("fn f(x: f32[3]) { s = logistic x; m = clamp 0.001:f32 s 1.0:f32; r = log m; return r }"),
  };
  return rules;
}

}  // namespace weft
