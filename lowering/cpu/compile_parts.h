// Parts of one program that are compiled at once.
#ifndef WEFT_LOWERING_CPU_COMPILE_PARTS_H_
#define WEFT_LOWERING_CPU_COMPILE_PARTS_H_

#include <cstddef>
#include <exception>
#include <functional>

namespace weft {

// Calls part(0) ... part(count - 1), on a thread each as far as the system has threads, and otherwise on this one. When
// all have ended, raises what the first of those that failed raised.
void CompileParts(size_t count, const std::function<void(size_t)>& part);

// What ends a compilation that nothing is wrong with.
struct CompilationEnds {
  std::exception_ptr why;  // an interrupt; null: another part has failed
};

// Called now and then by whoever compiles. Raises CompilationEnds. The caller's thread asks for interrupts, and the
// others learn of them from it.
void PollCompilation();

}  // namespace weft
#endif  // WEFT_LOWERING_CPU_COMPILE_PARTS_H_
