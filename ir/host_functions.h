// Functions of this process that programs name by number: callbacks (pure_callback, io_callback), policies of remat
// (`callback(n)`, ir/prims/control/policy.h), and the rules of custom_jvp, custom_vjp and custom_vmap
// (ir/custom_rules.h). A number is one function's, in all processes and for all time: a program that moved to another
// process, or outlived what it names, finds nothing rather than another function. Which attributes are such numbers
// each primitive says (Prim::host_functions).
//
//   const HostFunctions held(std::make_shared<F>(f));       // under a new number
//   Bind(prim, x, {{"callback", held.number()}, ...});
//   const HostFunctions all(*fn);                            // holds what the program names
//   std::shared_ptr<void> f = FindHostFunction(number);      // null: of another process, or gone
//
// A function lives as long as a HostFunctions holds it: programs hold nothing themselves, those who keep them do.
#ifndef WEFT_IR_HOST_FUNCTIONS_H_
#define WEFT_IR_HOST_FUNCTIONS_H_

#include <cstdint>
#include <memory>

#include "ir/attr.h"

namespace weft {

class Fn;

// A number that no process has given yet; it has at most 18 digits. They count up from one drawn at random by each
// process, a forked child included.
int64_t NewHostNumber();

// What a number names. A program that was written by hand may have one in the place of another.
enum class HostKind : uint8_t { kObject, kJvpRule, kForwardRule, kBackwardRule, kBatchingRule };

class HostFunctions {
 public:
  HostFunctions() = default;
  // `function` under `number`, or under a new one. One that the number already names stays.
  explicit HostFunctions(std::shared_ptr<void> function, int64_t number = NewHostNumber(),
                         HostKind kind = HostKind::kObject);
  // Those that the function and its regions name, as far as they are there.
  explicit HostFunctions(const Fn& fn);
  int64_t number() const;  // of the first
  bool empty() const { return held_ == nullptr; }

 private:
  struct Held;
  std::shared_ptr<const Held> held_;  // null when there are none
};

// Null where there is none of that kind.
std::shared_ptr<void> FindHostFunction(int64_t number, HostKind kind = HostKind::kObject);
bool HostFunctionExists(int64_t number);

// The numbers that the function and its regions name, each once.
Ints HostFunctionsOf(const Fn& fn);

// While one exists, nothing is let go: programs under construction name functions that nobody holds for them yet.
class HostFunctionsStay {
 public:
  HostFunctionsStay();
  ~HostFunctionsStay();
  HostFunctionsStay(const HostFunctionsStay&) = delete;
};

}  // namespace weft
#endif  // WEFT_IR_HOST_FUNCTIONS_H_
