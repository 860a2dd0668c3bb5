// Element types. 64-bit types are first class: nothing is truncated silently.
#ifndef WEFT_BASE_DTYPE_H_
#define WEFT_BASE_DTYPE_H_

#include <complex>
#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>

#include "base/float16.h"
#include "base/small_int.h"

namespace weft {

enum class DTypeKind : uint8_t { kBool, kSigned, kUnsigned, kFloat, kFloat8, kComplex, kOpaque };

// One row per element type: its enumerator, the C++ type that stores it, its name, kind, and what others call it: NumPy
// (or ml_dtypes), the buffer protocol (PEP 3118), and files of NumPy ("V": NumPy knows bytes alone); the type in which
// it computes where that is another one (ComputeType); and its type code in DLPack (-1: none, or one for packed bits).
// The order is that of the exchange form (ir/exchange/weft.proto), to which rows are added at the end.
// docs/add_a_dtype.md says what else a new row needs.
#define WEFT_DTYPES(ROW)                                                                                         \
  ROW(kBool, bool, "bool", kBool, "bool", "?", "b1", kBool, 6)                                                   \
  ROW(kI8, int8_t, "i8", kSigned, "int8", "b", "i1", kI8, 0)                                                     \
  ROW(kI16, int16_t, "i16", kSigned, "int16", "h", "i2", kI16, 0)                                                \
  ROW(kI32, int32_t, "i32", kSigned, "int32", "i", "i4", kI32, 0)                                                \
  ROW(kI64, int64_t, "i64", kSigned, "int64", "l", "i8", kI64, 0)                                                \
  ROW(kU8, uint8_t, "u8", kUnsigned, "uint8", "B", "u1", kU8, 1)                                                 \
  ROW(kU16, uint16_t, "u16", kUnsigned, "uint16", "H", "u2", kU16, 1)                                            \
  ROW(kU32, uint32_t, "u32", kUnsigned, "uint32", "I", "u4", kU32, 1)                                            \
  ROW(kU64, uint64_t, "u64", kUnsigned, "uint64", "L", "u8", kU64, 1)                                            \
  ROW(kF16, Float16, "f16", kFloat, "float16", "e", "f2", kF16, 2)                                               \
  ROW(kBF16, BFloat16, "bf16", kFloat, "bfloat16", nullptr, "V2", kBF16, 4)                                      \
  ROW(kF32, float, "f32", kFloat, "float32", "f", "f4", kF32, 2)                                                 \
  ROW(kF64, double, "f64", kFloat, "float64", "d", "f8", kF64, 2)                                                \
  ROW(kC64, std::complex<float>, "c64", kComplex, "complex64", "Zf", "c8", kC64, 5)                              \
  ROW(kC128, std::complex<double>, "c128", kComplex, "complex128", "Zd", "c16", kC128, 5)                        \
  ROW(kF8E4M3FN, Float8E4M3FN, "f8e4m3fn", kFloat8, "float8_e4m3fn", nullptr, "V1", kF32, 10)                    \
  ROW(kF8E5M2, Float8E5M2, "f8e5m2", kFloat8, "float8_e5m2", nullptr, "V1", kF32, 12)                            \
  /* One random key: two 32-bit words. */                                                                        \
  ROW(kKey, uint64_t, "key", kOpaque, "key", nullptr, "u8", kKey, -1)                                            \
  /* What a loop of unknown length recorded: a sequence of records, by reference (base/tape.h). */               \
  ROW(kTape, uint64_t, "tape", kOpaque, "tape", nullptr, nullptr, kTape, -1)                                     \
  ROW(kI4, Int4, "i4", kSigned, "int4", nullptr, "i1", kI8, -1)                                                  \
  ROW(kU4, UInt4, "u4", kUnsigned, "uint4", nullptr, "u1", kU8, -1)                                              \
  ROW(kI2, Int2, "i2", kSigned, "int2", nullptr, "i1", kI8, -1)                                                  \
  ROW(kU2, UInt2, "u2", kUnsigned, "uint2", nullptr, "u1", kU8, -1)                                              \
  ROW(kF8E3M4, Float8E3M4, "f8e3m4", kFloat8, "float8_e3m4", nullptr, "V1", kF32, 7)                             \
  ROW(kF8E4M3, Float8E4M3, "f8e4m3", kFloat8, "float8_e4m3", nullptr, "V1", kF32, 8)                             \
  ROW(kF8E4M3B11FNUZ, Float8E4M3B11FNUZ, "f8e4m3b11fnuz", kFloat8, "float8_e4m3b11fnuz", nullptr, "V1", kF32, 9) \
  ROW(kF8E4M3FNUZ, Float8E4M3FNUZ, "f8e4m3fnuz", kFloat8, "float8_e4m3fnuz", nullptr, "V1", kF32, 11)            \
  ROW(kF8E5M2FNUZ, Float8E5M2FNUZ, "f8e5m2fnuz", kFloat8, "float8_e5m2fnuz", nullptr, "V1", kF32, 13)            \
  ROW(kF8E8M0FNU, Float8E8M0FNU, "f8e8m0fnu", kFloat8, "float8_e8m0fnu", nullptr, "V1", kF32, 14)                \
  ROW(kF4E2M1FN, Float4E2M1FN, "f4e2m1fn", kFloat8, "float4_e2m1fn", nullptr, "V1", kF32, -1)

enum class DType : uint8_t {
#define WEFT_ENUMERATOR(enumerator, ...) enumerator,
  WEFT_DTYPES(WEFT_ENUMERATOR)
#undef WEFT_ENUMERATOR
};

struct DTypeRow {
  const char* name;  // "f32"
  int bytes;
  DTypeKind kind;
  const char* numpy;
  const char* buffer;  // null: has no format of the buffer protocol
  const char* npy;     // without the byte order; null: not written to files
  DType computes;
  int dlpack;
  int bits;  // that count: 4 of the 8 in which an i4 is stored
  // Of floats, and of the parts of complex numbers: binary digits, and the exponent of the largest number.
  int digits, max_exponent;
};

namespace internal {
template <class T>
struct PartOf {
  using type = T;
};
template <class T>
struct PartOf<std::complex<T>> {
  using type = T;
};
template <class T>
constexpr DTypeRow MakeRow(const char* name, DTypeKind kind, const char* numpy, const char* buffer, const char* npy,
                           DType computes, int dlpack) {
  using Part = std::numeric_limits<typename PartOf<T>::type>;
  const bool integer = Part::is_integer;
  return {name,
          sizeof(T),
          kind,
          numpy,
          buffer,
          npy,
          computes,
          dlpack,
          kBitsOf<T>,
          integer ? 0 : Part::digits,
          integer ? 0 : Part::max_exponent - 1};
}
}  // namespace internal

inline constexpr DTypeRow kDTypeRows[] = {
#define WEFT_ROW(enumerator, type, name, kind, numpy, buffer, npy, computes, dlpack) \
  internal::MakeRow<type>(name, DTypeKind::kind, numpy, buffer, npy, DType::computes, dlpack),
    WEFT_DTYPES(WEFT_ROW)
#undef WEFT_ROW
};
inline constexpr int kNumDTypes = sizeof(kDTypeRows) / sizeof(kDTypeRows[0]);
inline constexpr const DTypeRow& RowOf(DType t) { return kDTypeRows[static_cast<int>(t)]; }

inline constexpr const char* Name(DType dtype) { return RowOf(dtype).name; }
inline constexpr int ByteWidth(DType dtype) { return RowOf(dtype).bytes; }
// Of its numbers: 4 of an i4, which takes a byte.
inline constexpr int BitWidth(DType dtype) { return RowOf(dtype).bits; }
// Some types are only stored: their operations convert to this one, compute, and convert back, which rounds or wraps.
inline constexpr DType ComputeType(DType dtype) { return RowOf(dtype).computes; }
inline constexpr bool IsStored(DType dtype) { return ComputeType(dtype) != dtype; }
std::optional<DType> ParseDType(const std::string& name);
inline std::ostream& operator<<(std::ostream& out, DType dtype) { return out << Name(dtype); }

inline constexpr bool IsKind(DType t, DTypeKind kind) { return RowOf(t).kind == kind; }
inline bool IsBool(DType t) { return t == DType::kBool; }
inline constexpr bool IsSigned(DType t) { return IsKind(t, DTypeKind::kSigned); }
inline constexpr bool IsUnsigned(DType t) { return IsKind(t, DTypeKind::kUnsigned); }
inline constexpr bool IsInteger(DType t) { return IsSigned(t) || IsUnsigned(t); }
inline bool IsComplex(DType t) { return IsKind(t, DTypeKind::kComplex); }
inline constexpr bool IsFloat8(DType t) { return IsKind(t, DTypeKind::kFloat8); }
inline bool IsFloat(DType t) { return IsKind(t, DTypeKind::kFloat) || IsFloat8(t); }
inline bool IsInexact(DType t) { return IsFloat(t) || IsComplex(t); }
// Types whose elements are not numbers: they are copied and moved only.
inline constexpr bool IsOpaque(DType t) { return IsKind(t, DTypeKind::kOpaque); }
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
  static constexpr DTypeSet OfKind(DTypeKind kind) {
    DTypeSet s;
    for (int i = 0; i < kNumDTypes; ++i) s.bits_ |= uint32_t{kDTypeRows[i].kind == kind} << i;
    return s;
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

inline constexpr DTypeSet kBools = DTypeSet::OfKind(DTypeKind::kBool);
inline constexpr DTypeSet kSignedInts = DTypeSet::OfKind(DTypeKind::kSigned);
inline constexpr DTypeSet kUnsignedInts = DTypeSet::OfKind(DTypeKind::kUnsigned);
inline constexpr DTypeSet kInts = kSignedInts | kUnsignedInts;
inline constexpr DTypeSet kFloats = DTypeSet::OfKind(DTypeKind::kFloat);
inline constexpr DTypeSet kFloat8s = DTypeSet::OfKind(DTypeKind::kFloat8);
inline constexpr DTypeSet kComplexes = DTypeSet::OfKind(DTypeKind::kComplex);
inline constexpr DTypeSet kReals = kInts | kFloats;
inline constexpr DTypeSet kNumbers = kReals | kComplexes;
// With 8-bit floats: what is computed in f32 and rounded once, as for all floats.
inline constexpr DTypeSet kAnyFloats = kFloats | kFloat8s;
inline constexpr DTypeSet kAnyReals = kReals | kFloat8s;
inline constexpr DTypeSet kAnyNumbers = kNumbers | kFloat8s;
inline constexpr DTypeSet kAll = kBools | kAnyNumbers;

template <class T>
struct TypeTag {
  using type = T;
};

// The element type that C++ type T stores (of uint64_t: u64).
template <class T>
constexpr DType DTypeOf() {
#define WEFT_IS(enumerator, type, ...)   \
  if constexpr (std::is_same_v<T, type>) \
    return DType::enumerator;            \
  else
  WEFT_DTYPES(WEFT_IS)
#undef WEFT_IS
  static_assert(sizeof(T) == 0, "no element type is stored as T");
}

// Calls `visit(TypeTag<T>{})` with the C++ type that stores `dtype` (keys and tapes are stored as uint64_t).
template <class Visitor>
decltype(auto) VisitDType(DType dtype, Visitor&& visit) {
  switch (dtype) {
#define WEFT_CASE(enumerator, type, ...) \
  case DType::enumerator: return visit(TypeTag<type>{});
    WEFT_DTYPES(WEFT_CASE)
#undef WEFT_CASE
  }
  __builtin_unreachable();
}

}  // namespace weft
#endif  // WEFT_BASE_DTYPE_H_
