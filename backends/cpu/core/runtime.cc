#include "backends/cpu/core/runtime.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <utility>

#include "backends/cpu/core/thread_pool.h"
#include "base/fork_safe_mutex.h"
#include "base/interrupt.h"
#include "base/out_of_memory.h"
#include "lowering/abi/math_table.h"

namespace weft::cpu {
namespace {

// What was raised as the error of the call; without a text where there is no memory for one.
void FailBy(WeftFrame* frame, const std::exception& error) noexcept {
  try {
    const auto* memory = dynamic_cast<const std::bad_alloc*>(&error);
    Fail(frame, memory != nullptr ? WhatFor(*memory, "an operation of the program has no room to work in")
                                  : std::string(error.what()));
  } catch (const std::bad_alloc&) {
    frame->error = 1;
  }
}

// Compiled code passes no exception on: what `f` raises becomes the error of the call.
template <class F>
void Guard(WeftFrame* frame, const F& f) {
  try {
    f();
  } catch (const std::exception& error) {
    FailBy(frame, error);
  } catch (...) {
    Fail(frame, std::current_exception());
  }
}

void Poll(WeftFrame* frame) {
  const Call* call = static_cast<Call*>(frame->call);
  if (frame->error != 0) return;
  if (call->group_failed != nullptr && *call->group_failed) {
    frame->error = 1;  // another device says why
    return;
  }
  Guard(frame, [] { PollInterrupt(); });
  if (frame->error == 0) frame->trips = kTripsPerPoll;
}

void ParallelForEntry(WeftFrame* frame, WeftKernel kernel, const int64_t* desc, int64_t units, int64_t nanoseconds) {
  Guard(frame,
        [&] { ParallelFor(units, nanoseconds, [=](int64_t begin, int64_t end) { kernel(frame, desc, begin, end); }); });
}

void Copy(WeftFrame* frame, const abi::Copy<InWords>& op) {
  char* to = static_cast<char*>(frame->slots[op.to]);
  const char* from = static_cast<const char*>(frame->slots[op.from]);
  constexpr int64_t kPiece = 1 << 18;
  const int64_t bytes = op.bytes;
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

WeftOp g_ops[WEFT_OP_COUNT];

template <size_t kOp>
void Guarded(WeftFrame* frame, const int64_t* desc) {
  Guard(frame, [&] { g_ops[kOp](frame, desc); });
}

void GuardedProductRows(WeftFrame* frame, const int64_t* desc, int64_t first, int64_t last) {
  Guard(frame, [&] { ProductRows(frame, desc, first, last); });
}

template <size_t... kOps>
const WeftOp* AllGuarded(std::index_sequence<kOps...>) {
  static const WeftOp ops[] = {Guarded<kOps>...};
  return ops;
}

}  // namespace

namespace {

// Operations that run side by side may fail at the same time.
ForkSafeMutex& Failing() {
  static auto& mutex = *new ForkSafeMutex;
  return mutex;
}

void FailLocked(WeftFrame* frame, const std::string& message) {
  Call* call = static_cast<Call*>(frame->call);
  if (frame->error == 0) {
    try {
      call->error = message;
    } catch (const std::bad_alloc&) {
      call->error.clear();  // which says the same
    }
  }
  if (call->group_failed != nullptr) *call->group_failed = true;
  frame->error = 1;
  frame->trips = 0;
}

}  // namespace

void Fail(WeftFrame* frame, const std::string& message) {
  const std::lock_guard<ForkSafeMutex> lock(Failing());
  FailLocked(frame, message);
}

void Fail(WeftFrame* frame, std::exception_ptr exception) {
  const std::lock_guard<ForkSafeMutex> lock(Failing());
  if (frame->error == 0) static_cast<Call*>(frame->call)->failure = std::move(exception);
  FailLocked(frame, "the host threw an exception");
}

const WeftRuntime& Runtime() {
  static const WeftRuntime* runtime = [] {
    WeftOp* ops = g_ops;
    std::fill_n(ops, static_cast<size_t>(WEFT_OP_COUNT), Missing);
    Put<Copy>(ops);
    FillContract(ops);
    FillArgExtremes(ops);
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
    auto* math = new WeftMath[kNumMathOps * kNumDTypes]();
    FillMath(math);
    return new WeftRuntime{WEFT_ABI_VERSION,
                           NumThreads(),
                           ParallelForEntry,
                           AllGuarded(std::make_index_sequence<WEFT_OP_COUNT>()),
                           math,
                           Poll,
                           GuardedProductRows};
  }();
  return *runtime;
}

}  // namespace weft::cpu
