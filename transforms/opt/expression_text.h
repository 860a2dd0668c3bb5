// Values as expressions, for explanations: "log(1 + exp(x))".
#ifndef WEFT_TRANSFORMS_OPT_EXPRESSION_TEXT_H_
#define WEFT_TRANSFORMS_OPT_EXPRESSION_TEXT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>

#include "ir/fn.h"

namespace weft {

// Writes values with letters for those that it does not look into: x, y, z, w, v, u, then x1, x2 ... Equal letters
// stand for one value in all that it writes.
class ExpressionText {
 public:
  // The equation that makes a value; null: none that is known.
  using Definition = std::function<const Eqn*(const Atom&)>;
  explicit ExpressionText(Definition definition) : definition_(std::move(definition)) {}

  // Looks `depth` equations deep, and not into values that have letters.
  std::string Of(const Atom& value, int depth);
  // Of what an equation computes; `x`: its operands.
  std::string Of(const Eqn& e, const Atoms& x, int depth);
  // Gives letters to all values that an expression of it would end at: those below `first_id`.
  void Name(const Atom& value, uint32_t first_id, int depth);

 private:
  std::string Letter(const Atom& value);
  std::string Write(const Atom& value, int depth, int around);
  std::string Write(const Eqn& e, const Atoms& x, int depth, int around);

  Definition definition_;
  std::unordered_map<uint32_t, std::string> letters_;
};

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_EXPRESSION_TEXT_H_
