#include "transforms/shard/processes.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "ir/builder.h"
#include "ir/prim.h"

namespace weft {

HeldBlocks BlocksHeld(const Mesh& mesh, const Sharding& sharding, const Ints& processes) {
  HeldBlocks held;
  std::map<std::vector<int64_t>, size_t> places;
  for (int64_t device = 0; device < mesh.num_devices(); ++device) {
    if (processes[static_cast<size_t>(device) + 1] != processes[0]) continue;
    const std::vector<int64_t> at = mesh.Coordinates(device);
    std::vector<int64_t> index;
    for (size_t d = 0; d < sharding.dims.size(); ++d) index.push_back(BlockOf(mesh, sharding, d, at).index);
    const auto [it, added] = places.try_emplace(index, held.index.size());
    if (added) held.index.push_back(index);
    held.devices.push_back(device);
    held.place.push_back(it->second);
  }
  return held;
}

Tensor StackOfBlocks(const Tensor& whole, const Mesh& mesh, const Sharding& sharding, const Ints& processes) {
  const HeldBlocks held = BlocksHeld(mesh, sharding, processes);
  const Type local = LocalType(mesh, sharding, whole.type(), "an array");
  Shape block;
  for (const Dim& d : local.dims) block.push_back(d.value("a block"));
  Shape shape = block;
  shape.insert(shape.begin(), static_cast<int64_t>(held.index.size()));
  Tensor stack(whole.dtype(), shape);
  const std::vector<int64_t> strides = RowMajorStrides(whole.shape());
  const int64_t width = ByteWidth(whole.dtype());
  // Dimensions that are not cut lie together behind the last one that is.
  size_t outer = block.size();
  int64_t run = width;
  while (outer > 0 && block[outer - 1] == whole.shape()[outer - 1]) run *= block[--outer];
  if (outer > 0) run *= block[--outer];
  char* to = stack.data<char>();
  const int64_t rows = NumElements(absl::Span<const int64_t>(block).subspan(0, outer));
  for (const std::vector<int64_t>& index : held.index) {
    int64_t start = 0;
    for (size_t d = 0; d < block.size(); ++d) start += index[d] * block[d] * strides[d];
    std::vector<int64_t> row(outer, 0);
    for (int64_t r = 0; r < rows; ++r) {
      int64_t from = start;
      for (size_t d = 0; d < outer; ++d) from += row[d] * strides[d];
      std::memcpy(to, whole.data<char>() + from * width, static_cast<size_t>(run));
      to += run;
      for (size_t d = outer; d-- > 0;) {
        if (++row[d] < block[d]) break;
        row[d] = 0;
      }
    }
  }
  return stack;
}

FnRef ForProcess(const FnRef& fn, const Ints& processes, const std::string& program, int64_t digest) {
  WEFT_CHECK(fn->eqns().size() == 1 && fn->eqns()[0].prim->region_use == RegionUse::kDevices)
      << "no partitioned program";
  const Eqn& e = fn->eqns()[0];
  const Mesh& mesh = e.attrs.Get<Mesh>("mesh");
  const Shardings &in = e.attrs.Get<Shardings>("in_shardings"), &out = e.attrs.Get<Shardings>("out_shardings");
  if (std::count(processes.begin() + 1, processes.end(), processes[0]) == 0)
    throw ValueError("'", fn->name(), "' is for ", mesh.ToString(), ", of which process ", processes[0],
                     " has no device; only processes that have one may call it");
  Builder b(fn->name());
  Atoms env;
  for (size_t i = 0; i < fn->params().size(); ++i) {
    const Param& p = fn->params()[i];
    Type stack = LocalType(mesh, in[i], p.type, "argument " + p.name);
    stack.varying.clear();
    stack.dims.insert(stack.dims.begin(), Dim(static_cast<int64_t>(BlocksHeld(mesh, in[i], processes).index.size())));
    env.push_back(b.Parameter(stack, p.name, p.kind));
  }
  Atoms operands;
  for (const Atom& a : e.operands) {
    WEFT_CHECK(a.is_var()) << "an operand of a partitioned program is no parameter";
    operands.push_back(env[a.id()]);
  }
  Ints held;
  for (const Sharding& s : out) {
    Sharding whole = s;
    whole.partial.clear();
    held.push_back(static_cast<int64_t>(BlocksHeld(mesh, whole, processes).index.size()));
  }
  ScopedLoc loc(b, e.loc);
  const Atoms y =
      b.Emit(*e.prim, operands,
             e.attrs.With("processes", processes).With("held", held).With("program", program).With("digest", digest),
             e.regions);
  Atoms results;
  for (const Atom& a : fn->results()) {
    WEFT_CHECK(a.is_var() && a.id() >= e.first_result) << "a result of a partitioned program is no result of spmd";
    results.push_back(y[a.id() - e.first_result]);
  }
  return b.Build(results);
}

}  // namespace weft
