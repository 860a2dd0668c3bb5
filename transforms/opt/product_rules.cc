// Rules for products: their order, what matrices of few numbers, sums and solutions of systems make of them, and
// powers. What they replace is found by transforms/opt/network.h.
#include "transforms/opt/product_rules.h"

#include <algorithm>

#include "ir/ops.h"
#include "ir/prims/contraction.h"
#include "ir/prims/indexing.h"
#include "transforms/opt/defined_by.h"
#include "transforms/opt/network.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/same_value.h"

namespace weft {
namespace {

struct SoughtPrims {
  const Prim &contract = FindPrim("contract"), &add = FindPrim("add"), &sub = FindPrim("sub"), &mul = FindPrim("mul"),
             &solve = FindPrim("triangular_solve");
};
const SoughtPrims& Prims() {
  static const SoughtPrims prims;
  return prims;
}

bool IsPlainProduct(const Eqn& e) { return e.prim == &Prims().contract && e.attrs.entries().size() == 1; }

// --- Order -----------------------------------------------------------------------------------------------------------

// Of a product, of a sum over dimensions and of a diagonal.
Dims ResultDims(const Builder& b, const Eqn& e, const Atoms& x) {
  if (e.prim == &Prims().contract) {
    const ContractSpec spec = ContractSpec::Parse(e.attrs.Get<std::string>("spec"));
    Dims dims;
    for (const char c : spec.out) {
      const size_t at = spec.lhs.find(c);
      dims.push_back(at != std::string::npos ? b.TypeOf(x[0]).dims[at] : b.TypeOf(x[1]).dims[spec.rhs.find(c)]);
    }
    return dims;
  }
  if (e.prim->family == Family::kReduction) return WithoutDims(b.TypeOf(x[0]).dims, e.attrs.Get<Ints>("dims"));
  return {b.TypeOf(x[1]).dims[0]};
}

// How often the rest of a chain is looked at.
constexpr int kMostOrders = 64;

// Whether an order may be looked for: what decides costs less than a microsecond.
std::optional<Atom> CheapestOrderWithin(Builder& b, const Eqn& e, const Atoms& x, int orders) {
  if (orders == 0) return std::nullopt;
  if (!x[0].is_var() || !b.TypeOf(x[0]).varying.empty() || b.TypeOf(x[0]).rank() == 0) return std::nullopt;
  if (ProductNetwork::IsSingle(b, e, x)) return std::nullopt;
  ProductNetwork network(b);
  const Type result = Type{b.DTypeOf(x[0]), ResultDims(b, e, x), {}};
  const std::string out = network.Letters(result.dims);
  if (!network.AddRoot(e, x, out)) return std::nullopt;
  std::optional<Atom> made = network.Cheaper(out, result);
  // A network is of few factors: what is left of a long chain is a factor of the first product of the new order. A
  // whole one is in its best order, as this counts, whatever it costs as it is written down.
  const Eqn* found = made && !network.is_whole() ? DefinedBy(b, *made, Prims().contract) : nullptr;
  if (found == nullptr) return made;
  const Eqn last = *found;  // emitting may move it
  const std::optional<Atom> more = CheapestOrderWithin(b, last, last.operands, orders - 1);
  return more ? more : made;
}

std::optional<Atom> CheapestOrder(Builder& b, const Eqn& e, const Atoms& x) {
  return CheapestOrderWithin(b, e, x, kMostOrders);
}

// (A + u v) w = A w + u (v w), where a summand is cheaper by itself than within the sum.
std::optional<Atom> ProductOfSum(Builder& b, const Eqn& e, const Atoms& x) {
  if (!IsPlainProduct(e)) return std::nullopt;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Eqn* found = b.Definition(x[i]);
    if (found == nullptr || (found->prim != &Prims().add && found->prim != &Prims().sub) || !ReadOnce(b, x[i]))
      continue;
    const Eqn sum = *found;
    const Type result{b.DTypeOf(x[i]), ResultDims(b, e, x), {}};
    if (!(b.TypeOf(sum.operands[0]) == b.TypeOf(x[i])) || !(b.TypeOf(sum.operands[1]) == b.TypeOf(x[i]))) continue;
    if (!b.TypeOf(x[i]).is_static() || !b.TypeOf(x[i]).varying.empty()) continue;
    double written = 0, best = 0;
    std::vector<ProductNetwork> networks;
    bool right = true;
    for (const size_t k : {size_t{0}, size_t{1}}) {
      Atoms y = x;
      y[i] = sum.operands[k];
      ProductNetwork& network = networks.emplace_back(b);
      const std::string out = network.Letters(result.dims);
      const std::optional<double> cost = network.AddRoot(e, y, out) ? network.BestCost(out) : std::nullopt;
      right &= cost.has_value();
      if (!right) break;
      written += network.cost_as_written();
      best += *cost;
    }
    // As it is written there is one product less.
    ProductNetwork whole(b);
    const std::string out = whole.Letters(result.dims);
    if (!right || !whole.AddRoot(e, x, out)) continue;
    const double as_sum = whole.cost_as_written() + kCostOfElement * static_cast<double>(b.TypeOf(x[i]).size().value());
    const double made = best + static_cast<double>(NumElements(result.dims).value());
    if (made + 1024 > 0.85 * std::min(as_sum, written)) continue;
    const Atom first = networks[0].Emit(result), second = networks[1].Emit(result);
    return sum.prim == &Prims().add ? Add(b, first, second) : Sub(b, first, second);
  }
  return std::nullopt;
}

// A B + A C = A (B + C).
std::optional<Atom> CommonFactor(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn *found = DefinedBy(b, x[0], Prims().contract), *other = DefinedBy(b, x[1], Prims().contract);
  if (found == nullptr || other == nullptr || x[0] == x[1] || !IsPlainProduct(*found) ||
      !(found->attrs == other->attrs))
    return std::nullopt;
  if (!ReadOnce(b, x[0]) || !ReadOnce(b, x[1])) return std::nullopt;
  if (b.DTypeOf(x[0]) == DType::kF16 || IsFloat8(b.DTypeOf(x[0]))) return std::nullopt;  // the sum may overflow
  const Eqn p = *found, q = *other;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Atom &y = p.operands[1 - i], &z = q.operands[1 - i];
    if (!(p.operands[i] == q.operands[i]) || !(b.TypeOf(y) == b.TypeOf(z))) continue;
    const Atom sum = e.prim == &Prims().add ? Add(b, y, z) : Sub(b, y, z);
    Atoms operands = {p.operands[i], sum};
    if (i == 1) std::swap(operands[0], operands[1]);
    return b.Emit1(*p.prim, operands, p.attrs);
  }
  return std::nullopt;
}

