// What families of rules that are written as rows share: rows for several primitives, and when rules apply.
#ifndef WEFT_TRANSFORMS_OPT_RULE_ROWS_H_
#define WEFT_TRANSFORMS_OPT_RULE_ROWS_H_

#include <string>
#include <vector>

#include "transforms/opt/simplify.h"

namespace weft {

// What rounds otherwise waits for lowering, so that a function and the value beside its derivative keep the same bits.
void RoundAtLowering(std::vector<SimplifyRule>& rules);

// Adds a row for each of `prims`. Its sample is `before`, the primitive's name and `after`.
void AddRows(std::vector<SimplifyRule>& rules, const char* name, Licence licence,
             std::optional<Atom> (*apply)(Builder&, const Eqn&, const Atoms&), const std::vector<const char*>& prims,
             const std::string& before, const char* after);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_RULE_ROWS_H_
