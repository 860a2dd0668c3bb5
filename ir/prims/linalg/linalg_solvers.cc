// cholesky, triangular_solve, lu.
#include <algorithm>

#include "ir/prim_table.h"
#include "ir/prims/contraction.h"
#include "ir/prims/linalg/linalg.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

// Well-conditioned matrices for samples.
std::complex<double> PositiveEntry(int64_t i, int64_t j) {
  if (i == j) return 4.0 + static_cast<double>(i);
  return {1.0 / static_cast<double>(1 + i + j), 0.3 * static_cast<double>(i - j)};
}
std::complex<double> TriangularEntry(int64_t i, int64_t j) {
  if (i == j) return {2.0 + 0.5 * static_cast<double>(i), 0.5};
  return {0.4 * static_cast<double>(i) - 0.3 * static_cast<double>(j), 0.2};
}
std::complex<double> PivotingEntry(int64_t i, int64_t j) {
  const double far = static_cast<double>((2 * i + 1) % 5 == j ? 5 : 0);  // the largest entries are not on the diagonal
  return {far + 1.0 / static_cast<double>(1 + i + 2 * j), 0.1 * static_cast<double>(i) - 0.2};
}

// The lower triangle with the diagonal halved: phi of a Hermitian matrix, which is that and its adjoint.
Expr LowerHalf(const Expr& x) { return OnDiagonal(x * 0.5, Lower(x)); }

void RegisterCholesky(PrimRegistry& r) {
  Prim& p = AddLinalg(r, "cholesky", 1, 1.0 / 3,
                      "The lower triangular L [..., n, n] with L L^H = x, for Hermitian positive definite x [..., n, "
                      "n], of which the lower triangle alone is read; the lower "
                      "triangle of L is NaN where x is not positive definite. Derivative: L phi(L^-1 dx L^-H), phi "
                      "taking the lower triangle with the diagonal halved "
                      "(Murray 2016, \"Differentiation of the Cholesky decomposition\").");
  p.infer = [](const Sig& s) -> Types { return {CheckMatrix(s, 0, /*square=*/true)}; };
  p.eval = EvalEachMatrix([](const Attrs&, const auto& x) { return std::vector{Cholesky(x[0])}; });
  p.jvp = [](JvpContext& c) {
    const Expr l{&c.b, c.b.Emit1(*c.eqn.prim, {c.x[0]}, c.eqn.attrs)};
    // dx is the half that is read and its adjoint, and L^-1 dx L^-H likewise: the sum of a matrix and its adjoint. Its
    // cotangent is one, too (IsHermitian).
    const Expr dx{&c.b, *c.dx[0]}, half = LowerHalf(dx);
    const Expr moved = SolveTriangular(l, SolveTriangular(l, half, /*left=*/false, /*lower=*/true, /*adjoint=*/true),
                                       /*left=*/true, /*lower=*/true);
    c.y = {l};
    c.dy = {MatMul(l, LowerHalf(moved + Adjoint(moved)))};
  };
  p.samples = [] {
    return MatrixSamples({{3, 3}, {1, 1}, {2, 4, 4}, {0, 0}}, {},
                         [](const Type& t) { return MatrixOf(t, PositiveEntry); });
  };
}

// Whether x is the sum of a matrix and its adjoint.
bool IsHermitian(const Builder& b, const Atom& x) {
  const Eqn* sum = b.Definition(x);
  if (sum == nullptr || !Is<"add">(*sum->prim)) return false;  // the pattern sought
  const int64_t rank = b.TypeOf(x).rank();
  for (int i : {0, 1}) {
    const Eqn* e = b.Definition(sum->operands[i]);
    bool conjugated = false, transposed = false;
    for (; e != nullptr; e = b.Definition(e->operands[0])) {
      // An adjoint is these two, in either order.
      const bool conj = Is<"conj">(*e->prim), transpose = Is<"transpose">(*e->prim);
      bool& once = conj ? conjugated : transposed;
      if (once || !(conj || transpose)) break;
      once = true;
      if (transpose && e->attrs.Get<Ints>("perm") != Last2Swapped(rank)) break;
      if (e->operands[0] == sum->operands[1 - i] && transposed && conjugated == IsComplex(b.DTypeOf(x))) return true;
    }
  }
  return false;
}

