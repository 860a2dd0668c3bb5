// No more is computed than is read: parts of what is computed element by element, of products, sums and orders are
// found of the parts of their operands, and functions are taken of what a broadcast repeats, once.
#include <algorithm>
#include <limits>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/contraction.h"
#include "ir/prims/indexing.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/known.h"
#include "transforms/opt/product_rules.h"
#include "transforms/opt/rewrite.h"

namespace weft {
namespace {

struct SoughtPrims {
  const Prim &slice = FindPrim("slice"), &dynamic_slice = FindPrim("dynamic_slice"), &gather = FindPrim("gather"),
             &broadcast = FindPrim("broadcast"), &reshape = FindPrim("reshape"), &transpose = FindPrim("transpose"),
             &contract = FindPrim("contract"), &concatenate = FindPrim("concatenate"), &reverse = FindPrim("reverse"),
             &cumsum = FindPrim("cumsum"), &sort = FindPrim("sort"), &iota = FindPrim("iota");
};
const SoughtPrims& Prims() {
  static const SoughtPrims prims;
  return prims;
}

// Which elements of an array are read: along every dimension from a start on, known or computed, and along at most one
// those that indices name.
struct Window {
  Ints start, strides, sizes;
  Atoms at;      // the starts that are computed, all of them; empty: they are known
  Atom rows;     // indices, of rank 1, along `dim`
  int dim = -1;  // -1: no indices

  bool is_static() const { return at.empty() && dim < 0; }
  // The first `size` elements along every dimension, or all.
  static Window All(const Dims& dims) {
    Window w;
    for (const Dim& d : dims) {
      w.start.push_back(0);
      w.strides.push_back(1);
      w.sizes.push_back(d.value());
    }
    return w;
  }
  // With dimension `from[d]` of this for each dimension d; all of it where that is -1.
  Window With(const Ints& from, const Dims& dims, const Builder& b) const {
    Window w = All(dims);
    if (!at.empty()) w.at.assign(dims.size(), Atom::Scalar(b.DTypeOf(at[0]), 0));
    for (size_t d = 0; d < from.size(); ++d) {
      if (from[d] < 0) continue;
      const auto f = static_cast<size_t>(from[d]);
      w.start[d] = start[f];
      w.strides[d] = strides[f];
      w.sizes[d] = sizes[f];
      if (!at.empty()) w.at[d] = at[f];
      if (dim == from[d]) {
        w.dim = static_cast<int>(d);
        w.rows = rows;
      }
    }
    return w;
  }
  Dims shape() const { return Dims(sizes.begin(), sizes.end()); }
  double elements() const {
    double n = 1;
    for (const int64_t s : sizes) n *= static_cast<double>(s);
    return n;
  }
};

double Elements(const Type& t) { return static_cast<double>(t.size().value()); }

class Part {
 public:
  // `sums`: of what is summed too, where a part may be summed in another order.
  Part(Builder& b, bool sums, bool lowering) : b_(b), sums_(sums), lowering_(lowering) {}

  // Whether less is computed, if the part is taken of operands.
  bool Saves(const Atom& a, const Window& w, int depth = 8) const {
    const Eqn* e = b_.Definition(a);
    if (e == nullptr || depth == 0 || e->operands.empty()) return false;
    if (e->prim == &Prims().concatenate || e->prim == &Prims().slice) return w.is_static() && CanShift(*e, w, a);
    if (e->prim == &Prims().reverse && w.is_static()) return Saves(e->operands[0], w, depth - 1);
    if (const std::optional<Ints> dims = ViewDims(b_, *e, b_.TypeOf(a).dims))
      return Saves(e->operands[0], Inner(w, *dims, e->operands[0]), depth - 1);
    return ReadOnce(b_, a) && 4 * w.elements() <= 3 * Elements(b_.TypeOf(a)) && Pushes(*e, a, w);
  }

