#include "ir/type.h"

#include <mutex>
#include <unordered_set>

#include "absl/hash/hash.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/fork_safe_mutex.h"

namespace weft {

std::string Type::ToString() const {
  std::string text = std::string(Name(dtype)) + "[" + weft::ToString(dims) + "]";
  if (!varying.empty()) text += "{" + absl::StrJoin(varying, ",") + "}";
  return text;
}

std::optional<Type> Type::Parse(const std::string& text) {
  const size_t open = text.find('['), close = text.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  const std::optional<DType> dtype = ParseDType(text.substr(0, open));
  if (!dtype) return std::nullopt;
  Type type{*dtype, {}, {}};
  if (close > open + 1) {
    for (absl::string_view part : absl::StrSplit(text.substr(open + 1, close - open - 1), ',')) {
      const std::optional<Dim> dim = Dim::Parse(std::string(part));
      if (!dim || (dim->is_static() && dim->value() < 0)) return std::nullopt;
      type.dims.push_back(*dim);
    }
  }
  const std::string rest = text.substr(close + 1);
  if (rest.empty()) return type;
  if (rest.size() < 3 || rest.front() != '{' || rest.back() != '}') return std::nullopt;
  for (absl::string_view axis : absl::StrSplit(rest.substr(1, rest.size() - 2), ',')) type.varying.emplace_back(axis);
  return type;
}

std::string ToString(const Types& types) {
  return absl::StrJoin(types, ", ", [](std::string* out, const Type& t) { *out += t.ToString(); });
}

const Type* Intern(const Type& type) {
  // What a thread asked for last answers nearly every call, without a lock.
  constexpr size_t kSlots = 64;
  thread_local const Type* slots[kSlots] = {};
  const size_t hash = absl::HashOf(type);
  const Type*& slot = slots[hash % kSlots];
  if (slot != nullptr && *slot == type) return slot;
  static auto& mutex = *new ForkSafeMutex;
  static auto& types = *new std::unordered_set<Type, absl::Hash<Type>>();
  std::lock_guard<ForkSafeMutex> lock(mutex);
  return slot = &*types.insert(type).first;
}

}  // namespace weft
