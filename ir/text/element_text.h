// The text of one array element, in literals of the IR and in messages: the shortest that reads back as the same bits.
//
//   bool            true false
//   integers        -12, or the value in hexadecimal, 0xff
//   floats          2.0  -0.0  1e-07  inf  -inf  nan  -nan; a NaN with another payload as its bits, 0x7fc00001
//   complex         (1.0,-2.0): both parts as above
//   key             0x and 16 hexadecimal digits
#ifndef WEFT_IR_TEXT_ELEMENT_TEXT_H_
#define WEFT_IR_TEXT_ELEMENT_TEXT_H_

#include <cstdint>
#include <string>

#include "ir/tensor.h"

namespace weft {

std::string ElementText(const Tensor& tensor, int64_t i);
// Writes element `i`. Raises kParse, saying what is wrong, when `text` is no element of the tensor's dtype or does not
// fit it.
void SetElementFromText(Tensor& tensor, int64_t i, const std::string& text);

}  // namespace weft
#endif  // WEFT_IR_TEXT_ELEMENT_TEXT_H_
