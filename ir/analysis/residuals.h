// Where the values come from that one half of a program hands to the other, and what loops record: for whoever wants to
// know what reverse mode keeps.
//
//   const Pullback p = Vjp(f, active);
//   for (size_t i = f->results().size(); i < p.forward->results().size(); ++i)
//     Print(OriginOf(*p.forward, p.forward->results()[i]));
#ifndef WEFT_IR_ANALYSIS_RESIDUALS_H_
#define WEFT_IR_ANALYSIS_RESIDUALS_H_

#include <optional>
#include <string>
#include <vector>

#include "ir/fn.h"

namespace weft {

struct Origin {
  enum class Kind { kArgument, kConstant, kLiteral, kValue };
  Kind kind = Kind::kValue;
  Type type;
  size_t param = 0;         // of an argument or constant
  std::string prim;         // the operation that computes the value, inside calls and loops
  std::string name;         // given by checkpoint_name
  Loc loc;                  // of that operation
  std::string repeats;      // how often the value is kept: "1000 steps", "10 snapshots"; "" for once
  std::optional<Type> row;  // of a tape that a loop records: what every trip adds
};
Origin OriginOf(const Fn& fn, const Atom& value);

// A line for each loop that records something: what a trip adds, how many there are where that is known, and the user's
// line. Loops inside loops come after the loop that holds them, indented.
std::vector<std::string> LoopMemory(const Fn& fn);

}  // namespace weft
#endif  // WEFT_IR_ANALYSIS_RESIDUALS_H_
