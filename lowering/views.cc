// Views of arrays as index maps: the part of fusion that knows what broadcast, transpose ... mean.
#include <set>

#include "ir/prim.h"
#include "lowering/fusion.h"

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

bool IsReduction(const Eqn& eqn) {
  return eqn.prim->family == Family::kReduction && eqn.prim->name.rfind("reduce_", 0) == 0;
}

bool IsArgReduction(const Eqn& eqn) { return eqn.prim->name == "argmax" || eqn.prim->name == "argmin"; }

Ints ReducedDims(const Eqn& eqn) {
  return IsArgReduction(eqn) ? Ints{eqn.attrs.GetInt("dim")} : eqn.attrs.Get<Ints>("dims");
}

bool IsOrderedSum(const Eqn& eqn) { return eqn.prim->name == "contract" && eqn.attrs.Find("leaf") != nullptr; }

bool IsView(const Fn& fn, const Eqn& eqn) {
  static const std::set<std::string> kViews = {"broadcast", "transpose", "slice",         "reverse",
                                               "iota",      "dim_size",  "dynamic_slice", "gather"};
  const std::string& name = eqn.prim->name;
  if (kViews.count(name)) return true;
  if (name == "reshape") return SplitOnly(fn.TypeOf(eqn.operands[0]).dims, fn.TypeOf(eqn.result()).dims, nullptr);
  return false;
}

std::vector<Affine> ViewIndex(const Fn& fn, const Eqn& eqn, const std::vector<Affine>& index) {
  const std::string& name = eqn.prim->name;
  const Dims from = fn.TypeOf(eqn.operands[0]).dims, to = fn.TypeOf(eqn.result()).dims;
  std::vector<Affine> out(from.size());
  if (name == "broadcast") {
    const Ints& dims = eqn.attrs.Get<Ints>("dims");
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] == Dim(1) && !(to[dims[i]] == Dim(1)))
        out[i] = Affine();
      else
        out[i] = index[dims[i]];
    }
  } else if (name == "transpose") {
    const Ints& perm = eqn.attrs.Get<Ints>("perm");
    for (size_t i = 0; i < perm.size(); ++i) out[perm[i]] = index[i];
  } else if (name == "slice") {
    const Ints &start = eqn.attrs.Get<Ints>("start"), &strides = eqn.attrs.Get<Ints>("strides");
    for (size_t i = 0; i < from.size(); ++i) out[i] = index[i] * Dim(strides[i]) + Affine(Dim(start[i]));
  } else if (name == "reverse") {
    out = index;
    for (int64_t d : eqn.attrs.Get<Ints>("dims")) out[d] = index[d] * Dim(-1) + Affine(from[d] - Dim(1));
  } else if (name == "reshape") {
    std::vector<std::pair<int, int>> parts;
    WEFT_CHECK(SplitOnly(from, to, &parts)) << "ViewIndex: reshape merges dimensions";
    for (size_t i = 0; i < from.size(); ++i) {
      Dim stride = 1;
      for (int j = parts[i].second - 1; j >= parts[i].first; --j) {
        out[i] = out[i] + index[j] * stride;
        stride = stride * to[j];
      }
    }
  } else {
    WEFT_CHECK(false) << "ViewIndex: " << name << " has no index map";
  }
  return out;
}

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
  static const std::set<std::string> kStrided = {"broadcast", "transpose", "slice", "reverse", "reshape"};
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
    if (!kStrided.count(eqn.prim->name) || !IsView(fn, eqn)) break;
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

}  // namespace weft
