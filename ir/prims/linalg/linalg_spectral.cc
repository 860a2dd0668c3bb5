// qr, eigh, eig, svd.
#include <algorithm>

#include "ir/prims/linalg/linalg.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

// Columns begin to end of a stack of matrices.
Expr Columns(const Expr& x, int64_t begin, int64_t end) {
  Builder& b = *x.b;
  const Dims dims = b.TypeOf(x.atom).dims;
  Ints start(dims.size(), 0), limit, strides(dims.size(), 1);
  for (const Dim& d : dims) limit.push_back(d.is_static() ? d.value() : -1);
  start.back() = begin, limit.back() = end;
  return {&b, Slice(b, x.atom, start, limit, strides)};
}

// Of x = q r with at least as many rows as columns: with M = q^H dx r^-1 and the skew-Hermitian W whose lower triangle
// is M's, dq = q (W - M) + dx r^-1 and dr = (M - W) r.
void TallQrJvp(const Expr& q, const Expr& r, const Expr& dx, Expr* dq, Expr* dr) {
  const Expr dx_rinv = SolveTriangular(r, dx, /*left=*/false, /*lower=*/false);
  const Expr m = MatMul(Adjoint(q), dx_rinv), below = Lower(m, -1);
  Expr w = below - Adjoint(below);
  // The diagonal of r stays real: W takes the imaginary part of M's diagonal.
  if (IsComplex(m.dtype())) w = OnDiagonal(m - ToComplexLike(Real(m), m.dtype()), w);
  // Where q is square, its columns span the space: q m is all of dx r^-1.
  const Type shape = q.b->TypeOf(q.atom);
  const bool square = shape.dims[shape.rank() - 2] == shape.dims.back();
  *dq = square ? MatMul(q, w) : MatMul(q, w - m) + dx_rinv;
  *dr = MatMul(m - w, r);
}

void QrJvp(JvpContext& c) {
  Builder& b = c.b;
  const Type x = b.TypeOf(c.x[0]);
  const int64_t m = x.dims[x.rank() - 2].value("the derivative of qr"), n = x.dims.back().value("the derivative of qr");
  c.y = b.Emit(*c.eqn.prim, c.x, c.eqn.attrs);
  const Expr q{&b, c.y[0]}, r{&b, c.y[1]}, a{&b, c.x[0]}, da{&b, *c.dx[0]};
  Expr dq = q, dr = r;
  if (m >= n) {
    TallQrJvp(q, r, da, &dq, &dr);
  } else {  // [x1 x2] = q [r1 r2]: x1 = q r1 gives dq, and r2 = q^H x2
    TallQrJvp(q, Columns(r, 0, m), Columns(da, 0, m), &dq, &dr);
    const Expr dr2 = MatMul(Adjoint(dq), Columns(a, m, n)) + MatMul(Adjoint(q), Columns(da, m, n));
    dr = {&b, Concatenate(b, {dr.atom, dr2.atom}, x.rank() - 1)};
  }
  c.dy = {dq, dr};
}

void RegisterQr(PrimRegistry& r) {
  Prim& p = AddLinalg(r, "qr", 1, 4.0 / 3,
                      "(q [..., m, k], r [..., k, n]) with x = q r for x [..., m, n], k = min(m, n): q has orthonormal "
                      "columns, r is upper triangular with the signs of LAPACK's "
                      "Householder reflections. Derivative: Townsend 2018, \"Differentiating the QR decomposition\"; "
                      "it needs the first k columns of x to be independent.");
  p.infer = [](const Sig& s) -> Types {
    const Type& x = CheckMatrix(s, 0);
    const int64_t m = x.dims[x.rank() - 2].value("qr"), n = x.dims.back().value("qr"), k = std::min(m, n);
    return {WithMatrix(x, m, k), WithMatrix(x, k, n)};
  };
  p.eval = EvalEachMatrix([](const Attrs&, const auto& x) {
    using M = std::decay_t<decltype(x[0])>;
    M q, r;
    HouseholderQr(x[0], &q, &r);
    return std::vector<M>{q, r};
  });
  p.jvp = QrJvp;
  p.samples = [] {
    auto entry = [](int64_t i, int64_t j) -> std::complex<double> {
      return {(i == j ? -2.7 : 0.7) + 0.3 * static_cast<double>((i * 3 + j * j) % 5),
              0.2 * static_cast<double>(i) - 0.3 * static_cast<double>(j)};
    };
    return MatrixSamples({{4, 3}, {3, 3}, {2, 4}, {2, 3, 2}, {1, 1}}, {},
                         [entry](const Type& t) { return MatrixOf(t, entry); });
  };
}

