// Loops over tapes: while with recorded rows, tape_scan, and when tapes may be freed.
#include <algorithm>

#include "ir/prim.h"
#include "ir/prim_table.h"
#include "lowering/schedule/block_lowering.h"

namespace weft {
namespace {

constexpr int kNone = -1;

Dim Bytes(const Type& t) { return t.size() * Dim(ByteWidth(t.dtype)); }
Dim Product(const Dims& dims, size_t begin, size_t end) {
  Dim n = 1;
  for (size_t i = begin; i < end; ++i) n = n * dims[i];
  return n;
}

// Whether running `fn` may make tapes.
bool MakesTapes(const Fn& fn) {
  return AnyFunction(fn, [](const Fn& f) {
    return std::any_of(f.eqns().begin(), f.eqns().end(), [&](const Eqn& e) {
      if (Is<"tape_add">(*e.prim)) return true;  // the one that makes a tape of others, without a region
      const bool makes = !e.regions.empty() || e.prim->family == Family::kEffect;  // others move them
      for (uint32_t r = 0; makes && r < e.num_results; ++r) {
        if (f.TypeOf(e.result(static_cast<int>(r))).dtype == DType::kTape) return true;
      }
      return false;
    });
  });
}

}  // namespace

int BlockLowering::BeginTapeScope(Steps& steps, const Fn& body) {
  for (const Type& t : body.ResultTypes()) {
    if (t.dtype == DType::kTape) return kNone;  // they leave the iteration
  }
  if (!MakesTapes(body)) return kNone;
  const int mark = p_.NewTemporary(Type{DType::kI64, {}, {}});
  p_.AddCall(steps, abi::TapeMark<InSchedule>{mark}, {p_.Write(mark)});
  return mark;
}

void BlockLowering::EndTapeScope(Steps& steps, int mark) {
  if (mark != kNone) p_.AddCall(steps, abi::TapeRelease<InSchedule>{mark}, {p_.Read(mark)});
}

// One tape per result of `e` from `first_row` on.
std::vector<int> BlockLowering::NewTapes(Steps& steps, const Eqn& e, size_t first_row, const Types& rows,
                                         const Ints& lanes, int trips, const Dim& num_trips) {
  std::vector<int> tapes;
  for (size_t i = 0; i < rows.size(); ++i) {
    const int tape = NewResult(e.first_result + static_cast<uint32_t>(first_row + i));
    const Dims& dims = rows[i].dims;
    const size_t split = static_cast<size_t>(lanes[i]);
    std::vector<Schedule::Use> uses = {p_.Write(tape)};
    if (trips != kNone) uses.push_back(p_.Read(trips));
    const abi::TapeNew<InSchedule> told{
        tape, rows[i].dtype, Product(dims, split, dims.size()), Product(dims, 0, split), trips, num_trips};
    p_.AddCall(steps, told, std::move(uses)).note = Bytes(rows[i]).ToString() + " bytes per trip" +
                                                    (rows[i].dtype == DType::kTape ? ", and the tapes in them" : "");
    tapes.push_back(tape);
  }
  return tapes;
}

// In the loop, where the row of each tape is.
std::vector<int> BlockLowering::EmitRows(Steps& body, const std::vector<int>& tapes, const Types& rows, int counter,
                                         bool reverse) {
  std::vector<int> moving;
  for (size_t i = 0; i < tapes.size(); ++i) {
    const int row = p_.NewMoving(rows[i], {tapes[i]});
    p_.AddCall(body, abi::TapeWrite<InSchedule>{row, tapes[i], counter, reverse},
               {{row, Schedule::Access::kPoint}, p_.Read(tapes[i]), p_.Read(counter)});
    moving.push_back(row);
  }
  return moving;
}

void BlockLowering::EmitWhile(Steps& steps, const Eqn& e) {
  const size_t carries = static_cast<size_t>(e.attrs.GetInt("num_carry"));
  const Fn &cond = *e.regions[0], &body = *e.regions[1];
  const Types out = body.ResultTypes();
  const Types rows(out.begin() + static_cast<int64_t>(carries), out.end());
  const std::vector<int> carry = Carries(steps, e, 0, carries);
  std::vector<int> params = carry;
  for (size_t i = carries; i < e.operands.size(); ++i) params.push_back(ValueOf(e.operands[i]));
  const std::vector<int> tapes = NewTapes(steps, e, carries, rows, e.attrs.GetOr<Ints>("lanes", {}), kNone, Dim(0));
  Schedule::Step step;
  step.kind = Schedule::Step::Kind::kWhile;
  step.predicate = p_.NewTemporary(Type{DType::kBool, {}, {}});
  const int counter = rows.empty() ? kNone : p_.NewTemporary(Type{DType::kI64, {2}, {}});
  if (counter != kNone) p_.AddCall(steps, abi::TapeStart<InSchedule>{counter}, {p_.Write(counter)});
  step.blocks.resize(2);
  BlockLowering(p_, cond, params, {step.predicate}).Run(step.blocks[0].steps);
  Steps& inner = step.blocks[1].steps;
  std::vector<int> dest = carry;
  if (counter != kNone) {
    p_.AddCall(inner, abi::TapeStep<InSchedule>{kNone, counter, kNone, Dim(0)}, {p_.Write(counter)});
    const std::vector<int> moving = EmitRows(inner, tapes, rows, counter, false);
    dest.insert(dest.end(), moving.begin(), moving.end());
  }
  const int mark = BeginTapeScope(inner, body);
  BlockLowering(p_, body, params, dest).Run(inner);
  EndTapeScope(inner, mark);
  step.can_fail = cond.HasEffects() || body.HasEffects() || !cond.FreeAxes().empty() || !body.FreeAxes().empty() ||
                  !rows.empty() || MakesTapes(body) || HoldsChecks(step.blocks[0]) || HoldsChecks(step.blocks[1]);
  steps.push_back(std::move(step));
}

void BlockLowering::EmitTapeScan(Steps& steps, const Eqn& e) {
  const size_t consts = static_cast<size_t>(e.attrs.GetInt("num_consts")),
               carries = static_cast<size_t>(e.attrs.GetInt("num_carry"));
  const bool reverse = e.attrs.GetBool("reverse");
  const Fn& body = *e.regions[0];
  const Types out = body.ResultTypes();
  const Types rows(out.begin() + static_cast<int64_t>(carries), out.end());
  const std::vector<int> carry = Carries(steps, e, 1 + consts, carries);
  const int trips = ValueOf(e.operands[0]);
  const Dim num_trips = fn_.TypeOf(e.operands[0]).size();
  const std::vector<int> tapes = NewTapes(steps, e, carries, rows, e.attrs.Get<Ints>("lanes"), trips, num_trips);
  Schedule::Step step;
  step.kind = Schedule::Step::Kind::kWhile;
  step.predicate = p_.NewTemporary(Type{DType::kBool, {}, {}});
  const int counter = p_.NewTemporary(Type{DType::kI64, {2}, {}});
  p_.AddCall(steps, abi::TapeStart<InSchedule>{counter}, {p_.Write(counter)});
  step.blocks.resize(2);
  p_.AddCall(step.blocks[0].steps, abi::TapeStep<InSchedule>{step.predicate, counter, trips, num_trips},
             {p_.Read(trips), p_.Write(counter), p_.Write(step.predicate)});
  std::vector<int> params;
  for (size_t i = 0; i < consts; ++i) params.push_back(ValueOf(e.operands[1 + i]));
  params.insert(params.end(), carry.begin(), carry.end());
  Steps& inner = step.blocks[1].steps;
  for (size_t i = 1 + consts + carries; i < e.operands.size(); ++i) {
    const Type all = fn_.TypeOf(e.operands[i]), row = body.params()[i - 1].type;
    const int tape = ValueOf(e.operands[i]), scratch = p_.NewTemporary(row),
              moving = p_.NewMoving(row, {tape, scratch});
    const abi::TapeRead<InSchedule> told{
        moving,
        tape,
        counter,
        reverse,
        scratch,
        all.size(),
        Product(row.dims, static_cast<size_t>(all.rank()), row.dims.size()) * Dim(ByteWidth(row.dtype))};
    p_.AddCall(inner, told, {p_.Read(tape), p_.Read(counter), p_.Write(scratch), {moving, Schedule::Access::kPoint}});
    params.push_back(moving);
  }
  std::vector<int> dest = carry;
  const std::vector<int> moving = EmitRows(inner, tapes, rows, counter, reverse);
  dest.insert(dest.end(), moving.begin(), moving.end());
  const int mark = BeginTapeScope(inner, body);
  BlockLowering(p_, body, params, dest).Run(inner);
  EndTapeScope(inner, mark);
  step.can_fail =
      body.HasEffects() || !body.FreeAxes().empty() || !rows.empty() || MakesTapes(body) || HoldsChecks(step.blocks[1]);
  steps.push_back(std::move(step));
}

}  // namespace weft
