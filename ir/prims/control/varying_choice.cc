#include "ir/prims/control/varying_choice.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_join.h"
#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/collectives.h"

namespace weft {
namespace {

bool MeetAlong(const Fn& fn, const std::string& axis) {
  return std::any_of(fn.eqns().begin(), fn.eqns().end(), [&](const Eqn& e) {
    if (!e.UsesAxis(axis)) return false;
    return e.prim->communicates ||
           std::any_of(e.regions.begin(), e.regions.end(), [&](const FnRef& r) { return MeetAlong(*r, axis); });
  });
}

Types Widened(Types types, const Strings& choice) {
  for (Type& t : types) t.varying = UnionOfAxes(t.varying, choice);
  return types;
}

Types Narrowed(Types types, const Strings& choice) {
  for (Type& t : types) t.varying = AxesWithout(t.varying, choice);
  return types;
}

// Inside `recursions` functions that call themselves.
using Made = std::map<std::pair<const Fn*, int64_t>, FnRef>;  // of regions: one that occurs often is made once

FnRef Widened(const FnRef& fn, const Strings& choice, int64_t recursions, Made& made) {
  Builder b(fn->name());
  // What is made of no variable does not vary by itself: as it is, and declared to.
  Atoms plain(fn->num_vars()), wide(fn->num_vars());
  const Types params = Widened(fn->ParamTypes(), choice);
  for (size_t i = 0; i < params.size(); ++i)
    plain[i] = wide[i] = b.Parameter(params[i], fn->params()[i].name, fn->params()[i].kind);
  const auto of = [](const Atoms& env, const Atoms& atoms) {
    Atoms out;
    for (const Atom& a : atoms) out.push_back(a.is_var() ? env[a.id()] : a);
    return out;
  };
  for (Eqn e : fn->eqns()) {
    ScopedLoc loc(b, e.loc);
    const bool recurs = e.prim->recurs;
    // A function around `fn`, or a mesh, says what these take.
    const bool fixed = e.attrs.Find("mesh") != nullptr || (recurs && e.attrs.GetInt("depth") >= recursions);
    Atoms x = of(fixed ? plain : wide, e.operands);
    if (!fixed && (recurs || !e.regions.empty())) {
      for (Atom& a : x) a = Pvary(b, a, choice);
      for (FnRef& region : e.regions) {
        const int64_t inside = recursions + (e.prim->region_use == RegionUse::kRecursive ? 1 : 0);
        FnRef& wider = made[{region.get(), inside}];
        if (!wider) wider = Widened(region, choice, inside, made);
        region = wider;
      }
      if (recurs) e.attrs.Set("results", Widened(e.attrs.Get<Types>("results"), choice));
    }
    const Atoms y = b.Clone(e, x);
    for (uint32_t r = 0; r < e.num_results; ++r) {
      plain[e.first_result + r] = y[r];
      wide[e.first_result + r] = Pvary(b, y[r], choice);
    }
  }
  Atoms results = of(wide, fn->results());
  for (Atom& a : results) a = Pvary(b, a, choice);
  return std::move(b).Build(results);
}

// `fn` where nothing varies over `choice`.
FnRef Narrowed(const FnRef& fn, const Strings& choice, Made& made) {
  Builder b(fn->name());
  Atoms env;
  const Types params = Narrowed(fn->ParamTypes(), choice);
  for (size_t i = 0; i < params.size(); ++i)
    env.push_back(b.Parameter(params[i], fn->params()[i].name, fn->params()[i].kind));
  const auto map = [&](const Atoms& atoms) {
    Atoms out;
    for (const Atom& a : atoms) out.push_back(a.is_var() ? env[a.id()] : a);
    return out;
  };
  for (Eqn e : fn->eqns()) {
    ScopedLoc loc(b, e.loc);
    if (Is<"pvary">(*e.prim)) {  // it is what says over which axes a value varies
      env.push_back(Pvary(b, map(e.operands)[0], AxesWithout(e.attrs.Get<Strings>("axes"), choice)));
      continue;
    }
    // Its result varies by itself, whatever its operands do.
    if (Is<"axis_index">(*e.prim) && AxesWithout(e.attrs.Get<Strings>("axes"), choice).empty())
      e.attrs.Set("varying", false);
    if (e.prim->says_varying && e.attrs.Find("results") != nullptr)
      e.attrs.Set("results", Narrowed(e.attrs.Get<Types>("results"), choice));
    for (FnRef& region : e.regions) {
      FnRef& narrower = made[{region.get(), 0}];
      if (!narrower) narrower = Narrowed(region, choice, made);
      region = narrower;
    }
    const Atoms y = b.Clone(e, map(e.operands));
    env.insert(env.end(), y.begin(), y.end());
  }
  return std::move(b).Build(map(fn->results()));
}

}  // namespace

void CheckVaryingChoice(const Sig& s, const Strings& choice, size_t first) {
  if (choice.empty()) return;
  for (const FnRef& region : s.regions) {
    for (const std::string& axis : choice) {
      if (!MeetAlong(*region, axis)) continue;
      throw TypeError(s.prim.name, ": devices along '", axis,
                      "' may choose differently, but a region has a collective ", "over '", axis,
                      "', where all of them have to meet. Make the choice the same on all devices (a ",
                      "psum or pmax of it), or compute the collective outside");
    }
  }
  const auto check = [&](const Type& type, const char* what, size_t i) {
    if (!AxesWithout(choice, type.varying).empty())
      throw TypeError(s.prim.name, ": what runs varies over {", absl::StrJoin(choice, ","), "}, but ", what, " ", i,
                      " is ", type, "; expected a value that varies over the same axes (pvary)");
  };
  for (size_t i = first; i < s.operands.size(); ++i) check(s.operands[i], "operand", i);
  for (const FnRef& region : s.regions) {
    const Types results = region->ResultTypes();
    for (size_t i = 0; i < results.size(); ++i) check(results[i], "result", i);
  }
}

FnRef VaryingOver(const FnRef& fn, const Strings& choice) {
  if (choice.empty()) return fn;
  Made made;
  return Widened(fn, choice, 0, made);
}

void BatchVaryingChoice(BatchContext& c, const Strings& choice, const BatchRule& rule) {
  if (choice.empty()) return rule(c);
  Builder b(c.eqn.prim->name);
  b.set_loc(c.b.loc());
  Eqn eqn = c.eqn;
  Made made;
  for (FnRef& region : eqn.regions) region = Narrowed(region, choice, made);
  Atoms x, operands;
  for (const Atom& a : c.x) {
    x.push_back(a.is_var() ? b.Parameter(Narrowed({c.b.TypeOf(a)}, choice)[0]) : a);
    if (a.is_var()) operands.push_back(Pvary(c.b, a, choice));
  }
  BatchContext as_if_same{b, eqn, x, c.batched, c.size, c.axis, c.regions, {}, {}};
  rule(as_if_same);
  c.y = c.b.Inline(*VaryingOver(b.Build(as_if_same.y), choice), operands);
  c.batched_out = as_if_same.batched_out;
}

}  // namespace weft
