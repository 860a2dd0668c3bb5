#include "base/dtype.h"

namespace weft {
namespace {

struct Row {
  const char* name;
  int bytes;
};
constexpr Row kRows[kNumDTypes] = {
    {"bool", 1},  {"i8", 1},       {"i16", 2},    {"i32", 4},  {"i64", 8},  {"u8", 1},  {"u16", 2},
    {"u32", 4},   {"u64", 8},      {"f16", 2},    {"bf16", 2}, {"f32", 4},  {"f64", 8}, {"c64", 8},
    {"c128", 16}, {"f8e4m3fn", 1}, {"f8e5m2", 1}, {"key", 8},  {"tape", 8},
};

}  // namespace

const char* Name(DType dtype) { return kRows[static_cast<int>(dtype)].name; }
int ByteWidth(DType dtype) { return kRows[static_cast<int>(dtype)].bytes; }

std::optional<DType> ParseDType(const std::string& name) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (name == kRows[i].name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

DType RealPart(DType dtype) {
  if (dtype == DType::kC64) return DType::kF32;
  if (dtype == DType::kC128) return DType::kF64;
  return dtype;
}

std::optional<DType> ComplexOf(DType dtype) {
  if (dtype == DType::kF32) return DType::kC64;
  if (dtype == DType::kF64) return DType::kC128;
  return std::nullopt;
}

std::string DTypeSet::ToString() const {
  std::string text;
  for (int i = 0; i < kNumDTypes; ++i) {
    if (!Has(static_cast<DType>(i))) continue;
    if (!text.empty()) text += "|";
    text += kRows[i].name;
  }
  return text;
}

}  // namespace weft
