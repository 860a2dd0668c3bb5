// Fusion: which equations of one function body become one kernel, and why others do not.
//
// Views (broadcast, transpose, slice, reverse, iota, splitting reshapes, gathers) are never computed: whoever reads one
// reads the array behind it through an index map. Cheap element-wise results are recomputed by each reader. What is
// left is put, in program order, into the group of one of its operands when `Joinable` has no objection.
#ifndef WEFT_LOWERING_FUSION_FUSION_H_
#define WEFT_LOWERING_FUSION_FUSION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/fn.h"
#include "lowering/kernel/affine.h"
#include "lowering/schedule/in_schedule.h"

namespace weft {

struct FusionPolicy {
  int max_members = 192;          // equations of a group; register pressure and compile time grow with it
  int max_passes = 8;             // over a row; the time to compile a kernel grows faster than their number
  int max_inline_cost = 4;        // simple operations that every reader may repeat
  int max_viewed_cost = 64;       // the same of a value read once, with what it reads through views
  int64_t min_parallel_rows = 8;  // rows below which a large row keeps a reduction's users out of its group
  int64_t large_row = 32768;
  bool fuse = true;             // false: one equation, one kernel (to see what fusion brings)
  bool arg_reductions = false;  // argmax and argmin are kernels; without it they are calls of the runtime
  // No kernel writes memory that it reads, as GPU kernels promise of their arguments; what a later pass over a row
  // needs stays in registers or is computed again.
  bool distinct_buffers = false;

  // Each setting: what two policies differ in.
  template <class F>
  void ForEachField(F f) const {
    const auto& [members, passes, inlined, viewed, rows, row, fuses, args, distinct] = *this;
    f(members), f(passes), f(inlined), f(viewed), f(rows), f(row), f(fuses), f(args), f(distinct);
  }
};

struct BlockPlan {
  enum class How : uint8_t {
    kDead,
    kParam,
    kView,    // read through an index map
    kInline,  // recomputed by every reader
    kMember,  // computed by a group
    kAlias,   // the same bytes as `alias_of`, another shape
    kOpaque,  // result of a library operation, a loop, a branch ...
  };
  struct Value {
    How how = How::kDead;
    int eqn = -1;
    int unit = -1;  // group or opaque equation that makes it
    uint32_t alias_of = 0;
    bool stored = false;  // has a buffer
    // kMember: how many reductions of its group it is made from, one after the other. Each is a pass over a row.
    int passes = 0;
    int cost = 0;            // kInline: simple operations for one element
    int viewed_cost = 0;     // kInline, kView: the same with what it reads through views
    std::vector<int> place;  // kMember: group dimension of each dimension, -1 for size 1
  };
  struct Unit {
    int opaque = -1;              // its equation; -1 for a group
    std::vector<Dim> dims;        // the group's domain
    std::vector<bool> inner;      // reduced dimensions
    std::vector<int> members;     // equations, ascending
    int passes = 0;               // the most of any member
    std::vector<uint32_t> reads;  // buffers (root variables), ascending
    bool dead = false;            // merged away
    bool has_inner() const {
      for (bool b : inner) {
        if (b) return true;
      }
      return false;
    }
  };
  std::vector<Value> values;            // by variable
  std::vector<std::vector<int>> space;  // by equation: group dimension of each dimension it iterates over
  std::vector<Unit> units;
  // Why an equation stayed out of the unit of another, which makes an operand of its.
  struct Note {
    int eqn = -1, other = -1;
    std::string why;
  };
  std::vector<int> order;  // of units
  std::vector<Note> notes;

  // The variable whose buffer holds v's bytes.
  uint32_t Root(uint32_t v) const {
    while (values[v].how == How::kAlias) v = values[v].alias_of;
    return v;
  }
};

BlockPlan Fuse(const Fn& fn, const FusionPolicy& policy);

// The notes of `fn` and of its regions as sentences, with the user's lines where they are known:
// "tanh at model.py:4 (f) is not computed with contract at model.py:3 (f): its operand comes from contract".
std::vector<std::string> WhyNotFused(const Fn& fn, const FusionPolicy& policy);

// ---- Views -------------------------------------------------------------------------------------------------------

// True for equations that only move or repeat elements, in a way that an index map can follow.
bool IsView(const Fn& fn, const Eqn& eqn);
bool IsReduction(const Eqn& eqn);
bool IsArgReduction(const Eqn& eqn);  // argmax, argmin
// The dimensions that a reduction of either kind reduces.
Ints ReducedDims(const Eqn& eqn);
// A contraction whose sum is taken in a fixed order: a kernel of its own, where others are calls of a library.
bool IsOrderedSum(const Eqn& eqn);
// The index of operand 0 for an index of the result of broadcast, transpose, slice, reverse or a splitting reshape.
std::vector<Affine> ViewIndex(const Fn& fn, const Eqn& eqn, const std::vector<Affine>& index);
// Row-major strides in elements.
std::vector<Dim> Strides(const Dims& dims);
// The array behind views: variable and, per dimension of `atom`, the stride in elements, plus a start. False when the
// views do not end at an array that has or could have a buffer.
struct StridedView {
  uint32_t root = 0;
  Dim start = 0;
  std::vector<Dim> strides;
};
bool FindStrided(const Fn& fn, const std::vector<int>& defining_eqn, const Atom& atom, StridedView* out);
// ... of an operand of a step that reads behind views (OpRow::Operands kProduct, kMoved); false where this one does
// not.
bool FindRead(const Fn& fn, const std::vector<int>& defining_eqn, const Eqn& eqn, const Atom& operand,
              StridedView* out);
// How the operands of a `contract` lie behind views, and what a product of them is told, but for the places.
struct ContractLayout {
  StridedView x, y;
  bool x_is_view = false, y_is_view = false;  // false: the operand itself is read, and `root` says nothing
  abi::Contract<InSchedule> told;
};
// `x_views`, `y_views`: false when the operand is read where it is computed, whatever views it is behind.
ContractLayout LayOutContract(const Fn& fn, const std::vector<int>& defining_eqn, const Eqn& eqn, bool x_views = true,
                              bool y_views = true);
// By variable: the equation that defines it, -1 for parameters.
std::vector<int> DefiningEqns(const Fn& fn);

}  // namespace weft
#endif  // WEFT_LOWERING_FUSION_FUSION_H_
