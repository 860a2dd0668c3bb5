// No more is computed than is read: parts of what is computed element by element, of products, sums and orders are
// found of the parts of their operands, and functions are taken of what a broadcast repeats, once.
#include <algorithm>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/contraction.h"
#include "ir/prims/indexing.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/gathered_elements.h"
#include "transforms/opt/known.h"
#include "transforms/opt/part.h"
#include "transforms/opt/product_rules.h"
#include "transforms/opt/rewrite.h"

namespace weft {
namespace {

// --- Slices and rows -------------------------------------------------------------------------------------------------

std::optional<Window> WindowOf(const Builder& b, const Eqn& e, const Atoms& x) {
  const Type& type = b.TypeOf(x[0]);
  if (!type.is_static() || !type.varying.empty() || type.rank() == 0) return std::nullopt;
  Window w = Window::All(type.dims);
  if (e.prim == &PrimsOfParts().slice) {
    w.start = e.attrs.Get<Ints>("start");
    w.strides = e.attrs.Get<Ints>("strides");
    const Ints& limit = e.attrs.Get<Ints>("limit");
    for (size_t d = 0; d < limit.size(); ++d) {
      const int64_t end = limit[d] == -1 ? type.dims[d].value() : limit[d];
      w.sizes[d] = std::max<int64_t>(0, (end - w.start[d] + w.strides[d] - 1) / w.strides[d]);
      if (w.sizes[d] == 0) return std::nullopt;
    }
    return w;
  }
  const Ints& sizes = e.attrs.Get<Ints>("sizes");
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] != -1) w.sizes[d] = sizes[d];
    w.at.push_back(x[d + 1]);
  }
  return w;
}

template <bool kSums, bool kLowering = false>
std::optional<Atom> PartOfValue(Builder& b, const Eqn& e, const Atoms& x) {
  if (b.Definition(x[0]) == nullptr) return std::nullopt;
  const std::optional<Window> w = WindowOf(b, e, x);
  Part part(b, kSums, kLowering);
  if (!w || !(kLowering ? part.IsEndOfSorted(x[0], *w) : part.Saves(x[0], *w))) return std::nullopt;
  return part.Of(x[0], *w);
}

// Whole rows along one dimension, at indices of any shape, which are one after the other in the result.
struct Rows {
  int dim;
  int64_t count;
  int64_t at;        // where they are in the result
  Dims index_shape;  // without the last dimension, of size 1
};
std::optional<Rows> RowsOf(const Builder& b, const Eqn& e, const Atoms& x) {
  const Type &type = b.TypeOf(x[0]), &indices = b.TypeOf(x[1]);
  if (!type.is_static() || !indices.is_static() || !type.varying.empty() || indices.rank() < 1) return std::nullopt;
  const GatherDims g = GatherDims::Of(e.attrs);
  if (g.collapsed_dims.size() != 1 || g.start_index_map != g.collapsed_dims || !g.operand_batch_dims.empty() ||
      (g.mode != "clip" && g.mode != "promise"))
    return std::nullopt;
  Rows r{static_cast<int>(g.collapsed_dims[0]), 1, 0, {}};
  const Ints sizes = g.slice_sizes;
  for (int d = 0; d < type.rank(); ++d) {
    if (d != r.dim && sizes[static_cast<size_t>(d)] != -1 &&
        !(type.dims[static_cast<size_t>(d)] == Dim(sizes[static_cast<size_t>(d)])))
      return std::nullopt;
  }
  r.index_shape.assign(indices.dims.begin(), indices.dims.end() - 1);
  for (const Dim& d : r.index_shape) r.count *= d.value();
  while (Contains(g.offset_dims, r.at)) ++r.at;
  for (size_t k = 0; k < r.index_shape.size(); ++k) {
    if (Contains(g.offset_dims, r.at + static_cast<int64_t>(k))) return std::nullopt;
  }
  return r;
}

// The rows in place of dimension `dim` as the gather has them.
Atom AsGathered(Builder& b, const Rows& r, Atom made) {
  const Type type = b.TypeOf(made);
  Ints perm = OtherDims(type.rank(), {r.dim});
  perm.insert(perm.begin() + r.at, r.dim);
  made = Transpose(b, made, perm);
  Dims shape = b.TypeOf(made).dims;
  shape.erase(shape.begin() + r.at);
  shape.insert(shape.begin() + r.at, r.index_shape.begin(), r.index_shape.end());
  return Reshape(b, made, shape);
}

