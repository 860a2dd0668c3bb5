// The formulas of M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, 3.7 and 4.2 to 4.5, in forms that do
// not cancel.
#include "lowering/cpu/mlir/complex_math.h"

#include <numbers>

namespace weft {
namespace {

// What f64 holds of hyperbolic functions, and of products of two of them; f32 ends long before.
constexpr double kLargest = 709, kLargestOfProducts = 350;

Value Clamped(VectorMath& math, Value x, double most) {
  MlirBuilder& m = math.m();
  return m.RawMin(m.RawMax(x, math.C(x, -most)), math.C(x, most));
}

// sinh(x) cosh(x) / d and sin(y) cos(y) / d, where d = sinh(x)^2 + cos(y)^2: the parts of tanh(x + iy).
ComplexLanes OfTangent(VectorMath& math, Value x, Value y) {
  MlirBuilder& m = math.m();
  x = Clamped(math, x, kLargestOfProducts);
  Value sinh = math.Sinh(x), cosh = math.Cosh(x);
  const auto [sin, cos] = math.SinAndCos(y);
  Value d = m.Add(m.Mul(sinh, sinh), m.Mul(cos, cos));
  return {m.Div(m.Mul(sinh, cosh), d), m.Div(m.Mul(sin, cos), d)};
}

Value Modulus(VectorMath& math, const ComplexLanes& z) {
  MlirBuilder& m = math.m();
  return m.Sqrt(m.Add(m.Mul(z.first, z.first), m.Mul(z.second, z.second)));
}

}  // namespace

ComplexLanes ComplexMath::Abs(VectorMath& math, const ComplexLanes& z) { return {Modulus(math, z), Value()}; }

ComplexLanes ComplexMath::Div(VectorMath& math, const ComplexLanes& z, const ComplexLanes& w) {
  MlirBuilder& m = math.m();
  const auto& [a, b] = z;
  const auto& [c, d] = w;
  Value square = m.Add(m.Mul(c, c), m.Mul(d, d));
  return {m.Div(m.Add(m.Mul(a, c), m.Mul(b, d)), square), m.Div(m.Sub(m.Mul(b, c), m.Mul(a, d)), square)};
}

ComplexLanes ComplexMath::Exp(VectorMath& math, const ComplexLanes& z) {
  MlirBuilder& m = math.m();
  Value e = math.Exp(m.RawMin(z.first, math.C(z.first, kLargest)));
  const auto [sin, cos] = math.SinAndCos(z.second);
  return {m.Mul(e, cos), m.Mul(e, sin)};
}

ComplexLanes ComplexMath::Exp2(VectorMath& math, const ComplexLanes& z) {
  MlirBuilder& m = math.m();
  Value log = math.C(z.first, std::numbers::ln2);
  return Exp(math, {m.Mul(z.first, log), m.Mul(z.second, log)});
}

// e^x cos(y) - 1 = (e^x - 1) cos(y) - 2 sin(y / 2)^2, +0 at -0 too.
ComplexLanes ComplexMath::Expm1(VectorMath& math, const ComplexLanes& z) {
  MlirBuilder& m = math.m();
  Value x = m.RawMin(z.first, math.C(z.first, kLargest));
  const auto [sin, cos] = math.SinAndCos(z.second);
  Value half = math.Sin(m.Mul(z.second, math.C(x, 0.5)));
  Value real = m.Sub(m.Mul(math.Expm1(x), cos), m.Mul(math.C(x, 2), m.Mul(half, half)));
  return {m.Add(real, math.C(x, 0)), m.Mul(math.Exp(x), sin)};
}

// Half the logarithm of x^2 + y^2, with what the sum's rounding took from it: near 1 the logarithm shows it.
ComplexLanes ComplexMath::Log(VectorMath& math, const ComplexLanes& z) {
  MlirBuilder& m = math.m();
  const auto& [x, y] = z;
  Value steep = m.Cmp(Pred::OLT, m.Abs(x), m.Abs(y));
  Value more = m.Select(steep, y, x), less = m.Select(steep, x, y);
  Value square = m.Mul(more, more), other = m.Mul(less, less);
  Value sum = m.Add(square, other), rest = m.Add(m.Sub(square, sum), other);
  Value log = m.Add(math.Log(sum), m.Div(rest, sum));
  return {m.Mul(log, math.C(x, 0.5)), math.Atan2(y, x)};
}

ComplexLanes ComplexMath::Sqrt(VectorMath& math, const ComplexLanes& z) {
  MlirBuilder& m = math.m();
  const auto& [x, y] = z;
  Value half = math.C(x, 0.5), zero = math.C(x, 0);
  Value u = m.Sqrt(m.Mul(half, m.Add(Modulus(math, z), m.Abs(x))));
  Value v = m.Select(m.Cmp(Pred::OEQ, u, zero), zero, m.Div(m.Mul(half, m.Abs(y)), u));
  Value left = m.Cmp(Pred::OLT, x, zero);
  return {m.Select(left, v, u), m.CopySign(m.Select(left, u, v), y)};
}

ComplexLanes ComplexMath::Sinh(VectorMath& math, const ComplexLanes& z) {
  MlirBuilder& m = math.m();
  Value x = Clamped(math, z.first, kLargest);
  const auto [sin, cos] = math.SinAndCos(z.second);
  return {m.Mul(math.Sinh(x), cos), m.Mul(math.Cosh(x), sin)};
}

ComplexLanes ComplexMath::Cosh(VectorMath& math, const ComplexLanes& z) {
  MlirBuilder& m = math.m();
  Value x = Clamped(math, z.first, kLargest);
  const auto [sin, cos] = math.SinAndCos(z.second);
  return {m.Mul(math.Cosh(x), cos), m.Mul(math.Sinh(x), sin)};
}

// sin(z) = -i sinh(i z), cos(z) = cosh(i z)
ComplexLanes ComplexMath::Sin(VectorMath& math, const ComplexLanes& z) {
  MlirBuilder& m = math.m();
  Value y = Clamped(math, z.second, kLargest);
  const auto [sin, cos] = math.SinAndCos(z.first);
  return {m.Mul(sin, math.Cosh(y)), m.Mul(cos, math.Sinh(y))};
}

ComplexLanes ComplexMath::Cos(VectorMath& math, const ComplexLanes& z) {
  MlirBuilder& m = math.m();
  Value y = Clamped(math, z.second, kLargest);
  const auto [sin, cos] = math.SinAndCos(z.first);
  return {m.Mul(cos, math.Cosh(y)), m.Neg(m.Mul(sin, math.Sinh(y)))};
}

ComplexLanes ComplexMath::Tanh(VectorMath& math, const ComplexLanes& z) { return OfTangent(math, z.first, z.second); }

// tan(z) = -i tanh(i z)
ComplexLanes ComplexMath::Tan(VectorMath& math, const ComplexLanes& z) {
  const auto [imaginary, real] = OfTangent(math, z.second, z.first);
  return {real, imaginary};
}

ComplexLanes ComplexMath::Pow(VectorMath& math, const ComplexLanes& z, const ComplexLanes& w) {
  MlirBuilder& m = math.m();
  const auto [re, im] = Log(math, z);
  const auto& [u, v] = w;
  Value exponent = m.Sub(m.Mul(u, re), m.Mul(v, im));
  Value bounded = m.RawMax(exponent, math.C(exponent, -745));
  const auto [real, imaginary] = Exp(math, {bounded, m.Add(m.Mul(u, im), m.Mul(v, re))});
  Value is_one = m.And(m.Cmp(Pred::OEQ, u, math.C(u, 1)), m.Cmp(Pred::OEQ, v, math.C(v, 0)));
  return {m.Select(is_one, z.first, real), m.Select(is_one, z.second, imaginary)};
}

}  // namespace weft
