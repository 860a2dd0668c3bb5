#include "transforms/shard/explicit_types.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ir/analysis/sharding_rules.h"
#include "ir/prims/control/scan.h"
#include "ir/prims/control/while.h"
#include "transforms/shard/propagation.h"

namespace weft {
namespace {

using Layouts = std::vector<Layout>;

class ExplicitTypes {
 public:
  ExplicitTypes(const Mesh& mesh, uint32_t said) : mesh_(mesh), said_(said) {}

  Layouts Results(const Fn& fn, const Layouts& params) const {
    std::vector<Layout> vars(fn.num_vars());
    for (size_t i = 0; i < params.size(); ++i) vars[i] = Said(params[i]);
    // What is read by constraints alone needs no layout of its own: they say it.
    std::vector<bool> said_later(fn.num_vars(), false), read(fn.num_vars(), false);
    for (const Eqn& e : fn.eqns()) {
      for (const Atom& a : e.operands) {
        if (a.is_var()) (IsConstraint(e) ? said_later : read)[a.id()] = true;
      }
    }
    for (const Atom& a : fn.results()) {
      if (a.is_var()) read[a.id()] = true;
    }
    const auto of = [&](const Atom& a) { return a.is_var() ? vars[a.id()] : Replicated(fn.TypeOf(a).rank()); };
    for (const Eqn& e : fn.eqns()) {
      Layouts operands;
      for (const Atom& a : e.operands) operands.push_back(of(a));
      bool open = e.num_results > 0;
      for (uint32_t i = 0; i < e.num_results; ++i) {
        open = open && said_later[e.first_result + i] && !read[e.first_result + i];
      }
      Layouts results = OfEqn(fn, e, operands, open);
      for (uint32_t i = 0; i < e.num_results; ++i) vars[e.first_result + i] = std::move(results[i]);
    }
    Layouts results;
    for (const Atom& a : fn.results()) results.push_back(of(a));
    return results;
  }

 private:
  // Along the axes whose types say it.
  Layout Said(Layout l) const {
    for (std::vector<int>& axes : l.dims) {
      axes.erase(std::remove_if(axes.begin(), axes.end(), [&](int a) { return !(said_ & AxisBit(a)); }), axes.end());
    }
    l.partial = 0;
    return l;
  }

  std::string Text(const std::vector<int>& axes) const {
    std::string text;
    for (int a : axes) text += (text.empty() ? "'" : ", '") + mesh_.axes[a].name + "'";
    return axes.empty() ? "None" : axes.size() == 1 ? text : "(" + text + ")";
  }
  std::string Text(const Layout& l) const {
    std::string text;
    for (const auto& axes : l.dims) text += (text.empty() ? "" : ", ") + Text(axes);
    return "P(" + text + ")";
  }

  template <class... Args>
  [[noreturn]] static void Fail(const Eqn& e, const Args&... args) {
    throw UserError(ErrorKind::kValue, e.loc, e.prim->name, ": ", args...);
  }
  static constexpr const char* kRemedy =
      "; say how the result is to lie: weft.reshard of an operand, or out_sharding= of the function";

  Layouts Whole(const Fn& fn, const Eqn& e) const {
    Layouts results;
    for (uint32_t i = 0; i < e.num_results; ++i)
      results.push_back(Replicated(fn.TypeOf(Var{e.first_result + i}).rank()));
    return results;
  }

  // `open`: constraints say how the results lie.
  Layouts OfEqn(const Fn& fn, const Eqn& e, const Layouts& operands, bool open) const {
    const RegionUse use = e.prim->region_use;
    if (use == RegionUse::kDevices) return OfDevices(fn, e);
    if (IsConstraint(e)) return OfConstraint(e, operands[0]);
    if (use == RegionUse::kCall || use == RegionUse::kWithRules) {
      if (e.regions[0]->params().size() == operands.size()) return Results(*e.regions[0], operands);
    }
    if (use == RegionUse::kBranches) return OfBranches(e, operands);
    if (use == RegionUse::kCounted) return OfScan(fn, e, operands);
    if (use == RegionUse::kUncounted && RegionsAreCut(e)) return OfWhile(e, operands);
    const OpShardingRule& rule = OpShardingRuleOf(*e.prim);
    if (rule.map) return OfRule(fn, e, rule, operands, open);
    return Whole(fn, e);
  }

  Layouts OfDevices(const Fn& fn, const Eqn& e) const {
    if (!(e.attrs.Get<Mesh>("mesh") == mesh_)) return Whole(fn, e);
    Layouts results;
    for (const Sharding& s : e.attrs.Get<Shardings>("out_shardings")) results.push_back(Said(LayoutOf(mesh_, s)));
    return results;
  }

  Layouts OfConstraint(const Eqn& e, const Layout& operand) const {
    Layout l = Said(LayoutOf(mesh_, e.attrs.Get<Shardings>("sharding")[0]));
    for (int64_t d : e.attrs.Get<Ints>("open")) {
      for (int a : operand.dims[d]) {
        if (!(l.Cuts() & AxisBit(a))) l.dims[d].push_back(a);
      }
    }
    return {l};
  }

  Layouts OfBranches(const Eqn& e, const Layouts& operands) const {
    const Layouts given(operands.begin() + 1, operands.end());
    const Layouts results = Results(*e.regions[0], given);
    for (size_t r = 1; r < e.regions.size(); ++r) {
      const Layouts others = Results(*e.regions[r], given);
      for (size_t i = 0; i < results.size(); ++i) {
        if (!(others[i] == results[i])) {
          Fail(e, "result ", i, " lies as ", Text(results[i]), " in branch 0 and as ", Text(others[i]), " in branch ",
               r, kRemedy);
        }
      }
    }
    return results;
  }

