// Runs the steps of a program over memory in which every byte says whose it is: which value was written there last, and
// how often that had been written before. It takes branches and trips by chance, and notices a step that reads what
// nobody has written, or what somebody else has written over, and one that writes over what it reads without leave.
//
// It knows nothing of when values live and of why buffers are shared.
#ifndef WEFT_TESTS_PROPERTY_MEMORY_CHECKER_H_
#define WEFT_TESTS_PROPERTY_MEMORY_CHECKER_H_

#include <random>
#include <string>

#include "lowering/program/program.h"

namespace weft {

// What is wrong with frame `frame` of `program`, which was made of `schedule`; empty: nothing that this run met.
std::string MemoryProblem(const Schedule& schedule, const Program& program, size_t frame, std::mt19937& rng);

}  // namespace weft
#endif  // WEFT_TESTS_PROPERTY_MEMORY_CHECKER_H_
