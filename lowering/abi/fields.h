// Fields of descriptors. A struct of lowering/abi/steps.h lists its fields once,
//
//   WEFT_ABI_FIELDS {
//     v.Place("to", s.to), v.Place("from", s.from);
//     v.Word("bytes", s.bytes, kSize);
//   }
//
// and what is done with descriptors is a visitor of that list: they are encoded and decoded here, checked, printed and
// compared in lowering/abi/descriptors.h. A field may depend on those before it (`if (s.vectors) v.Part("v", s.v)`).
//
// A visitor has a member function for each sort of field:
//   Place(name, field, kind)          memory: a value of a schedule, a slot of a program
//   Word(name, field, kind)           a number, flag or enumerator
//   Places(name, field, count)        lists; with their length in front, unless `count` says what follows from fields
//   Words(name, field, kind, count)   before
//   List(name, field, count)          of structs
//   Part(name, field)                 a struct
#ifndef WEFT_LOWERING_ABI_FIELDS_H_
#define WEFT_LOWERING_ABI_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/dtype.h"

namespace weft::abi {

// ---- What a word may be --------------------------------------------------------------------------------------------

struct Kind {
  enum class What : uint8_t { kNumber, kSlot, kMaybeSlot, kResult, kString, kFunction, kCallback, kAxis, kKernel };
  What what = What::kNumber;
  int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();

