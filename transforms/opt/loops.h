// The rules of the pass `loops`, which replace equations with regions (transforms/opt/loops.cc).
#ifndef WEFT_TRANSFORMS_OPT_LOOPS_H_
#define WEFT_TRANSFORMS_OPT_LOOPS_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "ir/builder.h"

namespace weft {

// Bytes that a value of all trips together may take, where a loop without dependences is dissolved.
inline constexpr int64_t kMostAtOnce = int64_t{64} << 20;
// A product or a sum of so many bytes is worth a trip: dissolved, its loop would take no less time and more memory,
// past the caches.
inline constexpr int64_t kWorthATrip = int64_t{1} << 20;

absl::Span<const char* const> LoopRuleNames();

// The results of a scan, `e` with operands `x`, whose trips need nothing of each other but sums, extremes and products
// by a constant, without the trips. Nothing for others.
std::optional<Atoms> WithoutTrips(Builder& b, const Eqn& e, const Atoms& x);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_LOOPS_H_
