#include "lowering/schedule/block_lowering.h"

#include <algorithm>

#include "ir/analysis/size_conditions.h"
#include "ir/prim.h"
#include "lowering/kernel/split_reduction.h"
#include "lowering/ops/op_table.h"

namespace weft {
namespace {

using How = BlockPlan::How;
using Kind = KernelNode::Kind;

Dim Bytes(const Type& t) { return t.size() * Dim(ByteWidth(t.dtype)); }

bool SameAccess(const Access& a, const Access& b) {
  if (!(a.offset == b.offset) || a.dynamic.size() != b.dynamic.size()) return false;
  for (size_t i = 0; i < a.dynamic.size(); ++i) {
    if (a.dynamic[i].node != b.dynamic[i].node || !(a.dynamic[i].stride == b.dynamic[i].stride) ||
        !(a.dynamic[i].limit == b.dynamic[i].limit))
      return false;
  }
  return true;
}

}  // namespace

int BlockLowering::SlotOf(const Atom& a) {
  if (a.is_literal()) return p_.ConstantSlot(a.literal());
  const int s = slot_[plan_.Root(a.id())];
  WEFT_CHECK(s >= 0) << "schedule: variable " << a.id() << " has no buffer yet";
  return s;
}

bool HoldsChecks(const Steps& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const Step& s) {
    return s.kind == Step::Kind::kChecked || std::any_of(s.blocks.begin(), s.blocks.end(), HoldsChecks);
  });
}

std::vector<int> BlockLowering::Run(Steps& steps) {
  Step checked;
  checked.kind = Step::Kind::kChecked;
  checked.blocks.resize(2);
  if (!sizes_are_checked_) {
    for (const SizeCondition& c : SizeConditions(fn_)) {
      const Dim message(p_.AddString(c.what));
      p_.EmitOp(checked.blocks[0], WEFT_OP_REQUIRE, {message, c.size, Dim(c.least), c.reads}, {});
    }
  }
  if (checked.blocks[0].empty()) return RunUnits(steps);
  const std::vector<int> results = RunUnits(checked.blocks[1]);
  steps.push_back(std::move(checked));
  return results;
}

std::vector<int> BlockLowering::RunUnits(Steps& steps) {
  slot_.assign(fn_.num_vars(), -1);
  wanted_.assign(fn_.num_vars(), -1);
  std::vector<int> count(fn_.num_vars(), 0);
  for (int u : plan_.order) {
    for (uint32_t r : plan_.units[u].reads) ++count[plan_.Root(r)];
  }
  for (const Atom& a : fn_.results()) {
    if (a.is_var()) ++count[plan_.Root(a.id())];
  }
  for (size_t i = 0; i < params_.size(); ++i) {
    slot_[i] = params_[i];
    readers_[params_[i]] += count[i];
  }
  for (size_t i = 0; i < dest_.size(); ++i) {
    const Atom& a = fn_.results()[i];
    if (dest_[i] < 0 || !a.is_var()) continue;
    const uint32_t root = plan_.Root(a.id());
    if (plan_.values[root].how != How::kParam && wanted_[root] < 0) wanted_[root] = dest_[i];
  }
  // Readers of values that units will make, found again when the slot is chosen.
  value_readers_ = std::move(count);
  WantInPlace();
  for (int u : plan_.order) {
    current_reads_.clear();
    for (uint32_t r : plan_.units[u].reads) ++current_reads_[slot_[plan_.Root(r)]];
    if (plan_.units[u].opaque >= 0)
      EmitOpaque(steps, u);
    else
      EmitGroup(steps, u);
    FinishUnit(u);
  }
  // Results that are elsewhere: copy, minding that destinations may be read by other copies.
  struct Move {
    int to, from;
    Type type;
  };
  std::vector<Move> moves;
  std::vector<int> out;
  for (size_t i = 0; i < fn_.results().size(); ++i) {
    const Atom& a = fn_.results()[i];
    const int from = SlotOf(a);
    const bool free = i < dest_.size() && std::find(slot_.begin(), slot_.end(), dest_[i]) == slot_.end();
    if (free && donated_.count(from) && dest_[i] != from && homes_.insert(from).second) {
      dest_[i] = from;  // a donated argument handed back
      p_.ResultInParam(static_cast<int>(i), from);
      p_.UsesDonated(from);
    }
    const int to = i < dest_.size() && dest_[i] >= 0 ? dest_[i] : from;
    out.push_back(to);
    if (to != from) moves.push_back({to, from, fn_.TypeOf(a)});
  }
  while (!moves.empty()) {
    size_t k = 0;
    auto blocked = [&](size_t m) {
      for (size_t j = 0; j < moves.size(); ++j) {
        if (j != m && moves[j].from == moves[m].to) return true;
      }
      return false;
    };
    while (k < moves.size() && blocked(k)) ++k;
    if (k == moves.size()) {
      // A cycle: one value steps aside.
      k = 0;
      const int aside = p_.NewArena(moves[k].type);
      p_.EmitCopy(steps, aside, moves[k].from, moves[k].type);
      moves[k].from = aside;
      continue;
    }
    p_.EmitCopy(steps, moves[k].to, moves[k].from, moves[k].type);
    moves.erase(moves.begin() + static_cast<int64_t>(k));
  }
  for (int s : out) p_.Use(s);
  return out;
}

