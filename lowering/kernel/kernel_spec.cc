#include "lowering/kernel/kernel_spec.h"

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>

#include "ir/error.h"
#include "ir/prim.h"

namespace weft {
namespace {

// Symbolic sizes as "s0", "s1" in order of occurrence.
class SizeNames {
 public:
  std::string operator()(const Dim& d) {
    if (d.is_static()) return std::to_string(*d.TryValue());
    for (size_t i = 0; i < order_.size(); ++i) {
      if (order_[i] == d) return "s" + std::to_string(i);
    }
    order_.push_back(d);
    return "s" + std::to_string(order_.size() - 1);
  }
  std::string operator()(const Affine& a) {
    std::string text = (*this)(a.constant());
    for (const auto& [v, c] : a.terms()) text += "+i" + std::to_string(v) + "*" + (*this)(c);
    return text;
  }
  const std::vector<Dim>& order() const { return order_; }

 private:
  std::vector<Dim> order_;
};

void Print(std::ostream& out, SizeNames& names, const Access& a) {
  out << "p" << a.operand << ":" << Name(a.dtype) << "[" << names(a.offset);
  for (const auto& d : a.dynamic) out << " + clamp(%" << d.node << "," << names(d.limit) << ")*" << names(d.stride);
  out << "]";
}

std::string Text(const KernelSpec& spec, SizeNames& names) {
  std::ostringstream out;
  out << "domain (";
  for (size_t i = 0; i < spec.sizes.size(); ++i) {
    out << (static_cast<int>(i) == spec.num_outer ? " | " : i ? ", " : "") << "i" << i << "<" << names(spec.sizes[i]);
  }
  out << ")";
  if (spec.row > 0) out << " in rows of " << spec.row;
  out << "\n";
  for (size_t i = 0; i < spec.nodes.size(); ++i) {
    const KernelNode& n = spec.nodes[i];
    out << "  %" << i << ":" << Name(n.dtype) << " = ";
    switch (n.kind) {
      case KernelNode::Kind::kLoad:
        out << "load ";
        Print(out, names, n.access);
        break;
      case KernelNode::Kind::kLiteral: {
        out << "literal ";
        const unsigned char* bytes = static_cast<const unsigned char*>(n.literal.raw());
        const std::complex<double> v = n.literal.Get(0);
        out << v.real();
        if (v.imag() != 0) out << "+" << v.imag() << "i";
        out << " #";
        for (int b = 0; b < n.literal.bytes(); ++b)
          out << "0123456789abcdef"[bytes[b] >> 4] << "0123456789abcdef"[bytes[b] & 15];
        break;
      }
      case KernelNode::Kind::kIndex: out << "index " << names(n.index); break;
      case KernelNode::Kind::kOp:
      case KernelNode::Kind::kReduce:
        out << (n.kind == KernelNode::Kind::kReduce ? "reduce_" : "") << n.op;
        if (n.integer != 0) out << "{" << n.integer << "}";
        for (int o : n.operands) out << " %" << o;
        break;
    }
    out << "\n";
  }
  for (const KernelStore& s : spec.stores) {
    out << (s.streamed ? "  stream %" : "  store %") << s.node << " -> ";
    Print(out, names, s.access);
    out << "\n";
  }
  for (const KernelStore& s : spec.spills) {
    out << "  keep %" << s.node << " in ";
    Print(out, names, s.access);
    out << "\n";
  }
  out << "  written";
  for (int i = 0; i < spec.num_operands; ++i) {
    if (spec.written[i]) out << " p" << i;
  }
  out << "\n";
  return out.str();
}

template <class F>
void ForEachAffine(KernelSpec& spec, F f) {
  for (KernelNode& n : spec.nodes) {
    if (n.kind == KernelNode::Kind::kLoad) f(n.access.offset, true);
    if (n.kind == KernelNode::Kind::kIndex) f(n.index, false);
  }
  for (KernelStore& s : spec.stores) f(s.access.offset, true);
  for (KernelStore& s : spec.spills) f(s.access.offset, true);
}

}  // namespace

double KernelNode::Work() const { return FindPrim(op).work; }

int KernelSpec::Tree() const {
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].kind == KernelNode::Kind::kReduce && nodes[i].op == "tree") return static_cast<int>(i);
  }
  return -1;
}

