// The element-wise primitives of two operands (one row each), and those of three: select and clamp.
//   name, dtypes, meaning on one element, partial derivatives (x, w: operands, y: result), documentation
#include <cmath>
#include <limits>
#include <numbers>

#include "base/product.h"
#include "ir/prims/elementwise.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

using Complex = std::complex<double>;
using Partials = std::pair<std::optional<Expr>, std::optional<Expr>>;

#define WEFT_F2(expression) [](auto x, auto w) { return expression; }
#define WEFT_D2(dx, dw)                    \
  [](Expr x, Expr w, Expr y) -> Partials { \
    (void)x;                               \
    (void)w;                               \
    (void)y;                               \
    return {dx, dw};                       \
  }

// Signed arithmetic that wraps instead of overflowing.
template <class F>
auto Wrapping(F f) {
  return [f](auto x, auto w) -> decltype(x) {
    if constexpr (std::is_same_v<decltype(x), int64_t>) {
      return static_cast<int64_t>(f(static_cast<uint64_t>(x), static_cast<uint64_t>(w)));
    } else {
      return f(x, w);
    }
  };
}

template <class T>
T DivideInts(T x, T w) {
  if (w == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>) {
    if (w == -1) return static_cast<T>(-static_cast<uint64_t>(x));
  }
  return x / w;
}
template <class T>
T RemainderInts(T x, T w) {
  if (w == 0) return x;
  if constexpr (std::is_signed_v<T>) {
    if (w == -1) return 0;
  }
  return x % w;
}
template <class T>
T PowInts(T x, T w) {
  if constexpr (std::is_signed_v<T>) {
    if (w < 0) return x == 1 ? 1 : x == -1 ? (w % 2 ? -1 : 1) : 0;
  }
  uint64_t result = 1, base = static_cast<uint64_t>(x), n = static_cast<uint64_t>(w);
  for (; n != 0; n >>= 1, base *= base) {
    if (n & 1) result *= base;
  }
  return static_cast<T>(result);
}

double MaxOf(double x, double w) {
  return std::isnan(x) || std::isnan(w) ? std::numeric_limits<double>::quiet_NaN() : std::fmax(x, w);
}
double MinOf(double x, double w) {
  return std::isnan(x) || std::isnan(w) ? std::numeric_limits<double>::quiet_NaN() : std::fmin(x, w);
}

// A power of 2 with which products of numbers of size `largest` are far from the ends of the dtype's range.
Expr ScaleForSquares(const Expr& largest) {
  const DTypeRow& row = RowOf(largest.dtype());
  const auto power = [](int exponent) { return std::ldexp(1.0, exponent); };
  // What is larger than `top` is made smaller by the whole range; what is smaller than 1 / top becomes so large that
  // the square of the smallest subnormal number (2^-(largest exponent + digits - 2)) is one.
  const int top = (row.max_exponent - 2) / 2, smallest = row.max_exponent + row.digits - 2;
  const int up = std::max(top + 3 * row.max_exponent / 10, (smallest + 1) / 2);
  const Expr small_too = Select(Lt(largest, power(-top)), largest.Number(power(up)), largest.Number(1));
  return Select(Gt(largest, power(top)), largest.Number(power(top - row.max_exponent - 1)), small_too);
}

// x^w, from which w x^(w-1) is made: where w was 0 and 1/x^2 is infinite, 1/x with no derivative, which would be 0
// times infinity.
Expr PowerOfDerivative(const Expr& x, const Expr& power, const Expr& w_is_0) {
  const DTypeRow& row = RowOf(x.dtype());
  const auto is_below = [&](int exponent) { return Lt(Abs(x), std::ldexp(1.0, exponent)); };
  const Expr one = x.Number(1), small = And(w_is_0, is_below(3 - row.max_exponent / 2));
  const Expr divisor = Select(is_below(1 - row.max_exponent), one, Select(small, x, one));
  return Select(small, StopGradient(1.0 / divisor), Pow(Select(small, one, x), power));
}

