// Element types. 64-bit types are first class: nothing is truncated silently.
#ifndef WEFT_BASE_DTYPE_H_
#define WEFT_BASE_DTYPE_H_

#include <complex>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "base/float16.h"

namespace weft {

enum class DType : uint8_t {
  kBool,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kC128,
  kF8E4M3FN,
  kF8E5M2,
  kKey,   // one random key: two 32-bit words
  kTape,  // what a loop of unknown length recorded: a sequence of records, by reference (base/tape.h)
};
inline constexpr int kNumDTypes = 19;

const char* Name(DType dtype);  // "f32"
std::optional<DType> ParseDType(const std::string& name);
int ByteWidth(DType dtype);
inline std::ostream& operator<<(std::ostream& out, DType dtype) { return out << Name(dtype); }

inline bool IsBool(DType t) { return t == DType::kBool; }
inline bool IsSigned(DType t) { return t >= DType::kI8 && t <= DType::kI64; }
inline bool IsUnsigned(DType t) { return t >= DType::kU8 && t <= DType::kU64; }
inline bool IsInteger(DType t) { return t >= DType::kI8 && t <= DType::kU64; }
inline bool IsComplex(DType t) { return t == DType::kC64 || t == DType::kC128; }
inline bool IsFloat8(DType t) { return t == DType::kF8E4M3FN || t == DType::kF8E5M2; }
inline bool IsFloat(DType t) { return (t >= DType::kF16 && t <= DType::kF64) || IsFloat8(t); }
inline bool IsInexact(DType t) { return IsFloat(t) || IsComplex(t); }
// Types whose elements are not numbers: they are copied and moved only.
inline bool IsOpaque(DType t) { return t == DType::kKey || t == DType::kTape; }
// Types whose values have tangents. The tangent of a tape is the tape of its records' tangents.
inline bool HasTangents(DType t) { return IsInexact(t) || t == DType::kTape; }
// c64 -> f32, c128 -> f64; other types are their own real type.
DType RealPart(DType dtype);
// f32 -> c64, f64 -> c128. Other types have none.
std::optional<DType> ComplexOf(DType dtype);

// A set of dtypes, for the type rules of primitives.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  constexpr DTypeSet(std::initializer_list<DType> types) {
    for (DType t : types) bits_ |= uint32_t{1} << static_cast<int>(t);
  }
  constexpr bool Has(DType t) const { return (bits_ >> static_cast<int>(t)) & 1; }
  constexpr DTypeSet operator|(DTypeSet other) const { return FromBits(bits_ | other.bits_); }
  std::string ToString() const;  // "f16|bf16|f32"

 private:
  static constexpr DTypeSet FromBits(uint32_t bits) {
    DTypeSet s;
    s.bits_ = bits;
    return s;
  }
  uint32_t bits_ = 0;
};

inline constexpr DTypeSet kBools = {DType::kBool};
inline constexpr DTypeSet kSignedInts = {DType::kI8, DType::kI16, DType::kI32, DType::kI64};
inline constexpr DTypeSet kUnsignedInts = {DType::kU8, DType::kU16, DType::kU32, DType::kU64};
inline constexpr DTypeSet kInts = kSignedInts | kUnsignedInts;
inline constexpr DTypeSet kFloats = {DType::kF16, DType::kBF16, DType::kF32, DType::kF64};
inline constexpr DTypeSet kFloat8s = {DType::kF8E4M3FN, DType::kF8E5M2};  // storage types: convert, copy, compare only
inline constexpr DTypeSet kComplexes = {DType::kC64, DType::kC128};
inline constexpr DTypeSet kReals = kInts | kFloats;
inline constexpr DTypeSet kNumbers = kReals | kComplexes;
inline constexpr DTypeSet kAll = kBools | kNumbers | kFloat8s;

template <class T>
struct TypeTag {
  using type = T;
};

// Calls `visit(TypeTag<T>{})` with the C++ type that stores `dtype` (keys and tapes are stored as uint64_t).
template <class Visitor>
decltype(auto) VisitDType(DType dtype, Visitor&& visit) {
  switch (dtype) {
    case DType::kBool: return visit(TypeTag<bool>{});
    case DType::kI8: return visit(TypeTag<int8_t>{});
    case DType::kI16: return visit(TypeTag<int16_t>{});
    case DType::kI32: return visit(TypeTag<int32_t>{});
    case DType::kI64: return visit(TypeTag<int64_t>{});
    case DType::kU8: return visit(TypeTag<uint8_t>{});
    case DType::kU16: return visit(TypeTag<uint16_t>{});
    case DType::kU32: return visit(TypeTag<uint32_t>{});
    case DType::kU64: return visit(TypeTag<uint64_t>{});
    case DType::kF16: return visit(TypeTag<Float16>{});
    case DType::kBF16: return visit(TypeTag<BFloat16>{});
    case DType::kF32: return visit(TypeTag<float>{});
    case DType::kF64: return visit(TypeTag<double>{});
    case DType::kC64: return visit(TypeTag<std::complex<float>>{});
    case DType::kC128: return visit(TypeTag<std::complex<double>>{});
    case DType::kF8E4M3FN: return visit(TypeTag<Float8E4M3FN>{});
    case DType::kF8E5M2: return visit(TypeTag<Float8E5M2>{});
    case DType::kKey: return visit(TypeTag<uint64_t>{});
    case DType::kTape: return visit(TypeTag<uint64_t>{});
  }
  __builtin_unreachable();
}

}  // namespace weft
#endif  // WEFT_BASE_DTYPE_H_
