#include "backends/cpu/ops/convolution_plans.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include "base/fork_safe_mutex.h"

namespace weft::cpu {
namespace {

using dnnl::memory;

// For making a plan, generously.
constexpr int64_t kMemoryOfPlan = int64_t{64} << 20;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

memory::desc Any(const Strided& array) { return {array.dims, memory::data_type::f32, memory::format_tag::any}; }

std::shared_ptr<const ConvolutionPlan> Make(const ConvolutionProblem& p) {
  auto plan = std::make_shared<ConvolutionPlan>();
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::engine& engine = ConvolutionEngine();
  auto reads = [&](int i, int argument, const Strided& own, const memory::desc& liked) {
    plan->arrays[i] = {argument, own.desc(), liked, {}};
    if (liked != own.desc())
      plan->arrays[i].copy = dnnl::reorder(dnnl::reorder::primitive_desc(engine, own.desc(), engine, liked));
  };
  auto writes = [&](int argument, const Strided& own, const memory::desc& liked) {
    plan->arrays[2] = {argument, own.desc(), liked, {}};
    if (liked != own.desc())
      plan->arrays[2].copy = dnnl::reorder(dnnl::reorder::primitive_desc(engine, liked, engine, own.desc()));
  };
  auto forward = [&](dnnl::prop_kind kind) {
    return dnnl::convolution_forward::primitive_desc(
        dnnl::convolution_forward::desc(kind, kDirect, Any(p.x), Any(p.w), Any(p.y), p.strides, p.dilation, p.lo, p.hi),
        attributes, engine);
  };
  const auto takes = [&](const auto& chosen, auto primitive) {
    plan->primitive = std::move(primitive), plan->scratch = chosen.scratchpad_desc();
  };
  // Both gradients are told the three arrays, and the convolution that they are of.
  const auto gradient = [&]<class Gradient>(std::type_identity<Gradient>) {
    return typename Gradient::primitive_desc(
        typename Gradient::desc(kDirect, Any(p.x), Any(p.w), Any(p.y), p.strides, p.dilation, p.lo, p.hi), attributes,
        engine, forward(dnnl::prop_kind::forward_training));
  };
  switch (p.kind) {
    case ConvolutionKind::kForward: {
      const auto chosen = forward(dnnl::prop_kind::forward_inference);
      takes(chosen, dnnl::convolution_forward(chosen));
      reads(0, DNNL_ARG_SRC, p.x, chosen.src_desc()), reads(1, DNNL_ARG_WEIGHTS, p.w, chosen.weights_desc());
      writes(DNNL_ARG_DST, p.y, chosen.dst_desc());
      break;
    }
    case ConvolutionKind::kInput: {
      const auto chosen = gradient(std::type_identity<dnnl::convolution_backward_data>());
      takes(chosen, dnnl::convolution_backward_data(chosen));
      reads(0, DNNL_ARG_DIFF_DST, p.y, chosen.diff_dst_desc()), reads(1, DNNL_ARG_WEIGHTS, p.w, chosen.weights_desc());
      writes(DNNL_ARG_DIFF_SRC, p.x, chosen.diff_src_desc());
      break;
    }
    case ConvolutionKind::kWeights: {
      const auto chosen = gradient(std::type_identity<dnnl::convolution_backward_weights>());
      takes(chosen, dnnl::convolution_backward_weights(chosen));
      reads(0, DNNL_ARG_SRC, p.x, chosen.src_desc()), reads(1, DNNL_ARG_DIFF_DST, p.y, chosen.diff_dst_desc());
      writes(DNNL_ARG_DIFF_WEIGHTS, p.w, chosen.diff_weights_desc());
      break;
    }
  }
  return plan;
}

}  // namespace

const dnnl::engine& ConvolutionEngine() {
  static const auto& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

OutOfMemory NoRoomForConvolution() { return OutOfMemory("out of memory: oneDNN has no room for a convolution"); }

// Making one takes about as long as running a small one.
std::shared_ptr<const ConvolutionPlan> PlanFor(const ConvolutionProblem& problem) {
  static auto& mutex = *new ForkSafeMutex;
  static auto& plans = *new std::map<ConvolutionProblem, std::shared_ptr<const ConvolutionPlan>>;
  constexpr size_t kMaxPlans = 512;
  {
    const std::lock_guard<ForkSafeMutex> lock(mutex);
    auto it = plans.find(problem);
    if (it != plans.end()) return it->second;
  }
  // It makes code, and does not look whether it got memory for that.
  if (!CanAllocate(kMemoryOfPlan))
    throw OutOfMemory("out of memory: oneDNN needs " + std::to_string(kMemoryOfPlan) +
                      " bytes of address space to make a convolution");
  std::shared_ptr<const ConvolutionPlan> plan;
  try {
    plan = Make(problem);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw NoRoomForConvolution();
    // oneDNN has no such convolution: the caller has one.
  }
  const std::lock_guard<ForkSafeMutex> lock(mutex);
  if (plans.size() >= kMaxPlans) plans.clear();
  plans.emplace(problem, plan);
  return plan;
}

LayoutBuffer::LayoutBuffer(const memory::desc& desc)
    : bytes_(std::max<int64_t>(64, static_cast<int64_t>(desc.get_size()))), data_(AllocateRaw(bytes_)) {}

}  // namespace weft::cpu
