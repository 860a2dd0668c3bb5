// What lowering hands to a backend: code, and how to lay out memory around it. Knows neither MLIR nor the IR.
//
//   Artifact a = Lower(fn, target, {});            // lowering/lower.h
//   auto program = cpu::Program::Load(a);          // backends/cpu/core/program.h
#ifndef WEFT_LOWERING_ABI_ARTIFACT_H_
#define WEFT_LOWERING_ABI_ARTIFACT_H_

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace weft {

// A size that may depend on dimension symbols: sum of coefficient * product of symbols.
struct SizeExpr {
  struct Term {
    int64_t coefficient = 0;
    std::vector<int32_t> symbols;  // indices into Artifact::symbols, with repetition
  };
  int64_t constant = 0;
  std::vector<Term> terms;  // empty for a static size

  bool is_static() const { return terms.empty(); }
  // Throws std::overflow_error where a number is beyond 64 bits.
  int64_t Evaluate(const std::vector<int64_t>& symbols) const {
    int64_t total = constant;
    bool overflow = false;
    for (const Term& t : terms) {
      int64_t product = t.coefficient;
      for (int32_t s : t.symbols)
        overflow |= __builtin_mul_overflow(product, symbols[static_cast<size_t>(s)], &product);
      overflow |= __builtin_add_overflow(total, product, &total);
    }
    if (overflow) throw std::overflow_error("a size or a number of bytes is beyond 2^63");
    return total;
  }
};

struct Artifact {
  struct Value {        // a parameter or result
    uint8_t dtype = 0;  // weft::DType
    std::vector<SizeExpr> dims;
  };
  enum class Place : uint8_t {
    kArena,     // index = buffer
    kParam,     // index = parameter
    kResult,    // index = result
    kConstant,  // index = byte offset in `constants`
    kMoving,    // set by the code itself (slices of a scan)
  };
  struct Slot {
    Place place = Place::kArena;
    int64_t index = 0;
  };
  // A piece of the arena, alive from step `first` to step `last` (both included).
  struct Buffer {
    SizeExpr bytes;
    int32_t first = 0, last = 0;
    int64_t offset = -1;  // planned offset; -1 when some size is symbolic and the plan is made per call
  };
  // Counters that tests and `explain` read. Sizes are those of the static part.
  struct Counters {
    int64_t kernels = 0;       // distinct kernels compiled
    int64_t kernel_calls = 0;  // kernel steps in the schedule
    int64_t launches = 0;      // the same, those that run as one parallel loop counted once
    int64_t library_calls = 0;
    int64_t copies = 0;        // buffer-to-buffer copy steps
    int64_t bytes_moved = 0;   // loaded and stored by kernels and library calls, each loop body once
    int64_t bytes_copied = 0;  // by copy steps
    int64_t donated = 0;       // donated parameters whose memory holds a result or temporaries
  };

  // A recursive function: code of its own in a frame of its own, made for each call.
  struct Function {
    std::string name;
    std::vector<Slot> slots;
    std::vector<Buffer> buffers;
    int64_t arena_bytes = 0;  // -1 when it depends on symbols
    int64_t first_word = 0;   // of its descriptors in `desc`
  };

  std::string target;  // "cpu:x86-64-avx512"
  std::string code;    // an ELF shared object that exports weft_main
  std::vector<std::string> symbols;
  std::vector<Value> params, results;
  std::vector<uint8_t> donated;    // by parameter: 1 the code may overwrite it, 2 it does; empty when none
  std::vector<int32_t> result_in;  // by result: the donated parameter whose memory it is in, -1: its own
  std::vector<Slot> slots;
  std::vector<Buffer> buffers;
  int64_t arena_bytes = 0;  // -1 when it depends on symbols
  std::vector<Function> functions;
  // Descriptors (lowering/abi/steps.h): those of the program, then those of each function, in order.
  std::vector<int64_t> desc;
  struct DescPatch {
    int64_t index = 0;
    SizeExpr value;
  };
  std::vector<DescPatch> desc_patches;  // entries of desc that depend on symbols
  // What a call must fulfil: size >= least, unless reads is 0.
  struct Condition {
    SizeExpr size;
    int64_t least = 0;
    SizeExpr reads;
    std::string what;
  };
  std::vector<Condition> conditions;
  std::string constants;             // bytes, each constant 64-byte aligned
  std::vector<std::string> strings;  // formats and messages of effects, by index
  Counters counters;
  std::string schedule;  // of a GPU's plan: what WriteSchedule in lowering/gpu/lower.cc says of it

  std::string Serialize() const;
  // False when the bytes are malformed. What they say is looked at by PlanProblem.
  static bool Parse(const std::string& bytes, Artifact* out);
  // What refers to something that is not there, lies outside of its memory or has a negative size, in `desc` too; empty
  // where nothing does. What the code itself does is beyond that.
  // `gpu_kernels`: of a plan for a GPU, how many kernels there are.
  std::string PlanProblem(std::optional<int64_t> gpu_kernels = {}) const;
  // The descriptors, a line each: "12: copy to 3, from 1, bytes 64".
  std::string DescriptorsText() const;
};

// Offsets for buffers with the given sizes such that buffers alive at the same time never overlap. Returns the size of
// the arena. Greedy by size, best fit: optimal for chains, within a few percent elsewhere.
int64_t PlanArena(const std::vector<Artifact::Buffer>& buffers, const std::vector<int64_t>& bytes,
                  std::vector<int64_t>* offsets);

}  // namespace weft
#endif  // WEFT_LOWERING_ABI_ARTIFACT_H_
