// Who watches the rules of simplification while passes run: leaves some out, is told of those that apply, and says how
// many may. For explanations and for finding the rule that changes a result.
//
//   RuleWatch watch({"sub-self"});
//   watch.applied = [&](const char* rule, const Eqn& e) { ++count[rule]; };
//   FnRef g = Optimize(f);                                   // in this thread
#ifndef WEFT_TRANSFORMS_OPT_RULE_WATCH_H_
#define WEFT_TRANSFORMS_OPT_RULE_WATCH_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "ir/fn.h"

namespace weft {

class RuleWatch {
 public:
  explicit RuleWatch(std::set<std::string> disabled = {}) : disabled_(std::move(disabled)), before_(current_) {
    current_ = this;
  }
  ~RuleWatch() { current_ = before_; }
  RuleWatch(const RuleWatch&) = delete;

  // The innermost of this thread; null: nobody watches.
  static RuleWatch* Current() { return current_; }

  bool Allows(const char* rule) const { return most > 0 && disabled_.count(rule) == 0; }
  void Applied(const char* rule, const Eqn& eqn) {
    --most;
    if (applied) applied(rule, eqn);
  }

  std::function<void(const char* rule, const Eqn& eqn)> applied;
  bool marks = false;                                  // whether what a rule makes says so in its location
  int64_t most = std::numeric_limits<int64_t>::max();  // how many applications are still allowed

 private:
  std::set<std::string> disabled_;
  RuleWatch* before_;
  static inline thread_local RuleWatch* current_ = nullptr;
};

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_RULE_WATCH_H_
