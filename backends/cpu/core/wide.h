// The types that the runtime computes in.
#ifndef WEFT_BACKENDS_CPU_CORE_WIDE_H_
#define WEFT_BACKENDS_CPU_CORE_WIDE_H_

#include <complex>
#include <type_traits>

#include "base/dtype.h"

namespace weft::cpu {

template <class T>
constexpr bool kIsComplex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

// Floats narrower than f32 compute in f32, integers of fewer than 8 bits in 8; everything else in its own type.
template <class T>
using Wide = std::conditional_t<kIsSmallFloat<T>, float, WordOf<T>>;

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_CORE_WIDE_H_
