// Parts of values, found of parts of what they are computed of: a window of f(x) is f of the window of x.
#ifndef WEFT_TRANSFORMS_OPT_PART_H_
#define WEFT_TRANSFORMS_OPT_PART_H_

#include <algorithm>
#include <limits>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/contraction.h"
#include "ir/prims/indexing.h"
#include "transforms/opt/known.h"
#include "transforms/opt/rewrite.h"

namespace weft {

// The primitives that parts are taken through.
struct PrimsThatArePushed {
  const Prim &slice = FindPrim("slice"), &dynamic_slice = FindPrim("dynamic_slice"), &gather = FindPrim("gather"),
             &broadcast = FindPrim("broadcast"), &reshape = FindPrim("reshape"), &transpose = FindPrim("transpose"),
             &contract = FindPrim("contract"), &concatenate = FindPrim("concatenate"), &reverse = FindPrim("reverse"),
             &cumsum = FindPrim("cumsum"), &sort = FindPrim("sort"), &iota = FindPrim("iota");
};
inline const PrimsThatArePushed& PrimsOfParts() {
  static const PrimsThatArePushed prims;
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

inline double ElementsOf(const Type& t) { return static_cast<double>(t.size().value()); }

class Part {
 public:
  // `sums`: of what is summed too, where a part may be summed in another order.
  Part(Builder& b, bool sums, bool lowering) : b_(b), sums_(sums), lowering_(lowering) {}

  // Whether less is computed, if the part is taken of operands.
  bool Saves(const Atom& a, const Window& w, int depth = 8) const {
    const Eqn* e = b_.Definition(a);
    if (e == nullptr || depth == 0 || e->operands.empty()) return false;
    if (e->prim == &PrimsOfParts().concatenate || e->prim == &PrimsOfParts().slice)
      return w.is_static() && CanShift(*e, w, a);
    if (e->prim == &PrimsOfParts().reverse && w.is_static()) return Saves(e->operands[0], w, depth - 1);
    if (const std::optional<Ints> dims = ViewDims(b_, *e, b_.TypeOf(a).dims))
      return Saves(e->operands[0], Inner(w, *dims, e->operands[0]), depth - 1);
    return ReadOnce(b_, a) && 4 * w.elements() <= 3 * ElementsOf(b_.TypeOf(a)) && Pushes(*e, a, w);
  }

  Atom Of(const Atom& a, const Window& w, int depth = 12) {
    const Type type = b_.TypeOf(a);
    if (IsAll(type, w)) return a;
    const Eqn* found = b_.Definition(a);
    if (found == nullptr || depth == 0) return Read(a, w);
    const Eqn e = *found;  // emitting may move it
    const PrimsThatArePushed& p = PrimsOfParts();
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
    if (e.prim == &p.slice && w.is_static() && CanShift(e, w, a)) return Of(e.operands[0], Shifted(e, w), depth - 1);
    if (e.prim == &p.reverse && w.is_static()) {
      Ints turned;
      for (const int64_t d : e.attrs.Get<Ints>("dims")) {
        if (w.sizes[static_cast<size_t>(d)] > 1) turned.push_back(d);
      }
      const Atom part = Of(e.operands[0], Turned(e, w, type.dims), depth - 1);
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
    if (e.prim == &p.sort) return IsOrder(e, a) ? OfOrder(e, w, depth) : OfSorted(e, w, depth);
    // A reduction.
    const Ints& dims = e.attrs.Get<Ints>("dims");
    Ints from;
    int64_t next = 0;
    for (int d = 0; d < b_.TypeOf(e.operands[0]).rank(); ++d) from.push_back(Contains(dims, d) ? -1 : next++);
    const Window inner = w.With(from, b_.TypeOf(e.operands[0]).dims, b_);
    const Atom part = Of(e.operands[0], inner, depth - 1);
    return b_.Emit1(*e.prim, {part}, e.attrs);
  }

  // Whether the part is one end of what is sorted, or functions of that.
  bool IsEndOfSorted(const Atom& a, const Window& w, int depth = 8) const {
    const Eqn* e = b_.Definition(a);
    if (e == nullptr || depth == 0 || e->operands.empty() || !w.is_static()) return false;
    const PrimsThatArePushed& p = PrimsOfParts();
    if (e->prim == &p.slice) return CanShift(*e, w, a) && IsEndOfSorted(e->operands[0], Shifted(*e, w), depth - 1);
    if (e->prim == &p.reverse) return IsEndOfSorted(e->operands[0], Turned(*e, w, b_.TypeOf(a).dims), depth - 1);
    if (const std::optional<Ints> dims = ViewDims(b_, *e, b_.TypeOf(a).dims))
      return IsEndOfSorted(e->operands[0], Inner(w, *dims, e->operands[0]), depth - 1);
    if ((e->prim != &p.sort && !e->prim->is_elementwise()) || !ReadOnce(b_, a) || !Pushes(*e, a, w)) return false;
    return e->prim == &p.sort || std::any_of(e->operands.begin(), e->operands.end(), [&](const Atom& o) {
             return b_.TypeOf(o).rank() > 0 && IsEndOfSorted(o, w, depth / 2);
           });
  }

 private:
  // The part of what a slice is taken of, and of what is reversed.
  static Window Shifted(const Eqn& slice, const Window& w) {
    Window inner = w;
    const Ints &start = slice.attrs.Get<Ints>("start"), &strides = slice.attrs.Get<Ints>("strides");
    for (size_t d = 0; d < start.size(); ++d) {
      inner.start[d] = start[d] + w.start[d] * strides[d];
      inner.strides[d] = strides[d] * w.strides[d];
    }
    return inner;
  }
  static Window Turned(const Eqn& reverse, const Window& w, const Dims& dims) {
    Window inner = w;
    for (const int64_t d : reverse.attrs.Get<Ints>("dims")) {
      const auto i = static_cast<size_t>(d);
      const int64_t last = w.start[i] + (w.sizes[i] - 1) * w.strides[i];
      inner.start[i] = dims[i].value() - 1 - last;
    }
    return inner;
  }

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
    const PrimsThatArePushed& p = PrimsOfParts();
    const Type& type = b_.TypeOf(a);
    if ((e.num_results != 1 && !IsOrder(e, a)) || !type.varying.empty()) return false;
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
      const DType key = b_.DTypeOf(e.operands[0]);
      return lowering_ && w.is_static() && (e.operands.size() == 1 || IsOrder(e, a)) && IsFloatOrInteger(key) &&
             w.sizes[d] == 1 && (w.start[d] == 0 || w.start[d] + 1 == type.dims[d].value());
    }
    return false;
  }
  // Whether `a` is where each of the sorted elements was.
  bool IsOrder(const Eqn& e, const Atom& a) const {
    return e.prim == &PrimsOfParts().sort && e.operands.size() == 2 && e.attrs.GetInt("num_keys") == 1 &&
           a.id() == e.first_result + 1 && b_.TypeOf(a).is_static() && BitWidth(b_.DTypeOf(a)) >= 32 &&
           IndexedDim(b_, e.operands[1]) == static_cast<int>(e.attrs.GetInt("dim"));
  }
  static bool IsFloatOrInteger(DType t) { return IsFloat(t) || IsInteger(t); }

  // Of a slice: always. Of a concatenation: where it leaves out an operand.
  bool CanShift(const Eqn& e, const Window& w, const Atom& a) const {
    if (!b_.TypeOf(a).varying.empty()) return false;
    if (e.prim == &PrimsOfParts().slice) return b_.TypeOf(e.operands[0]).is_static();
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

  // What a sort puts at one end of a dimension.
  struct End {
    Atom x;        // the sorted elements
    Atom element;  // the first or the last of them
    Atom nan;      // where x is NaN; of floats
    Ints dims;     // along which
    bool last;
  };
  // NaN comes last, but a reduction gives it where there is one: the first is the least of the others.
  End EndOfSorted(const Eqn& e, const Window& w, int depth) {
    const auto d = static_cast<size_t>(e.attrs.GetInt("dim"));
    Window inner = w;
    inner.start[d] = 0;
    inner.strides[d] = 1;
    inner.sizes[d] = b_.TypeOf(e.operands[0]).dims[d].value();
    End end{Of(e.operands[0], inner, depth - 1), {}, {}, {static_cast<int64_t>(d)}, false};
    end.last = w.start[d] + 1 == inner.sizes[d];
    const DType dtype = b_.DTypeOf(end.x);
    if (!IsInteger(dtype)) end.nan = Ne(b_, end.x, end.x);
    Atom others = end.x;
    if (!IsInteger(dtype) && !end.last)
      others = Select(b_, end.nan, Atom::Scalar(dtype, std::numeric_limits<double>::infinity()), end.x);
    end.element = Reduce(b_, end.last ? "reduce_max" : "reduce_min", others, end.dims);
    return end;
  }

  Atom OfSorted(const Eqn& e, const Window& w, int depth) {
    const End end = EndOfSorted(e, w, depth);
    if (end.last || IsInteger(b_.DTypeOf(end.x))) return Reshape(b_, end.element, w.shape());
    const Atom none = Reduce(b_, "reduce_and", end.nan, end.dims);
    const Type type = b_.TypeOf(end.element);
    const Atom made = Select(b_, none, Full(b_, type, std::numeric_limits<double>::quiet_NaN()), end.element);
    return Reshape(b_, made, w.shape());
  }

  // Where that element was: of equal ones, whose order stays, the first or the last.
  Atom OfOrder(const Eqn& e, const Window& w, int depth) {
    const DType index = b_.DTypeOf(e.operands[1]);
    const End end = EndOfSorted(e, w, depth);
    const bool is_float = !IsInteger(b_.DTypeOf(end.x));
    const Dims shape = b_.TypeOf(end.x).dims;
    const int64_t d = end.dims[0], n = shape[static_cast<size_t>(d)].value();
    Atom found = Eq(b_, end.x, Broadcast(b_, end.element, shape, OtherDims(static_cast<int>(shape.size()), end.dims)));
    if (is_float && end.last) found = Or(b_, found, end.nan);
    const Atom none = Atom::Scalar(index, static_cast<double>(end.last ? 0 : n));
    const Atom at = Select(b_, found, Iota(b_, shape, d, index), none);
    Atom made = Reduce(b_, end.last ? "reduce_max" : "reduce_min", at, end.dims);
    if (is_float && !end.last) {  // all are NaN
      const Type type = b_.TypeOf(made);
      made = Select(b_, Eq(b_, made, none), Zeros(b_, type), made);
    }
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
      return b_.Emit1(PrimsOfParts().gather, {a, Reshape(b_, w.rows, {count, 1})}, g.ToAttrs());
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

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_PART_H_
