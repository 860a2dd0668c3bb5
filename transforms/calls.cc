#include "transforms/calls.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "ir/prim.h"

namespace weft {
namespace {

bool IsCall(const Eqn& e) {
  static const Prim& call = FindPrim("call");
  return e.prim == &call;
}

// What calls an enclosing recursive function, or a mesh around it, is part of that function.
bool CanStay(const Fn& fn) { return fn.OutwardCalls() == 0 && fn.FreeAxes().empty(); }

class Sizes {
 public:
  void CountCalls(const Fn& fn) {
    for (const Eqn& e : fn.eqns()) {
      for (const FnRef& r : e.regions) {
        const bool first = IsCall(e) ? calls_[r]++ == 0 : seen_.insert(r).second;
        if (first) CountCalls(*r);
      }
    }
  }
  // The equations of a function once calls are inlined that do not stay. Fills `stay`.
  int64_t Of(const Fn& fn, absl::flat_hash_set<FnRef, FnHash, FnEqual>& stay) {
    int64_t size = 0;
    for (const Eqn& e : fn.eqns()) {
      ++size;
      for (const FnRef& r : e.regions) {
        auto at = sizes_.find(r);
        if (at == sizes_.end()) {
          const int64_t inside = Of(*r, stay);
          at = sizes_.emplace(r, inside).first;
          const auto calls = calls_.find(r);
          if (calls != calls_.end() && calls->second > 1 && inside >= CalledFunctions::kLarge && CanStay(*r))
            stay.insert(r);
        }
        if (!IsCall(e) || !stay.contains(r)) size = std::min(size + at->second, kMost);
      }
    }
    return size;
  }

 private:
  static constexpr int64_t kMost = int64_t{1} << 40;
  absl::flat_hash_map<FnRef, int, FnHash, FnEqual> calls_;
  absl::flat_hash_set<FnRef, FnHash, FnEqual> seen_;
  absl::flat_hash_map<FnRef, int64_t, FnHash, FnEqual> sizes_;
};

}  // namespace

CalledFunctions CalledFunctions::Of(const Fn& program) {
  CalledFunctions called;
  if (std::none_of(program.eqns().begin(), program.eqns().end(), [](const Eqn& e) { return !e.regions.empty(); }))
    return called;
  Sizes sizes;
  sizes.CountCalls(program);
  sizes.Of(program, called.stay_);
  return called;
}

bool CalledFunctions::Stays(const Eqn& eqn) const {
  return !stay_.empty() && IsCall(eqn) && stay_.contains(eqn.regions[0]);
}

}  // namespace weft
