// User-level operations on values, with NumPy's conveniences made explicit in the IR: dtypes are promoted
// (tracer/promote.h), shapes broadcast, axes may be negative. Each records in the open trace or runs at once (site.h).
//
//   Value y = Elementwise(FindPrim("mul"), {x, Scalar::Float(2.0)});
//
// Errors are kType (shapes, dtypes), kValue, kIndex (an axis out of range); the message starts with the operation.
#ifndef WEFT_TRACER_OPS_H_
#define WEFT_TRACER_OPS_H_

#include <string>

#include "tracer/site.h"

namespace weft {

// Runs one operation of a dtype, element-wise or a reduction, on arrays and numbers at once, without a program of its
// own; nothing where it has to be one. Set once at start-up by whoever links a compiler; the bits are those of the
// compiled program.
using OperationRunner = std::optional<Tensor> (*)(const Prim& prim, DType dtype, const Attrs& attrs, Operands xs);
void SetOperationRunner(OperationRunner runner);
// The operation's result by that runner; nothing where values are traced, or on several devices.
std::optional<Value> RunAtOnce(const Prim& prim, WeakDType dtype, const Attrs& attrs, Operands xs);

// The join of the operands' dtypes, made inexact when the primitive takes floats only (kAuto) or always (kInexact).
enum class Promotion { kAuto, kInexact };
Value Elementwise(const Prim& prim, Operands xs, Attrs attrs = {}, Promotion promotion = Promotion::kAuto);
inline Value Elementwise(const Prim& prim, std::initializer_list<Operand> xs, Attrs attrs = {},
                         Promotion p = Promotion::kAuto) {
  return Elementwise(prim, absl::MakeConstSpan(xs.begin(), xs.size()), std::move(attrs), p);
}

// Python's and NumPy's operators.
enum class Binary : uint8_t {
  kAdd,
  kSub,
  kMul,
  kTrueDivide,
  kFloorDivide,
  kRemainder,
  kPower,
  kAnd,
  kOr,
  kXor,
  kShiftLeft,
  kShiftRight,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kMaximum,
  kMinimum,
  kLogicalAnd,
  kLogicalOr,
  kLogicalXor,
  kAtan2,
  kMatmul,
};
const char* Name(Binary op);  // NumPy's name
Value Apply(Binary op, const Operand& x, const Operand& y);
// NumPy's function of that name: it also orders complex numbers, by their real and then by their imaginary parts, which
// the operators refuse, since what is written with them means real numbers.
Value ApplyFunction(Binary op, const Operand& x, const Operand& y);
enum class Unary : uint8_t { kNegative, kPositive, kAbsolute, kInvert, kLogicalNot };
Value Apply(Unary op, const Operand& x);

Value Astype(const Operand& x, DType dtype, bool weak = false);
Value Where(const Operand& condition, const Operand& x, const Operand& y);
Value Full(const Dims& shape, const Operand& value, std::optional<DType> dtype);
// 0, 1 ... along `axis`.
Value IotaLike(const Dims& shape, int64_t axis, DType dtype);

int64_t CheckAxis(int64_t axis, int rank, const char* what);   // negative axes made positive
Ints CheckAxes(const Ints& axes, int rank, const char* what);  // and sorted; duplicates are an error

// Shape (shape_ops.cc).
Value BroadcastTo(const Operand& x, const Dims& shape);
Value Reshape(const Operand& x, Dims shape);  // one dimension may be -1
Value Transpose(const Operand& x, std::optional<Ints> axes);
Value MoveAxis(const Operand& x, const Ints& from, const Ints& to);
Value ExpandDims(const Operand& x, const Ints& axes);
Value Squeeze(const Operand& x, std::optional<Ints> axes);
Value ConcatenateValues(Operands xs, int64_t axis);
Value Stack(Operands xs, int64_t axis);
Value Flip(const Operand& x, std::optional<Ints> axes);
Value PadConstant(const Operand& x, const Ints& lo, const Ints& hi, const Operand& value);
Value SliceAxis(const Operand& x, int64_t axis, int64_t start, int64_t limit, int64_t stride);

// reduce_sum is called sum.
const char* NumpyName(const std::string& prim);
// Reductions (reduce_ops.cc). `prim` is reduce_sum ...; integers narrower than the default are widened for sum and
// prod.
Value ReduceAxes(const std::string& prim, const Operand& x, std::optional<Ints> axes, bool keepdims);
Value MeanAxes(const Operand& x, std::optional<Ints> axes, bool keepdims);
Value ArgReduce(const std::string& prim, const Operand& x, std::optional<int64_t> axis, bool keepdims);
Value Cumulative(const std::string& prim, const Operand& x, std::optional<int64_t> axis, bool reverse);

// Contraction (contract_ops.cc).
Value Matmul(const Operand& x, const Operand& y);
Value Dot(const Operand& x, const Operand& y);
Value Tensordot(const Operand& x, const Operand& y, const Ints& x_axes, const Ints& y_axes);
Value Einsum(const std::string& spec, Operands xs);

}  // namespace weft
#endif  // WEFT_TRACER_OPS_H_
