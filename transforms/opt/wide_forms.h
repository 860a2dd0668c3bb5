// What the pass `widen` knows of operations on f32: whether they have a form in f64, and what they do to rounding
// errors and ranges.
#ifndef WEFT_TRANSFORMS_OPT_WIDE_FORMS_H_
#define WEFT_TRANSFORMS_OPT_WIDE_FORMS_H_

#include <cstdint>

#include "ir/prim_table.h"

namespace weft {

enum class KnownSign : uint8_t { kUnknown, kNotNegative, kNotPositive };
// How the sign of a result follows from those of operands, and which losses there are.
enum class LossForm : uint8_t {
  kOther,
  kSum,
  kDifference,
  kProduct,
  kQuotient,
  kNegative,
  kMaximum,
  kPower,
  kChoice,
  kConversion,
  kRandom
};

// What the pass knows of an operation on f32.
struct WideForm {
  bool linear = false;       // in each operand
  int cost = 1;              // of an element in f64, in units of an addition
  bool widens = false;       // has an f64 form that takes the same attributes
  bool rounds = false;       // its result is rounded
  bool overflows = false;    // of ordinary operands may overflow, or underflow
  bool reads_range = false;  // turns what has overflowed into a wrong number
  bool has_limits = false;   // in both directions, which it has reached in f32 far before the operand is 100
  bool logarithmic = false;  // exp of its result turns absolute errors of it into relative ones
  bool keeps_sign = false;   // the result has the operand's
  KnownSign sign = KnownSign::kUnknown;
  LossForm form = LossForm::kOther;
};
// Of the functions that are more than an instruction.
inline constexpr int kCostOfFunction = 8;

const PrimTable<WideForm>& WideForms();

// The number that was rounded to this one of f32 when the program was written: a constant of mathematics (which
// derivatives have, too), a fraction of small numbers, or a short decimal. Few numbers of f32 are near one of these by
// chance.
double Meant(double value);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_WIDE_FORMS_H_
