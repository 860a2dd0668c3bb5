// Compiled code in memory as a loaded library.
//
//   void* library = LoadSharedObject(artifact.code);
//   auto* main = reinterpret_cast<WeftMain>(dlsym(library, "weft_main"));
#ifndef WEFT_BACKENDS_SHARED_OBJECT_H_
#define WEFT_BACKENDS_SHARED_OBJECT_H_

#include <string>

namespace weft {

// dlopen of an ELF shared object given by its bytes; each call loads a library of its own. Throws std::runtime_error.
void* LoadSharedObject(const std::string& code);

}  // namespace weft
#endif  // WEFT_BACKENDS_SHARED_OBJECT_H_
