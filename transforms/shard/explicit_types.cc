#include "transforms/shard/explicit_types.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>

#include "ir/analysis/sharding_rules.h"
#include "ir/builder.h"
#include "ir/prim_table.h"
#include "ir/prims/control/scan.h"
#include "ir/prims/control/while.h"
#include "transforms/shard/propagation.h"

namespace weft {
namespace {

constexpr const char* kRemedy =
    "; say how the result is to lie: weft.reshard of an operand, or out_sharding= of the function";

template <class... Args>
[[noreturn]] void Fail(const Eqn& e, const Args&... args) {
  std::ostringstream text;
  text << e.prim->name << ": ";
  (text << ... << args);
  throw ShardingTypeError(text.str(), e.loc);
}

bool IsStatic(const Types& types) {
  return std::all_of(types.begin(), types.end(), [](const Type& t) { return t.is_static(); });
}

uint32_t BitsOf(const Mesh& mesh, const Strings& names) {
  uint32_t bits = 0;
  for (size_t a = 0; a < mesh.axes.size(); ++a) {
    if (std::find(names.begin(), names.end(), mesh.axes[a].name) != names.end()) bits |= AxisBit(static_cast<int>(a));
  }
  return bits;
}

uint32_t BitsOf(const std::vector<std::vector<int>>& dims) {
  uint32_t bits = 0;
  for (const auto& axes : dims) {
    for (int a : axes) bits |= AxisBit(a);
  }
  return bits;
}

// What cuts the dimensions of a result, each of which may be several of the operands' joined: what cuts those, one
// after the other. Where more than the first is cut its blocks are others than theirs, and elements move between
// devices. Nothing where one is cut behind one that is whole.
std::optional<std::vector<std::vector<int>>> JoinedCuts(const ShardingRule& map, const ShardingRule::Tensor& result,
                                                        const std::vector<std::vector<int>>& cuts) {
  std::vector<std::vector<int>> dims(result.size());
  for (size_t d = 0; d < result.size(); ++d) {
    bool whole = false;
    for (int f : result[d]) {
      const std::vector<int>& cut = cuts[static_cast<size_t>(f)];
      if (whole && !cut.empty()) return std::nullopt;
      whole |= cut.empty() && map.factors[static_cast<size_t>(f)].size > 1;
      dims[d].insert(dims[d].end(), cut.begin(), cut.end());
    }
  }
  return dims;
}

}  // namespace

TypedLayout ExplicitTypes::Open(int rank) const {
  TypedLayout l;
  l.dims.resize(static_cast<size_t>(rank));
  l.open = true;
  return l;
}

TypedLayout ExplicitTypes::Said(TypedLayout l) const {
  for (std::vector<int>& axes : l.dims) {
    axes.erase(std::remove_if(axes.begin(), axes.end(), [&](int a) { return !(said_ & AxisBit(a)); }), axes.end());
  }
  l.unreduced &= said_ | devices_;
  l.reduced &= said_ | devices_;
  return l;
}

TypedLayout ExplicitTypes::Of(const Sharding& sharding, const Strings& unreduced, const Strings& reduced) const {
  TypedLayout l;
  for (const auto& names : sharding.dims) {
    l.dims.emplace_back();
    for (const std::string& name : names) {
      for (size_t a = 0; a < mesh_.axes.size(); ++a) {
        if (mesh_.axes[a].name == name) l.dims.back().push_back(static_cast<int>(a));
      }
    }
  }
  l.unreduced = BitsOf(mesh_, unreduced);
  l.reduced = BitsOf(mesh_, reduced);
  return Said(std::move(l));
}

std::string ExplicitTypes::Text(const std::vector<int>& axes) const {
  std::string text;
  for (int a : axes) text += (text.empty() ? "'" : ", '") + mesh_.axes[static_cast<size_t>(a)].name + "'";
  return axes.empty() ? "None" : axes.size() == 1 ? text : "(" + text + ")";
}

std::string ExplicitTypes::Text(uint32_t axes) const {
  std::string text;
  for (const std::string& name : AxisNames(mesh_, axes)) text += (text.empty() ? "'" : ", '") + name + "'";
  return "{" + text + "}";
}

std::string ExplicitTypes::Text(const TypedLayout& l) const {
  std::string text;
  for (const auto& axes : l.dims) text += (text.empty() ? "" : ", ") + Text(axes);
  if (l.unreduced) text += (text.empty() ? "unreduced=" : ", unreduced=") + Text(l.unreduced);
  if (l.reduced) text += (text.empty() ? "reduced=" : ", reduced=") + Text(l.reduced);
  return "P(" + text + ")";
}

std::string ExplicitTypes::Text(const TypedLayouts& layouts) const {
  std::string text;
  for (const TypedLayout& l : layouts) text += (text.empty() ? "" : " and ") + Text(l);
  return text;
}

int64_t ExplicitTypes::Blocks(const std::vector<int>& axes) const { return weft::Blocks(mesh_, axes); }

TypedLayouts ExplicitTypes::Vars(const Fn& fn, const TypedLayouts& params, bool strict) const {
  TypedLayouts vars(fn.num_vars());
  for (size_t i = 0; i < params.size(); ++i) vars[i] = Said(params[i]);
  const std::vector<bool> said_later = SaidLater(fn.eqns(), 0, fn.results());
  const auto of = [&](const Atom& a) { return a.is_var() ? vars[a.id()] : Open(fn.TypeOf(a).rank()); };
  Context context{[&](const Atom& a) -> const Type& { return fn.TypeOf(a); }, strict, false};
  for (size_t k = 0; k < fn.eqns().size(); ++k) {
    const Eqn& e = fn.eqns()[k];
    TypedLayouts operands;
    for (const Atom& a : e.operands) operands.push_back(of(a));
    context.said_later = said_later[k];
    TypedLayouts results = OfEqn(e, operands, context);
    for (uint32_t i = 0; i < e.num_results; ++i) vars[e.first_result + i] = std::move(results[i]);
  }
  return vars;
}

TypedLayouts ExplicitTypes::Results(const Fn& fn, const TypedLayouts& params, bool strict) const {
  const TypedLayouts vars = Vars(fn, params, strict);
  TypedLayouts results;
  for (const Atom& a : fn.results()) results.push_back(a.is_var() ? vars[a.id()] : Open(fn.TypeOf(a).rank()));
  return results;
}

TypedLayouts ExplicitTypes::Whole(const Eqn& e, const Context& context) const {
  TypedLayouts results;
  for (uint32_t i = 0; i < e.num_results; ++i) {
    TypedLayout l;
    l.dims.resize(static_cast<size_t>(context.type_of(Var{e.first_result + i}).rank()));
    results.push_back(std::move(l));
  }
  return results;
}

TypedLayouts ExplicitTypes::OfEqn(const Eqn& e, const TypedLayouts& operands, const Context& context) const {
  const RegionUse use = e.prim->region_use;
  if (use == RegionUse::kDevices) return OfDevices(e, context);
  if (IsConstraint(e)) return OfConstraint(e, operands[0]);
  // What is inside was checked where it was traced.
  if (use == RegionUse::kCall || use == RegionUse::kWithRules) {
    if (e.regions[0]->params().size() == operands.size()) return Results(*e.regions[0], operands, false);
  }
  if (use == RegionUse::kBranches) return OfBranches(e, operands, context);
  if (use == RegionUse::kCounted) return OfScan(e, operands, context);
  if (use == RegionUse::kUncounted && RegionsAreCut(e)) return OfWhile(e, operands, context);
  const OpShardingRule& rule = OpShardingRuleOf(*e.prim);
  TypedLayouts results = rule.map ? OfRule(e, operands, context) : Whole(e, context);
  if (devices_ && e.prim->family == Family::kCollective) OfCollective(e, operands, results);
  return results;
}

// Sums over devices have no parts along their axes.
void ExplicitTypes::OfCollective(const Eqn& e, const TypedLayouts& operands, TypedLayouts& results) const {
  static const auto& sums = *new PrimSet{"psum", "psum_scatter"};
  static const auto& widening = *new PrimSet{"pvary"};
  if (operands.empty()) return;
  const uint32_t axes = BitsOf(mesh_, e.attrs.Get<Strings>("axes"));
  if (widening.Has(*e.prim)) {
    results[0] = operands[0];
    results[0].widened |= axes;
    return;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const TypedLayout& l = operands[std::min(i, operands.size() - 1)];
    results[i].unreduced = sums.Has(*e.prim) ? l.unreduced & ~axes : l.unreduced;
    results[i].reduced = l.reduced;
  }
}

TypedLayouts ExplicitTypes::OfDevices(const Eqn& e, const Context& context) const {
  if (!(e.attrs.Get<Mesh>("mesh") == mesh_)) return Whole(e, context);
  TypedLayouts results;
  for (const Sharding& s : e.attrs.Get<Shardings>("out_shardings")) results.push_back(Of(s, {}, {}));
  return results;
}

TypedLayouts ExplicitTypes::OfConstraint(const Eqn& e, const TypedLayout& operand) const {
  const auto names = [&](const char* attr) {
    const Attr* found = e.attrs.Find(attr);
    return found == nullptr ? Strings() : std::get<Strings>(*found);
  };
  TypedLayout l = Of(e.attrs.Get<Shardings>("sharding")[0], names("unreduced"), names("reduced"));
  uint32_t taken = BitsOf(l.dims);
  for (int64_t d : e.attrs.Get<Ints>("open")) {
    for (int a : operand.dims[static_cast<size_t>(d)]) {
      if (taken & AxisBit(a)) continue;
      l.dims[static_cast<size_t>(d)].push_back(a);
      taken |= AxisBit(a);
    }
  }
  return {l};
}

TypedLayouts ExplicitTypes::OfBranches(const Eqn& e, const TypedLayouts& operands, const Context& context) const {
  const TypedLayouts given(operands.begin() + 1, operands.end());
  TypedLayouts results = Results(*e.regions[0], given, false);
  for (size_t r = 1; r < e.regions.size(); ++r) {
    const TypedLayouts others = Results(*e.regions[r], given, false);
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].open) {
        results[i] = others[i];
      } else if (!others[i].open && !(others[i] == results[i]) && context.strict) {
        Fail(e, "result ", i, " lies as ", Text(results[i]), " in branch 0 and as ", Text(others[i]), " in branch ", r,
             kRemedy);
      }
    }
  }
  return results;
}

