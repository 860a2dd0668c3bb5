// Which equations of a function under construction have been seen, so that an equal one takes their results.
#ifndef WEFT_TRANSFORMS_CSE_H_
#define WEFT_TRANSFORMS_CSE_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/builder.h"

namespace weft {

class EquationTable {
 public:
  // With room for about so many equations.
  explicit EquationTable(size_t equations) {
    entries_.reserve(equations);
    last_.reserve(equations);
  }
  // Whether an equation may be shared at all: effects happen as often as they are written.
  static bool Takes(const Eqn& e);
  // The equation of `b`, the function under construction, that equals `e` with these operands; null when there is none.
  // Operands of a commutative operation may be in either order. Valid until the next equation.
  const Eqn* Find(const Builder& b, const Eqn& e, const Atoms& operands);
  // Follows a Find that gave null: the equation looked for is equation `eqn` of `b`, or will be.
  void Add(size_t eqn);

 private:
  struct Entry {
    uint32_t eqn;    // in the function under construction
    int32_t before;  // the entry before of the same hash, or -1
  };
  LongList<Entry> entries_;
  absl::flat_hash_map<size_t, int32_t, absl::Hash<size_t>, std::equal_to<>,
                      LargePages<std::pair<const size_t, int32_t>>>
      last_;               // per hash
  size_t found_hash_ = 0;  // of the last Find
};

// The variables that `e` defines.
Atoms ResultsOf(const Eqn& e);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_CSE_H_
