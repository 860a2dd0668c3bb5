// The specification of a contraction: "bmk,bkn->bmn".
#ifndef WEFT_IR_PRIMS_CONTRACTION_H_
#define WEFT_IR_PRIMS_CONTRACTION_H_

#include <optional>
#include <string>

#include "ir/builder.h"

namespace weft {

struct ContractSpec {
  std::string lhs, rhs, out;  // one letter per dimension
  // Raises kValue when malformed: repeated letters in a term, or a letter in one term only.
  static ContractSpec Parse(const std::string& text);
  std::string ToString() const;
  char FreshLetter() const;
};

// Of the product of two matrices, or of two stacks of them, of this rank.
std::string MatrixProductSpec(int rank);

// dx = x factor, or factor x (`left`).
struct Multiple {
  Atom factor;
  bool left;
};
// The derivative of a factorisation is often a multiple of the factor itself, dx = x k, where k is found first. Rules
// that would divide dx by x, or multiply it with what x was multiplied with, read k instead. Nothing unless dx is
// defined as such a product.
std::optional<Multiple> AsMultiple(const Builder& b, const Atom& x, const Atom& dx);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTRACTION_H_
