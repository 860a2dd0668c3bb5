#include "python/native/errors.h"

#include <unistd.h>

#include <cctype>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "base/out_of_memory.h"
#include "ir/prims/control/custom_host.h"
#include "python/native/effects.h"
#include "python/native/frames.h"
#include "tracer/context.h"
#include "tracer/promote.h"
#include "tracer/site.h"
#include "tracer/trace.h"
#include "transforms/shard/explicit_types.h"

namespace weft::python {
namespace {

PyObject* g_tracer_error = nullptr;
PyObject* g_concretization_error = nullptr;
PyObject* g_bool_error = nullptr;
PyObject* g_integer_error = nullptr;
PyObject* g_array_error = nullptr;
PyObject* g_mask_error = nullptr;
PyObject* g_unexpected_error = nullptr;
PyObject* g_promotion_error = nullptr;
PyObject* g_argument_error = nullptr;
PyObject* g_sharding_error = nullptr;
PyObject* g_not_linear_error = nullptr;
PyObject* g_axis_error = nullptr;
PyObject* g_derivative_error = nullptr;
PyObject* g_captured_error = nullptr;
PyObject* g_memory_error = nullptr;
PyObject* g_parse_error = nullptr;
PyObject* g_internal_error = nullptr;
PyObject* g_wording = nullptr;

PyObject* ExceptionOf(ErrorKind kind) {
  const bool as_jax = On(Setting::kJaxSemantics);
  switch (kind) {
    case ErrorKind::kType: return as_jax ? g_argument_error : PyExc_TypeError;
    case ErrorKind::kValue: return as_jax ? g_argument_error : PyExc_ValueError;
    case ErrorKind::kIndex: return as_jax ? g_axis_error : PyExc_IndexError;
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
constexpr const char* kConcretizationErrorDoc = R"(A TracerError: a number that is not known while a function is traced.

Example:
    >>> try:
    ...     weft.jit(lambda x: float(x))(1.0)
    ... except weft.errors.ConcretizationTypeError:
    ...     print("x has no number yet")
    x has no number yet
)";
constexpr const char* kBoolErrorDoc = R"(A ConcretizationTypeError: `if`, `while`, `and`, `not` of a traced value.

Example:
    >>> try:
    ...     weft.jit(lambda x: x if x > 0 else -x)(1.0)
    ... except weft.errors.TracerBoolConversionError:
    ...     print("use weft.cond")
    use weft.cond
)";
constexpr const char* kIntegerErrorDoc = R"(A TracerError: a traced value where Python takes an integer.

Example:
    >>> try:
    ...     weft.jit(lambda i: [10, 20][i])(0)
    ... except weft.errors.TracerIntegerConversionError:
    ...     print("make the list an array")
    make the list an array
)";
constexpr const char* kArrayErrorDoc = R"(A TracerError: a traced value where NumPy takes an array.

Example:
    >>> import numpy as np
    >>> try:
    ...     weft.jit(np.sin)(wnp.ones(2))
    ... except weft.errors.TracerArrayConversionError:
    ...     print("use weft.numpy")
    use weft.numpy
)";
constexpr const char* kArgumentErrorDoc =
    R"(An argument that does not fit, where JAX's meaning is asked for: a TypeError and a
ValueError, one of which it is in JAX. Otherwise it is one of both.

Example:
    >>> with weft.jax_semantics():
    ...     try:
    ...         wnp.ones(2) + wnp.ones(3)
    ...     except weft.errors.ArgumentError as error:
    ...         print(isinstance(error, ValueError), isinstance(error, TypeError))
    True True
)";
constexpr const char* kShardingErrorDoc =
    R"(Operands that do not lie on a mesh as an operation needs them, or leave open how its result lies,
along axes of type Explicit. An ArgumentError: a ValueError.

Example:
    >>> issubclass(weft.errors.ShardingTypeError, ValueError)
    True
)";
constexpr const char* kAxisErrorDoc =
    R"(An axis or index out of range, where JAX's meaning is asked for: an IndexError and a
ValueError, as NumPy's error of this name. Otherwise it is an IndexError.

