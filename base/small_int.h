// Integers of fewer than 8 bits, one in each byte: the byte holds the number itself, so that reading one is reading an
// int8_t or uint8_t, in which they compute. Making one of a wider integer keeps its low bits, as C++ has it for its
// own.
#ifndef WEFT_BASE_SMALL_INT_H_
#define WEFT_BASE_SMALL_INT_H_

#include <cstdint>
#include <limits>
#include <type_traits>

namespace weft {

template <int kWidth, bool kSigned>
class SmallInt {
 public:
  using Word = std::conditional_t<kSigned, int8_t, uint8_t>;
  static constexpr int kBits = kWidth;

  SmallInt() = default;
  template <class T>
    requires std::is_arithmetic_v<T>
  constexpr SmallInt(T value) : word_(LowBits(static_cast<int64_t>(value))) {}  // NOLINT: converts as integers do
  constexpr operator Word() const { return word_; }                             // NOLINT

 private:
  static constexpr Word LowBits(int64_t value) {
    const auto top = static_cast<uint64_t>(value) << (64 - kWidth);
    return kSigned ? static_cast<Word>(static_cast<int64_t>(top) >> (64 - kWidth))
                   : static_cast<Word>(top >> (64 - kWidth));
  }
  Word word_;
};

using Int4 = SmallInt<4, true>;
using UInt4 = SmallInt<4, false>;
using Int2 = SmallInt<2, true>;
using UInt2 = SmallInt<2, false>;

template <class T>
inline constexpr bool kIsSmallInt = false;
template <int kWidth, bool kSigned>
inline constexpr bool kIsSmallInt<SmallInt<kWidth, kSigned>> = true;

// C++'s integers, bool among them, and those of fewer bits.
template <class T>
inline constexpr bool kIsInteger = std::is_integral_v<T> || kIsSmallInt<T>;

template <class T>
struct IntegerWord {
  using type = T;
};
template <int kWidth, bool kSigned>
struct IntegerWord<SmallInt<kWidth, kSigned>> {
  using type = typename SmallInt<kWidth, kSigned>::Word;
};
// The integer of C++ that computes for T.
template <class T>
using WordOf = typename IntegerWord<T>::type;

// That a number has, of those that store it.
template <class T>
inline constexpr int kBitsOf = 8 * sizeof(T);
template <class T>
  requires requires { T::kBits; }
inline constexpr int kBitsOf<T> = T::kBits;

}  // namespace weft

template <int kWidth, bool kSigned>
class std::numeric_limits<weft::SmallInt<kWidth, kSigned>>
    : public std::numeric_limits<typename weft::SmallInt<kWidth, kSigned>::Word> {
  using T = weft::SmallInt<kWidth, kSigned>;

 public:
  static constexpr int digits = kWidth - (kSigned ? 1 : 0);
  static constexpr T min() { return kSigned ? -(1 << (kWidth - 1)) : 0; }
  static constexpr T max() { return (1 << digits) - 1; }
  static constexpr T lowest() { return min(); }
};

#endif  // WEFT_BASE_SMALL_INT_H_
