// What the structural primitives share: checked axis lists and walking over indices.
#ifndef WEFT_IR_PRIMS_SHAPE_H_
#define WEFT_IR_PRIMS_SHAPE_H_

#include <functional>
#include <string>

#include "ir/prim.h"

namespace weft {

// `dims` strictly increasing and within [0, rank); raises kIndex naming the primitive and the attribute.
void CheckDims(const Sig& sig, const char* attr, const Ints& dims, int rank);
int64_t CheckDim(const Sig& sig, const char* attr, int rank);
// Raises kValue where a dimension of `type` has elements whose positions are no numbers of `positions`.
void CheckPositions(const Sig& sig, const Type& type, int dim, DType positions);
// Raises kValue unless the list has one entry per dimension.
const Ints& CheckLength(const Sig& sig, const char* attr, int rank);

// Calls visit(index) for every index of `shape`, in row-major order.
void ForEachIndex(const Shape& shape, const std::function<void(const Shape& index)>& visit);
int64_t Offset(const Shape& index, const std::vector<int64_t>& strides);
// Copies element `from` of x to element `to` of y (same dtype).
void CopyElement(const Tensor& x, int64_t from, Tensor& y, int64_t to);

// dims + 1 for each: where the dimensions are once a mapped one stands in front.
Ints Shifted(const Ints& dims);
// `value` in front of the list.
Ints Prepend(int64_t value, const Ints& list);
Sample SampleOf(Types operands, Attrs attrs = {});
// Those, and all that are only stored (IsStored): what is sampled of a primitive whose code has a kind of its own for
// those given.
std::vector<DType> SampledDTypes(std::vector<DType> dtypes);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_SHAPE_H_
