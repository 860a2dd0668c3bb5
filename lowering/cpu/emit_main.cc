#include "lowering/cpu/mlir/emit_main.h"

#include <algorithm>
#include <unordered_map>

#include "lowering/cpu/mlir/emit_kernel.h"
#include "lowering/program/launches.h"

namespace weft {
namespace {

// No function grows with the program, since LLVM's time grows faster than a function: one with more steps than this,
// those of branches and bodies included, is cut in parts ...
constexpr int64_t kStepsPerPart = 200;
// ... and of a step with branches or a body this many stay in place; larger ones are functions of their own.
constexpr int64_t kStepsInPlace = 80;
// In a loop threads are awake from the trip before: work is worth one when it is so many times shorter.
constexpr double kShorterInLoops = 2;
// Units of kernels that run together are in groups that take about as many nanoseconds.
constexpr int64_t kGroupCost = 4000;

class MainEmitter {
 public:
  MainEmitter(mlir::ModuleOp module, const Program& program, const std::vector<LoopPlan>& plans)
      : module_(module), program_(program), plans_(plans), m_(module.getContext()) {}

  void Emit() {
    EmitEntry("weft_main", program_.steps);
    for (size_t i = 0; i < program_.functions.size(); ++i)
      EmitEntry("weft_f" + std::to_string(i), program_.functions[i]);
  }

 private:
  void EmitEntry(const std::string& name, const Steps& steps) {
    auto type = LLVM::LLVMFunctionType::get(m_.i32(), {m_.ptr()});
    m_.b.setInsertionPointToEnd(module_.getBody());
    auto main = m_.b.create<LLVM::LLVMFuncOp>(m_.loc, name, type, LLVM::Linkage::External);
    mlir::Block* entry = main.addEntryBlock(m_.b);
    m_.b.setInsertionPointToStart(entry);
    frame_ = entry->getArgument(0);
    Prologue();
    EmitSteps(steps);
    Value error = m_.Load(m_.i32(), m_.GepAt(m_.i8(), frame_, kFrameError));
    m_.b.create<LLVM::ReturnOp>(m_.loc, mlir::ValueRange{error});
  }

  struct Context {
    Value frame, slots, desc, runtime;
  };

  void Prologue() {
    slots_ = m_.Load(m_.ptr(), m_.GepAt(m_.i8(), frame_, kFrameSlots));
    desc_ = m_.Load(m_.ptr(), m_.GepAt(m_.i8(), frame_, kFrameDesc));
    runtime_ = m_.Load(m_.ptr(), m_.GepAt(m_.i8(), frame_, kFrameRuntime));
  }
  Value DescAt(int64_t index) { return m_.GepAt(m_.i64(), desc_, index); }
  Value SlotAt(int slot) { return m_.GepAt(m_.ptr(), slots_, slot); }

  // Steps that a function gets that has this one, what is in functions of its own counting as calls.
  int64_t Weight(const Step& s) {
    if (s.kind == Step::Kind::kTogether || s.kind == Step::Kind::kByRows) return 1;
    int64_t weight = 1;
    for (const Steps& block : s.blocks) weight += IsFunction(s, block) ? 1 : Weight(block);
    return weight;
  }
  int64_t Weight(const Steps& steps) {
    const auto known = weights_.find(&steps);
    if (known != weights_.end()) return known->second;
    int64_t weight = 0;
    for (const Step& s : steps) weight += Weight(s);
    return weights_[&steps] = weight;
  }
  bool IsFunction(const Step& s, const Steps& block) {
    return Weight(block) > std::max<int64_t>(2, kStepsInPlace / static_cast<int64_t>(s.blocks.size()));
  }

  // A branch or body of `s`.
  void EmitBlock(const Step& s, const Steps& block) {
    if (IsFunction(s, block))
      EmitPart([&] { EmitSteps(block); });
    else
      EmitRange(block, 0, block.size());
  }

  void EmitBody(const Step& s, const Steps& body) {
    ++loops_;
    EmitBlock(s, body);
    --loops_;
  }

