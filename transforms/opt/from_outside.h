// Values that regions of a program have of themselves (numbers, indices along an axis), given to them from outside:
// as operands more of the operations that the regions belong to, at any depth.
#ifndef WEFT_TRANSFORMS_OPT_FROM_OUTSIDE_H_
#define WEFT_TRANSFORMS_OPT_FROM_OUTSIDE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "ir/builder.h"
#include "ir/fn.h"

namespace weft {

class FromOutside {
 public:
  static constexpr size_t kMost = 32;  // values: bits of a set of them

  virtual ~FromOutside() = default;

  // Whether an operation hands operands more on to its regions: scan, while, cond, call and remat do.
  static bool CanHandOn(const Eqn& e);

  // An equation of `b` whose regions, and itself, have given[i] in place of value i; nothing if none has any.
  std::optional<Atoms> With(Builder& b, const Eqn& e, const Atoms& operands, const Atoms& given);

 protected:
  // Which of the values an equation has, without its regions: a bit for each. And the equation with them given.
  virtual uint32_t OwnUses(const Eqn& e) const = 0;
  virtual Atoms WithOwn(Builder& b, const Eqn& e, const Atoms& operands, const Atoms& given) const = 0;
  virtual Type TypeOf(size_t value) const = 0;

 private:
  uint32_t UsesOf(const FnRef& region);
  FnRef RegionOf(const FnRef& region, uint32_t values, size_t at);

  // They hold the regions, so that no other gets their addresses.
  std::map<FnRef, uint32_t> uses_;
  std::map<std::tuple<FnRef, uint32_t, size_t>, FnRef> regions_;
};

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_FROM_OUTSIDE_H_
