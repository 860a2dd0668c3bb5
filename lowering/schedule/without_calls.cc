// Calls disappear before scheduling: what they hold is fused with what is around them, but for large functions that are
// called more than once.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "ir/builder.h"
#include "ir/extensions.h"
#include "ir/ops.h"
#include "ir/prim.h"
#include "ir/prims/control/custom.h"
#include "ir/random_ops.h"
#include "lowering/ops/op_rows.h"
#include "lowering/schedule/schedule.h"
#include "transforms/opt/calls.h"
#include "transforms/opt/expand_snapshot_scan.h"

namespace weft {
namespace {

// Whether something else takes the equation's place.
bool Goes(const Eqn& e) {
  const OpRow::Kind as = RowOf(*e.prim).as;
  return as == OpRow::Kind::kInlined || as == OpRow::Kind::kReplaced;
}

bool Needed(const Fn& fn) {
  return AnyFunction(fn, [](const Fn& f) {
    return std::any_of(f.eqns().begin(), f.eqns().end(), [](const Eqn& e) { return Goes(e); });
  });
}

class Expansion {
 public:
  explicit Expansion(CalledFunctions called) : called_(std::move(called)) {}

  FnRef Expanded(const FnRef& fn) {
    Builder b(fn->name());
    Atoms params;
    for (const Param& p : fn->params()) params.push_back(b.Parameter(p.type, p.name, p.kind));
    const Atoms results = InlineInto(b, *fn, params);
    return std::move(b).Build(results);
  }

 private:
  // A region, or a function that is called: made once, however often it occurs.
  FnRef Region(const FnRef& fn) {
    FnRef& made = made_[fn];
    if (!made) made = Needed(*fn) ? Expanded(fn) : fn;
    return made;
  }

  Atoms InlineInto(Builder& b, const Fn& fn, const Atoms& args);

  const CalledFunctions called_;
  std::unordered_map<FnRef, FnRef, FnHash, FnEqual> made_;
};

Atoms Expansion::InlineInto(Builder& b, const Fn& fn, const Atoms& args) {
  Atoms map(fn.num_vars());
  for (size_t i = 0; i < args.size(); ++i) map[i] = args[i];
  auto get = [&](const Atom& a) { return a.is_var() ? map[a.id()] : a; };
  for (const Eqn& e : fn.eqns()) {
    Atoms operands;
    for (const Atom& a : e.operands) operands.push_back(get(a));
    ScopedLoc loc(b, e.loc);
    Atoms results;
    const OpRow& row = RowOf(*e.prim);
    if (ExpansionOf(*e.prim) != nullptr) {
      const ExpandedEqn inner = ExpandedOf(b, e, operands);
      results = InlineInto(b, *inner.fn, inner.args);
    } else if (called_.Stays(e)) {
      results = b.Emit(FindPrim("recursive"), operands, {}, {Region(e.regions[0])});
    } else if (row.as == OpRow::Kind::kInlined) {
      results = InlineInto(b, row.body ? *row.body(e) : *e.regions[0], operands);
    } else if (row.as == OpRow::Kind::kReplaced) {
      Eqn inner = e;
      for (FnRef& r : inner.regions) r = Region(r);
      results = row.replace(b, fn, inner, operands);
    } else {
      std::vector<FnRef> regions;
      for (const FnRef& r : e.regions) regions.push_back(Region(r));
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

const FnRef& LinearRegion(const Eqn& e) { return LinearMap(e.regions, e.loc); }

Atoms Operands(Builder&, const Fn&, const Eqn&, const Atoms& operands) { return operands; }

Atoms SnapshotScan(Builder& b, const Fn& fn, const Eqn& e, const Atoms& operands) {
  const std::vector<int> uses = fn.UseCounts();
  const auto first = uses.begin() + e.first_result;
  return ExpandSnapshotScan(b, e, operands, std::vector<int>(first, first + e.num_results));
}

// Nobody reads it before something is computed into it.
Atoms Allocation(Builder& b, const Fn& fn, const Eqn& e, const Atoms&) {
  return {Zeros(b, fn.TypeOf(Var{e.first_result}))};
}

Atoms Nothing(Builder&, const Fn&, const Eqn&, const Atoms&) { return {}; }

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

FnRef WithoutCalls(const FnRef& fn, Functions functions) {
  if (!Needed(*fn)) return fn;
  return Expansion(functions == Functions::kShared ? CalledFunctions::Of(*fn) : CalledFunctions()).Expanded(fn);
}

}  // namespace weft
