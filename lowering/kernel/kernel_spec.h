// One fused group as a loop nest over a rectangular domain: what the emitters (CPU, GPU) turn into one kernel.
//
// The domain has `num_outer` independent dimensions, then reduced ones. Nodes are in topological order; a node's value
// is defined for every point of the domain dimensions it depends on. A reduction combines its operand over the inner
// dimensions, and its value may be used by later nodes (softmax: max, then exp and sum, then divide); the emitter runs
// the inner loops once per phase.
//
// A kernel may instead be one sum in a fixed order (transforms/shard/deterministic.h): a reduction `tree`, of its
// operand or of the product of its two operands, which are f64 or c128. The first reduced dimension counts its leaves.
// Each is added up over the other reduced dimensions, the last one fastest, and rounded to the reduction's dtype; then
// the leaves are added up in a binary tree.
#ifndef WEFT_LOWERING_KERNEL_KERNEL_SPEC_H_
#define WEFT_LOWERING_KERNEL_KERNEL_SPEC_H_

#include <optional>
#include <string>
#include <vector>

#include "ir/attr.h"
#include "ir/tensor.h"
#include "lowering/kernel/affine.h"

namespace weft {

// Where an element lies in one of the kernel's buffers.
struct Access {
  int operand = 0;  // index of the buffer among the kernel's operands
  DType dtype = DType::kF32;
  Affine offset;  // in elements
  // Data-dependent parts: clamp(value of node, 0, limit) * stride.
  struct Dynamic {
    int node = 0;
    Dim stride;
    Dim limit;
  };
  std::vector<Dynamic> dynamic;
};

struct KernelNode {
  enum class Kind { kLoad, kLiteral, kIndex, kOp, kReduce };
  Kind kind = Kind::kOp;
  DType dtype = DType::kF32;
  Access access;   // kLoad
  Tensor literal;  // kLiteral: rank 0
  Affine index;    // kIndex: the value, converted to dtype
  // kOp: name of an element-wise primitive; kReduce: sum prod max min and or; argmax argmin (for GPUs), of two
  // operands, values and their indices, of which it gives the least of those with the extreme value; or tree (above).
  std::string op;
  std::vector<int> operands;
  // integer_pow: y; round: 0 even, 1 away; log: 1 by the library; add, sub: 1 fused. Of a reduction its lanes
  // (LanesOfReduction in ir/prims/reduction_order.h), of which the last reduced dimension is the one that goes into
  // lanes.
  int64_t integer = 0;
  Loc loc;  // of the equation, for errors; not part of Key

  // Kernels call reductions what they are called in the text form: argmax, argmin.
  bool FindsIndex() const { return kind == Kind::kReduce && op.starts_with("arg"); }
  // Of kOp: floating-point operations per element (Prim::work).
  double Work() const;
};

struct KernelStore {
  int node = 0;
  Access access;
  // Written past the caches: larger than they are, aligned, and never read by this kernel.
  bool streamed = false;
};

struct KernelSpec {
  std::vector<Dim> sizes;  // of the domain; outer dimensions first
  int num_outer = 0;
  std::vector<KernelNode> nodes;
  std::vector<KernelStore> stores;
  // Nodes written to memory in their phase and read back in later ones instead of being computed again.
  std::vector<KernelStore> spills;
  int num_operands = 0;
  std::vector<bool> written;  // per operand
  // Of a domain of one dimension: units are whole rows of so many elements (lowering/kernel/row_units.h); 0: any.
  int64_t row = 0;

  // The node of the sum in a fixed order that this kernel is, -1 when it is none.
  int Tree() const;
  // What LanesOfReduction says of the reductions here: the most of any.
  int64_t ReductionLanes() const;
  // Operands that are read or written at all.
  std::vector<bool> Touched() const;
  // Which domain dimensions each node's value depends on, as bit masks.
  std::vector<uint64_t> Dependence() const;
  // The loop pass in which each node is first available (a reduction: in which it is accumulated).
  std::vector<int> Phases() const;
  // The last loop pass in which each node may be computed (again).
  std::vector<int> LastPhases() const;
  // Equal keys compile to the same code. Symbolic sizes are named by their order of occurrence.
  std::string Key() const;
  // The distinct symbolic sizes in use, in order of first occurrence; their values follow the slots in descriptors.
  std::vector<Dim> SymbolicSizes() const;
  // Replaces loop variable v by replacement[v] everywhere.
  void Substitute(const std::vector<Affine>& replacement);
  // Removes nodes that no store needs.
  void DropDeadNodes();
  // Merges loops that every access walks as one.
  void Collapse();
  // A rough cost in nanoseconds of one point of the domain, on one thread with vectors.
  double PointCost() const;
  // The same of the whole domain, of which each node costs once per value that it has: what follows a reduction, once
  // per row. Nothing where sizes are symbolic.
  std::optional<double> Nanoseconds() const;
  std::string ToString() const;
};

}  // namespace weft
#endif  // WEFT_LOWERING_KERNEL_KERNEL_SPEC_H_
