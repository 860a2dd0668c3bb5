#include "ir/analysis/residuals.h"

#include <algorithm>
#include <unordered_set>

#include "ir/prim_table.h"

namespace weft {
namespace {

const Eqn* DefiningEqn(const Fn& fn, Var v) {
  for (const Eqn& e : fn.eqns()) {
    if (v.id >= e.first_result && v.id < e.first_result + e.num_results) return &e;
  }
  return nullptr;
}

std::string StepsOf(const Eqn& e) { return ToString(e.attrs.Get<Dims>("length")) + " steps"; }

// What a list of types takes together.
std::string Together(const Types& types) {
  Dim bytes = 0;
  size_t tapes = 0;
  for (const Type& t : types) {
    if (t.dtype == DType::kTape)
      ++tapes;
    else
      bytes = bytes + t.size() * Dim(ByteWidth(t.dtype));
  }
  std::string text = bytes.ToString() + " bytes";
  if (tapes > 0) text += " and " + std::to_string(tapes) + (tapes == 1 ? " tape" : " tapes");
  return text;
}

// A function that is called often has its lines once.
void Collect(const Fn& fn, const std::string& indent, std::unordered_set<const Fn*>& seen,
             std::vector<std::string>& lines) {
  for (const Eqn& e : fn.eqns()) {
    const std::string& prim = e.prim->name;
    const RegionUse use = e.prim->region_use;
    const std::string at = e.loc ? " at " + e.loc.ToString() : "";
    std::string line;
    if (use == RegionUse::kUncounted) {
      const FnRef& body = e.regions.back();
      const Types out = body->ResultTypes();
      const Types rows(out.begin() + e.attrs.GetInt("num_carry"), out.end());
      if (!rows.empty()) line = prim + at + ": tapes, " + Together(rows) + " per trip";
    } else if (use == RegionUse::kCounted) {
      const Types out = e.regions[0]->ResultTypes();
      const Types rows(out.begin() + e.attrs.GetInt("num_carry"), out.end());
      if (!rows.empty()) {
        Types all;
        for (uint32_t r = 0; r < e.num_results; ++r) {
          if (r >= e.attrs.GetInt("num_carry")) all.push_back(fn.TypeOf(e.result(static_cast<int>(r))));
        }
        line = prim + at + ": " + StepsOf(e) + " of " + Together(rows) + ", " + Together(all) + " together";
      }
    } else if (use == RegionUse::kSnapshots) {
      const int64_t consts = e.attrs.GetInt("num_consts"), forward = e.attrs.GetInt("num_forward");
      const Types params = e.regions[0]->ParamTypes();
      const Types state(params.begin() + consts, params.begin() + consts + forward);
      const int64_t snapshots = e.attrs.GetInt("snapshots");
      Types all = state;
      for (Type& t : all) t.dims.insert(t.dims.begin(), Dim(snapshots));
      line = prim + at + ": " + std::to_string(snapshots) + " snapshots of " + Together(state) + ", " + Together(all) +
             " together, for " + StepsOf(e);
    }
    if (!line.empty()) lines.push_back(indent + line);
    for (const FnRef& r : e.regions) {
      if (seen.insert(r.get()).second) Collect(*r, line.empty() ? indent : indent + "  ", seen, lines);
    }
  }
}

}  // namespace

Origin OriginOf(const Fn& fn, const Atom& value) {
  Origin o;
  o.type = fn.TypeOf(value);
  if (value.is_literal()) {
    o.kind = Origin::Kind::kLiteral;
    return o;
  }
  if (value.id() < fn.params().size()) {
    o.param = value.id();
    o.kind = fn.params()[o.param].kind == Param::Kind::kConstant ? Origin::Kind::kConstant : Origin::Kind::kArgument;
    return o;
  }
  const Eqn& e = *DefiningEqn(fn, value.var());
  o.prim = e.prim->name;
  o.loc = e.loc;
  // What gives a value a name is not asked for anything else.
  if (Is<"checkpoint_name">(*e.prim)) o.name = e.attrs.Get<std::string>("name");
  // Inside a region: which of its results it is, and how often the region runs.
  const size_t r = value.id() - e.first_result;
  const Fn* region = nullptr;
  size_t inner = r;
  const RegionUse use = e.prim->region_use;
  if (use == RegionUse::kCall || use == RegionUse::kRecursive) {
    region = e.regions[0].get();
  } else if (use == RegionUse::kCounted && r >= static_cast<size_t>(e.attrs.GetInt("num_carry"))) {
    region = e.regions[0].get();
    o.repeats = StepsOf(e);
  } else if (use == RegionUse::kUncounted && r >= static_cast<size_t>(e.attrs.GetInt("num_carry"))) {
    region = e.regions.back().get();
    o.repeats = "every trip";
    o.row = region->ResultTypes()[r];
  } else if (use == RegionUse::kSnapshots) {
    const Ints kept = e.attrs.GetOr<Ints>("kept", {});
    const size_t first = e.num_results - kept.size();
    if (r >= first) {
      region = e.regions[0].get();
      inner = static_cast<size_t>(kept[r - first]);
      o.repeats = std::to_string(e.attrs.GetInt("snapshots")) + " snapshots of " + StepsOf(e);
    }
  }
  if (region == nullptr) return o;
  const Atom& a = region->results()[inner];
  if (!a.is_var() || a.id() < region->params().size()) return o;  // what the region was given: the loop says more
  Origin deep = OriginOf(*region, a);
  deep.type = o.type;
  if (!o.repeats.empty()) deep.repeats = deep.repeats.empty() ? o.repeats : o.repeats + ", each " + deep.repeats;
  if (o.row) deep.row = o.row;
  if (!deep.loc) deep.loc = o.loc;
  return deep;
}

std::vector<std::string> LoopMemory(const Fn& fn) {
  std::vector<std::string> lines;
  std::unordered_set<const Fn*> seen;
  Collect(fn, "", seen, lines);
  return lines;
}

}  // namespace weft
