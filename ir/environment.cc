#include "ir/environment.h"

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace weft {

int64_t EnvironmentNumber(const char* name, int64_t least, int64_t otherwise) {
  const char* given = std::getenv(name);
  if (given == nullptr || *given == '\0') return otherwise;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(given, given + std::strlen(given), number);
  if (error == std::errc() && *end == '\0' && number >= least) return number;
  std::fprintf(stderr, "weft: %s is '%s', which is no whole number from %" PRId64 " on; taking %" PRId64 "\n", name,
               given, least, otherwise);
  return otherwise;
}

}  // namespace weft
