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

std::vector<EffectArray> Arrays(DescReader& r) {
  const int64_t n = r.Int();
  std::vector<EffectArray> out;
  for (int64_t i = 0; i < n; ++i) {
    const DenseTensor t(r);
    out.push_back({t.data, t.dtype, t.shape});
  }
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

// [format, operands]
void DebugPrint(WeftFrame* frame, const int64_t* desc) {
  Guarded(frame, [&] {
    DescReader r(frame, desc);
    const std::string& format = Text(frame, r.Int());
    const std::vector<EffectArray> arrays = Arrays(r);
    if (Hooks().print) Hooks().print(format, arrays);
  });
}

// [message, predicate, operands]
void Assert(WeftFrame* frame, const int64_t* desc) {
  Guarded(frame, [&] {
    DescReader r(frame, desc);
    const std::string& message = Text(frame, r.Int());
    const DenseTensor predicate(r);
    bool holds = true;
    for (int64_t i = 0; i < predicate.size(); ++i) holds = holds && predicate.as<bool>()[i];
    if (holds) return;
    const std::vector<EffectArray> arrays = Arrays(r);
    Fail(frame, Hooks().describe ? Hooks().describe(message, arrays) : message);
  });
}

// [message, size, least, reads]: of an operation that reads from a dimension whose size a call tells
void Require(WeftFrame* frame, const int64_t* desc) {
  DescReader r(frame, desc);
  const std::string& what = Text(frame, r.Int());
  const int64_t size = r.Int(), least = r.Int(), reads = r.Int();
  if (size >= least || reads == 0) return;
  Fail(frame, SizeMessage(what, size, least));
}

// [callback, operands, results]
void Callback(WeftFrame* frame, const int64_t* desc) {
  DescReader r(frame, desc);
  const auto which = static_cast<size_t>(r.Int());
  const std::vector<EffectArray> in = Arrays(r), out = Arrays(r);
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
  ops[WEFT_OP_DEBUG_PRINT] = DebugPrint;
  ops[WEFT_OP_ASSERT] = Assert;
  ops[WEFT_OP_REQUIRE] = Require;
  ops[WEFT_OP_CALLBACK] = Callback;
}

}  // namespace weft::cpu
