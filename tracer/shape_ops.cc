#include <algorithm>

#include "tracer/ops.h"

namespace weft {

Value BroadcastTo(const Operand& x, const Dims& shape) {
  Site site({x});
  return site.Finish(BroadcastAtom(site.b(), site.Use(x), shape), x.dtype().weak);
}

Value Reshape(const Operand& x, Dims shape) {
  const Dims from = x.dims();
  int unknown = -1;
  Dim known = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == Dim(-1)) {
      if (unknown >= 0) throw ValueError("reshape: more than one dimension of ", ShapeText(shape), " is -1");
      unknown = static_cast<int>(i);
    } else {
      known = known * shape[i];
    }
  }
  const Dim total = NumElements(from);
  if (unknown >= 0) {
    if (known == Dim(0))
      throw ValueError("reshape: -1 in ", ShapeText(shape), " is ambiguous beside a dimension of size 0");
    const std::optional<Dim> rest = Dim::ExactQuotient(total, known);
    if (!rest) throw TypeError("reshape: an array of shape ", ShapeText(from), " does not fit ", ShapeText(shape));
    shape[unknown] = *rest;
  } else if (!(known == total)) {
    throw TypeError("reshape: an array of shape ", ShapeText(from), " (", total, " elements) does not fit ",
                    ShapeText(shape), " (", known, " elements)");
  }
  if (shape == from) return x.ToValue();
  if (Recorder({&x, 1}) == nullptr && !x.is_scalar() && !x.value().traced() &&
      !x.value().shards()) {  // the same buffer, seen differently
    Tensor seen = x.value().tensor().Reshaped(StaticSizes(shape, "reshape"));
    if (const Placement* place = x.value().placement()) return Value(std::move(seen), *place, x.dtype().weak);
    return Value(std::move(seen), x.dtype().weak);
  }
  Site site({x});
  return site.Finish(Reshape(site.b(), site.Use(x), shape), x.dtype().weak);
}

Value Transpose(const Operand& x, std::optional<Ints> axes) {
  const int rank = x.rank();
  Ints perm;
  if (axes) {
    if (static_cast<int>(axes->size()) != rank) {
      throw ValueError("transpose: axes has ", axes->size(), " entries; expected one for each of the ", rank,
                       " dimensions of shape ", ShapeText(x.dims()));
    }
    CheckAxes(*axes, rank, "transpose");
    for (int64_t a : *axes) perm.push_back(CheckAxis(a, rank, "transpose"));
  } else {
    for (int i = rank; i-- > 0;) perm.push_back(i);
  }
  if (std::is_sorted(perm.begin(), perm.end())) return x.ToValue();
  Site site({x});
  return site.Finish(Transpose(site.b(), site.Use(x), perm), x.dtype().weak);
}

Value MoveAxis(const Operand& x, const Ints& from, const Ints& to) {
  const int rank = x.rank();
  if (from.size() != to.size())
    throw ValueError("moveaxis: ", from.size(), " source axes and ", to.size(),
                     " destination axes; expected equally many");
  CheckAxes(from, rank, "moveaxis"), CheckAxes(to, rank, "moveaxis");
  Ints perm(rank, -1);
  std::vector<bool> taken(rank, false);
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t f = CheckAxis(from[i], rank, "moveaxis");
    perm[CheckAxis(to[i], rank, "moveaxis")] = f;
    taken[f] = true;
  }
  int next = 0;
  for (int64_t& p : perm) {
    if (p >= 0) continue;
    while (taken[next]) ++next;
    p = next++;
  }
  return Transpose(x, perm);
}

Value ExpandDims(const Operand& x, const Ints& axes) {
  const int rank = x.rank() + static_cast<int>(axes.size());
  const Ints at = CheckAxes(axes, rank, "expand_dims");
  Dims shape = x.dims();
  for (int64_t a : at) shape.insert(shape.begin() + a, Dim(1));
  return Reshape(x, shape);
}

