// Jitted programs over meshes: what is compiled of one, and how the part of a process runs.
#ifndef WEFT_PYTHON_NATIVE_JIT_MESH_H_
#define WEFT_PYTHON_NATIVE_JIT_MESH_H_

#include "python/native/jit_cache.h"

namespace weft::python {

// What is compiled: the traced program, or for a mesh that of its devices. Sets how the results lie.
FnRef FnToCompile(Entry& entry, const Arguments& a, bool same_bits);

// Runs what this process has of a program for several. `keep`: arguments can be looked at again.
Tensors RunPart(Entry& entry, const Arguments& a, const Tensors& whole, bool same_bits, bool keep);

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_JIT_MESH_H_
