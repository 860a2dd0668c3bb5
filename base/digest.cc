#include "base/digest.h"

#include <sha2.h>

namespace weft {

std::string Sha256(const std::string& bytes) {
  char digits[SHA256_DIGEST_STRING_LENGTH];
  SHA256Data(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), digits);
  return digits;
}

}  // namespace weft
