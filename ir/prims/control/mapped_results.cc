#include "ir/prims/control/mapped_results.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "ir/custom_rules.h"
#include "ir/ops.h"
#include "ir/prims/control/custom.h"
#include "ir/prims/control/custom_host.h"
#include "ir/prims/control/regions.h"

namespace weft {
namespace {

// Which results of `fn` depend on what is mapped.
Mask Depending(const BatchContext& c, const FnRef& fn, const Mask& batched) {
  return c.regions.batch(fn, batched, Mask(fn->results().size(), false), c.size).batched_out;
}

// Those of the operands before they were mapped.
Types TypesBefore(const BatchContext& c) {
  Types types;
  for (size_t i = 0; i < c.x.size(); ++i) {
    types.push_back(c.b.TypeOf(c.x[i]));
    if (c.batched[i]) types.back().dims.erase(types.back().dims.begin());
  }
  return types;
}

// What `rule`, which may run functions of the host, gives; nothing where it fails.
template <class Rule>
auto Tried(const Rule& rule) -> std::optional<decltype(rule())> {
  try {
    return rule();
  } catch (const RuleRaised&) {
    return std::nullopt;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) throw;
    return std::nullopt;
  }
}

void Give(BatchContext& c, const Mask& depends) {
  c.batched_out.assign(c.y.size(), true);
  for (size_t r = 0; r < c.y.size(); ++r) {
    if (depends[r]) continue;
    Dims shape = c.b.TypeOf(c.y[r]).dims;
    Ints start(shape.size(), 0), limit = {1}, strides(shape.size(), 1);
    for (size_t d = 1; d < shape.size(); ++d) limit.push_back(shape[d].value("vmap"));
    const Atom first = Slice(c.b, c.y[r], start, limit, strides);
    shape.erase(shape.begin());
    c.y[r] = Reshape(c.b, first, shape);
    c.batched_out[r] = false;
  }
}

// Whether there is a first batch element to take results from.
bool HasFirst(const BatchContext& c) {
  if (!c.size.AtLeast(1)) return false;
  return std::all_of(c.y.begin(), c.y.end(), [&](const Atom& y) {
    const Dims& dims = c.b.TypeOf(y).dims;
    return std::all_of(dims.begin() + 1, dims.end(), [](const Dim& d) { return d.is_static(); });
  });
}

// What the regions of the rule say: of a custom_jvp (x, dx) -> (y, dy); of a custom_vjp the forward rule, x -> (y,
// residuals), the backward rule, and the linear map (residuals, dx) -> dy where it is there.
Mask RuleDepends(const BatchContext& c, const std::vector<FnRef>& rule) {
  const Mask tangents = Where(c.batched, Movable(TypesBefore(c), c.eqn.attrs));
  const Mask moving = Moving(c.eqn.regions[0]->ResultTypes());
  Mask mapped = c.batched;
  if (rule.size() == 1) Append(mapped, tangents);
  const Mask values = Depending(c, rule[0], mapped);
  Mask depends = Part(values, 0, c.eqn.num_results), derivatives = Part(values, c.eqn.num_results, values.size());
  if (rule.size() > 1) {
    FnRef map = rule.size() > 2 ? rule[2] : nullptr;
    if (map == nullptr) {
      Mask linear(rule[1]->params().size(), true);
      std::fill(linear.begin(), linear.begin() + static_cast<int64_t>(derivatives.size()), false);
      const auto transposed = Tried([&] { return c.regions.transpose(rule[1], linear); });
      if (!transposed) return Union(depends, moving);
      map = *transposed;
    }
    Append(derivatives, tangents);
    derivatives = Depending(c, map, derivatives);
  }
  size_t next = 0;
  for (size_t r = 0; r < depends.size(); ++r) {
    if (moving[r] && derivatives[next++]) depends[r] = true;
  }
  return depends;
}

// What the function of the host says, if it runs. Most rules call their function again, whose rule would be asked in
// turn and for ever: inside of a rule functions speak for themselves.
std::optional<Mask> HostRuleDepends(const BatchContext& c) {
  thread_local bool t_asking = false;
  if (t_asking) return std::nullopt;
  const absl::Cleanup asked = [] { t_asking = false; };
  t_asking = true;
  return Tried([&] { return RuleDepends(c, HostRuleRegions(c.eqn, TypesBefore(c), c.regions)); });
}

}  // namespace

FnRef BatchAllResults(const BatchContext& c, const FnRef& fn, const Mask& batched) {
  return c.regions.batch(fn, batched, Mask(fn->results().size(), true), c.size).fn;
}

void GiveResultsOfRuled(BatchContext& c) {
  Mask depends = Depending(c, c.eqn.regions[0], c.batched);
  if (CountOf(depends, false) > 0) {
    if (!HasFirst(c)) {
      depends.assign(depends.size(), true);
    } else if (c.eqn.regions.size() > 1) {
      depends = Union(depends, RuleDepends(c, std::vector<FnRef>(c.eqn.regions.begin() + 1, c.eqn.regions.end())));
    } else if (HasHostRule(c.eqn.attrs)) {
      const std::optional<Mask> rule = HostRuleDepends(c);
      if (rule) depends = Union(depends, *rule);
    }
  }
  Give(c, depends);
}

void GiveResultsOfLinear(BatchContext& c) {
  Mask depends(c.y.size(), true);
  if (CountOf(c.batched, false) > 0 && HasFirst(c)) {
    const auto regions = Tried([&] { return LinearRegions(c.eqn, TypesBefore(c), c.regions); });
    if (regions && regions->size() > 1) depends = Depending(c, (*regions)[1], c.batched);
  }
  Give(c, depends);
}

}  // namespace weft