// log(2^exponent (mantissa + rest)), the mantissa being between 1/4 and 4: near 1 with the digits of the sum.
double LogOfParts(double mantissa, double rest, int exponent) {
  if (mantissa < 0) return std::numeric_limits<double>::quiet_NaN();
  int more = 0;
  double m = std::frexp(mantissa, &more);  // in [1/2, 1)
  if (m < std::numbers::sqrt2 / 2) m *= 2, --more;
  constexpr double kHigh = 6.93147180369123816490e-01, kLow = 1.90821492927058770002e-10;  // of log(2)
  const double e = exponent + more;
  return e * kHigh + (std::log(m) + (rest / mantissa + e * kLow));
}
double LogProduct(double x, double w) {
  int e = 0, more = 0;
  const double a = std::frexp(x, &e), b = std::frexp(w, &more), product = a * b;
  if (!std::isfinite(x) || !std::isfinite(w) || product == 0) return std::log(x * w);
  return LogOfParts(product, std::fma(a, b, -product), e + more);
}
double LogQuotient(double x, double w) {
  int e = 0, more = 0;
  const double a = std::frexp(x, &e), b = std::frexp(w, &more), quotient = a / b;
  if (!std::isfinite(x) || !std::isfinite(w) || x == 0 || w == 0) return std::log(x / w);
  return LogOfParts(quotient, std::fma(-quotient, b, a) / b, e - more);
}

void Samples(Prim& p, double low, double high) {
  p.samples = [prim = &p, low, high] {
    std::vector<Sample> samples = ElementwiseSamples(*prim);
    for (Sample& s : samples) s.low = low, s.high = high;
    return samples;
  };
}