// With M = v^H dx v: dw = the real diagonal of M, dv = v (F * M), F_ij = 1 / (w_j - w_i) off the diagonal, 0 on it.
void EighJvp(JvpContext& c) {
  Builder& b = c.b;
  c.y = b.Emit(*c.eqn.prim, c.x, c.eqn.attrs);
  const Expr w{&b, c.y[0]}, v{&b, c.y[1]};
  const Expr m = MatMul(Adjoint(v), MatMul(HermitianFromLower(Expr{&b, *c.dx[0]}), v));
  const Type square = b.TypeOf(c.x[0]).With(w.dtype());
  const Expr gap = AsRows(w, square) - AsColumns(w, square), one = Identity(b, square);
  const Expr f = 1.0 / (gap + one) - one;
  const Expr dw = Diagonal(m);
  c.dy = {IsComplex(m.dtype()) ? Real(dw) : dw, MatMul(v, ToComplexLike(f, m.dtype()) * m)};
}

void RegisterEigh(PrimRegistry& r) {
  Prim& p = AddLinalg(r, "eigh", 1, 9,
                      "(w [..., n], v [..., n, n]): ascending real eigenvalues and orthonormal eigenvectors (columns; "
                      "each determined up to a sign or phase) of Hermitian x [..., n, n], "
                      "of which the lower triangle alone is read. Derivative: Giles 2008, \"An extended collection of "
                      "matrix derivative results\", 3.1; not finite for equal eigenvalues.");
  p.infer = [](const Sig& s) -> Types {
    const Type& x = CheckMatrix(s, 0, /*square=*/true);
    return {WithVector(x, x.dims.back()).With(RealPart(x.dtype)), x};
  };
  p.eval = EvalEachMatrix([](const Attrs&, const auto& x) {
    using M = std::decay_t<decltype(x[0])>;
    using T = typename decltype(M::values)::value_type;
    std::vector<double> w;
    M v;
    JacobiEigh(HermitianFromLower(x[0]), &w, &v);
    return std::vector<M>{Column<T>(w), v};
  });
  p.jvp = EighJvp;
  p.samples = [] {
    auto entry = [](int64_t i, int64_t j) -> std::complex<double> {
      return i == j ? std::complex<double>(2.0 * static_cast<double>(i * i) - 3)
                    : std::complex<double>(0.8 / static_cast<double>(1 + i + j), 0.1 * static_cast<double>(i - j));
    };
    return MatrixSamples({{3, 3}, {1, 1}, {2, 4, 4}}, {}, [entry](const Type& t) { return MatrixOf(t, entry); });
  };
}

// The sum over the rows of each column.
Expr OverRows(const Expr& x) { return {x.b, ReduceSum(*x.b, x.atom, {x.b->TypeOf(x.atom).rank() - 2})}; }

// With M = v^-1 dx v: dw = the diagonal of M, and dv = v (F * M) + v diag(a), F_ij = 1 / (w_j - w_i) off the diagonal,
// 0 on it. The numbers a keep each column's length 1 and its largest entry real.
void EigJvp(JvpContext& c) {
  Builder& b = c.b;
  const Atoms wv = b.Emit(*c.eqn.prim, c.x, Attrs{{"compute_v", true}});
  const Expr w{&b, wv[0]}, v{&b, wv[1]}, dx{&b, *c.dx[0]};
  const Atoms qr = b.Emit(FindPrim("qr"), {v}, {});
  const Expr m = SolveTriangular({&b, qr[1]}, MatMul(Adjoint({&b, qr[0]}), MatMul(dx, v)), /*left=*/true,
                                 /*lower=*/false);
  c.y = {w};
  c.dy = {Diagonal(m)};
  if (!c.eqn.attrs.GetBool("compute_v")) return;
  const Type square = b.TypeOf(c.x[0]);
  const Expr gap = AsRows(w, square) - AsColumns(w, square), one = Identity(b, square);
  const Expr moved = MatMul(v, (1.0 / (gap + one) - one) * m), size = Abs(v);
  const Type real = square.With(size.dtype());
  const Expr largest{&b, Reduce(b, "reduce_max", size, {square.rank() - 2})};
  const Expr zero{&b, Zeros(b, real)}, chosen = Ge(size, AsRows(largest, real));
  const Expr turn =
      OverRows(Select(chosen, Imag(moved) / size, zero)) / OverRows(Select(chosen, Expr{&b, Full(b, real, 1)}, zero));
  const Expr a = MakeComplex(-OverRows(Real(Conj(v) * moved)), -turn);
  c.y = {w, v};
  c.dy = {Diagonal(m), moved + v * AsRows(a, square)};
}

