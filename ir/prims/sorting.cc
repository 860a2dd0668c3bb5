// sort and top_k.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/ops.h"
#include "ir/prims/elementwise.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

using Complex = std::complex<double>;
// Is element i of a key before element j?  The order of one key.
using Before = std::function<bool(int64_t i, int64_t j)>;

bool Less(double a, double b) { return a < b || (!std::isnan(a) && std::isnan(b)); }  // NaN last, -0 beside 0
bool Less(int64_t a, int64_t b) { return a < b; }
bool Less(uint64_t a, uint64_t b) { return a < b; }
bool Less(const Complex& a, const Complex& b) {
  if (Less(a.real(), b.real()) || Less(b.real(), a.real())) return Less(a.real(), b.real());
  return Less(a.imag(), b.imag());
}

// The total order of IEEE 754: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN.
bool TotalLess(double a, double b) {
  auto side = [](double v) { return std::isnan(v) ? (std::signbit(v) ? -1 : 1) : 0; };
  if (side(a) != side(b)) return side(a) < side(b);
  return a < b || (a == b && std::signbit(a) && !std::signbit(b));
}
bool TotalLess(int64_t a, int64_t b) { return a < b; }
bool TotalLess(uint64_t a, uint64_t b) { return a < b; }

template <class F>
auto WithValues(const Tensor& x, F f) {
  if (IsFloat(x.dtype())) return f(LoadAs<double>(x));
  if (IsSigned(x.dtype())) return f(LoadAs<int64_t>(x));
  return f(LoadAs<uint64_t>(x));
}

Before OrderOf(const Tensor& key) {
  auto order = [](auto values) -> Before {
    return [values](int64_t i, int64_t j) { return Less(values[i], values[j]); };
  };
  return IsComplex(key.dtype()) ? order(LoadAs<Complex>(key)) : WithValues(key, order);
}

Tensors EvalSort(const EvalContext& c, const Tensors& in) {
  const int64_t dim = c.sig.attrs.GetInt("dim");
  const Shape& shape = in[0].shape();
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  std::vector<Before> orders;
  for (int64_t k = 0; k < c.sig.attrs.GetInt("num_keys"); ++k) orders.push_back(OrderOf(in[k]));
  Tensors out;
  for (const Tensor& x : in) out.emplace_back(x.dtype(), shape);
  Shape lines = shape;
  lines[dim] = shape[dim] == 0 ? 0 : 1;
  std::vector<int64_t> line(shape[dim]);
  ForEachIndex(lines, [&](const Shape& index) {
    const int64_t base = Offset(index, strides);
    for (size_t i = 0; i < line.size(); ++i) line[i] = base + static_cast<int64_t>(i) * strides[dim];
    std::stable_sort(line.begin(), line.end(), [&](int64_t i, int64_t j) {
      for (const Before& before : orders) {
        if (before(i, j)) return true;
        if (before(j, i)) return false;
      }
      return false;
    });
    for (size_t i = 0; i < line.size(); ++i) {
      for (size_t k = 0; k < in.size(); ++k)
        CopyElement(in[k], line[i], out[k], base + static_cast<int64_t>(i) * strides[dim]);
    }
  });
  return out;
}

void RegisterSort(PrimRegistry& r) {
  Prim& p = r.Add("sort", Family::kSorting, -1,
                  "The operands, of one shape, all reordered along `dim` so that the first `num_keys` of them ascend, "
                  "compared one after the other. Stable; NaN comes last, "
                  "0 and -0 are equal, complex numbers compare by real, then imaginary part.");
  p.infer = [](const Sig& s) -> Types {
    if (s.operands.empty()) throw TypeError("sort: needs at least one operand");
    const Type& x = s.operands[0];
    CheckDim(s, "dim", x.rank());
    const int64_t num_keys = s.attrs.GetInt("num_keys");
    if (num_keys < 1 || num_keys > static_cast<int64_t>(s.operands.size())) {
      throw ValueError("sort: num_keys=", num_keys, "; expected 1 to ", s.operands.size(), ", the number of operands");
    }
    for (size_t i = 0; i < s.operands.size(); ++i) {
      if (!(s.operands[i].dims == x.dims))
        throw TypeError("sort: operand ", i, " is ", s.operands[i], ", but operand 0 is ", x, "; shapes must be equal");
      if (static_cast<int64_t>(i) < num_keys && !s.prim.dtypes.Has(s.operands[i].dtype)) {
        throw TypeError("sort: operand ", i, ", a key, is ", s.operands[i], "; expected one of ",
                        s.prim.dtypes.ToString());
      }
    }
    return s.operands;
  };
  p.eval = EvalSort;
  p.flops = [](const Sig& s, const Types& results, const SizeOf& size) {
    double n = static_cast<double>(s.operands.size());
    for (const Dim& d : results[0].dims) n *= size(d);
    return n * std::log2(std::max(2.0, size(results[0].dims[s.attrs.GetInt("dim")])));
  };
  p.jvp = [](JvpContext& c) {
    const int64_t dim = c.eqn.attrs.GetInt("dim");
    Atoms operands = c.x;
    operands.push_back(Iota(c.b, c.b.TypeOf(c.x[0]).dims, dim, DType::kI64));
    Atoms out = c.b.Emit(*c.eqn.prim, operands, c.eqn.attrs);
    const Atom order = out.back();
    out.pop_back();
    c.y = out;
    for (const auto& dx : c.dx)
      c.dy.push_back(dx ? std::optional<Atom>(TakeAlong(c.b, *dx, order, dim)) : std::nullopt);
  };
  p.batch = [](BatchContext& c) {
    Atoms x;
    for (size_t i = 0; i < c.x.size(); ++i) x.push_back(c.Batched(static_cast<int>(i)));
    c.y = c.b.Emit(*c.eqn.prim, x, c.eqn.attrs.With("dim", c.eqn.attrs.GetInt("dim") + 1));
    c.batched_out.assign(c.y.size(), true);
  };
  p.samples = [] {
    std::vector<Sample> samples;
    auto add = [&](Types operands, int64_t dim, int64_t num_keys) {
      Sample s = SampleOf(operands, {{"dim", dim}, {"num_keys", num_keys}});
      if (IsUnsigned(operands[0].dtype)) s.low = 0;
      samples.push_back(s);
    };
    for (DType t :
         SampledDTypes({DType::kF32, DType::kF64, DType::kI32, DType::kU8, DType::kBool, DType::kBF16, DType::kC64}))
      add({Type{t, {3, 6}, {}}}, 1, 1);
    const Type keys{DType::kI32, {7, 2}, {}}, values{DType::kF32, {7, 2}, {}};
    add({keys, values}, 0, 1);  // many equal keys
    add({keys, values, keys}, 0, 2);
    add({values, values}, 1, 1);
    add({Type{DType::kF32, {2, 0}, {}}}, 1, 1);
    return samples;
  };
}

