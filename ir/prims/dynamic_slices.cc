// Windows at computed positions: dynamic_slice, dynamic_update_slice. Of several batch elements they are a gather and a
// scatter.
#include <algorithm>

#include "ir/ops.h"
#include "ir/prims/elementwise.h"
#include "ir/prims/families.h"
#include "ir/prims/indexing.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

void CheckStarts(const Sig& s, size_t first, int rank) {
  if (s.operands.size() != first + rank)
    throw TypeError(s.prim.name, ": takes one start index for each of ", rank, " dimensions, got ",
                    s.operands.size() - first);
  for (size_t i = first; i < s.operands.size(); ++i) {
    if (!IsInteger(s.operands[i].dtype) || s.operands[i].rank() != 0)
      throw TypeError(s.prim.name, ": start index ", i - first, " is ", s.operands[i], "; expected an integer scalar");
  }
}

// Clamped so that the window of `sizes` fits into `shape`.
Shape ClampedStart(const Tensors& in, size_t first, const Shape& shape, const Shape& sizes) {
  Shape start;
  for (size_t d = 0; d < shape.size(); ++d) {
    start.push_back(std::clamp<int64_t>(static_cast<int64_t>(in[first + d].Get(0).real()), 0, shape[d] - sizes[d]));
  }
  return start;
}

// Start indices of several batch elements as one [batch elements, rank] array of i64 or i32.
Atom StackStarts(BatchContext& c, size_t first, int rank) {
  Atoms columns;
  for (int d = 0; d < rank; ++d) {
    const Atom start = Convert(c.b, c.Batched(static_cast<int>(first) + d), DType::kI64);
    columns.push_back(Reshape(c.b, start, {c.size, 1}));
  }
  return Concatenate(c.b, columns, 1);
}

bool AnyBatched(const BatchContext& c, size_t first) {
  return std::any_of(c.batched.begin() + static_cast<int64_t>(first), c.batched.end(), [](bool b) { return b; });
}

Atoms StartsOf(const Atoms& x, size_t first) { return Atoms(x.begin() + static_cast<int64_t>(first), x.end()); }
Atoms KnownStarts(const TransposeContext& c, size_t first) {
  Atoms starts;
  for (size_t i = first; i < c.x.size(); ++i) starts.push_back(*c.x[i]);
  return starts;
}

void RegisterDynamicSlice(PrimRegistry& r) {
  Prim& p = r.Add("dynamic_slice", Family::kIndexing, -1,
                  "The window of `sizes` of operand 0 that begins at the integer scalars given as further operands, "
                  "clamped so that it fits. A size of -1 is all of its dimension.");
  p.traffic = Traffic::kTaken;
  p.infer = [](const Sig& s) -> Types {
    if (s.operands.empty()) throw TypeError("dynamic_slice: takes an array and a start per dimension, got no operands");
    const Type& x = s.operands[0];
    const Ints& sizes = CheckLength(s, "sizes", x.rank());
    CheckStarts(s, 1, x.rank());
    Dims dims;
    for (int d = 0; d < x.rank(); ++d) {
      if (sizes[d] == -1) {  // all of a symbolic dimension
        dims.push_back(x.dims[d]);
        continue;
      }
      if (sizes[d] < 0 || !s.Fits(x, d, sizes[d]))
        throw ValueError("dynamic_slice: sizes=", ToString(Attr(sizes)), " does not fit operand ", x, " in dimension ",
                         d, "; expected 0 to its size, or -1 for all of it");
      dims.push_back(sizes[d]);
    }
    return {x.With(dims)};
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    Tensor y(in[0].dtype(), StaticSizes(c.results[0].dims, "eval"));
    const Shape start = ClampedStart(in, 1, in[0].shape(), y.shape());
    const std::vector<int64_t> strides = RowMajorStrides(in[0].shape());
    int64_t to = 0;
    ForEachIndex(y.shape(), [&](Shape index) {
      for (size_t d = 0; d < index.size(); ++d) index[d] += start[d];
      CopyElement(in[0], Offset(index, strides), y, to++);
    });
    return {y};
  };
  p.linear = {0};
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    OptionalAtoms out(c.x.size());
    out[0] = DynamicUpdateSlice(c.b, Zeros(c.b, c.types[0]), *c.ct[0], KnownStarts(c, 1));
    return out;
  };
  p.batch = [](BatchContext& c) {
    const Ints& sizes = c.eqn.attrs.Get<Ints>("sizes");
    const int rank = static_cast<int>(sizes.size());
    c.batched_out = {true};
    if (!AnyBatched(c, 1)) {
      Atoms starts = StartsOf(c.x, 1);
      starts.insert(starts.begin(), Atom(Tensor::Scalar<int32_t>(DType::kI32, 0)));
      c.y = {DynamicSlice(c.b, c.x[0], starts, Prepend(c.size.is_static() ? c.size.value() : -1, sizes))};
      return;
    }
    GatherDims g{Range(1, rank + 1), {}, {}, {}, Range(0, rank), sizes, "clip"};
    if (c.batched[0]) g = {Range(1, rank + 1), {}, {0}, {0}, Range(1, rank + 1), Prepend(1, sizes), "clip"};
    c.y = {c.b.Emit1(FindPrim("gather"), {c.x[0], StackStarts(c, 1, rank)}, g.ToAttrs())};
  };
  p.samples = [] {
    auto sample = [](DType t, int32_t i, int32_t j) {
      Sample s = SampleOf({Type{t, {5, 7}, {}}, Type{DType::kI32, {}, {}}, Type{DType::kI32, {}, {}}},
                          {{"sizes", Ints{2, 3}}});
      s.values = {{1, Tensor::Scalar<int32_t>(DType::kI32, i)}, {2, Tensor::Scalar<int32_t>(DType::kI32, j)}};
      if (IsUnsigned(t)) s.low = 0;
      return s;
    };
    Sample rows = sample(DType::kF32, 2, 1);  // of whole rows
    rows.attrs = {{"sizes", Ints{2, 7}}};
    Sample whole = sample(DType::kF64, 2, 1);  // of columns
    whole.attrs = {{"sizes", Ints{-1, 3}}};
    return std::vector<Sample>{sample(DType::kF32, 1, 2),
                               sample(DType::kF64, -3, 100),
                               sample(DType::kBool, 4, 6),
                               sample(DType::kI64, 3, 0),
                               rows,
                               whole};
  };
}

