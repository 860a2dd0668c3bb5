#include "ir/ops.h"

#include <algorithm>
#include <numeric>

namespace weft {
namespace {

// The shape of an element-wise operation whose operands are x and y is that of `x` unless x is a splat beside an array.
bool KeepsType(const Builder& b, const Atom& x, const Atom& y) {
  const Type &t = b.TypeOf(x), &u = b.TypeOf(y);
  return t.rank() >= u.rank() && t.dtype == u.dtype;
}

// Work that can be dropped: the value that `prim`(x, y) is anyway. These two are what derivative rules multiply by 1.
const Atom* Trivial(const Builder& b, const Prim& prim, const Atom& x, const Atom& y) {
  static const Prim &mul = FindPrim("mul"), &div = FindPrim("div");
  if (&prim != &mul && &prim != &div) return nullptr;
  if (y.IsSplat(1) && KeepsType(b, x, y)) return &x;
  if (&prim == &mul && x.IsSplat(1) && KeepsType(b, y, x)) return &y;  // a quotient's operands do not change places
  return nullptr;
}

}  // namespace

#define WEFT_DEFINE_UNARY(Function, primitive)     \
  Atom Function(Builder& b, const Atom& x) {       \
    static const Prim& prim = FindPrim(primitive); \
    return b.Emit1(prim, {x});                     \
  }
#define WEFT_DEFINE_BINARY(Function, primitive)                  \
  Atom Function(Builder& b, const Atom& x, const Atom& y) {      \
    static const Prim& prim = FindPrim(primitive);               \
    if (const Atom* same = Trivial(b, prim, x, y)) return *same; \
    return b.Emit1(prim, {x, y});                                \
  }
WEFT_UNARY_OPS(WEFT_DEFINE_UNARY)
WEFT_BINARY_OPS(WEFT_DEFINE_BINARY)

Atom IntegerPow(Builder& b, const Atom& x, int64_t exponent) {
  if (exponent == 1) return x;
  return b.Emit1(FindPrim("integer_pow"), {x}, {{"y", exponent}});
}

Atom Select(Builder& b, const Atom& pred, const Atom& on_true, const Atom& on_false) {
  return b.Emit1(FindPrim("select"), {pred, on_true, on_false});
}

Atom Convert(Builder& b, const Atom& x, DType dtype) {
  if (b.DTypeOf(x) == dtype) return x;
  return b.Emit1(FindPrim("convert"), {x}, {{"dtype", dtype}});
}

Atom Full(Builder& b, const Type& type, double value) {
  return Pvary(b, Broadcast(b, Atom::Scalar(type.dtype, value), type.dims, {}), type.varying);
}

Atom Pvary(Builder& b, const Atom& x, const Strings& axes) {
  if (axes.empty()) return x;
  const Strings more = AxesWithout(axes, b.TypeOf(x).varying);
  return more.empty() ? x : b.Emit1(FindPrim("pvary"), {x}, {{"axes", more}});
}

Atom Psum(Builder& b, const Atom& x, const Strings& axes) {
  return axes.empty() ? x : b.Emit1(FindPrim("psum"), {x}, {{"axes", axes}});
}

Atom MatchVarying(Builder& b, const Atom& x, const Type& type, bool sum) {
  if (x.is_var() ? b.TypeOf(x.var()).varying == type.varying : type.varying.empty()) return x;
  const Type given = b.TypeOf(x);
  const Strings extra = AxesWithout(given.varying, type.varying);
  WEFT_CHECK(sum || extra.empty()) << "a value of type " << given << " where " << type << " is needed";
  return Pvary(b, Psum(b, x, extra), type.varying);
}

Atom Broadcast(Builder& b, const Atom& x, const Dims& shape, const Ints& dims) {
  if (b.TypeOf(x).dims == shape) return x;
  return b.Emit1(FindPrim("broadcast"), {x}, {{"shape", shape}, {"dims", dims}});
}

Atom Reshape(Builder& b, const Atom& x, const Dims& shape) {
  if (b.TypeOf(x).dims == shape) return x;
  return b.Emit1(FindPrim("reshape"), {x}, {{"shape", shape}});
}

Atom Transpose(Builder& b, const Atom& x, const Ints& perm) {
  if (perm == Range(0, static_cast<int64_t>(perm.size()))) return x;
  return b.Emit1(FindPrim("transpose"), {x}, {{"perm", perm}});
}

Atom Reverse(Builder& b, const Atom& x, const Ints& dims) {
  if (dims.empty()) return x;
  return b.Emit1(FindPrim("reverse"), {x}, {{"dims", dims}});
}

Atom Concatenate(Builder& b, const Atoms& xs, int64_t dim) {
  if (xs.size() == 1) return xs[0];
  return b.Emit1(FindPrim("concatenate"), xs, {{"dim", dim}});
}

Atom Pad(Builder& b, const Atom& x, const Atom& value, const Ints& lo, const Ints& hi, const Ints& interior) {
  return b.Emit1(FindPrim("pad"), {x, value}, {{"lo", lo}, {"hi", hi}, {"interior", interior}});
}

Atom Slice(Builder& b, const Atom& x, const Ints& start, const Ints& limit, const Ints& strides) {
  return b.Emit1(FindPrim("slice"), {x}, {{"start", start}, {"limit", limit}, {"strides", strides}});
}

Atom Iota(Builder& b, const Dims& shape, int64_t dim, DType dtype) {
  return b.Emit1(FindPrim("iota"), {}, {{"shape", shape}, {"dim", dim}, {"dtype", dtype}});
}

Atom Reduce(Builder& b, const std::string& prim, const Atom& x, const Ints& dims) {
  if (dims.empty()) return x;
  return b.Emit1(FindPrim(prim), {x}, {{"dims", dims}});
}

Atom ReduceSum(Builder& b, const Atom& x, const Ints& dims) { return Reduce(b, "reduce_sum", x, dims); }

Atom Contract(Builder& b, const std::string& spec, const Atom& x, const Atom& y) {
  return b.Emit1(FindPrim("contract"), {x, y}, {{"spec", spec}});
}

Atom DynamicSlice(Builder& b, const Atom& x, const Atoms& start, const Ints& sizes) {
  Atoms operands = {x};
  operands.insert(operands.end(), start.begin(), start.end());
  return b.Emit1(FindPrim("dynamic_slice"), operands, {{"sizes", sizes}});
}

Atom DynamicUpdateSlice(Builder& b, const Atom& x, const Atom& update, const Atoms& start) {
  Atoms operands = {x, update};
  operands.insert(operands.end(), start.begin(), start.end());
  return b.Emit1(FindPrim("dynamic_update_slice"), operands);
}

Atom TakeAlong(Builder& b, const Atom& x, const Atom& indices, int64_t dim) {
  Dims shape = b.TypeOf(indices).dims;
  const int rank = static_cast<int>(shape.size());
  if (b.TypeOf(x).dims[dim] == Dim(0)) return Zeros(b, b.TypeOf(x).With(shape));  // no element to take
  shape.push_back(1);
  const Ints others = OtherDims(rank, {dim});
  return b.Emit1(FindPrim("gather"), {x, Reshape(b, indices, shape)},
                 {{"offset_dims", Ints{}},
                  {"collapsed_dims", Ints{dim}},
                  {"operand_batch_dims", others},
                  {"indices_batch_dims", others},
                  {"start_index_map", Ints{dim}},
                  {"slice_sizes", Ints(rank, 1)},
                  {"mode", std::string("promise")}});
}

std::optional<Atom> AddTangents(Builder& b, const std::optional<Atom>& x, const std::optional<Atom>& y) {
  if (!x) return y;
  if (!y) return x;
  if (b.DTypeOf(*x) == DType::kTape) return b.Emit(FindPrim("tape_add"), {*x, *y})[0];
  return Add(b, *x, *y);
}

Dims WithoutDims(const Dims& shape, const Ints& dims) {
  Dims rest;
  for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
    if (std::find(dims.begin(), dims.end(), i) == dims.end()) rest.push_back(shape[i]);
  }
  return rest;
}

