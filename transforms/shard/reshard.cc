#include "transforms/shard/reshard.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "ir/error.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/collectives.h"

namespace weft {
namespace {

constexpr double kCollective = 256;  // bytes that could be sent in the time a collective takes to begin
constexpr double kSliceCost = 1e-3;  // per byte that is left: copying is cheap, but not free

using Kind = ReshardStep::Kind;

std::string Key(const Layout& l) {
  std::string key(1, static_cast<char>(l.partial));
  key += static_cast<char>(l.partial >> 8);
  for (const auto& dim : l.dims) {
    for (int a : dim) key += static_cast<char>(a + 1);
    key += '\0';
  }
  return key;
}

}  // namespace

uint32_t Layout::Cuts() const {
  uint32_t cuts = 0;
  for (const auto& dim : dims) {
    for (int a : dim) cuts |= AxisBit(a);
  }
  return cuts;
}

Layout Replicated(int rank) {
  Layout l;
  l.dims.resize(static_cast<size_t>(rank));
  return l;
}

Layout LayoutOf(const Mesh& mesh, const Sharding& sharding) {
  auto number = [&](const std::string& name) {
    int i = 0;
    while (mesh.axes.at(i).name != name) ++i;
    return i;
  };
  Layout l;
  for (const auto& dim : sharding.dims) {
    auto& axes = l.dims.emplace_back();
    for (const std::string& name : dim) {
      if (mesh.Size(name) > 1) axes.push_back(number(name));
    }
  }
  for (const std::string& name : sharding.partial) {
    if (mesh.Size(name) > 1) l.partial |= AxisBit(number(name));
  }
  return l;
}

Strings AxisNames(const Mesh& mesh, uint32_t axes) {
  Strings names;
  for (size_t i = 0; i < mesh.axes.size(); ++i) {
    if (axes & AxisBit(static_cast<int>(i))) names.push_back(mesh.axes[i].name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Sharding ShardingOf(const Mesh& mesh, const Layout& layout) {
  Sharding s;
  for (const auto& dim : layout.dims) {
    auto& names = s.dims.emplace_back();
    for (int a : dim) names.push_back(mesh.axes[a].name);
  }
  s.partial = AxisNames(mesh, layout.partial);
  return s;
}

int64_t Blocks(const Mesh& mesh, const std::vector<int>& axes) {
  int64_t n = 1;
  for (int a : axes) n *= mesh.axes[a].size;
  return n;
}

double BytesReceived(const std::string& prim, double bytes, double n) {
  using Rule = double (*)(double bytes, double n);
  const Rule reduction = [](double b, double k) { return 2 * b * (k - 1) / k; };
  const Rule blocks = [](double b, double k) { return b * (k - 1) / k; };
  static const auto& rules = *new PrimTable<Rule>{
      {"all_gather", [](double b, double k) { return b * (k - 1); }},
      {"all_to_all", blocks},
      {"psum_scatter", blocks},
      {"ppermute", [](double b, double) { return b; }},
      {"psum", reduction},
      {"pmax", reduction},
      {"pmin", reduction},
  };
  const Rule rule = rules[FindPrim(prim)];
  WEFT_CHECK(rule != nullptr) << "a collective whose bytes are not known: " << prim;
  return rule(bytes, n);
}

Type LocalTypeOf(const Mesh& mesh, const Layout& layout, const Type& global) {
  Type local = global;
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    if (!layout.dims[d].empty()) local.dims[d] = global.dims[d].value("a cut dimension") / Blocks(mesh, layout.dims[d]);
  }
  local.varying = AxisNames(mesh, layout.Axes());
  return local;
}

Resharder::Resharder(Mesh mesh) : mesh_(std::move(mesh)) {
  if (mesh_.axes.size() > 16) throw ValueError("a mesh has at most 16 axes, got ", mesh_.ToString());
}

const ReshardPlan& Resharder::Plan(const Type& global, const Layout& from, const Layout& to) {
  const Shape shape = StaticSizes(global.dims, "a sharded array");
  const int width = ByteWidth(global.dtype);
  std::string key = Key(from) + "|" + Key(to) + "|" + std::to_string(width);
  for (int64_t n : shape) key += "," + std::to_string(n);
  const auto it = plans_.find(key);
  if (it != plans_.end()) return it->second;
  return plans_.emplace(key, Search(shape, width, from, to)).first->second;
}

ReshardPlan Resharder::Search(const Shape& shape, int width, const Layout& from, const Layout& to) const {
  struct Node {
    Layout layout;
    double cost;
    int before;
    ReshardStep step;
  };
  std::vector<Node> nodes;
  std::unordered_map<std::string, double> best;
  using Entry = std::pair<double, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  auto push = [&](Layout layout, double cost, int before, ReshardStep step) {
    const auto [it, fresh] = best.emplace(Key(layout), cost);
    if (!fresh && it->second <= cost) return;
    it->second = cost;
    nodes.push_back({std::move(layout), cost, before, std::move(step)});
    queue.push({cost, static_cast<int>(nodes.size()) - 1});
  };
  push(from, 0, -1, {});
  while (!queue.empty()) {
    const auto [cost, at] = queue.top();
    queue.pop();
    const Layout l = nodes[at].layout;
    if (cost > best.at(Key(l))) continue;
    if (l == to) {
      ReshardPlan plan;
      plan.cost = cost;
      for (int i = at; nodes[i].before >= 0; i = nodes[i].before) plan.steps.push_back(nodes[i].step);
      std::reverse(plan.steps.begin(), plan.steps.end());
      for (const ReshardStep& s : plan.steps) {
        plan.bytes += s.bytes;
        if (s.kind != Kind::kGather) continue;
        plan.gathered += s.bytes;
        plan.gathers |= AxisBit(s.axes[0]);
      }
      return plan;
    }
    double bytes = width;
    std::vector<int64_t> sizes = shape;  // of what one device holds
    for (size_t d = 0; d < shape.size(); ++d) {
      sizes[d] /= Blocks(mesh_, l.dims[d]);
      bytes *= static_cast<double>(sizes[d]);
    }
    auto go = [&, from_node = at, so_far = cost](Layout next, Kind kind, std::vector<int> axes, size_t dim,
                                                 size_t to_dim, double sent) {
      const double step = kind == Kind::kSlice ? kSliceCost * bytes : kCollective + sent;
      push(std::move(next), so_far + step, from_node,
           {kind, std::move(axes), static_cast<int>(dim), static_cast<int>(to_dim), sent});
    };
    const uint32_t used = l.Axes();
    for (int a = 0; a < static_cast<int>(mesh_.axes.size()); ++a) {
      const auto n = static_cast<double>(mesh_.axes[a].size);
      const bool partial = l.partial & AxisBit(a);
      if (mesh_.axes[a].size == 1 || ((used & AxisBit(a)) && !partial)) continue;
      for (size_t d = 0; d < shape.size(); ++d) {
        if (sizes[d] % mesh_.axes[a].size != 0) continue;
        Layout next = l;
        next.dims[d].push_back(a);
        next.partial &= ~AxisBit(a);
        if (partial)
          go(std::move(next), Kind::kScatter, {a}, d, d, BytesReceived("psum_scatter", bytes, n));
        else
          go(std::move(next), Kind::kSlice, {a}, d, d, 0);
      }
    }
    for (uint32_t sum = l.partial; sum != 0; sum = (sum - 1) & l.partial) {
      std::vector<int> axes;
      for (int a = 0; a < static_cast<int>(mesh_.axes.size()); ++a) {
        if (sum & AxisBit(a)) axes.push_back(a);
      }
      Layout next = l;
      next.partial &= ~sum;
      const double sent = BytesReceived("psum", bytes, static_cast<double>(Blocks(mesh_, axes)));
      go(std::move(next), Kind::kSum, std::move(axes), 0, 0, sent);
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      if (l.dims[d].empty()) continue;
      const int a = l.dims[d].back();
      const auto n = static_cast<double>(mesh_.axes[a].size);
      Layout without = l;
      without.dims[d].pop_back();
      for (size_t t = 0; t < shape.size(); ++t) {
        if (t == d || sizes[t] % mesh_.axes[a].size != 0) continue;
        Layout next = without;
        next.dims[t].push_back(a);
        go(std::move(next), Kind::kAllToAll, {a}, d, t, BytesReceived("all_to_all", bytes, n));
      }
      go(std::move(without), Kind::kGather, {a}, d, d, BytesReceived("all_gather", bytes, n));
    }
    // Two axes that cut change places.
    for (int a = 0; a < static_cast<int>(mesh_.axes.size()); ++a) {
      for (int c = a + 1; c < static_cast<int>(mesh_.axes.size()); ++c) {
        const uint32_t both = AxisBit(a) | AxisBit(c);
        if (mesh_.axes[a].size != mesh_.axes[c].size || (l.Cuts() & both) != both) continue;
        Layout next = l;
        for (auto& dim : next.dims) {
          for (int& axis : dim) axis = axis == a ? c : axis == c ? a : axis;
        }
        go(std::move(next), Kind::kSwap, {a, c}, 0, 0, BytesReceived("ppermute", bytes, 0));
      }
    }
  }
  WEFT_CHECK(false) << "no way from " << ShardingOf(mesh_, from).ToString() << " to "
                    << ShardingOf(mesh_, to).ToString() << " on " << mesh_.ToString();
  return {};
}

Atom Resharder::Emit(Builder& b, const Atom& x, const ReshardPlan& plan, std::vector<Emitted>* emitted) const {
  Atom y = x;
  for (size_t i = 0; i < plan.steps.size();) {
    ReshardStep s = plan.steps[i++];
    // What is one collective over several axes. A gather takes the innermost axis first.
    const bool joins = s.kind == Kind::kGather || s.kind == Kind::kScatter;
    while (joins && i < plan.steps.size() && plan.steps[i].kind == s.kind && plan.steps[i].dim == s.dim) {
      s.axes.insert(s.kind == Kind::kGather ? s.axes.begin() : s.axes.end(), plan.steps[i].axes[0]);
      s.bytes += plan.steps[i++].bytes;
    }
    Strings axes;
    Dims sizes;
    for (int a : s.axes) {
      axes.push_back(mesh_.axes[a].name);
      sizes.push_back(mesh_.axes[a].size);
    }
    const Attrs over = {{"axes", axes}, {"sizes", sizes}};
    auto collective = [&](const char* prim, Attrs attrs) {
      y = b.Emit1(FindPrim(prim), {y}, std::move(attrs));
      if (emitted != nullptr) emitted->push_back({prim, axes, s.bytes});
    };
    // What was the same on all devices no longer is.
    if (s.kind == Kind::kAllToAll || s.kind == Kind::kScatter || s.kind == Kind::kSwap) y = Pvary(b, y, axes);
    switch (s.kind) {
      case Kind::kSlice: y = OwnBlock(b, y, axes, sizes, s.dim); break;
      case Kind::kGather: collective("all_gather", over.With("dim", int64_t{s.dim}).With("invariant", true)); break;
      case Kind::kAllToAll:
        collective("all_to_all", over.With("split", int64_t{s.to}).With("concat", int64_t{s.dim}));
        break;
      case Kind::kScatter: collective("psum_scatter", over.With("dim", int64_t{s.dim})); break;
      case Kind::kSum: collective("psum", {{"axes", axes}}); break;
      case Kind::kSwap: {
        // Place (i, j) has what (j, i) had.
        Ints perm;
        const int64_t n = mesh_.axes[s.axes[0]].size;
        for (int64_t i0 = 0; i0 < n; ++i0) {
          for (int64_t j = 0; j < n; ++j) {
            perm.push_back(j * n + i0);
            perm.push_back(i0 * n + j);
          }
        }
        collective("ppermute", {{"axes", axes}, {"perm", perm}});
        break;
      }
    }
  }
  return y;
}

Atom GatherStacked(Builder& b, const Atom& x, const Mesh& mesh, const Strings& axes) {
  Dims dims = b.TypeOf(x).dims, sizes;
  dims.insert(dims.begin(), 1);
  for (const std::string& axis : axes) sizes.push_back(mesh.Size(axis));
  return b.Emit1(FindPrim("all_gather"), {Reshape(b, x, dims)},
                 {{"axes", axes}, {"sizes", sizes}, {"dim", int64_t{0}}, {"invariant", true}});
}

}  // namespace weft
