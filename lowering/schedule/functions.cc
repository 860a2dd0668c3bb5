// Recursive functions: each is laid out once, with values and an arena of its own, and called through the runtime,
// which makes a frame per call. Boxes, which carry residuals out of calls.
#include "ir/prim.h"
#include "lowering/schedule/block_lowering.h"

namespace weft {
namespace {

Dim Bytes(const Type& t) { return t.size() * Dim(ByteWidth(t.dtype)); }

}  // namespace

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
  abi::Call<InSchedule> told;
  told.function = function;
  std::vector<Schedule::Use> uses;
  for (const Atom& a : e.operands) {
    told.arguments.push_back(ValueOf(a));
    uses.push_back(p_.Read(told.arguments.back()));
  }
  for (uint32_t r = 0; r < e.num_results; ++r) {
    const Type type = fn_.TypeOf(e.result(static_cast<int>(r)));
    told.results.push_back(NewResult(e.first_result + r));
    told.tape_bytes.push_back(type.dtype == DType::kTape ? Bytes(type) : Dim(0));
    uses.push_back(p_.Write(told.results.back()));
  }
  p_.AddCall(steps, told, std::move(uses));
}

void BlockLowering::EmitBox(Steps& steps, const Eqn& e) {
  abi::Box<InSchedule> told;
  told.box = NewResult(e.first_result);
  std::vector<Schedule::Use> uses = {p_.Write(told.box)};
  for (const Atom& a : e.operands) {
    const Type type = fn_.TypeOf(a);
    told.items.push_back({ValueOf(a), type.dtype, type.size()});
    uses.push_back(p_.Read(told.items.back().place));
  }
  p_.AddCall(steps, told, std::move(uses));
}

void BlockLowering::EmitUnbox(Steps& steps, const Eqn& e) {
  abi::Unbox<InSchedule> told;
  told.box = ValueOf(e.operands[0]);
  std::vector<Schedule::Use> uses = {p_.Read(told.box)};
  for (uint32_t r = 0; r < e.num_results; ++r) {
    const Type type = fn_.TypeOf(e.result(static_cast<int>(r)));
    told.items.push_back({NewResult(e.first_result + r), Bytes(type)});
    uses.push_back(p_.Write(told.items.back().place));
  }
  p_.AddCall(steps, told, std::move(uses));
}

}  // namespace weft
