// The way to cut one equation over devices that costs least: bytes sent for its operands and results, and the work of a
// device.
#ifndef WEFT_TRANSFORMS_SHARD_EQUATION_CUTS_H_
#define WEFT_TRANSFORMS_SHARD_EQUATION_CUTS_H_

#include <limits>
#include <utility>
#include <vector>

#include "ir/analysis/sharding_rules.h"
#include "transforms/shard/propagation.h"
#include "transforms/shard/reshard.h"

namespace weft {

// A value of the program of one device, in every layout that was needed so far.
struct CutValue {
  Type type;  // of the whole
  std::vector<std::pair<Layout, Atom>> versions;
  int param = -1;
  bool picked = false;  // its parts are what one device found, and -0.0 on the others: the sum is that, bit by bit
  bool said = false;    // the program says that it is a sum in parts: what is linear in it is one, too
};
// The axes along which all its versions are parts of a sum.
uint32_t PartialOf(const CutValue& v);

Layout WithPartial(Layout l, uint32_t partial);

struct EquationCuts {
  double cost = std::numeric_limits<double>::infinity();
  std::vector<std::vector<int>> cuts;     // the axes of each factor
  std::vector<Layout> operands, results;  // results with the sums that are left in parts
  uint32_t kept = 0;                      // axes along which operands stay in parts
};

// What is cut: an equation of the scope, its sharding rule, its operands, and how often values are used.
struct CutQuestion {
  const Scope& scope;
  const Eqn& e;
  const ShardingRule& map;
  const std::vector<CutValue>& x;
  const std::vector<int>& uses;
};
// `deterministic`: no sum is cut or kept in parts where that would change its order.
EquationCuts ChooseCuts(Resharder& reshard, bool deterministic, const CutQuestion& question);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_SHARD_EQUATION_CUTS_H_
