// while and tape_scan under vmap where batch elements differ in their numbers of trips.
//
// A loop that records nothing runs on a block of slots. A slot holds a batch element; when a quarter of them have come
// to their end, the results are written out and batch elements that wait take their places. So the work is the sum of
// the batch elements' trips, not the number of batch elements times the longest (the "persistent threads" of GPUs; Aila
// & Laine 2009, "Understanding the Efficiency of Ray Traversal on GPUs"). A loop that records for reverse mode keeps
// its batch elements in step, since a record holds the rows of all batch elements; if its body is dear, each trip runs
// on blocks of the living batch elements.
#include "ir/prims/control/divergence.h"
#include "ir/prims/control/regions.h"
#include "ir/prims/control/scan.h"
#include "ir/prims/control/while.h"
#include "ir/prims/families.h"

namespace weft {
namespace {

Type WithBatch(Type t, const Dim& elements) {
  t.dims.insert(t.dims.begin(), elements);
  return t;
}

Types WithBatch(const Types& types, const Mask& which, const Dim& elements) {
  Types out;
  for (size_t i = 0; i < types.size(); ++i) out.push_back(which[i] ? WithBatch(types[i], elements) : types[i]);
  return out;
}

Mask Joined(Mask a, const Mask& b) {
  Append(a, b);
  return a;
}

// A while loop whose batch elements differ, and its step: (carries, invariants) -> (carries, whether to go on, rows).
struct DivergentLoop {
  BatchContext& c;
  While loop;
  Mask inv;  // the invariants that have batch elements
  FnRef step;
  BatchedRegion cond, body;

