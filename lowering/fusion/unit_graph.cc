#include "lowering/fusion/unit_graph.h"

#include <algorithm>

#include "ir/error.h"

namespace weft {
namespace {

// Room between neighbours for nodes that are moved there.
constexpr int64_t kGap = int64_t{1} << 32;

}  // namespace

int UnitGraph::Add(const std::vector<int>& sources) {
  const int node = static_cast<int>(nodes_.size());
  Node n;
  n.sources = sources;
  n.before = last_;
  n.label = last_ < 0 ? 0 : nodes_[last_].label + kGap;
  if (last_ < 0)
    first_ = node;
  else
    nodes_[last_].after = node;
  last_ = node;
  nodes_.push_back(std::move(n));
  return node;
}

bool UnitGraph::SearchBack(int node, const std::vector<int>& ends, size_t most) {
  ++search_;
  found_.clear();
  stack_.clear();
  const int64_t least = nodes_[node].label;
  auto visit = [&](int n) {
    n = Find(n);
    if (nodes_[n].label <= least || nodes_[n].visited == search_) return;
    nodes_[n].visited = search_;
    found_.push_back(n);
    stack_.push_back(n);
  };
  for (int end : ends) visit(end);
  while (!stack_.empty()) {
    if (found_.size() > most) return false;
    const int n = stack_.back();
    stack_.pop_back();
    for (int source : nodes_[n].sources) {
      if (Find(source) == node) return false;
      visit(source);
    }
  }
  return true;
}

bool UnitGraph::MayReach(int node, const std::vector<int>& ends) { return !SearchBack(node, ends, kMostVisited); }

void UnitGraph::Depend(int node, const std::vector<int>& sources) {
  // Without a limit: since MayReach was asked, the order may have become one in which more lies between.
  WEFT_CHECK(SearchBack(node, sources, nodes_.size())) << "fusion made a cycle";
  MoveBefore(node);
  AddSources(node, sources);
}

bool UnitGraph::Merge(int into, int from) {
  const bool into_first = nodes_[into].label < nodes_[from].label;
  const int early = into_first ? into : from, late = into_first ? from : into;
  // An edge between the two is no obstacle.
  std::vector<int> ends;
  for (int source : nodes_[late].sources) {
    const int s = Find(source);
    if (s != early && s != late) ends.push_back(s);
  }
  if (!SearchBack(early, ends, kMostVisited)) return false;
  MoveBefore(early);
  // The merged node takes the earlier one's place.
  if (!into_first) {
    Unlink(into);
    InsertBefore(from, into, nodes_[from].label);
  }
  Unlink(from);
  nodes_[from].merged_into = into;
  AddSources(into, nodes_[from].sources);
  nodes_[from].sources.clear();
  return true;
}

bool UnitGraph::Reads(int node, int source) const {
  const std::vector<int>& all = nodes_[node].sources;
  return std::any_of(all.begin(), all.end(), [&](int s) { return Find(s) == source; });
}

std::vector<int> UnitGraph::Sources(int node) const {
  std::vector<int> sources;
  for (int source : nodes_[node].sources) {
    const int s = Find(source);
    if (s != node) sources.push_back(s);
  }
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  return sources;
}

void UnitGraph::AddSources(int node, const std::vector<int>& sources) {
  std::vector<int>& all = nodes_[node].sources;
  for (int source : sources) {
    const int s = Find(source);
    if (s != node && std::find(all.begin(), all.end(), s) == all.end()) all.push_back(s);
  }
}

void UnitGraph::Unlink(int node) {
  const Node& n = nodes_[node];
  (n.before < 0 ? first_ : nodes_[n.before].after) = n.after;
  (n.after < 0 ? last_ : nodes_[n.after].before) = n.before;
}

void UnitGraph::InsertBefore(int at, int node, int64_t label) {
  Node& n = nodes_[node];
  n.label = label;
  n.before = nodes_[at].before;
  n.after = at;
  (n.before < 0 ? first_ : nodes_[n.before].after) = node;
  nodes_[at].before = node;
}

void UnitGraph::MoveBefore(int node) {
  if (found_.empty()) return;
  std::sort(found_.begin(), found_.end(), [&](int a, int b) { return nodes_[a].label < nodes_[b].label; });
  for (int n : found_) Unlink(n);
  const auto count = static_cast<int64_t>(found_.size());
  auto begin = [&] {
    const int before = nodes_[node].before;
    return before < 0 ? nodes_[node].label - kGap : nodes_[before].label;
  };
  if (nodes_[node].label - begin() <= count) Relabel();
  // Close behind what comes before, so that a node before which much is moved has room for a long time.
  const int64_t step = std::min<int64_t>((nodes_[node].label - begin()) / (count + 1), 1 << 10);
  int64_t label = begin();
  for (int n : found_) InsertBefore(node, n, label += step);
}

void UnitGraph::Relabel() {
  int64_t label = 0;
  for (int n = first_; n >= 0; n = nodes_[n].after, label += kGap) nodes_[n].label = label;
}

}  // namespace weft
