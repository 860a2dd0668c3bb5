// Primitives of oneDNN for convolutions and their gradients, made once and kept.
#ifndef WEFT_BACKENDS_CPU_OPS_CONVOLUTION_PLANS_H_
#define WEFT_BACKENDS_CPU_OPS_CONVOLUTION_PLANS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "backends/cpu/core/buffer_cache.h"
#include "base/out_of_memory.h"
#include <oneapi/dnnl/dnnl.hpp>

namespace weft::cpu {

enum class ConvolutionKind { kForward, kInput, kWeights };  // itself, its gradient by the input, by the weights

// An array of f32 that lies by strides, in elements.
struct Strided {
  dnnl::memory::dims dims, strides;
  dnnl::memory::desc desc() const { return {dims, dnnl::memory::data_type::f32, strides}; }
  auto key() const { return std::tie(dims, strides); }
  friend bool operator<(const Strided& a, const Strided& b) { return a.key() < b.key(); }
};

// A convolution of images x with weights w to y, and which of the three is computed from the other two. w has the
// groups in front where there are several.
struct ConvolutionProblem {
  ConvolutionKind kind = ConvolutionKind::kForward;
  Strided x, w, y;
  dnnl::memory::dims strides, dilation, lo, hi;
  auto key() const { return std::tie(kind, x, w, y, strides, dilation, lo, hi); }
  friend bool operator<(const ConvolutionProblem& a, const ConvolutionProblem& b) { return a.key() < b.key(); }
};

// The first two of its arrays are read, the last is written; each has the layout that the library likes best, and a
// copy from or to its own, empty where that is the same.
struct ConvolutionPlan {
  struct Array {
    int argument = 0;
    dnnl::memory::desc own, liked;
    dnnl::reorder copy;
  };
  dnnl::primitive primitive;
  std::array<Array, 3> arrays;
  dnnl::memory::desc scratch;
};

const dnnl::engine& ConvolutionEngine();
// Null when the library has none. Raises OutOfMemory.
std::shared_ptr<const ConvolutionPlan> PlanFor(const ConvolutionProblem& problem);

// Memory for a layout, given back at the end of its scope.
class LayoutBuffer {
 public:
  explicit LayoutBuffer(const dnnl::memory::desc& desc);
  ~LayoutBuffer() { FreeRaw(data_, bytes_); }
  LayoutBuffer(const LayoutBuffer&) = delete;
  LayoutBuffer& operator=(const LayoutBuffer&) = delete;
  void* data() const { return data_; }

 private:
  int64_t bytes_;
  void* data_;
};

OutOfMemory NoRoomForConvolution();

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_OPS_CONVOLUTION_PLANS_H_
