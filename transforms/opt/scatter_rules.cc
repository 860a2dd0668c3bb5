// Laws of sums with what is scattered into zeros: what is scattered is added where it belongs, and the rest of the
// array is neither made nor read.
#include "ir/ops.h"
#include "ir/prims/indexing.h"
#include "transforms/opt/algebra_rules.h"
#include "transforms/opt/defined_by.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/known.h"
#include "transforms/opt/rewrite.h"

namespace weft {
namespace {

// Whether no element is written twice, as far as the indices say: there is one, each has a batch element of its own, or
// along one dimension they count.
bool WritesOnce(const Builder& b, const Eqn& scatter) {
  const ScatterDims s = ScatterDims::Of(scatter.attrs);
  if (s.unique) return true;
  const Type &into = b.TypeOf(scatter.operands[0]), &indices = b.TypeOf(scatter.operands[1]);
  if (!into.is_static() || !indices.is_static() || indices.rank() == 0) return false;
  int64_t count = 1, batch = 1;
  for (int d = 0; d + 1 < indices.rank(); ++d) {
    const int64_t size = indices.dims[static_cast<size_t>(d)].value();
    count *= size;
    if (Contains(s.indices_batch_dims, d)) batch *= size;
  }
  if (count <= 1 || count == batch) return true;
  const std::optional<Atoms> found = IndexColumns(b, scatter.operands[1]);
  const Atoms columns = found ? *found : Atoms{scatter.operands[1]};
  if (columns.size() != s.scatter_dims.size()) return false;
  for (size_t k = 0; k < columns.size(); ++k) {
    const int64_t dim = s.scatter_dims[k];
    const int counted = IndexedDim(b, columns[k]);
    if (counted < 0 || counted + 1 >= indices.rank() || !Contains(s.inserted_dims, dim)) continue;
    const bool each = indices.dims[static_cast<size_t>(counted)] == Dim(count);
    if (each && count <= into.dims[static_cast<size_t>(dim)].value()) return true;
  }
  return false;
}

// x + scatter_add(0, i, u) = scatter_add(x, i, u), and x - scatter_add(0, i, u) likewise. Of floats where nothing is
// written twice: what is written often would be added to x one by one, and so rounded.
template <bool kNegated, bool kInteger>
std::optional<Atom> WithScattered(Builder& b, const Eqn&, const Atoms& x) {
  if (IsInteger(b.DTypeOf(x[0])) != kInteger) return std::nullopt;
  for (size_t i = kNegated ? 1 : 0; i < 2; ++i) {
    const Eqn* found = DefinedBy<"scatter_add">(b, x[i]);
    if (found == nullptr || !ReadOnce(b, x[i])) continue;
    const Atom* into = Splat(b, found->operands[0]);
    if (into == nullptr || !into->IsSplat(0) || !(b.TypeOf(x[1 - i]) == b.TypeOf(x[i]))) continue;
    if (!kInteger && !WritesOnce(b, *found)) continue;
    const Eqn scatter = *found;  // emitting may move it
    const Atom updates = kNegated ? Neg(b, scatter.operands[2]) : scatter.operands[2];
    return b.Emit1(*scatter.prim, {x[1 - i], scatter.operands[1], updates}, scatter.attrs);
  }
  return std::nullopt;
}

constexpr char kAdded[] = R"(fn f(x: f32[5,3], u: f32[2,3]) { z = broadcast[dims=[], shape=<5,3>] 0.0:f32
    i = iota[dim=0, dtype=i32, shape=<2,1>]
    s = scatter_add[indices_batch_dims=[], inserted_dims=[0], mode="clip", operand_batch_dims=[], scatter_dims=[0],
                    unique=false, update_window_dims=[1]] z i u; a = add x s; return a })";
constexpr char kSubtracted[] = R"(fn f(x: f32[5,3], u: f32[2,3]) { z = broadcast[dims=[], shape=<5,3>] 0.0:f32
    i = iota[dim=0, dtype=i32, shape=<2,1>]
    s = scatter_add[indices_batch_dims=[], inserted_dims=[0], mode="clip", operand_batch_dims=[], scatter_dims=[0],
                    unique=false, update_window_dims=[1]] z i u; a = sub x s; return a })";
constexpr char kAddedIntegers[] = R"(fn f(x: i32[5,3], u: i32[2]) { z = broadcast[dims=[], shape=<5,3>] 0:i32
    i = iota[dim=0, dtype=i32, shape=<2,2>]
    s = scatter_add[indices_batch_dims=[], inserted_dims=[0,1], mode="clip", operand_batch_dims=[], scatter_dims=[0,1],
                    unique=false, update_window_dims=[]] z i u; a = add s x; return a })";
constexpr char kSubtractedIntegers[] = R"(fn f(x: i32[5,3], u: i32[2]) { z = broadcast[dims=[], shape=<5,3>] 0:i32
    i = iota[dim=0, dtype=i32, shape=<2,2>]
    s = scatter_add[indices_batch_dims=[], inserted_dims=[0,1], mode="clip", operand_batch_dims=[], scatter_dims=[0,1],
                    unique=false, update_window_dims=[]] z i u; a = sub x s; return a })";

// At lowering: before, the derivative of what is scattered is simpler.
const SimplifyRule kRules[] = {
    {"add-of-scattered", "add", Licence::kSignedZero, WithScattered<false, false>, kAdded, false, RuleTime::kLowering},
    {"add-of-scattered", "sub", Licence::kSignedZero, WithScattered<true, false>, kSubtracted, false,
     RuleTime::kLowering},
    {"add-of-scattered", "add", Licence::kExact, WithScattered<false, true>, kAddedIntegers, false,
     RuleTime::kLowering},
    {"add-of-scattered", "sub", Licence::kExact, WithScattered<true, true>, kSubtractedIntegers, false,
     RuleTime::kLowering},
};

}  // namespace

absl::Span<const SimplifyRule> ScatterRules() { return kRules; }

}  // namespace weft
