// A CUDA device through the driver: one context, one stream, the program's PTX compiled by the driver.
#ifndef WEFT_BACKENDS_CUDA_CUDA_DEVICE_H_
#define WEFT_BACKENDS_CUDA_CUDA_DEVICE_H_

#include <map>
#include <string>
#include <vector>

#include "backends/cuda/device.h"
#include "backends/cuda/driver_api.h"

namespace weft::cuda {

struct Card {
  std::string name;
  int capability = 0;      // 10 * major + minor
  int driver_version = 0;  // of CUDA, 1000 * major + 10 * minor
  // sm_90a runs on compute capability 9.0 alone; sm_80 there and on all later ones.
  bool Runs(const std::string& sm) const;
  std::string SmName() const { return "sm_" + std::to_string(capability); }

  // Throws std::runtime_error, one clear sentence, where there is no driver, none that is new enough, or no such card.
  static Card Find(int ordinal = 0);
};

class CudaDevice : public Device {
 public:
  // Throws what Card::Find throws; std::runtime_error where the card is of another architecture than the program's, and
  // where the program multiplies and cuBLASLt cannot be used.
  explicit CudaDevice(const GpuArtifact& program, int ordinal = 0);
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;

  void* Allocate(int64_t bytes) override;
  void Free(void* address) override;
  void CopyIn(void* to, const void* from, int64_t bytes) override;
  void CopyOut(void* to, const void* from, int64_t bytes) override;
  void CopyWithin(void* to, const void* from, int64_t bytes) override;
  void Launch(const GpuKernel& kernel, const std::vector<Operand>& operands) override;
  void Matmul(const GpuMatmul& product, const void* x, const void* y, void* out) override;
  void Synchronize() override;
  double Milliseconds(const std::function<void()>& work) override;

 private:
  void Close();

  const DriverApi& api_;
  const LtApi* lt_ = nullptr;
  int device_ = -1;
  void *context_ = nullptr, *stream_ = nullptr, *module_ = nullptr, *lt_handle_ = nullptr;
  DevicePointer workspace_ = 0;
  std::map<std::string, void*> kernels_;
};

}  // namespace weft::cuda
#endif  // WEFT_BACKENDS_CUDA_CUDA_DEVICE_H_
