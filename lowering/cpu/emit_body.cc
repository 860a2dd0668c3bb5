#include "lowering/cpu/mlir/emit_body.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "ir/error.h"

namespace weft {
namespace {

bool IsComparison(const std::string& op) {
  return op == "eq" || op == "ne" || op == "lt" || op == "le" || op == "gt" || op == "ge";
}
bool IsHalf(DType t) { return t == DType::kF16 || t == DType::kBF16; }

}  // namespace

MType BodyEmitter::Register(DType dtype) {
  switch (dtype) {
    case DType::kBool: return m_.i1();
    case DType::kI8:
    case DType::kU8:
    case DType::kF8E4M3FN:
    case DType::kF8E5M2: return m_.i8();
    case DType::kI16:
    case DType::kU16: return m_.b.getI16Type();
    case DType::kI32:
    case DType::kU32: return m_.i32();
    case DType::kI64:
    case DType::kU64:
    case DType::kKey:
    case DType::kTape: return m_.i64();
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
    case DType::kC64: return m_.f32();
    case DType::kF64:
    case DType::kC128: return m_.f64();
  }
  return {};
}

MType BodyEmitter::Memory(DType dtype) {
  switch (dtype) {
    case DType::kBool: return m_.i8();
    case DType::kF16: return m_.f16c ? MType(m_.b.getF16Type()) : MType(m_.b.getI16Type());
    case DType::kBF16: return m_.b.getI16Type();
    default: return Register(dtype);
  }
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
  switch (dtype) {
    case DType::kBool: return {m_.Cmp(IPred::ne, raw, m_.I(raw.getType(), 0))};
    case DType::kF16: return {m_.f16c ? m_.ExtF(raw, m_.f32()) : ExtendF16(raw)};
    case DType::kBF16: return {m_.Bits(m_.Shl(m_.ExtU(raw, m_.i32()), 16), m_.f32())};
    case DType::kC64:
    case DType::kC128: {
      const int64_t n = m_.Lanes(raw) / 2;
      std::vector<int32_t> even, odd;
      for (int32_t i = 0; i < n; ++i) even.push_back(2 * i), odd.push_back(2 * i + 1);
      return {m_.Shuffle(raw, raw, even), m_.Shuffle(raw, raw, odd)};
    }
    default: return {raw};
  }
}

Value BodyEmitter::ToMemory(DType dtype, Lanes v) {
  switch (dtype) {
    case DType::kBool: return m_.ExtU(v.re, m_.i8());
    case DType::kF16: return m_.f16c ? m_.TruncF(v.re, m_.b.getF16Type()) : RoundToF16(v.re);
    case DType::kBF16: return RoundToBF16(v.re);
    case DType::kC64:
    case DType::kC128: {
      const int64_t n = m_.Lanes(v.re);
      std::vector<int32_t> mixed;
      for (int32_t i = 0; i < n; ++i) mixed.push_back(i), mixed.push_back(static_cast<int32_t>(n) + i);
      return m_.Shuffle(v.re, v.im, mixed);
    }
    default: return v.re;
  }
}

Lanes BodyEmitter::Convert(DType from, DType to, Lanes v) {
  if (from == to) return v;
  if (IsFloat8(from)) return Convert(DType::kF32, to, Call("load_f8", from, {v}, DType::kF32));
  if (IsFloat8(to)) return Call("store_f8", to, {Convert(from, DType::kF32, v)}, to);
  MType t = Register(to);
  if (IsComplex(from)) {
    if (!IsComplex(to)) return Convert(RealPart(from), to, {v.re});
    return {Convert(RealPart(from), RealPart(to), {v.re}).re, Convert(RealPart(from), RealPart(to), {v.im}).re};
  }
  if (IsComplex(to)) {
    Value re = Convert(from, RealPart(to), v).re;
    return {re, m_.F(re.getType(), 0)};
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

Value BodyEmitter::Compare(const std::string& op, DType dtype, const Lanes& x, const Lanes& y) {
  if (IsFloat8(dtype)) return Compare(op, DType::kF32, Convert(dtype, DType::kF32, x), Convert(dtype, DType::kF32, y));
  if (IsComplex(dtype)) {
    if (op == "eq") return m_.And(m_.Cmp(Pred::OEQ, x.re, y.re), m_.Cmp(Pred::OEQ, x.im, y.im));
    return m_.Or(m_.Cmp(Pred::UNE, x.re, y.re), m_.Cmp(Pred::UNE, x.im, y.im));
  }
  if (IsFloat(dtype)) {
    const Pred p = op == "eq"   ? Pred::OEQ
                   : op == "ne" ? Pred::UNE
                   : op == "lt" ? Pred::OLT
                   : op == "le" ? Pred::OLE
                   : op == "gt" ? Pred::OGT
                                : Pred::OGE;
    return m_.Cmp(p, x.re, y.re);
  }
  const bool s = IsSigned(dtype);
  const IPred p = op == "eq"   ? IPred::eq
                  : op == "ne" ? IPred::ne
                  : op == "lt" ? (s ? IPred::slt : IPred::ult)
                  : op == "le" ? (s ? IPred::sle : IPred::ule)
                  : op == "gt" ? (s ? IPred::sgt : IPred::ugt)
                               : (s ? IPred::sge : IPred::uge);
  return m_.Cmp(p, x.re, y.re);
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
  const std::string& op = node.op;
  if (op == "convert") return Convert(dtypes[0], node.dtype, x[0]);
  if (op == "identity" || op == "stop_gradient") return x[0];
  if (op == "select") return Select(x[0].re, x[1], x[2]);
  if (op == "complex") return {x[0].re, x[1].re};
  if (op == "bitcast") {
    // Through the type in memory: halves live in wider registers.
    Value raw = ToMemory(dtypes[0], x[0]);
    MType to = Memory(node.dtype);
    return FromMemory(node.dtype, m_.Element(raw) == to ? raw : m_.Bits(raw, to));
  }
  if (IsComparison(op)) return {Compare(op, dtypes[0], x[0], x[1])};
  if (IsComplex(dtypes[0])) return Complex(node, dtypes[0], x);
  if (IsFloat(dtypes[0])) return Float(node, dtypes[0], x);
  return Integer(node, dtypes[0], x);
}

Lanes BodyEmitter::Float(const KernelNode& node, DType dtype, const std::vector<Lanes>& in) {
  const std::string& op = node.op;
  const DType wide = dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  Value x = in[0].re, y = in.size() > 1 ? in[1].re : Value();
  auto c = [&](double v) { return m_.F(x.getType(), v); };
  if (op == "neg") return {m_.Neg(x)};
  if (op == "abs") return {m_.Abs(x)};
  if (op == "add") return {node.integer != 0 ? m_.AddToSum(x, y) : m_.Add(x, y)};
  if (op == "sub") return {node.integer != 0 ? m_.SubFromSum(x, y) : m_.Sub(x, y)};
  if (op == "mul") return {m_.MulForSum(x, y)};
  if (op == "div") return {m_.Div(x, y)};
  if (op == "max") return {m_.Max(x, y)};
  if (op == "min") return {m_.Min(x, y)};
  if (op == "clamp") return {m_.Min(m_.Max(y, x), in[2].re)};
  if (op == "square") return {m_.MulForSum(x, x)};
  if (op == "sqrt") return {m_.Sqrt(x)};
  if (op == "rsqrt") return {m_.Div(c(1), m_.Sqrt(x))};
  if (op == "integer_pow") return {IntegerPower(x, node.integer)};
  if (op == "floor") return {m_.Make<math::FloorOp>(x)};
  if (op == "ceil") return {m_.Make<math::CeilOp>(x)};
  if (op == "trunc") return {m_.Make<math::TruncOp>(x)};
  if (op == "round" && node.integer == 0) return {m_.RoundEven(x)};
  if (op == "round") {
    // trunc(x), one further out when the rest is half or more.
    Value t = m_.Make<math::TruncOp>(x);
    Value far = m_.Cmp(Pred::OGE, m_.Abs(m_.Sub(x, t)), c(0.5));
    return {m_.CopySign(m_.Add(t, m_.Select(far, m_.CopySign(c(1), x), c(0))), x)};
  }
  if (op == "sign") {
    Value unit = m_.CopySign(c(1), x);
    return {m_.Select(m_.Or(m_.IsNan(x), m_.Cmp(Pred::OEQ, x, c(0))), x, unit)};
  }
  if (op == "is_finite") return {m_.Cmp(Pred::OLT, m_.Abs(x), c(std::numeric_limits<double>::infinity()))};
  if (op == "real" || op == "conj") return {x};
  if (op == "imag") return {c(0)};
  if (op == "nextafter") return {NextAfter(dtype, x, y)};
  if (native_) {
    std::vector<Value> operands = {x};
    if (y) operands.push_back(y);
    if (Value v = native_(op, operands)) return {v};
  } else if (op == "log" && node.integer != 0) {
    return Call(op, wide, in, wide);  // a GPU has no C library: libdevice's above, or the vector code
  }
  VectorMath math(m_, [&](const std::string& name, const std::vector<Value>& v) {
    std::vector<Lanes> lanes;
    for (Value e : v) lanes.push_back({e});
    return Call(name, wide, lanes, wide).re;
  });
  if (Value inlined = in.size() == 1 ? math.Unary(op, x) : math.Binary(op, x, y)) return {inlined};
  return Call(op, wide, in, wide);
}

Lanes BodyEmitter::Integer(const KernelNode& node, DType dtype, const std::vector<Lanes>& in) {
  const std::string& op = node.op;
  Value x = in[0].re, y = in.size() > 1 ? in[1].re : Value();
  MType t = x.getType();
  const bool is_signed = IsSigned(dtype);
  const int width = static_cast<int>(m_.Element(x).getIntOrFloatBitWidth());
  auto c = [&](int64_t v) { return m_.I(t, v); };
  auto greater = [&](Value a, Value b) { return m_.Cmp(is_signed ? IPred::sgt : IPred::ugt, a, b); };
  if (op == "add") return {m_.IAdd(x, y)};
  if (op == "sub") return {m_.ISub(x, y)};
  if (op == "mul") return {m_.IMul(x, y)};
  if (op == "square") return {m_.IMul(x, x)};
  if (op == "neg") return {m_.ISub(c(0), x)};
  if (op == "and") return {m_.And(x, y)};
  if (op == "or") return {m_.Or(x, y)};
  if (op == "xor") return {m_.Xor(x, y)};
  if (op == "not") return {m_.Not(x)};
  if (op == "max") return {m_.Select(greater(x, y), x, y)};
  if (op == "min") return {m_.Select(greater(x, y), y, x)};
  if (op == "clamp") {
    Value lo = x, hi = in[2].re;
    Value raised = m_.Select(greater(y, lo), y, lo);
    return {m_.Select(greater(raised, hi), hi, raised)};
  }
  if (op == "abs") return {is_signed ? m_.Select(greater(c(0), x), m_.ISub(c(0), x), x) : x};
  if (op == "sign") {
    Value positive = m_.ExtU(greater(x, c(0)), m_.Element(x));
    return {is_signed ? m_.ISub(positive, m_.ExtU(greater(c(0), x), m_.Element(x))) : positive};
  }
  if (op == "population_count") return {m_.Make<math::CtPopOp>(x)};
  if (op == "clz") return {m_.Make<math::CountLeadingZerosOp>(x)};
  if (op == "integer_pow") {
    if (node.integer >= 0) return {IntegerPower(x, node.integer)};
    // 1 / x^n, truncated: only 1 and -1 have one that is not 0.
    Value minus = m_.I(t, node.integer % 2 ? -1 : 1);
    Value result = m_.Select(m_.Cmp(IPred::eq, x, c(1)), c(1), c(0));
    return {is_signed ? m_.Select(m_.Cmp(IPred::eq, x, c(-1)), minus, result) : result};
  }
  if (op == "div" || op == "rem") {
    // The machine traps on x/0 and on min/-1.
    Value zero = m_.Cmp(IPred::eq, y, c(0));
    Value safe = m_.Select(zero, c(1), y);
    Value minus;
    if (is_signed) {
      minus = m_.Cmp(IPred::eq, y, c(-1));
      safe = m_.Select(minus, c(1), safe);
    }
    if (op == "div") {
      Value q = is_signed ? m_.Make<arith::DivSIOp>(x, safe) : m_.Make<arith::DivUIOp>(x, safe);
      if (is_signed) q = m_.Select(minus, m_.ISub(c(0), x), q);
      return {m_.Select(zero, c(-1), q)};
    }
    Value r = is_signed ? m_.Make<arith::RemSIOp>(x, safe) : m_.Make<arith::RemUIOp>(x, safe);
    return {m_.Select(zero, x, r)};
  }
  if (op == "shift_left" || op == "shift_right_logical" || op == "shift_right_arithmetic") {
    Value inside = m_.Cmp(IPred::ult, y, c(width));
    Value by = m_.Select(inside, y, c(op == "shift_right_arithmetic" ? width - 1 : 0));
    if (op == "shift_left") return {m_.Select(inside, m_.Make<arith::ShLIOp>(x, by), c(0))};
    if (op == "shift_right_logical") return {m_.Select(inside, m_.Make<arith::ShRUIOp>(x, by), c(0))};
    // Unsigned numbers have no sign to copy.
    if (!is_signed) return {m_.Select(inside, m_.Make<arith::ShRUIOp>(x, by), c(0))};
    return {m_.Make<arith::ShRSIOp>(x, by)};
  }
  if (op == "real" || op == "conj") return {x};
  return Call(op, dtype, in, node.dtype);
}

Lanes BodyEmitter::Complex(const KernelNode& node, DType dtype, const std::vector<Lanes>& in) {
  const std::string& op = node.op;
  const Lanes& x = in[0];
  auto mul = [&](const Lanes& a, const Lanes& b) -> Lanes {
    return {m_.Sub(m_.Mul(a.re, b.re), m_.Mul(a.im, b.im)), m_.Add(m_.Mul(a.re, b.im), m_.Mul(a.im, b.re))};
  };
  if (op == "add") return {m_.Add(x.re, in[1].re), m_.Add(x.im, in[1].im)};
  if (op == "sub") return {m_.Sub(x.re, in[1].re), m_.Sub(x.im, in[1].im)};
  if (op == "mul") return mul(x, in[1]);
  if (op == "square") return mul(x, x);
  if (op == "neg") return {m_.Neg(x.re), m_.Neg(x.im)};
  if (op == "conj") return {x.re, m_.Neg(x.im)};
  if (op == "real") return {x.re};
  if (op == "imag") return {x.im};
  if (op == "integer_pow") {
    const Lanes one{m_.F(x.re.getType(), 1), m_.F(x.re.getType(), 0)};
    Lanes result = one, base = x;
    bool first = true;  // 1 * x is not x where complex x is infinite
    for (uint64_t k = node.integer < 0 ? 0 - static_cast<uint64_t>(node.integer) : static_cast<uint64_t>(node.integer);
         k != 0; k >>= 1) {
      if (k & 1) result = std::exchange(first, false) ? base : mul(result, base);
      if (k > 1) base = mul(base, base);
    }
    if (node.integer >= 0) return result;
    return Call("div", dtype, {one, result}, dtype);
  }
  return Call(op, dtype, in, node.dtype);
}

Lanes BodyEmitter::Neutral(const std::string& op, DType dtype, int64_t lanes) {
  MType t = m_.Vector(lanes, Register(dtype));
  if (IsInexact(dtype)) {
    const double inf = std::numeric_limits<double>::infinity();
    const double v = op == "prod" ? 1 : op == "max" ? -inf : op == "min" ? inf : 0;
    Lanes out{m_.F(t, v)};
    if (IsComplex(dtype)) out.im = m_.F(t, 0);
    return out;
  }
  const int width = static_cast<int>(Register(dtype).getIntOrFloatBitWidth());
  if (op == "and") return {m_.I(t, -1)};
  if (op == "prod") return {m_.I(t, 1)};
  if (op == "max") return {m_.I(t, IsSigned(dtype) ? INT64_MIN >> (64 - width) : 0)};
  if (op == "min") return {m_.I(t, IsSigned(dtype) ? static_cast<int64_t>(~uint64_t{0} >> (65 - width)) : -1)};
  return {m_.I(t, 0)};
}

Lanes BodyEmitter::Combine(const std::string& op, DType dtype, Lanes a, Lanes b) {
  if (op == "sum" && IsInexact(dtype)) {
    if (!IsComplex(dtype)) return {m_.AddToSum(a.re, b.re)};
    return {m_.AddToSum(a.re, b.re), m_.AddToSum(a.im, b.im)};
  }
  KernelNode node;
  node.dtype = dtype;
  node.op = op == "sum" ? "add" : op == "prod" ? "mul" : op;
  if (dtype == DType::kBool) {
    if (op == "max" || op == "sum") node.op = "or";
    if (op == "min" || op == "prod") node.op = "and";
  }
  return Op(node, {dtype, dtype}, {a, b});
}

Lanes BodyEmitter::NeutralPair(const std::string& op, DType value, DType index) {
  MType t = Register(index);
  return {Neutral(op.substr(3), value, 0).re, m_.I(t, INT64_MAX >> (64 - t.getIntOrFloatBitWidth()))};
}

Lanes BodyEmitter::CombinePairs(const std::string& op, DType value, DType index, const Lanes& a, const Lanes& b) {
  Value before = Compare("lt", index, {b.im}, {a.im});
  Value same = m_.And(Compare("eq", value, {b.re}, {a.re}), before);
  Value takes = m_.Or(Compare(op == "argmax" ? "gt" : "lt", value, {b.re}, {a.re}), same);
  // A NaN is equal to nothing and larger than nothing, so that this alone decides where there is one.
  if (IsFloat(value)) takes = m_.Or(takes, m_.And(m_.IsNan(b.re), m_.Or(before, m_.Cmp(Pred::ORD, a.re, a.re))));
  return Select(takes, b, a);
}

}  // namespace weft
