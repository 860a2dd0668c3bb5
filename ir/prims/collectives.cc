// Collectives: operations between the devices along named axes of a mesh, or the batch elements of vmap(axis_name=).
//
//   psum pmax pmin    the same on all devices afterwards
//   all_gather psum_scatter all_to_all ppermute    move blocks between them
//   pvary axis_index    no communication
//
// Devices along several axes ["x","y"] are numbered in row-major order, x slowest. Gathering over them is gathering
// over y and then over x, so that a rule for one axis serves for lists (and scattering goes the other way round).
//
// Types: psum makes a value the same along its axes, so its result no longer varies over them; its transpose is then
// pvary. Where types do not say over which axes values vary (under vmap they do not), a psum is its own transpose: the
// cotangents of all batch elements are cotangents of copies of one value. That is what JAX does.
#include "ir/prims/collectives.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "ir/ops.h"
#include "ir/prims/devices.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {

const Strings& CheckAxes(const Sig& s) {
  const Strings& axes = s.attrs.Get<Strings>("axes");
  if (axes.empty()) throw ValueError(s.prim.name, ": axes is empty; expected at least one name");
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].empty())
      throw ValueError(s.prim.name, ": the name of an axis is empty; expected at least one character");
    if (std::find(axes.begin(), axes.begin() + static_cast<int64_t>(i), axes[i]) !=
        axes.begin() + static_cast<int64_t>(i))
      throw ValueError(s.prim.name, ": the axis '", axes[i], "' is named twice");
  }
  return axes;
}

const Dims& CheckSizes(const Sig& s) {
  const Dims& sizes = s.attrs.Get<Dims>("sizes");
  const size_t n = CheckAxes(s).size();
  if (sizes.size() != n)
    throw ValueError(s.prim.name, ": sizes=<", ToString(sizes), ">; expected one for each of ", n, " axes");
  for (const Dim& size : sizes) {
    if (size.is_static() && size.value() < 1)
      throw ValueError(s.prim.name, ": sizes holds ", size, "; expected 1 or more");
  }
  return sizes;
}

void RefuseMappedAxis(const BatchContext& c, const char* why) {
  if (c.axis.empty()) return;
  for (const FnRef& region : c.eqn.regions) {
    if (!region->UsesAxis(c.axis)) continue;
    throw UserError(ErrorKind::kUnsupported, c.eqn.loc, "vmap: ", c.eqn.prim->name,
                    " holds a collective over the mapped axis '", c.axis, "', but ", why,
                    ": all batch elements have to meet at a collective");
  }
}

Atom FirstIndex(Builder& b, const Strings& axes, const Dims& sizes, int64_t block) {
  const int64_t most = std::accumulate(sizes.begin(), sizes.end(), block, [](int64_t n, const Dim& d) {
    return n * d.value("the place of a device's block");
  });
  const DType t = most > std::numeric_limits<int32_t>::max() ? DType::kI64 : DType::kI32;
  std::optional<Atom> place;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Atom along =
        Convert(b, b.Emit1(FindPrim("axis_index"), {}, {{"axes", Strings{axes[i]}}, {"varying", true}}), t);
    place = place ? Add(b, Mul(b, *place, Atom::Scalar(t, static_cast<double>(sizes[i].value()))), along) : along;
  }
  return place ? Mul(b, *place, Atom::Scalar(t, static_cast<double>(block))) : Atom::Scalar(t, 0);
}

Atom OwnBlock(Builder& b, const Atom& x, const Strings& axes, const Dims& sizes, int64_t dim) {
  const Type type = b.TypeOf(x);
  Ints window;
  int64_t count = 1;
  for (const Dim& d : type.dims) window.push_back(d.is_static() ? d.value() : -1);
  for (const Dim& d : sizes) count *= d.value("a block");
  window[dim] = type.dims[dim].value("a block") / count;
  const Atom first = FirstIndex(b, axes, sizes, window[dim]);
  Atoms start(window.size(), Atom::Scalar(b.DTypeOf(first), 0));
  start[dim] = first;
  return DynamicSlice(b, x, start, window);
}

