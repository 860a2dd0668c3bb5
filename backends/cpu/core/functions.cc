// Calls of recursive functions: a frame for each, on a stack of memory that the call of the program keeps.
#include <algorithm>
#include <cstring>
#include <new>

#include "backends/cpu/core/runtime.h"
#include "base/environment.h"
#include "base/fibres.h"

namespace weft::cpu {
namespace {

constexpr int64_t kAlign = 64;
// Compiled calls lie on the thread's stack, too. What is left for everything else.
constexpr intptr_t kStackReserve = 256 << 10;

int64_t MostCalls() {
  static const int64_t most = EnvironmentNumber("WEFT_MAX_RECURSION", 1, 1000000);
  return most;
}

bool TooDeep(const Call& call) {
  return call.depth >= MostCalls() ||
         reinterpret_cast<intptr_t>(__builtin_frame_address(0)) - StackEnd() < kStackReserve;
}

void CallFunction(WeftFrame* frame, const abi::Call<InWords>& op) {
  Call* call = static_cast<Call*>(frame->call);
  const Call::Function& f = call->functions[op.function];
  // What failed gave no results; tapes among them must not be followed.
  auto clear = [&] {
    for (size_t r = 0; r < op.results.size(); ++r)
      std::memset(frame->slots[op.results[r]], 0, static_cast<size_t>(op.tape_bytes[r]));
  };
  if (frame->error != 0) return clear();
  if (TooDeep(*call)) {
    Fail(frame, "recursion: '" + *f.name + "' calls itself " + std::to_string(call->depth) +
                    " calls deep, and there is no room for more; does it end? (limits: the stack of the thread, and "
                    "$WEFT_MAX_RECURSION)");
    return clear();
  }
  const size_t n = f.slots->size();
  FrameStack::Mark mark;
  char* memory = nullptr;
  try {
    memory = call->frames.Push((static_cast<int64_t>(n * sizeof(void*)) + kAlign - 1) / kAlign * kAlign + f.arena_bytes,
                               &mark);
  } catch (const std::bad_alloc&) {
    Fail(frame, "out of memory: '" + *f.name + "' calls itself " + std::to_string(call->depth) + " calls deep");
    return clear();
  }
  void** slots = reinterpret_cast<void**>(memory);
  char* arena = memory + (static_cast<int64_t>(n * sizeof(void*)) + kAlign - 1) / kAlign * kAlign;
  for (size_t s = 0; s < n; ++s) {
    const int64_t at = (*f.offsets)[s];
    switch ((*f.slots)[s].place) {
      case Artifact::Place::kArena: slots[s] = arena + at; break;
      case Artifact::Place::kParam: slots[s] = frame->slots[op.arguments[at]]; break;
      case Artifact::Place::kResult: slots[s] = frame->slots[op.results[at]]; break;
      case Artifact::Place::kConstant: slots[s] = call->constants + at; break;
      case Artifact::Place::kMoving: slots[s] = nullptr; break;
    }
  }
  WeftFrame inner{slots, frame->desc, frame->runtime, call, 0, frame->trips};
  ++call->depth;
  f.code(&inner);
  --call->depth;
  call->frames.Pop(mark);
  frame->trips = inner.trips;
  if (inner.error != 0) {
    frame->error = inner.error;
    clear();
  }
}

void Box(WeftFrame* frame, const abi::Box<InWords>& op) {
  uint64_t* box = static_cast<uint64_t*>(frame->slots[op.box]);
  *box = 0;
  try {
    TapeRegion& tapes = TapesOf(frame);
    TapeRecords* contents = tapes.New(DType::kTape, static_cast<int64_t>(op.items.size()), 1, box);
    contents->Reserve(1);
    auto* elements = reinterpret_cast<uint64_t*>(contents->Writable(0));
    for (const auto& item : op.items) {
      TapeRecords* one = tapes.New(item.dtype, item.elements, 1, elements++);
      one->Reserve(1);
      std::memcpy(one->Writable(0), frame->slots[item.place], static_cast<size_t>(one->row_bytes()));
    }
  } catch (const std::bad_alloc&) {
    *box = 0;
    Fail(frame, "out of memory: what a recursive function keeps for its reverse pass");
  }
}

void Unbox(WeftFrame* frame, const abi::Unbox<InWords>& op) {
  const uint64_t box = *static_cast<const uint64_t*>(frame->slots[op.box]);
  const char* contents = TapeRecordInPlace(&box, 1, 0);
  const auto* elements = reinterpret_cast<const uint64_t*>(contents);
  for (const auto& item : op.items) {
    const uint64_t none = 0;
    ReadTapeRows(elements == nullptr ? &none : elements++, 1, item.bytes, 0,
                 static_cast<char*>(frame->slots[item.place]));
  }
}

}  // namespace

char* FrameStack::Push(int64_t bytes, Mark* mark) {
  *mark = {chunk_, used_};
  bytes = (bytes + kAlign - 1) / kAlign * kAlign;
  while (chunk_ < chunks_.size() && used_ + bytes > chunks_[chunk_].bytes) {
    ++chunk_;
    used_ = 0;
  }
  if (chunk_ == chunks_.size()) {
    const int64_t size = std::max<int64_t>(bytes, 64 << 10);
    void* memory = std::aligned_alloc(kAlign, static_cast<size_t>(size));
    if (memory == nullptr) throw std::bad_alloc();
    chunks_.push_back({std::unique_ptr<void, void (*)(void*)>(memory, std::free), size});
    used_ = 0;
  }
  char* at = static_cast<char*>(chunks_[chunk_].memory.get()) + used_;
  used_ += bytes;
  return at;
}

void FillFunctions(WeftOp* ops) {
  Put<CallFunction>(ops);
  Put<Box>(ops);
  Put<Unbox>(ops);
}

}  // namespace weft::cpu
