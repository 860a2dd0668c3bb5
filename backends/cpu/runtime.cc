#include "backends/cpu/runtime.h"

#include <cstring>

#include "backends/cpu/thread_pool.h"
#include "lowering/math_table.h"

namespace weft::cpu {
namespace {

void ParallelForEntry(WeftFrame* frame, WeftKernel kernel, const int64_t* desc, int64_t units, int64_t nanoseconds) {
  ParallelFor(units, nanoseconds, [=](int64_t begin, int64_t end) { kernel(frame, desc, begin, end); });
}

// [to slot, from slot, bytes]
void Copy(WeftFrame* frame, const int64_t* desc) {
  char* to = static_cast<char*>(frame->slots[desc[0]]);
  const char* from = static_cast<const char*>(frame->slots[desc[1]]);
  constexpr int64_t kPiece = 1 << 18;
  const int64_t bytes = desc[2];
  if (bytes <= kPiece) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  ParallelFor((bytes + kPiece - 1) / kPiece, bytes / 8, [=](int64_t begin, int64_t end) {
    const int64_t first = begin * kPiece, last = std::min(bytes, end * kPiece);
    std::memcpy(to + first, from + first, static_cast<size_t>(last - first));
  });
}

void Missing(WeftFrame* frame, const int64_t*) { Fail(frame, "this operation is not in the CPU runtime"); }

}  // namespace

void Fail(WeftFrame* frame, const std::string& message) {
  Call* call = static_cast<Call*>(frame->call);
  if (frame->error == 0) call->error = message;
  frame->error = 1;
}

const WeftRuntime& Runtime() {
  static const WeftRuntime* runtime = [] {
    auto* ops = new WeftOp[WEFT_OP_COUNT];
    for (int i = 0; i < WEFT_OP_COUNT; ++i) ops[i] = Missing;
    ops[WEFT_OP_COPY] = Copy;
    FillContract(ops);
    FillScans(ops);
    FillIndexing(ops);
    FillSorting(ops);
    FillWindows(ops);
    FillLinalg(ops);
    FillFft(ops);
    FillEffects(ops);
    FillTapes(ops);
    FillFunctions(ops);
    FillDevices(ops);
    auto* math = new WeftMath[kNumMathOps * kMathDTypes]();
    FillMath(math);
    return new WeftRuntime{WEFT_ABI_VERSION, NumThreads(), ParallelForEntry, ops, math};
  }();
  return *runtime;
}

}  // namespace weft::cpu