// The product of rows of a matrix, or columns, where the product itself has fewer elements: (P B) v = P (B v).
std::optional<Atom> ProductOfRows(Builder& b, const Eqn& e, const Atoms& x) {
  static const Prim& gather = FindPrim("gather");
  if (!IsPlainProduct(e)) return std::nullopt;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Eqn* found = DefinedBy(b, x[i], gather);
    if (found == nullptr || !ReadOnce(b, x[i])) continue;
    const Eqn rows = *found;
    GatherDims g = GatherDims::Of(rows.attrs);
    const Type from = b.TypeOf(rows.operands[0]), type = b.TypeOf(x[i]), index = b.TypeOf(rows.operands[1]);
    if (g.collapsed_dims.size() != 1 || g.start_index_map != g.collapsed_dims || !g.operand_batch_dims.empty() ||
        (g.mode != "clip" && g.mode != "promise") || !from.is_static() || !index.is_static() || index.rank() != 2 ||
        !from.varying.empty() || !type.varying.empty() || from.rank() != type.rank())
      continue;
    const auto dim = static_cast<size_t>(g.collapsed_dims[0]);
    bool whole = true;  // rows, at the place of the dimension that they are picked along
    for (size_t d = 0; d < from.dims.size(); ++d)
      whole &= d == dim ? !Contains(g.offset_dims, static_cast<int64_t>(d)) : type.dims[d] == from.dims[d];
    const ContractSpec spec = ContractSpec::Parse(e.attrs.Get<std::string>("spec"));
    const char letter = (i == 0 ? spec.lhs : spec.rhs)[dim];
    const size_t at = spec.out.find(letter);
    if (!whole || at == std::string::npos || (i == 0 ? spec.rhs : spec.lhs).find(letter) != std::string::npos) continue;
    // As many products as before, at the most, and less that is picked.
    const Dims result = ResultDims(b, e, x);
    const int64_t picked = type.dims[dim].value(), there = from.dims[dim].value();
    if (there > picked || 2 * NumElements(result).value() > type.size().value()) continue;
    Atoms y = x;
    y[i] = rows.operands[0];
    const Atom product = b.Emit1(*e.prim, y, e.attrs);
    GatherDims made;
    for (size_t d = 0; d < result.size(); ++d) {
      made.slice_sizes.push_back(d == at ? 1 : result[d].value());
      if (d != at) made.offset_dims.push_back(static_cast<int64_t>(d));
    }
    made.collapsed_dims = made.start_index_map = {static_cast<int64_t>(at)};
    made.mode = g.mode;
    return b.Emit1(gather, {product, rows.operands[1]}, made.ToAttrs());
  }
  return std::nullopt;
}