TypedLayouts ExplicitTypes::OfScan(const Eqn& e, const TypedLayouts& operands, const Context& context) const {
  const Scan loop(*e.prim, e.attrs, e.regions[0]);
  TypedLayouts given = operands;
  for (size_t i = loop.first_x(); i < loop.operands; ++i) {
    if (!given[i].dims[0].empty() && context.strict) {
      Fail(e, "the loop goes over a dimension that ", Text(given[i].dims[0]),
           " cuts: each trip needs a slice of its own", kRemedy);
    }
    given[i].dims.erase(given[i].dims.begin());
  }
  const TypedLayouts body = Results(*loop.body, given, false);
  TypedLayouts results = Whole(e, context);
  for (size_t i = 0; i < results.size(); ++i) {
    if (i < loop.carries) {
      SameCarry(e, i, given[loop.consts + i], body[i], context.strict);
      results[i] = body[i];
    } else {
      results[i] = body[i];
      results[i].dims.emplace(results[i].dims.begin());
    }
  }
  return results;
}

TypedLayouts ExplicitTypes::OfWhile(const Eqn& e, const TypedLayouts& operands, const Context& context) const {
  const While loop(e.attrs, e.regions);
  const TypedLayouts body = Results(*loop.body, operands, false);
  for (size_t i = 0; i < loop.carries; ++i) SameCarry(e, i, operands[i], body[i], context.strict);
  return {body.begin(), body.begin() + static_cast<int64_t>(e.num_results)};
}

