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

enum class DTypeKind : uint8_t { kBool, kSigned, kUnsigned, kFloat, kFloat8, kComplex, kOpaque };

// One row per element type: its enumerator, the C++ type that stores it, its name, kind, and what others call it:
// NumPy (or ml_dtypes), the buffer protocol (PEP 3118), and files of NumPy ("V": NumPy knows bytes alone). The order is
// that of the exchange form (ir/exchange/weft.proto), to which rows are added at the end.
#define WEFT_DTYPES(ROW)                                                                           \
  ROW(kBool, bool, "bool", kBool, "bool", "?", "b1")                                               \
  ROW(kI8, int8_t, "i8", kSigned, "int8", "b", "i1")                                               \
  ROW(kI16, int16_t, "i16", kSigned, "int16", "h", "i2")                                           \
  ROW(kI32, int32_t, "i32", kSigned, "int32", "i", "i4")                                           \
  ROW(kI64, int64_t, "i64", kSigned, "int64", "l", "i8")                                           \
  ROW(kU8, uint8_t, "u8", kUnsigned, "uint8", "B", "u1")                                           \
  ROW(kU16, uint16_t, "u16", kUnsigned, "uint16", "H", "u2")                                       \
  ROW(kU32, uint32_t, "u32", kUnsigned, "uint32", "I", "u4")                                       \
  ROW(kU64, uint64_t, "u64", kUnsigned, "uint64", "L", "u8")                                       \
  ROW(kF16, Float16, "f16", kFloat, "float16", "e", "f2")                                          \
  ROW(kBF16, BFloat16, "bf16", kFloat, "bfloat16", nullptr, "V2")                                  \
  ROW(kF32, float, "f32", kFloat, "float32", "f", "f4")                                            \
  ROW(kF64, double, "f64", kFloat, "float64", "d", "f8")                                           \
  ROW(kC64, std::complex<float>, "c64", kComplex, "complex64", "Zf", "c8")                         \
  ROW(kC128, std::complex<double>, "c128", kComplex, "complex128", "Zd", "c16")                    \
  ROW(kF8E4M3FN, Float8E4M3FN, "f8e4m3fn", kFloat8, "float8_e4m3fn", nullptr, "V1")                \
  ROW(kF8E5M2, Float8E5M2, "f8e5m2", kFloat8, "float8_e5m2", nullptr, "V1")                        \
  /* One random key: two 32-bit words. */                                                          \
  ROW(kKey, uint64_t, "key", kOpaque, "key", nullptr, "u8")                                        \
  /* What a loop of unknown length recorded: a sequence of records, by reference (base/tape.h). */ \
  ROW(kTape, uint64_t, "tape", kOpaque, "tape", nullptr, nullptr)

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
};
inline constexpr DTypeRow kDTypeRows[] = {
#define WEFT_ROW(enumerator, type, name, kind, numpy, buffer, npy) \
  {name, sizeof(type), DTypeKind::kind, numpy, buffer, npy},
    WEFT_DTYPES(WEFT_ROW)
#undef WEFT_ROW
};
inline constexpr int kNumDTypes = sizeof(kDTypeRows) / sizeof(kDTypeRows[0]);
inline constexpr const DTypeRow& RowOf(DType t) { return kDTypeRows[static_cast<int>(t)]; }

inline constexpr const char* Name(DType dtype) { return RowOf(dtype).name; }
inline constexpr int ByteWidth(DType dtype) { return RowOf(dtype).bytes; }
std::optional<DType> ParseDType(const std::string& name);
inline std::ostream& operator<<(std::ostream& out, DType dtype) { return out << Name(dtype); }

inline constexpr bool IsKind(DType t, DTypeKind kind) { return RowOf(t).kind == kind; }
inline bool IsBool(DType t) { return t == DType::kBool; }
inline bool IsSigned(DType t) { return IsKind(t, DTypeKind::kSigned); }
inline bool IsUnsigned(DType t) { return IsKind(t, DTypeKind::kUnsigned); }
inline bool IsInteger(DType t) { return IsSigned(t) || IsUnsigned(t); }
inline bool IsComplex(DType t) { return IsKind(t, DTypeKind::kComplex); }
inline bool IsFloat8(DType t) { return IsKind(t, DTypeKind::kFloat8); }
inline bool IsFloat(DType t) { return IsKind(t, DTypeKind::kFloat) || IsFloat8(t); }
inline bool IsInexact(DType t) { return IsFloat(t) || IsComplex(t); }
// Types whose elements are not numbers: they are copied and moved only.
inline bool IsOpaque(DType t) { return IsKind(t, DTypeKind::kOpaque); }
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
inline constexpr DTypeSet kFloat8s = {DType::kF8E4M3FN, DType::kF8E5M2};  // moved, converted, and element by element
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
#define WEFT_CASE(enumerator, type, ...) \
  case DType::enumerator: return visit(TypeTag<type>{});
    WEFT_DTYPES(WEFT_CASE)
#undef WEFT_CASE
  }
  __builtin_unreachable();
}

}  // namespace weft
#endif  // WEFT_BASE_DTYPE_H_
