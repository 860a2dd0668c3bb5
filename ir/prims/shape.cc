// Primitives that move elements without computing: broadcast, reshape, transpose, reverse, slice, pad, concatenate,
// iota, dim_size.
#include "ir/prims/shape.h"

#include <algorithm>
#include <numeric>

#include "ir/ops.h"
#include "ir/prims/elementwise.h"
#include "ir/prims/families.h"

namespace weft {

void CheckDims(const Sig& sig, const char* attr, const Ints& dims, int rank) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= rank) {
      throw UserError(ErrorKind::kIndex, {}, sig.prim.name, ": ", attr, " holds ", dims[i],
                      ", outside an operand of rank ", rank);
    }
    if (i > 0 && dims[i] <= dims[i - 1])
      throw ValueError(sig.prim.name, ": ", attr, "=", ToString(Attr(dims)), " is not strictly increasing");
  }
}

int64_t CheckDim(const Sig& sig, const char* attr, int rank) {
  const int64_t dim = sig.attrs.GetInt(attr);
  if (dim < 0 || dim >= rank)
    throw UserError(ErrorKind::kIndex, {}, sig.prim.name, ": ", attr, "=", dim, " is outside an operand of rank ",
                    rank);
  return dim;
}

void CheckPositions(const Sig& sig, const Type& type, int dim, DType positions) {
  const int bits = BitWidth(positions) - (IsSigned(positions) ? 1 : 0);
  if (!IsInteger(positions) || bits >= 63) return;
  const int64_t most = int64_t{1} << bits;
  if (sig.FitsWithin(type, dim, most)) return;
  throw ValueError(sig.prim.name, ": dimension ", dim, " of ", type, " has more positions than ", positions,
                   " has numbers (", most, "); a wider dtype is needed");
}

std::vector<DType> SampledDTypes(std::vector<DType> dtypes) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (IsStored(static_cast<DType>(i))) dtypes.push_back(static_cast<DType>(i));
  }
  return dtypes;
}

const Ints& CheckLength(const Sig& sig, const char* attr, int rank) {
  const Ints& list = sig.attrs.Get<Ints>(attr);
  if (static_cast<int>(list.size()) != rank) {
    throw ValueError(sig.prim.name, ": ", attr, "=", ToString(Attr(list)), " has ", list.size(),
                     " entries; expected one for each of ", rank, " dimensions");
  }
  return list;
}

void ForEachIndex(const Shape& shape, const std::function<void(const Shape&)>& visit) {
  if (NumElements(shape) == 0) return;
  Shape index(shape.size(), 0);
  while (true) {
    visit(index);
    int d = static_cast<int>(shape.size()) - 1;
    while (d >= 0 && ++index[d] == shape[d]) index[d--] = 0;
    if (d < 0) return;
  }
}

int64_t Offset(const Shape& index, const std::vector<int64_t>& strides) {
  return std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0});
}

void CopyElement(const Tensor& x, int64_t from, Tensor& y, int64_t to) {
  const int width = ByteWidth(x.dtype());
  std::memcpy(y.data<char>() + to * width, x.data<char>() + from * width, width);
}

Ints Shifted(const Ints& dims) {
  Ints shifted = dims;
  for (int64_t& d : shifted) ++d;
  return shifted;
}

Ints Prepend(int64_t value, const Ints& list) {
  Ints longer = {value};
  longer.insert(longer.end(), list.begin(), list.end());
  return longer;
}

Sample SampleOf(Types operands, Attrs attrs) {
  Sample s;
  s.operands = std::move(operands);
  s.attrs = std::move(attrs);
  return s;
}

