#include "lowering/cpu/mlir/vector_math.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace weft {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Beyond it 1 / cosh(x)^2 is 0.
double LargestOfTwice(bool f32) { return f32 ? 53 : 375; }

}  // namespace

Value VectorMath::Horner(Value x, const std::vector<double>& c) {
  Value p = C(x, c.back());
  for (size_t i = c.size() - 1; i-- > 0;) p = m_.Fma(p, x, C(x, c[i]));
  return p;
}

Value VectorMath::AnyLane(Value mask) {
  const int64_t lanes = MlirBuilder::Lanes(mask);
  if (lanes == 0) return mask;
  MType word = m_.b.getIntegerType(static_cast<unsigned>(lanes));
  Value bits = m_.Make<LLVM::BitcastOp>(word, mask);
  return m_.Cmp(IPred::ne, bits, m_.I(word, 0));
}

Value VectorMath::PowerOfTwo(Value k) {
  if (MlirBuilder::Element(k).isInteger(32)) return m_.Bits(m_.Shl(m_.IAdd(k, m_.I(k.getType(), 127)), 23), m_.f32());
  return m_.Bits(m_.Shl(m_.IAdd(k, m_.I(k.getType(), 1023)), 52), m_.f64());
}

// Adding it rounds to an integer, which can be read from the low bits; unlike a conversion that is defined for NaN.
// Twice the exponents' bias is in it already.
double VectorMath::RoundingAddend(bool f32) { return f32 ? 12582912.0 + 2 * 127 : 6755399441055744.0 + 2 * 1023; }

// x = k ln2 + r.
VectorMath::Reduced VectorMath::ReduceExp(Value x) {
  const bool f32 = Is32(x);
  const double addend = RoundingAddend(f32);
  Value shifted = m_.Fma(x, C(x, std::numbers::log2e), C(x, addend));
  MType word = f32 ? m_.i32() : m_.i64();
  Value addend_bits = m_.I(MlirBuilder::As(x.getType(), word),
                           f32 ? std::bit_cast<int32_t>(static_cast<float>(addend)) : std::bit_cast<int64_t>(addend));
  Value k_word = m_.Bits(shifted, word);
  Value k = m_.ISub(k_word, addend_bits);
  Value kf = m_.Sub(shifted, C(x, addend));
  // ln2 in two parts.
  const double hi = f32 ? 0.693145751953125 : 0x1.62e42fefa3800p-1;
  const double lo = f32 ? 1.42860682030941723212e-6 : 0x1.ef35793c76730p-45;
  Value r = m_.Fma(kf, C(x, -hi), x);
  return {m_.Fma(kf, C(x, -lo), r), k_word, k, kf};
}

// The polynomial of its degree that is nearest to e^r, relative to it: 3.1e-9.
Value VectorMath::ExpOfSmall(Value r) {
  static const std::vector<double> k32 = {0.49999993421235295, 0.1666652037956182, 0.04166839441921789,
                                          0.008368746629982918, 0.0013814315464279363};
  if (!Is32(r)) return ExpPolynomial(r);
  return m_.Fma(m_.Mul(r, r), Horner(r, k32), r);
}

Value VectorMath::ExpPolynomial(Value r) {
  static const std::vector<double> k32 = {0.50000000716672141,  0.16666665819776871,   0.041666280331137457,
                                          0.008333503799831499, 0.0013945752170594636, 0.00019789246912436901};
  static const std::vector<double> k64 = {0.5,
                                          0.16666666666666685,
                                          0.041666666666666035,
                                          0.0083333333333157044,
                                          0.001388888888913423,
                                          0.00019841269899725439,
                                          2.4801586903760156e-5,
                                          2.7557231483265369e-6,
                                          2.7557592450504988e-7,
                                          2.5113226021645913e-8,
                                          2.0825613430536549e-9};
  Value p = Horner(r, Is32(r) ? k32 : k64);
  return m_.Fma(m_.Mul(r, r), p, r);
}

// 2^k in two factors, so that subnormal results and the top binade come out right. Half of the word holds half of k and
// the exponents' bias.
std::pair<Value, Value> VectorMath::TwoPowers(Value like, Value word) {
  const int mantissa = Is32(like) ? 23 : 52;
  MType type = MlirBuilder::Element(like);
  Value half = m_.ShrU(word, 1);
  return {m_.Bits(m_.Shl(half, mantissa), type), m_.Bits(m_.Shl(m_.ISub(word, half), mantissa), type)};
}

