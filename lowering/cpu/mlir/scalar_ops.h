// Internal to lowering/*.cc: how element-wise operations are computed on values in registers, a row each.
#ifndef WEFT_LOWERING_CPU_MLIR_SCALAR_OPS_H_
#define WEFT_LOWERING_CPU_MLIR_SCALAR_OPS_H_

#include <utility>
#include <vector>

#include "ir/prim.h"
#include "lowering/cpu/mlir/complex_math.h"
#include "lowering/cpu/mlir/emit_body.h"

namespace weft {

struct ScalarOpArgs {
  BodyEmitter& body;
  MlirBuilder& m;
  const KernelNode& node;            // dtype: of the result
  const std::vector<DType>& dtypes;  // of the operands
  const std::vector<Lanes>& in;
  const int width;  // how many bits of the operands count

  DType dtype() const { return dtypes[0]; }
  Value x() const { return in[0].re; }
  Value y() const { return in[1].re; }
  Value F(double v) const { return m.F(x().getType(), v); }
  Value I(int64_t v) const { return m.I(x().getType(), v); }
  // Registers of f16 and bf16 are f32, and what they hold is rounded in the end: no one sees its last two units.
  Value Quotient(Value over, Value under) const {
    return m.div_full && IsHalf(dtype()) ? m.DivFull(over, under) : m.Div(over, under);
  }
};

struct ScalarOp {
  using Emit = Lanes (*)(const ScalarOpArgs& a);
  using Vector = Value (*)(VectorMath& math, const std::vector<Value>& x);
  using ByF64 = ComplexLanes (*)(VectorMath& math, const std::vector<ComplexLanes>& x);
  using Both = std::pair<Value, Value> (*)(VectorMath& math, Value x);

  Emit any = nullptr;  // whatever the dtypes are
  // By the dtype of the first operand; where there is nothing the runtime's function of the operation's name is called
  // (lowering/abi/math_table.h).
  Emit on_float = nullptr;
  Emit on_integer = nullptr;  // of booleans too
  Emit on_complex = nullptr;
  // Of floats: how GPUs compute it, by the name of libdevice's function or by code that uses such (it may be null);
  // and vector code, which is taken where there is no libdevice.
  const char* device = nullptr;
  Emit on_device = nullptr;
  Vector vector = nullptr;
  // Of floats, by vector code: another function of the same operand that costs little along with this one, and both.
  const char* beside = nullptr;
  Both both = nullptr;
  // Of complex numbers of 64 bits on CPUs, by vector code in f64 for finite numbers, of which operand `nonzero` is not
  // 0. For vectors with others the runtime's function is called.
  ByF64 complex_by_f64 = nullptr;
  int nonzero = -1;
  // Of integers: it reads their bits, which above those of an i4 are no copies of its sign then.
  bool of_bits = false;
  // Where `KernelNode::integer` is not 0 CPUs call the runtime's function all the same.
  bool number_asks_library = false;
};

const ScalarOp& ScalarOpOf(const Prim& prim);

}  // namespace weft
#endif  // WEFT_LOWERING_CPU_MLIR_SCALAR_OPS_H_
