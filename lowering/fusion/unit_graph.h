// Which unit of a function body depends on which, while fusion puts equations together: a graph without cycles, and an
// order of its nodes in which each comes after those that it reads.
//
// The order is kept as edges are added and nodes are merged. A question about a path looks backwards from its end, only
// at nodes that lie between the two in the order, and gives up after kMostVisited of them: the answer is then "maybe",
// which callers take as yes. So each question costs a bounded number of steps, and what is not fused for it lies more
// than that many units apart.
#ifndef WEFT_LOWERING_FUSION_UNIT_GRAPH_H_
#define WEFT_LOWERING_FUSION_UNIT_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

class UnitGraph {
 public:
  static constexpr int kMostVisited = 256;

  // A node that reads `sources`, behind all others in the order.
  int Add(const std::vector<int>& sources);
  // True unless it is certain that no path leads from `node` to any of `ends` (other than `node` itself).
  bool MayReach(int node, const std::vector<int>& ends);
  // `node` reads `sources`, too. MayReach(node, sources) must be false; `node` itself among them is ignored.
  void Depend(int node, const std::vector<int>& sources);
  // Makes `from` part of `into`, unless a path between them leads through a third node, or may: then false.
  bool Merge(int into, int from);
  // Whether an edge leads from `source` to `node`.
  bool Reads(int node, int source) const;
  // The node that `node` has become part of.
  int Find(int node) const {
    while (nodes_[node].merged_into >= 0) node = nodes_[node].merged_into;
    return node;
  }
  // What a node reads: nodes that have not been merged away, each once, without itself.
  std::vector<int> Sources(int node) const;

 private:
  struct Node {
    int64_t label = 0;  // ascending along the order
    int before = -1, after = -1;
    int merged_into = -1;
    uint64_t visited = 0;
    std::vector<int> sources;
  };
  // Gathers in `found_` the nodes from which a path leads to `ends` and that lie behind `node` in the order, `ends`
  // that lie there included. False when it meets `node` itself, or more than `most`.
  bool SearchBack(int node, const std::vector<int>& ends, size_t most);
  // Moves what SearchBack found before `node`.
  void MoveBefore(int node);
  void InsertBefore(int at, int node, int64_t label);
  void Unlink(int node);
  void AddSources(int node, const std::vector<int>& sources);
  void Relabel();

  std::vector<Node> nodes_;
  std::vector<int> found_, stack_;
  uint64_t search_ = 0;
  int first_ = -1, last_ = -1;
};

}  // namespace weft
#endif  // WEFT_LOWERING_FUSION_UNIT_GRAPH_H_