void BlockLowering::FinishUnit(int unit) {
  for (uint32_t r : plan_.units[unit].reads) --readers_[slot_[plan_.Root(r)]];
}

// What a result wants is wanted, too, by the value that it is made from in place, if nobody else reads that one.
void BlockLowering::WantInPlace() {
  auto pass = [&](const Atom& operand, uint32_t result) {
    if (!operand.is_var() || wanted_[result] < 0) return;
    const uint32_t root = plan_.Root(operand.id());
    const How how = plan_.values[root].how;
    if ((how == How::kMember || how == How::kOpaque) && wanted_[root] < 0 && value_readers_[root] == 1)
      wanted_[root] = wanted_[result];
  };
  for (size_t u = plan_.order.size(); u-- > 0;) {
    const int i = plan_.units[plan_.order[u]].opaque;
    if (i < 0) continue;
    const Eqn& e = eqn(i);
    const OpRow::InPlace in_place = RowOf(*e.prim).in_place;
    if (in_place == OpRow::InPlace::kFirst) pass(e.operands[0], e.first_result);
    if (in_place != OpRow::InPlace::kCarries) continue;
    const auto first = static_cast<size_t>(e.attrs.GetOr<int64_t>("num_consts", 0));
    for (int64_t k = 0; k < e.attrs.GetInt("num_carry"); ++k)
      pass(e.operands[first + static_cast<size_t>(k)], e.first_result + static_cast<uint32_t>(k));
  }
}

void BlockLowering::Donate(int param) {
  const Dim bytes = Bytes(fn_.params()[static_cast<size_t>(param)].type);
  if (bytes == Dim(0)) return;
  donated_.emplace(params_[static_cast<size_t>(param)], bytes);
  owned_.insert(params_[static_cast<size_t>(param)]);
}

bool BlockLowering::OnlyThisUnitReads(int s) const {
  const auto now = current_reads_.find(s);
  const auto all = readers_.find(s);
  return (all == readers_.end() ? 0 : all->second) == (now == current_reads_.end() ? 0 : now->second);
}

int BlockLowering::DonatedHome(uint32_t var, const std::vector<int>& reusable) {
  // Where the result would otherwise be, the start of a loop's carry may be already: that would be written into the
  // donated memory, too, before what is in there is read.
  if (std::find(slot_.begin(), slot_.end(), wanted_[var]) != slot_.end()) return -1;
  const Dim bytes = Bytes(fn_.TypeOf(Var{var}));
  auto fits = [&](int s) {
    const auto it = donated_.find(s);
    return it != donated_.end() && it->second == bytes && homes_.count(s) == 0 && OnlyThisUnitReads(s);
  };
  int chosen = -1;
  for (int s : reusable) {
    if (chosen < 0 && fits(s)) chosen = s;
  }
  for (const auto& [s, size] : donated_) {
    if (chosen < 0 && fits(s) && current_reads_.count(s) == 0) chosen = s;
  }
  if (chosen < 0) return -1;
  homes_.insert(chosen);
  const int before = wanted_[var];
  const auto result = std::find(dest_.begin(), dest_.end(), before);
  *result = chosen;
  p_.ResultInParam(static_cast<int>(result - dest_.begin()), chosen);
  std::replace(wanted_.begin(), wanted_.end(), before, chosen);
  return chosen;
}

