#include "python/native/run.h"

#include <Python.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "backends/cpu/ops/gemm.h"
#include "base/environment.h"
#include "base/fork_safe_mutex.h"
#include "driver/executable.h"
#include "ir/analysis/cost.h"
#include "ir/specialize.h"
#include "lowering/lower.h"
#include "python/native/eager.h"
#include "python/native/effects.h"
#include "python/native/errors.h"
#include "python/native/nans.h"
#include "python/native/placed.h"
#include "python/native/plans.h"
#include "tracer/context.h"
#include "tracer/trace.h"

namespace weft::python {
namespace {

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
      if (&a == &e.operands[0] && e.prim->traffic == Traffic::kTaken) continue;  // x[i] of a large x, for every i anew
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

CompileRequest Interpreted(const FnRef& fn) {
  CompileRequest request{fn};
  request.backend = "interpreter";
  request.passes = {};
  request.use_cache = false;  // there is nothing to be kept
  return request;
}

// What a callback outside of any trace is.
bool IsOneCallback(const Fn& fn) {
  if (fn.eqns().size() != 1) return false;
  return fn.eqns()[0].prim->is_callback();
}

// Elements of the largest arrays whose code serves other sizes, too. Code for larger ones knows the sizes: it may be
// faster, and compiling takes no longer than some calls do.
constexpr int64_t kForAllSizes = 1 << 16;
// Smaller sizes stay numbers: those of coordinates, channels, classes. A loop over 3 elements is code of its own.
constexpr int64_t kLeastSymbol = 16;

// Whether compiled code has the same bits whether it knows the sizes or not: these operations are Weft's own, and the
// order of sums is the operation's meaning. Products go to a library where they are large.
bool IsSameForAllSizes(const Eqn& e) {
  switch (e.prim->family) {
    case Family::kElementwise:
    case Family::kReduction:
    case Family::kCumulative:
    case Family::kShape:
    case Family::kIndexing:
    case Family::kSorting: return true;
    default: return false;
  }
}

bool MayServeAllSizes(const Fn& fn) {
  const auto is_small = [&](const Atom& a) {
    const std::optional<int64_t> n = fn.TypeOf(a).size().TryValue();
    return n && *n <= kForAllSizes;
  };
  return std::all_of(fn.eqns().begin(), fn.eqns().end(), [&](const Eqn& e) {
    if (!IsSameForAllSizes(e) || !std::all_of(e.operands.begin(), e.operands.end(), is_small)) return false;
    for (uint32_t r = 0; r < e.num_results; ++r) {
      if (!is_small(Atom(e.result(static_cast<int>(r))))) return false;
    }
    return true;
  });
}

// Whether an operation moves elements about in rows of a short known size (x[:, None, :] - y of 3 coordinates, two of
// them side by side). Which loop goes into vectors follows from the sizes then, and code that does not know them takes
// three times as long.
bool MovesInShortRows(const Fn& fn) {
  return std::any_of(fn.eqns().begin(), fn.eqns().end(), [&](const Eqn& e) {
    if (e.prim->family != Family::kShape || e.operands.empty() || fn.TypeOf(e.operands[0]).rank() == 0) return false;
    const Dims& dims = fn.TypeOf(e.result()).dims;
    return !dims.empty() && dims.back().is_static() && dims.back().value() > 1;
  });
}

// One that serves arrays of other sizes, too, so that each new shape of `x % y` or `where(c, x, y)` is not compiled
// anew. The passes see the sizes, as those of jit do, and so make the same program.
std::optional<CompileRequest> ForAllSizes(const CompileRequest& request) {
  if (request.backend != CompileRequest().backend || !MayServeAllSizes(*request.program)) return std::nullopt;
  const FnRef optimized = request.Optimized();
  if (!MayServeAllSizes(*optimized)) return std::nullopt;
  FnRef general = Generalize(optimized, kLeastSymbol);
  if (general == nullptr || MovesInShortRows(*general)) return std::nullopt;
  CompileRequest other = request.For(std::move(general));
  other.passes = {};
  return other;
}

// Eager programs too small to be worth compiling are interpreted. An operation without compiled code is an error;
// nothing falls back in silence.
// `optimized`: a plan has been followed already.
std::shared_ptr<Program> EagerProgram(const FnRef& fn, bool optimized) {
  CompileRequest request = RequestFor(fn);
  if (optimized) request.passes = {};
  if (fn->eqns().size() <= 64 && InterpretedWork(*fn) <= kInterpretedWork) {
    request = Interpreted(fn);
    if (!InterpretAlways()) request.backend = "operations";
    // One operation is what it is; what a transform made of a function follows the rules that compiled code does.
    if (fn->eqns().size() > 1 && !optimized) request.passes = {"drop-rules", "simplify", "widen"};
  } else if (optimized) {
    return Compile(request);
  } else if (std::optional<CompileRequest> general = ForAllSizes(request)) {
    request = *std::move(general);
  }
  return Compile(request);
}

std::thread& WarmUpThread() {
  static auto& thread = *new std::thread();
  return thread;
}

}  // namespace

bool InterpretAlways() {
  static const bool on = EnvironmentNumber("WEFT_INTERPRET", 0, 0, 1) == 1;
  return on;
}

CompileRequest RequestFor(const FnRef& fn, const HowToCompile& how) {
  CompileRequest request{fn};
  if (InterpretAlways() && how.backend == request.backend) return Interpreted(fn);
  request.backend = how.backend;
  request.donated = how.donated;
  request.target.fused_products = !how.same_bits;
  if (how.optimized) request.passes = {};
  // Whether a value is computed in a wider type depends on sizes, which meshes change.
  if (how.same_bits) std::erase(request.passes, "widen");
  return request;
}

std::shared_ptr<Program> ProgramOf(const FnRef& fn, const HowToCompile& how) {
  Unlocked unlocked;  // compiling takes long
  return Compile(RequestFor(fn, how));
}

void CheckMayRun(const std::string& what) {
  if (On(Setting::kNoExecution))
    throw Error(ErrorKind::kRuntime, "'" + what + "' would run here, and no_execution is set");
}

Tensors RunProgram(Program& program, Tensors args) {
  // To let go of the lock and take it again costs a tenth of a microsecond if another thread waits for it, half of that
  // otherwise.
  if (program.is_short()) return program.RunOwned(std::move(args));
  const Unlocked unlocked;
  return program.RunOwned(std::move(args));
}

void InstallRunner() {
  SetRunner([](const FnRef& fn, const Tensors& args) {
    if (On(Setting::kNoExecution)) CheckMayRun(fn->eqns().size() == 1 ? fn->eqns()[0].prim->name : fn->name());
    // Programs that are run at once, operation by operation, tend to be tiny and many.
    using Programs = std::unordered_map<FnRef, std::shared_ptr<Program>, FnHash, FnEqual>;
    // One operation is what it is under every plan.
    const bool is_one = fn->eqns().size() == 1 && fn->eqns()[0].regions.empty();
    const uint64_t plan = is_one ? 0 : PlanAround();
    static auto& by_plan = *new std::unordered_map<uint64_t, Programs>();
    static auto& mutex = *new ForkSafeMutex;
    std::shared_ptr<Program> program;
    {
      std::lock_guard<ForkSafeMutex> lock(mutex);
      const Programs& programs = by_plan[plan];
      if (auto it = programs.find(fn); it != programs.end()) program = it->second;
    }
    if (!program && IsOneCallback(*fn)) {
      // Its number is that of this call alone: the program will not be seen again.
      program = Compile(Interpreted(fn));
    } else if (!program) {
      const FnRef optimized = plan != 0 ? ByPlan(nullptr, fn) : nullptr;
      {
        Unlocked unlocked;
        program = EagerProgram(optimized != nullptr ? optimized : fn, optimized != nullptr);
      }
      Programs gone;  // without the lock: their end may run anything
      std::lock_guard<ForkSafeMutex> lock(mutex);
      Programs& programs = by_plan[plan];
      if (programs.size() > 20000) programs.swap(gone);
      programs.emplace(fn, program);
    }
    Tensors results = RunProgram(*program, args);
    if (LooksForNans()) CheckNans(fn, args, results);
    return results;
  });
  InstallOperations();
  InstallShardsRunner();
  InstallEffects();
  pthread_atfork(nullptr, nullptr, [] { g_unlocked = 0; });  // a child has none of its parent's other threads
  if (InterpretAlways()) return;
  try {
    WarmUpThread() = std::thread([] {
      try {
        WarmUpCompiler();
      } catch (const std::exception&) {
        // The first compilation fails in the same way, and is heard.
      }
    });
  } catch (const std::exception&) {
    // No thread, or no memory for one: the first compilation loads the compiler, and takes longer.
  }
}

void LeaveRunningThreads() {
  // A thread that multiplies for the first time would register the destruction of what it uses after this.
  PyThreadState* const first = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  if (first != nullptr && PyThreadState_Next(first) != nullptr) {
    try {
      cpu::PrepareProducts();
    } catch (const std::exception&) {
      // Without memory for it no thread multiplies for the first time.
    }
  }
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
  static auto& mutex = *new ForkSafeMutex;
  std::lock_guard<ForkSafeMutex> lock(mutex);
  if (WarmUpThread().joinable()) WarmUpThread().join();
}

}  // namespace weft::python
