// Which equations of a function under construction have been seen, so that an equal one takes their results.
#ifndef WEFT_TRANSFORMS_CSE_H_
#define WEFT_TRANSFORMS_CSE_H_

#include <unordered_map>

#include "ir/fn.h"

namespace weft {

class EquationTable {
 public:
  // Whether an equation may be shared at all: effects happen as often as they are written.
  static bool Takes(const Eqn& e);
  // The results of an equation equal to `e` with these operands (atoms of the function under construction); null when
  // there is none. Operands of a commutative operation may be in either order.
  const Atoms* Find(const Eqn& e, const Atoms& operands);
  // Follows a Find of the same equation that gave null.
  void Add(const Eqn& e, const Atoms& operands, const Atoms& results);

 private:
  struct Entry {
    Eqn eqn;  // operands in the function under construction
    Atoms results;
  };
  std::unordered_multimap<size_t, Entry> entries_;
  size_t found_hash_ = 0;  // of the last Find
};

}  // namespace weft
#endif  // WEFT_TRANSFORMS_CSE_H_