// (B' A')' = A B, which a product that is written so elsewhere is, too.
std::optional<Atom> TransposedProduct(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn* found = DefinedBy(b, x[0], Prims().contract);
  if (found == nullptr || !IsPlainProduct(*found) || !ReadOnce(b, x[0]) || b.TypeOf(x[0]).rank() != 2)
    return std::nullopt;
  const Eqn product = *found;
  ContractSpec spec = ContractSpec::Parse(product.attrs.Get<std::string>("spec"));
  if (spec.lhs.size() != 2 || spec.rhs.size() != 2 || e.attrs.Get<Ints>("perm") != Ints{1, 0}) return std::nullopt;
  std::swap(spec.lhs, spec.rhs);
  std::swap(spec.out[0], spec.out[1]);
  // By the letters of a product of matrices, so that it is the same equation.
  const std::string out = spec.out;
  for (std::string* term : {&spec.lhs, &spec.rhs, &spec.out}) {
    for (char& c : *term) c = c == out[0] ? 'a' : c == out[1] ? 'y' : 'z';
  }
  return b.Emit1(*product.prim, {product.operands[1], product.operands[0]},
                 product.attrs.With("spec", spec.ToString()));
}

// --- Solutions of systems --------------------------------------------------------------------------------------------

// Whether what is solved for in the end is a matrix of zeros and ones, as for an inverse: its product is none.
bool SolvesForUnits(const Builder& b, const Eqn& solve) {
  Atom right = solve.operands[1];
  while (const Eqn* e = DefinedBy(b, right, Prims().solve)) right = e->operands[1];
  return SparseArrayOf(b, right).has_value();
}

