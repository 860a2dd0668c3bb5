#include "lowering/fusion/fusion.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "ir/prim.h"
#include "lowering/fusion/absorbed.h"
#include "lowering/fusion/siblings.h"
#include "lowering/fusion/unit_graph.h"
#include "lowering/ops/op_table.h"

namespace weft {
namespace {

using How = BlockPlan::How;

// More work than reading a value again: it is not computed twice.
bool IsExpensive(const Prim& prim) { return prim.work > 1; }

class Fuser {
 public:
  Fuser(const Fn& fn, const FusionPolicy& policy) : fn_(fn), policy_(policy), defining_(DefiningEqns(fn)) {}

  BlockPlan Run() {
    plan_.values.resize(fn_.num_vars());
    plan_.space.resize(fn_.eqns().size());
    for (size_t i = 0; i < fn_.params().size(); ++i) {
      plan_.values[i].how = How::kParam;
      plan_.values[i].stored = true;
    }
    Demand();
    for (size_t i = 0; i < fn_.eqns().size(); ++i) {
      if (live_[i]) Place(static_cast<int>(i));
    }
    FindReads();
    MergeSiblings(fn_, policy_, &plan_, &graph_);
    Order();
    return std::move(plan_);
  }

 private:
  // What an iteration of some equation reads: element `index` of a buffer, or an element that data decide (whole).
  struct Dep {
    uint32_t var;               // root
    std::vector<Affine> index;  // by dimension of the variable itself, empty when whole
    bool whole = false;
  };

  const Eqn& eqn(int i) const { return fn_.eqns()[i]; }
  bool Reduces(const Eqn& e) const { return IsReduction(e) || (policy_.arg_reductions && IsArgReduction(e)); }

  void Demand();
  void DemandAtom(const Atom& a) {
    if (a.is_var()) demanded_[a.id()] = true;
  }
  void DemandOperands(int e);
  void Place(int e);
  void PlaceMember(int e);
  // Whether each reader computes the result of equation e, and then what that costs.
  bool MayInline(int e);
  // Whether every element is one number that the program knows.
  bool IsUniform(const Atom& a) const {
    const Atom* number = RepeatedNumber(a);
    return number != nullptr && number->is_literal();
  }
  // The number that an array repeats, which a kernel reads once; null for other arrays.
  const Atom* RepeatedNumber(const Atom& a) const {
    if (!a.is_var() || defining_[a.id()] < 0) return nullptr;
    const Eqn& e = eqn(defining_[a.id()]);
    return IsView(fn_, e) && !e.operands.empty() && fn_.TypeOf(e.operands[0]).rank() == 0 ? &e.operands[0] : nullptr;
  }
  void Collect(const Atom& a, const std::vector<Affine>& index, std::vector<Dep>* out);
  void CollectOperands(int e, const std::vector<Affine>& index, std::vector<Dep>* out);
  std::vector<Dep> DepsOf(int e);
  Dims SpaceOf(int e) const {
    return Reduces(eqn(e)) ? fn_.TypeOf(eqn(e).operands[0]).dims : fn_.TypeOf(eqn(e).result()).dims;
  }
  // Why equation e, with these reads, cannot be computed in `unit`; empty when it can, and then `space` maps its
  // dimensions to the unit's.
  std::string Joinable(int e, const std::vector<Dep>& deps, int unit, std::vector<int>* space);
  // Makes the group `from` part of `into`, where an equation walks both domains in these ways.
  bool IsSharedByThreads(const BlockPlan::Unit& u) const;
  bool PairReduced(const BlockPlan::Unit& a, const BlockPlan::Unit& b, std::vector<int>* map) const;
  bool TryMerge(int into, int from, const std::vector<int>& space_into, const std::vector<int>& space_from);
  void Add(int e, int unit, const std::vector<int>& space, const std::vector<Dep>& deps);
  void FindReads();
  void Order();

  // The units that these reads come from, other than `except`.
  std::vector<int> SourcesOf(const std::vector<Dep>& deps, int except) const {
    std::vector<int> units;
    for (const Dep& d : deps) {
      const int u = plan_.values[d.var].unit;
      if (u >= 0 && u != except) units.push_back(u);
    }
    std::sort(units.begin(), units.end());
    units.erase(std::unique(units.begin(), units.end()), units.end());
    return units;
  }
  void Note(int i, int unit, std::string why) {
    const BlockPlan::Unit& u = plan_.units[unit];
    plan_.notes.push_back({i, u.opaque >= 0 ? u.opaque : u.members.back(), std::move(why)});
  }
  int NewUnit(const std::vector<int>& sources) {
    plan_.units.emplace_back();
    return graph_.Add(sources);
  }

