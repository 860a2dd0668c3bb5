#include "ir/analysis/size_conditions.h"

#include <algorithm>
#include <unordered_set>

namespace weft {
namespace {

bool AnySymbolic(const Types& types) {
  return std::any_of(types.begin(), types.end(), [](const Type& t) { return !t.is_static(); });
}

// Of equal ones the first is enough.
void Keep(SizeCondition condition, std::vector<SizeCondition>& conditions) {
  const bool there = std::any_of(conditions.begin(), conditions.end(), [&](const SizeCondition& c) {
    return c.size == condition.size && c.reads == condition.reads && c.least >= condition.least;
  });
  if (!there) conditions.push_back(std::move(condition));
}

// Types of an equation, for a type rule.
struct Signature {
  Types operands, results;
  Mask literal;

  Signature(const Fn& fn, const Eqn& e) {
    for (const Atom& a : e.operands) {
      operands.push_back(fn.TypeOf(a));
      literal.push_back(a.is_literal());
    }
    for (uint32_t r = 0; r < e.num_results; ++r) results.push_back(fn.TypeOf(Var{e.first_result + r}));
  }
  bool is_static() const { return !AnySymbolic(operands) && !AnySymbolic(results); }
  // Whether an operand has that size.
  bool Takes(const Dim& size) const {
    return std::any_of(operands.begin(), operands.end(),
                       [&](const Type& t) { return std::find(t.dims.begin(), t.dims.end(), size) != t.dims.end(); });
  }
};

void CollectResultSizes(const Fn& fn, std::unordered_set<const Fn*>& seen, std::vector<SizeCondition>& conditions) {
  for (const Eqn& e : fn.eqns()) {
    for (const FnRef& region : e.regions) {
      if (seen.insert(region.get()).second) CollectResultSizes(*region, seen, conditions);
    }
    const Signature s(fn, e);
    for (const Type& t : s.results) {
      for (const Dim& d : t.dims) {
        if (!d.AtLeast(0) && !s.Takes(d))
          Keep({d, 0, Dim(1), e.prim->name + ": a dimension of the result " + t.ToString()}, conditions);
      }
    }
  }
}

}  // namespace

bool Sig::Fits(const Type& type, int dim, int64_t least, const Dim& reads) const {
  const Dim& size = type.dims[static_cast<size_t>(dim)];
  if (size.is_static()) return size.value() >= least;
  if (conditions != nullptr && !size.AtLeast(least)) {
    conditions->push_back(
        {size, least, reads, prim.name + ": dimension " + std::to_string(dim) + " of " + type.ToString()});
  }
  return true;
}

bool Sig::FitsWithin(const Type& type, int dim, int64_t most) const {
  const Dim& size = type.dims[static_cast<size_t>(dim)];
  if (size.is_static()) return size.value() <= most;
  if (conditions != nullptr) {
    conditions->push_back(
        {Dim(0) - size, -most, Dim(1), prim.name + ": dimension " + std::to_string(dim) + " of " + type.ToString()});
  }
  return true;
}

std::vector<SizeCondition> SizeConditions(const Fn& fn, const Eqn& eqn) {
  std::vector<SizeCondition> conditions;
  if (!eqn.regions.empty() || eqn.CallsOutwards()) return conditions;
  const Signature s(fn, eqn);
  if (!s.is_static()) InferTypes(Sig{*eqn.prim, s.operands, s.literal, eqn.attrs, eqn.regions, &conditions});
  return conditions;
}

std::vector<SizeCondition> SizeConditions(const Fn& fn) {
  std::vector<SizeCondition> conditions;
  for (const Eqn& e : fn.eqns()) {
    for (SizeCondition& c : SizeConditions(fn, e)) Keep(std::move(c), conditions);
  }
  return conditions;
}

std::vector<SizeCondition> ResultSizes(const Fn& fn) {
  std::vector<SizeCondition> conditions;
  std::unordered_set<const Fn*> seen;
  CollectResultSizes(fn, seen, conditions);
  return conditions;
}

}  // namespace weft
