// The devices of a mesh: fibres of the calling thread, each with a frame of its own, that meet at collectives. A
// collective is one function over the memory of all devices, run by the pool's threads.
#include <algorithm>
#include <complex>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>

#include "backends/cpu/buffer_cache.h"
#include "backends/cpu/runtime.h"
#include "backends/cpu/thread_pool.h"
#include "ir/dtype.h"
#include "ir/fibres.h"

namespace weft::cpu {
namespace {

constexpr int64_t kAlign = 64;
int64_t Aligned(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// --- Blocks ----------------------------------------------------------------------------------------------------------

// An operand or result of spmd, as lowering/devices.cc describes it.
struct Blocks {
  int64_t slot, bytes, width, rank;
  const int64_t *sizes, *starts, *first;

  Blocks(const int64_t*& desc, int64_t devices)
      : slot(desc[0]),
        bytes(desc[1]),
        width(desc[2]),
        rank(desc[3]),
        sizes(desc + 4),
        starts(sizes + 2 * rank),
        first(starts + devices) {
    desc = first + devices;
  }
  // How many of the trailing dimensions lie together in the whole array, and the bytes of one such piece.
  int64_t Together(int64_t* piece) const {
    *piece = width;
    int64_t d = rank;
    for (int64_t run = 1; d > 0 && (sizes[2 * (d - 1)] == 1 || sizes[2 * (d - 1) + 1] == run); --d) {
      run *= sizes[2 * (d - 1)];
      *piece = run * width;
    }
    return d;
  }
  // Calls f(place in the block, place in the whole array, bytes) for each piece that lies together in both.
  template <class F>
  void ForEachPiece(int64_t device, const F& f) const {
    if (bytes == 0) return;
    int64_t piece = 0;
    const int64_t outer = Together(&piece);
    std::vector<int64_t> index(static_cast<size_t>(outer), 0);
    int64_t at = starts[device];
    for (int64_t block = 0; block < bytes; block += piece) {
      f(block, at, piece);
      for (int64_t d = outer; d-- > 0;) {
        at += sizes[2 * d + 1] * width;
        if (++index[d] < sizes[2 * d]) break;
        at -= index[d] * sizes[2 * d + 1] * width;
        index[d] = 0;
      }
    }
  }
  bool InOnePiece() const {
    int64_t piece = 0;
    Together(&piece);
    return piece == bytes;
  }
};

// --- Collectives -----------------------------------------------------------------------------------------------------

// Kinds, in the order of lowering/devices.cc.
enum Kind { kPsum, kPmax, kPmin, kAllGather, kPsumScatter, kAllToAll, kPpermute, kAxisIndex, kRunDevices };

// A collective as one device meets it.
struct Collective {
  int64_t kind;
  char* result;
  const int64_t* axes;  // count, then places
  const char* x = nullptr;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  const int64_t* rest;

  Collective(WeftFrame* frame, const int64_t* desc) {
    DescReader r(frame, desc);
    kind = r.Int();
    result = static_cast<char*>(r.Slot());
    axes = desc + 2;
    desc += 3 + axes[0];
    if (kind != kAxisIndex) {
      DescReader operand(frame, desc);
      const DenseTensor t(operand);
      x = t.as<char>();
      dtype = static_cast<DType>(t.dtype);
      shape = t.shape;
      desc += 3 + static_cast<int64_t>(shape.size());
    }
    rest = desc;
  }
  int64_t elements() const {
    return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
  }
  // Bytes of what lies behind dimension `dim`, that dimension included, and how often that comes.
  int64_t Inner(int64_t dim) const {
    return std::accumulate(shape.begin() + dim, shape.end(), int64_t{ByteWidth(dtype)}, std::multiplies<int64_t>());
  }
  int64_t Outer(int64_t dim) const {
    return std::accumulate(shape.begin(), shape.begin() + dim, int64_t{1}, std::multiplies<int64_t>());
  }
};
using Group = std::vector<Collective>;

template <class T>
struct Accumulator {
  using type = T;
};
template <>
struct Accumulator<Float16> {
  using type = float;
};
template <>
struct Accumulator<BFloat16> {
  using type = float;
};
template <>
struct Accumulator<Float8E4M3FN> {
  using type = float;
};
template <>
struct Accumulator<Float8E5M2> {
  using type = float;
};

template <class T, class A>
void Accumulate(int64_t kind, A* total, const T* x, int64_t n) {
  if (kind == kPsum || kind == kPsumScatter) {
    for (int64_t i = 0; i < n; ++i) total[i] = static_cast<A>(total[i] + static_cast<A>(x[i]));
    return;
  }
  if constexpr (!std::is_same_v<A, std::complex<float>> && !std::is_same_v<A, std::complex<double>>) {
    const bool most = kind == kPmax;
    for (int64_t i = 0; i < n; ++i) {
      const A v = static_cast<A>(x[i]);
      if (v != v || (total[i] == total[i] && (most ? v > total[i] : v < total[i]))) total[i] = v;
    }
  }
}

// Elements [begin, end) of everyone's x folded in the order of the devices; `store` takes each finished run.
template <class F>
void Fold(const Group& g, int64_t begin, int64_t end, const F& store) {
  VisitDType(g[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = typename Accumulator<T>::type;
    constexpr int64_t kRun = 4096;
    const std::unique_ptr<A[]> total(new A[static_cast<size_t>(std::min(kRun, end - begin))]);
    std::vector<char> rounded;
    for (int64_t at = begin; at < end; at += kRun) {
      const int64_t n = std::min(kRun, end - at);
      const T* first = reinterpret_cast<const T*>(g[0].x) + at;
      for (int64_t i = 0; i < n; ++i) total[i] = static_cast<A>(first[i]);
      for (size_t d = 1; d < g.size(); ++d)
        Accumulate(g[0].kind, total.get(), reinterpret_cast<const T*>(g[d].x) + at, n);
      if constexpr (std::is_same_v<T, A>) {
        store(at, n, reinterpret_cast<const char*>(total.get()));
      } else {
        rounded.resize(static_cast<size_t>(n) * sizeof(T));
        for (int64_t i = 0; i < n; ++i) reinterpret_cast<T*>(rounded.data())[i] = T(total[i]);
        store(at, n, rounded.data());
      }
    }
  });
}

// About a quarter of a nanosecond per byte that is touched.
int64_t Cost(int64_t bytes) { return bytes / 4; }

void Reduce(const Group& g) {
  const int64_t n = g[0].elements(), width = ByteWidth(g[0].dtype), total = n * width * static_cast<int64_t>(g.size());
  constexpr int64_t kPart = 1 << 14;
  ParallelFor((n + kPart - 1) / kPart, Cost(2 * total), [&](int64_t begin, int64_t end) {
    Fold(g, begin * kPart, std::min(n, end * kPart), [&](int64_t at, int64_t count, const char* values) {
      for (const Collective& c : g) std::memcpy(c.result + at * width, values, static_cast<size_t>(count * width));
    });
  });
}

void Scatter(const Group& g) {
  const int64_t dim = g[0].rest[0], width = ByteWidth(g[0].dtype), n = static_cast<int64_t>(g.size());
  const int64_t block = g[0].Inner(dim) / n, rows = g[0].Outer(dim) * n;  // one row after the other, of each device
  ParallelFor(rows, Cost(2 * block * rows * n), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t first = row * block / width;
      char* to = g[static_cast<size_t>(row % n)].result + row / n * block;
      Fold(g, first, first + block / width, [&](int64_t at, int64_t count, const char* values) {
        std::memcpy(to + (at - first) * width, values, static_cast<size_t>(count * width));
      });
    }
  });
}

void Gather(const Group& g) {
  const int64_t dim = g[0].rest[0], n = static_cast<int64_t>(g.size()), block = g[0].Inner(dim), rows = g[0].Outer(dim);
  ParallelFor(n, Cost(2 * block * rows * n * n), [&](int64_t begin, int64_t end) {
    for (int64_t to = begin; to < end; ++to) {
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t from = 0; from < n; ++from)
          std::memcpy(g[to].result + (row * n + from) * block, g[from].x + row * block, static_cast<size_t>(block));
      }
    }
  });
}

