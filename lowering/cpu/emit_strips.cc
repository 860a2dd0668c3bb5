// Reductions along columns in strips of rows: all columns of a block take in one strip before the next, so that memory
// is read along its rows. Meanwhile the accumulators are in an array on the stack.
#include <algorithm>

#include "lowering/cpu/mlir/emit_kernel.h"
#include "lowering/cpu/mlir/kernel_emitter.h"

namespace weft {

void KernelEmitter::KeepSum(int reduction, Value at, const Lanes& sum, int64_t elements) {
  std::vector<Value>& arrays = kept_sums_[reduction];
  const auto keep = [&](size_t part, Value v) {
    if (m_.Element(v) == m_.i1()) v = m_.ExtU(v, m_.i8());
    MType element = m_.Element(v);
    if (arrays.size() <= part)
      arrays.push_back(Alloca(LLVM::LLVMArrayType::get(element, static_cast<unsigned>(elements))));
    m_.Store(v, m_.Gep(element, arrays[part], at), element.getIntOrFloatBitWidth() / 8);
  };
  keep(0, sum.re);
  if (sum.im) keep(1, sum.im);
}

Lanes KernelEmitter::KeptSum(int reduction, Value at) {
  const DType dtype = spec_.nodes[reduction].dtype;
  const std::vector<Value>& arrays = kept_sums_[reduction];
  const auto kept = [&](Value array) {
    MType element = IsBool(dtype) ? m_.i8() : body_.Register(dtype);
    Value v = m_.Load(m_.Vector(plan_.lanes, element), m_.Gep(element, array, at), element.getIntOrFloatBitWidth() / 8);
    return IsBool(dtype) ? m_.Cmp(IPred::ne, v, m_.I(v.getType(), 0)) : v;
  };
  return {kept(arrays[0]), IsComplex(dtype) ? kept(arrays[1]) : Value()};
}

void KernelEmitter::Strips(Value begin, Value end) {
  const std::vector<const KernelStore*> rows = RowStores();
  std::vector<int> reduced;  // by the passes before
  const int64_t columns = plan_.block + plan_.lanes;
  const auto column = [&] { return m_.ISub(dims_[plan_.vector_dim], begin); };
  const auto recall = [&] {
    for (int r : reduced) MemoOf(r) = {KeptSum(r, column()), static_cast<int>(loops_.size())};
  };
  for (const Pass& pass : Passes(rows)) {
    if (!pass.reductions.empty()) {
      OpenVectorLoop(begin, end);
      for (int r : pass.reductions)
        KeepSum(r, column(), body_.Neutral(spec_.nodes[r].op, spec_.nodes[r].dtype, plan_.lanes), columns);
      CloseVectorLoop();
    }
    Value size = Size(spec_.sizes[spec_.num_outer]);
    auto strips = m_.b.create<scf::ForOp>(m_.loc, m_.I64(0), size, m_.I64(plan_.strip));
    OpenLoop(strips, 0);
    Value first = strips.getInductionVar(), behind = m_.IAdd(first, m_.I64(plan_.strip));
    const std::optional<int64_t> known = spec_.sizes[spec_.num_outer].TryValue();
    if (!known || *known % plan_.strip != 0) behind = m_.Select(m_.Cmp(IPred::slt, behind, size), behind, size);
    OpenVectorLoop(begin, end);
    recall();
    Stretch strip{spec_.num_outer, first, behind, m_.I64(1), {}};
    for (int r : pass.reductions) strip.sums.push_back(KeptSum(r, column()));
    RunPhase(pass, &strip);
    for (int r : pass.reductions) KeepSum(r, column(), MemoOf(r).value, columns);
    CloseVectorLoop();
    CloseLoop();
    reduced.insert(reduced.end(), pass.reductions.begin(), pass.reductions.end());
  }
  OpenVectorLoop(begin, end);
  recall();
  StoreRows(rows);
  CloseVectorLoop();
}

}  // namespace weft
