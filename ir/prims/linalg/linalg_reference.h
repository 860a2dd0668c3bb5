// Matrix factorisations for the reference interpreter: textbook algorithms in double precision, written to be read.
// T is double or std::complex<double>.
#ifndef WEFT_IR_PRIMS_LINALG_LINALG_REFERENCE_H_
#define WEFT_IR_PRIMS_LINALG_LINALG_REFERENCE_H_

#include <complex>
#include <cstdint>
#include <vector>

namespace weft {

template <class T>
struct Matrix {
  int64_t rows = 0, cols = 0;
  std::vector<T> values;  // row-major

  Matrix() = default;
  Matrix(int64_t rows, int64_t cols) : rows(rows), cols(cols), values(rows * cols) {}
  T& operator()(int64_t i, int64_t j) { return values[i * cols + j]; }
  const T& operator()(int64_t i, int64_t j) const { return values[i * cols + j]; }
  static Matrix Identity(int64_t rows, int64_t cols);
  Matrix Adjoint() const;  // conjugated and transposed
};

// The Hermitian matrix whose lower triangle is that of `a`; imaginary parts on the diagonal count as 0.
template <class T>
Matrix<T> HermitianFromLower(const Matrix<T>& a);

// L with L L^H = a, from the lower triangle of `a` (Cholesky-Banachiewicz); NaN in the lower triangle where `a` is not
// positive definite.
template <class T>
Matrix<T> Cholesky(const Matrix<T>& a);

// X with a X = b, by substitution; `a` is lower or upper triangular (its other half is not read).
template <class T>
Matrix<T> SolveTriangular(const Matrix<T>& a, const Matrix<T>& b, bool lower, bool unit_diagonal);

// a = q r with orthonormal columns, min(rows, cols) of them, by Householder reflections with the signs of LAPACK's
// geqrf (R's diagonal has the sign opposite to that of the entry it replaces, unless everything below is zero).
template <class T>
void HouseholderQr(const Matrix<T>& a, Matrix<T>* q, Matrix<T>* r);

// Row-pivoted LU as LAPACK's getrf: L (unit diagonal) below, U on and above the diagonal; row i was exchanged with
// pivots[i]; row i of L U is row permutation[i] of `a`.
template <class T>
Matrix<T> PivotedLu(const Matrix<T>& a, std::vector<int64_t>* pivots, std::vector<int64_t>* permutation);

// Eigenvalues in ascending order and eigenvectors (columns) of a Hermitian matrix, by cyclic Jacobi rotations.
template <class T>
void JacobiEigh(Matrix<T> a, std::vector<double>* w, Matrix<T>* v);

// Eigenvalues (a column, by ascending real and then imaginary part) and eigenvectors (columns of length 1 whose largest
// entry is real and positive), by QR steps with Wilkinson's shifts (Golub & Van Loan, Matrix Computations, 4th
// ed., 7.5). NaN for a matrix that is not finite.
void SchurEig(const Matrix<std::complex<double>>& a, Matrix<std::complex<double>>* w, Matrix<std::complex<double>>* v);

// a = u diag(s) vt with min(rows, cols) singular values in descending order, by one-sided Jacobi rotations (Hestenes).
template <class T>
void JacobiSvd(const Matrix<T>& a, Matrix<T>* u, std::vector<double>* s, Matrix<T>* vt);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_LINALG_LINALG_REFERENCE_H_