void RegisterArithmetic(PrimRegistry& r) {
  Prim& add = AddBinary(r, "add", kAnyNumbers, OnNumbers<2>(Wrapping(WEFT_F2(x + w))),
                        WEFT_D2(x.Number(1), x.Number(1)), "x + w.");
  add.linear = {0, 1};
  add.transpose = [](TransposeContext& c) -> OptionalAtoms { return {c.ct[0], c.ct[0]}; };
  Prim& sub = AddBinary(r, "sub", kAnyNumbers, OnNumbers<2>(Wrapping(WEFT_F2(x - w))),
                        WEFT_D2(x.Number(1), x.Number(-1)), "x - w.");
  sub.linear = {0, 1};
  sub.transpose = [](TransposeContext& c) -> OptionalAtoms {
    return {c.ct[0], c.linear(1) ? std::optional<Atom>(Neg(c.b, *c.ct[0])) : std::nullopt};
  };
  // For jax.random's numbers, whose last bits depend on it.
  for (Prim* p : {&add, &sub}) {
    p->doc +=
        " With fused=true a product of floats among the operands need not be rounded where compiled code has an "
        "instruction for both.";
    p->more_attributes = {"fused"};
    p->infer = [base = p->infer, p](const Sig& s) {
      if (s.attrs.Find("fused") != nullptr && !s.attrs.GetBool("fused"))
        throw ValueError(p->name, ": fused is false; expected true or none");
      return base(s);
    };
  }
  Prim& mul = AddBinary(r, "mul", kAnyNumbers, OnNumbers<2>(Wrapping(WEFT_F2(Product(x, w)))), WEFT_D2(w, x), "x * w.");
  mul.linear = {0, 1};
  mul.multilinear = true;
  mul.transpose = [](TransposeContext& c) -> OptionalAtoms {
    if (c.linear(0)) return {Mul(c.b, *c.ct[0], *c.x[1]), std::nullopt};
    return {std::nullopt, Mul(c.b, *c.x[0], *c.ct[0])};
  };
  ScalarMeaning<2> quotient = OnInexact<2>(WEFT_F2(x / w));
  quotient.on_signed = DivideInts<int64_t>;
  quotient.on_unsigned = DivideInts<uint64_t>;
  Prim& div = AddBinary(r, "div", kAnyNumbers, quotient, WEFT_D2(1.0 / w, -(y / w)),
                        "x / w; integers truncate towards zero and x / 0 is -1 (all ones).", {.work = 4});
  div.linear = {0};
  div.multilinear = true;
  div.transpose = [](TransposeContext& c) -> OptionalAtoms { return {Div(c.b, *c.ct[0], *c.x[1]), std::nullopt}; };
  div.taylor = [](TaylorContext& c) {  // y w = x
    std::optional<Atom> rest = c.x(0, c.k);
    for (int j = 1; j <= c.k; ++j) {
      const std::optional<Atom> w = c.x(1, j), y = c.y(c.k - j);
      if (!w || !y) continue;
      const Atom term = Mul(c.b, *w, *y);
      rest = rest ? Sub(c.b, *rest, term) : Neg(c.b, term);
    }
    return rest ? std::optional<Atom>(Div(c.b, *rest, *c.x(1, 0))) : std::nullopt;
  };
  Samples(div, 0.5, 4);

  ScalarMeaning<2> remainder = OnFloats<2>(WEFT_F2(std::fmod(x, w)));
  remainder.on_signed = RemainderInts<int64_t>;
  remainder.on_unsigned = RemainderInts<uint64_t>;
  Samples(AddBinary(r, "rem", kAnyReals, remainder,
                    [](Expr x, Expr w, Expr) -> Partials {
                      const Expr q = x / w;
                      const Expr down = Floor(Abs(q));
                      return {x.Number(1), -(Sign(q) * down)};
                    },
                    "The remainder of x / w truncated towards zero, with the sign of x; integers: x rem 0 is x.",
                    {.work = 15}),
          0.5, 4);

  ScalarMeaning<2> power = OnInexact<2>(WEFT_F2(Power(x, w)));
  power.on_signed = PowInts<int64_t>;
  power.on_unsigned = PowInts<uint64_t>;
  Prim& pow =
      AddBinary(r, "pow", kAnyNumbers, power,
                [](Expr x, Expr w, Expr y) -> Partials {
                  // d/dx = w x^(w-1), 0 where both are 0; d/dw = x^w log x, 0 where x is 0 and w > 0. Where w alone is
                  // 0 the first is 0 by itself, and its derivative by w is 1/x.
                  const Expr zero = x.Number(0), one = x.Number(1);
                  const Expr w_is_0{w.b, Eq(w, w.Number(0))}, x_is_0{x.b, Eq(x, zero)};
                  const Expr down = w - 1.0;
                  const Expr power = Select(w_is_0, Select(x_is_0, w.Number(1), down), down);
                  const Expr dx = w * (w.atom.is_literal() ? Pow(x, power) : PowerOfDerivative(x, power, w_is_0));
                  const Expr log = Log(Select(x_is_0, one, x));
                  return {dx, log * y};
                },
                "x to the power w. Integers: by repeated squaring, wrapping; negative w gives 0 unless x is 1 or -1.",
                {.work = 30, .ulps = 1});
  Samples(pow, 0.3, 3);

  ScalarMeaning<2> largest = OnInts<2>(WEFT_F2((x > w ? x : w)));
  largest.on_double = MaxOf;
  ScalarMeaning<2> smallest = OnInts<2>(WEFT_F2((x < w ? x : w)));
  smallest.on_double = MinOf;
  // Ties share the derivative.
  AddBinary(
      r, "max", kAnyReals | kBools, largest,
      [](Expr x, Expr w, Expr) -> Partials {
        const Expr half = Select(Expr{x.b, Eq(x, w)}, x.Number(0.5), x.Number(0));
        return {Select(Expr{x.b, Gt(x, w)}, x.Number(1), half), Select(Expr{x.b, Gt(w, x)}, x.Number(1), half)};
      },
      "The larger of x and w; NaN if either is NaN. Where they are equal each derivative is 1/2.");
  AddBinary(
      r, "min", kAnyReals | kBools, smallest,
      [](Expr x, Expr w, Expr) -> Partials {
        const Expr half = Select(Expr{x.b, Eq(x, w)}, x.Number(0.5), x.Number(0));
        return {Select(Expr{x.b, Lt(x, w)}, x.Number(1), half), Select(Expr{x.b, Lt(w, x)}, x.Number(1), half)};
      },
      "The smaller of x and w; NaN if either is NaN. Where they are equal each derivative is 1/2.");
  AddBinary(r, "atan2", kAnyFloats, OnFloats<2>(WEFT_F2(std::atan2(x, w))),
            [](Expr x, Expr w, Expr) -> Partials {
              // Both times a power of 2, by which the derivatives are multiplied too: squares neither overflow nor
              // vanish.
              const Expr scale = ScaleForSquares(Max(Abs(x), Abs(w)));
              const Expr u = x * scale, v = w * scale, n = u * u + v * v;
              return {v / n * scale, -(u / n * scale)};
            },
            "The angle of the point (w, x) in radians, in [-pi, pi].", {.work = 30, .ulps = 2});
  Samples(AddBinary(r, "log_product", kAnyFloats, OnFloats<2>(LogProduct), WEFT_D2(1.0 / x, 1.0 / w),
                    "The natural logarithm of x * w, also where the product is out of the range of the dtype.",
                    {.work = 20, .ulps = 2, .formula = "log(x * w)", .example = "wnp.array([1e30, 2.0]), 1e30"}),
          0.3, 3);
  Samples(AddBinary(r, "log_quotient", kAnyFloats, OnFloats<2>(LogQuotient), WEFT_D2(1.0 / x, -1.0 / w),
                    "The natural logarithm of x / w, also where the quotient is out of the range of the dtype.",
                    {.work = 25, .ulps = 2, .example = "wnp.array([1e30, 2.0]), 1e-30"}),
          0.3, 3);
  Prim& next =
      AddBinary(r, "nextafter", kFloats, {}, nullptr, "The next representable number after x towards w.", {.work = 4});
  next.not_differentiable = "a step between neighbouring numbers";
  next.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    const Shape shape = StaticSizes(c.results[0].dims, "nextafter");
    Tensor y(c.results[0].dtype, shape);
    VisitDType(y.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < y.size(); ++i) {
        const T x = in[0].at<T>(in[0].rank() ? i : 0), w = in[1].at<T>(in[1].rank() ? i : 0);
        if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
          y.data<T>()[i] = std::nextafter(x, w);
        } else if constexpr (kIsSmallFloat<T>) {
          const float fx = x, fw = w;
          auto bits = x.bits();
          using Bits = decltype(bits);
          constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
          if (std::isnan(fx) || std::isnan(fw))
            bits = T(std::numeric_limits<float>::quiet_NaN()).bits();
          else if (fx == fw)
            bits = w.bits();
          else if (fx == 0)
            bits = static_cast<Bits>(fw > 0 ? 1 : kSign | 1);
          else
            bits = static_cast<Bits>((fx < fw) == (fx > 0) ? bits + 1 : bits - 1);
          y.data<T>()[i] = T::FromBits(bits);
        }
      }
    });
    return {y};
  };
}

