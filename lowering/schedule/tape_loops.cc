// Loops over tapes: while with recorded rows, tape_scan, and when tapes may be freed.
#include <algorithm>

#include "ir/prim.h"
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
      if (e.prim->name == "tape_add") return true;
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
  const int mark = p_.NewArena(Type{DType::kI64, {}, {}});
  p_.EmitOp(steps, WEFT_OP_TAPE_MARK, {Dim(mark)}, {mark});
  return mark;
}

void BlockLowering::EndTapeScope(Steps& steps, int mark) {
  if (mark != kNone) p_.EmitOp(steps, WEFT_OP_TAPE_RELEASE, {Dim(mark)}, {mark});
}

// One tape per result of `e` from `first_row` on; in the loop, a moving slot for the row of each.
std::vector<int> BlockLowering::NewTapes(Steps& steps, const Eqn& e, size_t first_row, const Types& rows,
                                         const Ints& lanes, int trips, const Dim& num_trips) {
  std::vector<int> tapes;
  for (size_t i = 0; i < rows.size(); ++i) {
    const int slot = ResultSlot(e.first_result + static_cast<uint32_t>(first_row + i), {});
    const Dims& dims = rows[i].dims;
    const size_t split = static_cast<size_t>(lanes[i]);
    p_.EmitOp(steps, WEFT_OP_TAPE_NEW,
              {Dim(slot), Dim(static_cast<int64_t>(rows[i].dtype)), Product(dims, split, dims.size()),
               Product(dims, 0, split), Dim(trips), num_trips},
              trips == kNone ? std::vector<int>{slot} : std::vector<int>{slot, trips});
    tapes.push_back(slot);
    p_.Log("tape s" + std::to_string(slot) + ": " + Bytes(rows[i]).ToString() + " bytes per trip" +
           (rows[i].dtype == DType::kTape ? ", and the tapes in them" : ""));
  }
  return tapes;
}

std::vector<int> BlockLowering::EmitRowSlots(Steps& body, const std::vector<int>& tapes, int counter, bool reverse) {
  std::vector<int> moving;
  for (int tape : tapes) {
    moving.push_back(p_.NewSlot(Artifact::Place::kMoving, tape));
    p_.EmitOp(body, WEFT_OP_TAPE_WRITE, {Dim(moving.back()), Dim(tape), Dim(counter), Dim(reverse ? 1 : 0)},
              {tape, counter});
  }
  return moving;
}

