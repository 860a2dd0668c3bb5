// The variables of a function whose text is being read.
#ifndef WEFT_IR_TEXT_TEXT_SCOPE_H_
#define WEFT_IR_TEXT_TEXT_SCOPE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "ir/builder.h"

namespace weft {

struct TextScope {
  struct Variable {
    std::string_view name;  // in the text
    Atom value;
  };
  // Variables of a function by name. The table holds numbers alone, so that it stays in the caches for long programs:
  // what is looked up was mostly defined a few lines before.
  struct ByName {
    using is_transparent = void;
    std::string_view Of(std::string_view name) const { return name; }
    std::string_view Of(uint32_t i) const { return (*variables)[i].name; }
    template <class T>
    size_t operator()(const T& sought) const {
      return absl::HashOf(Of(sought));
    }
    template <class T, class U>
    bool operator()(const T& a, const U& b) const {
      return Of(a) == Of(b);
    }
    const std::vector<Variable>* variables;
  };

  Builder builder;
  std::vector<Variable> variables;  // in the order of their definitions
  absl::flat_hash_set<uint32_t, ByName, ByName> numbers{0, ByName{&variables}, ByName{&variables}};
  explicit TextScope(const std::string& name) : builder(name) {}
  TextScope(const TextScope&) = delete;
  TextScope& operator=(const TextScope&) = delete;
};

}  // namespace weft
#endif  // WEFT_IR_TEXT_TEXT_SCOPE_H_