void RegisterDynamicUpdateSlice(PrimRegistry& r) {
  Prim& p = r.Add("dynamic_update_slice", Family::kIndexing, -1,
                  "Operand 0 with the window that begins at the integer scalars given from operand 2 on, clamped so "
                  "that it fits, replaced by operand 1.");
  p.traffic = Traffic::kReplaced;
  p.infer = [](const Sig& s) -> Types {
    if (s.operands.size() < 2)
      throw TypeError("dynamic_update_slice: takes an array, an update and a start per dimension, got ",
                      s.operands.size(), " operands");
    const Type &x = s.operands[0], &u = s.operands[1];
    CheckStarts(s, 2, x.rank());
    bool fits = x.dtype == u.dtype && x.rank() == u.rank();
    for (int d = 0; fits && d < x.rank(); ++d)
      fits = u.dims[d] == x.dims[d] ||
             (u.dims[d].is_static() && x.dims[d].is_static() && u.dims[d].value() <= x.dims[d].value());
    if (!fits) throw TypeError("dynamic_update_slice: the update is ", u, ", which does not fit into operand 0, ", x);
    return {x};
  };
  p.eval = [](const EvalContext&, const Tensors& in) -> Tensors {
    Tensor y = in[0].Copy();
    const Shape start = ClampedStart(in, 2, y.shape(), in[1].shape());
    const std::vector<int64_t> strides = RowMajorStrides(y.shape());
    int64_t from = 0;
    ForEachIndex(in[1].shape(), [&](Shape index) {
      for (size_t d = 0; d < index.size(); ++d) index[d] += start[d];
      CopyElement(in[1], from++, y, Offset(index, strides));
    });
    return {y};
  };
  p.linear = {0, 1};
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    OptionalAtoms out(c.x.size());
    if (c.linear(0)) out[0] = DynamicUpdateSlice(c.b, *c.ct[0], Zeros(c.b, c.types[1]), KnownStarts(c, 2));
    if (c.linear(1)) {
      Ints sizes;
      for (const Dim& d : c.types[1].dims) sizes.push_back(d.is_static() ? d.value() : -1);
      out[1] = DynamicSlice(c.b, *c.ct[0], KnownStarts(c, 2), sizes);
    }
    return out;
  };
  p.batch = [](BatchContext& c) {
    const int rank = c.b.TypeOf(c.x[0]).rank() - (c.batched[0] ? 1 : 0);
    c.batched_out = {true};
    const Atom x = c.Batched(0), update = c.Batched(1);
    if (!AnyBatched(c, 2)) {
      Atoms starts = StartsOf(c.x, 2);
      starts.insert(starts.begin(), Atom(Tensor::Scalar<int32_t>(DType::kI32, 0)));
      c.y = {DynamicUpdateSlice(c.b, x, update, starts)};
      return;
    }
    const ScatterDims d{Range(1, rank + 1), {}, {0}, {0}, Range(1, rank + 1), "clip", true};
    c.y = {c.b.Emit1(FindPrim("scatter"), {x, StackStarts(c, 2, rank), update}, d.ToAttrs())};
  };
  p.samples = [] {
    auto sample = [](DType t, int32_t i, int32_t j) {
      Sample s =
          SampleOf({Type{t, {5, 7}, {}}, Type{t, {2, 3}, {}}, Type{DType::kI32, {}, {}}, Type{DType::kI32, {}, {}}});
      s.values = {{2, Tensor::Scalar<int32_t>(DType::kI32, i)}, {3, Tensor::Scalar<int32_t>(DType::kI32, j)}};
      if (IsUnsigned(t)) s.low = 0;
      return s;
    };
    Sample rows = sample(DType::kF32, 2, 1);  // whole rows
    rows.operands[1].dims = {2, 7};
    return std::vector<Sample>{sample(DType::kF32, 1, 2), sample(DType::kF64, -3, 100), sample(DType::kU8, 4, 6),
                               sample(DType::kI64, 3, 0), rows};
  };
}

}  // namespace

void RegisterDynamicSlices(PrimRegistry& r) {
  RegisterDynamicSlice(r);
  RegisterDynamicUpdateSlice(r);
}

}  // namespace weft
