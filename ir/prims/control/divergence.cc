#include "ir/prims/control/divergence.h"

#include <limits>

#include "ir/prims/control/regions.h"
#include "ir/prims/indexing.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

Type WithoutBatch(Type t) {
  t.dims.erase(t.dims.begin());
  return t;
}

Type WithBatch(Type t, const Dim& elements) {
  t.dims.insert(t.dims.begin(), elements);
  return t;
}

// A batch element that does not exist.
Atom NoElement(DType t) {
  return t == DType::kI32 ? Atom(Tensor::Scalar<int32_t>(t, std::numeric_limits<int32_t>::max()))
                          : Atom(Tensor::Scalar<int64_t>(t, std::numeric_limits<int64_t>::max()));
}

Ints SizesOf(const Dims& dims, size_t from) {
  Ints sizes;
  for (size_t d = from; d < dims.size(); ++d) sizes.push_back(dims[d].is_static() ? dims[d].value() : -1);
  return sizes;
}

// Row `element` (a scalar) of x, without the dimension.
Atom OneElement(Builder& b, const Atom& x, const Atom& element) {
  const Type t = b.TypeOf(x);
  Atoms start(t.dims.size(), Atom::Scalar(b.DTypeOf(element), 0));
  start[0] = element;
  return Reshape(b, DynamicSlice(b, x, start, Prepend(1, SizesOf(t.dims, 1))), WithoutBatch(t).dims);
}

Atom WithOneElement(Builder& b, const Atom& x, const Atom& element, const Atom& row) {
  Atoms start(b.TypeOf(x).dims.size(), Atom::Scalar(b.DTypeOf(element), 0));
  start[0] = element;
  return DynamicUpdateSlice(b, x, Reshape(b, row, WithBatch(b.TypeOf(row), 1).dims), start);
}

// x, of which batch elements outside `mask` count as constants.
Atom Guarded(Builder& b, const Atom& mask, const Atom& x) {
  return HasTangents(b.DTypeOf(x)) ? SelectElements(b, mask, x, StopGradient(b, x)) : x;
}

Atom ForEachElement(Builder& b, const Atom& x, const Dim& elements) {
  const Type t = b.TypeOf(x);
  return Broadcast(b, x, WithBatch(t, elements).dims, Range(1, t.rank() + 1));
}

}  // namespace

DType BatchIndexDType(const Dim& elements) {
  return elements.is_static() && elements.value() < std::numeric_limits<int32_t>::max() / 2 ? DType::kI32 : DType::kI64;
}

Atom ElementsAt(Builder& b, const Atom& x, const Atom& elements, const char* mode) {
  const Type t = b.TypeOf(x);
  const GatherDims g{Range(1, t.rank()), {0}, {}, {}, {0}, Prepend(1, SizesOf(t.dims, 1)), mode};
  return b.Emit1(FindPrim("gather"), {x, Reshape(b, elements, {b.TypeOf(elements).dims[0], 1})}, g.ToAttrs());
}

Atom WithElementsAt(Builder& b, const Atom& x, const Atom& elements, const Atom& rows) {
  const ScatterDims d{Range(1, b.TypeOf(x).rank()), {0}, {}, {}, {0}, "drop", true};
  return b.Emit1(FindPrim("scatter"), {x, Reshape(b, elements, {b.TypeOf(elements).dims[0], 1}), rows}, d.ToAttrs());
}

Atom SelectElements(Builder& b, const Atom& mask, const Atom& x, const Atom& y) {
  return Select(b, Broadcast(b, mask, b.TypeOf(x).dims, {0}), x, y);
}

BatchedRegion::BatchedRegion(const FnRef& region, const Mask& mapped, const Atoms& operands)
    : fn(region), batched(mapped), copied(mapped.size(), false), cost(RegionCostOf(*region)) {
  const std::vector<int> uses = fn->UseCounts();
  for (size_t i = 0; i < batched.size(); ++i) {
    if (uses[i] == 0) continue;
    const Type& t = fn->params()[i].type;
    const double bytes = BytesOf(t);
    if (batched[i]) {
      element_bytes += bytes;
      continue;
    }
    shared_bytes += bytes;
    if (!HasTangents(t.dtype) || operands[i].is_literal()) continue;
    copied[i] = IsStatic(t.dims) && IsInexact(t.dtype) && bytes <= kSmallSharedBytes;
    shares_inexact = shares_inexact || !copied[i];
  }
  for (const Type& t : fn->ResultTypes()) element_bytes += BytesOf(t);
}

FnRef BatchedRegion::Batched(const RegionRules& rules, const Dim& elements) const {
  return rules.batch(fn, Union(batched, copied), Mask(fn->results().size(), true), elements).fn;
}

