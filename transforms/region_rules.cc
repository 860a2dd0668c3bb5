#include "transforms/region_rules.h"

#include "transforms/ad/jet.h"
#include "transforms/ad/jvp.h"
#include "transforms/ad/split.h"
#include "transforms/ad/transpose.h"
#include "transforms/batch/vmap.h"
#include "transforms/region_memo.h"

namespace weft {

RegionRules RegionsOver(const std::string& axis) {
  return {
      [](const FnRef& f, const Mask& active, const Mask& force) {
        return RegionMemo::Of("jvp", f, {active, force}, [&] { return Jvp(f, active, force); });
      },
      [](const FnRef& f, const Mask& active, int order, const Mask& force) {
        return RegionMemo::Of("jet " + std::to_string(order), f, {active, force},
                              [&] { return Jet(f, active, order, force); });
      },
      [axis](const FnRef& f, const Mask& batched, const Mask& force, const Dim& size) {
        return RegionMemo::Of("batch " + size.ToString() + " " + axis, f, {batched, force},
                              [&] { return Batch(f, batched, force, size, axis); });
      },
      [](const FnRef& f, const Mask& batched, const Mask& force, const Dim& size, const std::string& name) {
        return RegionMemo::Of("batch " + size.ToString() + " " + name, f, {batched, force},
                              [&] { return Batch(f, batched, force, size, name); });
      },
      [](const FnRef& f, const Mask& unknown, const Mask& force) {
        // What calls an enclosing function is split as that one is split so far.
        if (f->OutwardCalls() > 0) return Split(f, unknown, force);
        return RegionMemo::Of("split", f, {unknown, force}, [&] { return Split(f, unknown, force); });
      },
      [](const FnRef& f, const Mask& linear) {
        return RegionMemo::Of("transpose", f, {linear}, [&] { return Transpose(f, linear); });
      },
  };
}

const RegionRules& Regions() {
  static const auto& rules = *new RegionRules(RegionsOver(""));
  return rules;
}

}  // namespace weft
