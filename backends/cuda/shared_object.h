// Code in memory as a loaded library.
#ifndef WEFT_BACKENDS_CUDA_SHARED_OBJECT_H_
#define WEFT_BACKENDS_CUDA_SHARED_OBJECT_H_

#include <string>

namespace weft::cuda {

// dlopen of an ELF shared object given by its bytes; each call loads a library of its own. Throws std::runtime_error.
void* LoadSharedObject(const std::string& code);

}  // namespace weft::cuda
#endif  // WEFT_BACKENDS_CUDA_SHARED_OBJECT_H_
