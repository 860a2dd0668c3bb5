#include "base/environment.h"

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

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

}  // namespace weft