  void EmitSteps(const Steps& steps) {
    if (Weight(steps) <= kStepsPerPart) return EmitRange(steps, 0, steps.size());
    bool loops_before = false;
    for (size_t begin = 0, end; begin < steps.size(); begin = end) {
      int64_t weight = 0;
      for (end = begin; end < steps.size(); ++end) {
        weight += Weight(steps[end]);
        if (end > begin && weight > kStepsPerPart) break;
      }
      EmitPart([&] {
        if (loops_before)
          IfNoError([&] { EmitRange(steps, begin, end); });
        else
          EmitRange(steps, begin, end);
      });
      for (size_t i = begin; i < end; ++i) loops_before |= HoldsLoops(steps[i]);
    }
  }

  // A function of what `emit` emits, and a call of it.
  template <class F>
  void EmitPart(const F& emit) {
    const std::string name = "part" + std::to_string(parts_++);
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(m_.b.getContext()), {m_.ptr()});
    {
      mlir::OpBuilder::InsertionGuard guard(m_.b);
      const Context saved{frame_, slots_, desc_, runtime_};
      m_.b.setInsertionPointToEnd(module_.getBody());
      auto part = m_.b.create<LLVM::LLVMFuncOp>(m_.loc, name, type, LLVM::Linkage::Internal);
      mlir::Block* entry = part.addEntryBlock(m_.b);
      m_.b.setInsertionPointToStart(entry);
      frame_ = entry->getArgument(0);
      Prologue();
      emit();
      m_.b.create<LLVM::ReturnOp>(m_.loc, mlir::ValueRange{});
      frame_ = saved.frame, slots_ = saved.slots, desc_ = saved.desc, runtime_ = saved.runtime;
    }
    m_.b.create<LLVM::CallOp>(m_.loc, mlir::TypeRange{}, name, mlir::ValueRange{frame_});
  }

  // What comes after a loop that was cut short would read what the loop has not written.
  void EmitRange(const Steps& steps, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      EmitStep(steps[i]);
      if (i + 1 < end && HoldsLoops(steps[i])) return IfNoError([&] { EmitRange(steps, i + 1, end); });
    }
  }

  static bool HoldsLoops(const Step& s) {
    return s.kind == Step::Kind::kWhile || s.kind == Step::Kind::kFor ||
           std::any_of(s.blocks.begin(), s.blocks.end(),
                       [](const Steps& block) { return std::any_of(block.begin(), block.end(), HoldsLoops); });
  }

  void EmitStep(const Step& s) {
    switch (s.kind) {
      case Step::Kind::kKernel: return EmitKernelCall(s);
      case Step::Kind::kOp: return EmitOperation(s);
      case Step::Kind::kIf: return EmitIf(s);
      case Step::Kind::kWhile: return EmitWhile(s);
      case Step::Kind::kFor: return EmitFor(s);
      case Step::Kind::kChecked: return EmitChecked(s);
      case Step::Kind::kTogether: return EmitTogether(s);
      case Step::Kind::kByRows: return EmitByRows(s);
    }
  }

  static std::string NameOf(const Step& kernel) { return "k" + std::to_string(kernel.index); }
  Value UnitsOf(const Step& kernel, Value desc) {
    return EmitUnits(m_, program_.kernels[kernel.index], plans_[kernel.index], desc);
  }
  // Estimated nanoseconds of a unit, at least 1.
  int64_t UnitCost(const Step& kernel) {
    const double cost = plans_[kernel.index].unit_points * program_.kernels[kernel.index].PointCost();
    return std::max<int64_t>(1, static_cast<int64_t>(cost));
  }

  void EmitKernelCall(const Step& s) {
    Value desc = DescAt(s.desc);
    Value units = UnitsOf(s, desc);
    const double cost = loops_ > 0 ? s.cost * kShorterInLoops : s.cost;
    if (cost >= 0 && cost < kWorthAThread)
      CallUnits(s, frame_, desc, m_.I64(0), units);
    else
      EmitParallelFor(NameOf(s), desc, units,
                      cost >= 0 ? m_.I64(static_cast<int64_t>(cost)) : m_.IMul(units, m_.I64(UnitCost(s))));
  }

