// Dead code: equations whose results nobody needs, and inside control flow the results of branches, carries and stacked
// outputs of loops, and operands of regions that nobody needs.
#include <algorithm>

#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/prim.h"
#include "transforms/pass.h"

namespace weft {
namespace {

Mask Union(Mask a, const Mask& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] = a[i] || b[i];
  return a;
}

template <class List>
List Keep(const List& list, const Mask& mask) {
  List out;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i]) out.push_back(list[i]);
  }
  return out;
}

// A function with only the results in `needed`, and only the parameters in `params`.
FnRef Restrict(const FnRef& fn, const Mask& needed, const Mask& params) {
  Builder b(fn->name());
  Atoms args;
  for (size_t i = 0; i < params.size(); ++i) {
    const Param& p = fn->params()[i];
    // A dropped parameter is read by nothing that is kept; any value of its type stands for it.
    args.push_back(params[i] ? b.Parameter(p.type, p.name, p.kind) : Zeros(b, p.type));
  }
  const Atoms results = Keep(b.Inline(*fn, args), needed);
  return std::move(b).Build(results);
}

// Which parameters the results in `needed` depend on, counting what effects read.
Mask Reads(const Fn& fn, const Mask& needed);

// What is kept of an equation with regions when only some of its results are needed.
struct Kept {
  Mask results, operands;
  Attrs attrs;
  std::vector<FnRef> regions;
};

Kept All(const Eqn& e) { return {Mask(e.num_results, true), Mask(e.operands.size(), true), e.attrs, e.regions}; }

int64_t Count(const Mask& m, size_t begin, size_t end) {
  return std::count(m.begin() + static_cast<int64_t>(begin), m.begin() + static_cast<int64_t>(end), true);
}

// The entries of `lanes` whose tapes are kept: results from `first` on.
void KeepLanes(Kept& k, size_t first) {
  const Attr* attr = k.attrs.Find("lanes");
  if (attr == nullptr) return;
  const Ints& all = std::get<Ints>(*attr);
  Ints lanes;
  for (size_t i = 0; i < all.size(); ++i) {
    if (k.results[first + i]) lanes.push_back(all[i]);
  }
  k.attrs.Set("lanes", lanes);
}

// scan and tape_scan, whose operand 0 says how many steps.
Kept KeepScan(const Eqn& e, const Mask& needed) {
  const size_t lead = e.prim->name == "tape_scan" ? 1 : 0;
  const FnRef& body = e.regions[0];
  const size_t consts = static_cast<size_t>(e.attrs.GetInt("num_consts")),
               carries = static_cast<size_t>(e.attrs.GetInt("num_carry"));
  Mask results = needed;
  Mask reads;
  while (true) {  // a carry that a needed result reads is needed
    reads = Reads(*body, results);
    Mask grown = results;
    for (size_t i = 0; i < carries; ++i) grown[i] = grown[i] || reads[consts + i];
    if (grown == results) break;
    results = grown;
  }
  Kept k{results, reads, e.attrs, {}};
  for (size_t i = 0; i < carries; ++i) k.operands[consts + i] = results[i];
  k.attrs.Set("num_consts", Count(k.operands, 0, consts));
  k.attrs.Set("num_carry", Count(results, 0, carries));
  k.regions = {Restrict(body, results, k.operands)};
  k.operands.insert(k.operands.begin(), lead, true);
  KeepLanes(k, carries);
  return k;
}

Kept KeepWhile(const Eqn& e, const Mask& needed) {
  const FnRef &cond = e.regions[0], &body = e.regions[1];
  const int64_t carries = e.attrs.GetInt("num_carry");
  Mask operands = Reads(*cond, {true}), results = needed;
  for (int64_t i = 0; i < carries; ++i) operands[i] = operands[i] || needed[i];
  while (true) {
    std::copy(operands.begin(), operands.begin() + carries, results.begin());
    const Mask grown = Union(operands, Reads(*body, results));
    if (grown == operands) break;
    operands = grown;
  }
  Kept k{results, operands, e.attrs, {Restrict(cond, {true}, operands), Restrict(body, results, operands)}};
  k.attrs.Set("num_carry", Count(results, 0, static_cast<size_t>(carries)));
  KeepLanes(k, static_cast<size_t>(carries));
  return k;
}

