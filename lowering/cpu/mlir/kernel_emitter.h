// Internal to lowering/cpu/emit_kernel.cc, emit_in_order.cc, emit_memory.cc, emit_strips.cc and emit_tree.cc: one
// kernel on its way to MLIR.
#ifndef WEFT_LOWERING_CPU_MLIR_KERNEL_EMITTER_H_
#define WEFT_LOWERING_CPU_MLIR_KERNEL_EMITTER_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/error.h"
#include "lowering/cpu/mlir/builder.h"
#include "lowering/cpu/mlir/emit_body.h"
#include "lowering/kernel/kernel_spec.h"
#include "lowering/kernel/loop_plan.h"

namespace weft {

class KernelEmitter {
 public:
  KernelEmitter(const KernelSpec& spec, const LoopPlan& plan, const Target& target, MlirBuilder& m)
      : spec_(spec),
        plan_(plan),
        target_(target),
        m_(m),
        body_(m, [this](const std::string& op, DType dtype, const std::vector<Lanes>& x,
                        DType result) { return CallLibrary(op, dtype, x, result); }),
        dependence_(spec.Dependence()),
        after_reduction_(spec.nodes.size(), false),
        phases_(spec.Phases()),
        symbols_(spec.SymbolicSizes()),
        dims_(spec.sizes.size()),
        memo_(spec.nodes.size() * static_cast<size_t>(plan.rows)),
        tree_(spec.Tree()) {
    for (size_t i = 0; i < spec.nodes.size(); ++i) {
      after_reduction_[i] = spec.nodes[i].kind == KernelNode::Kind::kReduce;
      for (int o : spec.nodes[i].operands) after_reduction_[i] = after_reduction_[i] || after_reduction_[o];
      for (const auto& d : spec.nodes[i].access.dynamic)
        after_reduction_[i] = after_reduction_[i] || after_reduction_[d.node];
    }
  }

  void Emit(LLVM::LLVMFuncOp function);

 private:
  struct Loop {
    uint64_t dims = 0;              // the domain dimensions whose value this loop sets
    mlir::Operation* op = nullptr;  // code of the levels outside is put before it
  };
  struct Memo {
    Lanes value;
    int level = -1;  // valid while this many loops are open; -1: none
  };

  Value Size(const Dim& d) {
    if (d.is_static()) return m_.I64(*d.TryValue());
    for (size_t i = 0; i < symbols_.size(); ++i) {
      if (symbols_[i] == d) return symbol_values_[i];
    }
    WEFT_CHECK(false) << "kernel: size " << d << " is not among its parameters";
    return {};
  }

  Memo& MemoOf(int node) {
    const bool of_row = plan_.row_dim >= 0 && ((dependence_[node] >> plan_.row_dim) & 1);
    return memo_[(of_row ? static_cast<size_t>(row_) * spec_.nodes.size() : 0) + static_cast<size_t>(node)];
  }
  bool IsVector(uint64_t mask) const { return plan_.lanes > 0 && ((mask >> plan_.vector_dim) & 1); }
  int LevelOf(uint64_t mask) const {
    int level = 0;
    for (size_t l = 0; l < loops_.size(); ++l) {
      if (loops_[l].dims & mask) level = static_cast<int>(l) + 1;
    }
    return level;
  }
  // Runs f with the insertion point in the innermost place where `level` loops are open.
  template <class F>
  auto AtLevel(int level, F f) {
    if (level == static_cast<int>(loops_.size())) return f();
    mlir::OpBuilder::InsertionGuard guard(m_.b);
    m_.b.setInsertionPoint(loops_[level].op);
    return f();
  }

  Value ScalarOffset(const Affine& a, bool with_vector_dim);
  struct Address {
    Value base;   // scalar part, elements
    Value lanes;  // vector part (i64 lanes), null when none
    bool contiguous = false;
    bool reversed = false;  // the lanes go down one element at a time
  };
  Address Locate(const Access& a);
  Lanes Evaluate(int node);
  Lanes EvaluateHere(int node);
  int Beside(int node);
  Lanes LoadHere(const Access& a);
  Value LoadInOrder(MType element, Value pointer, int64_t stride, int64_t first, llvm::function_ref<Value()> by_lane);
  std::optional<int64_t> GapBefore(const Access& a) const;
  Lanes ReadVector(const Access& a, Value pointer);
  Value ReadMasked(MType raw, Value pointer, Value behind);
  std::vector<Lanes> ReadGuarded(const std::vector<Access>& accesses);
  void Prefetch(const std::vector<int>& roots);
  void CollectLoads(int node, std::vector<bool>& seen, std::vector<int>& loads);
  void StoreAll(const std::vector<const KernelStore*>& stores);
  Lanes CallLibrary(const std::string& op, DType dtype, const std::vector<Lanes>& x, DType result);

