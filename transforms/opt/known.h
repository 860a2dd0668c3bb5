// What is known of values from how they are made: bounds of integers, indices, and matrices that hold few numbers
// (identities, diagonals, triangles of ones, one-hot rows).
//
//   std::optional<Bounds> r = BoundsOf(b, a);          // 0 <= iota < n
//   if (IsIndexAlong(b, a, 1)) ...                     // a[i, j, ...] = j
//   std::optional<SparseArray> m = SparseArrayOf(b, a);
#ifndef WEFT_TRANSFORMS_OPT_KNOWN_H_
#define WEFT_TRANSFORMS_OPT_KNOWN_H_

#include <cstdint>
#include <optional>

#include "ir/builder.h"

namespace weft {

// The smallest and the largest number that an integer may be.
struct Bounds {
  int64_t least, most;
};
std::optional<Bounds> BoundsOf(const Builder& b, const Atom& a, int depth = 12);

// The dimension that `a` counts: each element is its own index there. -1: it counts none, or that is not known.
int IndexedDim(const Builder& b, const Atom& a, int depth = 12);

// Of an equation that changes shapes alone (transpose, broadcast, a reshape by dimensions of size 1): its operand's
// dimension for each of the result's, -1 where the result repeats it or has size 1. Nothing for others.
std::optional<Ints> ViewDims(const Builder& b, const Eqn& e, const Dims& result);

// The indices of a gather along each dimension that it names, of size 1 in the last, where they are put side by side.
std::optional<Atoms> IndexColumns(const Builder& b, const Atom& indices);

// Whether a value is the same along a dimension, through changes of shape.
bool IsConstantAlong(const Builder& b, const Atom& a, int dim, int depth = 12);

// Whether an equation takes the diagonal of a square matrix: the elements (i, i), all of them.
bool TakesDiagonal(const Builder& b, const Eqn& e, const Atoms& x);

// An array that is 0 but where two indices, or an index and a number of the program, compare.
struct SparseArray {
  enum class Kind : uint8_t {
    kDiagonal,      // x[dim] == x[other]
    kOneHot,        // x[dim] == index, which does not vary along `dim`
    kLowerTriangle  // x[dim] >= x[other]
  };
  Kind kind;
  int dim, other;
  Atom index;                 // of kOneHot: integers of the array's shape
  std::optional<Atom> value;  // what it is there, of the array's shape or a number; nullopt: 1
};
std::optional<SparseArray> SparseArrayOf(const Builder& b, const Atom& a);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_KNOWN_H_
