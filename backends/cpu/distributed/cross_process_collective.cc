#include "backends/cpu/distributed/cross_process_collective.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace weft::cpu {

bool CrossProcessCollective::InPieces() const {
  return group_[0].kind == Kind::kPsumScatter || group_[0].kind == Kind::kAllToAll;
}

void CrossProcessCollective::AddSubtrees(int process, int64_t begin, int64_t end, std::vector<Item>& items) const {
  const auto first = owners_.begin();
  if (std::all_of(first + begin, first + end, [&](int p) { return p == process; })) {
    items.push_back({begin, end, SubtotalBytes(group_[0].dtype, group_[0].elements(), begin, end), nullptr});
  } else if (end - begin > 1) {
    const int64_t middle = TreeMiddle(begin, end);
    AddSubtrees(process, begin, middle, items);
    AddSubtrees(process, middle, end, items);
  }
}

std::vector<CrossProcessCollective::Item> CrossProcessCollective::ItemsOf(int process) {
  std::vector<Item> items;
  const auto n = static_cast<int64_t>(owners_.size());
  if (group_[0].reduces()) {
    AddSubtrees(process, 0, n, items);
    return items;
  }
  for (int64_t m = 0; m < n; ++m) {
    if (owners_[static_cast<size_t>(m)] == process) items.push_back({m, m + 1, group_[0].bytes(), nullptr});
  }
  return items;
}

bool CrossProcessCollective::Wants(int process, const Item& item) const {
  if (group_[0].kind != Kind::kPpermute) return true;
  for (size_t i = 0; i < group_[0].senders.size(); ++i) {
    const int64_t from = group_[0].senders[i], to = group_[0].receivers[i];
    if (from == item.begin && to < static_cast<int64_t>(owners_.size()) && owners_[static_cast<size_t>(to)] == process)
      return true;
  }
  return false;
}

char* CrossProcessCollective::Room(int64_t bytes) {
  memory_.emplace_back(new char[static_cast<size_t>(std::max<int64_t>(bytes, 1))]);
  return memory_.back().get();
}

// The runs of bytes of an item that belong to members of `process`: each gets one of n equal parts of a dimension.
template <class F>
void CrossProcessCollective::ForEachPiece(const Item& item, int process, const F& copy) const {
  const auto n = static_cast<int64_t>(owners_.size());
  const int64_t outer = group_[0].Outer(group_[0].dim);
  const int64_t run = outer == 0 ? 0 : item.bytes / outer / n;
  for (int64_t row = 0; row < outer; ++row) {
    for (int64_t m = 0; m < n; ++m) {
      if (owners_[static_cast<size_t>(m)] == process) copy((row * n + m) * run, run);
    }
  }
}

int64_t CrossProcessCollective::PackedBytes(const std::vector<Item>& items, int process) const {
  const auto members = std::count(owners_.begin(), owners_.end(), process);
  int64_t bytes = 0;
  for (const Item& item : items) bytes += item.bytes / static_cast<int64_t>(owners_.size()) * members;
  return bytes;
}

CrossProcessCollective::CrossProcessCollective(ProcessGroup& job, Group group, std::vector<int> owners, int tag,
                                               const std::string& what)
    : rank_(job.rank()), group_(std::move(group)), owners_(std::move(owners)) {
  given_ = ItemsOf(rank_);
  for (Item& item : given_) {
    if (group_[0].reduces() && item.end - item.begin > 1) {
      item.data = Room(item.bytes);
      ComputeSubtotal(group_, item.begin, item.end, item.data);
      group_.subtotals.push_back({item.begin, item.end, item.data});
    } else {
      item.data = const_cast<char*>(group_[static_cast<size_t>(item.begin)].x);
    }
  }
  std::vector<ProcessGroup::Message> sends, receives;
  const std::set<int> processes(owners_.begin(), owners_.end());
  for (int process : processes) {
    if (process == rank_) continue;
    std::vector<Item> theirs = ItemsOf(process);
    if (InPieces()) {
      const int64_t out = PackedBytes(given_, process);
      char* to = Room(out);
      sends.push_back({process, to, out});
      for (const Item& item : given_) {
        ForEachPiece(item, process, [&](int64_t at, int64_t n) {
          std::memcpy(to, item.data + at, static_cast<size_t>(n));
          to += n;
        });
      }
      packed_.push_back(std::make_unique<Packed>());
      packed_.back()->first = received_.size();
      packed_.back()->bytes.resize(static_cast<size_t>(PackedBytes(theirs, rank_)));
      receives.push_back({process, packed_.back()->bytes.data(), static_cast<int64_t>(packed_.back()->bytes.size())});
      for (Item& item : theirs) {
        item.data = Room(item.bytes);
        received_.push_back(item);
      }
    } else {
      for (const Item& item : given_) {
        if (Wants(process, item)) sends.push_back({process, item.data, item.bytes});
      }
      for (Item& item : theirs) {
        if (!Wants(rank_, item)) continue;
        item.data = Room(item.bytes);
        receives.push_back({process, item.data, item.bytes});
        received_.push_back(item);
      }
    }
  }
  exchange_ = job.Post(tag, what, sends, receives);
}

std::string CrossProcessCollective::Finish() {
  for (size_t p = 0; p < packed_.size(); ++p) {
    const size_t end = p + 1 < packed_.size() ? packed_[p + 1]->first : received_.size();
    const char* from = packed_[p]->bytes.data();
    for (size_t i = packed_[p]->first; i < end; ++i) {
      ForEachPiece(received_[i], rank_, [&](int64_t at, int64_t n) {
        std::memcpy(received_[i].data + at, from, static_cast<size_t>(n));
        from += n;
      });
    }
  }
  for (const Item& item : received_) {
    if (group_[0].reduces())
      group_.subtotals.push_back({item.begin, item.end, item.data});
    else
      group_.members[static_cast<size_t>(item.begin)].x = item.data;
  }
  return RunGroup(group_);
}

}  // namespace weft::cpu
