// How values lie along the axes of a mesh whose types say it (weft.AxisType.Explicit): what an operation gives follows
// from its operands alone, in program order, by its sharding rule (ir/analysis/sharding_rules.h), and where it does not
// the program has to say it.
#ifndef WEFT_TRANSFORMS_SHARD_EXPLICIT_TYPES_H_
#define WEFT_TRANSFORMS_SHARD_EXPLICIT_TYPES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ir/error.h"
#include "ir/fn.h"
#include "transforms/shard/reshard.h"

namespace weft {

// Operands that do not lie as an operation needs them, or leave open how its result lies. kValue, with the line.
class ShardingTypeError : public Error {
 public:
  ShardingTypeError(std::string message, Loc loc) : Error(ErrorKind::kValue, std::move(message), loc) {}
};

// A sum in parts where an operation is not linear: nothing is computed from parts.
class NotLinearError : public ShardingTypeError {
 public:
  using ShardingTypeError::ShardingTypeError;
};

// What a type says of where its value lies. Other than a Layout it names axes of size 1.
struct TypedLayout {
  std::vector<std::vector<int>> dims;  // the axes of each dimension, major first
  uint32_t unreduced = 0;              // along these devices hold parts of a sum
  uint32_t reduced = 0;                // along these all devices have it, and its cotangent is a sum
  uint32_t widened = 0;                // along these it counts as one that differs, as an operation needs it
  bool open = false;                   // nobody said anything: a number, an array that lies on no device
  friend bool operator==(const TypedLayout& a, const TypedLayout& b) {
    return a.dims == b.dims && a.unreduced == b.unreduced && a.reduced == b.reduced;
  }
};
using TypedLayouts = std::vector<TypedLayout>;

class ExplicitTypes {
 public:
  // `said`: the axes whose types say it; `devices`: those over which a shard_map runs here, along which types say what
  // is a sum in parts alone. The mesh outlives this.
  ExplicitTypes(const Mesh& mesh, uint32_t said, uint32_t devices = 0)
      : mesh_(mesh), said_(said), devices_(devices & ~said) {}

  TypedLayout Open(int rank) const;
  // With the axes in `said` alone, and sums along those of the devices.
  TypedLayout Said(TypedLayout l) const;
  TypedLayout Of(const Sharding& sharding, const Strings& unreduced, const Strings& reduced) const;

  // Where the operands' types do not tell how the results lie: a strict equation raises ShardingTypeError, another one
  // (a derivative's, say, which nobody wrote) has whole results where it is open.
  struct Context {
    std::function<const Type&(const Atom&)> type_of;
    bool strict = true;
    bool said_later = false;  // constraints say how the results lie
  };
  TypedLayouts OfEqn(const Eqn& e, const TypedLayouts& operands, const Context& context) const;
  TypedLayouts Results(const Fn& fn, const TypedLayouts& params, bool strict) const;
  // Of all variables.
  TypedLayouts Vars(const Fn& fn, const TypedLayouts& params, bool strict) const;

 private:
  TypedLayouts Whole(const Eqn& e, const Context& context) const;
  TypedLayouts OfDevices(const Eqn& e, const Context& context) const;
  TypedLayouts OfConstraint(const Eqn& e, const TypedLayout& operand) const;
  TypedLayouts OfBranches(const Eqn& e, const TypedLayouts& operands, const Context& context) const;
  TypedLayouts OfScan(const Eqn& e, const TypedLayouts& operands, const Context& context) const;
  TypedLayouts OfWhile(const Eqn& e, const TypedLayouts& operands, const Context& context) const;
  TypedLayouts OfRule(const Eqn& e, const TypedLayouts& operands, const Context& context) const;
  void OfSums(const Eqn& e, const TypedLayouts& operands, const Context& context, TypedLayouts& results) const;
  void OfCollective(const Eqn& e, const TypedLayouts& operands, TypedLayouts& results) const;
  void SameCarry(const Eqn& e, size_t i, const TypedLayout& before, const TypedLayout& after, bool strict) const;
  std::string Text(const std::vector<int>& axes) const;
  std::string Text(uint32_t axes) const;
  std::string Text(const TypedLayout& l) const;
  std::string Text(const TypedLayouts& layouts) const;
  int64_t Blocks(const std::vector<int>& axes) const;

  const Mesh& mesh_;
  const uint32_t said_;
  const uint32_t devices_;
};

// The same function with a sharding_constraint after each equation that says what the types of its results say.
FnRef WithTypedConstraints(const FnRef& fn, const Mesh& mesh, uint32_t said, const TypedLayouts& params);

// Of each equation of `eqns` from `first` on: whether all that reads its results are constraints, and something does.
// `results`: what the function returns, as far as it is known.
std::vector<bool> SaidLater(const Eqns& eqns, size_t first, const Atoms& results);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_SHARD_EXPLICIT_TYPES_H_
