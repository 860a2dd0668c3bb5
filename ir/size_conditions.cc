#include "ir/size_conditions.h"

#include <algorithm>

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

void Collect(const Fn& fn, std::vector<SizeCondition>& conditions) {
  for (const Eqn& e : fn.eqns()) {
    for (const FnRef& region : e.regions) Collect(*region, conditions);
    if (!e.regions.empty() || e.CallsOutwards()) continue;
    Types operands;
    Mask literal;
    for (const Atom& a : e.operands) {
      operands.push_back(fn.TypeOf(a));
      literal.push_back(a.is_literal());
    }
    Types results;
    for (uint32_t r = 0; r < e.num_results; ++r) results.push_back(fn.TypeOf(Var{e.first_result + r}));
    if (!AnySymbolic(operands) && !AnySymbolic(results)) continue;
    std::vector<SizeCondition> here;
    InferTypes(Sig{*e.prim, operands, literal, e.attrs, e.regions, &here});
    for (SizeCondition& c : here) Keep(std::move(c), conditions);
    for (const Type& t : results) {
      for (const Dim& d : t.dims) {
        // A size of a parameter, or of another result before this one, is no news.
        const bool known = d.AtLeast(0) || std::any_of(operands.begin(), operands.end(), [&](const Type& x) {
                             return std::find(x.dims.begin(), x.dims.end(), d) != x.dims.end();
                           });
        if (!known) Keep({d, 0, Dim(1), e.prim->name + ": a dimension of the result " + t.ToString()}, conditions);
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

std::vector<SizeCondition> SizeConditions(const Fn& fn) {
  std::vector<SizeCondition> conditions;
  Collect(fn, conditions);
  return conditions;
}

}  // namespace weft
