#include "lowering/kernel/affine.h"

#include "ir/error.h"

namespace weft {

Dim Affine::Coefficient(int v) const {
  for (const auto& [var, c] : terms_) {
    if (var == v) return c;
  }
  return 0;
}

uint64_t Affine::VarMask() const {
  uint64_t mask = 0;
  for (const auto& [var, c] : terms_) mask |= uint64_t{1} << var;
  return mask;
}

Affine operator+(const Affine& a, const Affine& b) {
  Affine sum;
  sum.constant_ = a.constant_ + b.constant_;
  size_t i = 0, j = 0;
  while (i < a.terms_.size() || j < b.terms_.size()) {
    if (j == b.terms_.size() || (i < a.terms_.size() && a.terms_[i].first < b.terms_[j].first)) {
      sum.terms_.push_back(a.terms_[i++]);
    } else if (i == a.terms_.size() || b.terms_[j].first < a.terms_[i].first) {
      sum.terms_.push_back(b.terms_[j++]);
    } else {
      Dim c = a.terms_[i].second + b.terms_[j].second;
      if (!(c == Dim(0))) sum.terms_.emplace_back(a.terms_[i].first, c);
      ++i, ++j;
    }
  }
  return sum;
}

Affine operator*(const Affine& a, const Dim& factor) {
  if (factor == Dim(0)) return Affine();
  Affine product;
  product.constant_ = a.constant_ * factor;
  for (const auto& [var, c] : a.terms_) product.terms_.emplace_back(var, c * factor);
  return product;
}

Affine Affine::Substitute(const std::vector<Affine>& replacement) const {
  Affine sum(constant_);
  for (const auto& [var, c] : terms_) {
    WEFT_CHECK(var < static_cast<int>(replacement.size())) << "Affine::Substitute: no replacement for variable " << var;
    sum = sum + replacement[var] * c;
  }
  return sum;
}

std::string Affine::ToString() const {
  std::string text;
  for (const auto& [var, c] : terms_) {
    if (!text.empty()) text += " + ";
    text += "i" + std::to_string(var);
    if (!(c == Dim(1))) text += "*(" + c.ToString() + ")";
  }
  if (text.empty() || !(constant_ == Dim(0))) text += (text.empty() ? "" : " + ") + constant_.ToString();
  return text;
}

}  // namespace weft