namespace {

Dim Product(const Dims& sizes) {
  Dim n = 1;
  for (const Dim& d : sizes) n = n * d;
  return n;
}

// The size of dimension `dim` of x once it is divided among the devices.
Dim Divided(const std::string& name, const Type& x, int64_t dim, const Dim& count) {
  const std::optional<Dim> part = count == Dim(0) ? std::nullopt : Dim::ExactQuotient(x.dims[dim], count);
  if (!part)
    throw TypeError(name, ": dimension ", dim, " of ", x, " has size ", x.dims[dim], ", which is not a multiple of ",
                    count, ", the number of devices");
  return *part;
}

// --- Batching --------------------------------------------------------------------------------------------------------

// The axes of a collective around the one that is being mapped.
struct Around {
  bool mapped = false;
  Strings before, after;
  Dims before_sizes, after_sizes;
};

Around AroundMapped(const BatchContext& c) {
  Around a;
  const Strings& axes = c.eqn.attrs.Get<Strings>("axes");
  const Dims sizes = c.eqn.attrs.GetOr<Dims>("sizes", {});
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] == c.axis) {
      a.mapped = true;
      if (!sizes.empty() && !(sizes[i] == c.size)) {
        throw ValueError("vmap: the axis '", c.axis, "' has size ", c.size, ", but ", c.eqn.prim->name,
                         " was made for size ", sizes[i]);
      }
      continue;
    }
    (a.mapped ? a.after : a.before).push_back(axes[i]);
    if (!sizes.empty()) (a.mapped ? a.after_sizes : a.before_sizes).push_back(sizes[i]);
  }
  return a;
}

// The collective itself on x, over other axes or dimensions.
Atom Again(BatchContext& c, const Atom& x, const Strings& axes, const Dims& sizes, Attrs attrs) {
  if (axes.empty()) return x;
  attrs.Set("axes", axes);
  if (attrs.Find("sizes") != nullptr) attrs.Set("sizes", sizes);
  return c.b.Emit1(*c.eqn.prim, {x}, attrs);
}

// The equation with its dimensions one further back, behind those of the batch elements: the mapped axis is another
// one.
void BatchPast(BatchContext& c, std::initializer_list<const char*> dims) {
  Attrs attrs = c.eqn.attrs;
  for (const char* name : dims) attrs.Set(name, attrs.GetInt(name) + (c.batched[0] ? 1 : 0));
  c.y = {c.b.Emit1(*c.eqn.prim, {c.x[0]}, attrs)};
  c.batched_out = {c.batched[0]};
}

// The leading dimension moved in front of dimension `dim` of the others, and merged with it: one batch element after
// the other.
Atom MergeBatch(Builder& b, const Atom& x, int64_t dim) {
  const Type type = b.TypeOf(x);
  Ints perm = Range(1, type.rank());
  perm.insert(perm.begin() + dim, 0);
  Dims shape(type.dims.begin() + 1, type.dims.end());
  shape[dim] = type.dims[0] * shape[dim];
  return Reshape(b, Transpose(b, x, perm), shape);
}

// Dimension `dim` cut in `count` blocks, their number in front.
Atom SplitBatch(Builder& b, const Atom& x, int64_t dim, const Dim& count, const std::string& name) {
  const Type type = b.TypeOf(x);
  Dims shape = type.dims;
  shape[dim] = Divided(name, type, dim, count);
  shape.insert(shape.begin() + dim, count);
  Ints perm = OtherDims(type.rank() + 1, {dim});
  perm.insert(perm.begin(), dim);
  return Transpose(b, Reshape(b, x, shape), perm);
}

// The sum of all batch elements of operand 0.
Atom SumOverBatch(BatchContext& c) {
  const Type type = c.b.TypeOf(c.x[0]);
  if (c.batched[0]) return ReduceSum(c.b, c.x[0], {0});
  if (!c.size.is_static()) return ReduceSum(c.b, c.Batched(0), {0});
  return Mul(c.b, c.x[0], Atom::Scalar(type.dtype, static_cast<double>(c.size.value())));
}

// The largest or smallest of all batch elements of operand 0.
template <const char* kReduction>
Atom ExtremeOverBatch(BatchContext& c) {
  return c.batched[0] ? Reduce(c.b, kReduction, c.x[0], {0}) : c.x[0];
}
constexpr char kReduceMax[] = "reduce_max", kReduceMin[] = "reduce_min";

