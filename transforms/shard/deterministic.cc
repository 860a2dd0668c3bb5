#include "transforms/shard/deterministic.h"

#include <algorithm>
#include <unordered_map>

#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/contraction.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

constexpr int64_t kLeaves = 16;

// How many terms of n are added up one after the other.
int64_t LeafOf(int64_t n) {
  int64_t leaves = 1;
  while (leaves < kLeaves && n % (2 * leaves) == 0 && n > 0) leaves *= 2;
  return std::max<int64_t>(1, n / leaves);
}

bool Narrow(DType t) { return IsInexact(t) && !IsComplex(t) && ByteWidth(t) < 4; }

// The sum over one dimension, in 32 bits at least: a contraction with ones.
Atom SumOf(Builder& b, const Atom& x, int64_t dim) {
  const Type type = b.TypeOf(x);
  std::string letters;
  for (int d = 0; d < type.rank(); ++d) letters += static_cast<char>('a' + d);
  const std::string along(1, letters[static_cast<size_t>(dim)]);
  std::string rest = letters;
  rest.erase(static_cast<size_t>(dim), 1);
  const Dim n = type.dims[static_cast<size_t>(dim)];
  const Atom ones = Broadcast(b, Atom::Scalar(type.dtype, 1), {n}, {});
  const bool rows = dim == type.rank() - 1;  // of columns, one row of the array after the other is added
  const std::string spec = rows ? letters + "," + along + "->" + rest : along + "," + letters + "->" + rest;
  Attrs attrs{{"spec", spec}, {"along", along}, {"leaf", LeafOf(n.value("a deterministic sum"))}};
  if (Narrow(type.dtype)) attrs.Set("dtype", DType::kF32);
  return b.Emit1(FindPrim("contract"), rows ? Atoms{x, ones} : Atoms{ones, x}, attrs);
}

Atom Contraction(Builder& b, const Eqn& e, const Atoms& x) {
  const ContractSpec spec = ContractSpec::Parse(e.attrs.Get<std::string>("spec"));
  const DType result = e.attrs.Find("dtype") != nullptr ? e.attrs.Get<DType>("dtype") : b.DTypeOf(x[0]);
  std::string along;
  int64_t leaf = 1;
  for (size_t d = 0; d < spec.lhs.size() && along.empty(); ++d) {
    if (spec.out.find(spec.lhs[d]) != std::string::npos) continue;
    along = spec.lhs[d];
    leaf = LeafOf(b.TypeOf(x[0]).dims[d].value("a deterministic contraction"));
  }
  Attrs attrs = e.attrs.With("along", along).With("leaf", leaf);
  if (Narrow(result)) attrs.Set("dtype", DType::kF32);
  const Atom y = b.Emit1(*e.prim, x, attrs);
  return b.DTypeOf(y) == result ? y : Convert(b, y, result);
}

// Whether every element of the result is made from the same numbers in the same way, wherever it lies.
bool InOrderAnyway(const Eqn& e) {
  static const auto& exact = *new PrimSet{"reduce_max", "reduce_min", "reduce_and", "reduce_or", "argmax", "argmin"};
  const Family family = e.prim->family;
  if (exact.Has(*e.prim)) return true;
  return family != Family::kReduction && family != Family::kCumulative && family != Family::kWindow &&
         family != Family::kLinalg && family != Family::kContraction;
}

// `regions`: those that have been rewritten; one that occurs often is rewritten once.
FnRef Rewrite(const Fn& fn, std::unordered_map<const Fn*, FnRef>& made) {
  Builder b(fn.name());
  Atoms env;
  for (const Param& p : fn.params()) env.push_back(b.Parameter(p.type, p.name, p.kind));
  env.resize(fn.num_vars());
  const auto get = [&](const Atom& a) { return a.is_var() ? env[a.id()] : a; };
  for (const Eqn& e : fn.eqns()) {
    Atoms x;
    for (const Atom& a : e.operands) x.push_back(get(a));
    ScopedLoc loc(b, e.loc);
    Atoms y;
    const bool inexact = e.num_results > 0 && IsInexact(fn.TypeOf(Var{e.first_result}).dtype);
    // This and contract are what can be put in order.
    if (inexact && Is<"reduce_sum">(*e.prim)) {
      const DType result = fn.TypeOf(Var{e.first_result}).dtype;
      Ints dims = e.attrs.Get<Ints>("dims");
      std::sort(dims.rbegin(), dims.rend());
      Atom sum = x[0];
      for (int64_t d : dims) sum = SumOf(b, sum, d);
      y = {b.DTypeOf(sum) == result ? sum : Convert(b, sum, result)};
    } else if (inexact && Is<"contract">(*e.prim) && e.attrs.Find("leaf") == nullptr) {  // see above
      y = {Contraction(b, e, x)};
    } else {
      if (inexact && !InOrderAnyway(e) && e.attrs.Find("leaf") == nullptr)
        throw UserError(
            ErrorKind::kUnsupported, e.loc, "deterministic: '", e.prim->name,
            "' has no deterministic form: the order of its sums is up to a library or the number of threads. Leave "
            "deterministic=True out, or write it with sums and products");
      std::vector<FnRef> regions;
      for (const FnRef& r : e.regions) {
        FnRef& ordered = made[r.get()];
        if (!ordered) ordered = Rewrite(*r, made);
        regions.push_back(ordered);
      }
      y = b.Emit(*e.prim, x, e.attrs, regions);
    }
    std::copy(y.begin(), y.end(), env.begin() + e.first_result);
  }
  Atoms results;
  for (const Atom& a : fn.results()) results.push_back(get(a));
  return b.Build(results, true);
}

}  // namespace

FnRef WithDeterministicSums(const FnRef& fn) {
  std::unordered_map<const Fn*, FnRef> regions;
  return Rewrite(*RunPasses(fn, {"drop-rules", "snapshots", "inline-most", "fold", "simplify", "cse"}), regions);
}

}  // namespace weft
