#include "python/effects.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "ir/effects.h"
#include "ir/tape.h"
#include "python/array.h"
#include "python/convert.h"
#include "tracer/trace.h"

namespace weft::python {
namespace {

// Only touched with Python's lock held.
std::vector<PyObject*>& Callbacks() {
  static auto& callbacks = *new std::vector<PyObject*>();
  return callbacks;
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
  if (out == nullptr || RunningPython([&] { return PyFile_WriteString(line.c_str(), out); }) < 0) PyErr_Clear();
}

// What ends a program rather than reports an error (KeyboardInterrupt, SystemExit) passes through compiled code as an
// error whose text names it, and is raised again where that error reaches Python.
struct Interrupt {
  std::string text;
  Ref type, value, traceback;
};
std::vector<Interrupt>& Interrupts() {  // only touched with Python's lock held
  static auto& interrupts = *new std::vector<Interrupt>();
  return interrupts;
}

Error KeepInterrupt() {
  static int64_t count = 0;
  const std::string text = "a callback was interrupted (" + std::to_string(++count) + ")";
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  Interrupts().push_back({text, Ref(type), Ref(value), Ref(traceback)});
  return UserError(ErrorKind::kRuntime, {}, text);
}

// The text of the Python exception that is set, which is cleared.
std::string TakeException() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  std::string text = type ? reinterpret_cast<PyTypeObject*>(type)->tp_name : "an error";
  Ref message(value ? PyObject_Str(value) : nullptr);
  if (message) text += ": " + Text(message.get());
  PyErr_Clear();
  Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(traceback);
  return text;
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

Tensors CallPython(int64_t callback, const Tensors& args, const Types& results) {
  Locked locked;
  if (callback < 0 || callback >= static_cast<int64_t>(Callbacks().size())) {
    throw UserError(ErrorKind::kRuntime, {}, "callback ", callback,
                    " belongs to another process: programs with callbacks cannot be moved");
  }
  NoTrace outside;
  try {
    Ref list(Check(PyList_New(static_cast<Py_ssize_t>(args.size()))));
    for (size_t i = 0; i < args.size(); ++i)
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), WrapValue(Value(OwnCopy(args[i]))));
    Ref out(Check(RunningPython([&] { return PyObject_CallOneArg(Callbacks()[callback], list.get()); })));
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
      const Tensor t = Demand(Astype(holder.operand(), results[i].dtype), "the result of a callback");
      if (!(Dims(t.shape().begin(), t.shape().end()) == results[i].dims)) {
        throw UserError(ErrorKind::kRuntime, {}, "result ", i, " of a callback is ", t.type(), "; expected ",
                        results[i]);
      }
      tensors.push_back(OwnCopy(t));
    }
    return tensors;
  } catch (const PythonError&) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) throw KeepInterrupt();
    throw UserError(ErrorKind::kRuntime, {}, "a callback raised ", TakeException());
  }
}

}  // namespace

int64_t RegisterCallback(PyObject* function) {
  Callbacks().push_back(Py_NewRef(function));
  return static_cast<int64_t>(Callbacks().size()) - 1;
}

bool RestoreInterrupt(const std::string& message) {
  auto& interrupts = Interrupts();
  for (size_t i = 0; i < interrupts.size(); ++i) {
    if (message.find(interrupts[i].text) == std::string::npos) continue;
    Interrupt found = std::move(interrupts[i]);
    interrupts.erase(interrupts.begin() + static_cast<std::ptrdiff_t>(i));
    PyErr_Restore(found.type.release(), found.value.release(), found.traceback.release());
    return true;
  }
  return false;
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
}

}  // namespace weft::python