void RegisterEig(PrimRegistry& r) {
  Prim& p =
      AddLinalg(r, "eig", 1, 25,
                "(w [..., n], v [..., n, n]): eigenvalues of complex x [..., n, n], by ascending real and then "
                "imaginary part, and eigenvectors (columns) of length 1 whose largest entry is real and positive; "
                "w alone with compute_v=false. Derivative: Giles 2008, \"An extended collection of matrix "
                "derivative results\", 3.1; that of v is not finite for equal eigenvalues.");
  p.dtypes = kComplexes;
  p.infer = [](const Sig& s) -> Types {
    const Type& x = CheckMatrix(s, 0, /*square=*/true);
    if (!IsComplex(x.dtype)) throw TypeError("eig: operand 0 is ", x, "; expected a complex dtype");
    const Type w = WithVector(x, x.dims.back());
    if (!s.attrs.GetBool("compute_v")) return {w};
    return {w, x};
  };
  p.eval = EvalEachMatrix([](const Attrs& attrs, const auto& x) {
    using M = std::decay_t<decltype(x[0])>;
    using T = typename decltype(M::values)::value_type;
    if constexpr (std::is_same_v<T, std::complex<double>>) {
      M w, v;
      SchurEig(x[0], &w, &v);
      return attrs.GetBool("compute_v") ? std::vector<M>{w, v} : std::vector<M>{w};
    }
    return std::vector<M>{};
  });
  p.jvp = EigJvp;
  p.samples = [] {
    auto entry = [](int64_t i, int64_t j) -> std::complex<double> {
      const double row = static_cast<double>(i), column = static_cast<double>(j);
      if (i == j) return {2 * row * row - 3, 1 - row};
      return {0.8 / (1 + row + 2 * column), 0.2 * (row - column) + 0.1};
    };
    std::vector<Sample> samples;
    for (const bool vectors : {true, false}) {
      for (const DType t : {DType::kC64, DType::kC128}) {
        for (const Dims& shape : {Dims{3, 3}, Dims{1, 1}, Dims{2, 4, 4}}) {
          Sample s = SampleOf({Type{t, shape, {}}}, {{"compute_v", vectors}});
          s.values = {{0, MatrixOf(s.operands[0], entry)}};
          samples.push_back(s);
        }
      }
    }
    return samples;
  };
}