  Atom Of(const Atom& a, const Window& w, int depth = 12) {
    const Type type = b_.TypeOf(a);
    if (IsAll(type, w)) return a;
    const Eqn* found = b_.Definition(a);
    if (found == nullptr || depth == 0) return Read(a, w);
    const Eqn e = *found;  // emitting may move it
    const SoughtPrims& p = Prims();
    if (e.prim == &p.iota) {
      const auto counted = static_cast<size_t>(e.attrs.GetInt("dim"));
      if (!w.is_static() || w.start[counted] != 0 || w.strides[counted] != 1) return Read(a, w);
      return Iota(b_, w.shape(), e.attrs.GetInt("dim"), type.dtype);
    }
    if (e.operands.empty()) return Read(a, w);
    if (const std::optional<Ints> dims = ViewDims(b_, e, type.dims)) {
      const Atom inner = Of(e.operands[0], Inner(w, *dims, e.operands[0]), depth - 1);
      if (e.prim == &p.transpose) return Transpose(b_, inner, e.attrs.Get<Ints>("perm"));
      if (e.prim == &p.reshape) return Reshape(b_, inner, w.shape());
      return Broadcast(b_, inner, w.shape(), e.attrs.Get<Ints>("dims"));
    }
    if (e.prim == &p.concatenate && w.is_static() && CanShift(e, w, a)) return OfConcatenate(e, w, depth);
    if (e.prim == &p.slice && w.is_static() && CanShift(e, w, a)) {
      Window inner = w;
      const Ints &start = e.attrs.Get<Ints>("start"), &strides = e.attrs.Get<Ints>("strides");
      for (size_t d = 0; d < start.size(); ++d) {
        inner.start[d] = start[d] + w.start[d] * strides[d];
        inner.strides[d] = strides[d] * w.strides[d];
      }
      return Of(e.operands[0], inner, depth - 1);
    }
    if (e.prim == &p.reverse && w.is_static()) {
      Window inner = w;
      Ints turned;
      for (const int64_t d : e.attrs.Get<Ints>("dims")) {
        const auto i = static_cast<size_t>(d);
        const int64_t last = w.start[i] + (w.sizes[i] - 1) * w.strides[i];
        inner.start[i] = type.dims[i].value() - 1 - last;
        if (w.sizes[i] > 1) turned.push_back(d);
      }
      const Atom part = Of(e.operands[0], inner, depth - 1);
      return turned.empty() ? part : Reverse(b_, part, turned);
    }
    if (!ReadOnce(b_, a) || !Pushes(e, a, w)) return Read(a, w);
    if (e.prim->is_elementwise()) {
      Atoms x;
      for (const Atom& o : e.operands) x.push_back(b_.TypeOf(o).rank() == 0 ? o : Of(o, w, depth - 1));
      return b_.Emit1(*e.prim, x, e.attrs);
    }
    if (e.prim == &p.contract) return OfProduct(e, w, depth);
    if (e.prim == &p.cumsum) return OfPrefixSums(e, w, depth);
    if (e.prim == &p.sort) return OfSorted(e, w, depth);
    // A reduction.
    const Ints& dims = e.attrs.Get<Ints>("dims");
    Ints from;
    int64_t next = 0;
    for (int d = 0; d < b_.TypeOf(e.operands[0]).rank(); ++d) from.push_back(Contains(dims, d) ? -1 : next++);
    const Window inner = w.With(from, b_.TypeOf(e.operands[0]).dims, b_);
    const Atom part = Of(e.operands[0], inner, depth - 1);
    return b_.Emit1(*e.prim, {part}, e.attrs);
  }

 private:
  bool IsAll(const Type& type, const Window& w) const {
    if (w.dim >= 0) return false;
    for (size_t d = 0; d < w.sizes.size(); ++d) {
      if (!(type.dims[d] == Dim(w.sizes[d])) || w.strides[d] != 1) return false;
    }
    return true;
  }

  // The part of a view's operand.
  Window Inner(const Window& w, const Ints& view, const Atom& operand) const {
    const Dims& dims = b_.TypeOf(operand).dims;
    Ints from(dims.size(), -1);
    for (size_t d = 0; d < view.size(); ++d) {
      if (view[d] >= 0) from[static_cast<size_t>(view[d])] = static_cast<int64_t>(d);
    }
    return w.With(from, dims, b_);
  }

  // Whether the part can be found of parts of the operands. Not asked of views.
  bool Pushes(const Eqn& e, const Atom& a, const Window& w) const {
    const SoughtPrims& p = Prims();
    const Type& type = b_.TypeOf(a);
    if (e.num_results != 1 || !type.varying.empty()) return false;
    if (e.prim->is_elementwise()) {
      return std::all_of(e.operands.begin(), e.operands.end(),
                         [&](const Atom& o) { return b_.TypeOf(o).rank() == 0 || b_.TypeOf(o).dims == type.dims; });
    }
    if (!sums_ && e.prim != &p.sort) return false;
    if (e.prim == &p.contract)
      return e.attrs.entries().size() == 1 && b_.TypeOf(e.operands[0]).is_static() &&
             b_.TypeOf(e.operands[1]).is_static();
    if (e.prim->family == Family::kReduction)
      return e.operands.size() == 1 && e.attrs.entries().size() == 1 && b_.TypeOf(e.operands[0]).is_static();
    if (e.prim == &p.cumsum) {
      const auto d = static_cast<size_t>(e.attrs.GetInt("dim"));
      if (!w.is_static()) return false;
      if (w.sizes[d] == 1) return true;
      const bool first = w.start[d] == 0, last = w.start[d] + w.sizes[d] == type.dims[d].value();
      return w.strides[d] == 1 && (e.attrs.GetBool("reverse") ? last : first);
    }
    if (e.prim == &p.sort) {
      const auto d = static_cast<size_t>(e.attrs.GetInt("dim"));
      return lowering_ && w.is_static() && e.operands.size() == 1 && IsFloatOrInteger(type.dtype) && w.sizes[d] == 1 &&
             (w.start[d] == 0 || w.start[d] + 1 == type.dims[d].value());
    }
    return false;
  }
  static bool IsFloatOrInteger(DType t) { return IsFloat(t) || IsInteger(t); }

