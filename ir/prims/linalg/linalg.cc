#include "ir/prims/linalg/linalg.h"

#include "ir/prims/contraction.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {

Prim& AddLinalg(PrimRegistry& r, const char* name, int num_operands, double flops, std::string doc) {
  Prim& p = r.Add(name, Family::kLinalg, num_operands, std::move(doc));
  p.dtypes = kLapackTypes;
  p.tolerance = 1e-4;
  p.flops = [flops](const Sig& s, const Types&, const SizeOf& size) {
    double n = flops;
    for (const Dim& d : s.operands[0].dims) n *= size(d);
    return n * size(s.operands.back().dims.back());
  };
  p.batch = [](BatchContext& c) {  // one more dimension of the stack
    Atoms x;
    for (size_t i = 0; i < c.x.size(); ++i) x.push_back(c.Batched(static_cast<int>(i)));
    c.y = c.b.Emit(*c.eqn.prim, x, c.eqn.attrs);
    c.batched_out.assign(c.y.size(), true);
  };
  return p;
}

const Type& CheckMatrix(const Sig& s, int i, bool square) {
  const Type& x = s.operands[i];
  if (!s.prim.dtypes.Has(x.dtype))
    throw TypeError(s.prim.name, ": operand ", i, " is ", x, "; expected one of ", s.prim.dtypes.ToString());
  if (x.rank() < 2)
    throw TypeError(s.prim.name, ": operand ", i, " is ", x,
                    "; expected a matrix or a stack of matrices, rank 2 or more");
  if (square && !(x.dims[x.rank() - 1] == x.dims[x.rank() - 2]))
    throw TypeError(s.prim.name, ": operand ", i, " is ", x, "; expected square matrices");
  return x;
}

Type WithMatrix(const Type& type, const Dim& rows, const Dim& cols) {
  Type t = type;
  t.dims[t.rank() - 2] = rows;
  t.dims[t.rank() - 1] = cols;
  return t;
}

Type WithVector(const Type& type, const Dim& size) {
  Type t = type;
  t.dims.pop_back();
  t.dims.back() = size;
  return t;
}

namespace {

template <class T>
Tensors EvalStack(const EvalContext& c, const Tensors& in, const MatrixFunction<T>& f) {
  std::vector<std::vector<T>> values;
  int64_t count = 1;
  for (const Tensor& t : in) values.push_back(LoadAs<T>(t));
  for (int d = 0; d + 2 < in[0].rank(); ++d) count *= in[0].shape()[d];
  std::vector<std::vector<T>> results(c.results.size());
  for (int64_t k = 0; k < count; ++k) {
    std::vector<Matrix<T>> x;
    for (size_t i = 0; i < in.size(); ++i) {
      const Shape& shape = in[i].shape();
      Matrix<T> m(shape[shape.size() - 2], shape[shape.size() - 1]);
      const auto begin = values[i].begin() + k * m.rows * m.cols;
      m.values.assign(begin, begin + m.rows * m.cols);
      x.push_back(std::move(m));
    }
    const std::vector<Matrix<T>> y = f(x);
    for (size_t r = 0; r < results.size(); ++r)
      results[r].insert(results[r].end(), y[r].values.begin(), y[r].values.end());
  }
  Tensors out;
  for (size_t r = 0; r < results.size(); ++r)
    out.push_back(StoreAs<T>(c.results[r].dtype, StaticSizes(c.results[r].dims, "eval"), results[r]));
  return out;
}

// Column index minus row index of each entry, compared with k.
Expr Band(Builder& b, const Dims& dims, const char* comparison, int64_t k) {
  const int64_t rank = static_cast<int64_t>(dims.size());
  const Atom row = Iota(b, dims, rank - 2, DType::kI32), col = Iota(b, dims, rank - 1, DType::kI32);
  const Atom limit = k == 0 ? row : Add(b, row, Atom::Scalar(DType::kI32, static_cast<double>(k)));
  return {&b, b.Emit1(FindPrim(comparison), {col, limit})};
}

Expr Masked(const Expr& x, const char* comparison, int64_t k) {
  return Select(Band(*x.b, x.b->TypeOf(x.atom).dims, comparison, k), x, x.Number(0));
}

}  // namespace

