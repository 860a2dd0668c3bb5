// A plugin as it was written for version 1.0 of the SDK, with all that can be registered. It does not change any more:
// tests/sdk/releases_test.py builds it against today's headers, and checks today's library against abi.txt.
#include "sdk/plugin.h"

using namespace weft;

namespace {

constexpr double kTwo = 2;

// exp2(x) becomes exp(x log 2), in every region.
FnRef Exp2ByExp(FnRef fn) {
  return Rewrite(std::move(fn), [](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
    if (!Is<"exp2">(*e.prim)) return std::nullopt;
    const Expr x{&b, operands[0]};
    return Atoms{Exp(0.6931471805599453 * x)};
  });
}

Prim HalfSquare() {
  Prim p;
  p.name = "release_half_square";
  p.doc = "x * x / 2.";
  p.family = Family::kElementwise;
  p.num_operands = 1;
  p.dtypes = kFloats;
  p.partials = [](Builder&, const Atoms& x, const Atom&) -> OptionalAtoms { return {x[0]}; };
  return p;
}

Prim Scaled() {
  Prim p;
  p.name = "release_scaled";
  p.doc = "x times the attribute `by`.";
  p.num_operands = 1;
  p.more_attributes = {"by"};
  return p;
}

}  // namespace

WEFT_PLUGIN(release_1_0) {
  RegisterPass({"release-exp2-by-exp", "Compute exp2 by exp.", Exp2ByExp});
  RegisterPrimitive(HalfSquare(), [](Builder& b, const Atoms& x, const Attrs&) -> Atoms {
    const Expr v{&b, x[0]};
    return {v * v / kTwo};
  });
  RegisterPrimitive(Scaled(), [](Builder& b, const Atoms& x, const Attrs& attrs) -> Atoms {
    if (!IsFloat(b.TypeOf(x[0]).dtype))
      throw TypeError("release_scaled: operand is ", b.TypeOf(x[0]), "; expected floats");
    return {Expr{&b, x[0]} * attrs.Get<double>("by")};
  });
  RegisterRule(
      FormulaRule{"release-half-square-of-neg", Licence::kExact, "release_half_square(-x)", "release_half_square(x)"});
  RegisterRule(SimplifyRule{"release-scaled-by-one", "release_scaled", Licence::kExact,
                            [](Builder&, const Eqn& e, const Atoms& x) -> std::optional<Atom> {
                              return e.attrs.Get<double>("by") == 1 ? std::optional<Atom>(x[0]) : std::nullopt;
                            },
                            nullptr});
}
