#include "transforms/batch/index_from_outside.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "ir/builder.h"
#include "ir/prim.h"
#include "ir/prim_table.h"
#include "transforms/opt/from_outside.h"
#include "transforms/opt/rewrite.h"

namespace weft {
namespace {

bool MayDiverge(const Eqn& e) {
  return e.prim->region_use == RegionUse::kBranches || e.prim->region_use == RegionUse::kUncounted;
}

// The different ways in which a program asks for its index: its attributes say in which type.
class Indices : public FromOutside {
 public:
  Indices(const Fn& fn, const std::string& axis) : axis_(axis) {
    for (const Eqn& e : fn.eqns()) {
      if (!MayDiverge(e)) continue;
      for (const FnRef& region : e.regions) Collect(*region);
    }
  }

  bool empty() const { return asked_.empty(); }
  Atoms Emit(Builder& b) const {
    Atoms indices;
    for (const Asked& a : asked_) indices.push_back(b.Emit1(*a.prim, {}, a.attrs));
    return indices;
  }

 protected:
  uint32_t OwnUses(const Eqn& e) const override {
    const size_t i = IndexOf(e);
    return i < asked_.size() ? uint32_t{1} << i : 0;
  }
  Atoms WithOwn(Builder&, const Eqn& e, const Atoms&, const Atoms& given) const override { return {given[IndexOf(e)]}; }
  Type TypeOf(size_t value) const override { return asked_[value].type; }

 private:
  struct Asked {
    const Prim* prim;
    Attrs attrs;
    Type type;
  };
  bool Asks(const Eqn& e) const {
    static const PrimSet kIndex{"axis_index"};
    return kIndex.Has(*e.prim) && e.UsesAxis(axis_);
  }
  size_t IndexOf(const Eqn& e) const {
    if (!Asks(e)) return asked_.size();
    const auto same = [&](const Asked& a) { return a.attrs == e.attrs; };
    return static_cast<size_t>(std::find_if(asked_.begin(), asked_.end(), same) - asked_.begin());
  }
  void Collect(const Fn& fn) {
    if (!fn.UsesAxis(axis_) || !seen_.insert(&fn).second) return;
    for (const Eqn& e : fn.eqns()) {
      if (Asks(e) && IndexOf(e) == asked_.size() && asked_.size() < kMost)
        asked_.push_back({e.prim, e.attrs, fn.TypeOf(e.result(0))});
      if (!CanHandOn(e)) continue;
      for (const FnRef& region : e.regions) Collect(*region);
    }
  }

  const std::string& axis_;
  std::vector<Asked> asked_;
  std::unordered_set<const Fn*> seen_;
};

}  // namespace

FnRef WithIndexFromOutside(const FnRef& fn, const std::string& axis) {
  if (axis.empty() || !fn->UsesAxis(axis)) return fn;
  Indices of(*fn, axis);
  if (of.empty()) return fn;
  int depth = 0;
  const auto replaced = [&](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
    if (depth > 1 || !MayDiverge(e) || !e.UsesAxis(axis)) return std::nullopt;
    return of.With(b, e, operands, of.Emit(b));
  };
  return Rewrite(fn, replaced, [&](const Fn&, Builder&) { ++depth; }, [&] { --depth; });
}

}  // namespace weft
