#include "ir/prims/branch_slots.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/ops.h"
#include "ir/prims/regions.h"

namespace weft {
namespace {

// So many values from inside may pass through a level by themselves: small ones, and all of them. Of more, half as many
// at a time become one array.
constexpr size_t kMostSmall = 16, kMost = 64;
constexpr int64_t kSmallBytes = 1024;

// Whether a cond inside handed the value over, perhaps through calls.
bool IsFromCond(const Fn& fn, const Atom& value) {
  static const Prim &cond = FindPrim("cond"), &call = FindPrim("call");
  if (!value.is_var() || value.id() < fn.params().size()) return false;
  // Equations are in the order of their results.
  size_t begin = 0, end = fn.eqns().size();
  while (end - begin > 1) {
    const size_t middle = begin + (end - begin) / 2;
    (fn.eqns()[middle].first_result <= value.id() ? begin : end) = middle;
  }
  const Eqn& e = fn.eqns()[begin];
  if (e.prim == &call) return IsFromCond(*e.regions[0], e.regions[0]->results()[value.id() - e.first_result]);
  return e.prim == &cond;
}

bool CanBePacked(const Type& t) { return t.is_static() && !IsOpaque(t.dtype); }

int64_t Elements(const Type& t) { return t.size().value("a branch's slot"); }

// Lists of slots of one kind that are to share an array.
struct Item {
  int64_t bytes;
  std::vector<size_t> slots;
};

// Joins the smallest of the first `count` items, which are in order of size, until at most `most` of these are left.
void JoinSmallest(std::vector<Item>& items, size_t count, size_t most) {
  while (count > most) {
    Item joined{0, {}};
    for (size_t i = 0; i < most / 2; ++i) {
      joined.bytes += items[i].bytes;
      joined.slots.insert(joined.slots.end(), items[i].slots.begin(), items[i].slots.end());
    }
    items.erase(items.begin(), items.begin() + static_cast<int64_t>(most / 2));
    const auto at = std::find_if(items.begin(), items.end(), [&](const Item& i) { return i.bytes >= joined.bytes; });
    count -= most / 2;
    if (static_cast<size_t>(at - items.begin()) <= count) ++count;
    items.insert(at, std::move(joined));
  }
}

}  // namespace

BranchSlots::BranchSlots(const std::vector<FnRef>& branches, const std::vector<size_t>& first) {
  std::vector<bool> from_inside;
  for (size_t k = 0; k < branches.size(); ++k) {
    const Fn& fn = *branches[k];
    std::vector<bool> used(slots_.size(), false);
    slot_of_.emplace_back();
    for (size_t i = first[k]; i < fn.results().size(); ++i) {
      const Type& t = fn.TypeOf(fn.results()[i]);
      size_t slot = 0;
      while (slot < slots_.size() && (used[slot] || !(slots_[slot] == t))) ++slot;
      if (slot == slots_.size()) {
        slots_.push_back(t);
        used.push_back(false);
        from_inside.push_back(false);
      }
      used[slot] = true;
      from_inside[slot] = from_inside[slot] || IsFromCond(fn, fn.results()[i]);
      slot_of_.back().push_back(slot);
    }
  }
  Pack(from_inside);
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

void BranchSlots::Pack(const std::vector<bool>& from_inside) {
  if (static_cast<size_t>(std::count(from_inside.begin(), from_inside.end(), true)) <= kMostSmall) return;
  std::vector<std::pair<Type, std::vector<Item>>> kinds;  // one for each dtype and list of mesh axes
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (!from_inside[slot] || !CanBePacked(slots_[slot])) continue;
    const Type kind = slots_[slot].With(Dims{});
    auto at = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.first == kind; });
    if (at == kinds.end()) at = kinds.insert(at, {kind, {}});
    at->second.push_back({Elements(slots_[slot]) * ByteWidth(kind.dtype), {slot}});
  }
  for (auto& [kind, items] : kinds) {
    std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.bytes < b.bytes; });
    const auto small = std::count_if(items.begin(), items.end(), [](const Item& i) { return i.bytes <= kSmallBytes; });
    JoinSmallest(items, static_cast<size_t>(small), kMostSmall);
    JoinSmallest(items, items.size(), kMost);
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
