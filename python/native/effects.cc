#include "python/native/effects.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fork_safe_mutex.h"
#include "base/interrupt.h"
#include "base/tape.h"
#include "ir/eval/effects.h"
#include "ir/host_functions.h"
#include "python/native/array.h"
#include "python/native/convert.h"
#include "python/native/errors.h"
#include "tracer/trace.h"

namespace weft::python {
namespace {

// Objects that were let go by threads without Python's lock.
struct Abandoned {
  ForkSafeMutex mutex;
  std::vector<PyObject*> objects;
};
Abandoned& TheAbandoned() {
  static auto& abandoned = *new Abandoned;
  return abandoned;
}

// With Python's lock held.
void ReleaseAbandoned() {
  std::vector<PyObject*> objects;
  {
    std::lock_guard lock(TheAbandoned().mutex);
    objects.swap(TheAbandoned().objects);
  }
  for (PyObject* object : objects) Py_DECREF(object);
}

// Threads inside Locked; and whether the interpreter is about to end, so that others than its own stay out.
std::atomic<int> g_inside{0};
std::atomic<bool> g_ending{false};
const std::thread::id g_main_thread = std::this_thread::get_id();

class Locked {
 public:
  Locked() {
    g_inside.fetch_add(1);
    if (g_ending.load() && std::this_thread::get_id() != g_main_thread) {
      g_inside.fetch_sub(1);
      StayForever();
    }
    state_ = RunningPython([] { return PyGILState_Ensure(); });
  }
  ~Locked() {
    PyGILState_Release(state_);
    g_inside.fetch_sub(1);
  }
  Locked(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};

void PrintThroughPython(const std::string& text) {
  Locked locked;
  // PySys_WriteStdout cuts long texts.
  PyObject* out = PySys_GetObject("stdout");
  const std::string line = text + "\n";
  if (out == nullptr) return PyErr_Clear();
  // A program from elsewhere may print what is no UTF-8.
  Ref shown(PyUnicode_DecodeUTF8(line.data(), static_cast<Py_ssize_t>(line.size()), "backslashreplace"));
  if (shown && RunningPython([&] { return PyFile_WriteObject(shown.get(), out, Py_PRINT_RAW); }) >= 0) return;
  if (!PyErr_ExceptionMatches(PyExc_Exception)) throw CarriedException::Take();  // KeyboardInterrupt, SystemExit
  PyErr_Clear();
}

// Of its own memory, that of tapes included: Python may keep it longer than the call lasts.
Tensor OwnCopy(const Tensor& t) {
  if (t.dtype() != DType::kTape) return t.Copy();
  struct Owner {
    TapeRegion region;
    std::vector<uint64_t> tapes;
  };
  auto owner = std::make_shared<Owner>();
  owner->tapes.resize(static_cast<size_t>(t.size()));
  CopyTapes(owner->region, t.data<uint64_t>(), t.size(), owner->tapes.data());
  return Tensor(DType::kTape, t.shape(), owner, owner->tapes.data());
}

// Whether a number or array of one dtype may stand where another is declared: a Python number where its kind fits, and
// arrays of 64 bits, which NumPy's functions give by themselves, where the same kind of 32 bits is.
bool MayStandFor(const Operand& got, DType declared) {
  const DType dtype = got.dtype().dtype;
  if (dtype == declared) return true;
  if (got.is_scalar()) {
    switch (got.scalar().kind) {
      case Scalar::Kind::kBool: return false;
      case Scalar::Kind::kInt:
      case Scalar::Kind::kUint:
      case Scalar::Kind::kLarge: return IsInteger(declared) || IsInexact(declared);
      case Scalar::Kind::kFloat: return IsInexact(declared);
      case Scalar::Kind::kComplex: return IsComplex(declared);
    }
  }
  return (dtype == DType::kF64 && declared == DType::kF32) || (dtype == DType::kC128 && declared == DType::kC64) ||
         (dtype == DType::kI64 && declared == DType::kI32) || (dtype == DType::kU64 && declared == DType::kU32);
}

// Whether every integer of 64 bits is one of the declared 32.
bool Fits(const Tensor& t, DType declared) {
  for (int64_t i = 0; i < t.size(); ++i) {
    if (t.dtype() == DType::kI64 && declared == DType::kI32) {
      const int64_t v = t.at<int64_t>(i);
      if (v != static_cast<int32_t>(v)) return false;
    } else if (t.dtype() == DType::kU64 && declared == DType::kU32) {
      const uint64_t v = t.at<uint64_t>(i);
      if (v != static_cast<uint32_t>(v)) return false;
    }
  }
  return true;
}

// What a callback returned as the tensor that was declared.
Tensor ResultOf(const Operand& got, PyObject* object, size_t i, const Type& declared) {
  auto refuse = [&](const char* why) {
    const std::string what = got.is_scalar() ? "the Python number " + Repr(object) : got.value().type().ToString();
    return UserError(ErrorKind::kRuntime, {}, "result ", i, " of a callback is ", what, why, "; expected ", declared);
  };
  if (!(got.dims() == declared.dims) || !MayStandFor(got, declared.dtype)) throw refuse("");
  if (got.is_scalar() && IsInteger(declared.dtype)) {
    try {
      return NumberTensor(declared.dtype, got.scalar());
    } catch (const Error&) {
      throw refuse(", which does not fit");
    }
  }
  if (!got.is_scalar() && !Fits(Demand(got.value(), "the result of a callback"), declared.dtype))
    throw refuse(" with numbers that do not fit");
  return Demand(Astype(got, declared.dtype), "the result of a callback");
}

Tensors CallPython(int64_t callback, const Tensors& args, const Types& results) {
  Locked locked;
  const std::shared_ptr<void> held = FindHostFunction(callback);
  if (held == nullptr) {
    throw UserError(ErrorKind::kRuntime, {}, "callback ", callback,
                    " belongs to another process, or is gone: programs with callbacks cannot be moved");
  }
  NoTrace outside;
  try {
    Ref list(Check(PyList_New(static_cast<Py_ssize_t>(args.size()))));
    for (size_t i = 0; i < args.size(); ++i)
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), WrapValue(Value(OwnCopy(args[i]))));
    Ref out(Check(RunningPython([&] { return PyObject_CallOneArg(static_cast<PyObject*>(held.get()), list.get()); })));
    if (!PyList_Check(out.get()) || PyList_GET_SIZE(out.get()) != static_cast<Py_ssize_t>(results.size())) {
      throw UserError(ErrorKind::kRuntime, {}, "a callback returned ", Repr(out.get()), "; expected ", results.size(),
                      " arrays");
    }
    Tensors tensors;
    for (size_t i = 0; i < results.size(); ++i) {
      OperandHolder holder;
      PyObject* item = PyList_GET_ITEM(out.get(), static_cast<Py_ssize_t>(i));
      if (!holder.Set(item))
        throw UserError(ErrorKind::kRuntime, {}, "a callback returned ", Repr(item), "; expected an array");
      tensors.push_back(OwnCopy(ResultOf(holder.operand(), item, i, results[i])));
    }
    return tensors;
  } catch (const PythonError&) {
    throw CarriedException::Take();
  }
}

// Handlers of signals run on the first thread of the process, which is the only one after a fork.
void RunSignalHandlers() {
  if (gettid() != getpid()) return;
  const Locked locked;
  NoTrace outside;
  if (RunningPython([] { return PyErr_CheckSignals(); }) < 0) throw CarriedException::Take();
}

}  // namespace

