// What running a GpuArtifact asks of a device: memory, copies, kernels and products, all in one order.
#ifndef WEFT_BACKENDS_CUDA_DEVICE_H_
#define WEFT_BACKENDS_CUDA_DEVICE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lowering/abi/gpu_artifact.h"

namespace weft::cuda {

// An array of device memory as a kernel's argument.
struct Operand {
  void* address = nullptr;
  int64_t bytes = 0;
  bool written = false;
};

// Every member throws std::runtime_error when the device fails.
class Device {
 public:
  virtual ~Device() = default;
  // Aligned to 256 bytes.
  virtual void* Allocate(int64_t bytes) = 0;
  virtual void Free(void* address) = 0;
  virtual void CopyIn(void* to, const void* from, int64_t bytes) = 0;
  virtual void CopyOut(void* to, const void* from, int64_t bytes) = 0;
  virtual void CopyWithin(void* to, const void* from, int64_t bytes) = 0;
  virtual void Launch(const GpuKernel& kernel, const std::vector<Operand>& operands) = 0;
  virtual void Matmul(const GpuMatmul& product, const void* x, const void* y, void* out) = 0;
  virtual void Synchronize() = 0;
  // How long the device takes for what `work` asks of it.
  virtual double Milliseconds(const std::function<void()>& work) = 0;
};

}  // namespace weft::cuda
#endif  // WEFT_BACKENDS_CUDA_DEVICE_H_