void BatchReduction(BatchContext& c, Atom (*over_batch)(BatchContext& c)) {
  const Around a = AroundMapped(c);
  if (!a.mapped) return BatchPast(c, {});
  const Atom y = over_batch(c);
  Strings rest = a.before;
  rest.insert(rest.end(), a.after.begin(), a.after.end());
  c.y = {Again(c, y, rest, {}, c.eqn.attrs)};
  c.batched_out = {false};
}

void BatchGather(BatchContext& c) {
  const Around a = AroundMapped(c);
  if (!a.mapped) return BatchPast(c, {"dim"});
  const int64_t dim = c.eqn.attrs.GetInt("dim");
  const Atom inner = Again(c, c.Batched(0), a.after, a.after_sizes, c.eqn.attrs.With("dim", dim + 1));
  c.y = {Again(c, MergeBatch(c.b, inner, dim), a.before, a.before_sizes, c.eqn.attrs)};
  c.batched_out = {false};
}

void BatchScatter(BatchContext& c) {
  const Around a = AroundMapped(c);
  if (!a.mapped) return BatchPast(c, {"dim"});
  const int64_t dim = c.eqn.attrs.GetInt("dim");
  const Atom outer = Again(c, SumOverBatch(c), a.before, a.before_sizes, c.eqn.attrs);
  const Atom elements = SplitBatch(c.b, outer, dim, c.size, c.eqn.prim->name);
  c.y = {Again(c, elements, a.after, a.after_sizes, c.eqn.attrs.With("dim", dim + 1))};
  c.batched_out = {true};
}

// Over one axis, which is mapped: x[from, ..., split, ...] -> y[to, ..., concat, ...].
Atom ExchangeBatch(Builder& b, const Atom& x, int64_t split, int64_t concat, const Dim& size, const std::string& name) {
  const Atom blocks = SplitBatch(b, x, split + 1, size, name);  // [to, from, ...]
  const Type type = b.TypeOf(blocks);
  Ints perm = {0};
  for (int d = 2; d < type.rank(); ++d) perm.push_back(d);
  perm.insert(perm.begin() + 1 + concat, 1);
  Dims shape = {type.dims[0]};
  for (int d = 2; d < type.rank(); ++d) shape.push_back(type.dims[d]);
  shape[1 + concat] = type.dims[1] * shape[1 + concat];
  return Reshape(b, Transpose(b, blocks, perm), shape);
}

// Over several axes, one of them mapped: the dimension that is cut becomes one for each axis, and so does the one that
// grows; then each axis exchanges its own.
void BatchAllToAll(BatchContext& c) {
  const Around a = AroundMapped(c);
  if (!a.mapped) return BatchPast(c, {"split", "concat"});
  const Strings& axes = c.eqn.attrs.Get<Strings>("axes");
  const Dims& sizes = c.eqn.attrs.Get<Dims>("sizes");
  const int64_t split = c.eqn.attrs.GetInt("split"), concat = c.eqn.attrs.GetInt("concat");
  const std::string& name = c.eqn.prim->name;
  Atom x = c.Batched(0);
  c.batched_out = {true};
  if (axes.size() == 1) {
    c.y = {ExchangeBatch(c.b, x, split, concat, c.size, name)};
    return;
  }
  const auto n = static_cast<int64_t>(axes.size());
  const Type type = c.b.TypeOf(x);
  // [batch element, ..., (n ones) concat, ..., (sizes) split / product, ...]
  Dims wide = {type.dims[0]}, final = type.dims;
  int64_t ones = 0, blocks = 0;
  final[split + 1] = Divided(name, type, split + 1, Product(sizes));
  final[concat + 1] = final[concat + 1] * Product(sizes);
  for (int d = 1; d < type.rank(); ++d) {
    if (d == concat + 1) {
      ones = static_cast<int64_t>(wide.size());
      wide.insert(wide.end(), static_cast<size_t>(n), Dim(1));
    }
    if (d == split + 1) {
      blocks = static_cast<int64_t>(wide.size());
      wide.insert(wide.end(), sizes.begin(), sizes.end());
      wide.push_back(Divided(name, type, d, Product(sizes)));
    } else {
      wide.push_back(type.dims[d]);
    }
  }
  x = Reshape(c.b, x, wide);
  for (int64_t i = 0; i < n; ++i) {
    if (axes[i] == c.axis) {
      x = ExchangeBatch(c.b, x, blocks + i - 1, ones + i - 1, sizes[i], name);
    } else {
      x = Again(c, x, {axes[i]}, {sizes[i]}, c.eqn.attrs.With("split", blocks + i).With("concat", ones + i));
    }
  }
  c.y = {Reshape(c.b, x, final)};
}

