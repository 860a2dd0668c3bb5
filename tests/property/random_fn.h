// Random programs for property tests: closed, typed, smooth almost everywhere, with values that stay near one.
//
//   std::mt19937 rng(17);
//   FnRef f = RandomFn(rng, {.max_eqns = 12});
//   Tensors x = RandomArgs(*f, rng);
#ifndef WEFT_TESTS_PROPERTY_RANDOM_FN_H_
#define WEFT_TESTS_PROPERTY_RANDOM_FN_H_

#include <random>

#include "ir/fn.h"

namespace weft {

struct RandomFnOptions {
  int max_params = 3;
  int max_eqns = 10;
  int max_depth = 2;  // of nested regions
  bool loops = true;  // while with a counter: has forward mode only
  DType dtype = DType::kF64;
};

FnRef RandomFn(std::mt19937& rng, const RandomFnOptions& options);
Tensors RandomArgs(const Fn& fn, std::mt19937& rng);

}  // namespace weft
#endif  // WEFT_TESTS_PROPERTY_RANDOM_FN_H_
