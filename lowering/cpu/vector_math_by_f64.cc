// Functions of f32 that are computed in f64 lanes: their formulas lose a few digits of that, and the result is rounded
// once. Of f64 the library's are used.
#include <cmath>
#include <limits>
#include <numbers>

#include "lowering/cpu/mlir/vector_math.h"

namespace weft {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

// erfc(a) = scaled(a) exp(-a^2), for a in [0, 10.2], to 4e-9 of itself: beyond it is 0 in f32. The polynomials are
// nearest to (a + 3) exp(a^2) erfc(a), in 1 / (a + 3), and to e^r, relative to them.
VectorMath::Erfcs VectorMath::ErfcOfF64(Value a) {
  Value t = m_.Div(C(a, 1), m_.Add(a, C(a, 3)));
  Value scaled = m_.Mul(
      t, Horner(t, {0.5641093279369463, 1.6980516129164718, 4.631592641814894, 15.520110416448997, -0.09258022679500777,
                    292.0929591361869, -957.4898725873234, 3498.521807625422, -5729.651244273372, 3278.717070014617}));
  auto [r, k_word, k, kf] = ReduceExp(m_.Neg(m_.Mul(a, a)));
  Value e = Horner(r, {1.0000000005529146, 1.000000036210132, 0.49999992080966993, 0.16666420613678384,
                       0.04166822825612599, 0.008374782679983647, 0.0013836566346549985});
  return {scaled, m_.Mul(m_.Mul(scaled, e), PowerOfTwo(k))};
}

// Near 0 a polynomial; elsewhere M. Giles's start ("Approximating the erfinv function", GPU Computing Gems, 2012),
// whose 6 digits one step of Newton's method doubles. The derivative of erfc is -2 / sqrt(pi) exp(-y^2).
Value VectorMath::ErfInv(Value x) {
  if (!Is32(x)) return library_("erf_inv", {x});
  Value w = m_.ExtF(x, m_.f64()), a = m_.Abs(w), one = C(w, 1);
  Value z = m_.Mul(w, w);
  Value small = m_.Mul(a, Horner(z, {0.8862269261474178, 0.23201340206035376, 0.1275726008668439, 0.08617236913161103,
                                     0.06908024664181552, 0.029462476237517403, 0.09800722012447029}));
  Value rest = m_.Sub(one, a);
  Value log = m_.Neg(Log(m_.Mul(rest, m_.Add(one, a))));
  Value start = Horner(m_.Sub(log, C(w, 2.5)), {1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087,
                                                -4.39150654e-06, -3.5233877e-06, 3.43273939e-07, 2.81022636e-08});
  Value far =
      Horner(m_.Sub(m_.Sqrt(log), C(w, 3)), {2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773,
                                             -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257});
  Value y = m_.Mul(a, m_.Select(m_.Cmp(Pred::OLT, log, C(w, 5)), start, far));
  auto [scaled, value] = ErfcOfF64(y);
  Value step = m_.Mul(m_.Div(m_.Sub(value, rest), rest), m_.Mul(scaled, C(w, 0.5 * std::sqrt(std::numbers::pi))));
  y = m_.Select(m_.Cmp(Pred::OLT, a, C(w, 0.5)), small, m_.Add(y, step));
  y = m_.Select(m_.Cmp(Pred::OEQ, a, one), C(w, kInf), y);
  y = m_.Select(m_.Cmp(Pred::OLE, a, one), y, C(w, kNan));
  return m_.CopySign(m_.TruncF(y, m_.f32()), x);
}

Value VectorMath::Asinh(Value x) {
  if (!Is32(x)) return library_("asinh", {x});
  Value a = m_.ExtF(m_.Abs(x), m_.f64()), one = C(a, 1);
  Value z = m_.Mul(a, a);
  Value y = Log1p(m_.Add(a, m_.Div(z, m_.Add(one, m_.Sqrt(m_.Add(z, one))))));
  Value result = m_.CopySign(m_.TruncF(y, m_.f32()), x);
  return m_.Select(m_.Cmp(Pred::OLT, m_.Abs(x), C(x, kInf)), result, x);
}

Value VectorMath::Acosh(Value x) {
  if (!Is32(x)) return library_("acosh", {x});
  Value w = m_.ExtF(x, m_.f64());
  Value u = m_.Sub(w, C(w, 1));
  Value y = Log1p(m_.Add(u, m_.Sqrt(m_.Mul(u, m_.Add(w, C(w, 1))))));  // NaN below 1
  return m_.TruncF(m_.Select(m_.Cmp(Pred::OLT, w, C(w, 1)), C(w, kNan), y), m_.f32());
}

Value VectorMath::Atanh(Value x) {
  if (!Is32(x)) return library_("atanh", {x});
  Value a = m_.ExtF(m_.Abs(x), m_.f64()), one = C(a, 1);
  Value y = m_.Mul(C(a, 0.5), Log1p(m_.Div(m_.Add(a, a), m_.Sub(one, a))));
  y = m_.Select(m_.Cmp(Pred::OLE, a, one), y, C(a, kNan));
  return m_.CopySign(m_.TruncF(y, m_.f32()), x);
}

Value VectorMath::Cbrt(Value x) {
  if (!Is32(x)) return library_("cbrt", {x});
  Value a = m_.ExtF(m_.Abs(x), m_.f64());
  Value y = Exp(m_.Mul(Log(a), C(a, 1.0 / 3)));  // of 0 and of infinity, too
  return m_.CopySign(m_.TruncF(y, m_.f32()), x);
}

// Of numbers whose quotient has less than 30 bits: its product with the divisor has 53 then, and what is left is exact.
Value VectorMath::Rem(Value x, Value y) {
  if (!Is32(x)) return library_("rem", {x, y});
  Value a = m_.ExtF(m_.Abs(x), m_.f64()), b = m_.ExtF(m_.Abs(y), m_.f64());
  Value quotient = m_.Div(a, b);
  // Of what is not finite the quotient is not, or 0: infinity and NaN are not less than infinity.
  Value large = m_.And(m_.Cmp(Pred::OGE, quotient, C(a, 536870912.0)), m_.Cmp(Pred::OLT, quotient, C(a, kInf)));
  const auto compute = [&]() -> Value {
    Value whole = m_.Make<mlir::math::TruncOp>(quotient);
    Value rest = m_.Fma(m_.Neg(whole), b, a);
    rest = m_.Select(m_.Cmp(Pred::OLT, rest, C(a, 0)), m_.Add(rest, b), rest);  // the quotient was rounded up
    rest = m_.Select(m_.And(m_.Cmp(Pred::OEQ, b, C(a, kInf)), m_.Cmp(Pred::OLT, a, C(a, kInf))), a, rest);
    Value result = m_.TruncF(rest, m_.f32());
    return m_.Select(m_.IsNan(result), result, m_.CopySign(result, x));  // the processor's NaN, as the library gives
  };
  auto branch = m_.b.create<mlir::scf::IfOp>(m_.loc, mlir::TypeRange{x.getType()}, AnyLane(large), true);
  mlir::OpBuilder::InsertionGuard guard(m_.b);
  m_.b.setInsertionPointToStart(branch.thenBlock());
  m_.b.create<mlir::scf::YieldOp>(m_.loc, library_("rem", {x, y}));
  m_.b.setInsertionPointToStart(branch.elseBlock());
  m_.b.create<mlir::scf::YieldOp>(m_.loc, compute());
  return branch.getResult(0);
}

}  // namespace weft
