#include "backends/cpu/core/effects.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <numeric>

#include "backends/cpu/core/runtime.h"
#include "base/run_messages.h"

namespace weft::cpu {
namespace {

EffectHooks& Hooks() {
  static EffectHooks* hooks = new EffectHooks;
  return *hooks;
}

std::vector<EffectArray> Arrays(WeftFrame* frame, const abi::Sequence<abi::Array<InWords>>& list) {
  std::vector<EffectArray> out;
  for (const auto& a : list) out.push_back({frame->slots[a.place], static_cast<int>(a.dtype), Ints(a.dims)});
  return out;
}

const std::string& Text(WeftFrame* frame, int64_t index) {
  return (*static_cast<Call*>(frame->call)->strings)[static_cast<size_t>(index)];
}

// Exceptions of handlers end here: compiled code in between cannot pass them on.
template <class F>
void Guarded(WeftFrame* frame, const F& f) {
  // Nothing happens after a failure, of another device of the mesh neither.
  const Call* call = static_cast<Call*>(frame->call);
  if (call->group_failed != nullptr && *call->group_failed) frame->error = 1;
  if (frame->error != 0) return;
  try {
    f();
  } catch (const std::bad_alloc&) {
    throw;  // the runtime says it
  } catch (...) {
    Fail(frame, std::current_exception());
  }
}

void DebugPrint(WeftFrame* frame, const abi::DebugPrint<InWords>& op) {
  Guarded(frame, [&] {
    const std::vector<EffectArray> arrays = Arrays(frame, op.operands);
    if (Hooks().print) Hooks().print(Text(frame, op.format), arrays);
  });
}

void Assert(WeftFrame* frame, const abi::Assert<InWords>& op) {
  Guarded(frame, [&] {
    const std::string& message = Text(frame, op.message);
    const DenseTensor predicate(frame, op.predicate);
    bool holds = true;
    for (int64_t i = 0; i < predicate.size(); ++i) holds = holds && predicate.as<bool>()[i];
    if (holds) return;
    const std::vector<EffectArray> arrays = Arrays(frame, op.operands);
    Fail(frame, Hooks().describe ? Hooks().describe(message, arrays) : message);
  });
}

// Of an operation that reads from a dimension whose size a call tells.
void Require(WeftFrame* frame, const abi::Require<InWords>& op) {
  if (op.size >= op.least || op.reads == 0) return;
  Fail(frame, SizeMessage(Text(frame, op.message), op.size, op.least));
}

void Callback(WeftFrame* frame, const abi::Callback<InWords>& op) {
  const auto which = static_cast<size_t>(op.callback);
  const std::vector<EffectArray> in = Arrays(frame, op.operands), out = Arrays(frame, op.results);
  for (const EffectArray& a : out) {  // what fails leaves null tapes
    const int64_t size = std::accumulate(a.shape.begin(), a.shape.end(), int64_t{1}, std::multiplies<>());
    if (static_cast<DType>(a.dtype) == DType::kTape) std::fill_n(static_cast<uint64_t*>(a.data), size, 0);
  }
  Guarded(frame, [&] {
    if (!Hooks().callback) return Fail(frame, "callback: no callback handler is installed in this process");
    Hooks().callback(static_cast<Call*>(frame->call)->callbacks->at(which), in, out, TapesOf(frame));
  });
}

}  // namespace

void SetEffectHooks(EffectHooks hooks) { Hooks() = std::move(hooks); }

void FillEffects(WeftOp* ops) {
  Put<DebugPrint>(ops);
  Put<Assert>(ops);
  Put<Require>(ops);
  Put<Callback>(ops);
}

}  // namespace weft::cpu