void RegisterTopK(PrimRegistry& r) {
  Prim& p = r.Add("top_k", Family::kSorting, 1,
                  "The `k` largest elements of each row of the last dimension, in descending order, and their i32 "
                  "indices; of equal elements the one with the lower index comes "
                  "first. Floats compare in the total order of IEEE 754: NaN is the largest, -0 below 0.");
  p.dtypes = kAnyReals | kBools;
  p.infer = [](const Sig& s) -> Types {
    const Type& x = s.operands[0];
    const int64_t k = s.attrs.GetInt("k");
    if (!s.prim.dtypes.Has(x.dtype))
      throw TypeError("top_k: operand is ", x, "; expected one of ", s.prim.dtypes.ToString());
    if (x.rank() == 0) throw TypeError("top_k: operand is ", x, "; expected at least one dimension");
    const Dim& n = x.dims.back();
    if (k < 0 || !s.Fits(x, x.rank() - 1, k))
      throw ValueError("top_k: k=", k, "; expected 0 to ", n, ", the size of the last dimension of ", x);
    CheckPositions(s, x, x.rank() - 1, DType::kI32);  // those of the result
    Type values = x;
    values.dims.back() = Dim(k);
    return {values, values.With(DType::kI32)};
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    const int64_t k = c.sig.attrs.GetInt("k"), n = in[0].shape().back(), rows = n == 0 ? 0 : in[0].size() / n;
    const Shape shape = StaticSizes(c.results[0].dims, "eval");
    Tensor values(in[0].dtype(), shape), indices(DType::kI32, shape);
    WithValues(in[0], [&](const auto& x) {
      std::vector<int64_t> order(n);
      for (int64_t row = 0; row < rows; ++row) {
        std::iota(order.begin(), order.end(), row * n);
        std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return TotalLess(x[j], x[i]); });
        for (int64_t i = 0; i < k; ++i) {
          CopyElement(in[0], order[i], values, row * k + i);
          indices.data<int32_t>()[row * k + i] = static_cast<int32_t>(order[i] - row * n);
        }
      }
    });
    return {values, indices};
  };
  p.jvp = [](JvpContext& c) {
    c.y = c.b.Emit(*c.eqn.prim, c.x, c.eqn.attrs);
    c.dy = {TakeAlong(c.b, *c.dx[0], c.y[1], c.b.TypeOf(c.x[0]).rank() - 1), std::nullopt};
  };
  p.batch = [](BatchContext& c) {
    c.y = c.b.Emit(*c.eqn.prim, c.x, c.eqn.attrs);
    c.batched_out = {true, true};
  };
  p.samples = [] {
    std::vector<Sample> samples;
    for (DType t : SampledDTypes({DType::kF32, DType::kF64, DType::kI32, DType::kU8, DType::kBool, DType::kBF16})) {
      Sample s = SampleOf({Type{t, {3, 6}, {}}}, {{"k", int64_t{4}}});
      if (IsUnsigned(t)) s.low = 0;
      samples.push_back(s);
    }
    samples.push_back(SampleOf({Type{DType::kF32, {5}, {}}}, {{"k", int64_t{5}}}));
    samples.push_back(SampleOf({Type{DType::kF32, {2, 3}, {}}}, {{"k", int64_t{0}}}));
    return samples;
  };
}

}  // namespace

void RegisterSorting(PrimRegistry& r) {
  RegisterSort(r);
  RegisterTopK(r);
}

}  // namespace weft
