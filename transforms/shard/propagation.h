// Which dimensions of every value are cut: what is known of some spreads along sharding rules
// (ir/analysis/sharding_rules.h), forwards, backwards and into regions, until nothing changes. Cuts only grow, so it
// ends.
#ifndef WEFT_TRANSFORMS_SHARD_PROPAGATION_H_
#define WEFT_TRANSFORMS_SHARD_PROPAGATION_H_

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "ir/analysis/sharding_rules.h"
#include "transforms/shard/reshard.h"

namespace weft {

struct Cut {
  Type type;
  Layout layout;             // never partial
  std::vector<bool> closed;  // by dimension: nothing is added to it
};

// A function, or one region of one equation: a region that is shared may be cut in several ways. A function that stays
// a call has one scope for all of its calls, so that a program takes no longer for functions that call functions.
struct Scope {
  FnRef fn;
  std::vector<Cut> vars;
  std::vector<ShardingRule> maps;                            // by equation; without factors where it has no rule
  std::vector<std::vector<std::shared_ptr<Scope>>> regions;  // by equation, where they are cut
};

using OptionalLayouts = std::vector<std::optional<Layout>>;

// `params` and `results`: how those lie of which it is said.
std::shared_ptr<Scope> Propagate(const FnRef& fn, const Mesh& mesh, const OptionalLayouts& params,
                                 const OptionalLayouts& results);

// The axes of each factor, as the dimensions of one tensor are cut; what does not fit a factor is left out.
std::vector<std::vector<int>> FactorCuts(const Mesh& mesh, const ShardingRule& map, const ShardingRule::Tensor& tensor,
                                         const Layout& layout);
// The layout of a tensor whose factors are cut. nullopt where blocks would not be contiguous: a factor is cut, and one
// before it in the same dimension is not cut to the end.
std::optional<Layout> LayoutOfCuts(const Mesh& mesh, const ShardingRule& map, const ShardingRule::Tensor& tensor,
                                   const std::vector<std::vector<int>>& cuts);

// Whether the regions of an equation are cut, each as a program of its own (call, cond, while without tapes, scan).
bool RegionsAreCut(const Eqn& eqn);
// Whether it is a sharding_constraint.
bool IsConstraint(const Eqn& eqn);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_SHARD_PROPAGATION_H_
