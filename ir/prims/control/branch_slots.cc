#include "ir/prims/control/branch_slots.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ir/ops.h"
#include "ir/prims/control/regions.h"

namespace weft {
namespace {

constexpr int64_t kSmallBytes = 1024;

// Whether a cond inside handed the value over, perhaps through calls.
bool IsFromCond(const Fn& fn, const Atom& value) {
  if (!value.is_var() || value.id() < fn.params().size()) return false;
  // Equations are in the order of their results.
  size_t begin = 0, end = fn.eqns().size();
  while (end - begin > 1) {
    const size_t middle = begin + (end - begin) / 2;
    (fn.eqns()[middle].first_result <= value.id() ? begin : end) = middle;
  }
  const Eqn& e = fn.eqns()[begin];
  if (e.prim->region_use == RegionUse::kCall)
    return IsFromCond(*e.regions[0], e.regions[0]->results()[value.id() - e.first_result]);
  return e.prim->region_use == RegionUse::kBranches;
}

bool CanBePacked(const Type& t) { return t.is_static() && !IsOpaque(t.dtype); }

int64_t Elements(const Type& t) { return t.size().value("a branch's slot"); }

// Lists of slots of one kind that are to share an array.
struct Item {
  int64_t bytes;
  std::vector<size_t> slots;
};

// Makes one of the first `count` items, which are in order of size.
void JoinSmallest(std::vector<Item>& items, size_t count) {
  Item joined{0, {}};
  for (size_t i = 0; i < count; ++i) {
    joined.bytes += items[i].bytes;
    joined.slots.insert(joined.slots.end(), items[i].slots.begin(), items[i].slots.end());
  }
  items.erase(items.begin(), items.begin() + static_cast<int64_t>(count));
  const auto at = std::find_if(items.begin(), items.end(), [&](const Item& i) { return i.bytes >= joined.bytes; });
  items.insert(at, std::move(joined));
}

}  // namespace

BranchSlots::BranchSlots(const std::vector<FnRef>& branches, const std::vector<size_t>& first) {
  Pack(Assign(branches, first), {8, 64});
}

BranchSlots::BranchSlots(const FnRef& called, size_t first) {
  Assign({called}, {first});
  Pack(std::vector<bool>(slots_.size(), CallsOften(*called)), {64, 1024});
}

std::vector<bool> BranchSlots::Assign(const std::vector<FnRef>& branches, const std::vector<size_t>& first) {
  std::vector<bool> from_inside;
  absl::flat_hash_map<const Type*, std::vector<size_t>> of_type;  // slots, by their interned type
  for (size_t k = 0; k < branches.size(); ++k) {
    const Fn& fn = *branches[k];
    absl::flat_hash_map<const Type*, size_t> used;  // so many of them, by this branch
    slot_of_.emplace_back();
    for (size_t i = first[k]; i < fn.results().size(); ++i) {
      const Type* type = &fn.TypeOf(fn.results()[i]);
      std::vector<size_t>& slots = of_type[type];
      const size_t next = used[type]++;
      if (next == slots.size()) {
        slots.push_back(slots_.size());
        slots_.push_back(*type);
        from_inside.push_back(false);
      }
      const size_t slot = slots[next];
      from_inside[slot] = from_inside[slot] || IsFromCond(fn, fn.results()[i]);
      slot_of_.back().push_back(slot);
    }
  }
  return from_inside;
}

void BranchSlots::Pack(const std::vector<bool>& may_be_packed, const Limits& limits) {
  ChoosePacks(may_be_packed, limits);
  packed_.assign(slots_.size(), false);
  for (const auto& pack : packs_) {
    for (size_t slot : pack) packed_[slot] = true;
  }
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (!packed_[slot]) types_.push_back(slots_[slot]);
  }
  for (const auto& pack : packs_) {
    int64_t size = 0;
    for (size_t slot : pack) size += Elements(slots_[slot]);
    types_.push_back(slots_[pack[0]].With({Dim(size)}));
  }
}

void BranchSlots::ChoosePacks(const std::vector<bool>& may_be_packed, const Limits& limits) {
  if (static_cast<size_t>(std::count(may_be_packed.begin(), may_be_packed.end(), true)) <= limits.small) return;
  std::vector<std::pair<Type, std::vector<Item>>> kinds;  // one for each dtype and list of mesh axes
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (!may_be_packed[slot] || !CanBePacked(slots_[slot])) continue;
    const Type kind = slots_[slot].With(Dims{});
    auto at = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.first == kind; });
    if (at == kinds.end()) at = kinds.insert(at, {kind, {}});
    at->second.push_back({Elements(slots_[slot]) * ByteWidth(kind.dtype), {slot}});
  }
  for (auto& [kind, items] : kinds) {
    std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.bytes < b.bytes; });
    const auto large = std::find_if(items.begin(), items.end(), [](const Item& i) { return i.bytes > kSmallBytes; });
    const auto small = static_cast<size_t>(large - items.begin());
    // Small ones all become one array, others half as many as there may be at a time.
    if (small > limits.small) JoinSmallest(items, small);
    while (items.size() > limits.any) JoinSmallest(items, limits.any / 2);
    for (Item& item : items) {
      if (item.slots.size() > 1) packs_.push_back(std::move(item.slots));
    }
  }
}

Atoms BranchSlots::Fill(Builder& b, size_t k, const Atoms& values) const {
  std::vector<std::optional<Atom>> in_slot(slots_.size());
  for (size_t i = 0; i < values.size(); ++i) in_slot[slot_of_[k][i]] = values[i];
  Atoms out;
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (!packed_[slot]) out.push_back(in_slot[slot] ? *in_slot[slot] : Zeros(b, slots_[slot]));
  }
  for (const auto& pack : packs_) {
    Atoms parts;
    int64_t missing = 0;  // elements since the last part
    const auto fill = [&] {
      if (missing > 0) parts.push_back(Zeros(b, slots_[pack[0]].With({Dim(missing)})));
      missing = 0;
    };
    for (size_t slot : pack) {
      const int64_t n = Elements(slots_[slot]);
      if (!in_slot[slot]) {
        missing += n;
        continue;
      }
      fill();
      parts.push_back(Reshape(b, *in_slot[slot], {Dim(n)}));
    }
    fill();
    out.push_back(parts.size() == 1 ? parts[0] : Concatenate(b, parts, 0));
  }
  return out;
}

Atoms BranchSlots::Read(Builder& b, size_t k, const Atoms& filled) const {
  Atoms in_slot(slots_.size());
  std::vector<bool> read(slots_.size(), false);
  for (size_t slot : slot_of_[k]) read[slot] = true;
  size_t next = 0;
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (!packed_[slot]) in_slot[slot] = filled[next++];
  }
  for (const auto& pack : packs_) {
    const Atom& array = filled[next++];
    int64_t start = 0;
    for (size_t slot : pack) {
      const int64_t n = Elements(slots_[slot]);
      if (read[slot]) in_slot[slot] = Reshape(b, Slice(b, array, {start}, {start + n}, {1}), slots_[slot].dims);
      start += n;
    }
  }
  Atoms values;
  for (size_t slot : slot_of_[k]) values.push_back(in_slot[slot]);
  return values;
}

}  // namespace weft
