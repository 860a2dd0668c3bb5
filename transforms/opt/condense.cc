#include "transforms/opt/condense.h"

#include "ir/builder.h"
#include "transforms/opt/cse.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/rule_watch.h"
#include "transforms/opt/simplify.h"

namespace weft {
FnRef Condense(FnRef fn) {
  if (const RuleWatch* watch = RuleWatch::Current(); watch != nullptr && !watch->Allows(kCondense)) return fn;
  const RuleWatch::RunningPass pass(kCondense);
  std::vector<EquationTable> scopes;
  return Rewrite(
      std::move(fn),
      [&](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
        if (!EquationTable::Takes(e)) return std::nullopt;
        EquationTable& seen = scopes.back();
        const size_t before = b.num_eqns();
        if (std::optional<Atoms> simple = SimplifyEqn(b, e, operands)) {
          // One equation in place of another may be one that is there already; the new one is dead then.
          if (b.num_eqns() != before + 1) return simple;
          const Eqn& made = b.eqns().back();
          if (simple->size() != 1 || !(*simple)[0].is_var() || (*simple)[0].id() != made.first_result) return simple;
          if (const Eqn* same = seen.FindOrAdd(b, made, made.operands, before)) return ResultsOf(*same);
          return simple;
        }
        if (const Eqn* same = seen.FindOrAdd(b, e, operands, before)) return ResultsOf(*same);
        return std::nullopt;
      },
      [&](const Fn& fn, Builder&) { scopes.emplace_back(fn.eqns().size()); }, [&] { scopes.pop_back(); },
      /*count_readers=*/true);
}

FnRef Condense(const FnRef& fn, const Atoms& args) {
  Builder b(fn->name());
  Atoms values;
  for (size_t i = 0; i < args.size(); ++i) {
    const Param& p = fn->params()[i];
    values.push_back(args[i].is_literal() ? args[i] : b.Parameter(p.type, p.name, p.kind));
  }
  const Atoms results = b.Inline(*fn, values);
  return Condense(std::move(b).Build(results));
}

}  // namespace weft