// Results are bool, so nothing to differentiate.
void AddComparison(PrimRegistry& r, const char* name, ScalarMeaning<2> meaning, DTypeSet dtypes, const char* doc) {
  Prim& p = AddBinary(r, name, dtypes, {}, nullptr, doc);
  p.infer = [](const Sig& s) -> Types { return {InferElementwise(s).With(DType::kBool)}; };
  auto holds = [meaning](const Tensor& a, const Tensor& b, const Shape& shape) {
    const int64_t n = NumElements(shape);
    std::vector<uint64_t> y(n);
    auto fill = [&](const auto& f, const auto& x, const auto& w) {
      for (int64_t i = 0; i < n; ++i) y[i] = f(x[a.rank() ? i : 0], w[b.rank() ? i : 0]) != decltype(f(x[0], w[0]))(0);
    };
    if (IsComplex(a.dtype()))
      fill(meaning.on_complex, LoadAs<Complex>(a), LoadAs<Complex>(b));
    else if (IsFloat(a.dtype()))
      fill(meaning.on_double, LoadAs<double>(a), LoadAs<double>(b));
    else if (IsSigned(a.dtype()))
      fill(meaning.on_signed, LoadAs<int64_t>(a), LoadAs<int64_t>(b));
    else
      fill(meaning.on_unsigned, LoadAs<uint64_t>(a), LoadAs<uint64_t>(b));
    return StoreAs<uint64_t>(DType::kBool, shape, y);
  };
  p.eval = [holds](const EvalContext& c, const Tensors& in) -> Tensors {
    return {holds(in[0], in[1], StaticSizes(c.results[0].dims, "comparison"))};
  };
}

void RegisterComparisons(PrimRegistry& r) {
  const DTypeSet ordered = kAnyReals | kBools, all = kAll;
  AddComparison(r, "eq", OnNumbers<2>([](auto x, auto w) -> decltype(x) { return x == w; }), all, "x == w; bool.");
  AddComparison(r, "ne", OnNumbers<2>([](auto x, auto w) -> decltype(x) { return x != w; }), all, "x != w; bool.");
  AddComparison(r, "lt", OnReals<2>([](auto x, auto w) -> decltype(x) { return x < w; }), ordered, "x < w; bool.");
  AddComparison(r, "le", OnReals<2>([](auto x, auto w) -> decltype(x) { return x <= w; }), ordered, "x <= w; bool.");
  AddComparison(r, "gt", OnReals<2>([](auto x, auto w) -> decltype(x) { return x > w; }), ordered, "x > w; bool.");
  AddComparison(r, "ge", OnReals<2>([](auto x, auto w) -> decltype(x) { return x >= w; }), ordered, "x >= w; bool.");
}