Example:
    >>> with weft.jax_semantics():
    ...     try:
    ...         wnp.ones(2).sum(3)
    ...     except weft.errors.AxisError as error:
    ...         print(isinstance(error, ValueError), isinstance(error, IndexError))
    True True
)";
constexpr const char* kMaskErrorDoc = R"(A ConcretizationTypeError and an IndexError: a traced mask as an index.

Example:
    >>> try:
    ...     weft.jit(lambda x: x[x > 0])(wnp.ones(2))
    ... except weft.errors.NonConcreteBooleanIndexError:
    ...     print("use wnp.where")
    use wnp.where
)";
constexpr const char* kUnexpectedErrorDoc = R"(A TracerError: a traced value was used after its trace had ended.

Example:
    >>> kept = []
    >>> _ = weft.jit(lambda x: (kept.append(x), x)[1])(1.0)
    >>> try:
    ...     kept[0] + 1
    ... except weft.errors.UnexpectedTracerError:
    ...     print("return it instead")
    return it instead
)";
constexpr const char* kPromotionErrorDoc = R"(Dtypes meet, and numpy_dtype_promotion is "strict". A ValueError.

Example:
    >>> try:
    ...     with weft.numpy_dtype_promotion("strict"):
    ...         wnp.ones(2) + wnp.arange(2)
    ... except weft.errors.TypePromotionError:
    ...     print("convert one of them")
    convert one of them
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
constexpr const char* kMemoryErrorDoc =
    R"(There is no memory for an array, or for what a program needs. A MemoryError, and a RuntimeError as in JAX.

The message says how many bytes, what for, and the user's line.

Example:
    >>> try:
    ...     wnp.zeros(10**15)
    ... except MemoryError as error:
    ...     print(isinstance(error, weft.errors.OutOfMemoryError), isinstance(error, RuntimeError))
    True True
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

// The kinds of TracerError, by what its message begins with: what Python asked for, or what happened to the value.
PyObject* TracerErrorOf(const std::string& message) {
  static const std::pair<const char*, PyObject*> kinds[] = {
      {"bool()", g_bool_error},
      {"an index", g_integer_error},
      {"numpy.asarray()", g_array_error},
      {"__dlpack__()", g_array_error},
      {"a boolean ", g_mask_error},
      {"a traced value escaped", g_unexpected_error},
      {"a traced value was used in another thread", g_unexpected_error},
      {"a value of '", g_unexpected_error},
  };
  if (message.find(" of a traced value that escaped: ") != std::string::npos) return g_unexpected_error;
  for (const auto& [start, type] : kinds) {
    if (message.starts_with(start)) return type;
  }
  return message.find(" of a traced value: ") != std::string::npos ? g_concretization_error : g_tracer_error;
}

bool AddException(PyObject* module, const char* name, const char* doc, PyObject* base, PyObject** slot) {
  const std::string full = std::string("weft.") + name;
  *slot = PyErr_NewExceptionWithDoc(full.c_str(), doc, base, nullptr);
  return *slot != nullptr && PyModule_AddObjectRef(module, name, *slot) == 0;
}

