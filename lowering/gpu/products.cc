#include "lowering/gpu/products.h"

#include <algorithm>
#include <vector>

#include "ir/builder.h"
#include "ir/error.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "lowering/fusion/fusion.h"

namespace weft {
namespace {

// A group of dimensions of a product as one dimension with one stride for each array. False: it is none.
bool OneDimension(const int64_t* entries, int64_t count, int64_t* size, int64_t* x, int64_t* y, int64_t* out) {
  *size = 1, *x = *y = *out = 0;
  for (int64_t i = count; i-- > 0;) {  // from the innermost one
    const int64_t n = entries[4 * i], xs = entries[4 * i + 1], ys = entries[4 * i + 2], os = entries[4 * i + 3];
    if (n == 1) continue;
    if (*size == 1) {
      *x = xs, *y = ys, *out = os;
    } else if (xs != *x * *size || ys != *y * *size || os != *out * *size) {
      return false;
    }
    *size *= n;
  }
  return true;
}

std::optional<GpuMatmul> Describe(const Fn& fn, const std::vector<int>& defining, const Eqn& e, bool x_views,
                                  bool y_views) {
  std::vector<int64_t> entries;
  for (const Dim& d : LayOutContract(fn, defining, e, x_views, y_views).entries) entries.push_back(d.value("contract"));
  return DescribeProduct(entries.data());
}

bool IsEmptySum(const Fn& fn, const Eqn& e) {
  return fn.TypeOf(e.operands[0]).size() == Dim(0) || fn.TypeOf(e.operands[1]).size() == Dim(0);
}

}  // namespace

std::optional<GpuMatmul> DescribeProduct(const int64_t* d) {
  GpuMatmul p;
  p.dtype = static_cast<int32_t>(d[0]);
  p.out_dtype = static_cast<int32_t>(d[1]);
  p.x_start = d[2], p.y_start = d[3];
  const int64_t *counts = d + 4, *at = d + 8;
  int64_t none = 0;
  auto group = [&](int i, int64_t* size, int64_t* x, int64_t* y, int64_t* out) {
    const bool one = OneDimension(at, counts[i], size, x, y, out);
    at += 4 * counts[i];
    return one;
  };
  const bool ok = group(0, &p.batch, &p.x_batch, &p.y_batch, &p.out_batch) & group(1, &p.m, &p.x_m, &none, &p.out_m) &
                  group(2, &p.n, &none, &p.y_n, &p.out_n) & group(3, &p.k, &p.x_k, &p.y_k, &none);
  // A matrix may stand for all of a batch, but not lie backwards.
  if (!ok || p.x_batch < 0 || p.y_batch < 0) return std::nullopt;
  if (!ColumnMajor::Of(p.m, p.x_m, p.k, p.x_k) || !ColumnMajor::Of(p.k, p.y_k, p.n, p.y_n) ||
      !ColumnMajor::Of(p.m, p.out_m, p.n, p.out_n))
    return std::nullopt;
  return p;
}

FnRef WithDescribedProducts(const FnRef& fn) {
  const std::vector<int> defining = DefiningEqns(*fn);
  Builder b(fn->name());
  Atoms env;
  for (const Param& p : fn->params()) env.push_back(b.Parameter(p.type, p.name, p.kind));
  env.resize(fn->num_vars());
  const auto get = [&](const Atom& a) { return a.is_var() ? env[a.id()] : a; };
  for (const Eqn& e : fn->eqns()) {
    Atoms x;
    for (const Atom& a : e.operands) x.push_back(get(a));
    ScopedLoc loc(b, e.loc);
    if (!Is<"contract">(*e.prim)) {  // what this is about
      const Atoms y = b.Emit(*e.prim, x, e.attrs, e.regions);
      std::copy(y.begin(), y.end(), env.begin() + e.first_result);
      continue;
    }
    const auto refuse = [&](const std::string& why) {
      return UserError(ErrorKind::kUnsupported, e.loc, "contract: ", why);
    };
    const DType from = fn->TypeOf(e.operands[0]).dtype, to = fn->TypeOf(e.result()).dtype;
    if (e.attrs.Find("leaf") != nullptr)
      throw refuse("cuBLASLt adds up in an order of its own, so deterministic=True is for CPUs");
    if (from != to)
      throw refuse(std::string("has no GPU code for a product of ") + Name(from) + " into " + Name(to) + " yet");
    if (IsEmptySum(*fn, e)) {
      env[e.first_result] = Broadcast(b, Atom::Scalar(to, 0), fn->TypeOf(e.result()).dims, {});
      continue;
    }
    bool found = false;
    for (int copied = 0; copied < 4 && !found; ++copied) {
      const bool x_copied = copied & 1, y_copied = copied & 2;
      found = Describe(*fn, defining, e, !x_copied, !y_copied).has_value();
      if (!found) continue;
      // An operation on elements, which no product reads through.
      if (x_copied) x[0] = b.Emit1(FindPrim("stop_gradient"), {x[0]});
      if (y_copied) x[1] = b.Emit1(FindPrim("stop_gradient"), {x[1]});
    }
    if (!found)
      throw refuse("cuBLASLt cannot read operands laid out like this; transposing one of them first gives it rows");
    env[e.first_result] = b.Emit1(*e.prim, x, e.attrs);
  }
  Atoms results;
  for (const Atom& a : fn->results()) results.push_back(get(a));
  return b.Build(results, true);
}

}  // namespace weft
