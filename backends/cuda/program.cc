#include "backends/cuda/program.h"

#include <stdexcept>

#include "base/dtype.h"

namespace weft::cuda {
namespace {

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

std::vector<int64_t> ShapeOf(const Artifact::Value& v) {
  std::vector<int64_t> shape;
  for (const SizeExpr& d : v.dims) shape.push_back(d.constant);
  return shape;
}

int64_t BytesOf(const Artifact::Value& v) {
  int64_t bytes = ByteWidth(static_cast<DType>(v.dtype));
  for (const SizeExpr& d : v.dims) bytes *= d.constant;
  return bytes;
}

}  // namespace

void* Program::Take(int64_t bytes) {
  owned_.push_back(device_->Allocate(bytes));
  return owned_.back();
}

Program::Program(GpuArtifact artifact, std::shared_ptr<Device> device)
    : artifact_(std::move(artifact)), device_(std::move(device)) {
  const Artifact& plan = artifact_.plan;
  try {
    char* const arena = static_cast<char*>(Take(plan.arena_bytes));
    char* const constants = static_cast<char*>(Take(static_cast<int64_t>(plan.constants.size())));
    device_->CopyIn(constants, plan.constants.data(), static_cast<int64_t>(plan.constants.size()));
    for (const Artifact::Value& v : plan.params) params_.push_back(Take(BytesOf(v)));
    for (const Artifact::Value& v : plan.results) results_.push_back(Take(BytesOf(v)));
    for (const Artifact::Slot& s : plan.slots) {
      const size_t i = static_cast<size_t>(s.index);
      switch (s.place) {
        case Artifact::Place::kArena:
          slots_.push_back({arena + plan.buffers[i].offset, plan.buffers[i].bytes.constant});
          break;
        case Artifact::Place::kParam: slots_.push_back({params_[i], BytesOf(plan.params[i])}); break;
        case Artifact::Place::kResult: slots_.push_back({results_[i], BytesOf(plan.results[i])}); break;
        case Artifact::Place::kConstant:
          slots_.push_back({constants + s.index, static_cast<int64_t>(plan.constants.size()) - s.index});
          break;
        case Artifact::Place::kMoving: throw std::runtime_error("the program has a loop, which GPU plans have not");
      }
    }
  } catch (...) {
    for (void* p : owned_) device_->Free(p);
    throw;
  }
}

Program::~Program() {
  for (void* p : owned_) device_->Free(p);
}

void Program::SetArguments(const std::vector<HostArgument>& arguments) {
  const Artifact& plan = artifact_.plan;
  if (arguments.size() != plan.params.size())
    throw std::invalid_argument("takes " + std::to_string(plan.params.size()) + " arguments, got " +
                                std::to_string(arguments.size()));
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::vector<int64_t> want = ShapeOf(plan.params[i]);
    if (arguments[i].shape != want)
      throw std::invalid_argument("argument " + std::to_string(i) + " has shape " + ShapeText(arguments[i].shape) +
                                  "; expected " + ShapeText(want));
  }
  for (size_t i = 0; i < arguments.size(); ++i) device_->CopyIn(params_[i], arguments[i].data, BytesOf(plan.params[i]));
}

void Program::RunSteps() {
  const auto at = [&](int64_t slot) { return slots_[static_cast<size_t>(slot)]; };
  artifact_.ForEachStep(StepVisitor{
      [&](const abi::Launch<abi::InWords>& s) {
        std::vector<Operand> operands;
        for (const auto& o : s.operands) {
          operands.push_back(at(o.place));
          operands.back().written = o.written;
        }
        device_->Launch(artifact_.kernels[static_cast<size_t>(s.kernel)], operands);
      },
      [&](const abi::Product<abi::InWords>& s) {
        const int64_t width = ByteWidth(s.product.dtype);
        device_->Matmul(s.product, static_cast<char*>(at(s.x).address) + s.product.x_start * width,
                        static_cast<char*>(at(s.y).address) + s.product.y_start * width, at(s.out).address);
      },
      [&](const abi::Copy<abi::InWords>& s) { device_->CopyWithin(at(s.to).address, at(s.from).address, s.bytes); }});
}

std::vector<HostArray> Program::Results() {
  const Artifact& plan = artifact_.plan;
  std::vector<HostArray> out;
  for (const Artifact::Value& v : plan.results)
    out.push_back({v.dtype, ShapeOf(v), std::string(static_cast<size_t>(BytesOf(v)), '\0')});
  // Only now, since copies are late: short strings have their bytes inside of them, so they must not move any more.
  for (size_t i = 0; i < out.size(); ++i)
    device_->CopyOut(out[i].bytes.data(), results_[i], static_cast<int64_t>(out[i].bytes.size()));
  device_->Synchronize();
  return out;
}

std::vector<HostArray> Program::Run(const std::vector<HostArgument>& arguments) {
  SetArguments(arguments);
  RunSteps();
  return Results();
}

}  // namespace weft::cuda
