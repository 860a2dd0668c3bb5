// Functions that become regions of one equation: given the same captured values, in the same order, and results of the
// same types.
//
//   Aligned a = AlignCaptures({on_false, on_true});
//   Bind(FindPrim("cond"), {pred, operands..., a.captures...}, {}, a.fns);
#ifndef WEFT_TRACER_REGIONS_H_
#define WEFT_TRACER_REGIONS_H_

#include <string>
#include <vector>

#include "tracer/site.h"
#include "tracer/trace.h"

namespace weft {

struct Aligned {
  std::vector<FnRef> fns;  // own parameters, then every captured value of all
  Values captures;
};
Aligned AlignCaptures(const std::vector<Traced>& functions);

// Drops arguments that no function uses, passes equal ones once, and orders them by first use (of the last function
// first: of a `cond` that is what runs if it is true). So it leaves no trace in the program whether a branch took a
// value as operand or from around it.
void CanonicalOperands(std::vector<FnRef>& fns, Values& args);

// A function whose parameter i is parameter order[i] of `fn`; parameters left out must be unused... so none may be.
FnRef ReorderParams(const FnRef& fn, const std::vector<int>& order);

// Whether two lists hold the same values, in any order.
bool SameCaptures(const Values& a, const Values& b);
// `f`, which calls itself by `recur` with `captures` after its own arguments, as a function of one `recursive`
// equation.
Traced AsRecursive(const Traced& f, const Values& captures);

// Converts results whose dtype is weak to that of the other functions. Raises kType naming `what` and the result (its
// path from `paths`) where types differ otherwise. Each result varies over the mesh axes over which it does in any of
// the functions, and over `varying`.
void UnifyResults(std::vector<Traced>& functions, const std::string& what, const std::vector<std::string>& names,
                  const std::vector<std::string>& paths, const Strings& varying = {});

// A loop's carry: whether the first results of `body` have its types. Weak results are converted in `body`; weak
// carries in `carry`, from what was given as such (Python's numbers with all their digits), and then true is returned:
// trace the body again. Raises kType otherwise.
bool PromoteCarry(Values& carry, Operands given, Traced& body, const std::string& what,
                  const std::vector<std::string>& paths);

}  // namespace weft
#endif  // WEFT_TRACER_REGIONS_H_