// Batch elements from `begin` to `end` of x.
Atom PartOfBatch(Builder& b, const Atom& x, int64_t begin, int64_t end) {
  const Type type = b.TypeOf(x);
  Ints start(type.rank(), 0), limit, strides(type.rank(), 1);
  for (const Dim& d : type.dims) limit.push_back(d.is_static() ? d.value() : -1);
  start[0] = begin, limit[0] = end;
  return Slice(b, x, start, limit, strides);
}

void BatchPermute(BatchContext& c) {
  const Around a = AroundMapped(c);
  if (!a.mapped) return BatchPast(c, {});
  if (!a.before.empty() || !a.after.empty()) {
    throw UserError(ErrorKind::kUnsupported, c.eqn.loc, "vmap: ppermute over several axes, of which one is mapped ('",
                    c.axis, "'); permute along one axis after the other");
  }
  const int64_t n = c.size.value("ppermute over a mapped axis");
  const Ints& perm = c.eqn.attrs.Get<Ints>("perm");
  std::vector<int64_t> source(static_cast<size_t>(n), -1);
  for (size_t i = 0; i + 1 < perm.size(); i += 2) {
    if (perm[i] >= n || perm[i + 1] >= n)
      throw ValueError("vmap: ppermute sends ", perm[i], " to ", perm[i + 1], ", but the axis '", c.axis, "' has size ",
                       n);
    source[perm[i + 1]] = perm[i];
  }
  // Batch elements that come from neighbours in the same order move together.
  const Atom x = c.Batched(0);
  Type type = c.b.TypeOf(x);
  Atoms parts;
  for (int64_t at = 0; at < n;) {
    int64_t end = at + 1;
    while (end < n && source[end] == (source[at] < 0 ? -1 : source[at] + (end - at))) ++end;
    type.dims[0] = end - at;
    parts.push_back(source[at] < 0 ? Zeros(c.b, type) : PartOfBatch(c.b, x, source[at], source[at] + (end - at)));
    at = end;
  }
  c.y = {Concatenate(c.b, parts, 0)};
  c.batched_out = {true};
}

// --- Samples ---------------------------------------------------------------------------------------------------------

Type F32(Dims dims) { return Type{DType::kF32, std::move(dims), {}}; }
const Strings kOne = {"i"}, kBoth = {"i", "j"};

Sample Over(const Strings& axes, const Type& x, Attrs attrs, bool sizes) {
  Sample s = SampleOf({x}, std::move(attrs));
  s.attrs.Set("axes", axes);
  Dims list;
  for (const std::string& axis : axes) {
    s.axes.push_back({axis, axis == "i" ? 3 : 2});
    list.push_back(s.axes.back().size);
  }
  if (sizes) s.attrs.Set("sizes", list);
  return s;
}

// --- Registration ----------------------------------------------------------------------------------------------------

Prim& AddReducing(PrimRegistry& r, const char* name, Atom (*over_batch)(BatchContext& c), DTypeSet dtypes,
                  const char* doc) {
  Prim& p = r.Add(name, Family::kCollective, 1, doc);
  p.communicates = true;
  p.dtypes = dtypes;
  p.infer = [](const Sig& s) -> Types {
    Type t = s.operands[0];
    if (!s.prim.dtypes.Has(t.dtype))
      throw TypeError(s.prim.name, ": operand is ", t, "; expected one of ", s.prim.dtypes.ToString());
    t.varying = AxesWithout(t.varying, CheckAxes(s));
    return {t};
  };
  p.eval = MeetAt;
  p.batch = [over_batch](BatchContext& c) { BatchReduction(c, over_batch); };
  p.samples = [prim = &p] {
    std::vector<Sample> samples = {Over(kOne, F32({2, 3}), {}, false), Over(kBoth, F32({4}), {}, false),
                                   Over({"j", "i"}, F32({}), {}, false)};
    for (DType t : {DType::kF64, DType::kI32, DType::kBF16, DType::kC128}) {
      if (prim->dtypes.Has(t)) samples.push_back(Over(kOne, Type{t, {2}, {}}, {}, false));
    }
    return samples;
  };
  return p;
}

