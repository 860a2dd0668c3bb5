#include "lowering/gpu/mlir/emit_gpu_kernel.h"

#include <algorithm>
#include <bit>

#include "lowering/gpu/mlir/gpu_kernel_emitter.h"

namespace weft {
namespace {

using Kind = KernelNode::Kind;

std::vector<Value> Flat(const std::vector<std::vector<Lanes>>& sums) {
  std::vector<Value> values;
  for (const auto& lanes : sums) {
    for (const Lanes& v : lanes) {
      values.push_back(v.re);
      if (v.im) values.push_back(v.im);
    }
  }
  return values;
}

void Unflatten(mlir::ValueRange values, std::vector<std::vector<Lanes>>* sums) {
  size_t next = 0;
  for (auto& lanes : *sums) {
    for (Lanes& v : lanes) {
      v.re = values[next++];
      if (v.im) v.im = values[next++];
    }
  }
}

}  // namespace

GpuKernelEmitter::GpuKernelEmitter(const KernelSpec& spec, const GpuPlan& plan, bool libdevice, mlir::ModuleOp module,
                                   const std::string& name)
    : spec_(spec),
      plan_(plan),
      libdevice_(libdevice),
      module_(module),
      name_(name),
      m_(module.getContext()),
      body_(
          m_,
          [this](const std::string& op, DType dtype, const std::vector<Lanes>& x, DType) {
            return CallLibrary(op, dtype, x);
          },
          [this](const std::string& op, const std::vector<Value>& x) { return Native(op, x); }),
      dependence_(spec.Dependence()),
      phases_(spec.Phases()),
      dims_(spec.sizes.size()),
      lanes_(plan.lanes) {
  m_.fused_sums = m_.nan_max = m_.bf16 = m_.div_full = true;
}

void GpuKernelEmitter::Close() {
  for (auto it = known_.begin(); it != known_.end();)
    it = it->second.depth >= depth_ ? known_.erase(it) : std::next(it);
  --depth_;
}

void GpuKernelEmitter::Decompose(Value number, int first, int last) {
  std::vector<int> order;  // fastest last
  for (int d = first; d < last; ++d) {
    if (d != plan_.vector_dim) order.push_back(d);
  }
  if (plan_.vector_dim >= first && plan_.vector_dim < last) order.push_back(plan_.vector_dim);
  for (size_t i = order.size(); i-- > 0;) {
    const int d = order[i];
    const int64_t by = d == plan_.vector_dim ? lanes_ : 1, size = Size(d) / by;
    Value digit = number;
    if (i > 0) {
      digit = m_.Make<arith::RemUIOp>(number, At(std::max<int64_t>(1, size)));
      number = m_.Make<arith::DivUIOp>(number, At(std::max<int64_t>(1, size)));
    }
    dims_[static_cast<size_t>(d)] = by == 1 ? digit : m_.IMul(digit, At(by));
  }
}

void GpuKernelEmitter::Elements() {
  int64_t points = 1;
  for (int v = 0; v < spec_.num_outer; ++v) points *= Size(v);
  const int64_t groups = (points + plan_.lanes - 1) / plan_.lanes;
  Value number = m_.IAdd(m_.IMul(block_, At(plan_.threads)), thread_);
  std::vector<const KernelStore*> stores;
  for (const KernelStore& s : spec_.stores) stores.push_back(&s);
  Value inside;
  if (plan_.blocks * plan_.threads != groups) inside = m_.Cmp(IPred::ult, number, At(groups));
  If(inside, [&] {
    if (!plan_.tail) {
      Decompose(number, 0, spec_.num_outer);
      return StoreAll(stores, {});
    }
    Value begin = m_.IMul(number, At(plan_.lanes)), end = m_.IAdd(begin, At(plan_.lanes));
    auto branch = m_.b.create<scf::IfOp>(m_.loc, m_.Cmp(IPred::ule, end, At(points)), /*withElseRegion=*/true);
    mlir::OpBuilder::InsertionGuard guard(m_.b);
    m_.b.setInsertionPointToStart(branch.thenBlock());
    Open();
    dims_[0] = begin;
    StoreAll(stores, {});
    Close();
    m_.b.setInsertionPointToStart(branch.elseBlock());
    auto loop = m_.b.create<scf::ForOp>(m_.loc, begin, At(points), At(1));
    m_.b.setInsertionPointToStart(loop.getBody());
    Open();
    lanes_ = 1;
    dims_[0] = loop.getInductionVar();
    StoreAll(stores, {});
    lanes_ = plan_.lanes;
    Close();
  });
}

void GpuKernelEmitter::Group(const std::vector<int>& reductions, const std::vector<const KernelStore*>& stores,
                             Value guard, std::vector<std::vector<Lanes>>* sums) {
  for (size_t i = 0; i < reductions.size(); ++i) {
    const KernelNode& n = spec_.nodes[static_cast<size_t>(reductions[i])];
    std::vector<Lanes> values;
    for (int l = 0; l < lanes_; ++l) {
      Lanes v = Contribution(n, l);
      if (guard) v = body_.Select(guard, v, Neutral(n));
      values.push_back(v);
    }
    const auto add = [&](Lanes& sum, const Lanes& v) { sum = sum.re ? Combine(n, sum, v) : v; };
    if (AcrossMemory()) {
      for (int l = 0; l < lanes_; ++l) add((*sums)[i][l], values[l]);
      continue;
    }
    for (size_t half = values.size() / 2; half > 0; half /= 2) {
      for (size_t l = 0; l < half; ++l) values[l] = Combine(n, values[l], values[l + half]);
    }
    add((*sums)[i][0], values[0]);
  }
  StoreAll(stores, And(row_guard_, guard));
}

void GpuKernelEmitter::RowLoop(Value begin, int64_t groups, int together, const std::vector<int>& reductions,
                               const std::vector<const KernelStore*>& stores, std::vector<std::vector<Lanes>>* sums) {
  const int64_t threads = plan_.threads_per_row;
  const std::vector<Value> start = Flat(*sums);
  auto loop = m_.b.create<scf::ForOp>(m_.loc, begin, At(groups), At(threads * together), start);
  {
    mlir::OpBuilder::InsertionGuard guard(m_.b);
    m_.b.setInsertionPointToStart(loop.getBody());
    Open();
    Unflatten(loop.getRegionIterArgs(), sums);
    std::vector<std::vector<std::vector<Lanes>>> parts;
    for (int k = 0; k < together; ++k) {
      group_ = together > 1 ? k : -1;
      Decompose(m_.IAdd(loop.getInductionVar(), At(k * threads)), spec_.num_outer,
                static_cast<int>(spec_.sizes.size()));
      std::vector<std::vector<Lanes>> part;
      for (const auto& lanes : *sums) part.emplace_back(lanes.size());
      Group(reductions, stores, {}, &part);
      parts.push_back(std::move(part));
    }
    group_ = -1;
    for (size_t i = 0; i < reductions.size(); ++i) {
      const KernelNode& n = spec_.nodes[static_cast<size_t>(reductions[i])];
      for (size_t l = 0; l < (*sums)[i].size(); ++l) {
        for (size_t half = parts.size() / 2; half > 0; half /= 2) {
          for (size_t k = 0; k < half; ++k) parts[k][i][l] = Combine(n, parts[k][i][l], parts[k + half][i][l]);
        }
        (*sums)[i][l] = Combine(n, (*sums)[i][l], parts[0][i][l]);
      }
    }
    if (!start.empty()) m_.b.create<scf::YieldOp>(m_.loc, Flat(*sums));
    Close();
  }
  Unflatten(loop.getResults(), sums);
}

void GpuKernelEmitter::RunPhase(const std::vector<int>& reductions, const std::vector<const KernelStore*>& stores) {
  const int rank = static_cast<int>(spec_.sizes.size());
  int64_t groups = 1;
  for (int v = spec_.num_outer; v < rank; ++v) groups *= Size(v) / (v == plan_.vector_dim ? plan_.lanes : 1);
  std::vector<std::vector<Lanes>> sums;
  for (int r : reductions) {
    const KernelNode& n = spec_.nodes[static_cast<size_t>(r)];
    sums.emplace_back(AcrossMemory() ? lanes_ : 1, Neutral(n));
  }
  const int64_t threads = plan_.threads_per_row;
  if (plan_.registers > 0) {
    for (int k = 0; k < plan_.registers; ++k) {
      group_ = k;
      Value number = m_.IAdd(row_thread_, At(k * threads)), guard;
      if ((k + 1) * threads > groups) {
        // Threads behind the end of the row compute its last group again.
        guard = m_.Cmp(IPred::ult, number, At(groups));
        number = m_.Select(guard, number, At(groups - 1));
      }
      Decompose(number, spec_.num_outer, rank);
      Group(reductions, stores, guard, &sums);
    }
    group_ = -1;
  } else {
    // Groups are added up eight at a time, in pairs: a long sum is as exact as one an eighth as long, and as many loads
    // are on their way together.
    constexpr int64_t kTogether = 8;
    const int64_t whole = reductions.empty() ? 0 : groups / (threads * kTogether) * (threads * kTogether);
    if (whole > 0) RowLoop(row_thread_, whole, kTogether, reductions, stores, &sums);
    if (whole < groups) RowLoop(m_.IAdd(row_thread_, At(whole)), groups, 1, reductions, stores, &sums);
  }
  CombineThreads(reductions, &sums);
  for (size_t i = 0; i < reductions.size(); ++i) {
    const KernelNode& n = spec_.nodes[static_cast<size_t>(reductions[i])];
    for (size_t l = 0; l < sums[i].size(); ++l)
      known_[{reductions[i], -1, static_cast<int>(l)}] = {Total(n, sums[i][l]), depth_};
  }
}

Lanes GpuKernelEmitter::Total(const KernelNode& n, const Lanes& v) {
  if (!n.FindsIndex()) return v;
  KernelNode convert;
  convert.op = "convert";
  convert.dtype = n.dtype;
  return body_.Op(convert, {TypeOf(n.operands[1])}, {{v.im}});
}

void GpuKernelEmitter::Rows() {
  int64_t rows = 1;
  for (int v = 0; v < spec_.num_outer; ++v) rows *= Size(v) / (v == plan_.vector_dim ? plan_.lanes : 1);
  auto split = [&](int by, Value* low, Value* high) {
    *low = m_.And(thread_, At(by - 1));
    *high = m_.ShrU(thread_, std::countr_zero(static_cast<unsigned>(by)));
  };
  if (AcrossMemory())
    split(plan_.rows_per_block, &row_in_block_, &row_thread_);
  else
    split(plan_.threads_per_row, &row_thread_, &row_in_block_);
  Value number = m_.IAdd(m_.IMul(block_, At(plan_.rows_per_block)), row_in_block_);
  if (plan_.blocks * plan_.rows_per_block != rows) {
    // Threads of rows that do not exist compute the last one again: all must meet at barriers.
    row_guard_ = m_.Cmp(IPred::ult, number, At(rows));
    number = m_.Select(row_guard_, number, At(rows - 1));
  }
  Decompose(number, 0, spec_.num_outer);

  int last = 0;
  auto available = [&](int node) { return phases_[node] + (spec_.nodes[node].kind == Kind::kReduce ? 1 : 0); };
  std::vector<const KernelStore*> of_rows;
  for (const KernelStore& s : spec_.stores) {
    if (!IsInner(dependence_[s.node]) && !IsInner(s.access.offset.VarMask()))
      of_rows.push_back(&s);
    else
      last = std::max(last, available(s.node));
  }
  for (size_t i = 0; i < spec_.nodes.size(); ++i) {
    if (spec_.nodes[i].kind == Kind::kReduce) last = std::max(last, phases_[i]);
  }
  for (int phase = 0; phase <= last; ++phase) {
    std::vector<int> reductions;
    for (size_t i = 0; i < spec_.nodes.size(); ++i) {
      if (spec_.nodes[i].kind == Kind::kReduce && phases_[i] == phase) reductions.push_back(static_cast<int>(i));
    }
    std::vector<const KernelStore*> stores;
    for (const KernelStore& s : spec_.stores) {
      if (std::find(of_rows.begin(), of_rows.end(), &s) == of_rows.end() && available(s.node) == phase)
        stores.push_back(&s);
    }
    if (!reductions.empty() || !stores.empty()) RunPhase(reductions, stores);
  }
  if (of_rows.empty()) return;
  Value first = plan_.threads_per_row > 1 ? m_.Cmp(IPred::eq, row_thread_, At(0)) : Value();
  StoreAll(of_rows, And(row_guard_, first));
}

void GpuKernelEmitter::Emit() {
  MType global = LLVM::LLVMPointerType::get(m_.b.getContext(), 1);
  const std::vector<bool> touched = spec_.Touched();
  std::vector<MType> arguments;
  for (bool t : touched) {
    if (t) arguments.push_back(global);
  }
  m_.b.setInsertionPointToEnd(module_.getBody());
  if (plan_.shared_bytes > 0) {
    auto bytes = LLVM::LLVMArrayType::get(m_.i8(), static_cast<unsigned>(plan_.shared_bytes));
    m_.b.create<LLVM::GlobalOp>(m_.loc, bytes, /*isConstant=*/false, LLVM::Linkage::Internal, name_ + "_shared",
                                mlir::Attribute(), /*alignment=*/16, /*addrSpace=*/3);
  }
  auto function = m_.b.create<LLVM::LLVMFuncOp>(
      m_.loc, name_, LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(m_.b.getContext()), arguments),
      LLVM::Linkage::External);
  mlir::Block* entry = function.addEntryBlock(m_.b);
  m_.b.setInsertionPointToStart(entry);
  unsigned next = 0;
  for (int i = 0; i < spec_.num_operands; ++i) {
    pointers_.emplace_back();
    if (!touched[i]) continue;
    function.setArgAttr(next, "llvm.noalias", m_.b.getUnitAttr());
    function.setArgAttr(next, spec_.written[i] ? "llvm.nocapture" : "llvm.readonly", m_.b.getUnitAttr());
    pointers_.back() = entry->getArgument(next++);
  }
  auto wide = [&](Value v) { return plan_.wide_index ? m_.ExtU(v, m_.i64()) : v; };
  thread_ = wide(Sreg("llvm.nvvm.read.ptx.sreg.tid.x"));
  block_ = wide(Sreg("llvm.nvvm.read.ptx.sreg.ctaid.x"));
  if (plan_.shared_bytes > 0)
    shared_ = m_.Make<LLVM::AddressOfOp>(LLVM::LLVMPointerType::get(m_.b.getContext(), 3), name_ + "_shared");
  if (plan_.kind == GpuPlan::Kind::kElements)
    Elements();
  else
    Rows();
  m_.b.create<LLVM::ReturnOp>(m_.loc, mlir::ValueRange{});
}

void EmitGpuKernel(mlir::ModuleOp module, const KernelSpec& spec, const GpuPlan& plan, const std::string& name,
                   bool libdevice) {
  GpuKernelEmitter(spec, plan, libdevice, module, name).Emit();
}

}  // namespace weft