// A kind of `base` under the same name that is an `also`, too, as in JAX.
bool AddKind(PyObject* base, PyObject* also, PyObject** slot) {
  const Ref bases(PyTuple_Pack(2, base, also));
  const Ref doc(PyObject_GetAttrString(base, "__doc__"));
  const char* text = doc ? PyUnicode_AsUTF8(doc.get()) : nullptr;
  const std::string full = std::string("weft.") + reinterpret_cast<PyTypeObject*>(base)->tp_name;
  if (bases && text != nullptr) *slot = PyErr_NewExceptionWithDoc(full.c_str(), text, bases.get(), nullptr);
  return *slot != nullptr;
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
  if (!AddException(module, "TracerError", kTracerErrorDoc, PyExc_TypeError, &g_tracer_error)) return false;
  if (!AddException(module, "ConcretizationTypeError", kConcretizationErrorDoc, g_tracer_error,
                    &g_concretization_error))
    return false;
  const Ref of_masks(PyTuple_Pack(2, g_concretization_error, PyExc_IndexError));
  const Ref of_arguments(PyTuple_Pack(2, PyExc_TypeError, PyExc_ValueError));
  const Ref of_axes(PyTuple_Pack(2, PyExc_IndexError, PyExc_ValueError));
  const Ref of_memory(PyTuple_Pack(2, PyExc_MemoryError, PyExc_RuntimeError));
  return of_masks && of_arguments && of_axes && of_memory &&
         AddException(module, "ArgumentError", kArgumentErrorDoc, of_arguments.get(), &g_argument_error) &&
         AddException(module, "ShardingTypeError", kShardingErrorDoc, g_argument_error, &g_sharding_error) &&
         AddKind(g_sharding_error, PyExc_NotImplementedError, &g_not_linear_error) &&
         AddException(module, "AxisError", kAxisErrorDoc, of_axes.get(), &g_axis_error) &&
         AddException(module, "TracerBoolConversionError", kBoolErrorDoc, g_concretization_error, &g_bool_error) &&
         AddException(module, "TracerIntegerConversionError", kIntegerErrorDoc, g_tracer_error, &g_integer_error) &&
         AddException(module, "TracerArrayConversionError", kArrayErrorDoc, g_tracer_error, &g_array_error) &&
         AddException(module, "NonConcreteBooleanIndexError", kMaskErrorDoc, of_masks.get(), &g_mask_error) &&
         AddException(module, "UnexpectedTracerError", kUnexpectedErrorDoc, g_tracer_error, &g_unexpected_error) &&
         AddException(module, "TypePromotionError", kPromotionErrorDoc, PyExc_ValueError, &g_promotion_error) &&
         AddException(module, "DerivativeError", kDerivativeErrorDoc, PyExc_TypeError, &g_derivative_error) &&
         AddKind(g_derivative_error, g_unexpected_error, &g_captured_error) &&
         AddException(module, "OutOfMemoryError", kMemoryErrorDoc, of_memory.get(), &g_memory_error) &&
         AddException(module, "ParseError", kParseErrorDoc, PyExc_ValueError, &g_parse_error) &&
         AddException(module, "InternalError", kInternalErrorDoc, PyExc_RuntimeError, &g_internal_error);
}

void RaiseOverflowOf(const std::string& argument, const IntegerOverflow& error) {
  throw IntegerOverflow("argument ", argument, ": ", error.message());
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
  PyObject* type = error.kind() == ErrorKind::kTracer                           ? TracerErrorOf(error.message())
                   : dynamic_cast<const IntegerOverflow*>(&error) != nullptr    ? PyExc_OverflowError
                   : dynamic_cast<const NoPromotion*>(&error) != nullptr        ? g_promotion_error
                   : dynamic_cast<const NotLinearError*>(&error) != nullptr     ? g_not_linear_error
                   : dynamic_cast<const CapturedValueError*>(&error) != nullptr ? g_captured_error
                   : dynamic_cast<const ShardingTypeError*>(&error) != nullptr  ? g_sharding_error
                                                                                : ExceptionOf(error.kind());
  SetPythonException(type, of_arguments && !error.loc() ? NamingTheCall(error.message()) : error.message(),
                     error.loc());
}

void SetPythonException(PyObject* type, std::string message, Loc loc) {
  if (!loc) loc = CurrentLoc();
  if (loc) message += "\n" + loc.Stack();
  // Names of files need not be UTF-8.
  Ref text(PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "backslashreplace"));
  if (text && g_wording != nullptr && !PyType_HasFeature(reinterpret_cast<PyTypeObject*>(type), Py_TPFLAGS_HEAPTYPE)) {
    Ref said(PyObject_CallOneArg(g_wording, text.get()));
    if (said) {
      text = std::move(said);
    } else {
      PyErr_Clear();
    }
  }
  if (text) PyErr_SetObject(type, text.get());
}

void SetWording(PyObject* wording) {
  Py_XINCREF(wording);
  Py_XSETREF(g_wording, wording);
}

namespace {

// With as much of the message as there is memory for.
void SetMemoryError(const std::bad_alloc& error) {
  try {
    SetPythonException(g_memory_error, WhatFor(error, "the system gives no more"));
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