EvalFn ShiftEval(std::function<uint64_t(uint64_t bits, uint64_t by, int width, bool negative)> f) {
  return [f](const EvalContext& c, const Tensors& in) -> Tensors {
    const Shape shape = StaticSizes(c.results[0].dims, "shift");
    const DType dtype = in[0].dtype();
    const int width = BitWidth(dtype);
    const uint64_t mask = width < 64 ? (uint64_t{1} << width) - 1 : ~uint64_t{0};
    const std::vector<uint64_t> x = LoadAs<uint64_t>(in[0]), by = LoadAs<uint64_t>(in[1]);
    std::vector<uint64_t> y(NumElements(shape));
    for (size_t i = 0; i < y.size(); ++i) {
      const uint64_t bits = x[in[0].rank() ? i : 0] & mask;
      y[i] = f(bits, by[in[1].rank() ? i : 0] & mask, width, IsSigned(dtype) && (bits >> (width - 1)));
    }
    return {StoreAs<uint64_t>(dtype, shape, y)};
  };
}

void RegisterLogic(PrimRegistry& r) {
  const DTypeSet bits = kBools | kInts;
  AddBinary(r, "and", bits, OnInts<2>(WEFT_F2(x & w)), nullptr, "Logical or bitwise and.");
  AddBinary(r, "or", bits, OnInts<2>(WEFT_F2(x | w)), nullptr, "Logical or bitwise or.");
  AddBinary(r, "xor", bits, OnInts<2>(WEFT_F2(x ^ w)), nullptr, "Logical or bitwise exclusive or.");
  AddBinary(r, "shift_left", kInts, {}, nullptr, "x * 2^w, wrapping; 0 when w is at least the width.").eval = ShiftEval(
      [](uint64_t x, uint64_t by, int width, bool) { return by >= static_cast<uint64_t>(width) ? 0 : x << by; });
  AddBinary(r, "shift_right_logical", kInts, {}, nullptr,
            "x shifted right, zeros shifted in; 0 when w is at least the width.")
      .eval = ShiftEval(
      [](uint64_t x, uint64_t by, int width, bool) { return by >= static_cast<uint64_t>(width) ? 0 : x >> by; });
  AddBinary(r, "shift_right_arithmetic", kInts, {}, nullptr, "x shifted right, copies of the sign shifted in.").eval =
      ShiftEval([](uint64_t x, uint64_t by, int width, bool negative) {
        const uint64_t ones = negative ? ~uint64_t{0} : 0;
        if (by >= static_cast<uint64_t>(width)) return ones;
        return by == 0 ? x : (x >> by) | (ones << (width - by));
      });
}

void RegisterComplexFromParts(PrimRegistry& r) {
  Prim& p = AddBinary(r, "complex", {DType::kF32, DType::kF64}, {}, nullptr, "The complex number x + i w.");
  p.linear = {0, 1};
  p.infer = [](const Sig& s) -> Types {
    const Type t = InferElementwise(s);
    return {t.With(*ComplexOf(t.dtype))};
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    const Shape shape = StaticSizes(c.results[0].dims, "complex");
    const std::vector<double> x = LoadAs<double>(in[0]), w = LoadAs<double>(in[1]);
    std::vector<Complex> y(NumElements(shape));
    for (size_t i = 0; i < y.size(); ++i) y[i] = {x[in[0].rank() ? i : 0], w[in[1].rank() ? i : 0]};
    return {StoreAs<Complex>(c.results[0].dtype, shape, y)};
  };
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    OptionalAtoms out(2);
    if (c.linear(0)) out[0] = Real(c.b, *c.ct[0]);
    if (c.linear(1)) out[1] = Neg(c.b, Imag(c.b, *c.ct[0]));
    return out;
  };
}

