// Runs bundles for GPUs: what a machine with a card needs, neither the compiler nor the libraries of the CPU's back
// end.
#include <cstring>
#include <memory>
#include <stdexcept>

#include "backends/cuda/cuda_device.h"
#include "backends/cuda/emulated_device.h"
#include "backends/cuda/program.h"
#include "driver/bundle/bundle.h"

namespace weft {
namespace {

Type TypeOf(const Bundle::Value& v) {
  return Type{static_cast<DType>(v.dtype), Dims(v.shape.begin(), v.shape.end()), {}};
}

}  // namespace

Tensors AllArguments(const Bundle& b, const Tensors& args) {
  Tensors all;
  size_t next = 0, wanted = 0;
  for (const Bundle::Value& v : b.params) wanted += !v.is_constant;
  if (args.size() != wanted) throw TypeError(b.name, " takes ", wanted, " arguments, got ", args.size());
  for (const Bundle::Value& v : b.params) {
    if (v.is_constant) {
      Tensor t(static_cast<DType>(v.dtype), v.shape);
      if (t.bytes() != static_cast<int64_t>(v.constant.size()))
        throw ValueError("the bundle is damaged: constant ", v.name, " has ", v.constant.size(), " bytes; ", t.type(),
                         " needs ", t.bytes());
      if (t.bytes() > 0) std::memcpy(t.raw(), v.constant.data(), v.constant.size());
      all.push_back(std::move(t));
      continue;
    }
    if (!(args[next].type() == TypeOf(v)))
      throw TypeError(b.name, ": argument ", next, v.name.empty() ? "" : " (" + v.name + ")", " is ", args[next].type(),
                      "; expected ", TypeOf(v));
    all.push_back(args[next++]);
  }
  return all;
}

Tensors RunGpuBundle(const Bundle& b, const Tensors& args, const std::string& device) {
  if (!b.gpu) throw ValueError("device: the bundle is for cpu, not for ", device.empty() ? "cuda" : device);
  if (device == "cpu") throw ValueError("device: the bundle is for ", b.gpu->plan.target, ", not for cpu");
  if (device == "emulation" && b.gpu->emulation.empty())
    throw ValueError("device: the bundle holds no code for host emulation; export it with --emulation");
  if (!device.empty() && device != "cuda" && device != "emulation")
    throw ValueError("device: there is no device \"", device, "\"; expected cpu, cuda or emulation");
  const Tensors all = AllArguments(b, args);
  std::vector<cuda::HostArgument> arguments;
  for (const Tensor& t : all) arguments.push_back({t.raw(), t.shape()});
  Tensors out;
  try {
    std::shared_ptr<cuda::Device> on;
    if (device == "emulation")
      on = std::make_shared<cuda::EmulatedDevice>(b.gpu->emulation, b.gpu->emulation_target);
    else
      on = std::make_shared<cuda::CudaDevice>(*b.gpu);
    for (const cuda::HostArray& a : cuda::Program(*b.gpu, on).Run(arguments)) {
      Tensor t(static_cast<DType>(a.dtype), a.shape);
      if (t.bytes() > 0) std::memcpy(t.raw(), a.bytes.data(), a.bytes.size());
      out.push_back(std::move(t));
    }
  } catch (const std::invalid_argument& failure) {
    throw TypeError(b.name, ": ", failure.what());
  } catch (const std::runtime_error& failure) {
    throw Error(ErrorKind::kRuntime, failure.what());
  }
  return out;
}

}  // namespace weft
