// What a jitted function has traced and compiled, by signature: the most recently used ones.
#ifndef WEFT_PYTHON_NATIVE_JIT_CACHE_H_
#define WEFT_PYTHON_NATIVE_JIT_CACHE_H_

#include <Python.h>

#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/types/span.h"
#include "python/native/array.h"
#include "python/native/call_arguments.h"
#include "python/native/flight.h"
#include "python/native/jit_mesh.h"
#include "python/native/run.h"
#include "tracer/trace.h"

namespace weft::python {

// One version of a jitted function.
struct Entry {
  Signature signature;
  Traced traced;
  std::shared_ptr<Program> program;   // null until it is run
  std::shared_ptr<Flight> compiling;  // who makes it
  Tensors constants;                  // once compiled
  Ref tree;                           // of the results
  Ref names;                          // of the leaves of the arguments
  // Donated leaves of the arguments: what their arrays say afterwards; by parameter, empty when none is donated.
  std::vector<std::shared_ptr<const Deletion>> deletions;
  std::vector<bool> donated;
  std::vector<bool> useless;  // of those that the caller donates: no result has its size, so that they are kept
  enum class Out { kLeaf, kTuple, kTree } out = Out::kTree;
  bool cacheable = true;
  int64_t calls = 0;
  bool placed = false;  // somebody said where an argument lies, or the program names a mesh
  OnDevices on;         // once compiled, if `placed`
};

// All methods with the interpreter lock held. Comparing signatures may run Python code, and so other threads, which may
// change the cache meanwhile.
class EntryCache {
 public:
  // Null: there is none.
  std::shared_ptr<Entry> Find(const Signature& signature);
  void Insert(std::shared_ptr<Entry> entry);
  void Clear();
  // The most recent one first.
  std::vector<std::shared_ptr<Entry>> Entries() const { return {order_.begin(), order_.end()}; }
  size_t size() const { return order_.size(); }
  // Of the entries that nobody uses now.
  int Traverse(visitproc visit, void* arg) const;

  // Who traces the function for this signature; null: nobody.
  std::shared_ptr<Flight> FindFlight(const Signature& signature) const;
  // This thread does, in its scope.
  class Tracing {
   public:
    Tracing(EntryCache& cache, const Signature& signature);
    ~Tracing();
    Tracing(const Tracing&) = delete;

   private:
    EntryCache& cache_;
    std::shared_ptr<std::pair<Signature, Flight>> pending_;
  };

 private:
  using Order = std::list<std::shared_ptr<Entry>>;
  static constexpr size_t kMost = 4096;

  Order order_;
  std::unordered_map<size_t, std::vector<Order::iterator>> by_hash_;
  std::shared_ptr<Entry> last_;
  std::vector<std::shared_ptr<std::pair<Signature, Flight>>> pending_;
};

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_JIT_CACHE_H_