  void EmitParallelFor(const std::string& name, Value desc, Value units, Value cost) {
    Value kernel = m_.Make<LLVM::AddressOfOp>(LLVM::LLVMPointerType::get(m_.b.getContext()), name);
    Value parallel_for = m_.Load(m_.ptr(), m_.GepAt(m_.i8(), runtime_, kRuntimeParallelFor));
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(m_.b.getContext()),
                                            {m_.ptr(), m_.ptr(), m_.ptr(), m_.i64(), m_.i64()});
    m_.b.create<LLVM::CallOp>(m_.loc, type, mlir::ValueRange{parallel_for, frame_, kernel, desc, units, cost});
  }

  // A function of the type WeftKernel; `emit` has its frame, its descriptor and the units that it computes.
  template <class F>
  void EmitUnitsFunction(const std::string& name, const F& emit) {
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(m_.b.getContext()),
                                            {m_.ptr(), m_.ptr(), m_.i64(), m_.i64()});
    mlir::OpBuilder::InsertionGuard guard(m_.b);
    m_.b.setInsertionPointToEnd(module_.getBody());
    auto function = m_.b.create<LLVM::LLVMFuncOp>(m_.loc, name, type, LLVM::Linkage::Internal);
    mlir::Block* entry = function.addEntryBlock(m_.b);
    m_.b.setInsertionPointToStart(entry);
    emit(entry->getArgument(0), entry->getArgument(1), entry->getArgument(2), entry->getArgument(3));
    m_.b.create<LLVM::ReturnOp>(m_.loc, mlir::ValueRange{});
  }
  void CallUnits(const Step& kernel, Value frame, Value desc, Value begin, Value end) {
    m_.b.create<LLVM::CallOp>(m_.loc, mlir::TypeRange{}, NameOf(kernel), mlir::ValueRange{frame, desc, begin, end});
  }

  // Kernels and products side by side, as one kernel. Its units are parts of products, and groups of the kernels' units
  // that take about as long as one another.
  void EmitTogether(const Step& s) {
    const Steps& kernels = s.blocks[0];
    // Of kernel i: its descriptor, its units, how many of them are in a group, and its groups.
    struct Member {
      Value desc, units;
      int64_t group = 1;
      Value groups;
    };
    const auto member = [&](const Step& k, Value first_desc) {
      Member m;
      m.desc = m_.GepAt(m_.i64(), first_desc, k.desc - s.desc);
      if (k.kind == Step::Kind::kOp) {
        m.units = m.groups = m_.I64(PartsOf(k));
        return m;
      }
      m.units = UnitsOf(k, m.desc);
      m.group = std::max<int64_t>(1, kGroupCost / UnitCost(k));
      m.groups = m_.CeilDiv(m.units, m.group);
      return m;
    };
    Value desc = DescAt(s.desc), groups = m_.I64(0), cost = m_.I64(0);
    for (const Step& k : kernels) {
      const Member m = member(k, desc);
      groups = m_.IAdd(groups, m.groups);
      const int64_t of_unit = k.kind == Step::Kind::kOp ? static_cast<int64_t>(k.cost) / PartsOf(k) : UnitCost(k);
      if (s.cost < 0) cost = m_.IAdd(cost, m_.IMul(m.units, m_.I64(of_unit)));
    }
    if (s.cost >= 0) cost = m_.I64(static_cast<int64_t>(s.cost));

    const std::string name = "together" + std::to_string(together_++);
    EmitUnitsFunction(name, [&](Value frame, Value first_desc, Value begin, Value end) {
      Value start = m_.I64(0);
      for (const Step& k : kernels) {
        const Member m = member(k, first_desc);
        Value begun = start, stop = m_.IAdd(start, m.groups);
        Value from = Larger(begin, begun), to = Smaller(end, stop);
        auto some = m_.b.create<scf::IfOp>(m_.loc, m_.Cmp(IPred::slt, from, to), /*withElseRegion=*/false);
        mlir::OpBuilder::InsertionGuard inside(m_.b);
        m_.b.setInsertionPointToStart(some.thenBlock());
        start = stop;
        const int64_t group = k.kind == Step::Kind::kOp ? k.rows.most : m.group;
        Value all = k.kind == Step::Kind::kOp ? m_.I64(k.rows.count) : m.units;
        Value first = m_.IMul(m_.ISub(from, begun), m_.I64(group));
        Value last = Smaller(m_.IMul(m_.ISub(to, begun), m_.I64(group)), all);
        if (k.kind == Step::Kind::kOp)
          EmitRows(frame, m.desc, first, last);
        else
          CallUnits(k, frame, m.desc, first, last);
      }
    });
    EmitParallelFor(name, desc, groups, cost);
  }
  // Of a product in kTogether: what different threads may compute.
  static int64_t PartsOf(const Step& product) {
    return (product.rows.count + product.rows.most - 1) / product.rows.most;
  }

  // Kernels and products on some rows after the other, as one kernel. A unit is a part of the rows. Parts are as long
  // as one another, as many for each thread as there have to be.
  void EmitByRows(const Step& s) {
    const auto part_of = [&](Value frame) {
      Value runtime = m_.Load(m_.ptr(), m_.GepAt(m_.i8(), frame, kFrameRuntime));
      Value threads = m_.ExtU(m_.Load(m_.i32(), m_.GepAt(m_.i8(), runtime, kRuntimeThreads)), m_.i64());
      Value rounds = CeilDiv(m_.I64(s.rows.count), m_.IMul(threads, m_.I64(s.rows.most)));
      Value each = CeilDiv(m_.I64(s.rows.count), m_.IMul(threads, rounds));
      return m_.IMul(m_.CeilDiv(each, s.rows.step), m_.I64(s.rows.step));
    };
    const std::string name = "by_rows" + std::to_string(by_rows_++);
    EmitUnitsFunction(name, [&](Value frame, Value first_desc, Value begin, Value end) {
      Value part = part_of(frame);
      auto loop = m_.b.create<scf::ForOp>(m_.loc, begin, end, m_.I64(1));
      mlir::OpBuilder::InsertionGuard inside(m_.b);
      m_.b.setInsertionPointToStart(loop.getBody());
      Value first = m_.IMul(loop.getInductionVar(), part);
      Value last = Smaller(m_.IAdd(first, part), m_.I64(s.rows.count));
      for (const Step& k : s.blocks[0]) {
        Value desc = m_.GepAt(m_.i64(), first_desc, k.desc - s.desc);
        if (k.kind == Step::Kind::kOp) {
          EmitRows(frame, desc, first, last);
          continue;
        }
        const auto units = [&](Value row) { return m_.IMul(m_.CeilDiv(row, k.rows.step), m_.I64(k.rows.units)); };
        CallUnits(k, frame, desc, units(first), units(last));
      }
    });
    const double cost = loops_ > 0 ? s.cost * kShorterInLoops : s.cost;
    EmitParallelFor(name, DescAt(s.desc), CeilDiv(m_.I64(s.rows.count), part_of(frame_)),
                    m_.I64(static_cast<int64_t>(cost)));
  }
  Value CeilDiv(Value a, Value b) { return m_.Make<arith::DivUIOp>(m_.ISub(m_.IAdd(a, b), m_.I64(1)), b); }
  Value Larger(Value a, Value b) { return m_.Select(m_.Cmp(IPred::sgt, a, b), a, b); }
  Value Smaller(Value a, Value b) { return m_.Select(m_.Cmp(IPred::slt, a, b), a, b); }

  void EmitOperation(const Step& s) {
    Value ops = m_.Load(m_.ptr(), m_.GepAt(m_.i8(), runtime_, kRuntimeOps));
    Value op = m_.Load(m_.ptr(), m_.GepAt(m_.ptr(), ops, s.index));
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(m_.b.getContext()), {m_.ptr(), m_.ptr()});
    m_.b.create<LLVM::CallOp>(m_.loc, type, mlir::ValueRange{op, frame_, DescAt(s.desc)});
  }

  // Of a product, those of [first, last).
  void EmitRows(Value frame, Value desc, Value first, Value last) {
    Value runtime = m_.Load(m_.ptr(), m_.GepAt(m_.i8(), frame, kFrameRuntime));
    Value function = m_.Load(m_.ptr(), m_.GepAt(m_.i8(), runtime, kRuntimeProductRows));
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(m_.b.getContext()),
                                            {m_.ptr(), m_.ptr(), m_.i64(), m_.i64()});
    m_.b.create<LLVM::CallOp>(m_.loc, type, mlir::ValueRange{function, frame, desc, first, last});
  }

  // A scalar in a slot.
  Value LoadSlot(int slot, MType type) { return m_.Load(type, m_.Load(m_.ptr(), SlotAt(slot))); }

  void EmitIf(const Step& s) {
    Value which;
    if (s.dtype == DType::kBool) {
      which = m_.ExtU(m_.Cmp(IPred::ne, LoadSlot(s.slot, m_.i8()), m_.I(m_.i8(), 0)), m_.i32());
    } else {
      which = LoadSlot(s.slot, m_.i32());
      Value zero = m_.I(m_.i32(), 0), top = m_.I(m_.i32(), static_cast<int64_t>(s.blocks.size()) - 1);
      which = m_.Select(m_.Cmp(IPred::slt, which, zero), zero, which);
      which = m_.Select(m_.Cmp(IPred::sgt, which, top), top, which);
    }
    // A chain of comparisons, halving the range.
    EmitBranches(s, which, 0, s.blocks.size());
  }
  void EmitBranches(const Step& s, Value which, size_t begin, size_t end) {
    if (end - begin == 1) return EmitBlock(s, s.blocks[begin]);
    const size_t middle = (begin + end) / 2;
    auto branch = m_.b.create<scf::IfOp>(
        m_.loc, m_.Cmp(IPred::slt, which, m_.I(m_.i32(), static_cast<int64_t>(middle))), /*withElseRegion=*/true);
    mlir::OpBuilder::InsertionGuard guard(m_.b);
    m_.b.setInsertionPointToStart(branch.thenBlock());
    EmitBranches(s, which, begin, middle);
    m_.b.setInsertionPointToStart(branch.elseBlock());
    EmitBranches(s, which, middle, end);
  }

  void EmitWhile(const Step& s) {
    auto loop = m_.b.create<scf::WhileOp>(m_.loc, mlir::TypeRange{}, mlir::ValueRange{});
    mlir::OpBuilder::InsertionGuard guard(m_.b);
    m_.b.createBlock(&loop.getBefore());
    EmitBlock(s, s.blocks[0]);
    Value go = m_.And(m_.Cmp(IPred::ne, LoadSlot(s.slot, m_.i8()), m_.I(m_.i8(), 0)), MayGoOn(s));
    m_.b.create<scf::ConditionOp>(m_.loc, go, mlir::ValueRange{});
    m_.b.createBlock(&loop.getAfter());
    EmitBody(s, s.blocks[1]);
    m_.b.create<scf::YieldOp>(m_.loc);
  }

  Value NoError() {
    Value error = m_.Load(m_.i32(), m_.GepAt(m_.i8(), frame_, kFrameError));
    return m_.Cmp(IPred::eq, error, m_.I(m_.i32(), 0));
  }

  template <class F>
  void IfNoError(const F& emit) {
    auto branch = m_.b.create<scf::IfOp>(m_.loc, NoError(), /*withElseRegion=*/false);
    mlir::OpBuilder::InsertionGuard guard(m_.b);
    m_.b.setInsertionPointToStart(branch.thenBlock());
    emit();
  }

  // Steps of one trip, without those of loops inside, which poll for themselves.
  static int64_t CountSteps(const Steps& steps) {
    int64_t count = 0;
    for (const Step& s : steps) {
      ++count;
      if (s.kind == Step::Kind::kWhile || s.kind == Step::Kind::kFor) continue;
      for (const Steps& block : s.blocks) count += CountSteps(block);
    }
    return count;
  }

  // Whether a loop may begin its next trip. One that cannot fail looks for errors when it polls only. Long trips count
  // for more than one.
  Value MayGoOn(const Step& s) {
    constexpr int64_t kStepsOfATrip = 4;
    int64_t steps = 0;
    for (const Steps& block : s.blocks) steps += CountSteps(block);
    Value place = m_.GepAt(m_.i8(), frame_, kFrameTrips);
    Value trips = m_.ISub(m_.Load(m_.i32(), place), m_.I(m_.i32(), 1 + steps / kStepsOfATrip));
    m_.Store(trips, place);
    Value due = m_.Cmp(IPred::sle, trips, m_.I(m_.i32(), 0));
    auto poll = m_.b.create<scf::IfOp>(m_.loc, mlir::TypeRange{m_.b.getI1Type()}, due, /*withElseRegion=*/true);
    {
      mlir::OpBuilder::InsertionGuard guard(m_.b);
      m_.b.setInsertionPointToStart(poll.thenBlock());
      Value function = m_.Load(m_.ptr(), m_.GepAt(m_.i8(), runtime_, kRuntimePoll));
      auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(m_.b.getContext()), {m_.ptr()});
      m_.b.create<LLVM::CallOp>(m_.loc, type, mlir::ValueRange{function, frame_});
      m_.b.create<scf::YieldOp>(m_.loc, mlir::ValueRange{NoError()});
      m_.b.setInsertionPointToStart(poll.elseBlock());
      m_.b.create<scf::YieldOp>(m_.loc, mlir::ValueRange{s.can_fail ? NoError() : m_.I(m_.b.getI1Type(), 1)});
    }
    return poll.getResult(0);
  }

  void EmitChecked(const Step& s) {
    EmitBlock(s, s.blocks[0]);
    IfNoError([&] { EmitBlock(s, s.blocks[1]); });
  }

  void EmitFor(const Step& s) {
    Value length = m_.Load(m_.i64(), DescAt(s.desc + s.trips));
    auto loop = m_.b.create<scf::WhileOp>(m_.loc, mlir::TypeRange{m_.i64()}, mlir::ValueRange{m_.I64(0)});
    mlir::OpBuilder::InsertionGuard guard(m_.b);
    Value at = m_.b.createBlock(&loop.getBefore(), {}, {m_.i64()}, {m_.loc})->getArgument(0);
    m_.b.create<scf::ConditionOp>(m_.loc, m_.And(m_.Cmp(IPred::slt, at, length), MayGoOn(s)), mlir::ValueRange{at});
    Value i = m_.b.createBlock(&loop.getAfter(), {}, {m_.i64()}, {m_.loc})->getArgument(0);
    Value next = m_.IAdd(i, m_.I64(1));
    if (s.reverse) i = m_.ISub(m_.ISub(length, m_.I64(1)), i);
    for (const Step::Moving& v : s.moving) {
      Value base = m_.Load(m_.ptr(), SlotAt(v.base));
      Value stride = m_.Load(m_.i64(), DescAt(s.desc + v.stride));
      m_.Store(m_.Gep(m_.i8(), base, m_.IMul(i, stride)), SlotAt(v.slot));
    }
    EmitBody(s, s.blocks[0]);
    m_.b.create<scf::YieldOp>(m_.loc, mlir::ValueRange{next});
  }

  mlir::ModuleOp module_;
  const Program& program_;
  const std::vector<LoopPlan>& plans_;
  MlirBuilder m_;
  Value frame_, slots_, desc_, runtime_;
  int parts_ = 0, together_ = 0, by_rows_ = 0;
  int loops_ = 0;  // around the step at hand
  std::unordered_map<const Steps*, int64_t> weights_;
};

}  // namespace

void EmitMain(mlir::ModuleOp module, const Program& program, const std::vector<LoopPlan>& plans) {
  MainEmitter(module, program, plans).Emit();
}

}  // namespace weft
