// What is known of matrices from how they are made: which triangle is 0, and whether they are symmetric.
//
//   std::optional<Triangle> t = TriangleOf(b, a);      // tril(x), diag(d), eye(n), a Cholesky factor, sums of such ...
//   if (t && t->zero_above) ...                        // lower triangular
//   if (IsGramAndDiagonal(b, a)) ...                   // x @ x.T + c * eye(n)
#ifndef WEFT_TRANSFORMS_OPT_MATRIX_FORMS_H_
#define WEFT_TRANSFORMS_OPT_MATRIX_FORMS_H_

#include <optional>

#include "ir/builder.h"

namespace weft {

// Where the matrices of the last two dimensions are 0; both: they are diagonal.
struct Triangle {
  bool zero_above = false, zero_below = false;
};
// Nothing where neither is known, or the matrices are not square.
std::optional<Triangle> TriangleOf(const Builder& b, const Atom& a);

// Whether a real matrix (or a stack of them) is the product of a matrix and its transpose, times numbers, with
// diagonal matrices added: symmetric, and positive definite where the numbers and the diagonals are positive.
bool IsGramAndDiagonal(const Builder& b, const Atom& a);

// The diagonals [..., n] of matrices [..., n, n]; of what is computed element by element, and of masks and what is
// repeated, without the matrices.
Atom DiagonalOf(Builder& b, const Atom& a);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_MATRIX_FORMS_H_