  // Of a slice: always. Of a concatenation: where it leaves out an operand.
  bool CanShift(const Eqn& e, const Window& w, const Atom& a) const {
    if (!b_.TypeOf(a).varying.empty()) return false;
    if (e.prim == &Prims().slice) return b_.TypeOf(e.operands[0]).is_static();
    const auto d = static_cast<size_t>(e.attrs.GetInt("dim"));
    if (w.strides[d] != 1 || w.sizes[d] == 0) return false;
    int64_t begin = 0;
    size_t read = 0;
    for (const Atom& o : e.operands) {
      const std::optional<int64_t> n = b_.TypeOf(o).dims[d].TryValue();
      if (!n) return false;
      read += begin + *n > w.start[d] && begin < w.start[d] + w.sizes[d];
      begin += *n;
    }
    return read < e.operands.size();
  }

  Atom OfConcatenate(const Eqn& e, const Window& w, int depth) {
    const auto d = static_cast<size_t>(e.attrs.GetInt("dim"));
    int64_t begin = 0;
    Atoms parts;
    for (const Atom& o : e.operands) {
      const int64_t n = b_.TypeOf(o).dims[d].value(), end = begin + n;
      const int64_t first = std::max(begin, w.start[d]), last = std::min(end, w.start[d] + w.sizes[d]);
      if (first < last) {
        Window inner = w;
        inner.start[d] = first - begin;
        inner.sizes[d] = last - first;
        parts.push_back(Of(o, inner, depth - 1));
      }
      begin = end;
    }
    return parts.size() == 1 ? parts[0] : Concatenate(b_, parts, static_cast<int64_t>(d));
  }

  Atom OfProduct(const Eqn& e, const Window& w, int depth) {
    const ContractSpec spec = ContractSpec::Parse(e.attrs.Get<std::string>("spec"));
    Atoms x;
    for (const size_t i : {size_t{0}, size_t{1}}) {
      Ints from;
      for (const char c : i == 0 ? spec.lhs : spec.rhs) {
        const size_t at = spec.out.find(c);
        from.push_back(at == std::string::npos ? -1 : static_cast<int64_t>(at));
      }
      x.push_back(Of(e.operands[i], w.With(from, b_.TypeOf(e.operands[i]).dims, b_), depth - 1));
    }
    return b_.Emit1(*e.prim, x, e.attrs);
  }

  Atom OfPrefixSums(const Eqn& e, const Window& w, int depth) {
    const auto d = static_cast<size_t>(e.attrs.GetInt("dim"));
    const bool reverse = e.attrs.GetBool("reverse");
    Window inner = w;
    if (w.sizes[d] == 1) {
      inner.strides[d] = 1;
      inner.start[d] = reverse ? w.start[d] : 0;
      inner.sizes[d] = reverse ? b_.TypeOf(e.operands[0]).dims[d].value() - w.start[d] : w.start[d] + 1;
      const Atom part = Of(e.operands[0], inner, depth - 1);
      return Reshape(b_, ReduceSum(b_, part, {static_cast<int64_t>(d)}), w.shape());
    }
    const Atom part = Of(e.operands[0], inner, depth - 1);
    return b_.Emit1(*e.prim, {part}, e.attrs);
  }

  // The first or the last element. NaN comes last, but a reduction gives it where there is one.
  Atom OfSorted(const Eqn& e, const Window& w, int depth) {
    const auto d = static_cast<size_t>(e.attrs.GetInt("dim"));
    const bool last = w.start[d] + 1 == b_.TypeOf(e.operands[0]).dims[d].value();
    Window inner = w;
    inner.start[d] = 0;
    inner.strides[d] = 1;
    inner.sizes[d] = b_.TypeOf(e.operands[0]).dims[d].value();
    const Atom x = Of(e.operands[0], inner, depth - 1);
    const DType dtype = b_.DTypeOf(x);
    const Ints dims = {static_cast<int64_t>(d)};
    if (last || IsInteger(dtype))
      return Reshape(b_, Reduce(b_, last ? "reduce_max" : "reduce_min", x, dims), w.shape());
    const Atom nan = Ne(b_, x, x);
    const Atom others = Select(b_, nan, Atom::Scalar(dtype, std::numeric_limits<double>::infinity()), x);
    const Atom least = Reduce(b_, "reduce_min", others, dims);
    const Atom none = Reduce(b_, "reduce_and", nan, dims);
    const Atom made = Select(b_, none, Full(b_, b_.TypeOf(least), std::numeric_limits<double>::quiet_NaN()), least);
    return Reshape(b_, made, w.shape());
  }

