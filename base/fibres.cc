#include "base/fibres.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <mutex>

#include "base/fork_safe_mutex.h"
#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace weft {
namespace {

namespace context = boost::context;

// Memory for stacks is taken page by page as it is used. The interpreter keeps a reserve of 1 MiB.
constexpr size_t kStackBytes = 4 << 20;
constexpr size_t kKeptStacks = 64;

// Stacks are kept: mapping one and touching its first pages takes longer than a small program runs.
class Stacks {
 public:
  context::stack_context Take() {
    {
      std::lock_guard<ForkSafeMutex> lock(mutex_);
      if (!free_.empty()) {
        const context::stack_context stack = free_.back();
        free_.pop_back();
        return stack;
      }
    }
    return context::protected_fixedsize_stack(kStackBytes).allocate();
  }
  void Give(context::stack_context stack) {
#if defined(__SANITIZE_ADDRESS__)
    // A fibre's last frames never return, so their red zones would stay.
    ASAN_UNPOISON_MEMORY_REGION(static_cast<char*>(stack.sp) - stack.size, stack.size);
#endif
    {
      std::lock_guard<ForkSafeMutex> lock(mutex_);
      if (free_.size() < kKeptStacks) {
        free_.push_back(stack);
        return;
      }
    }
    context::protected_fixedsize_stack(kStackBytes).deallocate(stack);
  }

 private:
  ForkSafeMutex mutex_;
  std::vector<context::stack_context> free_;
};
Stacks& TheStacks() {
  static auto& stacks = *new Stacks();
  return stacks;
}

struct KeptStack {
  context::stack_context allocate() const { return TheStacks().Take(); }
  void deallocate(context::stack_context& stack) const { TheStacks().Give(stack); }
};

std::vector<FibreState>& States() {
  static auto& states = *new std::vector<FibreState>();
  return states;
}

struct Fibre {
  context::fiber at;               // where it goes on
  context::fiber* back = nullptr;  // where its scheduler goes on, while it runs
  const char* stack_end = nullptr;
  size_t stack_bytes = 0;
  int body = 0;  // which one it runs
  bool waiting = false, cancelled = false;
  std::vector<std::shared_ptr<void>> states;
#if defined(__SANITIZE_THREAD__)
  void *tsan = nullptr, *tsan_back = nullptr;
#endif
};
thread_local Fibre* t_fibre = nullptr;

// What a sanitizer has to know about a change of stacks: before leaving one, and after arriving on another.
void Arrive([[maybe_unused]] void* fake, [[maybe_unused]] const void** bottom, [[maybe_unused]] size_t* bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, bottom, bytes);
#endif
}
struct Leaving {
  void* fake = nullptr;
#if defined(__SANITIZE_ADDRESS__)
  Leaving(const void* bottom, size_t bytes, bool for_good) {
    __sanitizer_start_switch_fiber(for_good ? nullptr : &fake, bottom, bytes);
  }
#else
  Leaving(const void*, size_t, bool) {}
#endif
  void Back(const void** bottom, size_t* bytes) const { Arrive(fake, bottom, bytes); }
};
thread_local const void* t_scheduler_stack = nullptr;
thread_local size_t t_scheduler_bytes = 0;

void Exchange(Fibre& f) {
  for (size_t i = 0; i < f.states.size(); ++i) States()[i].exchange(f.states[i].get());
}

void Resume(Fibre& f) {
  Fibre* const outer = t_fibre;
  const void* const outer_stack = t_scheduler_stack;
  const size_t outer_bytes = t_scheduler_bytes;
  Exchange(f);
  t_fibre = &f;
  f.waiting = false;
#if defined(__SANITIZE_THREAD__)
  if (f.tsan == nullptr) f.tsan = __tsan_create_fiber(0);
  f.tsan_back = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(f.tsan, 0);
#endif
  {
    const Leaving leaving(f.stack_end, f.stack_bytes, false);
    f.at = std::move(f.at).resume();
    leaving.Back(nullptr, nullptr);
  }
  t_fibre = outer;
  t_scheduler_stack = outer_stack;
  t_scheduler_bytes = outer_bytes;
  Exchange(f);
}