// The k with da = a k or k a, where a is triangular as a whole (not a matrix of which half is read) and so is k.
std::optional<Multiple> TriangularMultiple(const JvpContext& c) {
  const Eqn* made = c.b.Definition(c.x[0]);
  if (made == nullptr || c.eqn.attrs.GetBool("unit_diagonal")) return std::nullopt;
  // Which result is triangular as a whole, counted from 1.
  static const auto& lower = *new PrimTable<int>{{"cholesky", 1}};
  static const auto& upper = *new PrimTable<int>{{"qr", 2}};
  const int which = (c.eqn.attrs.GetBool("lower") ? lower : upper)[*made->prim];
  if (which == 0 || c.x[0] != made->result(which - 1)) return std::nullopt;
  return AsMultiple(c.b, c.x[0], *c.dx[0]);
}

// op(a) dy = db - op(da) y, or with a on the other side: written below for the left one. Where op(da) = k op(a) the
// right side is db - k b, and where it is op(a) k, dy is op(a)^-1 db - k y. (Both without the first y, or without one
// solve.)
void TriangularSolveJvp(JvpContext& c) {
  Builder& b = c.b;
  const Prim& prim = *c.eqn.prim;
  const Attrs attrs = c.eqn.attrs;
  const bool left = attrs.GetBool("left"), transpose = attrs.GetBool("transpose");
  const Expr y{&b, b.Emit1(prim, c.x, attrs)};
  c.y = {y};
  auto solve = [&](const Atom& rhs) { return b.Emit1(prim, {c.x[0], rhs}, attrs); };
  auto op = [&](Expr a) {
    if (attrs.GetBool("conjugate") && IsComplex(a.dtype())) a = Conj(a);
    return transpose ? Transposed(a) : a;
  };
  auto minus_product = [&](const std::optional<Atom>& from, const Expr& k, const Expr& x) -> Atom {
    const Expr product = left ? MatMul(k, x) : MatMul(x, k);
    return from ? Expr{&b, *from} - product : -product;
  };
  const std::optional<Atom>& db = c.dx[1];
  if (!c.dx[0]) {
    c.dy = {solve(*db)};
    return;
  }
  const std::optional<Multiple> multiple = TriangularMultiple(c);
  if (!multiple) {
    const int64_t k = attrs.GetBool("unit_diagonal") ? 1 : 0;
    const Expr da{&b, *c.dx[0]};
    c.dy = {solve(minus_product(db, op(attrs.GetBool("lower") ? Lower(da, -k) : Upper(da, k)), y))};
    return;
  }
  const Expr k = op(Expr{&b, multiple->factor});
  const bool k_first = multiple->left != transpose;  // op(da) = k op(a)
  if (k_first != left) {
    c.dy = {minus_product(db ? std::optional<Atom>(solve(*db)) : std::nullopt, k, y)};
    return;
  }
  // What was solved from the other side commutes with k: m^-1 dq - (m^-1 q) k = m^-1 (dq - q k).
  const Eqn *of_b = b.Definition(c.x[1]), *of_db = db ? b.Definition(*db) : nullptr;
  if (of_b != nullptr && of_db != nullptr && of_b->prim == &prim && of_db->prim == &prim &&
      of_b->attrs == of_db->attrs && of_b->operands[0] == of_db->operands[0] && of_b->attrs.GetBool("left") != left) {
    const Attrs before = of_b->attrs;
    const Atom m = of_b->operands[0], q = of_b->operands[1], dq = of_db->operands[1];
    Atom inner = minus_product(dq, k, Expr{&b, q});
    // a^-H q a^-1: the rule of the solve before has multiplied q with the adjoint of k, from the other side.
    if (m == c.x[0] && IsHermitian(b, q)) {
      const Expr product = left ? MatMul(Expr{&b, q}, Adjoint(k)) : MatMul(Adjoint(k), Expr{&b, q});
      inner = Expr{&b, dq} - Adjoint(product);
    }
    c.dy = {solve(b.Emit1(prim, {m, inner}, before))};
    return;
  }
  c.dy = {solve(minus_product(db, k, Expr{&b, c.x[1]}))};
}

