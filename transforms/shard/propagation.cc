#include "transforms/shard/propagation.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "ir/prim_table.h"
#include "ir/prims/control/scan.h"
#include "ir/prims/control/while.h"

namespace weft {
namespace {

// Tensors whose dimensions are cut alike where they hold the same factor.
struct Link {
  const ShardingRule* map;
  std::vector<Cut*> tensors;                      // nullptr: a literal
  std::vector<const ShardingRule::Tensor*> dims;  // of each
  bool pointwise = false;                         // moves no data between dimensions: these go first
};

double Bytes(const Cut& c) {
  double n = ByteWidth(c.type.dtype);
  for (const Dim& d : c.type.dims) n *= static_cast<double>(d.value("a dimension"));
  return n;
}

class Propagation {
 public:
  explicit Propagation(const Mesh& mesh) : mesh_(mesh) {}

  std::shared_ptr<Scope> Enter(const FnRef& fn) {
    auto scope = std::make_shared<Scope>();
    scope->fn = fn;
    for (uint32_t i = 0; i < fn->num_vars(); ++i) scope->vars.push_back(Open(fn->TypeOf(Var{i})));
    scope->maps.resize(fn->eqns().size());
    scope->regions.resize(fn->eqns().size());
    for (size_t k = 0; k < fn->eqns().size(); ++k) EnterEqn(*scope, k);
    return scope;
  }

  Cut* Fixed(const Type& type, const Layout& layout) {
    fixed_.push_back({type, layout, std::vector<bool>(type.dims.size(), true)});
    fixed_.back().layout.partial = 0;
    return &fixed_.back();
  }

  void Same(std::vector<Cut*> tensors) { Shifted(std::move(tensors), {}); }