namespace {

// y[index] = x[source(index)] for every index of the result; negative source = leave as is.
Tensor Gathered(const EvalContext& c, const Tensor& x, const std::function<int64_t(const Shape&)>& source) {
  Tensor y(x.dtype(), StaticSizes(c.results[0].dims, "eval"));
  int64_t to = 0;
  ForEachIndex(y.shape(), [&](const Shape& index) { CopyElement(x, source(index), y, to++); });
  return y;
}

Type F32(Dims dims) { return Type{DType::kF32, std::move(dims), {}}; }

// Adds the samples in other dtypes: moving elements has to work for each width.
std::function<std::vector<Sample>()> InSeveralDTypes(std::vector<Sample> samples) {
  return [samples] {
    std::vector<Sample> all = samples;
    for (DType dtype :
         SampledDTypes({DType::kBool, DType::kI8, DType::kU16, DType::kI64, DType::kBF16, DType::kC128})) {
      Sample s = samples[0];
      for (Type& t : s.operands) t.dtype = dtype;
      if (IsUnsigned(dtype)) s.low = 0;
      all.push_back(s);
    }
    return all;
  };
}

void RegisterBroadcast(PrimRegistry& r) {
  Prim& p = r.Add("broadcast", Family::kShape, 1,
                  "x repeated to `shape`: dimension i of x becomes dimension dims[i] of the result, where its size is "
                  "kept or, if 1, repeated.");
  p.expands = true;
  p.view = true;
  p.infer = [](const Sig& s) -> Types {
    const Dims& shape = s.attrs.Get<Dims>("shape");
    const Ints& dims = s.attrs.Get<Ints>("dims");
    const Type& x = s.operands[0];
    if (static_cast<int>(dims.size()) != x.rank())
      throw ValueError("broadcast: dims=", ToString(Attr(dims)), " has ", dims.size(), " entries for operand ", x);
    CheckDims(s, "dims", dims, static_cast<int>(shape.size()));
    for (int i = 0; i < x.rank(); ++i) {
      if (!(x.dims[i] == Dim(1)) && !(x.dims[i] == shape[dims[i]])) {
        throw TypeError("broadcast: dimension ", i, " of operand ", x, " has size ", x.dims[i],
                        ", which is neither 1 nor ", shape[dims[i]], ", the size of result dimension ", dims[i]);
      }
    }
    return {x.With(shape)};
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    const Ints& dims = c.sig.attrs.Get<Ints>("dims");
    const std::vector<int64_t> strides = RowMajorStrides(in[0].shape());
    return {Gathered(c, in[0], [&](const Shape& index) {
      int64_t from = 0;
      for (size_t i = 0; i < dims.size(); ++i) from += in[0].shape()[i] == 1 ? 0 : index[dims[i]] * strides[i];
      return from;
    })};
  };
  p.linear = {0};
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    const Ints& dims = c.eqn.attrs.Get<Ints>("dims");
    const Dims& shape = c.eqn.attrs.Get<Dims>("shape");
    Ints summed = OtherDims(static_cast<int>(shape.size()), dims);
    for (size_t i = 0; i < dims.size(); ++i) {
      if (!(c.types[0].dims[i] == shape[dims[i]])) summed.push_back(dims[i]);
    }
    std::sort(summed.begin(), summed.end());
    return {Reshape(c.b, ReduceSum(c.b, *c.ct[0], summed), c.types[0].dims)};
  };
  p.batch = [](BatchContext& c) {
    Dims shape = {c.size};
    const Dims& old = c.eqn.attrs.Get<Dims>("shape");
    shape.insert(shape.end(), old.begin(), old.end());
    c.y = {Broadcast(c.b, c.x[0], shape, Prepend(0, Shifted(c.eqn.attrs.Get<Ints>("dims"))))};
    c.batched_out = {true};
  };
  p.samples = InSeveralDTypes({SampleOf({F32({3})}, {{"shape", Dims{2, 3}}, {"dims", Ints{1}}}),
                               SampleOf({F32({})}, {{"shape", Dims{4}}, {"dims", Ints{}}}),
                               SampleOf({F32({2, 1})}, {{"shape", Dims{2, 5, 3}}, {"dims", Ints{0, 2}}}),
                               SampleOf({F32({3})}, {{"shape", Dims{0, 3}}, {"dims", Ints{1}}})});
}

