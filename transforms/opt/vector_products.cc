#include "transforms/opt/vector_products.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "ir/licences.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/contraction.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/rule_watch.h"

namespace weft {
namespace {

// An array whose dimensions have letters.
struct Factor {
  Atom atom;
  std::string letters;
};

bool Has(const std::string& letters, char c) { return letters.find(c) != std::string::npos; }

class Product {
 public:
  Product(Builder& b, const Eqn& e, const Atoms& operands)
      : b_(b),
        spec_(ContractSpec::Parse(e.attrs.Get<std::string>("spec"))),
        x_{operands[0], spec_.lhs},
        y_{operands[1], spec_.rhs},
        result_(b.TypeOf(operands[0]).dtype) {}

  std::optional<Atom> AsSum() {
    const Type &x = b_.TypeOf(x_.atom), &y = b_.TypeOf(y_.atom);
    const bool counts = IsFloat(x.dtype) || (IsInteger(x.dtype) && ByteWidth(x.dtype) >= 4);
    if (!counts || x.dtype != y.dtype || x.varying != y.varying) return std::nullopt;
    for (const auto& [type, letters] : {std::pair(&x, spec_.lhs), std::pair(&y, spec_.rhs)}) {
      for (size_t d = 0; d < letters.size(); ++d) {
        if (type->dims[d] == Dim(0)) return std::nullopt;
        if (type->dims[d] == Dim(1)) ones_ += letters[d];
      }
    }
    if (OwnAreOnes(x_, y_)) return Sum(y_, x_);
    if (OwnAreOnes(y_, x_)) return Sum(x_, y_);
    if (SummedAreOnes()) return Outer();
    return std::nullopt;
  }

 private:
  // Whether all dimensions that the other factor lacks have one element.
  bool OwnAreOnes(const Factor& f, const Factor& other) const {
    return std::all_of(f.letters.begin(), f.letters.end(),
                       [&](char c) { return Has(other.letters, c) || Has(ones_, c); });
  }
  bool SummedAreOnes() const {
    return std::all_of(spec_.lhs.begin(), spec_.lhs.end(), [&](char c) { return Has(spec_.out, c) || Has(ones_, c); });
  }

  Dims DimsOf(const std::string& letters) const {
    Dims dims;
    for (char c : letters) {
      const size_t in_x = spec_.lhs.find(c);
      dims.push_back(in_x != std::string::npos ? b_.TypeOf(x_.atom).dims[in_x]
                                               : b_.TypeOf(y_.atom).dims[spec_.rhs.find(c)]);
    }
    return dims;
  }
  // With the dimensions of these letters, in this order: along those that it lacks the same, and of those that it has
  // besides, one element is all there is.
  Atom Arranged(const Factor& f, const std::string& to) const {
    std::string kept;
    for (char c : f.letters) {
      if (Has(to, c)) kept += c;
    }
    const Atom some = kept == f.letters ? f.atom : Reshape(b_, f.atom, DimsOf(kept));
    Ints perm, places;
    std::string order;
    for (size_t d = 0; d < to.size(); ++d) {
      if (!Has(kept, to[d])) continue;
      perm.push_back(static_cast<int64_t>(kept.find(to[d])));
      places.push_back(static_cast<int64_t>(d));
      order += to[d];
    }
    const Atom arranged = order == kept ? some : Transpose(b_, some, perm);
    return Broadcast(b_, arranged, DimsOf(to), places);
  }
  Factor InItsMemory(const Factor& f) const {
    const Eqn* const moved = b_.Definition(f.atom);
    if (moved == nullptr || !Is<"transpose">(*moved->prim)) return f;
    std::string letters(f.letters.size(), ' ');
    const Ints& perm = moved->attrs.Get<Ints>("perm");
    for (size_t d = 0; d < perm.size(); ++d) letters[static_cast<size_t>(perm[d])] = f.letters[d];
    return {moved->operands[0], letters};
  }
  Factor Counted(const Factor& f) const {
    return ByteWidth(result_) >= 4 ? f : Factor{Convert(b_, f.atom, DType::kF32), f.letters};
  }

  // Each number of `matrix` by one of `vector`, in the order in which the matrix lies in memory.
  Atom Sum(const Factor& matrix, const Factor& vector) const {
    const Factor m = Counted(InItsMemory(matrix));
    const std::string order = WithDimensionsOfResult(m.letters);
    const Atom product = Mul(b_, Arranged(m, order), Arranged(Counted(vector), order));
    Ints summed;
    std::string kept;
    for (size_t d = 0; d < order.size(); ++d) {
      if (Has(spec_.out, order[d]))
        kept += order[d];
      else
        summed.push_back(static_cast<int64_t>(d));
    }
    return Convert(b_, Arranged({ReduceSum(b_, product, summed), kept}, spec_.out), result_);
  }
  // With the dimensions of one element that the result has besides, where it has them: so the sum is the result.
  std::string WithDimensionsOfResult(const std::string& letters) const {
    std::string order;
    size_t at = 0;  // in the result
    for (char c : letters) {
      if (const size_t place = spec_.out.find(c); place != std::string::npos) {
        for (; at < place; ++at) {
          if (!Has(letters, spec_.out[at])) order += spec_.out[at];
        }
      }
      order += c;
    }
    for (; at < spec_.out.size(); ++at) {
      if (!Has(letters, spec_.out[at])) order += spec_.out[at];
    }
    return order;
  }
  Atom Outer() const {
    return Convert(b_, Mul(b_, Arranged(Counted(x_), spec_.out), Arranged(Counted(y_), spec_.out)), result_);
  }

  Builder& b_;
  const ContractSpec spec_;
  const Factor x_, y_;
  const DType result_;
  std::string ones_;  // letters of dimensions with one element
};

}  // namespace

FnRef VectorProductsAsSums(FnRef fn) {
  if (!CurrentLicences().Allow(Licence::kProducts)) return fn;
  // Without another dtype or order of the sum.
  const auto is_product = [](const Eqn& e) { return Is<"contract">(*e.prim) && e.attrs.entries().size() == 1; };
  const bool any =
      AnyFunction(*fn, [&](const Fn& f) { return std::any_of(f.eqns().begin(), f.eqns().end(), is_product); });
  if (!any) return fn;
  return Rewrite(std::move(fn), [&](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
    if (!is_product(e)) return std::nullopt;
    const std::optional<Atom> sum =
        RuleWatch::Try(kVectorProduct, b, e, operands, [&] { return Product(b, e, operands).AsSum(); });
    return sum ? std::optional<Atoms>(Atoms{*sum}) : std::nullopt;
  });
}

}  // namespace weft
