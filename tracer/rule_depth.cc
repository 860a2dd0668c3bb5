#include "tracer/rule_depth.h"

#include <algorithm>

namespace weft {
namespace {

thread_local int derivatives = 0, rules = 0;

}  // namespace

ScopedDerivatives::ScopedDerivatives(int count) : count_(rules == 0 ? count : 0) { derivatives += count_; }
ScopedDerivatives::~ScopedDerivatives() { derivatives -= count_; }
ScopedRule::ScopedRule() { ++rules; }
ScopedRule::~ScopedRule() { --rules; }

int RulesLeft() { return std::max(kLeastRuleDepth, derivatives) - rules; }

}  // namespace weft
