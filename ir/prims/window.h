// Windows sliding over one dimension: the arithmetic that reduce_window and conv share.
#ifndef WEFT_IR_PRIMS_WINDOW_H_
#define WEFT_IR_PRIMS_WINDOW_H_

#include "ir/dim.h"
#include "ir/prim.h"

namespace weft {

// One dimension: n elements, base_dilation - 1 holes between neighbours, lo and hi elements of padding (negative: cut
// off); in it a window of `window` elements, window_dilation - 1 elements between neighbours, moved by `stride`.
struct WindowDim {
  int64_t window = 1, stride = 1, lo = 0, hi = 0, base_dilation = 1, window_dilation = 1;

  // A window of one element on every element.
  bool trivial() const { return window == 1 && stride == 1 && lo == 0 && hi == 0 && base_dilation == 1; }
  static int64_t Dilated(int64_t n, int64_t dilation) { return n == 0 ? 0 : (n - 1) * dilation + 1; }
  // How many places the window has. Symbolic sizes only when trivial; `what` is for the error.
  Dim Places(const Dim& n, const char* what) const;
  // The element under window position `at` in place `place`, -1 for padding and holes.
  int64_t Source(int64_t place, int64_t at, int64_t n) const {
    const int64_t i = place * stride + at * window_dilation - lo;
    return i < 0 || i % base_dilation != 0 || i / base_dilation >= n ? -1 : i / base_dilation;
  }
  // The dimension with base and window exchanged in the way that makes sums over windows run backwards: stride and base
  // dilation change places, and the padding is such that `places` places lead back to n (the arithmetic of JAX's
  // _conv_general_vjp_lhs_padding).
  WindowDim Backwards(int64_t n, int64_t places) const;
};

// Raises kValue, naming primitive, dimension and attribute, unless sizes, strides and dilations are at least 1.
void CheckWindow(const Sig& sig, int dim, const WindowDim& w);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_WINDOW_H_