// The smallest one whose value is dead, leaving to results of the same size what they could live in.
int BlockLowering::DonatedRoom(const Dim& bytes) const {
  const std::optional<int64_t> need = bytes.TryValue();
  int best = -1;
  for (const auto& [s, size] : donated_) {
    if (homes_.count(s) || current_reads_.count(s) || !OnlyThisUnitReads(s)) continue;
    const std::optional<int64_t> have = size.TryValue();
    if (!(size == bytes) && !(need && have && *need <= *have)) continue;
    int places = 0, results = 0;
    for (const auto& [other, other_size] : donated_) places += homes_.count(other) == 0 && other_size == size;
    for (size_t i = 0; i < dest_.size(); ++i)
      results += donated_.count(dest_[i]) == 0 && Bytes(fn_.TypeOf(fn_.results()[i])) == size;
    if (results >= places) continue;
    if (best < 0 || (have && *have < donated_.at(best).TryValue().value_or(INT64_MAX))) best = s;
  }
  return best;
}

int BlockLowering::ResultSlot(uint32_t var, const std::vector<int>& may_hold) {
  const std::vector<int> reusable = p_.policy.distinct_buffers ? std::vector<int>() : may_hold;
  auto may_reuse = [&](int s) { return std::find(reusable.begin(), reusable.end(), s) != reusable.end(); };
  int chosen = -1;
  const int w = wanted_[var];
  if (w >= 0 && std::find(dest_.begin(), dest_.end(), w) != dest_.end()) chosen = DonatedHome(var, reusable);
  if (chosen < 0 && w >= 0 && OnlyThisUnitReads(w) && (current_reads_.count(w) == 0 || may_reuse(w))) chosen = w;
  for (int s : reusable) {
    if (chosen < 0 && w < 0 && owned_.count(s) && OnlyThisUnitReads(s)) chosen = s;
  }
  if (chosen < 0) chosen = DonatedRoom(Bytes(fn_.TypeOf(Var{var})));
  if (chosen < 0) {
    chosen = p_.NewArena(fn_.TypeOf(Var{var}));
    owned_.insert(chosen);
  }
  if (donated_.count(chosen)) {
    p_.UsesDonated(chosen);
    current_reads_[chosen];  // taken: another result of this unit goes elsewhere, even if nobody reads this one
  }
  slot_[var] = chosen;
  readers_[chosen] += value_readers_[var];
  p_.Use(chosen);
  return chosen;
}

std::vector<int> BlockLowering::OperandSlots(const BuiltKernel& kernel, int target, int staged) {
  std::vector<int> slots;
  for (const BuiltKernel::Operand& o : kernel.operands) {
    slots.push_back(o.is_target    ? target
                    : o.is_staged  ? staged
                    : o.is_literal ? p_.ConstantSlot(o.literal.literal())
                                   : slot_[plan_.Root(o.root)]);
    WEFT_CHECK(slots.back() >= 0) << "schedule: a kernel reads variable " << o.root << " before it is computed";
  }
  return slots;
}

