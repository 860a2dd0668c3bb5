// How each primitive becomes a program: a row each, found by the primitive's number. What lowering wants to know of an
// operation stands here, and nothing in lowering/ asks for its name.
//
// Kinds of rows:
//   inlined      region 0 (or `body`) takes its place before scheduling
//   replaced     other equations take its place before scheduling (`replace`)
//   element-wise, reduction, arg reduction: computed in kernels
//   view         read through an index map (`index`), or as `value` says
//   step         steps of the schedule (`emit`), which may be a call of the runtime (`library`)
#ifndef WEFT_LOWERING_OPS_OP_TABLE_H_
#define WEFT_LOWERING_OPS_OP_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/prim.h"
#include "lowering/fusion/kernel_build.h"
#include "lowering/kernel/affine.h"
#include "lowering/schedule/block_lowering.h"

namespace weft {

struct OpRow {
  enum class Kind : uint8_t { kNone, kInlined, kReplaced, kElementwise, kReduction, kArgReduction, kView, kStep };
  // What fusion knows of the operands of a step that is no element-wise operation, reduction or view.
  enum class Operands : uint8_t {
    kStored,    // have buffers
    kComputed,  // may be computed by the kernels that write the result
    kFirst,     // the first one has a buffer, others may be computed
    kProduct,   // are read behind views
    kMoved,     // are read behind views that move elements alone (transposes, slices), where the library takes strides
  };
  using Body = const FnRef& (*)(const Eqn& e);
  using Replace = Atoms (*)(Builder& b, const Fn& fn, const Eqn& e, const Atoms& operands);
  using Index = std::vector<Affine> (*)(const Fn& fn, const Eqn& e, const std::vector<Affine>& index);
  using Value = int (KernelBuilder::*)(int eqn, const std::vector<Affine>& index);
  using Number = int64_t (*)(const Attrs& attrs);
  using Emit = void (BlockLowering::*)(Schedule::Steps& steps, const Eqn& e);
  using Library = void (*)(BlockLowering::LibraryCall& call, int kind);

  Kind as = Kind::kNone;
  Body body = nullptr;  // of an inlined one: another region than the first
  Replace replace = nullptr;
  std::string kernel_op{};  // what kernels call it: "add"; of reductions "sum"
  Number number = nullptr;  // of an element-wise operation: what its attributes say to the kernel
  bool identity = false;    // of an element-wise operation: the result is the operand
  Index index = nullptr;    // of a view, or else:
  Value value = nullptr;    // the kernel's node for an element
  bool at_data = false;     // of a view: element positions are computed
  bool same_bytes = false;  // of a view: the operand's elements in the same order, so that it may be an alias
  Emit emit = nullptr;
  Library library = nullptr;
  int kind = 0;  // of the library call or collective, as lowering/abi/steps.h numbers them
  Operands operands = Operands::kStored;
  bool on_gpu = false;  // there is GPU code
};

// Of every registered primitive; tests check that none is without.
const OpRow& RowOf(const Prim& prim);

}  // namespace weft
#endif  // WEFT_LOWERING_OPS_OP_TABLE_H_
