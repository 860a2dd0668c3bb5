#include "lowering/abi/artifact.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "base/dtype.h"
#include "base/out_of_memory.h"

namespace weft {
namespace {

// One list of fields serves writing and reading.
struct Writer {
  std::string out;
  template <class T>
  void Raw(const T& v) {
    static_assert(std::is_trivially_copyable_v<T>);
    out.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void operator()(const std::string& s) {
    Raw<uint64_t>(s.size());
    out += s;
  }
  template <class T>
  void operator()(const std::vector<T>& v) {
    Raw<uint64_t>(v.size());
    for (const T& x : v) (*this)(x);
  }
  template <class T>
  void operator()(const T& v) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      Raw(v);
    } else {
      Fields(*this, v);
    }
  }
};

struct Reader {
  const char* at;
  const char* end;
  bool ok = true;
  template <class T>
  void Raw(T& v) {
    if (static_cast<size_t>(end - at) < sizeof v) {
      ok = false;
      return;
    }
    std::memcpy(&v, at, sizeof v);
    at += sizeof v;
  }
  bool Count(uint64_t& n) {
    n = 0;
    Raw(n);
    if (n > static_cast<uint64_t>(end - at)) ok = false;
    return ok;
  }
  void operator()(std::string& s) {
    uint64_t n;
    if (!Count(n)) return;
    s.assign(at, n);
    at += n;
  }
  template <class T>
  void operator()(std::vector<T>& v) {
    uint64_t n;
    if (!Count(n)) return;
    v.resize(n);
    for (T& x : v) {
      if (!ok) return;
      (*this)(x);
    }
  }
  template <class T>
  void operator()(T& v) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      Raw(v);
    } else {
      Fields(*this, v);
    }
  }
};

template <class IO, class... T>
void All(IO& io, T&... fields) {
  (io(fields), ...);
}

template <class IO, class T>
void Fields(IO& io, T& v) {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, SizeExpr::Term>) {
    All(io, v.coefficient, v.symbols);
  } else if constexpr (std::is_same_v<U, SizeExpr>) {
    All(io, v.constant, v.terms);
  } else if constexpr (std::is_same_v<U, Artifact::Value>) {
    All(io, v.dtype, v.dims);
  } else if constexpr (std::is_same_v<U, Artifact::Slot>) {
    All(io, v.place, v.index);
  } else if constexpr (std::is_same_v<U, Artifact::Buffer>) {
    All(io, v.bytes, v.first, v.last, v.offset);
  } else if constexpr (std::is_same_v<U, Artifact::Function>) {
    All(io, v.name, v.slots, v.buffers, v.arena_bytes);
  } else if constexpr (std::is_same_v<U, Artifact::DescPatch>) {
    All(io, v.index, v.value);
  } else if constexpr (std::is_same_v<U, Artifact::Condition>) {
    All(io, v.size, v.least, v.reads, v.what);
  } else if constexpr (std::is_same_v<U, Artifact::Counters>) {
    All(io, v.kernels, v.kernel_calls, v.library_calls, v.copies, v.bytes_moved, v.bytes_copied, v.donated);
  } else {
    static_assert(std::is_same_v<U, Artifact>);
    All(io, v.target, v.code, v.symbols, v.params, v.results, v.donated, v.result_in, v.slots, v.buffers, v.arena_bytes,
        v.functions, v.desc, v.desc_patches, v.conditions, v.constants, v.strings, v.counters, v.schedule);
  }
}

constexpr int64_t kFormat = 0x5745465404;  // bumped whenever a field changes

}  // namespace

std::string Artifact::Serialize() const {
  Writer w;
  w.Raw(kFormat);
  Fields(w, *this);
  return std::move(w.out);
}

bool Artifact::Parse(const std::string& bytes, Artifact* out) {
  Reader r{bytes.data(), bytes.data() + bytes.size()};
  int64_t format = 0;
  r.Raw(format);
  if (format != kFormat) return false;
  Fields(r, *out);
  return r.ok && r.at == r.end && out->PlanProblem().empty();
}

