// The devices of a mesh in the reference interpreter: each is a fibre that runs the body as it stands, and they meet at
// collectives.
#ifndef WEFT_IR_PRIMS_DEVICES_H_
#define WEFT_IR_PRIMS_DEVICES_H_

#include <functional>

#include "ir/mesh.h"
#include "ir/prim.h"

namespace weft {

// Calls body(device) for every device of the mesh; collectives inside meet. An error of one device ends all; devices
// that do not meet (some wait at a collective that others never reach) raise kRuntime, which says who waits where.
void RunDevices(const Mesh& mesh, const std::function<void(int64_t device)>& body);

// Raises kValue unless the attribute `devices`, where there is one, has a number for each device of the mesh.
void CheckMeshDevices(const Sig& sig, const Mesh& mesh);

// Once, before any device runs.
void RegisterDeviceState();

// One device's part in a collective: its results, once all members of its group are there. Raises kName outside of a
// mesh with such axes.
Tensors MeetAt(const EvalContext& c, const Tensors& in);

// The results of a collective for all members of a group, in row-major order of its axes, of their operands.
Tensors CollectiveMeaning(const Prim& prim, const Attrs& attrs, const Tensors& in);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_DEVICES_H_
