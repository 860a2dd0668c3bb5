// What all branches of a choice have in common is computed before it, and what all of them return is no result of it.
#include <algorithm>

#include "ir/ops.h"
#include "transforms/opt/cse.h"
#include "transforms/opt/rewrite.h"

namespace weft {
namespace {

constexpr size_t kMostEquations = 64;  // of a branch: each is compared with those of the others

// What stands before the choice for the values of a branch.
using Outside = std::vector<std::optional<Atom>>;

std::optional<Atoms> OperandsOutside(const Eqn& e, const Outside& outside) {
  Atoms x;
  bool any = false;
  for (const Atom& a : e.operands) {
    if (a.is_literal()) {
      x.push_back(a);
    } else if (outside[a.id()]) {
      x.push_back(*outside[a.id()]);
      any = true;
    } else {
      return std::nullopt;
    }
  }
  return any ? std::optional<Atoms>(x) : std::nullopt;
}

// Not what is read through a map of indices: before the choice it would be an array of its own.
bool MayMove(const Eqn& e) {
  return e.regions.empty() && e.num_results == 1 && !e.prim->has_effect && !e.prim->view && !e.prim->expands &&
         !e.prim->communicates && e.prim->family != Family::kRandom && e.prim->family != Family::kEffect;
}

// Whether its result may as well be an array of its own, which a branch reads again: of a product or a sum it is one
// anyway, and one of few elements costs nothing.
bool IsWorthAnArray(const Fn& fn, const Eqn& e) {
  constexpr int64_t kFew = 4096;
  if (!e.prim->is_elementwise()) return true;
  const Type& type = fn.TypeOf(e.result());
  return e.prim->work > 1 && type.is_static() && type.size().value("an array") <= kFew;
}

// The equation of `fn` that computes the same from the same; its place, or the number of equations.
size_t SameEquation(const Fn& fn, const Outside& outside, const Eqn& e, const Atoms& x) {
  for (size_t i = 0; i < fn.eqns().size(); ++i) {
    const Eqn& other = fn.eqns()[i];
    if (other.prim != e.prim || !(other.attrs == e.attrs) || !MayMove(other)) continue;
    const std::optional<Atoms> y = OperandsOutside(other, outside);
    if (y && SameOperands(*y, x, e.prim->commutes)) return i;
  }
  return fn.eqns().size();
}

std::optional<Atoms> Shared(Builder& b, const Eqn& e, const Atoms& x) {
  if (e.prim->region_use != RegionUse::kBranches || e.regions.size() < 2) return std::nullopt;
  for (const FnRef& r : e.regions) {
    if (r->OutwardCalls() > 0 || r->eqns().size() > kMostEquations) return std::nullopt;
  }
  if (std::any_of(x.begin(), x.end(), [&](const Atom& a) { return !b.TypeOf(a).varying.empty(); })) return std::nullopt;
  std::vector<Outside> outside;
  for (const FnRef& r : e.regions) {
    Outside known(r->num_vars());
    for (size_t i = 0; i < r->params().size(); ++i) known[i] = x[i + 1];
    outside.push_back(std::move(known));
  }
  struct Moved {
    Atom value;
    std::vector<uint32_t> inside;  // the variable in each branch
    Atoms reads;
    bool worth;  // whether it is computed before the choice for its own sake
  };
  std::vector<Moved> moved;
  for (const Eqn& candidate : e.regions[0]->eqns()) {
    if (!MayMove(candidate)) continue;
    const std::optional<Atoms> operands = OperandsOutside(candidate, outside[0]);
    if (!operands) continue;
    Moved common{{}, {candidate.first_result}, *operands, IsWorthAnArray(*e.regions[0], candidate)};
    for (size_t k = 1; k < e.regions.size(); ++k) {
      const size_t at = SameEquation(*e.regions[k], outside[k], candidate, *operands);
      if (at == e.regions[k]->eqns().size()) break;
      common.inside.push_back(e.regions[k]->eqns()[at].first_result);
    }
    if (common.inside.size() < e.regions.size()) continue;
    common.value = b.Emit1(*candidate.prim, *operands, candidate.attrs);
    for (size_t k = 0; k < e.regions.size(); ++k) outside[k][common.inside[k]] = common.value;
    moved.push_back(std::move(common));
  }
  // Results that are the same whichever branch is taken.
  std::vector<std::optional<Atom>> same(e.num_results);
  bool any = false;
  for (size_t r = 0; r < e.num_results; ++r) {
    for (size_t k = 0; k < e.regions.size(); ++k) {
      const Atom& a = e.regions[k]->results()[r];
      const std::optional<Atom> value = a.is_literal() ? std::optional(a) : outside[k][a.id()];
      same[r] = value && (k == 0 || (same[r] && *same[r] == *value)) ? value : std::nullopt;
      if (!same[r]) break;
    }
    any |= same[r].has_value();
  }
  // A kernel of the branch computes what is cheap on the way; before the choice it would be an array of its own. So it
  // moves for a result, or for others that do.
  for (size_t m = moved.size(); m-- > 0;) {
    const auto is_value = [&](const std::optional<Atom>& a) { return a && *a == moved[m].value; };
    bool worth = moved[m].worth || std::any_of(same.begin(), same.end(), is_value);
    for (size_t reader = m + 1; reader < moved.size(); ++reader) {
      const Atoms& reads = moved[reader].reads;
      worth |= std::find(reads.begin(), reads.end(), moved[m].value) != reads.end();
    }
    if (!worth) moved.erase(moved.begin() + static_cast<int64_t>(m));
  }
  if (!any && moved.empty()) return std::nullopt;
  Atoms operands = x;
  std::vector<FnRef> regions;
  for (const Moved& m : moved) operands.push_back(m.value);
  for (size_t k = 0; k < e.regions.size(); ++k) {
    const Fn& fn = *e.regions[k];
    Builder inside(fn.name());
    LongList<Atom> env(fn.num_vars());
    for (size_t i = 0; i < fn.params().size(); ++i)
      env[i] = inside.Parameter(fn.params()[i].type, fn.params()[i].name, fn.params()[i].kind);
    for (const Moved& m : moved) env[m.inside[k]] = inside.Parameter(b.TypeOf(m.value));
    const auto value = [&](const Atom& a) { return a.is_var() ? env[a.id()] : a; };
    for (const Eqn& eqn : fn.eqns()) {
      // What has no result has the place of the next one's.
      const bool is_moved = eqn.num_results == 1 && std::any_of(moved.begin(), moved.end(), [&](const Moved& m) {
                              return m.inside[k] == eqn.first_result;
                            });
      if (is_moved) continue;
      Atoms in;
      for (const Atom& a : eqn.operands) in.push_back(value(a));
      const ScopedLoc loc(inside, eqn.loc);
      const Atoms y = inside.Clone(fn, eqn, in);
      std::copy(y.begin(), y.end(), env.begin() + eqn.first_result);
    }
    Atoms results;
    for (const Atom& a : fn.results()) results.push_back(value(a));
    regions.push_back(std::move(inside).Build(results));
  }
  Atoms made = b.Emit(*e.prim, operands, e.attrs, regions);
  for (size_t r = 0; r < e.num_results; ++r) {
    if (same[r]) made[r] = *same[r];
  }
  return made;
}

}  // namespace

FnRef ShareOfBranches(FnRef fn) { return Rewrite(std::move(fn), Shared); }

}  // namespace weft
