#include "backends/cpu/ops/convolution.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/cpu/core/signals.h"
#include "backends/cpu/core/thread_pool.h"
#include "backends/cpu/ops/convolution_plans.h"
#include "backends/cpu/ops/openmp.h"

namespace weft::cpu {
namespace {

using dnnl::memory;
using Dims = memory::dims;
using Plan = ConvolutionPlan;

// A batch is cut into so many blocks at most, whatever the number of threads.
constexpr int64_t kMaxBlocks = 16;
// What the parts of a sum over blocks may take.
constexpr int64_t kBytesOfParts = int64_t{64} << 20;
// What the library puts on the stack.
constexpr int64_t kStackOfLibrary = 1 << 20;

Dims Dense(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * std::max<int64_t>(dims[d + 1], 1);
  return strides;
}

// The first two dimensions exchanged.
Strided Exchanged(Strided a) {
  std::swap(a.dims[0], a.dims[1]), std::swap(a.strides[0], a.strides[1]);
  return a;
}

// Dimension d as [groups, rest].
void CutGroups(Strided* a, size_t d, int64_t groups) {
  a->dims[d] /= groups;
  a->dims.insert(a->dims.begin() + static_cast<int64_t>(d), groups);
  a->strides.insert(a->strides.begin() + static_cast<int64_t>(d), a->strides[d] * a->dims[d + 1]);
}

// The padding behind the last window of a convolution; nullopt where that would cut off.
std::optional<Dims> PaddingBehind(const ConvolutionProblem& p) {
  Dims hi;
  const size_t spatial = p.strides.size(), first = p.w.dims.size() - spatial;
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t end = (p.y.dims[d + 2] - 1) * p.strides[d] + (p.w.dims[first + d] - 1) * (p.dilation[d] + 1) + 1;
    const int64_t behind = end - p.lo[d] - p.x.dims[d + 2];
    if (p.lo[d] < 0 || behind <= -p.strides[d]) return std::nullopt;
    hi.push_back(std::max<int64_t>(behind, 0));
  }
  return hi;
}

bool AllOne(const std::vector<int64_t>& list) {
  return std::all_of(list.begin(), list.end(), [](int64_t n) { return n == 1; });
}

Dims LessOne(Dims list) {
  for (int64_t& n : list) --n;
  return list;
}

// What the library computes instead. `turned`: it wants the weights with the window the other way round.
struct Question {
  ConvolutionProblem problem;
  bool turned = false;
};

std::optional<Question> AsQuestion(const ConvolutionShape& s) {
  const size_t spatial = s.x.size() - 2;
  const Strided x{s.x, s.x_strides}, w{s.w, s.w_strides}, y{s.y, Dense(s.y)};
  int64_t windows = 1, places = 1;
  for (size_t d = 0; d < spatial; ++d) windows *= s.w[d + 2], places *= s.y[d + 2];
  Question q;
  ConvolutionProblem& p = q.problem;
  if (s.batch_groups > 1 || (windows > places && s.feature_groups == 1 && AllOne(s.base_dilation))) {
    // Of weights: x [c, n, ...] are the images, w [o, n, ...] the cotangents, and the dilation is the stride.
    if (!AllOne(s.base_dilation)) return std::nullopt;
    p.kind = ConvolutionKind::kWeights;
    p.x = Exchanged(x), p.y = Exchanged(w), p.w = Exchanged(y);
    if (s.batch_groups > 1) CutGroups(&p.w, 0, s.batch_groups);
    p.strides = s.window_dilation, p.dilation = LessOne(s.strides), p.lo = s.lo;
  } else if (!AllOne(s.base_dilation)) {
    // Of the input: x are the cotangents, spread out by the stride.
    if (!AllOne(s.strides)) return std::nullopt;
    p.kind = ConvolutionKind::kInput;
    p.y = x, p.x = y, p.w = w;
    CutGroups(&p.w, 0, s.feature_groups);  // [g, c, o, ...]
    std::swap(p.w.dims[1], p.w.dims[2]);
    p.w.strides = Dense(p.w.dims);
    q.turned = true;
    p.strides = s.base_dilation, p.dilation = LessOne(s.window_dilation);
    for (size_t d = 0; d < spatial; ++d) p.lo.push_back((s.w[d + 2] - 1) * s.window_dilation[d] - s.lo[d]);
    if (s.feature_groups == 1) p.w.dims.erase(p.w.dims.begin()), p.w.strides.erase(p.w.strides.begin());
  } else {
    p.x = x, p.w = w, p.y = y;
    if (s.feature_groups > 1) CutGroups(&p.w, 0, s.feature_groups);
    p.strides = s.strides, p.dilation = LessOne(s.window_dilation), p.lo = s.lo;
  }
  std::optional<Dims> hi = PaddingBehind(p);
  if (!hi) return std::nullopt;
  p.hi = std::move(*hi);
  return q;
}

// The weights [g c, o, window...] of a dilated convolution as [g, o, c, window...], the window the other way round.
void Turn(const ConvolutionShape& s, const float* w, float* to) {
  const int64_t groups = s.feature_groups, c = s.w[0] / groups, o = s.w[1];
  int64_t window = 1;
  for (size_t d = 2; d < s.w.size(); ++d) window *= s.w[d];
  std::vector<int64_t> offsets;  // of the places of a window, last to first
  for (int64_t k = window - 1; k >= 0; --k) {
    int64_t rest = k, offset = 0;
    for (size_t d = s.w.size() - 1; d >= 2; --d) {
      offset += rest % s.w[d] * s.w_strides[d];
      rest /= s.w[d];
    }
    offsets.push_back(offset);
  }
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t j = 0; j < o; ++j) {
      for (int64_t i = 0; i < c; ++i) {
        const float* from = w + (g * c + i) * s.w_strides[0] + j * s.w_strides[1];
        for (int64_t offset : offsets) *to++ = from[offset];
      }
    }
  }
}

