#include "python/native/jit_cache.h"

#include <algorithm>
#include <utility>

namespace weft::python {

std::shared_ptr<Entry> EntryCache::Find(const Signature& signature) {
  // (Not const, so that it is moved out.)
  if (std::shared_ptr<Entry> last = last_; last && last->signature == signature) return last;
  const size_t hash = signature.Hash();
  std::vector<std::shared_ptr<Entry>> candidates;
  if (const auto it = by_hash_.find(hash); it != by_hash_.end()) {
    for (const Order::iterator& place : it->second) candidates.push_back(*place);
  }
  for (std::shared_ptr<Entry>& entry : candidates) {
    if (!(entry->signature == signature)) continue;
    // Looked up again: it may have been dropped meanwhile.
    if (const auto it = by_hash_.find(hash); it != by_hash_.end()) {
      for (const Order::iterator& place : it->second) {
        if (*place != entry) continue;
        order_.splice(order_.begin(), order_, place);
        last_ = entry;
        break;
      }
    }
    return std::move(entry);
  }
  return nullptr;
}

void EntryCache::Insert(std::shared_ptr<Entry> entry) {
  order_.push_front(entry);
  by_hash_[entry->signature.Hash()].push_back(order_.begin());
  last_ = std::move(entry);
  if (order_.size() <= kMost) return;
  // Letting go of it may run Python code: last of all.
  const Order::iterator oldest = std::prev(order_.end());
  const std::shared_ptr<Entry> dropped = *oldest;
  const auto it = by_hash_.find(dropped->signature.Hash());
  std::erase(it->second, oldest);
  if (it->second.empty()) by_hash_.erase(it);
  order_.erase(oldest);
}

void EntryCache::Clear() {
  const std::shared_ptr<Entry> last = std::move(last_);
  last_.reset();
  const Order order = std::exchange(order_, {});
  by_hash_.clear();
}

int EntryCache::Traverse(visitproc visit, void* arg) const {
  for (const std::shared_ptr<Entry>& entry : order_) {
    if (entry.use_count() > 1 + (entry == last_)) continue;
    for (const Ref& o : entry->signature.objects) Py_VISIT(o.get());
  }
  return 0;
}

std::shared_ptr<Flight> EntryCache::FindFlight(const Signature& signature) const {
  const auto pending = pending_;
  for (const auto& p : pending) {
    if (p->first == signature) return {p, &p->second};
  }
  return nullptr;
}

EntryCache::Tracing::Tracing(EntryCache& cache, const Signature& signature)
    : cache_(cache),
      pending_(std::make_shared<std::pair<Signature, Flight>>(std::piecewise_construct,
                                                              std::forward_as_tuple(signature), std::tuple<>())) {
  cache_.pending_.push_back(pending_);
}

EntryCache::Tracing::~Tracing() {
  std::erase(cache_.pending_, pending_);
  pending_->second.Land();
}

}  // namespace weft::python
