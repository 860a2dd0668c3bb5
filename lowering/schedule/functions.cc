// Recursive functions: each is laid out once, with values and an arena of its own, and called through the runtime,
// which makes a frame per call. Boxes, which carry residuals out of calls.
#include "ir/prim.h"
#include "lowering/schedule/block_lowering.h"

namespace weft {

void BlockLowering::EmitRecursive(Steps& steps, const Eqn& e) {
  const Fn& fn = *e.regions[0];
  if (const std::optional<int> laid_out = p_.FunctionOf(e.regions[0])) return EmitFunctionCall(steps, e, *laid_out);
  const int index = p_.BeginFunction(fn.name());
  std::vector<int> params, results;
  p_.NewEnds(fn, &params, &results);
  Steps body;
  BlockLowering(p_, fn, params, results).Run(body);
  p_.EndFunction(index, std::move(body));
  p_.RememberFunction(e.regions[0], index);
  EmitFunctionCall(steps, e, index);
}

void BlockLowering::EmitRecur(Steps& steps, const Eqn& e) {
  EmitFunctionCall(steps, e, p_.Enclosing(e.attrs.GetInt("depth")));
}

void BlockLowering::EmitFunctionCall(Steps& steps, const Eqn& e, int function) {
  std::vector<Schedule::Entry> desc = {Dim(function), Dim(static_cast<int64_t>(e.operands.size())),
                                       Dim(static_cast<int64_t>(e.num_results))};
  std::vector<Schedule::Use> uses;
  for (const Atom& a : e.operands) {
    uses.push_back(p_.Read(ValueOf(a)));
    desc.push_back(Schedule::Entry::Place(uses.back().value));
  }
  for (uint32_t r = 0; r < e.num_results; ++r) {
    const Type type = fn_.TypeOf(e.result(static_cast<int>(r)));
    uses.push_back(p_.Write(NewResult(e.first_result + r)));
    desc.push_back(Schedule::Entry::Place(uses.back().value));
    desc.push_back(type.dtype == DType::kTape ? type.size() * Dim(ByteWidth(type.dtype)) : Dim(0));
  }
  p_.AddCall(steps, WEFT_OP_CALL, std::move(desc), std::move(uses));
}

void BlockLowering::EmitBox(Steps& steps, const Eqn& e) {
  const int to = NewResult(e.first_result);
  std::vector<Schedule::Entry> desc = {Schedule::Entry::Place(to), Dim(static_cast<int64_t>(e.operands.size()))};
  std::vector<Schedule::Use> uses = {p_.Write(to)};
  for (const Atom& a : e.operands) {
    const Type type = fn_.TypeOf(a);
    uses.push_back(p_.Read(ValueOf(a)));
    desc.push_back(Schedule::Entry::Place(uses.back().value));
    desc.push_back(Dim(static_cast<int64_t>(type.dtype)));
    desc.push_back(type.size());
  }
  p_.AddCall(steps, WEFT_OP_BOX, std::move(desc), std::move(uses));
}

void BlockLowering::EmitUnbox(Steps& steps, const Eqn& e) {
  std::vector<Schedule::Use> uses = {p_.Read(ValueOf(e.operands[0]))};
  std::vector<Schedule::Entry> desc = {Schedule::Entry::Place(uses[0].value), Dim(static_cast<int64_t>(e.num_results))};
  for (uint32_t r = 0; r < e.num_results; ++r) {
    const Type type = fn_.TypeOf(e.result(static_cast<int>(r)));
    uses.push_back(p_.Write(NewResult(e.first_result + r)));
    desc.push_back(Schedule::Entry::Place(uses.back().value));
    desc.push_back(type.size() * Dim(ByteWidth(type.dtype)));
  }
  p_.AddCall(steps, WEFT_OP_UNBOX, std::move(desc), std::move(uses));
}

}  // namespace weft
