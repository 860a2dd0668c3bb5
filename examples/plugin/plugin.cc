// A plugin: one pass, one operation with a derivative of its own, and two rules.
#include "sdk/plugin.h"

using namespace weft;

namespace {

// tanh(x) becomes 2 logistic(2 x) - 1, in loops and branches as well.
FnRef TanhToLogistic(FnRef fn) {
  return Rewrite(std::move(fn), [](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
    if (!Is<"tanh">(*e.prim)) return std::nullopt;  // keep the equation
    const Expr x{&b, operands[0]};
    return Atoms{2.0 * Logistic(2.0 * x) - 1.0};
  });
}

// softsign(x) = x / (1 + |x|). One operation in programs, until it is compiled.
Prim Softsign() {
  Prim p;
  p.name = "softsign";
  p.doc = "x / (1 + |x|).";
  p.family = Family::kElementwise;
  p.num_operands = 1;
  p.dtypes = kFloats;
  p.partials = [](Builder& b, const Atoms& x, const Atom&) -> OptionalAtoms {
    return {1.0 / Square(Abs(Expr{&b, x[0]}) + 1.0)};
  };
  return p;
}

// lerp(x, y; t) = x + t (y - x). Its derivative, its batching and its type follow from what it computes.
Prim Lerp() {
  Prim p;
  p.name = "lerp";
  p.doc = "x + t (y - x); the attribute t is a number.";
  p.num_operands = 2;
  p.more_attributes = {"t"};
  return p;
}

}  // namespace

WEFT_PLUGIN(example) {
  RegisterPass({"tanh-to-logistic", "Compute tanh by the logistic function.", TanhToLogistic});
  RegisterPrimitive(Softsign(), [](Builder& b, const Atoms& x, const Attrs&) -> Atoms {
    const Expr v{&b, x[0]};
    return {v / (Abs(v) + 1.0)};
  });
  RegisterPrimitive(Lerp(), [](Builder& b, const Atoms& x, const Attrs& attrs) -> Atoms {
    const Expr from{&b, x[0]}, to{&b, x[1]};
    return {from + (to - from) * attrs.Get<double>("t")};
  });
  // softsign is odd: exact, since no bit changes.
  RegisterRule(FormulaRule{"softsign-of-neg", Licence::kExact, "softsign(-x)", "-softsign(x)"});
  // lerp(x, x) = x, by a function: formulas have no attributes.
  RegisterRule(SimplifyRule{"lerp-of-same", "lerp", Licence::kNoNan,
                            [](Builder&, const Eqn&, const Atoms& x) -> std::optional<Atom> {
                              return x[0] == x[1] ? std::optional<Atom>(x[0]) : std::nullopt;
                            },
                            nullptr});
}