void ExplicitTypes::SameCarry(const Eqn& e, size_t i, const TypedLayout& before, const TypedLayout& after,
                              bool strict) const {
  if (strict && !before.open && !after.open && !(before == after)) {
    Fail(e, "carry ", i, " lies as ", Text(before), " before a trip and as ", Text(after), " after it", kRemedy);
  }
}

TypedLayouts ExplicitTypes::OfRule(const Eqn& e, const TypedLayouts& operands, const Context& context) const {
  const OpShardingRule& rule = OpShardingRuleOf(*e.prim);
  const bool strict = context.strict && !context.said_later;
  Types types, result_types;
  Mask literal;
  bool open = true;
  for (size_t t = 0; t < operands.size(); ++t) {
    types.push_back(context.type_of(e.operands[t]));
    literal.push_back(e.operands[t].is_literal());
    open &= operands[t].open;
  }
  for (uint32_t i = 0; i < e.num_results; ++i) result_types.push_back(context.type_of(Var{e.first_result + i}));
  TypedLayouts results = Whole(e, context);
  for (TypedLayout& l : results) l.open = open;
  if (open || !IsStatic(types) || !IsStatic(result_types)) return results;
  const ShardingRule map = rule.map(Sig{*e.prim, types, literal, e.attrs, e.regions}, result_types);

  const size_t rank = result_types.empty() ? 0 : static_cast<size_t>(result_types[0].rank());
  if (rule.alike && strict) {
    size_t first = operands.size();
    for (size_t t = 0; t < operands.size(); ++t) {
      if (operands[t].open || operands[t].dims.size() != rank) continue;
      if (first == operands.size()) {
        first = t;
      } else if (operands[t].dims != operands[first].dims) {
        Fail(e, "operands ", first, " and ", t, " lie as ", Text(operands[first]), " and ", Text(operands[t]),
             ", and have to lie alike", kRemedy);
      }
    }
  }

  std::vector<std::vector<int>> cuts(map.factors.size()), stays(rank);
  std::vector<int> who(map.factors.size(), -1), times(map.factors.size(), 0);
  for (size_t t = 0; t < operands.size(); ++t) {
    Layout l;
    l.dims = operands[t].dims;
    const auto mine = FactorCuts(mesh_, map, map.operands[t], l);
    for (size_t d = 0; d < l.dims.size(); ++d) {
      size_t placed = 0;
      for (int f : map.operands[t][d]) placed += mine[static_cast<size_t>(f)].size();
      if (placed == l.dims[d].size()) continue;
      const bool cuts_nothing = Blocks(l.dims[d]) == 1;
      const bool in_place = l.dims.size() == rank && map.operands[t][d].empty();
      if ((rule.unheld == OpShardingRule::Unheld::kStays || cuts_nothing) && in_place) {
        if (stays[d].empty()) stays[d] = l.dims[d];
      } else if (rule.unheld != OpShardingRule::Unheld::kGone && !cuts_nothing && strict) {
        Fail(e, "operand ", t, " lies as ", Text(operands[t]), ", and the operation needs dimension ", d,
             " of it whole", kRemedy);
      }
    }
    for (size_t f = 0; f < mine.size(); ++f) {
      if (mine[f].empty()) continue;
      ++times[f];
      if (who[f] >= 0 && cuts[f] != mine[f]) {
        if (strict) {
          const bool summed = map.factors[f].kind == ShardingRule::Kind::kSum;
          Fail(e, "operands ", who[f], " and ", t, " lie as ", Text(operands[static_cast<size_t>(who[f])]), " and ",
               Text(operands[t]), ", which do not go together: a dimension ", summed ? "that is summed over " : "",
               "is cut by ", Text(cuts[f]), " in one and by ", Text(mine[f]), " in the other", kRemedy);
        }
        continue;
      }
      cuts[f] = mine[f];
      who[f] = static_cast<int>(t);
    }
  }
  for (size_t f = 0; f < cuts.size() && strict; ++f) {
    if (map.factors[f].kind != ShardingRule::Kind::kSum || times[f] == 0) continue;
    if (times[f] > 1 || rule.picks) {
      Fail(e, "the dimension that is summed over is cut by ", Text(cuts[f]), rule.picks ? "" : " in several operands",
           ": operands lie as ", Text(operands), ": how the result lies is open", kRemedy);
    }
  }
  for (size_t i = 0; i < results.size(); ++i) {
    // What the result has no dimension for is put together.
    std::vector<std::vector<int>> kept(cuts.size());
    uint32_t taken = 0;
    for (const std::vector<int>& held : map.results[i]) {
      for (int f : held) {
        for (int a : cuts[static_cast<size_t>(f)]) {  // one axis, one dimension
          if (!(taken & AxisBit(a))) {
            taken |= AxisBit(a);
            kept[static_cast<size_t>(f)].push_back(a);
          } else if (strict) {
            Fail(e, "'", mesh_.axes[static_cast<size_t>(a)].name,
                 "' would cut two dimensions of the result: operands lie as ", Text(operands), kRemedy);
          }
        }
      }
    }
    const auto dims = JoinedCuts(map, map.results[i], kept);
    if (!dims && strict) {
      Fail(e, "operands that lie as ", Text(operands), " make a result ", result_types[i].ToString(),
           ": a dimension that is cut is joined to one before it that is whole", kRemedy);
    }
    if (dims) results[i].dims = *dims;
    for (size_t d = 0; d < stays.size() && results[i].dims.size() == rank; ++d) {
      if (stays[d].empty() || !results[i].dims[d].empty()) continue;
      const int64_t size = result_types[i].dims[d].value("a dimension that is cut");
      if (size % Blocks(stays[d]) == 0) {
        results[i].dims[d] = stays[d];
      } else if (strict) {
        Fail(e, "dimension ", d, " is cut by ", Text(stays[d]), ", and ", Blocks(stays[d]),
             " devices cannot share the ", size, " of the result evenly", kRemedy);
      }
    }
  }
  OfSums(e, operands, context, results);
  return results;
}

