#include "lowering/cpu/mlir/emit_kernel.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ir/error.h"
#include "lowering/abi/steps.h"
#include "lowering/cpu/mlir/kernel_emitter.h"

namespace weft {

Lanes KernelEmitter::Evaluate(int node) {
  Memo& memo = MemoOf(node);
  if (memo.level >= 0) return memo.value;
  int level = LevelOf(dependence_[node]);
  // Not further out than what it reads: a reduction of everything depends on no dimension, but lies inside the unit
  // loop.
  const KernelStore* spill = SpillOf(node);
  if (!(spill != nullptr && current_phase_ > phases_[node])) {
    auto reads = [&](int o) {
      Evaluate(o);
      level = std::max(level, MemoOf(o).level);
    };
    if (spec_.nodes[node].kind == KernelNode::Kind::kOp) {
      for (int o : spec_.nodes[node].operands) reads(o);
    } else if (spec_.nodes[node].kind == KernelNode::Kind::kLoad) {
      for (const Access::Dynamic& d : spec_.nodes[node].access.dynamic) reads(d.node);
    }
  }
  if (const int other = Beside(node); other >= 0) {
    const KernelNode& n = spec_.nodes[node];
    const Lanes x = Evaluate(n.operands[0]);
    const auto [value, beside] = AtLevel(level, [&] { return body_.Both(n, x); });
    MemoOf(node) = {value, level};
    MemoOf(other) = {beside, level};
    return value;
  }
  Lanes value = AtLevel(level, [&] { return EvaluateHere(node); });
  MemoOf(node) = {value, level};
  return value;
}

// A node that is computed along with this one (the cosine of what this is the sine of); -1: none.
int KernelEmitter::Beside(int node) {
  const KernelNode& n = spec_.nodes[node];
  if (n.kind != KernelNode::Kind::kOp || SpillOf(node) != nullptr) return -1;
  const char* const name = body_.Beside(n, spec_.nodes[n.operands[0]].dtype);
  if (name == nullptr) return -1;
  for (size_t i = 0; i < spec_.nodes.size(); ++i) {
    const KernelNode& other = spec_.nodes[i];
    const int j = static_cast<int>(i);
    if (other.kind == KernelNode::Kind::kOp && other.op == name && other.operands == n.operands &&
        phases_[j] == phases_[node] && SpillOf(j) == nullptr && MemoOf(j).level < 0)
      return j;
  }
  return -1;
}

Lanes KernelEmitter::EvaluateHere(int node) {
  const KernelNode& n = spec_.nodes[node];
  if (const KernelStore* spill = SpillOf(node); spill != nullptr && current_phase_ > phases_[node])
    return LoadHere(spill->access);
  switch (n.kind) {
    case KernelNode::Kind::kLoad:
      if (auto square = squares_.find(node); square != squares_.end()) {
        MType element = body_.Memory(n.dtype);
        Value row = m_.IMul(m_.ISub(dims_[plan_.tile_dim], tile_base_), m_.I64(plan_.lanes));
        return body_.FromMemory(n.dtype,
                                m_.Load(m_.Vector(plan_.lanes, element), m_.Gep(element, square->second, row),
                                        static_cast<unsigned>(plan_.lanes) * element.getIntOrFloatBitWidth() / 8));
      }
      return LoadHere(n.access);
    case KernelNode::Kind::kLiteral: return body_.Literal(n.literal);
    case KernelNode::Kind::kIndex: {
      Value base = ScalarOffset(n.index, true);
      KernelNode convert;
      convert.op = "convert";
      convert.dtype = n.dtype;
      const Dim c = plan_.vector_dim >= 0 ? n.index.Coefficient(plan_.vector_dim) : Dim(0);
      if (plan_.lanes == 0 || c == Dim(0)) return body_.Op(convert, {DType::kI64}, {{base}});
      // In 32 bits where the result has no more: vectors of 64-bit integers are slow.
      const bool narrow = ByteWidth(n.dtype) <= 4 && IsInteger(n.dtype);
      MType t = narrow ? m_.i32() : m_.i64();
      if (narrow) base = m_.TruncI(base, t);
      Value step = Size(c);
      if (narrow) step = m_.TruncI(step, t);
      Value lane = m_.IMul(m_.Iota(plan_.lanes, t), m_.Splat(step, plan_.lanes));
      return body_.Op(convert, {narrow ? DType::kI32 : DType::kI64}, {{m_.IAdd(m_.Splat(base, plan_.lanes), lane)}});
    }
    case KernelNode::Kind::kReduce:
      WEFT_CHECK(false) << "kernel: reduction %" << node << " is used before it is computed";
      return {};
    case KernelNode::Kind::kOp: break;
  }
  std::vector<Lanes> x;
  std::vector<DType> dtypes;
  for (int o : n.operands) {
    x.push_back(Evaluate(o));
    dtypes.push_back(spec_.nodes[o].dtype);
  }
  return body_.Op(n, dtypes, x);
}

void KernelEmitter::OpenLoop(scf::ForOp loop, uint64_t dims) {
  loops_.push_back({dims, loop.getOperation()});
  m_.b.setInsertionPointToStart(loop.getBody());
}

void KernelEmitter::CloseLoop() {
  const int level = static_cast<int>(loops_.size());
  for (Memo& memo : memo_) {
    if (memo.level >= level) memo.level = -1;
  }
  m_.b.setInsertionPointAfter(loops_.back().op);
  loops_.pop_back();
}

// Folds the lanes of an accumulator by halves.
Lanes KernelEmitter::Horizontal(const KernelNode& n, Lanes v) {
  for (int64_t lanes = m_.Lanes(v.re); lanes > 1; lanes /= 2) {
    std::vector<int32_t> low, high;
    for (int32_t i = 0; i < lanes / 2; ++i) low.push_back(i), high.push_back(i + static_cast<int32_t>(lanes / 2));
    auto half = [&](const std::vector<int32_t>& which) {
      return Lanes{m_.Shuffle(v.re, v.re, which), v.im ? m_.Shuffle(v.im, v.im, which) : Value()};
    };
    v = body_.Combine(n.op, n.dtype, half(low), half(high));
  }
  return {m_.Extract(v.re, 0), v.im ? m_.Extract(v.im, 0) : Value()};
}

// Fetches the place of the current vector in the next row, while a row is worked on that was read before: processors
// fetch what follows in memory, but begin anew at each page, which a row often is. (Softmax of 1024 x 1024: 15 %.)
void KernelEmitter::TouchNextRow() {
  constexpr int64_t kLongestRow = 64 << 10;  // bytes: this row and the next stay in the second-level cache
  if (!plan_.vector_inner || plan_.lanes == 0 || plan_.unit_dims.empty()) return;
  const int row = plan_.unit_dims.back();
  int64_t points = 1;
  for (size_t d = static_cast<size_t>(spec_.num_outer); d < spec_.sizes.size(); ++d) {
    const std::optional<int64_t> size = spec_.sizes[d].TryValue();
    if (!size || *size > kLongestRow) return;
    points *= *size;
    if (points > kLongestRow) return;
  }
  std::set<int> touched;
  const auto touch = [&](const Access& a, bool write) {
    const Dim step = a.offset.Coefficient(row);
    if (!a.dynamic.empty() || !(a.offset.Coefficient(plan_.vector_dim) == Dim(1)) || step == Dim(0)) return;
    if (points * ByteWidth(a.dtype) > kLongestRow || !touched.insert(a.operand).second) return;
    MType element = body_.Memory(a.dtype);
    Value at = m_.IAdd(ScalarOffset(a.offset, true), Size(step));
    if (IsComplex(a.dtype)) at = m_.Shl(at, 1);
    Value pointer = m_.Gep(element, Pointer(a.operand), at);
    for (int64_t b = 0; b < int64_t{plan_.lanes} * ByteWidth(a.dtype); b += 64)
      m_.b.create<LLVM::Prefetch>(m_.loc, m_.GepAt(m_.i8(), pointer, b), write ? 1 : 0, /*hint=*/3, /*cache=*/1);
  };
  for (const KernelStore& s : spec_.stores) {
    if (!s.streamed) touch(s.access, true);
  }
  for (const KernelNode& n : spec_.nodes) {
    if (n.kind == KernelNode::Kind::kLoad) touch(n.access, false);
  }
}

void KernelEmitter::RunPhase(const Pass& pass, const Stretch* stretch) {
  const auto& [phase, reductions, stores] = pass;
  current_phase_ = phase;
  const int rank = static_cast<int>(spec_.sizes.size());
  // Loops over the reduced dimensions, the vector one innermost. Accumulators travel as loop values.
  std::vector<int> order;
  for (int d = spec_.num_outer; d < rank; ++d) {
    if (d != plan_.vector_dim || plan_.lanes == 0) order.push_back(d);
  }
  if (plan_.vector_inner && plan_.lanes > 0) order.push_back(plan_.vector_dim);
  std::vector<Value> accumulators;
  for (size_t i = 0; i < reductions.size(); ++i) {
    const KernelNode& n = spec_.nodes[reductions[i]];
    const TakesIn how = HowToTakeIn(reductions[i]);
    if (how == TakesIn::kMemory) {
      ClearKept(reductions[i]);
      continue;
    }
    const Lanes sum = stretch != nullptr && !stretch->sums.empty()
                          ? stretch->sums[i]
                          : body_.Neutral(n.op, n.dtype, how == TakesIn::kOneByOne ? 0 : plan_.lanes);
    accumulators.push_back(sum.re);
    if (sum.im) accumulators.push_back(sum.im);
  }
  auto unpack = [&, &reductions = reductions](mlir::ValueRange values) {
    std::vector<Lanes> out;
    size_t next = 0;
    for (int r : reductions) {
      Lanes v;
      if (HowToTakeIn(r) != TakesIn::kMemory) {
        v.re = values[next++];
        if (IsComplex(spec_.nodes[r].dtype)) v.im = values[next++];
      }
      out.push_back(v);
    }
    return out;
  };
  std::vector<scf::ForOp> nest;
  mlir::ValueRange carried(accumulators);
  for (int d : order) {
    const bool vector = d == plan_.vector_dim && plan_.lanes > 0;
    const bool part = stretch != nullptr && d == stretch->dim;
    const bool one = part && !stretch->end;
    auto loop = m_.b.create<scf::ForOp>(m_.loc, part && !one ? stretch->begin : m_.I64(0),
                                        one    ? m_.I64(1)
                                        : part ? stretch->end
                                               : Size(spec_.sizes[d]),
                                        one    ? m_.I64(1)
                                        : part ? stretch->step
                                               : m_.I64(vector ? plan_.lanes : 1),
                                        carried);
    dims_[d] = one ? stretch->begin : loop.getInductionVar();
    OpenLoop(loop, uint64_t{1} << d);
    nest.push_back(loop);
    carried = loop.getRegionIterArgs();
    if (vector && plan_.may_have_tail) {
      remaining_ = m_.ISub(Size(spec_.sizes[d]), dims_[d]);
      full_ = m_.Cmp(IPred::sge, remaining_, m_.I64(plan_.lanes));
      mask_ =
          m_.Cmp(IPred::slt, m_.Iota(plan_.lanes, m_.i32()), m_.Splat(m_.TruncI(remaining_, m_.i32()), plan_.lanes));
    }
  }
  const std::vector<Lanes> before = unpack(carried);
  std::vector<int> roots;
  for (int r : reductions) roots.push_back(spec_.nodes[r].operands[0]);
  for (const KernelStore* s : stores) roots.push_back(s->node);
  Prefetch(roots);
  std::vector<Value> after;
  for (size_t i = 0; i < reductions.size(); ++i) {
    const KernelNode& n = spec_.nodes[reductions[i]];
    Lanes v = body_.Splat(Evaluate(n.operands[0]), plan_.lanes);
    if (full_ && plan_.vector_inner) {
      // Lanes behind the end count as nothing. A branch, so that whole vectors pay only for a prediction.
      std::vector<MType> types = {v.re.getType()};
      if (v.im) types.push_back(v.im.getType());
      auto branch = m_.b.create<scf::IfOp>(m_.loc, mlir::TypeRange(types), full_, /*withElseRegion=*/true);
      mlir::OpBuilder::InsertionGuard guard(m_.b);
      auto yield = [&](const Lanes& w) {
        std::vector<Value> values = {w.re};
        if (w.im) values.push_back(w.im);
        m_.b.create<scf::YieldOp>(m_.loc, values);
      };
      m_.b.setInsertionPointToStart(branch.thenBlock());
      yield(v);
      m_.b.setInsertionPointToStart(branch.elseBlock());
      yield(body_.Select(mask_, v, body_.Neutral(n.op, n.dtype, plan_.lanes)));
      v = {branch.getResult(0), v.im ? branch.getResult(1) : Value()};
    }
    const TakesIn how = HowToTakeIn(reductions[i]);
    if (how == TakesIn::kMemory) {
      Value at = m_.And(dims_[plan_.vector_dim], m_.I64(n.integer - 1));
      KeepSum(reductions[i], at, body_.Combine(n.op, n.dtype, KeptSum(reductions[i], at), v), n.integer);
      continue;
    }
    const Lanes sum =
        how == TakesIn::kOneByOne ? OneByOne(n, before[i], v) : body_.Combine(n.op, n.dtype, before[i], v);
    after.push_back(sum.re);
    if (sum.im) after.push_back(sum.im);
  }
  StoreAll(stores);
  if (phase == 1) TouchNextRow();
  for (size_t i = nest.size(); i-- > 0;) {
    if (!after.empty()) m_.b.create<scf::YieldOp>(m_.loc, after);
    CloseLoop();
    after.assign(nest[i].getResults().begin(), nest[i].getResults().end());
  }
  if (plan_.vector_inner) full_ = mask_ = remaining_ = Value();
  const std::vector<Lanes> totals = unpack(after);
  for (size_t i = 0; i < reductions.size(); ++i) {
    const int r = reductions[i];
    const TakesIn how = HowToTakeIn(r);
    Lanes v = how == TakesIn::kMemory ? FoldKept(r, spec_.nodes[r].integer / plan_.lanes) : totals[i];
    if (plan_.vector_inner && plan_.lanes > 0 && how != TakesIn::kOneByOne) v = Horizontal(spec_.nodes[r], v);
    MemoOf(r) = {v, static_cast<int>(loops_.size())};
  }
}

// Stores of what there is once per row, not per element of it.
std::vector<const KernelStore*> KernelEmitter::RowStores() const {
  std::vector<const KernelStore*> rows;
  for (const KernelStore& s : spec_.stores) {
    if (!IsInner(dependence_[s.node]) && !IsInner(s.access.offset.VarMask())) rows.push_back(&s);
  }
  return rows;
}

// One pass per phase that reduces or stores something, and what is stored within rows after the last one.
std::vector<KernelEmitter::Pass> KernelEmitter::Passes(const std::vector<const KernelStore*>& rows) const {
  std::vector<Pass> passes;
  if (static_cast<int>(spec_.sizes.size()) == spec_.num_outer) return passes;
  int last = 0;
  for (int p : phases_) last = std::max(last, p);
  // A reduction makes its users available one phase later.
  auto available = [&](int node) {
    return phases_[node] + (spec_.nodes[node].kind == KernelNode::Kind::kReduce ? 1 : 0);
  };
  for (int phase = 0; phase <= last + 1; ++phase) {
    Pass pass{phase, {}, {}};
    for (size_t i = 0; i < spec_.nodes.size(); ++i) {
      if (spec_.nodes[i].kind == KernelNode::Kind::kReduce && phases_[i] == phase)
        pass.reductions.push_back(static_cast<int>(i));
    }
    for (const KernelStore& s : spec_.stores) {
      if (std::find(rows.begin(), rows.end(), &s) == rows.end() && available(s.node) == phase)
        pass.stores.push_back(&s);
    }
    for (const KernelStore& s : spec_.spills) {
      const bool own = std::any_of(pass.stores.begin(), pass.stores.end(), [&](const KernelStore* t) {
        return t->node == s.node && t->access.operand == s.access.operand;
      });
      if (phases_[s.node] == phase && !own) pass.stores.push_back(&s);
    }
    if (!pass.reductions.empty() || !pass.stores.empty()) passes.push_back(std::move(pass));
  }
  return passes;
}

void KernelEmitter::Phases() {
  if (tree_ >= 0) return TreeBody();
  const std::vector<const KernelStore*> rows = RowStores();
  for (const Pass& pass : Passes(rows)) RunPass(pass);
  StoreRows(rows);
}

void KernelEmitter::StoreRows(const std::vector<const KernelStore*>& rows) {
  current_phase_ = *std::max_element(phases_.begin(), phases_.end()) + 1;
  std::vector<int> roots;
  for (const KernelStore* s : rows) roots.push_back(s->node);
  Prefetch(roots);
  StoreAll(rows);
}

void KernelEmitter::OpenVectorLoop(Value begin, Value end) {
  const int v = plan_.vector_dim;
  auto loop = m_.b.create<scf::ForOp>(m_.loc, begin, end, m_.I64(plan_.lanes));
  dims_[v] = loop.getInductionVar();
  OpenLoop(loop, uint64_t{1} << v);
  if (!plan_.may_have_tail) return;
  remaining_ = m_.ISub(Size(spec_.sizes[v]), dims_[v]);
  full_ = m_.Cmp(IPred::sge, remaining_, m_.I64(plan_.lanes));
  mask_ = m_.Cmp(IPred::slt, m_.Iota(plan_.lanes, m_.i32()), m_.Splat(m_.TruncI(remaining_, m_.i32()), plan_.lanes));
}

void KernelEmitter::CloseVectorLoop() {
  full_ = mask_ = remaining_ = Value();
  CloseLoop();
}

void KernelEmitter::UnitBody() {
  if (plan_.lanes == 0 || plan_.vector_inner) return Phases();
  const int v = plan_.vector_dim;
  Value size = Size(spec_.sizes[v]);
  const std::optional<int64_t> known = spec_.sizes[v].TryValue();
  Value begin = m_.I64(0), end = size;
  if (!known || *known > plan_.block) {
    begin = m_.IMul(dims_[v], m_.I64(plan_.block));
    Value limit = m_.IAdd(begin, m_.I64(plan_.block));
    end = m_.Select(m_.Cmp(IPred::slt, limit, size), limit, size);
  }
  if (plan_.strip > 0) return Strips(begin, end);
  OpenVectorLoop(begin, end);
  if (plan_.tile_dim >= 0)
    TileBody();
  else
    Phases();
  CloseVectorLoop();
}

void KernelEmitter::TileBody() {
  const int d = plan_.tile_dim;
  for (int node : plan_.tile_loads) TransposeIntoScratch(node);
  Value count = m_.I64(plan_.lanes);
  const std::optional<int64_t> tiled = spec_.sizes[d].TryValue();
  if (!tiled || *tiled % plan_.lanes != 0) {
    Value rest = m_.ISub(Size(spec_.sizes[d]), tile_base_);
    count = m_.Select(m_.Cmp(IPred::slt, rest, count), rest, count);
  }
  auto loop = m_.b.create<scf::ForOp>(m_.loc, m_.I64(0), count, m_.I64(1));
  OpenLoop(loop, uint64_t{1} << d);
  dims_[d] = m_.IAdd(tile_base_, loop.getInductionVar());
  Phases();
  CloseLoop();
}

// A descriptor like the kernel's, in which words are found.
static abi::Kernel<abi::Owned> Told(const KernelSpec& spec) {
  abi::Kernel<abi::Owned> told;
  told.operands.resize(static_cast<size_t>(spec.num_operands));
  told.sizes.resize(spec.SymbolicSizes().size());
  return told;
}

// A function of the type WeftKernel, without a body. `shared`: modules of one library have it in common.
static LLVM::LLVMFuncOp MakeKernel(MlirBuilder& m, mlir::ModuleOp module, const std::string& name, bool shared) {
  m.b.setInsertionPointToEnd(module.getBody());
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(m.b.getContext()), {m.ptr(), m.ptr(), m.i64(), m.i64()});
  auto function =
      m.b.create<LLVM::LLVMFuncOp>(m.loc, name, type, shared ? LLVM::Linkage::External : LLVM::Linkage::Internal);
  if (shared) function.setVisibility_(LLVM::Visibility::Hidden);
  return function;
}

