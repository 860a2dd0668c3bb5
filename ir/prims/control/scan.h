// The parts of a scan or tape_scan equation.
#ifndef WEFT_IR_PRIMS_CONTROL_SCAN_H_
#define WEFT_IR_PRIMS_CONTROL_SCAN_H_

#include "ir/prims/control/regions.h"
#include "ir/prims/control/tapes.h"

namespace weft {

inline const Dim& OneLength(const Dims& length) {
  if (length.size() != 1 || (length[0].is_static() && length[0].value() < 0)) {
    throw ValueError("scan: length=<", ToString(length), ">; expected one size of 0 or more");
  }
  return length[0];
}

// The parts of the operands (but for the trip count of tape_scan, see Rest), results and attributes.
struct Scan {
  bool taped;  // tape_scan
  size_t consts, carries;
  Dim length;      // of scan
  Ints tape_dims;  // of tape_scan (attribute `lanes`): for each y, how many leading dimensions have a tape each
  bool reverse;
  FnRef body;
  size_t operands, results;

  Scan(const Prim& prim, const Attrs& attrs, const FnRef& region)
      : taped(prim.region_use == RegionUse::kUncounted),
        consts(static_cast<size_t>(attrs.GetInt("num_consts"))),
        carries(static_cast<size_t>(attrs.GetInt("num_carry"))),
        length(taped ? Dim(0) : OneLength(attrs.Get<Dims>("length"))),
        tape_dims(taped ? attrs.Get<Ints>("lanes") : Ints{}),
        reverse(attrs.GetBool("reverse")),
        body(region),
        operands(region->params().size()),
        results(region->results().size()) {
    for (const char* name : {"num_consts", "num_carry"}) {
      const int64_t count = attrs.GetInt(name);
      if (count < 0 || count > static_cast<int64_t>(operands)) {
        throw ValueError(prim.name, ": ", name, "=", count, " does not fit a body of ", operands, " parameters");
      }
    }
  }

  size_t first_x() const { return consts + carries; }
  // Operands of the equation before those of the body.
  size_t lead() const { return taped ? 1 : 0; }
  template <class L>
  L Rest(const L& l) const {
    return Part(l, lead(), l.size());
  }
  template <class L>
  L Consts(const L& l) const {
    return Part(l, 0, consts);
  }
  template <class L>
  L Carries(const L& l) const {
    return Part(l, consts, first_x());
  }
  template <class L>
  L Xs(const L& l) const {
    return Part(l, first_x(), operands);
  }
  template <class L>
  L CarriesOut(const L& l) const {
    return Part(l, 0, carries);
  }
  template <class L>
  L Ys(const L& l) const {
    return Part(l, carries, results);
  }
  // The attributes of a loop like this one.
  Attrs With(size_t num_consts, size_t num_carries, Ints y_tape_dims, bool backwards) const {
    Attrs attrs = {{"num_consts", static_cast<int64_t>(num_consts)},
                   {"num_carry", static_cast<int64_t>(num_carries)},
                   {"reverse", backwards}};
    if (taped)
      attrs.Set("lanes", std::move(y_tape_dims));
    else
      attrs.Set("length", Dims{length});
    return attrs;
  }
  // The type of all steps' values together, for a y or x of type `slice`.
  Type Stacked(const Type& slice, int64_t tape_dims) const {
    if (taped) return TapeOf(slice, tape_dims);
    Type t = slice;
    t.dims.insert(t.dims.begin(), length);
    return t;
  }
};

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTROL_SCAN_H_
