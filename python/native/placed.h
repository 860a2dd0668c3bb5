// Where arrays lie: weft.Sharding objects and the native places that they stand for.
#ifndef WEFT_PYTHON_NATIVE_PLACED_H_
#define WEFT_PYTHON_NATIVE_PLACED_H_

#include <Python.h>

#include "ir/shards.h"
#include "tracer/value.h"

namespace weft::python {

// The place of a sharding: one for all that are equal, which stays.
const Placement& PlacementOf(PyObject* sharding);
// Where all devices of a place have all of an array: itself, if it is one device.
const Placement& Everywhere(const Placement& place);
// The sharding that an array has been given, or null. Borrowed.
inline PyObject* ShardingOf(const Value& value) {
  return value.placement() == nullptr ? nullptr : static_cast<PyObject*>(value.placement()->label);
}
// The same array in another place: nothing is copied where the same blocks are there already. Blocks that differ are
// copied from those that they meet.
Value Place(const Value& value, const Placement& placement);
// An array that lies as `layout` says, from its stack.
Value FromStack(const std::shared_ptr<const ShardLayout>& layout, Tensor stack, bool weak);
// Whether the same devices hold the same blocks of two arrays that lie on devices.
bool LieAlike(const Value& a, const Value& b);
// Whether two concrete arrays have memory in common.
bool ShareMemory(const Value& a, const Value& b);
// Whether other processes hold parts of it, which this one has not.
inline bool SpansProcesses(const Value& value) { return !value.complete(); }
// The array with each block copied.
Value CopyOfConcrete(const Value& value);

// Makes tracer/ run functions where their arguments lie.
void InstallShardsRunner();

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_PLACED_H_