// (T \ X) B = T \ (X B), and B (T \ X) = ((T' \ B') ') X: fewer columns are solved for.
std::optional<Atom> ProductOfSolution(Builder& b, const ContractSpec& spec, const Atom& x, const Atom& y) {
  for (const bool left : {true, false}) {  // the solution is the left factor
    const Atom &solution = left ? x : y, &other = left ? y : x;
    const Eqn* found = DefinedBy(b, solution, Prims().solve);
    if (found == nullptr || !ReadOnce(b, solution) || b.TypeOf(solution).rank() != 2) continue;
    if (!found->attrs.GetBool("left") || found->attrs.GetBool("conjugate")) continue;
    const Eqn solve = *found;
    const std::string &own = left ? spec.lhs : spec.rhs, &its = left ? spec.rhs : spec.lhs;
    if (its.empty() || its.size() > 2) continue;
    const Type type = b.TypeOf(solution), of_other = b.TypeOf(other);
    if (!type.is_static() || !of_other.is_static() || !type.varying.empty() || !of_other.varying.empty()) continue;
    std::string rest = its;  // the letters of the other factor that stay
    const auto summed_with = [&](char c) {
      const size_t at = its.find(c);
      if (at == std::string::npos || spec.out.find(c) != std::string::npos) return false;
      rest.erase(at, 1);
      return true;
    };
    const bool inverse = SolvesForUnits(b, solve);
    const int64_t columns = its.size() == 1 ? 1 : -1;
    const auto count = [&] { return columns == 1 ? 1 : of_other.dims[its.find(rest[0])].value(); };
    const int64_t rows = type.dims[0].value();
    if (summed_with(own[1])) {
      if (rest.find(own[0]) != std::string::npos || 4 * count() > (inverse ? 4 : 3) * type.dims[1].value()) continue;
      const std::string inner = std::string(1, own[0]) + rest;
      Atom product = EmitProduct(b, own + "," + its + "->" + inner, solve.operands[1], other);
      if (const Eqn* e = DefinedBy(b, product, Prims().contract); e != nullptr && inverse) {
        const Eqn of_units = *e;  // emitting may move it
        product = CheapestOrder(b, of_units, of_units.operands).value_or(product);
      }
      product = Reshape(b, product, {rows, count()});
      Atom made = b.Emit1(*solve.prim, {solve.operands[0], product}, solve.attrs);
      if (rest.empty()) return Reshape(b, made, {rows});
      return spec.out == inner ? made : Transpose(b, made, {1, 0});
    }
    if (summed_with(own[0])) {
      if (rest.find(own[1]) != std::string::npos || 4 * count() > (inverse ? 4 : 3) * type.dims[1].value()) continue;
      const bool as_column = its[0] == own[0];
      Atom right = other;
      if (!rest.empty() && !as_column) right = Transpose(b, other, {1, 0});
      right = Reshape(b, right, {rows, count()});
      const Attrs attrs = solve.attrs.With("transpose", !solve.attrs.GetBool("transpose"));
      Atom made = b.Emit1(*solve.prim, {solve.operands[0], right}, attrs);
      if (rest.empty()) made = Reshape(b, made, {rows});
      const std::string letters = std::string(1, own[0]) + rest;
      return left ? EmitProduct(b, own + "," + letters + "->" + spec.out, solve.operands[1], made)
                  : EmitProduct(b, letters + "," + own + "->" + spec.out, made, solve.operands[1]);
    }
  }
  return std::nullopt;
}

std::optional<Atom> SolveForLess(Builder& b, const Eqn& e, const Atoms& x) {
  if (!IsPlainProduct(e)) return std::nullopt;
  if (DefinedBy(b, x[0], Prims().solve) == nullptr && DefinedBy(b, x[1], Prims().solve) == nullptr) return std::nullopt;
  return ProductOfSolution(b, ContractSpec::Parse(e.attrs.Get<std::string>("spec")), x[0], x[1]);
}

// --- Products one by one ---------------------------------------------------------------------------------------------

// Element `at` along dimension `dim` of `of`, all of the others.
struct Element {
  Atom of;
  int64_t dim, at;
};
std::optional<Element> ElementOf(const Builder& b, const Atom& a) {
  static const Prim &slice = FindPrim("slice"), &reshape = FindPrim("reshape");
  const Eqn* view = DefinedBy(b, a, reshape);
  const Eqn* e = view == nullptr ? nullptr : DefinedBy(b, view->operands[0], slice);
  if (e == nullptr || b.TypeOf(a).rank() + 1 != b.TypeOf(e->operands[0]).rank()) return std::nullopt;
  const Dims &from = b.TypeOf(e->operands[0]).dims, &to = b.TypeOf(e->result()).dims;
  const Ints& start = e->attrs.Get<Ints>("start");
  std::optional<Element> found;
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] == to[d]) continue;
    if (found || !(to[d] == Dim(1))) return std::nullopt;
    found = Element{e->operands[0], static_cast<int64_t>(d), start[d]};
  }
  return found && WithoutDims(from, {found->dim}) == b.TypeOf(a).dims ? found : std::nullopt;
}