void RegisterReshape(PrimRegistry& r) {
  Prim& p = r.Add("reshape", Family::kShape, 1, "The elements of x, in row-major order, as an array of `shape`.");
  p.view = true;
  p.traffic = Traffic::kNone;
  p.infer = [](const Sig& s) -> Types {
    const Dims& shape = s.attrs.Get<Dims>("shape");
    if (!(weft::NumElements(shape) == s.operands[0].size())) {
      throw TypeError("reshape: ", s.operands[0], " has ", s.operands[0].size(), " elements; shape (", ToString(shape),
                      ") has ", weft::NumElements(shape));
    }
    return {s.operands[0].With(shape)};
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    return {in[0].Reshaped(StaticSizes(c.results[0].dims, "eval"))};
  };
  p.linear = {0};
  p.transpose = [](TransposeContext& c) -> OptionalAtoms { return {Reshape(c.b, *c.ct[0], c.types[0].dims)}; };
  p.batch = [](BatchContext& c) {
    Dims shape = {c.size};
    const Dims& old = c.eqn.attrs.Get<Dims>("shape");
    shape.insert(shape.end(), old.begin(), old.end());
    c.y = {Reshape(c.b, c.x[0], shape)};
    c.batched_out = {true};
  };
  p.samples =
      InSeveralDTypes({SampleOf({F32({2, 6})}, {{"shape", Dims{3, 4}}}), SampleOf({F32({6})}, {{"shape", Dims{6, 1}}}),
                       SampleOf({F32({1})}, {{"shape", Dims{}}}), SampleOf({F32({0, 3})}, {{"shape", Dims{2, 0}}})});
}

void RegisterTranspose(PrimRegistry& r) {
  Prim& p = r.Add("transpose", Family::kShape, 1,
                  "Dimensions reordered: dimension i of the result is dimension perm[i] of x.");
  p.view = true;
  p.infer = [](const Sig& s) -> Types {
    const Type& x = s.operands[0];
    const Ints& perm = CheckLength(s, "perm", x.rank());
    Ints sorted = perm;
    std::sort(sorted.begin(), sorted.end());
    if (sorted != Range(0, x.rank()))
      throw ValueError("transpose: perm=", ToString(Attr(perm)), " is not a permutation of the ", x.rank(),
                       " dimensions of ", x);
    Dims dims;
    for (int64_t d : perm) dims.push_back(x.dims[d]);
    return {x.With(dims)};
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    const Ints& perm = c.sig.attrs.Get<Ints>("perm");
    const std::vector<int64_t> strides = RowMajorStrides(in[0].shape());
    return {Gathered(c, in[0], [&](const Shape& index) {
      int64_t from = 0;
      for (size_t i = 0; i < perm.size(); ++i) from += index[i] * strides[perm[i]];
      return from;
    })};
  };
  p.linear = {0};
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    const Ints& perm = c.eqn.attrs.Get<Ints>("perm");
    Ints inverse(perm.size());
    for (size_t i = 0; i < perm.size(); ++i) inverse[perm[i]] = static_cast<int64_t>(i);
    return {Transpose(c.b, *c.ct[0], inverse)};
  };
  p.batch = [](BatchContext& c) {
    c.y = {Transpose(c.b, c.x[0], Prepend(0, Shifted(c.eqn.attrs.Get<Ints>("perm"))))};
    c.batched_out = {true};
  };
  p.samples =
      InSeveralDTypes({SampleOf({F32({3, 5})}, {{"perm", Ints{1, 0}}}),
                       SampleOf({F32({2, 3, 4})}, {{"perm", Ints{2, 0, 1}}}), SampleOf({F32({})}, {{"perm", Ints{}}})});
}

void RegisterReverse(PrimRegistry& r) {
  Prim& p = r.Add("reverse", Family::kShape, 1, "x with the order of elements turned round along each of `dims`.");
  p.view = true;
  p.infer = [](const Sig& s) -> Types {
    CheckDims(s, "dims", s.attrs.Get<Ints>("dims"), s.operands[0].rank());
    return {s.operands[0]};
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    const Ints& dims = c.sig.attrs.Get<Ints>("dims");
    const std::vector<int64_t> strides = RowMajorStrides(in[0].shape());
    return {Gathered(c, in[0], [&](Shape index) {
      for (int64_t d : dims) index[d] = in[0].shape()[d] - 1 - index[d];
      return Offset(index, strides);
    })};
  };
  p.linear = {0};
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    return {Reverse(c.b, *c.ct[0], c.eqn.attrs.Get<Ints>("dims"))};
  };
  p.batch = [](BatchContext& c) {
    c.y = {Reverse(c.b, c.x[0], Shifted(c.eqn.attrs.Get<Ints>("dims")))};
    c.batched_out = {true};
  };
  p.samples =
      InSeveralDTypes({SampleOf({F32({4, 3})}, {{"dims", Ints{0}}}), SampleOf({F32({4, 3})}, {{"dims", Ints{0, 1}}})});
}

