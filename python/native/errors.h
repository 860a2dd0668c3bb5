// Translates C++ errors into Python exceptions, in one place.
//
//   PyObject* f(...) { return Guarded([&] { ... return result; }); }   // nullptr and a Python error on failure
#ifndef WEFT_PYTHON_NATIVE_ERRORS_H_
#define WEFT_PYTHON_NATIVE_ERRORS_H_

#include <Python.h>
#include <cxxabi.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "ir/error.h"

namespace weft {
class IntegerOverflow;  // tracer/site.h
}

namespace weft::python {

// A Python exception is set already: unwinds C++ frames to the next Guarded.
class PythonError {};

// A Python exception on its way through code that runs without the interpreter lock: compiled programs, fibres, other
// threads. SetPythonException raises that object again.
//
// No std::exception, since those are turned into text on the way.
class CarriedException {
 public:
  // Takes the exception that is set, with the lock held.
  static CarriedException Take();
  // Sets it, with the lock held.
  void Set() const;

 private:
  struct Parts;
  explicit CarriedException(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;  // may be let go without the lock
};

// The same of an argument.
[[noreturn]] void RaiseOverflowOf(const std::string& argument, const IntegerOverflow& error);

// Makes TracerError, DerivativeError, ParseError and InternalError and adds them to the module.
bool AddExceptions(PyObject* module);

// "normal: broadcast: a result of negative size": what an inner operation refuses is said of the function that the user
// called, unless the message names it.
std::string NamingTheCall(const std::string& message);
// Sets the Python exception for the C++ exception that is being handled. Call inside a catch block.
void SetPythonException();
// An Error as a Python exception that is set.
void SetPythonException(const Error& error);
// An exception of this type is set. Its message ends with the user's stack: `loc`, or else where the program is now.
void SetPythonException(PyObject* type, std::string message, Loc loc = {});

// From now on messages of exceptions of Python's own classes are what this function makes of them; null: as they are.
void SetWording(PyObject* wording);

template <class F>
auto Guarded(F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (...) {
    SetPythonException();
    if constexpr (std::is_pointer_v<decltype(f())>)
      return nullptr;
    else
      return static_cast<decltype(f())>(-1);
  }
}

// The result of a C API call, or PythonError.
inline PyObject* Check(PyObject* object) {
  if (object == nullptr) throw PythonError();
  return object;
}
inline void CheckStatus(int status) {
  if (status < 0) throw PythonError();
}

[[noreturn]] void StayForever();

// f(), for an f that runs Python code or asks for its lock. An interpreter that has ended takes threads which ask for
// its lock down with pthread_exit, and that would unwind our frames, compiled code and destructors, without the lock.
// Such a thread stays here instead: the process is about to end.
// (A forced unwinding has no object that the reference could be bound to, which UndefinedBehaviorSanitizer minds.)
template <class F>
__attribute__((no_sanitize("null"))) auto RunningPython(F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (::abi::__forced_unwind&) {
    StayForever();
  }
}

// An owned reference.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : p_(owned) {}
  static Ref Borrow(PyObject* p) {
    Py_XINCREF(p);
    return Ref(p);
  }
  Ref(const Ref& other) : p_(other.p_) { Py_XINCREF(p_); }
  Ref(Ref&& other) noexcept : p_(other.p_) { other.p_ = nullptr; }
  Ref& operator=(Ref other) noexcept {
    std::swap(p_, other.p_);
    return *this;
  }
  ~Ref() { Py_XDECREF(p_); }
  PyObject* get() const { return p_; }
  PyObject* release() {
    PyObject* p = p_;
    p_ = nullptr;
    return p;
  }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  PyObject* p_ = nullptr;
};

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_ERRORS_H_