void LetGo(PyObject* object) {
  if (!Py_IsInitialized()) return;  // the process ends
  if (PyGILState_Check()) {
    Py_DECREF(object);
    return;
  }
  std::lock_guard lock(TheAbandoned().mutex);
  TheAbandoned().objects.push_back(object);
}

std::shared_ptr<void> HeldFunction(PyObject* function) {
  ReleaseAbandoned();
  return std::shared_ptr<void>(Py_NewRef(function), [](void* object) { LetGo(static_cast<PyObject*>(object)); });
}

InsidePython::InsidePython() {
  g_inside.fetch_add(1);
  if (g_ending.load() && std::this_thread::get_id() != g_main_thread) {
    g_inside.fetch_sub(1);
    PyEval_SaveThread();
    StayForever();
  }
}
InsidePython::~InsidePython() { g_inside.fetch_sub(1); }

void EndEffects() {
  g_ending = true;
  PyThreadState* state = PyEval_SaveThread();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (g_inside.load() > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  PyEval_RestoreThread(state);
}

void InstallEffects() {
  EffectHandlers handlers = GetEffectHandlers();
  handlers.print = PrintThroughPython;
  handlers.callback = CallPython;
  SetEffectHandlers(handlers);
  SetInterruptHandler(RunSignalHandlers);
}

}  // namespace weft::python