// Cotangents of an extreme go to the devices that attain it, in equal parts.
void ExtremeJvp(JvpContext& c) {
  const Strings& axes = c.eqn.attrs.Get<Strings>("axes");
  const Type type = c.b.TypeOf(*c.dx[0]);
  const Atom y = c.b.Emit1(*c.eqn.prim, {c.x[0]}, c.eqn.attrs);
  const Atom attains = Eq(c.b, c.x[0], y);
  const Atom sum = Psum(c.b, Select(c.b, attains, *c.dx[0], Zeros(c.b, type)), axes);
  c.y = {y};
  c.dy = {Div(c.b, sum, Psum(c.b, Convert(c.b, attains, type.dtype), axes))};
}

OptionalAtoms PsumTranspose(TransposeContext& c) {
  const Strings& axes = c.eqn.attrs.Get<Strings>("axes");
  const Strings untracked = AxesWithout(axes, c.types[0].varying);
  return {Pvary(c.b, Psum(c.b, *c.ct[0], untracked), AxesWithout(axes, untracked))};
}

void RegisterReductionsOverDevices(PrimRegistry& r) {
  Prim& sum = AddReducing(
      r, "psum", SumOverBatch, kAnyNumbers,
      "The sum of x over all devices along `axes` (over the batch elements of a vmap of that axis_name), on "
      "each.");
  sum.linear = {0};
  sum.transpose = PsumTranspose;
  AddReducing(r, "pmax", ExtremeOverBatch<kReduceMax>, kAnyReals,
              "The largest of x, element by element, over all devices along `axes`, on each.")
      .jvp = ExtremeJvp;
  AddReducing(r, "pmin", ExtremeOverBatch<kReduceMin>, kAnyReals,
              "The smallest of x, element by element, over all devices along `axes`, on each.")
      .jvp = ExtremeJvp;
}

void RegisterGather(PrimRegistry& r) {
  Prim& p =
      r.Add("all_gather", Family::kCollective, 1,
            "The blocks x of all devices along `axes`, one after the other along dimension `dim`, on each device. "
            "`sizes` are those of the axes. `invariant`: its type says that the result is the same on all of them.");
  p.communicates = true;
  p.infer = [](const Sig& s) -> Types {
    const Dim n = Product(CheckSizes(s));
    Type t = s.operands[0];
    const int64_t dim = CheckDim(s, "dim", t.rank());
    t.dims[dim] = n * t.dims[dim];
    if (s.attrs.GetOr<bool>("invariant", false)) t.varying = AxesWithout(t.varying, s.attrs.Get<Strings>("axes"));
    return {t};
  };
  p.eval = MeetAt;
  p.linear = {0};
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    // The cotangent of what is the same on all devices is the same on all: each takes its own block.
    if (c.eqn.attrs.GetOr<bool>("invariant", false)) {
      return {OwnBlock(c.b, *c.ct[0], c.eqn.attrs.Get<Strings>("axes"), c.eqn.attrs.Get<Dims>("sizes"),
                       c.eqn.attrs.GetInt("dim"))};
    }
    return {c.b.Emit1(FindPrim("psum_scatter"), {*c.ct[0]}, c.eqn.attrs)};
  };
  p.batch = BatchGather;
  p.more_attributes = {"invariant"};
  p.samples = [] {
    std::vector<Sample> samples = {Over(kOne, F32({2, 3}), {{"dim", int64_t{0}}}, true),
                                   Over(kBoth, F32({2, 3}), {{"dim", int64_t{1}}}, true),
                                   Over({"j", "i"}, F32({1}), {{"dim", int64_t{0}}}, true)};
    for (DType t : {DType::kF64, DType::kBool, DType::kI8, DType::kC64})
      samples.push_back(Over(kOne, Type{t, {2}, {}}, {{"dim", int64_t{0}}}, true));
    return samples;
  };
}

