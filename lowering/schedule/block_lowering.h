// Internal to lowering/: puts one function body after another (regions recursively) into a schedule.
#ifndef WEFT_LOWERING_SCHEDULE_BLOCK_LOWERING_H_
#define WEFT_LOWERING_SCHEDULE_BLOCK_LOWERING_H_

#include <utility>
#include <vector>

#include "lowering/fusion/kernel_build.h"
#include "lowering/schedule/schedule.h"
#include "lowering/schedule/schedule_builder.h"

namespace weft {

// A body's steps. Lives while the body is laid out.
class BlockLowering {
 public:
  using Steps = Schedule::Steps;
  class LibraryCall;
  // `params`: the value of each parameter. `dest`: the value that each result is copied to. It may be that of a
  // parameter (a loop's carry).
  BlockLowering(ScheduleBuilder& schedule, const Fn& fn, std::vector<int> params, std::vector<int> dest)
      : p_(schedule),
        fn_(fn),
        params_(std::move(params)),
        dest_(std::move(dest)),
        plan_(Fuse(fn, schedule.policy)),
        defining_(DefiningEqns(fn)) {}
  // Before Run: the function is the body of spmd, so that results are read where they are put together, and only from
  // the first device that holds them.
  void ReturnsBlocks() { returns_blocks_ = true; }
  // Before Run: what symbolic sizes have to be is checked before the program starts.
  void SizesAreChecked() { sizes_are_checked_ = true; }
  void Run(Steps& steps);

 private:
  void Traced(Steps& steps);
  friend class OpTable;
  const Eqn& eqn(int i) const { return fn_.eqns()[i]; }
  void RunUnits(Steps& steps);
  int ValueOf(const Atom& a);  // of a stored variable or literal
  int ValueOfRoot(uint32_t root) const;
  int NewResult(uint32_t var);  // the value for result `var` of the current unit
  void CopyResults(Steps& steps);
  void EmitGroup(Steps& steps, int unit);
  // Which operands a kernel reads only where, and when, it writes a result.
  std::vector<Schedule::MayShare> InPlace(const BuiltKernel& kernel, const std::vector<int>& values) const;
  void EmitOpaque(Steps& steps, int unit);
  void EmitWrite(Steps& steps, const BuiltKernel& kernel, int target, int staged = -1,
                 const std::vector<Schedule::MayShare>& may_share = {});
  void EmitConcatenate(Steps& steps, const Eqn& e);
  void EmitPad(Steps& steps, const Eqn& e);
  void EmitDynamicUpdate(Steps& steps, const Eqn& e);
  void EmitCond(Steps& steps, const Eqn& e);
  void EmitScan(Steps& steps, const Eqn& e);
  // lowering/schedule/functions.cc
  void EmitRecursive(Steps& steps, const Eqn& e);
  void EmitRecur(Steps& steps, const Eqn& e);
  void EmitFunctionCall(Steps& steps, const Eqn& e, int function);
  void EmitBox(Steps& steps, const Eqn& e);
  void EmitUnbox(Steps& steps, const Eqn& e);
  // lowering/schedule/devices.cc
  void EmitSpmd(Steps& steps, const Eqn& e);
  std::vector<bool> DonatedOperands(const Eqn& e) const;
  void EmitCollective(Steps& steps, const Eqn& e);
  void EmitAxisIndex(Steps& steps, const Eqn& e);
  // Of an axis that `e` names, in the mesh whose devices run it.
  int64_t PlaceInMesh(const Eqn& e, const std::string& axis) const;
  // lowering/schedule/tape_loops.cc
  void EmitWhile(Steps& steps, const Eqn& e);
  void EmitTapeScan(Steps& steps, const Eqn& e);
  std::vector<int> NewTapes(Steps& steps, const Eqn& e, size_t first_row, const Types& rows, const Ints& lanes,
                            int trips, const Dim& num_trips);
  std::vector<int> EmitRows(Steps& body, const std::vector<int>& tapes, const Types& rows, int counter, bool reverse);
  // Tapes that an iteration of `body` makes and does not pass on are freed at its end. The value of the mark, or -1.
  int BeginTapeScope(Steps& steps, const Fn& body);
  void EndTapeScope(Steps& steps, int mark);
  // lowering/schedule/library_ops.cc
  void EmitLibrary(Steps& steps, const Eqn& e);
  void EmitTapeAdd(Steps& steps, const Eqn& e);
  void EmitSameBytes(Steps& steps, const Eqn& e);  // the operand's, as another type
  void EmitProduct(Steps& steps, const Eqn& e);
  void EmitContract(Steps& steps, const Eqn& e);
  // lowering/schedule/ordered_sum.cc
  void EmitOrderedSum(Steps& steps, const Eqn& e);
  abi::Array<InSchedule> ArrayOf(const Atom& a);  // an operand
  // The carries of a loop, with the operands copied there.
  std::vector<int> Carries(Steps& steps, const Eqn& e, size_t first, size_t count);
  std::vector<int> OperandValues(const BuiltKernel& kernel, int target, int staged = -1);

  ScheduleBuilder& p_;
  const Fn& fn_;
  std::vector<int> params_, dest_;
  bool returns_blocks_ = false;
  bool sizes_are_checked_ = false;
  BlockPlan plan_;
  std::vector<int> defining_;
  std::vector<int> value_;    // by root variable
  std::vector<int> readers_;  // by root variable: units and results that read it
};

}  // namespace weft
#endif  // WEFT_LOWERING_SCHEDULE_BLOCK_LOWERING_H_
