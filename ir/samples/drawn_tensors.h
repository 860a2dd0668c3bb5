// Random tensors for tests. The numbers follow from the generator alone.
#ifndef WEFT_IR_SAMPLES_DRAWN_TENSORS_H_
#define WEFT_IR_SAMPLES_DRAWN_TENSORS_H_

#include <cmath>
#include <random>

#include "ir/fn.h"
#include "ir/tensor.h"

namespace weft {

// Elements uniform in [low, high]: integers rounded, bool a coin, of complex numbers both parts, a tape empty.
inline Tensor Draw(const Type& type, double low, double high, std::mt19937& rng) {
  Tensor t(type.dtype, StaticSizes(type.dims, "a drawn tensor"));
  std::uniform_real_distribution<double> uniform(low, high);
  for (int64_t i = 0; i < t.size(); ++i) {
    if (IsBool(type.dtype))
      t.Set(i, static_cast<double>(rng() % 2));
    else if (IsInteger(type.dtype))
      t.Set(i, std::round(uniform(rng)));
    else if (IsComplex(type.dtype))
      t.Set(i, {uniform(rng), uniform(rng)});
    else
      t.Set(i, type.dtype == DType::kTape ? 0 : uniform(rng));
  }
  return t;
}

inline Tensors DrawArguments(const Fn& fn, std::mt19937& rng, double low = -2, double high = 2) {
  Tensors x;
  for (const Type& t : fn.ParamTypes()) x.push_back(Draw(t, low, high, rng));
  return x;
}

}  // namespace weft
#endif  // WEFT_IR_SAMPLES_DRAWN_TENSORS_H_