void Exchange(const Group& g) {
  const int64_t split = g[0].rest[0], concat = g[0].rest[1], n = static_cast<int64_t>(g.size());
  // What each sends to each: the operand with `split` cut; it arrives as one block along `concat`.
  std::vector<int64_t> piece = g[0].shape;
  piece[static_cast<size_t>(split)] /= n;
  const int64_t rank = static_cast<int64_t>(piece.size()), width = ByteWidth(g[0].dtype);
  std::vector<int64_t> whole = piece;
  whole[static_cast<size_t>(concat)] *= n;
  std::vector<int64_t> from_strides(piece.size()), to_strides(piece.size());
  int64_t f = width, t = width;
  for (int64_t d = rank; d-- > 0; f *= g[0].shape[d], t *= whole[d]) from_strides[d] = f, to_strides[d] = t;
  // Dimensions that lie together on both sides move together.
  int64_t outer = rank, run = width;
  while (outer > 0 && from_strides[outer - 1] == run && to_strides[outer - 1] == run) run *= piece[--outer];
  const int64_t count = std::accumulate(piece.begin(), piece.begin() + outer, int64_t{1}, std::multiplies<int64_t>());
  if (run == 0 || count == 0) return;
  ParallelFor(n * n, Cost(2 * run * count * n * n), [&](int64_t begin, int64_t end) {
    std::vector<int64_t> index(static_cast<size_t>(outer));
    for (int64_t pair = begin; pair < end; ++pair) {
      const int64_t from = pair / n, to = pair % n;
      const char* x = g[from].x + to * piece[split] * from_strides[split];
      char* y = g[to].result + from * piece[concat] * to_strides[concat];
      std::fill(index.begin(), index.end(), 0);
      for (int64_t k = 0; k < count; ++k) {
        std::memcpy(y, x, static_cast<size_t>(run));
        for (int64_t d = outer; d-- > 0;) {
          x += from_strides[d], y += to_strides[d];
          if (++index[d] < piece[d]) break;
          x -= index[d] * from_strides[d], y -= index[d] * to_strides[d];
          index[d] = 0;
        }
      }
    }
  });
}

