// Numbers that environment variables give (docs/environment.md).
#ifndef WEFT_BASE_ENVIRONMENT_H_
#define WEFT_BASE_ENVIRONMENT_H_

#include <cstdint>
#include <limits>

namespace weft {

// The value of the variable `name`; `otherwise` where it is not set or empty, or where it is no whole number from
// `least` to `most`: that is said on stderr. Read once and keep it.
int64_t EnvironmentNumber(const char* name, int64_t least, int64_t otherwise,
                          int64_t most = std::numeric_limits<int64_t>::max());

// How many threads compile, and share what a program does, unless somebody asks for another number: WEFT_NUM_THREADS,
// or as many as this process has processors.
int DefaultThreads();

}  // namespace weft
#endif  // WEFT_BASE_ENVIRONMENT_H_
