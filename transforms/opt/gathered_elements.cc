#include "transforms/opt/gathered_elements.h"

#include <algorithm>
#include <string>

#include "ir/ops.h"
#include "ir/prim.h"
#include "ir/prim_table.h"
#include "ir/prims/indexing.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/known.h"
#include "transforms/opt/part.h"
#include "transforms/opt/rewrite.h"

namespace weft {
namespace {

int PlaceIn(const Ints& dims, int64_t dim) {
  const auto at = std::find(dims.begin(), dims.end(), dim);
  return at == dims.end() ? -1 : static_cast<int>(at - dims.begin());
}

class Gathered {
 public:
  static constexpr int kDepth = 12;
  // `few`: what others read, too, is computed again for these elements, through a few operations: cheaper than to put
  // all of it into memory for them.
  Gathered(Builder& b, const Eqn& gather, const Atoms& x, bool few)
      : b_(b), gather_(gather), indices_(x[1]), dims_(GatherDims::Of(gather.attrs)), few_(few) {
    one_by_one_ = std::all_of(dims_.slice_sizes.begin(), dims_.slice_sizes.end(), [](int64_t n) { return n == 1; });
  }

  bool Pushes(const Atom& a, int depth = kDepth) const {
    if (InView(a)) return true;
    // What lies outside is NaN, and stays so.
    static const PrimSet kKeepsNan{"exp", "exp2", "expm1", "log",  "log1p", "logistic", "sin",   "cos",
                                   "tan", "neg",  "tanh",  "sinh", "cosh",  "square",   "sqrt",  "abs",
                                   "add", "sub",  "mul",   "div",  "erf",   "erfc",     "rsqrt", "cbrt"};
    const Eqn* e = b_.Definition(a);
    if (e == nullptr || !e->prim->is_elementwise() || e->num_results != 1) return false;
    if (!ReadOnce(b_, a) && (!few_ || depth + 3 <= kDepth)) return false;
    const Dims& dims = b_.TypeOf(a).dims;
    if (dims_.mode == "fill" ? !kKeepsNan.Has(*e->prim) || !IsFloat(b_.DTypeOf(a)) : dims_.mode == "zero") return false;
    return std::all_of(e->operands.begin(), e->operands.end(), [&](const Atom& o) {
      return Splat(b_, o) != nullptr || (b_.TypeOf(o).dims == dims && (dims_.mode != "fill" || IsFloat(b_.DTypeOf(o))));
    });
  }
  Atom Of(const Atom& a, int depth = kDepth) {
    if (const Atom* number = Splat(b_, a)) return *number;
    if (depth == 0 || !Pushes(a, depth)) return b_.Emit1(*gather_.prim, {a, indices_}, gather_.attrs);
    if (const std::optional<Ints> into = InView(a)) return OfView(a, *into);
    const Eqn e = *b_.Definition(a);  // emitting may move it
    Atoms x;
    for (const Atom& o : e.operands) x.push_back(Of(o, depth - 1));
    return b_.Emit1(*e.prim, x, e.attrs);
  }

 private:
  // Of a view whose elements are taken one by one: where the dimensions of what is viewed are, -1 for one of size 1. An
  // index that is outside is moved to the end, along each dimension by itself.
  std::optional<Ints> InView(const Atom& a) const {
    const Eqn* e = b_.Definition(a);
    if (e == nullptr || !one_by_one_ || dims_.mode == "fill" || dims_.mode == "zero" || !b_.TypeOf(a).is_static() ||
        Splat(b_, a) != nullptr)
      return std::nullopt;
    const std::optional<Ints> dims = ViewDims(b_, *e, b_.TypeOf(a).dims);
    if (!dims) return std::nullopt;
    const Type& from = b_.TypeOf(e->operands[0]);
    Ints into;
    for (int d = 0; d < from.rank(); ++d) {
      const bool one = from.dims[static_cast<size_t>(d)] == Dim(1);
      into.push_back(one ? -1 : PlaceIn(*dims, d));
      const bool named =
          Contains(dims_.operand_batch_dims, into.back()) || Contains(dims_.start_index_map, into.back());
      if (!one && (into.back() < 0 || !named)) return std::nullopt;
    }
    return into;
  }