std::string Permute(const Group& g) {
  const int64_t pairs = g[0].rest[0], bytes = g[0].Inner(0), n = static_cast<int64_t>(g.size());
  std::vector<int64_t> source(g.size(), -1);
  for (int64_t i = 0; i < pairs; ++i) {
    const int64_t from = g[0].rest[1 + 2 * i], to = g[0].rest[2 + 2 * i];
    if (from >= n || to >= n)
      return "ppermute: sends " + std::to_string(from) + " to " + std::to_string(to) + ", but there are " +
             std::to_string(n) + " devices";
    source[to] = from;
  }
  for (int64_t to = 0; to < n; ++to) {
    if (source[to] < 0)
      std::memset(g[to].result, 0, static_cast<size_t>(bytes));
    else
      std::memcpy(g[to].result, g[source[to]].x, static_cast<size_t>(bytes));
  }
  return "";
}

std::string RunGroup(const Group& g) {
  switch (g[0].kind) {
    case kPsum:
    case kPmax:
    case kPmin: Reduce(g); return "";
    case kAllGather: Gather(g); return "";
    case kPsumScatter: Scatter(g); return "";
    case kAllToAll: Exchange(g); return "";
    case kPpermute: return Permute(g);
    default: return "a collective of unknown kind " + std::to_string(g[0].kind);
  }
}

}  // namespace

// --- Devices ---------------------------------------------------------------------------------------------------------

struct Devices {
  const int64_t *sizes, *num_axes;
  struct Waiting {
    WeftFrame* frame;
    const int64_t* desc;
  };
  std::vector<Waiting> waiting;
  std::string failure;