  // Whether it may depend on dimension symbols.
  constexpr bool may_be_symbolic() const {
    return what == What::kNumber && most == std::numeric_limits<int64_t>::max();
  }
};
inline constexpr Kind kNumber = {};
inline constexpr Kind kSize = {Kind::What::kNumber, 0};
inline constexpr Kind kPositive = {Kind::What::kNumber, 1};
inline constexpr Kind kSlot = {Kind::What::kSlot, 0};
inline constexpr Kind kMaybeSlot = {Kind::What::kMaybeSlot, -1};  // -1: none
inline constexpr Kind kResult = {Kind::What::kResult, -1};  // the number of the result whose memory it is; -1: no one's
inline constexpr Kind kString = {Kind::What::kString, 0};   // in Artifact::strings
inline constexpr Kind kFunction = {Kind::What::kFunction, 0};
inline constexpr Kind kCallback = {Kind::What::kCallback, 0};
inline constexpr Kind kKernel = {Kind::What::kKernel, 0};  // of a GPU's plan
inline constexpr Kind kAxis = {Kind::What::kAxis, 0};      // of the mesh
constexpr Kind Below(size_t n) { return {Kind::What::kNumber, 0, static_cast<int64_t>(n) - 1}; }
// Of devices and processes.
inline constexpr Kind kDeviceCount = {Kind::What::kNumber, 1, std::numeric_limits<int32_t>::max()};
inline constexpr Kind kProcess = {Kind::What::kNumber, 0, std::numeric_limits<int32_t>::max()};

constexpr int64_t CountNames(const char* list) {
  int64_t n = 1;
  for (; *list != '\0'; ++list) n += *list == ',';
  return n;
}
// An enumeration, of which one can tell how many there are.
#define WEFT_ABI_ENUM(name, ...)             \
  enum class name : uint8_t { __VA_ARGS__ }; \
  constexpr int64_t NumEnumerators(name) { return CountNames(#__VA_ARGS__); }

constexpr int64_t NumEnumerators(DType) { return kNumDTypes; }

// What fields of a C++ type are, where the list does not say more.
template <class T>
constexpr Kind KindOf() {
  if constexpr (std::is_same_v<T, bool>)
    return Below(2);
  else if constexpr (std::is_enum_v<T>)
    return Below(static_cast<size_t>(NumEnumerators(T{})));
  else
    return kNumber;
}

inline constexpr int64_t kCounted = -1;  // a list whose length is written in front of it

// The list of fields of a struct, in which they are called s and visited by v.
#define WEFT_ABI_FIELDS       \
  template <class V, class S> \
  static constexpr void Fields(V& v, S& s)

// ---- Forms ---------------------------------------------------------------------------------------------------------
// What the structs hold is a parameter. Two more forms, of schedules and of programs under construction, are in
// lowering/.

template <class T>
class Sequence;

// A view of words: lists are not copied.
struct InWords {
  using Place = int64_t;
  using Number = int64_t;
  using Places = std::span<const int64_t>;
  using Numbers = std::span<const int64_t>;
  template <class T>
  using List = Sequence<T>;
};

// With lists of its own.
struct Owned {
  using Place = int64_t;
  using Number = int64_t;
  using Places = std::vector<int64_t>;
  using Numbers = std::vector<int64_t>;
  template <class T>
  using List = std::vector<T>;
};

// ---- Encoding ------------------------------------------------------------------------------------------------------

// Writes fields to `Sink`, which has
//   Place(place), Result(place), Number(number), of the form's types and of int64_t; Field(name), before each.
template <class Sink>
class Encoder {
 public:
  explicit Encoder(Sink& sink) : sink_(sink) {}
  template <class T>
  void Place(const char* name, const T& v, Kind kind = kSlot) {
    Name(name);
    if (kind.what == Kind::What::kResult)
      sink_.Result(v);
    else
      sink_.Place(v);
  }
  template <class T>
  void Word(const char* name, const T& v, Kind = {}) {
    Name(name);
    if constexpr (std::is_enum_v<T> || std::is_integral_v<T>)
      sink_.Number(static_cast<int64_t>(v));
    else
      sink_.Number(v);
  }
  template <class L>
  void Places(const char* name, const L& list, int64_t count = kCounted) {
    Length(name, list.size(), count);
    for (const auto& v : list) sink_.Place(v);
  }
  template <class L>
  void Words(const char* name, const L& list, Kind, int64_t count = kCounted) {
    Length(name, list.size(), count);
    for (const auto& v : list) sink_.Number(v);
  }
  template <class S>
  void Part(const char* name, const S& s) {
    Name(name);
    ++depth_;
    S::Fields(*this, s);
    --depth_;
  }
  template <class L>
  void List(const char* name, const L& list, int64_t count = kCounted) {
    Length(name, list.size(), count);
    ++depth_;
    for (const auto& s : list) std::decay_t<decltype(s)>::Fields(*this, s);
    --depth_;
  }

 private:
  void Name(const char* name) {
    if (depth_ == 0) sink_.Field(name);
  }
  void Length(const char* name, size_t size, int64_t count) {
    Name(name);
    if (count == kCounted)
      sink_.Number(static_cast<int64_t>(size));
    else if (static_cast<size_t>(count) != size)
      throw std::logic_error(std::string("a descriptor's list '") + name + "' has " + std::to_string(size) +
                             " entries; others say " + std::to_string(count));
  }
  Sink& sink_;
  int depth_ = 0;
};

template <class Sink, class S>
void Encode(const S& s, Sink& sink) {
  Encoder<Sink> encoder(sink);
  S::Fields(encoder, s);
}

// With its number in front.
struct WordSink {
  std::vector<int64_t>& words;
  void Place(int64_t v) { words.push_back(v); }
  void Result(int64_t v) { words.push_back(v); }
  void Number(int64_t v) { words.push_back(v); }
  void Field(const char*) {}
};
template <class S>
void EncodeWords(const S& s, std::vector<int64_t>* words) {
  words->push_back(S::kOpcode);
  WordSink sink{*words};
  Encode(s, sink);
}

class WordFinder {
 public:
  explicit WordFinder(const char* field) : field_(field) {}
  void Place(const auto&) { ++at_; }
  void Result(const auto&) { ++at_; }
  void Number(const auto&) { ++at_; }
  void Field(const char* name) {
    if (std::strcmp(name, field_) == 0) found_ = at_;
  }
  int64_t found() const { return found_; }

 private:
  const char* field_;
  int64_t at_ = 1, found_ = -1;
};
// Which word of the descriptor of `s` is the first of a field, the length of a counted list included.
template <class S>
int64_t WordOf(const S& s, const char* field) {
  WordFinder finder(field);
  Encode(s, finder);
  if (finder.found() < 0) throw std::logic_error(std::string("a descriptor has no field '") + field + "'");
  return finder.found();
}

// The word of entry `i` of a list with its length in front.
template <class S>
int64_t WordOfEntry(const S& s, const char* list, size_t i) {
  return WordOf(s, list) + 1 + static_cast<int64_t>(i);
}

// ---- Decoding ------------------------------------------------------------------------------------------------------

// Of words that have been checked, or were made in this process.
class Decoder {
 public:
  constexpr explicit Decoder(const int64_t* at) : at_(at) {}
  constexpr const int64_t* at() const { return at_; }
  constexpr void Place(const char*, int64_t& v, Kind = kSlot) { v = *at_++; }
  template <class T>
  constexpr void Word(const char*, T& v, Kind = {}) {
    v = static_cast<T>(*at_++);
  }
  constexpr void Places(const char*, std::span<const int64_t>& list, int64_t count = kCounted) { Span(list, count); }
  constexpr void Words(const char*, std::span<const int64_t>& list, Kind, int64_t count = kCounted) {
    Span(list, count);
  }
  template <class S>
  constexpr void Part(const char*, S& s) {
    S::Fields(*this, s);
  }
  template <class T>
  constexpr void List(const char*, Sequence<T>& list, int64_t count = kCounted) {
    if (count == kCounted) count = *at_++;
    list = Sequence<T>(at_, count);
    for (int64_t i = 0; i < count; ++i) {
      T each;
      T::Fields(*this, each);
    }
  }

 private:
  constexpr void Span(std::span<const int64_t>& list, int64_t count) {
    if (count == kCounted) count = *at_++;
    list = {at_, static_cast<size_t>(count)};
    at_ += count;
  }
  const int64_t* at_;
};

// Structs that follow each other in words, taken apart as they are read.
template <class T>
class Sequence {
 public:
  constexpr Sequence() = default;
  constexpr Sequence(const int64_t* at, int64_t count) : at_(at), count_(count) {}
  constexpr size_t size() const { return static_cast<size_t>(count_); }
  constexpr bool empty() const { return count_ == 0; }

  class Iterator {
   public:
    constexpr Iterator(const int64_t* at, int64_t left) : next_(at), left_(left) { Read(); }
    constexpr const T& operator*() const { return value_; }
    constexpr const T* operator->() const { return &value_; }
    constexpr Iterator& operator++() {
      --left_;
      Read();
      return *this;
    }
    constexpr bool operator==(const Iterator& other) const { return left_ == other.left_; }

   private:
    constexpr void Read() {
      if (left_ == 0) return;
      Decoder d(next_);
      T::Fields(d, value_);
      next_ = d.at();
    }
    const int64_t* next_;
    int64_t left_;
    T value_{};
  };
  constexpr Iterator begin() const { return {at_, count_}; }
  constexpr Iterator end() const { return {nullptr, 0}; }

 private:
  const int64_t* at_ = nullptr;
  int64_t count_ = 0;
};

// `words`: at the descriptor's number. `next`: where the next descriptor begins.
template <class S>
constexpr S Decode(const int64_t* words, const int64_t** next = nullptr) {
  S s;
  Decoder d(words + 1);
  S::Fields(d, s);
  if (next != nullptr) *next = d.at();
  return s;
}

// ---- Every field is listed -----------------------------------------------------------------------------------------

// How many members an aggregate has.
struct AnyMember {
  template <class T>
  constexpr operator T() const;  // NOLINT: it stands for a member of any type
};
template <class S, class... Members>
constexpr int NumMembers() {
  if constexpr (requires { S{Members{}..., AnyMember{}}; })
    return NumMembers<S, Members..., AnyMember>();
  else
    return static_cast<int>(sizeof...(Members));
}

template <class S>
constexpr bool ListsEveryField();

// How many fields a list has, those that depend on others included; and that parts are complete.
class FieldCounter {
 public:
  constexpr void Place(const char*, int64_t&, Kind = kSlot) { ++count_; }
  template <class T>
  constexpr void Word(const char*, T& v, Kind = {}) {
    if constexpr (std::is_same_v<T, bool>) v = true;
    ++count_;
  }
  constexpr void Places(const char*, std::span<const int64_t>&, int64_t = kCounted) { ++count_; }
  constexpr void Words(const char*, std::span<const int64_t>&, Kind, int64_t = kCounted) { ++count_; }
  template <class S>
  constexpr void Part(const char*, S&) {
    static_assert(ListsEveryField<S>());
    ++count_;
  }
  template <class T>
  constexpr void List(const char*, Sequence<T>&, int64_t = kCounted) {
    static_assert(ListsEveryField<T>());
    ++count_;
  }
  constexpr int count() const { return count_; }

 private:
  int count_ = 0;
};
template <class S>
constexpr int NumFields() {
  S s{};
  FieldCounter counter;
  S::Fields(counter, s);
  return counter.count();
}
template <class S>
constexpr bool ListsEveryField() {
  return NumFields<S>() == NumMembers<S>();
}

}  // namespace weft::abi
#endif  // WEFT_LOWERING_ABI_FIELDS_H_
