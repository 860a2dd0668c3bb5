#include "ir/text/element_text.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ir/error.h"

namespace weft {
namespace {

template <class T>
inline constexpr bool kIsComplex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;
template <class T>
inline constexpr bool kIsFloating = std::is_floating_point_v<T> || kIsSmallFloat<T>;

template <int kBytes>
using BitsOfSize =
    std::conditional_t<kBytes == 1, uint8_t,
                       std::conditional_t<kBytes == 2, uint16_t, std::conditional_t<kBytes == 4, uint32_t, uint64_t>>>;
template <class T>
using BitsOf = BitsOfSize<sizeof(T)>;

// The bit that says that a float is negative; 0 where none is.
template <class T>
constexpr BitsOf<T> SignOf() {
  if constexpr (kIsSmallFloat<T>)
    return T::kSign;
  else
    return static_cast<BitsOf<T>>(BitsOf<T>{1} << (sizeof(T) * 8 - 1));
}

std::string Hex(uint64_t bits, int digits) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "0x";
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) text += kDigits[(bits >> shift) & 15];
  return text;
}

Error Malformed(const std::string& text, DType dtype) {
  return UserError(ErrorKind::kParse, {}, "'", text, "' is not a value of type ", dtype);
}
Error DoesNotFit(const std::string& text, DType dtype) {
  return UserError(ErrorKind::kParse, {}, text, " does not fit ", dtype);
}

// Digits of a finite number; always with a point or an exponent, so that it does not look like an integer.
template <class T>
std::string FiniteText(T value) {
  char buffer[64];
  char* end = buffer;
  if constexpr (kIsSmallFloat<T>) {
    const float wide = value;
    // Small whole numbers as they are, 448 rather than the 450 that reads back as it.
    if (std::trunc(wide) == wide && std::fabs(wide) < 1e6f && wide != 0)
      return std::to_string(static_cast<int>(wide)) + ".0";
    for (int digits = 1; digits <= 9; ++digits) {
      end = std::to_chars(buffer, buffer + sizeof(buffer), wide, std::chars_format::general, digits).ptr;
      float back = 0;
      std::from_chars(buffer, end, back);
      if (T(back).bits() == value.bits()) break;
    }
    // The same digits without an exponent where that is shorter: 10 rather than 1e+01.
    double digits = 0;
    std::from_chars(buffer, end, digits);
    end = std::to_chars(buffer, buffer + sizeof(buffer), digits).ptr;
  } else {
    end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  }
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

template <class T>
std::string FloatText(T value) {
  const BitsOf<T> bits = std::bit_cast<BitsOf<T>>(value);
  const double wide = static_cast<double>(value);
  if (std::isinf(wide)) return wide < 0 ? "-inf" : "inf";
  if (std::isnan(wide)) {
    const T nan(std::numeric_limits<float>::quiet_NaN());
    const BitsOf<T> plain = std::bit_cast<BitsOf<T>>(nan);
    if (bits == plain) return "nan";
    if (bits == static_cast<BitsOf<T>>(plain | SignOf<T>())) return "-nan";
    return Hex(bits, sizeof(T) * 2);
  }
  return FiniteText(value);
}

bool IsHex(const std::string& text) { return text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X'); }

template <class U>
U ParseHex(const std::string& text, DType dtype) {
  U bits = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data() + 2, end, bits, 16);
  if (result.ec == std::errc::result_out_of_range) throw DoesNotFit(text, dtype);
  if (result.ec != std::errc() || result.ptr != end) throw Malformed(text, dtype);
  return bits;
}

template <class T>
T ParseFloat(const std::string& text, DType dtype) {
  if (IsHex(text)) return std::bit_cast<T>(ParseHex<BitsOf<T>>(text, dtype));
  const bool negative = text[0] == '-';
  const std::string magnitude = negative ? text.substr(1) : text;
  if (magnitude == "nan" || magnitude == "inf") {
    // The sign of a NaN is set in its bits: negating one need not change them.
    using Has = std::numeric_limits<T>;
    if (magnitude == "inf" ? !Has::has_infinity : !Has::has_quiet_NaN) throw DoesNotFit(text, dtype);
    const T value(magnitude == "nan" ? std::numeric_limits<float>::quiet_NaN()
                                     : std::numeric_limits<float>::infinity());
    const BitsOf<T> sign = negative ? SignOf<T>() : BitsOf<T>{0};
    return std::bit_cast<T>(static_cast<BitsOf<T>>(std::bit_cast<BitsOf<T>>(value) | sign));
  }
  // from_chars would read "infinity", "nan(1)" and the like.
  if (magnitude.empty() || !((magnitude[0] >= '0' && magnitude[0] <= '9') || magnitude[0] == '.'))
    throw Malformed(text, dtype);
  using Wide = std::conditional_t<kIsSmallFloat<T>, float, T>;
  Wide wide = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, wide);
  if (result.ec == std::errc::result_out_of_range) throw DoesNotFit(text, dtype);
  if (result.ec != std::errc() || result.ptr != end) throw Malformed(text, dtype);
  const T value(wide);
  // Where there is no infinity and no NaN, what is too large becomes the largest number.
  const bool too_large = !std::numeric_limits<T>::has_quiet_NaN &&
                         std::fabs(static_cast<double>(value)) < std::fabs(wide) &&
                         std::bit_cast<BitsOf<T>>(value) == std::bit_cast<BitsOf<T>>(T(std::copysign(INFINITY, wide)));
  if (too_large || !std::isfinite(static_cast<double>(value))) throw DoesNotFit(text, dtype);
  return value;
}