int64_t SliceSize(int64_t start, int64_t limit, int64_t stride) {
  return limit <= start ? 0 : (limit - start - 1) / stride + 1;
}

void RegisterSlice(PrimRegistry& r) {
  Prim& p = r.Add("slice", Family::kShape, 1,
                  "The elements start[d], start[d] + strides[d], ... below limit[d] along each dimension d; 0 <= start "
                  "<= limit <= size, strides >= 1.");
  p.view = true;
  p.traffic = Traffic::kTaken;
  p.infer = [](const Sig& s) -> Types {
    const Type& x = s.operands[0];
    const Ints &start = CheckLength(s, "start", x.rank()), &limit = CheckLength(s, "limit", x.rank()),
               &strides = CheckLength(s, "strides", x.rank());
    Dims dims;
    for (int d = 0; d < x.rank(); ++d) {
      // A whole symbolic dimension is named by limit -1.
      if (start[d] == 0 && limit[d] == -1 && strides[d] == 1) {
        dims.push_back(x.dims[d]);
        continue;
      }
      const int64_t size = x.dims[d].value("slice");
      if (start[d] < 0 || limit[d] < start[d] || limit[d] > size || strides[d] < 1) {
        throw UserError(ErrorKind::kIndex, {}, "slice: start=", start[d], " limit=", limit[d], " stride=", strides[d],
                        " does not fit dimension ", d, " of ", x);
      }
      dims.push_back(SliceSize(start[d], limit[d], strides[d]));
    }
    return {x.With(dims)};
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    const Ints &start = c.sig.attrs.Get<Ints>("start"), &by = c.sig.attrs.Get<Ints>("strides");
    const std::vector<int64_t> strides = RowMajorStrides(in[0].shape());
    return {Gathered(c, in[0], [&](Shape index) {
      for (size_t d = 0; d < index.size(); ++d) index[d] = start[d] + index[d] * by[d];
      return Offset(index, strides);
    })};
  };
  p.linear = {0};
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    const Ints &start = c.eqn.attrs.Get<Ints>("start"), &strides = c.eqn.attrs.Get<Ints>("strides");
    const Type ct = c.b.TypeOf(*c.ct[0]);
    Ints hi, interior;
    for (int d = 0; d < ct.rank(); ++d) {
      if (!c.types[0].dims[d].is_static()) {  // whole dimension
        hi.push_back(0), interior.push_back(0);
        continue;
      }
      const int64_t n = ct.dims[d].value(), covered = n == 0 ? 0 : start[d] + (n - 1) * strides[d] + 1;
      hi.push_back(c.types[0].dims[d].value() - (n == 0 ? start[d] : covered));
      interior.push_back(strides[d] - 1);
    }
    return {Pad(c.b, *c.ct[0], Atom::Scalar(ct.dtype, 0), start, hi, interior)};
  };
  p.batch = [](BatchContext& c) {
    const Attrs& a = c.eqn.attrs;
    c.y = {Slice(c.b, c.x[0], Prepend(0, a.Get<Ints>("start")),
                 Prepend(c.size.is_static() ? c.size.value() : -1, a.Get<Ints>("limit")),
                 Prepend(1, a.Get<Ints>("strides")))};
    c.batched_out = {true};
  };
  p.samples =
      InSeveralDTypes({SampleOf({F32({7, 5})}, {{"start", Ints{1, 0}}, {"limit", Ints{6, 5}}, {"strides", Ints{2, 1}}}),
                       SampleOf({F32({6})}, {{"start", Ints{2}}, {"limit", Ints{2}}, {"strides", Ints{1}}}),
                       SampleOf({F32({8})}, {{"start", Ints{1}}, {"limit", Ints{8}}, {"strides", Ints{3}}})});
}

