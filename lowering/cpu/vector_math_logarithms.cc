// Logarithms of f32 and f64 values, scalars or vectors.
#include <cmath>
#include <cstdint>
#include <limits>

#include "lowering/cpu/mlir/vector_math.h"

namespace weft {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

// x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
VectorMath::Binade VectorMath::SplitForLog(Value x) {
  const bool f32 = Is32(x);
  Value tiny = m_.Cmp(Pred::OLT, x, C(x, f32 ? 0x1p-126 : 0x1p-1022));
  Value scaled = m_.Select(tiny, m_.Mul(x, C(x, f32 ? 0x1p23 : 0x1p52)), x);
  MType word = f32 ? m_.i32() : m_.i64();
  MType words = MlirBuilder::As(x.getType(), word);
  // m in [sqrt(1/2), sqrt(2)), x = 2^e m.
  const int64_t root = f32 ? 0x3F3504F3 : 0x3FE6A09E667F3BCD;
  Value offset = m_.ISub(m_.Bits(scaled, word), m_.I(words, root));
  Value e, m;
  if (f32) {
    e = m_.IToF(m_.ShrS(offset, 23), m_.f32());
    m = m_.Bits(m_.IAdd(m_.And(offset, m_.I(words, 0x007FFFFF)), m_.I(words, root)), m_.f32());
  } else {
    // 64-bit integers have no cheap signed shift or conversion before AVX-512: bias, and place in a double's mantissa.
    Value biased = m_.ShrU(m_.IAdd(offset, m_.I(words, int64_t{1023} << 52)), 52);
    e = m_.Sub(m_.Bits(m_.Or(biased, m_.I(words, 0x4330000000000000)), m_.f64()), C(x, 0x1p52 + 1023));
    m = m_.Bits(m_.IAdd(m_.And(offset, m_.I(words, 0x000FFFFFFFFFFFFF)), m_.I(words, root)), m_.f64());
  }
  e = m_.Select(tiny, m_.Sub(e, C(x, f32 ? 23 : 52)), e);
  return {e, m_.Sub(m, C(x, 1))};
}

// log(1 + f) less f - f^2/2, plus `more`.
Value VectorMath::LogRest(Value f, Value more) {
  if (Is32(f)) {
    Value p = Horner(
        f, {0.33333312604886634, -0.25000009589110478, 0.20002118586263069, -0.16667996047017649, 0.1421955401725052,
            -0.1240558983863777, 0.11888153171824042, -0.11675631588125611, 0.067466255442152954});
    return m_.Fma(m_.Mul(m_.Mul(f, f), f), p, more);
  }
  // s (f^2/2 + z P(z)), s = f/(2+f), z = s^2.
  Value s = m_.Div(f, m_.Add(f, C(f, 2)));
  Value z = m_.Mul(s, s);
  Value p = m_.Mul(z, Horner(z, {0.66666666666667349, 0.39999999999411114, 0.28571428743259299, 0.22222198476224613,
                                 0.18183569732552245, 0.15313903309495017, 0.14797508217555186}));
  return m_.Fma(s, m_.Add(m_.Mul(m_.Mul(f, f), C(f, 0.5)), p), more);
}

// log(2^e (1 + f)), plus `more` (null: nothing).
Value VectorMath::LogOfBinade(const Binade& x, Value more) {
  const auto [e, f] = x;
  const bool f32 = Is32(f);
  const double ln2 = f32 ? 0.693359375 : 6.93147180369123816490e-01;
  Value rest = C(f, f32 ? -2.12194440e-4 : 1.90821492927058770002e-10);
  Value lo = LogRest(f, more ? m_.Fma(e, rest, more) : m_.Mul(e, rest));
  if (f32) return m_.Fma(e, C(f, ln2), m_.Add(f, m_.Fma(m_.Mul(f, f), C(f, -0.5), lo)));
  Value y = m_.Sub(f, m_.Sub(m_.Mul(m_.Mul(f, f), C(f, 0.5)), lo));
  return m_.Fma(e, C(f, ln2), y);
}

Value VectorMath::LogFinite(Value x) { return LogOfBinade(SplitForLog(x), nullptr); }

VectorMath::Split VectorMath::SplitOff(Value x) {
  const bool f32 = Is32(x);
  MType word = f32 ? m_.i32() : m_.i64();
  MType words = MlirBuilder::As(x.getType(), word);
  Value a = m_.Abs(x);
  Value tiny = m_.Cmp(Pred::OLT, a, C(x, f32 ? 0x1p-126 : 0x1p-1022));
  Value bits = m_.Bits(m_.Select(tiny, m_.Mul(x, C(x, f32 ? 0x1p23 : 0x1p52)), x), word);
  const int64_t mask = f32 ? 0x7F800000 : 0x7FF0000000000000, one = f32 ? 0x3F800000 : 0x3FF0000000000000;
  Value mantissa = m_.Bits(m_.Or(m_.And(bits, m_.I(words, ~mask)), m_.I(words, one)), m_.Element(x));
  // The bits of the exponent, as the last ones of a large number.
  Value biased = m_.ShrU(m_.And(bits, m_.I(words, mask)), f32 ? 23 : 52);
  Value exponent = m_.Sub(m_.Bits(m_.Or(biased, m_.I(words, f32 ? 0x4B000000 : 0x4330000000000000)), m_.Element(x)),
                          C(x, f32 ? 0x1p23 + 127 : 0x1p52 + 1023));
  exponent = m_.Select(tiny, m_.Sub(exponent, C(x, f32 ? 23 : 52)), exponent);
  Value is_ordinary = m_.And(m_.Cmp(Pred::OGT, a, C(x, 0)), m_.Cmp(Pred::OLT, a, C(x, kInf)));
  return {mantissa, exponent, is_ordinary};
}

// log(2^exponent (mantissa + rest)), the mantissa being between 1/2 and 4 and the rest what it was rounded by;
// elsewhere what logarithms are of `otherwise`, which is 0, infinite or NaN.
Value VectorMath::LogOfParts(Value mantissa, Value rest, Value exponent, Value is_ordinary, Value otherwise) {
  const Binade binade = SplitForLog(mantissa);
  // The rest over the mantissa, which is 2^e (1 + f): 1 - f is 1 / (1 + f) where the rest matters.
  const bool f32 = Is32(mantissa);
  MType word = f32 ? m_.i32() : m_.i64();
  MType words = MlirBuilder::As(mantissa.getType(), word);
  Value one_and_f = m_.IAdd(m_.Bits(m_.Add(binade.f, C(mantissa, 1)), word),
                            m_.I(words, f32 ? int64_t{0x3F800000} : int64_t{0x3FF0000000000000}));
  Value down = m_.Bits(m_.ISub(one_and_f, m_.Bits(mantissa, word)), m_.Element(mantissa));
  Value relative = m_.Mul(rest, down);
  relative = m_.Fma(m_.Neg(binade.f), relative, relative);
  Value y = LogOfBinade({m_.Add(binade.e, exponent), binade.f}, relative);
  Value negative = m_.Cmp(Pred::OLT, m_.Select(is_ordinary, mantissa, otherwise), C(y, 0));
  Value limit = m_.Select(m_.Cmp(Pred::OEQ, otherwise, C(y, 0)), C(y, -kInf), otherwise);
  return m_.Select(negative, C(y, kNan), m_.Select(is_ordinary, y, limit));
}

Value VectorMath::LogProduct(Value x, Value y) {
  const Split a = SplitOff(x), b = SplitOff(y);
  Value product = m_.Mul(a.mantissa, b.mantissa);
  Value rest = m_.Fma(a.mantissa, b.mantissa, m_.Neg(product));
  return LogOfParts(product, rest, m_.Add(a.exponent, b.exponent), m_.And(a.is_ordinary, b.is_ordinary), m_.Mul(x, y));
}

Value VectorMath::LogQuotient(Value x, Value y) {
  const Split a = SplitOff(x), b = SplitOff(y);
  Value inverse = m_.Div(C(x, 1), b.mantissa);
  Value quotient = m_.Mul(a.mantissa, inverse);
  Value rest = m_.Mul(m_.Fma(m_.Neg(quotient), b.mantissa, a.mantissa), inverse);
  return LogOfParts(quotient, rest, m_.Sub(a.exponent, b.exponent), m_.And(a.is_ordinary, b.is_ordinary), m_.Div(x, y));
}

// e log(2) + log(1 + f), both over the logarithm of the base, with the rounding errors of all large terms put back: a
// result that is a whole number is exact. `two` is log(2) over that of the base, its first part short enough for
// products with e to be exact.
Value VectorMath::LogFiniteInBase(Value x, const Parts& unit, const Parts& two) {
  const auto [e, f] = SplitForLog(x);
  Value half = m_.Mul(m_.Mul(f, f), C(x, 0.5));
  Value hi = m_.Sub(f, half);
  Value lo = LogRest(f, m_.Sub(m_.Sub(f, hi), half));
  Value product = m_.Mul(hi, C(x, unit.hi));
  Value rest = m_.Fma(hi, C(x, unit.hi), m_.Neg(product));
  rest = m_.Fma(hi, C(x, unit.lo), m_.Fma(lo, C(x, unit.hi), rest));
  rest = m_.Fma(e, C(x, two.lo), rest);
  Value whole = m_.Mul(e, C(x, two.hi));
  Value sum = m_.Add(whole, product);
  return m_.Add(sum, m_.Add(m_.Add(m_.Sub(whole, sum), product), rest));
}

Value VectorMath::Log2(Value x) {
  const Parts unit = Is32(x) ? Parts{1.44269502162933349609375, 1.9259629911266175e-8}
                             : Parts{1.4426950408889634, 2.0355273740931033e-17};
  return LogOfFinite(x, LogFiniteInBase(x, unit, {1, 0}));
}

Value VectorMath::Log10(Value x) {
  const Parts unit = Is32(x) ? Parts{0.4342944920063018798828125, -1.0103050052231683e-8}
                             : Parts{0.43429448190325182, 1.098319650216765e-17};
  const Parts two =
      Is32(x) ? Parts{0.301025390625, 4.605038981195214e-6} : Parts{0.30102999566361177, 3.694239077158931e-13};
  return LogOfFinite(x, LogFiniteInBase(x, unit, two));
}

Value VectorMath::Log(Value x) { return LogOfFinite(x, LogFinite(x)); }

// What logarithms are of other numbers than those for which `y` is one.
Value VectorMath::LogOfFinite(Value x, Value y) {
  y = m_.Select(m_.Cmp(Pred::OLT, x, C(x, kInf)), y, x);  // inf and NaN
  y = m_.Select(m_.Cmp(Pred::OLT, x, C(x, 0)), C(x, kNan), y);
  return m_.Select(m_.Cmp(Pred::OEQ, x, C(x, 0)), C(x, -kInf), y);
}

// log(u) corrected for the rounding of u = 1 + x.
Value VectorMath::Log1p(Value x) {
  Value u = m_.Add(x, C(x, 1));
  Value error = m_.Sub(x, m_.Sub(u, C(x, 1)));
  Value y = m_.Add(LogFinite(u), m_.Div(error, u));
  y = m_.Select(m_.Cmp(Pred::OEQ, u, C(x, 1)), x, y);  // tiny x, and -0
  y = m_.Select(m_.Cmp(Pred::OLT, u, C(x, kInf)), y, u);
  y = m_.Select(m_.Cmp(Pred::OLT, u, C(x, 0)), C(x, kNan), y);
  return m_.Select(m_.Cmp(Pred::OEQ, u, C(x, 0)), C(x, -kInf), y);
}

}  // namespace weft
