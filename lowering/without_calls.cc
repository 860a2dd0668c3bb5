// Calls disappear before scheduling: what they hold is fused with what is around them.
#include <set>

#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/prim.h"
#include "ir/prims/custom.h"
#include "ir/random_ops.h"
#include "ir/snapshots.h"
#include "lowering/schedule.h"

namespace weft {
namespace {

bool IsCallLike(const Eqn& e) {
  static const std::set<std::string> kCalls = {"call",        "remat",        "custom_jvp",   "custom_vjp",
                                               "custom_vmap", "linear_solve", "custom_linear"};
  return kCalls.count(e.prim->name) != 0;
}

bool IsExpanded(const Eqn& e) {
  static const std::set<std::string> kExpanded = {"checkpoint_name", "sharding_constraint", "snapshot_scan",
                                                  "threefry2x32"};
  return kExpanded.count(e.prim->name) != 0;
}

bool Needed(const Fn& fn) {
  for (const Eqn& e : fn.eqns()) {
    if (IsCallLike(e) || IsExpanded(e)) return true;
    for (const FnRef& r : e.regions) {
      if (Needed(*r)) return true;
    }
  }
  return false;
}

Atoms InlineInto(Builder& b, const Fn& fn, const Atoms& args) {
  Atoms map(fn.num_vars());
  for (size_t i = 0; i < args.size(); ++i) map[i] = args[i];
  const std::vector<int> uses = fn.UseCounts();
  auto get = [&](const Atom& a) { return a.is_var() ? map[a.id()] : a; };
  for (const Eqn& e : fn.eqns()) {
    Atoms operands;
    for (const Atom& a : e.operands) operands.push_back(get(a));
    ScopedLoc loc(b, e.loc);
    Atoms results;
    if (IsCallLike(e)) {
      results = InlineInto(b, e.prim->name == "custom_linear" ? *LinearMap(e.regions, e.loc) : *e.regions[0], operands);
    } else if (e.prim->name == "checkpoint_name" || e.prim->name == "sharding_constraint") {
      results = operands;
    } else if (e.prim->name == "snapshot_scan") {
      Eqn inner = e;
      for (FnRef& r : inner.regions) r = WithoutCalls(r);
      const auto first = uses.begin() + e.first_result;
      results = ExpandSnapshotScan(b, inner, operands, std::vector<int>(first, first + e.num_results));
    } else if (e.prim->name == "threefry2x32") {
      // As ordinary equations the rounds fuse with their surroundings. A key that is known is a pair of numbers, and
      // numbers computed from them would stand beside arrays.
      const Dims shape = fn.TypeOf(Atom(e.result())).dims;
      for (Atom& a : operands) {
        if (a.is_literal() && a.literal().rank() == 0) a = Broadcast(b, a, shape, {});
      }
      const auto [x0, x1] = ExpandThreefry2x32(b, operands[0], operands[1], operands[2], operands[3]);
      results = {x0, x1};
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

FnRef WithoutCalls(const FnRef& fn) {
  if (!Needed(*fn)) return fn;
  Builder b(fn->name());
  Atoms params;
  for (const Param& p : fn->params()) params.push_back(b.Parameter(p.type, p.name, p.kind));
  return b.Build(InlineInto(b, *fn, params));
}

}  // namespace weft
