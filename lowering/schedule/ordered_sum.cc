// Contractions whose sum is taken in a fixed order (transforms/shard/deterministic.h), as kernels.
#include <algorithm>
#include <map>
#include <optional>

#include "ir/prims/contraction.h"
#include "lowering/schedule/block_lowering.h"

namespace weft {
namespace {

using Kind = KernelNode::Kind;

// The letters of a contraction in a fixed order, and their sizes.
struct Letters {
  ContractSpec spec;
  std::string along;   // the letter whose terms are cut into leaves; empty where nothing is summed
  std::string within;  // the other summed letters, alphabetically: the order is not that of an operand's dimensions
  std::map<char, Dim> sizes;
  int64_t leaf, leaves;

  Letters(const Fn& fn, const Eqn& e)
      : spec(ContractSpec::Parse(e.attrs.Get<std::string>("spec"))),
        along(e.attrs.Get<std::string>("along")),
        leaf(e.attrs.GetInt("leaf")) {
    const Dims x = fn.TypeOf(e.operands[0]).dims, y = fn.TypeOf(e.operands[1]).dims;
    for (size_t d = 0; d < x.size(); ++d) sizes.emplace(spec.lhs[d], x[d]);
    for (size_t d = 0; d < y.size(); ++d) sizes.emplace(spec.rhs[d], y[d]);
    for (char c : spec.lhs) {
      if (spec.out.find(c) == std::string::npos && c != along[0]) within += c;
    }
    std::sort(within.begin(), within.end());
    const int64_t terms = along.empty() ? 1 : sizes.at(along[0]).value("a sum in a fixed order");
    leaves = std::max<int64_t>(1, terms / leaf);
    leaf = std::min(leaf, terms);
  }
  const std::string& Of(int operand) const { return operand == 0 ? spec.lhs : spec.rhs; }
  Dims SizesOf(const std::string& letters) const {
    Dims dims;
    for (char c : letters) dims.push_back(sizes.at(c));
    return dims;
  }
  // How many elements, counting symbolic sizes as many.
  int64_t Elements(const std::string& letters) const {
    int64_t n = 1;
    for (char c : letters) n *= sizes.at(c).TryValue().value_or(256);
    return n;
  }
};

// Fewer results than this leave lanes, registers and threads without work; the leaves of each do not.
constexpr int64_t kFewResults = 64, kLongLeaf = 8;
// Lanes along which no operand is contiguous, and rows that read the same gathered lanes, from which on it pays to
// transpose the operand first.
constexpr int64_t kManyLanes = 8, kManyRows = 8;

// The operand to transpose, and its letters then.
struct Transposed {
  int operand = -1;
  std::string letters;
};
Transposed Transpose(const Fn& fn, const std::vector<int>& defining, const Eqn& e, const Letters& l) {
  int last = -1;
  for (size_t k = 0; k < l.spec.out.size(); ++k) {
    const char c = l.spec.out[k];
    if (l.Elements(std::string(1, c)) < kManyLanes) continue;
    last = static_cast<int>(k);
    for (int i : {0, 1}) {
      const size_t at = l.Of(i).find(c);
      if (at == std::string::npos) continue;
      StridedView view;
      if (!FindStrided(fn, defining, e.operands[i], &view)) view.strides = Strides(fn.TypeOf(e.operands[i]).dims);
      if (view.strides[at] == Dim(1)) return {};
    }
  }
  if (last < 0) return {};
  const char lanes = l.spec.out[last];
  const bool in_x = l.spec.lhs.find(lanes) != std::string::npos, in_y = l.spec.rhs.find(lanes) != std::string::npos;
  if (in_x && in_y) return {};
  Transposed t{in_x ? 0 : 1, ""};
  std::string rows;
  for (char c : l.spec.out) {
    if (l.Of(t.operand).find(c) == std::string::npos) rows += c;
  }
  if (l.Elements(rows) < kManyRows) return {};
  for (char c : l.Of(t.operand)) {
    if (c != lanes) t.letters += c;
  }
  t.letters += lanes;
  return t;
}

}  // namespace

// Loops: the letters of the result (after the leaf's number, where leaves are the result), then, reduced, the leaf's
// number, the terms of `along` in a leaf, and the other summed letters.
BuiltKernel KernelBuilder::OrderedSum(const Eqn& e, OrderedPart part, int staged, const std::string& staged_letters) {
  const Letters l(fn_, e);
  unit_ = -1;
  out_ = {};
  memo_.clear();
  literals_.clear();
  KernelSpec& spec = out_.spec;
  std::map<char, Affine> at;
  const auto loop = [&](const Dim& size) {
    spec.sizes.push_back(size);
    return Affine::Var(static_cast<int>(spec.sizes.size()) - 1);
  };
  const auto index = [&](const std::string& letters) {
    std::vector<Affine> out;
    for (char c : letters) out.push_back(at.at(c));
    return out;
  };
  const auto load_staged = [&](DType dtype, const Affine& offset) {
    KernelNode n;
    n.kind = Kind::kLoad;
    n.dtype = dtype;
    n.access = {spec.num_operands++, dtype, offset, {}};
    out_.operands.push_back({});
    out_.operands.back().is_staged = true;
    spec.written.push_back(false);
    return Node(std::move(n));
  };
  const DType dtype = fn_.TypeOf(e.result()).dtype;
  Affine leaf;
  if (part == OrderedPart::kLeaves) leaf = loop(Dim(l.leaves));
  for (char c : l.spec.out) at[c] = loop(l.sizes.at(c));
  spec.num_outer = static_cast<int>(spec.sizes.size());
  const Affine counted = loop(Dim(part == OrderedPart::kLeaves ? 1 : l.leaves));
  if (part != OrderedPart::kLeaves) leaf = counted;
  Affine result = FlatOffset(l.SizesOf(l.spec.out), index(l.spec.out));
  const Affine with_leaf = result + leaf * fn_.TypeOf(e.result()).size();
  std::vector<int> factors;
  if (part == OrderedPart::kTotal) {
    factors = {load_staged(dtype, with_leaf)};
  } else {
    if (!l.along.empty()) at[l.along[0]] = leaf * Dim(l.leaf) + loop(Dim(l.leaf));
    for (char c : l.within) at[c] = loop(l.sizes.at(c));
    for (int i : {0, 1}) {
      factors.push_back(i == staged ? load_staged(fn_.TypeOf(e.operands[i]).dtype,
                                                  FlatOffset(l.SizesOf(staged_letters), index(staged_letters)))
                                    : Value(e.operands[i], index(l.Of(i))));
    }
  }
  KernelNode sum;
  sum.kind = Kind::kReduce;
  sum.op = "tree";
  sum.dtype = dtype;
  sum.loc = e.loc;
  const DType wide = IsComplex(dtype) ? DType::kC128 : DType::kF64;
  for (int f : factors) {
    KernelNode n;
    n.op = "convert";
    n.dtype = wide;
    n.operands = {f};
    sum.operands.push_back(spec.nodes[f].dtype == wide ? f : Node(std::move(n)));
  }
  const int node = Node(std::move(sum));
  out_.operands.push_back({false, 0, {}, true, false});
  spec.written.push_back(true);
  spec.stores.push_back({node, {spec.num_operands++, dtype, part == OrderedPart::kLeaves ? with_leaf : result, {}}});
  spec.DropDeadNodes();
  spec.Collapse();
  return std::move(out_);
}

void BlockLowering::EmitOrderedSum(Steps& steps, const Eqn& e) {
  const Letters l(fn_, e);
  const Type result = fn_.TypeOf(e.result());
  const int to = NewResult(e.first_result);
  KernelBuilder builder(fn_, plan_);
  const std::optional<int64_t> results = result.size().TryValue();
  if (results && *results < kFewResults && l.leaves > 1 && l.leaf * l.Elements(l.within) >= kLongLeaf) {
    Type leaves = result;
    leaves.dims.insert(leaves.dims.begin(), Dim(l.leaves));
    const int partial = p_.NewTemporary(leaves);
    EmitWrite(steps, builder.OrderedSum(e, OrderedPart::kLeaves), partial);
    return EmitWrite(steps, builder.OrderedSum(e, OrderedPart::kTotal), to, partial);
  }
  const Transposed t = Transpose(fn_, defining_, e, l);
  int staged = -1;
  if (t.operand >= 0) {
    const Atom& x = e.operands[t.operand];
    const Dims dims = l.SizesOf(t.letters);
    staged = p_.NewTemporary(Type{fn_.TypeOf(x).dtype, dims, {}});
    const std::vector<Dim> strides = Strides(dims);
    std::vector<Dim> places;
    for (char c : l.Of(t.operand)) places.push_back(strides[t.letters.find(c)]);
    EmitWrite(steps, builder.Copy(x, fn_.TypeOf(x).dims, 0, places), staged);
  }
  EmitWrite(steps, builder.OrderedSum(e, OrderedPart::kWhole, t.operand, t.letters), to, staged);
}

}  // namespace weft
