// What the linear algebra primitives share: the type rule, evaluation matrix by matrix, and the matrix formulas their
// derivatives are written in. Every operand is [..., rows, columns]: a stack of matrices.
#ifndef WEFT_IR_PRIMS_LINALG_LINALG_H_
#define WEFT_IR_PRIMS_LINALG_LINALG_H_

#include <functional>
#include <type_traits>
#include <vector>

#include "ir/ops.h"
#include "ir/prim.h"
#include "ir/prims/elementwise.h"
#include "ir/prims/linalg/linalg_reference.h"

namespace weft {

inline constexpr DTypeSet kLapackTypes = {DType::kF32, DType::kF64, DType::kC64, DType::kC128};

// `flops`: operations of one matrix of order n, as a multiple of n^3 (Golub & Van Loan, Matrix Computations, 4th ed.);
// of a triangular solve, of n^2 m.
Prim& AddLinalg(PrimRegistry& r, const char* name, int num_operands, double flops, std::string doc);
// Raises kType unless operand `i` is a stack of matrices of one of the dtypes, square if asked for.
const Type& CheckMatrix(const Sig& s, int i, bool square = false);
// `type` with its last two dimensions (or its last one) replaced.
Type WithMatrix(const Type& type, const Dim& rows, const Dim& cols);
Type WithVector(const Type& type, const Dim& size);

// One matrix after the other: f(matrices of the operands, results), in double or complex<double>. Real results of
// complex operands are given as numbers with imaginary part 0; integers as doubles.
template <class T>
using MatrixFunction = std::function<std::vector<Matrix<T>>(const std::vector<Matrix<T>>&)>;
Tensors EvalMatrices(const EvalContext& c, const Tensors& in, const MatrixFunction<double>& real,
                     const MatrixFunction<std::complex<double>>& complex);
// The same formula for both kinds of number.
template <class F>
EvalFn EvalEachMatrix(F f) {
  return [f](const EvalContext& c, const Tensors& in) {
    auto real = [&](const std::vector<Matrix<double>>& x) { return f(c.sig.attrs, x); };
    auto complex = [&](const std::vector<Matrix<std::complex<double>>>& x) { return f(c.sig.attrs, x); };
    return EvalMatrices(c, in, real, complex);
  };
}
// A column of numbers, as f gives vectors.
template <class T, class V>
Matrix<T> Column(const std::vector<V>& values) {
  Matrix<T> m(static_cast<int64_t>(values.size()), 1);
  for (size_t i = 0; i < values.size(); ++i) m.values[i] = static_cast<double>(values[i]);
  return m;
}

// Formulas.
Expr MatMul(const Expr& x, const Expr& y);
Ints Last2Swapped(int rank);  // the permutation that transposes each matrix
Expr Transposed(const Expr& x);
Expr Adjoint(const Expr& x);  // transposed, conjugated if complex
// Entries (i, j) with j <= i + k, others 0; and those with j >= i + k.
Expr Lower(const Expr& x, int64_t k = 0);
Expr Upper(const Expr& x, int64_t k = 0);
Expr Identity(Builder& b, const Type& like);             // ones on the diagonal
Expr Diagonal(const Expr& x);                            // [..., n, n] -> [..., n]
Expr OnDiagonal(const Expr& x, const Expr& otherwise);   // x on the diagonal
Expr AsRows(const Expr& vector, const Type& matrix);     // entry (i, j) = vector[j]
Expr AsColumns(const Expr& vector, const Type& matrix);  // entry (i, j) = vector[i]
Expr ToComplexLike(const Expr& x, DType dtype);          // converts where `dtype` is complex
Expr HermitianFromLower(const Expr& x);
Expr SolveTriangular(const Expr& a, const Expr& b, bool left, bool lower, bool adjoint = false,
                     bool unit_diagonal = false);

// Samples: every dtype with `shape`, then further shapes in f32. `values` gives a matrix of a shape, or nothing.
std::vector<Sample> MatrixSamples(const std::vector<Dims>& shapes, const Attrs& attrs,
                                  const std::function<Tensor(const Type&)>& values = nullptr);
// Matrix entries as a function of row and column, the same for each matrix of the stack up to a factor.
Tensor MatrixOf(const Type& type, const std::function<std::complex<double>(int64_t i, int64_t j)>& entry);

void RegisterSolvers(PrimRegistry& r);
void RegisterSpectral(PrimRegistry& r);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_LINALG_LINALG_H_
