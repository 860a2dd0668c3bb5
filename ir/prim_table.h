// What a pass knows of primitives by name: tables and sets that are bound to the registry once and found by
// `Prim::id`, and the question whether a primitive is a certain one. A row or a name that no primitive has is an error
// when the table is first used.
//
//   static const PrimSet kSums{"reduce_sum", "contract"};
//   if (kSums.Has(*e.prim)) ...
//   static const PrimTable<Rule> kRules{{"iota", OfIota}, {"reshape", OfReshape}};
//   if (const Rule rule = kRules[*e.prim]) ...
//   if (Is<"scatter_add">(*e.prim)) ...
//
// Where a property of the operation is meant, ask for that (`Prim::region_use`, `Prim::view` ...): the next operation
// that has it is then served as well. tools/prim_names_test.py counts the uses of Is.
#ifndef WEFT_IR_PRIM_TABLE_H_
#define WEFT_IR_PRIM_TABLE_H_

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

#include "ir/prim.h"

namespace weft {

// One value per primitive; `T()` for those without a row.
template <class T>
class PrimTable {
 public:
  PrimTable(std::initializer_list<std::pair<const char*, T>> rows) : rows_(AllPrims().size()) {
    for (const auto& [name, value] : rows) rows_[static_cast<size_t>(FindPrim(name).id)] = value;
  }
  const T& operator[](const Prim& prim) const {
    const auto i = static_cast<size_t>(prim.id);
    return i < rows_.size() ? rows_[i] : without_row_;  // one that was registered later (ir/extensions.h) has none
  }

 private:
  std::vector<T> rows_;
  T without_row_{};
};

class PrimSet {
 public:
  PrimSet(std::initializer_list<const char*> names) : has_(AllPrims().size(), false) {
    for (const char* name : names) has_[static_cast<size_t>(FindPrim(name).id)] = true;
  }
  bool Has(const Prim& prim) const {
    const auto i = static_cast<size_t>(prim.id);
    return i < has_.size() && has_[i];
  }

 private:
  std::vector<bool> has_;
};

template <size_t kSize>
struct PrimName {
  constexpr PrimName(const char (&name)[kSize]) { std::copy_n(name, kSize, text); }  // NOLINT: written as a literal
  char text[kSize];
};

template <PrimName kName>
bool Is(const Prim& prim) {
  static const Prim& sought = FindPrim(kName.text);
  return &prim == &sought;
}

}  // namespace weft
#endif  // WEFT_IR_PRIM_TABLE_H_
