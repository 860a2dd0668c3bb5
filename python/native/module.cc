// weft._weft: the native half of the package.
#include <optional>

#include "driver/executable.h"
#include "lowering/program/explicit_form.h"
#include "python/native/bindings.h"
#include "python/native/effects.h"
#include "python/native/frames.h"
#include "python/native/function.h"
#include "python/native/jit.h"
#include "python/native/jit_mesh.h"
#include "python/native/run.h"
#include "python/native/static_keys.h"
#include "tracer/context.h"
#include "tracer/promote.h"

namespace weft::python {

Values ValuesFrom(py::handle sequence, const char* what) {
  Values values;
  for (py::handle item : sequence) values.push_back(ValueFrom(item, what));
  return values;
}

OperandList::OperandList(py::handle sequence, const char* what) : holders(py::len(sequence)) {
  size_t i = 0;
  for (py::handle item : sequence) {
    if (!holders[i].Set(item.ptr())) {
      throw TypeError(what, ": array ", i, " is ", Repr(item.ptr()), " of type '", Py_TYPE(item.ptr())->tp_name,
                      "'; expected an array or a number");
    }
    operands.push_back(holders[i++].operand());
  }
}

namespace {

void TranslateErrors(std::exception_ptr p) {
  try {
    if (p) std::rethrow_exception(p);
  } catch (const PythonError&) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "an error without an exception");
  } catch (const Error& error) {
    SetPythonException(error);
  } catch (const std::bad_alloc&) {
    SetPythonException();
  } catch (const CarriedException&) {
    SetPythonException();
  }
}

py::object ArrayFromBytes(const std::string& dtype, const std::vector<int64_t>& shape, const py::bytes& bytes,
                          bool weak) {
  const auto t = ParseDType(dtype);
  if (!t) throw ValueError("a pickled array of unknown dtype '", dtype, "'");
  Tensor tensor(*t, shape);
  char* data;
  Py_ssize_t length;
  CheckStatus(PyBytes_AsStringAndSize(bytes.ptr(), &data, &length));
  if (length != tensor.bytes())
    throw ValueError("a pickled array of ", length, " bytes; ", tensor.type(), " has ", tensor.bytes());
  std::memcpy(tensor.raw(), data, length);
  return Take(WrapValue(Value(std::move(tensor), weak)));
}

}  // namespace
}  // namespace weft::python

PYBIND11_MODULE(_weft, m) {
  using namespace weft;
  using namespace weft::python;
  m.doc() = "Native half of the weft package. Use the functions of weft, weft.numpy, weft.lax and weft.nn instead.";
  if (!AddExceptions(m.ptr()) || !AddArrayTypes(m.ptr()) || !AddFunctionTypes(m.ptr()) || !AddJitType(m.ptr()) ||
      !InitConvert()) {
    throw py::error_already_set();
  }
  py::register_local_exception_translator(TranslateErrors);
  SetLocProvider(UserLoc);
  InstallRunner();
  RegisterExplicitMemory();

  m.def("set_package_folder", [](const std::string& folder) {
    SetPackageFolder(folder);
    SetOwnCode(&InPackage);
  });
  m.def("set_hooks",
        [](py::object flatten, py::object trace_jit, py::object refuse, py::object stateful, py::object uses_state) {
          g_flatten_hook = flatten.release().ptr();
          g_trace_jit_hook = trace_jit.release().ptr();
          g_refuse_hook = refuse.release().ptr();
          g_stateful_hook = stateful.release().ptr();
          g_stateful_error = uses_state.release().ptr();
        });
  m.def("set_compiled_hook", [](const py::object& hook) {
    Py_XDECREF(g_compiled_hook);
    g_compiled_hook = hook.is_none() ? nullptr : hook.inc_ref().ptr();
  });
  // What the messages of exceptions of Python's own classes become.
  m.def("set_wording", [](py::object wording) { SetWording(wording.ptr()); });
  m.def("set_watchers",
        [](py::object transfer, py::object rank) { SetWatchers(transfer.release().ptr(), rank.release().ptr()); });
  m.def("set_partition_hook", [](py::object partition) { g_partition_hook = partition.release().ptr(); });
  // The mesh of a `with mesh:` of this thread, or None; the caller keeps it alive.
  m.def("set_mesh_around", [](py::handle mesh, bool chosen) { SetMeshAround(mesh.ptr(), chosen); });
  // Settings, by their number in tracer/context.h.
  m.def("setting", [](int which) { return On(static_cast<Setting>(which)); });
  m.def("set_for_process", [](int which, bool on) { SetForProcess(static_cast<Setting>(which), on); });
  // For this thread, until the scope of that number is closed.
  m.def("open_setting", [](int which, bool on) { return OpenScope(static_cast<Setting>(which), on); });
  m.def("close_setting", [](int which, uint64_t number) { return CloseScope(static_cast<Setting>(which), number); });
  m.def("x64", &X64);
  m.def("disable_jit", [] { return On(Setting::kDisableJit); });
  // What a traced function means besides its arguments, as a tuple of numbers and the mesh around the code or None.
  m.def("context_key", [] {
    std::vector<uint64_t> key;
    Context().AppendKey(key);
    auto* mesh = static_cast<PyObject*>(Context().mesh);
    return py::make_tuple(py::tuple(py::cast(key)), py::reinterpret_borrow<py::object>(mesh ? mesh : Py_None));
  });
  m.def("same_static", [](py::handle a, py::handle b) { return SameStatic(a.ptr(), b.ptr()); });
  m.def("static_hash", [](py::handle o) { return StaticHash(o.ptr()); });
  m.def("set_static_kinds",
        [](py::handle tree_type, py::handle fields) { SetStaticKinds(tree_type.ptr(), fields.ptr()); });
  m.def("programs_compiled", &ProgramsCompiled);
  m.def("codes_generated", &CodesGenerated);
  m.def("set_patience_with_tracing", &SetPatienceWithTracing);
  m.def("being_lowered", BeingLowered);
  m.def("finish_warm_up", &FinishWarmUp);
  m.def("end_effects", [] {
    EndEffects();
    LeaveRunningThreads();
  });
  m.def("open_named_scope", OpenNamedScope);
  m.def("close_named_scope", CloseNamedScope);
  m.def("user_stack", [] { return UserLoc().Stack(); });
  m.def("naming_the_call", &NamingTheCall);
  m.def("_array_from_bytes", &ArrayFromBytes);
  BindIr(m);
  BindTracing(m);
  BindRules(m);
  BindTransforms(m);
  BindNumpy(m);
  BindRandom(m);
  BindMesh(m);
  BindBackends(m);
  BindPartition(m);
  BindShards(m);
  BindTrees(m);
  BindGarbage(m);
  BindRewrites(m);
  BindProcessGroup(m);
}
