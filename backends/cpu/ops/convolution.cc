#include "backends/cpu/ops/convolution.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "backends/cpu/core/buffer_cache.h"
#include "backends/cpu/core/fork_safe_mutex.h"
#include "backends/cpu/core/thread_pool.h"
#include "backends/cpu/ops/openmp.h"
#include "base/out_of_memory.h"
#include <oneapi/dnnl/dnnl.hpp>

namespace weft::cpu {
namespace {

using dnnl::memory;
using Dims = memory::dims;

// A batch is cut into so many blocks at most, whatever the number of threads.
constexpr int64_t kMaxBlocks = 16;
// For making a plan, generously, and for what it puts on the stack.
constexpr int64_t kMemoryOfPlan = int64_t{64} << 20, kStackOfLibrary = 1 << 20;

const dnnl::engine& Engine() {
  static const auto& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// Row-major.
memory::desc Plain(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * std::max<int64_t>(dims[d + 1], 1);
  return {dims, memory::data_type::f32, strides};
}
memory::desc Any(const Dims& dims) { return {dims, memory::data_type::f32, memory::format_tag::any}; }

// A convolution of one block of images, with the layouts the library likes best and the copies to and from them.
struct Plan {
  dnnl::convolution_forward convolution;
  memory::desc x, w, y, plain_x, plain_w, plain_y, scratch;
  dnnl::reorder in, weights, out;  // empty where the layout is row-major anyway
};

struct Problem {
  Dims x, w, y;  // w with the groups in front where there are several
  Dims strides, dilation, lo, hi;
  friend bool operator<(const Problem& a, const Problem& b) {
    return std::tie(a.x, a.w, a.y, a.strides, a.dilation, a.lo, a.hi) <
           std::tie(b.x, b.w, b.y, b.strides, b.dilation, b.lo, b.hi);
  }
};

std::shared_ptr<const Plan> Make(const Problem& p) {
  auto plan = std::make_shared<Plan>();
  const dnnl::convolution_forward::desc what(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                                             Any(p.x), Any(p.w), Any(p.y), p.strides, p.dilation, p.lo, p.hi);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::convolution_forward::primitive_desc chosen(what, attributes, Engine());
  plan->convolution = dnnl::convolution_forward(chosen);
  plan->x = chosen.src_desc(), plan->w = chosen.weights_desc(), plan->y = chosen.dst_desc();
  plan->scratch = chosen.scratchpad_desc();
  plan->plain_x = Plain(p.x), plan->plain_w = Plain(p.w), plan->plain_y = Plain(p.y);
  auto copy = [](const memory::desc& from, const memory::desc& to) {
    return dnnl::reorder(dnnl::reorder::primitive_desc(Engine(), from, Engine(), to));
  };
  if (plan->x != plan->plain_x) plan->in = copy(plan->plain_x, plan->x);
  if (plan->w != plan->plain_w) plan->weights = copy(plan->plain_w, plan->w);
  if (plan->y != plan->plain_y) plan->out = copy(plan->y, plan->plain_y);
  return plan;
}

OutOfMemory NoRoom() { return OutOfMemory("out of memory: oneDNN has no room for a convolution"); }

// Making one takes about as long as running a small one, so they are kept; null when the library has none.
std::shared_ptr<const Plan> PlanFor(const Problem& problem) {
  static auto& mutex = *new ForkSafeMutex;
  static auto& plans = *new std::map<Problem, std::shared_ptr<const Plan>>;
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
  std::shared_ptr<const Plan> plan;
  try {
    plan = Make(problem);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw NoRoom();
    // oneDNN has no such convolution: the caller has one.
  }
  const std::lock_guard<ForkSafeMutex> lock(mutex);
  if (plans.size() >= kMaxPlans) plans.clear();
  plans.emplace(problem, plan);
  return plan;
}

// Memory for a layout, given back at the end of its scope.
class Buffer {
 public:
  explicit Buffer(const memory::desc& desc)
      : bytes_(std::max<int64_t>(64, static_cast<int64_t>(desc.get_size()))), data_(AllocateRaw(bytes_)) {}
  ~Buffer() { FreeRaw(data_, bytes_); }
  Buffer(const Buffer&) = delete;
  void* data() const { return data_; }

 private:
  int64_t bytes_;
  void* data_;
};

void RunBlock(const Plan& plan, const float* x, void* weights, float* y) {
  EnsureStack(kStackOfLibrary, "a convolution");
  const SingleOpenMpThread single;
  dnnl::stream stream(Engine());
  memory plain_x(plan.plain_x, Engine(), const_cast<float*>(x)), plain_y(plan.plain_y, Engine(), y);
  memory in = plain_x, out = plain_y;
  std::unique_ptr<Buffer> in_buffer, out_buffer;
  if (plan.in) {
    in_buffer = std::make_unique<Buffer>(plan.x);
    in = memory(plan.x, Engine(), in_buffer->data());
    plan.in.execute(stream, plain_x, in);
  }
  if (plan.out) {
    out_buffer = std::make_unique<Buffer>(plan.y);
    out = memory(plan.y, Engine(), out_buffer->data());
  }
  const Buffer scratch(plan.scratch);
  plan.convolution.execute(stream, {{DNNL_ARG_SRC, in},
                                    {DNNL_ARG_WEIGHTS, memory(plan.w, Engine(), weights)},
                                    {DNNL_ARG_DST, out},
                                    {DNNL_ARG_SCRATCHPAD, memory(plan.scratch, Engine(), scratch.data())}});
  if (plan.out) plan.out.execute(stream, out, plain_y);
  stream.wait();
}

}  // namespace

bool ConvolveByLibrary(const ConvolutionShape& s, const float* x, const float* w, float* y) try {
  const size_t spatial = s.x.size() - 2;
  if (spatial < 1 || spatial > 3 || s.batch_groups != 1) return false;
  Problem p{s.x, s.w, s.y, s.strides, {}, s.lo, {}};
  for (size_t d = 0; d < spatial; ++d) {
    if (s.base_dilation[d] != 1 || s.lo[d] < 0) return false;
    p.dilation.push_back(s.window_dilation[d] - 1);
    // What the last window reads beyond the end.
    const int64_t hi =
        (s.y[d + 2] - 1) * s.strides[d] + (s.w[d + 2] - 1) * s.window_dilation[d] + 1 - s.lo[d] - s.x[d + 2];
    if (hi <= -s.strides[d]) return false;  // padding that cuts off
    p.hi.push_back(std::max<int64_t>(hi, 0));
  }
  if (s.feature_groups > 1) {
    p.w[0] /= s.feature_groups;
    p.w.insert(p.w.begin(), s.feature_groups);
  }
  const int64_t images = s.x[0], per_block = (images + kMaxBlocks - 1) / kMaxBlocks;
  const int64_t blocks = (images + per_block - 1) / per_block;
  double flops = 2;
  int64_t x_size = 1, y_size = 1;
  for (size_t d = 1; d < s.w.size(); ++d) flops *= static_cast<double>(s.w[d]);
  for (int64_t n : s.y) flops *= static_cast<double>(n);
  for (size_t d = 1; d < s.x.size(); ++d) x_size *= s.x[d], y_size *= s.y[d];
  // Below this the library's own copies and calls weigh more than threads bring.
  const int64_t nanoseconds = static_cast<int64_t>(flops / 50);
  const bool whole = blocks == 1 || nanoseconds < 2 * kMinParallelNanoseconds;
  if (!whole) p.x[0] = p.y[0] = per_block;
  const SingleOpenMpThread single;
  const std::shared_ptr<const Plan> plan = PlanFor(p);
  std::shared_ptr<const Plan> last = plan;
  const int64_t rest = images - (blocks - 1) * per_block;
  if (!whole && rest != per_block) {
    p.x[0] = p.y[0] = rest;
    last = PlanFor(p);
  }
  if (plan == nullptr || last == nullptr) return false;
  // Weights are brought into their layout once.
  auto weights_for = [&](const Plan& of, std::unique_ptr<Buffer>& buffer) -> void* {
    if (!of.weights) return const_cast<float*>(w);
    buffer = std::make_unique<Buffer>(of.w);
    dnnl::stream stream(Engine());
    memory plain(of.plain_w, Engine(), const_cast<float*>(w)), liked(of.w, Engine(), buffer->data());
    of.weights.execute(stream, plain, liked);
    stream.wait();
    return buffer->data();
  };
  std::unique_ptr<Buffer> buffer, last_buffer;
  void* weights = weights_for(*plan, buffer);
  if (whole) {
    RunBlock(*plan, x, weights, y);
    return true;
  }
  void* last_weights = last == plan ? weights : weights_for(*last, last_buffer);
  ParallelFor(blocks, nanoseconds, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const bool is_last = b == blocks - 1;
      RunBlock(is_last ? *last : *plan, x + b * per_block * x_size, is_last ? last_weights : weights,
               y + b * per_block * y_size);
    }
  });
  return true;
} catch (const dnnl::error& error) {
  if (error.status == dnnl_out_of_memory) throw NoRoom();
  throw std::runtime_error(std::string("oneDNN refuses a convolution: ") + error.what());
}

}  // namespace weft::cpu