Atoms BatchedRegion::Operands(Builder& b, const Atom& mask, const Atoms& x, bool pad) const {
  const Dim elements = b.TypeOf(mask).dims[0];
  pad = pad && !(elements == Dim(0));
  Atom first, any;
  if (pad) {
    const DType index = BatchIndexDType(elements);
    const Atom number = Iota(b, {elements}, 0, index);
    first = Reshape(b, Reduce(b, "reduce_min", Select(b, mask, number, NoElement(index)), {0}), {1});
    any = Reduce(b, "reduce_or", mask, {0});
  }
  Atoms out;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool tangents = HasTangents(b.DTypeOf(x[i]));
    if (copied[i]) {
      out.push_back(Guarded(b, mask, ForEachElement(b, x[i], elements)));
    } else if (!batched[i]) {
      // Where no element is inside, the cotangent of what elements share is zero, whatever those outside make of it.
      out.push_back(pad && tangents && x[i].is_var() && !b.TypeOf(x[i]).dims.empty()
                        ? Select(b, Broadcast(b, any, b.TypeOf(x[i]).dims, {}), x[i], StopGradient(b, x[i]))
                        : x[i]);
    } else if (!pad) {
      out.push_back(Guarded(b, mask, x[i]));
    } else {
      const Atom row = ElementsAt(b, tangents ? StopGradient(b, x[i]) : x[i], first, "zero");
      const Dims shape = b.TypeOf(x[i]).dims;
      out.push_back(SelectElements(b, mask, x[i],
                                   Broadcast(b, Reshape(b, row, Dims(shape.begin() + 1, shape.end())), shape,
                                             Range(1, static_cast<int64_t>(shape.size())))));
    }
  }
  return out;
}

Atoms OnActiveElements(Builder& b, const RegionRules& rules, const BatchedRegion& region, const Atom& taken,
                       const Atoms& x, const Atoms& base, const Dim& elements, int64_t block) {
  if (elements == Dim(0)) return base;
  const DType index = BatchIndexDType(elements);
  const Type number{index, {}, {}}, numbers{index, {elements}, {}};
  const Atom one = Atom::Scalar(index, 1);
  // The batch elements that are taken, in order.
  const Atom ones = Convert(b, taken, index), count = Reduce(b, "reduce_sum", ones, {0});
  const Atom up_to = b.Emit1(FindPrim("cumsum"), {ones}, {{"dim", int64_t{0}}, {"reverse", false}});
  const Atom place = Select(b, taken, Sub(b, up_to, one), NoElement(index));
  const Atom order = WithElementsAt(b, Zeros(b, numbers), place, Iota(b, {elements}, 0, index));

  // carries: place in `order`, results;  invariants: order, count, operands that are read
  const std::vector<int> uses = region.fn->UseCounts();
  Mask read;
  for (size_t i = 0; i < x.size(); ++i) read.push_back(uses[i] > 0);
  Types base_types, x_types;
  for (const Atom& a : base) base_types.push_back(b.TypeOf(a));
  for (const Atom& a : Where(x, read)) x_types.push_back(b.TypeOf(a));
  struct Region {
    Builder b;
    Atom at, order, count;
    Atoms base, x;
    Region(const std::string& name, const Type& number, const Type& numbers, const Types& base_types,
           const Types& x_types)
        : b(name), at(b.Parameter(number)), base(Parameters(b, base_types)) {
      order = b.Parameter(numbers);
      count = b.Parameter(number);
      x = Parameters(b, x_types);
    }
  };
  Region more("more", number, numbers, base_types, x_types);
  const FnRef cond = more.b.Build({Lt(more.b, more.at, more.count)});

  Region r(region.fn->name(), number, numbers, base_types, x_types);
  r.b.set_loc(b.loc());
  Atoms given;
  size_t next = 0;
  for (size_t i = 0; i < x.size(); ++i) given.push_back(read[i] ? r.x[next++] : x[i]);
  Atoms args(x.size()), out;
  const Dim size(block);
  if (block == 1) {
    const Atom element = OneElement(r.b, r.order, r.at);
    for (size_t i = 0; i < x.size(); ++i) {
      if (read[i])
        args[i] = region.batched[i] ? OneElement(r.b, given[i], element) : given[i];
      else
        args[i] = Zeros(r.b, region.fn->params()[i].type);
    }
    const Atoms y = r.b.Inline(*region.fn, args);
    for (size_t k = 0; k < y.size(); ++k) out.push_back(WithOneElement(r.b, r.base[k], element, y[k]));
  } else {
    const Type wide{index, {size}, {}};
    const Atom at = Add(r.b, ForEachElement(r.b, r.at, size), Iota(r.b, {size}, 0, index));
    const Atom valid = Lt(r.b, at, ForEachElement(r.b, r.count, size));
    const Atom last = Sub(r.b, r.count, one);
    const Atom element = ElementsAt(r.b, r.order, Min(r.b, at, ForEachElement(r.b, last, size)));
    for (size_t i = 0; i < x.size(); ++i) {
      if (!read[i])
        args[i] =
            Zeros(r.b, region.batched[i] ? WithBatch(region.fn->params()[i].type, size) : region.fn->params()[i].type);
      else
        args[i] = region.batched[i] ? ElementsAt(r.b, given[i], element) : given[i];
    }
    const Atoms y = r.b.Inline(*region.Batched(rules, size), region.Operands(r.b, valid, args, /*pad=*/false));
    const Atom to = Select(r.b, valid, element, NoElement(index));
    for (size_t k = 0; k < y.size(); ++k) out.push_back(WithElementsAt(r.b, r.base[k], to, y[k]));
  }
  out.insert(out.begin(), Add(r.b, r.at, Atom::Scalar(index, static_cast<double>(block))));
  const FnRef body = std::move(r.b).Build(out);

  Atoms operands = {Atom::Scalar(index, 0)};
  Append(operands, base);
  operands.push_back(order);
  operands.push_back(count);
  Append(operands, Where(x, read));
  const Atoms y =
      b.Emit(FindPrim("while"), operands, {{"num_carry", static_cast<int64_t>(1 + base.size())}}, {cond, body});
  return Part(y, 1, y.size());
}