void RegisterPad(PrimRegistry& r) {
  Prim& p =
      r.Add("pad", Family::kShape, 2,
            "x surrounded by the scalar operand 1: lo[d] before, hi[d] after, interior[d] between neighbours "
            "along dimension d; negative lo and hi cut off. "
            "Result size: lo + hi + n + max(n - 1, 0) * interior. With `parts`, axes of a mesh, the operand is the "
            "first of the parts of a sum that devices along them hold, and the zeros are the others: where a "
            "program is cut, what each device has of the operand.");
  p.more_attributes = {"parts"};
  p.infer = [](const Sig& s) -> Types {
    const Type& x = s.operands[0];
    if (s.operands[1].rank() != 0 || s.operands[1].dtype != x.dtype)
      throw TypeError("pad: operand 1 (the padding value) is ", s.operands[1], "; expected ", x.dtype, "[]");
    const Ints &lo = CheckLength(s, "lo", x.rank()), &hi = CheckLength(s, "hi", x.rank()),
               &interior = CheckLength(s, "interior", x.rank());
    Dims dims;
    for (int d = 0; d < x.rank(); ++d) {
      if (interior[d] < 0) throw ValueError("pad: interior=", ToString(Attr(interior)), "; expected 0 or more");
      if (interior[d] == 0) {
        const Dim size = x.dims[d] + (Dim(lo[d]) + Dim(hi[d]));
        if (size.is_static() && size.value() < 0)
          throw ValueError("pad: lo=", lo[d], " hi=", hi[d], " leave a negative size in dimension ", d, " of ", x);
        dims.push_back(size);
        continue;
      }
      const int64_t n = x.dims[d].value("pad with interior padding");
      // Dims check for overflow.
      const Dim gaps = Dim(std::max<int64_t>(n - 1, 0)) * Dim(interior[d]);
      const int64_t size = (Dim(lo[d]) + Dim(hi[d]) + Dim(n) + gaps).value();
      if (size < 0)
        throw ValueError("pad: lo=", lo[d], " hi=", hi[d], " leave a negative size in dimension ", d, " of ", x);
      dims.push_back(size);
    }
    return {x.With(dims)};
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    const Ints &lo = c.sig.attrs.Get<Ints>("lo"), &interior = c.sig.attrs.Get<Ints>("interior");
    const Tensor& x = in[0];
    Tensor y(x.dtype(), StaticSizes(c.results[0].dims, "eval"));
    for (int64_t i = 0; i < y.size(); ++i) CopyElement(in[1], 0, y, i);
    const std::vector<int64_t> strides = RowMajorStrides(y.shape());
    int64_t from = 0;
    ForEachIndex(x.shape(), [&](Shape index) {
      bool inside = true;
      for (size_t d = 0; d < index.size(); ++d) {
        index[d] = lo[d] + index[d] * (interior[d] + 1);
        inside &= index[d] >= 0 && index[d] < y.shape()[d];
      }
      if (inside) CopyElement(x, from, y, Offset(index, strides));
      ++from;
    });
    return {y};
  };
  p.linear = {0, 1};
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    const Ints &lo = c.eqn.attrs.Get<Ints>("lo"), &hi = c.eqn.attrs.Get<Ints>("hi"),
               &interior = c.eqn.attrs.Get<Ints>("interior");
    OptionalAtoms out(2);
    // Undo lo and hi by padding with their negatives, then keep every (interior + 1)-th element.
    Ints minus_lo, minus_hi, none(lo.size(), 0), start(lo.size(), 0), limit, strides;
    for (size_t d = 0; d < lo.size(); ++d) {
      minus_lo.push_back(-lo[d]);
      minus_hi.push_back(-hi[d]);
      strides.push_back(interior[d] + 1);
    }
    const Atom zero = Atom::Scalar(c.types[0].dtype, 0);
    Atom inner = Pad(c.b, *c.ct[0], zero, minus_lo, minus_hi, none);
    const Type inner_type = c.b.TypeOf(inner);
    for (const Dim& d : inner_type.dims) limit.push_back(d.is_static() ? d.value() : -1);
    if (std::any_of(interior.begin(), interior.end(), [](int64_t i) { return i != 0; }))
      inner = Slice(c.b, inner, start, limit, strides);
    if (c.linear(0)) out[0] = inner;
    if (c.linear(1)) {
      const Ints all = Range(0, inner_type.rank());
      out[1] = Sub(c.b, ReduceSum(c.b, *c.ct[0], all), ReduceSum(c.b, inner, all));
    }
    return out;
  };
  p.batch = [](BatchContext& c) {
    const Attrs& a = c.eqn.attrs;
    const Ints lo = Prepend(0, a.Get<Ints>("lo")), hi = Prepend(0, a.Get<Ints>("hi")),
               interior = Prepend(0, a.Get<Ints>("interior"));
    c.batched_out = {true};
    if (!c.batched[1]) {
      c.y = {Pad(c.b, c.x[0], c.x[1], lo, hi, interior)};
      return;
    }
    // A padding value per batch element: pad data and mask, then select.
    const Atom x = c.Batched(0);
    const Atom padded = Pad(c.b, x, Atom::Scalar(c.b.DTypeOf(x), 0), lo, hi, interior);
    const Atom mask =
        Pad(c.b, Full(c.b, c.b.TypeOf(x).With(DType::kBool), 1), Atom::Scalar(DType::kBool, 0), lo, hi, interior);
    c.y = {Select(c.b, mask, padded, Broadcast(c.b, c.x[1], c.b.TypeOf(padded).dims, {0}))};
  };
  p.samples = InSeveralDTypes(
      {SampleOf({F32({3, 4}), F32({})}, {{"lo", Ints{1, 0}}, {"hi", Ints{2, 1}}, {"interior", Ints{0, 2}}}),
       SampleOf({F32({5}), F32({})}, {{"lo", Ints{-1}}, {"hi", Ints{-2}}, {"interior", Ints{0}}}),
       SampleOf({F32({5}), F32({})}, {{"lo", Ints{-2}}, {"hi", Ints{1}}, {"interior", Ints{1}}}),
       SampleOf({F32({3, 4}), F32({})}, {{"lo", Ints{1, 0}}, {"hi", Ints{2, 0}}, {"interior", Ints{0, 0}}})});
}

