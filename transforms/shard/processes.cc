#include "transforms/shard/processes.h"

#include <algorithm>

#include "ir/builder.h"
#include "ir/prim.h"

namespace weft {

FnRef ForProcess(const FnRef& fn, const Ints& processes, const std::string& program, int64_t digest) {
  WEFT_CHECK(fn->eqns().size() == 1 && fn->eqns()[0].prim->region_use == RegionUse::kDevices)
      << "no partitioned program";
  const Eqn& e = fn->eqns()[0];
  const Mesh& mesh = e.attrs.Get<Mesh>("mesh");
  const Shardings &in = e.attrs.Get<Shardings>("in_shardings"), &out = e.attrs.Get<Shardings>("out_shardings");
  if (std::count(processes.begin() + 1, processes.end(), processes[0]) == 0)
    throw ValueError("'", fn->name(), "' is for ", mesh.ToString(), ", of which process ", processes[0],
                     " has no device; only processes that have one may call it");
  Builder b(fn->name());
  Atoms env;
  for (size_t i = 0; i < fn->params().size(); ++i) {
    const Param& p = fn->params()[i];
    Type stack = LocalType(mesh, in[i], p.type, "argument " + p.name);
    stack.varying.clear();
    stack.dims.insert(stack.dims.begin(), Dim(static_cast<int64_t>(BlocksHeld(mesh, in[i], processes).index.size())));
    env.push_back(b.Parameter(stack, p.name, p.kind));
  }
  Atoms operands;
  for (const Atom& a : e.operands) {
    WEFT_CHECK(a.is_var()) << "an operand of a partitioned program is no parameter";
    operands.push_back(env[a.id()]);
  }
  Ints held;
  for (const Sharding& s : out) {
    Sharding whole = s;
    whole.partial.clear();
    held.push_back(static_cast<int64_t>(BlocksHeld(mesh, whole, processes).index.size()));
  }
  ScopedLoc loc(b, e.loc);
  const Atoms y =
      b.Emit(*e.prim, operands,
             e.attrs.With("processes", processes).With("held", held).With("program", program).With("digest", digest),
             e.regions);
  Atoms results;
  for (const Atom& a : fn->results()) {
    WEFT_CHECK(a.is_var() && a.id() >= e.first_result) << "a result of a partitioned program is no result of spmd";
    results.push_back(y[a.id() - e.first_result]);
  }
  return b.Build(results);
}

}  // namespace weft
