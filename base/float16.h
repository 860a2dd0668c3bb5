// Storage types narrower than 32 bits. Arithmetic happens in float; storing rounds to nearest, ties to even. Formats:
// IEEE 754 binary16; bfloat16 = the upper half of binary32; those of 8 bits by Micikevicius et al., "FP8 Formats for
// Deep Learning" (2022), by Noune et al., "8-bit Numerical Formats for Deep Neural Networks" (2022; fnuz: finite, one
// NaN, no negative zero), and those of the OCP's "Microscaling Formats Specification" (2023): e2m1fn of 4 bits, e8m0fnu
// of powers of 2 alone.
#ifndef WEFT_BASE_FLOAT16_H_
#define WEFT_BASE_FLOAT16_H_

#include <bit>
#include <cstdint>
#include <limits>

namespace weft {

// What a format has beside finite numbers.
enum class Specials : uint8_t {
  kInfNan,  // the top exponent codes infinities and NaN, as in IEEE 754
  kNan,     // of the top exponent the largest mantissa is NaN
  kOneNan,  // NaN alone, where negative zero would be
  kNone,    // what is too large is the largest number, and NaN is negative zero
};

// A binary float of 1 + kExponent + kMantissa bits.
template <int kExponent, int kMantissa, Specials kSpecials, class Bits,
          int kBias = (1 << (kExponent - 1)) - (kSpecials == Specials::kOneNan ? 0 : 1)>
class SmallFloat {
  static constexpr uint32_t kMaxExponent = (1u << kExponent) - 1;
  static constexpr bool kHasInf = kSpecials == Specials::kInfNan;

 public:
  static constexpr int kBits = 1 + kExponent + kMantissa;
  static constexpr int kDigits = kMantissa + 1;
  static constexpr bool kHasInfinity = kHasInf, kHasNan = kSpecials != Specials::kNone;
  // Of the largest number, 1.xxx * 2^kLargestExponent; of the smallest that has all digits.
  static constexpr int kLargestExponent = static_cast<int>(kMaxExponent) - kBias - (kHasInf ? 1 : 0);
  static constexpr int kLeastExponent = 1 - kBias;
  // The bit that says that a number is negative; 0 where none is.
  static constexpr Bits kSign = static_cast<Bits>(1u << (kBits - 1));
  static constexpr bool kNanHasSign = kSpecials != Specials::kOneNan;

  SmallFloat() = default;
  SmallFloat(float value) : bits_(FromFloat(value)) {}  // NOLINT: converts as the built-in floats do
  operator float() const { return ToFloat(bits_); }     // NOLINT
  static SmallFloat FromBits(Bits bits) {
    SmallFloat f;
    f.bits_ = bits;
    return f;
  }
  Bits bits() const { return bits_; }

 private:
  static constexpr uint32_t kMantissaMask = (1u << kMantissa) - 1;
  static constexpr int kDrop = 23 - kMantissa;  // float mantissa bits that do not fit
  static constexpr uint32_t kInfinity = kMaxExponent << kMantissa;
  static constexpr uint32_t kAllOnes = kInfinity | kMantissaMask;
  static constexpr uint32_t kLargest = kHasInf ? kInfinity - 1 : kSpecials == Specials::kNan ? kAllOnes - 1 : kAllOnes;

  static Bits FromFloat(float value) {
    const uint32_t f = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (f >> 31) << (kExponent + kMantissa);
    const uint32_t magnitude = f & 0x7fffffffu;
    if constexpr (kSpecials == Specials::kOneNan) {
      if (magnitude >= 0x7f800000u) return kSign;
    } else if constexpr (kSpecials == Specials::kNone) {
      if (magnitude > 0x7f800000u) return static_cast<Bits>(sign ^ kSign);
    }
    const uint32_t nan = kInfinity | (kHasInf ? 1u << (kMantissa - 1) : kMantissaMask);
    const uint32_t overflow = kHasInf ? kInfinity : kSpecials == Specials::kNone ? kLargest : nan;
    if (magnitude > 0x7f800000u) return static_cast<Bits>(sign | nan);
    if (magnitude == 0x7f800000u) return static_cast<Bits>(sign | overflow);
    const bool normal =
        magnitude >> 23 != 0;  // a subnormal float has the smallest normal exponent, without the implicit bit
    const int exponent = static_cast<int>(normal ? magnitude >> 23 : 1) - 127 + kBias;
    uint32_t mantissa = (magnitude & 0x7fffffu) | (normal ? 0x800000u : 0u);
    int shift = kDrop;
    uint32_t result = 0;
    if (normal && exponent >= 1) {
      result = (static_cast<uint32_t>(exponent) << kMantissa) + ((mantissa >> shift) & kMantissaMask);
    } else {  // subnormal in the target
      shift += 1 - exponent;
      if (shift > 31) return Signed(sign, 0);
      result = mantissa >> shift;
    }
    const uint32_t rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
    if (rest > half || (rest == half && (result & 1))) ++result;  // a carry runs into the exponent, as it should
    if (exponent > static_cast<int>(kMaxExponent) || result > kLargest) {
      if constexpr (kSpecials == Specials::kOneNan) return kSign;
      result = overflow;
    }
    return Signed(sign, result);
  }

