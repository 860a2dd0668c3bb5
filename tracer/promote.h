// How dtypes combine: JAX's type promotion lattice with weak types
// (https://docs.jax.dev/en/latest/type_promotion.html), without its truncation of 64-bit types.
//
//   Promote({DType::kI32, false}, {DType::kF32, true}) == {DType::kF32, true}   // int32 array + Python float
//   Promote({DType::kF16, false}, {DType::kF32, true}) == {DType::kF16, false}  // float16 array + Python float
//
// bool < integers < floats < complex. Python numbers are weak: below the smallest type of their kind's family.
#ifndef WEFT_TRACER_PROMOTE_H_
#define WEFT_TRACER_PROMOTE_H_

#include "base/dtype.h"
#include "ir/error.h"

namespace weft {

struct WeakDType {
  DType dtype = DType::kF32;
  bool weak = false;
  friend bool operator==(WeakDType a, WeakDType b) { return a.dtype == b.dtype && a.weak == b.weak; }
};

// The dtype of arrays made from Python numbers without a dtype: f32, i32, c64; with x64: f64, i64, c128.
// Existing arrays keep their dtype whatever this says. A setting of tracer/context.h.
bool X64();
DType DefaultFloat();
DType DefaultInt();
DType DefaultComplex();
// The dtype itself; where JAX's meaning is asked for (Setting::kJaxSemantics) and x64 is off, the one of half as many
// bits of those of 64 bits and more.
DType Canonical(DType dtype);

// Two dtypes of which none is converted to the other, by numpy_dtype_promotion; TypePromotionError in Python.
class NoPromotion : public Error {
 public:
  template <class... Args>
  explicit NoPromotion(const Args&... args) : Error(ErrorKind::kValue, internal::Concat(args...)) {}
};

// The join of two types. Raises NoPromotion where that is not allowed (Setting::kStrictPromotion), and kType where
// there is none (NoPromotion as well where JAX's meaning is asked for): random keys, and types that are only stored
// (IsStored) beside others than booleans and Python's numbers (integers too, for 8-bit floats).
WeakDType Promote(WeakDType a, WeakDType b);
// Integers and bool -> a float that is as wide: i64 and u64 to f64, the others to the default float.
WeakDType ToInexact(WeakDType t);

}  // namespace weft
#endif  // WEFT_TRACER_PROMOTE_H_
