// The product of two numbers, as every part of Weft means it: the interpreter, the CPU's runtime and generated code.
//
// Of complex numbers it is the formula, (ac - bd) + (ad + bc)i, as in NumPy and XLA: (inf + inf i) * (1 + 0i) is NaN.
// C's own operator recovers the infinity there (C11, Annex G.5.1).
#ifndef WEFT_IR_PRODUCT_H_
#define WEFT_IR_PRODUCT_H_

#include <complex>

namespace weft {

template <class T>
T Product(const T& x, const T& y) {
  return static_cast<T>(x * y);
}

template <class T>
std::complex<T> Product(const std::complex<T>& x, const std::complex<T>& y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}

}  // namespace weft
#endif  // WEFT_IR_PRODUCT_H_
