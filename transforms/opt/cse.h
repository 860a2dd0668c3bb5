// Which equations of a function under construction have been seen, so that an equal one takes their results.
#ifndef WEFT_TRANSFORMS_OPT_CSE_H_
#define WEFT_TRANSFORMS_OPT_CSE_H_

#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "ir/builder.h"
#include "ir/fn.h"

namespace weft {

// Whether an operation takes the same operands; of one that commutes, in either order.
inline bool SameOperands(const Atoms& a, const Atoms& b, bool commutes) {
  return a == b || (commutes && a[0] == b[1] && a[1] == b[0]);
}

class EquationTable {
 public:
  // With room for about so many equations.
  explicit EquationTable(size_t equations) { table_.reserve(equations); }
  // Whether an equation may be shared at all: effects happen as often as they are written.
  static bool Takes(const Eqn& e);
  // The equation of `b`, the function under construction, that equals `e` with these operands. Operands of a
  // commutative operation may be in either order. Valid until the next equation. Null when there is none: it is then
  // noted that equation `index` of `b` is one, or will be as soon as the caller has appended it.
  const Eqn* FindOrAdd(const Builder& b, const Eqn& e, const Atoms& operands, size_t index);

 private:
  struct Entry {
    uint32_t hash;
    uint32_t eqn;  // in the function under construction
  };
  struct Sought;  // an equation that is looked for
  struct Hash {
    using is_transparent = void;
    size_t operator()(const Entry& e) const { return Mixed(e.hash); }
    size_t operator()(const Sought& s) const;
    // The table takes its bits from both ends of a hash.
    static size_t Mixed(uint32_t hash) { return hash * size_t{0x9e3779b97f4a7c15}; }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Entry& a, const Entry& b) const { return a.eqn == b.eqn; }
    bool operator()(const Entry& e, const Sought& s) const;
  };
  absl::flat_hash_set<Entry, Hash, Equal, LargePages<Entry>> table_;
};

// The variables that `e` defines.
Atoms ResultsOf(const Eqn& e);

// Computes before a `cond` what all of its branches compute from the same operands, and takes results that are the same
// whichever branch is taken from there (branches.cc).
FnRef ShareOfBranches(FnRef fn);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_CSE_H_