// What fibres share.
struct Work {
  const std::function<void(int)>& body;
  int count = 0, next = 0;  // bodies, and the first that no fibre has begun
  std::exception_ptr failure;
};

// The whole life of a fibre, on its own stack: it runs bodies until all have begun. One that waits keeps its fibre; the
// next is begun by another.
context::fiber Live(Fibre& f, context::fiber&& scheduler, Work& work) {
  Arrive(nullptr, &t_scheduler_stack, &t_scheduler_bytes);
  f.back = &scheduler;
  for (bool first = true; work.next < work.count; first = false) {
    if (!first) {
      Exchange(f);
      for (size_t i = 0; i < f.states.size(); ++i) States()[i].assign(f.states[i].get());
      Exchange(f);
    }
    f.body = work.next++;
    try {
      work.body(f.body);
    } catch (const context::detail::forced_unwind&) {
      throw;
    } catch (...) {
      if (!work.failure) work.failure = std::current_exception();
    }
  }
  [[maybe_unused]] const Leaving leaving(t_scheduler_stack, t_scheduler_bytes, true);
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(f.tsan_back, 0);
#endif
  return std::move(scheduler);
}

}  // namespace

void RegisterFibreState(FibreState state) { States().push_back(state); }

bool WaitFibre() {
  Fibre& f = *t_fibre;
  if (f.cancelled) return false;
  f.waiting = true;
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(f.tsan_back, 0);
#endif
  const Leaving leaving(t_scheduler_stack, t_scheduler_bytes, false);
  *f.back = std::move(*f.back).resume();
  leaving.Back(&t_scheduler_stack, &t_scheduler_bytes);
  return !f.cancelled;
}

void RunFibres(int count, const std::function<void(int)>& body,
               const std::function<std::vector<bool>(const std::vector<bool>&)>& meet) {
  Work work{body, count, 0, nullptr};
  std::vector<std::unique_ptr<Fibre>> fibres;
  while (work.next < count) {
    Fibre& f = *fibres.emplace_back(std::make_unique<Fibre>());
    for (const FibreState& state : States()) f.states.push_back(state.copy());
    const context::stack_context stack = TheStacks().Take();
    f.stack_bytes = stack.size;
    f.stack_end = static_cast<const char*>(stack.sp) - stack.size;
    f.at = context::fiber(std::allocator_arg, context::preallocated(stack.sp, stack.size, stack), KeptStack(),
                          [&f, &work](context::fiber&& scheduler) { return Live(f, std::move(scheduler), work); });
    Resume(f);
  }
  while (true) {
    std::vector<bool> waiting(static_cast<size_t>(count), false), ready(waiting.size(), false);
    bool any = false;
    for (const auto& f : fibres) {
      if (f->waiting) any = waiting[static_cast<size_t>(f->body)] = true;
    }
    if (!any) break;
    try {
      if (!work.failure) ready = meet(waiting);
    } catch (...) {
      work.failure = std::current_exception();
    }
    const bool none = std::find(ready.begin(), ready.end(), true) == ready.end();
    for (const auto& f : fibres) {
      if (none) f->cancelled = true;
      if (f->waiting && (none || ready[static_cast<size_t>(f->body)])) Resume(*f);
    }
  }
#if defined(__SANITIZE_THREAD__)
  for (const auto& f : fibres) __tsan_destroy_fiber(f->tsan);
#endif
  if (work.failure) std::rethrow_exception(work.failure);
}

intptr_t StackEnd() {
  if (t_fibre != nullptr) return reinterpret_cast<intptr_t>(t_fibre->stack_end);
  thread_local const intptr_t end = [] {
    pthread_attr_t attributes;
    void* address = nullptr;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return intptr_t{0};
    pthread_attr_getstack(&attributes, &address, &size);
    pthread_attr_destroy(&attributes);
    return reinterpret_cast<intptr_t>(address);
  }();
  return end;
}

}  // namespace weft
