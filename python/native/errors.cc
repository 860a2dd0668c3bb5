#include "python/native/errors.h"

#include <unistd.h>

#include <cctype>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "base/out_of_memory.h"
#include "python/native/effects.h"
#include "python/native/frames.h"
#include "tracer/site.h"
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
    case ErrorKind::kName: return PyExc_NameError;
    case ErrorKind::kUnsupported: return PyExc_NotImplementedError;
    case ErrorKind::kParse: return g_parse_error;
    case ErrorKind::kRuntime: return PyExc_RuntimeError;
    case ErrorKind::kInternal: return g_internal_error;
  }
  return PyExc_RuntimeError;
}

constexpr const char* kTracerErrorDoc =
    R"(A traced value was used where its number is needed, or after its trace had ended. A TypeError.

The message names the value and the user's line, and says what to do instead.

Example:
    >>> try:
    ...     weft.jit(lambda x: x if x > 0 else -x)(1.0)
    ... except weft.TracerError:
    ...     print("use weft.cond, or autograph=True")
    use weft.cond, or autograph=True
)";
constexpr const char* kDerivativeErrorDoc = R"(An operation has no derivative, or not this one. A TypeError.

The message names the operation and the user's line.

Example:
    >>> try:
    ...     weft.grad(lambda x: wnp.nextafter(x, 2.0))(1.0)
    ... except weft.DerivativeError:
    ...     print("nextafter has no derivative")
    nextafter has no derivative
)";
constexpr const char* kParseErrorDoc = R"(Text or bytes that are no program of the IR. A ValueError.

The message shows the place.

Example:
    >>> try:
    ...     weft.parse_ir("fn f(x: f32[]) -> (f32[]) { return y }")
    ... except weft.ParseError:
    ...     print("there is no y")
    there is no y
)";
constexpr const char* kInternalErrorDoc = R"(A broken invariant of Weft itself: please report it. A RuntimeError.

Example:
    >>> issubclass(weft.InternalError, RuntimeError)
    True
)";

bool AddException(PyObject* module, const char* name, const char* doc, PyObject* base, PyObject** slot) {
  const std::string full = std::string("weft.") + name;
  *slot = PyErr_NewExceptionWithDoc(full.c_str(), doc, base, nullptr);
  return *slot != nullptr && PyModule_AddObjectRef(module, name, *slot) == 0;
}

}  // namespace

struct CarriedException::Parts {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  ~Parts() {
    for (PyObject* part : {type, value, traceback}) {
      if (part != nullptr) LetGo(part);
    }
  }
};

CarriedException CarriedException::Take() {
  auto parts = std::make_shared<Parts>();
  PyErr_Fetch(&parts->type, &parts->value, &parts->traceback);
  PyErr_NormalizeException(&parts->type, &parts->value, &parts->traceback);
  return CarriedException(std::move(parts));
}

void CarriedException::Set() const {
  PyErr_Restore(Py_XNewRef(parts_->type), Py_XNewRef(parts_->value), Py_XNewRef(parts_->traceback));
}

bool AddExceptions(PyObject* module) {
  return AddException(module, "TracerError", kTracerErrorDoc, PyExc_TypeError, &g_tracer_error) &&
         AddException(module, "DerivativeError", kDerivativeErrorDoc, PyExc_TypeError, &g_derivative_error) &&
         AddException(module, "ParseError", kParseErrorDoc, PyExc_ValueError, &g_parse_error) &&
         AddException(module, "InternalError", kInternalErrorDoc, PyExc_RuntimeError, &g_internal_error);
}

std::string NamingTheCall(const std::string& message) {
  const std::string name = CalledFunction();
  if (name.empty()) return message;
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  const std::string start = message.substr(0, message.find(": "));
  for (size_t at = start.find(name); at != std::string::npos; at = start.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !is_part(start[at - 1])) && (end == start.size() || !is_part(start[end]))) return message;
  }
  return name + ": " + message;
}

void SetPythonException(const Error& error) {
  const bool of_arguments = error.kind() == ErrorKind::kType || error.kind() == ErrorKind::kValue ||
                            error.kind() == ErrorKind::kIndex || error.kind() == ErrorKind::kUnsupported;
  // An error with a location is one of an equation, not of the call.
  const bool overflow = dynamic_cast<const IntegerOverflow*>(&error) != nullptr;
  SetPythonException(overflow ? PyExc_OverflowError : ExceptionOf(error.kind()),
                     of_arguments && !error.loc() ? NamingTheCall(error.message()) : error.message(), error.loc());
}

void SetPythonException(PyObject* type, std::string message, Loc loc) {
  if (!loc) loc = CurrentLoc();
  if (loc) message += "\n" + loc.Stack();
  // Names of files need not be UTF-8.
  Ref text(PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "backslashreplace"));
  if (text) PyErr_SetObject(type, text.get());
}

namespace {

// With as much of the message as there is memory for.
void SetMemoryError(const std::bad_alloc& error) {
  try {
    SetPythonException(PyExc_MemoryError, WhatFor(error, "the system gives no more"));
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
}

}  // namespace

void SetPythonException() {
  try {
    throw;
  } catch (const PythonError&) {
    if (!PyErr_Occurred()) PyErr_SetString(g_internal_error, "an error without an exception");
  } catch (const CarriedException& carried) {
    carried.Set();
  } catch (const Error& error) {
    SetPythonException(error);
  } catch (const std::bad_alloc& error) {
    SetMemoryError(error);
  } catch (const std::system_error& error) {
    // The system's answer, to the start of a thread for instance: not a broken invariant of ours.
    SetPythonException(PyExc_OSError, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(g_internal_error, error.what());
  }
}

void StayForever() {
  for (;;) pause();
}

}  // namespace weft::python