Value Squeeze(const Operand& x, std::optional<Ints> axes) {
  const Dims from = x.dims();
  Ints drop;
  if (axes) {
    drop = CheckAxes(*axes, x.rank(), "squeeze");
    for (int64_t a : drop) {
      if (!(from[a] == Dim(1)))
        throw ValueError("squeeze: axis ", a, " of an array of shape ", ShapeText(from), " has size ", from[a],
                         ", not 1");
    }
  } else {
    for (int i = 0; i < x.rank(); ++i) {
      if (from[i] == Dim(1)) drop.push_back(i);
    }
  }
  return Reshape(x, WithoutDims(from, drop));
}

Value ConcatenateValues(Operands xs, int64_t axis) {
  if (xs.empty()) throw ValueError("concatenate: at least one array is needed");
  const WeakDType t = PromoteAll(xs);
  const int rank = xs[0].rank();
  if (rank == 0) throw ValueError("concatenate: arrays of no dimensions cannot be concatenated; use stack");
  const int64_t dim = CheckAxis(axis, rank, "concatenate");
  const Dims first = xs[0].dims();
  for (size_t i = 1; i < xs.size(); ++i) {
    const Dims dims = xs[i].dims();
    bool same = dims.size() == first.size();
    for (size_t d = 0; same && d < dims.size(); ++d) same = static_cast<int64_t>(d) == dim || dims[d] == first[d];
    if (!same) {
      throw TypeError("concatenate: array ", i, " has shape ", ShapeText(dims), ", array 0 ", ShapeText(first),
                      "; all dimensions but axis ", dim, " must agree");
    }
  }
  if (xs.size() == 1) return xs[0].ToValue();
  Site site(xs);
  Atoms atoms;
  for (const Operand& x : xs) atoms.push_back(site.Use(x, t.dtype));
  return site.Finish(Concatenate(site.b(), atoms, dim), t.weak);
}

Value Stack(Operands xs, int64_t axis) {
  if (xs.empty()) throw ValueError("stack: at least one array is needed");
  const WeakDType t = PromoteAll(xs);
  const Dims shape = xs[0].dims();
  const int64_t dim = CheckAxis(axis, xs[0].rank() + 1, "stack");
  Dims expanded = shape;
  expanded.insert(expanded.begin() + dim, Dim(1));
  Site site(xs);
  Atoms atoms;
  for (size_t i = 0; i < xs.size(); ++i) {
    if (!(xs[i].dims() == shape)) {
      throw TypeError("stack: array ", i, " has shape ", ShapeText(xs[i].dims()), ", array 0 ", ShapeText(shape));
    }
    atoms.push_back(Reshape(site.b(), site.Use(xs[i], t.dtype), expanded));
  }
  return site.Finish(atoms.size() == 1 ? atoms[0] : Concatenate(site.b(), atoms, dim), t.weak);
}

Value Flip(const Operand& x, std::optional<Ints> axes) {
  const Ints dims = axes ? CheckAxes(*axes, x.rank(), "flip") : Range(0, x.rank());
  if (dims.empty()) return x.ToValue();
  Site site({x});
  return site.Finish(Reverse(site.b(), site.Use(x), dims), x.dtype().weak);
}

Value PadConstant(const Operand& x, const Ints& lo, const Ints& hi, const Operand& value) {
  Site site({x, value});
  const DType dtype = x.dtype().dtype;
  const Atom a = site.Use(x);
  const Atom fill = site.Use(value, dtype);
  return site.Finish(Pad(site.b(), a, fill, lo, hi, Ints(lo.size(), 0)), x.dtype().weak);
}

Value SliceAxis(const Operand& x, int64_t axis, int64_t start, int64_t limit, int64_t stride) {
  const int rank = x.rank();
  const int64_t dim = CheckAxis(axis, rank, "slice");
  const Dims shape = x.dims();
  Ints lo(rank, 0), hi, step(rank, 1);
  for (const Dim& d : shape) hi.push_back(d.value("slice"));
  lo[dim] = start, hi[dim] = limit, step[dim] = stride;
  Site site({x});
  return site.Finish(Slice(site.b(), site.Use(x), lo, hi, step), x.dtype().weak);
}

}  // namespace weft