template <bool kSums>
std::optional<Atom> RowsOfValue(Builder& b, const Eqn& e, const Atoms& x) {
  if (b.Definition(x[0]) == nullptr) return std::nullopt;
  const std::optional<Rows> r = RowsOf(b, e, x);
  if (!r || r->count == 0) return std::nullopt;
  Window w = Window::All(b.TypeOf(x[0]).dims);
  w.dim = r->dim;
  w.sizes[static_cast<size_t>(r->dim)] = r->count;
  Part part(b, kSums, false);
  if (!part.Saves(x[0], w)) return std::nullopt;
  w.rows = Reshape(b, x[1], {r->count});
  return AsGathered(b, *r, part.Of(x[0], w));
}

// Elements at one place that the program knows: a slice.
std::optional<Atom> ElementsAtNumber(Builder& b, const Eqn& e, const Atoms& x) {
  const Type type = b.TypeOf(x[0]), indices = b.TypeOf(x[1]);
  if (!type.is_static() || !indices.is_static() || !type.varying.empty() || indices.rank() == 0 ||
      ElementsOf(indices) != static_cast<double>(indices.dims.back().value()))
    return std::nullopt;
  const Atom* repeated = Splat(b, x[1]);
  const Tensor* numbers = x[1].is_literal() ? &x[1].literal() : repeated != nullptr ? &repeated->literal() : nullptr;
  const GatherDims g = GatherDims::Of(e.attrs);
  if (numbers == nullptr || !g.operand_batch_dims.empty()) return std::nullopt;
  Ints start(type.dims.size(), 0), limit, strides(type.dims.size(), 1), kept;
  for (size_t k = 0; k < g.start_index_map.size(); ++k) {
    const int64_t at = numbers->size() == 1 ? 0 : static_cast<int64_t>(k);
    start[static_cast<size_t>(g.start_index_map[k])] = static_cast<int64_t>(numbers->Get(at).real());
  }
  for (size_t d = 0; d < type.dims.size(); ++d) {
    const int64_t size = g.slice_sizes[d] == -1 ? type.dims[d].value() : g.slice_sizes[d];
    limit.push_back(start[d] + size);
    if (start[d] < 0 || limit[d] > type.dims[d].value()) return std::nullopt;
    if (!Contains(g.collapsed_dims, static_cast<int64_t>(d))) kept.push_back(size);
  }
  Dims shape;
  size_t next = 0;
  for (size_t d = 0; d < kept.size() + indices.dims.size() - 1; ++d)
    shape.emplace_back(Contains(g.offset_dims, static_cast<int64_t>(d)) ? kept[next++] : 1);
  return Reshape(b, Slice(b, x[0], start, limit, strides), shape);
}

// All rows in their order, or rows of the identity.
std::optional<Atom> AllRows(Builder& b, const Eqn& e, const Atoms& x) {
  const std::optional<Rows> r = RowsOf(b, e, x);
  if (!r || r->index_shape.empty()) return std::nullopt;
  const Type type = b.TypeOf(x[0]);
  const int64_t n = type.dims[static_cast<size_t>(r->dim)].value();
  if (r->count == n && r->index_shape[0] == Dim(n) && IndexedDim(b, x[1]) == 0) return AsGathered(b, *r, x[0]);
  if (r->index_shape.size() != 1) return std::nullopt;
  const std::optional<SparseArray> sparse = SparseArrayOf(b, x[0]);
  if (!sparse || sparse->kind != SparseArray::Kind::kDiagonal || sparse->value || type.rank() != 2) return std::nullopt;
  const std::optional<Bounds> bounds = BoundsOf(b, x[1]);
  if (!bounds || bounds->least < 0 || bounds->most >= n) return std::nullopt;
  Dims shape = type.dims;
  shape[static_cast<size_t>(r->dim)] = Dim(r->count);
  const DType index = b.DTypeOf(x[1]);
  const Atom rows = Broadcast(b, Reshape(b, x[1], {r->count}), shape, {r->dim});
  return AsGathered(b, *r, Convert(b, Eq(b, rows, Iota(b, shape, 1 - r->dim, index)), type.dtype));
}

