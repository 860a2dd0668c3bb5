// The parts of a while equation.
#ifndef WEFT_IR_PRIMS_CONTROL_WHILE_H_
#define WEFT_IR_PRIMS_CONTROL_WHILE_H_

#include "ir/prims/control/regions.h"

namespace weft {

struct While {
  size_t carries, operands, results;  // results of the body: carries, then rows
  Ints tape_dims;                     // attribute `lanes`: of each row, how many leading dimensions have a tape each
  FnRef cond, body;

  explicit While(const Attrs& attrs, const std::vector<FnRef>& regions)
      : carries(static_cast<size_t>(attrs.GetInt("num_carry"))),
        operands(regions[1]->params().size()),
        results(regions[1]->results().size()),
        tape_dims(attrs.GetOr<Ints>("lanes", {})),
        cond(regions[0]),
        body(regions[1]) {}
  template <class L>
  L Carries(const L& l) const {
    return Part(l, 0, carries);
  }
  template <class L>
  L Invariants(const L& l) const {
    return Part(l, carries, operands);
  }
  template <class L>
  L Rows(const L& l) const {
    return Part(l, carries, results);
  }
  // The body's carries forced to `carry`, its rows left as they are.
  Mask ForceCarries(Mask carry) const {
    carry.resize(results, false);
    return carry;
  }
};

// The attributes of a loop like one with `like`.
inline Attrs WhileAttrs(const Attrs& like, size_t num_carry, const Ints& tape_dims) {
  Attrs attrs = {{"num_carry", static_cast<int64_t>(num_carry)}};
  if (const Attr* strategy = like.Find("strategy")) attrs.Set("strategy", *strategy);
  if (!tape_dims.empty()) attrs.Set("lanes", tape_dims);
  return attrs;
}

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTROL_WHILE_H_