  const Fn& fn_;
  const FusionPolicy& policy_;
  std::vector<int> defining_;
  BlockPlan plan_;
  std::vector<bool> live_, demanded_, absorbed_;
  std::vector<int> uses_;
  UnitGraph graph_;  // by unit
  int last_effect_ = -1;
};

// Which results need a buffer whatever happens: results of the function, operands of library operations.
void Fuser::Demand() {
  live_.assign(fn_.eqns().size(), false);
  demanded_.assign(fn_.num_vars(), false);
  uses_ = fn_.UseCounts();
  std::vector<bool> used(fn_.num_vars(), false);
  auto use = [&](const Atom& a) {
    if (a.is_var()) used[a.id()] = true;
  };
  for (const Atom& a : fn_.results()) {
    use(a);
    DemandAtom(a);
  }
  for (size_t i = fn_.eqns().size(); i-- > 0;) {
    const Eqn& e = fn_.eqns()[i];
    bool live = e.prim->has_effect;
    for (uint32_t r = 0; r < e.num_results; ++r) live = live || used[e.first_result + r];
    for (const FnRef& region : e.regions) live = live || region->HasEffects();
    live_[i] = live;
    if (!live) continue;
    for (const Atom& a : e.operands) use(a);
    DemandOperands(static_cast<int>(i));
  }
  absorbed_ = AbsorbedByWrites(fn_, live_, demanded_, uses_);
}

void Fuser::DemandOperands(int i) {
  const Eqn& e = eqn(i);
  const OpRow& row = RowOf(*e.prim);
  if (row.same_bytes && (demanded_[e.first_result] || !IsView(fn_, e))) {
    DemandAtom(e.operands[0]);
  } else if (row.at_data) {
    DemandAtom(e.operands[0]);  // read anywhere
  } else if (IsView(fn_, e) || e.prim->is_elementwise() || Reduces(e)) {
    // Kernels compute their operands.
  } else if (row.operands == OpRow::Operands::kFirst) {
    DemandAtom(e.operands[0]);
  } else if (row.operands == OpRow::Operands::kProduct) {
    // A sum of its own operand alone reads every element once and may compute it; halves are rounded where they are
    // stored.
    const bool plain = IsOrderedSum(e) && (IsUniform(e.operands[0]) || IsUniform(e.operands[1]));
    const bool computes = plain && ByteWidth(RealPart(fn_.TypeOf(e.operands[0]).dtype)) >= 4;
    for (const Atom& a : e.operands) {
      if (computes || (plain && IsUniform(a))) continue;
      StridedView view;
      if (FindStrided(fn_, defining_, a, &view))
        demanded_[view.root] = true;
      else
        DemandAtom(a);
    }
  } else if (row.operands == OpRow::Operands::kMoved) {
    for (const Atom& a : e.operands) {
      StridedView view;
      if (FindRead(fn_, defining_, e, a, &view))
        demanded_[view.root] = true;
      else
        DemandAtom(a);
    }
  } else if (row.operands == OpRow::Operands::kStored) {
    for (const Atom& a : e.operands) DemandAtom(a);
  }
}

bool Fuser::MayInline(int i) {
  const Eqn& e = eqn(i);
  if (!policy_.fuse || !e.prim->is_elementwise() || demanded_[e.first_result]) return false;
  if (absorbed_[e.first_result]) return true;
  if (IsExpensive(*e.prim)) return false;
  const bool read_once = uses_[e.first_result] <= 1;
  int cost = 1, viewed = 1;
  int arrays = 0;
  std::set<uint32_t> seen;
  for (const Atom& a : e.operands) {
    if (!a.is_var() || !seen.insert(a.id()).second) continue;
    if (fn_.TypeOf(a).rank() > 0 && RepeatedNumber(a) == nullptr) ++arrays;
    const BlockPlan::Value& v = plan_.values[a.id()];
    cost += v.cost;
    viewed += v.viewed_cost;
  }
  // Reading two arrays twice instead of one costs more than the arithmetic.
  if (arrays > 1 && !read_once) return false;
  // What is read at several places through views is computed at each, and what that reads again: without the second
  // limit the work would double with every step of a stencil.
  if (cost > policy_.max_inline_cost) return false;
  if (viewed > (read_once ? policy_.max_viewed_cost : policy_.max_inline_cost)) return false;
  plan_.values[e.first_result].cost = cost;
  plan_.values[e.first_result].viewed_cost = viewed;
  return true;
}

void Fuser::Place(int i) {
  const Eqn& e = eqn(i);
  BlockPlan::Value none;
  BlockPlan::Value& v = e.num_results == 0 ? none : plan_.values[e.first_result];
  v.eqn = i;
  const bool same_bytes = RowOf(*e.prim).same_bytes;
  if (same_bytes && (demanded_[e.first_result] || !IsView(fn_, e)) && e.operands[0].is_var()) {
    v.how = How::kAlias;
    v.alias_of = e.operands[0].id();
    return;
  }
  const bool view = IsView(fn_, e) || same_bytes;
  if (view && !demanded_[e.first_result]) {
    v.how = How::kView;
    for (const Atom& a : e.operands) {
      if (a.is_var()) v.viewed_cost += plan_.values[a.id()].viewed_cost;
    }
    return;
  }
  // A reduction over nothing, or over dimensions of size 1, only drops them.
  if (e.prim->is_elementwise() || Reduces(e) || view) {
    if (MayInline(i)) {
      v.how = How::kInline;
      return;
    }
    PlaceMember(i);
    return;
  }
  std::vector<int> sources = SourcesOf(DepsOf(i), -1);
  bool effect = e.prim->has_effect;
  for (const FnRef& region : e.regions) effect = effect || region->HasEffects();
  for (const int source : sources) {
    Note(i, source,
         plan_.units[source].opaque < 0 ? "it is no element-wise operation, view or reduction"
                                        : "neither is an element-wise operation, view or reduction");
  }
  // Effects keep their order.
  if (effect && last_effect_ >= 0) sources.push_back(last_effect_);
  const int unit = NewUnit(sources);
  if (effect) last_effect_ = unit;
  plan_.units[unit].opaque = i;
  for (uint32_t r = 0; r < e.num_results; ++r) {
    BlockPlan::Value& result = plan_.values[e.first_result + r];
    result.how = How::kOpaque;
    result.eqn = i;
    result.unit = unit;
    result.stored = true;
  }
}

// The buffers behind element `index` of `a`.
void Fuser::Collect(const Atom& a, const std::vector<Affine>& index, std::vector<Dep>* out) {
  if (!a.is_var()) return;
  const BlockPlan::Value& v = plan_.values[a.id()];
  if (v.how == How::kAlias) {
    // Another shape: which element it is cannot be said by dimensions.
    out->push_back({plan_.Root(a.id()), {}, true});
    return;
  }
  if (v.how != How::kView && v.how != How::kInline) {
    out->push_back({a.id(), index, false});
    return;
  }
  CollectOperands(v.eqn, index, out);
}

void Fuser::CollectOperands(int i, const std::vector<Affine>& index, std::vector<Dep>* out) {
  const Eqn& e = eqn(i);
  const OpRow& row = RowOf(*e.prim);
  if (e.prim->is_elementwise()) {
    for (const Atom& a : e.operands) Collect(a, index, out);
  } else if (row.at_data) {
    for (const Atom& a : e.operands) {
      std::vector<Dep> deps;
      Collect(a, std::vector<Affine>(fn_.TypeOf(a).rank()), &deps);
      for (Dep& d : deps) {
        // An index that is one number is the same for all elements.
        d.whole = d.whole || &a == &e.operands[0] || fn_.TypeOf(a).rank() > 0;
        out->push_back(std::move(d));
      }
    }
  } else if (IsView(fn_, e)) {
    if (row.index != nullptr) Collect(e.operands[0], ViewIndex(fn_, e, index), out);
  } else if (Reduces(e)) {
    Collect(e.operands[0], index, out);
  } else {
    for (const Atom& a : e.operands) {
      StridedView view;
      if (FindRead(fn_, defining_, e, a, &view)) {
        out->push_back({plan_.Root(view.root), {}, true});
        continue;
      }
      std::vector<Dep> deps;
      Collect(a, std::vector<Affine>(fn_.TypeOf(a).rank()), &deps);
      for (Dep& d : deps) {
        d.whole = true;
        out->push_back(std::move(d));
      }
    }
  }
}

std::vector<Fuser::Dep> Fuser::DepsOf(int i) {
  std::vector<Affine> index;
  const Dims space = Reduces(eqn(i)) || eqn(i).num_results == 1 ? SpaceOf(i) : Dims{};
  for (size_t d = 0; d < space.size(); ++d) index.push_back(Affine::Var(static_cast<int>(d)));
  std::vector<Dep> deps;
  CollectOperands(i, index, &deps);
  return deps;
}

// Whether its rows are so few and so long that threads share each.
bool Fuser::IsSharedByThreads(const BlockPlan::Unit& u) const {
  Dim rows = 1, row = 1;
  for (size_t k = 0; k < u.dims.size(); ++k) (u.inner[k] ? row : rows) = (u.inner[k] ? row : rows) * u.dims[k];
  return rows.is_static() && row.is_static() && *rows.TryValue() < policy_.min_parallel_rows &&
         *row.TryValue() > policy_.large_row;
}

std::string Fuser::Joinable(int i, const std::vector<Dep>& deps, int unit, std::vector<int>* space) {
  const BlockPlan::Unit& u = plan_.units[unit];
  const Eqn& e = eqn(i);
  if (!policy_.fuse) return "fusion is off";
  if (u.opaque >= 0) return "its operand comes from " + eqn(u.opaque).prim->name;
  if (static_cast<int>(u.members.size()) >= policy_.max_members) return "the group is full";
  const Dims sizes = SpaceOf(i);
  space->assign(sizes.size(), -1);
  std::vector<bool> taken(u.dims.size(), false);
  int passes = 0;
  for (const Dep& d : deps) {
    if (plan_.values[d.var].unit != unit) continue;
    if (d.whole) return "it reads its operand at computed positions";
    passes = std::max(passes, plan_.values[d.var].passes);
    const std::vector<int>& place = plan_.values[d.var].place;
    for (size_t k = 0; k < place.size(); ++k) {
      if (place[k] < 0) continue;
      const int j = d.index[k].AsVar();
      if (j < 0) return "it reads its operand at shifted or repeated positions";
      if ((*space)[j] >= 0 && (*space)[j] != place[k]) return "it reads its operand transposed";
      if ((*space)[j] < 0 && taken[place[k]]) return "it reads its operand along a diagonal";
      if (!(sizes[j] == u.dims[place[k]])) return "it reads part of its operand";
      (*space)[j] = place[k];
      taken[place[k]] = true;
    }
  }
  // The remaining dimensions pair up in order.
  const bool has_inner = u.has_inner();
  auto fill = [&](bool outer_only) {
    std::vector<int> out = *space;
    std::vector<bool> used = taken;
    for (size_t j = 0; j < out.size(); ++j) {
      if (out[j] >= 0 || sizes[j] == Dim(1)) continue;
      size_t k = 0;
      while (k < used.size() && (used[k] || (outer_only && u.inner[k]) || !(u.dims[k] == sizes[j]))) ++k;
      if (k == used.size()) return false;
      out[j] = static_cast<int>(k);
      used[k] = true;
    }
    for (size_t k = 0; k < used.size(); ++k) {
      const bool must = outer_only ? !u.inner[k] : true;
      if (must != used[k] && !(u.dims[k] == Dim(1))) return false;
    }
    *space = out;
    return true;
  };
  const bool full = fill(false);
  if (!full && !(has_inner && fill(true))) return "its shape differs from the group's domain";
  if (Reduces(e)) {
    if (!full) return "it reduces the result of a reduction";
    std::vector<bool> inner(u.dims.size(), false);
    for (int64_t d : ReducedDims(e)) {
      if ((*space)[d] >= 0) inner[(*space)[d]] = true;
    }
    if (has_inner && inner != u.inner) return "it reduces other dimensions than the group";
    if (passes >= policy_.max_passes) return "the group passes over its rows as often as is allowed";
  }
  if (full && passes > 0 && has_inner && IsSharedByThreads(u))
    return "its rows are too few and too long to share between threads";
  if (graph_.MayReach(unit, SourcesOf(deps, unit))) return "another operand depends on the group";
  return "";
}

// What an equation that reads reductions of both groups does not walk: the reduced dimensions, which correspond in
// order.
bool Fuser::PairReduced(const BlockPlan::Unit& a, const BlockPlan::Unit& b, std::vector<int>* map) const {
  const auto reduced = [](const BlockPlan::Unit& u, const auto& walked) -> std::optional<std::vector<int>> {
    std::vector<int> dims;
    for (size_t k = 0; k < u.dims.size(); ++k) {
      if (u.dims[k] == Dim(1) || walked(static_cast<int>(k))) continue;
      if (!u.inner[k]) return std::nullopt;
      dims.push_back(static_cast<int>(k));
    }
    return dims;
  };
  const auto of_a = reduced(a, [&](int k) { return std::find(map->begin(), map->end(), k) != map->end(); });
  const auto of_b = reduced(b, [&](int k) { return (*map)[static_cast<size_t>(k)] >= 0; });
  if (!of_a || !of_b || of_a->size() != of_b->size() || IsSharedByThreads(a)) return false;
  for (size_t d = 0; d < of_a->size(); ++d) {
    const auto in_a = static_cast<size_t>((*of_a)[d]), in_b = static_cast<size_t>((*of_b)[d]);
    if (!(a.dims[in_a] == b.dims[in_b])) return false;
    (*map)[in_b] = (*of_a)[d];
  }
  return true;
}

bool Fuser::TryMerge(int into, int from, const std::vector<int>& space_into, const std::vector<int>& space_from) {
  BlockPlan::Unit &a = plan_.units[into], &b = plan_.units[from];
  if (static_cast<int>(a.members.size() + b.members.size()) >= policy_.max_members) return false;
  // The equation must walk all of both domains, so that it says which dimensions correspond.
  std::vector<int> map(b.dims.size(), -1);
  size_t covered_a = 0, covered_b = 0;
  for (size_t j = 0; j < space_into.size(); ++j) {
    if ((space_into[j] < 0) != (space_from[j] < 0)) return false;
    if (space_into[j] < 0) continue;
    map[space_from[j]] = space_into[j];
    ++covered_a, ++covered_b;
  }
  size_t real_a = 0, real_b = 0;
  for (const Dim& d : a.dims) real_a += !(d == Dim(1));
  for (const Dim& d : b.dims) real_b += !(d == Dim(1));
  if ((covered_a != real_a || covered_b != real_b) && !PairReduced(a, b, &map)) return false;
  if (a.has_inner() && b.has_inner()) {
    for (size_t k = 0; k < b.dims.size(); ++k) {
      if (map[k] >= 0 && b.inner[k] != a.inner[map[k]]) return false;
    }
  }
  // Where one reads the other, all of its passes are taken to come after all of the other's.
  const bool a_reads = graph_.Reads(into, from), b_reads = graph_.Reads(from, into);
  const int passes = a_reads || b_reads ? a.passes + b.passes : std::max(a.passes, b.passes);
  if (passes > policy_.max_passes) return false;
  if (!graph_.Merge(into, from)) return false;
  for (int m : a_reads ? a.members : b.members)
    plan_.values[eqn(m).first_result].passes += a_reads ? b.passes : b_reads ? a.passes : 0;
  a.passes = passes;
  if (!a.has_inner() && b.has_inner()) {
    for (size_t k = 0; k < b.dims.size(); ++k) {
      if (map[k] >= 0) a.inner[map[k]] = b.inner[k];
    }
  }
  for (int m : b.members) {
    for (int& s : plan_.space[m]) {
      if (s >= 0) s = map[s];
    }
    BlockPlan::Value& v = plan_.values[eqn(m).first_result];
    v.unit = into;
    for (int& p : v.place) {
      if (p >= 0) p = map[p];
    }
    a.members.push_back(m);
  }
  std::sort(a.members.begin(), a.members.end());
  b.dead = true;
  b.members.clear();
  return true;
}

void Fuser::Add(int i, int unit, const std::vector<int>& space, const std::vector<Dep>& deps) {
  const Eqn& e = eqn(i);
  BlockPlan::Unit& u = plan_.units[unit];
  u.members.push_back(i);
  plan_.space[i] = space;
  BlockPlan::Value& v = plan_.values[e.first_result];
  v.how = How::kMember;
  v.unit = unit;
  v.stored = v.stored || demanded_[e.first_result];
  for (const Dep& d : deps) {
    if (plan_.values[d.var].unit == unit) v.passes = std::max(v.passes, plan_.values[d.var].passes);
  }
  v.passes += Reduces(e);
  u.passes = std::max(u.passes, v.passes);
  if (Reduces(e)) {
    const Ints dims = ReducedDims(e);
    for (size_t d = 0; d < space.size(); ++d) {
      if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) == dims.end())
        v.place.push_back(space[d]);
      else if (space[d] >= 0)
        u.inner[space[d]] = true;
    }
  } else {
    v.place = space;
  }
  graph_.Depend(unit, SourcesOf(deps, unit));
}

