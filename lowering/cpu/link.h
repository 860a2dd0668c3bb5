// The linker: object files that the code generator made become one image (lowering/abi/code_image.h).
//
//   std::string image = LinkObjects({GenerateCode(...), GenerateCode(...)});
#ifndef WEFT_LOWERING_CPU_LINK_H_
#define WEFT_LOWERING_CPU_LINK_H_

#include <string>
#include <vector>

namespace weft {

// `objects`: ELF files for x86-64, position-independent, which may refer to each other's global symbols. What none of
// them defines is taken from the C library when the image is loaded. Global symbols can be found in the image, unless
// they are hidden. Raises an internal error for what the code generator does not make (thread-local variables, symbols
// that two objects define, other kinds of relocations); std::bad_alloc leaves nothing behind.
std::string LinkObjects(const std::vector<std::string>& objects);

}  // namespace weft
#endif  // WEFT_LOWERING_CPU_LINK_H_
