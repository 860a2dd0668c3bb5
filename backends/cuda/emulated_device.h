// A device that emulates GPU kernels on the CPU, one fibre per CUDA thread, and checks each of their steps:
// accesses outside of the operands or misaligned, writes to operands that are only read, operands that overlap, threads
// that touch what another one writes with no barrier between them, shared memory read before it is written, barriers
// and shuffles that not all threads reach. The first of these ends the launch with a std::runtime_error that names the
// kernel, the block and the thread.
#ifndef WEFT_BACKENDS_CUDA_EMULATED_DEVICE_H_
#define WEFT_BACKENDS_CUDA_EMULATED_DEVICE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/device.h"
#include "backends/loaded_code.h"

namespace weft::cuda {

class EmulatedDevice : public Device {
 public:
  // `code`, `target`: GpuArtifact::emulation and emulation_target; without the latter, of this CPU. Throws
  // std::runtime_error when it cannot be loaded, or needs instructions that this CPU lacks.
  explicit EmulatedDevice(const std::string& code, const std::string& target = "");
  ~EmulatedDevice() override;
  EmulatedDevice(const EmulatedDevice&) = delete;

  void* Allocate(int64_t bytes) override;  // filled with 0xCB
  void Free(void* address) override;
  void CopyIn(void* to, const void* from, int64_t bytes) override;
  void CopyOut(void* to, const void* from, int64_t bytes) override;
  void CopyWithin(void* to, const void* from, int64_t bytes) override;
  void Launch(const GpuKernel& kernel, const std::vector<Operand>& operands) override;
  // By three loops, in double precision.
  void Matmul(const GpuMatmul& product, const void* x, const void* y, void* out) override;
  void Synchronize() override {}
  double Milliseconds(const std::function<void()>& work) override;

 private:
  void Within(const void* address, int64_t bytes, const char* what) const;

  std::unique_ptr<LoadedCode> code_;
  std::map<const char*, int64_t> allocated_;
};

}  // namespace weft::cuda
#endif  // WEFT_BACKENDS_CUDA_EMULATED_DEVICE_H_
