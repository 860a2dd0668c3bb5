#include "lowering/kernel/row_units.h"

#include <utility>

namespace weft {
namespace {

// Rows in terms of loops: a row is one index of each of `dims`, and `of_last` of the last one.
struct RowLoops {
  std::vector<int> dims;
  int64_t of_last = 1;
};

std::optional<int64_t> SizeOf(const KernelSpec& spec, int dim) {
  return spec.sizes[static_cast<size_t>(dim)].TryValue();
}

// The slowest of the dimensions that units are made of.
std::optional<RowLoops> LoopsOfRows(const KernelSpec& spec, const LoopPlan& plan, int64_t rows) {
  RowLoops loops;
  if (plan.unit_dims.empty()) {
    if (plan.lanes == 0 || plan.vector_inner) return {};
    const std::optional<int64_t> size = SizeOf(spec, plan.vector_dim);
    if (!size || *size % rows != 0) return {};
    return RowLoops{{plan.vector_dim}, *size / rows};
  }
  int64_t left = rows;
  for (const int d : plan.unit_dims) {
    const std::optional<int64_t> size = SizeOf(spec, d);
    if (!size || *size == 0) return {};
    loops.dims.push_back(d);
    if (*size % left == 0) {
      loops.of_last = *size / left;
      return loops;
    }
    if (left % *size != 0) return {};
    left /= *size;
  }
  return {};
}

// How far apart rows are, in elements; 0: not at all, or what belongs to one reaches beyond it.
int64_t RowOf(const KernelSpec& spec, const RowLoops& loops, const Access& a) {
  if (!a.dynamic.empty()) return 0;
  std::vector<int64_t> step(spec.sizes.size());
  for (size_t v = 0; v < step.size(); ++v) {
    const std::optional<int64_t> c = a.offset.Coefficient(static_cast<int>(v)).TryValue();
    if (!c) return 0;
    step[v] = *c;
  }
  const std::optional<int64_t> start = a.offset.constant().TryValue();
  if (!start) return 0;
  uint64_t rows = 0;
  for (size_t i = 0; i < loops.dims.size(); ++i) {
    const int d = loops.dims[i];
    rows |= uint64_t{1} << d;
    if (i + 1 == loops.dims.size()) break;
    const int next = loops.dims[i + 1];
    if (step[static_cast<size_t>(d)] != step[static_cast<size_t>(next)] * *SizeOf(spec, next)) return 0;
  }
  const int64_t last = step[static_cast<size_t>(loops.dims.back())], row = last * loops.of_last;
  int64_t low = *start, high = *start + last * (loops.of_last - 1);
  for (size_t v = 0; v < step.size(); ++v) {
    if (((rows >> v) & 1) != 0) continue;
    const std::optional<int64_t> size = SizeOf(spec, static_cast<int>(v));
    if (!size) return 0;
    (step[v] < 0 ? low : high) += step[v] * (*size - 1);
  }
  return last > 0 && low >= 0 && high < row ? row : 0;
}

}  // namespace

std::optional<RowUnits> UnitsOfRows(const KernelSpec& spec, const LoopPlan& plan, int64_t rows) {
  if (spec.Tree() >= 0) return {};
  const std::optional<RowLoops> loops = LoopsOfRows(spec, plan, rows);
  if (!loops) return {};
  RowUnits found;
  int64_t units = 1;
  for (const int d : plan.unit_dims) {
    const std::optional<int64_t> size = SizeOf(spec, d);
    if (!size) return {};
    units *= (*size + plan.Step(d) - 1) / plan.Step(d);
    // Units of several indices: they are a row each, and the rows are nothing else.
    if (plan.Step(d) > 1) {
      if (loops->dims != std::vector<int>{d} || loops->of_last != 1) continue;
      found.step = plan.Step(d);
    }
  }
  for (const int d : loops->dims) {
    if (plan.Step(d) > 1 && found.step == 1) return {};
  }
  if (plan.lanes > 0 && !plan.vector_inner) {
    const std::optional<int64_t> size = SizeOf(spec, plan.vector_dim);
    if (!size) return {};
    units *= (*size + plan.block - 1) / plan.block;
    if (plan.unit_dims.empty()) {
      if (plan.block % loops->of_last != 0) return {};
      found.step = plan.block / loops->of_last;
    }
  }
  found.units = units / ((rows + found.step - 1) / found.step);

  constexpr int64_t kUnknown = -1;
  found.bytes.assign(static_cast<size_t>(spec.num_operands), kUnknown);
  const auto note = [&](const Access& a) {
    int64_t& bytes = found.bytes[static_cast<size_t>(a.operand)];
    const int64_t row = RowOf(spec, *loops, a) * ByteWidth(a.dtype);
    bytes = bytes == kUnknown || bytes == row ? row : 0;
  };
  for (const KernelNode& n : spec.nodes) {
    if (n.kind == KernelNode::Kind::kLoad) note(n.access);
  }
  for (const KernelStore& s : spec.stores) note(s.access);
  for (const KernelStore& s : spec.spills) note(s.access);
  for (int64_t& bytes : found.bytes) bytes = bytes == kUnknown ? 0 : bytes;
  return found;
}

KernelSpec InRows(KernelSpec spec, int64_t rows) {
  if (spec.sizes.size() != 1 || spec.num_outer != 1) return spec;
  const std::optional<int64_t> size = spec.sizes[0].TryValue();
  if (size && *size % rows == 0) spec.row = *size / rows;
  return spec;
}

}  // namespace weft
