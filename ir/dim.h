// A dimension: a constant, or a polynomial over named symbols with integer coefficients.
//
//   Dim n = Dim::Symbol("n");
//   Type{DType::kF32, {n, 784}}            // f32[n,784]
//   (n * 2 + 1).Evaluate({{"n", 4}})       // 9
//
// The static case is one integer and a null pointer. How a symbolic size is represented is private to this file.
#ifndef WEFT_IR_DIM_H_
#define WEFT_IR_DIM_H_

#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace weft {

class Dim {
 public:
  Dim() = default;
  Dim(int64_t size) : constant_(size) {}  // NOLINT: a plain integer is a dimension
  static Dim Symbol(const std::string& name);
  // "n", "2*n+1", "64". Nullopt when malformed.
  static std::optional<Dim> Parse(const std::string& text);

  bool is_static() const { return terms_ == nullptr; }
  // The size of a static dimension; raises kUnsupported naming `what` for a symbolic one.
  int64_t value(const char* what = "this operation") const;
  std::optional<int64_t> TryValue() const { return is_static() ? std::optional<int64_t>(constant_) : std::nullopt; }

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  // a / b when the division is exact for every value of the symbols.
  static std::optional<Dim> ExactQuotient(const Dim& a, const Dim& b);
  // Whether it is at least `size` for every value of the symbols, which are 0 or more; false also where that is not
  // plain from the signs of the coefficients.
  bool AtLeast(int64_t size) const;
  // True only when equal for every value of the symbols.
  friend bool operator==(const Dim& a, const Dim& b) { return a.constant_ == b.constant_ && a.terms_ == b.terms_; }

  // The size once every symbol has a value; raises kValue naming a missing symbol.
  int64_t Evaluate(const std::map<std::string, int64_t>& symbols) const;
  // Replaces the symbols that have an entry.
  Dim Substitute(const std::map<std::string, Dim>& symbols) const;
  // The symbols that occur, in name order.
  std::vector<std::string> Symbols() const;
  // For this dimension being `size`: the value of its only symbol, if this is linear in exactly one symbol.
  std::optional<std::pair<std::string, Dim>> Solve(const Dim& size) const;
  // Sum of coefficient * product of symbols, for code generators; the constant is a term without symbols.
  struct Term {
    int64_t coefficient = 0;
    std::vector<std::string> symbols;
  };
  std::vector<Term> Terms() const;

  std::string ToString() const;
  template <class H>
  friend H AbslHashValue(H h, const Dim& d) {
    return H::combine(std::move(h), d.constant_, d.terms_);  // polynomials are interned
  }
  friend std::ostream& operator<<(std::ostream& out, const Dim& d) { return out << d.ToString(); }

 private:
  using Monomial = std::vector<std::string>;          // sorted symbols, with repetition
  using Polynomial = std::map<Monomial, int64_t>;     // non-constant terms only, coefficients not zero
  static const Polynomial* Intern(Polynomial terms);  // null when empty
  static Dim Make(int64_t constant, Polynomial terms);
  Polynomial terms() const { return terms_ ? *terms_ : Polynomial{}; }

  int64_t constant_ = 0;
  const Polynomial* terms_ = nullptr;
};

using Dims = absl::InlinedVector<Dim, 4>;

std::string ToString(const Dims& dims);  // "8,n"
Dim NumElements(const Dims& dims);
bool IsStatic(const Dims& dims);
// Sizes of static dims; raises kUnsupported naming `what` otherwise.
std::vector<int64_t> StaticSizes(const Dims& dims, const char* what);

}  // namespace weft
#endif  // WEFT_IR_DIM_H_
