#include "python/errors.h"

#include <unistd.h>

#include <new>
#include <string>

#include "python/effects.h"
#include "tracer/trace.h"

namespace weft::python {
namespace {

PyObject* g_tracer_error = nullptr;
PyObject* g_derivative_error = nullptr;
PyObject* g_parse_error = nullptr;
PyObject* g_internal_error = nullptr;

PyObject* ExceptionOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kType: return PyExc_TypeError;
    case ErrorKind::kValue: return PyExc_ValueError;
    case ErrorKind::kIndex: return PyExc_IndexError;
    case ErrorKind::kTracer: return g_tracer_error;
    case ErrorKind::kDerivative: return g_derivative_error;
    case ErrorKind::kUnsupported: return PyExc_NotImplementedError;
    case ErrorKind::kParse: return g_parse_error;
    case ErrorKind::kRuntime: return PyExc_RuntimeError;
    case ErrorKind::kInternal: return g_internal_error;
  }
  return PyExc_RuntimeError;
}

bool AddException(PyObject* module, const char* name, const char* doc, PyObject* base, PyObject** slot) {
  const std::string full = std::string("weft.") + name;
  *slot = PyErr_NewExceptionWithDoc(full.c_str(), doc, base, nullptr);
  return *slot != nullptr && PyModule_AddObjectRef(module, name, *slot) == 0;
}

}  // namespace

bool AddExceptions(PyObject* module) {
  return AddException(module, "TracerError",
                      "A traced value was used where its number is needed, or after its trace had ended.",
                      PyExc_TypeError, &g_tracer_error) &&
         AddException(module, "DerivativeError", "An operation has no derivative.", PyExc_TypeError,
                      &g_derivative_error) &&
         AddException(module, "ParseError", "Malformed IR text or bytes.", PyExc_ValueError, &g_parse_error) &&
         AddException(module, "InternalError", "A broken invariant of Weft itself: please report it.",
                      PyExc_RuntimeError, &g_internal_error);
}

void SetPythonException(const Error& error) {
  std::string message = error.message();
  if (error.kind() == ErrorKind::kRuntime && RestoreInterrupt(message)) return;
  // Where the user's program was, unless the traceback of the exception shows the same line anyway.
  const Loc here = CurrentLoc();
  if (const Loc loc = error.loc() ? error.loc() : here; loc) message += "\n" + loc.Stack();
  PyErr_SetString(ExceptionOf(error.kind()), message.c_str());
}

void SetPythonException() {
  try {
    throw;
  } catch (const PythonError&) {
    if (!PyErr_Occurred()) PyErr_SetString(g_internal_error, "an error without an exception");
  } catch (const Error& error) {
    SetPythonException(error);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(g_internal_error, error.what());
  }
}

void StayForever() {
  for (;;) pause();
}

}  // namespace weft::python
