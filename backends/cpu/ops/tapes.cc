// Tapes: what loops of unknown length record (base/tape.h).
#include <algorithm>
#include <cstring>
#include <new>

#include "backends/cpu/core/runtime.h"
#include "base/run_messages.h"
#include "base/tape.h"

namespace weft::cpu {

TapeRegion& TapesOf(WeftFrame* frame) {
  Call* call = static_cast<Call*>(frame->call);
  if (!call->tapes) call->tapes = std::make_shared<TapeRegion>();
  return *call->tapes;
}

namespace {

struct Counter {
  int64_t trip, trips;
  // The record of this trip.
  int64_t Record(bool reverse) const { return reverse ? trips - 1 - trip : trip; }
};

template <class T>
T* Slot(WeftFrame* frame, int64_t slot) {
  return static_cast<T*>(frame->slots[slot]);
}

int64_t MostTrips(WeftFrame* frame, int64_t slot, int64_t count) {
  const int64_t* trips = Slot<int64_t>(frame, slot);
  int64_t most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, trips[i]);
  return most;
}

void New(WeftFrame* frame, const int64_t* desc) {
  try {
    TapeRecords* records =
        TapesOf(frame).New(static_cast<DType>(desc[1]), desc[2], desc[3], Slot<uint64_t>(frame, desc[0]));
    if (desc[4] >= 0) records->Reserve(MostTrips(frame, desc[4], desc[5]));
    if (desc[3] > 0) records->Writable(-1);  // the first chunk: a loop that cannot have it does not begin
  } catch (const std::bad_alloc&) {
    Fail(frame, "out of memory: the tape of a loop");
  }
}

void Start(WeftFrame* frame, const int64_t* desc) { *Slot<Counter>(frame, desc[0]) = {-1, 0}; }

void Step(WeftFrame* frame, const int64_t* desc) {
  Counter& counter = *Slot<Counter>(frame, desc[1]);
  ++counter.trip;
  if (desc[2] < 0) return;
  if (counter.trip == 0) counter.trips = MostTrips(frame, desc[2], desc[3]);
  *Slot<bool>(frame, desc[0]) = counter.trip < counter.trips;
}

void Write(WeftFrame* frame, const int64_t* desc) {
  const uint64_t* tape = Slot<uint64_t>(frame, desc[1]);
  TapeRecords* records = TapeAt(*tape)->records;
  try {
    frame->slots[desc[0]] = records->Writable(Slot<Counter>(frame, desc[2])->Record(desc[3] != 0));
  } catch (const std::bad_alloc&) {
    Fail(frame, TapeMemoryMessage(records->length(), records->record_bytes()));
    frame->slots[desc[0]] = records->Writable(0);  // somewhere, until the loop stops
  }
}

void Read(WeftFrame* frame, const int64_t* desc) {
  const uint64_t* tapes = Slot<uint64_t>(frame, desc[1]);
  const int64_t record = Slot<Counter>(frame, desc[2])->Record(desc[3] != 0), lanes = desc[5];
  if (const char* here = TapeRecordInPlace(tapes, lanes, record)) {
    frame->slots[desc[0]] = const_cast<char*>(here);
    return;
  }
  ReadTapeRows(tapes, lanes, desc[6], record, Slot<char>(frame, desc[4]));
  frame->slots[desc[0]] = frame->slots[desc[4]];
}

void Add(WeftFrame* frame, const int64_t* desc) {
  uint64_t* to = Slot<uint64_t>(frame, desc[0]);
  const uint64_t *x = Slot<uint64_t>(frame, desc[1]), *y = Slot<uint64_t>(frame, desc[2]);
  try {
    for (int64_t i = 0; i < desc[3]; ++i) to[i] = AddTapes(TapesOf(frame), x[i], y[i]);
  } catch (const std::bad_alloc&) {
    Fail(frame, "out of memory: the sum of two tapes");
  }
}

void Mark(WeftFrame* frame, const int64_t* desc) {
  *Slot<int64_t>(frame, desc[0]) = static_cast<int64_t>(TapesOf(frame).Mark());
}
void Release(WeftFrame* frame, const int64_t* desc) {
  TapesOf(frame).Release(static_cast<size_t>(*Slot<int64_t>(frame, desc[0])));
}

}  // namespace

void FillTapes(WeftOp* ops) {
  ops[WEFT_OP_TAPE_NEW] = New;
  ops[WEFT_OP_TAPE_START] = Start;
  ops[WEFT_OP_TAPE_STEP] = Step;
  ops[WEFT_OP_TAPE_WRITE] = Write;
  ops[WEFT_OP_TAPE_READ] = Read;
  ops[WEFT_OP_TAPE_ADD] = Add;
  ops[WEFT_OP_TAPE_MARK] = Mark;
  ops[WEFT_OP_TAPE_RELEASE] = Release;
}

}  // namespace weft::cpu
