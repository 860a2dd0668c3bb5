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

void New(WeftFrame* frame, const abi::TapeNew<InWords>& op) {
  try {
    TapeRecords* records = TapesOf(frame).New(op.dtype, op.row_elements, op.tapes, Slot<uint64_t>(frame, op.tape));
    if (op.trips >= 0) records->Reserve(MostTrips(frame, op.trips, op.num_trips));
    if (op.tapes > 0) records->Writable(-1);  // the first chunk: a loop that cannot have it does not begin
  } catch (const std::bad_alloc&) {
    Fail(frame, "out of memory: the tape of a loop");
  }
}

void Start(WeftFrame* frame, const abi::TapeStart<InWords>& op) { *Slot<Counter>(frame, op.counter) = {-1, 0}; }

void Step(WeftFrame* frame, const abi::TapeStep<InWords>& op) {
  Counter& counter = *Slot<Counter>(frame, op.counter);
  ++counter.trip;
  if (op.trips < 0) return;
  if (counter.trip == 0) counter.trips = MostTrips(frame, op.trips, op.num_trips);
  *Slot<bool>(frame, op.predicate) = counter.trip < counter.trips;
}

void Write(WeftFrame* frame, const abi::TapeWrite<InWords>& op) {
  const uint64_t* tape = Slot<uint64_t>(frame, op.tape);
  TapeRecords* records = TapeAt(*tape)->records;
  try {
    frame->slots[op.row] = records->Writable(Slot<Counter>(frame, op.counter)->Record(op.reverse));
  } catch (const std::bad_alloc&) {
    Fail(frame, TapeMemoryMessage(records->length(), records->record_bytes()));
    frame->slots[op.row] = records->Writable(0);  // somewhere, until the loop stops
  }
}

void Read(WeftFrame* frame, const abi::TapeRead<InWords>& op) {
  const uint64_t* tapes = Slot<uint64_t>(frame, op.tape);
  const int64_t record = Slot<Counter>(frame, op.counter)->Record(op.reverse);
  if (const char* here = TapeRecordInPlace(tapes, op.tapes, record)) {
    frame->slots[op.row] = const_cast<char*>(here);
    return;
  }
  ReadTapeRows(tapes, op.tapes, op.row_bytes, record, Slot<char>(frame, op.scratch));
  frame->slots[op.row] = frame->slots[op.scratch];
}

void Add(WeftFrame* frame, const abi::TapeAdd<InWords>& op) {
  uint64_t* to = Slot<uint64_t>(frame, op.result);
  const uint64_t *x = Slot<uint64_t>(frame, op.x), *y = Slot<uint64_t>(frame, op.y);
  try {
    for (int64_t i = 0; i < op.tapes; ++i) to[i] = AddTapes(TapesOf(frame), x[i], y[i]);
  } catch (const std::bad_alloc&) {
    Fail(frame, "out of memory: the sum of two tapes");
  }
}

void Mark(WeftFrame* frame, const abi::TapeMark<InWords>& op) {
  *Slot<int64_t>(frame, op.mark) = static_cast<int64_t>(TapesOf(frame).Mark());
}
void Release(WeftFrame* frame, const abi::TapeRelease<InWords>& op) {
  TapesOf(frame).Release(static_cast<size_t>(*Slot<int64_t>(frame, op.mark)));
}

}  // namespace

void FillTapes(WeftOp* ops) {
  Put<New>(ops);
  Put<Start>(ops);
  Put<Step>(ops);
  Put<Write>(ops);
  Put<Read>(ops);
  Put<Add>(ops);
  Put<Mark>(ops);
  Put<Release>(ops);
}

}  // namespace weft::cpu
