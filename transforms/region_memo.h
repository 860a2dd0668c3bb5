// Remembers what the running transform has made of regions.
//
// A program holds a function by reference as often as it calls it, and rules ask for one region several times (until
// branches or carries agree), so without a memory the work doubles with every level. The outermost transform of a
// thread opens a scope; what it makes of a region is kept until it ends, by the region and what was asked.
//
//   const RegionMemo::Scope scope;
//   ...
//   return RegionMemo::Of("jvp", fn, {active, force}, [&] { return Jvp(fn, active, force); });
#ifndef WEFT_TRANSFORMS_REGION_MEMO_H_
#define WEFT_TRANSFORMS_REGION_MEMO_H_

#include <any>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "ir/fn.h"

namespace weft {

class RegionMemo {
 public:
  class Scope {
   public:
    Scope() : outermost_(t_memo == nullptr) {
      if (outermost_) t_memo = new RegionMemo;
    }
    ~Scope() {
      if (!outermost_) return;
      delete t_memo;
      t_memo = nullptr;
    }
    Scope(const Scope&) = delete;

   private:
    const bool outermost_;
  };

  // `make()`, or what it gave when the same was asked of the same region. `what` names the question, with every
  // argument that is no mask.
  template <class Make>
  static auto Of(std::string what, const FnRef& region, std::vector<Mask> masks, const Make& make) {
    using Result = decltype(make());
    if (t_memo == nullptr || IsLeafOfOne(region)) return make();
    Key key{t_memo->OneOf(region), std::move(what), std::move(masks)};
    if (const auto at = t_memo->made_.find(key); at != t_memo->made_.end()) return std::any_cast<Result>(at->second);
    Result result = make();
    if (t_memo != nullptr) t_memo->made_.emplace(std::move(key), result);
    return result;
  }

 private:
  // A body without regions that one equation holds is asked for a few times, if that, and what is made of it may be
  // taken apart if nobody else holds it.
  static bool IsLeafOfOne(const FnRef& region) {
    return region.use_count() == 1 && region->NumEqns() == static_cast<int64_t>(region->eqns().size());
  }

  struct Key {
    const Fn* region;
    std::string what;
    std::vector<Mask> masks;
    friend bool operator==(const Key& a, const Key& b) {
      return a.region == b.region && a.what == b.what && a.masks == b.masks;
    }
    template <class H>
    friend H AbslHashValue(H h, const Key& key) {
      h = H::combine(std::move(h), key.region, key.what);
      for (const Mask& mask : key.masks) h = H::combine(std::move(h), std::hash<Mask>()(mask));
      return h;
    }
  };

  // The first of the regions that equal this one: rules make equal functions for each call of one.
  const Fn* OneOf(const FnRef& region) {
    const auto [at, added] = one_of_.try_emplace(region, nullptr);
    if (added) at->second = different_.insert(region).first->get();
    return at->second;
  }

  inline static thread_local RegionMemo* t_memo = nullptr;
  absl::flat_hash_map<FnRef, const Fn*> one_of_;  // all that were asked of, held so that no other gets its address
  absl::flat_hash_set<FnRef, FnHash, FnEqual> different_;
  absl::flat_hash_map<Key, std::any> made_;
};

}  // namespace weft
#endif  // WEFT_TRANSFORMS_REGION_MEMO_H_
