// Common subexpressions: equal pure equations of one function are computed once. Regions are closed, so each is a scope
// of its own.
#include <unordered_map>

#include "absl/hash/hash.h"
#include "ir/prim.h"
#include "transforms/pass.h"
#include "transforms/rewrite.h"

namespace weft {
namespace {

struct Entry {
  Eqn eqn;  // operands in the builder
  Atoms results;
};

size_t HashOf(const Eqn& e, const Atoms& operands) {
  size_t h = absl::HashOf(e.prim, e.attrs, operands.size());
  for (const Atom& a : operands) h = a.is_var() ? absl::HashOf(h, a.id()) : absl::HashOf(h, a.literal().Hash());
  for (const FnRef& r : e.regions) h = absl::HashOf(h, r->StructuralHash());
  return h;
}

bool Same(const Entry& entry, const Eqn& e, const Atoms& operands) {
  if (entry.eqn.prim != e.prim || entry.eqn.operands != operands || !(entry.eqn.attrs == e.attrs) ||
      entry.eqn.regions.size() != e.regions.size())
    return false;
  for (size_t i = 0; i < e.regions.size(); ++i) {
    if (!entry.eqn.regions[i]->StructurallyEquals(*e.regions[i])) return false;
  }
  return true;
}

bool HasEffect(const Eqn& e) {
  if (e.prim->has_effect) return true;
  for (const FnRef& r : e.regions) {
    if (r->HasEffects()) return true;
  }
  return false;
}

}  // namespace

FnRef EliminateCommonSubexpressions(const FnRef& fn) {
  std::vector<std::unordered_multimap<size_t, Entry>> scopes;
  return Rewrite(
      fn,
      [&](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
        if (HasEffect(e)) return std::nullopt;
        auto& seen = scopes.back();
        const size_t h = HashOf(e, operands);
        const auto [begin, end] = seen.equal_range(h);
        for (auto it = begin; it != end; ++it) {
          if (Same(it->second, e, operands)) return it->second.results;
        }
        const Atoms results = b.Clone(e, operands);
        Entry entry{e, results};
        entry.eqn.operands = operands;
        seen.emplace(h, std::move(entry));
        return results;
      },
      [&](const Fn&, Builder&) { scopes.emplace_back(); }, [&] { scopes.pop_back(); });
}

FnRef InlineEveryCall(const FnRef& fn) {
  return Rewrite(fn, [](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
    if (e.prim->name != "call" || e.attrs.GetOr<bool>("out_of_line", false)) return std::nullopt;
    return b.Inline(*e.regions[0], operands);
  });
}

FnRef DropDifferentiationRules(const FnRef& fn) {
  return Rewrite(fn, [](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
    const std::string& name = e.prim->name;
    if (name == "custom_linear") {
      if (e.regions.size() < 2)
        throw UserError(
            ErrorKind::kDerivative, e.loc,
            "forward mode through custom_vjp needs a backward rule that is linear in the cotangent; this one is not");
      return b.Inline(*e.regions[1], operands);
    }
    if (name != "custom_jvp" && name != "custom_vjp" && name != "remat") return std::nullopt;
    return b.Inline(*e.regions[0], operands);
  });
}

}  // namespace weft
