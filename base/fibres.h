// Fibres (stackful coroutines): several functions on one thread in turns, each on a stack of its own. They are the
// virtual devices of a mesh.
//
//   RunFibres(8, [&](int device) { ...; WaitFibre(); ... }, [&](const std::vector<bool>& waiting) { ... });
//
// A function runs until it ends or waits; as long as none waits, one fibre runs one after the other. When all have
// ended or wait, `meet` is called with those that wait: it lets some go on (by returning which), or none, and then they
// have to end: they are resumed once more with WaitFibre() false. Nothing here is preempted and nothing needs a lock.
// Knows no IR.
#ifndef WEFT_BASE_FIBRES_H_
#define WEFT_BASE_FIBRES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace weft {

// Runs body(0) ... body(count - 1) to their ends. `meet` gets which fibres wait and gives which may go on; if none may,
// WaitFibre gives false from then on, in all of them. The first exception of a body is thrown from here, after all have
// ended in that way.
void RunFibres(int count, const std::function<void(int)>& body,
               const std::function<std::vector<bool>(const std::vector<bool>& waiting)>& meet);

// Inside a fibre: lets the others run. False when there is nothing to wait for any more: another one has failed.
bool WaitFibre();

// The lowest address of the stack that runs now, of a fibre or of the thread.
intptr_t StackEnd();

// A thread_local variable of which every body has its own, that begins as a copy of the one where RunFibres is called.
// `exchange` swaps it with a body's. Register before any fibre runs.
struct FibreState {
  std::shared_ptr<void> (*copy)();
  void (*assign)(void* own);  // makes it a copy of the thread's
  void (*exchange)(void* own);
};
void RegisterFibreState(FibreState state);
template <class T, T& (*kHere)()>
void RegisterFibreState() {
  RegisterFibreState({[]() -> std::shared_ptr<void> { return std::make_shared<T>(kHere()); },
                      [](void* own) { *static_cast<T*>(own) = kHere(); },
                      [](void* own) { std::swap(kHere(), *static_cast<T*>(own)); }});
}

}  // namespace weft
#endif  // WEFT_BASE_FIBRES_H_