// What becomes of sums in parts: an operation that is linear passes them on.
void ExplicitTypes::OfSums(const Eqn& e, const TypedLayouts& operands, const Context& context,
                           TypedLayouts& results) const {
  const bool strict = context.strict && !context.said_later;
  uint32_t unreduced = 0, reduced = 0, varying = 0;
  size_t first = operands.size(), in_parts = 0, linear = 0;
  for (size_t t = 0; t < operands.size(); ++t) {
    const TypedLayout& l = operands[t];
    const bool is_linear = e.prim->LinearIn(static_cast<int>(t));
    linear += is_linear && !l.open;
    if (devices_)
      varying |= BitsOf(mesh_, context.type_of(e.operands[t]).varying) & ~(l.unreduced | l.reduced | l.widened);
    if (l.unreduced) {
      ++in_parts;
      if (strict && !is_linear) {
        throw NotLinearError(e.prim->name + ": operand " + std::to_string(t) + " lies as " + Text(l) +
                                 ": a sum in parts, which only what is linear in it takes" + kRemedy,
                             e.loc);
      }
      if (strict && unreduced && unreduced != l.unreduced)
        Fail(e, "operands are sums in parts along ", Text(unreduced), " and ", Text(l.unreduced), kRemedy);
      unreduced = l.unreduced;
    }
    if (l.reduced) {
      if (strict && reduced && reduced != l.reduced)
        Fail(e, "operands are reduced along ", Text(reduced), " and ", Text(l.reduced), kRemedy);
      reduced = l.reduced;
      first = std::min(first, t);
    }
  }
  if (strict && unreduced) {
    if (e.prim->multilinear) {
      if (in_parts > 1) Fail(e, "two factors are sums in parts: operands lie as ", Text(operands), kRemedy);
      const bool scaled = std::all_of(operands.begin(), operands.end(), [&](const TypedLayout& l) {
        const bool is_number = l.open && !(unreduced & ~devices_);  // the same on all devices of a shard_map
        return l.unreduced || is_number || l.reduced == unreduced;
      });
      if (!scaled)
        Fail(e, "one factor is a sum in parts, and the other is not reduced along the same axes: operands lie as ",
             Text(operands), kRemedy);
    } else if (in_parts < linear) {
      Fail(e, "some operands are sums in parts and some are whole: they lie as ", Text(operands), kRemedy);
    }
  }
  if (strict && reduced && !unreduced && e.prim->is_elementwise()) {
    for (size_t t = 0; t < operands.size(); ++t) {
      const TypedLayout& l = operands[t];
      if (l.open || l.reduced || (varying & reduced) == reduced) continue;
      if (BitsOf(l.dims) & reduced)
        Fail(e, "operand ", t, " is cut along axes that operand ", first, " is reduced along: they lie as ",
             Text(operands), kRemedy);
      Fail(e, "operand ", t, " is replicated along axes that operand ", first, " is reduced along: they lie as ",
           Text(operands), kRemedy);
    }
  }
  if (e.prim->multilinear && unreduced) reduced = 0;
  if (e.prim->multilinear && !e.prim->is_elementwise()) reduced = 0;
  reduced &= ~varying;  // inside of shard_map what differs between devices does so with it
  for (TypedLayout& l : results) l.unreduced = unreduced, l.reduced = reduced;
}

