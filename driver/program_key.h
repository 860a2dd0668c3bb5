// What caches of compiled programs are looked up by: the program, up to names and locations, and all else that decides
// what its code is.
#ifndef WEFT_DRIVER_PROGRAM_KEY_H_
#define WEFT_DRIVER_PROGRAM_KEY_H_

#include <functional>
#include <string>

#include "ir/fn.h"

namespace weft {

struct ProgramKey {
  FnRef fn;
  std::string options;
  friend bool operator==(const ProgramKey& a, const ProgramKey& b) {
    return a.options == b.options && FnEqual()(a.fn, b.fn);
  }
};
struct ProgramKeyHash {
  size_t operator()(const ProgramKey& k) const {
    return k.fn->StructuralHash() * 31 + std::hash<std::string>()(k.options);
  }
};

}  // namespace weft
#endif  // WEFT_DRIVER_PROGRAM_KEY_H_
