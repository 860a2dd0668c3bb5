#include "transforms/opt/calls.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ir/builder.h"
#include "ir/prim.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

bool IsCall(const Eqn& e) { return e.prim->region_use == RegionUse::kCall; }

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
  // The equations of a function once calls are inlined that do not stay. Fills `stay`; null: none stays.
  int64_t Of(const Fn& fn, absl::flat_hash_set<FnRef, FnHash, FnEqual>* stay) {
    int64_t size = 0;
    for (const Eqn& e : fn.eqns()) {
      ++size;
      for (const FnRef& r : e.regions) {
        auto at = sizes_.find(r);
        if (at == sizes_.end()) {
          const int64_t inside = Of(*r, stay);
          at = sizes_.emplace(r, inside).first;
          const auto calls = calls_.find(r);
          if (stay != nullptr && calls != calls_.end() && calls->second > 1 && inside >= CalledFunctions::kLarge &&
              CanStay(*r))
            stay->insert(r);
        }
        if (stay == nullptr || !IsCall(e) || !stay->contains(r)) size = std::min(size + at->second, kMost);
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

// A program with calls inlined that do not stay. What is asked of a call is asked of the function that was counted, so
// this does not rewrite regions before the equations that hold them.
class Inliner {
 public:
  explicit Inliner(const CalledFunctions& called) : called_(called) {}

  FnRef Inlined(const FnRef& fn) {
    Builder b(fn->name());
    b.ReserveLike(*fn);
    Atoms params;
    for (const Param& p : fn->params()) params.push_back(b.Parameter(p.type, p.name, p.kind));
    const Atoms results = Emit(b, *fn, params);
    return std::move(b).Build(results);
  }

 private:
  FnRef Region(const FnRef& fn) {
    FnRef& made = made_[fn];
    if (!made) made = fn->NumEqns() == static_cast<int64_t>(fn->eqns().size()) ? fn : Inlined(fn);
    return made;
  }

  Atoms Emit(Builder& b, const Fn& fn, const Atoms& args) {
    LongList<Atom> env(fn.num_vars());
    std::copy(args.begin(), args.end(), env.begin());
    const auto get = [&](const Atom& a) { return a.is_var() ? env[a.id()] : a; };
    for (const Eqn& e : fn.eqns()) {
      Atoms x, y;
      for (const Atom& a : e.operands) x.push_back(get(a));
      ScopedLoc loc(b, e.loc);
      if (IsCall(e) && !e.attrs.GetOr<bool>("out_of_line", false) && !called_.Stays(e)) {
        y = Emit(b, *e.regions[0], x);
      } else if (e.regions.empty()) {
        y = b.Clone(fn, e, std::move(x));
      } else {
        std::vector<FnRef> regions;
        for (const FnRef& r : e.regions) regions.push_back(Region(r));
        y = b.Emit(*e.prim, std::move(x), e.attrs, std::move(regions));
      }
      std::copy(y.begin(), y.end(), env.begin() + e.first_result);
    }
    Atoms results;
    for (const Atom& a : fn.results()) results.push_back(get(a));
    return results;
  }

  const CalledFunctions& called_;
  std::unordered_map<FnRef, FnRef, FnHash, FnEqual> made_;
};

}  // namespace

CalledFunctions CalledFunctions::Of(const Fn& program) {
  CalledFunctions called;
  const auto calls = [](const Fn& f) { return std::any_of(f.eqns().begin(), f.eqns().end(), IsCall); };
  if (!AnyFunction(program, calls)) return called;
  Sizes sizes;
  sizes.CountCalls(program);
  sizes.Of(program, &called.stay_);
  return called;
}

FnRef InlineCalls(FnRef fn) {
  const CalledFunctions called = CalledFunctions::Of(*fn);
  return called.empty() ? InlineEveryCall(std::move(fn)) : Inliner(called).Inlined(fn);
}

FnRef InlineMostCalls(FnRef fn) {
  const bool short_then = Sizes().Of(*fn, nullptr) <= CalledFunctions::kMostInlined;
  return short_then ? InlineEveryCall(std::move(fn)) : InlineCalls(std::move(fn));
}

bool CalledFunctions::Stays(const Eqn& eqn) const {
  return !stay_.empty() && IsCall(eqn) && stay_.contains(eqn.regions[0]);
}

}  // namespace weft
