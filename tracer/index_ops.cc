#include "tracer/index_ops.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "tracer/ops.h"

namespace weft {
namespace {

Dim One() { return Dim(1); }

// One dimension of the (extended) operand and what happens to it.
struct Axis {
  enum class Kind { kWhole, kRange, kInt, kArray } kind = Kind::kWhole;
  bool is_new = false;                     // made by None
  int64_t start = 0, step = 1, count = 0;  // kRange: start, start + step ...; kInt: start
  int array = -1;                          // kArray: number of the array
  Dim size;                                // of the operand
};

struct Plan {
  std::vector<Axis> axes;  // every dimension of the operand with new axes inserted
  Values arrays;
  Dims operand;             // its shape, new axes included
  int first_advanced = -1;  // where the joint dimensions of the arrays go; -1: no arrays
  bool has_new = false;
};

Axis ResolveSlice(const Index& e, const Dim& size) {
  Axis a;
  a.size = size;
  const int64_t step = e.step.value_or(1);
  if (step == 0) throw ValueError("the step of a slice is 0; expected another integer");
  if (!e.start && !e.stop && step == 1) return a;
  const int64_t n = size.value("slicing");
  auto clamp = [&](int64_t i, int64_t lo, int64_t hi) { return std::min(std::max(i < 0 ? i + n : i, lo), hi); };
  const int64_t start = step > 0 ? clamp(e.start.value_or(0), 0, n) : e.start ? clamp(*e.start, -1, n - 1) : n - 1;
  const int64_t stop = step > 0 ? clamp(e.stop.value_or(n), 0, n) : e.stop ? clamp(*e.stop, -1, n - 1) : -1;
  const int64_t count = step > 0 ? (stop - start + step - 1) / step : (start - stop - step - 1) / -step;
  a.start = start, a.step = step, a.count = std::max<int64_t>(count, 0);
  a.kind = a.start == 0 && step == 1 && a.count == n ? Axis::Kind::kWhole : Axis::Kind::kRange;
  return a;
}

Plan MakePlan(const Dims& shape, const Indices& given) {
  // Masks become as many arrays as they have dimensions.
  Indices entries;
  bool ellipsis = false;
  int consumed = 0;
  for (const Index& e : given) {
    if (e.kind == Index::Kind::kEllipsis) {
      if (ellipsis) throw UserError(ErrorKind::kIndex, {}, "an index can have only one ellipsis ('...')");
      ellipsis = true;
    }
    if (e.kind == Index::Kind::kArray && IsBool(e.array.dtype())) {
      const Dims mask = e.array.dims();
      if (mask.empty()) {  // a new dimension of one element, chosen or not
        const bool chosen = Demand(e.array, "a boolean index").at<bool>(0);
        entries.push_back(Index::Boolean(chosen));
        continue;
      }
      for (size_t d = 0; d < mask.size(); ++d) {
        const size_t at = consumed + d;
        // A mask without elements chooses nothing, whatever the size beside it, as in NumPy.
        if (!ellipsis && at < shape.size() && !(mask[d] == shape[at]) && !(mask[d] == Dim(0))) {
          throw UserError(ErrorKind::kIndex, {}, "a boolean mask of shape ", ShapeText(mask),
                          " does not fit an array of shape ", ShapeText(shape));
        }
      }
      for (Value& v : NonZero(e.array)) entries.push_back(Index::Array(std::move(v)));
      consumed += static_cast<int>(mask.size());
      continue;
    }
    if (e.kind == Index::Kind::kArray && !IsInteger(e.array.dtype())) {
      if (e.array.type().is_static() && e.array.type().size() == Dim(0)) {  // x[[]]
        entries.push_back(Index::Array(Astype(e.array, DType::kI32)));
        ++consumed;
        continue;
      }
      throw TypeError("an index array must hold integers or booleans, got ", e.array.type());
    }
    if (e.kind == Index::Kind::kInt || e.kind == Index::Kind::kSlice || e.kind == Index::Kind::kArray) ++consumed;
    entries.push_back(e);
  }
  if (consumed > static_cast<int>(shape.size())) {
    throw UserError(ErrorKind::kIndex, {}, "too many indices: ", consumed, " for an array of ", shape.size(),
                    " dimensions, shape ", ShapeText(shape));
  }
  if (!ellipsis) entries.push_back(Index::Ellipsis());

  Plan plan;
  size_t d = 0;
  bool separated = false, any_array = false;
  for (const Index& e : entries) any_array |= e.kind == Index::Kind::kArray || e.kind == Index::Kind::kBool;
  // Entries count, not axes: '...' separates also where it stands for no dimension.
  int entry = -1, last_advanced = -1;
  auto advanced = [&] {
    if (last_advanced >= 0 && last_advanced != entry - 1) separated = true;
    if (plan.first_advanced < 0) plan.first_advanced = static_cast<int>(plan.axes.size());
    last_advanced = entry;
  };
  for (const Index& e : entries) {
    ++entry;
    Axis a;
    switch (e.kind) {
      case Index::Kind::kNewAxis:
        a.is_new = true;
        a.size = One();
        plan.has_new = true;
        plan.axes.push_back(a);
        plan.operand.push_back(One());
        break;
      case Index::Kind::kEllipsis:
        for (int k = static_cast<int>(shape.size()) - consumed; k-- > 0; ++d) {
          a.size = shape[d];
          plan.axes.push_back(a);
          plan.operand.push_back(shape[d]);
        }
        break;
      case Index::Kind::kSlice:
        plan.axes.push_back(ResolveSlice(e, shape[d]));
        plan.operand.push_back(shape[d++]);
        break;
      case Index::Kind::kInt: {
        a.size = shape[d];
        a.kind = Axis::Kind::kInt;
        const int64_t n = shape[d].value("indexing with an integer");
        a.start = *e.start < 0 ? *e.start + n : *e.start;
        if (a.start < 0 || a.start >= n) {
          throw UserError(ErrorKind::kIndex, {}, "index ", *e.start, " is out of bounds for axis ", d, " of size ", n);
        }
        if (any_array) {
          advanced();
          a.kind = Axis::Kind::kArray;
          a.array = static_cast<int>(plan.arrays.size());
          plan.arrays.push_back(Value(NumberTensor(n > INT32_MAX ? DType::kI64 : DType::kI32, Scalar::Int(a.start))));
        }
        plan.axes.push_back(a);
        plan.operand.push_back(shape[d++]);
        break;
      }
      case Index::Kind::kBool:
        advanced();
        a.is_new = true;
        a.size = One();
        a.kind = Axis::Kind::kArray;
        a.array = static_cast<int>(plan.arrays.size());
        plan.arrays.push_back(e.array);
        plan.has_new = true;
        plan.axes.push_back(a);
        plan.operand.push_back(One());
        break;
      case Index::Kind::kArray:
        advanced();
        a.size = shape[d];
        a.kind = Axis::Kind::kArray;
        a.array = static_cast<int>(plan.arrays.size());
        plan.arrays.push_back(e.array);
        plan.axes.push_back(a);
        plan.operand.push_back(shape[d++]);
        break;
    }
  }
  if (separated) plan.first_advanced = 0;
  return plan;
}

// The slices of the plan; dimensions indexed by integers or arrays stay whole.
Atom ApplyRanges(Builder& b, const Atom& x, const Plan& plan) {
  const int rank = static_cast<int>(plan.axes.size());
  Ints lo(rank, 0), hi(rank, 0), step(rank, 1), reversed;
  bool any = false;
  for (int i = 0; i < rank; ++i) {
    const Axis& a = plan.axes[i];
    if (a.kind == Axis::Kind::kRange) any = true;
    if (a.kind == Axis::Kind::kInt) any = true;
  }
  if (!any) return x;
  for (int i = 0; i < rank; ++i) {
    const Axis& a = plan.axes[i];
    hi[i] = a.size.TryValue().value_or(-1);  // all of a symbolic dimension
    if (a.kind == Axis::Kind::kInt) {
      lo[i] = a.start, hi[i] = a.start + 1;
    } else if (a.kind == Axis::Kind::kRange) {
      if (a.count == 0) {
        hi[i] = 0;
      } else if (a.step > 0) {
        lo[i] = a.start, hi[i] = a.start + (a.count - 1) * a.step + 1, step[i] = a.step;
      } else {
        lo[i] = a.start + (a.count - 1) * a.step, hi[i] = a.start + 1, step[i] = -a.step;
        if (a.count > 1) reversed.push_back(i);
      }
    }
  }
  const Atom y = Slice(b, x, lo, hi, step);
  return reversed.empty() ? y : Reverse(b, y, reversed);
}

// Index arrays as one array [joint shape..., number of arrays], negative entries counted from the end.
struct Joint {
  Dims shape;
  Atom indices;
  Atoms parts;  // each of the joint shape
};

// 32 bits, unless a position or a given index needs more: an index beyond 32 bits must not wrap into the array.
DType IndexDType(const Plan& plan) {
  for (const Axis& a : plan.axes) {
    if (a.kind == Axis::Kind::kWhole) continue;
    if (a.size.is_static() && a.size.value() > INT32_MAX) return DType::kI64;
    if (a.kind != Axis::Kind::kArray) continue;
    const DType given = plan.arrays[a.array].dtype();
    if (ByteWidth(given) == 8 || given == DType::kU32) return DType::kI64;
  }
  return DType::kI32;
}

// The index array as signed integers of `dtype`; what is beyond all signed integers becomes the largest.
Atom SignedIndex(Site& site, const Value& index, DType dtype) {
  if (index.dtype() != DType::kU64) return site.Use(Operand(index), dtype);
  Builder& b = site.b();
  const Atom x = site.Use(Operand(index));
  const Atom most = BroadcastAtom(b, NumberLiteral(DType::kU64, Scalar::Int(INT64_MAX)), b.TypeOf(x).dims);
  return Convert(b, b.Emit1(FindPrim("min"), {x, most}), dtype);
}

// The size of dimension `d` of x as a scalar.
Atom SizeAtom(Builder& b, const Atom& x, size_t d, DType dtype) {
  const Dim size = b.TypeOf(x).dims[d];
  if (size.is_static()) return Atom::Scalar(dtype, static_cast<double>(size.value()));
  return Convert(b, b.Emit1(FindPrim("dim_size"), {x}, {{"dim", static_cast<int64_t>(d)}}), dtype);
}

// An index into dimension `d` of x, negative ones counted from the end.
Atom Wrapped(Builder& b, const Atom& index, const Atom& x, size_t d) {
  const DType dtype = b.DTypeOf(index);
  if (index.is_literal() && index.literal().rank() == 0) {
    const auto i = static_cast<int64_t>(index.literal().Get(0).real());
    const std::optional<int64_t> size = b.TypeOf(x).dims[d].TryValue();
    if (i >= 0) return index;
    if (size) return NumberLiteral(dtype, Scalar::Int(i + *size));
  }
  const Atom n = SizeAtom(b, x, d, dtype);
  const Dims& dims = b.TypeOf(index).dims;
  return Select(b, Lt(b, index, Atom::Scalar(dtype, 0)), Add(b, index, n.is_literal() ? n : BroadcastAtom(b, n, dims)),
                index);
}

Joint JoinArrays(Site& site, const Plan& plan, const Atom& x) {
  Builder& b = site.b();
  Joint joint;
  const DType dtype = IndexDType(plan);
  std::vector<Operand> operands(plan.arrays.begin(), plan.arrays.end());
  joint.shape = BroadcastShapes(operands, "index arrays");
  Dims column = joint.shape;
  column.push_back(One());
  Atoms columns;
  for (size_t i = 0; i < plan.axes.size(); ++i) {
    const Axis& a = plan.axes[i];
    if (a.kind != Axis::Kind::kArray) continue;
    Atom index = SignedIndex(site, plan.arrays[a.array], dtype);
    if (!IsUnsigned(plan.arrays[a.array].dtype())) index = Wrapped(b, index, x, i);
    joint.parts.push_back(BroadcastAtom(b, index, joint.shape));
    columns.push_back(Reshape(b, joint.parts.back(), column));
  }
  joint.indices = columns.size() == 1 ? columns[0] : Concatenate(b, columns, static_cast<int64_t>(joint.shape.size()));
  return joint;
}

// Where the window dimensions (those without arrays) stand in the result, and its shape before dropping integers.
struct Layout {
  Ints window_dims;
  Ints array_axes;
  Ints slice_sizes;
  Dims result;
};
Layout MakeLayout(const Plan& plan, const Dims& x, const Dims& joint) {
  Layout l;
  for (size_t i = 0; i < plan.axes.size(); ++i) {
    if (static_cast<int>(i) == plan.first_advanced) l.result.insert(l.result.end(), joint.begin(), joint.end());
    if (plan.axes[i].kind == Axis::Kind::kArray) {
      l.array_axes.push_back(static_cast<int64_t>(i));
      l.slice_sizes.push_back(1);
    } else {
      l.window_dims.push_back(static_cast<int64_t>(l.result.size()));
      l.result.push_back(x[i]);
      l.slice_sizes.push_back(x[i].TryValue().value_or(-1));
    }
  }
  return l;
}

bool OnlyScalarArrays(const Plan& plan) {
  return std::all_of(plan.arrays.begin(), plan.arrays.end(), [](const Value& v) { return v.rank() == 0; });
}

// Shape of the result: dimensions indexed by an integer vanish.
Dims ResultShape(const Plan& plan, const Dims& joint) {
  Dims out;
  for (size_t i = 0; i < plan.axes.size(); ++i) {
    const Axis& a = plan.axes[i];
    if (static_cast<int>(i) == plan.first_advanced) out.insert(out.end(), joint.begin(), joint.end());
    if (a.kind == Axis::Kind::kWhole)
      out.push_back(a.size);
    else if (a.kind == Axis::Kind::kRange)
      out.push_back(a.count);
  }
  return out;
}

Atom Read(Site& site, const Atom& operand, const Plan& plan, const std::string& mode) {
  Builder& b = site.b();
  Atom x = plan.has_new ? Reshape(b, operand, plan.operand) : operand;
  x = ApplyRanges(b, x, plan);
  if (plan.arrays.empty()) return Reshape(b, x, ResultShape(plan, {}));
  const Dims dims = b.TypeOf(x).dims;
  if (OnlyScalarArrays(plan) && mode != "fill") {
    Atoms start;
    Ints sizes;
    for (size_t i = 0; i < plan.axes.size(); ++i) {
      const Axis& a = plan.axes[i];
      if (a.kind == Axis::Kind::kArray) {
        const Value& v = plan.arrays[a.array];
        if (a.size == Dim(0))
          throw UserError(ErrorKind::kIndex, {}, "axis ", i, " of shape ", ShapeText(dims),
                          " has size 0, so no index is within bounds");
        const Atom index = SignedIndex(site, v, IndexDType(plan));
        start.push_back(IsUnsigned(v.dtype()) ? index : Wrapped(b, index, x, i));
        sizes.push_back(1);
      } else {
        start.push_back(Atom::Scalar(IndexDType(plan), 0));
        sizes.push_back(dims[i].TryValue().value_or(-1));
      }
    }
    return Reshape(b, DynamicSlice(b, x, start, sizes), ResultShape(plan, {}));
  }
  const Joint joint = JoinArrays(site, plan, x);
  const Layout l = MakeLayout(plan, dims, joint.shape);
  for (int64_t a : l.array_axes) {
    if (!(dims[a] == Dim(0))) continue;
    if (NumElements(l.result) == Dim(0)) return Zeros(b, b.TypeOf(x).With(l.result));  // nothing from nothing
    throw UserError(ErrorKind::kIndex, {}, "axis ", a, " of shape ", ShapeText(dims),
                    " has size 0, so no index is within bounds");
  }
  return b.Emit1(FindPrim("gather"), {x, joint.indices},
                 {{"offset_dims", l.window_dims},
                  {"collapsed_dims", l.array_axes},
                  {"operand_batch_dims", Ints{}},
                  {"indices_batch_dims", Ints{}},
                  {"start_index_map", l.array_axes},
                  {"slice_sizes", l.slice_sizes},
                  {"mode", mode}});
}

const char* ScatterName(Update u) {
  static constexpr const char* kNames[] = {"scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"};
  return kNames[static_cast<int>(u)];
}

Atom Combine(Builder& b, const Atom& old, const Atom& value, Update u) {
  static constexpr const char* kNames[] = {"", "add", "mul", "min", "max"};
  return u == Update::kSet ? value : b.Emit1(FindPrim(kNames[static_cast<int>(u)]), {old, value});
}

}  // namespace

Values NonZero(const Value& mask) {
  const Tensor t = Demand(mask, "a boolean mask");
  Shape index(t.rank(), 0);
  std::vector<std::vector<int64_t>> at(t.rank());
  for (int64_t i = 0; i < t.size(); ++i) {
    if (t.Get(i) != std::complex<double>(0)) {
      for (int d = 0; d < t.rank(); ++d) at[d].push_back(index[d]);
    }
    for (int d = t.rank(); d-- > 0;) {
      if (++index[d] < t.shape()[d]) break;
      index[d] = 0;
    }
  }
  Values out;
  for (int d = 0; d < t.rank(); ++d) {
    const Shape shape = {static_cast<int64_t>(at[d].size())};
    if (t.shape()[d] > INT32_MAX)
      out.push_back(Value(Tensor::FromVector<int64_t>(shape, at[d])));
    else
      out.push_back(Value(Tensor::FromVector<int32_t>(shape, std::vector<int32_t>(at[d].begin(), at[d].end()))));
  }
  return out;
}

namespace {

// What the operation goes by: its operands and the arrays among the entries.
absl::InlinedVector<Operand, 6> Together(std::initializer_list<Operand> operands, const Indices& entries) {
  absl::InlinedVector<Operand, 6> all(operands);
  for (const Index& entry : entries) {
    if (entry.kind == Index::Kind::kArray) all.push_back(Operand(entry.array));
  }
  return all;
}

}  // namespace

Value GetItem(const Operand& x, const Indices& entries, const std::string& mode) {
  const Plan plan = MakePlan(x.dims(), entries);
  const auto all = Together({x}, entries);
  Site site(all);
  return site.Finish(Read(site, site.Use(x), plan, mode), x.dtype().weak);
}

Value UpdateItem(const Operand& x, const Indices& entries, const Operand& value, Update update,
                 const std::string& mode) {
  const DType dtype = x.dtype().dtype;
  Plan plan = MakePlan(x.dims(), entries);
  const auto all = Together({x, value}, entries);
  Site site(all);
  Builder& b = site.b();
  const Atom operand = site.Use(x);
  Atom v = site.Use(value, dtype);
  const Atom xx = plan.has_new ? Reshape(b, operand, plan.operand) : operand;
  const bool contiguous = std::all_of(plan.axes.begin(), plan.axes.end(),
                                      [](const Axis& a) { return a.kind != Axis::Kind::kRange || a.step == 1; });
  const bool whole =
      std::all_of(plan.axes.begin(), plan.axes.end(), [](const Axis& a) { return a.kind != Axis::Kind::kRange; });
  auto finish = [&](const Atom& y) { return site.Finish(Reshape(b, y, x.dims()), x.dtype().weak); };

  if (contiguous && OnlyScalarArrays(plan)) {
    // A window at a known or computed place.
    Atoms start;
    Ints sizes;
    Dims window;
    std::optional<Atom> inside;
    const DType index_dtype = IndexDType(plan);
    for (size_t d = 0; d < plan.axes.size(); ++d) {
      const Axis& a = plan.axes[d];
      Dim size = 1;
      Atom at = Atom::Scalar(index_dtype, static_cast<double>(a.start));
      if (a.kind == Axis::Kind::kWhole) size = a.size, at = Atom::Scalar(index_dtype, 0);
      if (a.kind == Axis::Kind::kRange) size = a.count;
      if (a.kind == Axis::Kind::kArray) {
        const Value& i = plan.arrays[a.array];
        at = SignedIndex(site, i, index_dtype);
        if (!IsUnsigned(i.dtype())) at = Wrapped(b, at, xx, d);
        const std::optional<int64_t> n = a.size.TryValue();
        if (mode != "clip" && !(at.is_literal() && n && at.literal().Get(0).real() >= 0 &&
                                at.literal().Get(0).real() < static_cast<double>(*n))) {
          const Atom ok = And(b, Ge(b, at, Atom::Scalar(index_dtype, 0)), Lt(b, at, SizeAtom(b, xx, d, index_dtype)));
          inside = inside ? And(b, *inside, ok) : ok;
        }
      }
      start.push_back(at);
      sizes.push_back(size.TryValue().value_or(-1));
      window.push_back(size);
    }
    if (NumElements(window) == Dim(0)) return x.ToValue();
    v = Reshape(b, BroadcastAtom(b, v, ResultShape(plan, {}), false, "the value of an indexed update"), window);
    if (update != Update::kSet || inside) {
      const Atom old = DynamicSlice(b, xx, start, sizes);
      v = Combine(b, old, v, update);
      if (inside) v = Select(b, BroadcastAtom(b, *inside, window), v, old);
    }
    return finish(DynamicUpdateSlice(b, xx, v, start));
  }
  if (whole && !plan.arrays.empty()) {
    const Joint joint = JoinArrays(site, plan, xx);
    const Layout l = MakeLayout(plan, plan.operand, joint.shape);
    v = BroadcastAtom(b, v, l.result, false, "the value of an indexed update");
    if (NumElements(joint.shape) == Dim(0)) return x.ToValue();
    return finish(b.Emit1(FindPrim(ScatterName(update)), {xx, joint.indices, v},
                          {{"update_window_dims", l.window_dims},
                           {"inserted_dims", l.array_axes},
                           {"operand_batch_dims", Ints{}},
                           {"indices_batch_dims", Ints{}},
                           {"scatter_dims", l.array_axes},
                           {"mode", mode}}));
  }
  // Slices with a stride, or slices beside arrays: every element by its own position. Positions come from reading an
  // array of positions the same way; -1, out of bounds, marks the ones to drop.
  const int64_t total = NumElements(x.dims()).value("updating");
  const DType position = total > INT32_MAX ? DType::kI64 : DType::kI32;
  // Shifted by one so that 0 is free for "outside", read from a zero-padded border? Reading clips instead, so mask:
  const Atom flat = Iota(b, {Dim(total)}, 0, position);
  Atom where = Read(site, Reshape(b, flat, x.dims()), plan, "clip");
  if (mode != "clip" && !plan.arrays.empty()) {
    const Joint joint = JoinArrays(site, plan, xx);
    std::optional<Atom> inside;
    size_t part = 0;
    for (const Axis& a : plan.axes) {
      if (a.kind != Axis::Kind::kArray) continue;
      const Atom& at = joint.parts[part++];
      const DType t = b.DTypeOf(at);
      const Atom ok =
          And(b, Ge(b, at, Atom::Scalar(t, 0)), Lt(b, at, Atom::Scalar(t, static_cast<double>(a.size.value()))));
      inside = inside ? And(b, *inside, ok) : ok;
    }
    const Dims shape = b.TypeOf(where).dims;
    int before = 0;
    for (int i = 0; i < plan.first_advanced; ++i) before += plan.axes[i].kind != Axis::Kind::kInt;
    const Atom spread = Broadcast(b, *inside, shape, Range(before, before + static_cast<int64_t>(joint.shape.size())));
    where = Select(b, spread, where, Full(b, b.TypeOf(where), static_cast<double>(total)));
  }
  const Dims shape = b.TypeOf(where).dims;
  v = Reshape(b, BroadcastAtom(b, v, shape, false, "the value of an indexed update"), {NumElements(shape)});
  const Atom column = Reshape(b, where, {NumElements(shape), One()});
  return finish(b.Emit1(FindPrim(ScatterName(update)), {Reshape(b, operand, {Dim(total)}), column, v},
                        {{"update_window_dims", Ints{}},
                         {"inserted_dims", Ints{0}},
                         {"operand_batch_dims", Ints{}},
                         {"indices_batch_dims", Ints{}},
                         {"scatter_dims", Ints{0}},
                         {"mode", std::string("drop")}}));
}

Value Take(const Operand& x, const Value& indices, int64_t axis, const std::string& mode) {
  const int64_t dim = CheckAxis(axis, x.rank(), "take");
  Indices entries(dim, Index::Slice({}, {}, {}));
  entries.push_back(Index::Array(indices));
  return GetItem(x, entries, mode);
}

Value TakeAlongAxis(const Operand& x, const Value& indices, int64_t axis) {
  const int rank = x.rank();
  const int64_t dim = CheckAxis(axis, rank, "take_along_axis");
  if (indices.rank() != rank)
    throw TypeError("take_along_axis: indices have shape ", ShapeText(indices.dims()), " and the array has shape ",
                    ShapeText(x.dims()), "; expected as many dimensions");
  Dims shape = x.dims(), ishape = indices.dims();
  Indices entries;
  for (int d = 0; d < rank; ++d) {
    if (d == dim) {
      entries.push_back(Index::Array(indices));
      continue;
    }
    const Dims joint = BroadcastShapes(Dims{shape[d]}, Dims{ishape[d]}, "take_along_axis");
    if (shape[d] == One()) {
      entries.push_back(Index::Array(Value(NumberTensor(DType::kI32, Scalar::Int(0)))));
      continue;
    }
    Dims row(rank, One());
    row[d] = joint[0];
    const bool wide = joint[0].is_static() && joint[0].value() > INT32_MAX;
    entries.push_back(Index::Array(IotaLike(row, d, wide ? DType::kI64 : DType::kI32)));
  }
  return GetItem(x, entries, "clip");
}

}  // namespace weft
