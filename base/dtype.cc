#include "base/dtype.h"

namespace weft {
std::optional<DType> ParseDType(const std::string& name) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (name == kDTypeRows[i].name) return static_cast<DType>(i);
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
    text += kDTypeRows[i].name;
  }
  return text;
}

}  // namespace weft