Kept KeepBranches(const Eqn& e, const Mask& needed, size_t first) {
  Mask reads(e.operands.size() - first, false);
  for (const FnRef& r : e.regions) reads = Union(reads, Reads(*r, needed));
  Kept k{needed, Mask(first, true), e.attrs, {}};
  k.operands.insert(k.operands.end(), reads.begin(), reads.end());
  for (const FnRef& r : e.regions) k.regions.push_back(Restrict(r, needed, reads));
  return k;
}

Kept KeepSpmd(const Eqn& e, const Mask& needed) {
  Kept k = KeepBranches(e, needed, 0);
  k.attrs.Set("in_shardings", Keep(e.attrs.Get<Shardings>("in_shardings"), k.operands));
  k.attrs.Set("out_shardings", Keep(e.attrs.Get<Shardings>("out_shardings"), k.results));
  return k;
}

bool RegionsHaveEffects(const Eqn& e) {
  return std::any_of(e.regions.begin(), e.regions.end(), [](const FnRef& r) { return r->HasEffects(); });
}

Kept KeepOf(const Eqn& e, const Mask& needed) {
  if (e.regions.empty() || RegionsHaveEffects(e)) return All(e);
  if (e.prim->name == "scan" || e.prim->name == "tape_scan") return KeepScan(e, needed);
  if (e.prim->name == "while") return KeepWhile(e, needed);
  if (e.prim->name == "cond") return KeepBranches(e, needed, 1);
  if (e.prim->name == "call" || e.prim->name == "remat") return KeepBranches(e, needed, 0);
  if (e.prim->name == "spmd") return KeepSpmd(e, needed);
  return All(e);
}

// Walks backwards; gives for each equation what is kept of it (nothing when empty), and which variables are live.
std::vector<bool> LiveVars(const Fn& fn, const Mask& needed_results, std::vector<std::optional<Kept>>* kept) {
  std::vector<bool> live(fn.num_vars(), false);
  for (size_t i = 0; i < needed_results.size(); ++i) {
    if (needed_results[i] && fn.results()[i].is_var()) live[fn.results()[i].id()] = true;
  }
  for (size_t k = fn.eqns().size(); k-- > 0;) {
    const Eqn& e = fn.eqns()[k];
    Mask needed;
    for (uint32_t r = 0; r < e.num_results; ++r) needed.push_back(live[e.first_result + r]);
    const bool any =
        e.prim->has_effect || RegionsHaveEffects(e) || std::find(needed.begin(), needed.end(), true) != needed.end();
    if (!any) continue;
    Kept keep = KeepOf(e, needed);
    for (size_t i = 0; i < e.operands.size(); ++i) {
      if (keep.operands[i] && e.operands[i].is_var()) live[e.operands[i].id()] = true;
    }
    if (kept != nullptr) (*kept)[k] = std::move(keep);
  }
  return live;
}

Mask Reads(const Fn& fn, const Mask& needed) {
  const std::vector<bool> live = LiveVars(fn, needed, nullptr);
  return Mask(live.begin(), live.begin() + static_cast<int64_t>(fn.params().size()));
}

}  // namespace

FnRef EliminateDeadCode(FnRef fn) {
  std::vector<std::optional<Kept>> kept(fn->eqns().size());
  LiveVars(*fn, Mask(fn->results().size(), true), &kept);
  Builder b(fn->name());
  LongList<Atom> env;
  for (const Param& p : fn->params()) env.push_back(b.Parameter(p.type, p.name, p.kind));
  env.resize(fn->num_vars());
  for (size_t k = 0; k < fn->eqns().size(); ++k) {
    if (!kept[k]) continue;
    const Eqn& e = fn->eqns()[k];
    Atoms operands;
    for (size_t i = 0; i < e.operands.size(); ++i) {
      const Atom& a = e.operands[i];
      if (kept[k]->operands[i]) operands.push_back(a.is_var() ? env[a.id()] : a);
    }
    std::vector<FnRef> regions;
    for (const FnRef& r : kept[k]->regions) regions.push_back(EliminateDeadCode(r));
    ScopedLoc loc(b, e.loc);
    const Atoms y = b.Emit(*e.prim, operands, kept[k]->attrs, regions);
    size_t next = 0;
    for (uint32_t r = 0; r < e.num_results; ++r) {
      if (kept[k]->results[r]) env[e.first_result + r] = y[next++];
    }
  }
  Atoms results;
  for (const Atom& a : fn->results()) results.push_back(a.is_var() ? env[a.id()] : a);
  return std::move(b).Build(results);
}

}  // namespace weft
