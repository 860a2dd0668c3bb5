// What rewriting may change of a program's results: licences, and which of them the code of this thread gives.
//
//   const ScopedLicences scope(Licences::Named({"exact"}));   // jit(licence="exact"): no rule that changes a bit
//   if (CurrentLicences().Allow(rule.licence)) ...
#ifndef WEFT_IR_LICENCES_H_
#define WEFT_IR_LICENCES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

enum class Licence : uint8_t {
  kExact,        // no bit changes, but a NaN's payload
  kSignedZero,   // the sign of a zero
  kAccurate,     // other roundings, shown to be at least as accurate over the whole range, within the rule's bound
  kProducts,     // products and sums of them in another order: errors are within the bound of all that is written
  kRounding,     // fewer or other roundings: as accurate where nothing cancels, or at a cost
  kNoNan,        // right where every value is finite and every function is inside its domain
  kReassociate,  // sums and products in another order
};
inline constexpr int kNumLicences = 7;
const char* Name(Licence licence);

class Licences {
 public:
  // What programs are compiled with unless they say otherwise: exact, signed-zero, accurate, products.
  constexpr Licences() = default;
  // Those of these names and what each of them includes: "signed-zero" includes "exact", "accurate" both of them,
  // "products" these three, and the others all four. Raises kValue for a name that there is not.
  static Licences Named(const std::vector<std::string>& names);
  // As AppendKey of caches and a request's serialisation have it.
  static constexpr Licences OfBits(uint8_t bits) { return Licences(bits); }
  constexpr uint8_t bits() const { return bits_; }

  constexpr bool Allow(Licence licence) const { return (bits_ >> static_cast<int>(licence) & 1) != 0; }
  constexpr Licences Without(Licence licence) const {
    return Licences(static_cast<uint8_t>(bits_ & ~(1U << static_cast<int>(licence))));
  }
  friend constexpr bool operator==(Licences a, Licences b) { return a.bits_ == b.bits_; }
  std::string ToString() const;

 private:
  explicit constexpr Licences(uint8_t bits) : bits_(bits) {}
  uint8_t bits_ = 0b1111;
};

// Of this thread: of the innermost scope, or the default.
Licences CurrentLicences();

class ScopedLicences {
 public:
  explicit ScopedLicences(Licences licences);
  ~ScopedLicences();
  ScopedLicences(const ScopedLicences&) = delete;

 private:
  Licences before_;
};

}  // namespace weft
#endif  // WEFT_IR_LICENCES_H_