  Layouts OfScan(const Fn& fn, const Eqn& e, const Layouts& operands) const {
    const Scan loop(*e.prim, e.attrs, e.regions[0]);
    Layouts given = operands;
    for (size_t i = loop.first_x(); i < loop.operands; ++i) {
      if (!given[i].dims[0].empty()) {
        Fail(e, "the loop goes over a dimension that ", Text(given[i].dims[0]),
             " cuts: each trip needs a slice of its own", kRemedy);
      }
      given[i].dims.erase(given[i].dims.begin());
    }
    const Layouts body = Results(*loop.body, given);
    Layouts results = Whole(fn, e);
    for (size_t i = 0; i < results.size(); ++i) {
      if (i < loop.carries) {
        SameCarry(e, i, given[loop.consts + i], body[i]);
        results[i] = body[i];
      } else {
        std::copy(body[i].dims.begin(), body[i].dims.end(), results[i].dims.begin() + 1);
      }
    }
    return results;
  }

  Layouts OfWhile(const Eqn& e, const Layouts& operands) const {
    const While loop(e.attrs, e.regions);
    const Layouts body = Results(*loop.body, operands);
    for (size_t i = 0; i < loop.carries; ++i) SameCarry(e, i, operands[i], body[i]);
    return {body.begin(), body.begin() + static_cast<int64_t>(e.num_results)};
  }

  void SameCarry(const Eqn& e, size_t i, const Layout& before, const Layout& after) const {
    if (!(before == after)) {
      Fail(e, "carry ", i, " lies as ", Text(before), " before a trip and as ", Text(after), " after it", kRemedy);
    }
  }

  Layouts OfRule(const Fn& fn, const Eqn& e, const OpShardingRule& rule, const Layouts& operands, bool open) const {
    Types types, result_types;
    Mask literal;
    for (const Atom& a : e.operands) {
      types.push_back(fn.TypeOf(a));
      literal.push_back(a.is_literal());
    }
    for (uint32_t i = 0; i < e.num_results; ++i) result_types.push_back(fn.TypeOf(Var{e.first_result + i}));
    const ShardingRule map = rule.map(Sig{*e.prim, types, literal, e.attrs, e.regions}, result_types);
    std::vector<std::vector<int>> cuts(map.factors.size());
    std::vector<int> who(map.factors.size(), -1), times(map.factors.size(), 0);
    for (size_t t = 0; t < operands.size(); ++t) {
      const auto mine = FactorCuts(mesh_, map, map.operands[t], operands[t]);
      size_t placed = 0, cut = 0;
      for (const auto& axes : mine) placed += axes.size();
      for (const auto& axes : operands[t].dims) cut += axes.size();
      if (placed != cut) {
        if (open) return Whole(fn, e);
        Fail(e, "operand ", t, " lies as ", Text(operands[t]), ", and the operation needs a dimension of it whole",
             kRemedy);
      }
      for (size_t f = 0; f < mine.size(); ++f) {
        if (mine[f].empty()) continue;
        ++times[f];
        if (who[f] >= 0 && cuts[f] != mine[f]) {
          if (open) return Whole(fn, e);
          Fail(e, "operands ", who[f], " and ", t, " lie as ", Text(operands[who[f]]), " and ", Text(operands[t]),
               ", which do not go together", kRemedy);
        }
        cuts[f] = mine[f];
        who[f] = static_cast<int>(t);
      }
    }
    // One axis, one dimension.
    uint32_t taken = 0;
    for (size_t f = 0; f < cuts.size(); ++f) {
      for (int a : cuts[f]) {
        if (taken & AxisBit(a)) {
          if (open) return Whole(fn, e);
          Fail(e, "'", mesh_.axes[a].name, "' would cut two dimensions of the operation: its operands lie as ",
               TextOf(operands), kRemedy);
        }
        taken |= AxisBit(a);
      }
      if (map.factors[f].kind == ShardingRule::Kind::kSum && times[f] > 1 && !open) {
        Fail(e, "the dimension that is summed over is cut by ", Text(cuts[f]), " in several operands, which lie as ",
             TextOf(operands), ": how the result lies is open", kRemedy);
      }
    }
    Layouts results;
    for (size_t i = 0; i < e.num_results; ++i) {
      // What the result has no dimension for is put together.
      std::vector<std::vector<int>> kept(cuts.size());
      for (const std::vector<int>& held : map.results[i]) {
        for (int f : held) kept[f] = cuts[f];
      }
      std::optional<Layout> l = LayoutOfCuts(mesh_, map, map.results[i], kept);
      if (!l && !open) {
        Fail(e, "operands that lie as ", TextOf(operands), " make a result of shape ", result_types[i].ToString(),
             " whose blocks are not contiguous", kRemedy);
      }
      results.push_back(l.value_or(Replicated(result_types[i].rank())));
    }
    return results;
  }

  std::string TextOf(const Layouts& layouts) const {
    std::string text;
    for (const Layout& l : layouts) text += (text.empty() ? "" : " and ") + Text(l);
    return text;
  }

  const Mesh& mesh_;
  const uint32_t said_;
};

}  // namespace

std::vector<Layout> ExplicitLayouts(const FnRef& fn, const Mesh& mesh, uint32_t said, const Layouts& params) {
  return ExplicitTypes(mesh, said).Results(*fn, params);
}

}  // namespace weft
