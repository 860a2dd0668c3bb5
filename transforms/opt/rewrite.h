// The walk that passes share: rebuild a function equation by equation, regions first.
//
//   FnRef g = Rewrite(f, [](Builder& b, const Eqn& e, const Atoms& x) -> std::optional<Atoms> {
//     if (!Is<"neg">(*e.prim)) return std::nullopt;         // keep
//     return Atoms{...};                                   // the values that replace its results
//   });
#ifndef WEFT_TRANSFORMS_OPT_REWRITE_H_
#define WEFT_TRANSFORMS_OPT_REWRITE_H_

#include <functional>
#include <optional>

#include "ir/builder.h"
#include "ir/fn.h"

namespace weft {

// `eqn` has its regions rewritten already, and its operands are `operands`, atoms of `b`. A replacement must have the
// types of the results.
using RewriteEqn = std::function<std::optional<Atoms>(Builder& b, const Eqn& eqn, const Atoms& operands)>;

// A region that occurs often is rewritten once, so `rewrite` may look at the function it is in, not at what is around.
// `enter`, when given, is called for each function (the outermost and every region) before its equations. A function
// that nobody else holds (`Rewrite(std::move(f), ...)`) is taken apart rather than copied.
// With `count_readers`, ReadOnce tells of the function that is rewritten.
FnRef Rewrite(FnRef fn, const RewriteEqn& rewrite, const std::function<void(const Fn&, Builder&)>& enter = nullptr,
              const std::function<void()>& leave = nullptr, bool count_readers = false);

// For passes that look at a whole function: `body` makes another one of it, or returns the same; of each region first,
// the innermost before what is around, then of `fn`. A region that occurs often is given once.
FnRef RewriteBodies(FnRef fn, const std::function<FnRef(FnRef)>& body);

// How often a value of the function that is being rewritten into `b` is read there, an equation that reads it twice
// counted twice. 0 where nobody counts, and of what rules have just made.
int TimesRead(const Builder& b, const Atom& a);
// Whether nobody but the equation at hand reads a value of the function that is being rewritten into `b`: work on it is
// saved where its reader needs less. True where nobody counts, and of what rules have just made.
inline bool ReadOnce(const Builder& b, const Atom& a) { return TimesRead(b, a) <= 1; }

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_REWRITE_H_