// The first step is exact, so that the addition of 1 rounds as it would by itself.
Value VectorMath::ScaleOnePlus(Value p, Value word) {
  const auto [first, second] = TwoPowers(p, word);
  return m_.Mul(m_.Fma(first, p, first), second);
}

Value VectorMath::ScaleInTwo(Value v, Value word) {
  const auto [first, second] = TwoPowers(v, word);
  return m_.Mul(m_.Mul(v, first), second);
}

// Register by register; the halves are put together pairwise. Fewer lanes than a register's are filled up.
Value VectorMath::ByRegister(const std::vector<Value>& x, int64_t whole,
                             const std::function<Value(const std::vector<Value>&)>& f) {
  const int64_t lanes = m_.Lanes(x[0]);
  const auto lanes_from = [](int64_t first, int64_t count, int64_t limit) {
    std::vector<int32_t> which;
    for (int64_t l = first; l < first + count; ++l) which.push_back(static_cast<int32_t>(std::min(l, limit - 1)));
    return which;
  };
  if (lanes == whole) return f(x);
  std::vector<Value> parts;
  for (int64_t i = 0; i < std::max<int64_t>(lanes, 1); i += whole) {
    std::vector<Value> part;
    for (Value v : x) part.push_back(lanes == 0 ? m_.Splat(v, whole) : m_.Shuffle(v, v, lanes_from(i, whole, lanes)));
    parts.push_back(f(part));
  }
  if (lanes == 0) return m_.Extract(parts[0], 0);
  if (lanes < whole) return m_.Shuffle(parts[0], parts[0], lanes_from(0, lanes, lanes));
  while (parts.size() > 1) {
    std::vector<Value> joined;
    const int64_t both = 2 * m_.Lanes(parts[0]);
    for (size_t i = 0; i < parts.size(); i += 2)
      joined.push_back(m_.Shuffle(parts[i], parts[i + 1], lanes_from(0, both, both)));
    parts = std::move(joined);
  }
  return parts[0];
}

// AVX-512 multiplies by powers of two in one instruction, with the same rounding of subnormal results.
Value VectorMath::ScaleByFloat(Value v, Value kf) {
  const bool f32 = Is32(v);
  const int64_t whole = f32 ? 16 : 8;
  return ByRegister({v, kf}, whole, [&](const std::vector<Value>& x) {
    MType mask = f32 ? m_.b.getI16Type() : m_.i8();
    return m_.b
        .create<LLVM::CallIntrinsicOp>(
            m_.loc, mlir::TypeRange{x[0].getType()},
            m_.b.getStringAttr(f32 ? "llvm.x86.avx512.mask.scalef.ps.512" : "llvm.x86.avx512.mask.scalef.pd.512"),
            mlir::ValueRange{x[0], x[1], x[0], m_.I(mask, -1), m_.I(m_.i32(), 4)}, LLVM::FastmathFlagsAttr{})
        ->getResult(0);
  });
}

bool VectorMath::ScalesInOne(Value v) {
  const int64_t lanes = m_.Lanes(v), whole = Is32(v) ? 16 : 8;
  return m_.avx512 && lanes >= whole && (lanes & (lanes - 1)) == 0;
}

Value VectorMath::Exp(Value x) {
  const bool f32 = Is32(x);
  Value bounded = m_.RawMin(C(x, f32 ? 89.0 : 710.0), m_.RawMax(C(x, f32 ? -104.0 : -746.0), x));
  const Reduced reduced = ReduceExp(bounded);
  Value p = ExpOfSmall(reduced.r);
  if (ScalesInOne(x)) return ScaleByFloat(m_.Add(p, C(x, 1)), reduced.kf);
  return ScaleOnePlus(p, reduced.k_word);
}

