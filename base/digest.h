// SHA-256 (FIPS 180-4), as libmd implements it: what names and checks the entries of the disk cache, and bundles. Not
// LLVM's, since what runs bundles has no LLVM.
#ifndef WEFT_BASE_DIGEST_H_
#define WEFT_BASE_DIGEST_H_

#include <string>

namespace weft {

// 64 hexadecimal digits, lower case.
std::string Sha256(const std::string& bytes);

}  // namespace weft
#endif  // WEFT_BASE_DIGEST_H_
