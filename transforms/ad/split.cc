#include "transforms/ad/split.h"

#include <algorithm>

#include "ir/builder.h"
#include "ir/prim_table.h"
#include "transforms/region_memo.h"
#include "transforms/region_rules.h"

namespace weft {
namespace {

class Splitter {
 public:
  Splitter(FnRef fn, const Mask& unknown)
      : ref_(std::move(fn)),
        fn_(*ref_),
        known_(fn_.name()),
        unknown_(fn_.name()),
        env_(fn_.num_vars()),
        is_unknown_(fn_.num_vars(), false) {
    known_.ReserveLike(fn_);
    unknown_.ReserveLike(fn_);
    for (size_t i = 0; i < unknown.size(); ++i) {
      const Param& p = fn_.params()[i];
      env_[i] = (unknown[i] ? unknown_ : known_).Parameter(p.type, p.name, p.kind);
      is_unknown_[i] = unknown[i];
    }
    num_unknown_params_ = unknown_.params().size();
  }

  SplitFn Run(const Mask& force_unknown) {
    for (size_t i = 0; i < fn_.eqns().size(); ++i) Visit(i);
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
    out.residuals.reserve(residuals_.size());
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

  // A value that takes less to make again than to keep: it is larger than what it is made from, or a parameter read in
  // another order, since parameters are there anyway: what a loop reads is not stored once more by its trips. What is
  // declared to vary over mesh axes takes nothing, where it is made from no variable.
  bool CheaperToRemake(const Prim& prim, const Atoms& x, const Type& result) const {
    const bool reordered = prim.view && x.size() == 1 && x[0].is_var() && known_.TypeOf(x[0]).size() == result.size();
    if (reordered && (known_.Definition(x[0]) == nullptr || IsRemade(x[0]))) return true;
    if (!Is<"pvary">(prim)) return prim.expands;  // the one that says so
    if (x[0].is_literal()) return true;
    if (!IsRemade(x[0])) return false;
    const Atoms& from = known_.Definition(x[0])->operands;
    return std::all_of(from.begin(), from.end(), [](const Atom& a) { return a.is_literal(); });
  }

  bool IsRemade(const Atom& known) const { return known.id() < remade_.size() && remade_[known.id()]; }

  // A value of the known half, made available in the unknown half.
  Atom Residual(const Atom& a) {
    if (a.is_literal()) return a;
    if (a.id() < residual_.size() && residual_[a.id()] != 0) return Var{residual_[a.id()] - 1};
    Atom made;
    if (IsRemade(a)) {
      const Eqn& e = *known_.Definition(a);
      Atoms operands;
      for (const Atom& x : e.operands) operands.push_back(Residual(x));
      ScopedLoc loc(unknown_, e.loc);
      made = unknown_.Clone(e, std::move(operands))[0];
    } else {
      residuals_.push_back(a);
      made = unknown_.Parameter(known_.TypeOf(a));
    }
    if (a.id() >= residual_.size()) residual_.resize(std::max<size_t>(a.id() + 1, fn_.num_vars()));
    residual_[a.id()] = made.id() + 1;
    return made;
  }

  void Visit(size_t i) {
    Eqn copy;
    Eqn& e = Builder::TakeEqn(ref_, i, copy);
    const uint32_t first = e.first_result;
    bool any = e.CallsOutwards();
    for (const Atom& a : e.operands) any |= IsUnknown(a);
    if (any && e.prim->split) return SplitRegions(e);
    const auto value_of = [&](Var v) { return any && !is_unknown_[v.id] ? Residual(env_[v.id]) : env_[v.id]; };
    Builder& b = any ? unknown_ : known_;
    const bool same_types = b.Translate(fn_, e, value_of);
    const bool remade = !any && e.num_results == 1 && CheaperToRemake(*e.prim, e.operands, fn_.TypeOf(Var{first}));
    ScopedLoc loc(b, e.loc);
    const Atoms y = b.Adopt(fn_, std::move(e), same_types);
    for (uint32_t r = 0; r < y.size(); ++r) Define(first + r, y[r], any);
    if (remade) {
      remade_.resize(y[0].id() + 1, false);
      remade_[y[0].id()] = true;
    }
  }

  void SplitRegions(const Eqn& e) {
    Mask unknown;
    Atoms x;
    for (const Atom& a : e.operands) {
      unknown.push_back(IsUnknown(a));
      x.push_back(ValueOf(a));
    }
    ScopedLoc known_loc(known_, e.loc), unknown_loc(unknown_, e.loc);
    SplitContext c{known_,    unknown_, e, unknown, x, x, [this](const Atom& a) { return Residual(a); },
                   Regions(), {},       {}};
    e.prim->split(c);
    for (uint32_t r = 0; r < e.num_results; ++r) Define(e.first_result + r, c.y[r], c.unknown_out[r]);
  }

  void Define(uint32_t var, const Atom& value, bool unknown) {
    env_[var] = value;
    is_unknown_[var] = unknown;
  }

  const FnRef ref_;
  const Fn& fn_;
  Builder known_, unknown_;
  LongList<Atom> env_;  // in known_ or unknown_
  std::vector<bool> is_unknown_;
  size_t num_unknown_params_ = 0;
  Atoms residuals_;              // in known_, in the order of their parameters in unknown_
  LongList<uint32_t> residual_;  // per variable of known_: 1 + the variable of unknown_ that has its value, or 0
  std::vector<bool> remade_;     // per variable of known_: whether its equation is repeated in unknown_ where needed
};

}  // namespace

SplitFn Split(FnRef fn, const Mask& unknown, const Mask& force_unknown) {
  const RegionMemo::Scope scope;
  WEFT_CHECK(unknown.size() == fn->params().size())
      << "split: " << unknown.size() << " flags for " << fn->params().size() << " parameters";
  return Splitter(std::move(fn), unknown).Run(force_unknown);
}

}  // namespace weft
