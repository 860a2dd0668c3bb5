// The specification of a contraction: "bmk,bkn->bmn".
#ifndef WEFT_IR_PRIMS_CONTRACTION_H_
#define WEFT_IR_PRIMS_CONTRACTION_H_

#include <string>

namespace weft {

struct ContractSpec {
  std::string lhs, rhs, out;  // one letter per dimension
  // Raises kValue when malformed: repeated letters in a term, or a letter in one term only.
  static ContractSpec Parse(const std::string& text);
  std::string ToString() const;
  char FreshLetter() const;
};

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTRACTION_H_
