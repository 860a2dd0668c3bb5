#include "transforms/transpose.h"

#include <algorithm>

#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/prim.h"
#include "transforms/region_rules.h"
#include "transforms/split.h"

namespace weft {
namespace {

void CheckLinear(const Eqn& e, const Mask& depends) {
  const Prim& prim = *e.prim;
  for (size_t i = 0; i < depends.size(); ++i) {
    if (depends[i] && !prim.LinearIn(static_cast<int>(i))) {
      const std::string hint = prim.name == "while" ? ", which decides when it ends" : "";
      throw UserError(ErrorKind::kDerivative, e.loc, "transpose: ", prim.name, " is not linear in operand ", i, hint);
    }
  }
  if (prim.multilinear && std::count(depends.begin(), depends.end(), true) > 1) {
    throw UserError(ErrorKind::kDerivative, e.loc, "transpose: ", prim.name,
                    " multiplies two values that both depend on the linear inputs");
  }
  WEFT_CHECK(prim.transpose != nullptr) << prim.name << " is declared linear but has no transpose rule";
}

}  // namespace

FnRef Transpose(const FnRef& fn, const Mask& linear) {
  WEFT_CHECK(linear.size() == fn->params().size())
      << "transpose: " << linear.size() << " flags for " << fn->params().size() << " parameters";
  // An equation with regions may compute values that depend on the linear parameters beside others that do not and that
  // later equations multiply by: those come first.
  const bool mixed =
      std::any_of(fn->eqns().begin(), fn->eqns().end(), [](const Eqn& e) { return e.prim->split != nullptr; });
  if (!mixed) return TransposeLinearHalf(fn, linear);
  const SplitFn split = Split(fn, linear, Mask(fn->results().size(), true));
  Builder b(fn->name());
  Atoms known, args;
  for (size_t i = 0; i < linear.size(); ++i) {
    const Param& p = fn->params()[i];
    if (!linear[i]) known.push_back(b.Parameter(p.type, p.name, p.kind));
  }
  args = b.Inline(*split.known, known);
  for (const Type& t : fn->ResultTypes()) args.push_back(b.Parameter(t));
  Mask half(split.unknown->params().size(), true);
  std::fill(half.begin(), half.begin() + static_cast<int64_t>(split.residuals.size()), false);
  const Atoms results = b.Inline(*TransposeLinearHalf(split.unknown, half), args);
  return std::move(b).Build(results);
}

FnRef TransposeLinearHalf(const FnRef& fn, const Mask& linear) {
  Builder b(fn->name());
  b.ReserveLike(*fn);
  std::vector<bool> depends(fn->num_vars(), false);
  Atoms value(fn->num_vars());
  for (size_t i = 0; i < linear.size(); ++i) {
    depends[i] = linear[i];
    const Param& p = fn->params()[i];
    if (!linear[i]) value[i] = b.Parameter(p.type, p.name, p.kind);
  }
  // Forwards: what does not depend on the linear parameters.
  for (const Eqn& e : fn->eqns()) {
    Atoms operands;
    bool any = e.CallsOutwards();
    for (const Atom& a : e.operands) {
      any |= a.is_var() && depends[a.id()];
      operands.push_back(a.is_var() ? value[a.id()] : a);
    }
    for (uint32_t r = 0; r < e.num_results; ++r) depends[e.first_result + r] = any;
    if (any) continue;
    ScopedLoc loc(b, e.loc);
    const Atoms y = b.Clone(e, operands);
    std::copy(y.begin(), y.end(), value.begin() + e.first_result);
  }
  OptionalAtoms ct(fn->num_vars());
  for (const Atom& a : fn->results()) {
    const Atom c = b.Parameter(fn->TypeOf(a));
    if (a.is_var() && depends[a.id()]) ct[a.id()] = AddTangents(b, ct[a.id()], c);
  }
  // Backwards.
  for (size_t k = fn->eqns().size(); k-- > 0;) {
    const Eqn& e = fn->eqns()[k];
    if (e.num_results == 0 || !depends[e.first_result]) continue;
    const OptionalAtoms cts(ct.begin() + e.first_result, ct.begin() + e.first_result + e.num_results);
    if (std::none_of(cts.begin(), cts.end(), [](const auto& c) { return c.has_value(); })) continue;
    if (e.prim->name == "stop_gradient") continue;  // no cotangent passes, as in a vjp
    OptionalAtoms x;
    Types types;
    Mask operand_depends;
    for (const Atom& a : e.operands) {
      operand_depends.push_back(a.is_var() && depends[a.id()]);
      x.push_back(operand_depends.back() ? std::nullopt : std::optional<Atom>(a.is_var() ? value[a.id()] : a));
      types.push_back(fn->TypeOf(a));
    }
    CheckLinear(e, operand_depends);
    ScopedLoc loc(b, e.loc.Through("transpose"));
    TransposeContext c{b, e, x, types, cts, Regions()};
    const OptionalAtoms back = e.prim->transpose(c);
    for (size_t i = 0; i < back.size(); ++i) {
      if (!operand_depends[i] || !back[i]) continue;
      std::optional<Atom>& sum = ct[e.operands[i].id()];
      // Beside a value that varies over a mesh axis, one that does not was used on every device along it.
      const Atom back_i = MatchVarying(b, *back[i], types[i], /*sum=*/true);
      WEFT_CHECK(b.TypeOf(back_i) == types[i]) << "transpose of " << e.prim->name << ": cotangent of operand " << i
                                               << " is " << b.TypeOf(back_i) << ", expected " << types[i];
      sum = AddTangents(b, sum, back_i);
    }
  }
  Atoms results;
  for (size_t i = 0; i < linear.size(); ++i) {
    if (linear[i]) results.push_back(ct[i] ? *ct[i] : Zeros(b, fn->params()[i].type));
  }
  return std::move(b).Build(results);
}

}  // namespace weft