// One array of a plan while it runs: its own memory, and the library's copy where it wants one.
struct Bound {
  memory own, used;
  std::unique_ptr<LayoutBuffer> buffer;
  Bound(const Plan::Array& array, const float* data)
      : own(array.own, ConvolutionEngine(), const_cast<float*>(data)), used(own) {
    if (!array.copy) return;
    buffer = std::make_unique<LayoutBuffer>(array.liked);
    used = memory(array.liked, ConvolutionEngine(), buffer->data());
  }
};

// An operand in the layout that the library likes.
std::unique_ptr<Bound> Given(dnnl::stream& stream, const Plan::Array& array, const float* data) {
  auto bound = std::make_unique<Bound>(array, data);
  if (array.copy) array.copy.execute(stream, bound->own, bound->used);
  return bound;
}

// `second`: the second operand, where it is the same for all blocks and was given already.
void RunBlock(const Plan& plan, const float* a, const float* b, const Bound* second, float* result) {
  EnsureStack(kStackOfLibrary, "a convolution");
  const SingleOpenMpThread single;
  const SignalsBlocked blocked;  // some convolutions are products
  dnnl::stream stream(ConvolutionEngine());
  const std::unique_ptr<Bound> first = Given(stream, plan.arrays[0], a);
  std::unique_ptr<Bound> own_second;
  if (second == nullptr) own_second = Given(stream, plan.arrays[1], b), second = own_second.get();
  Bound out(plan.arrays[2], result);
  const LayoutBuffer scratch(plan.scratch);
  plan.primitive.execute(stream, {{plan.arrays[0].argument, first->used},
                                  {plan.arrays[1].argument, second->used},
                                  {plan.arrays[2].argument, out.used},
                                  {DNNL_ARG_SCRATCHPAD, memory(plan.scratch, ConvolutionEngine(), scratch.data())}});
  if (plan.arrays[2].copy) plan.arrays[2].copy.execute(stream, out.used, out.own);
  stream.wait();
}

// Images, or outputs, cut into blocks of `per_block`, a multiple of `unit`; the last may have fewer.
struct Cut {
  int64_t count, per_block, blocks;
  Cut(int64_t count, int64_t most_blocks, int64_t unit = 1)
      : count(count),
        per_block((count + most_blocks * unit - 1) / (most_blocks * unit) * unit),
        blocks((count + per_block - 1) / per_block) {}
  int64_t Rest() const { return count - (blocks - 1) * per_block; }
};

// The plans of a block and of the last one; null where the library has none. `cut_to` makes the problem one of so many.
struct Plans {
  std::shared_ptr<const Plan> each, last;
  const Plan& Of(int64_t block, const Cut& cut) const { return block == cut.blocks - 1 ? *last : *each; }
};
template <class CutTo>
Plans PlansFor(ConvolutionProblem p, const Cut& cut, const CutTo& cut_to) {
  cut_to(&p, cut.per_block);
  Plans plans{PlanFor(p), nullptr};
  plans.last = plans.each;
  if (cut.Rest() != cut.per_block) {
    cut_to(&p, cut.Rest());
    plans.last = PlanFor(p);
  }
  return plans;
}
void ToImages(ConvolutionProblem* p, int64_t n) { p->x.dims[0] = p->y.dims[0] = n; }
void ToOutputs(ConvolutionProblem* p, int64_t n) { p->w.dims[0] = p->y.dims[1] = n; }

