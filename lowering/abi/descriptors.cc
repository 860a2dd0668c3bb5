#include "lowering/abi/descriptors.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "lowering/abi/steps.h"

namespace weft::abi {
namespace {

bool Times(int64_t n, int64_t* product) { return !__builtin_mul_overflow(*product, n, product); }

// From which element to which an array is read through strides.
class Extent {
 public:
  explicit Extent(int64_t start) : first_(start), last_(start) {}
  void Along(int64_t size, int64_t stride) {
    empty_ |= size == 0;
    int64_t far = 0;
    counted_ &= !__builtin_mul_overflow(size - 1, stride, &far);
    int64_t& end = far < 0 ? first_ : last_;
    counted_ &= !__builtin_add_overflow(end, far, &end) && end < std::numeric_limits<int64_t>::max();
  }
  bool empty() const { return empty_; }
  bool counted() const { return counted_; }
  int64_t first() const { return first_; }
  int64_t last() const { return last_; }

 private:
  int64_t first_, last_;
  bool empty_ = false, counted_ = true;
};

// A visitor that decodes, and believes nothing.
class Reader {
 public:
  Reader(std::span<const int64_t> words, size_t at, const Limits& limits, const std::function<void(const Word&)>& seen)
      : words_(words), at_(at), limits_(limits), seen_(seen) {}

  size_t at() const { return at_; }

  // The step's number.
  int64_t Begin() {
    if (at_ >= words_.size()) throw std::invalid_argument("a step is missing");
    if (IsSymbolic()) throw std::invalid_argument("a step's number depends on a dimension");
    step_ = words_[at_++];
    return step_;
  }
  [[noreturn]] void Refuse(const std::string& why) const {
    throw std::invalid_argument(std::string(StepName(step_)) + ": " + why);
  }

  void Place(const char* name, int64_t& v, Kind kind = kSlot) { v = Take(name, -1, kind); }
  template <class T>
  void Word(const char* name, T& v, Kind kind = KindOf<T>()) {
    v = static_cast<T>(Take(name, -1, kind));
  }
  void Places(const char* name, std::span<const int64_t>& list, int64_t count = kCounted) {
    Words(name, list, kSlot, count);
  }
  void Words(const char* name, std::span<const int64_t>& list, Kind kind, int64_t count = kCounted) {
    count = Count(name, count);
    list = words_.subspan(at_, static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) Take(name, i, kind);
  }
  template <class S>
  void Part(const char* name, S& s) {
    path_.emplace_back(name, -1);
    S::Fields(*this, s);
    Whole(s);
    path_.pop_back();
  }
  template <class T>
  void List(const char* name, Sequence<T>& list, int64_t count = kCounted) {
    count = Count(name, count);
    list = Sequence<T>(words_.data() + at_, count);
    for (int64_t i = 0; i < count; ++i) {
      path_.emplace_back(name, i);
      T each;
      T::Fields(*this, each);
      Whole(each);
      path_.pop_back();
    }
  }

  // ---- What no word says alone ----

