#include "lowering/fusion/kernel_build.h"

#include <algorithm>
#include <limits>
#include <set>

#include "ir/prim.h"
#include "ir/prims/reduction_order.h"
#include "lowering/ops/op_table.h"

namespace weft {
namespace {

using How = BlockPlan::How;
using Kind = KernelNode::Kind;

std::string TextOf(const std::vector<Affine>& index) {
  std::string text;
  for (const Affine& a : index) text += a.ToString() + ";";
  return text;
}

KernelNode OpNode(std::string op, DType dtype, std::vector<int> operands) {
  KernelNode n;
  n.kind = Kind::kOp;
  n.op = std::move(op);
  n.dtype = dtype;
  n.operands = std::move(operands);
  return n;
}

KernelNode LiteralNode(Tensor t) {
  KernelNode n;
  n.kind = Kind::kLiteral;
  n.dtype = t.dtype();
  n.literal = std::move(t);
  return n;
}

}  // namespace

int KernelBuilder::Node(KernelNode node) {
  out_.spec.nodes.push_back(std::move(node));
  return static_cast<int>(out_.spec.nodes.size()) - 1;
}

int KernelBuilder::Operand(uint32_t root) {
  for (size_t i = 0; i < out_.operands.size(); ++i) {
    const BuiltKernel::Operand& o = out_.operands[i];
    if (!o.is_literal && !o.is_target && !o.is_staged && o.root == root) return static_cast<int>(i);
  }
  out_.operands.push_back({false, root, {}, false, false});
  out_.spec.written.push_back(false);
  ++out_.spec.num_operands;
  return out_.spec.num_operands - 1;
}

Affine KernelBuilder::FlatOffset(const Dims& dims, const std::vector<Affine>& index) {
  const std::vector<Dim> strides = Strides(dims);
  Affine offset;
  for (size_t i = 0; i < dims.size(); ++i) offset = offset + index[i] * strides[i];
  return offset;
}

int KernelBuilder::Value(const Atom& a, const std::vector<Affine>& index) {
  if (a.is_literal()) {
    const Tensor& t = a.literal();
    if (t.rank() == 0) {
      std::string key =
          std::string(Name(t.dtype())) + std::string(static_cast<const char*>(t.raw()), static_cast<size_t>(t.bytes()));
      auto [it, inserted] = literals_.try_emplace(key, 0);
      if (inserted) it->second = Node(LiteralNode(t));
      return it->second;
    }
    int operand = -1;
    for (size_t i = 0; i < out_.operands.size(); ++i) {
      if (out_.operands[i].is_literal && out_.operands[i].literal.Is(a)) operand = static_cast<int>(i);
    }
    if (operand < 0) {
      out_.operands.push_back({true, 0, a, false, false});
      out_.spec.written.push_back(false);
      operand = out_.spec.num_operands++;
    }
    KernelNode n;
    n.kind = Kind::kLoad;
    n.dtype = t.dtype();
    n.access = {operand, t.dtype(), FlatOffset(t.type().dims, index), {}};
    return Node(std::move(n));
  }
  const BlockPlan::Value& v = plan_.values[a.id()];
  if (v.how == How::kMember && v.unit == unit_) return Member(v.eqn);
  const auto key = std::make_pair(a.id(), TextOf(index));
  if (auto it = memo_.find(key); it != memo_.end()) return it->second;
  int node = -1;
  if (v.how == How::kView) {
    node = ViewValue(v.eqn, index);
  } else if (v.how == How::kInline) {
    node = Elementwise(v.eqn, index);
  } else {
    const Type type = fn_.TypeOf(a);
    KernelNode n;
    n.kind = Kind::kLoad;
    n.dtype = type.dtype;
    n.access = {Operand(plan_.Root(a.id())), type.dtype, FlatOffset(type.dims, index), {}};
    node = Node(std::move(n));
  }
  memo_[key] = node;
  return node;
}

int KernelBuilder::Elementwise(int i, const std::vector<Affine>& index) {
  const Eqn& e = fn_.eqns()[i];
  const OpRow& row = RowOf(*e.prim);
  if (row.identity) return Value(e.operands[0], index);
  KernelNode n = OpNode(row.kernel_op, fn_.TypeOf(e.result()).dtype, {});
  n.loc = e.loc;
  for (const Atom& a : e.operands) n.operands.push_back(Value(a, index));
  if (row.number) n.integer = row.number(e.attrs);
  return Node(std::move(n));
}

int KernelBuilder::ViewValue(int i, const std::vector<Affine>& index) {
  const Eqn& e = fn_.eqns()[i];
  const OpRow& row = RowOf(*e.prim);
  return row.value ? (this->*row.value)(i, index) : Value(e.operands[0], row.index(fn_, e, index));
}

int KernelBuilder::IotaValue(int i, const std::vector<Affine>& index) {
  const Eqn& e = fn_.eqns()[i];
  KernelNode n;
  n.kind = Kind::kIndex;
  n.dtype = fn_.TypeOf(e.result()).dtype;
  n.index = index[e.attrs.GetInt("dim")];
  return Node(std::move(n));
}

int KernelBuilder::DimSizeValue(int i, const std::vector<Affine>&) {
  const Eqn& e = fn_.eqns()[i];
  KernelNode n;
  n.kind = Kind::kIndex;
  n.dtype = DType::kI32;
  n.index = Affine(fn_.TypeOf(e.operands[0]).dims[e.attrs.GetInt("dim")]);
  return Node(std::move(n));
}

int KernelBuilder::DynamicSliceValue(int i, const std::vector<Affine>& index) {
  const Eqn& e = fn_.eqns()[i];
  const Type x = fn_.TypeOf(e.operands[0]);
  const Ints& sizes = e.attrs.Get<Ints>("sizes");
  const std::vector<Dim> strides = Strides(x.dims);
  int load = Value(e.operands[0], index);
  KernelNode n = out_.spec.nodes[load];
  WEFT_CHECK(n.kind == Kind::kLoad) << "dynamic_slice of a value without a buffer";
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] < 0 || x.dims[d] == Dim(sizes[d])) continue;  // all of the dimension
    n.access.dynamic.push_back({Value(e.operands[1 + d], {}), strides[d], x.dims[d] - Dim(sizes[d])});
  }
  return Node(std::move(n));
}

