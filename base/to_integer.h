// A floating-point number as an integer, as `convert` defines it wherever Weft does so: truncated towards zero; what is
// out of range becomes the end of the range, and NaN 0. C++ leaves those two undefined.
#ifndef WEFT_BASE_TO_INTEGER_H_
#define WEFT_BASE_TO_INTEGER_H_

#include <cmath>
#include <limits>

namespace weft {

template <class T>
T ToInteger(double x) {
  constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double high = static_cast<double>(std::numeric_limits<T>::max());
  const double v = std::trunc(x);
  if (std::isnan(v)) return T{0};
  if (v <= low) return std::numeric_limits<T>::min();
  return v >= high ? std::numeric_limits<T>::max() : static_cast<T>(v);
}

}  // namespace weft
#endif  // WEFT_BASE_TO_INTEGER_H_
