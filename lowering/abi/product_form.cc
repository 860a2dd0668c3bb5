#include "lowering/abi/product_form.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/dtype.h"
#include "lowering/abi/product_cost.h"

namespace weft {
namespace {

constexpr int64_t kRowsAtOnce = 16;  // of oneDNN's kernels

ProductDimensions Collapse(const abi::Sequence<ProductDimension>& in, std::pmr::memory_resource* memory) {
  ProductDimensions out(memory);
  for (const ProductDimension& d : in) {
    if (d.size == 1) continue;
    if (!out.empty()) {
      ProductDimension& p = out.back();
      if (p.x == d.x * d.size && p.y == d.y * d.size && p.result == d.result * d.size) {
        p = {p.size * d.size, d.x, d.y, d.result};
        continue;
      }
    }
    out.push_back(d);
  }
  return out;
}

// rows x columns with these strides, of groups that are at most one dimension each.
ProductMatrix Fit(const ProductDimensions& rows, int64_t ProductDimension::* row_stride,
                  const ProductDimensions& columns, int64_t ProductDimension::* column_stride) {
  ProductMatrix m;
  if (rows.size() > 1 || columns.size() > 1) return m;
  const int64_t nr = rows.empty() ? 1 : rows[0].size, nc = columns.empty() ? 1 : columns[0].size;
  const int64_t rs = rows.empty() ? nc : rows[0].*row_stride, cs = columns.empty() ? 1 : columns[0].*column_stride;
  if (cs == 1 && rs >= nc) return {true, false, rs};
  if ((rows.empty() ? 1 : rs) == 1 && (columns.empty() ? nr : cs) >= nr) return {true, true, columns.empty() ? nr : cs};
  return m;
}

bool IsComputedAsItIs(DType t) { return t == DType::kF32 || t == DType::kF64 || t == DType::kC64 || t == DType::kC128; }

// How far apart the points of `rows` are in an array, in elements, if what belongs to one of them, in the dimensions of
// `within`, lies between it and the next; else 0.
int64_t Apart(const ProductDimensions& rows, std::initializer_list<const ProductDimensions*> within,
              int64_t ProductDimension::* stride, int64_t start) {
  if (rows.empty()) return 0;
  for (size_t i = 0; i + 1 < rows.size(); ++i) {
    if (rows[i].*stride != rows[i + 1].*stride * rows[i + 1].size) return 0;
  }
  const int64_t apart = rows.back().*stride;
  int64_t end = start + 1;
  for (const ProductDimensions* dims : within) {
    for (const ProductDimension& d : *dims) {
      if (d.*stride < 0) return 0;
      end += d.*stride * (d.size - 1);
    }
  }
  return start >= 0 && end <= apart ? apart : 0;
}

}  // namespace

int64_t SizeOf(const ProductDimensions& dims) {
  int64_t n = 1;
  for (const ProductDimension& d : dims) n *= d.size;
  return n;
}

ProductForm::ProductForm(const ContractWords& op, bool operands_are_computed, bool result_is_computed,
                         std::pmr::memory_resource* memory)
    : batch(Collapse(op.batch, memory)),
      m(Collapse(op.m, memory)),
      n(Collapse(op.n, memory)),
      k(Collapse(op.k, memory)) {
  const auto fit = [&] {
    x = Fit(m, &ProductDimension::x, k, &ProductDimension::x);
    y = Fit(k, &ProductDimension::y, n, &ProductDimension::y);
    result = Fit(m, &ProductDimension::result, n, &ProductDimension::result);
    if (!operands_are_computed || SizeOf(k) == 0) x.direct = y.direct = false;
    if (!result_is_computed) result.direct = false;
  };
  const auto swap = [&] {
    std::swap(m, n);
    for (ProductDimensions* dims : {&batch, &m, &n, &k}) {
      for (ProductDimension& d : *dims) std::swap(d.x, d.y);
    }
    swapped = !swapped;
    fit();
  };
  fit();
  if (x.direct && y.direct && result.direct && result.transposed) {
    swap();
    if (!result.direct || result.transposed) swap();
  }
  if (result.transposed) result.direct = false;
}

bool ProductForm::IsSymmetric() const {
  const auto alike = [](const ProductDimension& d) { return d.x == d.y; };
  return std::all_of(batch.begin(), batch.end(), alike) && std::all_of(k.begin(), k.end(), alike) &&
         std::equal(m.begin(), m.end(), n.begin(), n.end(), [](const ProductDimension& a, const ProductDimension& b) {
           return a.size == b.size && a.x == b.y;
         });
}

RowsOfProduct RowsOf(const ContractWords& op) {
  std::array<std::byte, 2048> memory;
  std::pmr::monotonic_buffer_resource dims(memory.data(), memory.size());
  const bool as_it_is = op.dtype == op.result_dtype && IsComputedAsItIs(op.dtype);
  const ProductForm form(op, as_it_is, as_it_is, &dims);
  const int64_t m = SizeOf(form.m), n = SizeOf(form.n), k = SizeOf(form.k), batches = SizeOf(form.batch);
  RowsOfProduct rows;
  if (m * n * k * batches == 0) return rows;
  const int64_t x_start = form.swapped ? op.y_start : op.x_start, y_start = form.swapped ? op.x_start : op.y_start;
  if (batches > 1) {
    rows.count = batches;
    rows.x = Apart(form.batch, {&form.m, &form.k}, &ProductDimension::x, x_start);
    rows.y = Apart(form.batch, {&form.k, &form.n}, &ProductDimension::y, y_start);
    rows.result = Apart(form.batch, {&form.m, &form.n}, &ProductDimension::result, 0);
  } else {
    const double multiplications = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const bool is_cut = op.dtype == DType::kF32 ? IsForOneDnn(multiplications) : NanosecondsOf(op) >= kProductOfThreads;
    if (!is_cut || !form.x.direct || !form.y.direct || !form.result.direct || m == 1) return rows;
    if (op.x == op.y && op.x_start == op.y_start && form.IsSymmetric() && IsWorthHalving(n, k)) return rows;
    rows.count = m;
    rows.step = kRowsAtOnce;
    rows.x = Apart(form.m, {&form.k}, &ProductDimension::x, x_start);
    rows.result = Apart(form.m, {&form.n}, &ProductDimension::result, 0);
  }
  if (form.swapped) std::swap(rows.x, rows.y);
  return rows;
}

double NanosecondsOf(const ContractWords& op) {
  double multiplications = 1;
  for (const auto& factors : {op.batch, op.m, op.n, op.k}) {
    for (const ProductDimension& factor : factors) multiplications *= static_cast<double>(factor.size);
  }
  return ProductNanoseconds(multiplications, 1, 1, std::max(ByteWidth(op.dtype), ByteWidth(op.result_dtype)));
}

}  // namespace weft
