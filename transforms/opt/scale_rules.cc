// Factors that products are scaled by: one that does not vary along what is summed, and is spread over more elements
// than the product has, scales the product instead. softmax(s) @ v is (exp(s) @ v) / sums.
#include <algorithm>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/contraction.h"
#include "transforms/opt/known.h"
#include "transforms/opt/part.h"
#include "transforms/opt/product_rules.h"
#include "transforms/opt/rewrite.h"

namespace weft {
namespace {

double ElementsOf(const Dims& dims) {
  double n = 1;
  for (const Dim& d : dims) n *= static_cast<double>(d.value());
  return n;
}

// The dimensions of the product.
Dims ResultDims(const ContractSpec& spec, const Dims& left, const Dims& right) {
  Dims dims;
  for (const char c : spec.out) {
    const size_t at = spec.lhs.find(c);
    dims.push_back(at != std::string::npos ? left[at] : right[spec.rhs.find(c)]);
  }
  return dims;
}

// `scale`, which does not vary along the letters that `out` lacks, in the shape of the product. Its dimensions are
// called `letters`.
Atom OverProduct(Builder& b, const Atom& scale, const std::string& letters, const std::string& out, const Dims& dims) {
  const Type type = b.TypeOf(scale);
  if (type.rank() == 0) return scale;
  Window w = Window::All(type.dims);
  Dims kept;
  Ints into;
  for (size_t d = 0; d < letters.size(); ++d) {
    const size_t at = out.find(letters[d]);
    if (at == std::string::npos) {
      w.sizes[d] = 1;
      continue;
    }
    kept.push_back(type.dims[d]);
    into.push_back(static_cast<int64_t>(at));
  }
  Atom made = Reshape(b, Part(b, false, false).Of(scale, w), kept);
  Ints order(into.size());  // of the kept dimensions, as the product has them
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::sort(order.begin(), order.end(),
            [&](int64_t i, int64_t k) { return into[static_cast<size_t>(i)] < into[static_cast<size_t>(k)]; });
  made = Transpose(b, made, order);
  std::sort(into.begin(), into.end());
  return Broadcast(b, made, dims, into);
}

std::optional<Atom> ScaledFactor(Builder& b, const Eqn& e, const Atoms& x) {
  static const PrimSet kScales{"mul", "div"}, kDivides{"div"};
  const DType dtype = b.DTypeOf(x[0]);
  // Halves, which may overflow in another order, stay.
  const bool plain = e.attrs.entries().size() == 1;  // no order, no other dtype
  if (!plain || !IsInexact(dtype) || dtype == DType::kF16 || IsFloat8(dtype)) return std::nullopt;
  const Type left = b.TypeOf(x[0]), right = b.TypeOf(x[1]);
  if (!left.is_static() || !right.is_static() || !left.varying.empty() || !right.varying.empty()) return std::nullopt;
  const ContractSpec spec = ContractSpec::Parse(e.attrs.Get<std::string>("spec"));
  const Dims dims = ResultDims(spec, left.dims, right.dims);
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Eqn* found = x[i].is_var() ? b.Definition(x[i]) : nullptr;
    const Dims& from = i == 0 ? left.dims : right.dims;
    if (found == nullptr || !kScales.Has(*found->prim) || !ReadOnce(b, x[i]) || ElementsOf(from) < 2 * ElementsOf(dims))
      continue;
    const Eqn scaling = *found;  // emitting may move it
    const std::string& letters = i == 0 ? spec.lhs : spec.rhs;
    for (const size_t k : {size_t{1}, size_t{0}}) {
      if (k == 0 && kDivides.Has(*scaling.prim)) break;
      const Atom &scale = scaling.operands[k], &rest = scaling.operands[1 - k];
      if (b.TypeOf(rest).dims != from) continue;
      bool constant = true;
      for (size_t d = 0; d < letters.size() && constant; ++d) {
        if (spec.out.find(letters[d]) == std::string::npos) constant = IsConstantAlong(b, scale, static_cast<int>(d));
      }
      if (!constant) continue;
      Atoms operands = x;
      operands[i] = rest;
      const Atom product = b.Emit1(*e.prim, operands, e.attrs);
      return b.Emit1(*scaling.prim, {product, OverProduct(b, scale, letters, spec.out, dims)}, scaling.attrs);
    }
  }
  return std::nullopt;
}

}  // namespace

absl::Span<const SimplifyRule> ScaleRules() {
  static const auto& rules = *new std::vector<SimplifyRule>{
      {"scaled-factor", "contract", Licence::kProducts, ScaledFactor,
       R"(fn f(x: f32[3,4], s: f32[3], y: f32[4,1]) { t = broadcast[dims=[0], shape=<3,4>] s; p = div x t
          q = contract[spec="az,zy->ay"] p y; return q })",
       false, RuleTime::kLowering},
      {"scaled-factor", "contract", Licence::kProducts, ScaledFactor,
       R"(fn f(x: f32[2,3,4], s: f32[2,3], y: f32[4,2]) { t = broadcast[dims=[0,1], shape=<2,3,4>] s; p = mul t x
          q = contract[spec="baz,zb->ab"] p y; return q })",
       false, RuleTime::kLowering},
  };
  return rules;
}

}  // namespace weft
