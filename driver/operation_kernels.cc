#include "driver/operation_kernels.h"

#include <utility>

#include "ir/builder.h"
#include "ir/error.h"
#include "ir/ops.h"

namespace weft {

bool InterpretedHasSameBits(const Prim& prim, DType dtype) {
  if (IsBool(dtype) || IsInteger(dtype)) return true;
  return IsFloat(dtype) && prim.correctly_rounded();
}

FnRef OperationOnRows(const Prim& prim, DType dtype, const Attrs& attrs, absl::Span<const KernelOperand> operands) {
  Builder b(prim.name);
  Atoms values;
  const Dims row = {Dim::Symbol("n")};
  for (size_t i = 0; i < operands.size(); ++i) {
    const Atom p = b.Parameter(Type{operands[i].dtype, operands[i].number ? Dims{} : row, {}}, i == 0 ? "x" : "y");
    values.push_back(Convert(b, p, dtype));
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].number) values[i] = Broadcast(b, values[i], row, {});
  }
  try {
    return b.Build({b.Emit1(prim, std::move(values), attrs)});
  } catch (const Error&) {
    return nullptr;
  }
}

Tensor AsRow(const Tensor& t) { return Tensor(t.dtype(), {t.size()}, t.owner(), const_cast<void*>(t.raw())); }

Tensor OfShape(const Tensor& row, const Shape& shape) {
  return Tensor(row.dtype(), shape, row.owner(), const_cast<void*>(row.raw()));
}

}  // namespace weft
