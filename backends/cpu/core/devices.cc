// The devices of a mesh: fibres of the calling thread, each with a frame of its own, that meet at collectives. A
// collective is one function over the memory of all devices, run by the pool's threads.
#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>

#include "backends/cpu/core/buffer_cache.h"
#include "backends/cpu/core/runtime.h"
#include "backends/cpu/distributed/collectives.h"
#include "backends/cpu/distributed/cross_process_collective.h"
#include "backends/cpu/distributed/process_group.h"
#include "base/fibres.h"
#include "base/interrupt.h"

namespace weft::cpu {
namespace {

constexpr int64_t kAlign = 64;
int64_t Aligned(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// --- Blocks ----------------------------------------------------------------------------------------------------------

// An operand or result of spmd.
struct Blocks {
  int64_t slot, bytes, width;
  std::span<const int64_t> sizes, strides, starts, first;
  int64_t outer,
      piece;  // the leading dimensions, and the bytes of what lies together in the whole array for each of them

  explicit Blocks(const abi::Blocks<InWords>& b)
      : slot(b.place),
        bytes(b.bytes),
        width(b.width),
        sizes(b.sizes),
        strides(b.strides),
        starts(b.starts),
        first(b.first),
        outer(static_cast<int64_t>(sizes.size())),
        piece(width) {
    for (int64_t run = 1; outer > 0 && (sizes[outer - 1] == 1 || strides[outer - 1] == run); --outer) {
      run *= sizes[outer - 1];
      piece = run * width;
    }
  }
  // Calls f(place in the block, place in the whole array, bytes) for each piece that lies together in both.
  template <class F>
  void ForEachPiece(int64_t device, const F& f) const {
    if (bytes == 0) return;
    std::vector<int64_t> index(static_cast<size_t>(outer), 0);
    int64_t at = starts[device];
    for (int64_t block = 0; block < bytes; block += piece) {
      f(block, at, piece);
      for (int64_t d = outer; d-- > 0;) {
        at += strides[d] * width;
        if (++index[d] < sizes[d]) break;
        at -= index[d] * strides[d] * width;
        index[d] = 0;
      }
    }
  }
  bool InOnePiece() const { return piece == bytes; }
};

}  // namespace

// --- Devices ---------------------------------------------------------------------------------------------------------

// Those of the mesh that this process runs.
struct Devices {
  std::span<const int64_t> axes;  // sizes
  struct Waiting {
    WeftFrame* frame;
    const int64_t* desc;  // which collective
    abi::Collective<InWords> told;
  };
  const std::vector<std::string>* strings = nullptr;
  ProcessGroup* job = nullptr;               // of the processes that have the others
  std::span<const int64_t> processes;        // of each device; empty: they are all here
  std::string program;                       // what runs, for messages
  absl::InlinedVector<int64_t, 8> here;      // the device of each fibre
  absl::InlinedVector<int64_t, 8> fibre_of;  // by device; -1: of another process
  std::vector<Waiting> waiting;              // by fibre; empty until one waits
  absl::InlinedVector<Blocks, 4> results;
  // Collectives with other processes that are under way, and the fibres that wait for them.
  std::vector<std::pair<std::unique_ptr<CrossProcessCollective>, std::vector<size_t>>> crossings;
  std::string failure;
  bool failed = false;  // one of them has

  Devices() = default;
  Devices(const Devices&) = delete;
  // After a failure: messages that are still on their way keep their memory.
  ~Devices() {
    for (auto& [crossing, fibres] : crossings) crossing.release();
  }