void RegisterScatter(PrimRegistry& r) {
  Prim& p =
      r.Add("psum_scatter", Family::kCollective, 1,
            "The sum of x over all devices along `axes`, cut along dimension `dim` into one block for each: device "
            "k has block k. `sizes` are those of the axes.");
  p.communicates = true;
  p.dtypes = kAnyNumbers;
  p.infer = [](const Sig& s) -> Types {
    const Dim n = Product(CheckSizes(s));
    Type t = s.operands[0];
    if (!s.prim.dtypes.Has(t.dtype))
      throw TypeError("psum_scatter: operand is ", t, "; expected one of ", s.prim.dtypes.ToString());
    const int64_t dim = CheckDim(s, "dim", t.rank());
    t.dims[dim] = Divided("psum_scatter", t, dim, n);
    return {t};
  };
  p.eval = MeetAt;
  p.linear = {0};
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    return {c.b.Emit1(FindPrim("all_gather"), {*c.ct[0]}, c.eqn.attrs)};
  };
  p.batch = BatchScatter;
  p.samples = [] {
    std::vector<Sample> samples = {Over(kOne, F32({6, 2}), {{"dim", int64_t{0}}}, true),
                                   Over(kBoth, F32({2, 12}), {{"dim", int64_t{1}}}, true),
                                   Over({"j", "i"}, F32({6}), {{"dim", int64_t{0}}}, true)};
    for (DType t : {DType::kF64, DType::kI32, DType::kC64})
      samples.push_back(Over(kOne, Type{t, {3}, {}}, {{"dim", int64_t{0}}}, true));
    return samples;
  };
}

void RegisterAllToAll(PrimRegistry& r) {
  Prim& p = r.Add("all_to_all", Family::kCollective, 1,
                  "x cut along dimension `split` into one block for each device along `axes`; device k gets block k of "
                  "every device, one after the other along dimension `concat`. `sizes` are those of the axes.");
  p.communicates = true;
  p.infer = [](const Sig& s) -> Types {
    const Dim n = Product(CheckSizes(s));
    Type t = s.operands[0];
    const int64_t split = CheckDim(s, "split", t.rank()), concat = CheckDim(s, "concat", t.rank());
    t.dims[split] = Divided("all_to_all", t, split, n);
    t.dims[concat] = n * t.dims[concat];
    return {t};
  };
  p.eval = MeetAt;
  p.linear = {0};
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    const Attrs& a = c.eqn.attrs;
    return {c.b.Emit1(*c.eqn.prim, {*c.ct[0]}, a.With("split", a.GetInt("concat")).With("concat", a.GetInt("split")))};
  };
  p.batch = BatchAllToAll;
  p.samples = [] {
    auto dims = [](int64_t split, int64_t concat) { return Attrs{{"split", split}, {"concat", concat}}; };
    std::vector<Sample> samples = {
        Over(kOne, F32({6, 2}), dims(0, 1), true),      Over(kOne, F32({2, 3}), dims(1, 0), true),
        Over(kOne, F32({6}), dims(0, 0), true),         Over(kBoth, F32({2, 12}), dims(1, 0), true),
        Over(kBoth, F32({12, 1, 2}), dims(0, 0), true), Over({"j", "i"}, F32({6, 2, 1}), dims(0, 2), true)};
    for (DType t : {DType::kF64, DType::kI8}) samples.push_back(Over(kOne, Type{t, {3, 1}, {}}, dims(0, 1), true));
    return samples;
  };
}