  DivergentLoop(BatchContext& context, const While& w, const FnRef& one_step)
      : c(context),
        loop(w),
        inv(w.Invariants(context.batched)),
        step(one_step),
        cond(w.cond, Joined(Mask(w.carries, true), inv), context.x),
        body(one_step, Joined(Mask(w.carries, true), inv), context.x) {
    // One decision for both, which get the same operands.
    cond.copied = body.copied = Union(cond.copied, body.copied);
  }
  size_t n() const { return loop.carries; }
  Types CarryTypes(const Dim& elements) const {
    return WithBatch(loop.Carries(loop.body->ParamTypes()), Mask(n(), true), elements);
  }
  Types InvariantTypes(const Dim& elements) const {
    return WithBatch(loop.Invariants(loop.body->ParamTypes()), inv, elements);
  }
};

FnRef StepOf(const While& loop) {
  Builder b(loop.body->name());
  const Atoms params = Parameters(b, loop.body->ParamTypes());
  const Atoms out = b.Inline(*loop.body, params);
  Atoms args = loop.Carries(out), results = args;
  Append(args, loop.Invariants(params));
  results.push_back(b.Inline(*loop.cond, args)[0]);
  Append(results, loop.Rows(out));
  return std::move(b).Build(results);
}

// The loop on `elements` batch elements that stay in step, for as long as more than `floor` of them are live; without a
// floor, until the last one ends. Results: carries, live, tapes.
Atoms EmitInStep(Builder& b, const DivergentLoop& l, const Dim& elements, const Atoms& carries, const Atom& live,
                 const Atoms& inv, const std::optional<Atom>& floor, std::optional<int64_t> by_blocks_of) {
  const Type mask{DType::kBool, {elements}, {}}, count{DType::kI32, {}, {}};
  const size_t n = l.n();
  struct Region {
    Builder b;
    Atoms carries, inv;
    Atom live, floor;
    Region(const std::string& name, const DivergentLoop& l, const Dim& elements, const Type& mask, bool has_floor)
        : b(name), carries(Parameters(b, l.CarryTypes(elements))) {
      live = b.Parameter(mask);
      inv = Parameters(b, l.InvariantTypes(elements));
      if (has_floor) floor = b.Parameter(Type{DType::kI32, {}, {}});
    }
  };
  Region t("more", l, elements, mask, floor.has_value());
  const FnRef more =
      t.b.Build({floor ? Gt(t.b, Reduce(t.b, "reduce_sum", Convert(t.b, t.live, count.dtype), {0}), t.floor)
                       : Reduce(t.b, "reduce_or", t.live, {0})});

  Region r(l.loop.body->name(), l, elements, mask, floor.has_value());
  r.b.set_loc(b.loc());
  Atoms args = r.carries, results;
  Append(args, r.inv);
  if (by_blocks_of) {
    Atoms base = r.carries;
    base.push_back(Zeros(r.b, mask));
    const Types rows = l.loop.Rows(l.loop.body->ResultTypes());
    for (const Type& row : rows) base.push_back(Zeros(r.b, WithBatch(row, elements)));
    results = OnActiveElements(r.b, l.c.regions, l.body, r.live, args, base, elements, *by_blocks_of);
  } else {
    results =
        r.b.Inline(*l.body.Batched(l.c.regions, elements), l.body.Operands(r.b, r.live, args, l.body.NeedsPadding()));
    for (size_t i = 0; i < n; ++i) results[i] = SelectElements(r.b, r.live, results[i], r.carries[i]);
    results[n] = And(r.b, r.live, results[n]);
  }
  const FnRef body = std::move(r.b).Build(results);

  Atoms operands = carries;
  operands.push_back(live);
  Append(operands, inv);
  if (floor) operands.push_back(*floor);
  Ints tapes = l.loop.tape_dims;
  for (int64_t& k : tapes) ++k;
  return b.Emit(FindPrim("while"), operands, WhileAttrs(l.c.eqn.attrs, n + 1, tapes), {more, body});
}

// The predicate on batch elements that hold something, false elsewhere.
Atom Live(Builder& b, const DivergentLoop& l, const Dim& elements, const Atoms& args, const std::optional<Atom>& held) {
  const Atom mask = held ? *held : Full(b, Type{DType::kBool, {elements}, {}}, 1);
  const bool pad = held && !l.cond.cost.IsSpeculatable();
  const Atom live = b.Inline(*l.cond.Batched(l.c.regions, elements), l.cond.Operands(b, mask, args, pad))[0];
  return held ? And(b, *held, live) : live;
}

// A block of slots through which all batch elements pass. Gives the carries.
Atoms EmitSlots(Builder& b, const DivergentLoop& l, int64_t block, const Atoms& x) {
  const Dim slots(block), &elements = l.c.size;
  const size_t n = l.n();
  const DType index = BatchIndexDType(elements);
  const Type number{index, {}, {}}, numbers{index, {slots}, {}}, mask{DType::kBool, {slots}, {}};
  const Types slot_types = l.CarryTypes(slots);
  // carries: results, slots' carries, their batch elements, whether they hold one, the next batch element;
  // invariants: the batch elements' first carries, invariants, how many batch elements
  Types carries = l.CarryTypes(elements), invariants = carries;
  Append(carries, slot_types);
  for (const Type& t : {numbers, mask, number}) carries.push_back(t);
  Append(invariants, l.InvariantTypes(elements));
  invariants.push_back(number);

  Builder tb("more"), sb(l.loop.body->name());
  const Atoms tc = Parameters(tb, carries), ti = Parameters(tb, invariants);
  const FnRef more = tb.Build({Or(tb, Reduce(tb, "reduce_or", tc[2 * n + 1], {0}), Lt(tb, tc[2 * n + 2], ti.back()))});

  sb.set_loc(b.loc());
  const Atoms sc = Parameters(sb, carries), si = Parameters(sb, invariants);
  const Atom &element = sc[2 * n], &held = sc[2 * n + 1], &next = sc[2 * n + 2], &end = si.back();
  auto all = [&](const Atom& a) { return Broadcast(sb, a, {slots}, {}); };
  // Free slots take the next batch elements.
  const Atom free = Convert(sb, Not(sb, held), index);
  const Atom up_to = sb.Emit1(FindPrim("cumsum"), {free}, {{"dim", int64_t{0}}, {"reverse", false}});
  const Atom candidate = Sub(sb, Add(sb, all(next), up_to), Atom::Scalar(index, 1));
  const Atom load = And(sb, Not(sb, held), Lt(sb, candidate, all(end)));
  const Atom in_slot = Select(sb, load, candidate, element);
  const Atom waiting = Min(sb, Add(sb, next, Reduce(sb, "reduce_sum", free, {0})), end);
  const Atom holds = Or(sb, held, load);
  Atoms args, inv;
  for (size_t i = 0; i < n; ++i) args.push_back(SelectElements(sb, load, ElementsAt(sb, si[i], in_slot), sc[n + i]));
  for (size_t i = 0; i < l.inv.size(); ++i) inv.push_back(l.inv[i] ? ElementsAt(sb, si[n + i], in_slot) : si[n + i]);
  Atoms all_args = args;
  Append(all_args, inv);
  const Atom live = Live(sb, l, slots, all_args, holds);
  // Until a quarter have finished, as long as others wait; then to the end.
  const double floor = static_cast<double>(block - std::max<int64_t>(1, block / 4));
  const Atom stop = Select(sb, Lt(sb, waiting, end), Atom::Scalar(DType::kI32, floor), Atom::Scalar(DType::kI32, 0));
  const Atoms out = EmitInStep(sb, l, slots, args, live, inv, stop, std::nullopt);
  const Atom finished = And(sb, holds, Not(sb, out[n]));
  const Atom no_lane = Atom::Scalar(index, index == DType::kI32 ? 2147483647.0 : 4e18);
  const Atom to = Select(sb, finished, in_slot, no_lane);
  Atoms results;
  for (size_t i = 0; i < n; ++i) results.push_back(WithElementsAt(sb, sc[i], to, out[i]));
  Append(results, Part(out, 0, n));
  for (const Atom& a : {in_slot, out[n], waiting}) results.push_back(a);
  const FnRef body = std::move(sb).Build(results);

  Atoms operands;
  for (const Type& t : carries) operands.push_back(Zeros(b, t));
  Append(operands, x);
  operands.push_back(elements.is_static()
                         ? Atom::Scalar(index, static_cast<double>(elements.value()))
                         : Convert(b, b.Emit1(FindPrim("dim_size"), {x[0]}, {{"dim", int64_t{0}}}), index));
  return Part(b.Emit(FindPrim("while"), operands, WhileAttrs(l.c.eqn.attrs, 2 * n + 3, {}), {more, body}), 0, n);
}

}  // namespace

void BatchDivergentWhile(BatchContext& c) {
  const While loop(c.eqn.attrs, c.eqn.regions);
  const DivergentLoop l(c, loop, StepOf(loop));
  const RegionCost& cost = l.body.cost;
  RefuseCollective(c, cost);
  const int64_t block = ElementsPerBlock(cost, l.body.shared_bytes, c.size);
  if (cost.one_by_one || block == 1) return BatchOneByOne(c);
  Atoms x;
  for (size_t i = 0; i < c.x.size(); ++i) x.push_back(i < l.n() ? c.Batched(static_cast<int>(i)) : c.x[i]);
  c.batched_out.assign(c.eqn.num_results, true);
  const bool records = loop.results > loop.carries, one_block = c.size.is_static() && c.size.value() <= block;
  if (!records && !one_block && l.n() > 0) {
    c.y = EmitSlots(c.b, l, block, x);
    return;
  }
  const bool in_step = one_block || CheapForAllElements(cost, l.body.element_bytes);
  const Atom live = Live(c.b, l, c.size, x, std::nullopt);
  const Atoms out = EmitInStep(c.b, l, c.size, Part(x, 0, l.n()), live, Part(x, l.n(), x.size()), std::nullopt,
                               in_step ? std::nullopt : std::optional<int64_t>(block));
  c.y = Part(out, 0, l.n());
  Append(c.y, Part(out, l.n() + 1, out.size()));
}

// Each batch element has its own number of steps. One that is past its end (going up), or whose steps have not come yet
// (going down), keeps its carries and leaves zero rows.
void BatchDivergentTapeScan(BatchContext& c) {
  const Scan scan(*c.eqn.prim, c.eqn.attrs, c.eqn.regions[0]);
  Mask batched = scan.Rest(c.batched);
  std::fill(batched.begin() + static_cast<int64_t>(scan.consts), batched.begin() + static_cast<int64_t>(scan.first_x()),
            true);
  Atoms x = scan.Rest(c.x);
  const BatchedRegion body(scan.body, batched, x);
  RefuseCollective(c, body.cost);
  const int64_t block = ElementsPerBlock(body.cost, body.shared_bytes, c.size);
  if (body.cost.one_by_one || block == 1) return BatchOneByOne(c);
  for (size_t i = scan.consts; i < scan.first_x(); ++i) x[i] = c.Batched(static_cast<int>(scan.lead() + i));

  const Dim& elements = c.size;
  const Atom trips = Reduce(c.b, "reduce_max", c.x[0], Range(1, c.b.TypeOf(c.x[0]).rank()));
  const Types types = WithBatch(scan.body->ParamTypes(), batched, elements);
  const Types results = WithBatch(scan.body->ResultTypes(), Mask(scan.results, true), elements);
  Builder b(scan.body->name());
  b.set_loc(c.b.loc());
  const Atom element_trips = b.Parameter(c.b.TypeOf(trips));
  Atoms args = Parameters(b, scan.Consts(types));
  const Atom step = b.Parameter(Type{DType::kI64, {}, {}});
  const Atoms carry = Parameters(b, scan.Carries(types));
  Append(args, carry);
  Append(args, Parameters(b, scan.Xs(types)));
  const Atom running = Lt(b, Broadcast(b, step, {elements}, {}), element_trips);
  const bool one_block = elements.is_static() && elements.value() <= block;
  Atoms out, base = carry;
  for (size_t i = scan.carries; i < scan.results; ++i) base.push_back(Zeros(b, results[i]));
  if (one_block || CheapForAllElements(body.cost, body.element_bytes)) {
    out = b.Inline(*body.Batched(c.regions, elements), body.Operands(b, running, args, body.NeedsPadding()));
    for (size_t i = 0; i < scan.results; ++i) out[i] = SelectElements(b, running, out[i], base[i]);
  } else {
    out = OnActiveElements(b, c.regions, body, running, args, base, elements, block);
  }
  out.insert(out.begin(), Add(b, step, Atom(Tensor::Scalar<int64_t>(DType::kI64, scan.reverse ? -1 : 1))));

  const Atom one(Tensor::Scalar<int64_t>(DType::kI64, 1)), zero(Tensor::Scalar<int64_t>(DType::kI64, 0));
  Atoms operands = {c.x[0], trips};
  Append(operands, scan.Consts(x));
  operands.push_back(
      scan.reverse ? Sub(c.b, Reduce(c.b, "reduce_max", c.x[0], Range(0, c.b.TypeOf(c.x[0]).rank())), one) : zero);
  Append(operands, Part(x, scan.consts, x.size()));
  Ints tapes = scan.tape_dims;
  for (int64_t& k : tapes) ++k;
  c.y = c.b.Emit(*c.eqn.prim, operands, scan.With(scan.consts + 1, scan.carries + 1, tapes, scan.reverse),
                 {std::move(b).Build(out)});
  c.y.erase(c.y.begin());
  c.batched_out.assign(c.y.size(), true);
}

}  // namespace weft