  // The tensors are alike, but those in `stacked` have one dimension more, in front.
  void Shifted(std::vector<Cut*> tensors, const std::vector<bool>& stacked) {
    auto& map = maps_.emplace_back();
    const Cut* plain = nullptr;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i] != nullptr && !(i < stacked.size() && stacked[i])) plain = tensors[i];
    }
    if (plain == nullptr) return;
    ShardingRule::Tensor dims;
    for (const Dim& d : plain->type.dims) {
      dims.push_back({static_cast<int>(map.factors.size())});
      map.factors.push_back({d.value("a dimension"), ShardingRule::Kind::kPass});
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      map.operands.push_back(dims);
      if (i < stacked.size() && stacked[i]) map.operands.back().insert(map.operands.back().begin(), std::vector<int>());
    }
    Link link{&map, std::move(tensors), {}, true};
    for (const auto& t : map.operands) link.dims.push_back(&t);
    links_.push_back(std::move(link));
  }

  void Run() {
    // First what is element-wise, then whatever no two operands disagree about, then sums too; what is left goes to the
    // larger array.
    for (int level = 0; level < 4; ++level) {
      for (bool changed = true; changed;) {
        changed = false;
        for (auto& link : links_) changed |= Extend(link, level);
        for (size_t i = links_.size(); i-- > 0;) changed |= Extend(links_[i], level);
      }
    }
  }

 private:
  static Cut Open(const Type& type) {
    return {type, Replicated(type.rank()), std::vector<bool>(type.dims.size(), false)};
  }
  const std::shared_ptr<Scope>& Called(const FnRef& fn) {
    std::shared_ptr<Scope>& scope = called_[fn];
    if (scope == nullptr) scope = Enter(fn);
    return scope;
  }
  static Cut* Of(Scope& s, const Atom& a) { return a.is_var() ? &s.vars[a.id()] : nullptr; }

  void EnterEqn(Scope& scope, size_t k) {
    const Eqn& e = scope.fn->eqns()[k];
    const RegionUse use = e.prim->region_use;
    auto result = [&](size_t i) { return &scope.vars[e.first_result + i]; };
    if (RegionsAreCut(e)) {
      for (const FnRef& r : e.regions) scope.regions[k].push_back(use == RegionUse::kCall ? Called(r) : Enter(r));
    }
    auto param = [&](size_t r, size_t i) { return &scope.regions[k][r]->vars[i]; };
    auto gives = [&](size_t r, size_t i) { return Of(*scope.regions[k][r], scope.regions[k][r]->fn->results()[i]); };
    if (use == RegionUse::kCall) {
      for (size_t i = 0; i < e.operands.size(); ++i) Same({Of(scope, e.operands[i]), param(0, i)});
      for (size_t i = 0; i < e.num_results; ++i) Same({result(i), gives(0, i)});
    } else if (use == RegionUse::kBranches) {
      for (size_t i = 1; i < e.operands.size(); ++i) {
        std::vector<Cut*> same = {Of(scope, e.operands[i])};
        for (size_t r = 0; r < e.regions.size(); ++r) same.push_back(param(r, i - 1));
        Same(same);
      }
      for (size_t i = 0; i < e.num_results; ++i) {
        std::vector<Cut*> same = {result(i)};
        for (size_t r = 0; r < e.regions.size(); ++r) same.push_back(gives(r, i));
        Same(same);
      }
    } else if (use == RegionUse::kUncounted && RegionsAreCut(e)) {
      const While loop(e.attrs, e.regions);
      for (size_t i = 0; i < loop.operands; ++i) {
        std::vector<Cut*> same = {Of(scope, e.operands[i]), param(0, i), param(1, i)};
        if (i < loop.carries) same.insert(same.end(), {gives(1, i), result(i)});
        Same(same);
      }
    } else if (use == RegionUse::kCounted) {
      const Scan loop(*e.prim, e.attrs, e.regions[0]);
      for (size_t i = 0; i < loop.operands; ++i) {
        if (i >= loop.first_x()) {
          Shifted({Of(scope, e.operands[i]), param(0, i)}, {true, false});
        } else if (i >= loop.consts) {
          Same({Of(scope, e.operands[i]), param(0, i), gives(0, i - loop.consts), result(i - loop.consts)});
        } else {
          Same({Of(scope, e.operands[i]), param(0, i)});
        }
      }
      for (size_t i = loop.carries; i < loop.results; ++i) {
        // A result of the body that is a literal says nothing, but the stacked one has its dimensions.
        if (Cut* slice = gives(0, i)) Shifted({result(i), slice}, {true, false});
      }
    } else if (use == RegionUse::kDevices) {
      if (!(e.attrs.Get<Mesh>("mesh") == mesh_)) return;
      const Shardings &in = e.attrs.Get<Shardings>("in_shardings"), &out = e.attrs.Get<Shardings>("out_shardings");
      for (size_t i = 0; i < in.size(); ++i) {
        if (Cut* x = Of(scope, e.operands[i])) Same({x, Fixed(x->type, LayoutOf(mesh_, in[i]))});
      }
      for (size_t i = 0; i < out.size(); ++i) Same({result(i), Fixed(result(i)->type, LayoutOf(mesh_, out[i]))});
    } else if (IsConstraint(e)) {
      Cut& y = *result(0);
      y.layout = LayoutOf(mesh_, e.attrs.Get<Shardings>("sharding")[0]);
      y.closed.assign(y.closed.size(), true);
      for (int64_t d : e.attrs.Get<Ints>("open")) y.closed[d] = false;
      Same({Of(scope, e.operands[0]), &y});
    } else if (const OpShardingRule& rule = OpShardingRuleOf(*e.prim); rule.map) {
      Types operands, results;
      Mask literal;
      for (const Atom& a : e.operands) {
        operands.push_back(scope.fn->TypeOf(a));
        literal.push_back(a.is_literal());
      }
      for (size_t i = 0; i < e.num_results; ++i) results.push_back(result(i)->type);
      ShardingRule& map = scope.maps[k] = rule.map(Sig{*e.prim, operands, literal, e.attrs, e.regions}, results);
      Link link{&map, {}, {}, e.prim->is_elementwise()};
      for (size_t i = 0; i < e.operands.size(); ++i) {
        link.tensors.push_back(Of(scope, e.operands[i]));
        link.dims.push_back(&map.operands[i]);
      }
      for (size_t i = 0; i < e.num_results; ++i) {
        link.tensors.push_back(result(i));
        link.dims.push_back(&map.results[i]);
      }
      links_.push_back(std::move(link));
    }
  }

  // Cuts more of the tensors of a link, where they agree.
  bool Extend(Link& link, int level) {
    if (level == 0 && !link.pointwise) return false;
    const ShardingRule& map = *link.map;
    const size_t n = link.tensors.size();
    std::vector<std::vector<std::vector<int>>> have(n);
    for (size_t t = 0; t < n; ++t) {
      if (link.tensors[t] != nullptr) have[t] = FactorCuts(mesh_, map, *link.dims[t], link.tensors[t]->layout);
    }
    // Larger sources first.
    struct Source {
      double bytes;
      int factor;
      std::vector<int> axes;
    };
    std::vector<Source> sources;
    for (size_t f = 0; f < map.factors.size(); ++f) {
      if (level < 2 && map.factors[f].kind != ShardingRule::Kind::kPass) continue;
      const std::vector<int>* longest = nullptr;
      double bytes = 0;
      bool disagree = false;
      for (size_t t = 0; t < n; ++t) {
        if (have[t].empty() || have[t][f].empty()) continue;
        const auto& axes = have[t][f];
        if (longest != nullptr &&
            !std::equal(axes.begin(), axes.begin() + static_cast<int64_t>(std::min(axes.size(), longest->size())),
                        longest->begin()))
          disagree = true;
        const bool better =
            longest == nullptr || axes.size() > longest->size() || (disagree && Bytes(*link.tensors[t]) > bytes);
        if (better) longest = &axes, bytes = Bytes(*link.tensors[t]);
      }
      if (longest == nullptr || (disagree && level < 3)) continue;
      sources.push_back({bytes, static_cast<int>(f), *longest});
    }
    std::stable_sort(sources.begin(), sources.end(),
                     [](const Source& a, const Source& b) { return a.bytes > b.bytes; });
    bool changed = false;
    for (const Source& s : sources) {
      if (level < 3 && UsedElsewhere(map, have, s.factor, s.axes)) continue;
      for (size_t t = 0; t < n; ++t) {
        if (have[t].empty()) continue;
        auto& mine = have[t][s.factor];
        if (mine.size() >= s.axes.size() || !std::equal(mine.begin(), mine.end(), s.axes.begin())) continue;
        changed |= Grow(*link.tensors[t], map, *link.dims[t], have[t], s.factor, s.axes);
      }
    }
    return changed;
  }

  // Whether one of the axes cuts another factor of the same operation.
  static bool UsedElsewhere(const ShardingRule& map, const std::vector<std::vector<std::vector<int>>>& have, int factor,
                            const std::vector<int>& axes) {
    for (const auto& tensor : have) {
      for (size_t f = 0; f < tensor.size() && f < map.factors.size(); ++f) {
        if (static_cast<int>(f) == factor) continue;
        for (int a : tensor[f]) {
          if (std::find(axes.begin(), axes.end(), a) != axes.end()) return true;
        }
      }
    }
    return false;
  }

  bool Grow(Cut& cut, const ShardingRule& map, const ShardingRule::Tensor& dims, std::vector<std::vector<int>>& cuts,
            int factor, const std::vector<int>& axes) {
    bool changed = false;
    for (size_t i = cuts[factor].size(); i < axes.size(); ++i) {
      if (cut.layout.Cuts() & AxisBit(axes[i])) break;
      std::vector<std::vector<int>> next = cuts;
      next[factor].push_back(axes[i]);
      const std::optional<Layout> layout = LayoutOfCuts(mesh_, map, dims, next);
      if (!layout) break;
      // Dimensions that hold cuts of no factor keep them; what changes is the one that holds the factor.
      size_t d = 0;
      while (d < dims.size() && std::find(dims[d].begin(), dims[d].end(), factor) == dims[d].end()) ++d;
      if (d == dims.size() || cut.closed[d]) break;
      const auto& old = cut.layout.dims[d];
      const auto& now = layout->dims[d];
      if (now.size() <= old.size() || !std::equal(old.begin(), old.end(), now.begin())) break;
      if (cut.type.dims[d].value("a dimension") % Blocks(mesh_, now) != 0) break;
      cut.layout.dims[d] = now;
      cuts = std::move(next);
      changed = true;
    }
    return changed;
  }

  const Mesh& mesh_;
  std::deque<Cut> fixed_;
  std::deque<ShardingRule> maps_;
  std::vector<Link> links_;
  std::unordered_map<FnRef, std::shared_ptr<Scope>, FnHash, FnEqual> called_;
};

}  // namespace