void KernelEmitter::Emit(LLVM::LLVMFuncOp function) {
  entry_ = function.addEntryBlock(m_.b);
  m_.b.setInsertionPointToStart(entry_);
  Value frame = entry_->getArgument(0), desc = entry_->getArgument(1), begin = entry_->getArgument(2),
        end = entry_->getArgument(3);
  Value slots = m_.Load(m_.ptr(), m_.GepAt(m_.i8(), frame, kFrameSlots));
  const abi::Kernel<abi::Owned> told = Told(spec_);
  const int64_t first_operand = abi::WordOfEntry(told, "operands", 0), first_size = abi::WordOfEntry(told, "sizes", 0);
  for (int i = 0; i < spec_.num_operands; ++i) {
    Value slot = m_.Load(m_.i64(), m_.GepAt(m_.i64(), desc, first_operand + i));
    pointers_.push_back(m_.Load(m_.ptr(), m_.Gep(m_.ptr(), slots, slot)));
  }
  for (size_t i = 0; i < symbols_.size(); ++i)
    symbol_values_.push_back(m_.Load(m_.i64(), m_.GepAt(m_.i64(), desc, first_size + static_cast<int64_t>(i))));
  Value runtime = m_.Load(m_.ptr(), m_.GepAt(m_.i8(), frame, kFrameRuntime));
  math_table_ = m_.Load(m_.ptr(), m_.GepAt(m_.i8(), runtime, kRuntimeMath));

  if (tree_ >= 0) dims_[spec_.num_outer] = m_.I64(0);  // the only leaf, unless there is a loop over them

  // Units: rows times blocks, last dimension fastest.
  auto loop = m_.b.create<scf::ForOp>(m_.loc, begin, end, m_.I64(1));
  uint64_t mask = 0;
  for (int d : plan_.unit_dims) mask |= d == plan_.tile_dim ? 0 : uint64_t{1} << d;
  Value unit = loop.getInductionVar();
  OpenLoop(loop, mask);
  const int v = plan_.vector_dim;
  Value row = unit;
  if (plan_.lanes > 0 && !plan_.vector_inner) {
    const std::optional<int64_t> known = spec_.sizes[v].TryValue();
    if (!known || *known > plan_.block) {
      Value blocks = m_.CeilDiv(Size(spec_.sizes[v]), plan_.block);
      if (plan_.unit_dims.empty()) {
        dims_[v] = row;  // the block's number, until its loop opens
      } else {
        Value q = m_.Make<arith::DivUIOp>(row, blocks);
        dims_[v] = m_.ISub(row, m_.IMul(q, blocks));
        row = q;
      }
    }
  }
  for (size_t i = plan_.unit_dims.size(); i-- > 0;) {
    const int d = plan_.unit_dims[i];
    if (i == 0) {
      dims_[d] = row;
    } else {
      Value size = m_.CeilDiv(Size(spec_.sizes[d]), plan_.Step(d));
      Value q = m_.Make<arith::DivUIOp>(row, size);
      dims_[d] = m_.ISub(row, m_.IMul(q, size));
      row = q;
    }
    if (d == plan_.row_dim) PlaceRows();
    if (d == plan_.tile_dim) tile_base_ = m_.IMul(dims_[d], m_.I64(plan_.lanes));
  }
  UnitBody();
  if (streams_) {
    m_.b.create<LLVM::CallIntrinsicOp>(m_.loc, mlir::TypeRange{}, m_.b.getStringAttr("llvm.x86.sse.sfence"),
                                       mlir::ValueRange{}, LLVM::FastmathFlagsAttr{});
  }
  CloseLoop();
  m_.b.create<LLVM::ReturnOp>(m_.loc, mlir::ValueRange{});
}

