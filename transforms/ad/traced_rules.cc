#include "transforms/ad/traced_rules.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/host_functions.h"
#include "ir/ops.h"
#include "ir/prims/control/custom.h"
#include "ir/prims/control/custom_host.h"
#include "transforms/ad/split.h"
#include "transforms/opt/rewrite.h"
#include "transforms/region_rules.h"

namespace weft {
namespace {

bool AnyEquation(const Fn& fn, bool (*is)(const Eqn&), std::unordered_set<const Fn*>& seen) {
  return std::any_of(fn.eqns().begin(), fn.eqns().end(), [&](const Eqn& e) {
    if (is(e)) return true;
    return std::any_of(e.regions.begin(), e.regions.end(),
                       [&](const FnRef& r) { return seen.insert(r.get()).second && AnyEquation(*r, is, seen); });
  });
}

bool AnyEquation(const Fn& fn, bool (*is)(const Eqn&)) {
  std::unordered_set<const Fn*> seen;
  return AnyEquation(fn, is, seen);
}

// A function with its rule at the host.
bool HasRuleAtHost(const Eqn& e) {
  return HasHostRule(e.attrs) && e.prim->host_functions != nullptr && !e.regions.empty();
}

// Of a custom_jvp or custom_vjp, not of a custom_vmap.
bool HasDerivativeAtHost(const Eqn& e) { return HasRuleAtHost(e) && e.prim->jvp != nullptr; }

bool IsBackwardRule(const Eqn& e) { return HasHostRule(e.attrs) && e.regions.empty(); }

bool HasLargeLiteral(const Fn& fn) {
  return AnyEquation(fn, [](const Eqn& e) {
    return std::any_of(e.operands.begin(), e.operands.end(),
                       [](const Atom& a) { return a.is_literal() && a.literal().size() > kMaxLiteralElements; });
  });
}

Types TypesOf(const Builder& b, const Atoms& atoms) {
  Types types;
  for (const Atom& a : atoms) types.push_back(b.TypeOf(a));
  return types;
}

class Tracing {
 public:
  explicit Tracing(const std::function<bool(const std::exception&)>& tolerated) : tolerated_(tolerated) {}

  FnRef Run(const FnRef& fn) {
    return Rewrite(fn, [&](Builder& b, const Eqn& e, const Atoms& x) -> std::optional<Atoms> {
      if (!HasDerivativeAtHost(e)) return std::nullopt;
      Attrs attrs;
      if (const Attr* consts = e.attrs.Find("num_consts")) attrs.Set("num_consts", *consts);
      std::vector<FnRef> regions = {e.regions[0]};
      for (FnRef& rule : RulesOf(e, TypesOf(b, x))) regions.push_back(std::move(rule));
      // Without its host a primitive is a function with a derivative rule.
      static const Prim &custom_jvp = FindPrim("custom_jvp"), &custom_vjp = FindPrim("custom_vjp");
      return b.Emit(e.prim == &custom_vjp ? custom_vjp : custom_jvp, x, attrs, regions);
    });
  }

 private:
  struct Open {
    const std::string& name;
    Types types;
    int64_t size;
  };
  struct Made {
    Attrs attrs;
    Types types;
    std::vector<FnRef> rules;
  };

  // The regions after that of the function; none where there is no traced form.
  std::vector<FnRef> RulesOf(const Eqn& e, const Types& types) {
    const Fn& function = *e.regions[0];
    const auto leads_back = [&](const Open& o) {
      return o.name == function.name() && o.types == types && o.size == function.NumEqns();
    };
    if (std::any_of(open_.begin(), open_.end(), leads_back)) return {};
    for (const Made& m : made_) {
      if (m.attrs == e.attrs && m.types == types) return m.rules;
    }
    open_.push_back({function.name(), types, function.NumEqns()});
    std::vector<FnRef> rules;
    try {
      rules = HostRuleRegions(e, types, Regions());
      if (std::any_of(rules.begin(), rules.end(), [](const FnRef& r) { return HasLargeLiteral(*r); })) rules.clear();
      for (FnRef& rule : rules) rule = Run(rule);
    } catch (const std::exception& failure) {
      open_.pop_back();
      if (!tolerated_(failure)) throw;
      made_.push_back({e.attrs, types, {}});
      return {};
    }
    open_.pop_back();
    made_.push_back({e.attrs, types, rules});
    return rules;
  }

  const std::function<bool(const std::exception&)>& tolerated_;
  std::vector<Open> open_;
  std::vector<Made> made_;
};

// Where the user's program made a result.
std::string MadeAt(const Fn& fn, const Atom& result) {
  for (const Eqn& e : fn.eqns()) {
    const bool makes = result.is_var() && result.id() >= e.first_result && result.id() < e.first_result + e.num_results;
    if (makes && e.loc) return ", made at " + e.loc.ToString() + ",";
  }
  return "";
}

// The rule as a region that takes operands and tangents; null for other equations.
FnRef JvpRuleOf(const Fn& fn, const Eqn& e) {
  static const Prim& custom_jvp = FindPrim("custom_jvp");
  if (e.prim != &custom_jvp) return nullptr;
  if (e.regions.size() > 1) return e.regions[1];
  if (!HasHostRule(e.attrs)) return nullptr;
  Types operands;
  for (const Atom& a : e.operands) operands.push_back(fn.TypeOf(a));
  return HostRuleRegions(e, operands, Regions())[0];
}

}  // namespace

void RaiseForMixedRule(const Fn& fn) {
  AnyFunction(fn, [](const Fn& f) {
    for (const Eqn& e : f.eqns()) {
      const FnRef rule = JvpRuleOf(f, e);
      if (rule == nullptr) continue;
      Mask tangents(e.operands.size(), false);
      tangents.resize(rule->params().size(), true);
      const Mask mixed = Split(rule, tangents, Mask(rule->results().size(), false)).unknown_out;
      for (size_t r = 0; r < e.num_results; ++r) {
        if (!mixed[r]) continue;
        throw UserError(ErrorKind::kDerivative, e.loc, "custom_jvp: the rule of '", e.regions[0]->name(),
                        "' gives a value that depends on a tangent: result ", r, MadeAt(*rule, rule->results()[r]),
                        " of type ", rule->TypeOf(rule->results()[r]),
                        ". The first thing that a rule returns is the value of the function, made of the primals "
                        "alone; tangents belong into the second");
      }
    }
    return false;
  });
}

bool NamesBackwardRules(const Fn& fn) { return AnyEquation(fn, IsBackwardRule); }

FnRef WithLinearMaps(FnRef fn) {
  if (!NamesBackwardRules(*fn)) return fn;
  return Rewrite(std::move(fn), [](Builder& b, const Eqn& e, const Atoms& x) -> std::optional<Atoms> {
    if (!IsBackwardRule(e)) return std::nullopt;
    return EmitLinear(b, x, e.attrs, LinearRegions(e, TypesOf(b, x), Regions()));
  });
}

FnRef WithoutHostRules(FnRef fn) {
  if (!AnyEquation(*fn, HasRuleAtHost)) return fn;
  return Rewrite(std::move(fn), [](Builder& b, const Eqn& e, const Atoms& x) -> std::optional<Atoms> {
    if (!HasRuleAtHost(e)) return std::nullopt;
    return b.Inline(*e.regions[0], x);
  });
}

FnRef WithTracedRules(const FnRef& fn, const std::function<bool(const std::exception&)>& tolerated) {
  if (!AnyEquation(*fn, HasDerivativeAtHost)) return fn;
  const HostFunctionsStay stay;
  return Tracing(tolerated).Run(fn);
}

}  // namespace weft
