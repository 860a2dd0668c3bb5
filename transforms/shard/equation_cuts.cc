#include "transforms/shard/equation_cuts.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "ir/analysis/cost.h"
#include "ir/prim_table.h"

namespace weft {
namespace {

constexpr double kBytesPerFlop = 0.01;  // bytes that could be sent in the time of one operation
constexpr double kBytesPerByte = 0.05;  // and while one byte is read or written
constexpr double kSameWork = 3;  // per byte that is gathered for devices to do the same work: it also has to be held
constexpr size_t kMostCandidates = 512;

using Kind = ShardingRule::Kind;
using Cuts = std::vector<std::vector<int>>;  // the axes of each factor

bool IsZero(const Atom& a) { return a.is_literal() && a.IsSplat(0); }

// Sums stay in parts through these for all dtypes: they only move, add or scale, without rounding of integers.
bool ExactlyLinear(const Prim& prim) {
  static const auto& set = *new PrimSet{
      "add",     "sub",   "neg", "mul",         "contract", "reduce_sum", "broadcast",     "reshape",
      "reverse", "slice", "pad", "concatenate", "gather",   "transpose",  "dynamic_slice", "dynamic_update_slice"};
  return set.Has(prim);
}

// Makes -0.0 of nothing but -0.0, so that what was picked stays what one device found, or is a sum anyway.
bool KeepsNegativeZeros(const Prim& prim) {
  static const auto& makes = *new PrimSet{"sub", "neg", "mul", "pad", "concatenate", "dynamic_update_slice"};
  return ExactlyLinear(prim) && !makes.Has(prim);
}

class Chooser {
 public:
  Chooser(Resharder& reshard, bool deterministic, const CutQuestion& q)
      : reshard_(reshard),
        deterministic_(deterministic),
        scope_(q.scope),
        e_(q.e),
        map_(q.map),
        x_(q.x),
        uses_(q.uses) {}

  EquationCuts Best() {
    const uint32_t keepable = Keepable();
    if (keepable != 0) Choose(keepable);
    const bool said = std::any_of(x_.begin(), x_.end(), [](const CutValue& v) { return v.said; });
    if (best_.kept == 0 || !said) Choose(0);
    return std::move(best_);
  }

 private:
  const Mesh& mesh() const { return reshard_.mesh(); }
  const Layout& Target(size_t i) const { return scope_.vars[e_.first_result + i].layout; }

  // `used`: the axes that divide the work. Gathering along another one makes all devices do the same.
  double CostTo(const CutValue& v, const Layout& to, uint32_t used) {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [layout, atom] : v.versions) {
      if ((to.partial & ~layout.partial) != 0) continue;
      const ReshardPlan& plan = reshard_.Plan(v.type, layout, to);
      least = std::min(least, plan.cost + ((plan.gathers & ~used) != 0 ? kSameWork * plan.gathered : 0));
    }
    return least;
  }

  // Axes along which the equation may run on parts of sums, and the operands that are such parts.
  uint32_t Keepable() const {
    const Prim& p = *e_.prim;
    if (!p.is_linear() || deterministic_) return 0;
    uint32_t axes = 0;
    for (const CutValue& v : x_) axes |= PartialOf(v);
    const Type result = scope_.fn->TypeOf(Var{e_.first_result});
    for (size_t i = 0; i < x_.size(); ++i) {
      const uint32_t partial = PartialOf(x_[i]);
      const bool linear = p.LinearIn(static_cast<int>(i));
      if (partial == 0) {
        // Where the operation is linear in several operands together, all of them have to be parts.
        if (linear && !p.multilinear && !IsZero(e_.operands[i])) return 0;
        continue;
      }
      if (!linear || (uses_[e_.operands[i].id()] > 1 && !x_[i].said)) return 0;
      if (x_[i].picked && !KeepsNegativeZeros(p)) return 0;
      if (!ExactlyLinear(p) && (!IsInexact(x_[i].type.dtype) || !IsInexact(result.dtype) ||
                                ByteWidth(result.dtype) < ByteWidth(x_[i].type.dtype)))
        return 0;
      if (!p.multilinear) axes &= partial;
    }
    int parts = 0;
    for (const CutValue& v : x_) parts += PartialOf(v) != 0;
    return p.multilinear && parts > 1 ? 0 : axes;
  }

