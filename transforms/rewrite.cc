#include "transforms/rewrite.h"

#include <algorithm>

#include "ir/ops.h"

namespace weft {

FnRef Rewrite(const FnRef& fn, const RewriteEqn& rewrite, const std::function<void(const Fn&, Builder&)>& enter,
              const std::function<void()>& leave) {
  Builder b(fn->name());
  b.ReserveLike(*fn);
  LongList<Atom> env;
  env.reserve(fn->num_vars());
  for (const Param& p : fn->params()) env.push_back(b.Parameter(p.type, p.name, p.kind));
  env.resize(fn->num_vars());
  if (enter) enter(*fn, b);
  auto map = [&](const Atoms& atoms) {
    Atoms out;
    out.reserve(atoms.size());
    for (const Atom& a : atoms) out.push_back(a.is_var() ? env[a.id()] : a);
    return out;
  };
  for (const Eqn& original : fn->eqns()) {
    const Atoms operands = map(original.operands);
    ScopedLoc loc(b, original.loc);
    const Eqn* e = &original;
    Eqn with_regions;
    if (!original.regions.empty()) {
      with_regions = original;
      for (FnRef& region : with_regions.regions) region = Rewrite(region, rewrite, enter, leave);
      e = &with_regions;
    }
    std::optional<Atoms> replaced = rewrite(b, *e, operands);
    const Atoms results = replaced ? std::move(*replaced) : b.Clone(*fn, *e, operands);
    WEFT_CHECK(results.size() == e->num_results) << "rewrite of " << e->prim->name;
    for (uint32_t r = 0; r < e->num_results; ++r) {
      // What stands for a value that varies over mesh axes varies over them, as far as its readers know.
      const Type& type = fn->TypeOf(original.result(static_cast<int>(r)));
      env[original.first_result + r] = type.varying.empty() ? results[r] : MatchVarying(b, results[r], type);
    }
  }
  FnRef out = std::move(b).Build(map(fn->results()));
  if (leave) leave();
  return out;
}

}  // namespace weft