// x[i][j], of rows: x[i[j]].
std::optional<Atom> RowsOfRows(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn* found = b.Definition(x[0]);
  if (found == nullptr || found->prim != &PrimsOfParts().gather || !ReadOnce(b, x[0])) return std::nullopt;
  const Eqn inner = *found;  // emitting may move it
  const std::optional<Rows> rows = RowsOf(b, e, x), first = RowsOf(b, inner, inner.operands);
  if (!rows || !first || first->index_shape.size() != 1 || rows->dim != first->at || rows->count > first->count)
    return std::nullopt;
  GatherDims outer = GatherDims::Of(e.attrs), made = GatherDims::Of(inner.attrs), of_indices;
  of_indices.offset_dims = {static_cast<int64_t>(rows->index_shape.size())};
  of_indices.collapsed_dims = of_indices.start_index_map = {0};
  of_indices.slice_sizes = {1, 1};
  of_indices.mode = outer.mode;
  const Atom indices = b.Emit1(*e.prim, {inner.operands[1], x[1]}, of_indices.ToAttrs());
  made.offset_dims = outer.offset_dims;
  return b.Emit1(*e.prim, {inner.operands[0], indices}, made.ToAttrs());
}

// A slice of what is gathered: less is gathered.
std::optional<Atom> SliceOfGathered(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn* found = b.Definition(x[0]);
  if (found == nullptr || found->prim != &PrimsOfParts().gather || !ReadOnce(b, x[0])) return std::nullopt;
  const Eqn inner = *found;  // emitting may move it
  const GatherDims g = GatherDims::Of(inner.attrs);
  const std::optional<Window> w = WindowOf(b, e, x);
  const Type indices = b.TypeOf(inner.operands[1]);
  if (!w || !indices.is_static() || !g.operand_batch_dims.empty()) return std::nullopt;
  Window of_indices = Window::All(indices.dims), rest = *w;
  bool less = false;
  size_t next = 0;
  for (size_t d = 0; d < w->sizes.size(); ++d) {
    if (Contains(g.offset_dims, static_cast<int64_t>(d))) continue;
    less |= w->sizes[d] < of_indices.sizes[next];
    of_indices.start[next] = w->start[d];
    of_indices.strides[next] = w->strides[d];
    of_indices.sizes[next++] = w->sizes[d];
    rest.start[d] = 0;
    rest.strides[d] = 1;
  }
  if (!less) return std::nullopt;
  Part part(b, false, false);
  const Atom fewer = part.Of(inner.operands[1], of_indices);
  return part.Of(b.Emit1(*inner.prim, {inner.operands[0], fewer}, inner.attrs), rest);
}

// x[p[:, None], arange(n)], elements one by one that are rows: x[p].
std::optional<Atom> ElementsAsRows(Builder& b, const Eqn& e, const Atoms& x) {
  const Type type = b.TypeOf(x[0]), indices = b.TypeOf(x[1]);
  if (type.rank() != 2 || indices.rank() != 3 || !type.is_static() || !indices.is_static()) return std::nullopt;
  const GatherDims g = GatherDims::Of(e.attrs);
  if (g.collapsed_dims != Ints{0, 1} || g.start_index_map != Ints{0, 1} || g.mode == "fill") return std::nullopt;
  const std::optional<Atoms> both = IndexColumns(b, x[1]);
  if (!both) return std::nullopt;
  const Atom first = (*both)[0], second = (*both)[1];
  if (!(indices.dims[1] == type.dims[1]) || IndexedDim(b, second) != 1 || !IsConstantAlong(b, first, 1))
    return std::nullopt;
  const int64_t count = indices.dims[0].value();
  const Atom rows = Reshape(b, Slice(b, first, {0, 0, 0}, {count, 1, 1}, {1, 1, 1}), {count, 1});
  GatherDims made;
  made.offset_dims = {1};
  made.collapsed_dims = made.start_index_map = {0};
  made.slice_sizes = {1, type.dims[1].value()};
  made.mode = g.mode;
  return b.Emit1(*e.prim, {x[0], rows}, made.ToAttrs());
}

// --- Orders ----------------------------------------------------------------------------------------------------------