void BlockLowering::EmitWhile(Steps& steps, const Eqn& e) {
  const size_t carries = static_cast<size_t>(e.attrs.GetInt("num_carry"));
  const Fn &cond = *e.regions[0], &body = *e.regions[1];
  const Types out = body.ResultTypes();
  const Types rows(out.begin() + static_cast<int64_t>(carries), out.end());
  std::vector<int> slots = CarrySlots(steps, e, 0, carries);
  std::vector<int> params = slots;
  for (size_t i = carries; i < e.operands.size(); ++i) params.push_back(SlotOf(e.operands[i]));
  const std::vector<int> tapes = NewTapes(steps, e, carries, rows, e.attrs.GetOr<Ints>("lanes", {}), kNone, Dim(0));
  Step step;
  step.kind = Step::Kind::kWhile;
  step.slot = p_.NewArena(Type{DType::kBool, {}, {}});
  const int counter = rows.empty() ? kNone : p_.NewArena(Type{DType::kI64, {2}, {}});
  if (counter != kNone) p_.EmitOp(steps, WEFT_OP_TAPE_START, {Dim(counter)}, {counter});
  p_.NextPosition();
  const int begin = p_.Position();
  std::vector<int> held = params;
  held.insert(held.end(), tapes.begin(), tapes.end());
  if (counter != kNone) held.push_back(counter);
  for (int s : held) p_.Use(s);
  p_.Log("while s" + std::to_string(step.slot));
  ++p_.indent;
  step.blocks.resize(2);
  BlockLowering(p_, cond, params, {step.slot}).Run(step.blocks[0]);
  p_.Use(step.slot);
  p_.Log("do");
  p_.NextPosition();
  Steps& inner = step.blocks[1];
  std::vector<int> dest = slots;
  if (counter != kNone) {
    p_.EmitOp(inner, WEFT_OP_TAPE_STEP, {Dim(kNone), Dim(counter), Dim(kNone), Dim(0)}, {counter});
    const std::vector<int> moving = EmitRowSlots(inner, tapes, counter, false);
    dest.insert(dest.end(), moving.begin(), moving.end());
  }
  const int mark = BeginTapeScope(inner, body);
  BlockLowering(p_, body, params, dest).Run(inner);
  EndTapeScope(inner, mark);
  --p_.indent;
  for (int s : held) p_.Use(s);
  p_.Use(step.slot);
  p_.EndLoop(begin);
  p_.NextPosition();
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
  const std::vector<int> carry = CarrySlots(steps, e, 1 + consts, carries);
  const int trips = SlotOf(e.operands[0]);
  const Dim num_trips = fn_.TypeOf(e.operands[0]).size();
  const std::vector<int> tapes = NewTapes(steps, e, carries, rows, e.attrs.Get<Ints>("lanes"), trips, num_trips);
  Step step;
  step.kind = Step::Kind::kWhile;
  step.slot = p_.NewArena(Type{DType::kBool, {}, {}});
  const int counter = p_.NewArena(Type{DType::kI64, {2}, {}});
  p_.EmitOp(steps, WEFT_OP_TAPE_START, {Dim(counter)}, {counter});
  std::vector<int> params, held = {counter, trips};
  for (size_t i = 0; i < consts; ++i) params.push_back(SlotOf(e.operands[1 + i]));
  params.insert(params.end(), carry.begin(), carry.end());
  struct Read {
    int moving, tape, scratch;
    Dim lanes, row_bytes;
  };
  std::vector<Read> reads;
  for (size_t i = 1 + consts + carries; i < e.operands.size(); ++i) {
    const Type tape = fn_.TypeOf(e.operands[i]), row = body.params()[i - 1].type;
    Read r{p_.NewSlot(Artifact::Place::kMoving, 0), SlotOf(e.operands[i]), p_.NewArena(row), tape.size(),
           Product(row.dims, static_cast<size_t>(tape.rank()), row.dims.size()) * Dim(ByteWidth(row.dtype))};
    params.push_back(r.moving);
    held.insert(held.end(), {r.tape, r.scratch});
    reads.push_back(std::move(r));
  }
  held.insert(held.end(), params.begin(), params.end());
  held.insert(held.end(), tapes.begin(), tapes.end());
  p_.NextPosition();
  const int begin = p_.Position();
  for (int s : held) p_.Use(s);
  p_.Log("for the trips in s" + std::to_string(trips));
  ++p_.indent;
  step.blocks.resize(2);
  p_.EmitOp(step.blocks[0], WEFT_OP_TAPE_STEP, {Dim(step.slot), Dim(counter), Dim(trips), num_trips},
            {step.slot, counter, trips});
  p_.Use(step.slot);
  Steps& inner = step.blocks[1];
  for (const Read& r : reads) {
    p_.EmitOp(inner, WEFT_OP_TAPE_READ,
              {Dim(r.moving), Dim(r.tape), Dim(counter), Dim(reverse ? 1 : 0), Dim(r.scratch), r.lanes, r.row_bytes},
              {r.tape, counter, r.scratch});
  }
  std::vector<int> dest = carry;
  const std::vector<int> moving = EmitRowSlots(inner, tapes, counter, reverse);
  dest.insert(dest.end(), moving.begin(), moving.end());
  const int mark = BeginTapeScope(inner, body);
  BlockLowering(p_, body, params, dest).Run(inner);
  EndTapeScope(inner, mark);
  --p_.indent;
  for (int s : held) p_.Use(s);
  p_.Use(step.slot);
  p_.EndLoop(begin);
  p_.NextPosition();
  step.can_fail =
      body.HasEffects() || !body.FreeAxes().empty() || !rows.empty() || MakesTapes(body) || HoldsChecks(step.blocks[1]);
  steps.push_back(std::move(step));
}

}  // namespace weft