bool IsConstraint(const Eqn& e) {
  // What partitioning is about: everybody else asks here.
  return Is<"sharding_constraint">(*e.prim);
}

bool RegionsAreCut(const Eqn& e) {
  const RegionUse use = e.prim->region_use;
  if (use == RegionUse::kDevices) return false;  // they are cut already
  return OpShardingRuleOf(*e.prim).cuts_regions && e.attrs.GetOr<Ints>("lanes", {}).empty();
}

std::vector<std::vector<int>> FactorCuts(const Mesh& mesh, const ShardingRule& map, const ShardingRule::Tensor& tensor,
                                         const Layout& layout) {
  std::vector<std::vector<int>> cuts(map.factors.size());
  for (size_t d = 0; d < tensor.size(); ++d) {
    size_t i = 0;
    for (int f : tensor[d]) {
      int64_t left = map.factors[f].size;
      while (i < layout.dims[d].size() && left % mesh.axes[layout.dims[d][i]].size == 0) {
        left /= mesh.axes[layout.dims[d][i]].size;
        cuts[f].push_back(layout.dims[d][i++]);
      }
      if (left != 1) break;  // what is left of the axes does not fit
    }
  }
  return cuts;
}

std::optional<Layout> LayoutOfCuts(const Mesh& mesh, const ShardingRule& map, const ShardingRule::Tensor& tensor,
                                   const std::vector<std::vector<int>>& cuts) {
  Layout l = Replicated(static_cast<int>(tensor.size()));
  for (size_t d = 0; d < tensor.size(); ++d) {
    bool open = false;  // a factor has been left uncut, or cut in part
    for (int f : tensor[d]) {
      if (cuts[f].empty()) {
        open |= map.factors[f].size > 1;
        continue;
      }
      if (open) return std::nullopt;
      l.dims[d].insert(l.dims[d].end(), cuts[f].begin(), cuts[f].end());
      open = map.factors[f].size != Blocks(mesh, cuts[f]);
    }
  }
  return l;
}

std::shared_ptr<Scope> Propagate(const FnRef& fn, const Mesh& mesh, const OptionalLayouts& params,
                                 const OptionalLayouts& results) {
  Propagation p(mesh);
  std::shared_ptr<Scope> scope = p.Enter(fn);
  for (size_t i = 0; i < params.size(); ++i) {
    if (!params[i]) continue;
    scope->vars[i].layout = *params[i];
    scope->vars[i].closed.assign(scope->vars[i].closed.size(), true);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const Atom& a = fn->results()[i];
    if (results[i] && a.is_var()) p.Same({&scope->vars[a.id()], p.Fixed(fn->TypeOf(a), *results[i])});
  }
  p.Run();
  return scope;
}

}  // namespace weft
