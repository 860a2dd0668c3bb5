#include "ir/text/attribute_names.h"

#include <mutex>
#include <unordered_map>

#include "absl/strings/str_join.h"
#include "base/fork_safe_mutex.h"

namespace weft {

const std::set<std::string>& AttributeNames(const Prim& prim) {
  static auto& mutex = *new ForkSafeMutex;
  static auto& table = *new std::unordered_map<const Prim*, std::set<std::string>>();
  {
    std::lock_guard<ForkSafeMutex> lock(mutex);
    auto it = table.find(&prim);
    if (it != table.end()) return it->second;
  }
  std::set<std::string> names(prim.more_attributes.begin(), prim.more_attributes.end());
  if (prim.samples) {
    for (const Sample& sample : prim.samples()) {
      for (const Attrs::Entry& entry : sample.attrs.entries()) names.insert(entry.first);
    }
  }
  std::lock_guard<ForkSafeMutex> lock(mutex);
  return table.emplace(&prim, std::move(names)).first->second;  // nodes do not move
}

void CheckAttributeNames(const Prim& prim, const Attrs& attrs) {
  if (attrs.empty()) return;
  const std::set<std::string>& known = AttributeNames(prim);
  for (const Attrs::Entry& entry : attrs.entries()) {
    if (known.count(entry.first)) continue;
    throw ValueError(prim.name, ": there is no attribute '", entry.first, "'; ",
                     known.empty() ? "it has none" : "it has " + absl::StrJoin(known, ", "));
  }
}

}  // namespace weft