void RefuseCollective(const BatchContext& c, const RegionCost& cost) {
  if (cost.collective.empty()) return;
  throw UserError(ErrorKind::kUnsupported, c.eqn.loc, "vmap: ", c.eqn.prim->name, " holds the collective '",
                  cost.collective,
                  "', but batch elements disagree on whether they run it; every one has to take part in it");
}

void BatchDivergentCond(BatchContext& c) {
  const Atoms x = Part(c.x, 1, c.x.size());
  const Mask batched = Part(c.batched, 1, c.batched.size());
  std::vector<BatchedRegion> branches;
  RegionCost all;
  for (const FnRef& f : c.eqn.regions) {
    branches.emplace_back(f, batched, x);
    all += branches.back().cost;
  }
  // Over axes that are not mapped here every device takes part, if every batch element runs the branch.
  if (!all.IsSpeculatable()) RefuseCollective(c, all);
  if (all.one_by_one) return BatchOneByOne(c);
  const size_t n = branches.size();
  auto taken = [&](size_t k) {  // indices are clamped
    const Atom& index = c.x[0];
    if (c.b.DTypeOf(index) == DType::kBool) return k == 1 ? index : Not(c.b, index);
    const Atom number = Atom::Scalar(DType::kI32, static_cast<double>(k));
    if (n == 1) return Full(c.b, Type{DType::kBool, {c.size}, {}}, 1);
    return k == 0 ? Le(c.b, index, number) : k + 1 == n ? Ge(c.b, index, number) : Eq(c.b, index, number);
  };
  // First the branches that all batch elements run, then the others on the elements that take them.
  auto runs_everywhere = [](const BatchedRegion& r) {
    return r.cost.IsSpeculatable() && (CheapForAllElements(r.cost, r.element_bytes) || !r.cost.collective.empty());
  };
  c.y.clear();
  for (size_t k = 0; k < n; ++k) {
    if (!runs_everywhere(branches[k])) continue;
    const Atom mask = taken(k);
    const Atoms y = c.b.Inline(*branches[k].Batched(c.regions, c.size),
                               branches[k].Operands(c.b, mask, x, branches[k].NeedsPadding()));
    if (c.y.empty())
      c.y = y;
    else
      for (size_t i = 0; i < y.size(); ++i) c.y[i] = SelectElements(c.b, mask, y[i], c.y[i]);
  }
  if (c.y.empty()) {
    for (const Type& t : c.eqn.regions[0]->ResultTypes()) c.y.push_back(Zeros(c.b, WithBatch(t, c.size)));
  }
  for (size_t k = 0; k < n; ++k) {
    const BatchedRegion& r = branches[k];
    if (runs_everywhere(r)) continue;
    c.y =
        OnActiveElements(c.b, c.regions, r, taken(k), x, c.y, c.size, ElementsPerBlock(r.cost, r.shared_bytes, c.size));
  }
  c.batched_out.assign(c.eqn.num_results, true);
}

}  // namespace weft
