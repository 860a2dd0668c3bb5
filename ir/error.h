// Errors, in two kinds with two spellings.
//
//   throw UserError(ErrorKind::kType, loc, "mul: operand 1 is ", type, ", expected f32[3]");   // the caller's mistake
//   WEFT_CHECK(eqn.operands.size() == 2) << "transpose of mul";                               // our mistake
//
// Both are C++ exceptions, so a rule stays a three-line lambda; the Python binding turns them into Python exceptions
// in one place, and embedders catch `weft::Error` at the call of a transform. Nothing is thrown through LLVM's frames
// but memory that runs out there (lowering/cpu/compiler_memory.h).
#ifndef WEFT_IR_ERROR_H_
#define WEFT_IR_ERROR_H_

#include <exception>
#include <sstream>
#include <string>
#include <utility>

#include "ir/loc.h"

namespace weft {

enum class ErrorKind {
  kType,         // wrong dtype, shape or kind of argument            -> Python TypeError
  kValue,        // wrong value of an attribute or argument           -> Python ValueError
  kIndex,        // axis or index out of range                        -> Python IndexError
  kTracer,       // a traced value was used where a number is needed  -> weft.TracerError (a TypeError)
  kDerivative,   // an operation has no derivative                    -> weft.DerivativeError (a TypeError)
  kName,         // a mesh or vmap axis that nothing binds           -> NameError
  kUnsupported,  // legal, but outside what this operation can do     -> NotImplementedError
  kParse,        // malformed text or bytes                           -> weft.ParseError (a ValueError)
  kRuntime,      // failed while running: assertion, callback, memory -> RuntimeError
  kInternal,     // a broken invariant of Weft itself                 -> weft.InternalError
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message, Loc loc = {}) : kind_(kind), loc_(loc), message_(std::move(message)) {}

  ErrorKind kind() const { return kind_; }
  Loc loc() const { return loc_; }
  const std::string& message() const { return message_; }
  // The message followed by the user's stack, innermost line first.
  const char* what() const noexcept override;
  // An error raised without a location (a type rule does not know one) gets it where the equation is known.
  void set_loc(Loc loc) {
    if (!loc_) loc_ = loc;
    what_.clear();
  }

 private:
  ErrorKind kind_;
  Loc loc_;
  std::string message_;
  mutable std::string what_;
};

namespace internal {
template <class... Args>
std::string Concat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

// Collects the message of a failed WEFT_CHECK and throws at the end of the full expression.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure() noexcept(false);
  std::ostream& stream() { return out_; }

 private:
  std::ostringstream out_;
};
}  // namespace internal

template <class... Args>
Error UserError(ErrorKind kind, Loc loc, const Args&... args) {
  return Error(kind, internal::Concat(args...), loc);
}
template <class... Args>
Error TypeError(const Args&... args) {
  return Error(ErrorKind::kType, internal::Concat(args...));
}
template <class... Args>
Error ValueError(const Args&... args) {
  return Error(ErrorKind::kValue, internal::Concat(args...));
}

}  // namespace weft

#define WEFT_CHECK(condition) \
  if (condition) [[likely]] { \
  } else /* NOLINT */         \
    ::weft::internal::CheckFailure(__FILE__, __LINE__, #condition).stream()

#endif  // WEFT_IR_ERROR_H_
