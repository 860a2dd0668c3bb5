// From a fused group (or any value to be written somewhere) to a KernelSpec.
#ifndef WEFT_LOWERING_FUSION_KERNEL_BUILD_H_
#define WEFT_LOWERING_FUSION_KERNEL_BUILD_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lowering/fusion/fusion.h"
#include "lowering/kernel/kernel_spec.h"

namespace weft {

// A kernel and which buffers its operands are.
struct BuiltKernel {
  KernelSpec spec;
  struct Operand {
    bool is_literal = false;
    uint32_t root = 0;       // variable with a buffer
    Atom literal;            // an array literal
    bool is_target = false;  // the buffer that the caller names when it asks for a store
    bool is_staged = false;  // the buffer into which the caller has put the value before
  };
  std::vector<Operand> operands;
};

// What of a contraction in a fixed order a kernel computes: all of it; of each result all leaves, [leaf, result...]; or
// the results from those.
enum class OrderedPart : uint8_t { kWhole, kLeaves, kTotal };

class KernelBuilder {
 public:
  KernelBuilder(const Fn& fn, const BlockPlan& plan) : fn_(fn), plan_(plan) {}

  // The kernel of group `unit`.
  BuiltKernel Group(int unit);
  // target[offset(i)] = value[i + from] for every index i of `space`, where `value` is anything with a meaning (view,
  // inline or stored value, literal; rank 0 repeats) and
  // (staged: the value has been put, densely, into a buffer that the caller names)
  // offset = start + sum i_d * strides[d] + sum clamp(starts[k], 0, limit[k]) * dynamic_strides[k].
  struct DynamicStart {
    Atom start;
    Dim limit, stride;
  };
  BuiltKernel Copy(const Atom& value, const Dims& space, Dim start, const std::vector<Dim>& strides,
                   const std::vector<DynamicStart>& dynamic = {}, const std::vector<Dim>& from = {},
                   bool staged = false);

  // A `contract` with the attributes `along` and `leaf`, or `part` of it, into a target. Read from a staged buffer: for
  // kTotal the leaves, else operand `staged`, which lies there with its dimensions in the order of `staged_letters`.
  BuiltKernel OrderedSum(const Eqn& e, OrderedPart part, int staged = -1, const std::string& staged_letters = "");

 private:
  int Node(KernelNode node);
  int Operand(uint32_t root);
  int Value(const Atom& a, const std::vector<Affine>& index);
  int ViewValue(int eqn, const std::vector<Affine>& index);
  int Elementwise(int eqn, const std::vector<Affine>& index);
  int Member(int eqn);
  int ArgReduction(const Eqn& e, const std::vector<Affine>& index);
  // Of views that have no index map, as rows of lowering/ops/op_table.cc name them.
  friend class OpTable;
  int IotaValue(int eqn, const std::vector<Affine>& index);
  int DimSizeValue(int eqn, const std::vector<Affine>& index);
  int GatherValue(int eqn, const std::vector<Affine>& index);
  int DynamicSliceValue(int eqn, const std::vector<Affine>& index);
  Affine FlatOffset(const Dims& dims, const std::vector<Affine>& index);
  void ChooseSpills();

  const Fn& fn_;
  const BlockPlan& plan_;
  BuiltKernel out_;
  int unit_ = -1;
  std::vector<int> position_;  // group dimension -> loop
  std::map<std::pair<uint32_t, std::string>, int> memo_;
  std::map<std::string, int> literals_;
};

}  // namespace weft
#endif  // WEFT_LOWERING_FUSION_KERNEL_BUILD_H_
