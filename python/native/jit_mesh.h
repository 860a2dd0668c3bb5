// Jitted programs over meshes: what is compiled of one, and how it runs on blocks of arrays.
#ifndef WEFT_PYTHON_NATIVE_JIT_MESH_H_
#define WEFT_PYTHON_NATIVE_JIT_MESH_H_

#include <Python.h>

#include <memory>
#include <vector>

#include "ir/shards.h"
#include "python/native/run.h"
#include "tracer/trace.h"

namespace weft::python {

// Whether weft.set_mesh put the mesh there that is around the code of this thread: JAX makes programs for its devices
// then.
bool MeshIsChosen();
void SetMeshAround(PyObject* mesh, bool chosen);

// How a program runs on devices.
struct OnDevices {
  FnRef fn;           // what is compiled
  bool cut = false;   // it is for the devices of a mesh
  bool part = false;  // it takes and gives stacks: the blocks that this process holds
  std::vector<std::shared_ptr<const ShardLayout>> params = {};   // of a part: how each argument lies
  std::vector<bool> fits = {};                                   // of a part: whether the argument lies so already
  std::vector<std::shared_ptr<const ShardLayout>> results = {};  // null: on no device in particular
};

// What is compiled of a program whose arguments lie so (null: on no device in particular). `backend` that interprets
// takes whole arrays.
OnDevices PlaceProgram(const Traced& traced, const std::vector<PyObject*>& shardings, bool same_bits,
                       const std::string& backend);

// Whether the program that is placed now is an operation of the user's outside of jit: where its operands leave open
// how its results lie, the user has to say it. (Programs that were traced have been looked at then.)
bool IsOneOperation();

// Argument `i` of a part, lying as it wants it: its own memory where it does already.
Tensor StackFor(const OnDevices& on, size_t i, const Value& v);

// Result `i` as an array that lies as the program left it.
Value PlacedResult(const OnDevices& on, size_t i, Tensor result, bool weak);

// Runs a part on `stacks`. `args`: what they were made of, for looking at it again where a NaN is found; without them
// their memory was given away.
Tensors RunPart(const Traced& traced, const OnDevices& on, Program& program, Tensors stacks, const Values* args,
                bool same_bits);

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_JIT_MESH_H_
