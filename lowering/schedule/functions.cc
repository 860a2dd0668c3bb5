// Recursive functions: each is laid out once, with slots and an arena of its own, and called through the runtime, which
// makes a frame per call. Boxes, which carry residuals out of calls.
#include "ir/prim.h"
#include "lowering/schedule/block_lowering.h"

namespace weft {

int ProgramBuilder::BeginFunction(const std::string& name) {
  Artifact& a = program.artifact;
  const int index = static_cast<int>(a.functions.size());
  a.functions.emplace_back();
  a.functions.back().name = name;
  program.functions.emplace_back();
  saved_.push_back({std::move(a.slots), std::move(a.buffers), std::move(constants_), position_});
  a.slots.clear();
  a.buffers.clear();
  constants_.clear();
  position_ = 0;
  enclosing_.push_back(index);
  return index;
}

void ProgramBuilder::EndFunction(int index, Steps steps) {
  Artifact& a = program.artifact;
  Artifact::Function& f = a.functions[static_cast<size_t>(index)];
  f.slots = std::move(a.slots);
  f.buffers = std::move(a.buffers);
  program.functions[static_cast<size_t>(index)] = std::move(steps);
  Saved& s = saved_.back();
  a.slots = std::move(s.slots);
  a.buffers = std::move(s.buffers);
  constants_ = std::move(s.constants);
  position_ = s.position;
  saved_.pop_back();
  enclosing_.pop_back();
}

std::optional<int> ProgramBuilder::FunctionOf(const FnRef& fn) const {
  const auto at = functions_.find(fn);
  return at == functions_.end() ? std::nullopt : std::optional(at->second);
}

void ProgramBuilder::RememberFunction(const FnRef& fn, int index) {
  if (fn->OutwardCalls() <= 1 && fn->FreeAxes().empty()) functions_[fn] = index;
}

int ProgramBuilder::Enclosing(int64_t depth) const {
  if (depth >= static_cast<int64_t>(enclosing_.size()))
    throw ValueError("lower: recur[depth=", depth, "] outside of a recursive function");
  return enclosing_[enclosing_.size() - 1 - static_cast<size_t>(depth)];
}

void BlockLowering::EmitRecursive(Steps& steps, const Eqn& e) {
  const Fn& fn = *e.regions[0];
  if (const std::optional<int> laid_out = p_.FunctionOf(e.regions[0])) return EmitCall(steps, e, *laid_out);
  p_.Log("function " + fn.name());
  ++p_.indent;
  const int index = p_.BeginFunction(fn.name());
  std::vector<int> params, results;
  for (size_t i = 0; i < fn.params().size(); ++i)
    params.push_back(p_.NewSlot(Artifact::Place::kParam, static_cast<int64_t>(i)));
  for (size_t i = 0; i < fn.results().size(); ++i)
    results.push_back(p_.NewSlot(Artifact::Place::kResult, static_cast<int64_t>(i)));
  Steps body;
  BlockLowering(p_, fn, params, results).Run(body);
  p_.EndFunction(index, std::move(body));
  p_.RememberFunction(e.regions[0], index);
  --p_.indent;
  EmitCall(steps, e, index);
}

void BlockLowering::EmitRecur(Steps& steps, const Eqn& e) { EmitCall(steps, e, p_.Enclosing(e.attrs.GetInt("depth"))); }

void BlockLowering::EmitCall(Steps& steps, const Eqn& e, int function) {
  std::vector<Dim> desc = {Dim(function), Dim(static_cast<int64_t>(e.operands.size())),
                           Dim(static_cast<int64_t>(e.num_results))};
  std::vector<int> slots;
  for (const Atom& a : e.operands) {
    slots.push_back(SlotOf(a));
    desc.push_back(Dim(slots.back()));
  }
  for (uint32_t r = 0; r < e.num_results; ++r) {
    const Type type = fn_.TypeOf(e.result(static_cast<int>(r)));
    slots.push_back(ResultSlot(e.first_result + r, {}));
    desc.push_back(Dim(slots.back()));
    desc.push_back(type.dtype == DType::kTape ? type.size() * Dim(ByteWidth(type.dtype)) : Dim(0));
  }
  p_.EmitOp(steps, WEFT_OP_CALL, desc, slots);
}

void BlockLowering::EmitBox(Steps& steps, const Eqn& e) {
  const int to = ResultSlot(e.first_result, {});
  std::vector<Dim> desc = {Dim(to), Dim(static_cast<int64_t>(e.operands.size()))};
  std::vector<int> slots = {to};
  for (const Atom& a : e.operands) {
    const Type type = fn_.TypeOf(a);
    slots.push_back(SlotOf(a));
    desc.insert(desc.end(), {Dim(slots.back()), Dim(static_cast<int64_t>(type.dtype)), type.size()});
  }
  p_.EmitOp(steps, WEFT_OP_BOX, desc, slots);
}

void BlockLowering::EmitUnbox(Steps& steps, const Eqn& e) {
  std::vector<int> slots = {SlotOf(e.operands[0])};
  std::vector<Dim> desc = {Dim(slots[0]), Dim(static_cast<int64_t>(e.num_results))};
  for (uint32_t r = 0; r < e.num_results; ++r) {
    const Type type = fn_.TypeOf(e.result(static_cast<int>(r)));
    slots.push_back(ResultSlot(e.first_result + r, {}));
    desc.insert(desc.end(), {Dim(slots.back()), type.size() * Dim(ByteWidth(type.dtype))});
  }
  p_.EmitOp(steps, WEFT_OP_UNBOX, desc, slots);
}

}  // namespace weft
