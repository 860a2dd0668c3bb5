// A linear expression over the loop variables of a kernel, with coefficients that may be symbolic sizes.
//
//   Affine offset = Affine::Var(0) * n + Affine::Var(1);     // row-major position of (i, j) in an array [m, n]
#ifndef WEFT_LOWERING_KERNEL_AFFINE_H_
#define WEFT_LOWERING_KERNEL_AFFINE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/dim.h"

namespace weft {

class Affine {
 public:
  Affine() = default;
  Affine(Dim constant) : constant_(std::move(constant)) {}  // NOLINT: a size is an expression
  static Affine Var(int v) {
    Affine a;
    a.terms_.emplace_back(v, Dim(1));
    return a;
  }

  const Dim& constant() const { return constant_; }
  const std::vector<std::pair<int, Dim>>& terms() const { return terms_; }  // sorted by variable, no zero
  Dim Coefficient(int v) const;
  bool IsZero() const { return terms_.empty() && constant_ == Dim(0); }
  // The variable when the expression is exactly one variable, else -1.
  int AsVar() const {
    return terms_.size() == 1 && terms_[0].second == Dim(1) && constant_ == Dim(0) ? terms_[0].first : -1;
  }
  uint64_t VarMask() const;

  friend Affine operator+(const Affine& a, const Affine& b);
  friend Affine operator*(const Affine& a, const Dim& factor);
  friend bool operator==(const Affine& a, const Affine& b) {
    return a.constant_ == b.constant_ && a.terms_ == b.terms_;
  }
  // Replaces variable v by replacement[v].
  Affine Substitute(const std::vector<Affine>& replacement) const;
  std::string ToString() const;

 private:
  Dim constant_ = 0;
  std::vector<std::pair<int, Dim>> terms_;
};

}  // namespace weft
#endif  // WEFT_LOWERING_KERNEL_AFFINE_H_
