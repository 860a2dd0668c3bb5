// Convolutions by oneDNN.
#ifndef WEFT_BACKENDS_CPU_OPS_CONVOLUTION_H_
#define WEFT_BACKENDS_CPU_OPS_CONVOLUTION_H_

#include <cstdint>
#include <vector>

namespace weft::cpu {

// x [n, c, spatial...], w [o, i, spatial...], y [n, o, spatial...], as the primitive conv has them; one entry per
// spatial dimension in the lists.
struct ConvolutionShape {
  std::vector<int64_t> x, w, y;
  std::vector<int64_t> strides, lo, base_dilation, window_dilation;
  int64_t feature_groups = 1, batch_groups = 1;
};

// Computes it and returns true; false, with nothing done, for what oneDNN does not have: no or more than three spatial
// dimensions, a dilated x, padding that cuts off, batch groups. The result does not depend on the number of threads.
bool ConvolveByLibrary(const ConvolutionShape& shape, const float* x, const float* w, float* y);

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_OPS_CONVOLUTION_H_
