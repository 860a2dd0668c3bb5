// Discrete Fourier transforms.
#include <cmath>

#include "ir/ops.h"
#include "ir/prims/elementwise.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

using Complex = std::complex<double>;

bool IsRealKind(const std::string& kind) { return kind == "rfft" || kind == "irfft"; }
int64_t HalfSize(int64_t n) { return n / 2 + 1; }

Types InferFft(const Sig& s) {
  const Type& x = s.operands[0];
  const std::string& kind = s.attrs.Get<std::string>("kind");
  const Ints& lengths = s.attrs.Get<Ints>("lengths");
  if (kind != "fft" && kind != "ifft" && !IsRealKind(kind))
    throw ValueError("fft: kind is \"", kind, "\"; expected \"fft\", \"ifft\", \"rfft\" or \"irfft\"");
  const bool real = kind == "rfft";
  if (real ? x.dtype != DType::kF32 && x.dtype != DType::kF64 : !IsComplex(x.dtype)) {
    throw TypeError("fft: operand is ", x, "; kind \"", kind, "\" takes ", real ? "f32|f64" : "c64|c128");
  }
  const int rank = static_cast<int>(lengths.size());
  if (rank == 0 || rank > x.rank())
    throw ValueError("fft: lengths=", ToString(Attr(lengths)), " has ", rank, " entries; expected 1 to ", x.rank(),
                     ", the rank of operand ", x);
  Type y = x;
  for (int i = 0; i < rank; ++i) {
    const int d = x.rank() - rank + i;
    if (lengths[i] < 1)
      throw ValueError("fft: lengths=", ToString(Attr(lengths)), " holds ", lengths[i], "; expected at least 1");
    const bool last = i == rank - 1;
    const int64_t expected = last && kind == "irfft" ? HalfSize(lengths[i]) : lengths[i];
    if (!(x.dims[d] == Dim(expected)))
      throw TypeError("fft: dimension ", d, " of operand ", x, " has size ", x.dims[d], "; expected ", expected,
                      " for kind \"", kind, "\" and lengths=", ToString(Attr(lengths)));
    y.dims[d] = last && kind == "rfft" ? HalfSize(lengths[i]) : lengths[i];
  }
  if (kind == "rfft") y.dtype = *ComplexOf(x.dtype);
  if (kind == "irfft") y.dtype = RealPart(x.dtype);
  return {y};
}

// y[k] = sum over j of x[j] e^(sign 2 pi i j k / n) along `dim`, term by term.
void TransformDim(std::vector<Complex>& x, const Shape& shape, int64_t dim, double sign) {
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  const int64_t n = shape[dim], step = strides[dim];
  std::vector<Complex> roots(n), line(n);
  for (int64_t k = 0; k < n; ++k)
    roots[k] = std::polar(1.0, sign * 2 * M_PI * static_cast<double>(k) / static_cast<double>(n));
  Shape lines = shape;
  lines[dim] = 1;
  ForEachIndex(lines, [&](const Shape& index) {
    const int64_t base = Offset(index, strides);
    for (int64_t k = 0; k < n; ++k) {
      line[k] = 0;
      for (int64_t j = 0; j < n; ++j) line[k] += x[base + j * step] * roots[j * k % n];
    }
    for (int64_t k = 0; k < n; ++k) x[base + k * step] = line[k];
  });
}

// Copies x into an array whose last dimension has another size: cut off, or (a spectrum of real numbers) completed by
// symmetry, where entry n - k of the last dimension is the conjugate of entry k.
std::vector<Complex> WithLastDim(const std::vector<Complex>& x, int64_t old_size, int64_t size) {
  const int64_t rows = static_cast<int64_t>(x.size()) / old_size;
  std::vector<Complex> y(rows * size);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < size; ++k)
      y[row * size + k] = k < old_size ? x[row * old_size + k] : std::conj(x[row * old_size + size - k]);
  }
  return y;
}

Tensors EvalFft(const EvalContext& c, const Tensors& in) {
  const std::string& kind = c.sig.attrs.Get<std::string>("kind");
  const Ints& lengths = c.sig.attrs.Get<Ints>("lengths");
  const bool inverse = kind == "ifft" || kind == "irfft";
  Shape shape = in[0].shape();
  const int first = static_cast<int>(shape.size() - lengths.size()), last = static_cast<int>(shape.size()) - 1;
  std::vector<Complex> x = LoadAs<Complex>(in[0]);
  double scale = 1;
  for (int d = first; d <= last; ++d) {
    if (inverse) scale /= static_cast<double>(lengths[d - first]);
    if (d < last) TransformDim(x, shape, d, inverse ? 1 : -1);
  }
  if (kind == "irfft") {
    x = WithLastDim(x, shape[last], lengths.back());
    shape[last] = lengths.back();
    // Entry 0 and, for an even length, the middle one are their own mirror images: real.
    const int64_t n = shape[last];
    for (size_t i = 0; i < x.size(); ++i) {
      const int64_t k = static_cast<int64_t>(i) % n;
      if (k == 0 || 2 * k == n) x[i] = x[i].real();
    }
  }
  if (!x.empty()) TransformDim(x, shape, last, inverse ? 1 : -1);
  if (kind == "rfft") x = WithLastDim(x, shape[last], HalfSize(shape[last]));
  for (Complex& v : x) v *= scale;
  const Type& y = c.results[0];
  return {StoreAs<Complex>(y.dtype, StaticSizes(y.dims, "eval"), x)};
}

