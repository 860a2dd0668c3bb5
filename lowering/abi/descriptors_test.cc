// Every step of the list in abi.h: what is written is read, what was changed is refused or seen, and no field is left
// out. A step that is added is covered by that.
#include "lowering/abi/descriptors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "lowering/abi/steps.h"

namespace weft::abi {
namespace {

constexpr int64_t kNumSlots = 7, kNumStrings = 3, kNumFunctions = 2, kNumAxes = 4, kNumKernels = 5, kNumResults = 6;

Limits SomeLimits() {
  Limits l;
  l.slots = kNumSlots, l.strings = kNumStrings, l.axes = kNumAxes, l.kernels = kNumKernels, l.results = kNumResults;
  l.any_function = false;
  l.functions.resize(kNumFunctions);
  return l;
}
// Of a word: the least and the largest value that there is.
struct Range {
  int64_t least, most;
};
Range RangeOf(Kind kind) {
  switch (kind.what) {
    case Kind::What::kNumber: return {kind.least, kind.most};
    case Kind::What::kSlot: return {0, kNumSlots - 1};
    case Kind::What::kMaybeSlot: return {-1, kNumSlots - 1};
    case Kind::What::kResult: return {-1, kNumResults - 1};
    case Kind::What::kString: return {0, kNumStrings - 1};
    case Kind::What::kFunction: return {0, kNumFunctions - 1};
    case Kind::What::kCallback: return {0, std::numeric_limits<int32_t>::max()};
    case Kind::What::kAxis: return {0, kNumAxes - 1};
    case Kind::What::kKernel: return {0, kNumKernels - 1};
  }
  return {0, 0};
}

// Fills a struct with what its fields may be; counts as they come.
class Filler {
 public:
  explicit Filler(std::mt19937_64& rng) : rng_(rng) {}
  bool possible() const { return possible_; }
  void Place(const char*, int64_t& v, Kind kind = kSlot) { v = One(kind); }
  template <class T>
  void Word(const char*, T& v, Kind kind = KindOf<T>()) {
    v = static_cast<T>(One(kind));
  }
  void Places(const char*, std::vector<int64_t>& list, int64_t count = kCounted) { Several(list, kSlot, count); }
  void Words(const char*, std::vector<int64_t>& list, Kind kind, int64_t count = kCounted) {
    Several(list, kind, count);
  }
  template <class S>
  void Part(const char*, S& s) {
    S::Fields(*this, s);
  }
  template <class T>
  void List(const char*, std::vector<T>& list, int64_t count = kCounted) {
    list.resize(count == kCounted ? rng_() % 4 : static_cast<size_t>(count));
    for (T& s : list) T::Fields(*this, s);
  }

 private:
  int64_t One(Kind kind) {
    const Range r = RangeOf(kind);
    if (r.most < r.least) return possible_ = false;
    // Near zero mostly, and now and then anything.
    const int64_t low = std::max<int64_t>(r.least, -3), high = std::min<int64_t>(r.most, 5);
    if (rng_() % 16 == 0 && r.most == std::numeric_limits<int64_t>::max())
      return std::max(r.least, static_cast<int64_t>(rng_()));
    return low + static_cast<int64_t>(rng_() % static_cast<uint64_t>(high - low + 1));
  }
  void Several(std::vector<int64_t>& list, Kind kind, int64_t count) {
    list.resize(count == kCounted ? rng_() % 4 : static_cast<size_t>(count));
    for (int64_t& v : list) v = One(kind);
  }
  std::mt19937_64& rng_;
  bool possible_ = true;
};

// A struct's fields as text, whatever its form: not by the way of words.
class Teller {
 public:
  std::string text() const { return text_; }
  void Place(const char* name, const int64_t& v, Kind = kSlot) { Add(name, v); }
  template <class T>
  void Word(const char* name, const T& v, Kind = {}) {
    Add(name, static_cast<int64_t>(v));
  }
  template <class L>
  void Places(const char* name, const L& list, int64_t = kCounted) {
    Words(name, list, kSlot);
  }
  template <class L>
  void Words(const char* name, const L& list, Kind, int64_t = kCounted) {
    Add(name, static_cast<int64_t>(list.size()));
    for (int64_t v : list) Add("", v);
  }
  template <class S>
  void Part(const char* name, const S& s) {
    text_ += std::string(name) + "{";
    S::Fields(*this, s);
    text_ += "}";
  }
  template <class L>
  void List(const char* name, const L& list, int64_t = kCounted) {
    Add(name, static_cast<int64_t>(list.size()));
    for (const auto& s : list) Part("", s);
  }

