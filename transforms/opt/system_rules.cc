// Systems of linear equations and determinants whose matrix is known from how it is made: triangular and diagonal ones
// need no factorisation, and the sum of x @ x.T and a diagonal takes half of one.
#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "absl/strings/str_replace.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/contraction.h"
#include "transforms/opt/defined_by.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/known.h"
#include "transforms/opt/matrix_forms.h"
#include "transforms/opt/product_rules.h"

namespace weft {
namespace {

struct Sought {
  const Prim &lu = FindPrim("lu"), &contract = FindPrim("contract"), &cholesky = FindPrim("cholesky"),
             &triangular_solve = FindPrim("triangular_solve"), &cond = FindPrim("cond"), &mul = FindPrim("mul"),
             &div = FindPrim("div"), &convert = FindPrim("convert"), &select = FindPrim("select"), &eq = FindPrim("eq"),
             &ne = FindPrim("ne"), &both = FindPrim("and"), &sum = FindPrim("reduce_sum"),
             &product = FindPrim("reduce_prod"), &log = FindPrim("log"), &abs = FindPrim("abs"),
             &sign = FindPrim("sign"), &stop_gradient = FindPrim("stop_gradient");
};
const Sought& Prims() {
  static const Sought prims;
  return prims;
}

Atom WithGradient(const Builder& b, const Atom& a) {
  const Eqn* stopped = DefinedBy(b, a, Prims().stop_gradient);
  return stopped != nullptr ? stopped->operands[0] : a;
}

// --- Solutions -------------------------------------------------------------------------------------------------------

// A system A x = b, or A^T x = b, that is solved by the LU factorisation of A.
struct System {
  Atom a, b;
  bool transposed;
  size_t consts;

