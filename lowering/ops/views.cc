// Views of arrays as index maps: the part of fusion that knows what broadcast, transpose ... mean.
#include "ir/prim.h"
#include "lowering/fusion/fusion.h"
#include "lowering/ops/op_rows.h"

namespace weft {
namespace {

// Pairs up the dimensions of a reshape whose operand dimensions are each whole or split. Returns, per operand
// dimension, the range of result dimensions it is made of; false when dimensions merge.
bool SplitOnly(const Dims& from, const Dims& to, std::vector<std::pair<int, int>>* parts) {
  size_t j = 0;
  for (const Dim& d : from) {
    const size_t begin = j;
    if (d == Dim(0)) return false;
    if (d == Dim(1)) {
      if (parts) parts->emplace_back(static_cast<int>(j), static_cast<int>(j));
      continue;
    }
    Dim product = 1;
    while (!(product == d)) {
      if (j == to.size() || to[j] == Dim(0)) return false;
      product = product * to[j++];
      if (!(product == d) && !Dim::ExactQuotient(d, product)) return false;
    }
    if (parts) parts->emplace_back(static_cast<int>(begin), static_cast<int>(j));
  }
  for (; j < to.size(); ++j) {
    if (!(to[j] == Dim(1))) return false;
  }
  return true;
}

}  // namespace

bool IsReduction(const Eqn& eqn) { return RowOf(*eqn.prim).as == OpRow::Kind::kReduction; }

bool IsArgReduction(const Eqn& eqn) { return RowOf(*eqn.prim).as == OpRow::Kind::kArgReduction; }

Ints ReducedDims(const Eqn& eqn) {
  return IsArgReduction(eqn) ? Ints{eqn.attrs.GetInt("dim")} : eqn.attrs.Get<Ints>("dims");
}

bool IsOrderedSum(const Eqn& eqn) {
  return RowOf(*eqn.prim).operands == OpRow::Operands::kProduct && eqn.attrs.Find("leaf") != nullptr;
}

bool IsView(const Fn& fn, const Eqn& eqn) {
  const OpRow& row = RowOf(*eqn.prim);
  if (row.as != OpRow::Kind::kView) return false;
  // What merges dimensions is no view, but an alias.
  return !row.same_bytes || SplitOnly(fn.TypeOf(eqn.operands[0]).dims, fn.TypeOf(eqn.result()).dims, nullptr);
}

std::vector<Affine> ViewIndex(const Fn& fn, const Eqn& eqn, const std::vector<Affine>& index) {
  const OpRow& row = RowOf(*eqn.prim);
  WEFT_CHECK(row.index != nullptr) << "ViewIndex: " << eqn.prim->name << " has no index map";
  return row.index(fn, eqn, index);
}

namespace views {

std::vector<Affine> Broadcast(const Fn& fn, const Eqn& e, const std::vector<Affine>& index) {
  const Dims from = fn.TypeOf(e.operands[0]).dims, to = fn.TypeOf(e.result()).dims;
  const Ints& dims = e.attrs.Get<Ints>("dims");
  std::vector<Affine> out(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    if (!(from[i] == Dim(1)) || to[dims[i]] == Dim(1)) out[i] = index[dims[i]];
  }
  return out;
}

std::vector<Affine> Transpose(const Fn&, const Eqn& e, const std::vector<Affine>& index) {
  const Ints& perm = e.attrs.Get<Ints>("perm");
  std::vector<Affine> out(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) out[perm[i]] = index[i];
  return out;
}

std::vector<Affine> Slice(const Fn&, const Eqn& e, const std::vector<Affine>& index) {
  const Ints &start = e.attrs.Get<Ints>("start"), &strides = e.attrs.Get<Ints>("strides");
  std::vector<Affine> out(index.size());
  for (size_t i = 0; i < index.size(); ++i) out[i] = index[i] * Dim(strides[i]) + Affine(Dim(start[i]));
  return out;
}

std::vector<Affine> Reverse(const Fn& fn, const Eqn& e, const std::vector<Affine>& index) {
  const Dims& from = fn.TypeOf(e.operands[0]).dims;
  std::vector<Affine> out = index;
  for (int64_t d : e.attrs.Get<Ints>("dims")) out[d] = index[d] * Dim(-1) + Affine(from[d] - Dim(1));
  return out;
}

std::vector<Affine> Reshape(const Fn& fn, const Eqn& e, const std::vector<Affine>& index) {
  const Dims from = fn.TypeOf(e.operands[0]).dims, to = fn.TypeOf(e.result()).dims;
  std::vector<std::pair<int, int>> parts;
  WEFT_CHECK(SplitOnly(from, to, &parts)) << "ViewIndex: reshape merges dimensions";
  std::vector<Affine> out(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    Dim stride = 1;
    for (int j = parts[i].second - 1; j >= parts[i].first; --j) {
      out[i] = out[i] + index[j] * stride;
      stride = stride * to[j];
    }
  }
  return out;
}

}  // namespace views

std::vector<Dim> Strides(const Dims& dims) {
  std::vector<Dim> strides(dims.size(), Dim(1));
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

std::vector<int> DefiningEqns(const Fn& fn) {
  std::vector<int> by(fn.num_vars(), -1);
  for (size_t i = 0; i < fn.eqns().size(); ++i) {
    for (uint32_t r = 0; r < fn.eqns()[i].num_results; ++r) by[fn.eqns()[i].first_result + r] = static_cast<int>(i);
  }
  return by;
}

bool FindStrided(const Fn& fn, const std::vector<int>& defining, const Atom& atom, StridedView* out) {
  if (!atom.is_var()) return false;
  const Dims dims = fn.TypeOf(atom).dims;
  std::vector<Affine> index;
  for (size_t i = 0; i < dims.size(); ++i)
    index.push_back(dims[i] == Dim(1) ? Affine() : Affine::Var(static_cast<int>(i)));
  Atom at = atom;
  for (;;) {
    const int e = defining[at.id()];
    if (e < 0) break;
    const Eqn& eqn = fn.eqns()[e];
    if (RowOf(*eqn.prim).index == nullptr || !IsView(fn, eqn)) break;
    if (!eqn.operands[0].is_var()) return false;
    index = ViewIndex(fn, eqn, index);
    at = eqn.operands[0];
  }
  const std::vector<Dim> strides = Strides(fn.TypeOf(at).dims);
  Affine offset;
  for (size_t i = 0; i < strides.size(); ++i) offset = offset + index[i] * strides[i];
  out->root = at.id();
  out->start = offset.constant();
  out->strides.clear();
  for (size_t i = 0; i < dims.size(); ++i) out->strides.push_back(offset.Coefficient(static_cast<int>(i)));
  return true;
}

bool FindRead(const Fn& fn, const std::vector<int>& defining, const Eqn& e, const Atom& operand, StridedView* out) {
  switch (RowOf(*e.prim).operands) {
    case OpRow::Operands::kProduct: return !IsOrderedSum(e) && FindStrided(fn, defining, operand, out);
    case OpRow::Operands::kMoved: {
      if (fn.TypeOf(operand).dtype != DType::kF32 || !FindStrided(fn, defining, operand, out)) return false;
      const Dims dims = fn.TypeOf(operand).dims;
      for (size_t d = 0; d < dims.size(); ++d) {
        if (!(dims[d] == Dim(1)) && !(out->strides[d].TryValue().value_or(1) > 0)) return false;
      }
      return true;
    }
    default: return false;
  }
}

}  // namespace weft
