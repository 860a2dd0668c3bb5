// Functions of f32 that are polynomials in pieces, on AVX-512: its registers hold 32 coefficients, of which one
// instruction takes each lane's.
#include <array>
#include <cmath>
#include <numbers>

#include "lowering/cpu/mlir/vector_math.h"

namespace weft {

// On [(k - 1/2) width, (k + 1/2) width], for k from 0 to 31, a polynomial in what x is beyond k width.
struct VectorMath::Pieces {
  static constexpr size_t kCount = 32;
  using Row = std::array<float, kCount>;

  double width;                   // with few digits, so that what x is beyond the middle is exact
  std::vector<Row> coefficients;  // by power
  Row rest;                       // what rounding takes from those of power 0
};

// Through the function at Chebyshev's points, which is nearest to it but for a small factor; by Newton's divided
// differences.
VectorMath::Pieces VectorMath::Interpolate(double width, size_t degree, double (*function)(double)) {
  const size_t n = degree + 1;
  Pieces out{width, std::vector<Pieces::Row>(n), {}};
  for (size_t k = 0; k < Pieces::kCount; ++k) {
    std::vector<double> points, differences, powers(n, 0.0);
    for (size_t j = 0; j < n; ++j) {
      const double angle = (2.0 * static_cast<double>(j) + 1) / (2.0 * static_cast<double>(n)) * std::numbers::pi;
      points.push_back(width / 2 * std::cos(angle));
      differences.push_back(function(static_cast<double>(k) * width + points[j]));
    }
    for (size_t order = 1; order < n; ++order) {
      for (size_t j = n - 1; j >= order; --j)
        differences[j] = (differences[j] - differences[j - 1]) / (points[j] - points[j - order]);
    }
    // Horner's scheme, of polynomials.
    for (size_t j = n; j-- > 0;) {
      for (size_t p = n - 1; p > 0; --p) powers[p] = powers[p - 1] - points[j] * powers[p];
      powers[0] = differences[j] - points[j] * powers[0];
    }
    for (size_t p = 0; p < n; ++p) out.coefficients[p][k] = static_cast<float>(powers[p]);
    out.rest[k] = static_cast<float>(powers[0] - static_cast<double>(out.coefficients[0][k]));
  }
  return out;
}

// For a from 0 to less than 31.5 widths.
VectorMath::InTwo VectorMath::InPieces(const Pieces& pieces, Value a) {
  constexpr double kAddend = 12582912.0;  // the integer part is in the low bits then
  Value shifted = m_.Fma(a, C(a, 1 / pieces.width), C(a, kAddend));
  Value which = m_.Bits(shifted, m_.i32());
  Value t = m_.Fma(m_.Sub(shifted, C(a, kAddend)), C(a, -pieces.width), a);
  auto half = mlir::VectorType::get({16}, m_.f32());
  const auto taken = [&](const Pieces::Row& row) {
    const auto constant = [&](size_t first) {
      return m_.Make<mlir::arith::ConstantOp>(
          mlir::DenseElementsAttr::get(half, llvm::ArrayRef<float>(row.data() + first, 16)));
    };
    return m_.b
        .create<LLVM::CallIntrinsicOp>(m_.loc, mlir::TypeRange{half},
                                       m_.b.getStringAttr("llvm.x86.avx512.vpermi2var.ps.512"),
                                       mlir::ValueRange{constant(0), which, constant(16)}, LLVM::FastmathFlagsAttr{})
        ->getResult(0);
  };
  size_t power = pieces.coefficients.size() - 1;
  Value y = taken(pieces.coefficients[power]);
  while (--power > 0) y = m_.Fma(y, t, taken(pieces.coefficients[power]));
  return {taken(pieces.coefficients[0]), m_.Fma(y, t, taken(pieces.rest))};
}

// x times erf(x) / x, within 0.6 units in the last place, 1 of subnormal ones. From kOne on it is 1.
Value VectorMath::ErfByPieces(Value x) {
  constexpr double kOne = 3.925;
  static const auto& pieces = *new Pieces(
      Interpolate(0.125, 4, [](double a) { return a == 0 ? 2 * std::numbers::inv_sqrtpi : std::erf(a) / a; }));
  return ByRegister({x}, 16, [&](const std::vector<Value>& v) {
    Value a = m_.RawMin(C(v[0], kOne), m_.Abs(v[0]));  // NaN stays
    const InTwo ratio = InPieces(pieces, a);
    return m_.CopySign(m_.Fma(a, ratio.large, m_.Mul(a, ratio.rest)), v[0]);
  });
}

}  // namespace weft
