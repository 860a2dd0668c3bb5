#include "transforms/opt/ordinals.h"

#include <algorithm>

#include "ir/prims/control/policy.h"
#include "transforms/opt/rewrite.h"

namespace weft {
namespace {

int64_t OrdinalOf(int64_t number, Ints& known) {
  const auto it = std::find(known.begin(), known.end(), number);
  if (it != known.end()) return it - known.begin();
  known.push_back(number);
  return static_cast<int64_t>(known.size()) - 1;
}

bool NamesAny(const Fn& fn) {
  return std::any_of(fn.eqns().begin(), fn.eqns().end(),
                     [](const Eqn& e) { return e.prim->host_functions != nullptr; });
}

}  // namespace

FnRef WithOrdinals(const FnRef& fn, Ints* callbacks) {
  if (!AnyFunction(*fn, NamesAny)) return fn;
  Ints rules, policies;
  return Rewrite(fn, [&](Builder& b, const Eqn& e, const Atoms& x) -> std::optional<Atoms> {
    Attrs attrs = e.attrs;
    if (e.prim->is_callback()) {
      attrs.Set("callback", OrdinalOf(attrs.GetInt("callback"), *callbacks));
    } else if (e.attrs.Find("rule") != nullptr) {
      attrs.Set("rule", OrdinalOf(attrs.GetInt("rule"), rules));
    } else if (e.prim->host_functions != nullptr && attrs.Find("policy") != nullptr) {
      const Policy policy = Policy::Parse(attrs.Get<std::string>("policy"));
      attrs.Set("policy", policy.Renumbered([&](int64_t n) { return OrdinalOf(n, policies); }).ToString());
    } else {
      return std::nullopt;
    }
    return b.Emit(*e.prim, x, attrs, {e.regions.begin(), e.regions.end()});
  });
}

}  // namespace weft
