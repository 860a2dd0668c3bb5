#include "ir/prims/elementwise.h"

#include <algorithm>
#include <array>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace weft {
namespace {

template <class K, class T>
K Widen(T value) {
  if constexpr (std::is_same_v<K, std::complex<double>>) {
    if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
      return K(value.real(), value.imag());
    } else {
      return K(static_cast<double>(value));
    }
  } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    return static_cast<K>(value.real());
  } else {
    return static_cast<K>(value);
  }
}

template <class T, class K>
T Narrow(K value) {
  if constexpr (std::is_same_v<K, std::complex<double>>) {
    if constexpr (std::is_same_v<T, std::complex<float>>)
      return T(static_cast<float>(value.real()), static_cast<float>(value.imag()));
    else if constexpr (std::is_same_v<T, std::complex<double>>)
      return value;
    else
      return Narrow<T>(value.real());
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    return T(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, std::complex<double>>) {
    return T(static_cast<double>(value));
  } else if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (kIsSmallFloat<T> && std::is_same_v<K, double>) {
    // double -> float -> half would round twice; rounding the first step to odd makes the second one exact.
    float f = static_cast<float>(value);
    if (std::isfinite(f) && static_cast<double>(f) != value) {
      uint32_t bits = std::bit_cast<uint32_t>(f);
      if ((bits & 1) == 0) {
        const bool grew = std::abs(static_cast<double>(f)) > std::abs(value);
        bits = grew ? bits - 1 : bits | 1;
      }
      f = std::bit_cast<float>(bits);
    }
    return T(f);
  } else {
    return static_cast<T>(value);
  }
}

int Operands(const Prim& prim) { return prim.num_operands; }

template <class K>
void Load(const Tensor& t, absl::Span<K> values) {
  VisitDType(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < values.size(); ++i) values[i] = Widen<K>(t.at<T>(static_cast<int64_t>(i)));
  });
}

// What is computed outside of jit has a few elements as a rule, for which no memory is asked for.
template <class K>
using Elements = absl::InlinedVector<K, 32>;

template <class K, int kArity, class F>
Tensor Apply(const F& f, const Tensors& in, const Type& result) {
  const Shape shape = StaticSizes(result.dims, "eval");
  const auto n = static_cast<size_t>(NumElements(shape));
  std::array<Elements<K>, kArity> x;
  std::array<size_t, kArity> step;  // 0 for numbers, which repeat
  for (size_t i = 0; i < kArity; ++i) {
    x[i].resize(static_cast<size_t>(in[i].size()));
    Load<K>(in[i], absl::MakeSpan(x[i]));
    step[i] = in[i].rank() == 0 ? 0 : 1;
  }
  Elements<K> y(n);
  for (size_t i = 0; i < n; ++i) {
    if constexpr (kArity == 1)
      y[i] = f(x[0][i * step[0]]);
    else
      y[i] = f(x[0][i * step[0]], x[1][i * step[1]]);
  }
  return StoreAs<K>(result.dtype, shape, y);
}

template <int kArity>
EvalFn EvalOf(ScalarMeaning<kArity> m) {
  return [m](const EvalContext& c, const Tensors& in) -> Tensors {
    const DType dtype = in[0].dtype();
    if (IsComplex(dtype)) return {Apply<std::complex<double>, kArity>(m.on_complex, in, c.results[0])};
    if (IsFloat(dtype)) return {Apply<double, kArity>(m.on_double, in, c.results[0])};
    if (IsSigned(dtype)) return {Apply<int64_t, kArity>(m.on_signed, in, c.results[0])};
    return {Apply<uint64_t, kArity>(m.on_unsigned, in, c.results[0])};
  };
}

template <int kArity>
DTypeSet Legal(const ScalarMeaning<kArity>&, DTypeSet dtypes) {
  return dtypes;
}

Prim& AddRow(PrimRegistry& r, const char* name, int arity, DTypeSet dtypes, const char* doc, const Declared& more) {
  Prim& p = r.Add(name, Family::kElementwise, arity, doc);
  p.dtypes = dtypes;
  p.infer = [](const Sig& sig) -> Types { return {InferElementwise(sig)}; };
  p.batch = BatchElementwise;
  p.samples = [prim = &p] { return ElementwiseSamples(*prim); };
  p.work = more.work;
  p.tolerance = more.ulps * 0x1p-23;
  p.formula = more.formula;
  p.example = more.example;
  return p;
}

}  // namespace

template <class K>
std::vector<K> LoadAs(const Tensor& t) {
  std::vector<K> values(t.size());
  Load<K>(t, absl::MakeSpan(values));
  return values;
}

template <class K>
Tensor StoreAs(DType dtype, const Shape& shape, absl::Span<const K> values) {
  Tensor t(dtype, shape);
  VisitDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < values.size(); ++i) t.data<T>()[i] = Narrow<T>(values[i]);
  });
  return t;
}

