// Runs a GpuArtifact on a device: the arena, constants, arguments and results around its steps.
//
//   cuda::Program program(artifact, device);       // device holds the artifact's code
//   std::vector<cuda::HostArray> out = program.Run({{x_data, {1024}}});
#ifndef WEFT_BACKENDS_CUDA_PROGRAM_H_
#define WEFT_BACKENDS_CUDA_PROGRAM_H_

#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/device.h"

namespace weft::cuda {

struct HostArgument {
  const void* data = nullptr;
  std::vector<int64_t> shape;
};
struct HostArray {
  uint8_t dtype = 0;  // weft::DType
  std::vector<int64_t> shape;
  std::string bytes;
};

class Program {
 public:
  Program(GpuArtifact artifact, std::shared_ptr<Device> device);
  ~Program();
  Program(const Program&) = delete;

  // Throws std::invalid_argument for arguments that do not fit, std::runtime_error when the device fails.
  std::vector<HostArray> Run(const std::vector<HostArgument>& arguments);

  // The parts of Run, for whoever measures: arguments and results stay on the device.
  void SetArguments(const std::vector<HostArgument>& arguments);
  void RunSteps();
  std::vector<HostArray> Results();

  const GpuArtifact& artifact() const { return artifact_; }

 private:
  void* Take(int64_t bytes);

  GpuArtifact artifact_;
  std::shared_ptr<Device> device_;
  std::vector<void*> owned_;
  std::vector<Operand> slots_;
  std::vector<void*> params_, results_;
};

}  // namespace weft::cuda
#endif  // WEFT_BACKENDS_CUDA_PROGRAM_H_
