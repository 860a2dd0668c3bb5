// The rules of custom_jvp and custom_vjp that are functions of the host (ir/custom_rules.h), made parts of programs.
#ifndef WEFT_TRANSFORMS_AD_TRACED_RULES_H_
#define WEFT_TRANSFORMS_AD_TRACED_RULES_H_

#include <exception>
#include <functional>

#include "ir/fn.h"

namespace weft {

// Whether a custom_linear inside names its backward rule.
bool NamesBackwardRules(const Fn& fn);
// Such equations get the traced rule and, where that is linear, its transpose: what forward mode computes.
FnRef WithLinearMaps(FnRef fn);

// Raises for a custom_jvp in `fn` whose rule gives a value of the function that depends on a tangent: then the
// derivative has no linear half. Called where that is so.
void RaiseForMixedRule(const Fn& fn);

// The program without custom rules that the host has: for running it.
FnRef WithoutHostRules(FnRef fn);

// The program for another process, which can differentiate it: host rules are run, for all tangents and cotangents,
// and go along as regions. Not all can: a rule that leads back to its own function would have no end, so that function
// is without a rule inside (and a derivative of higher order an error); and so is a function whose rule cannot be
// traced here: it raises what `tolerated` accepts, or needs an array that is no argument of the program.
FnRef WithTracedRules(const FnRef& fn, const std::function<bool(const std::exception&)>& tolerated);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_AD_TRACED_RULES_H_