void Fuser::PlaceMember(int i) {
  const std::vector<Dep> deps = DepsOf(i);
  std::vector<int> candidates;
  for (const Dep& d : deps) {
    const int u = plan_.values[d.var].unit;
    if (u >= 0 && std::find(candidates.begin(), candidates.end(), u) == candidates.end()) candidates.push_back(u);
  }
  // Groups with reductions first: they are pickier.
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](int a, int b) { return plan_.units[a].has_inner() > plan_.units[b].has_inner(); });
  int chosen = -1;
  std::vector<int> space;
  for (int u : candidates) {
    if (plan_.units[u].dead) continue;
    std::vector<int> s;
    const std::string why = Joinable(i, deps, u, &s);
    if (!why.empty()) {
      Note(i, u, why);
      continue;
    }
    if (chosen < 0) {
      chosen = u;
      space = s;
    } else {
      TryMerge(chosen, u, space, s);
    }
  }
  if (chosen < 0) {
    chosen = NewUnit(SourcesOf(deps, -1));
    const Dims sizes = SpaceOf(i);
    BlockPlan::Unit& u = plan_.units[chosen];
    for (const Dim& size : sizes) {
      if (size == Dim(1)) {
        space.push_back(-1);
        continue;
      }
      space.push_back(static_cast<int>(u.dims.size()));
      u.dims.push_back(size);
      u.inner.push_back(false);
    }
  }
  Add(i, chosen, space, deps);
}