  // Zero has no sign where its negative is NaN.
  static Bits Signed(uint32_t sign, uint32_t magnitude) {
    if (kSpecials == Specials::kOneNan && magnitude == 0) return 0;
    return static_cast<Bits>(sign | magnitude);
  }

  static float ToFloat(Bits bits) {
    const uint32_t sign = static_cast<uint32_t>(bits >> (kExponent + kMantissa) & 1) << 31;
    const uint32_t exponent = (bits >> kMantissa) & kMaxExponent;
    const uint32_t mantissa = bits & kMantissaMask;
    if constexpr (kSpecials == Specials::kOneNan) {
      if (bits == kSign) return std::bit_cast<float>(0x7fc00000u);
    }
    if (exponent == kMaxExponent && (kHasInf || (kSpecials == Specials::kNan && mantissa == kMantissaMask))) {
      return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << kDrop));
    }
    if (exponent == 0) {
      const float scale = std::bit_cast<float>(
          static_cast<uint32_t>(127 + 1 - kBias - kMantissa > 0 ? 127 + 1 - kBias - kMantissa : 0) << 23);
      if constexpr (kExponent == 8) return std::bit_cast<float>(sign | (mantissa << kDrop));  // same range as float
      const float value = static_cast<float>(mantissa) * scale;
      return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
    }
    return std::bit_cast<float>(sign | ((exponent + 127 - kBias) << 23) | (mantissa << kDrop));
  }

  Bits bits_ = 0;
};

// 2^(bits - 127), and NaN: what is not above 0, and what is too large.
class PowerOf2Float {
 public:
  static constexpr int kBits = 8, kDigits = 1, kLargestExponent = 127, kLeastExponent = -127;
  static constexpr bool kHasInfinity = false, kHasNan = true, kNanHasSign = false;
  static constexpr uint8_t kSign = 0;

  PowerOf2Float() = default;
  PowerOf2Float(float value) : bits_(FromFloat(value)) {}  // NOLINT: converts as the built-in floats do
  operator float() const {                                 // NOLINT
    if (bits_ == kNan) return std::bit_cast<float>(0x7fc00000u);
    return std::bit_cast<float>(bits_ == 0 ? 0x400000u : static_cast<uint32_t>(bits_) << 23);
  }
  static PowerOf2Float FromBits(uint8_t bits) {
    PowerOf2Float f;
    f.bits_ = bits;
    return f;
  }
  uint8_t bits() const { return bits_; }

 private:
  static constexpr uint8_t kNan = 0xff;

  static uint8_t FromFloat(float value) {
    if (!(value > 0)) return kNan;
    const uint32_t f = std::bit_cast<uint32_t>(value);
    // From half of the way on it is the next power, since the last digit is the leading one, which is odd. What is less
    // than the least power, 2^-127, becomes it.
    if (f < 0x800000u) return f >= 0x600000u ? 1 : 0;
    const uint32_t rounded = (f >> 23) + (f >> 22 & 1);
    return static_cast<uint8_t>(rounded >= kNan ? kNan : rounded);
  }

  uint8_t bits_ = 0;
};

using Float16 = SmallFloat<5, 10, Specials::kInfNan, uint16_t>;
using BFloat16 = SmallFloat<8, 7, Specials::kInfNan, uint16_t>;
using Float8E4M3FN = SmallFloat<4, 3, Specials::kNan, uint8_t>;
using Float8E5M2 = SmallFloat<5, 2, Specials::kInfNan, uint8_t>;
using Float8E3M4 = SmallFloat<3, 4, Specials::kInfNan, uint8_t>;
using Float8E4M3 = SmallFloat<4, 3, Specials::kInfNan, uint8_t>;
using Float8E4M3B11FNUZ = SmallFloat<4, 3, Specials::kOneNan, uint8_t, 11>;
using Float8E4M3FNUZ = SmallFloat<4, 3, Specials::kOneNan, uint8_t>;
using Float8E5M2FNUZ = SmallFloat<5, 2, Specials::kOneNan, uint8_t>;
using Float8E8M0FNU = PowerOf2Float;
using Float4E2M1FN = SmallFloat<2, 1, Specials::kNone, uint8_t>;

template <class T>
inline constexpr bool kIsSmallFloat = false;
template <int E, int M, Specials S, class B, int kBias>
inline constexpr bool kIsSmallFloat<SmallFloat<E, M, S, B, kBias>> = true;
template <>
inline constexpr bool kIsSmallFloat<PowerOf2Float> = true;

}  // namespace weft

template <class T>
  requires weft::kIsSmallFloat<T>
class std::numeric_limits<T> {
 public:
  static constexpr bool is_specialized = true, is_signed = T::kSign != 0, is_integer = false;
  static constexpr bool has_infinity = T::kHasInfinity, has_quiet_NaN = T::kHasNan;
  static constexpr int digits = T::kDigits, max_exponent = T::kLargestExponent + 1;
  static constexpr int min_exponent = T::kLeastExponent + 1;
};

#endif  // WEFT_BASE_FLOAT16_H_
