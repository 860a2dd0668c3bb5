#include "transforms/shard/implicit_batch.h"

#include <algorithm>
#include <optional>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/indexing.h"
#include "transforms/opt/rewrite.h"

namespace weft {
namespace {

std::optional<int64_t> CountsAlong(const Builder& b, const Atom& x);

// Of the result of an equation: the same, from what its operands are.
using Along = std::optional<int64_t> (*)(const Builder& b, const Eqn& e, const Type& type);

std::optional<int64_t> AlongBroadcast(const Builder& b, const Eqn& e, const Type&) {
  const std::optional<int64_t> d = CountsAlong(b, e.operands[0]);
  if (!d || b.TypeOf(e.operands[0]).dims[*d] == Dim(1)) return std::nullopt;
  return e.attrs.Get<Ints>("dims")[*d];
}

std::optional<int64_t> AlongReshape(const Builder& b, const Eqn& e, const Type& type) {
  // That puts in or takes out dimensions of size 1.
  const std::optional<int64_t> d = CountsAlong(b, e.operands[0]);
  if (!d) return std::nullopt;
  const Dims from = b.TypeOf(e.operands[0]).dims, to = type.dims;
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

std::optional<int64_t> AlongConvert(const Builder& b, const Eqn& e, const Type& type) {
  const bool exact = ByteWidth(type.dtype) >= 4 && IsInteger(b.DTypeOf(e.operands[0]));
  return exact ? CountsAlong(b, e.operands[0]) : std::nullopt;
}

// Where x < 0, x + n, else x: of what is never negative.
std::optional<int64_t> AlongSelect(const Builder& b, const Eqn& e, const Type&) {
  const Eqn* p = b.Definition(e.operands[0]);
  // The pattern sought.
  const bool negative = p != nullptr && Is<"lt">(*p->prim) && p->operands[0] == e.operands[2] &&
                        p->operands[1].is_literal() && p->operands[1].IsSplat(0);
  return negative ? CountsAlong(b, e.operands[2]) : std::nullopt;
}

// The dimension along which every element of x is its own index, if there is one.
std::optional<int64_t> CountsAlong(const Builder& b, const Atom& x) {
  static const auto& rules = *new PrimTable<Along>{
      {"iota",
       [](const Builder&, const Eqn& e, const Type&) -> std::optional<int64_t> { return e.attrs.GetInt("dim"); }},
      {"broadcast", AlongBroadcast},
      {"reshape", AlongReshape},
      {"convert", AlongConvert},
      {"select", AlongSelect},
  };
  const Eqn* e = b.Definition(x);
  const Along rule = e == nullptr ? nullptr : rules[*e->prim];
  return rule == nullptr ? std::nullopt : rule(b, *e, b.TypeOf(x));
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
  // How index vectors are made of their entries.
  if (e == nullptr || !Is<"concatenate">(*e->prim) || e->attrs.GetInt("dim") != type.rank() - 1 ||
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

std::optional<Atoms> OfGather(Builder& b, const Eqn& e, const Atoms& x) {
  GatherDims g = GatherDims::Of(e.attrs);
  const std::optional<Found> found = Find(b, x[0], x[1], g.start_index_map, g.collapsed_dims);
  if (!found) return std::nullopt;
  Add(*found, g.collapsed_dims, g.operand_batch_dims, g.indices_batch_dims, g.start_index_map);
  const Atom indices = Concatenate(b, found->entries, b.TypeOf(x[1]).rank() - 1);
  return b.Emit(*e.prim, {x[0], indices}, g.ToAttrs());
}

std::optional<Atoms> OfScatter(Builder& b, const Eqn& e, const Atoms& x) {
  ScatterDims s = ScatterDims::Of(e.attrs);
  const std::optional<Found> found = Find(b, x[0], x[1], s.scatter_dims, s.inserted_dims);
  if (!found) return std::nullopt;
  Add(*found, s.inserted_dims, s.operand_batch_dims, s.indices_batch_dims, s.scatter_dims);
  const Atom indices = Concatenate(b, found->entries, b.TypeOf(x[1]).rank() - 1);
  return b.Emit(*e.prim, {x[0], indices, x[2]}, s.ToAttrs());
}

}  // namespace

FnRef FindBatchDimensions(const FnRef& fn) {
  using Rule = std::optional<Atoms> (*)(Builder& b, const Eqn& e, const Atoms& x);
  static const auto& rules = *new PrimTable<Rule>{
      {"gather", OfGather},       {"scatter", OfScatter},     {"scatter_add", OfScatter},
      {"scatter_mul", OfScatter}, {"scatter_min", OfScatter}, {"scatter_max", OfScatter},
  };
  return Rewrite(fn, [](Builder& b, const Eqn& e, const Atoms& x) -> std::optional<Atoms> {
    const Rule rule = rules[*e.prim];
    return rule == nullptr ? std::nullopt : rule(b, e, x);
  });
}

}  // namespace weft
