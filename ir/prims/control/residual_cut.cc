#include "ir/prims/control/residual_cut.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "ir/analysis/cost.h"
#include "ir/builder.h"
#include "ir/prims/control/regions.h"

namespace weft {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();
bool CanBeMadeAgain(const Eqn& e) {
  return e.num_results == 1 && e.regions.empty() && (e.prim->is_elementwise() || e.prim->expands);
}

// Maximum flow by shortest augmenting paths (Dinic 1970) on a small graph.
class FlowNetwork {
 public:
  explicit FlowNetwork(int nodes) : first_(static_cast<size_t>(nodes), -1) {}

  void Add(int from, int to, double capacity) {
    edges_.push_back({to, std::exchange(first_[from], static_cast<int>(edges_.size())), capacity});
    edges_.push_back({from, std::exchange(first_[to], static_cast<int>(edges_.size())), 0});
  }

  // The nodes from which `sink` can still be reached once the flow is largest: the cut nearest to the sink.
  std::vector<bool> SinkSide(int source, int sink) {
    while (Level(source, sink)) Block(source, sink);
    std::vector<bool> reaches(first_.size(), false);
    std::queue<int> pending;
    reaches[sink] = true;
    pending.push(sink);
    while (!pending.empty()) {
      const int node = pending.front();
      pending.pop();
      for (int e = first_[node]; e >= 0; e = edges_[e].next) {  // e ^ 1 goes from its target to this node
        const int from = edges_[e].to;
        if (!reaches[from] && edges_[e ^ 1].capacity > 0) {
          reaches[from] = true;
          pending.push(from);
        }
      }
    }
    return reaches;
  }

 private:
  struct Edge {
    int to;
    int next;  // of the edges that leave the same node, or -1
    double capacity;
  };

  // How far each node is from the source, up to the sink's distance; whether the sink can be reached.
  bool Level(int source, int sink) {
    level_.assign(first_.size(), -1);
    level_[source] = 0;
    std::queue<int> pending;
    pending.push(source);
    while (!pending.empty()) {
      const int node = pending.front();
      pending.pop();
      if (level_[sink] >= 0 && level_[node] + 1 >= level_[sink]) break;  // nothing further lies on a shortest path
      for (int e = first_[node]; e >= 0; e = edges_[e].next) {
        if (edges_[e].capacity > 0 && level_[edges_[e].to] < 0) {
          level_[edges_[e].to] = level_[node] + 1;
          pending.push(edges_[e].to);
        }
      }
    }
    return level_[sink] >= 0;
  }

  // Saturates an edge of every shortest path. The path so far is a list rather than a stack of calls: it is as long as
  // the body of the loop in which the cut is made.
  void Block(int source, int sink) {
    next_ = first_;
    std::vector<int> path;  // of edges
    int node = source;
    while (true) {
      if (node == sink) {
        double pushed = kEndless;
        for (int e : path) pushed = std::min(pushed, edges_[e].capacity);
        size_t full = path.size();
        for (size_t i = path.size(); i-- > 0;) {
          edges_[path[i]].capacity -= pushed;
          edges_[path[i] ^ 1].capacity += pushed;
          if (edges_[path[i]].capacity <= 0) full = i;
        }
        // On from where the first full edge leaves.
        node = edges_[path[full] ^ 1].to;
        path.resize(full);
        continue;
      }
      const int e = NextEdge(node);
      if (e >= 0) {
        path.push_back(e);
        node = edges_[e].to;
      } else if (path.empty()) {
        return;
      } else {  // a dead end
        node = edges_[path.back() ^ 1].to;
        path.pop_back();
        next_[node] = edges_[next_[node]].next;
      }
    }
  }

  // An edge from `node` to a node one further that may lead on, or -1.
  int NextEdge(int node) {
    for (int& e = next_[node]; e >= 0; e = edges_[e].next) {
      if (edges_[e].capacity > 0 && level_[edges_[e].to] == level_[node] + 1) return e;
    }
    return -1;
  }

  std::vector<Edge> edges_;
  std::vector<int> first_;  // edge of each node
  std::vector<int> level_;
  std::vector<int> next_;  // edge of each node to try
};

class ResidualCut {
 public:
  ResidualCut(SplitFn split, const Mask& stored)
      : split_(std::move(split)),
        known_(*split_.known),
        stored_(stored),
        first_residual_(known_.results().size() - split_.residuals.size()),
        maker_(known_.num_vars(), nullptr) {
    for (const Eqn& e : known_.eqns()) {
      if (CanBeMadeAgain(e)) maker_[e.first_result] = &e;
    }
    std::vector<bool> seen(known_.num_vars(), false);
    for (size_t r = first_residual_; r < known_.results().size(); ++r) {
      const Atom& a = known_.results()[r];
      if (a.is_var() && !seen[a.id()]) residuals_.push_back(a);
      if (a.is_var()) seen[a.id()] = true;
    }
  }

  SplitFn Run() {
    const bool different = residuals_.size() != split_.residuals.size();  // a value that is there twice, or a number
    // Whatever is made again costs its own operation at least, so then all are kept.
    const auto keep = [&](const Atom& a) { return CostToKeep(a.id()) <= CostToMake(a.id()); };
    if (!different && std::all_of(residuals_.begin(), residuals_.end(), keep)) return std::move(split_);
    FindAncestors();
    const std::vector<uint32_t> kept = MinimumCut();
    MarkRemade(kept);
    if (!different && std::find(remade_.begin(), remade_.end(), true) == remade_.end()) return std::move(split_);
    return Rebuilt(kept);
  }