  static std::optional<System> Of(const Builder& b, const Eqn& e, const Atoms& x) {
    const auto consts = static_cast<size_t>(e.attrs.GetInt("num_consts"));
    if (e.num_results != 1 || x.size() != consts + 1) return std::nullopt;
    const Fn& map = *e.regions[1];
    if (map.eqns().size() != 1 || !(map.results()[0] == Atom(map.eqns()[0].result()))) return std::nullopt;
    const Eqn& product = map.eqns()[0];
    if (product.prim != &Prims().contract || product.attrs.entries().size() != 1) return std::nullopt;
    const Atom &matrix = product.operands[0], &moved = product.operands[1];
    if (!matrix.is_var() || matrix.id() >= consts || !(moved == Atom(Var{static_cast<uint32_t>(consts)})))
      return std::nullopt;
    System s{x[matrix.id()], x[consts], false, consts};
    const Type &type = b.TypeOf(s.a), &right = b.TypeOf(s.b);
    if (!type.is_static() || !right.is_static() || !type.varying.empty() || !right.varying.empty() ||
        type.rank() != right.rank() || type.rank() < 2)
      return std::nullopt;
    // [..., a, z] [..., z, y] -> [..., a, y], or with a and z exchanged in the first.
    ContractSpec spec = ContractSpec::Parse(product.attrs.Get<std::string>("spec"));
    const size_t row = spec.out.size() - 2, column = row + 1;
    s.transposed = spec.lhs[row] == spec.rhs[row];
    if (s.transposed) std::swap(spec.lhs[row], spec.lhs[column]);
    if (spec.lhs[column] != spec.rhs[row] || spec.lhs[row] != spec.out[row] || spec.rhs[column] != spec.out[column] ||
        spec.lhs.substr(0, row) != spec.out.substr(0, row) || spec.rhs.substr(0, row) != spec.out.substr(0, row))
      return std::nullopt;
    // Who solves otherwise, step by step perhaps, has asked for that.
    const bool factored = std::any_of(x.begin(), x.begin() + static_cast<int64_t>(consts), [&](const Atom& c) {
      const Eqn* lu = DefinedBy(b, c, Prims().lu);
      return lu != nullptr && WithGradient(b, lu->operands[0]) == WithGradient(b, s.a);
    });
    return factored ? std::optional(s) : std::nullopt;
  }
};

Atom SolveTriangle(Builder& b, const Atom& a, const Atom& right, bool lower, bool transposed) {
  return b.Emit1(
      Prims().triangular_solve, {a, right},
      {{"left", true}, {"lower", lower}, {"transpose", transposed}, {"conjugate", false}, {"unit_diagonal", false}});
}

std::optional<Atom> SolveByTriangle(Builder& b, const Eqn& e, const Atoms& x) {
  const std::optional<System> s = System::Of(b, e, x);
  const std::optional<Triangle> triangle = s ? TriangleOf(b, WithGradient(b, s->a)) : std::nullopt;
  if (!triangle) return std::nullopt;
  if (!triangle->zero_above || !triangle->zero_below)
    return SolveTriangle(b, s->a, s->b, triangle->zero_above, s->transposed);
  const Dims dims = b.TypeOf(s->b).dims;
  Ints kept = Range(0, static_cast<int64_t>(dims.size()) - 1);
  return Div(b, s->b, Broadcast(b, DiagonalOf(b, s->a), dims, kept));
}

// Rows from which on half of a factorisation is more than what looking at the factor takes.
constexpr int64_t kLeastRows = 96;

// By the Cholesky factor; where there is none, since rounding or a negative number has made the matrix indefinite, as
// it is written.
std::optional<Atom> SolveByCholesky(Builder& b, const Eqn& e, const Atoms& x) {
  const std::optional<System> s = System::Of(b, e, x);
  if (!s || b.TypeOf(s->a).dims.back().value() < kLeastRows || !IsGramAndDiagonal(b, WithGradient(b, s->a)))
    return std::nullopt;
  const Sought& p = Prims();
  const Atom factor = b.Emit1(p.cholesky, {s->a});
  const Atom found = Reduce(b, "reduce_and", IsFinite(b, factor), Range(0, b.TypeOf(factor).rank()));
  // What the branches read: constants but the factors, which each branch makes for itself; the matrix, its Cholesky
  // factor, the right side.
  Atoms operands;
  std::vector<std::pair<size_t, uint32_t>> of_lu;  // the constants that are results of the factorisation
  for (size_t i = 0; i < s->consts; ++i) {
    const Eqn* lu = DefinedBy(b, x[i], p.lu);
    if (lu != nullptr && WithGradient(b, lu->operands[0]) == WithGradient(b, s->a))
      of_lu.emplace_back(i, x[i].id() - lu->first_result);
    else
      operands.push_back(x[i]);
  }
  const size_t kept = operands.size();
  operands.insert(operands.end(), {s->a, factor, s->b});
  const auto branch = [&](bool by_factor) {
    Builder inside(by_factor ? "by_cholesky" : "by_lu");
    Atoms in;
    for (const Atom& a : operands) in.push_back(inside.Parameter(b.TypeOf(a)));
    const Atom a = in[kept], l = in[kept + 1], right = in[kept + 2];
    if (by_factor) {
      const Atom half = SolveTriangle(inside, l, right, /*lower=*/true, /*transposed=*/false);
      const Atom solved = SolveTriangle(inside, l, half, /*lower=*/true, /*transposed=*/true);
      return std::move(inside).Build({solved});
    }
    const Atoms lu = inside.Emit(p.lu, {a}, {});
    Atoms args(s->consts);
    size_t next = 0;
    for (size_t i = 0; i < s->consts; ++i) {
      const auto at = std::find_if(of_lu.begin(), of_lu.end(), [&](const auto& c) { return c.first == i; });
      args[i] = at == of_lu.end() ? in[next++] : lu[at->second];
    }
    args.push_back(right);
    const Atoms solved = inside.Inline(*e.regions[0], args);
    return std::move(inside).Build(solved);
  };
  Atoms all = {found};
  all.insert(all.end(), operands.begin(), operands.end());
  return b.Emit(p.cond, all, {}, {branch(false), branch(true)})[0];
}

// --- Determinants ----------------------------------------------------------------------------------------------------

// The triangular matrix of whose LU factors `a` takes the diagonal; nothing where that is not so.
std::optional<Atom> TriangleWithDiagonal(const Builder& b, const Eqn& e) {
  if (e.operands.size() != 2 || !TakesDiagonal(b, e, e.operands)) return std::nullopt;
  const Eqn* lu = DefinedBy(b, e.operands[0], Prims().lu);
  if (lu == nullptr || e.operands[0].id() != lu->first_result) return std::nullopt;
  const Type& type = b.TypeOf(lu->operands[0]);
  return type.is_static() && type.varying.empty() && TriangleOf(b, lu->operands[0]) ? std::optional(lu->operands[0])
                                                                                    : std::nullopt;
}

// -1 where the rows of x, of whose LU factors `lu` are the results, were exchanged an odd number of times, else 1.
bool IsSignOfRows(const Builder& b, const Atom& a, const Atom& x) {
  const Sought& p = Prims();
  const auto is_number = [&](const Atom& of, double n) {
    const Atom* number = Splat(b, of);
    return number != nullptr && number->literal().Get(0) == std::complex<double>(n);
  };
  const Eqn* e = DefinedBy(b, a, p.convert);
  e = e ? DefinedBy(b, e->operands[0], p.select) : nullptr;
  if (e == nullptr || !is_number(e->operands[1], -1) || !is_number(e->operands[2], 1)) return false;
  e = DefinedBy(b, e->operands[0], p.eq);
  if (e == nullptr || !is_number(e->operands[1], 1)) return false;
  e = DefinedBy(b, e->operands[0], p.both);
  if (e == nullptr || !is_number(e->operands[1], 1)) return false;
  e = DefinedBy(b, e->operands[0], p.sum);
  e = e ? DefinedBy(b, e->operands[0], p.convert) : nullptr;
  e = e ? DefinedBy(b, e->operands[0], p.ne) : nullptr;
  if (e == nullptr || b.TypeOf(e->operands[0]).rank() != 1 || IndexedDim(b, e->operands[1]) != 0) return false;
  const Eqn* lu = DefinedBy(b, e->operands[0], p.lu);
  return lu != nullptr && e->operands[0].id() == lu->first_result + 1 && lu->operands[0] == x;
}

// prod(f(diagonal of U)) * sign, where f is nothing or the sign: of the triangle itself, whatever the order of rows.
std::optional<Atom> DeterminantOfTriangle(Builder& b, const Eqn&, const Atoms& x) {
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Eqn* product = DefinedBy(b, x[i], Prims().product);
    if (product == nullptr || b.TypeOf(x[i]).rank() != 0) continue;
    const Eqn* of = b.Definition(product->operands[0]);
    const Eqn* sign = of != nullptr && of->prim == &Prims().sign ? of : nullptr;
    if (sign != nullptr) of = b.Definition(sign->operands[0]);
    const std::optional<Atom> matrix = of ? TriangleWithDiagonal(b, *of) : std::nullopt;
    if (!matrix || !IsSignOfRows(b, x[1 - i], *matrix)) continue;
    const bool of_signs = sign != nullptr;
    const Attrs attrs = product->attrs;  // emitting may move it
    Atom diagonal = DiagonalOf(b, *matrix);
    if (of_signs) diagonal = Sign(b, diagonal);
    return b.Emit1(Prims().product, {diagonal}, attrs);
  }
  return std::nullopt;
}

// sum(log(abs(diagonal of U))).
std::optional<Atom> LogDeterminantOfTriangle(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn* of = DefinedBy(b, x[0], Prims().log);
  of = of ? DefinedBy(b, of->operands[0], Prims().abs) : nullptr;
  of = of ? b.Definition(of->operands[0]) : nullptr;
  const std::optional<Atom> matrix = of ? TriangleWithDiagonal(b, *of) : std::nullopt;
  if (!matrix || !IsFloat(b.DTypeOf(*matrix))) return std::nullopt;
  return b.Emit1(*e.prim, {Log(b, Abs(b, DiagonalOf(b, *matrix)))}, e.attrs);
}

// --- Rows ------------------------------------------------------------------------------------------------------------

// A system of N equations whose matrix is `a`, of numbers alone.
std::string SystemOf(const std::string& matrix, const char* n = "3") {
  const std::string text =
      "fn f(x: f32[N,2]) { i = iota[dim=0, dtype=i32, shape=<N,N>]; j = iota[dim=1, dtype=i32, shape=<N,N>]\n" +
      matrix + R"(
    l, p, q = lu a
    r = linear_solve[num_consts=3] q l a x (q: i32[N], l: f32[N,N], a: f32[N,N], v: f32[N,2]) -> (f32[N,2]) {
      c = reshape[shape=<N,1>] q
      w = gather[collapsed_dims=[0], indices_batch_dims=[], mode="clip", offset_dims=[1], operand_batch_dims=[],
                 slice_sizes=[1,2], start_index_map=[0]] v c
      s = triangular_solve[conjugate=false, left=true, lower=true, transpose=false, unit_diagonal=true] l w
      t = triangular_solve[conjugate=false, left=true, lower=false, transpose=false, unit_diagonal=false] l s
      return t
    } (q: i32[N], l: f32[N,N], a: f32[N,N], v: f32[N,2]) -> (f32[N,2]) {
      s = contract[spec="az,zy->ay"] a v
      return s
    }
    return r })";
  return absl::StrReplaceAll(text, {{"N", n}});
}

