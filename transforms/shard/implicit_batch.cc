#include "transforms/shard/implicit_batch.h"

#include <algorithm>
#include <optional>

#include "ir/ops.h"
#include "ir/prims/indexing.h"
#include "transforms/opt/rewrite.h"

namespace weft {
namespace {

// The dimension along which every element of x is its own index, if there is one.
std::optional<int64_t> CountsAlong(const Builder& b, const Atom& x) {
  const Eqn* e = b.Definition(x);
  if (e == nullptr) return std::nullopt;
  const std::string& name = e->prim->name;
  if (name == "iota") return e->attrs.GetInt("dim");
  if (name == "broadcast") {
    const std::optional<int64_t> d = CountsAlong(b, e->operands[0]);
    if (!d || b.TypeOf(e->operands[0]).dims[*d] == Dim(1)) return std::nullopt;
    return e->attrs.Get<Ints>("dims")[*d];
  }
  if (name == "reshape") {  // that puts in or takes out dimensions of size 1
    const std::optional<int64_t> d = CountsAlong(b, e->operands[0]);
    if (!d) return std::nullopt;
    const Dims from = b.TypeOf(e->operands[0]).dims, to = b.TypeOf(x).dims;
    auto longer = [](const Dims& dims) {
      Ints list;
      for (size_t i = 0; i < dims.size(); ++i) {
        if (!(dims[i] == Dim(1))) list.push_back(static_cast<int64_t>(i));
      }
      return list;
    };
    const Ints a = longer(from), c = longer(to);
    const auto at = std::find(a.begin(), a.end(), *d);
    if (at == a.end() || a.size() != c.size()) return std::nullopt;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!(from[a[i]] == to[c[i]])) return std::nullopt;
    }
    return c[static_cast<size_t>(at - a.begin())];
  }
  if (name == "convert" && ByteWidth(b.DTypeOf(x)) >= 4 && IsInteger(b.DTypeOf(e->operands[0])))
    return CountsAlong(b, e->operands[0]);
  if (name == "select") {  // where x < 0, x + n, else x: of what is never negative
    const Eqn* p = b.Definition(e->operands[0]);
    const bool negative = p != nullptr && p->prim->name == "lt" && p->operands[0] == e->operands[2] &&
                          p->operands[1].is_literal() && p->operands[1].IsSplat(0);
    return negative ? CountsAlong(b, e->operands[2]) : std::nullopt;
  }
  return std::nullopt;
}

// What is left of the entries of index vectors, and the batch dimensions that others are.
struct Found {
  Atoms entries;
  Ints index_map;                                    // of the entries
  std::vector<std::pair<int64_t, int64_t>> batches;  // of the operand, of the indices
};

std::optional<Found> Find(const Builder& b, const Atom& operand, const Atom& indices, const Ints& index_map,
                          const Ints& collapsed) {
  const Eqn* e = b.Definition(indices);
  const Type& type = b.TypeOf(indices);
  if (e == nullptr || e->prim->name != "concatenate" || e->attrs.GetInt("dim") != type.rank() - 1 ||
      e->operands.size() != index_map.size())
    return std::nullopt;
  Found found;
  for (size_t k = 0; k < index_map.size(); ++k) {
    const int64_t d = index_map[k];
    const std::optional<int64_t> along = CountsAlong(b, e->operands[k]);
    const bool is_batch =
        along && *along < type.rank() - 1 && Contains(collapsed, d) && type.dims[*along] == b.TypeOf(operand).dims[d] &&
        std::none_of(
            found.batches.begin(), found.batches.end(), [&](const auto& other) { return other.second == *along; });
    if (is_batch) {
      found.batches.emplace_back(d, *along);
    } else {
      found.entries.push_back(e->operands[k]);
      found.index_map.push_back(d);
    }
  }
  if (found.batches.empty() || found.entries.empty()) return std::nullopt;
  return found;
}

void Add(const Found& found, Ints& collapsed, Ints& operand_batch, Ints& indices_batch, Ints& index_map) {
  std::vector<std::pair<int64_t, int64_t>> all = found.batches;
  for (size_t i = 0; i < operand_batch.size(); ++i) all.emplace_back(operand_batch[i], indices_batch[i]);
  std::sort(all.begin(), all.end());
  operand_batch.clear();
  indices_batch.clear();
  for (const auto& [d, along] : all) {
    operand_batch.push_back(d);
    indices_batch.push_back(along);
    collapsed.erase(std::remove(collapsed.begin(), collapsed.end(), d), collapsed.end());
  }
  index_map = found.index_map;
}

}  // namespace

FnRef FindBatchDimensions(const FnRef& fn) {
  return Rewrite(fn, [](Builder& b, const Eqn& e, const Atoms& x) -> std::optional<Atoms> {
    const std::string& name = e.prim->name;
    if (name == "gather") {
      GatherDims g = GatherDims::Of(e.attrs);
      const std::optional<Found> found = Find(b, x[0], x[1], g.start_index_map, g.collapsed_dims);
      if (!found) return std::nullopt;
      Add(*found, g.collapsed_dims, g.operand_batch_dims, g.indices_batch_dims, g.start_index_map);
      const Atom indices = Concatenate(b, found->entries, b.TypeOf(x[1]).rank() - 1);
      return b.Emit(*e.prim, {x[0], indices}, g.ToAttrs());
    }
    if (name.rfind("scatter", 0) == 0) {
      ScatterDims s = ScatterDims::Of(e.attrs);
      const std::optional<Found> found = Find(b, x[0], x[1], s.scatter_dims, s.inserted_dims);
      if (!found) return std::nullopt;
      Add(*found, s.inserted_dims, s.operand_batch_dims, s.indices_batch_dims, s.scatter_dims);
      const Atom indices = Concatenate(b, found->entries, b.TypeOf(x[1]).rank() - 1);
      return b.Emit(*e.prim, {x[0], indices, x[2]}, s.ToAttrs());
    }
    return std::nullopt;
  });
}

}  // namespace weft