void SvdJvp(JvpContext& c) {
  Builder& b = c.b;
  const bool compute_uv = c.eqn.attrs.GetBool("compute_uv");
  const Type x = b.TypeOf(c.x[0]);
  const int64_t m = x.dims[x.rank() - 2].value("the derivative of svd"),
                n = x.dims.back().value("the derivative of svd"), k = std::min(m, n);
  const Atoms usv = b.Emit(*c.eqn.prim, c.x, Attrs{{"compute_uv", true}});
  const Expr u{&b, usv[0]}, s{&b, usv[1]}, vt{&b, usv[2]}, dx{&b, *c.dx[0]};
  const Expr v = Adjoint(vt), d = MatMul(Adjoint(u), MatMul(dx, v));  // k x k
  const Expr diagonal = Diagonal(d), ds = IsComplex(d.dtype()) ? Real(diagonal) : diagonal;
  if (!compute_uv) {
    c.y = {s};
    c.dy = {ds};
    return;
  }
  auto complex = [&](const Expr& e) { return ToComplexLike(e, x.dtype); };
  const Type square = WithMatrix(x, k, k).With(s.dtype());
  const Expr s_row = AsRows(s, square), s_col = AsColumns(s, square), one = Identity(b, square);
  const Expr f = 1.0 / ((s_row + s_col) * (s_row - s_col) + one) - one;
  const Expr d_s = complex(s_row) * d, s_d = complex(s_col) * d;
  Expr u_inner = complex(f) * (d_s + Adjoint(d_s));
  if (IsComplex(x.dtype)) {  // the phase that u and v share is given to u; 0 where the singular value is
    const Expr zero = Expr{&b, Convert(b, Eq(s_row, 0.0), s.dtype())};
    u_inner = u_inner + OnDiagonal((d - Adjoint(d)) * complex((1.0 / (s_row + zero) - zero) * 0.5), complex(one * 0.0));
  }
  Expr du = MatMul(u, u_inner), dv = MatMul(v, complex(f) * (s_d + Adjoint(s_d)));
  // What leaves the column space.
  if (m > n) {
    const Expr dx_v = MatMul(dx, v);
    du = du + (dx_v - MatMul(u, MatMul(Adjoint(u), dx_v))) / complex(AsRows(s, WithMatrix(x, m, k)));
  }
  if (n > m) {
    const Expr dx_u = MatMul(Adjoint(dx), u);
    dv = dv + (dx_u - MatMul(v, MatMul(Adjoint(v), dx_u))) / complex(AsRows(s, WithMatrix(x, n, k)));
  }
  c.y = usv;
  c.dy = {du, ds, Adjoint(dv)};
}

void RegisterSvd(PrimRegistry& r) {
  Prim& p = AddLinalg(
      r, "svd", 1, 20,
      "(u [..., m, k], s [..., k], vt [..., k, n]) with x = u diag(s) vt for x [..., m, n], k = min(m, n): orthonormal "
      "columns of u and rows of vt (each pair determined "
      "up to a sign or phase), real s >= 0 in descending order; s alone with compute_uv=false. Derivative: Giles 2008, "
      "\"An extended collection of matrix derivative "
      "results\", 3.2, with its extension to m != n and complex x as in JAX; not finite for equal singular values.");
  p.infer = [](const Sig& sig) -> Types {
    const Type& x = CheckMatrix(sig, 0);
    const int64_t m = x.dims[x.rank() - 2].value("svd"), n = x.dims.back().value("svd"), k = std::min(m, n);
    const Type s = WithVector(x, k).With(RealPart(x.dtype));
    if (!sig.attrs.GetBool("compute_uv")) return {s};
    return {WithMatrix(x, m, k), s, WithMatrix(x, k, n)};
  };
  p.eval = EvalEachMatrix([](const Attrs& attrs, const auto& x) {
    using M = std::decay_t<decltype(x[0])>;
    using T = typename decltype(M::values)::value_type;
    M u, vt;
    std::vector<double> s;
    JacobiSvd(x[0], &u, &s, &vt);
    if (!attrs.GetBool("compute_uv")) return std::vector<M>{Column<T>(s)};
    return std::vector<M>{u, Column<T>(s), vt};
  });
  p.jvp = SvdJvp;
  p.samples = [] {
    auto entry = [](int64_t i, int64_t j) -> std::complex<double> {
      const double dominant = i == j ? 3.0 + 2.0 * static_cast<double>(i) : 0.0;
      return {dominant + 0.6 / static_cast<double>(1 + i + 2 * j),
              0.2 * static_cast<double>(i) - 0.1 * static_cast<double>(j)};
    };
    auto values = [entry](const Type& t) { return MatrixOf(t, entry); };
    std::vector<Sample> samples =
        MatrixSamples({{3, 3}, {4, 2}, {2, 3}, {2, 3, 2}, {1, 1}}, {{"compute_uv", true}}, values);
    for (const Sample& s : MatrixSamples({{3, 2}, {2, 2, 4}}, {{"compute_uv", false}}, values)) samples.push_back(s);
    return samples;
  };
}

}  // namespace

void RegisterSpectral(PrimRegistry& r) {
  RegisterQr(r);
  RegisterEigh(r);
  RegisterEig(r);
  RegisterSvd(r);
}

}  // namespace weft
