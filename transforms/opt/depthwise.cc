#include "transforms/opt/depthwise.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "ir/licences.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/shape.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/rule_watch.h"

namespace weft {
namespace {

constexpr int64_t kMostElements = 12;  // of a window; from 16 on the library is as fast

bool All(const Ints& list, int64_t least, int64_t most = std::numeric_limits<int64_t>::max()) {
  return std::all_of(list.begin(), list.end(), [&](int64_t n) { return n >= least && n <= most; });
}

bool IsDepthwise(const Builder& b, const Eqn& e, const Atoms& operands) {
  const Type &x = b.TypeOf(operands[0]), &w = b.TypeOf(operands[1]);
  if (!IsFloat(x.dtype) || ByteWidth(x.dtype) < 4 || !x.is_static() || !w.is_static() || x.rank() < 3) return false;
  const int64_t channels = x.dims[1].value();
  if (channels < 2 || e.attrs.GetInt("feature_groups") != channels || w.dims[0].value() != channels) return false;
  if (e.attrs.GetInt("batch_groups") != 1 || !All(e.attrs.Get<Ints>("lhs_dilation"), 1, 1)) return false;
  if (!x.varying.empty() || !w.varying.empty() || x.size() == Dim(0)) return false;
  if (!All(e.attrs.Get<Ints>("lo"), 0) || !All(e.attrs.Get<Ints>("hi"), 0)) return false;
  // Where the channels lie beside each other the library has them in its lanes.
  const Eqn* const moved = b.Definition(operands[0]);
  if (moved != nullptr && Is<"transpose">(*moved->prim) && moved->attrs.Get<Ints>("perm")[1] + 1 == x.rank())
    return false;
  return w.size().value() / channels <= kMostElements;
}

Atom Sum(Builder& b, const Eqn& e, const Atoms& operands) {
  const Atom &x = operands[0], &w = operands[1];
  const Shape sizes = StaticSizes(b.TypeOf(x).dims, "conv"), window = StaticSizes(b.TypeOf(w).dims, "conv");
  const DType dtype = b.TypeOf(x).dtype;
  const size_t spatial = sizes.size() - 2;
  const Ints &strides = e.attrs.Get<Ints>("strides"), &dilation = e.attrs.Get<Ints>("rhs_dilation");
  Ints lo = e.attrs.Get<Ints>("lo"), hi = e.attrs.Get<Ints>("hi");
  Dims result = {sizes[0], sizes[1]};
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t reach = (window[d + 2] - 1) * dilation[d] + 1;
    result.push_back((sizes[d + 2] + lo[d] + hi[d] - reach) / strides[d] + 1);
  }
  Atom padded = x;
  if (!All(lo, 0, 0) || !All(hi, 0, 0)) {
    for (Ints* list : {&lo, &hi}) list->insert(list->begin(), 2, 0);
    padded = Pad(b, x, Atom::Scalar(dtype, 0), lo, hi, Ints(spatial + 2, 0));
  }
  std::optional<Atom> sum;
  ForEachIndex(Shape(window.begin() + 2, window.end()), [&](const Shape& at) {
    Ints start = {0, 0}, limit = {sizes[0], sizes[1]}, step = {1, 1}, w_start = {0, 0}, w_limit = {sizes[1], 1};
    for (size_t d = 0; d < spatial; ++d) {
      start.push_back(at[d] * dilation[d]);
      limit.push_back(start.back() + (result[d + 2].value() - 1) * strides[d] + 1);
      step.push_back(strides[d]);
      w_start.push_back(at[d]), w_limit.push_back(at[d] + 1);
    }
    const Atom factor = Reshape(b, Slice(b, w, w_start, w_limit, Ints(spatial + 2, 1)), {sizes[1]});
    const Atom product = Mul(b, Slice(b, padded, start, limit, step), Broadcast(b, factor, result, {1}));
    sum = sum ? b.Emit1(FindPrim("add"), {*sum, product}, {{"fused", true}}) : product;
  });
  return *sum;
}

}  // namespace

FnRef DepthwiseAsSums(FnRef fn) {
  if (!CurrentLicences().Allow(Licence::kProducts)) return fn;
  const auto is_conv = [](const Eqn& e) { return Is<"conv">(*e.prim); };
  const bool any =
      AnyFunction(*fn, [&](const Fn& f) { return std::any_of(f.eqns().begin(), f.eqns().end(), is_conv); });
  if (!any) return fn;
  return Rewrite(std::move(fn), [&](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
    if (!is_conv(e) || !IsDepthwise(b, e, operands)) return std::nullopt;
    return RuleWatch::Try(kDepthwise, b, e, operands, [&] { return std::optional<Atoms>(Atoms{Sum(b, e, operands)}); });
  });
}

}  // namespace weft