  void OpenLoop(scf::ForOp loop, uint64_t dims);
  void CloseLoop();
  void UnitBody();
  void TileBody();
  void TransposeIntoScratch(int node);
  // What one pass over the inner loops does.
  struct Pass {
    int phase = 0;
    std::vector<int> reductions;
    std::vector<const KernelStore*> stores;
  };
  // Part of a reduced dimension, and the accumulators before it: neutral if there are none.
  struct Stretch {
    int dim = 0;
    Value begin, end, step;  // no end: of one element
    std::vector<Lanes> sums;
  };
  std::vector<const KernelStore*> RowStores() const;
  std::vector<Pass> Passes(const std::vector<const KernelStore*>& rows) const;
  void OpenVectorLoop(Value begin, Value end);
  void CloseVectorLoop();
  void Phases();
  void StoreRows(const std::vector<const KernelStore*>& rows);
  void RunPhase(const Pass& pass, const Stretch* stretch = nullptr);
  // lowering/cpu/emit_in_order.cc
  void RunPass(const Pass& pass);
  void RunInLanes(const Pass& pass, int64_t lanes);
  // How the lanes of a vector are taken in: each into its own sum; into one sum, one after the other; or each into one
  // of more sums than a vector has lanes, which are in memory.
  enum class TakesIn : uint8_t { kLanes, kOneByOne, kMemory };
  TakesIn HowToTakeIn(int reduction) const;
  Lanes OneByOne(const KernelNode& n, Lanes sum, const Lanes& v);
  Lanes ByHalves(const KernelNode& n, std::vector<Lanes> sums);
  // The accumulators in memory from that place on.
  void ClearKept(int reduction);
  Lanes FoldKept(int reduction, int64_t vectors);
  // lowering/cpu/emit_strips.cc
  void Strips(Value begin, Value end);
  // Accumulators in memory, an array of so many elements for each reduction.
  void KeepSum(int reduction, Value at, const Lanes& sum, int64_t elements);
  Lanes KeptSum(int reduction, Value at);
  // lowering/cpu/emit_tree.cc
  void PlaceRows();
  void SelectRow(int row);
  void TreeBody();
  std::vector<Lanes> Leaf();
  Lanes AddTerm(const Lanes& sum);
  bool IsNarrow(int node) const;
  void TouchNextRow();
  Lanes Horizontal(const KernelNode& n, Lanes v);
  const KernelStore* SpillOf(int node) const {
    for (const KernelStore& s : spec_.spills) {
      if (s.node == node) return &s;
    }
    return nullptr;
  }
  bool IsInner(uint64_t mask) const { return (mask >> spec_.num_outer) != 0; }
  bool NativeMask(DType t) const {
    const int bytes = ByteWidth(t);
    return target_.vector_bytes >= 32 && (bytes >= 4 || target_.masked_bytes);
  }
  Value Pointer(int operand) { return pointers_[operand]; }
  Value Alloca(MType type) {
    mlir::OpBuilder::InsertionGuard guard(m_.b);
    m_.b.setInsertionPointToStart(entry_);
    return m_.b.create<LLVM::AllocaOp>(m_.loc, m_.ptr(), type, m_.I64(1), 64).getResult();
  }
  // Scratch memory for one raw vector, reused by everybody of the same type and role.
  Value Scratch(MType type, int role) {
    auto [it, inserted] = scratch_.try_emplace({type.getAsOpaquePointer(), role});
    if (inserted) it->second = Alloca(type);
    return it->second;
  }
  void Memcpy(Value to, Value from, Value bytes) {
    m_.b.create<LLVM::MemcpyOp>(m_.loc, to, from, bytes, /*isVolatile=*/false);
  }

  const KernelSpec& spec_;
  const LoopPlan& plan_;
  const Target& target_;
  MlirBuilder& m_;
  BodyEmitter body_;
  std::vector<uint64_t> dependence_;
  // Uses the value of a reduction, so exists only inside of the loops over outer dimensions.
  std::vector<bool> after_reduction_;
  std::vector<int> phases_;
  std::vector<Dim> symbols_;
  std::vector<Value> symbol_values_, pointers_, dims_;
  std::vector<Memo> memo_;  // of the nodes, then of what the second row has for itself, and so on
  const int tree_;          // the sum in a fixed order, -1 in other kernels
  int row_ = 0;             // of a unit's rows: the current one, and where each is
  std::vector<Value> row_places_;
  std::vector<Loop> loops_;
  mlir::Block* entry_ = nullptr;
  Value math_table_;
  int current_phase_ = 0;
  // Set inside the vector loop when it may end in part of a vector.
  Value full_, mask_, remaining_;
  // Tiles of transposed reads: where the current one begins, and their transposed squares by node.
  Value tile_base_;
  bool streams_ = false;  // wrote past the caches
  std::map<int, Value> squares_;
  std::map<int, std::vector<Value>> kept_sums_;  // in memory: an array, two of complex numbers, by reduction
  std::map<std::pair<const void*, int>, Value> scratch_;
};

}  // namespace weft
#endif  // WEFT_LOWERING_CPU_MLIR_KERNEL_EMITTER_H_
