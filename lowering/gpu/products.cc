#include "lowering/gpu/products.h"

#include <algorithm>
#include <vector>

#include "ir/builder.h"
#include "ir/error.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "lowering/abi/steps.h"
#include "lowering/fusion/fusion.h"

namespace weft {
namespace {

// A group of dimensions of a product as one dimension with one stride for each array. None: it is none.
std::optional<abi::Factor<abi::InWords>> OneDimension(const abi::Sequence<abi::Factor<abi::InWords>>& group) {
  abi::Factor<abi::InWords> all{1, 0, 0, 0};
  std::vector<abi::Factor<abi::InWords>> factors;
  for (const auto& f : group) factors.push_back(f);
  for (size_t i = factors.size(); i-- > 0;) {  // from the innermost one
    const auto& f = factors[i];
    if (f.size == 1) continue;
    if (all.size == 1) {
      all = {1, f.x, f.y, f.result};
    } else if (f.x != all.x * all.size || f.y != all.y * all.size || f.result != all.result * all.size) {
      return std::nullopt;
    }
    all.size *= f.size;
  }
  return all;
}

// Words of a step whose sizes are static.
struct StaticWords {
  std::vector<int64_t> words;
  void Field(const char*) {}
  void Place(int value) { words.push_back(value); }
  void Result(int value) { words.push_back(value); }
  void Number(const Dim& d) { words.push_back(d.value("contract")); }
};

std::optional<GpuMatmul> Describe(const Fn& fn, const std::vector<int>& defining, const Eqn& e, bool x_views,
                                  bool y_views) {
  StaticWords sink{{WEFT_OP_CONTRACT}};
  abi::Encode(LayOutContract(fn, defining, e, x_views, y_views).told, sink);
  return DescribeProduct(abi::Decode<abi::Contract<abi::InWords>>(sink.words.data()));
}

bool IsEmptySum(const Fn& fn, const Eqn& e) {
  return fn.TypeOf(e.operands[0]).size() == Dim(0) || fn.TypeOf(e.operands[1]).size() == Dim(0);
}

}  // namespace

std::optional<GpuMatmul> DescribeProduct(const abi::Contract<abi::InWords>& told) {
  const auto batch = OneDimension(told.batch), m = OneDimension(told.m), n = OneDimension(told.n),
             k = OneDimension(told.k);
  if (!batch || !m || !n || !k) return std::nullopt;
  GpuMatmul p;
  p.dtype = told.dtype;
  p.out_dtype = told.result_dtype;
  p.batch = batch->size, p.m = m->size, p.n = n->size, p.k = k->size;
  p.x_start = told.x_start, p.x_batch = batch->x, p.x_m = m->x, p.x_k = k->x;
  p.y_start = told.y_start, p.y_batch = batch->y, p.y_k = k->y, p.y_n = n->y;
  p.out_batch = batch->result, p.out_m = m->result, p.out_n = n->result;
  // A matrix may stand for all of a batch, but not lie backwards.
  if (p.x_batch < 0 || p.y_batch < 0) return std::nullopt;
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
