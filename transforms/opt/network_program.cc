// The program of a product network, by the order that BestCost found.
#include <string>
#include <utility>

#include "ir/ops.h"
#include "ir/prims/indexing.h"
#include "transforms/opt/network.h"

namespace weft {

// `t` with its dimensions in the order of `to`, of which it has some.
Atom ProductNetwork::Aligned(const Term& t, const std::string& to) {
  Ints perm, dims;
  for (size_t i = 0; i < to.size(); ++i) {
    const size_t at = t.letters.find(to[i]);
    if (at == std::string::npos) continue;
    perm.push_back(static_cast<int64_t>(at));
    dims.push_back(static_cast<int64_t>(i));
  }
  return Broadcast(b_, Transpose(b_, t.atom, perm), DimsOf(to), dims);
}

ProductNetwork::Term ProductNetwork::SumAway(Term t, Set away) {
  Ints dims;
  std::string left;
  bool single = true;  // of one element each
  for (size_t i = 0; i < t.letters.size(); ++i) {
    if (away >> t.letters[i] & 1) {
      dims.push_back(static_cast<int64_t>(i));
      single &= dims_[static_cast<size_t>(t.letters[i])] == Dim(1);
    } else {
      left += t.letters[i];
    }
  }
  if (dims.empty()) return t;
  if (single) return {Reshape(b_, t.atom, DimsOf(left)), left, std::nullopt};
  return {ReduceSum(b_, t.atom, dims), left, std::nullopt};
}

// The index of one-hot rows, which is the same along the dimension that is counted, as gathers take it; and their
// letters.
std::pair<Atom, std::string> ProductNetwork::RowsOf(const Term& t) {
  const char dim = t.letters[static_cast<size_t>(t.sparse->dim)];
  Ints start, limit, strides;
  std::string rest;
  for (const char c : t.letters) {
    start.push_back(0);
    limit.push_back(c == dim ? 1 : dims_[static_cast<size_t>(c)].value());
    strides.push_back(1);
    if (c != dim) rest += c;
  }
  Dims shape = DimsOf(rest);
  shape.push_back(1);
  return {Reshape(b_, weft::Slice(b_, t.sparse->index, start, limit, strides), shape), rest};
}

// Sums of what one-hot rows put into the same place: the way back of Select.
ProductNetwork::Term ProductNetwork::Spread(const Term& t, const Term& y) {
  static const Prim& scatter_add = FindPrim("scatter_add");
  const char dim = t.letters[static_cast<size_t>(t.sparse->dim)];
  const auto [index, rows] = RowsOf(t);
  std::string made(1, dim);
  GatherDims g;
  g.slice_sizes.push_back(1);
  for (const char c : y.letters) {
    if (rows.find(c) != std::string::npos) continue;
    g.offset_dims.push_back(static_cast<int64_t>(rows.size() + made.size() - 1));
    g.slice_sizes.push_back(dims_[static_cast<size_t>(c)].value());
    made += c;
  }
  g.collapsed_dims = g.start_index_map = {0};
  g.mode = "zero";
  const Atom updates = Aligned({y.atom, y.letters, std::nullopt}, rows + made.substr(1));
  const Atom zeros = Zeros(b_, Type{b_.DTypeOf(y.atom), DimsOf(made), {}});
  return {b_.Emit1(scatter_add, {zeros, index, updates}, g.AsScatter().ToAttrs()), made, std::nullopt};
}

// The elements that one-hot rows pick, or sums from one end on.
ProductNetwork::Term ProductNetwork::Select(const Term& t, const Term& y) {
  static const Prim &gather = FindPrim("gather"), &cumsum = FindPrim("cumsum");
  const char dim = t.letters[static_cast<size_t>(t.sparse->dim)];
  if (t.sparse->kind == SparseArray::Kind::kLowerTriangle) {
    const char other = t.letters[static_cast<size_t>(t.sparse->other)];
    const bool up = y.letters.find(other) != std::string::npos;  // the sum over other <= dim
    const size_t at = y.letters.find(up ? other : dim);
    Term made{b_.Emit1(cumsum, {y.atom}, {{"dim", static_cast<int64_t>(at)}, {"reverse", !up}}), y.letters, {}};
    made.letters[at] = up ? dim : other;
    return made;
  }
  const auto [index, rest] = RowsOf(t);
  const auto at = static_cast<int64_t>(y.letters.find(dim));
  GatherDims g;
  std::string made;
  for (int64_t d = 0; d < static_cast<int64_t>(y.letters.size()); ++d) {
    const char c = y.letters[static_cast<size_t>(d)];
    g.slice_sizes.push_back(d == at ? 1 : dims_[static_cast<size_t>(c)].value());
    if (d == at) {
      made += rest;
    } else {
      g.offset_dims.push_back(static_cast<int64_t>(made.size()));
      made += c;
    }
  }
  g.collapsed_dims = g.start_index_map = {at};
  g.mode = "zero";
  return {b_.Emit1(gather, {y.atom, index}, g.ToAttrs()), made, std::nullopt};
}

ProductNetwork::Term ProductNetwork::Pair(Term x, Term y, Set keep) {
  if (Selects(x, SetOf(y.letters), keep)) return Select(x, SumAway(y, SetOf(y.letters) & ~SetOf(x.letters) & ~keep));
  if (Selects(y, SetOf(x.letters), keep)) return Select(y, SumAway(x, SetOf(x.letters) & ~SetOf(y.letters) & ~keep));
  if (Spreads(x, SetOf(y.letters), keep)) return Spread(x, SumAway(y, SetOf(y.letters) & ~SetOf(x.letters) & ~keep));
  if (Spreads(y, SetOf(x.letters), keep)) return Spread(y, SumAway(x, SetOf(x.letters) & ~SetOf(y.letters) & ~keep));
  x = SumAway(x, SetOf(x.letters) & ~SetOf(y.letters) & ~keep);
  y = SumAway(y, SetOf(y.letters) & ~SetOf(x.letters) & ~keep);
  const Set in_x = SetOf(x.letters), in_y = SetOf(y.letters), summed = in_x & in_y & ~keep;
  // In the order of the whole result, where it has them.
  std::string both, result;
  for (const char c : out_ + x.letters + y.letters) {
    if (((in_x | in_y) >> c & 1) == 0 || both.find(c) != std::string::npos) continue;
    both += c;
    if (keep >> c & 1) result += c;
  }
  if (summed == 0) return {Mul(b_, Aligned(x, both), Aligned(y, both)), both, std::nullopt};
  if (in_x == in_y && x.letters.size() > 1) {  // sums of rows, or of all: no matrix product
    const Term product{Mul(b_, x.atom, Aligned(y, x.letters)), x.letters, std::nullopt};
    return SumAway(product, summed);
  }
  std::string spec;
  const auto write = [&](const std::string& letters) {
    for (const char c : letters) spec += static_cast<char>(c < 26 ? 'a' + c : 'A' + (c - 26));
  };
  write(x.letters);
  spec += ',';
  write(y.letters);
  spec += "->";
  write(result);
  return {EmitProduct(b_, spec, x.atom, y.atom), result, std::nullopt};
}

ProductNetwork::Term ProductNetwork::EmitSubset(uint32_t subset) {
  if ((subset & (subset - 1)) == 0) return terms_[static_cast<size_t>(__builtin_ctz(subset))];
  uint32_t first = split_at_[subset], second = subset & ~first;
  if ((first & -first) > (second & -second)) std::swap(first, second);  // as they were written
  return Pair(EmitSubset(first), EmitSubset(second), kept_[subset]);
}

Atom ProductNetwork::Emit(const Type& type) {
  const uint32_t all = (uint32_t{1} << terms_.size()) - 1;
  Term value = EmitSubset(all);
  value = SumAway(value, SetOf(value.letters) & ~SetOf(out_));
  Atom made = value.atom;
  if (scale_ != 1) made = Mul(b_, made, Atom::Scalar(type.dtype, scale_));
  made = Aligned({made, value.letters, std::nullopt}, out_);
  return Reshape(b_, made, type.dims);
}

}  // namespace weft