  // They are where the indices say along those dimensions that the view has of it.
  Atom OfView(const Atom& a, const Ints& into) {
    const Atom viewed = b_.Definition(a)->operands[0];
    const Dims from = b_.TypeOf(viewed).dims;
    Dims shape;
    Atoms columns;
    GatherDims g;
    g.mode = dims_.mode;
    for (size_t d = 0; d < into.size(); ++d) {
      if (into[d] < 0) continue;
      const auto at = static_cast<int64_t>(shape.size());
      shape.push_back(from[d]);
      if (const int batch = PlaceIn(dims_.operand_batch_dims, into[d]); batch >= 0) {
        g.operand_batch_dims.push_back(at);
        g.indices_batch_dims.push_back(dims_.indices_batch_dims[static_cast<size_t>(batch)]);
      } else {
        g.collapsed_dims.push_back(at);
        g.start_index_map.push_back(at);
        columns.push_back(Column(PlaceIn(dims_.start_index_map, into[d])));
      }
    }
    g.slice_sizes.assign(shape.size(), 1);
    return InPlace(Elements(Reshape(b_, viewed, shape), columns, g));
  }

  // One element for each index, in the shape of the indices.
  Atom Elements(const Atom& source, const Atoms& columns, const GatherDims& g) {
    Dims result = b_.TypeOf(indices_).dims;
    result.pop_back();
    const Dims shape = b_.TypeOf(source).dims;
    if (columns.empty()) {
      // In the order of the result's dimensions, as a broadcast has them.
      Ints order = Range(0, static_cast<int64_t>(shape.size())), dims = g.indices_batch_dims;
      std::sort(order.begin(), order.end(),
                [&](int64_t i, int64_t j) { return dims[static_cast<size_t>(i)] < dims[static_cast<size_t>(j)]; });
      std::sort(dims.begin(), dims.end());
      return Broadcast(b_, Transpose(b_, source, order), result, dims);
    }
    if (shape.size() == 1) {  // all of them, in their order
      const int counted = IndexedDim(b_, columns[0]);
      const bool all = counted >= 0 && static_cast<size_t>(counted) < result.size() &&
                       result[static_cast<size_t>(counted)] == shape[0];
      if (all && ElementsOf(b_.TypeOf(columns[0])) == static_cast<double>(shape[0].value()))
        return Reshape(b_, source, result);
    }
    return b_.Emit1(*gather_.prim, {source, Concatenate(b_, columns, static_cast<int64_t>(result.size()))},
                    g.ToAttrs());
  }

  // With dimensions of size 1 where the gather keeps those of its slices.
  Atom InPlace(const Atom& elements) {
    const Dims rest = b_.TypeOf(elements).dims;
    Dims shape;
    for (size_t next = 0; shape.size() < rest.size() + dims_.offset_dims.size();)
      shape.push_back(Contains(dims_.offset_dims, static_cast<int64_t>(shape.size())) ? Dim(1) : rest[next++]);
    return Reshape(b_, elements, shape);
  }

  // The indices along one dimension, of size 1 in the last.
  Atom Column(int64_t dim) {
    const Type type = b_.TypeOf(indices_);
    if (type.dims.back() == Dim(1)) return indices_;
    if (const std::optional<Atoms> columns = IndexColumns(b_, indices_)) return (*columns)[static_cast<size_t>(dim)];
    Ints start(type.dims.size(), 0), limit, strides(type.dims.size(), 1);
    for (const Dim& d : type.dims) limit.push_back(d.value());
    start.back() = dim;
    limit.back() = dim + 1;
    return Slice(b_, indices_, start, limit, strides);
  }

  Builder& b_;
  const Eqn& gather_;
  const Atom indices_;
  const GatherDims dims_;
  const bool few_;
  bool one_by_one_;
};

}  // namespace

std::optional<Atom> ElementsOfValue(Builder& b, const Eqn& e, const Atoms& x) {
  const Type type = b.TypeOf(x[0]), indices = b.TypeOf(x[1]);
  if (b.Definition(x[0]) == nullptr || !type.is_static() || !type.varying.empty() || type.rank() == 0 ||
      !indices.is_static() || indices.rank() == 0)
    return std::nullopt;
  const Ints sizes = GatherDims::Of(e.attrs).slice_sizes;
  double elements = ElementsOf(indices) / static_cast<double>(std::max<int64_t>(1, indices.dims.back().value()));
  for (size_t d = 0; d < sizes.size(); ++d)
    elements *= static_cast<double>(sizes[d] == -1 ? type.dims[d].value() : sizes[d]);
  if (4 * elements > 3 * ElementsOf(type)) return std::nullopt;
  Gathered gathered(b, e, x, 16 * elements <= ElementsOf(type));
  return gathered.Pushes(x[0]) ? std::optional(gathered.Of(x[0])) : std::nullopt;
}

}  // namespace weft
