#include "ir/fn.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "ir/prim.h"

namespace weft {

bool Atom::IsSplat(double value) const {
  if (literal_ == nullptr || literal_->size() == 0) return false;
  for (int64_t i = 0; i < literal_->size(); ++i) {
    if (literal_->Get(i) != std::complex<double>(value)) return false;
  }
  return true;
}

bool operator==(const Atom& a, const Atom& b) {
  if (a.is_var() != b.is_var()) return false;
  if (a.is_var()) return a.var_ == b.var_;
  return a.literal_ == b.literal_ || a.literal_->BitEquals(*b.literal_);
}

Types Fn::ParamTypes() const {
  Types types;
  for (const Param& p : params_) types.push_back(p.type);
  return types;
}

Types Fn::ResultTypes() const {
  Types types;
  for (const Atom& a : results_) types.push_back(TypeOf(a));
  return types;
}

namespace {

size_t HashAtom(const Atom& a) {
  return a.is_var() ? absl::HashOf(true, a.id()) : absl::HashOf(false, a.literal().Hash());
}

bool SameEqn(const Eqn& a, const Eqn& b) {
  if (a.prim != b.prim || a.operands != b.operands || a.num_results != b.num_results || !(a.attrs == b.attrs) ||
      a.regions.size() != b.regions.size()) {
    return false;
  }
  for (size_t i = 0; i < a.regions.size(); ++i) {
    if (a.regions[i] != b.regions[i] && !a.regions[i]->StructurallyEquals(*b.regions[i])) return false;
  }
  return true;
}

}  // namespace

void Fn::Finish() {
  size_t h = absl::HashOf(params_.size(), eqns_.size());
  for (const Param& p : params_) h = absl::HashOf(h, p.type, static_cast<int>(p.kind));
  for (const Eqn& e : eqns_) {
    h = absl::HashOf(h, e.prim, e.attrs, e.num_results);
    for (const Atom& a : e.operands) h = absl::HashOf(h, HashAtom(a));
    for (const FnRef& r : e.regions) {
      h = absl::HashOf(h, r->hash_);
      has_effects_ |= r->has_effects_;
    }
    has_effects_ |= e.prim->has_effect;
    outward_calls_ = std::max(outward_calls_, e.OutwardCalls());
  }
  for (const Atom& a : results_) h = absl::HashOf(h, HashAtom(a));
  hash_ = h;
}

int Eqn::OutwardCalls() const {
  if (prim->name == "recur") return static_cast<int>(attrs.GetInt("depth")) + 1;
  int most = 0;
  for (const FnRef& r : regions) most = std::max(most, r->OutwardCalls());
  return prim->name == "recursive" ? std::max(0, most - 1) : most;
}

bool Fn::StructurallyEquals(const Fn& other) const {
  if (this == &other) return true;
  if (hash_ != other.hash_ || params_.size() != other.params_.size() || eqns_.size() != other.eqns_.size() ||
      results_ != other.results_ || types_ != other.types_) {
    return false;
  }
  for (size_t i = 0; i < params_.size(); ++i) {
    if (params_[i].kind != other.params_[i].kind) return false;
  }
  return std::equal(eqns_.begin(), eqns_.end(), other.eqns_.begin(), SameEqn);
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

int64_t Fn::NumEqns() const {
  int64_t n = static_cast<int64_t>(eqns_.size());
  for (const Eqn& e : eqns_) {
    for (const FnRef& r : e.regions) n += r->NumEqns();
  }
  return n;
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