  template <class S>
  void Whole(const S&) {}
  void Whole(const Array<InWords>& a) {
    int64_t bytes = ByteWidth(a.dtype);
    bool fits = true, empty = false;
    for (int64_t d : a.dims) {
      fits &= Times(d, &bytes);
      empty |= d == 0;
    }
    if (!empty) Holds(a.place, fits ? bytes : Limits::kAny);
  }
  void Whole(const Strided<InWords>& a) {
    Extent elements(a.start);
    for (size_t d = 0; d < a.dims.size(); ++d) elements.Along(a.dims[d], a.strides[d]);
    if (!elements.empty()) Holds(a.place, elements, a.dtype);
  }
  void Whole(const Scatter<InWords>& s) {
    const auto has = [](std::span<const int64_t> list, int64_t d) {
      return std::find(list.begin(), list.end(), d) != list.end();
    };
    size_t window = 0, kept = 0;
    for (size_t d = 0; d < s.result.dims.size(); ++d)
      window += !has(s.inserted_dims, static_cast<int64_t>(d)) && !has(s.operand_batch_dims, static_cast<int64_t>(d));
    for (size_t d = 0; d < s.updates.dims.size(); ++d) kept += !has(s.update_window_dims, static_cast<int64_t>(d));
    if (window != s.update_window_dims.size()) Refuse("update_window_dims: others than the window has");
    if (kept > s.indices.dims.size()) Refuse("updates has more dimensions than windows and indices");
    for (int64_t d : s.indices_batch_dims) {
      if (static_cast<size_t>(d) >= kept) Refuse("indices_batch_dims: a dimension that updates lacks");
    }
  }
  void Whole(const TopK<InWords>& s) { HasRank("x", s.x, 1); }
  void Whole(const ReduceWindow<InWords>& s) { HasRank("result", s.result, s.x.dims.size(), s.x.dims.size()); }
  void Whole(const Convolution<InWords>& s) {
    const size_t rank = s.strides.size() + 2;
    HasRank("x", s.x, rank, rank), HasRank("w", s.w, rank, rank), HasRank("result", s.result, rank, rank);
  }
  void Whole(const Cholesky<InWords>& s) { HasRank("x", s.x, 2); }
  void Whole(const Lu<InWords>& s) { HasRank("x", s.x, 2); }
  void Whole(const Qr<InWords>& s) { HasRank("x", s.x, 2); }
  void Whole(const Eigh<InWords>& s) { HasRank("x", s.x, 2); }
  void Whole(const Eig<InWords>& s) { HasRank("x", s.x, 2); }
  void Whole(const Svd<InWords>& s) { HasRank("x", s.x, 2); }
  void Whole(const TriangularSolve<InWords>& s) { HasRank("a", s.a, 2), HasRank("b", s.b, 2); }
  void Whole(const Fft<InWords>& s) {
    if (s.lengths.empty()) Refuse("lengths: there is none");
    HasRank("x", s.x, s.lengths.size()), HasRank("result", s.result, s.x.dims.size(), s.x.dims.size());
  }
  void Whole(const Contract<InWords>& s) {
    Extent x(s.x_start), y(s.y_start), result(0);
    for (const auto* group : {&s.batch, &s.m, &s.n, &s.k}) {
      for (const Factor<InWords>& f : *group) {
        x.Along(f.size, f.x), y.Along(f.size, f.y);
        if (group != &s.k) result.Along(f.size, f.result);
      }
    }
    // A sum of no terms reads nothing, and writes zeros.
    if (!x.empty() && !y.empty()) Holds(s.x, x, s.dtype), Holds(s.y, y, s.dtype);
    Holds(s.result, result, s.result_dtype);
  }
  void Whole(const Product<InWords>& s) {
    const GpuMatmul& p = s.product;
    Extent x(p.x_start), y(p.y_start), out(0);
    x.Along(p.batch, p.x_batch), x.Along(p.m, p.x_m), x.Along(p.k, p.x_k);
    y.Along(p.batch, p.y_batch), y.Along(p.k, p.y_k), y.Along(p.n, p.y_n);
    out.Along(p.batch, p.out_batch), out.Along(p.m, p.out_m), out.Along(p.n, p.out_n);
    if (!x.empty() && !y.empty()) Holds(s.x, x, p.dtype), Holds(s.y, y, p.dtype);
    Holds(s.out, out, p.out_dtype);
  }
  void Whole(const Copy<InWords>& s) { Holds(s.to, s.bytes), Holds(s.from, s.bytes); }
  void Whole(const Call<InWords>& s) { Fits(s.function, s.arguments.size(), s.results.size()); }
  void Whole(const Spmd<InWords>& s) {
    Fits(s.function, s.operands.size(), s.results.size());
    int64_t devices = 1;
    for (int64_t n : s.axes) {
      if (!Times(n, &devices)) Refuse("axes: more devices than can be counted");
    }
    if (s.spans_processes) {
      if (static_cast<int64_t>(s.processes.size()) != devices) Refuse("processes: others than the devices' ");
      devices = std::count(s.processes.begin(), s.processes.end(), s.process);
    }
    for (const auto* list : {&s.operands, &s.results}) {
      for (const Blocks<InWords>& b : *list) {
        if (static_cast<int64_t>(b.starts.size()) != devices) Refuse("starts: of another number of devices");
      }
    }
  }

