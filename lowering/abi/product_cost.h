// How long a product of matrices takes, as whoever plans programs and whoever runs them see it.
#ifndef WEFT_LOWERING_ABI_PRODUCT_COST_H_
#define WEFT_LOWERING_ABI_PRODUCT_COST_H_

#include <cstdint>

namespace weft {

// Products of fewer nanoseconds run on one thread.
inline constexpr double kProductOfThreads = 60000;

// Where products run side by side, what takes so many is a part that a thread may take.
inline constexpr double kPartOfProduct = 10000;

// Of [m, k] and [k, n], `width` bytes an element, on one thread: about 50 operations of f32 per nanosecond, a quarter
// to half of it elsewhere.
inline double ProductNanoseconds(double m, double n, double k, int64_t width) {
  return 2 * m * n * k * static_cast<double>(width) / 4 / 50;
}

}  // namespace weft
#endif  // WEFT_LOWERING_ABI_PRODUCT_COST_H_
