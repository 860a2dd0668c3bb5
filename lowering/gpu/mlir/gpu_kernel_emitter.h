// Internal to lowering/gpu/*.cc: one kernel on its way to NVPTX.
#ifndef WEFT_LOWERING_GPU_MLIR_GPU_KERNEL_EMITTER_H_
#define WEFT_LOWERING_GPU_MLIR_GPU_KERNEL_EMITTER_H_

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "ir/error.h"
#include "lowering/cpu/mlir/emit_body.h"
#include "lowering/gpu/mlir/emit_gpu_kernel.h"

namespace weft {

// Values are scalars: lane l of a thread is a value of its own, and only loads and stores are vectors.
class GpuKernelEmitter {
 public:
  GpuKernelEmitter(const KernelSpec& spec, const GpuPlan& plan, bool libdevice, mlir::ModuleOp module,
                   const std::string& name);
  void Emit();

 private:
  // What has been computed for (node, group of the row, lane), and how many regions were open around it.
  struct Known {
    Lanes value;
    size_t depth = 0;
  };

  MType Index() { return plan_.wide_index ? m_.i64() : m_.i32(); }
  Value At(int64_t v) { return m_.I(Index(), v); }
  int64_t Size(int v) const { return *spec_.sizes[static_cast<size_t>(v)].TryValue(); }
  bool AcrossMemory() const { return plan_.kind == GpuPlan::Kind::kAcrossMemory; }
  bool IsInner(uint64_t mask) const { return (mask >> spec_.num_outer) != 0; }
  // The lanes of an access or of a node: one when it is the same for all.
  int LanesOf(uint64_t mask) const { return plan_.vector_dim >= 0 && ((mask >> plan_.vector_dim) & 1) ? lanes_ : 1; }

  Value Sreg(const char* name);  // a special register: 32 bits
  void Barrier();
  Value And(Value x, Value y) { return x && y ? m_.And(x, y) : x ? x : y; }  // null: true
  template <class F>
  void If(Value condition, F body) {
    if (!condition) return body();
    auto branch = m_.b.create<scf::IfOp>(m_.loc, condition, /*withElseRegion=*/false);
    mlir::OpBuilder::InsertionGuard guard(m_.b);
    m_.b.setInsertionPointToStart(branch.thenBlock());
    Open();
    body();
    Close();
  }
  void Open() { ++depth_; }
  void Close();

  // Splits a number of a point (a group of lanes counting as one) of dimensions [first, last) into dims_.
  void Decompose(Value number, int first, int last);
  Value ScalarOffset(const Affine& a, int lane);
  Value Offset(const Access& a, int lane);
  Value Pointer(const Access& a, Value offset);

  Lanes Evaluate(int node, int lane);
  Lanes EvaluateHere(int node, int lane);
  Lanes LoadLane(const Access& a, int lane);
  void LoadVector(int node);
  std::vector<Value> LoadTogether(MType element, int64_t count, Value pointer);
  Value Together(std::vector<Value> parts);
  void StoreAll(const std::vector<const KernelStore*>& stores, Value guard);
  // Puts the primitive's name in front of an error of f, and says where the user wrote it.
  template <class F>
  auto Named(const std::string& primitive, Loc loc, F f) {
    try {
      return f();
    } catch (const Error& error) {
      throw Error(error.kind(), primitive + ": " + error.message(), loc);
    }
  }
  // Accumulators; of argmax and argmin they are pairs of a value and its index.
  DType TypeOf(int node) const { return spec_.nodes[static_cast<size_t>(node)].dtype; }
  Lanes Neutral(const KernelNode& n) {
    if (n.FindsIndex()) return body_.NeutralPair(n.op, TypeOf(n.operands[0]), TypeOf(n.operands[1]));
    return body_.Neutral(n.op, n.dtype, 0);
  }
  Lanes Combine(const KernelNode& n, const Lanes& a, const Lanes& b) {
    if (n.FindsIndex()) return body_.CombinePairs(n.op, TypeOf(n.operands[0]), TypeOf(n.operands[1]), a, b);
    return Named("reduce_" + n.op, n.loc, [&] { return body_.Combine(n.op, n.dtype, a, b); });
  }
  // What lane `lane` adds to the accumulator.
  Lanes Contribution(const KernelNode& n, int lane) {
    Lanes v = Evaluate(n.operands[0], lane);
    if (n.FindsIndex()) v.im = Evaluate(n.operands[1], lane).re;
    return v;
  }
  // The reduction's value, of its accumulator.
  Lanes Total(const KernelNode& n, const Lanes& v);
  Lanes CallLibrary(const std::string& op, DType dtype, const std::vector<Lanes>& x);
  Value Native(const std::string& op, const std::vector<Value>& x);
  Value CallDevice(const std::string& function, MType result, const std::vector<Value>& x);

  void Elements();
  void Rows();
  void RunPhase(const std::vector<int>& reductions, const std::vector<const KernelStore*>& stores);
  // Every threads_per_row-th group of [begin, groups), `together` of them in each pass, which divides their number.
  void RowLoop(Value begin, int64_t groups, int together, const std::vector<int>& reductions,
               const std::vector<const KernelStore*>& stores, std::vector<std::vector<Lanes>>* sums);
  // One group of the row: adds to the accumulators (by reduction, by lane; null: nothing yet) and writes the stores.
  void Group(const std::vector<int>& reductions, const std::vector<const KernelStore*>& stores, Value guard,
             std::vector<std::vector<Lanes>>* sums);
  // Between the threads of a row; all of them get the totals.
  void CombineThreads(const std::vector<int>& reductions, std::vector<std::vector<Lanes>>* sums);
  Lanes CombineWarp(const KernelNode& n, Lanes v, int64_t width);
  Value Shuffle(Value v, int64_t distance);
  // An array in shared memory; an array of accumulators is one, or of pairs two.
  struct Cell {
    int64_t start;  // bytes
    DType dtype;
  };
  using Cells = std::vector<Cell>;
  Cells NewCells(const KernelNode& n, int64_t count);
  void StoreShared(const Cells& cells, Value index, Lanes v);
  Lanes LoadShared(const Cells& cells, Value index);
  void StoreCell(Cell cell, Value index, Lanes v);
  Lanes LoadCell(Cell cell, Value index);
  Value SharedAddress(Cell cell, Value index);

  const KernelSpec& spec_;
  const GpuPlan& plan_;
  const bool libdevice_;
  mlir::ModuleOp module_;
  const std::string name_;
  MlirBuilder m_;
  BodyEmitter body_;
  std::vector<uint64_t> dependence_;
  std::vector<int> phases_;
  std::vector<Value> pointers_, dims_;
  std::map<std::tuple<int, int, int>, Known> known_;
  size_t depth_ = 0;
  int lanes_ = 1;
  int group_ = -1;  // of the row, while it is unrolled
  Value thread_, block_;
  Value row_thread_, row_in_block_, row_guard_;  // guard: null where every row exists
  Value shared_;
  int64_t shared_used_ = 0;
};

}  // namespace weft
#endif  // WEFT_LOWERING_GPU_MLIR_GPU_KERNEL_EMITTER_H_
