#include "transforms/ad/jvp.h"

#include <algorithm>

#include "ir/builder.h"
#include "ir/ops.h"
#include "transforms/region_memo.h"
#include "transforms/region_rules.h"

namespace weft {
namespace {

[[noreturn]] void NoDerivative(const Eqn& e, const std::string& why) {
  throw UserError(ErrorKind::kDerivative, e.loc, e.prim->name, " cannot be differentiated: ", why);
}

// dy = sum of partial derivatives times tangents.
void ElementwiseJvp(JvpContext& c) {
  c.y = c.b.Emit(*c.eqn.prim, c.x, c.eqn.attrs);
  const OptionalAtoms partials = c.eqn.prim->partials(c.b, c.x, c.y[0]);
  std::optional<Atom> dy;
  for (size_t i = 0; i < c.x.size(); ++i) {
    if (!c.dx[i] || !partials[i]) continue;
    // A partial made of literals alone is a scalar beside an array.
    const Atom partial = partials[i]->is_var() ? Broadcast(c.b, *partials[i], c.b.TypeOf(*c.dx[i]).dims,
                                                           Range(0, c.b.TypeOf(*partials[i]).rank()))
                                               : *partials[i];
    const Atom term = partial.IsSplat(-1) ? Neg(c.b, *c.dx[i]) : Mul(c.b, partial, *c.dx[i]);
    dy = AddTangents(c.b, dy, term);
  }
  c.dy = {dy};
}

// The operation itself on the tangents of its linear operands: all at once, or one after the other when multilinear.
void LinearJvp(JvpContext& c) {
  const Prim& prim = *c.eqn.prim;
  c.y = c.b.Emit(prim, c.x, c.eqn.attrs, c.eqn.regions);
  for (size_t i = 0; i < c.x.size(); ++i) {
    if (c.dx[i] && !prim.LinearIn(static_cast<int>(i))) NoDerivative(c.eqn, "no rule for operand " + std::to_string(i));
  }
  c.dy.assign(c.y.size(), std::nullopt);
  if (prim.multilinear) {
    for (size_t i = 0; i < c.x.size(); ++i) {
      if (!c.dx[i]) continue;
      Atoms operands = c.x;
      operands[i] = *c.dx[i];
      const Atoms term = c.b.Emit(prim, operands, c.eqn.attrs, c.eqn.regions);
      for (size_t r = 0; r < term.size(); ++r) c.dy[r] = AddTangents(c.b, c.dy[r], term[r]);
    }
    return;
  }
  Atoms operands = c.x;
  for (size_t i = 0; i < c.x.size(); ++i) {
    if (!prim.LinearIn(static_cast<int>(i))) continue;
    if (c.dx[i])
      operands[i] = *c.dx[i];
    else if (prim.is_elementwise())
      operands[i] = Atom::Scalar(c.b.DTypeOf(c.x[i]), 0);
    else
      operands[i] = Zeros(c.b, c.b.TypeOf(c.x[i]));
  }
  const Atoms dy = c.b.Emit(prim, operands, prim.LinearPart(c.eqn.attrs), c.eqn.regions);
  for (size_t r = 0; r < dy.size(); ++r) c.dy[r] = dy[r];
}

void PushTangents(JvpContext& c) {
  Series dx;
  for (const auto& d : c.dx) dx.push_back(d ? std::optional<Atoms>(Atoms{*d}) : std::nullopt);
  PushContext p{c.b, c.eqn, c.x, dx, 1, c.regions.jvp, {}, {}};
  c.eqn.prim->push(p);
  c.y = p.y;
  for (const auto& d : p.dy) c.dy.push_back(d ? std::optional<Atom>((*d)[0]) : std::nullopt);
}

void ApplyRule(JvpContext& c) {
  const Prim& prim = *c.eqn.prim;
  if (prim.push) return PushTangents(c);
  if (prim.jvp) return prim.jvp(c);
  if (!prim.not_differentiable.empty()) NoDerivative(c.eqn, prim.not_differentiable);
  // x * w with one active operand is linear; the general formula would make the same values with more equations.
  bool linear_in_active = prim.multilinear;
  for (size_t i = 0; i < c.dx.size(); ++i) linear_in_active &= !c.dx[i] || prim.LinearIn(static_cast<int>(i));
  if (linear_in_active) return LinearJvp(c);
  if (prim.partials) return ElementwiseJvp(c);
  if (prim.is_linear()) return LinearJvp(c);
  NoDerivative(c.eqn, "it has no derivative rule");
}

}  // namespace

JvpFn Jvp(const FnRef& fn, const Mask& active, const Mask& force_active) {
  const RegionMemo::Scope scope;
  WEFT_CHECK(active.size() == fn->params().size())
      << "jvp: " << active.size() << " flags for " << fn->params().size() << " parameters";
  Builder b(fn->name());
  b.ReserveLike(*fn, 3);
  LongList<Atom> primal(fn->num_vars());
  LongList<std::optional<Atom>> tangent(fn->num_vars());
  for (size_t i = 0; i < active.size(); ++i) {
    const Param& p = fn->params()[i];
    primal[i] = b.Parameter(p.type, p.name, p.kind);
  }
  for (size_t i = 0; i < active.size(); ++i) {
    const Param& p = fn->params()[i];
    if (!active[i]) continue;
    if (!HasTangents(p.type.dtype))
      throw TypeError("jvp: parameter ", i, " is ", p.type, "; only inexact dtypes (and tapes) have tangents");
    tangent[i] = b.Parameter(p.type, p.name.empty() ? "" : "d" + p.name);
  }
  auto x_of = [&](const Atom& a) { return a.is_var() ? primal[a.id()] : a; };
  auto dx_of = [&](const Atom& a) { return a.is_var() ? tangent[a.id()] : std::nullopt; };
  for (const Eqn& e : fn->eqns()) {
    Atoms x;
    OptionalAtoms dx;
    bool any = false;
    for (const Atom& a : e.operands) {
      x.push_back(x_of(a));
      dx.push_back(dx_of(a));
      any |= dx.back().has_value();
    }
    any |= e.CallsOutwards();
    bool inexact = e.CallsOutwards();
    for (uint32_t r = 0; r < e.num_results; ++r)
      inexact |= HasTangents(fn->TypeOf(e.result(static_cast<int>(r))).dtype);
    ScopedLoc loc(b, any ? e.loc.Through("jvp", e.prim->name) : e.loc);
    if (!any || !inexact) {
      const Atoms y = b.Clone(*fn, e, x);
      std::copy(y.begin(), y.end(), primal.begin() + e.first_result);
      continue;
    }
    JvpContext c{b, e, x, dx, Regions(), {}, {}};
    ApplyRule(c);
    WEFT_CHECK(c.y.size() == e.num_results && c.dy.size() == e.num_results) << "jvp of " << e.prim->name;
    for (uint32_t r = 0; r < e.num_results; ++r) {
      primal[e.first_result + r] = c.y[r];
      // A tangent has the type of its value, over mesh axes too.
      if (HasTangents(b.DTypeOf(c.y[r])) && c.dy[r])
        tangent[e.first_result + r] = MatchVarying(b, *c.dy[r], b.TypeOf(c.y[r]));
    }
  }
  Atoms results, tangents;
  Mask active_out;
  for (size_t i = 0; i < fn->results().size(); ++i) {
    const Atom& a = fn->results()[i];
    results.push_back(x_of(a));
    std::optional<Atom> d = dx_of(a);
    const Type type = fn->TypeOf(a);
    if (!d && !force_active.empty() && force_active[i] && HasTangents(type.dtype)) d = Zeros(b, type);
    active_out.push_back(d.has_value());
    if (d) tangents.push_back(*d);
  }
  results.insert(results.end(), tangents.begin(), tangents.end());
  return {std::move(b).Build(results), active_out};
}

}  // namespace weft