Tensors EvalMatrices(const EvalContext& c, const Tensors& in, const MatrixFunction<double>& real,
                     const MatrixFunction<std::complex<double>>& complex) {
  return IsComplex(in[0].dtype()) ? EvalStack<std::complex<double>>(c, in, complex) : EvalStack<double>(c, in, real);
}

Expr MatMul(const Expr& x, const Expr& y) {
  return {x.b, Contract(*x.b, MatrixProductSpec(x.b->TypeOf(x.atom).rank()), x.atom, y.atom)};
}

Ints Last2Swapped(int rank) {
  Ints perm = Range(0, rank);
  std::swap(perm[rank - 1], perm[rank - 2]);
  return perm;
}

Expr Transposed(const Expr& x) { return {x.b, Transpose(*x.b, x.atom, Last2Swapped(x.b->TypeOf(x.atom).rank()))}; }
Expr Adjoint(const Expr& x) { return IsComplex(x.dtype()) ? Conj(Transposed(x)) : Transposed(x); }

Expr Lower(const Expr& x, int64_t k) { return Masked(x, "le", k); }
Expr Upper(const Expr& x, int64_t k) { return Masked(x, "ge", k); }
Expr Identity(Builder& b, const Type& like) { return {&b, Convert(b, Band(b, like.dims, "eq", 0), like.dtype)}; }
Expr OnDiagonal(const Expr& x, const Expr& otherwise) {
  return Select(Band(*x.b, x.b->TypeOf(x.atom).dims, "eq", 0), x, otherwise);
}

Expr Diagonal(const Expr& x) { return {x.b, ReduceSum(*x.b, Masked(x, "eq", 0), {x.b->TypeOf(x.atom).rank() - 1})}; }

Expr AsRows(const Expr& vector, const Type& matrix) {
  Ints dims = Range(0, matrix.rank() - 1);
  dims.back() = matrix.rank() - 1;
  return {vector.b, Broadcast(*vector.b, vector.atom, matrix.dims, dims)};
}

Expr AsColumns(const Expr& vector, const Type& matrix) {
  return {vector.b, Broadcast(*vector.b, vector.atom, matrix.dims, Range(0, matrix.rank() - 1))};
}

Expr ToComplexLike(const Expr& x, DType dtype) {
  return {x.b, IsComplex(dtype) ? Convert(*x.b, x.atom, dtype) : x.atom};
}

Expr HermitianFromLower(const Expr& x) {
  const Expr below = Lower(x, -1);
  const Expr diagonal = IsComplex(x.dtype()) ? ToComplexLike(Real(x), x.dtype()) : x;
  return OnDiagonal(diagonal, below + Adjoint(below));
}

Expr SolveTriangular(const Expr& a, const Expr& b, bool left, bool lower, bool adjoint, bool unit_diagonal) {
  return {a.b, a.b->Emit1(FindPrim("triangular_solve"), {a.atom, b.atom},
                          {{"left", left},
                           {"lower", lower},
                           {"transpose", adjoint},
                           {"conjugate", adjoint && IsComplex(a.dtype())},
                           {"unit_diagonal", unit_diagonal}})};
}

Tensor MatrixOf(const Type& type, const std::function<std::complex<double>(int64_t, int64_t)>& entry) {
  Tensor t(type.dtype, StaticSizes(type.dims, "sample"));
  const int64_t rows = t.shape()[t.rank() - 2], cols = t.shape()[t.rank() - 1];
  for (int64_t i = 0; i < t.size(); ++i) {
    const int64_t matrix = i / (rows * cols);
    const std::complex<double> value = entry(i / cols % rows, i % cols) * (1 + 0.5 * static_cast<double>(matrix));
    t.Set(i, IsComplex(type.dtype) ? value : value.real());
  }
  return t;
}

std::vector<Sample> MatrixSamples(const std::vector<Dims>& shapes, const Attrs& attrs,
                                  const std::function<Tensor(const Type&)>& values) {
  std::vector<Sample> samples;
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (DType t : {DType::kF32, DType::kF64, DType::kC64, DType::kC128}) {
      if (i > 0 && t != DType::kF32) continue;
      Sample s = SampleOf({Type{t, shapes[i], {}}}, attrs);
      if (values) s.values = {{0, values(s.operands[0])}};
      samples.push_back(s);
    }
  }
  return samples;
}

void RegisterLinalg(PrimRegistry& r) {
  RegisterSolvers(r);
  RegisterSpectral(r);
}

}  // namespace weft