  // The cheapest way to cut the equation, if it is cheaper than `best_`.
  void Choose(uint32_t kept) {
    // For every factor the ways in which somebody cuts it, longest first.
    std::vector<Cuts> options(map_.factors.size());
    auto offer = [&](const ShardingRule::Tensor& tensor, const Layout& layout) {
      const Cuts cuts = FactorCuts(mesh(), map_, tensor, layout);
      for (size_t f = 0; f < cuts.size(); ++f) {
        for (size_t n = cuts[f].size(); n > 0; --n) {
          const std::vector<int> axes(cuts[f].begin(), cuts[f].begin() + static_cast<int64_t>(n));
          if (std::find(options[f].begin(), options[f].end(), axes) == options[f].end()) options[f].push_back(axes);
        }
      }
    };
    for (size_t i = 0; i < e_.num_results; ++i) offer(map_.results[i], Target(i));
    for (size_t i = 0; i < x_.size(); ++i) {
      if (e_.operands[i].is_var()) offer(map_.operands[i], scope_.vars[e_.operands[i].id()].layout);
      for (const auto& [layout, atom] : x_[i].versions) offer(map_.operands[i], layout);
    }
    const Cost cost = CostOf(*scope_.fn, e_);
    Cuts cuts(map_.factors.size());
    size_t seen = 0;
    std::function<void(size_t, uint32_t)> visit = [&](size_t f, uint32_t used) {
      while (f < options.size() && options[f].empty()) ++f;
      if (f == options.size()) {
        ++seen;
        Consider(kept, cuts, cost);
        return;
      }
      for (const auto& axes : options[f]) {
        uint32_t bits = 0;
        for (int a : axes) bits |= AxisBit(a);
        if ((bits & used) || seen >= kMostCandidates) continue;
        cuts[f] = axes;
        visit(f + 1, used | bits);
      }
      cuts[f].clear();
      visit(f + 1, used);
    };
    visit(0, kept);
  }

  // Whether devices that share factor f of a deterministic sum hold subtrees of it (deterministic.h).
  bool KeepsOrder(size_t f, const std::vector<int>& axes) const {
    if (map_.factors[f].kind != Kind::kSum || OpShardingRuleOf(*e_.prim).picks ||
        !IsInexact(scope_.fn->TypeOf(Var{e_.first_result}).dtype))
      return true;
    const int64_t leaf = e_.attrs.GetOr<int64_t>("leaf", 0);
    if (leaf == 0) return false;
    const size_t dim = e_.attrs.Get<std::string>("spec").find(e_.attrs.Get<std::string>("along"));
    const std::vector<int>& along = map_.operands[0][dim];
    int64_t devices = 1;
    for (int a : axes) devices *= mesh().axes[a].size;
    return axes.size() == 1 && along.size() == 1 && along[0] == static_cast<int>(f) &&
           map_.factors[f].size % (leaf * devices) == 0 && (devices & (devices - 1)) == 0;
  }

  void Consider(uint32_t kept, const Cuts& cuts, const Cost& work) {
    EquationCuts c;
    c.kept = kept;
    c.cuts = cuts;
    uint32_t sums = 0, used = 0;
    double devices = 1;
    for (size_t f = 0; f < cuts.size(); ++f) {
      if (deterministic_ && !cuts[f].empty() && !KeepsOrder(f, cuts[f])) return;
      for (int a : cuts[f]) {
        used |= AxisBit(a);
        devices *= static_cast<double>(mesh().axes[a].size);
        if (map_.factors[f].kind != Kind::kPass) sums |= AxisBit(a);
      }
    }
    c.cost = (work.flops * kBytesPerFlop + work.bytes * kBytesPerByte) / devices;
    for (size_t i = 0; i < x_.size(); ++i) {
      const std::optional<Layout> l = LayoutOfCuts(mesh(), map_, map_.operands[i], cuts);
      if (!l) return;
      c.operands.push_back(WithPartial(*l, kept & PartialOf(x_[i])));
      if (e_.operands[i].is_literal() && x_[i].type.rank() == 0) continue;
      c.cost += CostTo(x_[i], c.operands.back(), used | kept);
      if (c.cost >= best_.cost) return;
    }
    uint32_t left = kept;  // of sums: those that are not joined at once
    for (size_t f = 0; f < cuts.size(); ++f) {
      if (map_.factors[f].kind != Kind::kSum) continue;
      for (int a : cuts[f]) left |= AxisBit(a);
    }
    for (size_t i = 0; i < e_.num_results; ++i) {
      const std::optional<Layout> l = LayoutOfCuts(mesh(), map_, map_.results[i], cuts);
      if (!l) return;
      const Type type = scope_.fn->TypeOf(Var{e_.first_result + static_cast<uint32_t>(i)});
      const Layout all = WithPartial(*l, kept | sums);
      c.cost += reshard_.Plan(type, all, Target(i)).cost;
      c.results.push_back(WithPartial(*l, left));
    }
    if (c.cost < best_.cost) best_ = std::move(c);
  }

  Resharder& reshard_;
  const bool deterministic_;
  const Scope& scope_;
  const Eqn& e_;
  const ShardingRule& map_;
  const std::vector<CutValue>& x_;
  const std::vector<int>& uses_;
  EquationCuts best_;
};

}  // namespace

uint32_t PartialOf(const CutValue& v) {
  for (const auto& [layout, atom] : v.versions) {
    if (layout.partial == 0) return 0;
  }
  return v.versions[0].first.partial;
}

Layout WithPartial(Layout l, uint32_t partial) {
  l.partial = partial;
  return l;
}

EquationCuts ChooseCuts(Resharder& reshard, bool deterministic, const CutQuestion& question) {
  return Chooser(reshard, deterministic, question).Best();
}

}  // namespace weft