// What is reduced need not be in an order.
std::optional<Atom> ReduceSorted(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn* sorted = b.Definition(x[0]);
  if (sorted == nullptr || sorted->operands.empty()) return std::nullopt;
  const Ints& dims = e.attrs.Get<Ints>("dims");
  if (sorted->prim == &PrimsOfParts().reverse) {
    for (const int64_t d : sorted->attrs.Get<Ints>("dims")) {
      if (!Contains(dims, d)) return std::nullopt;
    }
  } else if (sorted->prim != &PrimsOfParts().sort || sorted->operands.size() != 1 ||
             !Contains(dims, sorted->attrs.GetInt("dim"))) {
    return std::nullopt;
  }
  return b.Emit1(*e.prim, {sorted->operands[0]}, e.attrs);
}

// --- Functions of what is repeated -----------------------------------------------------------------------------------

// f(broadcast(x)) = broadcast(f(x)).
std::optional<Atom> FunctionOfRepeated(Builder& b, const Eqn& e, const Atoms& x) {
  const Dims* shape = nullptr;
  for (const Atom& a : x) {
    const Type& type = b.TypeOf(a);
    if (type.rank() == 0) continue;
    const Eqn* view = b.Definition(a);
    if (view == nullptr || (view->prim != &PrimsOfParts().broadcast && view->prim != &PrimsOfParts().reshape))
      return std::nullopt;
    if (!type.is_static() || !type.varying.empty()) return std::nullopt;
    shape = &type.dims;
  }
  if (shape == nullptr) return std::nullopt;
  const Dims dims = *shape;
  Window w = Window::All(dims);
  double less = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == Dim(1) || dims[d] == Dim(0)) continue;
    const bool repeats = std::all_of(x.begin(), x.end(), [&](const Atom& a) {
      return b.TypeOf(a).rank() == 0 || IsConstantAlong(b, a, static_cast<int>(d), 4);
    });
    if (!repeats) continue;
    w.sizes[d] = 1;
    less *= static_cast<double>(dims[d].value());
  }
  if (less < 2) {
    // A repeated value in another shape, as the only array.
    if (std::count_if(x.begin(), x.end(), [&](const Atom& a) { return b.TypeOf(a).rank() > 0; }) != 1)
      return std::nullopt;
    Atoms inner = x;
    for (Atom& a : inner) {
      if (b.TypeOf(a).rank() == 0) continue;
      const Eqn* view = b.Definition(a);
      if (view->prim != &PrimsOfParts().reshape || b.Definition(view->operands[0]) == nullptr) return std::nullopt;
      a = view->operands[0];
    }
    const std::optional<Atom> made = FunctionOfRepeated(b, e, inner);
    return made ? std::optional<Atom>(Reshape(b, *made, dims)) : std::nullopt;
  }
  Part part(b, false, false);
  Atoms operands;
  for (const Atom& a : x) operands.push_back(b.TypeOf(a).rank() == 0 ? a : part.Of(a, w));
  const Atom made = b.Emit1(*e.prim, operands, e.attrs);
  return Broadcast(b, made, dims, Range(0, static_cast<int64_t>(dims.size())));
}

SimplifyRule FunctionRule() {
  SimplifyRule rule{"function-of-repeated",
                    "exp",
                    Licence::kExact,
                    FunctionOfRepeated,
                    "fn f(x: f32[3]) { a = broadcast[dims=[1], shape=<4,3>] x; b = exp a; return b }",
                    false,
                    RuleTime::kStabilizing};
  for (const Prim* p : AllPrims()) {
    if (p->is_elementwise() && p->name != "exp") rule.other_prims.push_back(p->name.c_str());
  }
  return rule;
}

SimplifyRule SortedRule(const char* prim, bool reorders) {
  static auto& samples = *new std::vector<std::string>();
  samples.reserve(8);
  samples.push_back(std::string("fn f(x: f32[5]) { s = sort[dim=0, num_keys=1] x; r = ") + prim +
                    "[dims=[0]] s; return r }");
  return {"reduce-sorted",
          prim,
          reorders ? Licence::kProducts : Licence::kSignedZero,
          ReduceSorted,
          samples.back().c_str(),
          false,
          RuleTime::kLowering};
}

