// How a product of matrices is computed and how long it takes, as whoever plans programs and whoever runs them see it.
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

// Whether oneDNN is the one for a product of f32 with so many multiplications. It is a tenth faster than OpenBLAS for
// large ones, 2 us slower for small ones, and takes 40 ms before its first.
inline bool IsForOneDnn(double multiplications) { return multiplications > (1 << 19); }

// Whether to compute half of a symmetric product of n rows in calls of kRowsOfHalf rows is quicker than all of it in
// one: what is saved grows with k, what it costs to write the other half with n, and more where that leaves the caches.
inline constexpr int64_t kRowsOfHalf = 48;
inline bool IsWorthHalving(int64_t n, int64_t k) { return n >= 2 * kRowsOfHalf && k >= (n > 1280 ? n / 20 : 64); }

}  // namespace weft
#endif  // WEFT_LOWERING_ABI_PRODUCT_COST_H_
