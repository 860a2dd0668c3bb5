#include "lowering/cpu/mlir/emit_body.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "ir/error.h"
#include "lowering/cpu/mlir/scalar_ops.h"

namespace weft {
namespace {

// What reductions of kernels are made of.
struct ReductionRow {
  enum class Start { kZero, kOne, kLeast, kLargest, kOnes };
  const char* name;
  Start start;           // the neutral element
  const char* step;      // the primitive that takes in one more element
  const char* of_bools;  // the same of booleans
  bool fused = false;    // of inexact numbers: a product is taken in without rounding it, on a GPU or if it is exact
};
using Start = ReductionRow::Start;
constexpr ReductionRow kReductions[] = {
    {"sum", Start::kZero, "add", "or", true}, {"prod", Start::kOne, "mul", "and"}, {"max", Start::kLeast, "max", "or"},
    {"min", Start::kLargest, "min", "and"},   {"and", Start::kOnes, "and", "and"}, {"or", Start::kZero, "or", "or"},
};

const ReductionRow& ReductionOf(const std::string& op) {
  for (const ReductionRow& row : kReductions) {
    if (op == row.name) return row;
  }
  WEFT_CHECK(false) << "kernel: no reduction " << op;
  std::abort();
}

// Whether v is a product of numbers of half its digits, which a sum may take up without changing a bit.
bool IsExactProduct(Value v) {
  auto product = v.getDefiningOp<arith::MulFOp>();
  const auto narrow = [](Value x) { return x.getDefiningOp<arith::ExtFOp>() != nullptr; };
  return product && narrow(product.getLhs()) && narrow(product.getRhs());
}

// Integers of which some bits of the byte are no part: they are stored as numbers of 8 bits.
bool IsSmallInteger(DType t) { return IsInteger(t) && IsStored(t); }

}  // namespace

MType BodyEmitter::Register(DType dtype) {
  if (IsBool(dtype)) return m_.i1();
  if (IsComplex(dtype)) return Register(RealPart(dtype));
  if (IsFloat(dtype) && !IsStored(dtype)) return ByteWidth(dtype) == 8 ? m_.f64() : m_.f32();
  return m_.b.getIntegerType(static_cast<unsigned>(8 * ByteWidth(dtype)));
}

MType BodyEmitter::Memory(DType dtype) {
  if (IsBool(dtype)) return m_.i8();
  if (dtype == DType::kF16 && m_.f16c) return m_.b.getF16Type();
  return IsHalf(dtype) ? MType(m_.b.getI16Type()) : Register(dtype);
}

Lanes BodyEmitter::Literal(const Tensor& value) {
  const DType dtype = value.dtype();
  MType t = Register(dtype);
  if (IsComplex(dtype)) {
    const std::complex<double> v = value.Get(0);
    return {m_.F(t, v.real()), m_.F(t, v.imag())};
  }
  if (dtype == DType::kF32) return {m_.FBits(t, *static_cast<const uint32_t*>(value.raw()))};
  if (dtype == DType::kF64) return {m_.FBits(t, *static_cast<const uint64_t*>(value.raw()))};
  if (IsHalf(dtype)) return {m_.F(t, value.Get(0).real())};
  int64_t bits = 0;
  std::memcpy(&bits, value.raw(), static_cast<size_t>(value.bytes()));
  return {m_.I(t, bits)};
}

Lanes BodyEmitter::Splat(Lanes v, int64_t lanes) {
  v.re = m_.Splat(v.re, lanes);
  if (v.im) v.im = m_.Splat(v.im, lanes);
  return v;
}

Lanes BodyEmitter::Select(Value mask, Lanes a, Lanes b) {
  Lanes out{m_.Select(mask, a.re, b.re)};
  if (a.im) out.im = m_.Select(mask, a.im, b.im);
  return out;
}

Value BodyEmitter::Intrinsic(const char* name, MType result, std::vector<Value> operands) {
  auto call = m_.b.create<LLVM::CallIntrinsicOp>(m_.loc, mlir::TypeRange{result}, m_.b.getStringAttr(name),
                                                 mlir::ValueRange(operands), LLVM::FastmathFlagsAttr{});
  return call->getResult(0);
}

// Round to nearest even on the bits; NaN stays NaN.
Value BodyEmitter::RoundToBF16(Value x) {
  Value bits = m_.Bits(x, m_.i32());
  MType t = bits.getType();
  Value odd = m_.And(m_.ShrU(bits, 16), m_.I(t, 1));
  Value rounded = m_.ShrU(m_.IAdd(bits, m_.IAdd(odd, m_.I(t, 0x7FFF))), 16);
  Value quiet = m_.Or(m_.ShrU(bits, 16), m_.I(t, 0x40));
  return m_.TruncI(m_.Select(m_.IsNan(x), quiet, rounded), m_.b.getI16Type());
}

// Round to nearest even on the bits. A subnormal half is a sum with 1/2, whose last place is that of subnormal halves;
// beyond the largest half carries make infinity.
Value BodyEmitter::RoundToF16(Value x) {
  Value bits = m_.Bits(x, m_.i32());
  MType t = bits.getType();
  Value magnitude = m_.And(bits, m_.I(t, 0x7FFFFFFF));
  Value odd = m_.And(m_.ShrU(magnitude, 13), m_.I(t, 1));
  Value rounded = m_.IAdd(m_.IAdd(magnitude, odd), m_.I(t, 0xFFF - (int64_t{127 - 15} << 23)));
  Value half = m_.F(x.getType(), 0.5);
  Value small = m_.ISub(m_.Bits(m_.Add(m_.Bits(magnitude, m_.f32()), half), m_.i32()), m_.Bits(half, m_.i32()));
  Value out = m_.Select(m_.Cmp(IPred::ult, magnitude, m_.I(t, 0x38800000)), small, m_.ShrU(rounded, 13));
  out = m_.Select(m_.Cmp(IPred::ult, magnitude, m_.I(t, 0x47800000)), out, m_.I(t, 0x7C00));
  Value quiet = m_.Or(m_.And(m_.ShrU(magnitude, 13), m_.I(t, 0x3FF)), m_.I(t, 0x7E00));
  out = m_.Select(m_.IsNan(x), quiet, out);
  return m_.TruncI(m_.Or(out, m_.And(m_.ShrU(bits, 16), m_.I(t, 0x8000))), m_.b.getI16Type());
}

// A product with 2^112 sets the exponent right, that of subnormal halves too; infinity and NaN keep all its bits.
Value BodyEmitter::ExtendF16(Value x) {
  Value bits = m_.ExtU(x, m_.i32());
  MType t = bits.getType();
  Value magnitude = m_.Shl(m_.And(bits, m_.I(t, 0x7FFF)), 13);
  Value finite = m_.Bits(magnitude, m_.f32());
  finite = m_.Bits(m_.Mul(finite, m_.F(finite.getType(), 0x1p112)), m_.i32());
  Value special = m_.Or(magnitude, m_.I(t, 0x7F800000));
  Value out = m_.Select(m_.Cmp(IPred::ult, magnitude, m_.I(t, 0x7C00 << 13)), finite, special);
  return m_.Bits(m_.Or(out, m_.Shl(m_.And(bits, m_.I(t, 0x8000)), 16)), m_.f32());
}

Lanes BodyEmitter::FromMemory(DType dtype, Value raw) {
  if (IsBool(dtype)) return {m_.Cmp(IPred::ne, raw, m_.I(raw.getType(), 0))};
  if (dtype == DType::kF16) return {m_.f16c ? m_.ExtF(raw, m_.f32()) : ExtendF16(raw)};
  if (dtype == DType::kBF16) return {m_.Bits(m_.Shl(m_.ExtU(raw, m_.i32()), 16), m_.f32())};
  if (!IsComplex(dtype)) return {raw};
  const int64_t n = m_.Lanes(raw) / 2;
  std::vector<int32_t> even, odd;
  for (int32_t i = 0; i < n; ++i) even.push_back(2 * i), odd.push_back(2 * i + 1);
  return {m_.Shuffle(raw, raw, even), m_.Shuffle(raw, raw, odd)};
}

Value BodyEmitter::ToMemory(DType dtype, Lanes v) {
  if (IsBool(dtype)) return m_.ExtU(v.re, m_.i8());
  if (dtype == DType::kF16) return m_.f16c ? m_.TruncF(v.re, m_.b.getF16Type()) : RoundToF16(v.re);
  if (dtype == DType::kBF16)
    return m_.bf16 ? m_.Bits(m_.TruncF(v.re, m_.b.getBF16Type()), m_.b.getI16Type()) : RoundToBF16(v.re);
  if (!IsComplex(dtype)) return v.re;
  const int64_t n = m_.Lanes(v.re);
  std::vector<int32_t> mixed;
  for (int32_t i = 0; i < n; ++i) mixed.push_back(i), mixed.push_back(static_cast<int32_t>(n) + i);
  return m_.Shuffle(v.re, v.im, mixed);
}

// Of an integer of 8 bits those that `dtype` has, as the number of 8 bits that it is.
Value BodyEmitter::KeepBits(DType dtype, Value x) {
  const int width = BitWidth(dtype);
  if (IsUnsigned(dtype)) return m_.And(x, m_.I(x.getType(), (1 << width) - 1));
  return m_.ShrS(m_.Shl(x, 8 - width), 8 - width);
}

Lanes BodyEmitter::Convert(DType from, DType to, Lanes v) {
  if (from == to) return v;
  if (IsFloat8(from)) return Convert(DType::kF32, to, Call("load_f8", from, {v}, DType::kF32));
  if (IsFloat8(to)) return Call("store_f8", to, {Convert(from, DType::kF32, v)}, to);
  MType t = Register(to);
  if (IsComplex(from)) {
    if (IsBool(to)) return {m_.Or(Convert(RealPart(from), to, {v.re}).re, Convert(RealPart(from), to, {v.im}).re)};
    if (!IsComplex(to)) return Convert(RealPart(from), to, {v.re});
    return {Convert(RealPart(from), RealPart(to), {v.re}).re, Convert(RealPart(from), RealPart(to), {v.im}).re};
  }
  if (IsComplex(to)) {
    Value re = Convert(from, RealPart(to), v).re;
    return {re, m_.F(re.getType(), 0)};
  }
  if (IsSmallInteger(from)) return Convert(ComputeType(from), to, v);
  if (IsSmallInteger(to)) {
    if (IsBool(from)) return Convert(from, ComputeType(to), v);
    if (IsFloat(from)) {  // what is out of range becomes the end of the range; NaN stays one, which becomes 0
      MType t = v.re.getType();
      const double ends = std::ldexp(1.0, BitWidth(to) - (IsSigned(to) ? 1 : 0));
      return Convert(from, ComputeType(to),
                     {m_.Min(m_.Max(v.re, m_.F(t, IsSigned(to) ? -ends : 0)), m_.F(t, ends - 1))});
    }
    return {KeepBits(to, Convert(from, ComputeType(to), v).re)};
  }
  if (IsFloat(from)) {
    Value x = v.re;
    if (to == DType::kBool) return {m_.Cmp(Pred::UNE, x, m_.F(x.getType(), 0))};
    if (IsInteger(to))
      return {Intrinsic(IsSigned(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat", m_.As(x.getType(), t), {x})};
    // Halves are rounded here, so that a conversion is never elided.
    if (to == DType::kF64) return {m_.Element(x).isF64() ? x : m_.ExtF(x, m_.f64())};
    if (m_.Element(x).isF64()) x = m_.TruncF(x, m_.f32());
    if (IsHalf(to)) x = FromMemory(to, ToMemory(to, {x})).re;
    return {x};
  }
  // From integers and bool.
  const bool is_signed = IsSigned(from);
  if (IsFloat(to)) {
    // Halves: rounded where they are stored.
    Value y = is_signed ? m_.IToF(v.re, t) : m_.UToF(v.re, t);
    return IsHalf(to) ? Convert(DType::kF32, to, {y}) : Lanes{y};
  }
  if (to == DType::kBool) return {m_.Cmp(IPred::ne, v.re, m_.I(v.re.getType(), 0))};
  const unsigned have = m_.Element(v.re).getIntOrFloatBitWidth(), want = t.getIntOrFloatBitWidth();
  if (have == want) return v;
  if (have > want) return {m_.TruncI(v.re, t)};
  return {is_signed ? m_.ExtS(v.re, t) : m_.ExtU(v.re, t)};
}

Value BodyEmitter::Compare(Comparison how, DType dtype, const Lanes& x, const Lanes& y) {
  struct Row {
    Pred of_floats;
    IPred of_signed, of_unsigned;
  };
  static constexpr Row kRows[] = {
      {Pred::OEQ, IPred::eq, IPred::eq},   {Pred::UNE, IPred::ne, IPred::ne},   {Pred::OLT, IPred::slt, IPred::ult},
      {Pred::OLE, IPred::sle, IPred::ule}, {Pred::OGT, IPred::sgt, IPred::ugt}, {Pred::OGE, IPred::sge, IPred::uge},
  };
  if (IsFloat8(dtype)) return Compare(how, DType::kF32, Convert(dtype, DType::kF32, x), Convert(dtype, DType::kF32, y));
  const Row& row = kRows[static_cast<int>(how)];
  if (IsComplex(dtype)) {  // which have no order
    if (how == Comparison::kEq) return m_.And(m_.Cmp(Pred::OEQ, x.re, y.re), m_.Cmp(Pred::OEQ, x.im, y.im));
    return m_.Or(m_.Cmp(Pred::UNE, x.re, y.re), m_.Cmp(Pred::UNE, x.im, y.im));
  }
  if (IsFloat(dtype)) return m_.Cmp(row.of_floats, x.re, y.re);
  return m_.Cmp(IsSigned(dtype) ? row.of_signed : row.of_unsigned, x.re, y.re);
}

// By repeated squaring; the exponent is a constant.
Value BodyEmitter::IntegerPower(Value x, int64_t n) {
  const bool is_float = mlir::isa<mlir::FloatType>(m_.Element(x));
  auto mul = [&](Value a, Value b) { return is_float ? m_.MulForSum(a, b) : m_.IMul(a, b); };
  if (n == 0) return is_float ? m_.F(x.getType(), 1) : m_.I(x.getType(), 1);
  Value result, base = x;
  for (uint64_t k = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n); k != 0; k >>= 1) {
    if (k & 1) result = result ? mul(result, base) : base;
    if (k > 1) base = mul(base, base);
  }
  return n < 0 ? m_.Div(m_.F(x.getType(), 1), result) : result;
}

// On the bits as they are in memory: what the neighbour of a number is depends on its own precision.
Value BodyEmitter::NextAfter(DType dtype, Value x, Value towards) {
  Value from = ToMemory(dtype, {x}), to = ToMemory(dtype, {towards});
  x = FromMemory(dtype, from).re, towards = FromMemory(dtype, to).re;
  MType word = m_.b.getIntegerType(m_.Element(from).getIntOrFloatBitWidth());
  const int sign_at = static_cast<int>(word.getIntOrFloatBitWidth()) - 1;
  auto bits_of = [&](Value v) { return m_.Element(v) == word ? v : m_.Bits(v, word); };
  Value bits = bits_of(from), goal = bits_of(to);
  auto c = [&](int64_t v) { return m_.I(bits.getType(), v); };
  Value zero = m_.F(x.getType(), 0);
  // Away from zero the bits count up, on both sides of it.
  Value away = m_.Xor(m_.Cmp(Pred::OLT, x, towards), m_.Cmp(Pred::OLT, x, zero));
  Value next = m_.IAdd(bits, m_.Select(away, c(1), c(-1)));
  Value sign = m_.Shl(m_.ShrU(goal, sign_at), sign_at);
  next = m_.Select(m_.Cmp(Pred::OEQ, x, zero), m_.Or(sign, c(1)), next);
  next = m_.Select(m_.Cmp(Pred::OEQ, x, towards), goal, next);
  next = m_.Select(m_.IsNan(towards), goal, next);
  next = m_.Select(m_.IsNan(x), bits, next);
  MType memory = Memory(dtype);
  return FromMemory(dtype, memory == word ? next : m_.Bits(next, memory)).re;
}

Lanes BodyEmitter::Op(const KernelNode& node, const std::vector<DType>& dtypes, std::vector<Lanes> x) {
  int64_t lanes = 0;
  for (const Lanes& v : x) lanes = std::max(lanes, m_.Lanes(v.re));
  for (Lanes& v : x) v = Splat(v, lanes);
  const ScalarOp& row = ScalarOpOf(FindPrim(node.op));
  const DType dtype = dtypes[0];
  const ScalarOpArgs args{*this, m_, node, dtypes, x, BitWidth(dtype)};
  if (row.any != nullptr) return row.any(args);
  if (IsSmallInteger(dtype)) return SmallIntegerOp(row, node, dtype, x);
  if (IsFloat8(dtype)) {  // through f32, and rounded once
    KernelNode wide;
    wide.op = node.op;
    wide.integer = node.integer;
    wide.dtype = IsFloat8(node.dtype) ? DType::kF32 : node.dtype;
    for (Lanes& v : x) v = Convert(dtype, DType::kF32, v);
    return Convert(wide.dtype, node.dtype, Op(wide, std::vector<DType>(x.size(), DType::kF32), x));
  }
  if (IsFloat(dtype) && !row.on_float) return Function(row, args);
  if (dtype == DType::kC64 && row.complex_by_f64 != nullptr && node.integer == 0 && !native_) return ByF64(row, args);
  const ScalarOp::Emit emit = IsComplex(dtype) ? row.on_complex : IsFloat(dtype) ? row.on_float : row.on_integer;
  return emit != nullptr ? emit(args) : Call(node.op, dtype, x, node.dtype);
}

// In 8 bits, of whose results the low bits are kept.
Lanes BodyEmitter::SmallIntegerOp(const ScalarOp& row, const KernelNode& node, DType dtype, std::vector<Lanes> x) {
  DType wide = ComputeType(dtype);
  if (row.of_bits && IsSigned(dtype)) {
    wide = DType::kU8;
    for (Lanes& v : x) v.re = m_.And(v.re, m_.I(v.re.getType(), (1 << BitWidth(dtype)) - 1));
  }
  KernelNode in_wide;
  in_wide.op = node.op;
  in_wide.integer = node.integer;
  in_wide.dtype = node.dtype == dtype ? wide : node.dtype;
  const std::vector<DType> dtypes(x.size(), wide);
  const Lanes y = row.on_integer != nullptr
                      ? row.on_integer(ScalarOpArgs{*this, m_, in_wide, dtypes, x, BitWidth(dtype)})
                      : Call(node.op, wide, x, in_wide.dtype);
  return Convert(in_wide.dtype, node.dtype, y);
}

// Of floats: what the target has itself, or vector code, or the library.
Lanes BodyEmitter::Function(const ScalarOp& row, const ScalarOpArgs& a) {
  const std::string& op = a.node.op;
  const DType wide = a.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  std::vector<Value> operands;
  for (const Lanes& v : a.in) operands.push_back(v.re);
  if (native_) {
    if (row.on_device != nullptr) {
      if (const Lanes v = row.on_device(a); v.re) return v;
    } else if (row.device != nullptr) {
      if (Value v = native_(row.device, operands)) return {v};
    }
  } else if (row.number_asks_library && a.node.integer != 0) {
    return Call(op, wide, a.in, wide);  // a GPU has no C library: libdevice's above, or the vector code
  }
  if (row.vector == nullptr) return Call(op, wide, a.in, wide);
  VectorMath math = Math();
  return {row.vector(math, operands)};
}

// Of complex numbers of 64 bits.
Lanes BodyEmitter::ByF64(const ScalarOp& row, const ScalarOpArgs& a) {
  std::vector<ComplexLanes> x;
  Value special;
  const auto note = [&](Value v) { special = special ? m_.Or(special, v) : v; };
  for (const Lanes& v : a.in) {
    x.emplace_back(m_.ExtF(v.re, m_.f64()), m_.ExtF(v.im, m_.f64()));
    Value inf = m_.F(v.re.getType(), std::numeric_limits<double>::infinity());
    for (Value part : {v.re, v.im}) note(m_.Not(m_.Cmp(Pred::OLT, m_.Abs(part), inf)));
  }
  if (row.nonzero >= 0) {
    const Lanes& v = a.in[static_cast<size_t>(row.nonzero)];
    Value zero = m_.F(v.re.getType(), 0);
    note(m_.And(m_.Cmp(Pred::OEQ, v.re, zero), m_.Cmp(Pred::OEQ, v.im, zero)));
  }
  VectorMath math = Math();
  const bool pair = IsComplex(a.node.dtype);
  const std::vector<MType> types(pair ? 2 : 1, a.x().getType());
  auto branch = m_.b.create<scf::IfOp>(m_.loc, mlir::TypeRange(types), math.AnyLane(special), /*withElseRegion=*/true);
  const auto yield = [&](Value re, Value im) {
    std::vector<Value> values = {re};
    if (pair) values.push_back(im);
    m_.b.create<scf::YieldOp>(m_.loc, values);
  };
  mlir::OpBuilder::InsertionGuard guard(m_.b);
  m_.b.setInsertionPointToStart(branch.thenBlock());
  const Lanes called = Call(a.node.op, a.dtype(), a.in, a.node.dtype);
  yield(called.re, called.im);
  m_.b.setInsertionPointToStart(branch.elseBlock());
  const auto [re, im] = row.complex_by_f64(math, x);
  yield(m_.TruncF(re, m_.f32()), pair ? m_.TruncF(im, m_.f32()) : Value());
  return {branch.getResult(0), pair ? branch.getResult(1) : Value()};
}

VectorMath BodyEmitter::Math() {
  return VectorMath(m_, [this](const std::string& name, const std::vector<Value>& v) {
    // Functions of f32 that are computed in f64 call functions of f64.
    const DType dtype = m_.Element(v[0]).isF64() ? DType::kF64 : DType::kF32;
    std::vector<Lanes> lanes;
    for (Value e : v) lanes.push_back({e});
    return Call(name, dtype, lanes, dtype).re;
  });
}

const char* BodyEmitter::Beside(const KernelNode& node, DType dtype) const {
  if (native_ || !IsFloat(dtype) || IsStored(dtype)) return nullptr;
  return ScalarOpOf(FindPrim(node.op)).beside;
}

std::pair<Lanes, Lanes> BodyEmitter::Both(const KernelNode& node, const Lanes& x) {
  VectorMath math = Math();
  const auto [first, second] = ScalarOpOf(FindPrim(node.op)).both(math, x.re);
  return {Lanes{first}, Lanes{second}};
}

Lanes BodyEmitter::Neutral(const std::string& op, DType dtype, int64_t lanes) {
  const Start start = ReductionOf(op).start;
  MType t = m_.Vector(lanes, Register(dtype));
  if (IsInexact(dtype)) {
    const double inf = std::numeric_limits<double>::infinity();
    const double v = start == Start::kOne ? 1 : start == Start::kLeast ? -inf : start == Start::kLargest ? inf : 0;
    Lanes out{m_.F(t, v)};
    if (IsComplex(dtype)) out.im = m_.F(t, 0);
    return out;
  }
  const int width = IsBool(dtype) ? 1 : BitWidth(dtype);
  const auto ones = static_cast<int64_t>(IsSigned(dtype) ? ~uint64_t{0} : ~uint64_t{0} >> (64 - width));
  switch (start) {
    case Start::kOnes: return {m_.I(t, ones)};
    case Start::kOne: return {m_.I(t, 1)};
    case Start::kLeast: return {m_.I(t, IsSigned(dtype) ? INT64_MIN >> (64 - width) : 0)};
    case Start::kLargest: return {m_.I(t, IsSigned(dtype) ? static_cast<int64_t>(~uint64_t{0} >> (65 - width)) : ones)};
    case Start::kZero: break;
  }
  return {m_.I(t, 0)};
}

Lanes BodyEmitter::Combine(const std::string& op, DType dtype, Lanes a, Lanes b) {
  const ReductionRow& row = ReductionOf(op);
  if (row.fused && IsInexact(dtype) && (native_ || (!b.im && IsExactProduct(b.re)))) {
    if (!IsComplex(dtype)) return {m_.AddToSum(a.re, b.re)};
    return {m_.AddToSum(a.re, b.re), m_.AddToSum(a.im, b.im)};
  }
  KernelNode node;
  node.dtype = dtype;
  node.op = IsBool(dtype) ? row.of_bools : row.step;
  return Op(node, {dtype, dtype}, {a, b});
}

Lanes BodyEmitter::NeutralPair(const std::string& op, DType value, DType index) {
  MType t = Register(index);
  return {Neutral(op.substr(3), value, 0).re, m_.I(t, INT64_MAX >> (64 - t.getIntOrFloatBitWidth()))};
}

Lanes BodyEmitter::CombinePairs(const std::string& op, DType value, DType index, const Lanes& a, const Lanes& b) {
  const bool largest = ReductionOf(op.substr(3)).start == Start::kLeast;
  Value before = Compare(Comparison::kLt, index, {b.im}, {a.im});
  Value same = m_.And(Compare(Comparison::kEq, value, {b.re}, {a.re}), before);
  Value takes = m_.Or(Compare(largest ? Comparison::kGt : Comparison::kLt, value, {b.re}, {a.re}), same);
  // A NaN is equal to nothing and larger than nothing, so that this alone decides where there is one.
  if (IsFloat(value)) takes = m_.Or(takes, m_.And(m_.IsNan(b.re), m_.Or(before, m_.Cmp(Pred::ORD, a.re, a.re))));
  return Select(takes, b, a);
}

}  // namespace weft
