// linear_solve: the x with A x = b for a linear map A given as a function, solved by whatever the user says.
//
//   operands: num_consts values that the functions captured, b    results: x, auxiliary ones
//   regions: solve (consts, b) -> (x, auxiliary),   matvec (consts, x) -> A x,
//            transposed solve (consts, b) -> (x with A^T x = b, ...), which may be missing; symmetric=true: A^T = A.
//
// Derivatives by implicit differentiation of A x = b: A dx = db - dA x, one more solve with the same A; reverse mode
// solves with A^T. The solver itself is never differentiated, and its auxiliary results count as constants.
#include <algorithm>

#include "ir/prims/control/regions.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

size_t NumConsts(const Attrs& attrs, size_t operands) {
  const int64_t n = attrs.GetInt("num_consts");
  if (n < 0 || n > static_cast<int64_t>(operands))
    throw ValueError("linear_solve: num_consts=", n, " of ", operands, " operands");
  return static_cast<size_t>(n);
}

bool Symmetric(const Attrs& attrs) { return attrs.GetOr<bool>("symmetric", false); }

Types InferLinearSolve(const Sig& s) {
  if (s.regions.size() != 2 && s.regions.size() != 3)
    throw TypeError("linear_solve: has ", s.regions.size(), " regions; expected 2, or 3 with the transposed solve");
  const Types b = Part(s.operands, NumConsts(s.attrs, s.operands.size()), s.operands.size());
  for (const Type& t : b) {
    if (!IsInexact(t.dtype)) throw TypeError("linear_solve: the right side has ", t, "; expected inexact dtypes");
  }
  for (size_t i = 0; i < s.regions.size(); ++i) {
    CheckRegionParams(s, i, s.operands);
    const Types results = s.regions[i]->ResultTypes();
    if (results.size() < b.size() || Part(results, 0, b.size()) != b || (i == 1 && results.size() != b.size())) {
      throw TypeError("linear_solve: ",
                      i == 0   ? "the solver"
                      : i == 1 ? "the linear map"
                               : "the transposed solver",
                      " gives (", ToString(results), "); expected (", ToString(b), ")");
    }
  }
  return s.regions[0]->ResultTypes();
}

void LinearSolveJvp(JvpContext& c) {
  const size_t consts = NumConsts(c.eqn.attrs, c.x.size()), n = c.x.size() - consts;
  c.y = c.b.Emit(*c.eqn.prim, c.x, c.eqn.attrs, c.eqn.regions);
  OptionalAtoms rhs = Part(c.dx, consts, c.dx.size());
  const Atoms captured = Part(c.x, 0, consts);
  Mask active = ActiveOf(Part(c.dx, 0, consts));
  if (Any(active)) {
    active.resize(c.x.size(), false);
    const JvpFn map = c.regions.jvp(c.eqn.regions[1], active, Mask(n, false));
    Atoms args = captured;
    Append(args, Part(c.y, 0, n));
    Append(args, Tangents(c.b, c.x, c.dx, active));
    const Atoms out = c.b.Inline(*map.fn, args);
    const OptionalAtoms moved = Spread(Part(out, n, out.size()), map.active_out);
    for (size_t i = 0; i < n; ++i) {
      if (moved[i]) rhs[i] = rhs[i] ? Sub(c.b, *rhs[i], *moved[i]) : Neg(c.b, *moved[i]);
    }
  }
  c.dy.assign(c.y.size(), std::nullopt);
  if (!Any(ActiveOf(rhs))) return;
  Atoms operands = captured;
  Append(operands, Tangents(c.b, Part(c.x, consts, c.x.size()), rhs, Mask(n, true)));
  const Atoms dy = c.b.Emit(*c.eqn.prim, operands, c.eqn.attrs, c.eqn.regions);
  std::copy(dy.begin(), dy.begin() + static_cast<int64_t>(n), c.dy.begin());
}

OptionalAtoms LinearSolveTranspose(TransposeContext& c) {
  const size_t consts = NumConsts(c.eqn.attrs, c.x.size()), n = c.x.size() - consts;
  for (size_t i = 0; i < consts; ++i) {
    if (c.linear(static_cast<int>(i)))
      throw UserError(ErrorKind::kDerivative, c.eqn.loc, "transpose: linear_solve is not linear in its linear map");
  }
  std::vector<FnRef> regions = c.eqn.regions;
  if (!Symmetric(c.eqn.attrs)) {
    if (regions.size() < 3) {
      throw UserError(ErrorKind::kDerivative, c.eqn.loc,
                      "reverse mode through custom_linear_solve solves with the transposed linear map: give "
                      "transpose_solve=, or symmetric=True if the map is symmetric");
    }
    Mask linear(c.x.size(), true);
    std::fill(linear.begin(), linear.begin() + static_cast<int64_t>(consts), false);
    regions = {regions[2], c.regions.transpose(regions[1], linear), regions[0]};
  }
  Atoms operands;
  for (size_t i = 0; i < consts; ++i) operands.push_back(*c.x[i]);
  for (size_t i = 0; i < n; ++i) operands.push_back(c.ct[i] ? *c.ct[i] : Zeros(c.b, c.types[consts + i]));
  const Atoms cts = c.b.Emit(*c.eqn.prim, operands, c.eqn.attrs, regions);
  OptionalAtoms out(c.x.size());
  for (size_t i = 0; i < n; ++i) {
    if (c.linear(static_cast<int>(consts + i))) out[consts + i] = cts[i];
  }
  return out;
}

