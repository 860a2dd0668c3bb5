// Vectorisation over a new dimension.
//
//   vmap : (a -> b)  =>  [n] a -> [n] b
//
//   VmapOptions o{.in_axes = {0, std::nullopt}, .out_axes = {0}};
//   FnRef g = Vmap(f, o);              // f: (x: f32[3], w: f32[3]) -> f32[]      g: (f32[n,3], f32[3]) -> f32[n]
//
// Inside, the mapped dimension is always the leading one; values that do not depend on a mapped argument stay as they
// are.
#ifndef WEFT_TRANSFORMS_BATCH_VMAP_H_
#define WEFT_TRANSFORMS_BATCH_VMAP_H_

#include <optional>
#include <string>
#include <vector>

#include "ir/fn.h"
#include "ir/prim.h"

namespace weft {

// Parameters marked in `batched` get a leading dimension of `size`; so do results marked in `batched_out`, which are
// those that depend on them or are marked in `force_batched`. Collectives over the named axis `axis`, if it has a name,
// become operations over that dimension.
BatchedFn Batch(const FnRef& fn, const Mask& batched, const Mask& force_batched, const Dim& size,
                const std::string& axis = "");

struct VmapOptions {
  std::vector<std::optional<int64_t>> in_axes;   // per parameter: where the mapped dimension is; nullopt = not mapped
  std::vector<std::optional<int64_t>> out_axes;  // per result: where to put it; nullopt = the result must not be mapped
  Dim size;                                      // of the mapped dimension
  std::string axis = {};                         // its name for collectives; empty for none
};

// Axes count from the end when negative. Raises kValue when a result marked nullopt is mapped.
FnRef Vmap(const FnRef& fn, const VmapOptions& options);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_BATCH_VMAP_H_
