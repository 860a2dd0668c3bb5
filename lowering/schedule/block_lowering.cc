#include "lowering/schedule/block_lowering.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "ir/analysis/size_conditions.h"
#include "ir/prim.h"
#include "lowering/kernel/split_reduction.h"
#include "lowering/kernel/transposed_operands.h"
#include "lowering/ops/op_table.h"
#include "lowering/schedule/block_trace.h"

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

int BlockLowering::ValueOfRoot(uint32_t root) const {
  const int v = value_[root];
  WEFT_CHECK(v >= 0) << "schedule: variable " << root << " is read before it is computed";
  return v;
}

int BlockLowering::ValueOf(const Atom& a) {
  return a.is_literal() ? p_.Constant(a.literal()) : ValueOfRoot(plan_.Root(a.id()));
}

int BlockLowering::NewResult(uint32_t var) { return value_[var] = p_.NewTemporary(fn_.TypeOf(Var{var})); }

void BlockLowering::Run(Steps& steps) {
  BlockTrace* const around = p_.trace;
  if (around != nullptr && around->fn != nullptr) p_.trace = &around->units.back().bodies.emplace_back();
  Traced(steps);
  p_.trace = around;
}

void BlockLowering::Traced(Steps& steps) {
  Schedule::Step checked;
  checked.kind = Schedule::Step::Kind::kChecked;
  checked.blocks.resize(2);
  if (!sizes_are_checked_) {
    for (const SizeCondition& c : SizeConditions(fn_)) {
      const abi::Require<InSchedule> told{p_.AddString(c.what), c.size, Dim(c.least), c.reads};
      p_.AddCall(checked.blocks[0].steps, told, {});
    }
  }
  if (checked.blocks[0].steps.empty()) return RunUnits(steps);
  RunUnits(checked.blocks[1].steps);
  steps.push_back(std::move(checked));
}

void BlockLowering::RunUnits(Steps& steps) {
  value_.assign(fn_.num_vars(), -1);
  readers_.assign(fn_.num_vars(), 0);
  for (int u : plan_.order) {
    for (uint32_t r : plan_.units[u].reads) ++readers_[plan_.Root(r)];
  }
  for (const Atom& a : fn_.results()) {
    if (a.is_var()) ++readers_[plan_.Root(a.id())];
  }
  std::copy(params_.begin(), params_.end(), value_.begin());
  BlockTrace* const trace = p_.trace;
  if (trace != nullptr) {
    trace->fn = &fn_;
    trace->plan = plan_;
    trace->params = params_;
    trace->dest = dest_;
  }
  for (int u : plan_.order) {
    if (trace != nullptr) trace->units.push_back({u, steps.size(), {}});
    if (plan_.units[u].opaque >= 0)
      EmitOpaque(steps, u);
    else
      EmitGroup(steps, u);
  }
  if (trace != nullptr) {
    trace->values = value_;
    trace->first_copy = steps.size();
  }
  CopyResults(steps);
}

// Every result to where it has to be. Where that is the value of a parameter, others may still read what is there.
void BlockLowering::CopyResults(Steps& steps) {
  struct Move {
    int to, from;
  };
  std::vector<Move> moves;
  std::unordered_map<int, int> waiting;  // value -> moves that read it
  for (size_t i = 0; i < fn_.results().size(); ++i) {
    const int from = ValueOf(fn_.results()[i]);
    if (from == dest_[i]) continue;
    moves.push_back({dest_[i], from});
    ++waiting[from];
  }
  std::unordered_map<int, int> copied;  // value -> where it is, too
  const auto emit = [&](int to, int from) {
    const auto at = copied.find(from);
    p_.AddCopy(steps, Schedule::Copy::kResult, to, at == copied.end() ? from : at->second);
    // What is wanted in two places comes to the second one from the first, so that it may be made there.
    if (p_.value(from).kind == Schedule::Value::Kind::kTemporary) copied.emplace(from, to);
  };
  const auto read_by_others = [&](const Move& m) {
    const auto at = waiting.find(m.to);
    return at != waiting.end() && at->second > 0;
  };
  while (!moves.empty()) {
    std::vector<Move> later;
    for (const Move& m : moves) {
      if (read_by_others(m)) {
        later.push_back(m);
        continue;
      }
      emit(m.to, m.from);
      --waiting[m.from];
    }
    if (later.size() == moves.size()) {
      // A cycle: one value steps aside.
      const int from = later[0].from, aside = p_.NewCopyOf(from);
      p_.AddCopy(steps, Schedule::Copy::kData, aside, from);
      --waiting[from];
      ++waiting[aside];
      later[0].from = aside;
    }
    moves = std::move(later);
  }
}

