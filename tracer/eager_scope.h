// What is computed of known values in a scope is computed at once, though functions are being traced around it:
//
//   EagerScope scope;
//   Add(known, known);   // a known value
//   Add(traced, known);  // recorded, as ever
#ifndef WEFT_TRACER_EAGER_SCOPE_H_
#define WEFT_TRACER_EAGER_SCOPE_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "tracer/trace.h"

namespace weft {

// Those of one thread end in the reverse order.
class EagerScope {
 public:
  EagerScope();
  ~EagerScope();
  EagerScope(const EagerScope&) = delete;

  // Whether the innermost open one of this thread hides the trace of one of these values.
  static bool Hides(absl::Span<const Value> values);

  // The innermost open one, as if it were not there, for a scope.
  class Suspended {
   public:
    Suspended();
    ~Suspended();
    Suspended(const Suspended&) = delete;

   private:
    EagerScope* scope_;
  };

 private:
  std::vector<std::shared_ptr<Trace>> hidden_;
  EagerScope* around_;
};

}  // namespace weft
#endif  // WEFT_TRACER_EAGER_SCOPE_H_
