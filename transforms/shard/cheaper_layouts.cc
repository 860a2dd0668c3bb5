// The layout of each argument with which a program would send least.
#include <algorithm>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "transforms/shard/partition.h"

namespace weft {
namespace {

constexpr size_t kMostLayouts = 256;    // of one argument that are tried to find a cheaper one
constexpr size_t kMostPrograms = 1000;  // that are partitioned for that

// The program in which constraints on parameter i say something else.
FnRef WithParamAs(const FnRef& fn, const Mesh& mesh, uint32_t i, const Layout& layout) {
  Builder b(fn->name());
  Atoms env;
  for (const Param& p : fn->params()) env.push_back(b.Parameter(p.type, p.name, p.kind));
  env.resize(fn->num_vars());
  auto map = [&](const Atoms& atoms) {
    Atoms out;
    for (const Atom& a : atoms) out.push_back(a.is_var() ? env[a.id()] : a);
    return out;
  };
  for (const Eqn& e : fn->eqns()) {
    ScopedLoc loc(b, e.loc);
    const bool says = IsConstraint(e) && e.operands[0].is_var() && e.operands[0].id() == i;
    const Attrs attrs =
        says ? e.attrs.With("sharding", Shardings{ShardingOf(mesh, layout)}).With("open", Ints{}) : e.attrs;
    const Atoms y = b.Emit(*e.prim, map(e.operands), attrs, e.regions);
    std::copy(y.begin(), y.end(), env.begin() + e.first_result);
  }
  return std::move(b).Build(map(fn->results()));
}

// The layouts of an array in which the axes cut its dimensions evenly, by how many axes do, and nothing else.
std::vector<Layout> EvenLayouts(const Mesh& mesh, const Type& type) {
  std::vector<Layout> layouts = {Replicated(type.rank())};
  for (size_t i = 0; i < layouts.size(); ++i) {
    const Layout from = layouts[i];
    for (int a = 0; a < static_cast<int>(mesh.axes.size()); ++a) {
      if (mesh.axes[a].size == 1 || (from.Axes() & AxisBit(a))) continue;
      for (size_t d = 0; d < from.dims.size(); ++d) {
        if (type.dims[d].value("an argument") % (Blocks(mesh, from.dims[d]) * mesh.axes[a].size) != 0) continue;
        Layout to = from;
        to.dims[d].push_back(a);
        // Two axes that cut two dimensions are found in both orders.
        if (std::find(layouts.begin(), layouts.end(), to) == layouts.end()) layouts.push_back(to);
        if (layouts.size() >= kMostLayouts) return layouts;
      }
    }
  }
  return layouts;
}

}  // namespace

std::vector<CheaperLayout> CheaperLayouts(const FnRef& program, size_t arguments, const PartitionOptions& options,
                                          const Partitioned& given) {
  std::vector<CheaperLayout> best;
  if (given.Bytes() == 0) return best;
  const FnRef fn = PreparedToCut(program, options.mesh);
  const std::vector<int> uses = fn->UseCounts();
  std::vector<std::vector<Layout>> layouts(arguments);
  size_t longest = 0;
  for (size_t i = 0; i < arguments; ++i) {
    best.push_back({static_cast<int>(i), given.params[i], given.Bytes()});
    if (uses[i] > 0) layouts[i] = EvenLayouts(options.mesh, fn->params()[i].type);
    longest = std::max(longest, layouts[i].size());
  }
  // The k-th layout of all arguments before any one's next, so that none goes without.
  std::vector<std::pair<uint32_t, Layout>> tries;
  for (size_t k = 0; k < longest; ++k) {
    for (size_t i = 0; i < arguments && tries.size() < kMostPrograms; ++i) {
      if (k < layouts[i].size() && !(layouts[i][k] == given.params[i])) tries.emplace_back(i, layouts[i][k]);
    }
  }
  for (const auto& [param, layout] : tries) {
    PartitionOptions other = options;
    other.params.resize(given.params.size());
    other.params[param] = layout;
    const double bytes = PartitionPrepared(WithParamAs(fn, options.mesh, param, layout), other).Bytes();
    if (bytes < best[param].bytes) best[param] = {static_cast<int>(param), layout, bytes};
  }
  std::erase_if(best, [&](const CheaperLayout& l) { return l.bytes >= given.Bytes(); });
  return best;
}

}  // namespace weft
