// Arrays in NumPy's .npy format, versions 1 to 3 (numpy/lib/format.py): how `weft run` takes arguments and gives
// results.
//
//   Tensor x = ReadNpy("x.npy", DType::kF32);
//   WriteNpy("y.npy", y);
//
// NumPy has no bf16, f8 and keys: bf16 and f8 are stored as ml_dtypes does, as raw bytes ('<V2', '|V1'), keys as '<u8'.
// Keys are also read from their words, uint32[..., 2].
#ifndef WEFT_DRIVER_FILES_NPY_H_
#define WEFT_DRIVER_FILES_NPY_H_

#include <string>

#include "ir/tensor.h"

namespace weft {

// `wanted` decides what raw bytes and 64-bit words are; any other type is read as it is. Fortran order and the other
// byte order are converted. Raises kParse naming `name` for anything that is no .npy file, or not a whole one.
Tensor ParseNpy(const std::string& bytes, DType wanted, const std::string& name);
std::string NpyBytes(const Tensor& tensor);

Tensor ReadNpy(const std::string& path, DType wanted);
void WriteNpy(const std::string& path, const Tensor& tensor);

}  // namespace weft
#endif  // WEFT_DRIVER_FILES_NPY_H_
