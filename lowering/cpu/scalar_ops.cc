// One row per element-wise operation: how it is computed on values in registers, for CPUs and GPUs. An operation that
// is a formula of others needs this row alone; one that is not has a function in vector_math.cc, or no row here and one
// of lowering/abi/math_table.h.
#include "lowering/cpu/mlir/scalar_ops.h"

#include <limits>
#include <numbers>
#include <utility>

#include "ir/prim_table.h"
#include "lowering/abi/math_table.h"
#include "lowering/cpu/scalar_code.h"

namespace weft {
namespace {

using Args = ScalarOpArgs;

template <Value (VectorMath::*kFunction)(Value)>
Value One(VectorMath& math, const std::vector<Value>& x) {
  return (math.*kFunction)(x[0]);
}
template <Value (VectorMath::*kFunction)(Value, Value)>
Value Two(VectorMath& math, const std::vector<Value>& x) {
  return (math.*kFunction)(x[0], x[1]);
}

template <ComplexLanes (*kFunction)(VectorMath&, const ComplexLanes&)>
ComplexLanes OneComplex(VectorMath& math, const std::vector<ComplexLanes>& x) {
  return kFunction(math, x[0]);
}
template <ComplexLanes (*kFunction)(VectorMath&, const ComplexLanes&, const ComplexLanes&)>
ComplexLanes TwoComplex(VectorMath& math, const std::vector<ComplexLanes>& x) {
  return kFunction(math, x[0], x[1]);
}

template <class Operation>
Lanes Make(const Args& a) {
  return {a.m.Make<Operation>(a.x())};
}

template <Comparison kHow>
Lanes Compared(const Args& a) {
  return {a.body.Compare(kHow, a.dtype(), a.in[0], a.in[1])};
}

Lanes Itself(const Args& a) { return {a.x()}; }

Lanes Bitcast(const Args& a) {
  // Through the type in memory: halves live in wider registers.
  Value raw = a.body.ToMemory(a.dtype(), a.in[0]);
  MType to = a.body.Memory(a.node.dtype);
  return a.body.FromMemory(a.node.dtype, a.m.Element(raw) == to ? raw : a.m.Bits(raw, to));
}

// --- Floats ----------------------------------------------------------------------------------------------------------

Lanes Round(const Args& a) {
  if (a.node.integer == 0) return {a.m.RoundEven(a.x())};
  // trunc(x), one further out when the rest is half or more.
  Value t = a.m.Make<math::TruncOp>(a.x());
  Value far = a.m.Cmp(Pred::OGE, a.m.Abs(a.m.Sub(a.x(), t)), a.F(0.5));
  return {a.m.CopySign(a.m.Add(t, a.m.Select(far, a.m.CopySign(a.F(1), a.x()), a.F(0))), a.x())};
}

Lanes SignOfFloat(const Args& a) {
  Value unit = a.m.CopySign(a.F(1), a.x());
  return {a.m.Select(a.m.Or(a.m.IsNan(a.x()), a.m.Cmp(Pred::OEQ, a.x(), a.F(0))), a.x(), unit)};
}

Lanes IsFinite(const Args& a) {
  return {a.m.Cmp(Pred::OLT, a.m.Abs(a.x()), a.F(std::numeric_limits<double>::infinity()))};
}

Lanes LogisticOnDevice(const Args& a) {
  Value e = a.body.Device("exp", {a.m.Neg(a.x())});
  if (!e) return {};
  Value one = a.F(1);
  return {a.Quotient(one, a.m.Add(one, e))};
}

Lanes NormalCdfOnDevice(const Args& a) {
  if (!a.body.Device("erfc", {a.x()})) return {};
  return {VectorMath(a.m, nullptr).NormalCdfBy(a.x(), [&](Value z) { return a.body.Device("erfc", {z}); })};
}

// --- Integers --------------------------------------------------------------------------------------------------------

Value Greater(const Args& a, Value x, Value y) { return a.m.Cmp(IsSigned(a.dtype()) ? IPred::sgt : IPred::ugt, x, y); }

Lanes MaxOfIntegers(const Args& a) { return {a.m.Select(Greater(a, a.x(), a.y()), a.x(), a.y())}; }
Lanes MinOfIntegers(const Args& a) { return {a.m.Select(Greater(a, a.x(), a.y()), a.y(), a.x())}; }

Lanes ClampIntegers(const Args& a) {
  Value lo = a.x(), x = a.y(), hi = a.in[2].re;
  Value raised = a.m.Select(Greater(a, x, lo), x, lo);
  return {a.m.Select(Greater(a, raised, hi), hi, raised)};
}

Lanes AbsOfIntegers(const Args& a) {
  if (!IsSigned(a.dtype())) return {a.x()};
  return {a.m.Select(Greater(a, a.I(0), a.x()), a.m.ISub(a.I(0), a.x()), a.x())};
}

Lanes SignOfIntegers(const Args& a) {
  Value positive = a.m.ExtU(Greater(a, a.x(), a.I(0)), a.m.Element(a.x()));
  if (!IsSigned(a.dtype())) return {positive};
  return {a.m.ISub(positive, a.m.ExtU(Greater(a, a.I(0), a.x()), a.m.Element(a.x())))};
}

Lanes PowerOfIntegers(const Args& a) {
  const int64_t n = a.node.integer;
  if (n >= 0) return {a.body.IntegerPower(a.x(), n)};
  // 1 / x^n, truncated: only 1 and -1 have one that is not 0.
  Value minus = a.I(n % 2 ? -1 : 1);
  Value result = a.m.Select(a.m.Cmp(IPred::eq, a.x(), a.I(1)), a.I(1), a.I(0));
  return {IsSigned(a.dtype()) ? a.m.Select(a.m.Cmp(IPred::eq, a.x(), a.I(-1)), minus, result) : result};
}

// By repeated squaring, as many times as the largest exponent of the vector has bits.
Lanes PowerOfIntegersByIntegers(const Args& a) {
  MlirBuilder& m = a.m;
  VectorMath math(m, nullptr);
  const bool is_signed = IsSigned(a.dtype());
  Value zero = a.I(0), one = a.I(1), negative;
  Value n = a.y();
  if (is_signed) {
    negative = m.Cmp(IPred::slt, n, zero);
    n = m.Select(negative, zero, n);
  }
  const std::vector<MType> types(3, a.x().getType());
  auto loop = m.b.create<scf::WhileOp>(
      m.loc, mlir::TypeRange(types), mlir::ValueRange{one, a.x(), n},
      [&](mlir::OpBuilder& b, mlir::Location loc, mlir::ValueRange v) {
        b.create<scf::ConditionOp>(loc, math.AnyLane(m.Cmp(IPred::ne, v[2], zero)), v);
      },
      [&](mlir::OpBuilder& b, mlir::Location loc, mlir::ValueRange v) {
        Value odd = m.Cmp(IPred::ne, m.And(v[2], one), zero);
        b.create<scf::YieldOp>(
            loc, std::vector<Value>{m.Select(odd, m.IMul(v[0], v[1]), v[0]), m.IMul(v[1], v[1]), m.ShrU(v[2], 1)});
      });
  Value result = loop.getResult(0);
  if (!is_signed) return {result};
  // 1 / x^n, truncated.
  Value unit = m.Select(m.Cmp(IPred::ne, m.And(a.y(), one), zero), a.I(-1), one);
  Value inverse = m.Select(m.Cmp(IPred::eq, a.x(), a.I(-1)), unit, zero);
  inverse = m.Select(m.Cmp(IPred::eq, a.x(), one), one, inverse);
  return {m.Select(negative, inverse, result)};
}

// A divisor for which the machine does not trap, as it does on x/0 and on min/-1.
struct Divisor {
  Value safe, is_zero, is_minus_one;
};
Divisor SafeDivisor(const Args& a) {
  Divisor d;
  d.is_zero = a.m.Cmp(IPred::eq, a.y(), a.I(0));
  d.safe = a.m.Select(d.is_zero, a.I(1), a.y());
  if (IsSigned(a.dtype())) {
    d.is_minus_one = a.m.Cmp(IPred::eq, a.y(), a.I(-1));
    d.safe = a.m.Select(d.is_minus_one, a.I(1), d.safe);
  }
  return d;
}

Lanes DivideIntegers(const Args& a) {
  const Divisor d = SafeDivisor(a);
  if (!IsSigned(a.dtype())) return {a.m.Select(d.is_zero, a.I(-1), a.m.Make<arith::DivUIOp>(a.x(), d.safe))};
  Value q = a.m.Make<arith::DivSIOp>(a.x(), d.safe);
  q = a.m.Select(d.is_minus_one, a.m.ISub(a.I(0), a.x()), q);
  return {a.m.Select(d.is_zero, a.I(-1), q)};
}

Lanes RemainderOfIntegers(const Args& a) {
  const Divisor d = SafeDivisor(a);
  Value r = IsSigned(a.dtype()) ? a.m.Make<arith::RemSIOp>(a.x(), d.safe) : a.m.Make<arith::RemUIOp>(a.x(), d.safe);
  return {a.m.Select(d.is_zero, a.x(), r)};
}

struct ShiftBy {
  Value by, inside;
};
// By `otherwise` where the shift is as wide as the number or wider.
ShiftBy Inside(const Args& a, int64_t otherwise) {
  const auto width = static_cast<int64_t>(a.m.Element(a.x()).getIntOrFloatBitWidth());
  Value inside = a.m.Cmp(IPred::ult, a.y(), a.I(width));
  return {a.m.Select(inside, a.y(), a.I(otherwise)), inside};
}

template <class Operation>
Lanes Shift(const Args& a) {
  const ShiftBy s = Inside(a, 0);
  return {a.m.Select(s.inside, a.m.Make<Operation>(a.x(), s.by), a.I(0))};
}

Lanes ShiftRightArithmetic(const Args& a) {
  const ShiftBy s = Inside(a, static_cast<int64_t>(a.m.Element(a.x()).getIntOrFloatBitWidth()) - 1);
  // Unsigned numbers have no sign to copy.
  if (!IsSigned(a.dtype())) return {a.m.Select(s.inside, a.m.Make<arith::ShRUIOp>(a.x(), s.by), a.I(0))};
  return {a.m.Make<arith::ShRSIOp>(a.x(), s.by)};
}

Lanes LeadingZeros(const Args& a) {
  Value zeros = a.m.Make<math::CountLeadingZerosOp>(a.x());
  const auto register_width = static_cast<int64_t>(a.m.Element(a.x()).getIntOrFloatBitWidth());
  return {a.width == register_width ? zeros : a.m.ISub(zeros, a.I(register_width - a.width))};
}

// --- Complex numbers -------------------------------------------------------------------------------------------------

Lanes Product(const Args& a, const Lanes& x, const Lanes& y) {
  return {a.m.Sub(a.m.Mul(x.re, y.re), a.m.Mul(x.im, y.im)), a.m.Add(a.m.Mul(x.re, y.im), a.m.Mul(x.im, y.re))};
}

Lanes PowerOfComplex(const Args& a) {
  const Lanes one{a.F(1), a.F(0)};
  const int64_t n = a.node.integer;
  Lanes result = one, base = a.in[0];
  bool first = true;  // 1 * x is not x where complex x is infinite
  for (uint64_t k = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n); k != 0; k >>= 1) {
    if (k & 1) result = std::exchange(first, false) ? base : Product(a, result, base);
    if (k > 1) base = Product(a, base, base);
  }
  return n >= 0 ? result : a.body.Call("div", a.dtype(), {one, result}, a.dtype());
}

// --- The rows --------------------------------------------------------------------------------------------------------

const PrimTable<ScalarOp>& Rows() {
  using M = VectorMath;
  static const auto& rows = *new PrimTable<ScalarOp>{
      // Whatever the dtypes are.
      {"convert", {.any = [](const Args& a) { return a.body.Convert(a.dtype(), a.node.dtype, a.in[0]); }}},
      {"stop_gradient", {.any = [](const Args& a) { return a.in[0]; }}},
      {"select", {.any = [](const Args& a) { return a.body.Select(a.x(), a.in[1], a.in[2]); }}},
      {"complex", {.any = [](const Args& a) { return Lanes{a.x(), a.y()}; }}},
      {"bitcast", {.any = Bitcast}},
      {"eq", {.any = Compared<Comparison::kEq>}},
      {"ne", {.any = Compared<Comparison::kNe>}},
      {"lt", {.any = Compared<Comparison::kLt>}},
      {"le", {.any = Compared<Comparison::kLe>}},
      {"gt", {.any = Compared<Comparison::kGt>}},
      {"ge", {.any = Compared<Comparison::kGe>}},

      // Arithmetic.
      {"neg",
       {.on_float = [](const Args& a) { return Lanes{a.m.Neg(a.x())}; },
        .on_integer = [](const Args& a) { return Lanes{a.m.ISub(a.I(0), a.x())}; },
        .on_complex = [](const Args& a) { return Lanes{a.m.Neg(a.x()), a.m.Neg(a.in[0].im)}; }}},
      {"abs",
       {.on_float = [](const Args& a) { return Lanes{a.m.Abs(a.x())}; },
        .on_integer = AbsOfIntegers,
        .complex_by_f64 = OneComplex<&ComplexMath::Abs>}},
      {"add",
       {.on_float =
            [](const Args& a) {
              return Lanes{a.node.integer != 0 ? a.m.AddToSum(a.x(), a.y()) : a.m.Add(a.x(), a.y())};
            },
        .on_integer = [](const Args& a) { return Lanes{a.m.IAdd(a.x(), a.y())}; },
        .on_complex = [](const Args& a) { return Lanes{a.m.Add(a.x(), a.y()), a.m.Add(a.in[0].im, a.in[1].im)}; }}},
      {"sub",
       {.on_float =
            [](const Args& a) {
              return Lanes{a.node.integer != 0 ? a.m.SubFromSum(a.x(), a.y()) : a.m.Sub(a.x(), a.y())};
            },
        .on_integer = [](const Args& a) { return Lanes{a.m.ISub(a.x(), a.y())}; },
        .on_complex = [](const Args& a) { return Lanes{a.m.Sub(a.x(), a.y()), a.m.Sub(a.in[0].im, a.in[1].im)}; }}},
      {"mul",
       {.on_float = [](const Args& a) { return Lanes{a.m.MulForSum(a.x(), a.y())}; },
        .on_integer = [](const Args& a) { return Lanes{a.m.IMul(a.x(), a.y())}; },
        .on_complex = [](const Args& a) { return Product(a, a.in[0], a.in[1]); }}},
      {"div",
       {.on_float = [](const Args& a) { return Lanes{a.Quotient(a.x(), a.y())}; },
        .on_integer = DivideIntegers,
        .complex_by_f64 = TwoComplex<&ComplexMath::Div>,
        .nonzero = 1}},
      {"rem", {.on_integer = RemainderOfIntegers, .device = "fmod", .vector = Two<&M::Rem>}},
      {"max", {.on_float = [](const Args& a) { return Lanes{a.m.Max(a.x(), a.y())}; }, .on_integer = MaxOfIntegers}},
      {"min", {.on_float = [](const Args& a) { return Lanes{a.m.Min(a.x(), a.y())}; }, .on_integer = MinOfIntegers}},
      {"clamp",
       {.on_float = [](const Args& a) { return Lanes{a.m.Min(a.m.Max(a.y(), a.x()), a.in[2].re)}; },
        .on_integer = ClampIntegers}},
      {"square",
       {.on_float = [](const Args& a) { return Lanes{a.m.MulForSum(a.x(), a.x())}; },
        .on_integer = [](const Args& a) { return Lanes{a.m.IMul(a.x(), a.x())}; },
        .on_complex = [](const Args& a) { return Product(a, a.in[0], a.in[0]); }}},
      {"integer_pow",
       {.on_float = [](const Args& a) { return Lanes{a.body.IntegerPower(a.x(), a.node.integer)}; },
        .on_integer = PowerOfIntegers,
        .on_complex = PowerOfComplex}},
      {"sign", {.on_float = SignOfFloat, .on_integer = SignOfIntegers}},
      {"real", {.on_float = Itself, .on_integer = Itself, .on_complex = Itself}},
      {"imag",
       {.on_float = [](const Args& a) { return Lanes{a.F(0)}; },
        .on_complex = [](const Args& a) { return Lanes{a.in[0].im}; }}},
      {"conj",
       {.on_float = Itself,
        .on_integer = Itself,
        .on_complex = [](const Args& a) { return Lanes{a.x(), a.m.Neg(a.in[0].im)}; }}},

      // Floats alone.
      {"sqrt",
       {.on_float = [](const Args& a) { return Lanes{a.m.Sqrt(a.x())}; },
        .complex_by_f64 = OneComplex<&ComplexMath::Sqrt>}},
      {"rsqrt", {.on_float = [](const Args& a) { return Lanes{a.Quotient(a.F(1), a.m.Sqrt(a.x()))}; }}},
      {"floor", {.on_float = Make<math::FloorOp>}},
      {"ceil", {.on_float = Make<math::CeilOp>}},
      {"trunc", {.on_float = Make<math::TruncOp>}},
      {"round", {.on_float = Round}},
      {"is_finite", {.on_float = IsFinite}},
      {"nextafter", {.on_float = [](const Args& a) { return Lanes{a.body.NextAfter(a.dtype(), a.x(), a.y())}; }}},
      {"exp", {.device = "exp", .vector = One<&M::Exp>, .complex_by_f64 = OneComplex<&ComplexMath::Exp>}},
      {"exp2", {.device = "exp2", .vector = One<&M::Exp2>, .complex_by_f64 = OneComplex<&ComplexMath::Exp2>}},
      {"expm1", {.device = "expm1", .vector = One<&M::Expm1>, .complex_by_f64 = OneComplex<&ComplexMath::Expm1>}},
      {"log",
       {.device = "log",
        .vector = One<&M::Log>,
        .complex_by_f64 = OneComplex<&ComplexMath::Log>,
        .nonzero = 0,
        .number_asks_library = true}},
      {"log1p", {.device = "log1p", .vector = One<&M::Log1p>}},
      {"log2", {.vector = One<&M::Log2>}},
      {"log10", {.vector = One<&M::Log10>}},
      {"log_product", {.vector = Two<&M::LogProduct>}},
      {"log_quotient", {.vector = Two<&M::LogQuotient>}},
      {"softplus",
       {.vector =
            [](VectorMath& v, const std::vector<Value>& x) {
              MlirBuilder& m = v.m();
              Value positive = m.Select(m.Cmp(Pred::OGT, x[0], v.C(x[0], 0)), x[0], v.C(x[0], 0));
              return m.Add(positive, v.Log1p(v.Exp(m.Neg(m.Abs(x[0])))));
            }}},
      {"logistic", {.on_device = LogisticOnDevice, .vector = One<&M::Logistic>}},
      {"logistic_density", {.vector = One<&M::LogisticDensity>}},
      {"cbrt", {.device = "cbrt", .vector = One<&M::Cbrt>}},
      {"sin",
       {.device = "sin",
        .vector = One<&M::Sin>,
        .beside = "cos",
        .both = [](M& math, Value x) { return math.SinAndCos(x); },
        .complex_by_f64 = OneComplex<&ComplexMath::Sin>}},
      {"cos",
       {.device = "cos",
        .vector = One<&M::Cos>,
        .beside = "sin",
        .both =
            [](M& math, Value x) {
              const auto [sin, cos] = math.SinAndCos(x);
              return std::pair<Value, Value>(cos, sin);
            },
        .complex_by_f64 = OneComplex<&ComplexMath::Cos>}},
      {"tan", {.device = "tan", .vector = One<&M::Tan>, .complex_by_f64 = OneComplex<&ComplexMath::Tan>}},
      {"asin", {.device = "asin", .vector = One<&M::Asin>}},
      {"acos", {.device = "acos", .vector = One<&M::Acos>}},
      {"atan", {.device = "atan", .vector = One<&M::Atan>}},
      {"sinh", {.device = "sinh", .vector = One<&M::Sinh>, .complex_by_f64 = OneComplex<&ComplexMath::Sinh>}},
      {"cosh", {.device = "cosh", .vector = One<&M::Cosh>, .complex_by_f64 = OneComplex<&ComplexMath::Cosh>}},
      {"tanh", {.device = "tanh", .vector = One<&M::Tanh>, .complex_by_f64 = OneComplex<&ComplexMath::Tanh>}},
      {"sech_squared", {.vector = One<&M::SechSquared>}},
      {"asinh", {.device = "asinh", .vector = One<&M::Asinh>}},
      {"acosh", {.device = "acosh", .vector = One<&M::Acosh>}},
      {"atanh", {.device = "atanh", .vector = One<&M::Atanh>}},
      {"erf", {.device = "erf", .vector = One<&M::Erf>}},
      {"erfc", {.device = "erfc", .vector = One<&M::Erfc>}},
      {"normal_density", {.vector = One<&M::NormalDensity>}},
      {"normal_cdf", {.on_device = NormalCdfOnDevice, .vector = One<&M::NormalCdf>}},
      {"erf_inv", {.device = "erfinv", .vector = One<&M::ErfInv>}},
      {"lgamma", {.device = "lgamma", .vector = One<&M::LogGamma>}},
      {"digamma", {.vector = One<&M::Digamma>}},
      {"pow",
       {.on_integer = PowerOfIntegersByIntegers,
        .device = "pow",
        .vector = Two<&M::Pow>,
        .complex_by_f64 = TwoComplex<&ComplexMath::Pow>,
        .nonzero = 0}},
      {"atan2", {.device = "atan2", .vector = Two<&M::Atan2>}},

      // Bits.
      {"and", {.on_integer = [](const Args& a) { return Lanes{a.m.And(a.x(), a.y())}; }}},
      {"or", {.on_integer = [](const Args& a) { return Lanes{a.m.Or(a.x(), a.y())}; }}},
      {"xor", {.on_integer = [](const Args& a) { return Lanes{a.m.Xor(a.x(), a.y())}; }}},
      {"not", {.on_integer = [](const Args& a) { return Lanes{a.m.Not(a.x())}; }}},
      {"population_count", {.on_integer = Make<math::CtPopOp>, .of_bits = true}},
      {"clz", {.on_integer = LeadingZeros, .of_bits = true}},
      {"shift_left", {.on_integer = Shift<arith::ShLIOp>}},
      {"shift_right_logical", {.on_integer = Shift<arith::ShRUIOp>, .of_bits = true}},
      {"shift_right_arithmetic", {.on_integer = ShiftRightArithmetic}},
  };
  return rows;
}

}  // namespace

const ScalarOp& ScalarOpOf(const Prim& prim) { return Rows()[prim]; }

bool HasScalarCode(const Prim& prim, DType dtype) {
  const ScalarOp& row = ScalarOpOf(prim);
  if (row.any != nullptr) return true;
  if (IsStored(dtype)) return HasScalarCode(prim, ComputeType(dtype));
  if (MathIndex(prim.name, static_cast<int>(dtype)) >= 0) return true;
  if (IsComplex(dtype)) return row.on_complex != nullptr;
  if (IsFloat(dtype)) return row.on_float != nullptr || row.vector != nullptr;
  return row.on_integer != nullptr;
}

}  // namespace weft