Value VectorMath::Exp2(Value x) {
  const bool f32 = Is32(x);
  Value bounded = m_.RawMin(C(x, f32 ? 129.0 : 1025.0), m_.RawMax(C(x, f32 ? -151.0 : -1076.0), x));
  const double addend = RoundingAddend(f32);
  Value shifted = m_.Add(bounded, C(x, addend));
  Value k_word = m_.Bits(shifted, f32 ? m_.i32() : m_.i64());
  Value f = m_.Sub(bounded, m_.Sub(shifted, C(x, addend)));
  // f * ln2 with the rounding error of the product added back.
  Value hi = m_.Mul(f, C(x, std::numbers::ln2));
  const double ln2 = f32 ? static_cast<double>(static_cast<float>(std::numbers::ln2)) : std::numbers::ln2;
  Value lo = m_.Fma(f, C(x, ln2), m_.Neg(hi));
  const double rest = f32 ? std::numbers::ln2 - ln2 : 2.3190468138462996e-17;
  lo = m_.Fma(f, C(x, rest), lo);
  return ScaleOnePlus(m_.Add(ExpOfSmall(hi), lo), k_word);
}

// erfc(a) = exp(-a^2) P(q) / (1 + 2 a), q = (a - 2) / (a + 2), for a from 0 to 10.1, beyond which it is 0: the
// polynomial is nearest to (1 + 2 a) exp(a^2) erfc(a), 1.6e-8 of it (the form is that of M. Shepherd and J.
// Laframboise, Mathematics of Computation 36, 1981). What rounding takes from a^2, from the sum and the products goes
// into the quotient: within 1.9 units in the last place, for all arguments.
// Of f32: erfc(a) for a from 0 to 10.1, times a power of 2. `square` and its rest are a^2, of which an error would be
// one of the exponent; a itself may be rounded.
Value VectorMath::ErfcOfSquare(Value a, Value square, Value square_rest, double factor) {
  Value one = C(a, 1), two = C(a, 2);
  Value d = m_.Fma(two, a, one), d_rest = m_.Fma(two, a, m_.Sub(one, d));
  Value u = m_.Add(a, two), r_both = m_.Div(one, m_.Mul(u, d)), r_d = m_.Mul(r_both, u);
  Value q = m_.Fma(two, m_.Mul(a, m_.Mul(r_both, d)), C(a, -1));
  const double first = 1.2769783735275269;
  Value s = Horner(
      q, {-0.09276391565799713, -0.16603095829486847, 0.16405458748340607, -0.05420750752091408, -0.008057903498411179,
          0.008640461601316929, 0.0013140515657141805, -0.0012383137363940477, -0.00040474862908013165});
  Value p = m_.Fma(s, q, C(a, first)), p_rest = m_.Fma(s, q, m_.Sub(C(a, first), p));
  const Reduced reduced = ReduceExp(m_.Neg(square));
  Value e = ExpOfSmall(m_.Sub(reduced.r, square_rest));
  Value n = m_.Fma(e, p, p), n_rest = m_.Add(m_.Fma(e, p, m_.Sub(p, n)), p_rest);
  Value y = m_.Mul(n, r_d);
  Value rest = m_.Add(m_.Fma(m_.Neg(y), d_rest, m_.Fma(m_.Neg(y), d, n)), n_rest);
  y = m_.Fma(rest, r_d, y);
  if (factor != 1) y = m_.Mul(y, C(a, factor));
  return ScalesInOne(a) ? ScaleByFloat(y, reduced.kf) : ScaleInTwo(y, reduced.k_word);
}

Value VectorMath::Erfc(Value x) {
  if (!Is32(x)) return library_("erfc", {x});
  Value a = m_.RawMin(m_.Abs(x), C(x, 10.1)), square = m_.Mul(a, a);
  Value y = ErfcOfSquare(a, square, m_.Fma(a, a, m_.Neg(square)), 1);
  y = m_.Select(m_.Cmp(Pred::OLT, x, C(x, 0)), m_.Sub(C(x, 2), y), y);
  return m_.Select(m_.IsNan(x), x, y);
}

// 0.5 erfc(-x / sqrt(2)).
Value VectorMath::NormalCdf(Value x) {
  if (!Is32(x)) return NormalCdfBy(x, [&](Value z) { return library_("erfc", {z}); });
  Value a = m_.RawMin(m_.Abs(x), C(x, 14.25)), half = m_.Mul(a, C(x, 0.5)), square = m_.Mul(half, a);
  Value y = ErfcOfSquare(m_.Mul(a, C(x, std::numbers::sqrt2 / 2)), square, m_.Fma(half, a, m_.Neg(square)), 0.5);
  y = m_.Select(m_.Cmp(Pred::OGT, x, C(x, 0)), m_.Sub(C(x, 1), y), y);
  return m_.Select(m_.IsNan(x), x, y);
}