  std::vector<int64_t> Coordinates(int64_t device) const {
    std::vector<int64_t> at(static_cast<size_t>(*num_axes));
    for (int64_t a = *num_axes; a-- > 0; device /= sizes[a]) at[a] = device % sizes[a];
    return at;
  }
  // Who meets `device` at a collective over `axes`, in row-major order of these.
  std::vector<int64_t> GroupOf(const int64_t* axes, int64_t device) const {
    std::vector<int64_t> at = Coordinates(device), group;
    int64_t n = 1;
    for (int64_t i = 0; i < axes[0]; ++i) n *= sizes[axes[1 + i]];
    for (int64_t k = 0; k < n; ++k) {
      int64_t rest = k;
      for (int64_t i = axes[0]; i-- > 0; rest /= sizes[axes[1 + i]]) at[axes[1 + i]] = rest % sizes[axes[1 + i]];
      int64_t number = 0;
      for (int64_t a = 0; a < *num_axes; ++a) number = number * sizes[a] + at[a];
      group.push_back(number);
    }
    return group;
  }
  std::vector<bool> Meet(const std::vector<bool>& waits) {
    std::vector<bool> ready(waits.size(), false);
    bool any = false;
    for (size_t i = 0; i < waits.size(); ++i) {
      if (!waits[i] || ready[i]) continue;
      const int64_t* desc = waiting[i].desc;
      const std::vector<int64_t> members = GroupOf(desc + 2, static_cast<int64_t>(i));
      if (!std::all_of(members.begin(), members.end(), [&](int64_t m) { return waits[m] && waiting[m].desc == desc; }))
        continue;
      Group group;
      for (int64_t m : members) group.emplace_back(waiting[m].frame, desc);
      failure = RunGroup(group);
      if (!failure.empty()) return std::vector<bool>(waits.size(), false);
      for (int64_t m : members) ready[m] = true;
      any = true;
    }
    if (!any) {
      failure = "the devices of a mesh do not meet:";
      for (size_t i = 0; i < waits.size(); ++i)
        failure += " device " + std::to_string(i) + (waits[i] ? " waits at a collective" : " has ended") +
                   (i + 1 < waits.size() ? "," : "");
    }
    return ready;
  }
};

