#include "transforms/opt/matrix_forms.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/contraction.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/known.h"

namespace weft {
namespace {

struct Sought {
  const Prim &select = FindPrim("select"), &convert = FindPrim("convert"), &eq = FindPrim("eq"), &ge = FindPrim("ge"),
             &gt = FindPrim("gt"), &le = FindPrim("le"), &lt = FindPrim("lt"), &add = FindPrim("add"),
             &sub = FindPrim("sub"), &mul = FindPrim("mul"), &div = FindPrim("div"), &transpose = FindPrim("transpose"),
             &cholesky = FindPrim("cholesky"), &contract = FindPrim("contract"), &iota = FindPrim("iota");
};
const Sought& Prims() {
  static const Sought prims;
  return prims;
}

constexpr int kDepth = 8;

// An array whose elements are their own index along a dimension, and a number more.
struct Index {
  int dim;
  int64_t more;
};
std::optional<Index> IndexOf(const Builder& b, const Atom& a, int depth = kDepth) {
  const int dim = IndexedDim(b, a);
  if (dim >= 0) return Index{dim, 0};
  const Eqn* e = b.Definition(a);
  if (e == nullptr || depth == 0 || e->operands.empty()) return std::nullopt;
  if (e->prim == &Prims().add || e->prim == &Prims().sub) {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const Atom* number = Splat(b, e->operands[1 - i]);
      if (number == nullptr || !IsInteger(number->literal_type().dtype) || (i == 1 && e->prim == &Prims().sub))
        continue;
      std::optional<Index> of = IndexOf(b, e->operands[i], depth - 1);
      const auto n = static_cast<int64_t>(number->literal().Get(0).real());
      // Far from where the sum would wrap.
      if (!of || std::abs(n) > std::numeric_limits<int32_t>::max() / 4 || ByteWidth(b.DTypeOf(a)) < 4) continue;
      of->more += e->prim == &Prims().sub ? -n : n;
      return of;
    }
    return std::nullopt;
  }
  const std::optional<Ints> view = ViewDims(b, *e, b.TypeOf(a).dims);
  const std::optional<Index> inner = view ? IndexOf(b, e->operands[0], depth - 1) : std::nullopt;
  if (!inner) return std::nullopt;
  const auto at = std::find(view->begin(), view->end(), inner->dim);
  if (at == view->end()) return std::nullopt;
  return Index{static_cast<int>(at - view->begin()), inner->more};
}

// Where a predicate holds: for row - column from `least` to `most`, of the last two dimensions.
struct Band {
  int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
};
std::optional<Band> BandOf(const Builder& b, const Atom& predicate, int depth = kDepth) {
  const Eqn* e = b.Definition(predicate);
  const int rank = b.TypeOf(predicate).rank();
  if (e == nullptr || depth == 0 || rank < 2 || e->operands.empty()) return std::nullopt;
  const Sought& p = Prims();
  if (const std::optional<Ints> view = ViewDims(b, *e, b.TypeOf(predicate).dims)) {
    const int inner = b.TypeOf(e->operands[0]).rank();
    if (inner < 2 || (*view)[static_cast<size_t>(rank - 2)] != inner - 2 ||
        (*view)[static_cast<size_t>(rank - 1)] != inner - 1)
      return std::nullopt;
    return BandOf(b, e->operands[0], depth - 1);
  }
  const bool at_least = e->prim == &p.ge || e->prim == &p.gt, at_most = e->prim == &p.le || e->prim == &p.lt;
  if (!at_least && !at_most && e->prim != &p.eq) return std::nullopt;
  const std::optional<Index> x = IndexOf(b, e->operands[0]), y = IndexOf(b, e->operands[1]);
  if (!x || !y || std::min(x->dim, y->dim) != rank - 2 || std::max(x->dim, y->dim) != rank - 1) return std::nullopt;
  // x.index - y.index  OP  y.more - x.more
  int64_t number = y->more - x->more;
  if (e->prim == &p.gt) ++number;
  if (e->prim == &p.lt) --number;
  Band band;
  if (!at_most) band.least = number;
  if (!at_least) band.most = number;
  if (x->dim == rank - 2) return band;
  Band turned;  // column - row
  if (!at_most) turned.most = -number;
  if (!at_least) turned.least = -number;
  return turned;
}

bool IsZero(const Builder& b, const Atom& a) {
  const Atom* number = Splat(b, a);
  return number != nullptr && number->IsSplat(0);
}

Triangle OfBand(const Band& band) { return {band.least >= 0, band.most <= 0}; }
Triangle Both(const Triangle& x, const Triangle& y) {
  return {x.zero_above || y.zero_above, x.zero_below || y.zero_below};
}

Triangle Zeros(const Builder& b, const Atom& a, int depth) {
  const Type& type = b.TypeOf(a);
  const Eqn* e = b.Definition(a);
  if (IsZero(b, a)) return {true, true};
  if (e == nullptr || depth == 0 || type.rank() < 2 || e->operands.empty()) return {};
  const Sought& p = Prims();
  const Atoms& x = e->operands;
  const auto of = [&](size_t i) {
    if (IsZero(b, x[i])) return Triangle{true, true};
    return b.TypeOf(x[i]).dims == type.dims ? Zeros(b, x[i], depth - 1) : Triangle{};
  };
  if (e->prim == &p.select) {
    // Where the predicate never holds, it is the last operand alone.
    const Triangle never = OfBand(BandOf(b, x[0]).value_or(Band{})), first = of(1), second = of(2);
    return {(never.zero_above || first.zero_above) && second.zero_above,
            (never.zero_below || first.zero_below) && second.zero_below};
  }
  if (e->prim == &p.convert) return b.DTypeOf(x[0]) == DType::kBool ? OfBand(BandOf(b, x[0]).value_or(Band{})) : of(0);
  if (e->prim == &p.mul) return Both(of(0), of(1));
  if (e->prim == &p.div) {
    const Atom* number = Splat(b, x[1]);
    return number != nullptr && !number->IsSplat(0) ? of(0) : Triangle{};
  }
  if (e->prim == &p.add || e->prim == &p.sub) {
    const Triangle first = of(0), second = of(1);
    return {first.zero_above && second.zero_above, first.zero_below && second.zero_below};
  }
  static const PrimSet kKeepZero{"neg", "conj", "real", "stop_gradient"};
  if (kKeepZero.Has(*e->prim)) return of(0);
  if (e->prim == &p.cholesky) return {true, false};
  const std::optional<Ints> view = ViewDims(b, *e, type.dims);
  const int64_t inner = b.TypeOf(x[0]).rank(), rank = type.rank();
  if (!view || inner < 2) return {};
  const int64_t row = (*view)[static_cast<size_t>(rank - 2)], column = (*view)[static_cast<size_t>(rank - 1)];
  const Triangle found = Zeros(b, x[0], depth - 1);
  if (row == inner - 2 && column == inner - 1) return found;
  if (row == inner - 1 && column == inner - 2) return {found.zero_below, found.zero_above};
  return {};
}

// `letters` as those of what `a` is a transpose of.
Atom Untransposed(const Builder& b, Atom a, std::string* letters) {
  for (const Eqn* e = b.Definition(a); e != nullptr && e->prim == &Prims().transpose; e = b.Definition(a)) {
    const Ints& perm = e->attrs.Get<Ints>("perm");
    std::string before = *letters;
    for (size_t d = 0; d < perm.size(); ++d) before[static_cast<size_t>(perm[d])] = (*letters)[d];
    *letters = before;
    a = e->operands[0];
  }
  return a;
}

bool IsGram(const Builder& b, const Eqn& e) {
  if (e.prim != &Prims().contract || e.attrs.entries().size() != 1) return false;
  ContractSpec spec = ContractSpec::Parse(e.attrs.Get<std::string>("spec"));
  if (spec.out.size() < 2) return false;
  const Atom x = Untransposed(b, e.operands[0], &spec.lhs), y = Untransposed(b, e.operands[1], &spec.rhs);
  if (!x.is_var() || !(x == y)) return false;
  // The same with rows and columns of the result exchanged.
  std::string turned = spec.rhs;
  for (char& c : turned) {
    if (c == spec.out[spec.out.size() - 2])
      c = spec.out.back();
    else if (c == spec.out.back())
      c = spec.out[spec.out.size() - 2];
  }
  return turned == spec.lhs;
}

bool IsSum(const Builder& b, const Atom& a, int depth, bool* has_gram) {
  const Type& type = b.TypeOf(a);
  if (const std::optional<Triangle> t = TriangleOf(b, a); t && t->zero_above && t->zero_below) return true;
  const Eqn* e = b.Definition(a);
  if (e == nullptr || depth == 0) return false;
  if (IsGram(b, *e)) return *has_gram = true;
  const Sought& p = Prims();
  const Atoms& x = e->operands;
  if (e->prim == &p.add) {
    return b.TypeOf(x[0]).dims == type.dims && b.TypeOf(x[1]).dims == type.dims &&
           IsSum(b, x[0], depth - 1, has_gram) && IsSum(b, x[1], depth - 1, has_gram);
  }
  const auto is_number = [&](const Atom& of) { return Splat(b, of) != nullptr || b.TypeOf(of).rank() == 0; };
  if (e->prim == &p.mul) {
    return (is_number(x[1]) && IsSum(b, x[0], depth - 1, has_gram)) ||
           (is_number(x[0]) && IsSum(b, x[1], depth - 1, has_gram));
  }
  if (e->prim == &p.div) return is_number(x[1]) && IsSum(b, x[0], depth - 1, has_gram);
  static const PrimSet kKeep{"stop_gradient"};
  return kKeep.Has(*e->prim) && IsSum(b, x[0], depth - 1, has_gram);
}

bool IsSquare(const Type& type) {
  return type.rank() >= 2 && type.dims[static_cast<size_t>(type.rank() - 2)] == type.dims.back();
}

}  // namespace