// The same by another erfc, corrected for the rounding of its operand where that is in the exponent.
Value VectorMath::NormalCdfBy(Value x, const std::function<Value(Value)>& erfc) {
  constexpr double kFar = 64;  // beyond are 0 and 1
  Value near = m_.RawMax(C(x, -kFar), m_.RawMin(C(x, kFar), x)), z = m_.Mul(near, C(x, -std::numbers::sqrt2 / 2));
  Value half = m_.Mul(near, C(x, 0.5)), square = m_.Mul(half, near), of_z = m_.Mul(z, z);
  Value off = m_.Sub(m_.Fma(half, near, m_.Neg(square)), m_.Fma(z, z, m_.Neg(of_z)));
  off = m_.Add(m_.Sub(square, of_z), off);
  Value y = m_.Mul(erfc(z), C(x, 0.5));
  return m_.Select(m_.Cmp(Pred::OLT, x, C(x, 0)), m_.Sub(y, m_.Mul(y, off)), y);
}

Value VectorMath::NormalDensity(Value x) {
  const bool f32 = Is32(x);
  Value a = m_.RawMin(m_.Abs(x), C(x, f32 ? 14.4 : 38.6)), half = m_.Mul(a, C(x, 0.5)), square = m_.Mul(half, a);
  const Reduced reduced = ReduceExp(m_.Neg(square));
  Value e = ExpPolynomial(m_.Sub(reduced.r, m_.Fma(half, a, m_.Neg(square))));
  Value y = m_.Mul(m_.Add(e, C(x, 1)), C(x, std::numbers::inv_sqrtpi / std::numbers::sqrt2));
  y = ScalesInOne(x) ? ScaleByFloat(y, reduced.kf) : ScaleInTwo(y, reduced.k_word);
  return m_.Select(m_.IsNan(x), x, y);
}

Value VectorMath::Expm1(Value x) {
  const bool f32 = Is32(x);
  // Below -18 (-38) the result rounds to -1.
  Value bounded = m_.RawMin(C(x, f32 ? 89.0 : 710.0), m_.RawMax(C(x, f32 ? -18.0 : -40.0), x));
  auto [r, k_word, k, kf] = ReduceExp(bounded);
  Value p = ExpPolynomial(r);
  // 2^k (e^r - 1) + (2^k - 1). 2^k itself overflows one step before the result does, so use half of everything.
  Value half = PowerOfTwo(m_.ISub(k, m_.I(k.getType(), 1)));
  Value y = m_.Fma(half, p, m_.Sub(half, C(x, 0.5)));
  Value result = m_.Mul(y, C(x, 2));
  // Tiny and zero arguments (keeps -0).
  return m_.Select(m_.Cmp(Pred::OLT, m_.Abs(x), C(x, f32 ? 1e-8 : 1e-17)), x, result);
}

// e^2|x| - 1, below 2^127. tanh and its derivative are made from it and from one quotient, so that a kernel that needs
// both computes them once.
VectorMath::Scaled VectorMath::Expm1OfTwice(Value x) {
  const bool f32 = Is32(x);
  Value a = m_.RawMin(C(x, LargestOfTwice(f32)), m_.Abs(x));
  auto [r, k_word, k, kf] = ReduceExp(m_.Mul(a, C(x, 2)));
  Value largest = m_.I(k.getType(), f32 ? 126 : 1022);
  Value bounded = m_.Select(m_.Cmp(IPred::slt, k, largest), k, largest);
  Value scale = PowerOfTwo(bounded);
  return {m_.Fma(scale, ExpPolynomial(r), m_.Sub(scale, C(x, 1))), m_.ISub(k, bounded)};
}

// (e^2|x| - 1) / (e^2|x| + 1): above a half 1 - 2 / (e^2|x| + 1), which is 1 where that is what tanh rounds to.
Value VectorMath::Tanh(Value x) {
  Value e = Expm1OfTwice(x).value;
  Value rest = m_.Div(C(x, 2), m_.Add(e, C(x, 2)));
  Value small = m_.Mul(m_.Mul(e, C(x, 0.5)), rest), large = m_.Sub(C(x, 1), rest);
  return m_.CopySign(m_.Select(m_.Cmp(Pred::OLT, rest, C(x, 0.5)), large, small), x);
}

