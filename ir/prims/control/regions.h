// Functions for the rules of operations with regions: checks, masks, series, batching one by one, dead results.
#ifndef WEFT_IR_PRIMS_CONTROL_REGIONS_H_
#define WEFT_IR_PRIMS_CONTROL_REGIONS_H_

#include <string>

#include "ir/ops.h"
#include "ir/prim.h"

namespace weft {

// Raises kType unless region `index` takes exactly `types`.
void CheckRegionParams(const Sig& sig, size_t index, const Types& types);
void CheckRegionResults(const Sig& sig, size_t index, const Types& types);
void CheckRegionCount(const Sig& sig, size_t count);

Mask ActiveOf(const OptionalAtoms& dx);
Mask ActiveOf(const Series& dx);
bool Any(const Mask& mask);
// How many flags are `value`.
size_t CountOf(const Mask& mask, bool value = true);
Mask Union(const Mask& a, const Mask& b);
// A list of groups of these sizes, the groups in another order: where each element was before.
std::vector<size_t> Regrouped(absl::Span<const size_t> sizes, absl::Span<const size_t> order);
// Elements `begin` to `end` of a list.
template <class List>
List Part(const List& list, size_t begin, size_t end) {
  return List(list.begin() + static_cast<int64_t>(begin), list.begin() + static_cast<int64_t>(end));
}
template <class List>
void Append(List& list, const List& more) {
  list.insert(list.end(), more.begin(), more.end());
}
// Repeats `transform(mask of carries)` -> (anything, mask of results, those of the carries first) until the carries'
// masks agree: the mask and what was given for it.
template <class F>
auto CarryFixpoint(Mask carry, F transform) {
  while (true) {
    auto result = transform(carry);
    Mask grown = Union(carry, Part(result.second, 0, carry.size()));
    if (grown == carry) return std::make_pair(std::move(carry), std::move(result));
    carry = std::move(grown);
  }
}
// The entries of `list` whose flag is `value`.
template <class List>
List Where(const List& list, const Mask& mask, bool value = true) {
  List out;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] == value) out.push_back(list[i]);
  }
  return out;
}
// The tangents that exist, zeros where `force` asks for one that does not.
Atoms Tangents(Builder& b, const Atoms& x, const OptionalAtoms& dx, const Mask& wanted);

// The same for series: `count` in a row for each operand that is wanted.
Atoms Tangents(Builder& b, const Atoms& x, const Series& dx, const Mask& wanted, size_t count);
// Each element `count` times in a row.
template <class List>
List Repeated(const List& list, size_t count) {
  List out;
  for (const auto& item : list) out.insert(out.end(), count, item);
  return out;
}

// Which results of `fn` depend on the parameters in `unknown`, or are in `force`: `split`'s answer, without its halves
// where no equation has a rule of its own for it.
Mask DependentResults(const FnRef& fn, const Mask& unknown, const Mask& force, const RegionRules& rules);

// Whether some function inside `fn` is called more than once.
bool CallsOften(const Fn& fn);
// Whether `fn` has more to hand over than any machine holds, which functions that call functions again and again come
// to: it is made again instead. False where running it has effects.
bool IsBetterMadeAgain(const Fn& fn, const Types& values);

// The push rule of operations that run their one region on their operands.
void PushCall(PushContext& c);
// Their split rule: a `call` with these attributes of each half of the region.
void SplitCall(SplitContext& c, const Attrs& attrs);

// The dce rule of operations all of whose regions take the operands from `first` on and give the results.
Kept KeepOfRegions(const DceContext& c, size_t first);
// Nothing is dropped.
Kept KeepWhole(const Eqn& eqn);

// Batches any equation by a scan over the batch elements.
void BatchOneByOne(BatchContext& c);

// Parameters of a region under construction, one for each type.
Atoms Parameters(Builder& b, const Types& types);

// Puts `tangents`, one for each flag set in `active`, into their places.
OptionalAtoms Spread(const Atoms& tangents, const Mask& active);
Series Spread(const Atoms& series, const Mask& active, size_t count);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTROL_REGIONS_H_
