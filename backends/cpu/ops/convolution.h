// Convolutions by oneDNN, and their gradients, which are convolutions too.
#ifndef WEFT_BACKENDS_CPU_OPS_CONVOLUTION_H_
#define WEFT_BACKENDS_CPU_OPS_CONVOLUTION_H_

#include <cstdint>
#include <vector>

namespace weft::cpu {

// x [n, c, spatial...], w [o, i, spatial...], y [n, o, spatial...], as the primitive conv has them; one entry per
// spatial dimension in the lists. x and w lie by strides, in elements; y is dense.
struct ConvolutionShape {
  std::vector<int64_t> x, w, y, x_strides, w_strides;
  std::vector<int64_t> strides, lo, base_dilation, window_dilation;
  int64_t feature_groups = 1, batch_groups = 1;
};

// Computes it and returns true; false, with nothing done, for what oneDNN does not have: no or more than three spatial
// dimensions, padding that cuts off, strides of x and w that are not positive. The result does not depend on the number
// of threads.
//
// What a gradient is, is seen from its shape: a window that is larger than the result is the gradient by the weights
// (batch groups are always one), a dilated x the gradient by the input, for which oneDNN has primitives of their own.
bool ConvolveByLibrary(const ConvolutionShape& shape, const float* x, const float* w, float* y);

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_OPS_CONVOLUTION_H_