// (1 - |tanh|) (1 + |tanh|), of which the first factor is 2 / (e^2|x| + 1).
Value VectorMath::SechSquared(Value x) {
  const Scaled e = Expm1OfTwice(x);
  Value rest = m_.Div(C(x, 2), m_.Add(e.value, C(x, 2)));
  Value y = m_.Mul(rest, m_.Sub(C(x, 2), rest));
  return m_.Mul(y, PowerOfTwo(m_.ISub(m_.I(e.exponent.getType(), 0), e.exponent)));
}

Value VectorMath::Logistic(Value x) {
  Value e = Exp(m_.Neg(m_.Abs(x)));
  Value inverse = m_.Div(C(x, 1), m_.Add(e, C(x, 1)));
  return m_.Select(m_.Cmp(Pred::OLT, x, C(x, 0)), m_.Mul(e, inverse), inverse);
}

Value VectorMath::LogisticDensity(Value x) {
  // As in Logistic: a kernel that needs both computes the exponential and the quotient once.
  Value e = Exp(m_.Neg(m_.Abs(x)));
  Value inverse = m_.Div(C(x, 1), m_.Add(e, C(x, 1)));
  return m_.Mul(m_.Mul(e, inverse), inverse);
}

Value VectorMath::Sinh(Value x) {
  Value a = m_.Abs(x);
  Value large = m_.Cmp(Pred::OGT, a, C(x, 16));
  Value e = Expm1(m_.Select(large, C(x, 0), a));
  Value small = m_.Mul(m_.Add(e, m_.Div(e, m_.Add(e, C(x, 1)))), C(x, 0.5));
  Value root = Exp(m_.Mul(a, C(x, 0.5)));
  Value big = m_.Mul(m_.Mul(root, C(x, 0.5)), root);
  // Above 16 only e^a / 2 counts for f32; for f64 the other half still matters until 20.
  if (!Is32(x)) big = m_.Sub(big, m_.Div(C(x, 0.5), m_.Mul(root, root)));
  return m_.CopySign(m_.Select(large, big, small), x);
}

Value VectorMath::Cosh(Value x) {
  Value root = Exp(m_.Mul(m_.Abs(x), C(x, 0.5)));
  Value big = m_.Mul(m_.Mul(root, C(x, 0.5)), root);
  Value e = Exp(m_.RawMin(C(x, 20), m_.Abs(x)));
  Value small = m_.Mul(m_.Add(e, m_.Div(C(x, 1), e)), C(x, 0.5));
  return m_.Select(m_.Cmp(Pred::ULT, m_.Abs(x), C(x, 18)), small, big);
}

