#include "tracer/promote.h"

#include <array>

#include "ir/error.h"
#include "tracer/context.h"

namespace weft {
namespace {

// Nodes: the 15 strong dtypes up to c128 by their enum value, then the weak kinds.
constexpr int kWeakInt = 15, kWeakFloat = 16, kWeakComplex = 17, kNodes = 18;

int Id(DType t) { return static_cast<int>(t); }

using Table = std::array<std::array<int8_t, kNodes>, kNodes>;

Table MakeTable() {
  using enum DType;
  // Direct successors, as in the drawing of the JAX page.
  struct Edge {
    int from, to;
  };
  const Edge edges[] = {
      {Id(kBool), kWeakInt},   {kWeakInt, Id(kU8)},    {kWeakInt, Id(kI8)},        {Id(kU8), Id(kU16)},
      {Id(kU8), Id(kI16)},     {Id(kU16), Id(kI32)},   {Id(kU16), Id(kU32)},       {Id(kU32), Id(kU64)},
      {Id(kU32), Id(kI64)},    {Id(kU64), kWeakFloat}, {Id(kI8), Id(kI16)},        {Id(kI16), Id(kI32)},
      {Id(kI32), Id(kI64)},    {Id(kI64), kWeakFloat}, {kWeakFloat, kWeakComplex}, {kWeakFloat, Id(kF16)},
      {kWeakFloat, Id(kBF16)}, {Id(kBF16), Id(kF32)},  {Id(kF16), Id(kF32)},       {Id(kF32), Id(kC64)},
      {Id(kF32), Id(kF64)},    {Id(kF64), Id(kC128)},  {kWeakComplex, Id(kC64)},   {Id(kC64), Id(kC128)},
  };
  std::array<uint32_t, kNodes> above{};  // reflexive, transitive
  for (int i = 0; i < kNodes; ++i) above[i] = 1u << i;
  for (int round = 0; round < kNodes; ++round) {
    for (const Edge& e : edges) above[e.from] |= above[e.to];
  }
  Table table;
  for (int a = 0; a < kNodes; ++a) {
    for (int b = 0; b < kNodes; ++b) {
      const uint32_t common = above[a] & above[b];
      table[a][b] = -1;
      for (int j = 0; j < kNodes; ++j) {
        if ((common >> j & 1) && above[j] == common) table[a][b] = static_cast<int8_t>(j);
      }
      WEFT_CHECK(table[a][b] >= 0) << "the promotion order is not a lattice at " << a << ", " << b;
    }
  }
  return table;
}

int NodeOf(WeakDType t) {
  if (!t.weak) return Id(t.dtype);
  if (IsInteger(t.dtype)) return kWeakInt;
  if (IsComplex(t.dtype)) return kWeakComplex;
  if (IsFloat(t.dtype)) return kWeakFloat;
  return Id(t.dtype);
}

// Types that join no others by themselves: those that are only stored, and keys.
bool IsApart(DType t) { return IsStored(t) || IsOpaque(t); }

// What such a type takes all the same: booleans and Python's integers; floats of 8 bits also all other integers and
// Python's floats.
bool Takes(DType t, WeakDType other) {
  if (IsOpaque(t) || IsApart(other.dtype)) return false;
  if (IsBool(other.dtype) || (IsInteger(other.dtype) && other.weak)) return true;
  return IsFloat(t) && (IsInteger(other.dtype) || (IsFloat(other.dtype) && other.weak));
}

// Integers, floats, complex numbers; booleans are none of them.
int KindOf(DType t) { return IsComplex(t) ? 3 : IsFloat(t) ? 2 : IsInteger(t) ? 1 : 0; }

// Without promotion only Python's numbers take another dtype, of their kind or a wider one.
void CheckStrictly(WeakDType a, WeakDType b) {
  if (a.dtype == b.dtype || (a.weak && b.weak)) return;
  const WeakDType &weak = a.weak ? a : b, &strong = a.weak ? b : a;
  if (weak.weak && KindOf(weak.dtype) > 0 && KindOf(weak.dtype) <= KindOf(strong.dtype)) return;
  if (IsOwnCode()) return;
  throw NoPromotion(
      "dtypes ", a.dtype, a.weak ? " (of a Python number)" : "", " and ", b.dtype,
      b.weak ? " (of a Python number)" : "",
      " meet, and numpy_dtype_promotion is 'strict', so none is converted: convert one of them with astype, "
      "or set numpy_dtype_promotion to 'standard'");
}

}  // namespace

bool X64() { return On(Setting::kX64); }
DType DefaultFloat() { return X64() ? DType::kF64 : DType::kF32; }
DType DefaultInt() { return X64() ? DType::kI64 : DType::kI32; }
DType DefaultComplex() { return X64() ? DType::kC128 : DType::kC64; }
DType Canonical(DType dtype) {
  if (!On(Setting::kJaxSemantics) || X64()) return dtype;
  switch (dtype) {
    case DType::kF64: return DType::kF32;
    case DType::kI64: return DType::kI32;
    case DType::kU64: return DType::kU32;
    case DType::kC128: return DType::kC64;
    default: return dtype;
  }
}

WeakDType Promote(WeakDType a, WeakDType b) {
  if (a == b) [[likely]]
    return a;
  if (On(Setting::kStrictPromotion)) CheckStrictly(a, b);
  static const Table table = MakeTable();
  const int na = NodeOf(a), nb = NodeOf(b);
  if (IsApart(a.dtype) || IsApart(b.dtype)) {
    if (a.dtype == b.dtype) return {a.dtype, a.weak && b.weak};
    if (Takes(a.dtype, b)) return {a.dtype, false};
    if (Takes(b.dtype, a)) return {b.dtype, false};
    // JAX says so by the class of errors that numpy_dtype_promotion has.
    const bool keys = IsOpaque(a.dtype) || IsOpaque(b.dtype);
    constexpr const char* kRemedy = ": convert one of them with astype";
    if (On(Setting::kJaxSemantics) && !keys)
      throw NoPromotion("no common dtype for ", a.dtype, " and ", b.dtype, kRemedy);
    throw TypeError("no common dtype for ", a.dtype, " and ", b.dtype, kRemedy);
  }
  const int node = table[na][nb];
  if (node < kWeakInt) {
    const auto both = static_cast<DType>(node);
    // i32 and u32 meet in i64, which programs under JAX's semantics have only where they ask for it.
    const bool given = Canonical(a.dtype) != a.dtype || Canonical(b.dtype) != b.dtype;
    return {given ? both : Canonical(both), false};
  }
  // A weak result keeps the dtype of a weak operand of the same kind, so that x64 values stay 64-bit.
  auto kind_is = [&](WeakDType t) { return NodeOf(t) == node; };
  const bool ka = kind_is(a), kb = kind_is(b);
  if (ka && kb) return {a.dtype > b.dtype ? a.dtype : b.dtype, true};
  if (ka) return a;
  if (kb) return b;
  if (node == kWeakInt) return {DefaultInt(), true};
  if (node == kWeakFloat) return {DefaultFloat(), true};
  return {DefaultComplex(), true};
}

WeakDType ToInexact(WeakDType t) {
  if (IsInexact(t.dtype)) return t;
  if (!t.weak && (t.dtype == DType::kI64 || t.dtype == DType::kU64)) return {DType::kF64, false};
  if (!t.weak && On(Setting::kJaxSemantics)) return {DType::kF32, false};
  return {DefaultFloat(), t.weak && !IsBool(t.dtype)};
}

}  // namespace weft