void EmitKernel(mlir::ModuleOp module, const KernelSpec& spec, const LoopPlan& plan, const Target& target,
                const std::string& name, bool shared) {
  MlirBuilder m(module.getContext());
  m.avx512 = target.vector_bytes >= 64;
  m.f16c = target.f16c;
  m.fused_sums = target.fused_products;
  KernelEmitter(spec, plan, target, m).Emit(MakeKernel(m, module, name, shared));
}

void DeclareKernel(mlir::ModuleOp module, const std::string& name) {
  MlirBuilder m(module.getContext());
  MakeKernel(m, module, name, /*shared=*/true);
}

Value EmitUnits(MlirBuilder& m, const KernelSpec& spec, const LoopPlan& plan, Value desc) {
  const std::vector<Dim> symbols = spec.SymbolicSizes();
  auto size = [&](const Dim& d) -> Value {
    if (d.is_static()) return m.I64(*d.TryValue());
    const auto at = std::find(symbols.begin(), symbols.end(), d) - symbols.begin();
    return m.Load(m.i64(), m.GepAt(m.i64(), desc, abi::WordOfEntry(Told(spec), "sizes", static_cast<size_t>(at))));
  };
  Dim known = 1;
  Value units;
  auto times = [&](Value v) { units = units ? m.IMul(units, v) : v; };
  for (int d : plan.unit_dims) {
    const int64_t by = plan.Step(d);
    if (spec.sizes[d].is_static())
      known = known * Dim((*spec.sizes[d].TryValue() + by - 1) / by);
    else
      times(m.CeilDiv(size(spec.sizes[d]), by));
  }
  if (plan.lanes > 0 && !plan.vector_inner) {
    const Dim& n = spec.sizes[plan.vector_dim];
    if (n.is_static())
      known = known * Dim((*n.TryValue() + plan.block - 1) / plan.block);
    else
      times(m.CeilDiv(size(n), plan.block));
  }
  if (!units) return m.I64(*known.TryValue());
  return m.IMul(units, m.I64(*known.TryValue()));
}

}  // namespace weft
