// Reads the text form of the IR (docs/ir.md has the grammar, ir/text/printer.h writes it).
//
//   FnRef f = ParseFn("fn f(x: f32[3]) -> (f32[3]) {\n  a: f32[3] = sin x\n  return a\n}\n");
//
// Whatever is wrong with the text, also in the eyes of a primitive's type rule, is an Error of kind kParse that shows
// the place:
//
//   loss.weft:2:16: 'y' is not defined
//     a: f32[3] = mul x y
//                       ^
#ifndef WEFT_IR_TEXT_PARSER_H_
#define WEFT_IR_TEXT_PARSER_H_

#include <string>
#include <vector>

#include "ir/fn.h"

namespace weft {

// The version of the grammar. A text may begin with a line `weft 1`; without it, it is of this version.
inline constexpr int kTextVersion = 1;

struct ParseOptions {
  // Named in errors. When given, equations get `file:line` of the text as their location.
  std::string file = {};
  // Keep attributes that their primitive does not have, for tests; otherwise they are errors.
  bool any_attributes = false;
};

// The last function of the text; the ones before it are there to be called.
FnRef ParseFn(const std::string& text, const ParseOptions& options = {});
// All functions, in order. At least one.
std::vector<FnRef> ParseModule(const std::string& text, const ParseOptions& options = {});
// The value of one attribute, as it stands behind `name=`.
Attr ParseAttribute(const std::string& text);

}  // namespace weft
#endif  // WEFT_IR_TEXT_PARSER_H_
