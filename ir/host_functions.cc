#include "ir/host_functions.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <random>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/fork_safe_mutex.h"
#include "ir/fn.h"
#include "ir/prim.h"

namespace weft {
namespace {

struct Table {
  struct Entry {
    std::shared_ptr<void> function;
    int64_t holders = 0;
    HostKind kind = HostKind::kObject;
  };
  ForkSafeMutex mutex;
  std::unordered_map<int64_t, Entry> entries;
  int64_t stay = 0;
  Ints left;  // lost their last holder while something made them stay
  int64_t next = 0;
  pid_t process = 0;  // that drew `next`
};

Table& TheTable() {
  static auto& table = *new Table;
  return table;
}

using Functions = std::vector<std::shared_ptr<void>>;

// Takes those of `numbers` that nobody holds out of the table. What is returned is destroyed without the lock: it may
// run anything.
Functions TakeUnheld(Table& table, const Ints& numbers) {
  Functions gone;
  for (int64_t n : numbers) {
    const auto it = table.entries.find(n);
    if (it == table.entries.end() || it->second.holders > 0) continue;
    gone.push_back(std::move(it->second.function));
    table.entries.erase(it);
  }
  return gone;
}

void Collect(const Fn& fn, std::unordered_set<const Fn*>& seen, Ints& numbers) {
  for (const Eqn& e : fn.eqns()) {
    if (e.prim->host_functions) {
      for (int64_t n : e.prim->host_functions(e.attrs)) numbers.push_back(n);
    }
    for (const FnRef& r : e.regions) {
      if (seen.insert(r.get()).second) Collect(*r, seen, numbers);
    }
  }
}

}  // namespace

int64_t NewHostNumber() {
  Table& table = TheTable();
  std::lock_guard lock(table.mutex);
  if (table.process != getpid()) {
    table.process = getpid();
    std::random_device random;
    // Below 2^59, with room to count.
    table.next = static_cast<int64_t>(((uint64_t{random()} << 32) | random()) >> 6) + (int64_t{1} << 58);
  }
  return table.next++;
}

struct HostFunctions::Held {
  explicit Held(Ints n) : numbers(std::move(n)) {}
  Held(const Held&) = delete;
  ~Held() {
    Functions gone;
    Table& table = TheTable();
    std::lock_guard lock(table.mutex);
    for (int64_t n : numbers) --table.entries.at(n).holders;
    if (table.stay > 0)
      table.left.insert(table.left.end(), numbers.begin(), numbers.end());
    else
      gone = TakeUnheld(table, numbers);
  }
  Ints numbers;
};

HostFunctions::HostFunctions(std::shared_ptr<void> function, int64_t number, HostKind kind) {
  Table& table = TheTable();
  {
    std::lock_guard lock(table.mutex);
    Table::Entry& entry = table.entries[number];
    if (entry.function == nullptr) {
      entry.function = std::move(function);
      entry.kind = kind;
    }
    ++entry.holders;
  }
  held_ = std::make_shared<const Held>(Ints{number});
}

HostFunctions::HostFunctions(const Fn& fn) {
  Ints there = HostFunctionsOf(fn);
  if (there.empty()) return;
  Table& table = TheTable();
  {
    std::lock_guard lock(table.mutex);
    there.erase(std::remove_if(there.begin(), there.end(), [&](int64_t n) { return !table.entries.count(n); }),
                there.end());
    for (int64_t n : there) ++table.entries.at(n).holders;
  }
  if (!there.empty()) held_ = std::make_shared<const Held>(std::move(there));
}

int64_t HostFunctions::number() const {
  WEFT_CHECK(held_ != nullptr) << "no host function is held";
  return held_->numbers[0];
}

std::shared_ptr<void> FindHostFunction(int64_t number, HostKind kind) {
  Table& table = TheTable();
  std::lock_guard lock(table.mutex);
  const auto it = table.entries.find(number);
  return it == table.entries.end() || it->second.kind != kind ? nullptr : it->second.function;
}

bool HostFunctionExists(int64_t number) {
  Table& table = TheTable();
  std::lock_guard lock(table.mutex);
  return table.entries.contains(number);
}

Ints HostFunctionsOf(const Fn& fn) {
  std::unordered_set<const Fn*> seen;
  Ints numbers;
  Collect(fn, seen, numbers);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

HostFunctionsStay::HostFunctionsStay() {
  Table& table = TheTable();
  std::lock_guard lock(table.mutex);
  ++table.stay;
}

HostFunctionsStay::~HostFunctionsStay() {
  Functions gone;
  Table& table = TheTable();
  std::lock_guard lock(table.mutex);
  if (--table.stay > 0 || table.left.empty()) return;
  gone = TakeUnheld(table, std::exchange(table.left, {}));
}

}  // namespace weft
