// Parts of scans that are computed before or after the trips rather than in them.
#ifndef WEFT_TRANSFORMS_OPT_LOOP_PARTS_H_
#define WEFT_TRANSFORMS_OPT_LOOP_PARTS_H_

#include <functional>
#include <optional>
#include <vector>

#include "ir/builder.h"

namespace weft {

// The rules of products in trips: sums that trips add up, products of slices, and products of one value with several
// constants.
inline constexpr const char* kSumAfterLoop = "sum-after-loop";
inline constexpr const char* kProductBeforeLoop = "product-before-loop";
inline constexpr const char* kProductsOfOneOperand = "products-of-one-operand";

// A scan `e` with the operands `x` in `b` by those of the three rules that `allows` lets through; `applied` is told of
// each that was used. Nothing where none applies.
std::optional<Atoms> MoveProducts(Builder& b, const Eqn& e, const Atoms& x,
                                  const std::function<bool(const char*)>& allows,
                                  const std::function<void(const char*)>& applied);

// Per variable of a function: whether it is read, and by nobody but slices of its first or its last element along
// dimension 0.
enum class Read : uint8_t { kNot, kFirst, kLast, kOtherwise };
std::vector<Read> ReadsOfStacks(const Fn& fn);

// A scan of whose stacked results only those of the last trip are read: the last trip after the others, which need not
// compute them. `reads` is of the results of `e`.
std::optional<Atoms> PeelLastTrip(Builder& b, const Eqn& e, const Atoms& x, const std::vector<Read>& reads);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_LOOP_PARTS_H_