std::optional<Triangle> TriangleOf(const Builder& b, const Atom& a) {
  if (!IsSquare(b.TypeOf(a))) return std::nullopt;
  const Triangle found = Zeros(b, a, kDepth);
  return found.zero_above || found.zero_below ? std::optional(found) : std::nullopt;
}

bool IsGramAndDiagonal(const Builder& b, const Atom& a) {
  bool has_gram = false;
  return IsSquare(b.TypeOf(a)) && IsFloat(b.DTypeOf(a)) && IsSum(b, a, kDepth, &has_gram) && has_gram;
}

namespace {

// The elements of an array that is the same along rows, columns or both, made by `e` of its operand: `view` says which
// of the operand's dimensions each dimension of the result is.
Atom DiagonalOfRepeated(Builder& b, const Eqn& e, const Ints& view, const Dims& diagonals) {
  const size_t rank = view.size();
  Ints of(view.begin(), view.end() - 1);  // by dimension of the diagonals
  if (of.back() < 0) of.back() = view[rank - 1];
  const Dims from = b.TypeOf(e.operands[0]).dims;
  Dims kept;
  Ints at;
  for (size_t d = 0; d < of.size(); ++d) {
    if (of[d] < 0) continue;
    kept.push_back(from[static_cast<size_t>(of[d])]);
    at.push_back(static_cast<int64_t>(d));
  }
  return Broadcast(b, Reshape(b, e.operands[0], kept), diagonals, at);
}

Atom Diagonal(Builder& b, const Atom& a, int depth) {
  const Type type = b.TypeOf(a);
  const Dims diagonals(type.dims.begin(), type.dims.end() - 1);
  if (const Atom* number = Splat(b, a)) return Broadcast(b, Atom(*number), diagonals, {});
  const Eqn* found = b.Definition(a);
  const Sought& p = Prims();
  if (found != nullptr && depth > 0 && found->num_results == 1) {
    const Eqn e = *found;  // emitting may move it
    const int64_t rank = type.rank();
    if (const std::optional<Band> band = BandOf(b, a))
      return Broadcast(b, Atom::Scalar(DType::kBool, band->least <= 0 && band->most >= 0), diagonals, {});
    if (e.prim == &p.iota) return Iota(b, diagonals, std::min(e.attrs.GetInt("dim"), rank - 2), type.dtype);
    if (e.prim->is_elementwise() && std::all_of(e.operands.begin(), e.operands.end(), [&](const Atom& x) {
          return b.TypeOf(x).rank() == 0 || b.TypeOf(x).dims == type.dims;
        })) {
      const auto of = [&](const Atom& x) { return b.TypeOf(x).rank() == 0 ? x : Diagonal(b, x, depth - 1); };
      if (const std::optional<Band> band = e.prim == &p.select ? BandOf(b, e.operands[0]) : std::nullopt) {
        const Atom made = of(e.operands[band->least <= 0 && band->most >= 0 ? 1 : 2]);
        return b.TypeOf(made).rank() == 0 ? Broadcast(b, made, diagonals, {}) : made;
      }
      Atoms x;
      for (const Atom& o : e.operands) x.push_back(of(o));
      return b.Emit1(*e.prim, x, e.attrs);
    }
    if (const std::optional<Ints> view = e.operands.empty() ? std::nullopt : ViewDims(b, e, type.dims)) {
      const int64_t row = (*view)[static_cast<size_t>(rank - 2)], column = (*view)[static_cast<size_t>(rank - 1)];
      if (e.prim != &p.transpose && (row < 0 || column < 0)) return DiagonalOfRepeated(b, e, *view, diagonals);
      Ints exchanged = Range(0, rank);
      std::swap(exchanged[static_cast<size_t>(rank - 2)], exchanged[static_cast<size_t>(rank - 1)]);
      if (e.prim == &p.transpose && *view == exchanged) return Diagonal(b, e.operands[0], depth - 1);
    }
  }
  // Of rows one after the other each (n + 1)th element.
  const int64_t n = type.dims.back().value("a diagonal");
  Dims flat(type.dims.begin(), type.dims.end() - 2);
  flat.push_back(n * n);
  const Ints limit = StaticSizes(flat, "a diagonal");
  Ints start(flat.size(), 0), strides(flat.size(), 1);
  strides.back() = n + 1;
  return Slice(b, Reshape(b, a, flat), start, limit, strides);
}

}  // namespace

Atom DiagonalOf(Builder& b, const Atom& a) { return Diagonal(b, a, kDepth); }

}  // namespace weft