 private:
  double CostToKeep(uint32_t v) const {
    if (v < stored_.size() && stored_[v]) return 0;
    return 2 * std::max(1.0, BytesPerArray(known_.TypeOf(Var{v})));
  }
  double CostToMake(uint32_t v) const { return maker_[v] ? FlopsOf(known_, *maker_[v]) : kEndless; }

  // The values that residuals follow from by equations that can be made again, themselves included.
  void FindAncestors() {
    wanted_.assign(known_.num_vars(), false);
    for (const Atom& a : residuals_) wanted_[a.id()] = true;
    for (size_t i = known_.eqns().size(); i-- > 0;) {
      const Eqn& e = known_.eqns()[i];
      if (e.num_results == 0 || maker_[e.first_result] == nullptr || !wanted_[e.first_result]) continue;
      for (const Atom& a : e.operands) {
        if (a.is_var()) wanted_[a.id()] = true;
      }
    }
  }

  // In the network a value is a pair of nodes, 2v and 2v + 1. The edge between them costs what keeping it costs, the
  // one from the source what making it again costs; it can be made only where its operands are there too.
  std::vector<uint32_t> MinimumCut() {
    const int n = static_cast<int>(known_.num_vars()), source = 2 * n, sink = 2 * n + 1;
    FlowNetwork network(2 * n + 2);
    for (uint32_t v = 0; v < known_.num_vars(); ++v) {
      if (!wanted_[v]) continue;
      const int in = static_cast<int>(2 * v);
      network.Add(in, in + 1, CostToKeep(v));
      network.Add(source, in, CostToMake(v));
      if (maker_[v] == nullptr) continue;
      for (const Atom& a : maker_[v]->operands) {
        if (a.is_var()) network.Add(static_cast<int>(2 * a.id() + 1), in, kEndless);
      }
    }
    for (const Atom& a : residuals_) network.Add(static_cast<int>(2 * a.id() + 1), sink, kEndless);
    const std::vector<bool> below = network.SinkSide(source, sink);
    std::vector<uint32_t> kept;
    for (uint32_t v = 0; v < known_.num_vars(); ++v) {
      if (wanted_[v] && !below[2 * v] && below[2 * v + 1]) kept.push_back(v);
    }
    return kept;
  }

  void MarkRemade(const std::vector<uint32_t>& kept) {
    std::vector<bool> is_kept(known_.num_vars(), false);
    for (uint32_t v : kept) is_kept[v] = true;
    read_.assign(known_.num_vars(), false);
    remade_.assign(known_.num_vars(), false);
    for (const Atom& a : residuals_) read_[a.id()] = true;
    for (size_t i = known_.eqns().size(); i-- > 0;) {
      const Eqn& e = known_.eqns()[i];
      if (e.num_results != 1 || !read_[e.first_result] || is_kept[e.first_result]) continue;
      remade_[e.first_result] = true;
      for (const Atom& a : e.operands) {
        if (a.is_var()) read_[a.id()] = true;
      }
    }
  }

  SplitFn Rebuilt(const std::vector<uint32_t>& kept) {
    SplitFn out;
    out.unknown_out = split_.unknown_out;
    // The linear half: what is kept, then what is made again, then what it was.
    Builder linear(split_.unknown->name());
    linear.ReserveLike(*split_.unknown, 2);
    LongList<Atom> env(known_.num_vars());
    std::vector<uint32_t> read;
    out.residuals.reserve(kept.size());
    for (uint32_t v : kept) {
      if (!read_[v]) continue;
      read.push_back(v);
      out.residuals.push_back(known_.TypeOf(Var{v}));
      env[v] = linear.Parameter(out.residuals.back());
    }
    Atoms args;
    const size_t old = split_.residuals.size();
    for (size_t i = old; i < split_.unknown->params().size(); ++i) {
      const Param& p = split_.unknown->params()[i];
      args.push_back(linear.Parameter(p.type, p.name, p.kind));
    }
    for (const Eqn& e : known_.eqns()) {
      if (e.num_results == 0 || !remade_[e.first_result]) continue;
      Atoms x;
      for (const Atom& a : e.operands) x.push_back(a.is_var() ? env[a.id()] : a);
      ScopedLoc loc(linear, e.loc);
      env[e.first_result] = linear.Clone(known_, e, x)[0];
    }
    Atoms values;
    for (size_t r = first_residual_; r < known_.results().size(); ++r) {
      const Atom& a = known_.results()[r];
      values.push_back(a.is_var() ? env[a.id()] : a);
    }
    values.insert(values.end(), args.begin(), args.end());
    const Atoms tangents = linear.Inline(std::move(split_.unknown), values);
    out.unknown = std::move(linear).Build(tangents);

    Atoms results = Part(known_.results(), 0, first_residual_);
    for (uint32_t v : read) results.push_back(Var{v});
    Builder known(std::move(split_.known));
    out.known = std::move(known).Build(results);
    return out;
  }

  SplitFn split_;
  const Fn& known_;  // until it is rebuilt
  const Mask& stored_;
  const size_t first_residual_;
  std::vector<const Eqn*> maker_;    // per variable: the equation that makes it, if it can be made again
  Atoms residuals_;                  // those that are variables, each once
  std::vector<bool> wanted_;         // residuals and what they can be made from
  std::vector<bool> read_, remade_;  // by the new linear half
};

}  // namespace

SplitFn WithFewestResiduals(SplitFn split, const Mask& stored) {
  if (split.residuals.empty()) return split;
  return ResidualCut(std::move(split), stored).Run();
}

}  // namespace weft
