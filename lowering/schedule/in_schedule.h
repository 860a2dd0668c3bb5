// Fields of steps (lowering/abi/steps.h) in a schedule: values, and sizes that may depend on dimension symbols.
#ifndef WEFT_LOWERING_SCHEDULE_IN_SCHEDULE_H_
#define WEFT_LOWERING_SCHEDULE_IN_SCHEDULE_H_

#include <vector>

#include "ir/dim.h"
#include "lowering/abi/steps.h"

namespace weft {

struct InSchedule {
  using Place = int;  // a value, -1: none
  using Number = Dim;
  using Places = std::vector<int>;
  using Numbers = std::vector<Dim>;
  template <class T>
  using List = std::vector<T>;
};

}  // namespace weft
#endif  // WEFT_LOWERING_SCHEDULE_IN_SCHEDULE_H_
