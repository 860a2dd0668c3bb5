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

// [function, number of arguments, number of results, argument slots..., (result slot, bytes if it is a tape)...]
void CallFunction(WeftFrame* frame, const int64_t* desc) {
  Call* call = static_cast<Call*>(frame->call);
  const Call::Function& f = call->functions[desc[0]];
  const int64_t num_args = desc[1], num_results = desc[2];
  const int64_t *args = desc + 3, *results = args + num_args;
  // What failed gave no results; tapes among them must not be followed.
  auto clear = [&] {
    for (int64_t r = 0; r < num_results; ++r)
      std::memset(frame->slots[results[2 * r]], 0, static_cast<size_t>(results[2 * r + 1]));
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
      case Artifact::Place::kParam: slots[s] = frame->slots[args[at]]; break;
      case Artifact::Place::kResult: slots[s] = frame->slots[results[2 * at]]; break;
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

// [box slot, n, (slot, dtype, elements)...]
void Box(WeftFrame* frame, const int64_t* desc) {
  uint64_t* box = static_cast<uint64_t*>(frame->slots[desc[0]]);
  *box = 0;
  try {
    TapeRegion& tapes = TapesOf(frame);
    TapeRecords* contents = tapes.New(DType::kTape, desc[1], 1, box);
    contents->Reserve(1);
    auto* elements = reinterpret_cast<uint64_t*>(contents->Writable(0));
    for (int64_t i = 0; i < desc[1]; ++i) {
      const int64_t* item = desc + 2 + 3 * i;
      TapeRecords* one = tapes.New(static_cast<DType>(item[1]), item[2], 1, elements + i);
      one->Reserve(1);
      std::memcpy(one->Writable(0), frame->slots[item[0]], static_cast<size_t>(one->row_bytes()));
    }
  } catch (const std::bad_alloc&) {
    *box = 0;
    Fail(frame, "out of memory: what a recursive function keeps for its reverse pass");
  }
}

// [box slot, n, (slot, bytes)...]
void Unbox(WeftFrame* frame, const int64_t* desc) {
  const uint64_t box = *static_cast<const uint64_t*>(frame->slots[desc[0]]);
  const char* contents = TapeRecordInPlace(&box, 1, 0);
  const auto* elements = reinterpret_cast<const uint64_t*>(contents);
  for (int64_t i = 0; i < desc[1]; ++i) {
    const int64_t* item = desc + 2 + 2 * i;
    const uint64_t none = 0;
    ReadTapeRows(elements == nullptr ? &none : elements + i, 1, item[1], 0, static_cast<char*>(frame->slots[item[0]]));
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
  ops[WEFT_OP_CALL] = CallFunction;
  ops[WEFT_OP_BOX] = Box;
  ops[WEFT_OP_UNBOX] = Unbox;
}

}  // namespace weft::cpu
