#include "lowering/abi/artifact.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "base/dtype.h"
#include "base/out_of_memory.h"
#include "lowering/abi/descriptors.h"
#include "lowering/abi/fields.h"
#include "lowering/abi/gpu_artifact.h"
#include "lowering/abi/steps.h"

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

// All members of a U.
template <class U, class IO, class... T>
void All(IO& io, T&... fields) {
  static_assert(sizeof...(T) == abi::NumMembers<U>(), "a field is left out");
  (io(fields), ...);
}

template <class IO, class T>
void Fields(IO& io, T& v) {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, SizeExpr::Term>) {
    All<U>(io, v.coefficient, v.symbols);
  } else if constexpr (std::is_same_v<U, SizeExpr>) {
    All<U>(io, v.constant, v.terms);
  } else if constexpr (std::is_same_v<U, Artifact::Value>) {
    All<U>(io, v.dtype, v.dims);
  } else if constexpr (std::is_same_v<U, Artifact::Slot>) {
    All<U>(io, v.place, v.index);
  } else if constexpr (std::is_same_v<U, Artifact::Buffer>) {
    All<U>(io, v.bytes, v.first, v.last, v.offset);
  } else if constexpr (std::is_same_v<U, Artifact::Function>) {
    All<U>(io, v.name, v.slots, v.buffers, v.arena_bytes, v.first_word);
  } else if constexpr (std::is_same_v<U, Artifact::DescPatch>) {
    All<U>(io, v.index, v.value);
  } else if constexpr (std::is_same_v<U, Artifact::Condition>) {
    All<U>(io, v.size, v.least, v.reads, v.what);
  } else if constexpr (std::is_same_v<U, Artifact::Counters>) {
    All<U>(io, v.kernels, v.kernel_calls, v.launches, v.library_calls, v.copies, v.bytes_moved, v.bytes_copied,
           v.donated);
  } else {
    static_assert(std::is_same_v<U, Artifact>);
    All<U>(io, v.target, v.code, v.symbols, v.params, v.results, v.donated, v.result_in, v.slots, v.buffers,
           v.arena_bytes, v.functions, v.desc, v.desc_patches, v.conditions, v.constants, v.strings, v.counters,
           v.schedule);
  }
}

// What descriptors of any frame may refer to.
abi::Limits LimitsOf(const Artifact& a) {
  abi::Limits limits;
  limits.strings = static_cast<int64_t>(a.strings.size());
  limits.any_function = false;
  for (const Artifact::Function& f : a.functions) {
    abi::Limits::Function& takes = limits.functions.emplace_back();
    for (const Artifact::Slot& s : f.slots) {
      if (s.place == Artifact::Place::kParam) takes.arguments = std::max(takes.arguments, s.index + 1);
      if (s.place == Artifact::Place::kResult) takes.results = std::max(takes.results, s.index + 1);
    }
  }
  if (!a.desc_patches.empty()) {
    limits.symbolic.resize(a.desc.size());
    for (const Artifact::DescPatch& patch : a.desc_patches) limits.symbolic[static_cast<size_t>(patch.index)] = true;
  }
  return limits;
}

// And those of one frame.
void LimitToFrame(const Artifact& a, const std::vector<Artifact::Slot>& slots,
                  const std::vector<Artifact::Buffer>& buffers, bool is_program, abi::Limits* limits) {
  limits->slots = static_cast<int64_t>(slots.size());
  limits->results = is_program ? static_cast<int64_t>(a.results.size()) : 0;
  limits->bytes.clear();
  const auto bytes_of = [](const Artifact::Value& v) -> int64_t {
    int64_t bytes = ByteWidth(static_cast<DType>(v.dtype));
    for (const SizeExpr& d : v.dims) {
      if (!d.is_static() || __builtin_mul_overflow(bytes, d.constant, &bytes)) return -1;
    }
    return bytes;
  };
  for (const Artifact::Slot& s : slots) {
    const auto i = static_cast<size_t>(s.index);
    int64_t bytes = -1;
    switch (s.place) {
      case Artifact::Place::kArena:
        if (buffers[i].bytes.is_static()) bytes = buffers[i].bytes.constant;
        break;
      case Artifact::Place::kParam:
        if (is_program) bytes = bytes_of(a.params[i]);
        break;
      case Artifact::Place::kResult:
        if (is_program) bytes = bytes_of(a.results[i]);
        limits->results = std::max(limits->results, s.index + 1);
        break;
      case Artifact::Place::kConstant: bytes = static_cast<int64_t>(a.constants.size()) - s.index; break;
      case Artifact::Place::kMoving: break;
    }
    limits->bytes.push_back(bytes);
  }
}

