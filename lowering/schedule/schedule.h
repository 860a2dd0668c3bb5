// The schedule of a program: its steps in order, over values. A value is an array (or what a step needs besides) that
// some steps write and others read; where it lies is not said here. lowering/memory/ finds out which values live when
// and gives them memory, lowering/program/ makes of both what code is generated from.
#ifndef WEFT_LOWERING_SCHEDULE_SCHEDULE_H_
#define WEFT_LOWERING_SCHEDULE_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/fn.h"
#include "lowering/abi/steps.h"
#include "lowering/fusion/fusion.h"
#include "lowering/kernel/kernel_spec.h"

namespace weft {

struct BlockTrace;

struct Schedule {
  struct Value {
    enum class Kind : uint8_t {
      kTemporary,
      kParam,     // whoever runs the frame hands it over
      kResult,    // and expects these
      kConstant,  // part of the program
      kMoving,    // memory that a step points to: a slice of another value, a row of a tape
    };
    Kind kind = Kind::kTemporary;
    int index = 0;  // kParam, kResult: which
    Dim bytes;
    Tensor constant;          // kConstant; of a schedule that was read from text, nothing
    std::vector<int> within;  // kMoving: the values whose memory it may point into
  };

  enum class Access : uint8_t {
    kRead,
    kWrite,   // all of it, or what others of the step's equation complete before anybody reads it
    kUpdate,  // a part of it; what the others hold is kept
    kPoint,   // kMoving: says where it is
  };
  struct Use {
    int value = 0;
    Access access = Access::kRead;
  };
  // At the step that says so, `result` may be written into the memory of `operand`.
  struct MayShare {
    int result = 0, operand = 0;
  };
  // A number of what the step's code is told: itself, the place of a value, the number of the result that a value is
  // written into (-1: into none), or what became of an end of the function that the step runs: the parameter in whose
  // memory result `value` is left (-1: in none), and whether parameter `value` is overwritten.
  struct Entry {
    enum class Kind : uint8_t { kNumber, kPlace, kResultNumber, kLeftIn, kOverwritten };
    Entry(Dim n) : number(n) {}  // NOLINT: a number is an entry
    static Entry Place(int value) { return {Kind::kPlace, value}; }
    static Entry ResultNumber(int value) { return {Kind::kResultNumber, value}; }
    static Entry LeftIn(int result) { return {Kind::kLeftIn, result}; }
    static Entry Overwritten(int param) { return {Kind::kOverwritten, param}; }
    Kind kind = Kind::kNumber;
    int value = -1;
    Dim number;
    const char* field = nullptr;  // the first entry of each field of a call: its name in lowering/abi/steps.h

   private:
    Entry(Kind k, int v) : kind(k), value(v) {}
  };

  struct Step;
  using Steps = std::vector<Step>;
  struct Block {
    Steps steps;
    int first = 0, last = 0;  // positions before and after all of the steps
  };
  // The slice of `base` that an iteration works on, `stride` bytes from the next one.
  struct Slice {
    int value = 0, base = 0;
    Dim stride;
  };
  // What a copy is for. It goes away where both values get the same memory.
  enum class Copy : uint8_t {
    kResult,  // a result of a block, put where it has to be: in a result of the program, in a carry, in what a branch
              // gives
    kStart,   // the first value of a carry, or of an array that the next step updates
    kData,    // the bytes are wanted twice
  };

  struct Step {
    enum class Kind : uint8_t {
      kKernel,   // kernels[index]
      kCopy,     // uses: to, from
      kCall,     // runtime operation `index` (WeftOpcode)
      kIf,       // blocks[clamp(predicate, 0, blocks - 1)]
      kWhile,    // blocks[0] writes the predicate; blocks[1] is the body
      kFor,      // blocks[0], `trips` times. Its uses are the values whose slices it reads, and writes
      kChecked,  // blocks[0] checks; blocks[1] runs unless the frame has an error then
    };
    Kind kind = Kind::kKernel;
    int index = 0;
    Copy copy = Copy::kData;
    std::vector<Use> uses;
    std::vector<MayShare> may_share;
    // What it is told. Of a call: the fields of its struct in lowering/abi/steps.h. Of a kernel: the places of its
    // operands, then the sizes that depend on symbols.
    std::vector<Entry> desc;
    int function = -1;  // kCall: frames[function] runs on all devices, on blocks of what is read, then of what is
                        // written: its parameters and results, in this order
    int predicate = -1;
    DType dtype = DType::kBool;  // of the predicate
    Dim trips;                   // kFor
    std::vector<Slice> slices;   // kFor
    bool reverse = false;        // kFor: from the last iteration to the first
    bool can_fail = false;       // kWhile, kFor: holds an operation that can set the frame's error
    double cost = -1;            // kKernel: estimated nanoseconds, -1 when sizes are symbolic
    int64_t bytes_moved = 0;     // loaded and stored, where sizes are static
    std::string note;            // for whoever reads the text
    std::vector<Block> blocks;
    int first = 0, last = 0;  // positions; of a step without blocks the same
  };

  // A program or one of its functions: values, steps and memory of its own.
  struct Frame {
    std::string name;
    std::vector<bool> donated;  // by parameter: its memory may be overwritten; empty: none
    // Parameters, then results: one is left in the memory of the other only where these numbers are equal. Empty: all
    // are.
    std::vector<int> places;
    std::vector<Value> values;
    Block body;  // position 0 is before the first step
  };

  std::vector<Frame> frames;  // the program, then functions as in Artifact::functions
  std::vector<KernelSpec> kernels;
  std::vector<std::string> strings;  // formats and messages, by index

  // Numbers the positions of all steps and blocks, in order.
  void Number();
  // Kernels and constants are named only, so what Parse makes of the text can be given memory, and not be run.
  std::string ToString() const;
  // Reads as far as a line "kernels". Raises kParse, with the line that is wrong.
  static Schedule Parse(const std::string& text);

  // Steps in order, those of blocks after the step that holds them.
  template <class F>
  static void ForEachStep(const Block& block, const F& f) {
    for (const Step& s : block.steps) {
      f(s);
      for (const Block& b : s.blocks) ForEachStep(b, f);
    }
  }
};

// Whether there is a kChecked, at any depth.
bool HoldsChecks(const Schedule::Block& block);

// Puts `fn` in order. `fn` must hold no call-like equations (see WithoutCalls). `donated`: parameters whose memory may
// be overwritten once their value is not needed any more; empty: none. `trace`: what the steps compute; valid as long
// as `fn` is.
Schedule BuildSchedule(const Fn& fn, const FusionPolicy& policy, const std::vector<bool>& donated = {},
                       BlockTrace* trace = nullptr);

// What becomes of large functions that a program calls more than once (CalledFunctions in transforms/opt/calls.h).
enum class Functions {
  kShared,   // laid out once each, as functions that call themselves are
  kInlined,  // where nothing can be called
};
// `fn` with call, remat and the custom rules replaced by their bodies, in regions too. A call that stays is a
// `recursive` whose function happens not to call itself.
FnRef WithoutCalls(const FnRef& fn, Functions functions = Functions::kShared);

}  // namespace weft
#endif  // WEFT_LOWERING_SCHEDULE_SCHEDULE_H_
