// Products that multiply each number of a matrix once, as sums:
//
//   y = contract[spec="ab,bc->ac"] x w                            x: f32[1,128], w: f32[128,512]
//
// becomes
//
//   p = w * broadcast(x)                                          f32[128,512]
//   y = reduce_sum[dims=[0]] p                                    f32[512]
//
// So products of a vector and a matrix, of stacks of them, scalar products, and outer products, which are no sums at
// all. A library's call is worth its cost where numbers are used often. Here each is read once, and a kernel reads them
// as fast, for several such products at once, and computes what follows: the gates of an LSTM step of one row are one
// kernel.
#ifndef WEFT_TRANSFORMS_OPT_VECTOR_PRODUCTS_H_
#define WEFT_TRANSFORMS_OPT_VECTOR_PRODUCTS_H_

#include "ir/fn.h"

namespace weft {

// Its name where rules are counted or left out (transforms/opt/rule_watch.h).
inline constexpr char kVectorProduct[] = "vector-product-as-sum";

// Of floating-point numbers, and of integers of 32 and 64 bits, in regions too. Half precision is multiplied and summed
// in f32, as a library does. Deterministic sums (transforms/shard/deterministic.h) stay.
FnRef VectorProductsAsSums(FnRef fn);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_VECTOR_PRODUCTS_H_
