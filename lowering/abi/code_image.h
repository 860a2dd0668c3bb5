// Compiled code as bytes: what the linker (lowering/cpu/link.h) makes of object files, and what a backend puts into
// memory (backends/loaded_code.h). Simpler than an ELF shared object: no dynamic linker, no files, and memory that runs
// out leaves nothing behind in either.
//
//   header | code, read-only data | writable data | imports | rebases | symbols, with their names
//
// In memory the code begins at a page, and the writable data at the page after it, zeroed beyond what is given.
#ifndef WEFT_LOWERING_ABI_CODE_IMAGE_H_
#define WEFT_LOWERING_ABI_CODE_IMAGE_H_

#include <cstdint>

namespace weft {

constexpr uint64_t kCodeImageMagic = 0x31676d6974666577;  // "weftimg1"
constexpr uint64_t kCodePage = 4096;

struct CodeImageHeader {
  uint64_t magic = kCodeImageMagic;
  uint64_t code_bytes = 0;
  uint64_t data_bytes = 0;    // that are given
  uint64_t memory_bytes = 0;  // of the writable data in memory
  uint64_t num_imports = 0;
  uint64_t num_rebases = 0;
  uint64_t num_symbols = 0;
};

// A place in the image, counted from the beginning of the code. Names follow their record.
struct CodeImageName {
  uint64_t at =
      0;  // of an import: the word for the address of that function of the C library; of a symbol: what it names
  uint64_t length = 0;
};

// Rebases are uint64_t: places of words to which the address of the image is added.

}  // namespace weft
#endif  // WEFT_LOWERING_ABI_CODE_IMAGE_H_
