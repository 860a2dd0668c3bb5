// Collectives on values, as jax.lax has them: axes by name, shapes with or without a dimension of their own for the
// devices (`tiled`). Axis names are one or a list, major first; sizes come from tracer/axes.h.
//
//   Value total = ReduceOverDevices("psum", x, {"i"});
//
// Raise kName for an axis that nothing binds, kType and kValue for shapes and arguments that do not fit.
#ifndef WEFT_TRACER_COLLECTIVE_OPS_H_
#define WEFT_TRACER_COLLECTIVE_OPS_H_

#include <string>
#include <utility>
#include <vector>

#include "tracer/axes.h"
#include "tracer/ops.h"

namespace weft {

// psum, pmax, pmin. A bool is summed as an integer.
Value ReduceOverDevices(const std::string& prim, const Operand& x, const Strings& axes);
// Blocks along `dim`: a new dimension, or with `tiled` the blocks one after the other.
Value AllGather(const Operand& x, const Strings& axes, int64_t dim, bool tiled);
Value PsumScatter(const Operand& x, const Strings& axes, int64_t dim, bool tiled);
Value AllToAll(const Operand& x, const Strings& axes, int64_t split, int64_t concat, bool tiled);
Value Ppermute(const Operand& x, const Strings& axes, const std::vector<std::pair<int64_t, int64_t>>& perm);
// x as a value that varies over those of `axes` that belong to a mesh.
Value PvaryOver(const Operand& x, const Strings& axes);
// The place among the devices along the axes, in row-major order: i32[].
Value AxisIndex(const Strings& axes);
Dim AxisSize(const Strings& axes, const std::string& what);

}  // namespace weft
#endif  // WEFT_TRACER_COLLECTIVE_OPS_H_
