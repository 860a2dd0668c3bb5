// Internal to lowering/**.cc: one element-wise operation on values in registers, shared by every emitter (CPU, GPU).
//
// Registers hold bool as i1, f16 and bf16 as f32, complex numbers as two floats, other types as themselves. Values are
// scalars or vectors; a scalar operand beside vectors is a splat.
#ifndef WEFT_LOWERING_CPU_MLIR_EMIT_BODY_H_
#define WEFT_LOWERING_CPU_MLIR_EMIT_BODY_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "lowering/cpu/mlir/builder.h"
#include "lowering/cpu/mlir/vector_math.h"
#include "lowering/kernel/kernel_spec.h"

namespace weft {

struct Lanes {
  Value re;
  Value im = {};  // of complex numbers; of pairs, the index
};

enum class Comparison { kEq, kNe, kLt, kLe, kGt, kGe };

struct ScalarOp;
struct ScalarOpArgs;

// f16 and bf16, which registers hold as f32.
inline bool IsHalf(DType t) { return IsFloat(t) && ByteWidth(t) == 2; }

class BodyEmitter {
 public:
  // Calls the scalar function `op` of `dtype` for every lane; operands are registers of that dtype (f16, bf16: f32).
  using Library =
      std::function<Lanes(const std::string& op, DType dtype, const std::vector<Lanes>& operands, DType result)>;

  // A target's own function on f32 or f64 (ScalarOp::device), null where it has none; taken before vector code.
  using Native = std::function<Value(const std::string& function, const std::vector<Value>& operands)>;

  BodyEmitter(MlirBuilder& m, Library library, Native native = nullptr)
      : m_(m), library_(std::move(library)), native_(std::move(native)) {}

  // The type of one lane in a register (of one part, for complex numbers) and in memory.
  MType Register(DType dtype);
  MType Memory(DType dtype);

  Lanes Literal(const Tensor& value);
  // `dtypes`: of the operands; node.dtype: of the result.
  Lanes Op(const KernelNode& node, const std::vector<DType>& dtypes, std::vector<Lanes> operands);
  // Which function of the same operand, of a dtype, costs little along with the node's (cos beside sin), null if none;
  // and the values of both.
  const char* Beside(const KernelNode& node, DType dtype) const;
  std::pair<Lanes, Lanes> Both(const KernelNode& node, DType dtype, const Lanes& x);

  // Reductions: the neutral element, and one step.
  Lanes Neutral(const std::string& op, DType dtype, int64_t lanes);
  Lanes Combine(const std::string& op, DType dtype, Lanes a, Lanes b);
  // The same for argmax and argmin (`op`) of pairs, of a value and its index (`im`): of equal values, or of several
  // NaNs, the one with the least index. The neutral pair is behind all others.
  Lanes NeutralPair(const std::string& op, DType value, DType index);
  Lanes CombinePairs(const std::string& op, DType value, DType index, const Lanes& a, const Lanes& b);
  Lanes Select(Value mask, Lanes a, Lanes b);
  Lanes Splat(Lanes v, int64_t lanes);

  // Between registers and the lanes of memory (complex numbers interleaved: twice as many lanes).
  Lanes FromMemory(DType dtype, Value raw);
  Value ToMemory(DType dtype, Lanes v);

  // What the rows of scalar_ops.cc are made of.
  Lanes Convert(DType from, DType to, Lanes v);
  Value Compare(Comparison how, DType dtype, const Lanes& x, const Lanes& y);
  Value IntegerPower(Value x, int64_t n);
  Value NextAfter(DType dtype, Value x, Value towards);
  Lanes Call(const std::string& op, DType dtype, const std::vector<Lanes>& x, DType result) {
    return library_(op, dtype, x, result);
  }
  // By the target's own function, null where there is none.
  Value Device(const char* function, const std::vector<Value>& x) { return native_ ? native_(function, x) : Value(); }

 private:
  Lanes Function(const ScalarOp& row, const ScalarOpArgs& args);
  Lanes ByF64(const ScalarOp& row, const ScalarOpArgs& args);
  VectorMath Math(DType wide);
  Lanes SmallIntegerOp(const ScalarOp& row, const KernelNode& node, DType dtype, std::vector<Lanes> x);
  Value KeepBits(DType dtype, Value x);
  Value RoundToBF16(Value x);  // f32 -> i16 bits
  Value RoundToF16(Value x);   // f32 -> i16 bits, without instructions for it
  Value ExtendF16(Value x);    // i16 bits -> f32
  Value Intrinsic(const char* name, MType result, std::vector<Value> operands);

  MlirBuilder& m_;
  Library library_;
  Native native_;
};

}  // namespace weft
#endif  // WEFT_LOWERING_CPU_MLIR_EMIT_BODY_H_
