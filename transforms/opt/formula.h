// Rules of simplification that are written as formulas:
//
//   {"log1p", "log(1 + x)", "log1p(x)"}
//
// A formula is an expression in Python's syntax: + - * / ** (with a whole number), comparisons, and primitives by their
// names. In a pattern
//   w, x, y, z  are any operands; where a letter stands twice the operands are the same,
//   a, b, c, d  are numbers that repeat (literals), and stand for them in the replacement and the condition,
//   operands of + and * are found in either order,
//   x ** 2 is found as square, integer_pow, pow or x * x; x - 1 as x + -1; 0.5 * x as x / 2; 1 / x as x ** -1 too.
// In a replacement wide(x) is x in f64; what is computed from it is rounded to the result's dtype once, at the end.
// wide(x, -340, 340) is held between these numbers; a rule that has it is none of f64.
// Numbers are computed in double and rounded once.
#ifndef WEFT_TRANSFORMS_OPT_FORMULA_H_
#define WEFT_TRANSFORMS_OPT_FORMULA_H_

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/builder.h"

namespace weft {

inline constexpr int kFormulaLetters = 4;  // of each kind

// What a pattern's letters stand for.
struct FormulaMatch {
  std::array<std::optional<Atom>, kFormulaLetters> operands;
  std::array<std::optional<double>, kFormulaLetters> numbers;
};

class Formula {
 public:
  // Raises kValue where the text is no formula, naming the text and what was expected.
  explicit Formula(const std::string& text);
  ~Formula();
  Formula(Formula&&) noexcept;

  // The primitives of the equations that may be its outermost operation, as it is written first.
  std::vector<const Prim*> Roots() const;
  // A primitive that makes an operand of the outermost operation wherever the pattern is found; null: there is none.
  const Prim* Key() const;
  // Whether equation `e`, with operands `x` in `b`, is this pattern.
  bool Matches(const Builder& b, const Eqn& e, const Atoms& x, FormulaMatch* match) const;
  // Its value as an atom of `b`, of dtype `dtype`.
  Atom Emit(Builder& b, const FormulaMatch& match, DType dtype) const;
  // The value of a formula of numbers alone. A comparison is 1 or 0.
  double Number(const FormulaMatch& match) const;
  // Which letters occur.
  bool HasOperand(int i) const;
  bool HasNumber(int i) const;
  // Equal for formulas that differ in wide() alone; empty where that has bounds.
  std::string TextOfOneDtype() const;

  struct Node;

 private:
  std::unique_ptr<Node> node_;
};

// The scalar literal that `a` repeats: a literal of rank 0, the broadcast of one, or an array of floating-point
// numbers that are one. Null if there is none; valid until the next equation.
const Atom* Splat(const Builder& b, const Atom& a);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_FORMULA_H_