// A text that lives as long as the rules.
const char* Kept(std::string text) {
  static auto& texts = *new std::deque<std::string>();
  return texts.emplace_back(std::move(text)).c_str();
}

constexpr char kDeterminant[] = R"(fn f(x: f32[3]) { i = iota[dim=0, dtype=i32, shape=<3,3>]
    j = iota[dim=1, dtype=i32, shape=<3,3>]; e = eq i j; s = broadcast[dims=[1], shape=<3,3>] x; d = select e s 0.0:f32
    g = gt i j; n = convert[dtype=f32] g; a = add n d; l, p, q = lu a; k = iota[dim=0, dtype=i32, shape=<3,1>]
    h = concatenate[dim=1] k k
    u = gather[collapsed_dims=[0,1], indices_batch_dims=[], mode="clip", offset_dims=[], operand_batch_dims=[],
               slice_sizes=[1,1], start_index_map=[0,1]] l h
    )";

const std::vector<SimplifyRule>& Rules() {
  const std::string unit = "e = eq i j; d = convert[dtype=f32] e; f = mul d 4.0:f32; ";
  static const auto& rules = *new std::vector<SimplifyRule>{
      {"solve-triangle", "linear_solve", Licence::kProducts, SolveByTriangle,
       Kept(SystemOf(unit + "g = gt i j; a = select g -1.0:f32 f")), false, RuleTime::kStabilizing},
      {"solve-triangle", "linear_solve", Licence::kProducts, SolveByTriangle,
       Kept(SystemOf(unit + "g = lt i j; a = select g -1.0:f32 f")), false, RuleTime::kStabilizing},
      {"solve-triangle", "linear_solve", Licence::kProducts, SolveByTriangle,
       Kept(SystemOf("e = eq i j; d = convert[dtype=f32] e; a = mul d 4.0:f32")), false, RuleTime::kStabilizing},
      {"solve-gram", "linear_solve", Licence::kProducts, SolveByCholesky,
       Kept(SystemOf(unit + "k = add j 1:i32; g = eq i k; o = select g -1.0:f32 d; "
                            "w = contract[spec=\"az,yz->ay\"] o o; a = add w f",
                     "96")),
       false, RuleTime::kLowering},
      {"determinant-of-triangle", "mul", Licence::kProducts, DeterminantOfTriangle,
       Kept(std::string(kDeterminant) +
            R"(v = reduce_prod[dims=[0]] u; o = iota[dim=0, dtype=i32, shape=<3>]; w = ne p o
            y = convert[dtype=i32] w; z = reduce_sum[dims=[0]] y; aa = and z 1:i32; ab = eq aa 1:i32
            ac = select ab -1:i32 1:i32; ad = convert[dtype=f32] ac; r = mul v ad; return r })"),
       false, RuleTime::kStabilizing},
      {"determinant-of-triangle", "reduce_sum", Licence::kAccurate, LogDeterminantOfTriangle,
       Kept(std::string(kDeterminant) + "v = abs u; w = log v; r = reduce_sum[dims=[0]] w; return r }"), false,
       RuleTime::kStabilizing},
  };
  return rules;
}

}  // namespace

absl::Span<const SimplifyRule> SystemRules() { return Rules(); }

}  // namespace weft
