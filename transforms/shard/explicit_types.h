// How values lie along the axes of a mesh whose types say it (weft.AxisType.Explicit): what an operation gives follows
// from its operands alone, in program order, and where it does not the program has to say it.
#ifndef WEFT_TRANSFORMS_SHARD_EXPLICIT_TYPES_H_
#define WEFT_TRANSFORMS_SHARD_EXPLICIT_TYPES_H_

#include <cstdint>
#include <vector>

#include "ir/fn.h"
#include "transforms/shard/reshard.h"

namespace weft {

// The layouts of the results along the axes `said`, for parameters that lie as `params`. Raises kValue, with the line,
// where operands lie differently along a dimension, an axis would cut two dimensions of a result, an operation needs a
// whole dimension that is cut, or a sum over a dimension that several operands have cut leaves open how the result
// lies.
std::vector<Layout> ExplicitLayouts(const FnRef& fn, const Mesh& mesh, uint32_t said,
                                    const std::vector<Layout>& params);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_SHARD_EXPLICIT_TYPES_H_
