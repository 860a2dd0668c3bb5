// The text form of the IR. docs/ir.md has the grammar; ir/text/parser.h reads it back.
//
//   fn f(x: f32[3], const w: f32[784,10]) -> (f32[]) {
//     a: f32[3] = mul x 2.0:f32
//     b: f32[] = reduce_sum[dims=[0]] a
//     return b
//   }
//
// Functions that are called, or that are the region of more than one equation, are printed once, before their users,
// and referred to as `@name`; so the text is as long as the program is, not as its expansion. The last function is the
// one that was printed.
#ifndef WEFT_IR_TEXT_PRINTER_H_
#define WEFT_IR_TEXT_PRINTER_H_

#include <cstddef>
#include <ostream>
#include <string>

#include "ir/fn.h"

namespace weft {

struct PrintOptions {
  bool locations = false;  // the user's line of each equation as a comment:  # model.py:12 (loss) via jvp
};

std::string Print(const Fn& fn, const PrintOptions& options = {});
// `[1,2,3]:i32[3]`
std::string Print(const Tensor& literal);

// Equation `index` marked `>` with up to `context` equations either side, their regions elided, for error messages.
// Works for broken functions too: a variable that does not exist prints as `?7`.
std::string PrintAround(const Fn& fn, size_t index, int context = 5);

// True for words that the grammar keeps for itself, such as `return`; no variable is called so.
bool IsTextKeyword(const std::string& word);

inline std::ostream& operator<<(std::ostream& out, const Fn& fn) { return out << Print(fn); }

}  // namespace weft
#endif  // WEFT_IR_TEXT_PRINTER_H_
