// Rows for element-wise primitives: type rule, reference meaning and partial derivatives in one call.
#ifndef WEFT_IR_PRIMS_ELEMENTWISE_H_
#define WEFT_IR_PRIMS_ELEMENTWISE_H_

#include <complex>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ir/ops.h"
#include "ir/prim.h"

namespace weft {

// The meaning of an element-wise operation on one element, per kind of number. Floats are computed in double and
// rounded once, so the reference is (nearly) correctly rounded for f32 and narrower. Integers wrap to their width.
template <int kArity>
struct ScalarMeaning {
  template <class K, class R>
  using Function = std::conditional_t<kArity == 1, std::function<R(K)>, std::function<R(K, K)>>;
  Function<double, double> on_double;
  Function<std::complex<double>, std::complex<double>> on_complex;
  Function<int64_t, int64_t> on_signed;
  Function<uint64_t, uint64_t> on_unsigned;  // bool too, as 0 or 1
};

// The same formula for several kinds of number.
template <int kArity, class F>
ScalarMeaning<kArity> OnFloats(F f) {
  ScalarMeaning<kArity> m;
  m.on_double = f;
  return m;
}
template <int kArity, class F>
ScalarMeaning<kArity> OnInexact(F f) {
  ScalarMeaning<kArity> m;
  m.on_double = f;
  m.on_complex = f;
  return m;
}
template <int kArity, class F>
ScalarMeaning<kArity> OnInts(F f) {
  ScalarMeaning<kArity> m;
  m.on_signed = f;
  m.on_unsigned = f;
  return m;
}
template <int kArity, class F>
ScalarMeaning<kArity> OnReals(F f) {
  ScalarMeaning<kArity> m = OnInts<kArity>(f);
  m.on_double = f;
  return m;
}
template <int kArity, class F>
ScalarMeaning<kArity> OnNumbers(F f) {
  ScalarMeaning<kArity> m = OnReals<kArity>(f);
  m.on_complex = f;
  return m;
}

// Loads every element as K, or stores a vector of K with the rounding or wrapping of `dtype`.
template <class K>
std::vector<K> LoadAs(const Tensor& t);
template <class K>
Tensor StoreAs(DType dtype, const Shape& shape, absl::Span<const K> values);

using UnaryPartial = std::function<std::optional<Expr>(Expr x, Expr y)>;
using BinaryPartials = std::function<std::pair<std::optional<Expr>, std::optional<Expr>>(Expr x, Expr w, Expr y)>;

// What else a row declares.
struct Declared {
  // Operations per element: about the length of the vector code (lowering/cpu/vector_math.cc) of what is not one.
  double work = 1;
  // By how many units in the last place compiled code may be off, in f32 and in f64, measured over the whole range and
  // rounded up. 0: it is rounded correctly.
  double ulps = 0;
  // Prim::formula and Prim::example.
  const char* formula = "";
  const char* example = "";
};

// y = name(x). The partial derivative is given x and the result y; nullptr when results are not inexact.
Prim& AddUnary(PrimRegistry& r, const char* name, DTypeSet dtypes, ScalarMeaning<1> meaning, UnaryPartial partial,
               const char* doc, const Declared& more = {});
Prim& AddBinary(PrimRegistry& r, const char* name, DTypeSet dtypes, ScalarMeaning<2> meaning, BinaryPartials partials,
                const char* doc, const Declared& more = {});

// Of complex results the bound is at least kComplexUlps of the magnitude.
inline constexpr double kComplexUlps = 2;

// The derivative is zero wherever it exists: a declaration, not a default.
inline std::optional<Expr> ZeroDerivative(Expr, Expr) { return std::nullopt; }

// Shape rule of every element-wise primitive: operands agree; rank-0 literals fit everything. Checks dtypes of all
// operands to be equal and in prim.dtypes.
Type InferElementwise(const Sig& sig);
// Shape only; dtypes are the caller's business.
Type JoinShapes(const Sig& sig);
void BatchElementwise(BatchContext& c);
// Samples over all dtypes: equal shapes, a literal operand, zero size.
std::vector<Sample> ElementwiseSamples(const Prim& prim);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_ELEMENTWISE_H_
