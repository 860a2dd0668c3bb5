// The prototypes of driver_api.h against CUDA's headers. Handles are pointers here, and enumerations integers.
#include "backends/cuda/driver_api.h"

#include <gtest/gtest.h>

#if defined(WEFT_HAVE_CUDA)
#include <cublasLt.h>
#include <cuda.h>

#include <type_traits>
#endif

namespace weft::cuda {
namespace {

#if defined(WEFT_HAVE_CUDA)

// Passed in the same registers: pointers as pointers, enumerations as integers of their size, numbers as themselves.
template <class Ours, class Theirs>
constexpr bool Same() {
  if constexpr (std::is_pointer_v<Theirs>) {
    return std::is_pointer_v<Ours>;
  } else if constexpr (std::is_enum_v<Theirs>) {
    return std::is_integral_v<Ours> && sizeof(Ours) == sizeof(Theirs);
  } else {
    return std::is_integral_v<Ours> == std::is_integral_v<Theirs> && sizeof(Ours) == sizeof(Theirs);
  }
}
template <class Ours, class Theirs>
struct SameCall;
template <class R, class... Ours, class S, class... Theirs>
struct SameCall<R (*)(Ours...), S (*)(Theirs...)> {
  static constexpr bool Value() {
    if constexpr (sizeof...(Ours) != sizeof...(Theirs))
      return false;
    else
      return Same<R, S>() && (Same<Ours, Theirs>() && ...);
  }
};

TEST(DriverApi, PrototypesAreThoseOfCuda) {
#define WEFT_COMPARE(symbol, name, parameters) \
  EXPECT_TRUE((SameCall<decltype(DriverApi::name), decltype(&::symbol)>::Value())) << #symbol;
  WEFT_CUDA_DRIVER(WEFT_COMPARE)
#undef WEFT_COMPARE
#define WEFT_COMPARE(symbol, name, parameters) \
  EXPECT_TRUE((SameCall<decltype(LtApi::name), decltype(&::symbol)>::Value())) << #symbol;
  WEFT_CUBLASLT(WEFT_COMPARE)
  EXPECT_EQ(sizeof(LtHeuristic), sizeof(cublasLtMatmulHeuristicResult_t));
  EXPECT_EQ(sizeof(DevicePointer), sizeof(CUdeviceptr));
}

#else

TEST(DriverApi, PrototypesAreThoseOfCuda) { GTEST_SKIP() << "CUDA's headers are not installed"; }

#endif

}  // namespace
}  // namespace weft::cuda
