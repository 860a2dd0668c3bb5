#include "lowering/artifact.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <type_traits>
#include <utility>

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
  return r.ok && r.at == r.end;
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
    if (overflow)
      throw std::overflow_error("out of memory: a program needs more than 2^63 bytes for intermediate arrays");
    (*offsets)[id] = best;
    total = std::max(total, end_of_it);
    if (size == 0) continue;
    for (int bucket = b.first / kBucket; bucket <= b.last / kBucket; ++bucket) placed[bucket].push_back(id);
  }
  return total;
}

}  // namespace weft