void RegisterTriangularSolve(PrimRegistry& r) {
  Prim& p = AddLinalg(r, "triangular_solve", 2, 1,
                      "The x with op(a) x = b (left) or x op(a) = b (not left), for triangular a [..., n, n], of which "
                      "the lower (or upper) half alone is read, the diagonal taken "
                      "as ones with unit_diagonal, and op the transpose, the conjugate, both or none. b is [..., n, k] "
                      "(left) or [..., k, n]. Derivative in a: -op(a)^-1 op(da) x.");
  p.infer = [](const Sig& s) -> Types {
    const Type &a = CheckMatrix(s, 0, /*square=*/true), &b = CheckMatrix(s, 1);
    for (const char* name : {"lower", "transpose", "conjugate", "unit_diagonal"}) s.attrs.GetBool(name);
    const bool left = s.attrs.GetBool("left");
    const bool fits = a.rank() == b.rank() && std::equal(a.dims.begin(), a.dims.end() - 2, b.dims.begin()) &&
                      b.dims[b.rank() - (left ? 2 : 1)] == a.dims.back();
    if (!fits || a.dtype != b.dtype) {
      throw TypeError("triangular_solve: operand 0 is ", a, ", operand 1 is ", b,
                      "; expected equal dtypes, equal leading dimensions, and ", left ? "rows" : "columns",
                      " of operand 1 equal to the size of operand 0");
    }
    return {b};
  };
  p.eval = EvalEachMatrix([](const Attrs& attrs, const auto& in) {
    const bool left = attrs.GetBool("left"), transpose = attrs.GetBool("transpose"),
               conjugate = attrs.GetBool("conjugate"), unit = attrs.GetBool("unit_diagonal");
    // x op(a) = b is op(a)^T x^T = b^T. Transposes are adjoints of conjugates.
    auto conj = [](auto m) {
      for (auto& v : m.values) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(v)>, double>) v = std::conj(v);
      }
      return m;
    };
    auto transposed = [&](const auto& m) { return conj(m).Adjoint(); };
    const bool turn = transpose == left;
    auto a = turn ? transposed(in[0]) : in[0];
    if (conjugate) a = conj(a);
    const bool lower = attrs.GetBool("lower") != turn;
    return std::vector{left ? SolveTriangular(a, in[1], lower, unit)
                            : transposed(SolveTriangular(a, transposed(in[1]), lower, unit))};
  });
  p.linear = {1};
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    return {std::nullopt, c.b.Emit1(*c.eqn.prim, {*c.x[0], *c.ct[0]},
                                    c.eqn.attrs.With("transpose", !c.eqn.attrs.GetBool("transpose")))};
  };
  p.jvp = TriangularSolveJvp;
  p.samples = [] {
    std::vector<Sample> samples;
    auto add = [&](DType t, Dims a, Dims b, bool left, bool lower, bool transpose, bool conjugate, bool unit) {
      Sample s = SampleOf({Type{t, std::move(a), {}}, Type{t, std::move(b), {}}}, {{"left", left},
                                                                                   {"lower", lower},
                                                                                   {"transpose", transpose},
                                                                                   {"conjugate", conjugate},
                                                                                   {"unit_diagonal", unit}});
      s.values = {{0, MatrixOf(s.operands[0], TriangularEntry)}};
      samples.push_back(s);
    };
    for (DType t : {DType::kF32, DType::kF64, DType::kC64, DType::kC128}) {
      add(t, {3, 3}, {3, 2}, true, true, false, false, false);
      add(t, {3, 3}, {2, 3}, false, false, true, true, false);
      add(t, {3, 3}, {3, 1}, true, true, false, true, true);
    }
    for (int flags = 0; flags < 16; ++flags) {
      const bool left = flags & 1;
      add(DType::kF32, {3, 3}, left ? Dims{3, 2} : Dims{2, 3}, left, flags & 2, flags & 4, false, flags & 8);
    }
    add(DType::kF32, {2, 3, 3}, {2, 3, 2}, true, false, false, false, false);
    add(DType::kF32, {0, 0}, {0, 2}, true, true, false, false, false);
    return samples;
  };
}

// Rows permutation[0], permutation[1], ... of a stack of matrices.
Expr TakeRows(const Expr& x, const Atom& permutation) {
  Builder& b = *x.b;
  const int64_t stack = b.TypeOf(x.atom).rank() - 2;
  Dims shape = b.TypeOf(permutation).dims;
  shape.push_back(1);
  Ints sizes(stack + 1, 1);
  sizes.push_back(-1);
  return {&b, b.Emit1(FindPrim("gather"), {x.atom, Reshape(b, permutation, shape)},
                      {{"offset_dims", Ints{stack + 1}},
                       {"collapsed_dims", Ints{stack}},
                       {"operand_batch_dims", Range(0, stack)},
                       {"indices_batch_dims", Range(0, stack)},
                       {"start_index_map", Ints{stack}},
                       {"slice_sizes", sizes},
                       {"mode", std::string("promise")}})};
}