// stack([a @ x[0], a @ x[1], ...]): one product.
std::optional<Atom> StackOfProducts(Builder& b, const Eqn& e, const Atoms& x) {
  static const Prim& reshape = FindPrim("reshape");
  if (x.size() < 4) return std::nullopt;
  const int64_t dim = e.attrs.GetInt("dim");
  std::vector<Eqn> products;
  for (const Atom& a : x) {
    const Type& type = b.TypeOf(a);
    if (!type.is_static() || !(type.dims[static_cast<size_t>(dim)] == Dim(1))) return std::nullopt;
    const Eqn* view = DefinedBy(b, a, reshape);
    const Eqn* product = view == nullptr ? nullptr : DefinedBy(b, view->operands[0], Prims().contract);
    if (product == nullptr || !IsPlainProduct(*product) || !ReadOnce(b, view->operands[0])) return std::nullopt;
    if (WithoutDims(type.dims, {dim}) != b.TypeOf(view->operands[0]).dims) return std::nullopt;
    if (!products.empty() && !(product->attrs == products[0].attrs)) return std::nullopt;
    products.push_back(*product);
  }
  for (const size_t i : {size_t{0}, size_t{1}}) {  // the factor that differs
    const std::optional<Element> first = ElementOf(b, products[0].operands[i]);
    if (!first) continue;
    bool all = true;
    for (size_t k = 0; k < products.size() && all; ++k) {
      const std::optional<Element> own = ElementOf(b, products[k].operands[i]);
      all = own && own->of == first->of && own->dim == first->dim && own->at == first->at + static_cast<int64_t>(k) &&
            SameValue(b, products[k].operands[1 - i], products[0].operands[1 - i]);
    }
    if (!all) continue;
    ContractSpec spec = ContractSpec::Parse(products[0].attrs.Get<std::string>("spec"));
    const char letter = spec.FreshLetter();
    (i == 0 ? spec.lhs : spec.rhs).insert(static_cast<size_t>(first->dim), 1, letter);
    spec.out.insert(static_cast<size_t>(dim), 1, letter);
    const Dims dims = b.TypeOf(first->of).dims;
    Ints start(dims.size(), 0), limit, strides(dims.size(), 1);
    for (const Dim& d : dims) limit.push_back(d.value());
    start[static_cast<size_t>(first->dim)] = first->at;
    limit[static_cast<size_t>(first->dim)] = first->at + static_cast<int64_t>(x.size());
    const bool whole = dims[static_cast<size_t>(first->dim)] == Dim(static_cast<int64_t>(x.size()));
    const Atom rows = whole ? first->of : Slice(b, first->of, start, limit, strides);
    const Atom& other = products[0].operands[1 - i];
    return i == 0 ? Contract(b, spec.ToString(), rows, other) : Contract(b, spec.ToString(), other, rows);
  }
  return std::nullopt;
}

// --- Powers ----------------------------------------------------------------------------------------------------------

constexpr int64_t kMostFactors = 1024;

// Whether two matrices are multiplied (not one with another's transpose), or element by element.
bool Multiplies(const Eqn& e) {
  if (e.prim == &Prims().mul) return true;
  if (!IsPlainProduct(e)) return false;
  const std::string& spec = e.attrs.Get<std::string>("spec");  // "az,zy->ay"
  return spec.size() == 9 && spec[1] == spec[3] && spec[0] == spec[7] && spec[4] == spec[8] && spec[0] != spec[1];
}

// How many factors `base` a value is a product of; 0: it is none.
int64_t PowerOf(const Builder& b, const Atom& a, const Atom& base, const Prim& prim, int depth = 24) {
  if (a == base) return 1;
  const Eqn* e = b.Definition(a);
  if (e == nullptr || e->prim != &prim || depth == 0 || !Multiplies(*e)) return 0;
  const int64_t second = PowerOf(b, e->operands[1], base, prim, e->operands[0] == e->operands[1] ? depth - 1 : 0);
  if (e->operands[0] == e->operands[1]) return std::min(2 * second, kMostFactors + 1);
  if (!(e->operands[1] == base)) return 0;
  const int64_t first = PowerOf(b, e->operands[0], base, prim, depth - 1);
  return first == 0 ? 0 : first + 1;
}

Atom Power(Builder& b, const Eqn& product, const Atom& base, int64_t factors) {
  if (factors == 1) return base;
  const Atom less = Power(b, product, base, factors % 2 == 0 ? factors / 2 : factors - 1);
  return b.Emit1(*product.prim, {less, factors % 2 == 0 ? less : base}, product.attrs);
}

