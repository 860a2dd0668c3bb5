// Internal to lowering/**.cc: lays out one function body after another (regions recursively) into a Program.
#ifndef WEFT_LOWERING_SCHEDULE_BLOCK_LOWERING_H_
#define WEFT_LOWERING_SCHEDULE_BLOCK_LOWERING_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "lowering/fusion/kernel_build.h"
#include "lowering/schedule/schedule.h"

namespace weft {

// Slots, buffers, constants and desc entries of the program under construction.
class ProgramBuilder {
 public:
  ProgramBuilder(const Fn& fn, const FusionPolicy& policy, const std::vector<bool>& donated);
  Program Finish();

  Program program;
  const FusionPolicy& policy;

  SizeExpr Size(const Dim& d);
  int64_t AddDesc(const std::vector<Dim>& entries);
  int NewSlot(Artifact::Place place, int64_t index);
  int NewArena(const Type& type);
  // Result `i` is left in the memory of the donated parameter of `slot`.
  void ResultInParam(int i, int slot);
  // A donated parameter's memory is written.
  void UsesDonated(int slot);
  int ConstantSlot(const Tensor& t);
  int AddString(const std::string& text);
  // The step being laid out is `pos`: slot `s` must hold its value there.
  void Use(int slot);
  bool IsArena(int slot) const { return program.artifact.slots[slot].place == Artifact::Place::kArena; }
  int Position() const { return position_; }
  void NextPosition() { ++position_; }
  // Buffers made before `begin` that a loop ending now reads live until its end.
  void EndLoop(int begin);

  int AddKernel(const KernelSpec& spec);  // deduplicated
  void EmitKernel(Steps& steps, const KernelSpec& spec, const std::vector<int>& slots);
  void EmitOp(Steps& steps, WeftOpcode op, const std::vector<Dim>& desc, const std::vector<int>& slots);
  void EmitCopy(Steps& steps, int to, int from, const Type& type);
  void Log(const std::string& line);
  int indent = 0;

  // Recursive functions (lowering/schedule/functions.cc): between the two calls, slots, buffers and positions are the
  // function's. Gives its index in Artifact::functions.
  int BeginFunction(const std::string& name);
  void EndFunction(int index, Steps steps);
  // The index of a function that has been laid out, for another call of it. (One that calls a function around it, or
  // communicates over a mesh around it, is laid out where it is called.)
  std::optional<int> FunctionOf(const FnRef& fn) const;
  void RememberFunction(const FnRef& fn, int index);
  // The function that recur[depth] calls.
  int Enclosing(int64_t depth) const;

  // The mesh whose devices run what is being laid out; null outside of one.
  void PushMesh(const Mesh& mesh) { meshes_.push_back(mesh); }
  void PopMesh() { meshes_.pop_back(); }
  const Mesh* CurrentMesh() const { return meshes_.empty() ? nullptr : &meshes_.back(); }

 private:
  struct Saved {
    std::vector<Artifact::Slot> slots;
    std::vector<Artifact::Buffer> buffers;
    std::map<std::string, int> constants;
    int position = 0;
  };
  std::vector<Saved> saved_;
  std::vector<int> enclosing_;
  // Held: the body for the devices of a mesh is dropped once it is laid out, and another may get its address.
  std::unordered_map<FnRef, int> functions_;
  std::vector<Mesh> meshes_;
  std::vector<std::string> symbols_;
  std::unordered_map<std::string, int> kernels_;
  std::map<std::string, int> constants_;
  int position_ = 0;
};

// A body's layout. Lives while the body is laid out.
class BlockLowering {
 public:
  class LibraryCall;
  // `params`: the slot of each parameter. `dest`: where each result has to go (-1: anywhere). A destination may be the
  // slot of a parameter (a loop's carry): it is written early only when nobody reads the old value any more.
  BlockLowering(ProgramBuilder& program, const Fn& fn, std::vector<int> params, std::vector<int> dest)
      : p_(program),
        fn_(fn),
        params_(std::move(params)),
        dest_(std::move(dest)),
        plan_(Fuse(fn, program.policy)),
        defining_(DefiningEqns(fn)) {}
  // Before Run: the memory of parameter `param` may be overwritten, and may become that of a result.
  void Donate(int param);
  // Before Run: the function is the body of spmd, so that results are read where they are put together, and only from
  // the first device that holds them.
  void ReturnsBlocks() { returns_blocks_ = true; }
  // Before Run: what symbolic sizes have to be is checked before the program starts.
  void SizesAreChecked() { sizes_are_checked_ = true; }
  // The slots of the results.
  std::vector<int> Run(Steps& steps);