FnRef WithTypedConstraints(const FnRef& fn, const Mesh& mesh, uint32_t said, const TypedLayouts& params) {
  const TypedLayouts layouts = ExplicitTypes(mesh, said).Vars(*fn, params, false);
  Builder b(fn->name());
  Atoms vars(fn->num_vars());
  for (size_t i = 0; i < fn->params().size(); ++i) {
    const Param& p = fn->params()[i];
    vars[i] = b.Parameter(p.type, p.name, p.kind);
  }
  const auto of = [&](const Atom& a) { return a.is_var() ? vars[a.id()] : a; };
  for (const Eqn& e : fn->eqns()) {
    Atoms operands;
    for (const Atom& a : e.operands) operands.push_back(of(a));
    b.set_loc(e.loc);
    const Atoms made = b.Clone(*fn, e, std::move(operands));
    for (uint32_t i = 0; i < e.num_results; ++i) {
      const TypedLayout& l = layouts[e.first_result + i];
      Atom& result = vars[e.first_result + i];
      result = made[i];
      if (l.open || IsConstraint(e)) continue;
      Sharding sharding;
      for (const auto& axes : l.dims) {
        sharding.dims.emplace_back();
        for (int a : axes) sharding.dims.back().push_back(mesh.axes[static_cast<size_t>(a)].name);
      }
      Attrs attrs = {{"mesh", mesh}, {"sharding", Shardings{sharding}}, {"open", Ints{}}};
      if (l.unreduced) attrs.Set("unreduced", AxisNames(mesh, l.unreduced));
      if (l.reduced) attrs.Set("reduced", AxisNames(mesh, l.reduced));
      attrs.Set("typed", AxisNames(mesh, said));
      result = b.Emit1(FindPrim("sharding_constraint"), {result}, std::move(attrs));
    }
  }
  Atoms results;
  for (const Atom& a : fn->results()) results.push_back(of(a));
  return b.Build(results);
}