int64_t KernelSpec::ReductionLanes() const {
  int64_t lanes = 0;
  for (const KernelNode& n : nodes) {
    if (n.kind == KernelNode::Kind::kReduce) lanes = std::max(lanes, n.integer);
  }
  return lanes;
}

std::vector<bool> KernelSpec::Touched() const {
  std::vector<bool> touched = written;
  for (const KernelNode& n : nodes) {
    if (n.kind == KernelNode::Kind::kLoad) touched[n.access.operand] = true;
  }
  return touched;
}

std::vector<uint64_t> KernelSpec::Dependence() const {
  std::vector<uint64_t> mask(nodes.size(), 0);
  const uint64_t outer = (uint64_t{1} << num_outer) - 1;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const KernelNode& n = nodes[i];
    if (n.kind == KernelNode::Kind::kLoad) {
      mask[i] = n.access.offset.VarMask();
      for (const auto& d : n.access.dynamic) mask[i] |= mask[d.node];
    } else if (n.kind == KernelNode::Kind::kIndex) {
      mask[i] = n.index.VarMask();
    }
    for (int o : n.operands) mask[i] |= mask[o];
    if (n.kind == KernelNode::Kind::kReduce) mask[i] &= outer;
  }
  return mask;
}

std::vector<int> KernelSpec::Phases() const {
  std::vector<int> phase(nodes.size(), 0);
  auto available = [&](int o) { return phase[o] + (nodes[o].kind == KernelNode::Kind::kReduce ? 1 : 0); };
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (int o : nodes[i].operands) phase[i] = std::max(phase[i], available(o));
    for (const auto& d : nodes[i].access.dynamic) phase[i] = std::max(phase[i], available(d.node));
  }
  return phase;
}

std::vector<int> KernelSpec::LastPhases() const {
  const std::vector<int> phase = Phases();
  std::vector<int> last = phase;
  auto need = [&](const Access& a, int p) {
    for (const auto& d : a.dynamic) last[d.node] = std::max(last[d.node], p);
  };
  auto available = [&](int n) { return phase[n] + (nodes[n].kind == KernelNode::Kind::kReduce ? 1 : 0); };
  for (const std::vector<KernelStore>* list : {&stores, &spills}) {
    for (const KernelStore& s : *list) {
      last[s.node] = std::max(last[s.node], available(s.node));
      need(s.access, available(s.node));
    }
  }
  for (size_t i = nodes.size(); i-- > 0;) {
    // A reduction is computed once, in its own pass; so is what later passes read from memory.
    bool once = nodes[i].kind == KernelNode::Kind::kReduce;
    for (const KernelStore& s : spills) once = once || s.node == static_cast<int>(i);
    const int p = once ? phase[i] : last[i];
    for (int o : nodes[i].operands) last[o] = std::max(last[o], p);
    need(nodes[i].access, p);
  }
  return last;
}

std::string KernelSpec::Key() const {
  SizeNames names;
  return Text(*this, names);
}

std::vector<Dim> KernelSpec::SymbolicSizes() const {
  SizeNames names;
  Text(*this, names);
  return names.order();
}

std::string KernelSpec::ToString() const { return Key(); }

void KernelSpec::Substitute(const std::vector<Affine>& replacement) {
  ForEachAffine(*this, [&](Affine& a, bool) { a = a.Substitute(replacement); });
}

void KernelSpec::DropDeadNodes() {
  std::vector<int> to(nodes.size(), -1);
  auto mark = [&](const Access& a) {
    for (const auto& d : a.dynamic) to[d.node] = 0;
  };
  for (const std::vector<KernelStore>* list : {&stores, &spills}) {
    for (const KernelStore& s : *list) {
      to[s.node] = 0;
      mark(s.access);
    }
  }
  for (size_t i = nodes.size(); i-- > 0;) {
    if (to[i] < 0) continue;
    for (int o : nodes[i].operands) to[o] = 0;
    mark(nodes[i].access);
  }
  std::vector<KernelNode> kept;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (to[i] < 0) continue;
    to[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(nodes[i]));
  }
  nodes = std::move(kept);
  auto rename = [&](Access& a) {
    for (auto& d : a.dynamic) d.node = to[d.node];
  };
  for (KernelNode& n : nodes) {
    for (int& o : n.operands) o = to[o];
    rename(n.access);
  }
  for (std::vector<KernelStore>* list : {&stores, &spills}) {
    for (KernelStore& s : *list) {
      s.node = to[s.node];
      rename(s.access);
    }
  }
}