std::string Artifact::PlanProblem() const {
  const auto in = [](int64_t index, size_t count) { return index >= 0 && static_cast<uint64_t>(index) < count; };
  const auto known = [&](const SizeExpr& e) {
    return std::all_of(e.terms.begin(), e.terms.end(), [&](const SizeExpr::Term& t) {
      return std::all_of(t.symbols.begin(), t.symbols.end(), [&](int32_t s) { return in(s, symbols.size()); });
    });
  };
  for (const std::vector<Value>* values : {&params, &results}) {
    for (const Value& v : *values) {
      if (v.dtype >= kNumDTypes) return "an array of no type";
      for (const SizeExpr& d : v.dims) {
        if (!known(d)) return "a size of a symbol that is not there";
        if (d.is_static() && d.constant < 0) return "a negative size";
      }
    }
  }
  // Of a program or one of its functions, whose parameters and results are what calls say that they are.
  const auto frame = [&](const std::vector<Slot>& of_slots, const std::vector<Buffer>& of_buffers, int64_t arena,
                         bool is_program) -> std::string {
    if (arena < -1) return "memory of a negative size";
    for (const Buffer& b : of_buffers) {
      if (!known(b.bytes)) return "a buffer of a symbol that is not there";
      if (b.first < 0 || b.last < b.first) return "a buffer that lives at no time";
      if (arena < 0) continue;  // it is laid out when sizes are known
      if (!b.bytes.is_static() || b.bytes.constant < 0 || b.offset < 0 || b.offset > arena ||
          b.bytes.constant > arena - b.offset)
        return "a buffer lies outside of its memory";
    }
    for (const Slot& s : of_slots) {
      constexpr size_t kAny = std::numeric_limits<int32_t>::max();
      size_t count = 0;
      switch (s.place) {
        case Place::kArena: count = of_buffers.size(); break;
        case Place::kParam: count = is_program ? params.size() : kAny; break;
        case Place::kResult: count = is_program ? results.size() : kAny; break;
        case Place::kConstant: count = constants.size() + 1; break;  // an empty one may lie at the end
        case Place::kMoving: continue;
        default: return "a slot has no place";
      }
      if (!in(s.index, count)) return "a slot lies nowhere";
    }
    return "";
  };
  if (std::string problem = frame(slots, buffers, arena_bytes, true); !problem.empty()) return problem;
  for (const Function& f : functions) {
    if (std::string problem = frame(f.slots, f.buffers, f.arena_bytes, false); !problem.empty()) return problem;
  }
  if (!donated.empty() && donated.size() != params.size()) return "donations of other parameters";
  if (!result_in.empty() && result_in.size() != results.size()) return "memory of other results";
  for (int32_t p : result_in) {
    if (p != -1 && !in(p, params.size())) return "a result lies nowhere";
  }
  for (const DescPatch& patch : desc_patches) {
    if (!in(patch.index, desc.size()) || !known(patch.value)) return "a number that belongs nowhere";
  }
  for (const Condition& c : conditions) {
    if (!known(c.size) || !known(c.reads)) return "a condition of a symbol that is not there";
  }
  return "";
}

int64_t PlanArena(const std::vector<Artifact::Buffer>& buffers, const std::vector<int64_t>& bytes,
                  std::vector<int64_t>* offsets) {
  constexpr int64_t kAlign = 64;
  offsets->assign(buffers.size(), 0);
  std::vector<int> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return bytes[a] > bytes[b]; });
  // Placed buffers in order of first step; long programs have many short-lived buffers, so buckets of steps keep the
  // search for neighbours in time short.
  int last_step = 0;
  for (const auto& b : buffers) last_step = std::max(last_step, b.last);
  constexpr int kBucket = 32;
  std::vector<std::vector<int>> placed(last_step / kBucket + 1);
  std::vector<int> seen(buffers.size(), -1);
  int64_t total = 0;
  std::vector<std::pair<int64_t, int64_t>> taken;  // [begin, end) of the neighbours
  for (int id : order) {
    int64_t size = 0, end_of_it = 0;
    bool overflow = __builtin_add_overflow(bytes[id], kAlign - 1, &size);
    size = size / kAlign * kAlign;
    const Artifact::Buffer& b = buffers[id];
    taken.clear();
    for (int bucket = b.first / kBucket; bucket <= b.last / kBucket; ++bucket) {
      for (int other : placed[bucket]) {
        if (seen[other] == id || buffers[other].last < b.first || buffers[other].first > b.last) continue;
        seen[other] = id;
        taken.emplace_back((*offsets)[other], (*offsets)[other] + (bytes[other] + kAlign - 1) / kAlign * kAlign);
      }
    }
    std::sort(taken.begin(), taken.end());
    int64_t best = -1, best_gap = INT64_MAX, cursor = 0;
    for (const auto& [begin, end] : taken) {
      if (begin - cursor >= size && begin - cursor < best_gap) {
        best = cursor;
        best_gap = begin - cursor;
      }
      cursor = std::max(cursor, end);
    }
    if (best < 0) best = cursor;
    overflow |= __builtin_add_overflow(best, size, &end_of_it);
    if (overflow) throw OutOfMemory("out of memory: a program needs more than 2^63 bytes for intermediate arrays");
    (*offsets)[id] = best;
    total = std::max(total, end_of_it);
    if (size == 0) continue;
    for (int bucket = b.first / kBucket; bucket <= b.last / kBucket; ++bucket) placed[bucket].push_back(id);
  }
  return total;
}

}  // namespace weft