std::vector<int> BlockLowering::OperandValues(const BuiltKernel& kernel, int target, int staged) {
  std::vector<int> values;
  for (const BuiltKernel::Operand& o : kernel.operands) {
    values.push_back(o.is_target    ? target
                     : o.is_staged  ? staged
                     : o.is_literal ? p_.Constant(o.literal.literal())
                                    : ValueOfRoot(o.root));
  }
  return values;
}

std::vector<Schedule::MayShare> BlockLowering::InPlace(const BuiltKernel& kernel,
                                                       const std::vector<int>& values) const {
  std::vector<Schedule::MayShare> may_share;
  if (p_.policy.distinct_buffers) return may_share;
  const std::vector<int> phases = kernel.spec.Phases(), read_last = kernel.spec.LastPhases();
  for (const KernelStore& s : kernel.spec.stores) {
    // Operands that this store may overwrite: read at the very place that is written, and in no later pass.
    int written_in = phases[s.node] + (kernel.spec.nodes[s.node].kind == Kind::kReduce ? 1 : 0);
    for (const KernelStore& spill : kernel.spec.spills) {
      if (spill.access.operand == s.access.operand) written_in = std::min(written_in, phases[spill.node]);
    }
    std::vector<int> aligned, others;
    for (const KernelNode& n : kernel.spec.nodes) {
      if (n.kind != Kind::kLoad) continue;
      const auto i = static_cast<size_t>(&n - kernel.spec.nodes.data());
      const bool same = n.access.dynamic.empty() && n.access.offset == s.access.offset &&
                        ByteWidth(n.access.dtype) == ByteWidth(s.access.dtype) && read_last[i] <= written_in;
      const auto o = static_cast<size_t>(n.access.operand);
      (same && !kernel.spec.written[o] ? aligned : others).push_back(values[o]);
    }
    const int result = values[static_cast<size_t>(s.access.operand)];
    for (int v : aligned) {
      const bool taken = std::any_of(may_share.begin(), may_share.end(),
                                     [&](const Schedule::MayShare& m) { return m.result == result && m.operand == v; });
      if (!taken && v != result && std::find(others.begin(), others.end(), v) == others.end())
        may_share.push_back({result, v});
    }
  }
  return may_share;
}

void BlockLowering::EmitGroup(Steps& steps, int unit) {
  BuiltKernel kernel = KernelBuilder(fn_, plan_).Group(unit);
  if (p_.policy.distinct_buffers) kernel.spec.spills.clear();
  if (kernel.spec.stores.empty()) return;
  for (const KernelStore& s : kernel.spec.stores) NewResult(kernel.operands[s.access.operand].root);
  std::vector<int> values = OperandValues(kernel, -1);
  const std::vector<Schedule::MayShare> may_share = InPlace(kernel, values);
  if (const std::optional<SplitReduction> split = SplitLongReduction(kernel.spec)) {
    for (const Type& t : split->partial) values.push_back(p_.NewTemporary(t));
    for (const KernelSpec& part : split->kernels) p_.AddKernel(steps, part, values, may_share);
    return;
  }
  // A GPU's threads read what is nearby in any order.
  if (const auto moved = p_.policy.distinct_buffers ? std::nullopt : TransposeForLanes(kernel.spec)) {
    for (const Type& t : moved->transposed) values.push_back(p_.NewTemporary(t));
    for (const KernelSpec& part : moved->kernels) p_.AddKernel(steps, part, values, may_share);
    return;
  }
  p_.AddKernel(steps, kernel.spec, values, may_share);
}

void BlockLowering::EmitWrite(Steps& steps, const BuiltKernel& kernel, int target, int staged,
                              const std::vector<Schedule::MayShare>& may_share) {
  p_.AddKernel(steps, kernel.spec, OperandValues(kernel, target, staged), may_share);
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
  const int to = NewResult(e.first_result);
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
  const int to = NewResult(e.first_result);
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
  const int from = ValueOf(e.operands[0]);
  // In place when nobody needs the old array, and this kernel itself reads it only where it writes.
  bool aligned = true, read = false;
  for (size_t o = 0; o < kernel.operands.size(); ++o) {
    if (kernel.operands[o].is_target || kernel.operands[o].is_literal || kernel.operands[o].is_staged ||
        ValueOfRoot(kernel.operands[o].root) != from)
      continue;
    for (const KernelNode& n : kernel.spec.nodes) {
      if (n.kind != Kind::kLoad || n.access.operand != static_cast<int>(o)) continue;
      read = true;
      aligned = aligned && SameAccess(n.access, kernel.spec.stores[0].access);
    }
  }
  if (!aligned && !(u.size() == x.size())) {
    // The update reads other places of the array: it is computed aside, so that the array need not be.
    const int staged = p_.NewTemporary(u);
    EmitWrite(steps, KernelBuilder(fn_, plan_).Copy(e.operands[1], u.dims, 0, Strides(u.dims)), staged);
    const BuiltKernel write = KernelBuilder(fn_, plan_).Copy(e.operands[1], u.dims, 0, strides, dynamic, {}, true);
    const int to = NewResult(e.first_result);
    p_.AddCopy(steps, Schedule::Copy::kStart, to, from);
    return EmitWrite(steps, write, to, staged);
  }
  const int to = NewResult(e.first_result);
  p_.AddCopy(steps, Schedule::Copy::kStart, to, from);
  std::vector<Schedule::MayShare> may_share;
  if (aligned && read && !p_.policy.distinct_buffers) may_share.push_back({to, from});
  EmitWrite(steps, kernel, to, -1, may_share);
}

