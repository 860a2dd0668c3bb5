#include "transforms/shard/device_parts.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "ir/ops.h"
#include "ir/prims/collectives.h"
#include "ir/prims/control/regions.h"

namespace weft {
namespace {

Atom PlaceAlong(Builder& b, const std::string& axis) {
  return b.Emit1(FindPrim("axis_index"), {}, {{"axes", Strings{axis}}, {"varying", true}});
}
Atom IsFirstAlong(Builder& b, const std::string& axis) {
  return Eq(b, PlaceAlong(b, axis), Atom::Scalar(DType::kI32, 0));
}

}  // namespace

Layout SideBySide(Layout l, uint32_t axes) {
  l.dims.insert(l.dims.begin(), std::vector<int>());
  for (int a = 0; axes >> a != 0; ++a) {
    if (axes & AxisBit(a)) l.dims[0].push_back(a);
  }
  return l;
}

Type SideBySide(const Mesh& mesh, Type type, uint32_t axes) {
  int64_t parts = 1;
  for (const std::string& axis : AxisNames(mesh, axes)) parts *= mesh.Size(axis);
  type.dims.insert(type.dims.begin(), Dim(parts));
  return type;
}

std::pair<Layout, Atom> BlocksAmongZeros(Builder& b, const Mesh& mesh, const CutValue& v, uint32_t axes) {
  const auto cut_most = std::max_element(v.versions.begin(), v.versions.end(), [&](const auto& l, const auto& r) {
    return l.first.partial != 0 ||
           (r.first.partial == 0 && std::popcount(l.first.Cuts() & axes) < std::popcount(r.first.Cuts() & axes));
  });
  auto [layout, a] = *cut_most;
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    while (!layout.dims[d].empty() && (axes & AxisBit(layout.dims[d].back())) != 0) {
      const int axis = layout.dims[d].back();
      layout.dims[d].pop_back();
      layout.partial |= AxisBit(axis);
      const Type block = b.TypeOf(a), whole = LocalTypeOf(mesh, layout, v.type);
      Atoms start(layout.dims.size(), Atom::Scalar(DType::kI32, 0));
      start[d] = Mul(b, PlaceAlong(b, mesh.axes[static_cast<size_t>(axis)].name),
                     Atom::Scalar(DType::kI32, block.dims[d].value("a block")));
      a = DynamicUpdateSlice(b, Zeros(b, whole), a, start);
    }
  }
  return {layout, a};
}

Atom OnFirstDevice(Builder& b, Atom a, const Strings& axes) {
  const Dims dims = b.TypeOf(a).dims;
  for (const std::string& axis : axes)
    a = Select(b, Broadcast(b, IsFirstAlong(b, axis), dims, {}), a, Zeros(b, b.TypeOf(a)));
  return a;
}

Atoms DoneByFirstDevice(Builder& b, const Eqn& e, const Atoms& x, const Types& results, const Strings& axes) {
  std::optional<Atom> first;
  for (const std::string& axis : axes) {
    const Atom here = IsFirstAlong(b, axis);
    first = first ? And(b, *first, here) : here;
  }
  // Operands: the predicate, what stands for results on other devices, then those of the operation. All of them vary,
  // so that results do without a collective inside.
  Builder yes(e.prim->name), no(e.prim->name);
  Atoms operands = {*first}, args, instead, done, nothing;
  auto pass = [&](const Atom& a) {
    operands.push_back(Pvary(b, a, axes));
    nothing.push_back(no.Parameter(b.TypeOf(operands.back())));
    return yes.Parameter(b.TypeOf(operands.back()));
  };
  const Atom here = pass(*first);
  for (const Type& type : results) instead.push_back(pass(Zeros(b, type)));
  for (const Atom& a : x) args.push_back(pass(a));
  yes.set_loc(e.loc);
  const Atoms result = yes.Emit(*e.prim, args, e.attrs, e.regions);
  for (size_t i = 0; i < result.size(); ++i)
    done.push_back(Select(yes, Broadcast(yes, here, yes.TypeOf(result[i]).dims, {}), result[i], instead[i]));
  nothing = Part(nothing, 1, 1 + result.size());
  return b.Emit(FindPrim("cond"), operands, {}, {no.Build(nothing), yes.Build(done, true)});
}

}  // namespace weft