int KernelBuilder::GatherValue(int i, const std::vector<Affine>& index) {
  const Eqn& e = fn_.eqns()[i];
  const Type x = fn_.TypeOf(e.operands[0]), indices = fn_.TypeOf(e.operands[1]);
  const Ints &offset_dims = e.attrs.Get<Ints>("offset_dims"), &collapsed = e.attrs.Get<Ints>("collapsed_dims");
  const Ints &operand_batch = e.attrs.Get<Ints>("operand_batch_dims"),
             &indices_batch = e.attrs.Get<Ints>("indices_batch_dims");
  const Ints &map = e.attrs.Get<Ints>("start_index_map"), &sizes = e.attrs.Get<Ints>("slice_sizes");
  const std::string& mode = e.attrs.Get<std::string>("mode");
  auto has = [](const Ints& list, int64_t v) { return std::find(list.begin(), list.end(), v) != list.end(); };
  std::vector<Affine> batch;  // index into `indices`, without its last dimension
  for (int d = 0; d < static_cast<int>(index.size()); ++d) {
    if (!has(offset_dims, d)) batch.push_back(index[d]);
  }
  std::vector<Affine> at(x.rank());
  size_t window = 0;
  for (int d = 0; d < x.rank(); ++d) {
    if (!has(collapsed, d) && !has(operand_batch, d)) at[d] = index[offset_dims[window++]];
  }
  for (size_t k = 0; k < operand_batch.size(); ++k) at[operand_batch[k]] = batch[indices_batch[k]];
  const std::vector<Dim> strides = Strides(x.dims);
  KernelNode n = out_.spec.nodes[Value(e.operands[0], at)];
  WEFT_CHECK(n.kind == Kind::kLoad) << "gather of a value without a buffer";
  int inside = -1;
  for (size_t k = 0; k < map.size(); ++k) {
    std::vector<Affine> where = batch;
    where.push_back(Affine(Dim(static_cast<int64_t>(k))));
    const int node = Value(e.operands[1], where);
    // A window of symbolic size spans the whole dimension (size -1).
    const Dim limit = sizes[map[k]] < 0 ? Dim(0) : x.dims[map[k]] - Dim(sizes[map[k]]);
    n.access.dynamic.push_back({node, strides[map[k]], limit});
    if (mode != "fill" && mode != "zero") continue;
    KernelNode top;
    top.kind = Kind::kIndex;
    top.dtype = DType::kI64;
    top.index = Affine(limit);
    // As 64-bit numbers: the limit may not fit the indices' type.
    const bool is_signed = IsSigned(indices.dtype);
    const DType wide = is_signed ? DType::kI64 : DType::kU64;
    top.dtype = wide;
    const int value = Node(OpNode("convert", wide, {node}));
    int ok = Node(OpNode("le", DType::kBool, {value, Node(top)}));
    if (is_signed)
      ok = Node(OpNode(
          "and", DType::kBool,
          {ok, Node(OpNode("ge", DType::kBool, {value, Node(LiteralNode(Tensor::Scalar<int64_t>(DType::kI64, 0)))}))}));
    inside = inside < 0 ? ok : Node(OpNode("and", DType::kBool, {inside, ok}));
  }
  const int value = Node(std::move(n));
  if (inside < 0) return value;
  const Tensor fill = mode == "fill" ? Tensor::OutOfBounds(x.dtype) : Tensor::Zeros(x.dtype, {});
  return Node(OpNode("select", x.dtype, {inside, value, Node(LiteralNode(fill))}));
}

