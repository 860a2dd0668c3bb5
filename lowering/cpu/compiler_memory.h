// Memory that runs out inside LLVM, which was built without exceptions: its own answer is to end the process, and MLIR
// uses what it did not get.
//
// Here it is a std::bad_alloc, thrown through LLVM's frames. Those are passed over as they are: what they held is lost,
// and what they worked on is in no state to be used or destroyed. So whoever compiles keeps such things in a Held, and
// gives up the state that outlives one compilation (ForgetCompilerState).
#ifndef WEFT_LOWERING_CPU_COMPILER_MEMORY_H_
#define WEFT_LOWERING_CPU_COMPILER_MEMORY_H_

#include <cstddef>
#include <exception>
#include <memory>
#include <utility>

namespace weft {

// While one lives, the thread compiles: what malloc does not give it is a std::bad_alloc. (Of LLVM that is linked into
// the same file alone, as it is into the Python module; see lowering/cpu/checked_malloc.cc.)
class CompilingThread {
 public:
  CompilingThread() { ++depth_; }
  ~CompilingThread() { --depth_; }
  CompilingThread(const CompilingThread&) = delete;
  static bool Is() { return depth_ > 0; }

 private:
  static thread_local int depth_;
};

// Destroyed with its scope, unless an exception leaves that: then it is left as it is.
template <class T>
class Held {
 public:
  explicit Held(std::unique_ptr<T> thing) : thing_(std::move(thing)) {}
  ~Held() {
    if (std::uncaught_exceptions() > exceptions_) (void)thing_.release();
  }
  Held(const Held&) = delete;
  T& operator*() const { return *thing_; }
  T* operator->() const { return thing_.get(); }
  std::unique_ptr<T> Give() { return std::move(thing_); }

 private:
  std::unique_ptr<T> thing_;
  const int exceptions_ = std::uncaught_exceptions();
};

}  // namespace weft
#endif  // WEFT_LOWERING_CPU_COMPILER_MEMORY_H_
