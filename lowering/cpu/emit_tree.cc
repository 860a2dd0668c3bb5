// Sums in a fixed order: terms in leaves, one after the other and in double precision, leaves, rounded, in a binary
// tree. Every lane and every row is a sum of its own, so how many of them there are changes no bit.
#include "lowering/cpu/mlir/emit_kernel.h"
#include "lowering/cpu/mlir/kernel_emitter.h"

namespace weft {

// Rows behind the end are the last one again: computed twice, and stored twice alike.
void KernelEmitter::PlaceRows() {
  const Dim& size = spec_.sizes[plan_.row_dim];
  const std::optional<int64_t> known = size.TryValue();
  Value first = m_.IMul(dims_[plan_.row_dim], m_.I64(plan_.rows)), last = m_.ISub(Size(size), m_.I64(1));
  for (int r = 0; r < plan_.rows; ++r) {
    Value at = m_.IAdd(first, m_.I64(r));
    if (!known || *known % plan_.rows != 0) at = m_.Select(m_.Cmp(IPred::slt, at, last), at, last);
    row_places_.push_back(at);
  }
  SelectRow(0);
}

void KernelEmitter::SelectRow(int row) {
  row_ = row;
  if (plan_.row_dim >= 0) dims_[plan_.row_dim] = row_places_[row];
}

// Products of numbers of at most 32 bits are exact in double precision, so that rounding them first changes nothing.
bool KernelEmitter::IsNarrow(int node) const {
  const KernelNode& n = spec_.nodes[node];
  // The pattern that ordered_sum.cc makes.
  if (n.kind != KernelNode::Kind::kOp || n.op != "convert") return false;
  const DType from = spec_.nodes[n.operands[0]].dtype;
  return IsFloat(from) && ByteWidth(from) <= 4;
}

// `sum` and the next term of the current row.
Lanes KernelEmitter::AddTerm(const Lanes& sum) {
  const std::vector<int>& factors = spec_.nodes[tree_].operands;
  const DType wide = spec_.nodes[factors[0]].dtype;
  std::vector<Lanes> x;
  for (int f : factors) x.push_back(body_.Splat(Evaluate(f), plan_.lanes));
  if (x.size() == 1) return body_.Combine("sum", wide, sum, x[0]);
  const bool fused = target_.fma && IsNarrow(factors[0]) && IsNarrow(factors[1]);
  if (fused) return {m_.Fma(x[0].re, x[1].re, sum.re)};
  return body_.Combine("sum", wide, sum, body_.Combine("prod", wide, x[0], x[1]));
}

// One leaf of every row.
std::vector<Lanes> KernelEmitter::Leaf() {
  const KernelNode& node = spec_.nodes[tree_];
  const DType wide = spec_.nodes[node.operands[0]].dtype;
  const bool pair = IsComplex(wide);
  const auto pack = [&](const std::vector<Lanes>& sums) {
    std::vector<Value> values;
    for (const Lanes& v : sums) {
      values.push_back(v.re);
      if (pair) values.push_back(v.im);
    }
    return values;
  };
  const auto unpack = [&](mlir::ValueRange values) {
    std::vector<Lanes> sums;
    for (size_t i = 0; i < values.size(); i += pair ? 2 : 1)
      sums.push_back({values[i], pair ? values[i + 1] : Value()});
    return sums;
  };
  std::vector<Lanes> sums;
  for (int r = 0; r < plan_.rows; ++r) sums.push_back(body_.Neutral("sum", wide, plan_.lanes));
  std::vector<scf::ForOp> nest;
  for (int d = spec_.num_outer + 1; d < static_cast<int>(spec_.sizes.size()); ++d) {
    auto loop = m_.b.create<scf::ForOp>(m_.loc, m_.I64(0), Size(spec_.sizes[d]), m_.I64(1), pack(sums));
    dims_[d] = loop.getInductionVar();
    OpenLoop(loop, uint64_t{1} << d);
    nest.push_back(loop);
    sums = unpack(loop.getRegionIterArgs());
  }
  for (int r = 0; r < plan_.rows; ++r) {
    SelectRow(r);
    sums[r] = AddTerm(sums[r]);
  }
  for (size_t i = nest.size(); i-- > 0;) {
    m_.b.create<scf::YieldOp>(m_.loc, pack(sums));
    CloseLoop();
    sums = unpack(nest[i].getResults());
  }
  KernelNode round;
  round.op = "convert";
  round.dtype = node.dtype;
  for (Lanes& v : sums) v = body_.Op(round, {wide}, {v});
  return sums;
}

void KernelEmitter::TreeBody() {
  const KernelNode& node = spec_.nodes[tree_];
  const int d = spec_.num_outer;
  const int64_t leaves = spec_.sizes[d].value("the leaves of a sum");
  const bool pair = IsComplex(node.dtype);
  MType type = m_.Vector(plan_.lanes, body_.Register(node.dtype));
  const auto add = [&](const Lanes& x, const Lanes& y) { return body_.Combine("sum", node.dtype, x, y); };
  std::vector<Lanes> sums;
  if (leaves == 1) {
    sums = Leaf();
  } else {
    // A counter in binary: level l of `kept` has the sum of 2^l leaves where bit l of the number of leaves is set.
    int64_t levels = 1;
    while (leaves >> levels != 0) ++levels;
    const int64_t parts = plan_.rows * (pair ? 2 : 1);
    Value kept = Alloca(LLVM::LLVMArrayType::get(type, static_cast<unsigned>(levels * parts)));
    const auto place = [&](Value level, int64_t part) {
      return m_.Gep(type, kept, m_.IAdd(m_.IMul(level, m_.I64(parts)), m_.I64(part)));
    };
    const auto read = [&](Value level, int r) -> Lanes {
      if (!pair) return {m_.Load(type, place(level, r))};
      return {m_.Load(type, place(level, 2 * r)), m_.Load(type, place(level, 2 * r + 1))};
    };
    const auto write = [&](Value level, int r, const Lanes& v) {
      m_.Store(v.re, place(level, pair ? 2 * r : r));
      if (pair) m_.Store(v.im, place(level, 2 * r + 1));
    };
    auto loop = m_.b.create<scf::ForOp>(m_.loc, m_.I64(0), m_.I64(leaves), m_.I64(1));
    Value leaf = dims_[d] = loop.getInductionVar();
    OpenLoop(loop, uint64_t{1} << d);
    sums = Leaf();
    // Adding one: what is kept at the lowest levels that are set joins it.
    std::vector<Value> carried = {m_.I64(0)};
    for (const Lanes& v : sums) {
      carried.push_back(v.re);
      if (pair) carried.push_back(v.im);
    }
    const auto unpack = [&](mlir::ValueRange values) {
      std::vector<Lanes> out;
      for (size_t i = 1; i < values.size(); i += pair ? 2 : 1)
        out.push_back({values[i], pair ? values[i + 1] : Value()});
      return out;
    };
    const llvm::SmallVector<MType> types(mlir::ValueRange(carried).getTypes());
    auto carry = m_.b.create<scf::WhileOp>(m_.loc, types, carried);
    {
      mlir::OpBuilder::InsertionGuard guard(m_.b);
      const llvm::SmallVector<mlir::Location> locations(types.size(), m_.loc);
      mlir::Block* before = m_.b.createBlock(&carry.getBefore(), {}, types, locations);
      Value bit = m_.And(m_.Make<arith::ShRUIOp>(leaf, before->getArgument(0)), m_.I64(1));
      m_.b.create<scf::ConditionOp>(m_.loc, m_.Cmp(IPred::ne, bit, m_.I64(0)), before->getArguments());
      mlir::Block* after = m_.b.createBlock(&carry.getAfter(), {}, types, locations);
      Value level = after->getArgument(0);
      std::vector<Lanes> joined = unpack(after->getArguments());
      std::vector<Value> next = {m_.IAdd(level, m_.I64(1))};
      for (int r = 0; r < plan_.rows; ++r) {
        const Lanes v = add(read(level, r), joined[r]);
        next.push_back(v.re);
        if (pair) next.push_back(v.im);
      }
      m_.b.create<scf::YieldOp>(m_.loc, next);
    }
    sums = unpack(carry.getResults());
    for (int r = 0; r < plan_.rows; ++r) write(carry.getResult(0), r, sums[r]);
    CloseLoop();
    // What is left: the smallest first.
    int64_t level = 0;
    while ((leaves >> level & 1) == 0) ++level;
    for (int r = 0; r < plan_.rows; ++r) sums[r] = read(m_.I64(level), r);
    for (++level; leaves >> level != 0; ++level) {
      for (int r = 0; (leaves >> level & 1) != 0 && r < plan_.rows; ++r) sums[r] = add(read(m_.I64(level), r), sums[r]);
    }
  }
  std::vector<const KernelStore*> stores;
  for (const KernelStore& s : spec_.stores) stores.push_back(&s);
  for (int r = 0; r < plan_.rows; ++r) {
    SelectRow(r);
    MemoOf(tree_) = {sums[r], static_cast<int>(loops_.size())};
    StoreAll(stores);
  }
}

}  // namespace weft