  std::vector<int64_t> Coordinates(int64_t device) const {
    std::vector<int64_t> at(axes.size());
    for (size_t a = axes.size(); a-- > 0; device /= axes[a]) at[a] = device % axes[a];
    return at;
  }
  // Who meets `device` at a collective over some axes, in row-major order of these.
  std::vector<int64_t> GroupOf(std::span<const int64_t> over, int64_t device) const {
    std::vector<int64_t> at = Coordinates(device), group;
    int64_t n = 1;
    for (int64_t a : over) n *= axes[a];
    for (int64_t k = 0; k < n; ++k) {
      int64_t rest = k;
      for (size_t i = over.size(); i-- > 0; rest /= axes[over[i]]) at[over[i]] = rest % axes[over[i]];
      int64_t number = 0;
      for (size_t a = 0; a < axes.size(); ++a) number = number * axes[a] + at[a];
      group.push_back(number);
    }
    return group;
  }
  // What the device of a fibre waits for.
  Collective At(size_t fibre) const {
    Collective c(waiting[fibre].frame, waiting[fibre].told);
    // Of devices that return the same, the first one's is taken.
    if (c.returned >= 0 && results[static_cast<size_t>(c.returned)].first[fibre] == 0) c.result = nullptr;
    return c;
  }
  // One for each group: its first device and its axes. Between two processes, messages of a group are in order.
  static int TagOf(std::span<const int64_t> over, const std::vector<int64_t>& members) {
    int64_t set = 0;
    for (int64_t a : over) set |= int64_t{1} << std::min<int64_t>(a, 7);
    return static_cast<int>(ProcessGroup::kFirstTag + *std::min_element(members.begin(), members.end()) * 256 + set);
  }
  void StartCrossProcess(const std::vector<int64_t>& members, const std::vector<size_t>& fibres) {
    const Collective model = At(fibres[0]);
    Group group;
    std::vector<int> owners;
    for (int64_t m : members) {
      if (fibre_of[m] >= 0) {
        group.members.push_back(At(static_cast<size_t>(fibre_of[m])));
      } else {
        group.members.push_back(model);
        group.members.back().x = nullptr;
        group.members.back().result = nullptr;
      }
      owners.push_back(static_cast<int>(processes[m]));
    }
    // Once its messages are on their way it has to be kept.
    crossings.emplace_back(nullptr, fibres);
    try {
      crossings.back().first = std::make_unique<CrossProcessCollective>(
          *job, std::move(group), std::move(owners), TagOf(model.axes, members),
          "in " + (*strings)[static_cast<size_t>(model.name)] + " of " + program);
    } catch (const std::bad_alloc&) {
      crossings.pop_back();
      throw;
    }
  }
  std::vector<bool> Meet(const std::vector<bool>& waits) {
    try {
      return MeetInMemory(waits);
    } catch (const std::bad_alloc&) {
      failure = "out of memory: for what a collective of " + program + " sends to other processes and gets from them";
      return std::vector<bool>(waits.size(), false);
    }
  }
  std::vector<bool> MeetInMemory(const std::vector<bool>& waits) {
    std::vector<bool> ready(waits.size(), false), known(waits.size(), false);
    const std::vector<bool> none(waits.size(), false);
    bool any = false;
    for (const auto& [crossing, fibres] : crossings) {
      for (size_t f : fibres) known[f] = true;
    }
    for (size_t i = 0; i < waits.size(); ++i) {
      if (!waits[i] || known[i]) continue;
      const int64_t* desc = waiting[i].desc;
      const std::vector<int64_t> members = GroupOf(waiting[i].told.axes, here[i]);
      std::vector<size_t> fibres;
      for (int64_t m : members) {
        if (fibre_of[m] >= 0) fibres.push_back(static_cast<size_t>(fibre_of[m]));
      }
      if (!std::all_of(fibres.begin(), fibres.end(), [&](size_t f) { return waits[f] && waiting[f].desc == desc; }))
        continue;
      for (size_t f : fibres) known[f] = true;
      if (fibres.size() < members.size()) {
        StartCrossProcess(members, fibres);
        continue;
      }
      Group group;
      for (size_t f : fibres) group.members.push_back(At(f));
      failure = RunGroup(group);
      if (!failure.empty()) return none;
      for (size_t f : fibres) ready[f] = true;
      any = true;
    }
    if (!any && !crossings.empty()) {
      std::vector<ProcessGroup::Exchange*> exchanges;
      for (auto& [crossing, fibres] : crossings) exchanges.push_back(&crossing->exchange());
      const size_t done = job->WaitForOne(exchanges);
      failure = crossings[done].first->Finish();
      if (!failure.empty()) return none;
      for (size_t f : crossings[done].second) ready[f] = true;
      crossings.erase(crossings.begin() + static_cast<int64_t>(done));
      any = true;
    }
    if (!any) {
      failure = "the devices of a mesh do not meet:";
      for (size_t i = 0; i < waits.size(); ++i)
        failure += " device " + std::to_string(here[i]) + (waits[i] ? " waits at a collective" : " has ended") +
                   (i + 1 < waits.size() ? "," : "");
    }
    return ready;
  }
};

namespace {

void TellPlace(WeftFrame* frame, const abi::AxisIndex<InWords>& op) {
  const Call* call = static_cast<Call*>(frame->call);
  const auto place = static_cast<int32_t>(call->devices->Coordinates(call->device)[static_cast<size_t>(op.axis)]);
  std::memcpy(frame->slots[op.result], &place, sizeof(place));
}

void MeetAtCollective(WeftFrame* frame, const int64_t* desc) {
  Call* call = static_cast<Call*>(frame->call);
  Devices* devices = call->devices;
  const auto told = abi::Decode<abi::Collective<InWords>>(desc);
  if (frame->error == 0) {
    if (devices->waiting.empty()) devices->waiting.resize(devices->here.size());
    devices->waiting[static_cast<size_t>(devices->fibre_of[call->device])] = {frame, desc, told};
    if (WaitFibre()) return;
    // Another device has failed; this one runs to its end without the others.
    frame->error = 1;
  }
  // What does not arrive is zero.
  const Collective c(frame, told);
  const auto n = static_cast<int64_t>(devices->GroupOf(c.axes, call->device).size());
  std::memset(c.result, 0, static_cast<size_t>(c.result_bytes(n)));
}

void RunSpmd(WeftFrame* frame, const abi::Spmd<InWords>& op) {
  Call* call = static_cast<Call*>(frame->call);
  const Call::Function& f = call->functions[op.function];
  Devices devices;
  devices.axes = op.axes;
  devices.strings = call->strings;
  int64_t all = 1;
  for (int64_t n : op.axes) all *= n;
  std::optional<ProcessGroup::Turn> turn;
  if (op.spans_processes) {
    const int64_t self = op.process;
    devices.job = ProcessGroup::Current();
    if (devices.job == nullptr)
      return Fail(frame, "this program is for process " + std::to_string(self) +
                             " of several; this process has joined no job, or was forked from one that has");
    if (devices.job->rank() != self)
      return Fail(frame,
                  "this program is for process " + std::to_string(self) + " of several, and this is another one");
    devices.processes = op.processes;
    devices.program = (*call->strings)[static_cast<size_t>(op.program)];
    try {
      turn.emplace(*devices.job);
      const std::set<int> processes(op.processes.begin(), op.processes.end());
      devices.job->Agree({processes.begin(), processes.end()}, static_cast<uint64_t>(op.digest),
                         "runs " + devices.program);
    } catch (const std::bad_alloc&) {
      return Fail(frame, "out of memory: before " + devices.program + " runs");
    } catch (const std::runtime_error& error) {
      return Fail(frame, error.what());
    }
  }
  for (int64_t d = 0; d < all; ++d) {
    const bool is_here = !op.spans_processes || op.processes[static_cast<size_t>(d)] == op.process;
    devices.fibre_of.push_back(is_here ? static_cast<int64_t>(devices.here.size()) : -1);
    if (is_here) devices.here.push_back(d);
  }
  const auto count = static_cast<int64_t>(devices.here.size());
  absl::InlinedVector<Blocks, 4> operands;
  auto& results = devices.results;
  for (const auto& b : op.operands) operands.emplace_back(b);
  for (const auto& b : op.results) results.emplace_back(b);
  if (frame->error != 0) return;

  // A device's memory: its slots, its arena, and room for the blocks that do not lie in one piece in the whole array,
  // for operands that it overwrites and another device holds too, and for results that another one gives.
  const int64_t slot_bytes = Aligned(static_cast<int64_t>(f.slots->size() * sizeof(void*)));
  const int64_t fixed_bytes = slot_bytes + Aligned(f.arena_bytes);
  const size_t ends = operands.size() + results.size();
  absl::InlinedVector<int64_t, 8> begins;  // of each device's memory
  // By device: of operands, then of results, from there; -1: they lie in the array.
  absl::InlinedVector<int64_t, 32> rooms;
  rooms.reserve(static_cast<size_t>(count) * ends);
  int64_t all_bytes = 0;
  for (int64_t d = 0; d < count; ++d) {
    begins.push_back(all_bytes);
    int64_t bytes = fixed_bytes;
    const auto add_room = [&](bool needed, const Blocks& b) {
      rooms.push_back(needed ? bytes : -1);
      if (needed) bytes += Aligned(b.bytes);
    };
    for (size_t i = 0; i < operands.size(); ++i) {
      const Blocks& x = operands[i];
      add_room(!x.InOnePiece() || (op.overwritten[i] != 0 && x.first[d] == 0), x);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      const Blocks& y = results[i];
      add_room(op.left_in[i] < 0 && (y.first[d] == 0 || !y.InOnePiece()), y);
    }
    all_bytes += std::max<int64_t>(bytes, kAlign);
  }
  const auto rooms_of = [&](int64_t d) { return rooms.data() + static_cast<size_t>(d) * ends; };
  struct Memory {
    int64_t bytes;
    char* data;
    explicit Memory(int64_t n) : bytes(n), data(static_cast<char*>(AllocateRaw(n))) {}
    Memory(const Memory&) = delete;
    ~Memory() { FreeRaw(data, bytes); }
  };
  std::optional<Memory> memory;
  try {
    memory.emplace(all_bytes);
  } catch (const std::bad_alloc&) {
    return Fail(frame, "out of memory: " + std::to_string(count) + " devices with " + std::to_string(all_bytes) +
                           " bytes together");
  }
  // Before any device runs: the first one that holds a block may overwrite it.
  for (int64_t d = 0; d < count; ++d) {
    for (size_t i = 0; i < operands.size(); ++i) {
      const int64_t room = rooms_of(d)[i];
      if (room < 0) continue;
      const char* whole = static_cast<const char*>(frame->slots[operands[i].slot]);
      char* copied = memory->data + begins[static_cast<size_t>(d)] + room;
      operands[i].ForEachPiece(d, [&](int64_t block, int64_t from, int64_t n) {
        std::memcpy(copied + block, whole + from, static_cast<size_t>(n));
      });
    }
  }
  std::vector<Call> calls(static_cast<size_t>(count));
  const auto body = [&](int device) {
    Call& own = calls[static_cast<size_t>(device)];
    own.strings = call->strings;
    own.callbacks = call->callbacks;
    own.functions = call->functions;
    own.constants = call->constants;
    own.devices = &devices;
    own.device = devices.here[static_cast<size_t>(device)];
    own.group_failed = &devices.failed;
    const int64_t *operand_rooms = rooms_of(device), *result_rooms = operand_rooms + operands.size();
    char* base = memory->data + begins[static_cast<size_t>(device)];
    // Where the device reads an operand, and may write over it.
    const auto operand_at = [&](size_t i) {
      const int64_t copied = operand_rooms[i];
      return copied < 0 ? static_cast<char*>(frame->slots[operands[i].slot]) + operands[i].starts[device]
                        : base + copied;
    };
    void** slots = reinterpret_cast<void**>(base);
    char* arena = base + slot_bytes;
    for (size_t s = 0; s < f.slots->size(); ++s) {
      const int64_t place = (*f.offsets)[s];
      switch ((*f.slots)[s].place) {
        case Artifact::Place::kArena: slots[s] = arena + place; break;
        case Artifact::Place::kParam: slots[s] = operand_at(static_cast<size_t>(place)); break;
        case Artifact::Place::kResult: {
          const Blocks& y = results[static_cast<size_t>(place)];
          const int64_t room = result_rooms[place];
          slots[s] = room < 0 ? static_cast<char*>(frame->slots[y.slot]) + y.starts[device] : base + room;
          break;
        }
        case Artifact::Place::kConstant: slots[s] = call->constants + place; break;
        case Artifact::Place::kMoving: slots[s] = nullptr; break;
      }
    }
    WeftFrame inner{slots, frame->desc, frame->runtime, &own, 0, devices.failed ? 0 : kTripsPerPoll};
    f.code(&inner);
    if (inner.error != 0) return;
    for (size_t i = 0; i < results.size(); ++i) {
      const Blocks& y = results[i];
      if (y.first[device] == 0) continue;
      // It may be left in the memory of an operand that is not the result's all the same.
      const char* made = op.left_in[i] >= 0     ? operand_at(static_cast<size_t>(op.left_in[i]))
                         : result_rooms[i] >= 0 ? base + result_rooms[i]
                                                : nullptr;
      char* whole = static_cast<char*>(frame->slots[y.slot]);
      if (made == nullptr || made == whole + y.starts[device]) continue;
      y.ForEachPiece(device, [&](int64_t block, int64_t to, int64_t n) {
        std::memcpy(whole + to, made + block, static_cast<size_t>(n));
      });
    }
  };
  RunFibres(static_cast<int>(count), body, [&](const std::vector<bool>& waits) {
    // A device that has failed will not come.
    for (const Call& c : calls) {
      if (!c.error.empty()) return std::vector<bool>(waits.size(), false);
    }
    return devices.Meet(waits);
  });
  for (Call& own : calls) {
    if (own.tapes) call->device_tapes.push_back(std::move(own.tapes));
    for (auto& more : own.device_tapes) call->device_tapes.push_back(std::move(more));
  }
  for (size_t d = 0; d < calls.size(); ++d) {
    if (calls[d].failure) return Fail(frame, calls[d].failure);
    if (!calls[d].error.empty()) return Fail(frame, calls[d].error);
  }
  if (!devices.failure.empty()) Fail(frame, devices.failure);
}

}  // namespace

void FillDevices(WeftOp* ops) {
  ops[WEFT_OP_COLLECTIVE] = MeetAtCollective;  // which needs to know which one it is
  Put<TellPlace>(ops);
  Put<RunSpmd>(ops);
}

}  // namespace weft::cpu
