// The order in which reduce_sum and reduce_prod take in floating-point numbers. It depends on the operand's shape and
// dtype and on what is reduced, so that the interpreter and compiled code have the same bits.
//
// Dimensions of size 1 count as none, and neighbours that are both reduced, or both kept, as one. If the last dimension
// is kept, or is reduced and shorter than kShortestInLanes, the elements are taken in one after the other in row-major
// order. Otherwise element j along the last dimension goes into lane j % L of L = LanesOf(dtype) sums, which begin with
// the neutral element; in the end the upper half of the lanes is added to the lower half, until one is left.
//
// Accumulators have the operand's dtype, but f32 for 16 and 8 bits; each result is rounded to its dtype once.
#ifndef WEFT_IR_PRIMS_REDUCTION_ORDER_H_
#define WEFT_IR_PRIMS_REDUCTION_ORDER_H_

#include "ir/attr.h"
#include "ir/tensor.h"
#include "ir/type.h"

namespace weft {

constexpr int64_t kShortestInLanes = 8;

// Powers of two: four registers of the widest vectors, so that sums in the nearest cache need not wait for each other.
inline int LanesOf(DType t) { return ByteWidth(IsComplex(t) ? RealPart(t) : t) == 8 ? 32 : 64; }

// 0 where the order makes no difference (integers and booleans); 1: one after the other; else the number of lanes.
// Symbolic sizes count as long ones.
int LanesOfReduction(const Type& operand, const Ints& dims);

// The sum or product of a floating-point tensor over `dims`, in that order.
Tensor SumInOrder(const Tensor& x, const Type& result, const Ints& dims);
Tensor ProductInOrder(const Tensor& x, const Type& result, const Ints& dims);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_REDUCTION_ORDER_H_