// Of an artifact that is right otherwise.
std::string DescriptorProblem(const Artifact& a, std::optional<int64_t> gpu_kernels) {
  std::vector<size_t> begins = {0};
  for (const Artifact::Function& f : a.functions) {
    if (f.first_word < static_cast<int64_t>(begins.back()) || f.first_word > static_cast<int64_t>(a.desc.size()))
      return "the descriptors of a function lie nowhere";
    begins.push_back(static_cast<size_t>(f.first_word));
  }
  begins.push_back(a.desc.size());
  int64_t axes = 0;
  abi::Limits limits = LimitsOf(a);
  limits.kernels = gpu_kernels.value_or(0);
  const auto read = [&] {
    for (size_t f = 0; f + 1 < begins.size(); ++f) {
      if (f == 0)
        LimitToFrame(a, a.slots, a.buffers, true, &limits);
      else
        LimitToFrame(a, a.functions[f - 1].slots, a.functions[f - 1].buffers, false, &limits);
      const std::span<const int64_t> words = std::span(a.desc).first(begins[f + 1]);
      for (size_t at = begins[f], end = at; at < words.size(); at = end) {
        end = at + abi::ReadStep(words, at, limits);
        const bool of_gpu = words[at] == WEFT_OP_LAUNCH || words[at] == WEFT_OP_PRODUCT;
        if (words[at] != WEFT_OP_COPY && of_gpu != gpu_kernels.has_value())
          throw std::invalid_argument(std::string(abi::StepName(words[at])) + ": a step of another kind of program");
        if (words[at] == WEFT_OP_SPMD) {
          const auto spmd = abi::Decode<abi::Spmd<abi::InWords>>(&words[at]);
          axes = std::max(axes, static_cast<int64_t>(spmd.axes.size()));
        }
      }
    }
  };
  try {
    read();
    // Axes are those of some mesh that the program runs on: of which of them, only the code knows.
    limits.axes = axes;
    read();
  } catch (const std::invalid_argument& problem) {
    return problem.what();
  }
  return "";
}

constexpr int64_t kFormat = 0x5745465405;  // bumped whenever a field changes

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

std::string GpuArtifact::PlanProblem() const {
  for (const GpuKernel& k : kernels) {
    if (k.blocks < 1 || k.threads < 1 || k.threads > 1024) return "a kernel of no block or thread";
  }
  if (plan.arena_bytes < 0 || !plan.functions.empty() || !plan.symbols.empty() || !plan.desc_patches.empty())
    return "sizes that are not known";
  for (const Artifact::Slot& s : plan.slots) {
    if (s.place == Artifact::Place::kMoving) return "a slot has no place";
  }
  return plan.PlanProblem(static_cast<int64_t>(kernels.size()));
}

std::string Artifact::PlanProblem(std::optional<int64_t> gpu_kernels) const {
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
  return DescriptorProblem(*this, gpu_kernels);
}

std::string Artifact::DescriptorsText() const {
  std::string text;
  for (size_t at = 0; at < desc.size();) {
    const size_t words = abi::ReadStep(desc, at, {});
    text += std::to_string(at) + ": " + abi::StepText(std::span(desc).subspan(at, words)) + "\n";
    at += words;
  }
  return text;
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
