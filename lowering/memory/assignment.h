// Which values of a schedule share a buffer, and where the buffers are. A function of the schedule and its liveness.
//
// Values that are put together are named pair by pair: what a copy reads and writes (then there is nothing to copy),
// what a kernel may write over what it reads (in place), and what lies in the memory of a donated parameter.
#ifndef WEFT_LOWERING_MEMORY_ASSIGNMENT_H_
#define WEFT_LOWERING_MEMORY_ASSIGNMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lowering/memory/liveness.h"
#include "lowering/schedule/schedule.h"

namespace weft {

struct Assignment {
  struct Pair {
    enum class Kind : uint8_t {
      kCopy,      // of a copy: a carry and what becomes of it, a result and where it has to be ...
      kInPlace,   // of a kernel
      kDonation,  // a result, or a temporary, in the memory of a donated parameter
    };
    enum class Why : uint8_t {
      kTaken,
      kLivesOn,    // the operand is read later, or something else lies where it is
      kNotOurs,    // the operand is a parameter that was not donated, a constant, or points into other memory
      kTooSmall,   // the operand's memory, or it depends on symbols whether it is
      kTwoPlaces,  // both have to be where they are
    };
    Kind kind = Kind::kCopy;
    Why why = Why::kTaken;
    int at = 0;  // position of the step; of a donation that no step names: where `result` is first written
    int result = 0, operand = 0;
  };
  struct Buffer {
    enum class Place : uint8_t { kArena, kParam, kResult, kConstant, kMoving };
    Place place = Place::kArena;
    int index = 0;  // kParam, kResult: which
    Dim bytes;
    int first = 0, last = 0;  // kArena: the positions between which something lives in it
    int result = -1;          // kParam: the result that is left in it
    std::vector<int> values;
  };
  struct Frame {
    std::vector<int> buffer;  // by value
    std::vector<Buffer> buffers;
    std::vector<Pair> pairs;  // all that there were to take, in the order in which they were tried
  };
  std::vector<Frame> frames;  // as in the schedule

  std::string ToString() const;
};

Assignment AssignBuffers(const Schedule& schedule, const Liveness& liveness);

}  // namespace weft
#endif  // WEFT_LOWERING_MEMORY_ASSIGNMENT_H_