 private:
  friend class OpTable;
  const Eqn& eqn(int i) const { return fn_.eqns()[i]; }
  std::vector<int> RunUnits(Steps& steps);
  int SlotOf(const Atom& a);  // of a stored value or literal
  void FinishUnit(int unit);
  // The slot for result `var` of the current unit. `may_hold`: slots that the unit reads and may overwrite.
  int ResultSlot(uint32_t var, const std::vector<int>& may_hold);
  // Whether nobody but the current unit reads slot `s` from now on.
  bool OnlyThisUnitReads(int s) const;
  // A donated parameter for `var`: as the home of a result, or as room for a value that dies. -1: none.
  int DonatedHome(uint32_t var, const std::vector<int>& reusable);
  int DonatedRoom(const Dim& bytes) const;
  void WantInPlace();
  void EmitGroup(Steps& steps, int unit);
  void StreamLargeResults(KernelSpec& spec, const std::vector<int>& slots);
  void EmitOpaque(Steps& steps, int unit);
  void EmitWrite(Steps& steps, const BuiltKernel& kernel, int target, int staged = -1);
  void EmitConcatenate(Steps& steps, const Eqn& e);
  void EmitPad(Steps& steps, const Eqn& e);
  void EmitDynamicUpdate(Steps& steps, const Eqn& e);
  void EmitCond(Steps& steps, const Eqn& e);
  void EmitScan(Steps& steps, const Eqn& e);
  // lowering/schedule/functions.cc
  void EmitRecursive(Steps& steps, const Eqn& e);
  void EmitRecur(Steps& steps, const Eqn& e);
  void EmitCall(Steps& steps, const Eqn& e, int function);
  void EmitBox(Steps& steps, const Eqn& e);
  void EmitUnbox(Steps& steps, const Eqn& e);
  // lowering/schedule/devices.cc
  void EmitSpmd(Steps& steps, const Eqn& e);
  void EmitCollective(Steps& steps, const Eqn& e);
  // lowering/schedule/tape_loops.cc
  void EmitWhile(Steps& steps, const Eqn& e);
  void EmitTapeScan(Steps& steps, const Eqn& e);
  std::vector<int> NewTapes(Steps& steps, const Eqn& e, size_t first_row, const Types& rows, const Ints& lanes,
                            int trips, const Dim& num_trips);
  std::vector<int> EmitRowSlots(Steps& body, const std::vector<int>& tapes, int counter, bool reverse);
  // Tapes that an iteration of `body` makes and does not pass on are freed at its end. The slot of the mark, or -1.
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
  void AppendTensor(std::vector<Dim>& desc, const Atom& a);
  // The carries of a loop: where they live, with the operands copied there.
  std::vector<int> CarrySlots(Steps& steps, const Eqn& e, size_t first, size_t count);
  std::vector<int> OperandSlots(const BuiltKernel& kernel, int target, int staged = -1);
  ProgramBuilder& p_;
  const Fn& fn_;
  std::vector<int> params_, dest_;
  bool returns_blocks_ = false;
  bool sizes_are_checked_ = false;
  BlockPlan plan_;
  std::vector<int> defining_;
  std::vector<int> slot_;             // by root variable
  std::map<int, int> readers_;        // slot -> units yet to finish, and results, that read it
  std::map<int, int> current_reads_;  // slot -> times among the current unit's reads
  std::vector<int> value_readers_;    // by root variable: what the value adds to the readers of its slot
  std::vector<int> wanted_;           // by root variable: destination, -1 none
  std::set<int> owned_;               // slots that this block may overwrite: arena slots made in it, donated parameters
  std::map<int, Dim> donated_;        // slots of donated parameters, and their bytes
  std::set<int> homes_;               // of these, the ones that hold a result
};

}  // namespace weft
#endif  // WEFT_LOWERING_SCHEDULE_BLOCK_LOWERING_H_
