// What the types of traced values say of where they lie, along axes of a mesh of type Explicit: for each open trace one
// layout of every value, which follows from its parameters in program order (transforms/shard/explicit_types.h).
// Nothing is worked out until somebody asks, or the trace ends: then what the user wrote has to fit.
#ifndef WEFT_PYTHON_NATIVE_TYPED_LAYOUTS_H_
#define WEFT_PYTHON_NATIVE_TYPED_LAYOUTS_H_

#include <Python.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "python/native/call_arguments.h"
#include "tracer/trace.h"

namespace weft::python {

struct TypedTrace;

// What the type of a value says; nullopt where no axis of a mesh is Explicit.
struct ValueLayout {
  Ref mesh;
  std::vector<Strings> dims;
  Strings unreduced, reduced;
  bool open = false;  // nobody said anything of it

  // Of a cotangent: what all devices have has a sum in parts, and the other way round.
  ValueLayout OfCotangent() const { return {mesh, dims, reduced, unreduced, open}; }
};

// For as long as a function is traced. Nothing where no axis of a mesh is Explicit here.
class ScopedTypedLayouts {
 public:
  // `leaves`, a list: what the parameters are made of: arrays, numbers, or types with an attribute `sharding`.
  ScopedTypedLayouts(Trace& trace, PyObject* leaves);
  // For a rule of the user's, whose arguments lay on that mesh; null where no type said it.
  struct Rule {
    PyObject* mesh;
  };
  ScopedTypedLayouts(Trace& trace, Rule rule);
  ~ScopedTypedLayouts();
  ScopedTypedLayouts(const ScopedTypedLayouts&) = delete;
  // The parameter is made of that leaf.
  void Parameter(PyObject* leaf, const Value& parameter);
  void Parameter(const std::optional<ValueLayout>& layout, const Value& parameter);
  // Raises ShardingTypeError where something does not fit. `results`: what the function returns.
  void Check(const Values& results);

 private:
  void Begin(Trace& trace);
  void Use(PyObject* mesh_or_sharding);

  std::unique_ptr<TypedTrace> typed_;
};

// From here on axes of the mesh have the names and types that `mesh` gives them, for what is traced innermost. What was
// cut before lies over another mesh: only a constraint takes it.
void EnterTypedMesh(PyObject* mesh);
// The mesh is again what it was. `failed`: on the way out of an error.
void LeaveTypedMesh(bool failed);

std::optional<ValueLayout> TypedLayoutOf(const Value& value);
// The same for rules that run once the trace is over, and with the sums among the devices of a shard_map.
std::optional<ValueLayout> LayoutForRules(const Value& value);
// Axes over which the shard_map around runs, and along which the value is a sum in parts, or reduced.
struct SumsOfDevices {
  Strings unreduced, reduced;
};
SumsOfDevices SumsAmongDevices(const Value& value);
// From now on there are such values.
void UseSumsAmongDevices();
// The mesh of what is traced here: the one around the code, or that of an argument; null where there is none.
Ref MeshOfTrace();
// What a call means besides the types of the arguments.
void AddTypedLayout(const Value& value, Signature& signature);

// (a weft.Mesh, weft.AbstractMesh or weft.NamedSharding) -> (mesh, [(axis, size), ...], Explicit axes, axes over which
// a shard_map runs here), and for a sharding also the axes of each dimension, unreduced ones, reduced ones; None for
// what else there is.
void SetTypedHook(PyObject* hook);

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_TYPED_LAYOUTS_H_
