// Against a matrix of paths, on random graphs: an answer that the graph gives is right, and it is "maybe" only where
// many nodes lie between.
#include "lowering/fusion/unit_graph.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace weft {
namespace {

// The same by brute force.
class Reference {
 public:
  void Add(const std::vector<int>& sources) {
    edges_.emplace_back();
    for (int s : sources) edges_.back().insert(Find(s));
    into_.push_back(-1);
  }
  void Depend(int node, const std::vector<int>& sources) {
    for (int s : sources) {
      if (Find(s) != node) edges_[node].insert(Find(s));
    }
  }
  int Find(int n) const {
    while (into_[n] >= 0) n = into_[n];
    return n;
  }
  std::set<int> Sources(int n) const {
    std::set<int> all;
    for (int s : edges_[n]) {
      if (Find(s) != n) all.insert(Find(s));
    }
    return all;
  }
  // A path of at least `least` edges from `from` to `to`.
  bool Reaches(int from, int to, int least = 1) const {
    std::set<std::pair<int, int>> seen;
    std::vector<std::pair<int, int>> stack = {{to, 0}};
    while (!stack.empty()) {
      const auto [n, length] = stack.back();
      stack.pop_back();
      for (int s : Sources(n)) {
        const int l = std::min(least, length + 1);
        if (s == from && l >= least) return true;
        if (s != from && seen.insert({s, l}).second) stack.push_back({s, l});
      }
    }
    return false;
  }
  void Merge(int into, int from) {
    Depend(into, {edges_[from].begin(), edges_[from].end()});
    edges_[from].clear();
    into_[from] = into;
  }

 private:
  std::vector<std::set<int>> edges_;
  std::vector<int> into_;
};

TEST(UnitGraph, AnswersAsAMatrixOfPathsDoes) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    UnitGraph graph;
    Reference expected;
    int nodes = 0, merges = 0, additions = 0;
    auto alive = [&] { return expected.Find(below(nodes)); };
    for (int step = 0; step < 150; ++step) {
      const int what = nodes < 3 ? 0 : below(3);
      if (what == 0) {
        std::vector<int> sources;
        for (int i = nodes ? below(3) : 0; i > 0; --i) sources.push_back(alive());
        EXPECT_EQ(graph.Add(sources), nodes++);
        expected.Add(sources);
      } else if (what == 1) {
        const int node = alive();
        std::vector<int> sources;
        bool reaches = false;
        for (int i = 1 + below(2); i > 0; --i) {
          const int source = alive();
          if (source == node) continue;
          sources.push_back(source);
          reaches = reaches || expected.Reaches(node, source);
        }
        ASSERT_EQ(graph.MayReach(node, sources), reaches) << "seed " << seed << ", step " << step;
        if (reaches) continue;
        graph.Depend(node, sources);
        expected.Depend(node, sources);
        ++additions;
      } else {
        const int into = alive(), from = alive();
        if (into == from) continue;
        const bool through_a_third = expected.Reaches(into, from, 2) || expected.Reaches(from, into, 2);
        ASSERT_EQ(graph.Merge(into, from), !through_a_third) << "seed " << seed << ", step " << step;
        if (through_a_third) continue;
        expected.Merge(into, from);
        ++merges;
      }
      for (int n = 0; n < nodes; ++n) {
        ASSERT_EQ(graph.Find(n), expected.Find(n));
        const std::set<int> sources = expected.Sources(n);
        ASSERT_EQ(graph.Sources(n), std::vector<int>(sources.begin(), sources.end())) << n << ", seed " << seed;
      }
    }
    EXPECT_GT(merges, 0);
    EXPECT_GT(additions, 0);
  }
}

// A node is moved before another again and again: labels run out and are made anew.
TEST(UnitGraph, HoldsManyNodesInOnePlace) {
  UnitGraph graph;
  const int early = graph.Add({}), first = graph.Add({});
  for (int i = 0; i < 20000; ++i) {
    const int late = graph.Add({first});
    ASSERT_FALSE(graph.MayReach(early, {late}));
    if (i % 2) graph.Depend(early, {late});
    ASSERT_TRUE(graph.MayReach(first, {late}));
    ASSERT_EQ(graph.MayReach(late, {early}), i % 2 == 1);
  }
}

TEST(UnitGraph, SaysMaybeWhereTooMuchLiesBetween) {
  UnitGraph graph;
  const int node = graph.Add({});
  int end = graph.Add({});
  const int start = end;
  for (int i = 0; i < UnitGraph::kMostVisited / 2; ++i) end = graph.Add({end});
  EXPECT_FALSE(graph.MayReach(node, {end}));
  for (int i = 0; i < UnitGraph::kMostVisited; ++i) end = graph.Add({end});
  EXPECT_TRUE(graph.MayReach(node, {end}));
  EXPECT_FALSE(graph.Merge(node, end));
  EXPECT_FALSE(graph.MayReach(node, {start}));
  graph.Depend(node, {start});
  EXPECT_TRUE(graph.MayReach(start, {node}));
}

}  // namespace
}  // namespace weft