void RegisterConcatenate(PrimRegistry& r) {
  Prim& p = r.Add("concatenate", Family::kShape, -1,
                  "The operands one after the other along `dim`; their other sizes agree.");
  p.infer = [](const Sig& s) -> Types {
    if (s.operands.empty()) throw TypeError("concatenate: needs at least one operand");
    Type type = s.operands[0];
    const int64_t dim = CheckDim(s, "dim", type.rank());
    for (size_t i = 1; i < s.operands.size(); ++i) {
      const Type& t = s.operands[i];
      bool fits = t.dtype == type.dtype && t.rank() == type.rank();
      for (int d = 0; fits && d < t.rank(); ++d) fits = d == dim || t.dims[d] == type.dims[d];
      if (!fits)
        throw TypeError("concatenate: operand ", i, " is ", t, ", but operand 0 is ", s.operands[0],
                        "; they must agree except in dimension ", dim);
      type.dims[dim] = type.dims[dim] + t.dims[dim];
    }
    return {type};
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    const int64_t dim = c.sig.attrs.GetInt("dim");
    Tensor y(in[0].dtype(), StaticSizes(c.results[0].dims, "eval"));
    const std::vector<int64_t> strides = RowMajorStrides(y.shape());
    int64_t start = 0;
    for (const Tensor& x : in) {
      int64_t from = 0;
      ForEachIndex(x.shape(), [&](Shape index) {
        index[dim] += start;
        CopyElement(x, from++, y, Offset(index, strides));
      });
      start += x.shape()[dim];
    }
    return {y};
  };
  p.linear = {-1};  // every operand
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    const int64_t dim = c.eqn.attrs.GetInt("dim");
    const Type ct = c.b.TypeOf(*c.ct[0]);
    OptionalAtoms out(c.types.size());
    int64_t begin = 0;
    for (size_t i = 0; i < c.types.size(); ++i) {
      const int64_t size = c.types[i].dims[dim].value("the gradient of concatenate");
      if (c.linear(static_cast<int>(i))) {
        Ints start(ct.rank(), 0), limit, strides(ct.rank(), 1);
        for (const Dim& d : ct.dims) limit.push_back(d.is_static() ? d.value() : -1);
        start[dim] = begin;
        limit[dim] = begin + size;
        out[i] = Slice(c.b, *c.ct[0], start, limit, strides);
      }
      begin += size;
    }
    return out;
  };
  p.batch = [](BatchContext& c) {
    Atoms xs;
    for (size_t i = 0; i < c.x.size(); ++i) xs.push_back(c.Batched(static_cast<int>(i)));
    c.y = {c.b.Emit1(*c.eqn.prim, xs, {{"dim", c.eqn.attrs.GetInt("dim") + 1}})};
    c.batched_out = {true};
  };
  p.samples = InSeveralDTypes({SampleOf({F32({2, 3}), F32({4, 3})}, {{"dim", int64_t{0}}}),
                               SampleOf({F32({2, 3}), F32({2, 0}), F32({2, 1})}, {{"dim", int64_t{1}}}),
                               SampleOf({F32({5})}, {{"dim", int64_t{0}}})});
}