  // The part itself.
  Atom Read(const Atom& a, const Window& w) {
    if (w.dim >= 0) {
      const Type type = b_.TypeOf(a);
      const int64_t count = w.sizes[static_cast<size_t>(w.dim)];
      if (type.dims[static_cast<size_t>(w.dim)] == Dim(count) && IndexedDim(b_, w.rows) == 0) return a;
      GatherDims g;
      for (int d = 0; d < type.rank(); ++d) {
        g.slice_sizes.push_back(d == w.dim ? 1 : type.dims[static_cast<size_t>(d)].value());
        if (d != w.dim) g.offset_dims.push_back(d);
      }
      g.collapsed_dims = g.start_index_map = {w.dim};
      g.mode = "clip";
      return b_.Emit1(Prims().gather, {a, Reshape(b_, w.rows, {count, 1})}, g.ToAttrs());
    }
    if (!w.at.empty()) return DynamicSlice(b_, a, w.at, w.sizes);
    Ints limit;
    for (size_t d = 0; d < w.sizes.size(); ++d)
      limit.push_back(w.sizes[d] == 0 ? w.start[d] : w.start[d] + (w.sizes[d] - 1) * w.strides[d] + 1);
    return Slice(b_, a, w.start, limit, w.strides);
  }

  Builder& b_;
  const bool sums_, lowering_;
};

// --- Slices and rows -------------------------------------------------------------------------------------------------

std::optional<Window> WindowOf(const Builder& b, const Eqn& e, const Atoms& x) {
  const Type& type = b.TypeOf(x[0]);
  if (!type.is_static() || !type.varying.empty() || type.rank() == 0) return std::nullopt;
  Window w = Window::All(type.dims);
  if (e.prim == &Prims().slice) {
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
  if (!w || !part.Saves(x[0], *w)) return std::nullopt;
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

// All rows in their order, or rows of the identity.
std::optional<Atom> AllRows(Builder& b, const Eqn& e, const Atoms& x) {
  const std::optional<Rows> r = RowsOf(b, e, x);
  if (!r || r->index_shape.size() != 1) return std::nullopt;
  const Type type = b.TypeOf(x[0]);
  const int64_t n = type.dims[static_cast<size_t>(r->dim)].value();
  if (r->count == n && IndexedDim(b, x[1]) == 0) return AsGathered(b, *r, x[0]);
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

// x[p[:, None], arange(n)], elements one by one that are rows: x[p].
std::optional<Atom> ElementsAsRows(Builder& b, const Eqn& e, const Atoms& x) {
  const Type type = b.TypeOf(x[0]), indices = b.TypeOf(x[1]);
  if (type.rank() != 2 || indices.rank() != 3 || !type.is_static() || !indices.is_static()) return std::nullopt;
  const GatherDims g = GatherDims::Of(e.attrs);
  if (g.collapsed_dims != Ints{0, 1} || g.start_index_map != Ints{0, 1} || g.mode == "fill") return std::nullopt;
  const Eqn* both = b.Definition(x[1]);
  if (both == nullptr || both->prim != &Prims().concatenate || both->operands.size() != 2) return std::nullopt;
  const Atom first = both->operands[0], second = both->operands[1];
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
  if (sorted->prim == &Prims().reverse) {
    for (const int64_t d : sorted->attrs.Get<Ints>("dims")) {
      if (!Contains(dims, d)) return std::nullopt;
    }
  } else if (sorted->prim != &Prims().sort || sorted->operands.size() != 1 ||
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
    if (view == nullptr || (view->prim != &Prims().broadcast && view->prim != &Prims().reshape)) return std::nullopt;
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
      if (view->prim != &Prims().reshape || b.Definition(view->operands[0]) == nullptr) return std::nullopt;
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
      {"part-of-sorted", "slice", Licence::kSignedZero, PartOfValue<false, true>,
       R"(fn f(x: f32[5]) { a = sort[dim=0, num_keys=1] x; b = slice[limit=[1], start=[0], strides=[1]] a; return b })",
       false, RuleTime::kLowering},
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