// x with its last two dimensions cut to, or padded with zeros to, rows x cols.
Expr Resized(const Expr& x, int64_t rows, int64_t cols) {
  Builder& b = *x.b;
  const Type type = b.TypeOf(x.atom);
  const int rank = type.rank();
  Ints none(rank, 0), hi(rank, 0);
  hi[rank - 2] = rows - type.dims[rank - 2].value("the derivative of lu");
  hi[rank - 1] = cols - type.dims[rank - 1].value("the derivative of lu");
  return {&b, hi == none ? x.atom : Pad(b, x.atom, Atom::Scalar(type.dtype, 0), none, hi, none)};
}

// d(P x) = dL U + L dU, so with F = L^-1 P dx U^-1: dL = L lower(F, -1), dU = upper(F) U. L and U are completed by the
// identity to m x m and n x n.
void LuJvp(JvpContext& c) {
  Builder& b = c.b;
  const Type x = b.TypeOf(c.x[0]);
  const int64_t m = x.dims[x.rank() - 2].value("the derivative of lu"), n = x.dims.back().value("the derivative of lu");
  c.y = b.Emit(*c.eqn.prim, c.x, c.eqn.attrs);
  const Expr lu{&b, c.y[0]};
  const Expr l = Resized(Lower(lu, -1), m, std::min(m, n));
  const Expr l_square = Resized(l, m, m), u_square = Resized(Upper(Resized(lu, std::min(m, n), n)), n, n);
  const Expr l_full = l_square + Identity(b, WithMatrix(x, m, m));
  // Ones on the part of the diagonal below the rows that U has.
  const Expr identity = Identity(b, WithMatrix(x, n, n));
  const Expr u_full = m >= n ? u_square : u_square + (identity - Resized(Resized(identity, m, m), n, n));
  const Expr dx = TakeRows(Expr{&b, *c.dx[0]}, c.y[2]);
  const Expr f = SolveTriangular(
      u_full, SolveTriangular(l_full, dx, /*left=*/true, /*lower=*/true, /*adjoint=*/false, /*unit_diagonal=*/true),
      /*left=*/false, /*lower=*/false);
  c.dy = {MatMul(l_full, Lower(f, -1)) + MatMul(Upper(f), u_full), std::nullopt, std::nullopt};
}

void RegisterLu(PrimRegistry& r) {
  Prim& p = AddLinalg(r, "lu", 1, 2.0 / 3,
                      "The LU factorisation with row pivoting of x [..., m, n], as LAPACK's getrf gives it: (lu [..., "
                      "m, n] with L, whose diagonal is ones, below the diagonal and U "
                      "from it on; i32 pivots [..., min(m, n)], the row that row i was exchanged with; i32 permutation "
                      "[..., m]: row i of L U is row permutation[i] of x). "
                      "Derivative: de Hoog, Anderssen, Lukas 2011, \"Differentiation of matrix functionals using "
                      "triangular factorization\".");
  p.infer = [](const Sig& s) -> Types {
    const Type& x = CheckMatrix(s, 0);
    const int64_t m = x.dims[x.rank() - 2].value("lu"), n = x.dims.back().value("lu");
    return {x, WithVector(x, std::min(m, n)).With(DType::kI32), WithVector(x, m).With(DType::kI32)};
  };
  p.eval = EvalEachMatrix([](const Attrs&, const auto& x) {
    using M = std::decay_t<decltype(x[0])>;
    using T = typename decltype(M::values)::value_type;
    std::vector<int64_t> pivots, permutation;
    const M lu = PivotedLu(x[0], &pivots, &permutation);
    return std::vector<M>{lu, Column<T>(pivots), Column<T>(permutation)};
  });
  p.jvp = LuJvp;
  p.samples = [] {
    return MatrixSamples({{3, 3}, {4, 3}, {3, 5}, {2, 4, 4}, {1, 1}}, {},
                         [](const Type& t) { return MatrixOf(t, PivotingEntry); });
  };
}

}  // namespace

void RegisterSolvers(PrimRegistry& r) {
  RegisterCholesky(r);
  RegisterTriangularSolve(r);
  RegisterLu(r);
}

}  // namespace weft