// A reduction of pairs: the element and where along the dimension it is.
int KernelBuilder::ArgReduction(const Eqn& e, const std::vector<Affine>& index) {
  const DType dtype = fn_.TypeOf(e.operands[0]).dtype;
  const int64_t dim = e.attrs.GetInt("dim");
  const std::optional<int64_t> size = fn_.TypeOf(e.operands[0]).dims[dim].TryValue();
  KernelNode where;
  where.kind = Kind::kIndex;
  where.index = index[dim];
  if (where.index.terms().empty()) {  // one element
    where.dtype = fn_.TypeOf(e.result()).dtype;
    return Node(std::move(where));
  }
  where.dtype = size && *size <= std::numeric_limits<int32_t>::max() ? DType::kI32 : DType::kI64;
  int value = Value(e.operands[0], index);
  if (IsFloat8(dtype)) value = Node(OpNode("convert", ComputeType(dtype), {value}));
  // Halves that this kernel computes are rounded as in memory: which of them are equal depends on it.
  if (IsFloat(dtype) && ByteWidth(dtype) == 2 && out_.spec.nodes[value].kind != Kind::kLoad)
    value = Node(OpNode("bitcast", dtype, {Node(OpNode("bitcast", DType::kU16, {value}))}));
  KernelNode n;
  n.kind = Kind::kReduce;
  n.op = RowOf(*e.prim).kernel_op;
  n.dtype = fn_.TypeOf(e.result()).dtype;
  n.operands = {value, Node(std::move(where))};
  n.loc = e.loc;
  return Node(std::move(n));
}

