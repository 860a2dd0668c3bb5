// What is wrong with a size that only a call tells, in the words of all who find it: the interpreter, Specialize and
// compiled programs.
//
//   SizeMessage("top_k: dimension 0 of f32[n]", 1, 2)  // "top_k: dimension 0 of f32[n] has size 1; expected at least
//   2"
#ifndef WEFT_IR_SIZE_MESSAGE_H_
#define WEFT_IR_SIZE_MESSAGE_H_

#include <cstdint>
#include <string>

namespace weft {

// `where` says what the symbols of `what` are, as in ", where n = 1".
inline std::string SizeMessage(const std::string& what, int64_t size, int64_t least, const std::string& where = "") {
  return what + " has size " + std::to_string(size) + where + "; expected at least " + std::to_string(least);
}

}  // namespace weft
#endif  // WEFT_IR_SIZE_MESSAGE_H_