std::vector<bool> SaidLater(const Eqns& eqns, size_t first, const Atoms& results) {
  std::vector<bool> later(eqns.size(), false);
  if (first >= eqns.size()) return later;
  const uint32_t begin = [&] {
    for (size_t k = first; k < eqns.size(); ++k) {
      if (eqns[k].num_results > 0) return eqns[k].first_result;
    }
    return ~uint32_t{0};
  }();
  std::vector<uint8_t> read;  // 1: by constraints, 2: by something else
  const auto note = [&](const Atom& a, uint8_t how) {
    if (!a.is_var() || a.id() < begin) return;
    if (read.size() <= a.id() - begin) read.resize(a.id() - begin + 1);
    read[a.id() - begin] |= how;
  };
  for (size_t k = first; k < eqns.size(); ++k) {
    for (const Atom& a : eqns[k].operands) note(a, IsConstraint(eqns[k]) ? 1 : 2);
  }
  for (const Atom& a : results) note(a, 2);
  for (size_t k = first; k < eqns.size(); ++k) {
    const Eqn& e = eqns[k];
    bool all = e.num_results > 0;
    for (uint32_t i = 0; i < e.num_results; ++i) {
      const uint32_t at = e.first_result + i - begin;
      all = all && at < read.size() && read[at] == 1;
    }
    later[k] = all;
  }
  return later;
}

}  // namespace weft
