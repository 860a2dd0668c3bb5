// What single devices have of a value, and do: parts of a sum side by side, and what the first device does for all.
#ifndef WEFT_TRANSFORMS_SHARD_DEVICE_PARTS_H_
#define WEFT_TRANSFORMS_SHARD_DEVICE_PARTS_H_

#include <cstdint>
#include <utility>

#include "ir/builder.h"
#include "ir/mesh.h"
#include "transforms/shard/equation_cuts.h"
#include "transforms/shard/reshard.h"

namespace weft {

// Of a sum in parts along `axes` that lies so otherwise, the parts side by side: along a dimension in front.
Layout SideBySide(Layout l, uint32_t axes);
Type SideBySide(const Mesh& mesh, Type type, uint32_t axes);

// A whole value as parts of a sum along those of `axes` that cut it: each device's block among zeros.
std::pair<Layout, Atom> BlocksAmongZeros(Builder& b, const Mesh& mesh, const CutValue& v, uint32_t axes);

// `a` on the first device along the axes, zeros on the others.
Atom OnFirstDevice(Builder& b, Atom a, const Strings& axes);

// The results of the equation for `x`, of types `results`, on the first device along the axes, and zeros on the others:
// values that vary along them.
Atoms DoneByFirstDevice(Builder& b, const Eqn& e, const Atoms& x, const Types& results, const Strings& axes);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_SHARD_DEVICE_PARTS_H_
