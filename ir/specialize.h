// Functions of symbolic sizes, for arguments of given types.
//
//   fn f(x: f32[n,10]) ...
//   const auto sizes = MatchArguments(*f, {{DType::kF32, {m * 2, 10}, {}}});   // {"n": 2*m}
//   Specialize(f, sizes);                                                       // fn f(x: f32[2*m,10]) ...
#ifndef WEFT_IR_SPECIALIZE_H_
#define WEFT_IR_SPECIALIZE_H_

#include <map>
#include <string>

#include "absl/types/span.h"
#include "ir/fn.h"

namespace weft {

// What the symbols of the parameters' types stand for, which may be symbolic again. Raises TypeError naming the
// argument that does not fit.
std::map<std::string, Dim> MatchArguments(const Fn& fn, absl::Span<const Type> args);

// `fn` with symbols replaced in types, attributes and regions; `fn` itself where that changes nothing. A size that is
// less than an equation needs (ir/analysis/size_conditions.h) is an error; in a region, which may not run, it is one
// when that runs.
FnRef Specialize(const FnRef& fn, const std::map<std::string, Dim>& symbols);

// The reverse, for a function all of whose sizes are numbers: one of symbolic sizes that Specialize makes `fn` of
// again. What only sizes tell apart becomes one function:
//
//   fn f(x: f32[60,50], y: f32[50]) ...
//   Generalize(f, 2);                   // fn f(x: f32[n0,n1], y: f32[n1]) ...
//
// The sizes of parameters from `least` on become symbols, equal ones the same symbol, in types and in attributes. Null:
// an equation needs the numbers, or has regions; or no parameter has such a size.
FnRef Generalize(const FnRef& fn, int64_t least);

}  // namespace weft
#endif  // WEFT_IR_SPECIALIZE_H_
