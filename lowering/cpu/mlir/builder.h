// Internal to lowering/**.cc: short spellings for the MLIR operations that the emitters create. The only header of Weft
// that includes MLIR; every other header must stay free of it (each inclusion costs seconds).
//
// Values are scalars or vectors of one length; constants follow the shape of the type they are made for.
#ifndef WEFT_LOWERING_CPU_MLIR_BUILDER_H_
#define WEFT_LOWERING_CPU_MLIR_BUILDER_H_

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace weft {

namespace arith = mlir::arith;
namespace math = mlir::math;
namespace scf = mlir::scf;
namespace LLVM = mlir::LLVM;
using mlir::Value;
using MType = mlir::Type;
using Pred = arith::CmpFPredicate;
using IPred = arith::CmpIPredicate;

inline constexpr char kDivFull[] = "div.full.f32 $0, $1, $2;";

struct MlirBuilder {
  mlir::OpBuilder b;
  mlir::Location loc;
  bool avx512 = false;  // intrinsics of AVX-512 may be used
  bool f16c = true;     // f16 is converted by instructions; else LLVM would call functions that a program does not have
  bool fused_sums = false;  // sums may take up products that are not rounded (MulForSum)
  // Instructions of GPUs: the larger and smaller of two f32, NaN when either is; f32 rounded to bf16; a quotient of f32
  // within two units in the last place, which costs a third of a rounded one.
  bool nan_max = false, bf16 = false, div_full = false;

  explicit MlirBuilder(mlir::MLIRContext* context) : b(context), loc(mlir::UnknownLoc::get(context)) {}

  MType f32() { return b.getF32Type(); }
  MType f64() { return b.getF64Type(); }
  MType i1() { return b.getI1Type(); }
  MType i8() { return b.getI8Type(); }
  MType i32() { return b.getI32Type(); }
  MType i64() { return b.getI64Type(); }
  MType ptr() { return LLVM::LLVMPointerType::get(b.getContext()); }
  static MType Element(MType t) {
    if (auto v = mlir::dyn_cast<mlir::VectorType>(t)) return v.getElementType();
    return t;
  }
  static MType Element(Value v) { return Element(v.getType()); }
  // The length of a vector, 0 for a scalar.
  static int64_t Lanes(MType t) {
    if (auto v = mlir::dyn_cast<mlir::VectorType>(t)) return v.getNumElements();
    return 0;
  }
  static int64_t Lanes(Value v) { return Lanes(v.getType()); }
  // `element` with as many lanes as `like` has.
  static MType As(MType like, MType element) {
    const int64_t n = Lanes(like);
    return n == 0 ? element : mlir::VectorType::get({n}, element);
  }
  static MType Vector(int64_t lanes, MType element) {
    return lanes == 0 ? element : mlir::VectorType::get({lanes}, element);
  }

  template <class Op, class... Args>
  Value Make(Args&&... args) {
    return b.create<Op>(loc, std::forward<Args>(args)...)->getResult(0);
  }

  Value F(MType t, double v) {
    MType e = Element(t);
    bool loses = false;
    llvm::APFloat value(v);
    value.convert(mlir::cast<mlir::FloatType>(e).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &loses);
    return Constant(t, b.getFloatAttr(e, value));
  }
  // A float given by its bits.
  Value FBits(MType t, uint64_t bits) {
    auto e = mlir::cast<mlir::FloatType>(Element(t));
    return Constant(t, b.getFloatAttr(e, llvm::APFloat(e.getFloatSemantics(), llvm::APInt(e.getWidth(), bits))));
  }
  Value I(MType t, int64_t v) {
    return Constant(t, b.getIntegerAttr(Element(t), llvm::APInt(Element(t).getIntOrFloatBitWidth(),
                                                                static_cast<uint64_t>(v), true)));
  }
  Value I64(int64_t v) { return I(i64(), v); }
  Value Constant(MType t, mlir::TypedAttr scalar) {
    if (auto v = mlir::dyn_cast<mlir::VectorType>(t))
      return Make<arith::ConstantOp>(mlir::DenseElementsAttr::get(v, llvm::ArrayRef<mlir::Attribute>(scalar)));
    return Make<arith::ConstantOp>(scalar);
  }

  // Floating point.
  Value Add(Value x, Value y) { return Make<arith::AddFOp>(x, y); }
  Value Sub(Value x, Value y) { return Make<arith::SubFOp>(x, y); }
  Value Mul(Value x, Value y) { return Make<arith::MulFOp>(x, y); }
  Value Div(Value x, Value y) { return Make<arith::DivFOp>(x, y); }
  // Of f32, within two units in the last place; needs `div_full`.
  Value DivFull(Value x, Value y) {
    return Make<LLVM::InlineAsmOp>(f32(), mlir::ValueRange{x, y}, kDivFull, "=f,f,f", /*has_side_effects=*/false,
                                   /*is_align_stack=*/false, LLVM::AsmDialectAttr(), mlir::ArrayAttr());
  }
  Value Neg(Value x) { return Make<arith::NegFOp>(x); }
  // A product that is rounded by itself, unless a sum takes it up: a step of a reduction, or an addition or subtraction
  // that says so. No others are fused: what element-wise code computes is what its operations compute one after the
  // other.
  Value MulForSum(Value x, Value y) { return Make<arith::MulFOp>(x, y, SumFlags()); }
  Value AddToSum(Value sum, Value x) { return Make<arith::AddFOp>(sum, x, SumFlags()); }
  Value SubFromSum(Value sum, Value x) { return Make<arith::SubFOp>(sum, x, SumFlags()); }
  arith::FastMathFlags SumFlags() const {
    return fused_sums ? arith::FastMathFlags::contract : arith::FastMathFlags::none;
  }
  // |-x| is |x|, in the code too: functions of both x and -x share what they make from it.
  Value Abs(Value x) {
    if (auto negation = x.getDefiningOp<arith::NegFOp>()) x = negation.getOperand();
    return Make<math::AbsFOp>(x);
  }
  Value Fma(Value x, Value y, Value z) { return Make<math::FmaOp>(x, y, z); }
  Value Sqrt(Value x) { return Make<math::SqrtOp>(x); }
  Value CopySign(Value magnitude, Value sign) { return Make<math::CopySignOp>(magnitude, sign); }
  Value RoundEven(Value x) { return Make<math::RoundEvenOp>(x); }
  Value Cmp(Pred p, Value x, Value y) { return Make<arith::CmpFOp>(p, x, y); }
  Value IsNan(Value x) { return Cmp(Pred::UNO, x, x); }
  Value Select(Value c, Value x, Value y) { return Make<arith::SelectOp>(c, x, y); }
  // The larger of x and y, y when they are not ordered: one machine instruction.
  Value RawMax(Value x, Value y) { return Select(Cmp(Pred::OGT, x, y), x, y); }
  Value RawMin(Value x, Value y) { return Select(Cmp(Pred::OLT, x, y), x, y); }
  // NaN when either is NaN.
  Value Max(Value x, Value y) {
    if (nan_max && Element(x).isF32()) return Make<arith::MaximumFOp>(x, y);
    return Select(IsNan(x), x, RawMax(x, y));
  }
  Value Min(Value x, Value y) {
    if (nan_max && Element(x).isF32()) return Make<arith::MinimumFOp>(x, y);
    return Select(IsNan(x), x, RawMin(x, y));
  }

  // Integers.
  Value IAdd(Value x, Value y) { return Make<arith::AddIOp>(x, y); }
  Value ISub(Value x, Value y) { return Make<arith::SubIOp>(x, y); }
  Value IMul(Value x, Value y) { return Make<arith::MulIOp>(x, y); }
  // x / by, rounded up, of x >= 0.
  Value CeilDiv(Value x, int64_t by) { return by == 1 ? x : Make<arith::DivUIOp>(IAdd(x, I64(by - 1)), I64(by)); }
  Value And(Value x, Value y) { return Make<arith::AndIOp>(x, y); }
  Value Or(Value x, Value y) { return Make<arith::OrIOp>(x, y); }
  Value Xor(Value x, Value y) { return Make<arith::XOrIOp>(x, y); }
  Value Shl(Value x, int64_t n) { return Make<arith::ShLIOp>(x, I(x.getType(), n)); }
  Value ShrU(Value x, int64_t n) { return Make<arith::ShRUIOp>(x, I(x.getType(), n)); }
  Value ShrS(Value x, int64_t n) { return Make<arith::ShRSIOp>(x, I(x.getType(), n)); }
  Value Cmp(IPred p, Value x, Value y) { return Make<arith::CmpIOp>(p, x, y); }
  Value Not(Value x) { return Xor(x, I(x.getType(), -1)); }

  // Conversions keep the number of lanes.
  Value Bits(Value x, MType element) { return Make<arith::BitcastOp>(As(x.getType(), element), x); }
  Value IToF(Value x, MType element) { return Make<arith::SIToFPOp>(As(x.getType(), element), x); }
  Value UToF(Value x, MType element) { return Make<arith::UIToFPOp>(As(x.getType(), element), x); }
  Value ExtF(Value x, MType element) { return Make<arith::ExtFOp>(As(x.getType(), element), x); }
  Value TruncF(Value x, MType element) { return Make<arith::TruncFOp>(As(x.getType(), element), x); }
  Value ExtU(Value x, MType element) { return Make<arith::ExtUIOp>(As(x.getType(), element), x); }
  Value ExtS(Value x, MType element) { return Make<arith::ExtSIOp>(As(x.getType(), element), x); }
  Value TruncI(Value x, MType element) { return Make<arith::TruncIOp>(As(x.getType(), element), x); }

  // Memory. `index` counts elements of `element`.
  Value Gep(MType element, Value base, Value index) {
    return Make<LLVM::GEPOp>(ptr(), element, base, llvm::ArrayRef<LLVM::GEPArg>{index});
  }
  Value GepAt(MType element, Value base, int64_t index) {
    return Make<LLVM::GEPOp>(ptr(), element, base,
                             llvm::ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(static_cast<int32_t>(index))});
  }
  Value Load(MType t, Value address, unsigned alignment = 0) {
    return b.create<LLVM::LoadOp>(loc, t, address, alignment).getResult();
  }
  void Store(Value v, Value address, unsigned alignment = 0) { b.create<LLVM::StoreOp>(loc, v, address, alignment); }

  // Lanes.
  Value Splat(Value scalar, int64_t lanes) {
    if (lanes == 0 || Lanes(scalar) != 0) return scalar;
    auto t = mlir::VectorType::get({lanes}, scalar.getType());
    Value first = Make<LLVM::InsertElementOp>(t, Make<LLVM::PoisonOp>(t), scalar, I64(0));
    return Shuffle(first, first, std::vector<int32_t>(lanes, 0));
  }
  Value Shuffle(Value x, Value y, const std::vector<int32_t>& lanes) {
    return Make<LLVM::ShuffleVectorOp>(x, y, llvm::ArrayRef<int32_t>(lanes));
  }
  Value Extract(Value x, int64_t lane) { return Make<LLVM::ExtractElementOp>(x, I64(lane)); }
  // 0, 1, 2, ... in each lane.
  Value Iota(int64_t lanes, MType element) {
    if (lanes == 0) return I(element, 0);
    std::vector<mlir::Attribute> values;
    for (int64_t i = 0; i < lanes; ++i) values.push_back(b.getIntegerAttr(element, i));
    return Make<arith::ConstantOp>(mlir::DenseElementsAttr::get(mlir::VectorType::get({lanes}, element), values));
  }
};

}  // namespace weft
#endif  // WEFT_LOWERING_CPU_MLIR_BUILDER_H_