template <class T>
T ParseInteger(const std::string& text, DType dtype) {
  using Word = WordOf<T>;
  if (IsHex(text)) {
    const auto bits = ParseHex<Word>(text, dtype);
    if (static_cast<std::make_unsigned_t<Word>>(bits) >> (kBitsOf<T> - 1) > 1) throw DoesNotFit(text, dtype);
    return bits;
  }
  Word value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec == std::errc::result_out_of_range) throw DoesNotFit(text, dtype);
  if (result.ec != std::errc() || result.ptr != end) {
    if (!std::is_signed_v<Word> && text[0] == '-') throw DoesNotFit(text, dtype);
    throw Malformed(text, dtype);
  }
  if (static_cast<Word>(T(value)) != value) throw DoesNotFit(text, dtype);
  return value;
}

}  // namespace

std::string ElementText(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == DType::kKey) return Hex(tensor.at<uint64_t>(i), 16);
  WEFT_CHECK(tensor.dtype() != DType::kTape || tensor.at<uint64_t>(i) == 0) << "a tape with records as a literal";
  return VisitDType(tensor.dtype(), [&](auto tag) -> std::string {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) {
      return tensor.at<uint8_t>(i) != 0 ? "true" : "false";
    } else if constexpr (kIsComplex<T>) {
      const T value = tensor.at<T>(i);
      return "(" + FloatText(value.real()) + "," + FloatText(value.imag()) + ")";
    } else if constexpr (kIsFloating<T>) {
      return FloatText(tensor.at<T>(i));
    } else {
      return std::to_string(static_cast<WordOf<T>>(tensor.at<T>(i)));
    }
  });
}

void SetElementFromText(Tensor& tensor, int64_t i, const std::string& text) {
  const DType dtype = tensor.dtype();
  if (text.empty()) throw Malformed(text, dtype);
  if (dtype == DType::kKey) {
    if (!IsHex(text)) throw Malformed(text, dtype);
    tensor.data<uint64_t>()[i] = ParseHex<uint64_t>(text, dtype);
    return;
  }
  if (dtype == DType::kTape && text != "0") throw Malformed(text, dtype);  // a reference has no text but null
  VisitDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T& element = tensor.data<T>()[i];
    if constexpr (std::is_same_v<T, bool>) {
      if (text != "true" && text != "false") throw Malformed(text, dtype);
      element = text == "true";
    } else if constexpr (kIsComplex<T>) {
      using Part = typename T::value_type;
      const size_t comma = text.find(',');
      if (text.front() != '(' || text.back() != ')' || comma == std::string::npos || comma < 2 ||
          comma + 2 >= text.size()) {
        throw Malformed(text, dtype);
      }
      element = T(ParseFloat<Part>(text.substr(1, comma - 1), RealPart(dtype)),
                  ParseFloat<Part>(text.substr(comma + 1, text.size() - comma - 2), RealPart(dtype)));
    } else if constexpr (kIsFloating<T>) {
      element = ParseFloat<T>(text, dtype);
    } else {
      element = ParseInteger<T>(text, dtype);
    }
  });
}

}  // namespace weft
