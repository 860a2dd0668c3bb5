// Calls disappear before scheduling: what they hold is fused with what is around them.
#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/prim.h"
#include "ir/prims/custom.h"
#include "ir/random_ops.h"
#include "ir/snapshots.h"
#include "lowering/op_rows.h"
#include "lowering/schedule.h"

namespace weft {
namespace {

bool Needed(const Fn& fn) {
  for (const Eqn& e : fn.eqns()) {
    const OpRow::Kind as = RowOf(*e.prim).as;
    if (as == OpRow::Kind::kInlined || as == OpRow::Kind::kReplaced) return true;
    for (const FnRef& r : e.regions) {
      if (Needed(*r)) return true;
    }
  }
  return false;
}

Atoms InlineInto(Builder& b, const Fn& fn, const Atoms& args) {
  Atoms map(fn.num_vars());
  for (size_t i = 0; i < args.size(); ++i) map[i] = args[i];
  auto get = [&](const Atom& a) { return a.is_var() ? map[a.id()] : a; };
  for (const Eqn& e : fn.eqns()) {
    Atoms operands;
    for (const Atom& a : e.operands) operands.push_back(get(a));
    ScopedLoc loc(b, e.loc);
    Atoms results;
    const OpRow& row = RowOf(*e.prim);
    if (row.as == OpRow::Kind::kInlined) {
      results = InlineInto(b, *e.regions[0], operands);
    } else if (row.as == OpRow::Kind::kReplaced) {
      results = row.replace(b, fn, e, operands);
    } else {
      std::vector<FnRef> regions;
      for (const FnRef& r : e.regions) regions.push_back(WithoutCalls(r));
      results = b.Emit(*e.prim, operands, e.attrs, regions);
    }
    for (uint32_t r = 0; r < e.num_results; ++r) map[e.first_result + r] = results[r];
  }
  Atoms out;
  for (const Atom& a : fn.results()) out.push_back(get(a));
  return out;
}

}  // namespace

namespace replace {

Atoms Operands(Builder&, const Fn&, const Eqn&, const Atoms& operands) { return operands; }

Atoms CustomLinear(Builder& b, const Fn&, const Eqn& e, const Atoms& operands) {
  return InlineInto(b, *LinearMap(e.regions, e.loc), operands);
}

Atoms SnapshotScan(Builder& b, const Fn& fn, const Eqn& e, const Atoms& operands) {
  Eqn inner = e;
  for (FnRef& r : inner.regions) r = WithoutCalls(r);
  const std::vector<int> uses = fn.UseCounts();
  const auto first = uses.begin() + e.first_result;
  return ExpandSnapshotScan(b, inner, operands, std::vector<int>(first, first + e.num_results));
}

// As ordinary equations the rounds fuse with their surroundings. A key that is known is a pair of numbers, and numbers
// computed from them would stand beside arrays.
Atoms Threefry2x32(Builder& b, const Fn& fn, const Eqn& e, const Atoms& operands) {
  const Dims shape = fn.TypeOf(Atom(e.result())).dims;
  Atoms x = operands;
  for (Atom& a : x) {
    if (a.is_literal() && a.literal().rank() == 0) a = Broadcast(b, a, shape, {});
  }
  const auto [x0, x1] = ExpandThreefry2x32(b, x[0], x[1], x[2], x[3]);
  return {x0, x1};
}

}  // namespace replace

FnRef WithoutCalls(const FnRef& fn) {
  if (!Needed(*fn)) return fn;
  Builder b(fn->name());
  Atoms params;
  for (const Param& p : fn->params()) params.push_back(b.Parameter(p.type, p.name, p.kind));
  return b.Build(InlineInto(b, *fn, params));
}

}  // namespace weft