int64_t SizeOf(const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

// Images on their own: each block writes its part of the result.
bool ByImages(const ConvolutionProblem& p, int64_t nanoseconds, bool parallel, const float* images, const float* w,
              float* result) {
  const Strided &in = p.kind == ConvolutionKind::kForward ? p.x : p.y,
                &out = p.kind == ConvolutionKind::kForward ? p.y : p.x;
  const Cut cut(p.x.dims[0], parallel ? kMaxBlocks : 1);
  const Plans plans = PlansFor(p, cut, ToImages);
  if (plans.each == nullptr || plans.last == nullptr) return false;
  // Weights are brought into their layout once.
  dnnl::stream stream(ConvolutionEngine());
  const std::unique_ptr<Bound> weights = Given(stream, plans.each->arrays[1], w);
  std::unique_ptr<Bound> other;
  if (plans.last != plans.each) other = Given(stream, plans.last->arrays[1], w);
  stream.wait();
  ParallelFor(cut.blocks, parallel ? nanoseconds : 0, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b * cut.per_block;
      RunBlock(plans.Of(b, cut), images + first * in.strides[0], nullptr,
               b == cut.blocks - 1 && other ? other.get() : weights.get(), result + first * out.strides[0]);
    }
  });
  return true;
}

// Gradients by many weights, of one group: each block of outputs goes over all images.
bool ByOutputs(const ConvolutionProblem& p, int64_t nanoseconds, const float* images, const float* cotangents,
               float* result) {
  const Cut cut(p.w.dims[0], kMaxBlocks, 16);  // the library computes 16 outputs at a time
  const Plans plans = PlansFor(p, cut, ToOutputs);
  if (plans.each == nullptr || plans.last == nullptr) return false;
  ParallelFor(cut.blocks, nanoseconds, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b * cut.per_block;
      RunBlock(plans.Of(b, cut), images, cotangents + first * p.y.strides[1], nullptr, result + first * p.w.strides[0]);
    }
  });
  return true;
}

// A sum over images: each block writes a sum of its own, and those are added in their order.
bool OverImages(const ConvolutionProblem& p, int64_t nanoseconds, bool parallel, const float* images,
                const float* cotangents, float* result) {
  const int64_t size = SizeOf(p.w.dims), most = kBytesOfParts / (size * static_cast<int64_t>(sizeof(float)));
  const Cut cut(p.x.dims[0], parallel ? std::clamp<int64_t>(most, 1, kMaxBlocks) : 1);
  if (parallel && most < 4 && p.w.dims.size() == p.x.dims.size())
    return ByOutputs(p, nanoseconds, images, cotangents, result);
  const Plans plans = PlansFor(p, cut, ToImages);
  if (plans.each == nullptr || plans.last == nullptr) return false;
  std::unique_ptr<LayoutBuffer> parts;
  if (cut.blocks > 1)
    parts = std::make_unique<LayoutBuffer>(
        memory::desc({cut.blocks, size}, memory::data_type::f32, memory::format_tag::ab));
  float* const sums = parts ? static_cast<float*>(parts->data()) : result;
  ParallelFor(cut.blocks, parallel ? nanoseconds : 0, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b * cut.per_block;
      RunBlock(plans.Of(b, cut), images + first * p.x.strides[0], cotangents + first * p.y.strides[0], nullptr,
               sums + b * size);
    }
  });
  if (!parts) return true;
  ParallelFor(size, size * cut.blocks / 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) result[i] = sums[i];
    for (int64_t b = 1; b < cut.blocks; ++b) {
      for (int64_t i = begin; i < end; ++i) result[i] += sums[b * size + i];
    }
  });
  return true;
}

}  // namespace

bool ConvolveByLibrary(const ConvolutionShape& s, const float* x, const float* w, float* y) try {
  const size_t spatial = s.x.size() - 2;
  if (spatial < 1 || spatial > 3) return false;
  const auto forwards = [](int64_t stride) { return stride > 0; };
  if (!std::all_of(s.x_strides.begin(), s.x_strides.end(), forwards)) return false;
  const std::optional<Question> q = AsQuestion(s);
  if (!q) return false;
  if (!q->turned && !std::all_of(s.w_strides.begin(), s.w_strides.end(), forwards)) return false;
  double flops = 2.0 * static_cast<double>(SizeOf(s.y));
  for (size_t d = 1; d < s.w.size(); ++d) flops *= static_cast<double>(s.w[d]);
  for (int64_t n : s.base_dilation) flops /= static_cast<double>(n);
  // Below this the library's own copies and calls weigh more than threads bring.
  const int64_t nanoseconds = static_cast<int64_t>(flops / 50);
  const bool parallel = nanoseconds >= 2 * kMinParallelNanoseconds;
  const SingleOpenMpThread single;
  if (q->problem.kind == ConvolutionKind::kWeights) return OverImages(q->problem, nanoseconds, parallel, x, w, y);
  std::unique_ptr<LayoutBuffer> turned;
  if (q->turned) {
    turned = std::make_unique<LayoutBuffer>(q->problem.w.desc());
    Turn(s, w, static_cast<float*>(turned->data()));
    w = static_cast<const float*>(turned->data());
  }
  return ByImages(q->problem, nanoseconds, parallel, x, w, y);
} catch (const dnnl::error& error) {
  if (error.status == dnnl_out_of_memory) throw NoRoomForConvolution();
  throw std::runtime_error(std::string("oneDNN refuses a convolution: ") + error.what());
}

}  // namespace weft::cpu