void BlockLowering::EmitCond(Steps& steps, const Eqn& e) {
  std::vector<int> params, results;
  for (size_t i = 1; i < e.operands.size(); ++i) params.push_back(ValueOf(e.operands[i]));
  for (uint32_t r = 0; r < e.num_results; ++r) results.push_back(NewResult(e.first_result + r));
  Schedule::Step step;
  step.kind = Schedule::Step::Kind::kIf;
  step.predicate = ValueOf(e.operands[0]);
  step.dtype = fn_.TypeOf(e.operands[0]).dtype;
  for (const FnRef& region : e.regions) {
    step.blocks.emplace_back();
    BlockLowering(p_, *region, params, results).Run(step.blocks.back().steps);
  }
  steps.push_back(std::move(step));
}

std::vector<int> BlockLowering::Carries(Steps& steps, const Eqn& e, size_t first, size_t count) {
  std::vector<int> carries;
  for (size_t k = 0; k < count; ++k) {
    const int from = ValueOf(e.operands[first + k]);
    carries.push_back(NewResult(e.first_result + static_cast<uint32_t>(k)));
    p_.AddCopy(steps, Schedule::Copy::kStart, carries.back(), from);
  }
  return carries;
}

void BlockLowering::EmitScan(Steps& steps, const Eqn& e) {
  const size_t consts = static_cast<size_t>(e.attrs.GetInt("num_consts")),
               carries = static_cast<size_t>(e.attrs.GetInt("num_carry"));
  const std::vector<int> carry = Carries(steps, e, consts, carries);
  Schedule::Step step;
  step.kind = Schedule::Step::Kind::kFor;
  step.reverse = e.attrs.GetBool("reverse");
  step.trips = e.attrs.Get<Dims>("length")[0];
  const Fn& body = *e.regions[0];
  std::vector<int> params, dest = carry;
  for (size_t i = 0; i < consts; ++i) params.push_back(ValueOf(e.operands[i]));
  params.insert(params.end(), carry.begin(), carry.end());
  const auto slice = [&](Schedule::Use base, const Type& type) {
    step.uses.push_back(base);
    step.slices.push_back({p_.NewMoving(type, {base.value}), base.value, Bytes(type)});
    return step.slices.back().value;
  };
  for (size_t i = consts + carries; i < e.operands.size(); ++i)
    params.push_back(slice(p_.Read(ValueOf(e.operands[i])), body.params()[i].type));
  const Types results = body.ResultTypes();
  for (size_t i = carries; i < results.size(); ++i)
    dest.push_back(slice(p_.Write(NewResult(e.first_result + static_cast<uint32_t>(i))), results[i]));
  step.blocks.resize(1);
  Steps& inner = step.blocks[0].steps;
  const int mark = BeginTapeScope(inner, body);
  BlockLowering(p_, body, params, dest).Run(inner);
  EndTapeScope(inner, mark);
  step.can_fail = body.HasEffects() || !body.FreeAxes().empty() || HoldsChecks(step.blocks[0]);
  steps.push_back(std::move(step));
}

Schedule BuildSchedule(const Fn& fn, const FusionPolicy& policy, const std::vector<bool>& donated, BlockTrace* trace) {
  WEFT_CHECK(donated.empty() || donated.size() == fn.params().size()) << "one flag per parameter";
  ScheduleBuilder builder(policy, fn, donated);
  builder.trace = trace;
  std::vector<int> params, results;
  builder.NewEnds(fn, &params, &results);
  Schedule::Steps steps;
  BlockLowering block(builder, fn, params, results);
  block.SizesAreChecked();
  block.Run(steps);
  return builder.Finish(std::move(steps));
}

}  // namespace weft
