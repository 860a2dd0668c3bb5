#include "base/environment.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>
#include <thread>

namespace weft {

int64_t EnvironmentNumber(const char* name, int64_t least, int64_t otherwise, int64_t most) {
  const char* given = std::getenv(name);
  if (given == nullptr || *given == '\0') return otherwise;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(given, given + std::strlen(given), number);
  if (error == std::errc() && *end == '\0' && number >= least && number <= most) return number;
  const std::string range = most == std::numeric_limits<int64_t>::max()
                                ? std::to_string(least) + " or more"
                                : std::to_string(least) + " to " + std::to_string(most);
  std::fprintf(stderr, "weft: %s is '%s'; expected a whole number, %s. The default is taken, %" PRId64 "\n", name,
               given, range.c_str(), otherwise);
  return otherwise;
}

namespace {

int Processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace

int DefaultThreads() {
  constexpr int64_t kMost = 4096;
  static const auto threads = static_cast<int>(EnvironmentNumber("WEFT_NUM_THREADS", 1, Processors(), kMost));
  return threads;
}

}  // namespace weft