template std::vector<double> LoadAs(const Tensor&);
template std::vector<std::complex<double>> LoadAs(const Tensor&);
template std::vector<int64_t> LoadAs(const Tensor&);
template std::vector<uint64_t> LoadAs(const Tensor&);
template Tensor StoreAs(DType, const Shape&, absl::Span<const double>);
template Tensor StoreAs(DType, const Shape&, absl::Span<const std::complex<double>>);
template Tensor StoreAs(DType, const Shape&, absl::Span<const int64_t>);
template Tensor StoreAs(DType, const Shape&, absl::Span<const uint64_t>);

Type JoinShapes(const Sig& sig) {
  // The first operand that is not a splat gives the shape.
  int shape = 0;
  for (size_t i = 0; i < sig.operands.size(); ++i) {
    if (!(sig.literal[i] && sig.operands[i].rank() == 0)) {
      shape = static_cast<int>(i);
      break;
    }
  }
  Type type = sig.operands[shape];
  for (size_t i = 0; i < sig.operands.size(); ++i) {
    const Type& t = sig.operands[i];
    if (!(sig.literal[i] && t.rank() == 0) && !(t.dims == type.dims)) {
      throw TypeError(sig.prim.name, ": operand ", i, " is ", t, ", but operand ", shape, " is ", type,
                      "; shapes must be equal");
    }
  }
  return type;
}

Type InferElementwise(const Sig& sig) {
  Type type = JoinShapes(sig);
  for (size_t i = 0; i < sig.operands.size(); ++i) {
    const Type& t = sig.operands[i];
    if (!sig.prim.dtypes.Has(t.dtype)) {
      throw TypeError(sig.prim.name, ": operand ", i, " is ", t, "; expected one of ", sig.prim.dtypes.ToString());
    }
    if (t.dtype != sig.operands[0].dtype) {
      throw TypeError(sig.prim.name, ": operand ", i, " is ", t, ", but operand 0 is ", sig.operands[0],
                      "; dtypes must be equal");
    }
  }
  type.dtype = sig.operands[0].dtype;
  return type;
}

void BatchElementwise(BatchContext& c) {
  Atoms operands;
  for (size_t i = 0; i < c.x.size(); ++i) {
    const bool splat = c.x[i].is_literal() && c.x[i].literal().rank() == 0;
    operands.push_back(splat ? c.x[i] : c.Batched(static_cast<int>(i)));
  }
  Attrs attrs = c.eqn.attrs;
  c.y = c.b.Emit(*c.eqn.prim, operands, attrs, c.eqn.regions);
  c.batched_out.assign(c.y.size(), true);
}

std::vector<Sample> ElementwiseSamples(const Prim& prim) {
  std::vector<Sample> samples;
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    if (!prim.dtypes.Has(dtype) || IsOpaque(dtype)) continue;
    for (const Dims& dims : {Dims{37}, Dims{}, Dims{3, 5}}) {
      if (dims.size() != 1 && dtype != DType::kF32) continue;
      Sample s;
      s.operands.assign(Operands(prim), Type{dtype, dims, {}});
      if (IsUnsigned(dtype)) s.low = 0, s.high = 7;
      samples.push_back(s);
    }
  }
  return samples;
}

Prim& AddUnary(PrimRegistry& r, const char* name, DTypeSet dtypes, ScalarMeaning<1> meaning, UnaryPartial partial,
               const char* doc, const Declared& more) {
  Prim& p = AddRow(r, name, 1, dtypes, doc, more);
  p.eval = EvalOf<1>(std::move(meaning));
  if (partial) {
    p.partials = [partial](Builder& b, const Atoms& x, const Atom& y) -> OptionalAtoms {
      const std::optional<Expr> d = partial(Expr{&b, x[0]}, Expr{&b, y});
      return {d ? std::optional<Atom>(d->atom) : std::nullopt};
    };
  }
  return p;
}

Prim& AddBinary(PrimRegistry& r, const char* name, DTypeSet dtypes, ScalarMeaning<2> meaning, BinaryPartials partials,
                const char* doc, const Declared& more) {
  Prim& p = AddRow(r, name, 2, dtypes, doc, more);
  p.eval = EvalOf<2>(std::move(meaning));
  if (partials) {
    p.partials = [partials](Builder& b, const Atoms& x, const Atom& y) -> OptionalAtoms {
      const auto [d0, d1] = partials(Expr{&b, x[0]}, Expr{&b, x[1]}, Expr{&b, y});
      return {d0 ? std::optional<Atom>(d0->atom) : std::nullopt, d1 ? std::optional<Atom>(d1->atom) : std::nullopt};
    };
  }
  return p;
}

}  // namespace weft