// x = n pi/2 + r with pi/2 in three parts; beyond the range where that is accurate the library's function is called for
// all lanes, which is rare enough not to matter.
std::vector<Value> VectorMath::Trigonometric(Value x, const std::vector<Trig>& which) {
  static constexpr const char* kNames[] = {"sin", "cos", "tan"};
  const bool f32 = Is32(x);
  MType word = f32 ? m_.i32() : m_.i64();
  MType words = MlirBuilder::As(x.getType(), word);
  Value large = m_.Cmp(Pred::OGT, m_.Abs(x), C(x, f32 ? 105615.0 : 1e9));
  auto compute = [&]() -> std::vector<Value> {
    const double magic = f32 ? 12582912.0 : 6755399441055744.0;
    Value shifted = m_.Fma(x, C(x, 2 / std::numbers::pi), C(x, magic));
    Value n = m_.Bits(shifted, word);
    Value nf = m_.Sub(shifted, C(x, magic));
    Value r = m_.Fma(nf, C(x, f32 ? -1.57079637050628662109375 : -1.5707963267948966), x);
    r = m_.Fma(nf, C(x, f32 ? 4.37113900018624283e-8 : -6.123233995736766e-17), r);
    r = m_.Fma(nf, C(x, f32 ? 1.71512489e-15 : 1.4973849048591833e-33), r);
    Value z = m_.Mul(r, r);
    Value s = Horner(z, f32 ? std::vector<double>{-0.16666666641428453, 0.0083333293624868063, -0.00019839327198495534,
                                                  2.7182378128295631e-6}
                            : std::vector<double>{-0.16666666666666667, 0.0083333333333333227, -0.00019841269841254989,
                                                  2.7557319214148639e-6, -2.505210490047806e-8, 1.6058365185056303e-10,
                                                  -7.5786250837233772e-13});
    s = m_.Fma(m_.Mul(z, r), s, r);
    Value c = Horner(z, f32 ? std::vector<double>{0.041666666622481096, -0.0013888883722904954, 2.4799511820508689e-5,
                                                  -2.7209551249138609e-7}
                            : std::vector<double>{0.041666666666666667, -0.0013888888888888874, 2.4801587301571381e-5,
                                                  -2.7557319215325723e-7, 2.0876754354672118e-9,
                                                  -1.1470291941083434e-11, 4.7380483236103054e-14});
    // 1 - z/2 + z^2 c, with the rounding of 1 - z/2 put back.
    Value half = m_.Mul(z, C(x, 0.5));
    Value w = m_.Sub(C(x, 1), half);
    c = m_.Add(w, m_.Fma(m_.Mul(z, z), c, m_.Sub(m_.Sub(C(x, 1), w), half)));
    Value odd = m_.Cmp(IPred::ne, m_.And(n, m_.I(words, 1)), m_.I(words, 0));
    const int sign_shift = f32 ? 30 : 62;
    const int64_t sign_bit = f32 ? INT32_MIN : INT64_MIN;
    std::vector<Value> results;
    for (Trig t : which) {
      if (t == Trig::kTan) {
        Value tan = m_.Div(m_.Select(odd, c, s), m_.Select(odd, s, c));
        Value flip = m_.And(m_.Shl(n, sign_shift + 1), m_.I(words, sign_bit));
        results.push_back(m_.Bits(m_.Xor(m_.Bits(tan, word), flip), m_.Element(x)));
        continue;
      }
      Value y = t == Trig::kSin ? m_.Select(odd, c, s) : m_.Select(odd, s, c);
      Value quadrant = t == Trig::kSin ? n : m_.IAdd(n, m_.I(words, 1));
      Value flip = m_.And(m_.Shl(quadrant, sign_shift), m_.I(words, sign_bit));
      results.push_back(m_.Bits(m_.Xor(m_.Bits(y, word), flip), m_.Element(x)));
    }
    return results;
  };
  const std::vector<MType> types(which.size(), x.getType());
  auto branch = m_.b.create<scf::IfOp>(m_.loc, mlir::TypeRange(types), AnyLane(large), /*withElseRegion=*/true);
  {
    mlir::OpBuilder::InsertionGuard guard(m_.b);
    m_.b.setInsertionPointToStart(branch.thenBlock());
    std::vector<Value> results;
    for (Trig t : which) results.push_back(library_(kNames[static_cast<int>(t)], {x}));
    m_.b.create<scf::YieldOp>(m_.loc, results);
    m_.b.setInsertionPointToStart(branch.elseBlock());
    m_.b.create<scf::YieldOp>(m_.loc, compute());
  }
  std::vector<Value> results(branch.getResults().begin(), branch.getResults().end());
  // -0 stays -0: fma(-0, ...) would lose it only through r = 0.
  for (size_t i = 0; i < which.size(); ++i) {
    if (which[i] != Trig::kCos) results[i] = m_.Select(m_.Cmp(Pred::OEQ, x, C(x, 0)), x, results[i]);
  }
  return results;
}

Value VectorMath::Sin(Value x) { return Trigonometric(x, {Trig::kSin})[0]; }
Value VectorMath::Cos(Value x) { return Trigonometric(x, {Trig::kCos})[0]; }
Value VectorMath::Tan(Value x) { return Trigonometric(x, {Trig::kTan})[0]; }
std::pair<Value, Value> VectorMath::SinAndCos(Value x) {
  const std::vector<Value> both = Trigonometric(x, {Trig::kSin, Trig::kCos});
  return {both[0], both[1]};
}

Value VectorMath::AtanUnit(Value x) {
  static const std::vector<double> k32 = {
      -0.33333327428500596, 0.1999969241088739,    -0.14280127814351387, 0.11060223317912214,    -0.088187609430349466,
      0.06759355120658508,  -0.044943133233447142, 0.022757303709641627, -0.0074211041391984336, 0.0011345507754035675};
  static const std::vector<double> k64 = {
      -0.33333333333333326,   0.19999999999998285,   -0.14285714285580105,   0.11111111105726382,
      -0.090909089600116406,  0.076923055720113659,  -0.066666423265738903,  0.058821462693990582,
      -0.052618188942728517,  0.047551286370530472,  -0.043205523278719668,  0.039114180385495978,
      -0.034687291586667043,  0.029336514694054026,  -0.022849278681593081,  0.015757462372110187,
      -0.0092336922536211546, 0.0044004044079139767, -0.0016194857477407199, 0.00042850110364612347,
      -7.2151418721852468e-5, 5.785557128283629e-6};
  Value z = m_.Mul(x, x);
  return m_.Fma(m_.Mul(x, z), Horner(z, Is32(x) ? k32 : k64), x);
}