Ints OtherDims(int rank, const Ints& dims) {
  Ints rest;
  for (int i = 0; i < rank; ++i) {
    if (std::find(dims.begin(), dims.end(), i) == dims.end()) rest.push_back(i);
  }
  return rest;
}

Ints Range(int64_t begin, int64_t end) {
  Ints range(std::max<int64_t>(0, end - begin));
  std::iota(range.begin(), range.end(), begin);
  return range;
}

std::pair<Expr, Expr> SideBySide(const Expr& x, const Expr& y) {
  const int rank_x = x.b->TypeOf(x.atom).rank(), rank_y = y.b->TypeOf(y.atom).rank();
  auto stretched = [](const Expr& number, const Expr& array) -> Expr {
    if (number.atom.is_literal()) return number;
    return {number.b, Broadcast(*number.b, number.atom, array.b->TypeOf(array.atom).dims, {})};
  };
  if (rank_x == 0 && rank_y > 0) return {stretched(x, y), y};
  if (rank_y == 0 && rank_x > 0) return {x, stretched(y, x)};
  return {x, y};
}

Expr Select(const Expr& p, const Expr& x, const Expr& y) {
  const auto [u, v] = SideBySide(x, y);
  const auto [p1, u1] = SideBySide(p, u);
  const auto [p2, v1] = SideBySide(p1, v);
  return {p.b, Select(*p.b, p2.atom, SideBySide(u1, p2).first.atom, v1.atom)};
}

}  // namespace weft
