// Descriptors of programs that may come from anywhere: their words are checked, printed and compared, all by the lists
// of fields in lowering/abi/steps.h.
#ifndef WEFT_LOWERING_ABI_DESCRIPTORS_H_
#define WEFT_LOWERING_ABI_DESCRIPTORS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "lowering/abi/fields.h"

namespace weft::abi {

// What there is that words refer to: where the descriptor is.
struct Limits {
  static constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  int64_t slots = kAny, results = kAny, strings = kAny, axes = kAny, kernels = kAny;
  // By slot: how many bytes lie there; -1: that is not known before the program runs. Empty: of no slot.
  std::vector<int64_t> bytes;
  // By function: how many arguments and results it reads and writes.
  struct Function {
    int64_t arguments = 0, results = 0;
  };
  bool any_function = true;
  std::vector<Function> functions;
  // The words that depend on dimension symbols, by their place; what is in them now says nothing. Empty: none.
  std::vector<bool> symbolic;
};

struct Word {
  std::string field;  // "operands[1].dims[0]"
  int64_t value = 0;
};

// The descriptor that begins at words[at]: how many words it has. Calls `seen` for each but the first. Throws
// std::invalid_argument, which names the step and the field, for a word that is not what `limits` allow.
size_t ReadStep(std::span<const int64_t> words, size_t at, const Limits& limits,
                const std::function<void(const Word&)>& seen = {});

// "copy to 3, from 1, bytes 64".
std::string StepText(std::span<const int64_t> words);
// The first field in which two descriptors differ, with both words; empty where they are equal.
std::string FirstDifference(std::span<const int64_t> a, std::span<const int64_t> b);

// The field of that name, as its struct has it; null where there is none.
const char* FieldNamed(int64_t opcode, const std::string& name);

}  // namespace weft::abi
#endif  // WEFT_LOWERING_ABI_DESCRIPTORS_H_
