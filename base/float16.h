// Storage types narrower than 32 bits: f16, bf16, f8e4m3fn, f8e5m2. Arithmetic happens in float; storing rounds to
// nearest, ties to even. Formats: IEEE 754 binary16; bfloat16 = the upper half of binary32; the two 8-bit formats of
// Micikevicius et al., "FP8 Formats for Deep Learning" (2022): e5m2 has infinities, e4m3fn has only NaN (S.1111.111).
#ifndef WEFT_BASE_FLOAT16_H_
#define WEFT_BASE_FLOAT16_H_

#include <bit>
#include <cstdint>
#include <limits>

namespace weft {

// A binary float of 1 + kExponent + kMantissa bits. kHasInf: the top exponent codes infinity and NaN, as in IEEE 754.
template <int kExponent, int kMantissa, bool kHasInf, class Bits>
class SmallFloat {
 public:
  static constexpr int kDigits = kMantissa + 1;
  // Of the largest number, 1.xxx * 2^kLargestExponent.
  static constexpr int kLargestExponent = (1 << (kExponent - 1)) - (kHasInf ? 1 : 0);

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
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr uint32_t kMaxExponent = (1u << kExponent) - 1;
  static constexpr uint32_t kMantissaMask = (1u << kMantissa) - 1;
  static constexpr int kDrop = 23 - kMantissa;  // float mantissa bits that do not fit

  static Bits FromFloat(float value) {
    const uint32_t f = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (f >> 31) << (kExponent + kMantissa);
    const uint32_t magnitude = f & 0x7fffffffu;
    const uint32_t nan = (kMaxExponent << kMantissa) | (kHasInf ? 1u << (kMantissa - 1) : kMantissaMask);
    const uint32_t overflow = kHasInf ? kMaxExponent << kMantissa : nan;
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
      if (shift > 31) return static_cast<Bits>(sign);
      result = mantissa >> shift;
    }
    const uint32_t rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
    if (rest > half || (rest == half && (result & 1))) ++result;  // a carry runs into the exponent, as it should
    const uint32_t largest =
        kHasInf ? (kMaxExponent << kMantissa) - 1 : (kMaxExponent << kMantissa) | (kMantissaMask - 1);
    if (exponent > static_cast<int>(kMaxExponent) || result > largest) result = overflow;
    return static_cast<Bits>(sign | result);
  }

  static float ToFloat(Bits bits) {
    const uint32_t sign = static_cast<uint32_t>(bits >> (kExponent + kMantissa)) << 31;
    const uint32_t exponent = (bits >> kMantissa) & kMaxExponent;
    const uint32_t mantissa = bits & kMantissaMask;
    if (exponent == kMaxExponent && (kHasInf || mantissa == kMantissaMask)) {
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

using Float16 = SmallFloat<5, 10, true, uint16_t>;
using BFloat16 = SmallFloat<8, 7, true, uint16_t>;
using Float8E4M3FN = SmallFloat<4, 3, false, uint8_t>;
using Float8E5M2 = SmallFloat<5, 2, true, uint8_t>;

template <class T>
inline constexpr bool kIsSmallFloat = false;
template <int E, int M, bool I, class B>
inline constexpr bool kIsSmallFloat<SmallFloat<E, M, I, B>> = true;

}  // namespace weft

template <int kExponent, int kMantissa, bool kHasInf, class Bits>
class std::numeric_limits<weft::SmallFloat<kExponent, kMantissa, kHasInf, Bits>> {
  using T = weft::SmallFloat<kExponent, kMantissa, kHasInf, Bits>;

 public:
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, has_infinity = kHasInf;
  static constexpr int digits = T::kDigits, max_exponent = T::kLargestExponent + 1;
  static constexpr int min_exponent = 3 - (1 << (kExponent - 1));
};

#endif  // WEFT_BASE_FLOAT16_H_
