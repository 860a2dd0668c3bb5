// What sharding rules are made of: maps of factors to dimensions, grown dimension by dimension.
#ifndef WEFT_IR_ANALYSIS_SHARDING_MAPS_H_
#define WEFT_IR_ANALYSIS_SHARDING_MAPS_H_

#include <optional>

#include "ir/analysis/sharding_rules.h"

namespace weft::sharding {

using Kind = ShardingRule::Kind;

inline int64_t StaticSize(const Type& t, size_t d) { return t.dims[d].value("a dimension that is cut over devices"); }
inline ShardingRule::Tensor Whole(const Type& t) { return ShardingRule::Tensor(t.dims.size()); }

// Grows a map dimension by dimension.
struct Map : ShardingRule {
  Map(const Sig& s, const Types& result_types) {
    for (const Type& t : s.operands) operands.push_back(Whole(t));
    for (const Type& t : result_types) results.push_back(Whole(t));
  }
  // A size of 1 is no factor: there is nothing to cut.
  int Add(int64_t size, Kind kind = Kind::kPass) {
    factors.push_back({size, kind});
    return static_cast<int>(factors.size()) - 1;
  }
  void Operand(size_t i, size_t d, int factor) { operands[i][d].push_back(factor); }
  void Result(size_t i, size_t d, int factor) { results[i][d].push_back(factor); }
  void Through(size_t operand, size_t from, size_t result, size_t to, int64_t size) {
    if (size == 1) return;
    const int f = Add(size);
    Operand(operand, from, f);
    Result(result, to, f);
  }
};

// All operands of the results' rank, and the results, have these dimensions, but for those in `whole`.
ShardingRule Alike(const Sig& s, const Types& results, const Ints& whole);
// The leading `batch` dimensions are alike in all operands and results; the others are whole.
ShardingRule Leading(const Sig& s, const Types& results, int batch);

// A rule of a map, and of the attributes that one device's equation has.
OpShardingRule Simple(ShardingRule (*map)(const Sig&, const Types&), Attrs (*attrs)(const LocalEqn&) = nullptr);

// Of reading and writing at computed positions (sharding_of_indexing.cc).
OpShardingRule DynamicSliceRule();
OpShardingRule DynamicUpdateSliceRule();
OpShardingRule GatherRule();
// `batch`: what happens to the dimensions that walk over the indices, of which each device has some.
OpShardingRule ScatterRule(std::optional<Kind> batch);

}  // namespace weft::sharding
#endif  // WEFT_IR_ANALYSIS_SHARDING_MAPS_H_