void BlockLowering::EmitGroup(Steps& steps, int unit) {
  BuiltKernel kernel = KernelBuilder(fn_, plan_).Group(unit);
  if (p_.policy.distinct_buffers) kernel.spec.spills.clear();
  if (kernel.spec.stores.empty()) return;
  const std::vector<int> phases = kernel.spec.Phases(), read_last = kernel.spec.LastPhases();
  for (const KernelStore& s : kernel.spec.stores) {
    const uint32_t var = kernel.operands[s.access.operand].root;
    // Operands that this store may overwrite: read at the very place that is written, and in no later pass.
    std::vector<int> reusable;
    int written_in = phases[s.node] + (kernel.spec.nodes[s.node].kind == Kind::kReduce ? 1 : 0);
    for (const KernelStore& spill : kernel.spec.spills) {
      if (spill.access.operand == s.access.operand) written_in = std::min(written_in, phases[spill.node]);
    }
    for (size_t o = 0; o < kernel.operands.size(); ++o) {
      if (kernel.spec.written[o] || kernel.operands[o].is_literal) continue;
      bool same = true, read = false;
      for (size_t i = 0; i < kernel.spec.nodes.size(); ++i) {
        const KernelNode& n = kernel.spec.nodes[i];
        if (n.kind != Kind::kLoad || n.access.operand != static_cast<int>(o)) continue;
        read = true;
        same = same && n.access.dynamic.empty() && n.access.offset == s.access.offset &&
               ByteWidth(n.access.dtype) == ByteWidth(s.access.dtype) && read_last[i] <= written_in;
      }
      if (read && same) reusable.push_back(slot_[plan_.Root(kernel.operands[o].root)]);
    }
    ResultSlot(var, reusable);
  }
  std::vector<int> slots = OperandSlots(kernel, -1);
  KernelSpec spec = kernel.spec;
  StreamLargeResults(spec, slots);
  if (const std::optional<SplitReduction> split = SplitLongReduction(spec)) {
    for (const Type& t : split->partial) slots.push_back(p_.NewArena(t));
    for (const KernelSpec& part : split->kernels) p_.EmitKernel(steps, part, slots);
    return;
  }
  p_.EmitKernel(steps, spec, slots);
}

// A result that no cache holds until it is read again need not pass through them. Only where it lies from one element
// to the next, so that every vector is aligned.
void BlockLowering::StreamLargeResults(KernelSpec& spec, const std::vector<int>& slots) {
  constexpr int64_t kLarge = 24 << 20;
  if (spec.sizes.size() != 1 || spec.num_outer != 1 || !spec.spills.empty()) return;
  for (KernelStore& s : spec.stores) {
    const std::optional<int64_t> n = spec.sizes[0].TryValue();
    const int slot = slots[s.access.operand];
    const Artifact::Place place = p_.program.artifact.slots[slot].place;
    const bool ours = place == Artifact::Place::kArena || place == Artifact::Place::kResult;
    const bool read = std::count(slots.begin(), slots.end(), slot) > 1;
    if (n && *n * ByteWidth(s.access.dtype) >= kLarge && ours && !read && s.access.dynamic.empty() &&
        !IsComplex(s.access.dtype) && s.access.offset == Affine::Var(0))
      s.streamed = true;
  }
}

void BlockLowering::EmitWrite(Steps& steps, const BuiltKernel& kernel, int target, int staged) {
  p_.EmitKernel(steps, kernel.spec, OperandSlots(kernel, target, staged));
}

void BlockLowering::EmitOpaque(Steps& steps, int unit) {
  const Eqn& e = eqn(plan_.units[unit].opaque);
  const OpRow::Emit emit = RowOf(*e.prim).emit;
  if (emit == nullptr)
    throw Error(ErrorKind::kUnsupported, "compile: the CPU back end has no code for '" + e.prim->name + "' yet", e.loc);
  (this->*emit)(steps, e);
}

void BlockLowering::EmitProduct(Steps& steps, const Eqn& e) {
  IsOrderedSum(e) ? EmitOrderedSum(steps, e) : EmitContract(steps, e);
}

void BlockLowering::EmitConcatenate(Steps& steps, const Eqn& e) {
  const int to = ResultSlot(e.first_result, {});
  const std::vector<Dim> strides = Strides(fn_.TypeOf(e.result()).dims);
  const int64_t dim = e.attrs.GetInt("dim");
  Dim start = 0;
  for (const Atom& a : e.operands) {
    const Dims dims = fn_.TypeOf(a).dims;
    EmitWrite(steps, KernelBuilder(fn_, plan_).Copy(a, dims, start * strides[dim], strides), to);
    start = start + dims[dim];
  }
}

