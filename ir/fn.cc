#include "ir/fn.h"

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_set>

#include "absl/hash/hash.h"
#include "ir/prim.h"

namespace weft {

const std::vector<FnRef>& RegionList::list() const {
  static const auto& none = *new std::vector<FnRef>();
  return list_ ? *list_ : none;
}

Types Fn::ParamTypes() const {
  Types types;
  types.reserve(params_.size());
  for (const Param& p : params_) types.push_back(p.type);
  return types;
}

Types Fn::ResultTypes() const {
  Types types;
  types.reserve(results_.size());
  for (const Atom& a : results_) types.push_back(TypeOf(a));
  return types;
}

namespace {

size_t HashAtom(const Atom& a) {
  return a.is_var() ? absl::HashOf(true, a.id()) : absl::HashOf(false, a.literal_hash());
}

}  // namespace

Fn::Fn(const Fn& other)
    : name_(other.name_),
      params_(other.params_),
      types_(other.types_),
      eqns_(other.eqns_),
      results_(other.results_),
      hash_(other.hash_.load(std::memory_order_relaxed)),
      num_eqns_(other.num_eqns_),
      has_effects_(other.has_effects_),
      may_diverge_(other.may_diverge_),
      outward_calls_(other.outward_calls_),
      free_axes_(other.free_axes_) {}

void Fn::Finish(bool plain) {
  num_eqns_ = static_cast<int64_t>(eqns_.size());
  if (plain) return;
  for (const Eqn& e : eqns_) {
    for (const FnRef& r : e.regions) {
      has_effects_ |= r->has_effects_;
      may_diverge_ |= r->may_diverge_;
      if (__builtin_add_overflow(num_eqns_, r->num_eqns_, &num_eqns_)) num_eqns_ = std::numeric_limits<int64_t>::max();
    }
    has_effects_ |= e.prim->has_effect;
    may_diverge_ |= e.prim->may_diverge;
    outward_calls_ = std::max(outward_calls_, e.OutwardCalls());
    if (e.prim->family == Family::kCollective || !e.regions.empty()) free_axes_ = UnionOfAxes(free_axes_, e.FreeAxes());
  }
}

size_t Fn::StructuralHash() const {
  size_t h = hash_.load(std::memory_order_relaxed);
  if (h != 0) return h;
  h = absl::HashOf(params_.size(), eqns_.size());
  for (const Param& p : params_) h = absl::HashOf(h, p.type, static_cast<int>(p.kind));
  for (const Eqn& e : eqns_) {
    h = absl::HashOf(h, e.prim, e.attrs, e.num_results);
    for (const Atom& a : e.operands) h = absl::HashOf(h, HashAtom(a));
    for (const FnRef& r : e.regions) h = absl::HashOf(h, r->StructuralHash());
  }
  for (const Atom& a : results_) h = absl::HashOf(h, HashAtom(a));
  if (h == 0) h = 1;
  hash_.store(h, std::memory_order_relaxed);  // whoever computes it finds the same
  return h;
}

int Eqn::OutwardCalls() const {
  if (prim->family != Family::kControl && regions.empty()) return 0;
  if (prim->recurs) return static_cast<int>(attrs.GetInt("depth")) + 1;
  int most = 0;
  for (const FnRef& r : regions) most = std::max(most, r->OutwardCalls());
  return prim->region_use == RegionUse::kRecursive ? std::max(0, most - 1) : most;
}

std::vector<std::string> Eqn::FreeAxes() const {
  std::vector<std::string> axes;
  if (prim->family == Family::kCollective) axes = UnionOfAxes({}, attrs.GetOr<Strings>("axes", {}));
  for (const FnRef& r : regions) axes = UnionOfAxes(axes, r->FreeAxes());
  if (const Attr* mesh = prim->family == Family::kCollective ? nullptr : attrs.Find("mesh")) {
    std::vector<std::string> bound;
    if (const Mesh* m = std::get_if<Mesh>(mesh)) {
      for (const Mesh::Axis& a : m->axes) bound.push_back(a.name);
    }
    axes = AxesWithout(axes, bound);
  }
  return axes;
}

namespace {
bool Contains(const std::vector<std::string>& sorted, const std::string& axis) {
  return std::binary_search(sorted.begin(), sorted.end(), axis);
}
}  // namespace

bool Eqn::UsesAxis(const std::string& axis) const {
  if (prim->family != Family::kCollective && regions.empty()) return false;
  return Contains(FreeAxes(), axis);
}

bool Fn::UsesAxis(const std::string& axis) const { return Contains(free_axes_, axis); }

struct Fn::Compared {
  std::set<std::pair<const Fn*, const Fn*>> equal;
};

bool Fn::StructurallyEquals(const Fn& other) const {
  Compared compared;
  return Equals(other, compared);
}

bool Fn::Equals(const Fn& other, Compared& compared) const {
  if (this == &other) return true;
  if (StructuralHash() != other.StructuralHash() || params_.size() != other.params_.size() ||
      eqns_.size() != other.eqns_.size() || results_ != other.results_ || types_ != other.types_) {
    return false;
  }
  if (compared.equal.count({this, &other}) > 0) return true;
  for (size_t i = 0; i < params_.size(); ++i) {
    if (params_[i].kind != other.params_[i].kind) return false;
  }
  for (size_t i = 0; i < eqns_.size(); ++i) {
    const Eqn &a = eqns_[i], &b = other.eqns_[i];
    if (a.prim != b.prim || a.operands != b.operands || a.num_results != b.num_results || !(a.attrs == b.attrs) ||
        a.regions.size() != b.regions.size())
      return false;
    for (size_t r = 0; r < a.regions.size(); ++r) {
      if (!a.regions[r]->Equals(*b.regions[r], compared)) return false;
    }
  }
  compared.equal.emplace(this, &other);
  return true;
}

namespace {
bool AnyFunction(const Fn& fn, const std::function<bool(const Fn&)>& holds, std::unordered_set<const Fn*>& seen) {
  if (holds(fn)) return true;
  for (const Eqn& e : fn.eqns()) {
    for (const FnRef& r : e.regions) {
      if (seen.insert(r.get()).second && AnyFunction(*r, holds, seen)) return true;
    }
  }
  return false;
}
}  // namespace

bool AnyFunction(const Fn& fn, const std::function<bool(const Fn&)>& holds) {
  std::unordered_set<const Fn*> seen;
  return AnyFunction(fn, holds, seen);
}

std::vector<int> Fn::UseCounts() const {
  std::vector<int> uses(types_.size(), 0);
  auto count = [&](const Atoms& atoms) {
    for (const Atom& a : atoms) {
      if (a.is_var()) ++uses[a.id()];
    }
  };
  for (const Eqn& e : eqns_) count(e.operands);
  count(results_);
  return uses;
}

std::vector<std::string> Fn::Symbols() const {
  std::vector<std::string> names;
  for (const Param& p : params_) {
    for (const Dim& d : p.type.dims) {
      for (const std::string& name : d.Symbols()) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
    }
  }
  return names;
}

}  // namespace weft
