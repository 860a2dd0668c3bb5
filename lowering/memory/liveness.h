// When each value of a schedule lives: the steps between which its memory holds what somebody reads later.
#ifndef WEFT_LOWERING_MEMORY_LIVENESS_H_
#define WEFT_LOWERING_MEMORY_LIVENESS_H_

#include <string>
#include <vector>

#include "lowering/schedule/schedule.h"

namespace weft {

struct Liveness {
  // Positions, both included. A value that is written at step 3 and last read at step 5 lives from 3 to 5.
  struct Range {
    int first = 0, last = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  struct Frame {
    // By value, ascending, apart from each other. A carry has a gap in the body of its loop, from where its old value
    // is last read to where the next one is written. Empty: nobody reads or writes it.
    std::vector<std::vector<Range>> ranges;
    // By value; of one that moves: the positions at which it points somewhere.
    std::vector<Range> points;
  };
  std::vector<Frame> frames;  // as in the schedule

  std::string ToString() const;
};

// What loops read of values from outside lives as long as the loop. `schedule` has its positions numbered.
Liveness FindLiveness(const Schedule& schedule);

}  // namespace weft
#endif  // WEFT_LOWERING_MEMORY_LIVENESS_H_
