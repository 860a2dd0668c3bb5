// Internal to lowering/*.cc: functions of complex numbers of 64 bits, in vectors of f64.
#ifndef WEFT_LOWERING_CPU_MLIR_COMPLEX_MATH_H_
#define WEFT_LOWERING_CPU_MLIR_COMPLEX_MATH_H_

#include <utility>

#include "lowering/cpu/mlir/vector_math.h"

namespace weft {

// Real and imaginary parts, in f64. Arguments are finite numbers that f32 holds, so their squares and the products of
// two of them are exact; results are rounded to f32 once.
using ComplexLanes = std::pair<Value, Value>;

struct ComplexMath {
  static ComplexLanes Exp(VectorMath& math, const ComplexLanes& z);
  static ComplexLanes Exp2(VectorMath& math, const ComplexLanes& z);
  static ComplexLanes Expm1(VectorMath& math, const ComplexLanes& z);
  static ComplexLanes Log(VectorMath& math, const ComplexLanes& z);  // not of 0
  static ComplexLanes Sqrt(VectorMath& math, const ComplexLanes& z);
  static ComplexLanes Sin(VectorMath& math, const ComplexLanes& z);
  static ComplexLanes Cos(VectorMath& math, const ComplexLanes& z);
  static ComplexLanes Tan(VectorMath& math, const ComplexLanes& z);
  static ComplexLanes Sinh(VectorMath& math, const ComplexLanes& z);
  static ComplexLanes Cosh(VectorMath& math, const ComplexLanes& z);
  static ComplexLanes Tanh(VectorMath& math, const ComplexLanes& z);
  static ComplexLanes Pow(VectorMath& math, const ComplexLanes& z, const ComplexLanes& w);  // not of 0
  static ComplexLanes Div(VectorMath& math, const ComplexLanes& z, const ComplexLanes& w);  // w is not 0
  static ComplexLanes Abs(VectorMath& math, const ComplexLanes& z);                         // the second is null
};

}  // namespace weft
#endif  // WEFT_LOWERING_CPU_MLIR_COMPLEX_MATH_H_
