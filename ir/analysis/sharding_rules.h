// How each primitive may be cut over devices: its sharding rule.
//
// A factor is a loop of the operation. contract[spec="mk,kn->mn"] has three:
//
//   operand 0: (m)(k)   operand 1: (k)(n)   result: (m)(n)     k: a sum
//
// Cutting a factor cuts every dimension that holds it, and each device runs the same operation on its blocks. A
// dimension may hold several factors, major first (the dimensions that a reshape merges), or none: then it stays whole.
// Results that do not hold a factor that is cut are put together over devices as its kind says.
//
// The table is complete: every primitive has a rule or a reason why there is none (factors_test).
#ifndef WEFT_IR_ANALYSIS_SHARDING_RULES_H_
#define WEFT_IR_ANALYSIS_SHARDING_RULES_H_

#include <functional>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/mesh.h"
#include "ir/prim.h"

namespace weft {

struct ShardingRule {
  enum class Kind {
    kPass,   // every result holds it
    kSum,    // devices hold parts of a sum
    kMax,    // the largest of what devices hold
    kMin,    // the smallest
    kAgain,  // the operation itself, once more, over what devices hold (a product, logical and)
  };
  struct Factor {
    int64_t size = 1;
    Kind kind = Kind::kPass;
  };
  using Tensor = std::vector<std::vector<int>>;  // for every dimension its factors, major first
  std::vector<Factor> factors;
  std::vector<Tensor> operands, results;
};

// The equation of one device. `cuts` are the mesh axes of each factor, major first.
struct LocalEqn {
  Builder& b;
  const Eqn& eqn;
  const Atoms& x;        // this device's blocks of the operands
  const Types& global;   // the types of the whole operands
  const Types& results;  // the types of this device's blocks of the results
  const ShardingRule& map;
  const Mesh& mesh;
  const std::vector<Strings>& cuts;

  bool IsCut(int factor) const { return !cuts[factor].empty(); }
  // Where this device's block of a factor begins: i32[], or i64[] where it has to be.
  Atom First(int factor) const;
  // Whether this device is the first along the axes of all of `factors`: bool[].
  Atom IsFirst(const std::vector<int>& factors) const;
};

struct OpShardingRule {
  // Of static types. Empty: the operation runs on whole arrays, for `reason`.
  std::function<ShardingRule(const Sig&, const Types& results)> map;
  std::string reason;
  // Of what runs on whole arrays. Its regions are programs that are cut in turn; the first device does it for all.
  bool cuts_regions = false, once = false;
  // Of a sum: what is found on one device, and nothing (-0.0) on the others.
  bool picks = false;
  // What types say (transforms/shard/explicit_types.h) where a dimension of an operand is cut and holds no factor: it
  // has to be whole; the dimension in its place in the results is cut alike if it divides evenly; or results have none.
  enum class Unheld { kWhole, kStays, kGone } unheld = Unheld::kWhole;
  // Whether types have to say the same of all operands of the results' rank.
  bool alike = false;
  // What one device runs; empty: the equation with the attributes that `attrs` gives for its blocks, or its own ones.
  std::function<Attrs(const LocalEqn&)> attrs;
  std::function<Atoms(const LocalEqn&)> emit;
};

const OpShardingRule& OpShardingRuleOf(const Prim& prim);
// The results of one device.
Atoms EmitLocal(const LocalEqn& local);

}  // namespace weft
#endif  // WEFT_IR_ANALYSIS_SHARDING_RULES_H_
