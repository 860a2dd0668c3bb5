// Element-wise primitives with an attribute: convert, bitcast, integer_pow.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/product.h"
#include "base/to_integer.h"
#include "ir/prims/elementwise.h"
#include "ir/prims/families.h"

namespace weft {
namespace {

using Complex = std::complex<double>;

// Float to integer: base/to_integer.h. Everything else as C++ converts.
Tensor ConvertTo(const Tensor& x, DType dtype) {
  const DType from = x.dtype();
  if (from == dtype) return x;
  if (IsComplex(from) && IsBool(dtype)) {
    std::vector<uint64_t> values;
    for (const Complex& z : LoadAs<Complex>(x)) values.push_back(z != Complex(0));
    return StoreAs<uint64_t>(dtype, x.shape(), values);
  }
  if (IsComplex(from) && !IsInteger(dtype)) return StoreAs<Complex>(dtype, x.shape(), LoadAs<Complex>(x));
  if (IsInexact(from)) {
    std::vector<double> values;
    if (IsComplex(from)) {
      for (const Complex& z : LoadAs<Complex>(x)) values.push_back(z.real());
    } else {
      values = LoadAs<double>(x);
    }
    if (!IsInteger(dtype)) return StoreAs<double>(dtype, x.shape(), values);
    return VisitDType(dtype, [&](auto tag) -> Tensor {
      using T = typename decltype(tag)::type;
      if constexpr (kIsInteger<T> && !std::is_same_v<T, bool>) {
        Tensor t(dtype, x.shape());
        std::transform(values.begin(), values.end(), t.data<T>(), ToInteger<T>);
        return t;
      } else {
        return Tensor();
      }
    });
  }
  if (IsSigned(from)) return StoreAs<int64_t>(dtype, x.shape(), LoadAs<int64_t>(x));
  return StoreAs<uint64_t>(dtype, x.shape(), LoadAs<uint64_t>(x));
}

void RegisterConvert(PrimRegistry& r) {
  Prim& p = r.Add("convert", Family::kElementwise, 1,
                  "x as another dtype. Float to integer truncates towards zero, saturates, and takes NaN to 0; complex "
                  "to real drops the "
                  "imaginary part; anything to bool is x != 0.");
  p.tolerance = 0;
  p.infer = [](const Sig& s) -> Types {
    const DType to = s.attrs.Get<DType>("dtype");
    if (IsOpaque(to) || IsOpaque(s.operands[0].dtype))
      throw TypeError("convert: random keys and tapes have no numeric value; got ", s.operands[0], " to ", to);
    return {s.operands[0].With(to)};
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors { return {ConvertTo(in[0], c.results[0].dtype)}; };
  p.batch = BatchElementwise;
  p.linear = {0};
  p.transpose = [](TransposeContext& c) -> OptionalAtoms { return {Convert(c.b, *c.ct[0], c.types[0].dtype)}; };
  p.samples = [] {
    std::vector<Sample> samples;
    for (int i = 0; i < kNumDTypes; ++i) {
      for (int j = 0; j < kNumDTypes; ++j) {
        const DType from = static_cast<DType>(i), to = static_cast<DType>(j);
        if (IsOpaque(from) || IsOpaque(to)) continue;
        Sample s;
        s.operands = {Type{from, {19}, {}}};
        s.attrs = {{"dtype", to}};
        if (IsUnsigned(from) || IsUnsigned(to)) s.low = 0, s.high = 9;
        samples.push_back(s);
        if (!IsInexact(from) || !IsInteger(to)) continue;
        constexpr double kInfinity = std::numeric_limits<double>::infinity();
        const std::vector<double> beyond = {-2.5, 2.5, 300, -300, 3e9, -3e9, 2e19, -2e19, kInfinity, -kInfinity, NAN};
        s.operands[0].dims = {static_cast<int64_t>(beyond.size())};
        s.values = {{0, ConvertTo(Tensor::FromVector<double>({static_cast<int64_t>(beyond.size())}, beyond), from)}};
        samples.push_back(s);
      }
    }
    return samples;
  };
}

void RegisterBitcast(PrimRegistry& r) {
  Prim& p = r.Add(
      "bitcast", Family::kElementwise, 1,
      "The bits of x read as another dtype of the same width. Integers of fewer than 8 bits are converted instead.");
  p.tolerance = 0;
  p.infer = [](const Sig& s) -> Types {
    const DType to = s.attrs.Get<DType>("dtype");
    if ((to == DType::kTape) != (s.operands[0].dtype == DType::kTape))
      throw TypeError("bitcast: tapes are references; got ", s.operands[0], " to ", to);
    if (ByteWidth(to) != ByteWidth(s.operands[0].dtype) || IsBool(to) != IsBool(s.operands[0].dtype)) {
      throw TypeError("bitcast: cannot read ", s.operands[0], " as ", to, ": widths differ");
    }
    // Whose bytes hold more bits than the number has.
    for (const DType t : {to, s.operands[0].dtype}) {
      if (BitWidth(t) < 8 && to != s.operands[0].dtype)
        throw TypeError("bitcast: cannot read ", s.operands[0], " as ", to, ": ", t,
                        " is stored as a number of 8 bits; convert gives the same bits");
    }
    return {s.operands[0].With(to)};
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    return {Tensor(c.results[0].dtype, in[0].shape(), in[0].owner(), const_cast<void*>(in[0].raw()))};
  };
  p.batch = BatchElementwise;
  p.not_differentiable = "bits are not numbers";
  p.samples = [] {
    std::vector<Sample> samples;
    for (auto [from, to] : {std::pair{DType::kF32, DType::kI32},
                            {DType::kI32, DType::kF32},
                            {DType::kF64, DType::kU64},
                            {DType::kU16, DType::kF16},
                            {DType::kBF16, DType::kI16}}) {
      Sample s;
      s.operands = {Type{from, {9}, {}}};
      s.attrs = {{"dtype", to}};
      if (IsUnsigned(from)) s.low = 0, s.high = 100;
      samples.push_back(s);
    }
    return samples;
  };
}

void RegisterIntegerPow(PrimRegistry& r) {
  Prim& p = r.Add("integer_pow", Family::kElementwise, 1,
                  "x to the constant integer power y, by repeated squaring; negative y only for inexact dtypes.");
  p.dtypes = kAnyNumbers;
  p.infer = [](const Sig& s) -> Types {
    const Type t = InferElementwise(s);
    if (s.attrs.GetInt("y") < 0 && !IsInexact(t.dtype))
      throw TypeError("integer_pow: y is ", s.attrs.GetInt("y"), " and x is ", t,
                      "; a negative power needs an inexact dtype");
    return {t};
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    const int64_t y = c.sig.attrs.GetInt("y");
    auto apply = [&](auto x) {
      using K = typename decltype(x)::value_type;
      for (K& v : x) {
        using Factor = std::conditional_t<std::is_integral_v<K>, uint64_t, K>;  // wraps
        Factor base = static_cast<Factor>(v), result = Factor(1);
        bool first = true;  // 1 * x is not x where complex x is infinite
        for (uint64_t n = static_cast<uint64_t>(std::abs(y)); n != 0; n >>= 1, base = Product(base, base)) {
          if (n & 1) result = std::exchange(first, false) ? base : Product(result, base);
        }
        v = static_cast<K>(result);
        if constexpr (!std::is_integral_v<K>) {
          if (y < 0) v = K(1) / v;
        }
      }
      return StoreAs<K>(in[0].dtype(), in[0].shape(), x);
    };
    if (IsComplex(in[0].dtype())) return {apply(LoadAs<Complex>(in[0]))};
    if (IsFloat(in[0].dtype())) return {apply(LoadAs<double>(in[0]))};
    if (IsSigned(in[0].dtype())) return {apply(LoadAs<int64_t>(in[0]))};
    return {apply(LoadAs<uint64_t>(in[0]))};
  };
  p.batch = BatchElementwise;
  p.jvp = [](JvpContext& c) {
    const int64_t n = c.eqn.attrs.GetInt("y");
    const Expr x{&c.b, c.x[0]}, dx{&c.b, *c.dx[0]};
    c.y = {IntegerPow(c.b, x, n)};
    if (n == 0) {
      c.dy = {std::nullopt};
    } else {
      c.dy = {dx * (Expr{&c.b, IntegerPow(c.b, x, n - 1)} * static_cast<double>(n))};
    }
  };
  p.samples = [] {
    std::vector<Sample> samples;
    for (int64_t y : {int64_t{-2}, int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{7}}) {
      for (DType dtype : {DType::kF32, DType::kF64, DType::kI32, DType::kC64}) {
        if (y < 0 && dtype == DType::kI32) continue;
        Sample s;
        s.operands = {Type{dtype, {11}, {}}};
        s.attrs = {{"y", y}};
        if (y < 0) s.low = 0.5;
        samples.push_back(s);
      }
    }
    return samples;
  };
}

}  // namespace

void RegisterConversions(PrimRegistry& r) {
  RegisterConvert(r);
  RegisterBitcast(r);
  RegisterIntegerPow(r);
}

}  // namespace weft
