// Laws of reductions: of other shapes and orders, of reductions, of what is repeated, and factors before sums.
#include <algorithm>
#include <cmath>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "transforms/opt/algebra_rules.h"
#include "transforms/opt/defined_by.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/known.h"
#include "transforms/opt/part.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/rule_rows.h"

namespace weft {
namespace {

// Of what is transposed: over other dimensions, in another order.
std::optional<Atom> ReduceOfTranspose(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn* t = DefinedBy<"transpose">(b, x[0]);
  if (t == nullptr) return std::nullopt;
  const Ints &perm = t->attrs.Get<Ints>("perm"), &dims = e.attrs.Get<Ints>("dims");
  Ints reduced, kept;
  for (size_t d = 0; d < perm.size(); ++d)
    (Contains(dims, static_cast<int64_t>(d)) ? reduced : kept).push_back(perm[d]);
  std::sort(reduced.begin(), reduced.end());
  const Atom made = b.Emit1(*e.prim, {t->operands[0]}, e.attrs.With("dims", reduced));
  Ints ascending = kept, order;
  std::sort(ascending.begin(), ascending.end());
  for (const int64_t d : kept) order.push_back(std::find(ascending.begin(), ascending.end(), d) - ascending.begin());
  return Transpose(b, made, order);
}

// Over some dimensions, then over others.
std::optional<Atom> ReduceOfReduce(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn* inner = b.Definition(x[0]);
  if (inner == nullptr || inner->prim != e.prim || !ReadOnce(b, x[0])) return std::nullopt;
  const Ints &first = inner->attrs.Get<Ints>("dims"), &then = e.attrs.Get<Ints>("dims");
  Ints left, both = first;
  for (int64_t d = 0; d < b.TypeOf(inner->operands[0]).rank(); ++d) {
    if (!Contains(first, d)) left.push_back(d);
  }
  for (const int64_t d : then) both.push_back(left[static_cast<size_t>(d)]);
  std::sort(both.begin(), both.end());
  return b.Emit1(*e.prim, {inner->operands[0]}, inner->attrs.With("dims", both));
}

// Of what is repeated along dimensions that are reduced: the extreme of one of them, the sum as often.
std::optional<Atom> ReduceOfRepeated(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn* view = DefinedBy<"broadcast">(b, x[0]);
  const Type type = b.TypeOf(x[0]);
  if (view == nullptr || !type.is_static()) return std::nullopt;
  const Atom source = view->operands[0];
  const Type from = b.TypeOf(source);
  const Ints into = view->attrs.Get<Ints>("dims"), dims = e.attrs.Get<Ints>("dims");
  Ints rest, into_rest;  // the dimensions that stay to be reduced, and where the source's dimensions are then
  Dims shape, squeezed;
  double times = 1;
  for (int64_t d = 0; d < type.rank(); ++d) {
    const auto at = std::find(into.begin(), into.end(), d);
    const Dim& size = type.dims[static_cast<size_t>(d)];
    const bool of_one = at != into.end() && from.dims[static_cast<size_t>(at - into.begin())] == Dim(1);
    if (Contains(dims, d) && (at == into.end() || of_one)) {
      if (size == Dim(0)) return std::nullopt;
      times *= static_cast<double>(size.value());
      continue;
    }
    if (at != into.end()) {
      into_rest.push_back(static_cast<int64_t>(shape.size()));
      squeezed.push_back(from.dims[static_cast<size_t>(at - into.begin())]);
    }
    if (Contains(dims, d)) rest.push_back(static_cast<int64_t>(shape.size()));
    shape.push_back(size);
  }
  if (shape.size() == static_cast<size_t>(type.rank()) || !std::is_sorted(into.begin(), into.end()))
    return std::nullopt;
  static const PrimSet kSums{"reduce_sum"};
  const bool sums = kSums.Has(*e.prim);
  if (sums && (!IsInexact(type.dtype) || times > std::ldexp(1.0, RowOf(type.dtype).digits))) return std::nullopt;
  Atom made = Broadcast(b, Reshape(b, source, squeezed), shape, into_rest);
  if (!rest.empty()) made = b.Emit1(*e.prim, {made}, e.attrs.With("dims", rest));
  return sums ? Mul(b, made, Full(b, b.TypeOf(made), times)) : made;
}

// Of an array with other dimensions of size 1, or over all of it.
std::optional<Atom> ReduceOfReshape(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn* reshape = DefinedBy<"reshape">(b, x[0]);
  if (reshape == nullptr) return std::nullopt;
  const Atom source = reshape->operands[0];
  const Dims dims = b.TypeOf(x[0]).dims;
  const Ints reduced = e.attrs.Get<Ints>("dims");
  if (b.TypeOf(source).rank() == 0) return std::nullopt;
  if (reduced.size() == dims.size()) {
    const Ints all = Range(0, b.TypeOf(source).rank());
    return b.Emit1(*e.prim, {source}, e.attrs.With("dims", all));
  }
  const std::optional<Ints> behind = ViewDims(b, *reshape, dims);
  if (!behind) return std::nullopt;
  Ints inner;
  for (const int64_t d : reduced) {
    if ((*behind)[static_cast<size_t>(d)] >= 0) inner.push_back((*behind)[static_cast<size_t>(d)]);
  }
  if (inner.empty()) return std::nullopt;
  const Atom made = b.Emit1(*e.prim, {source}, e.attrs.With("dims", inner));
  return Reshape(b, made, WithoutDims(dims, reduced));
}

// The place of an extreme, along another dimension.
std::optional<Atom> PlaceOfTranspose(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn* t = DefinedBy<"transpose">(b, x[0]);
  if (t == nullptr) return std::nullopt;
  const Ints perm = t->attrs.Get<Ints>("perm");
  const int64_t dim = e.attrs.GetInt("dim"), along = perm[static_cast<size_t>(dim)];
  const Atom made = b.Emit1(*e.prim, {t->operands[0]}, e.attrs.With("dim", along));
  Ints order;
  for (size_t d = 0; d < perm.size(); ++d) {
    if (static_cast<int64_t>(d) != dim) order.push_back(perm[d] - (perm[d] > along ? 1 : 0));
  }
  return Transpose(b, made, order);
}

// sum(-x) = -sum(x).
std::optional<Atom> SumOfNegated(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn* neg = DefinedBy<"neg">(b, x[0]);
  if (neg == nullptr || !ReadOnce(b, x[0])) return std::nullopt;
  const Atom of = neg->operands[0];
  return Neg(b, b.Emit1(*e.prim, {of}, e.attrs));
}

// sum(c x) = c sum(x). Of integers always; a power of two that is not below 1 rounds nothing, and overflows no earlier.
enum class Factors : uint8_t { kPowersOfTwo, kNumbers, kIntegers };
template <Factors kFactors>
std::optional<Atom> SumOfScaled(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn* product = DefinedBy<"mul">(b, x[0]);
  const DType dtype = b.DTypeOf(x[0]);
  if (product == nullptr || !ReadOnce(b, x[0])) return std::nullopt;
  if (kFactors == Factors::kIntegers ? !IsInteger(dtype) : !IsFloat(dtype)) return std::nullopt;
  for (const int i : {0, 1}) {
    const Atom* number = Splat(b, product->operands[static_cast<size_t>(i)]);
    const Atom& scaled = product->operands[static_cast<size_t>(1 - i)];
    if (number == nullptr || !(b.TypeOf(scaled).dims == b.TypeOf(x[0]).dims)) continue;
    const double c = std::fabs(number->literal().Get(0).real());
    int exponent = 0;
    if (!std::isfinite(c) || (kFactors == Factors::kPowersOfTwo && (c < 1 || std::frexp(c, &exponent) != 0.5)))
      continue;
    const Atom factor = *number, rest = scaled;
    const Atom sum = b.Emit1(*e.prim, {rest}, e.attrs);
    return Mul(b, factor, sum);
  }
  return std::nullopt;
}

// sum(x / c) = sum(x) / c, and so with factors and divisors that are computed and are the same along what is summed.
std::optional<Atom> SumOfScaledByValue(Builder& b, const Eqn& e, const Atoms& x) {
  static const PrimSet kScales{"mul", "div"}, kDivides{"div"};
  const Eqn* found = x[0].is_var() ? b.Definition(x[0]) : nullptr;
  const Type type = b.TypeOf(x[0]);
  if (found == nullptr || !kScales.Has(*found->prim) || !ReadOnce(b, x[0]) || !IsFloat(type.dtype) ||
      !type.is_static() || !type.varying.empty())
    return std::nullopt;
  const Eqn scaling = *found;  // emitting may move it
  const Ints& dims = e.attrs.Get<Ints>("dims");
  for (const size_t k : {size_t{1}, size_t{0}}) {
    if (k == 0 && kDivides.Has(*scaling.prim)) break;
    const Atom &scale = scaling.operands[k], &rest = scaling.operands[1 - k];
    if (!(b.TypeOf(rest).dims == type.dims) || (scale.is_var() && !(b.TypeOf(scale).dims == type.dims))) continue;
    const Atom* number = Splat(b, scale);
    if (number == nullptr && std::any_of(dims.begin(), dims.end(),
                                         [&](int64_t d) { return !IsConstantAlong(b, scale, static_cast<int>(d)); }))
      continue;
    const Atom sum = b.Emit1(*e.prim, {rest}, e.attrs);
    if (number != nullptr)
      return b.Emit1(*scaling.prim, {sum, Full(b, b.TypeOf(sum), number->literal().Get(0).real())});
    Window w = Window::All(type.dims);
    for (const int64_t d : dims) w.sizes[static_cast<size_t>(d)] = 1;
    const Atom one = Reshape(b, Part(b, false, false).Of(scale, w), WithoutDims(type.dims, dims));
    return b.Emit1(*scaling.prim, {sum, one});
  }
  return std::nullopt;
}

constexpr Licence kExact = Licence::kExact, kProducts = Licence::kProducts;

std::vector<SimplifyRule> MakeRules() {
  std::vector<SimplifyRule> rules = {
      {"reduce-transpose", "reduce_sum", kProducts, ReduceOfTranspose,
       "fn f(x: f32[2,3,4]) { a = transpose[perm=[2,1,0]] x; b = reduce_sum[dims=[1]] a; return b }"},
      {"reduce-reduce", "reduce_sum", kProducts, ReduceOfReduce,
       "fn f(x: f32[2,3,4]) { a = reduce_sum[dims=[1]] x; b = reduce_sum[dims=[0]] a; return b }"},
      {"reduce-repeated", "reduce_sum", kProducts, ReduceOfRepeated,
       "fn f(x: f32[3]) { a = broadcast[dims=[1], shape=<5,3>] x; b = reduce_sum[dims=[0]] a; return b }"},
      {"sum-of-scaled", "reduce_sum", Licence::kAccurate, SumOfScaled<Factors::kPowersOfTwo>,
       "fn f(x: f32[3]) { a = mul 2.0:f32 x; b = reduce_sum[dims=[0]] a; return b }"},
      {"sum-of-scaled", "reduce_sum", Licence::kReassociate, SumOfScaled<Factors::kNumbers>,
       "fn f(x: f32[3]) { a = mul 3.0:f32 x; b = reduce_sum[dims=[0]] a; return b }"},
      {"sum-of-scaled", "reduce_sum", kExact, SumOfScaled<Factors::kIntegers>,
       "fn f(x: i32[3]) { a = mul 3:i32 x; b = reduce_sum[dims=[0]] a; return b }"},
      {"sum-of-scaled", "reduce_sum", Licence::kReassociate, SumOfScaledByValue,
       "fn f(x: f32[3]) { a = div x 3.0:f32; b = reduce_sum[dims=[0]] a; return b }"},
      {"sum-of-scaled", "reduce_sum", Licence::kReassociate, SumOfScaledByValue,
       R"(fn f(x: f32[3,2], y: f32[2]) { s = broadcast[dims=[1], shape=<3,2>] y; a = mul s x
          b = reduce_sum[dims=[0]] a; return b })"},
      {"sum-of-negated", "reduce_sum", Licence::kSignedZero, SumOfNegated,
       "fn f(x: f32[3]) { a = neg x; b = reduce_sum[dims=[0]] a; return b }"},
      {"reduce-reshape", "reduce_sum", kProducts, ReduceOfReshape,
       "fn f(x: f32[6]) { a = reshape[shape=<1,6>] x; b = reduce_sum[dims=[1]] a; return b }"},
      {"reduce-reshape", "reduce_prod", kProducts, ReduceOfReshape,
       "fn f(x: f32[2,3]) { a = reshape[shape=<6>] x; b = reduce_prod[dims=[0]] a; return b }"},
      {"reduce-transpose", "reduce_prod", kProducts, ReduceOfTranspose,
       "fn f(x: f32[2,3,4]) { a = transpose[perm=[2,1,0]] x; b = reduce_prod[dims=[1]] a; return b }"},
  };
  const std::vector<const char*> extremes = {"reduce_max", "reduce_min"}, bits = {"reduce_and", "reduce_or"};
  const char* const reduce_two = "[dims=[1]] a; return b }";
  AddRows(rules, "reduce-transpose", kExact, ReduceOfTranspose, extremes,
          "fn f(x: f32[2,3,4]) { a = transpose[perm=[2,1,0]] x; b = ", reduce_two);
  AddRows(rules, "reduce-repeated", kExact, ReduceOfRepeated, extremes,
          "fn f(x: f32[3]) { a = broadcast[dims=[0], shape=<3,5>] x; b = ", reduce_two);
  for (const char* prim : extremes) {
    AddRows(rules, "reduce-reduce", kExact, ReduceOfReduce, {prim},
            std::string("fn f(x: f32[2,3,4]) { a = ") + prim + "[dims=[1]] x; b = ", reduce_two);
  }
  for (const char* prim : bits) {
    AddRows(rules, "reduce-reduce", kExact, ReduceOfReduce, {prim},
            std::string("fn f(x: bool[2,3,4]) { a = ") + prim + "[dims=[1]] x; b = ", reduce_two);
  }
  AddRows(rules, "reduce-reshape", kExact, ReduceOfReshape, extremes,
          "fn f(x: f32[2,3,4]) { a = reshape[shape=<2,1,3,4>] x; b = ", "[dims=[0,2]] a; return b }");
  AddRows(rules, "reduce-reshape", kExact, ReduceOfReshape, bits,
          "fn f(x: bool[2,3]) { a = reshape[shape=<3,2,1>] x; b = ", "[dims=[0,1,2]] a; return b }");
  AddRows(rules, "reduce-transpose", kExact, PlaceOfTranspose, {"argmax", "argmin"},
          "fn f(x: f32[2,3,4]) { a = transpose[perm=[2,0,1]] x; b = ", "[dim=1, dtype=i32] a; return b }");
  RoundAtLowering(rules);
  return rules;
}

}  // namespace

absl::Span<const SimplifyRule> ReductionRules() {
  static const auto& rules = *new std::vector<SimplifyRule>(MakeRules());
  return rules;
}

}  // namespace weft