 private:
  void Add(const char* name, int64_t v) { text_ += std::string(name) + "=" + std::to_string(v) + " "; }
  std::string text_;
};
template <class S>
std::string Told(const S& s) {
  Teller t;
  S::Fields(t, s);
  return t.text();
}

// Conditions on several words, which a few steps have: values that fulfil them.
template <class S>
void Agree(S&) {}
void Agree(Spmd<Owned>& s) {
  for (int64_t& n : s.axes) n = 1 + n % 2;
  int64_t devices = 1;
  for (int64_t n : s.axes) devices *= n;
  if (s.spans_processes) {
    s.processes.assign(static_cast<size_t>(devices), s.process);
    s.processes.back() = s.process + 1;
    --devices;
  }
  for (auto* list : {&s.operands, &s.results}) {
    for (Blocks<Owned>& b : *list) {
      b.starts.assign(static_cast<size_t>(devices), 5);
      b.first.assign(static_cast<size_t>(devices), 1);
    }
  }
}
void AtLeast(Array<Owned>& a, size_t rank) { a.dims.resize(std::max(a.dims.size(), rank), 1); }
void Agree(Cholesky<Owned>& s) { AtLeast(s.x, 2); }
void Agree(Lu<Owned>& s) { AtLeast(s.x, 2); }
void Agree(Qr<Owned>& s) { AtLeast(s.x, 2); }
void Agree(Eigh<Owned>& s) { AtLeast(s.x, 2); }
void Agree(Eig<Owned>& s) { AtLeast(s.x, 2); }
void Agree(Svd<Owned>& s) { AtLeast(s.x, 2); }
void Agree(TriangularSolve<Owned>& s) { AtLeast(s.a, 2), AtLeast(s.b, 3); }
void Agree(TopK<Owned>& s) { AtLeast(s.x, 1); }
void Agree(ReduceWindow<Owned>& s) { s.result.dims.resize(s.x.dims.size()); }
void Agree(Convolution<Owned>& s) {
  const size_t rank = s.strides.size() + 2;
  s.result.dims.resize(rank, 1);
  for (Strided<Owned>* a : {&s.x, &s.w}) {
    a->dims.resize(rank, 1), a->strides.resize(rank, 1);
    for (int64_t& stride : a->strides) stride = 1 + std::abs(stride) % 4;  // none leads before the array
  }
}
void Agree(Fft<Owned>& s) {
  s.lengths.resize(std::max<size_t>(s.lengths.size(), 1), 3);
  AtLeast(s.x, s.lengths.size());
  s.result.dims.resize(s.x.dims.size(), 2);
}
// Windows over all dimensions of the result, placed along the first.
void Agree(Scatter<Owned>& s) {
  const size_t rank = s.result.dims.size();
  s.inserted_dims.clear(), s.operand_batch_dims.clear(), s.indices_batch_dims.clear(), s.update_window_dims.clear();
  for (size_t d = 0; d < rank; ++d) s.update_window_dims.push_back(static_cast<int64_t>(d));
  s.updates.dims.resize(rank + 1, 2);
  AtLeast(s.indices, 1);
  if (rank == 0) return;
  s.update_window_dims.pop_back();
  s.operand_batch_dims = {static_cast<int64_t>(rank) - 1};
  s.indices_batch_dims = {0};
  AtLeast(s.indices, 2);
}
// Arrays that begin before their memory.
template <class S>
void Forwards(S& s, std::initializer_list<int64_t S::*> strides) {
  for (int64_t S::* stride : strides) s.*stride = std::abs(s.*stride % 100);
}
void Agree(Contract<Owned>& s) {
  for (auto* group : {&s.batch, &s.m, &s.n, &s.k}) {
    for (Factor<Owned>& f : *group)
      Forwards(f, {&Factor<Owned>::size, &Factor<Owned>::x, &Factor<Owned>::y, &Factor<Owned>::result});
  }
}
void Agree(Product<Owned>& s) {
  using M = GpuMatmul;
  Forwards(s.product, {&M::batch, &M::m, &M::n, &M::k, &M::x_batch, &M::x_m, &M::x_k, &M::y_batch, &M::y_k, &M::y_n,
                       &M::out_batch, &M::out_m, &M::out_n});
}

// Calls f.operator()<S, T>(words) with many descriptors of every step; S owns what it holds, T views words.
template <class F>
void ForEachDescriptor(const F& f) {
  std::mt19937_64 rng(7);
  const auto each = [&]<template <class> class S>() {
    int made = 0;
    for (int i = 0; i < 100; ++i) {
      S<Owned> s;
      Filler filler(rng);
      S<Owned>::Fields(filler, s);
      Agree(s);
      if (!filler.possible()) continue;
      ++made;
      std::vector<int64_t> words;
      EncodeWords(s, &words);
      f(s, S<InWords>{}, words);
    }
    EXPECT_GT(made, 20) << StepName(S<Owned>::kOpcode);
  };
#define WEFT_EACH(id, structure, name) each.template operator()<structure>();
  WEFT_OPCODES(WEFT_EACH)
  WEFT_OWN_STEPS(WEFT_EACH)
  WEFT_GPU_STEPS(WEFT_EACH)
#undef WEFT_EACH
}

std::string ProblemOf(const std::vector<int64_t>& words, const Limits& limits = SomeLimits()) {
  try {
    if (ReadStep(words, 0, limits) != words.size()) return "words are left";
  } catch (const std::invalid_argument& problem) {
    return problem.what();
  }
  return "";
}

TEST(Descriptors, AreReadAsWritten) {
  ForEachDescriptor([]<class S, class T>(const S& s, T, const std::vector<int64_t>& words) {
    const int64_t* next = nullptr;
    ASSERT_EQ(Told(Decode<T>(words.data(), &next)), Told(s)) << StepName(S::kOpcode);
    ASSERT_EQ(next, words.data() + words.size());
    ASSERT_EQ(ProblemOf(words), "") << StepText(words);
    std::vector<int64_t> again;
    EncodeWords(Decode<T>(words.data()), &again);
    ASSERT_EQ(FirstDifference(again, words), "");
  });
}

constexpr Kind kLength = Below(size_t{1} << 40);  // of lists: none of these tests is as long

// The fields' kinds, in the order of words.
class KindTeller {
 public:
  std::vector<Kind> kinds = {kNumber};  // of the step's number
  void Place(const char*, const int64_t&, Kind kind = kSlot) { kinds.push_back(kind); }
  template <class T>
  void Word(const char*, const T&, Kind kind = KindOf<T>()) {
    kinds.push_back(kind);
  }
  template <class L>
  void Places(const char* name, const L& list, int64_t count = kCounted) {
    Words(name, list, kSlot, count);
  }
  template <class L>
  void Words(const char*, const L& list, Kind kind, int64_t count = kCounted) {
    if (count == kCounted) kinds.push_back(kLength);
    for (size_t i = 0; i < list.size(); ++i) kinds.push_back(kind);
  }
  template <class S>
  void Part(const char*, const S& s) {
    S::Fields(*this, s);
  }
  template <class L>
  void List(const char*, const L& list, int64_t count = kCounted) {
    if (count == kCounted) kinds.push_back(kLength);
    for (const auto& s : list) std::decay_t<decltype(s)>::Fields(*this, s);
  }
};

TEST(Descriptors, WordsOutOfRangeAreRefusedByName) {
  int tried = 0;
  ForEachDescriptor([&]<class S, class T>(const S& s, T, const std::vector<int64_t>& words) {
    std::vector<std::string> names = {""};
    ReadStep(words, 0, {}, [&](const Word& w) { names.push_back(w.field); });
    KindTeller teller;
    S::Fields(teller, s);
    ASSERT_EQ(teller.kinds.size(), words.size());
    ASSERT_EQ(names.size(), words.size());
    for (size_t i = 1; i < words.size(); ++i) {
      const Range r = RangeOf(teller.kinds[i]);
      std::vector<int64_t> bad = {std::numeric_limits<int64_t>::min()};
      if (r.least != bad[0]) bad.push_back(r.least - 1);
      if (r.most != std::numeric_limits<int64_t>::max())
        bad.insert(bad.end(), {r.most + 1, r.most + (int64_t{1} << 40)});
      if (r.least == std::numeric_limits<int64_t>::min()) bad.erase(bad.begin());
      for (int64_t v : bad) {
        std::vector<int64_t> changed = words;
        changed[i] = v;
        const std::string problem = ProblemOf(changed);
        ASSERT_EQ(problem.find(StepName(S::kOpcode)), 0u) << StepText(words) << "\n" << names[i] << " " << v << problem;
        ASSERT_NE(problem.find(names[i] + " is "), std::string::npos) << StepText(words) << "\n"
                                                                      << names[i] << " " << v << ": " << problem;
        ++tried;
      }
    }
  });
  EXPECT_GT(tried, 20000);
}

TEST(Descriptors, MissingAndSuperfluousWordsAreSeen) {
  ForEachDescriptor([]<class S, class T>(const S&, T, const std::vector<int64_t>& words) {
    for (size_t n = 0; n < words.size(); ++n)
      ASSERT_NE(ProblemOf({words.begin(), words.begin() + static_cast<int64_t>(n)}), "") << StepText(words);
    std::vector<int64_t> longer = words;
    longer.push_back(0);
    ASSERT_EQ(ProblemOf(longer), "words are left");
  });
}

// What a number is that depends on sizes is not known before those are; a slot that does would be any.
TEST(Descriptors, NumbersMayDependOnSizesAndOthersMayNot) {
  ForEachDescriptor([]<class S, class T>(const S& s, T, const std::vector<int64_t>& words) {
    KindTeller teller;
    S::Fields(teller, s);
    for (size_t i = 0; i < words.size(); ++i) {
      Limits limits = SomeLimits();
      limits.symbolic.resize(words.size());
      limits.symbolic[i] = true;
      if (i > 0 && teller.kinds[i].may_be_symbolic()) {
        std::vector<int64_t> changed = words;
        changed[i] = -77;
        ASSERT_EQ(ProblemOf(changed, limits), "") << StepText(words);
      } else {
        ASSERT_NE(ProblemOf(words, limits).find("depends on a dimension"), std::string::npos) << StepText(words);
      }
    }
  });
}

TEST(Descriptors, TextNamesEveryField) {
  ForEachDescriptor([]<class S, class T>(const S&, T, const std::vector<int64_t>& words) {
    const std::string text = StepText(words);
    size_t fields = 0;
    ReadStep(words, 0, {}, [&](const Word& w) {
      ++fields;
      ASSERT_NE(text.find(" " + w.field + " " + std::to_string(w.value)), std::string::npos) << text;
      const std::string name = w.field.substr(0, w.field.find_first_of(".["));
      ASSERT_NE(FieldNamed(S::kOpcode, name), nullptr) << name;
    });
    ASSERT_EQ(fields + 1, words.size());
  });
  EXPECT_EQ(StepText(std::vector<int64_t>{WEFT_OP_COPY, 3, 1, 64}), "copy to 3, from 1, bytes 64");
  EXPECT_EQ(FieldNamed(WEFT_OP_COPY, "dtype"), nullptr);
}

TEST(Descriptors, DifferencesAreSeen) {
  std::mt19937_64 rng(3);
  ForEachDescriptor([&]<class S, class T>(const S&, T, const std::vector<int64_t>& words) {
    ASSERT_EQ(FirstDifference(words, words), "");
    std::vector<std::string> names = {""};
    ReadStep(words, 0, {}, [&](const Word& w) { names.push_back(w.field); });
    std::vector<int64_t> other = words;
    const size_t i = 1 + rng() % (words.size() - 1);
    other[i] ^= 1;
    try {
      const std::string difference = FirstDifference(words, other);
      ASSERT_NE(difference, "");
      ASSERT_EQ(difference.find(names[i]), 0u) << difference;
    } catch (const std::invalid_argument&) {
      // That is no descriptor any more.
    }
  });
}

// ---- Memory --------------------------------------------------------------------------------------------------------

TEST(Descriptors, ArraysLieInTheirMemory) {
  Limits limits = SomeLimits();
  limits.bytes = {24, 16, -1, 8, 0, 4, 100};
  const auto problem = [&](const auto& s) {
    std::vector<int64_t> words;
    EncodeWords(s, &words);
    return ProblemOf(words, limits);
  };
  EXPECT_EQ(problem(Copy<Owned>{0, 1, 16}), "");
  EXPECT_NE(problem(Copy<Owned>{0, 1, 17}), "");
  EXPECT_NE(problem(Copy<Owned>{1, 0, 24}), "");
  EXPECT_EQ(problem(Copy<Owned>{0, 2, 24}), "");
  const auto array = [](int64_t place, DType dtype, std::vector<int64_t> dims) {
    return Array<Owned>{place, dtype, std::move(dims)};
  };
  EXPECT_EQ(problem(Cholesky<Owned>{array(0, DType::kF32, {2, 3}), array(6, DType::kF32, {5, 5})}), "");
  EXPECT_NE(problem(Cholesky<Owned>{array(0, DType::kF64, {2, 3}), array(6, DType::kF32, {5, 5})}), "");
  EXPECT_NE(problem(Cholesky<Owned>{array(0, DType::kF32, {2, 3}), array(6, DType::kF32, {26})}), "");
  EXPECT_NE(problem(Cholesky<Owned>{array(0, DType::kF32, {int64_t{1} << 40, int64_t{1} << 40}), array(6, {}, {})}),
            "");
  EXPECT_EQ(problem(Cholesky<Owned>{array(4, DType::kF32, {0, int64_t{1} << 62, 8}), array(2, {}, {1000})}), "");
  // 2 x 3 of f32 in slot 0, transposed.
  Convolution<Owned> conv{{0, DType::kF32, 0, {2, 3}, {1, 2}},
                          {6, DType::kF32, 0, {1, 3}, {3, 1}},
                          array(6, DType::kF32, {2, 1}),
                          {},
                          {},
                          {},
                          {},
                          1,
                          1};
  EXPECT_EQ(problem(conv), "");
  conv.x.start = 1;
  EXPECT_NE(problem(conv), "");
  conv.x.start = 0, conv.x.strides = {1, 3};
  EXPECT_NE(problem(conv), "");
  // 2 x 3 of f32 in slot 0, transposed and backwards in part.
  Contract<Owned> c{0, 3, 1, DType::kF32, DType::kF32, 0, 0, {}, {{2, 3, 0, 1}}, {}, {{3, 1, 0, 0}}};
  c.y = 5;
  EXPECT_EQ(problem(c), "");
  c.m[0].x = 4;
  EXPECT_NE(problem(c), "");
  c.m[0].x = -3;
  EXPECT_NE(problem(c).find("begins before"), std::string::npos);
  c.x_start = 3;
  EXPECT_EQ(problem(c), "");
  c.m[0].result = 4;
  EXPECT_NE(problem(c), "");
}

TEST(Descriptors, ArraysHaveTheDimensionsOfTheOperation) {
  const auto problem = [](const auto& s) {
    std::vector<int64_t> words;
    EncodeWords(s, &words);
    return ProblemOf(words);
  };
  const Array<Owned> scalar{0, DType::kF32, {}}, line{0, DType::kF32, {2}}, matrix{0, DType::kF32, {2, 2}};
  EXPECT_EQ(problem(Qr<Owned>{matrix, matrix, matrix}), "");
  EXPECT_NE(problem(Qr<Owned>{line, matrix, matrix}).find("qr: x has 1 dimensions; expected 2 or more"),
            std::string::npos);
  EXPECT_NE(problem(TopK<Owned>{scalar, 0, 1, 0}), "");
  const Strided<Owned> rows{0, DType::kF32, 0, {2, 2}, {2, 1}}, row{0, DType::kF32, 0, {2}, {1}};
  EXPECT_EQ(problem(Convolution<Owned>{rows, rows, matrix, {}, {}, {}, {}, 1, 1}), "");
  EXPECT_NE(problem(Convolution<Owned>{rows, row, matrix, {}, {}, {}, {}, 1, 1}), "");
  EXPECT_NE(problem(Convolution<Owned>{rows, rows, matrix, {1}, {0}, {1}, {1}, 1, 1}), "");
  EXPECT_EQ(problem(Fft<Owned>{FftKind::kFft, {2}, line, line}), "");
  EXPECT_NE(problem(Fft<Owned>{FftKind::kFft, {2, 2}, line, line}), "");
  EXPECT_NE(problem(Fft<Owned>{FftKind::kFft, {}, line, line}), "");
  EXPECT_NE(problem(Fft<Owned>{FftKind::kFft, {2}, line, matrix}), "");
  // One element of a line, then windows that are said to be elsewhere.
  Scatter<Owned> s{line, line, line, ScatterKind::kAdd, false, {}, {0}, {}, {}, {0}};
  EXPECT_EQ(problem(s), "");
  s.inserted_dims.clear();
  EXPECT_NE(problem(s).find("update_window_dims"), std::string::npos);
  s.update_window_dims = {0};
  EXPECT_EQ(problem(s), "");
  s.updates.dims = {2, 2, 2};
  EXPECT_NE(problem(s).find("updates has more"), std::string::npos);
}

TEST(Descriptors, FunctionsGetWhatTheyRead) {
  Limits limits = SomeLimits();
  limits.functions = {{2, 1}};
  std::vector<int64_t> words;
  EncodeWords(Call<Owned>{0, {1, 2}, {3}, {0}}, &words);
  EXPECT_EQ(ProblemOf(words, limits), "");
  limits.functions = {{3, 1}};
  EXPECT_NE(ProblemOf(words, limits), "");
  limits.functions = {{2, 2}};
  EXPECT_NE(ProblemOf(words, limits), "");
  limits.functions.clear();
  EXPECT_NE(ProblemOf(words, limits).find("function is 0"), std::string::npos);
}

// ---- Every field is listed -----------------------------------------------------------------------------------------

template <class F>
struct Complete {
  typename F::Place to{};
  bool more = false;
  typename F::Numbers list{};
  WEFT_ABI_FIELDS {
    v.Place("to", s.to), v.Word("more", s.more);
    if (s.more) v.Words("list", s.list, kSize);
  }
};
template <class F>
struct Forgetful {
  typename F::Place to{}, from{};
  typename F::Numbers list{};
  WEFT_ABI_FIELDS { v.Place("to", s.to), v.Words("list", s.list, kSize); }
};
template <class F>
struct Repeating {
  typename F::Place to{};
  WEFT_ABI_FIELDS { v.Place("to", s.to), v.Place("to", s.to); }
};
TEST(Fields, ForgottenOnesAreCounted) {
  EXPECT_TRUE(ListsEveryField<Complete<InWords>>());
  EXPECT_FALSE(ListsEveryField<Forgetful<InWords>>());
  EXPECT_FALSE(ListsEveryField<Repeating<InWords>>());
  EXPECT_EQ(NumMembers<Array<InWords>>(), 3);
  EXPECT_EQ(NumMembers<Spmd<InWords>>(), 11);
}

TEST(Fields, ListsOfAnotherLengthAreNotWritten) {
  std::vector<int64_t> words;
  Call<Owned> call{0, {1}, {2}, {0, 0}};
  EXPECT_THROW(EncodeWords(call, &words), std::logic_error);
}

TEST(Fields, WordsAreFound) {
  Kernel<Owned> kernel{{4, 5, 6}, {70, 80}};
  std::vector<int64_t> words;
  EncodeWords(kernel, &words);
  EXPECT_EQ(words[static_cast<size_t>(WordOfEntry(kernel, "operands", 2))], 6);
  EXPECT_EQ(words[static_cast<size_t>(WordOfEntry(kernel, "sizes", 1))], 80);
  EXPECT_THROW(WordOf(kernel, "size"), std::logic_error);
}

}  // namespace
}  // namespace weft::abi
