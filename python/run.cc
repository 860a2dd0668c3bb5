#include "python/run.h"

#include <Python.h>
#include <pthread.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "backends/cpu/gemm.h"
#include "driver/executable.h"
#include "ir/cost.h"
#include "ir/environment.h"
#include "ir/eval.h"
#include "lowering/lower.h"
#include "python/effects.h"
#include "python/errors.h"
#include "python/nans.h"
#include "tracer/context.h"
#include "tracer/trace.h"

namespace weft::python {
namespace {

// The reference interpreter: for eager programs too small to be worth compiling. An operation without compiled code is
// an error; nothing falls back in silence.
class Interpreted : public Program {
 public:
  explicit Interpreted(FnRef fn) : fn_(std::move(fn)) {}
  Tensors Run(Tensors args) override { return Eval(*fn_, args); }
  std::vector<std::pair<std::string, double>> Facts() const override { return {{"interpreted", 1}}; }

 private:
  FnRef fn_;
};

class Compiled : public Program {
 public:
  explicit Compiled(std::shared_ptr<Executable> executable) : executable_(std::move(executable)) {}
  Tensors Run(Tensors args) override { return executable_->RunOwned(std::move(args)); }
  std::vector<bool> UsesDonated() const override {
    std::vector<bool> uses;
    for (uint8_t d : executable_->artifact().donated) uses.push_back(d == 2);
    return uses;
  }
  std::vector<std::pair<std::string, double>> Facts() const override {
    const auto& c = executable_->counters();
    return {{"compile_milliseconds", executable_->compile_milliseconds()},
            {"kernels", static_cast<double>(c.kernels)},
            {"kernel_calls", static_cast<double>(c.kernel_calls)},
            {"library_calls", static_cast<double>(c.library_calls)},
            {"bytes_moved", static_cast<double>(c.bytes_moved)},
            {"bytes_copied", static_cast<double>(c.bytes_copied)},
            {"donated", static_cast<double>(c.donated)},
            {"arena_bytes", static_cast<double>(executable_->arena_bytes())}};
  }

 private:
  std::shared_ptr<Executable> executable_;
};

bool InterpretAlways() {
  static const bool on = EnvironmentNumber("WEFT_INTERPRET", 0, 0) == 1;
  return on;
}

// Elements that the interpreter would visit; infinite where that is not known beforehand.
double InterpretedWork(const Fn& fn) {
  double work = 0;
  auto size = [&](const Atom& a) {
    const Type t = fn.TypeOf(a);
    return t.is_static() ? static_cast<double>(t.size().value()) : INFINITY;
  };
  for (const Eqn& e : fn.eqns()) {
    if (!e.regions.empty() || e.prim->family == Family::kLinalg) return INFINITY;
    double elements = 1, product = 1;
    for (const Atom& a : e.operands) {
      if (&a == &e.operands[0] && ReadsOnlyItsResult(*e.prim)) continue;  // x[i] of a large x, for every i anew
      elements += size(a), product *= size(a);
    }
    for (uint32_t r = 0; r < e.num_results; ++r)
      elements += size(Atom(e.result(static_cast<int>(r)))), product *= size(Atom(e.result(static_cast<int>(r))));
    // A product of an m x k and a k x n matrix visits m k n pairs.
    work += e.prim->family == Family::kContraction ? std::sqrt(product) : elements;
  }
  return work;
}
constexpr double kInterpretedWork = 8192;  // about 0.1 ms, against some ms for compiling

// What a callback outside of any trace is.
bool IsOneCallback(const Fn& fn) {
  if (fn.eqns().size() != 1) return false;
  const std::string& name = fn.eqns()[0].prim->name;
  return name == "pure_callback" || name == "io_callback";
}

std::shared_ptr<Program> MakeProgram(const FnRef& fn, bool small_too, const std::vector<bool>& donated,
                                     bool same_bits = false) {
  if (InterpretAlways() || (!small_too && fn->eqns().size() <= 64 && InterpretedWork(*fn) <= kInterpretedWork)) {
    return std::make_shared<Interpreted>(fn);
  }
  CompileOptions options = CompileOptions::Optimizing();
  options.donated = donated;
  options.target.fused_products = !same_bits;
  return std::make_shared<Compiled>(Compile(fn, options));
}

std::thread& WarmUpThread() {
  static auto& thread = *new std::thread();
  return thread;
}

}  // namespace

std::shared_ptr<Program> ProgramOf(const FnRef& fn, const std::vector<bool>& donated, bool same_bits) {
  Unlocked unlocked;  // compiling takes long
  return MakeProgram(fn, true, donated, same_bits);
}

Tensors RunProgram(Program& program, Tensors args) {
  Unlocked unlocked;
  return program.Run(std::move(args));
}

std::string StageText(const FnRef& fn, const std::string& stage, bool same_bits) {
  Unlocked unlocked;
  CompileOptions options = CompileOptions::Optimizing();
  options.target.fused_products = !same_bits;
  return weft::StageText(fn, stage, options);
}

void InstallRunner() {
  SetRunner([](const FnRef& fn, const Tensors& args) {
    // Programs that are run at once, operation by operation, tend to be tiny and many.
    static auto& programs = *new std::unordered_map<FnRef, std::shared_ptr<Program>, FnHash, FnEqual>();
    static std::mutex mutex;
    std::shared_ptr<Program> program;
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (auto it = programs.find(fn); it != programs.end()) program = it->second;
    }
    if (!program && IsOneCallback(*fn)) {
      // Its number is that of this call alone: the program will not be seen again.
      program = std::make_shared<Interpreted>(fn);
    } else if (!program) {
      {
        Unlocked unlocked;
        program = MakeProgram(fn, false, {});
      }
      std::lock_guard<std::mutex> lock(mutex);
      if (programs.size() > 20000) programs.clear();
      programs.emplace(fn, program);
    }
    Tensors results = RunProgram(*program, args);
    if (On(Setting::kDebugNans)) CheckNans(fn, args, results);
    return results;
  });
  InstallEffects();
  pthread_atfork(nullptr, nullptr, [] { g_unlocked = 0; });  // a child has none of its parent's other threads
  if (InterpretAlways()) return;
  LeaveSignalsToTheProgram();
  WarmUpThread() = std::thread([] {
    try {
      WarmUpCompiler();
    } catch (const std::exception&) {
      // The first compilation fails in the same way, and is heard.
    }
  });
}

void LeaveRunningThreads() {
  // A thread that multiplies for the first time would register the destruction of what it uses after this.
  PyThreadState* const first = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  if (first != nullptr && PyThreadState_Next(first) != nullptr) cpu::PrepareProducts();
  // Registered last, so it comes before all destructors. Python has ended by then, and its files are written.
  on_exit(
      [](int status, void*) {
        if (g_unlocked.load() <= 0) return;
        std::fflush(nullptr);
        _exit(status);
      },
      nullptr);
}

void FinishWarmUp() {
  Unlocked unlocked;
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  if (WarmUpThread().joinable()) WarmUpThread().join();
}

}  // namespace weft::python