void RegisterIota(PrimRegistry& r) {
  Prim& p =
      r.Add("iota", Family::kShape, 0,
            "An array of `shape` and `dtype` whose elements are their own index along `dim`. In 32 bits there must be "
            "room for all of them; narrower integers wrap around.");
  p.expands = true;
  p.view = true;
  p.dtypes = kAnyNumbers;
  p.infer = [](const Sig& s) -> Types {
    const Dims& shape = s.attrs.Get<Dims>("shape");
    CheckDim(s, "dim", static_cast<int>(shape.size()));
    const DType dtype = s.attrs.Get<DType>("dtype");
    if (!s.prim.dtypes.Has(dtype))
      throw TypeError("iota: dtype is ", dtype, "; expected one of ", s.prim.dtypes.ToString());
    const Type result{dtype, shape, {}};
    // Who asks for fewer bits wants them to wrap around.
    if (ByteWidth(dtype) == 4) CheckPositions(s, result, static_cast<int>(s.attrs.GetInt("dim")), dtype);
    return {result};
  };
  p.eval = [](const EvalContext& c, const Tensors&) -> Tensors {
    const int64_t dim = c.sig.attrs.GetInt("dim");
    const Shape shape = StaticSizes(c.results[0].dims, "eval");
    std::vector<uint64_t> places;
    ForEachIndex(shape, [&](const Shape& index) { places.push_back(static_cast<uint64_t>(index[dim])); });
    return {StoreAs<uint64_t>(c.results[0].dtype, shape, places)};
  };
  p.not_differentiable = "it has no operand";
  p.batch = [](BatchContext&) { WEFT_CHECK(false) << "iota has no operand to batch"; };
  p.samples = [] {
    return std::vector<Sample>{SampleOf({}, {{"shape", Dims{7}}, {"dim", int64_t{0}}, {"dtype", DType::kI32}}),
                               SampleOf({}, {{"shape", Dims{2, 3}}, {"dim", int64_t{1}}, {"dtype", DType::kF32}}),
                               SampleOf({}, {{"shape", Dims{3, 2}}, {"dim", int64_t{0}}, {"dtype", DType::kU8}})};
  };
}

void RegisterDimSize(PrimRegistry& r) {
  Prim& p = r.Add("dim_size", Family::kShape, 1, "The size of dimension `dim` of x, as i32[], which must hold it.");
  p.view = true;
  p.traffic = Traffic::kNone;
  p.infer = [](const Sig& s) -> Types {
    const Type& x = s.operands[0];
    const auto dim = static_cast<int>(CheckDim(s, "dim", x.rank()));
    if (!s.FitsWithin(x, dim, INT32_MAX))
      throw ValueError("dim_size: dimension ", dim, " of ", x, " has a size beyond ", INT32_MAX, ", the largest i32");
    return {Type{DType::kI32, {}, {}}};
  };
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    return {Tensor::Scalar<int32_t>(DType::kI32, static_cast<int32_t>(in[0].shape()[c.sig.attrs.GetInt("dim")]))};
  };
  p.not_differentiable = "a size is an integer";
  p.batch = [](BatchContext& c) {
    c.y = {c.b.Emit1(*c.eqn.prim, {c.x[0]}, {{"dim", c.eqn.attrs.GetInt("dim") + 1}})};
    c.batched_out = {false};
  };
  p.samples = [] { return std::vector<Sample>{SampleOf({F32({2, 5})}, {{"dim", int64_t{1}}})}; };
}

}  // namespace

void RegisterShape(PrimRegistry& r) {
  RegisterBroadcast(r);
  RegisterReshape(r);
  RegisterTranspose(r);
  RegisterReverse(r);
  RegisterSlice(r);
  RegisterPad(r);
  RegisterConcatenate(r);
  RegisterIota(r);
  RegisterDimSize(r);
}

}  // namespace weft