 private:
  bool IsSymbolic() const { return at_ < limits_.symbolic.size() && limits_.symbolic[at_]; }

  std::string Name(const char* name, int64_t index) const {
    std::string text;
    const auto add = [&](const char* part, int64_t i) {
      text += (text.empty() ? "" : ".") + std::string(part);
      if (i >= 0) text += "[" + std::to_string(i) + "]";
    };
    for (const auto& [part, i] : path_) add(part, i);
    add(name, index);
    return text;
  }

  int64_t Take(const char* name, int64_t index, Kind kind) {
    if (at_ >= words_.size()) Refuse(Name(name, index) + " is missing");
    const bool symbolic = IsSymbolic();
    const int64_t v = words_[at_++];
    if (symbolic && !kind.may_be_symbolic()) Refuse(Name(name, index) + " depends on a dimension");
    int64_t most = kind.most;
    switch (kind.what) {
      case Kind::What::kNumber: break;
      case Kind::What::kSlot:
      case Kind::What::kMaybeSlot: most = limits_.slots - 1; break;
      case Kind::What::kResult: most = limits_.results - 1; break;
      case Kind::What::kString: most = limits_.strings - 1; break;
      case Kind::What::kKernel: most = limits_.kernels - 1; break;
      case Kind::What::kAxis: most = limits_.axes - 1; break;
      case Kind::What::kFunction:
        most = limits_.any_function ? Limits::kAny : static_cast<int64_t>(limits_.functions.size()) - 1;
        break;
      case Kind::What::kCallback: most = std::numeric_limits<int32_t>::max(); break;
    }
    if (!symbolic && (v < kind.least || v > most)) {
      const std::string least = std::to_string(kind.least);
      Refuse(Name(name, index) + " is " + std::to_string(v) + "; expected " +
             (most >= Limits::kAny - 1 ? least + " or more"
              : most < kind.least      ? "nothing, since there is none"
                                       : least + " to " + std::to_string(most)));
    }
    if (seen_) seen_({Name(name, index), v});
    return v;
  }
  int64_t Count(const char* name, int64_t count) {
    if (count == kCounted) {
      const Kind as_many = {Kind::What::kNumber, 0, static_cast<int64_t>(words_.size()) - 1};
      count = Take((std::string(name) + ".size").c_str(), -1, as_many);
    }
    // Every entry is a word or more.
    if (static_cast<uint64_t>(count) > words_.size() - at_) Refuse(Name(name, count - 1) + " is missing");
    return count;
  }
  template <class A>
  void HasRank(const char* name, const A& a, size_t least, size_t most = SIZE_MAX) const {
    if (a.dims.size() < least || a.dims.size() > most)
      Refuse(std::string(name) + " has " + std::to_string(a.dims.size()) + " dimensions; expected " +
             std::to_string(least) + (least == most ? "" : " or more"));
  }
  void Holds(int64_t slot, int64_t bytes) const {
    if (static_cast<size_t>(slot) >= limits_.bytes.size()) return;
    const int64_t there = limits_.bytes[static_cast<size_t>(slot)];
    // Sizes that depend on symbols are checked by whoever knows those.
    if (there >= 0 && bytes > there && limits_.symbolic.empty())
      Refuse(Name("place", -1) + " is slot " + std::to_string(slot) + " of " + std::to_string(there) +
             " bytes; expected " + std::to_string(bytes));
  }
  void Holds(int64_t slot, const Extent& extent, DType dtype) const {
    if (extent.empty() || !limits_.symbolic.empty()) return;
    int64_t bytes = ByteWidth(dtype);
    if (extent.first() < 0) Refuse("it begins before slot " + std::to_string(slot));
    const bool known = extent.counted() && !__builtin_mul_overflow(bytes, extent.last() + 1, &bytes);
    Holds(slot, known ? bytes : Limits::kAny);
  }
  void Fits(int64_t function, size_t arguments, size_t results) const {
    if (limits_.any_function) return;
    const Limits::Function& f = limits_.functions[static_cast<size_t>(function)];
    if (f.arguments > static_cast<int64_t>(arguments) || f.results > static_cast<int64_t>(results))
      Refuse("function " + std::to_string(function) + " takes more arguments, or gives more results");
  }

