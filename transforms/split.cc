#include "transforms/split.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "ir/builder.h"
#include "transforms/region_rules.h"

namespace weft {
namespace {

class Splitter {
 public:
  Splitter(const Fn& fn, const Mask& unknown)
      : fn_(fn), known_(fn.name()), unknown_(fn.name()), env_(fn.num_vars()), is_unknown_(fn.num_vars(), false) {
    known_.ReserveLike(fn);
    unknown_.ReserveLike(fn);
    for (size_t i = 0; i < unknown.size(); ++i) {
      const Param& p = fn.params()[i];
      env_[i] = (unknown[i] ? unknown_ : known_).Parameter(p.type, p.name, p.kind);
      is_unknown_[i] = unknown[i];
    }
    num_unknown_params_ = unknown_.params().size();
  }

  SplitFn Run(const Mask& force_unknown) {
    for (const Eqn& e : fn_.eqns()) Visit(e);
    SplitFn out;
    Atoms known_results, unknown_results;
    for (size_t i = 0; i < fn_.results().size(); ++i) {
      const Atom& a = fn_.results()[i];
      const bool unknown = IsUnknown(a) || (!force_unknown.empty() && force_unknown[i]);
      out.unknown_out.push_back(unknown);
      if (!unknown)
        known_results.push_back(ValueOf(a));
      else
        unknown_results.push_back(IsUnknown(a) ? ValueOf(a) : Residual(ValueOf(a)));
    }
    unknown_.MoveParametersToFront(num_unknown_params_);
    out.unknown = std::move(unknown_).Build(unknown_results);
    // Residuals that turned out not to be needed (their readers were dead) are dropped on both sides.
    const std::vector<int> uses = out.unknown->UseCounts();
    std::vector<size_t> kept;
    for (size_t r = 0; r < residuals_.size(); ++r) {
      if (uses[r] == 0) continue;
      kept.push_back(r);
      known_results.push_back(residuals_[r]);
      out.residuals.push_back(known_.TypeOf(residuals_[r]));
    }
    if (kept.size() != residuals_.size()) {
      for (size_t i = residuals_.size(); i < out.unknown->params().size(); ++i) kept.push_back(i);
      const Atoms results = out.unknown->results();
      Builder trimmed(std::move(out.unknown));
      trimmed.KeepParameters(kept);
      out.unknown = std::move(trimmed).Build(results);
    }
    out.known = std::move(known_).Build(known_results);
    return out;
  }

 private:
  bool IsUnknown(const Atom& a) const { return a.is_var() && is_unknown_[a.id()]; }
  Atom ValueOf(const Atom& a) const { return a.is_var() ? env_[a.id()] : a; }

  // A value that takes less to make again than to keep: it is larger than what it is made from. What is declared to
  // vary over mesh axes takes nothing, where it is made from no variable.
  bool CheaperToRemake(const Eqn& e, const Atoms& x) const {
    if (e.prim->name != "pvary") return e.prim->name == "broadcast" || e.prim->name == "iota";
    if (x[0].is_literal()) return true;
    const auto made = maker_.find(x[0].id());
    return made != maker_.end() && std::all_of(made->second.second.begin(), made->second.second.end(),
                                               [](const Atom& a) { return a.is_literal(); });
  }

  // A value of the known half, made available in the unknown half.
  Atom Residual(const Atom& a) {
    if (a.is_literal()) return a;
    auto it = residual_.find(a.id());
    if (it != residual_.end()) return it->second;
    if (auto made = maker_.find(a.id()); made != maker_.end()) {
      Atoms operands;
      for (const Atom& x : made->second.second) operands.push_back(Residual(x));
      ScopedLoc loc(unknown_, made->second.first->loc);
      return residual_[a.id()] = unknown_.Clone(fn_, *made->second.first, operands)[0];
    }
    residuals_.push_back(a);
    return residual_[a.id()] = unknown_.Parameter(known_.TypeOf(a));
  }

  void Visit(const Eqn& e) {
    Mask unknown;
    Atoms x;
    for (const Atom& a : e.operands) {
      unknown.push_back(IsUnknown(a));
      x.push_back(ValueOf(a));
    }
    const bool any = e.CallsOutwards() || std::find(unknown.begin(), unknown.end(), true) != unknown.end();
    if (!any) {
      ScopedLoc loc(known_, e.loc);
      const Atoms y = known_.Clone(fn_, e, x);
      for (uint32_t r = 0; r < e.num_results; ++r) Define(e, r, y[r], false);
      if (y.size() == 1 && CheaperToRemake(e, x)) maker_[y[0].id()] = {&e, x};
      return;
    }
    if (e.prim->split) {
      ScopedLoc known_loc(known_, e.loc), unknown_loc(unknown_, e.loc);
      SplitContext c{known_,    unknown_, e, unknown, x, x, [this](const Atom& a) { return Residual(a); },
                     Regions(), {},       {}};
      e.prim->split(c);
      for (uint32_t r = 0; r < e.num_results; ++r) Define(e, r, c.y[r], c.unknown_out[r]);
      return;
    }
    for (size_t i = 0; i < x.size(); ++i) {
      if (!unknown[i]) x[i] = Residual(x[i]);
    }
    ScopedLoc loc(unknown_, e.loc);
    const Atoms y = unknown_.Clone(fn_, e, x);
    for (uint32_t r = 0; r < e.num_results; ++r) Define(e, r, y[r], true);
  }

  void Define(const Eqn& e, uint32_t result, const Atom& value, bool unknown) {
    env_[e.first_result + result] = value;
    is_unknown_[e.first_result + result] = unknown;
  }

  const Fn& fn_;
  Builder known_, unknown_;
  LongList<Atom> env_;  // in known_ or unknown_
  std::vector<bool> is_unknown_;
  size_t num_unknown_params_ = 0;
  Atoms residuals_;  // in known_, in the order of their parameters in unknown_
  absl::flat_hash_map<uint32_t, Atom> residual_;
  absl::flat_hash_map<uint32_t, std::pair<const Eqn*, Atoms>>
      maker_;  // of known values that are made again: equation and operands in known_
};

}  // namespace

SplitFn Split(const FnRef& fn, const Mask& unknown, const Mask& force_unknown) {
  WEFT_CHECK(unknown.size() == fn->params().size())
      << "split: " << unknown.size() << " flags for " << fn->params().size() << " parameters";
  return Splitter(*fn, unknown).Run(force_unknown);
}

}  // namespace weft
