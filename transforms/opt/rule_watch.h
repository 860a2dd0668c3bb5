// Who watches the rules of simplification while passes run: leaves some out, is told of those that apply, and says how
// many may. For explanations and for finding the rule that changes a result.
//
//   RuleWatch watch({"sub-self"});
//   watch.applied = [&](const AppliedRule& a) { ++count[a.rule]; };
//   FnRef g = Optimize(f);                                   // in this thread
#ifndef WEFT_TRANSFORMS_OPT_RULE_WATCH_H_
#define WEFT_TRANSFORMS_OPT_RULE_WATCH_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "ir/applied_rule.h"
#include "ir/builder.h"
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

  bool Allows(const char* rule) const { return most > 0 && (disabled_.empty() || disabled_.count(rule) == 0); }
  // `rule` replaced equation `e`, whose operands in the builder are `x`, by these values, for which it made variables
  // from `first_made` on.
  void Applied(const char* rule, const Builder& b, const Eqn& e, const Atoms& x, const Atoms& made,
               uint32_t first_made);
  // It rewrote the function in which `e` is.
  void Applied(const char* rule, const Fn& fn, const Eqn& e);

  // What `apply` gives, which makes its values in `b`, where the rule is allowed; the watch of this thread is told.
  template <class Apply>
  static auto Try(const char* rule, Builder& b, const Eqn& e, const Atoms& x, const Apply& apply) -> decltype(apply()) {
    RuleWatch* const watch = Current();
    if (watch == nullptr) return apply();
    if (!watch->Allows(rule)) return std::nullopt;
    const uint32_t first_made = b.num_vars();
    const size_t first_eqn = b.num_eqns();
    auto made = apply();
    if (!made) return made;
    if (watch->marks) b.SeeThrough(first_eqn, rule);
    watch->Applied(rule, b, e, x, Listed(*made), first_made);
    return made;
  }

  // The pass that runs in a scope, for those who are told.
  class RunningPass {
   public:
    explicit RunningPass(const char* name) : watch_(Current()) {
      if (watch_ != nullptr) before_ = std::exchange(watch_->pass_, name);
    }
    ~RunningPass() {
      if (watch_ != nullptr) watch_->pass_ = before_;
    }
    RunningPass(const RunningPass&) = delete;

   private:
    RuleWatch* watch_;
    const char* before_ = nullptr;
  };

  std::function<void(const AppliedRule&)> applied;
  bool texts = false;                                  // whether `applied` wants expressions
  bool marks = false;                                  // whether what a rule makes says so in its location
  int64_t most = std::numeric_limits<int64_t>::max();  // how many applications are still allowed

 private:
  static Atoms Listed(const Atom& a) { return {a}; }
  static Atoms Listed(Atoms all) { return all; }

  std::set<std::string> disabled_;
  const char* pass_ = "";
  RuleWatch* before_;
  friend class NoRuleWatch;
  static inline thread_local RuleWatch* current_ = nullptr;
};

// Nobody watches: for programs that are compiled on the way, which others will run, too.
class NoRuleWatch {
 public:
  NoRuleWatch() : before_(std::exchange(RuleWatch::current_, nullptr)) {}
  ~NoRuleWatch() { RuleWatch::current_ = before_; }
  NoRuleWatch(const NoRuleWatch&) = delete;

 private:
  RuleWatch* before_;
};

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_RULE_WATCH_H_