Value VectorMath::Atan(Value x) {
  const bool f32 = Is32(x);
  Value a = m_.Abs(x);
  Value large = m_.Cmp(Pred::OGT, a, C(x, 1));
  Value t = m_.Select(large, m_.Div(C(x, 1), a), a);
  Value y = AtanUnit(t);
  const double lo = f32 ? -4.37113882867379e-8 : 6.123233995736766e-17;
  Value complement = m_.Add(m_.Sub(C(x, std::numbers::pi / 2), y), C(x, lo));
  return m_.CopySign(m_.Select(large, complement, y), x);
}

Value VectorMath::Atan2(Value y, Value x) {
  const bool f32 = Is32(x);
  Value ax = m_.Abs(x), ay = m_.Abs(y);
  Value steep = m_.Cmp(Pred::OGT, ay, ax);
  Value hi = m_.Select(steep, ay, ax), lo = m_.Select(steep, ax, ay);
  Value ratio = m_.Div(lo, hi);
  // 0/0 is 0 and inf/inf is 1 here.
  ratio = m_.Select(m_.Cmp(Pred::OEQ, hi, C(x, 0)), C(x, 0), ratio);
  ratio = m_.Select(m_.Cmp(Pred::OEQ, lo, C(x, kInf)), C(x, 1), ratio);
  Value t = AtanUnit(ratio);
  const double pi_lo = f32 ? -8.74227765734758577e-8 : 1.2246467991473532e-16;
  t = m_.Select(steep, m_.Add(m_.Sub(C(x, std::numbers::pi / 2), t), C(x, pi_lo / 2)), t);
  MType word = f32 ? m_.i32() : m_.i64();
  MType words = MlirBuilder::As(x.getType(), word);
  Value negative = m_.Cmp(IPred::slt, m_.Bits(x, word), m_.I(words, 0));  // -0 too
  t = m_.Select(negative, m_.Add(m_.Sub(C(x, std::numbers::pi), t), C(x, pi_lo)), t);
  t = m_.CopySign(t, y);
  return m_.Select(m_.Cmp(Pred::UNO, x, y), m_.Add(x, y), t);
}

Value VectorMath::AsinHalf(Value x, Value z) {
  static const std::vector<double> k32 = {0.16666659834512389,  0.075005133127529696, 0.04451522855219342,
                                          0.031821972047163595, 0.014385204316751387, 0.037590846268119792};
  static const std::vector<double> k64 = {
      0.16666666666666764,  0.074999999999699269,  0.044642857175458334, 0.030381942666632962, 0.022372216159502327,
      0.017351590777448002, 0.013981077037041742,  0.011396799712405861, 0.010792165202138493, 0.0036611541073761999,
      0.021818168725601014, -0.021156609232120674, 0.032727685183202192};
  return m_.Fma(m_.Mul(x, z), Horner(z, Is32(x) ? k32 : k64), x);
}

Value VectorMath::Asin(Value x) {
  const bool f32 = Is32(x);
  Value a = m_.Abs(x);
  Value large = m_.Cmp(Pred::OGT, a, C(x, 0.5));
  Value z = m_.Select(large, m_.Mul(m_.Sub(C(x, 1), a), C(x, 0.5)), m_.Mul(a, a));
  Value t = m_.Select(large, m_.Sqrt(z), a);
  Value y = AsinHalf(t, z);
  Value complement =
      m_.Add(m_.Fma(y, C(x, -2), C(x, std::numbers::pi / 2)), C(x, f32 ? -4.37113882867379e-8 : 6.123233995736766e-17));
  return m_.CopySign(m_.Select(large, complement, y), x);
}

