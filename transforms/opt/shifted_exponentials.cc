#include "transforms/opt/shifted_exponentials.h"

#include <algorithm>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "transforms/opt/defined_by.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/same_value.h"

namespace weft {
namespace {

struct SoughtPrims {
  const Prim &exp = FindPrim("exp"), &sub = FindPrim("sub"), &select = FindPrim("select");
};
const SoughtPrims& Prims() {
  static const SoughtPrims prims;
  return prims;
}

}  // namespace

std::optional<Atom> ExponentOf(const Builder& b, const Atom& a) {
  const Eqn* e = DefinedBy(b, a, Prims().exp);
  return e != nullptr ? std::optional<Atom>(e->operands[0]) : std::nullopt;
}

bool IsShifted(const Builder& b, const Atom& exponent) {
  const Eqn* e = b.Definition(exponent);
  for (int selects = 0; e != nullptr && e->prim == &Prims().select && selects < 3; ++selects)
    e = b.Definition(Splat(b, e->operands[1]) != nullptr ? e->operands[2] : e->operands[1]);
  if (e == nullptr || e->prim != &Prims().sub) return false;
  const Atom shift = ThroughShapes(b, e->operands[1]).inner;
  const Eqn* made = b.Definition(shift);
  if (made == nullptr) return false;
  static const auto& shifts = *new PrimSet{"reduce_max", "stop_gradient", "log", "select", "max"};
  if (shifts.Has(*made->prim)) return true;
  // m + log(sum(exp(x - m)))
  return Is<"add">(*made->prim);
}

Atom Largest(Builder& b, const Atom& x, const Ints& dims) {
  const Atom largest = StopGradient(b, Reduce(b, "reduce_max", x, dims));
  return Select(b, IsFinite(b, largest), largest, Zeros(b, b.TypeOf(largest)));
}
Atom SpreadOver(Builder& b, const Atom& reduced, const Atom& like, const Ints& dims) {
  const Type type = b.TypeOf(like);
  return Broadcast(b, reduced, type.dims, OtherDims(type.rank(), dims));
}

bool RunsTogether(const Ints& above, const Ints& below, const Dims& summed, const Ints& dims) {
  const Ints kept = OtherDims(static_cast<int>(summed.size()), dims);
  const auto varying = [&](int64_t d) { return d < 0 || summed[static_cast<size_t>(d)] == Dim(1) ? -1 : d; };
  for (size_t d = 0; d < above.size(); ++d) {
    const bool is_summed = std::find(dims.begin(), dims.end(), above[d]) != dims.end();
    if (varying(is_summed ? -1 : above[d]) != varying(below[d] < 0 ? -1 : kept[static_cast<size_t>(below[d])]))
      return false;
  }
  return true;
}

std::optional<Atom> SoftmaxOf(Builder& b, const Atom& above, const Atom& below, bool logarithm) {
  const Shaped over = ThroughShapes(b, above), under = ThroughShapes(b, below);
  const std::optional<Atom> exponent = ExponentOf(b, over.inner);
  const std::optional<Sum> sum = exponent ? SumOf(b, under.inner) : std::nullopt;
  if (!sum || !(b.TypeOf(above).dims == b.TypeOf(below).dims)) return std::nullopt;
  const Shaped summed = ThroughShapes(b, sum->of);
  if (!SameValue(b, summed.inner, over.inner)) return std::nullopt;
  // The difference of x and its largest is exact where they are near each other, so it comes first.
  if (IsShifted(b, *exponent)) {
    if (!logarithm) return std::nullopt;
    return Sub(b, Again(b, over, *exponent), Again(b, under, Log(b, under.inner)));
  }
  const std::optional<Ints> across = DimsBehind(b, under, below);
  const bool same = SameValue(b, sum->of, above);
  std::optional<Ints> along;
  if (same)
    along = Range(0, b.TypeOf(above).rank());
  else if (summed.steps.empty())
    along = DimsBehind(b, over, above);
  const bool together = along && across && RunsTogether(*along, *across, b.TypeOf(sum->of).dims, sum->dims);
  const Atom all = Again(b, summed, *exponent);
  const Atom largest = Largest(b, all, sum->dims);
  const Atom shifted = Sub(b, all, SpreadOver(b, largest, all, sum->dims)), rest = Exp(b, shifted);
  const Atom total = ReduceSum(b, rest, sum->dims);
  // The numerator is read of what is summed where its largest exponent is its sum's.
  Atom mine;
  if (together)
    mine = Again(b, same ? Shaped{} : over, logarithm ? shifted : rest);
  else if (mine = Sub(b, Again(b, over, *exponent), Again(b, under, largest)); !logarithm)
    mine = Exp(b, mine);
  return logarithm ? Sub(b, mine, Again(b, under, Log(b, total))) : Div(b, mine, Again(b, under, total));
}

}  // namespace weft