// The value of equation i of the group at the loops' own position.
int KernelBuilder::Member(int i) {
  const Eqn& e = fn_.eqns()[i];
  const auto key = std::make_pair(e.first_result, std::string("member"));
  if (auto it = memo_.find(key); it != memo_.end()) return it->second;
  std::vector<Affine> index;
  for (int s : plan_.space[i]) index.push_back(s < 0 ? Affine() : Affine::Var(position_[s]));
  int node = -1;
  if (IsReduction(e)) {
    node = Value(e.operands[0], index);
    bool any = false;
    for (int64_t d : e.attrs.Get<Ints>("dims")) any = any || plan_.space[i][d] >= 0;
    if (any) {
      const DType dtype = fn_.TypeOf(e.result()).dtype;
      // In 8 bits a sum soon adds nothing any more.
      const DType in = IsFloat8(dtype) ? ComputeType(dtype) : dtype;
      if (in != dtype) node = Node(OpNode("convert", in, {node}));
      KernelNode n;
      n.kind = Kind::kReduce;
      n.op = RowOf(*e.prim).kernel_op;
      n.dtype = in;
      n.operands = {node};
      if (e.prim->in_order) n.integer = LanesOfReduction(fn_.TypeOf(e.operands[0]), e.attrs.Get<Ints>("dims"));
      n.loc = e.loc;
      node = Node(std::move(n));
      if (in != dtype) node = Node(OpNode("convert", dtype, {node}));
    }
  } else if (IsArgReduction(e)) {
    node = ArgReduction(e, index);
  } else if (e.prim->is_elementwise()) {
    node = Elementwise(i, index);
  } else if (RowOf(*e.prim).same_bytes) {
    // Only of literals here; everything else is an alias.
    node = Value(Atom(e.operands[0].literal().Reshaped(StaticSizes(fn_.TypeOf(e.result()).dims, "reshape"))), index);
  } else {
    node = ViewValue(i, index);
  }
  memo_[key] = node;
  return node;
}

BuiltKernel KernelBuilder::Group(int unit) {
  unit_ = unit;
  out_ = {};
  memo_.clear();
  literals_.clear();
  const BlockPlan::Unit& u = plan_.units[unit];
  position_.assign(u.dims.size(), -1);
  for (bool inner : {false, true}) {
    for (size_t k = 0; k < u.dims.size(); ++k) {
      if (u.inner[k] != inner) continue;
      position_[k] = static_cast<int>(out_.spec.sizes.size());
      out_.spec.sizes.push_back(u.dims[k]);
    }
    if (!inner) out_.spec.num_outer = static_cast<int>(out_.spec.sizes.size());
  }
  for (int i : u.members) {
    const uint32_t var = fn_.eqns()[i].first_result;
    const BlockPlan::Value& v = plan_.values[var];
    if (!v.stored) continue;
    const Type& type = fn_.TypeOf(Var{var});
    std::vector<Affine> index;
    for (int p : v.place) index.push_back(p < 0 ? Affine() : Affine::Var(position_[p]));
    const int node = Member(i);
    const int operand = Operand(var);
    out_.spec.written[operand] = true;
    out_.spec.stores.push_back({node, {operand, type.dtype, FlatOffset(type.dims, index), {}}});
  }
  out_.spec.DropDeadNodes();
  ChooseSpills();
  out_.spec.Collapse();
  return std::move(out_);
}

