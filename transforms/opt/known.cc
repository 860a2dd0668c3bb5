#include "transforms/opt/known.h"

#include <algorithm>
#include <limits>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/indexing.h"
#include "transforms/opt/formula.h"

namespace weft {
namespace {

struct Sought {
  const Prim &iota = FindPrim("iota"), &broadcast = FindPrim("broadcast"), &reshape = FindPrim("reshape"),
             &transpose = FindPrim("transpose"), &select = FindPrim("select"), &convert = FindPrim("convert"),
             &eq = FindPrim("eq"), &ge = FindPrim("ge"), &le = FindPrim("le"), &lt = FindPrim("lt"),
             &gt = FindPrim("gt"), &lu = FindPrim("lu"), &slice = FindPrim("slice"), &gather = FindPrim("gather"),
             &concatenate = FindPrim("concatenate"), &add = FindPrim("add");
};
const Sought& Prims() {
  static const Sought prims;
  return prims;
}

std::optional<int64_t> NumberOf(const Builder& b, const Atom& a) {
  const Atom* s = Splat(b, a);
  if (s == nullptr || !IsInteger(s->literal_type().dtype) || s->literal_type().size().value() == 0) return std::nullopt;
  return static_cast<int64_t>(s->literal().Get(0).real());
}

// Of a reshape that puts in or leaves out dimensions of size 1: for each dimension of the result, that of the operand;
// -1 for one of size 1. Nothing for other reshapes.
std::optional<Ints> SameDims(const Dims& from, const Dims& to) {
  Ints out;
  size_t i = 0;
  const auto skip_ones = [&] {
    while (i < from.size() && from[i] == Dim(1)) ++i;
  };
  for (const Dim& d : to) {
    if (d == Dim(1)) {
      out.push_back(-1);
      continue;
    }
    skip_ones();
    if (i == from.size() || !(from[i] == d)) return std::nullopt;
    out.push_back(static_cast<int64_t>(i++));
  }
  skip_ones();
  return i == from.size() ? std::optional<Ints>(out) : std::nullopt;
}

// Whether an iota of this type counts without wrapping.
std::optional<int64_t> CountOf(const Type& type, int64_t dim) {
  const std::optional<int64_t> n = type.dims[static_cast<size_t>(dim)].TryValue();
  const int64_t most = ByteWidth(type.dtype) >= 4 ? std::numeric_limits<int32_t>::max() : 127;
  return n && *n <= most && IsInteger(type.dtype) ? n : std::nullopt;
}

// select(x < 0, x + n, x), what indexing from the end makes of x, where x is never negative.
const Eqn* NeverNegative(const Builder& b, const Eqn& e, int depth) {
  if (e.prim != &Prims().select) return nullptr;
  const Eqn* p = b.Definition(e.operands[0]);
  if (p == nullptr || p->prim != &Prims().lt || !(p->operands[0] == e.operands[2]) || NumberOf(b, p->operands[1]) != 0)
    return nullptr;
  const std::optional<Bounds> x = BoundsOf(b, e.operands[2], depth - 1);
  return x && x->least >= 0 ? p : nullptr;
}

}  // namespace

std::optional<Ints> ViewDims(const Builder& b, const Eqn& e, const Dims& result) {
  if (e.operands.empty()) return std::nullopt;
  const Type& x = b.TypeOf(e.operands[0]);
  if (e.prim == &Prims().transpose) return e.attrs.Get<Ints>("perm");
  if (e.prim == &Prims().reshape) return SameDims(x.dims, result);
  if (e.prim == &Prims().broadcast) {
    Ints out(result.size(), -1);
    const Ints& dims = e.attrs.Get<Ints>("dims");
    for (size_t i = 0; i < dims.size(); ++i) {
      if (!(x.dims[i] == Dim(1)) || result[static_cast<size_t>(dims[i])] == Dim(1))
        out[static_cast<size_t>(dims[i])] = static_cast<int64_t>(i);
    }
    return out;
  }
  return std::nullopt;
}

std::optional<Bounds> BoundsOf(const Builder& b, const Atom& a, int depth) {
  if (!IsInteger(b.DTypeOf(a)) || depth == 0) return std::nullopt;
  if (const std::optional<int64_t> n = NumberOf(b, a)) return Bounds{*n, *n};
  const Eqn* e = b.Definition(a);
  if (e == nullptr) return std::nullopt;
  const Sought& p = Prims();
  if (e->prim == &p.iota) {
    const std::optional<int64_t> n = CountOf(b.TypeOf(a), e->attrs.GetInt("dim"));
    return n ? std::optional(Bounds{0, std::max<int64_t>(*n - 1, 0)}) : std::nullopt;
  }
  if (e->prim == &p.lu && a.id() == e->first_result + 2) {  // the permutation
    const std::optional<int64_t> n = b.TypeOf(a).dims.back().TryValue();
    return n ? std::optional(Bounds{0, std::max<int64_t>(*n - 1, 0)}) : std::nullopt;
  }
  if (e->prim == &p.broadcast || e->prim == &p.reshape || e->prim == &p.transpose || e->prim == &p.slice)
    return BoundsOf(b, e->operands[0], depth - 1);
  if (e->prim == &p.convert) {  // what fits stays
    const std::optional<Bounds> x = BoundsOf(b, e->operands[0], depth - 1);
    return x && x->least >= 0 && x->most <= std::numeric_limits<int8_t>::max()                   ? x
           : x && ByteWidth(b.DTypeOf(a)) >= 4 && x->most <= std::numeric_limits<int32_t>::max() ? x
                                                                                                 : std::nullopt;
  }
  if (NeverNegative(b, *e, depth) != nullptr) return BoundsOf(b, e->operands[2], depth - 1);
  return std::nullopt;
}

int IndexedDim(const Builder& b, const Atom& a, int depth) {
  const Eqn* e = b.Definition(a);
  if (e == nullptr || depth == 0 || !IsInteger(b.DTypeOf(a))) return -1;
  const Sought& p = Prims();
  if (e->prim == &p.iota)
    return CountOf(b.TypeOf(a), e->attrs.GetInt("dim")) ? static_cast<int>(e->attrs.GetInt("dim")) : -1;
  if (e->prim == &p.convert) {
    const std::optional<Bounds> fits = BoundsOf(b, a, depth);
    return fits ? IndexedDim(b, e->operands[0], depth - 1) : -1;
  }
  if (NeverNegative(b, *e, depth) != nullptr) return IndexedDim(b, e->operands[2], depth - 1);
  if (e->prim != &p.broadcast && e->prim != &p.reshape && e->prim != &p.transpose) return -1;
  const int inner = IndexedDim(b, e->operands[0], depth - 1);
  if (inner < 0) return -1;
  const std::optional<Ints> dims = ViewDims(b, *e, b.TypeOf(a).dims);
  if (!dims) return -1;
  const auto at = std::find(dims->begin(), dims->end(), inner);
  return at == dims->end() ? -1 : static_cast<int>(at - dims->begin());
}

std::optional<Atoms> IndexColumns(const Builder& b, const Atom& indices) {
  const Eqn* e = b.Definition(indices);
  const Dims& dims = b.TypeOf(indices).dims;
  if (e == nullptr || e->prim != &Prims().concatenate) return std::nullopt;
  if (e->attrs.GetInt("dim") + 1 != static_cast<int64_t>(dims.size())) return std::nullopt;
  if (!(dims.back() == Dim(static_cast<int64_t>(e->operands.size())))) return std::nullopt;
  for (const Atom& a : e->operands) {
    if (!(b.TypeOf(a).dims.back() == Dim(1))) return std::nullopt;
  }
  return e->operands;
}

bool IsConstantAlong(const Builder& b, const Atom& a, int dim, int depth) {
  if (b.TypeOf(a).rank() == 0 || Splat(b, a) != nullptr) return true;
  const Eqn* e = b.Definition(a);
  if (e == nullptr || depth == 0 || e->num_results != 1) return false;
  if (e->prim == &Prims().iota) return e->attrs.GetInt("dim") != dim;
  if (e->prim->is_elementwise()) {
    return std::all_of(e->operands.begin(), e->operands.end(),
                       [&](const Atom& x) { return IsConstantAlong(b, x, dim, depth / 2); });
  }
  if (e->operands.empty()) return false;
  const std::optional<Ints> dims = ViewDims(b, *e, b.TypeOf(a).dims);
  if (!dims) return false;
  const int64_t inner = (*dims)[static_cast<size_t>(dim)];
  return inner < 0 || IsConstantAlong(b, e->operands[0], static_cast<int>(inner), depth - 1);
}

bool TakesDiagonal(const Builder& b, const Eqn& e, const Atoms& x) {
  if (e.prim != &Prims().gather || b.TypeOf(x[0]).rank() != 2 || b.TypeOf(x[1]).rank() != 2) return false;
  const GatherDims g = GatherDims::Of(e.attrs);
  if (g.collapsed_dims != Ints{0, 1} || g.start_index_map != Ints{0, 1} || g.mode == "fill") return false;
  const Dims& dims = b.TypeOf(x[0]).dims;
  if (!(dims[0] == dims[1]) || !(b.TypeOf(x[1]).dims[0] == dims[0])) return false;
  const std::optional<Atoms> both = IndexColumns(b, x[1]);
  return both && IndexedDim(b, (*both)[0]) == 0 && IndexedDim(b, (*both)[1]) == 0;
}

std::optional<SparseArray> SparseArrayOf(const Builder& b, const Atom& a) {
  const Type& type = b.TypeOf(a);
  const Eqn* e = b.Definition(a);
  if (e == nullptr || type.rank() < 1) return std::nullopt;
  const Sought& p = Prims();
  Atom predicate;
  std::optional<Atom> value;
  if (e->prim == &p.convert) {
    predicate = e->operands[0];
  } else if (e->prim == &p.select) {
    predicate = e->operands[0];
    const Atom* otherwise = Splat(b, e->operands[2]);
    if (otherwise == nullptr || !otherwise->IsSplat(0)) return std::nullopt;
    const Atom* taken = Splat(b, e->operands[1]);
    if (taken == nullptr || !taken->IsSplat(1)) value = e->operands[1];
  } else {
    return std::nullopt;
  }
  const Eqn* c = b.Definition(predicate);
  if (c == nullptr || b.DTypeOf(predicate) != DType::kBool || b.TypeOf(predicate).dims != type.dims)
    return std::nullopt;
  if (c->prim != &p.eq && c->prim != &p.ge && c->prim != &p.le) return std::nullopt;
  const int first = IndexedDim(b, c->operands[0]), second = IndexedDim(b, c->operands[1]);
  if (c->prim == &p.eq) {
    if (first >= 0 && second >= 0 && first != second) {
      // Both count all of their dimension, so the diagonal ends with the shorter one.
      if (!(type.dims[static_cast<size_t>(first)] == type.dims[static_cast<size_t>(second)])) return std::nullopt;
      return SparseArray{SparseArray::Kind::kDiagonal, first, second, {}, value};
    }
    for (const int i : {0, 1}) {
      const int dim = i == 0 ? first : second;
      const Atom& index = c->operands[static_cast<size_t>(1 - i)];
      if (dim >= 0 && b.TypeOf(index).rank() == type.rank() && IsConstantAlong(b, index, dim))
        return SparseArray{SparseArray::Kind::kOneHot, dim, -1, index, value};
    }
    return std::nullopt;
  }
  if (first < 0 || second < 0 || first == second || value) return std::nullopt;
  if (!(type.dims[static_cast<size_t>(first)] == type.dims[static_cast<size_t>(second)])) return std::nullopt;
  return c->prim == &p.ge ? SparseArray{SparseArray::Kind::kLowerTriangle, first, second, {}, {}}
                          : SparseArray{SparseArray::Kind::kLowerTriangle, second, first, {}, {}};
}

}  // namespace weft
