// Dead code: equations whose results nobody needs, and inside control flow the results of branches, carries and stacked
// outputs of loops, and operands of regions that nobody needs. What can be dropped of an operation with regions its dce
// rule says.
#include "transforms/opt/dce.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "ir/builder.h"
#include "transforms/opt/pass.h"
#include "transforms/region_memo.h"

namespace weft {
namespace {

// What is kept of equations that are not simply kept or dropped as a whole, by their places.
using KeptEqns = absl::flat_hash_map<size_t, Kept>;

bool IsWhole(const Eqn& e) { return e.regions.empty() && !e.prim->dce; }

bool IsLive(const Eqn& e, const std::vector<bool>& live) {
  const auto first = live.begin() + e.first_result;
  return e.prim->has_effect || std::find(first, first + e.num_results, true) != first + e.num_results ||
         std::any_of(e.regions.begin(), e.regions.end(), [](const FnRef& r) { return r->HasEffects(); });
}

// Walks backwards; gives which variables are live, and fills `kept` unless it is nullptr.
std::vector<bool> LiveVars(const Fn& fn, const Mask& needed_results, KeptEqns* kept);

// What calls an enclosing function reads what that one is known to need so far.
template <class Make>
auto Remembered(const char* what, const FnRef& fn, std::vector<Mask> masks, const Make& make) {
  return fn->OutwardCalls() > 0 ? make() : RegionMemo::Of(what, fn, std::move(masks), make);
}

// Which parameters the results in `needed` depend on, counting what effects read.
Mask Reads(const FnRef& fn, const Mask& needed) {
  return Remembered("reads", fn, {needed}, [&] {
    const std::vector<bool> live = LiveVars(*fn, needed, nullptr);
    return Mask(live.begin(), live.begin() + static_cast<int64_t>(fn->params().size()));
  });
}

// The function with these results and parameters alone, and what they need.
FnRef MakeKeepOnly(const FnRef& fn, const Mask& needed, const Mask& params);
FnRef KeepOnly(const FnRef& fn, const Mask& needed, const Mask& params) {
  return Remembered("keep", fn, {needed, params}, [&] { return MakeKeepOnly(fn, needed, params); });
}
FnRef MakeKeepOnly(const FnRef& fn, const Mask& needed, const Mask& params) {
  KeptEqns kept;
  const std::vector<bool> live = LiveVars(*fn, needed, &kept);
  Builder b(fn->name());
  LongList<Atom> env(fn->num_vars());
  for (size_t i = 0; i < params.size(); ++i) {
    const Param& p = fn->params()[i];
    WEFT_CHECK(params[i] || !live[i]) << "dce: parameter " << i << " of " << fn->name() << " is needed";
    if (params[i]) env[i] = b.Parameter(p.type, p.name, p.kind);
  }
  auto value = [&](const Atom& a) { return a.is_var() ? env[a.id()] : a; };
  Atoms operands;
  for (size_t k = 0; k < fn->eqns().size(); ++k) {
    const Eqn& e = fn->eqns()[k];
    if (!IsLive(e, live)) continue;
    ScopedLoc loc(b, e.loc);
    operands.clear();
    if (IsWhole(e)) {
      for (const Atom& a : e.operands) operands.push_back(value(a));
      const Atoms y = b.Clone(*fn, e, operands);
      std::copy(y.begin(), y.end(), env.begin() + e.first_result);
      continue;
    }
    const Kept& keep = kept.at(k);
    for (size_t i = 0; i < e.operands.size(); ++i) {
      if (keep.operands[i]) operands.push_back(value(e.operands[i]));
    }
    const Atoms y = b.Emit(*e.prim, operands, keep.attrs, keep.regions);
    size_t next = 0;
    for (uint32_t r = 0; r < e.num_results; ++r) {
      if (keep.results[r]) env[e.first_result + r] = y[next++];
    }
  }
  Atoms results;
  for (size_t i = 0; i < needed.size(); ++i) {
    if (needed[i]) results.push_back(value(fn->results()[i]));
  }
  return std::move(b).Build(results);
}

// What is kept of an equation. Its regions are rebuilt only if that is asked for.
Kept KeepOf(const Eqn& e, const Mask& needed, bool rebuild) {
  if (e.prim->dce) {
    auto keep = [&](const FnRef& f, const Mask& results, const Mask& params) {
      return rebuild ? KeepOnly(f, results, params) : f;
    };
    return e.prim->dce({e, needed, Reads, keep});
  }
  Kept all{Mask(e.num_results, true), Mask(e.operands.size(), true), e.attrs, {}};
  for (const FnRef& r : e.regions) {
    const Mask results(r->results().size(), true);
    if (rebuild)
      all.regions.push_back(KeepOnly(r, results, Mask(r->params().size(), true)));
    else if (e.CallsOutwards())
      Reads(r, results);  // for the rules of an enclosing recursive function that it calls
  }
  return all;
}

std::vector<bool> LiveVars(const Fn& fn, const Mask& needed_results, KeptEqns* kept) {
  std::vector<bool> live(fn.num_vars(), false);
  for (size_t i = 0; i < needed_results.size(); ++i) {
    if (needed_results[i] && fn.results()[i].is_var()) live[fn.results()[i].id()] = true;
  }
  for (size_t k = fn.eqns().size(); k-- > 0;) {
    const Eqn& e = fn.eqns()[k];
    if (!IsLive(e, live)) continue;
    if (IsWhole(e)) {
      for (const Atom& a : e.operands) {
        if (a.is_var()) live[a.id()] = true;
      }
      continue;
    }
    const auto first = live.begin() + e.first_result;
    const Mask needed(first, first + e.num_results);
    Kept keep = KeepOf(e, needed, kept != nullptr);
    for (size_t i = 0; i < e.operands.size(); ++i) {
      if (keep.operands[i] && e.operands[i].is_var()) live[e.operands[i].id()] = true;
    }
    if (kept != nullptr) kept->emplace(k, std::move(keep));
  }
  return live;
}

}  // namespace

Kept KeepNeeded(const Eqn& eqn, const Mask& needed) { return KeepOf(eqn, needed, /*rebuild=*/true); }

Mask OperandsNeeded(const Eqn& eqn, const Mask& needed) { return KeepOf(eqn, needed, /*rebuild=*/false).operands; }

FnRef EliminateDeadCode(FnRef fn) {
  const RegionMemo::Scope scope;
  return MakeKeepOnly(fn, Mask(fn->results().size(), true), Mask(fn->params().size(), true));
}

}  // namespace weft
