// The entry points of libcuda.so.1 and libcublasLt that Weft calls, opened when they are first needed: a build knows
// nothing of CUDA. driver_api_test.cc compares the prototypes with CUDA's headers where those are installed.
//
// WEFT_LIBCUDA and WEFT_LIBCUBLASLT name other libraries, or none.
#ifndef WEFT_BACKENDS_CUDA_DRIVER_API_H_
#define WEFT_BACKENDS_CUDA_DRIVER_API_H_

#include <cstddef>
#include <cstdint>

namespace weft::cuda {

using DevicePointer = unsigned long long;  // NOLINT: as CUdeviceptr

// name in the library, name here, parameters; each gives a status, 0 for success.
#define WEFT_CUDA_DRIVER(X)                                                                               \
  X(cuInit, Init, (unsigned))                                                                             \
  X(cuDriverGetVersion, DriverGetVersion, (int*))                                                         \
  X(cuGetErrorName, GetErrorName, (int, const char**))                                                    \
  X(cuGetErrorString, GetErrorString, (int, const char**))                                                \
  X(cuDeviceGetCount, DeviceGetCount, (int*))                                                             \
  X(cuDeviceGet, DeviceGet, (int*, int))                                                                  \
  X(cuDeviceGetName, DeviceGetName, (char*, int, int))                                                    \
  X(cuDeviceGetAttribute, DeviceGetAttribute, (int*, int, int))                                           \
  X(cuDevicePrimaryCtxRetain, DevicePrimaryCtxRetain, (void**, int))                                      \
  X(cuDevicePrimaryCtxRelease_v2, DevicePrimaryCtxRelease, (int))                                         \
  X(cuCtxSetCurrent, CtxSetCurrent, (void*))                                                              \
  X(cuModuleLoadDataEx, ModuleLoadDataEx, (void**, const void*, unsigned, int*, void**))                  \
  X(cuModuleUnload, ModuleUnload, (void*))                                                                \
  X(cuModuleGetFunction, ModuleGetFunction, (void**, void*, const char*))                                 \
  X(cuLaunchKernel, LaunchKernel,                                                                         \
    (void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**)) \
  X(cuMemAlloc_v2, MemAlloc, (DevicePointer*, size_t))                                                    \
  X(cuMemFree_v2, MemFree, (DevicePointer))                                                               \
  X(cuMemcpyHtoDAsync_v2, MemcpyHtoDAsync, (DevicePointer, const void*, size_t, void*))                   \
  X(cuMemcpyDtoHAsync_v2, MemcpyDtoHAsync, (void*, DevicePointer, size_t, void*))                         \
  X(cuMemcpyDtoDAsync_v2, MemcpyDtoDAsync, (DevicePointer, DevicePointer, size_t, void*))                 \
  X(cuStreamCreate, StreamCreate, (void**, unsigned))                                                     \
  X(cuStreamSynchronize, StreamSynchronize, (void*))                                                      \
  X(cuStreamDestroy_v2, StreamDestroy, (void*))                                                           \
  X(cuEventCreate, EventCreate, (void**, unsigned))                                                       \
  X(cuEventRecord, EventRecord, (void*, void*))                                                           \
  X(cuEventSynchronize, EventSynchronize, (void*))                                                        \
  X(cuEventElapsedTime, EventElapsedTime, (float*, void*, void*))                                         \
  X(cuEventDestroy_v2, EventDestroy, (void*))

struct DriverApi {
#define WEFT_DECLARE(symbol, name, parameters) int(*name) parameters = nullptr;
  WEFT_CUDA_DRIVER(WEFT_DECLARE)

  // The driver, loaded, initialised, of CUDA 12.0 or later. Throws std::runtime_error, which says what is missing.
  static const DriverApi& Get();
  // Throws std::runtime_error with CUDA's text where status is not 0.
  void Check(int status, const char* what) const;
};

// cublasLtMatmulHeuristicResult_t.
struct LtHeuristic {
  uint64_t algorithm[8];
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

#define WEFT_CUBLASLT(X)                                                                                               \
  X(cublasLtCreate, Create, (void**))                                                                                  \
  X(cublasLtDestroy, Destroy, (void*))                                                                                 \
  X(cublasLtMatmulDescCreate, MatmulDescCreate, (void**, int, int))                                                    \
  X(cublasLtMatmulDescDestroy, MatmulDescDestroy, (void*))                                                             \
  X(cublasLtMatmulDescSetAttribute, MatmulDescSetAttribute, (void*, int, const void*, size_t))                         \
  X(cublasLtMatrixLayoutCreate, MatrixLayoutCreate, (void**, int, uint64_t, uint64_t, int64_t))                        \
  X(cublasLtMatrixLayoutDestroy, MatrixLayoutDestroy, (void*))                                                         \
  X(cublasLtMatrixLayoutSetAttribute, MatrixLayoutSetAttribute, (void*, int, const void*, size_t))                     \
  X(cublasLtMatmulPreferenceCreate, MatmulPreferenceCreate, (void**))                                                  \
  X(cublasLtMatmulPreferenceDestroy, MatmulPreferenceDestroy, (void*))                                                 \
  X(cublasLtMatmulPreferenceSetAttribute, MatmulPreferenceSetAttribute, (void*, int, const void*, size_t))             \
  X(cublasLtMatmulAlgoGetHeuristic, MatmulAlgoGetHeuristic,                                                            \
    (void*, void*, void*, void*, void*, void*, void*, int, LtHeuristic*, int*))                                        \
  X(cublasLtMatmul, Matmul,                                                                                            \
    (void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*, void*, void*, \
     const void*, void*, size_t, void*))

struct LtApi {
  WEFT_CUBLASLT(WEFT_DECLARE)
#undef WEFT_DECLARE

  // Throws std::runtime_error, which says what is missing.
  static const LtApi& Get();
  static void Check(int status, const char* what);
};

}  // namespace weft::cuda
#endif  // WEFT_BACKENDS_CUDA_DRIVER_API_H_