Atom EmitFft(Builder& b, const Atom& x, const std::string& kind, const Ints& lengths) {
  return b.Emit1(FindPrim("fft"), {x}, {{"kind", kind}, {"lengths", lengths}});
}

// The matrix of fft and ifft is symmetric. rfft is an fft of which half is dropped: its transpose pads the cotangents
// and keeps the real part of their fft. irfft counts every entry but 0 and the middle twice (once for its mirror
// image).
OptionalAtoms FftTranspose(TransposeContext& c) {
  Builder& b = c.b;
  const std::string& kind = c.eqn.attrs.Get<std::string>("kind");
  const Ints& lengths = c.eqn.attrs.Get<Ints>("lengths");
  const int rank = c.types[0].rank();
  const int64_t n = lengths.back(), half = HalfSize(n);
  if (kind == "rfft") {
    const Ints none(rank, 0);
    Ints hi = none;
    hi.back() = n - half;
    const Atom padded = Pad(b, *c.ct[0], Atom::Scalar(b.DTypeOf(*c.ct[0]), 0), none, hi, none);
    return {Real(b, EmitFft(b, padded, "fft", lengths))};
  }
  if (kind == "irfft") {
    double size = 1;
    for (int64_t l : lengths) size *= static_cast<double>(l);
    const Atom spectrum = EmitFft(b, *c.ct[0], "rfft", lengths);
    const Type real = c.types[0].With(b.DTypeOf(*c.ct[0]));
    const Atom at = Iota(b, c.types[0].dims, rank - 1, DType::kI32);
    auto is = [&](int64_t k) { return Eq(b, at, Atom::Scalar(DType::kI32, static_cast<double>(k))); };
    const Atom once = n % 2 == 0 ? Or(b, is(0), is(n / 2)) : is(0);
    const Atom weight = Select(b, once, Full(b, real, 1 / size), Full(b, real, 2 / size));
    return {Conj(b, Mul(b, Convert(b, weight, c.types[0].dtype), spectrum))};
  }
  return {EmitFft(b, *c.ct[0], kind, lengths)};
}

}  // namespace

void RegisterFft(PrimRegistry& r) {
  Prim& p = r.Add(
      "fft", Family::kLinalg, 1,
      "The discrete Fourier transform over the last dimensions, whose sizes are `lengths`. kind \"fft\": y[k] = sum of "
      "x[j] e^(-2 pi i j k / n); \"ifft\": its inverse, "
      "divided by n; both c64|c128 to the same. \"rfft\": f32|f64 to complex, entries 0 to n/2 of the last dimension "
      "of \"fft\". \"irfft\": complex with last dimension "
      "n/2 + 1 to real with last dimension n, the inverse of \"rfft\" (imaginary parts that must be 0 are ignored).");
  p.dtypes = {DType::kF32, DType::kF64, DType::kC64, DType::kC128};
  p.infer = InferFft;
  p.eval = EvalFft;
  p.flops = [](const Sig& s, const Types& results, const SizeOf& size) {  // Cooley & Tukey 1965: 5 n log2 n
    double n = 5, logs = 0;
    const Types& wider = s.operands[0].rank() > 0 && size(s.operands[0].dims.back()) < size(results[0].dims.back())
                             ? results
                             : s.operands;
    for (const Dim& d : wider[0].dims) n *= size(d);
    for (int64_t length : s.attrs.Get<Ints>("lengths")) logs += std::log2(std::max<double>(1, length));
    return n * logs;
  };
  p.linear = {0};
  p.transpose = FftTranspose;
  p.batch = [](BatchContext& c) {  // one more dimension in front of the transformed ones
    c.y = {c.b.Emit1(*c.eqn.prim, {c.x[0]}, c.eqn.attrs)};
    c.batched_out = {true};
  };
  p.tolerance = 1e-5;
  p.samples = [] {
    std::vector<Sample> samples;
    auto add = [&](DType t, Dims dims, const char* kind, Ints lengths) {
      samples.push_back(SampleOf({Type{t, std::move(dims), {}}}, {{"kind", std::string(kind)}, {"lengths", lengths}}));
    };
    for (DType t : {DType::kC64, DType::kC128}) {
      for (const char* kind : {"fft", "ifft"}) {
        add(t, {2, 5}, kind, {5});
        add(t, {3, 4}, kind, {3, 4});
      }
      add(t, {2, 4}, "irfft", {6});
      add(t, {2, 4}, "irfft", {7});
      add(t, {2, 3, 3}, "irfft", {3, 4});
      add(t, {1}, "irfft", {1});
    }
    for (DType t : {DType::kF32, DType::kF64}) {
      add(t, {2, 6}, "rfft", {6});
      add(t, {7}, "rfft", {7});
      add(t, {2, 3, 4}, "rfft", {3, 4});
    }
    add(DType::kC64, {0, 4}, "fft", {4});
    return samples;
  };
}

}  // namespace weft