BuiltKernel KernelBuilder::Copy(const Atom& value, const Dims& space, Dim start, const std::vector<Dim>& strides,
                                const std::vector<DynamicStart>& dynamic, const std::vector<Dim>& from, bool staged) {
  unit_ = -1;
  out_ = {};
  memo_.clear();
  literals_.clear();
  std::vector<Affine> index;
  Affine offset(start);
  for (size_t d = 0; d < space.size(); ++d) {
    const Affine i = Affine::Var(static_cast<int>(d));
    index.push_back(from.empty() ? i : i + Affine(from[d]));
    offset = offset + i * strides[d];
  }
  out_.spec.sizes.assign(space.begin(), space.end());
  out_.spec.num_outer = static_cast<int>(space.size());
  const bool splat = fn_.TypeOf(value).rank() == 0;
  int node;
  if (staged) {
    KernelNode n;
    n.kind = Kind::kLoad;
    n.dtype = fn_.TypeOf(value).dtype;
    n.access = {out_.spec.num_operands++, n.dtype, FlatOffset(fn_.TypeOf(value).dims, index), {}};
    out_.operands.push_back({});
    out_.operands.back().is_staged = true;
    out_.spec.written.push_back(false);
    node = Node(std::move(n));
  } else {
    node = Value(value, splat ? std::vector<Affine>{} : index);
  }
  Access access{0, fn_.TypeOf(value).dtype, offset, {}};
  for (const DynamicStart& d : dynamic) access.dynamic.push_back({Value(d.start, {}), d.stride, d.limit});
  out_.operands.push_back({false, 0, {}, true, false});
  out_.spec.written.push_back(true);
  access.operand = out_.spec.num_operands++;
  out_.spec.stores.push_back({node, access});
  out_.spec.DropDeadNodes();
  out_.spec.Collapse();
  return std::move(out_);
}

// An expensive value needed in a later pass over the row is kept in an output that is written later anyway.
void KernelBuilder::ChooseSpills() {
  KernelSpec& spec = out_.spec;
  const std::vector<int> phase = spec.Phases();
  const std::vector<uint64_t> dependence = spec.Dependence();
  std::vector<bool> heavy(spec.nodes.size(), false);
  auto available = [&](int n) { return phase[n] + (spec.nodes[n].kind == Kind::kReduce ? 1 : 0); };
  std::vector<int> last_use(spec.nodes.size(), -1);
  for (size_t i = 0; i < spec.nodes.size(); ++i) {
    const KernelNode& n = spec.nodes[i];
    if (n.kind == Kind::kOp && n.Work() > 1) heavy[i] = true;
    if (n.kind == Kind::kLoad && !n.access.dynamic.empty()) heavy[i] = true;
    for (int o : n.operands) {
      if (spec.nodes[o].kind != Kind::kReduce && phase[o] == phase[i] && heavy[o]) heavy[i] = true;
      last_use[o] = std::max(last_use[o], phase[i]);
    }
  }
  for (const KernelStore& s : spec.stores) last_use[s.node] = std::max(last_use[s.node], available(s.node));
  // The last phase that reads a value, also through cheap values that are computed again where they are needed.
  std::vector<int> needed = last_use;
  for (size_t i = spec.nodes.size(); i-- > 0;) {
    const KernelNode& n = spec.nodes[i];
    if (n.kind == Kind::kReduce) continue;
    for (int o : n.operands) needed[o] = std::max(needed[o], needed[i]);
    for (const auto& d : n.access.dynamic) needed[d.node] = std::max(needed[d.node], needed[i]);
  }
  auto inner = [&](uint64_t mask) { return (mask >> spec.num_outer) != 0; };
  std::set<int> used;
  for (size_t i = 0; i < spec.nodes.size(); ++i) {
    const KernelNode& n = spec.nodes[i];
    if (!heavy[i] || n.kind != Kind::kOp || !inner(dependence[i]) || last_use[i] <= phase[i]) continue;
    // Its own output first.
    const KernelStore* keep = nullptr;
    for (const KernelStore& s : spec.stores) {
      if (s.node == static_cast<int>(i) && inner(s.access.offset.VarMask())) keep = &s;
    }
    if (keep == nullptr) {
      for (const KernelStore& s : spec.stores) {
        // The output's own value must not be there before the last reader of this one.
        if (s.access.dtype == n.dtype && inner(s.access.offset.VarMask()) && available(s.node) > phase[i] &&
            available(s.node) >= needed[i] && used.count(s.access.operand) == 0) {
          keep = &s;
        }
      }
    }
    if (keep == nullptr) continue;
    used.insert(keep->access.operand);
    KernelStore spill = *keep;
    spill.node = static_cast<int>(i);
    spec.spills.push_back(spill);
  }
}

}  // namespace weft
