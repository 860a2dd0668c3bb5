#include "tracer/rule_depth.h"

#include <algorithm>

#include "tracer/context.h"

namespace weft {
namespace {

int& Counter() {
  TraceContext& context = Context();
  return context.open_rules.empty() ? context.derivatives : context.inner_derivatives;
}

}  // namespace

// The rules that are open are the same at both ends of a scope.
ScopedDerivatives::ScopedDerivatives(int count) : count_(count) { Counter() += count_; }
ScopedDerivatives::~ScopedDerivatives() { Counter() -= count_; }
ScopedRule::ScopedRule(int64_t function) { Context().open_rules.push_back(function); }
ScopedRule::~ScopedRule() { Context().open_rules.pop_back(); }

int RulesLeft(int64_t function) {
  const TraceContext& context = Context();
  const std::vector<int64_t>& open = context.open_rules;
  const auto own = static_cast<int>(std::count(open.begin(), open.end(), function));
  const int others = static_cast<int>(open.size()) - own;
  return std::max(kLeastRuleDepth, context.derivatives) - own - std::max(0, others - context.inner_derivatives);
}

}  // namespace weft