const std::vector<SimplifyRule>& Rules() {
  static const auto& rules = *new std::vector<SimplifyRule>{
      // Before those that would take a part of what is sorted.
      {"part-of-sorted", "slice", Licence::kSignedZero, PartOfValue<false, true>,
       R"(fn f(x: f32[5]) { a = sort[dim=0, num_keys=1] x; b = slice[limit=[1], start=[0], strides=[1]] a; return b })",
       false, RuleTime::kLowering},
      {"part-of-sorted", "slice", Licence::kSignedZero, PartOfValue<false, true>,
       R"(fn f(x: f32[5]) { i = iota[dim=0, dtype=i32, shape=<5>]; a, k = sort[dim=0, num_keys=1] x i
          b = slice[limit=[5], start=[4], strides=[1]] k; return b })",
       false, RuleTime::kLowering},
      {"part-of-sorted", "slice", Licence::kSignedZero, PartOfValue<false, true>,
       R"(fn f(x: f32[5]) { i = iota[dim=0, dtype=i32, shape=<5>]; a, k = sort[dim=0, num_keys=1] x i
          b = slice[limit=[1], start=[0], strides=[1]] k; return b })",
       false, RuleTime::kLowering},
      {"part-of-sum", "slice", Licence::kProducts, PartOfValue<true>,
       R"(fn f(x: f32[5,3], y: f32[3,4]) { a = contract[spec="az,zy->ay"] x y
          b = slice[limit=[2,4], start=[1,0], strides=[1,1]] a; return b })",
       false, RuleTime::kStabilizing},
      {"part-of-sum", "slice", Licence::kProducts, PartOfValue<true>,
       R"(fn f(x: f32[5]) { a = cumsum[dim=0, reverse=false] x; b = slice[limit=[3], start=[2], strides=[1]] a
          return b })",
       false, RuleTime::kStabilizing},
      {"part-of-value", "slice", Licence::kExact, PartOfValue<false>,
       "fn f(x: f32[5]) { a = exp x; b = slice[limit=[2], start=[0], strides=[1]] a; return b }", false,
       RuleTime::kStabilizing},
      {"part-of-sum", "dynamic_slice", Licence::kProducts, PartOfValue<true>,
       R"(fn f(x: f32[5,3], y: f32[3,4]) { a = contract[spec="az,zy->ay"] x y; i = iota[dim=0, dtype=i32, shape=<1>]
          j = reshape[shape=<>] i; b = dynamic_slice[sizes=[1,4]] a j 0:i32; return b })",
       false, RuleTime::kStabilizing},
      {"part-of-value", "dynamic_slice", Licence::kExact, PartOfValue<false>,
       R"(fn f(x: f32[5]) { a = exp x; i = iota[dim=0, dtype=i32, shape=<1>]; j = reshape[shape=<>] i
          b = dynamic_slice[sizes=[2]] a j; return b })",
       false, RuleTime::kStabilizing},
      {"rows-of-sum", "gather", Licence::kProducts, RowsOfValue<true>,
       R"(fn f(x: f32[5,3], y: f32[3,4]) { a = contract[spec="az,zy->ay"] x y
          i = iota[dim=0, dtype=i32, shape=<2,1>]
          b = gather[collapsed_dims=[0], indices_batch_dims=[], mode="clip", offset_dims=[1], operand_batch_dims=[],
                     slice_sizes=[1,4], start_index_map=[0]] a i; return b })",
       false, RuleTime::kStabilizing},
      {"rows-of-value", "gather", Licence::kExact, RowsOfValue<false>,
       R"(fn f(x: f32[5,3]) { t = exp x; i = iota[dim=0, dtype=i32, shape=<2,1>]
          b = gather[collapsed_dims=[0], indices_batch_dims=[], mode="clip", offset_dims=[1], operand_batch_dims=[],
                     slice_sizes=[1,3], start_index_map=[0]] t i; return b })",
       false, RuleTime::kStabilizing},
      {"elements-of-value", "gather", Licence::kExact, ElementsOfValue,
       R"(fn f(x: f32[5,3], y: f32[5,3]) { t = exp x; u = mul t y; i = iota[dim=0, dtype=i32, shape=<2,2>]
          b = gather[collapsed_dims=[0,1], indices_batch_dims=[], mode="clip", offset_dims=[], operand_batch_dims=[],
                     slice_sizes=[1,1], start_index_map=[0,1]] u i; return b })",
       false, RuleTime::kStabilizing},
      {"elements-of-value", "gather", Licence::kExact, ElementsOfValue,
       R"(fn f(x: f32[5,3]) { t = exp x; u = add 1.0:f32 t; i = iota[dim=0, dtype=i32, shape=<2,2>]
          b = gather[collapsed_dims=[0,1], indices_batch_dims=[], mode="fill", offset_dims=[], operand_batch_dims=[],
                     slice_sizes=[1,1], start_index_map=[0,1]] u i; return b })",
       false, RuleTime::kStabilizing},
      {"elements-of-value", "gather", Licence::kExact, ElementsOfValue,
       R"(fn f(x: f32[5]) { t = broadcast[dims=[1], shape=<4,5,3>] x; i = iota[dim=0, dtype=i32, shape=<2,3>]
          b = gather[collapsed_dims=[0,1,2], indices_batch_dims=[], mode="clip", offset_dims=[], operand_batch_dims=[],
                     slice_sizes=[1,1,1], start_index_map=[0,1,2]] t i; return b })",
       false, RuleTime::kStabilizing},
      {"elements-of-value", "gather", Licence::kExact, ElementsOfValue,
       R"(fn f(x: f32[4,1]) { t = broadcast[dims=[0,1], shape=<4,5>] x; i = iota[dim=0, dtype=i32, shape=<4,1>]
          b = gather[collapsed_dims=[1], indices_batch_dims=[0], mode="clip", offset_dims=[], operand_batch_dims=[0],
                     slice_sizes=[1,1], start_index_map=[1]] t i; return b })",
       false, RuleTime::kStabilizing},
      {"elements-at-number", "gather", Licence::kExact, ElementsAtNumber,
       R"(fn f(x: f32[5,3]) {
          b = gather[collapsed_dims=[0], indices_batch_dims=[], mode="fill", offset_dims=[1], operand_batch_dims=[],
                     slice_sizes=[1,2], start_index_map=[0,1]] x [[4,1]]:i32[1,2]; return b })"},
      {"rows-of-rows", "gather", Licence::kExact, RowsOfRows,
       R"(fn f(x: f32[5,3]) { i = iota[dim=0, dtype=i32, shape=<4,1>]; j = iota[dim=0, dtype=i32, shape=<2,1>]
          a = gather[collapsed_dims=[0], indices_batch_dims=[], mode="clip", offset_dims=[1], operand_batch_dims=[],
                     slice_sizes=[1,3], start_index_map=[0]] x i
          b = gather[collapsed_dims=[0], indices_batch_dims=[], mode="clip", offset_dims=[1], operand_batch_dims=[],
                     slice_sizes=[1,3], start_index_map=[0]] a j; return b })",
       false, RuleTime::kStabilizing},
      {"slice-of-gathered", "slice", Licence::kExact, SliceOfGathered,
       R"(fn f(x: f32[5,3]) { i = iota[dim=0, dtype=i32, shape=<4,1>]
          a = gather[collapsed_dims=[0], indices_batch_dims=[], mode="clip", offset_dims=[1], operand_batch_dims=[],
                     slice_sizes=[1,3], start_index_map=[0]] x i
          b = slice[limit=[3,3], start=[1,1], strides=[1,1]] a; return b })",
       false, RuleTime::kStabilizing},
      {"all-rows", "gather", Licence::kExact, AllRows,
       R"(fn f(x: f32[5,3]) { i = iota[dim=0, dtype=i32, shape=<5,1>]
          b = gather[collapsed_dims=[0], indices_batch_dims=[], mode="clip", offset_dims=[1], operand_batch_dims=[],
                     slice_sizes=[1,3], start_index_map=[0]] x i; return b })",
       false, RuleTime::kStabilizing},
      {"elements-as-rows", "gather", Licence::kExact, ElementsAsRows,
       R"(fn f(x: f32[5,3]) { i = iota[dim=0, dtype=i32, shape=<4,3,1>]; j = iota[dim=1, dtype=i32, shape=<4,3,1>]
          k = concatenate[dim=2] i j
          b = gather[collapsed_dims=[0,1], indices_batch_dims=[], mode="clip", offset_dims=[], operand_batch_dims=[],
                     slice_sizes=[1,1], start_index_map=[0,1]] x k; return b })",
       false, RuleTime::kStabilizing},
      SortedRule("reduce_sum", true),
      SortedRule("reduce_max", false),
      SortedRule("reduce_min", false),
      FunctionRule(),
  };
  return rules;
}

}  // namespace

absl::Span<const SimplifyRule> PartRules() { return Rules(); }

}  // namespace weft