void BlockLowering::EmitPad(Steps& steps, const Eqn& e) {
  const Type x = fn_.TypeOf(e.operands[0]), y = fn_.TypeOf(e.result());
  const Ints &lo = e.attrs.Get<Ints>("lo"), &interior = e.attrs.Get<Ints>("interior");
  const int to = ResultSlot(e.first_result, {});
  const std::vector<Dim> strides = Strides(y.dims);
  EmitWrite(steps, KernelBuilder(fn_, plan_).Copy(e.operands[1], y.dims, 0, strides), to);
  Dims space;
  std::vector<Dim> from, steps_of;
  Dim start = 0;
  for (int d = 0; d < x.rank(); ++d) {
    const int64_t by = interior[d] + 1;
    int64_t first = 0;
    Dim count = x.dims[d];
    if (x.dims[d].is_static()) {
      // The elements that land inside.
      const int64_t n = *x.dims[d].TryValue(), size = *y.dims[d].TryValue();
      first = lo[d] < 0 ? (-lo[d] + by - 1) / by : 0;
      const int64_t end = size - 1 - lo[d] < 0 ? 0 : std::min(n, (size - 1 - lo[d]) / by + 1);
      count = std::max<int64_t>(0, end - first);
    } else if (lo[d] < 0 || y.dims[d] == x.dims[d] + Dim(lo[d]) || e.attrs.Get<Ints>("hi")[d] < 0) {
      first = std::max<int64_t>(0, -lo[d]);
      count = x.dims[d] - Dim(first) + Dim(std::min<int64_t>(0, e.attrs.Get<Ints>("hi")[d]));
    }
    space.push_back(count);
    from.push_back(Dim(first));
    start = start + Dim(lo[d] + first * by) * strides[d];
    steps_of.push_back(strides[d] * Dim(by));
  }
  EmitWrite(steps, KernelBuilder(fn_, plan_).Copy(e.operands[0], space, start, steps_of, {}, from), to);
}

void BlockLowering::EmitDynamicUpdate(Steps& steps, const Eqn& e) {
  const Type x = fn_.TypeOf(e.operands[0]), u = fn_.TypeOf(e.operands[1]);
  const std::vector<Dim> strides = Strides(x.dims);
  std::vector<KernelBuilder::DynamicStart> dynamic;
  for (int d = 0; d < x.rank(); ++d) {
    if (!(x.dims[d] == u.dims[d])) dynamic.push_back({e.operands[2 + d], x.dims[d] - u.dims[d], strides[d]});
  }
  const BuiltKernel kernel = KernelBuilder(fn_, plan_).Copy(e.operands[1], u.dims, 0, strides, dynamic);
  const int from = SlotOf(e.operands[0]);
  // In place when nobody needs the old array, and this kernel itself reads it only where it writes.
  bool aligned = true;
  for (size_t o = 0; o < kernel.operands.size(); ++o) {
    if (kernel.operands[o].is_target || kernel.operands[o].is_literal || kernel.operands[o].is_staged ||
        slot_[plan_.Root(kernel.operands[o].root)] != from)
      continue;
    for (const KernelNode& n : kernel.spec.nodes) {
      if (n.kind == Kind::kLoad && n.access.operand == static_cast<int>(o))
        aligned = aligned && SameAccess(n.access, kernel.spec.stores[0].access);
    }
  }
  if (!aligned && !(u.size() == x.size())) {
    // The update reads other places of the array: it is computed aside, so that the array need not be.
    const int staged = p_.NewArena(u);
    EmitWrite(steps, KernelBuilder(fn_, plan_).Copy(e.operands[1], u.dims, 0, Strides(u.dims)), staged);
    const BuiltKernel write = KernelBuilder(fn_, plan_).Copy(e.operands[1], u.dims, 0, strides, dynamic, {}, true);
    bool place_read = !e.operands[0].is_var();  // where to write may be read from the array, too
    for (const BuiltKernel::Operand& o : write.operands)
      place_read = place_read || (!o.is_target && !o.is_literal && !o.is_staged && slot_[plan_.Root(o.root)] == from);
    const int to = ResultSlot(e.first_result, place_read ? std::vector<int>{} : std::vector<int>{from});
    p_.EmitCopy(steps, to, from, x);
    return EmitWrite(steps, write, to, staged);
  }
  std::vector<int> reusable;
  if (aligned && e.operands[0].is_var()) reusable.push_back(from);
  const int to = ResultSlot(e.first_result, reusable);
  p_.EmitCopy(steps, to, from, x);
  EmitWrite(steps, kernel, to);
}