void KernelSpec::Collapse() {
  const bool tree = Tree() >= 0;  // the loop over its leaves stays
  // Sizes of 1 first: their variable is always 0.
  auto drop = [&](int v) {
    std::vector<Affine> replacement;
    for (int i = 0; i < static_cast<int>(sizes.size()); ++i) {
      if (i == v)
        replacement.push_back(Affine());
      else
        replacement.push_back(Affine::Var(i > v ? i - 1 : i));
    }
    ForEachAffine(*this, [&](Affine& a, bool) { a = a.Substitute(replacement); });
    sizes.erase(sizes.begin() + v);
    if (v < num_outer) --num_outer;
  };
  const bool reduces =
      std::any_of(nodes.begin(), nodes.end(), [](const KernelNode& n) { return n.kind == KernelNode::Kind::kReduce; });
  for (int v = static_cast<int>(sizes.size()) - 1; v >= 0; --v) {
    const bool only = v == num_outer && v + 1 == static_cast<int>(sizes.size());  // reductions are over something
    if (sizes[v] == Dim(1) && !(tree && v == num_outer) && !(reduces && only)) drop(v);
  }
  // Neighbours (v, v+1) of the same kind merge when every expression steps v by size[v+1] times the step of v+1.
  for (int v = static_cast<int>(sizes.size()) - 2; v >= 0; --v) {
    if (v + 1 == num_outer || (tree && v == num_outer)) continue;
    bool mergeable = true;
    ForEachAffine(*this, [&](Affine& a, bool) {
      if (!(a.Coefficient(v) == a.Coefficient(v + 1) * sizes[v + 1])) mergeable = false;
    });
    if (!mergeable) continue;
    sizes[v] = sizes[v] * sizes[v + 1];
    // i_v * (s * c) + i_{v+1} * c  ->  i_v * c
    ForEachAffine(*this, [&](Affine& a, bool) {
      Affine merged(a.constant());
      for (const auto& [var, c] : a.terms()) {
        if (var == v) continue;
        merged = merged + Affine::Var(var > v ? var - 1 : var) * c;
      }
      a = merged;
    });
    sizes.erase(sizes.begin() + v + 1);
    if (v + 1 < num_outer) --num_outer;
  }
}

namespace {

constexpr double kCostInTree = 0.08;  // several rows share what is loaded
constexpr double kCostOfStore = 0.1;

// Nanoseconds of one value, of a reduction per term.
double CostOf(const KernelNode& n) {
  switch (n.kind) {
    case KernelNode::Kind::kLoad: return n.access.dynamic.empty() ? 0.1 : 1;
    case KernelNode::Kind::kOp: return IsComplex(n.dtype) ? 2 : n.Work() < 15 ? 0.05 : 0.5;
    case KernelNode::Kind::kReduce: return 0.1;
    case KernelNode::Kind::kLiteral:
    case KernelNode::Kind::kIndex: break;
  }
  return 0;
}

}  // namespace

double KernelSpec::PointCost() const {
  if (Tree() >= 0) return kCostInTree;
  double cost = kCostOfStore * static_cast<double>(stores.size());
  for (const KernelNode& n : nodes) cost += CostOf(n);
  return cost;
}

std::optional<double> KernelSpec::Nanoseconds() const {
  std::vector<double> lengths;
  for (const Dim& d : sizes) {
    if (!d.is_static()) return std::nullopt;
    lengths.push_back(static_cast<double>(d.value()));
  }
  const auto values = [&](uint64_t dims) {
    double n = 1;
    for (size_t d = 0; d < lengths.size(); ++d) n *= (dims >> d & 1) != 0 ? lengths[d] : 1;
    return n;
  };
  if (Tree() >= 0) return kCostInTree * values(~uint64_t{0});
  const std::vector<uint64_t> dependence = Dependence();
  const uint64_t inner = ~((uint64_t{1} << num_outer) - 1);
  double cost = 0;
  for (size_t i = 0; i < nodes.size(); ++i)
    cost += CostOf(nodes[i]) * values(dependence[i] | (nodes[i].kind == KernelNode::Kind::kReduce ? inner : 0));
  for (const KernelStore& s : stores)
    cost += kCostOfStore * values(s.access.offset.VarMask() | dependence[static_cast<size_t>(s.node)]);
  return cost;
}

}  // namespace weft