// x x x x = (x x) (x x).
std::optional<Atom> PowerBySquaring(Builder& b, const Eqn& e, const Atoms& x) {
  if (x[0] == x[1] || !x[1].is_var()) return std::nullopt;
  const Eqn* before = DefinedBy(b, x[0], *e.prim);
  if (before == nullptr || !(before->operands[1] == x[1]) || !ReadOnce(b, x[0]) || !Multiplies(e)) return std::nullopt;
  if (b.DTypeOf(x[0]) == DType::kF16 || IsFloat8(b.DTypeOf(x[0]))) return std::nullopt;
  const Atom& base = x[1];
  const int64_t factors = PowerOf(b, x[0], base, *e.prim) + 1;
  if (factors < 4 || factors % 2 != 0 || factors > kMostFactors) return std::nullopt;
  Eqn product{e.prim, {}, 0, 1, e.attrs, {}, e.loc};
  return Power(b, product, base, factors);
}

SimplifyRule Row(const char* name, const char* prim,
                 std::optional<Atom> (*apply)(Builder& b, const Eqn& e, const Atoms& x), const char* sample) {
  return {name, prim, Licence::kProducts, apply, sample, false, RuleTime::kStabilizing};
}

const std::vector<SimplifyRule>& Rules() {
  static const auto& rules = *new std::vector<SimplifyRule>{
      Row("product-common-factor", "add", CommonFactor,
          R"(fn f(a: f32[2,3], x: f32[3,2], y: f32[3,2]) { p = contract[spec="az,zy->ay"] a x
             q = contract[spec="az,zy->ay"] a y; r = add p q; return r })"),
      Row("product-common-factor", "sub", CommonFactor,
          R"(fn f(a: f32[3,2], x: f32[2,3], y: f32[2,3]) { p = contract[spec="az,zy->ay"] x a
             q = contract[spec="az,zy->ay"] y a; r = sub p q; return r })"),
      Row("product-of-solution", "contract", SolveForLess,
          R"(fn f(t: f32[3,3], x: f32[3,3], y: f32[3]) {
             s = triangular_solve[conjugate=false, left=true, lower=true, transpose=false, unit_diagonal=true] t x
             r = contract[spec="az,z->a"] s y; return r })"),
      Row("product-of-solution", "contract", SolveForLess,
          R"(fn f(t: f32[3,3], x: f32[3,3], y: f32[3]) {
             s = triangular_solve[conjugate=false, left=true, lower=false, transpose=false, unit_diagonal=true] t x
             r = contract[spec="z,zy->y"] y s; return r })"),
      Row("product-of-sum", "contract", ProductOfSum,
          R"(fn f(a: f32[40,40], u: f32[40], v: f32[40], w: f32[40]) { p = broadcast[dims=[0], shape=<40,40>] u
             q = broadcast[dims=[1], shape=<40,40>] v; o = mul p q; s = add a o
             r = contract[spec="az,z->a"] s w; return r })"),
      Row("product-of-rows", "contract", ProductOfRows,
          R"(fn f(x: f32[4,3], v: f32[3]) { n = iota[dim=0, dtype=i32, shape=<4,1>]; i = sub 3:i32 n
             p = gather[collapsed_dims=[0], indices_batch_dims=[], mode="clip", offset_dims=[1], operand_batch_dims=[],
                        slice_sizes=[1,3], start_index_map=[0]] x i
             r = contract[spec="az,z->a"] p v; return r })"),
      Row("transposed-product", "transpose", TransposedProduct,
          R"(fn f(x: f32[3,4], y: f32[4,2]) { p = contract[spec="za,yz->ay"] y x; r = transpose[perm=[1,0]] p
             return r })"),
      Row("product-order", "contract", CheapestOrder,
          R"(fn f(a: f32[12,12], x: f32[12,12], v: f32[12]) { p = contract[spec="az,zy->ay"] a x
             r = contract[spec="az,z->a"] p v; return r })"),
      Row("product-order", "contract", CheapestOrder,
          R"(fn f(d: f32[12], x: f32[12,12]) { i = iota[dim=0, dtype=i32, shape=<12,12>]
             j = iota[dim=1, dtype=i32, shape=<12,12>]; p = eq i j; s = broadcast[dims=[1], shape=<12,12>] d
             a = select p s 0.0:f32; r = contract[spec="az,zy->ay"] a x; return r })"),
      Row("product-order", "contract", CheapestOrder,
          R"(fn f(i: f32[6], x: f32[40,12]) { n = convert[dtype=i32] i
             j = iota[dim=1, dtype=i32, shape=<6,40>]; s = broadcast[dims=[0], shape=<6,40>] n; p = eq s j
             a = convert[dtype=f32] p; r = contract[spec="az,zy->ay"] a x; return r })"),
      Row("product-order", "contract", CheapestOrder,
          R"(fn f(x: f32[20,12]) { i = iota[dim=0, dtype=i32, shape=<20,20>]
             j = iota[dim=1, dtype=i32, shape=<20,20>]; p = ge i j; a = convert[dtype=f32] p
             r = contract[spec="az,zy->ay"] a x; return r })"),
      Row("product-sum", "reduce_sum", CheapestOrder,
          R"(fn f(a: f32[12,12], x: f32[12,12]) { p = contract[spec="az,zy->ay"] a x
             r = reduce_sum[dims=[0]] p; return r })"),
      Row("product-sum", "reduce_sum", CheapestOrder,
          R"(fn f(u: f32[40], v: f32[40]) { p = broadcast[dims=[0], shape=<40,40>] u
             q = broadcast[dims=[1], shape=<40,40>] v; o = mul p q; r = reduce_sum[dims=[0,1]] o; return r })"),
      Row("product-diagonal", "gather", CheapestOrder,
          R"(fn f(a: f32[12,12], x: f32[12,12]) { p = contract[spec="az,zy->ay"] a x
             i = iota[dim=0, dtype=i32, shape=<12,1>]; j = concatenate[dim=1] i i
             r = gather[collapsed_dims=[0,1], indices_batch_dims=[], mode="clip", offset_dims=[], operand_batch_dims=[],
                        slice_sizes=[1,1], start_index_map=[0,1]] p j; return r })"),
      Row("stack-of-products", "concatenate", StackOfProducts,
          R"(fn f(a: f32[3], x: f32[4,3]) {
             s = slice[limit=[1,3], start=[0,0], strides=[1,1]] x; t = slice[limit=[2,3], start=[1,0], strides=[1,1]] x
             u = slice[limit=[3,3], start=[2,0], strides=[1,1]] x; v = slice[limit=[4,3], start=[3,0], strides=[1,1]] x
             sr = reshape[shape=<3>] s; tr = reshape[shape=<3>] t; ur = reshape[shape=<3>] u; vr = reshape[shape=<3>] v
             i = contract[spec="z,z->"] a sr; j = contract[spec="z,z->"] a tr; k = contract[spec="z,z->"] a ur
             l = contract[spec="z,z->"] a vr; ir = reshape[shape=<1>] i; jr = reshape[shape=<1>] j
             kr = reshape[shape=<1>] k; lr = reshape[shape=<1>] l; r = concatenate[dim=0] ir jr kr lr; return r })"),
      Row("power-by-squaring", "contract", PowerBySquaring,
          R"(fn f(x: f32[3,3]) { p = contract[spec="az,zy->ay"] x x; q = contract[spec="az,zy->ay"] p x
             r = contract[spec="az,zy->ay"] q x; return r })"),
      Row("power-by-squaring", "mul", PowerBySquaring,
          "fn f(x: f32[3]) { p = mul x x; q = mul p x; r = mul q x; return r }"),
  };
  return rules;
}

}  // namespace

Atom EmitProduct(Builder& b, const std::string& spec, const Atom& x, const Atom& y) {
  if (std::optional<Atom> less = ProductOfSolution(b, ContractSpec::Parse(spec), x, y)) return *less;
  return Contract(b, spec, x, y);
}

absl::Span<const SimplifyRule> ProductRules() { return Rules(); }

}  // namespace weft
