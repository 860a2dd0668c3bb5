// Kernels of single element-wise operations, for whatever runs one operation after the other.
//
// A kernel takes some milliseconds to compile, thousands of times what a small array takes. So there is one for all
// shapes: the elements of arrays are the row [n] of a program with a symbolic size. An operation has the same bits for
// 10 elements and for 100,000, whose programs are made of the same code.
#ifndef WEFT_DRIVER_OPERATION_KERNELS_H_
#define WEFT_DRIVER_OPERATION_KERNELS_H_

#include "absl/types/span.h"
#include "ir/fn.h"
#include "ir/prim.h"
#include "ir/tensor.h"

namespace weft {

// Whether the interpreter has the bits of compiled code: integers, and what is exact or correctly rounded.
bool InterpretedHasSameBits(const Prim& prim, DType dtype);

struct KernelOperand {
  DType dtype;
  bool number;  // beside arrays: of no dimensions
};

// The program of an operation on operands that are converted to `dtype`; null where it takes no such operands.
FnRef OperationOnRows(const Prim& prim, DType dtype, const Attrs& attrs, absl::Span<const KernelOperand> operands);

// The elements of t as a row.
Tensor AsRow(const Tensor& t);
// A row as an array of that shape.
Tensor OfShape(const Tensor& row, const Shape& shape);

}  // namespace weft
#endif  // WEFT_DRIVER_OPERATION_KERNELS_H_