namespace {

void MeetAtCollective(WeftFrame* frame, const int64_t* desc) {
  Call* call = static_cast<Call*>(frame->call);
  Devices* devices = call->devices;
  if (desc[0] == kAxisIndex) {
    const std::vector<int64_t> at = devices->Coordinates(call->device);
    const auto place = static_cast<int32_t>(at[desc[3]]);
    std::memcpy(frame->slots[desc[1]], &place, sizeof(place));
    return;
  }
  if (frame->error == 0) {
    devices->waiting[static_cast<size_t>(call->device)] = {frame, desc};
    if (WaitFibre()) return;
    // Another device has failed; this one runs to its end without the others.
    frame->error = 1;
  }
  // What does not arrive is zero.
  const Collective c(frame, desc);
  const auto n = static_cast<int64_t>(devices->GroupOf(desc + 2, call->device).size());
  const int64_t bytes = c.kind == kAllGather ? c.Inner(0) * n : c.kind == kPsumScatter ? c.Inner(0) / n : c.Inner(0);
  std::memset(c.result, 0, static_cast<size_t>(bytes));
}

void RunSpmd(WeftFrame* frame, const int64_t* desc) {
  Call* call = static_cast<Call*>(frame->call);
  const Call::Function& f = call->functions[desc[0]];
  Devices devices{desc + 2, desc + 1, {}, ""};
  int64_t count = 1;
  for (int64_t a = 0; a < desc[1]; ++a) count *= desc[2 + a];
  devices.waiting.resize(static_cast<size_t>(count));
  const int64_t* at = desc + 2 + desc[1];
  const int64_t num_operands = at[0], num_results = at[1];
  at += 2;
  std::vector<Blocks> operands, results;
  for (int64_t i = 0; i < num_operands; ++i) operands.emplace_back(at, count);
  for (int64_t i = 0; i < num_results; ++i) results.emplace_back(at, count);
  if (frame->error != 0) return;

  // A device's memory: its slots, its arena, and room for the blocks that do not lie in one piece in the whole array.
  // Results are written there too, since several devices may hold the same.
  const int64_t slot_bytes = Aligned(static_cast<int64_t>(f.slots->size() * sizeof(void*)));
  int64_t bytes = slot_bytes + Aligned(f.arena_bytes);
  std::vector<int64_t> operand_at(operands.size(), -1), result_at(results.size(), -1);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].InOnePiece()) continue;
    operand_at[i] = bytes;
    bytes += Aligned(operands[i].bytes);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    result_at[i] = bytes;
    bytes += Aligned(results[i].bytes);
  }
  struct Memory {
    int64_t bytes;
    char* data;
    explicit Memory(int64_t n) : bytes(n), data(static_cast<char*>(AllocateRaw(n))) {}
    ~Memory() { FreeRaw(data, bytes); }
  };
  std::unique_ptr<Memory> memory;
  try {
    memory = std::make_unique<Memory>(std::max<int64_t>(bytes, kAlign) * count);
  } catch (const std::bad_alloc&) {
    return Fail(frame,
                "out of memory: " + std::to_string(count) + " devices with " + std::to_string(bytes) + " bytes each");
  }
  std::vector<Call> calls(static_cast<size_t>(count));
  std::vector<int32_t> errors(static_cast<size_t>(count), 0);
  const auto body = [&](int device) {
    Call& own = calls[static_cast<size_t>(device)];
    own.strings = call->strings;
    own.functions = call->functions;
    own.constants = call->constants;
    own.devices = &devices;
    own.device = device;
    char* base = memory->data + bytes * device;
    void** slots = reinterpret_cast<void**>(base);
    char* arena = base + slot_bytes;
    for (size_t s = 0; s < f.slots->size(); ++s) {
      const int64_t place = (*f.offsets)[s];
      switch ((*f.slots)[s].place) {
        case Artifact::Place::kArena: slots[s] = arena + place; break;
        case Artifact::Place::kParam: {
          const Blocks& x = operands[static_cast<size_t>(place)];
          char* whole = static_cast<char*>(frame->slots[x.slot]);
          const int64_t copied = operand_at[static_cast<size_t>(place)];
          if (copied < 0) {
            slots[s] = whole + x.starts[device];
          } else {
            slots[s] = base + copied;
            x.ForEachPiece(device, [&](int64_t block, int64_t from, int64_t n) {
              std::memcpy(base + copied + block, whole + from, static_cast<size_t>(n));
            });
          }
          break;
        }
        case Artifact::Place::kResult: slots[s] = base + result_at[static_cast<size_t>(place)]; break;
        case Artifact::Place::kConstant: slots[s] = call->constants + place; break;
        case Artifact::Place::kMoving: slots[s] = nullptr; break;
      }
    }
    WeftFrame inner{slots, frame->desc, frame->runtime, &own, 0};
    f.code(&inner);
    errors[static_cast<size_t>(device)] = inner.error;
    if (inner.error != 0) return;
    for (size_t i = 0; i < results.size(); ++i) {
      const Blocks& y = results[i];
      if (y.first[device] == 0) continue;
      char* whole = static_cast<char*>(frame->slots[y.slot]);
      y.ForEachPiece(device, [&](int64_t block, int64_t to, int64_t n) {
        std::memcpy(whole + to, base + result_at[i] + block, static_cast<size_t>(n));
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
    if (!calls[d].error.empty()) return Fail(frame, calls[d].error);
  }
  if (!devices.failure.empty()) Fail(frame, devices.failure);
}

void RunCollective(WeftFrame* frame, const int64_t* desc) {
  if (desc[0] == kRunDevices) return RunSpmd(frame, desc + 1);
  MeetAtCollective(frame, desc);
}

}  // namespace

void FillDevices(WeftOp* ops) { ops[WEFT_OP_COLLECTIVE] = RunCollective; }

}  // namespace weft::cpu
