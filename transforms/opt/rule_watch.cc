#include "transforms/opt/rule_watch.h"

#include <vector>

#include "transforms/opt/expression_text.h"

namespace weft {
namespace {

constexpr int kDepth = 6;  // of expressions

}  // namespace

void RuleWatch::Applied(const char* rule, const Builder& b, const Eqn& e, const Atoms& x, const Atoms& made,
                        uint32_t first_made) {
  --most;
  if (!applied) return;
  AppliedRule record{pass_, rule, e.prim->name, e.loc, "", ""};
  if (texts) {
    ExpressionText text([&b](const Atom& a) { return b.Definition(a); });
    for (const Atom& a : made) text.Name(a, first_made, kDepth);
    record.before = text.Of(e, x, kDepth);
    for (const Atom& a : made) record.after += (record.after.empty() ? "" : ", ") + text.Of(a, kDepth);
  }
  applied(record);
}

void RuleWatch::Applied(const char* rule, const Fn& fn, const Eqn& e) {
  --most;
  if (!applied) return;
  AppliedRule record{pass_, rule, e.prim->name, e.loc, "", ""};
  if (texts) {
    std::vector<const Eqn*> defined(fn.num_vars(), nullptr);
    for (const Eqn& other : fn.eqns()) {
      for (uint32_t r = 0; r < other.num_results; ++r) defined[other.first_result + r] = &other;
    }
    ExpressionText text([&defined](const Atom& a) { return a.is_var() ? defined[a.id()] : nullptr; });
    record.before = text.Of(e, e.operands, kDepth);
  }
  applied(record);
}

}  // namespace weft