// A part of the right side is mapped where it is given so, or where a region makes its part of the solution so: regions
// take what they give.
void LinearSolveBatch(BatchContext& c) {
  const size_t consts = NumConsts(c.eqn.attrs, c.x.size()), n = c.x.size() - consts;
  const auto [sides, batched] = CarryFixpoint(Part(c.batched, consts, c.x.size()), [&](const Mask& mask) {
    Mask operands = Part(c.batched, 0, consts), parts = mask;
    Append(operands, mask);
    std::vector<BatchedFn> fns;
    for (const FnRef& f : c.eqn.regions) {
      Mask force = mask;
      force.resize(f->results().size(), false);
      fns.push_back(c.regions.batch(f, operands, force, c.size));
      parts = Union(parts, Part(fns.back().batched_out, 0, n));
    }
    return std::make_pair(fns, parts);
  });
  Atoms operands;
  for (size_t i = 0; i < c.x.size(); ++i)
    operands.push_back(i >= consts && sides[i - consts] ? c.Batched(static_cast<int>(i)) : c.x[i]);
  std::vector<FnRef> regions;
  for (const BatchedFn& f : batched.first) regions.push_back(f.fn);
  c.y = c.b.Emit(*c.eqn.prim, operands, c.eqn.attrs, regions);
  c.batched_out = batched.first[0].batched_out;
}

// A lower triangular system of two unknowns, solved by hand, and one with a diagonal of its own solved in one division.
std::vector<Sample> LinearSolveSamples() {
  std::vector<Sample> samples;
  for (DType t : {DType::kF32, DType::kF64}) {
    const Type scalar{t, {}, {}}, vector{t, {4}, {}};
    Builder solve("solve"), map("matvec"), transposed("transpose_solve");  // (a 0; c 1) (x, y)
    const Atom sa = solve.Parameter(scalar), sc = solve.Parameter(scalar), sb0 = solve.Parameter(scalar),
               sb1 = solve.Parameter(scalar);
    const Atom x = Div(solve, sb0, sa);
    const Atom ma = map.Parameter(scalar), mc = map.Parameter(scalar), m0 = map.Parameter(scalar),
               m1 = map.Parameter(scalar);
    const Atom ta = transposed.Parameter(scalar), tc = transposed.Parameter(scalar), t0 = transposed.Parameter(scalar),
               t1 = transposed.Parameter(scalar);
    Sample s = SampleOf({scalar, scalar, scalar, scalar}, {{"num_consts", int64_t{2}}});
    s.regions = {solve.Build({x, Sub(solve, sb1, Mul(solve, sc, x))}),
                 map.Build({Mul(map, ma, m0), Add(map, Mul(map, mc, m0), m1)}),
                 transposed.Build({Div(transposed, Sub(transposed, t0, Mul(transposed, tc, t1)), ta), t1})};
    s.low = 0.5;
    samples.push_back(s);
    Builder quotient("solve"), product("matvec");
    const Atom d = quotient.Parameter(vector), b = quotient.Parameter(vector);
    const Atom pd = product.Parameter(vector), px = product.Parameter(vector);
    Sample diagonal = SampleOf({vector, vector}, {{"num_consts", int64_t{1}}, {"symmetric", true}});
    diagonal.regions = {quotient.Build({Div(quotient, b, Sin(quotient, d))}),
                        product.Build({Mul(product, Sin(product, pd), px)})};
    diagonal.low = 0.5;
    samples.push_back(diagonal);
  }
  return samples;
}

}  // namespace

void RegisterLinearSolve(PrimRegistry& r) {
  Prim& p =
      r.Add("linear_solve", Family::kControl, -1,
            "The x with A x = b, by region 0 (num_consts constants, b -> x, auxiliary results), for the linear map "
            "A that region 1 is (constants, x -> A x). Region 2, if given, solves with the transposed map; "
            "symmetric=true says that A is its own. Derivatives by implicit differentiation; auxiliary results "
            "count as constants.");
  p.region_use = RegionUse::kWithRules;
  p.infer = InferLinearSolve;
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors { return c.run(*c.sig.regions[0], in); };
  p.jvp = LinearSolveJvp;
  p.linear = {-1};
  p.transpose = LinearSolveTranspose;
  p.batch = LinearSolveBatch;
  p.keeps_results = "each of them is part of the answer to one system; auxiliary ones have no cotangents";
  p.samples = LinearSolveSamples;
}

}  // namespace weft