void RegisterSelect(PrimRegistry& r) {
  Prim& p = r.Add("select", Family::kElementwise, 3,
                  "on_true where pred holds, else on_false: select(pred, on_true, on_false), element by element.");
  p.tolerance = 0;
  p.dtypes = kBools;
  p.infer = [](const Sig& s) -> Types {
    Type type = JoinShapes(s);
    if (s.operands[0].dtype != DType::kBool)
      throw TypeError("select: operand 0 (the predicate) is ", s.operands[0], "; expected bool");
    if (s.operands[1].dtype != s.operands[2].dtype) {
      throw TypeError("select: operand 1 is ", s.operands[1], ", but operand 2 is ", s.operands[2],
                      "; dtypes must be equal");
    }
    return {type.With(s.operands[1].dtype)};
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    Tensor y(c.results[0].dtype, StaticSizes(c.results[0].dims, "select"));
    const int width = ByteWidth(y.dtype());
    for (int64_t i = 0; i < y.size(); ++i) {
      const Tensor& from = in[in[0].at<bool>(in[0].rank() ? i : 0) ? 1 : 2];
      std::memcpy(y.data<char>() + i * width, from.data<char>() + (from.rank() ? i : 0) * width, width);
    }
    return {y};
  };
  p.batch = BatchElementwise;
  p.linear = {1, 2};
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    const Atom zero = Atom::Scalar(c.b.DTypeOf(*c.ct[0]), 0);
    OptionalAtoms out(3);
    if (c.linear(1)) out[1] = Select(c.b, *c.x[0], *c.ct[0], zero);
    if (c.linear(2)) out[2] = Select(c.b, *c.x[0], zero, *c.ct[0]);
    return out;
  };
  p.samples = [] {
    std::vector<Sample> samples;
    for (DType dtype : SampledDTypes({DType::kF32, DType::kF64, DType::kI32, DType::kBool, DType::kU8, DType::kF16,
                                      DType::kBF16, DType::kC64, DType::kI64, DType::kC128})) {
      Sample s;
      s.operands = {Type{DType::kBool, {13}, {}}, Type{dtype, {13}, {}}, Type{dtype, {13}, {}}};
      if (IsUnsigned(dtype)) s.low = 0;
      samples.push_back(s);
    }
    return samples;
  };

  Prim& clamp = r.Add("clamp", Family::kElementwise, 3,
                      "min(max(x, lo), hi): clamp(lo, x, hi), element by element; NaN if any operand is NaN.");
  clamp.tolerance = 0;
  clamp.dtypes = kAnyReals;
  clamp.infer = [](const Sig& s) -> Types { return {InferElementwise(s)}; };
  clamp.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    const Shape shape = StaticSizes(c.results[0].dims, "clamp");
    auto apply = [&](const auto& lo, const auto& x, const auto& hi, auto max, auto min) {
      using K = std::decay_t<decltype(x[0])>;
      std::vector<K> y(NumElements(shape));
      for (size_t i = 0; i < y.size(); ++i)
        y[i] = min(max(x[in[1].rank() ? i : 0], lo[in[0].rank() ? i : 0]), hi[in[2].rank() ? i : 0]);
      return StoreAs<K>(c.results[0].dtype, shape, y);
    };
    auto load = [&](auto tag, auto max, auto min) {
      using K = decltype(tag);
      return apply(LoadAs<K>(in[0]), LoadAs<K>(in[1]), LoadAs<K>(in[2]), max, min);
    };
    auto max = [](auto a, auto b) { return a > b ? a : b; };
    auto min = [](auto a, auto b) { return a < b ? a : b; };
    if (IsFloat(in[0].dtype())) return {load(double(), MaxOf, MinOf)};
    if (IsSigned(in[0].dtype())) return {load(int64_t(), max, min)};
    return {load(uint64_t(), max, min)};
  };
  clamp.batch = BatchElementwise;
  // 1 strictly inside; the bound that is taken gets the derivative, as in min(max(x, lo), hi) away from ties.
  clamp.partials = [](Builder& b, const Atoms& x, const Atom&) -> OptionalAtoms {
    const Expr lo{&b, x[0]}, v{&b, x[1]}, hi{&b, x[2]};
    const Expr one = v.Number(1), zero = v.Number(0);
    const Expr below = And(Lt(v, lo), Lt(lo, hi)), above = Gt(v, hi);
    const Expr inside = And(Gt(v, lo), Lt(v, hi));
    return {Select(below, one, zero), Select(inside, one, zero), Select(above, one, zero)};
  };
  clamp.samples = [p = &clamp] {
    std::vector<Sample> samples = ElementwiseSamples(*p);
    for (Sample& s : samples) {
      const DType dtype = s.operands[0].dtype;
      const Shape shape = StaticSizes(s.operands[0].dims, "clamp");
      s.values = {{0, Tensor::Full(dtype, shape, IsUnsigned(dtype) ? 1 : -1)},
                  {2, Tensor::Full(dtype, shape, IsUnsigned(dtype) ? 3 : 1)}};
    }
    return samples;
  };
}

}  // namespace

void RegisterElementwiseBinary(PrimRegistry& r) {
  RegisterArithmetic(r);
  RegisterComparisons(r);
  RegisterLogic(r);
  RegisterComplexFromParts(r);
  RegisterSelect(r);
  for (const char* name : {"add", "mul", "max", "min", "and", "or", "xor", "eq", "ne"}) r.Get(name).commutes = true;
}

}  // namespace weft
