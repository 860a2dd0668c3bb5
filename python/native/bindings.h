// Handles and conversions for the files that bind C++ to Python with pybind11, which serves what is not called often
// enough to need the raw C API.
#ifndef WEFT_PYTHON_NATIVE_BINDINGS_H_
#define WEFT_PYTHON_NATIVE_BINDINGS_H_

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "python/native/array.h"
#include "python/native/convert.h"
#include "tracer/axes.h"
#include "tracer/trace.h"

namespace weft::python {

namespace py = pybind11;

// Python holds functions through this: they are immutable and shared.
struct FnHandle {
  explicit FnHandle(FnRef function, Loc place = {})
      : fn(std::move(function)), held(fn ? HostFunctions(*fn) : HostFunctions()), loc(place) {}
  FnRef fn;
  HostFunctions held;  // what it names
  Loc loc;  // of the equation whose region it is: where equations inside without a place of their own come from
};

inline py::object Take(PyObject* owned) {
  if (owned == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(owned);
}
// A value from an array, a number or a NumPy array. Raises TypeError naming `what`.
inline Value ValueFrom(py::handle object, const char* what) {
  OperandHolder holder;
  if (!holder.Set(object.ptr())) {
    throw TypeError(what, ": expected an array or a number, got ", Repr(object.ptr()), " of type '",
                    Py_TYPE(object.ptr())->tp_name, "'");
  }
  return holder.operand().ToValue();
}
Values ValuesFrom(py::handle sequence, const char* what);
// Operands of one call; the holders must outlive them.
struct OperandList {
  explicit OperandList(py::handle sequence, const char* what);
  std::vector<OperandHolder> holders;
  std::vector<Operand> operands;
};

// Attributes as a dict of plain Python values; sizes and types as text.
py::dict AttrsObject(const Attrs& attrs);  // ir_bindings.cc

void BindIr(py::module_& m);            // ir_bindings.cc: Fn, equations, text, Dim
void BindTransforms(py::module_& m);    // transform_bindings.cc
void BindTracing(py::module_& m);       // trace_bindings.cc: trace, apply, regions
void BindRules(py::module_& m);         // rule_bindings.cc: custom_jvp, custom_vjp, custom_vmap
void BindNumpy(py::module_& m);         // numpy_bindings.cc: operations with axes and shapes
void BindRandom(py::module_& m);        // random_bindings.cc
void BindMesh(py::module_& m);          // mesh_bindings.cc: named axes, collectives
void BindBackends(py::module_& m);      // backend_bindings.cc: stages, bundles, emulation
void BindPartition(py::module_& m);     // partition_bindings.cc: programs cut over meshes
void BindShards(py::module_& m);        // shard_bindings.cc: arrays on devices
void BindTrees(py::module_& m);         // tree_bindings.cc: dictionaries in trees
void BindGarbage(py::module_& m);       // garbage_bindings.cc: what Python's garbage collector is not to look at
void BindRewrites(py::module_& m);      // rewrite_bindings.cc: rules and passes that Python brings
void BindProcessGroup(py::module_& m);  // process_group_bindings.cc: several processes

// [(name, size, whether it is of a mesh), ...]
std::vector<NamedAxis> NamedAxesFrom(py::handle list);

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_BINDINGS_H_