// Which buffers each unit reads; whoever is read from outside gets one.
void Fuser::FindReads() {
  for (size_t k = 0; k < plan_.units.size(); ++k) {
    BlockPlan::Unit& u = plan_.units[k];
    std::set<uint32_t> reads;
    for (int i : u.opaque >= 0 ? std::vector<int>{u.opaque} : u.members) {
      for (const Dep& d : DepsOf(i)) {
        if (u.opaque < 0 && plan_.values[d.var].unit == static_cast<int>(k)) continue;
        reads.insert(d.var);
        plan_.values[d.var].stored = true;
      }
    }
    u.reads.assign(reads.begin(), reads.end());
  }
  for (const Atom& a : fn_.results()) {
    if (a.is_var()) plan_.values[plan_.Root(a.id())].stored = true;
  }
}

// Dependencies first, otherwise in program order of their last equation.
void Fuser::Order() {
  const int n = static_cast<int>(plan_.units.size());
  auto last = [&](int u) { return plan_.units[u].opaque >= 0 ? plan_.units[u].opaque : plan_.units[u].members.back(); };
  std::vector<int> missing(n, 0);
  std::vector<std::vector<int>> users(n);
  for (int u = 0; u < n; ++u) {
    if (plan_.units[u].dead) continue;
    const std::vector<int> sources = graph_.Sources(u);
    missing[u] = static_cast<int>(sources.size());
    for (int s : sources) users[s].push_back(u);
  }
  std::set<std::pair<int, int>> ready;
  for (int u = 0; u < n; ++u) {
    if (!plan_.units[u].dead && missing[u] == 0) ready.insert({last(u), u});
  }
  while (!ready.empty()) {
    const int u = ready.begin()->second;
    ready.erase(ready.begin());
    plan_.order.push_back(u);
    for (int user : users[u]) {
      if (--missing[user] == 0) ready.insert({last(user), user});
    }
  }
  size_t alive = 0;
  for (const auto& u : plan_.units) alive += !u.dead;
  WEFT_CHECK(plan_.order.size() == alive) << "fusion made a cycle";
}

}  // namespace

BlockPlan Fuse(const Fn& fn, const FusionPolicy& policy) { return Fuser(fn, policy).Run(); }

}  // namespace weft
