#include "transforms/opt/shaped_sums.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "transforms/opt/defined_by.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/known.h"

namespace weft {
namespace {

struct SoughtPrims {
  const Prim &sum = FindPrim("reduce_sum"), &div = FindPrim("div"), &mul = FindPrim("mul");
};
const SoughtPrims& Prims() {
  static const SoughtPrims prims;
  return prims;
}

}  // namespace

Shaped ThroughShapes(const Builder& b, Atom a) {
  static const auto& shapes = *new PrimSet{"broadcast", "reshape", "transpose"};
  Shaped s;
  for (;;) {
    const Eqn* e = b.Definition(a);
    if (e == nullptr || !shapes.Has(*e->prim)) break;
    s.steps.push_back(*e);
    a = e->operands[0];
  }
  s.inner = a;
  return s;
}
Atom Again(Builder& b, const Shaped& s, Atom a) {
  for (const Eqn& step : std::ranges::reverse_view(s.steps)) a = b.Emit1(*step.prim, {a}, step.attrs);
  return a;
}

std::optional<Ints> DimsBehind(const Builder& b, const Shaped& s, const Atom& a) {
  const Dims inner = b.TypeOf(s.inner).dims;
  Ints dims = Range(0, static_cast<int64_t>(inner.size()));
  for (const Eqn& step : std::ranges::reverse_view(s.steps)) {
    const std::optional<Ints> view = ViewDims(b, step, b.TypeOf(Atom(step.result())).dims);
    if (!view) return std::nullopt;
    Ints through;
    for (const int64_t d : *view) through.push_back(d < 0 ? -1 : dims[static_cast<size_t>(d)]);
    dims = std::move(through);
  }
  const Dims outer = b.TypeOf(a).dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (outer[d] == Dim(1)) dims[d] = -1;
  }
  return dims;
}

std::optional<Sum> SumOf(const Builder& b, const Atom& a) {
  const Eqn* e = DefinedBy(b, a, Prims().sum);
  if (e == nullptr || !IsFloat(b.DTypeOf(a))) return std::nullopt;
  Sum sum{e->operands[0], e->attrs.Get<Ints>("dims")};
  // A sum of sums is one over the dimensions of all.
  while (const Eqn* inner = DefinedBy(b, sum.of, Prims().sum)) {
    const Ints& first = inner->attrs.Get<Ints>("dims");
    const Ints left = OtherDims(b.TypeOf(inner->operands[0]).rank(), first);
    Ints all = first;
    for (const int64_t d : sum.dims) all.push_back(left[static_cast<size_t>(d)]);
    std::sort(all.begin(), all.end());
    sum = {inner->operands[0], all};
  }
  return sum;
}

Scaled WithoutFactor(const Builder& b, const Atom& a) {
  if (const Eqn* e = DefinedBy(b, a, Prims().div)) {
    const Atom* s = Splat(b, e->operands[1]);
    if (s != nullptr) return {e->operands[0], 1 / s->literal().Get(0).real()};
  }
  if (const Eqn* e = DefinedBy(b, a, Prims().mul)) {
    for (int i : {0, 1}) {
      const Atom* s = Splat(b, e->operands[i]);
      if (s != nullptr) return {e->operands[1 - i], s->literal().Get(0).real()};
    }
  }
  return {a, 1};
}
Atom Times(Builder& b, const Atom& a, double factor) {
  if (factor == 1) return a;
  const double whole = std::round(1 / factor);
  const DType dtype = b.DTypeOf(a);
  return Near(1 / factor, whole) ? Div(b, a, Atom::Scalar(dtype, whole)) : Mul(b, a, Atom::Scalar(dtype, factor));
}

}  // namespace weft