void RegisterPermute(PrimRegistry& r) {
  Prim& p = r.Add("ppermute", Family::kCollective, 1,
                  "The x of another device along `axes`: perm=[from, to, from, to, ...], each device at most once on "
                  "either side; zeros where nothing arrives.");
  p.communicates = true;
  p.infer = [](const Sig& s) -> Types {
    CheckAxes(s);
    const Ints& perm = s.attrs.Get<Ints>("perm");
    if (perm.size() % 2 != 0) throw ValueError("ppermute: perm has ", perm.size(), " entries; expected pairs");
    for (size_t i = 0; i < perm.size(); ++i) {
      if (perm[i] < 0) throw ValueError("ppermute: perm holds ", perm[i], "; devices are numbered from 0");
      for (size_t k = i % 2; k < i; k += 2) {
        if (perm[k] == perm[i])
          throw ValueError("ppermute: device ", perm[i], i % 2 ? " receives" : " sends",
                           " twice; perm=", ToString(Attr(perm)), " has to be one to one");
      }
    }
    return {s.operands[0]};
  };
  p.eval = MeetAt;
  p.linear = {0};
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    Ints inverse = c.eqn.attrs.Get<Ints>("perm");
    for (size_t i = 0; i + 1 < inverse.size(); i += 2) std::swap(inverse[i], inverse[i + 1]);
    return {c.b.Emit1(*c.eqn.prim, {*c.ct[0]}, c.eqn.attrs.With("perm", inverse))};
  };
  p.batch = BatchPermute;
  p.samples = [] {
    std::vector<Sample> samples = {Over(kOne, F32({2}), {{"perm", Ints{0, 1, 1, 2, 2, 0}}}, false),
                                   Over(kOne, F32({2, 2}), {{"perm", Ints{0, 2}}}, false),
                                   Over(kOne, F32({}), {{"perm", Ints{}}}, false)};
    for (DType t : {DType::kF64, DType::kI64, DType::kBool})
      samples.push_back(Over(kOne, Type{t, {2}, {}}, {{"perm", Ints{0, 2, 2, 1}}}, false));
    return samples;
  };
}

void RegisterPvary(PrimRegistry& r) {
  Prim& p =
      r.Add("pvary", Family::kCollective, 1,
            "x itself, of a type that says that it may differ between the devices along `axes`. No communication; "
            "its transpose is psum.");
  p.infer = [](const Sig& s) -> Types {
    Type t = s.operands[0];
    t.varying = UnionOfAxes(t.varying, CheckAxes(s));
    return {t};
  };
  p.eval = [](const EvalContext&, const Tensors& in) -> Tensors { return {in[0]}; };
  p.linear = {0};
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    return {Psum(c.b, *c.ct[0], c.eqn.attrs.Get<Strings>("axes"))};
  };
  p.batch = [](BatchContext& c) {
    c.y = {Pvary(c.b, c.x[0], AxesWithout(c.eqn.attrs.Get<Strings>("axes"), {c.axis}))};
    c.batched_out = {c.batched[0]};
  };
  p.samples = [] {
    std::vector<Sample> samples;
    for (DType t : {DType::kF32, DType::kF64, DType::kI32}) samples.push_back(Over(kOne, Type{t, {2}, {}}, {}, false));
    return samples;
  };
}

void RegisterAxisIndex(PrimRegistry& r) {
  Prim& p =
      r.Add("axis_index", Family::kCollective, 0,
            "The place of the device along the one axis of `axes`: i32[]. `varying`: its type says that it differs "
            "between devices, as that of all values inside a mesh does.");
  p.infer = [](const Sig& s) -> Types {
    const Strings& axes = CheckAxes(s);
    if (axes.size() != 1) throw ValueError("axis_index: ", axes.size(), " axes; expected one");
    return {Type{DType::kI32, {}, s.attrs.GetOr<bool>("varying", false) ? axes : Strings{}}};
  };
  p.eval = MeetAt;
  p.not_differentiable = "an index is an integer";
  p.batch = [](BatchContext& c) {
    const bool mapped = AroundMapped(c).mapped;
    c.y = {mapped ? Iota(c.b, {c.size}, 0, DType::kI32) : c.b.Emit1(*c.eqn.prim, {}, c.eqn.attrs)};
    c.batched_out = {mapped};
  };
  p.more_attributes = {"varying"};
  p.samples = [] {
    Sample s;
    s.attrs = {{"axes", kOne}};
    s.axes = {{"i", 3}};
    return std::vector<Sample>{s};
  };
}

}  // namespace

void RegisterCollectives(PrimRegistry& r) {
  RegisterReductionsOverDevices(r);
  RegisterGather(r);
  RegisterScatter(r);
  RegisterAllToAll(r);
  RegisterPermute(r);
  RegisterPvary(r);
  RegisterAxisIndex(r);
}

}  // namespace weft
