#include "tracer/rule_depth.h"

#include <algorithm>

namespace weft {
namespace {

thread_local int derivatives = 0;        // taken outside of rules
thread_local int inner_derivatives = 0;  // taken inside of them
std::vector<int64_t>& OpenRules() {
  thread_local std::vector<int64_t> functions;
  return functions;
}

int& Counter() { return OpenRules().empty() ? derivatives : inner_derivatives; }

}  // namespace

// The rules that are open are the same at both ends of a scope.
ScopedDerivatives::ScopedDerivatives(int count) : count_(count) { Counter() += count_; }
ScopedDerivatives::~ScopedDerivatives() { Counter() -= count_; }
ScopedRule::ScopedRule(int64_t function) { OpenRules().push_back(function); }
ScopedRule::~ScopedRule() { OpenRules().pop_back(); }

int RulesLeft(int64_t function) {
  const auto& open = OpenRules();
  const auto own = static_cast<int>(std::count(open.begin(), open.end(), function));
  const int others = static_cast<int>(open.size()) - own;
  return std::max(kLeastRuleDepth, derivatives) - own - std::max(0, others - inner_derivatives);
}

std::vector<uint64_t> RuleState() {
  if (OpenRules().empty() && derivatives <= kLeastRuleDepth) return {};
  std::vector<uint64_t> state = {static_cast<uint64_t>(derivatives), static_cast<uint64_t>(inner_derivatives)};
  state.insert(state.end(), OpenRules().begin(), OpenRules().end());
  std::sort(state.begin() + 2, state.end());
  return state;
}

}  // namespace weft
