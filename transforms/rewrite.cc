#include "transforms/rewrite.h"

#include <algorithm>

#include "ir/ops.h"

namespace weft {

FnRef Rewrite(FnRef fn, const RewriteEqn& rewrite, const std::function<void(const Fn&, Builder&)>& enter,
              const std::function<void()>& leave) {
  Builder b(fn->name());
  b.ReserveLike(*fn);
  LongList<Atom> env;
  env.reserve(fn->num_vars());
  for (const Param& p : fn->params()) env.push_back(b.Parameter(p.type, p.name, p.kind));
  env.resize(fn->num_vars());
  if (enter) enter(*fn, b);
  for (size_t i = 0; i < fn->eqns().size(); ++i) {
    Eqn copy;
    Eqn& e = Builder::TakeEqn(fn, i, copy);
    const uint32_t first = e.first_result, num_results = e.num_results;
    const bool same_types = b.Translate(*fn, e, [&](Var v) -> const Atom& { return env[v.id]; });
    ScopedLoc loc(b, e.loc);
    for (FnRef& region : e.regions) region = Rewrite(std::move(region), rewrite, enter, leave);
    std::optional<Atoms> replaced = rewrite(b, e, e.operands);
    const Atoms results = replaced ? std::move(*replaced) : b.Adopt(*fn, std::move(e), same_types);
    WEFT_CHECK(results.size() == num_results) << "rewrite of equation " << i << " of " << fn->name();
    for (uint32_t r = 0; r < num_results; ++r) {
      // What stands for a value that varies over mesh axes varies over them, as far as its readers know.
      const Type& type = fn->TypeOf(Var{first + r});
      env[first + r] = type.varying.empty() ? results[r] : MatchVarying(b, results[r], type);
    }
  }
  Atoms results;
  for (const Atom& a : fn->results()) results.push_back(a.is_var() ? env[a.id()] : a);
  FnRef out = std::move(b).Build(results);
  if (leave) leave();
  return out;
}

}  // namespace weft