Value VectorMath::Acos(Value x) {
  const bool f32 = Is32(x);
  const double lo = f32 ? -4.37113882867379e-8 : 6.123233995736766e-17;
  Value a = m_.Abs(x);
  Value large = m_.Cmp(Pred::OGT, a, C(x, 0.5));
  Value z = m_.Select(large, m_.Mul(m_.Sub(C(x, 1), a), C(x, 0.5)), m_.Mul(a, a));
  Value y = AsinHalf(m_.Select(large, m_.Sqrt(z), a), z);
  Value twice = m_.Mul(y, C(x, 2));
  Value negative = m_.Cmp(Pred::OLT, x, C(x, 0));
  Value outside = m_.Select(negative, m_.Add(m_.Sub(C(x, std::numbers::pi), twice), C(x, 2 * lo)), twice);
  Value inside = m_.Add(m_.Sub(C(x, std::numbers::pi / 2), m_.Sub(m_.CopySign(y, x), C(x, lo))), C(x, 0));
  Value result = m_.Select(large, outside, inside);
  return m_.Select(m_.IsNan(x), x, result);
}

// f32 only: an odd polynomial near 0, else 1 - exp(polynomial); on AVX-512 in pieces, in half the time.
Value VectorMath::Erf(Value x) {
  if (!Is32(x)) return library_("erf", {x});
  if (m_.avx512) return ErfByPieces(x);
  Value a = m_.RawMin(C(x, 3.99), m_.Abs(x));
  a = m_.Select(m_.IsNan(x), x, a);
  Value z = m_.Mul(x, x);
  Value small = m_.Fma(x,
                       Horner(z, {0.12837916664205471, -0.37612633693502728, 0.11283693885724813, -0.026859267621216262,
                                  0.0052006264261625298, -0.00081373482916268047, 8.3448494983265279e-5}),
                       x);
  Value log = Horner(a, {0.00017468201591250156, -1.1295149182537523, -0.63334693228589591, -0.10828005928387065,
                         0.02511940677603084, -0.0041710547377328607, 0.00043446080358417757, -2.1094884363758716e-5});
  auto [r, k_word, k, kf] = ReduceExp(log);
  Value e = m_.Mul(m_.Add(ExpPolynomial(r), C(x, 1)), PowerOfTwo(k));
  Value large = m_.CopySign(m_.Sub(C(x, 1), e), x);
  return m_.Select(m_.Cmp(Pred::OLT, m_.Abs(x), C(x, 0.925)), small, large);
}

// f32 through f64, where exp(y log x) is accurate to f32's last bit.
Value VectorMath::Pow(Value x, Value y) {
  if (!Is32(x)) return library_("pow", {x, y});
  Value a = m_.ExtF(m_.Abs(x), m_.f64()), w = m_.ExtF(y, m_.f64());
  Value magnitude = m_.TruncF(Exp(m_.Mul(w, Log(a))), m_.f32());
  Value whole = m_.Cmp(Pred::OEQ, m_.RoundEven(y), y);
  // y odd: y/2 is not whole (all floats of 2^24 and more are even).
  Value half = m_.Mul(y, C(y, 0.5));
  Value odd = m_.And(whole, m_.Cmp(Pred::ONE, m_.RoundEven(half), half));
  Value negative = m_.Cmp(IPred::slt, m_.Bits(x, m_.i32()), m_.I(MlirBuilder::As(x.getType(), m_.i32()), 0));
  Value result = m_.Select(m_.And(negative, odd), m_.Neg(magnitude), magnitude);
  // A negative finite base with a fractional exponent has no real power.
  Value bad = m_.And(m_.Cmp(Pred::OLT, x, C(x, 0)), m_.And(m_.Not(whole), m_.Cmp(Pred::ONE, x, C(x, -kInf))));
  result = m_.Select(bad, C(x, kNan), result);
  result = m_.Select(m_.Cmp(Pred::UNO, x, y), C(x, kNan), result);
  // x^0 = 1 and 1^y = 1, even for NaN; (-1)^(+-inf) = 1.
  Value one = m_.Or(m_.Cmp(Pred::OEQ, y, C(y, 0)), m_.Cmp(Pred::OEQ, x, C(x, 1)));
  one = m_.Or(one, m_.And(m_.Cmp(Pred::OEQ, x, C(x, -1)), m_.Cmp(Pred::OEQ, m_.Abs(y), C(y, kInf))));
  return m_.Select(one, C(x, 1), result);
}

}  // namespace weft
