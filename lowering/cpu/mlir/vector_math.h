// Internal to lowering/**.cc: inline elementary functions on f32 and f64 values, scalars or vectors alike.
//
// Polynomials are minimax fits (Remez) whose weighted error lies below a quarter ulp; ranges are reduced with fused
// multiply-adds. Special values, subnormals and large arguments follow the C library (tests/extremes_test.py).
#ifndef WEFT_LOWERING_CPU_MLIR_VECTOR_MATH_H_
#define WEFT_LOWERING_CPU_MLIR_VECTOR_MATH_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lowering/cpu/mlir/builder.h"

namespace weft {

class VectorMath {
 public:
  // Computes `op` by the runtime's table of scalar functions, element by element; for cold lanes and rare functions.
  using Library = std::function<Value(const std::string& op, const std::vector<Value>& operands)>;

  VectorMath(MlirBuilder& m, Library library) : m_(m), library_(std::move(library)) {}

  MlirBuilder& m() { return m_; }
  Value C(Value like, double v) { return m_.F(like.getType(), v); }
  Value AnyLane(Value mask);  // i1
  bool Is32(Value x) { return MlirBuilder::Element(x).isF32(); }

  Value Exp(Value x);
  Value Exp2(Value x);
  Value Expm1(Value x);
  Value Log(Value x);
  Value Log1p(Value x);
  Value Log2(Value x);
  Value Log10(Value x);
  Value LogProduct(Value x, Value y);  // of x y and of x / y, also where these overflow or underflow
  Value LogQuotient(Value x, Value y);
  Value Tanh(Value x);
  Value SechSquared(Value x);
  Value Logistic(Value x);
  Value LogisticDensity(Value x);
  Value Sinh(Value x);
  Value Cosh(Value x);
  Value Sin(Value x);
  std::pair<Value, Value> SinAndCos(Value x);
  Value Cos(Value x);
  Value Tan(Value x);
  Value Atan(Value x);
  Value Atan2(Value y, Value x);
  Value Asin(Value x);
  Value Acos(Value x);
  Value Erf(Value x);
  Value Pow(Value x, Value y);
  Value Erfc(Value x);
  Value NormalDensity(Value x);  // exp(-x^2 / 2) / sqrt(2 pi)
  Value NormalCdf(Value x);      // its integral up to x
  Value NormalCdfBy(Value x, const std::function<Value(Value)>& erfc);
  // f32 by way of f64 (lowering/cpu/vector_math_by_f64.cc).
  Value ErfInv(Value x);
  Value LogGamma(Value x);
  Value Digamma(Value x);
  Value Asinh(Value x);
  Value Acosh(Value x);
  Value Atanh(Value x);
  Value Cbrt(Value x);
  Value Rem(Value x, Value y);

 private:
  struct Erfcs {
    Value scaled;  // exp(a^2) erfc(a)
    Value value;   // erfc(a)
  };
  Erfcs ErfcOfF64(Value a);
  Value ErfcOfSquare(Value a, Value square, Value square_rest, double factor);
  struct ForGamma {
    Value reflected;            // i1: 1 - x in the place of x
    Value z, log;               // from 8 on, and its logarithm
    Value product, derivative;  // of the steps that lead to z; 1 and 0 where there are none
    Value sin, cos;             // of pi times what x is beyond an integer
  };
  ForGamma PrepareGamma(Value w);
  Value Horner(Value x, const std::vector<double>& coefficients);  // lowest first
  // 2^k for k given as integer lanes, small enough that it is normal; only the lower 9 (12) bits of a lane count.
  Value PowerOfTwo(Value k);
  struct Reduced {
    Value r;       // in [-ln2/2, ln2/2]
    Value k_word;  // k plus the bits of RoundingAddend, whose lower bits, but for the bias, are zero also when halved
    Value k;       // integer lanes
    Value kf;      // the same as floats
  };
  static double RoundingAddend(bool f32);  // 1.5 * 2^(mantissa bits) + 2 * (bias of the exponents)
  Reduced ReduceExp(Value x);
  Value ExpPolynomial(Value r);  // e^r - 1, accurate relative to itself
  Value ExpOfSmall(Value r);     // e^r - 1, accurate relative to e^r: a term less
  std::pair<Value, Value> TwoPowers(Value like, Value k_word);
  Value ScaleOnePlus(Value p, Value k_word);  // (1 + p) 2^k for any k that exp can meet
  Value ScaleInTwo(Value v, Value k_word);    // v 2^k
  Value ScaleByFloat(Value v, Value kf);
  // `f` of values with `whole` lanes each.
  Value ByRegister(const std::vector<Value>& x, int64_t whole,
                   const std::function<Value(const std::vector<Value>&)>& f);
  bool ScalesInOne(Value v);
  // Polynomials of f32 in pieces, on AVX-512 (lowering/cpu/vector_math_by_pieces.cc).
  struct Pieces;
  struct InTwo {
    Value large, rest;  // the value is their sum
  };
  static Pieces Interpolate(double width, size_t degree, double (*function)(double));
  InTwo InPieces(const Pieces& pieces, Value a);
  Value ErfByPieces(Value x);
  struct Binade {
    Value e, f;
  };
  struct Parts {
    double hi, lo;
  };
  Binade SplitForLog(Value x);
  Value LogRest(Value f, Value more);
  Value LogOfBinade(const Binade& x, Value more);
  Value LogFinite(Value x);  // x positive, finite, any exponent
  struct Split {
    Value mantissa, exponent;  // the mantissa between 1 and 2, with the sign; the exponent as a float
    Value is_ordinary;         // neither 0 nor infinite nor NaN; what else it has are some numbers
  };
  Split SplitOff(Value x);
  Value LogOfParts(Value mantissa, Value rest, Value exponent, Value is_ordinary, Value otherwise);
  Value LogFiniteInBase(Value x, const Parts& unit, const Parts& two);
  Value LogOfFinite(Value x, Value y);
  struct Scaled {
    Value value, exponent;  // value 2^exponent, in integer lanes
  };
  Scaled Expm1OfTwice(Value x);
  enum class Trig { kSin, kCos, kTan };
  // Several functions of one argument, whose range is reduced once.
  std::vector<Value> Trigonometric(Value x, const std::vector<Trig>& which);
  Value AtanUnit(Value x);           // |x| <= 1
  Value AsinHalf(Value x, Value z);  // x + x z P(z), z = x^2 <= 1/4

  MlirBuilder& m_;
  Library library_;
};

}  // namespace weft
#endif  // WEFT_LOWERING_CPU_MLIR_VECTOR_MATH_H_
