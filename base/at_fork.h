// What a process does to its locks when it forks. A child has only the thread that forked, so a lock that another
// thread holds stays locked in the child for ever: whoever forks takes the locks first.
//
// pthread_atfork alone takes them in the reverse order of registration, which depends on what a program did first. Here
// the order is fixed: whoever holds a lock of one step may wait for those of later steps, never of earlier ones.
#ifndef WEFT_BASE_AT_FORK_H_
#define WEFT_BASE_AT_FORK_H_

namespace weft {

enum class ForkStep {
  kCompilations,  // driver/compile_gate.h
  kLibraries,     // those with locks of their own, while they run
  kMutexes,       // base/fork_safe_mutex.h
};

// `prepare` runs before the process forks, in the order of the steps; then `in_parent` or `in_child`, in the reverse
// order. Each may be null. Called once for each lock, at most 8 of a step.
void AtFork(ForkStep step, void (*prepare)(), void (*in_parent)(), void (*in_child)());

}  // namespace weft
#endif  // WEFT_BASE_AT_FORK_H_
