#include "transforms/opt/rule_rows.h"

#include <deque>

namespace weft {

void RoundAtLowering(std::vector<SimplifyRule>& rules) {
  for (SimplifyRule& r : rules) {
    if (r.licence > Licence::kSignedZero && r.time == RuleTime::kSimplifying) r.time = RuleTime::kLowering;
  }
}

void AddRows(std::vector<SimplifyRule>& rules, const char* name, Licence licence,
             std::optional<Atom> (*apply)(Builder&, const Eqn&, const Atoms&), const std::vector<const char*>& prims,
             const std::string& before, const char* after) {
  static auto& samples = *new std::deque<std::string>();  // as long as the rules
  for (const char* prim : prims) {
    samples.push_back(before + prim + after);
    rules.push_back({name, prim, licence, apply, samples.back().c_str()});
  }
}

}  // namespace weft