void BlockLowering::EmitCond(Steps& steps, const Eqn& e) {
  std::vector<int> params, results;
  for (size_t i = 1; i < e.operands.size(); ++i) params.push_back(SlotOf(e.operands[i]));
  for (uint32_t r = 0; r < e.num_results; ++r) results.push_back(ResultSlot(e.first_result + r, {}));
  Step step;
  step.kind = Step::Kind::kIf;
  step.slot = SlotOf(e.operands[0]);
  step.dtype = fn_.TypeOf(e.operands[0]).dtype;
  p_.Use(step.slot);
  p_.Log("if s" + std::to_string(step.slot));
  p_.NextPosition();
  ++p_.indent;
  for (const FnRef& region : e.regions) {
    step.blocks.emplace_back();
    p_.Log("branch");
    BlockLowering(p_, *region, params, results).Run(step.blocks.back());
  }
  --p_.indent;
  for (int s : results) p_.Use(s);
  p_.NextPosition();
  steps.push_back(std::move(step));
}

std::vector<int> BlockLowering::CarrySlots(Steps& steps, const Eqn& e, size_t first, size_t count) {
  std::vector<int> slots;
  std::map<int, int> times;
  for (const Atom& a : e.operands) {
    if (a.is_var()) ++times[SlotOf(a)];
  }
  std::vector<std::pair<int, Atom>> copies;
  for (size_t k = 0; k < count; ++k) {
    const Atom& a = e.operands[first + k];
    const uint32_t var = e.first_result + static_cast<uint32_t>(k);
    std::vector<int> reusable;
    if (a.is_var() && times[SlotOf(a)] == 1) reusable.push_back(SlotOf(a));
    const int from = SlotOf(a);
    const int to = ResultSlot(var, reusable);
    slots.push_back(to);
    if (to != from) p_.EmitCopy(steps, to, from, fn_.TypeOf(a));
  }
  return slots;
}

void BlockLowering::EmitScan(Steps& steps, const Eqn& e) {
  const size_t consts = static_cast<size_t>(e.attrs.GetInt("num_consts")),
               carries = static_cast<size_t>(e.attrs.GetInt("num_carry"));
  const std::vector<int> carry = CarrySlots(steps, e, consts, carries);
  Step step;
  step.kind = Step::Kind::kFor;
  step.reverse = e.attrs.GetBool("reverse");
  const Fn& body = *e.regions[0];
  std::vector<Dim> desc = {e.attrs.Get<Dims>("length")[0]};
  std::vector<int> params, dest = carry, held;
  for (size_t i = 0; i < consts; ++i) params.push_back(SlotOf(e.operands[i]));
  params.insert(params.end(), carry.begin(), carry.end());
  auto moving = [&](int base, const Type& slice) {
    const int slot = p_.NewSlot(Artifact::Place::kMoving, base);
    step.moving.push_back({slot, base, static_cast<int64_t>(desc.size())});
    desc.push_back(Bytes(slice));
    held.push_back(base);
    return slot;
  };
  for (size_t i = consts + carries; i < e.operands.size(); ++i)
    params.push_back(moving(SlotOf(e.operands[i]), body.params()[i].type));
  const Types results = body.ResultTypes();
  for (size_t i = carries; i < results.size(); ++i)
    dest.push_back(moving(ResultSlot(e.first_result + static_cast<uint32_t>(i), {}), results[i]));
  step.desc = p_.AddDesc(desc);
  p_.NextPosition();
  const int begin = p_.Position();
  held.insert(held.end(), params.begin(), params.end());
  for (int s : held) p_.Use(s);
  p_.Log("for " + desc[0].ToString());
  ++p_.indent;
  step.blocks.resize(1);
  const int mark = BeginTapeScope(step.blocks[0], body);
  BlockLowering(p_, body, params, dest).Run(step.blocks[0]);
  EndTapeScope(step.blocks[0], mark);
  --p_.indent;
  for (int s : held) p_.Use(s);
  p_.EndLoop(begin);
  p_.NextPosition();
  step.can_fail = body.HasEffects() || !body.FreeAxes().empty() || HoldsChecks(step.blocks[0]);
  steps.push_back(std::move(step));
}

}  // namespace weft