  std::span<const int64_t> words_;
  size_t at_;
  const Limits& limits_;
  const std::function<void(const abi::Word&)>& seen_;
  int64_t step_ = -1;
  std::vector<std::pair<const char*, int64_t>> path_;
};

// Looks for a field of a step, those of parts not included.
class NameFinder {
 public:
  explicit NameFinder(const std::string& name) : name_(name) {}
  void Place(const char* name, int64_t&, Kind = kSlot) { See(name); }
  template <class T>
  void Word(const char* name, T& v, Kind = {}) {
    if constexpr (std::is_same_v<T, bool>) v = true;  // with the fields that depend on it
    See(name);
  }
  void Places(const char* name, std::span<const int64_t>&, int64_t = kCounted) { See(name); }
  void Words(const char* name, std::span<const int64_t>&, Kind, int64_t = kCounted) { See(name); }
  template <class S>
  void Part(const char* name, S&) {
    See(name);
  }
  template <class T>
  void List(const char* name, Sequence<T>&, int64_t = kCounted) {
    See(name);
  }
  const char* found() const { return found_; }

 private:
  void See(const char* name) {
    if (name_ == name) found_ = name;
  }
  const std::string& name_;
  const char* found_ = nullptr;
};

std::vector<Word> WordsOf(std::span<const int64_t> words) {
  std::vector<Word> all = {{"", words.empty() ? -1 : words[0]}};
  const size_t read = ReadStep(words, 0, {}, [&](const Word& w) { all.push_back(w); });
  if (read != words.size()) throw std::invalid_argument("more words than the step has fields");
  return all;
}

}  // namespace

size_t ReadStep(std::span<const int64_t> words, size_t at, const Limits& limits,
                const std::function<void(const Word&)>& seen) {
  Reader reader(words, at, limits, seen);
  const int64_t step = reader.Begin();
  const bool known = VisitStep<InWords>(step, [&]<class S>() {
    S s{};
    S::Fields(reader, s);
    reader.Whole(s);
  });
  if (!known) throw std::invalid_argument("there is no step of number " + std::to_string(step));
  return reader.at() - at;
}

const char* FieldNamed(int64_t opcode, const std::string& name) {
  NameFinder finder(name);
  VisitStep<InWords>(opcode, [&]<class S>() {
    S s{};
    S::Fields(finder, s);
  });
  return finder.found();
}

std::string StepText(std::span<const int64_t> words) {
  std::string text;
  for (const Word& w : WordsOf(words)) {
    if (text.empty())
      text = StepName(w.value);
    else
      text += (text.find(' ') == std::string::npos ? " " : ", ") + w.field + " " + std::to_string(w.value);
  }
  return text;
}

std::string FirstDifference(std::span<const int64_t> a, std::span<const int64_t> b) {
  const std::vector<Word> x = WordsOf(a), y = WordsOf(b);
  if (x[0].value != y[0].value) return std::string(StepName(x[0].value)) + " and " + StepName(y[0].value);
  for (size_t i = 1; i < std::max(x.size(), y.size()); ++i) {
    if (i >= x.size()) return y[i].field + ": there is none, and " + std::to_string(y[i].value);
    if (i >= y.size()) return x[i].field + ": " + std::to_string(x[i].value) + ", and there is none";
    if (x[i].field != y[i].field) return x[i].field + " and " + y[i].field;
    if (x[i].value != y[i].value)
      return x[i].field + ": " + std::to_string(x[i].value) + " and " + std::to_string(y[i].value);
  }
  return "";
}

}  // namespace weft::abi
