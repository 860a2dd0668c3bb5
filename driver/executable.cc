#include "driver/executable.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/fork_safe_mutex.h"
#include "base/out_of_memory.h"
#include "driver/compile_gate.h"
#include "driver/program_key.h"
#include "driver/single_flight.h"
#include "ir/error.h"
#include "ir/prim.h"
#include "lowering/lower.h"
#include "transforms/opt/simplify.h"

namespace weft {
namespace {

// The most recently used programs. One lock: a lookup takes a microsecond, and compilation happens outside of it; so
// does the end of a program, which may let go of the host's objects and so run anything.
class Cache {
  using Entries = std::list<std::pair<ProgramKey, std::shared_ptr<Executable>>>;

 public:
  std::shared_ptr<Executable> Find(const ProgramKey& key) {
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    const auto it = map_.find(key);
    if (it == map_.end()) return nullptr;
    order_.splice(order_.begin(), order_, it->second);
    return it->second->second;
  }
  // Of two threads that compiled the same, the first wins.
  std::shared_ptr<Executable> Insert(const ProgramKey& key, std::shared_ptr<Executable> e) {
    Entries gone;
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    const auto it = map_.find(key);
    if (it != map_.end()) return it->second->second;
    order_.emplace_front(key, e);
    map_[key] = order_.begin();
    while (order_.size() > kLimit) {
      map_.erase(order_.back().first);
      gone.splice(gone.end(), order_, std::prev(order_.end()));
    }
    return e;
  }
  int64_t Size() {
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    return static_cast<int64_t>(order_.size());
  }
  void Clear() {
    Entries gone;
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    map_.clear();
    gone.swap(order_);
  }

 private:
  static constexpr size_t kLimit = 4096;
  ForkSafeMutex mutex_;
  Entries order_;
  std::unordered_map<ProgramKey, Entries::iterator, ProgramKeyHash> map_;
};

std::atomic<int64_t> g_compiled{0};

Cache& TheCache() {
  static Cache* cache = new Cache;
  return *cache;
}

// "out of memory: 'f': ..."
OutOfMemory InProgram(const std::bad_alloc& error, const Fn& fn, const std::string& otherwise) {
  const std::string what = WhatFor(error, otherwise);
  return OutOfMemory("out of memory: '" + fn.name() + "': " + what.substr(what.find(": ") + 2));
}

// See is_short().
bool IsShort(const Fn& fn) {
  constexpr int64_t kElements = 4096;
  int64_t elements = 0;
  return std::all_of(fn.eqns().begin(), fn.eqns().end(), [&](const Eqn& e) {
    if (!e.prim->is_elementwise() || !e.regions.empty()) return false;
    const std::optional<int64_t> n = fn.TypeOf(e.result()).size().TryValue();
    return n && *n <= kElements && (elements += *n) <= kElements;
  });
}

}  // namespace

std::shared_ptr<Executable> Compile(const CompileRequest& request) try {
  const std::shared_ptr<const Backend> backend = FindBackend(request.backend);
  const Compiling compiling;
  const auto make = [&] {
    g_compiled.fetch_add(1);
    const auto start = std::chrono::steady_clock::now();
    auto e = std::make_shared<Executable>();
    e->request_ = request;
    std::shared_ptr<void> beside = backend->Prepare(*request.program);
    e->optimized_ = request.Optimized();
    if (beside == nullptr) beside = backend->Prepare(*e->optimized_);  // passes make products of loops
    e->loaded_ = backend->Load(request, e->optimized_);
    e->is_short_ = IsShort(*e->optimized_);
    e->compile_milliseconds_ =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return e;
  };
  if (!request.use_cache) return make();
  const ProgramKey key{request.program, request.Key()};
  return FindOrMake(key, [&] { return TheCache().Find(key); }, [&] { return TheCache().Insert(key, make()); });
} catch (const std::bad_alloc& error) {
  const Fn& fn = *request.program;
  throw InProgram(error, fn, "the compiler has no room for its " + std::to_string(fn.eqns().size()) + " equations");
}

bool MayOverwrite(const Tensor& t) {
  return t.owner().use_count() == 1 && t.raw() == t.owner().get() && (t.made_here() || HostMemory().Gave(t.owner()));
}

Tensors Executable::RunOwned(Tensors args) const {
  const Fn& program = *request_.program;
  const std::vector<Param>& params = program.params();
  if (args.size() != params.size())
    throw TypeError(program.name(), ": takes ", params.size(), " arguments, got ", args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    const Type& t = params[i].type;
    if (args[i].dtype() != t.dtype || args[i].rank() != t.rank()) {
      throw TypeError(program.name(), ": argument ", i, params[i].name.empty() ? "" : " (" + params[i].name + ")",
                      " is ", args[i].type(), "; expected ", t);
    }
  }
  try {
    return loaded_->Run(std::move(args));
  } catch (const std::bad_alloc& error) {
    throw InProgram(error, program, "it has no room to run in");
  }
}

std::string Executable::Stage(const std::string& stage) const {
  const Compiling compiling;
  return StageText(request_, stage);
}

std::vector<std::pair<std::string, double>> Executable::Facts() const {
  std::vector<std::pair<std::string, double>> facts = {{"compile_milliseconds", compile_milliseconds_}};
  for (auto& fact : loaded_->Facts()) facts.push_back(std::move(fact));
  return facts;
}

const Artifact& Executable::artifact() const {
  const Artifact* a = loaded_->artifact();
  WEFT_CHECK(a != nullptr) << "a program of '" << request_.backend << "' has no code for a CPU";
  return *a;
}

int64_t ProgramsCompiled() { return g_compiled.load(); }
int64_t CompileCacheSize() {
  const Compiling compiling;
  return TheCache().Size();
}
void ClearCompileCache() {
  const Compiling compiling;
  TheCache().Clear();
}

void DropCachedPrograms() { TheCache().Clear(); }

void WarmUpCompiler() {
  const Compiling compiling;
  SimplifyRules();  // a third of them are texts that are parsed once
  WarmUpLowering();
}

}  // namespace weft
