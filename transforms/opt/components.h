// Arrays of points as arrays of coordinates: a dimension of two to four elements that is summed over, taken apart.
//
//   d = sub x y                          f32[500,500,3]
//   r = reduce_sum[dims=[2]] (mul d d)   f32[500,500]
//
// becomes
//
//   d0, d1, d2 = sub x0 y0, sub x1 y1, sub x2 y2                      f32[500,500] each
//   r = add (add (mul d0 d0) (mul d1 d1)) (mul d2 d2)
//
// (structure of arrays, in place of an array of structures). So vector lanes go along a long dimension, where three
// elements would leave most of them empty, and what reads the components is fused with what sums them up. Sums add
// their terms in the order of the elements.
#ifndef WEFT_TRANSFORMS_OPT_COMPONENTS_H_
#define WEFT_TRANSFORMS_OPT_COMPONENTS_H_

#include "ir/fn.h"

namespace weft {

// Its name where rules are counted or left out (transforms/opt/rule_watch.h).
inline constexpr char kComponents[] = "components-apart";

// Takes apart what has at least `least_elements`, in regions too.
FnRef TakeComponentsApart(FnRef fn, int64_t least_elements);
FnRef TakeComponentsApart(FnRef fn);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_COMPONENTS_H_
