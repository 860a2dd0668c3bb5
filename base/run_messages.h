// The texts of errors that several parts find when a program runs: the interpreter, Specialize, lowering and compiled
// programs.
//
//   SizeMessage("top_k: dimension 0 of f32[n]", 1, 2)  // "top_k: dimension 0 of f32[n] has size 1; expected at least
//   2"
#ifndef WEFT_BASE_RUN_MESSAGES_H_
#define WEFT_BASE_RUN_MESSAGES_H_

#include <cstdint>
#include <string>

namespace weft {

// Of a size that only a call tells. `where` says what the symbols of `what` are, as in ", where n = 1". A negative
// `least` is an upper bound (SizeCondition of ir/prim.h).
inline std::string SizeMessage(const std::string& what, int64_t size, int64_t least, const std::string& where = "") {
  if (least < 0)
    return what + " has size " + std::to_string(-size) + where + "; expected at most " + std::to_string(-least);
  return what + " has size " + std::to_string(size) + where + "; expected at least " + std::to_string(least);
}

inline std::string TapeMemoryMessage(int64_t records, int64_t record_bytes) {
  return "out of memory: the tape of a loop holds " + std::to_string(records) + " records of " +
         std::to_string(record_bytes) + " bytes";
}

inline std::string UnboundAxisMessage(const std::string& collective, const std::string& axis) {
  return collective + ": nothing binds the axis '" + axis +
         "'; collectives run inside vmap(..., axis_name=...), shard_map or pmap";
}

inline std::string OuterAxisMessage(const std::string& collective, const std::string& axis, const std::string& mesh) {
  return collective + ": the axis '" + axis + "' belongs to a mesh around the innermost one, " + mesh;
}

}  // namespace weft
#endif  // WEFT_BASE_RUN_MESSAGES_H_
