#include "ir/prim_table.h"
#include "tracer/ops.h"

namespace weft {
namespace {

Ints AxesOrAll(const Operand& x, const std::optional<Ints>& axes, const char* what) {
  return axes ? CheckAxes(*axes, x.rank(), what) : Range(0, x.rank());
}

// bool and the narrow integers are summed in the default integer type, as in NumPy and JAX.
DType SumDType(DType t) {
  if (IsBool(t) || IsSigned(t)) return ByteWidth(t) < ByteWidth(DefaultInt()) ? DefaultInt() : t;
  if (IsUnsigned(t)) {
    const DType wide = DefaultInt() == DType::kI64 ? DType::kU64 : DType::kU32;
    return ByteWidth(t) < ByteWidth(wide) ? wide : t;
  }
  return t;
}

// The integer type that counts so many.
DType CountDType(const Dim& most) { return most.is_static() && most.value() > INT32_MAX ? DType::kI64 : DefaultInt(); }

Dim Size(const Dims& shape, const Ints& dims) {
  Dim size = 1;
  for (int64_t d : dims) size = size * shape[d];
  return size;
}

Atom KeepDims(Builder& b, const Atom& reduced, const Dims& from, const Ints& dims) {
  Dims kept = from;
  for (int64_t d : dims) kept[d] = Dim(1);
  return Reshape(b, reduced, kept);
}

// In which dtype what is reduced is computed, and whether there is a result for no elements.
struct ReductionRule {
  enum class In { kOwn, kSum, kCount, kBool };
  In in = In::kOwn;  // kSum: the default integers at least; kCount: booleans are counted too; kBool: as truth values
  bool empty = true;
};
using In = ReductionRule::In;

const ReductionRule& RuleOf(const std::string& prim) {
  static const auto& rules = *new PrimTable<ReductionRule>{
      {"reduce_sum", {In::kCount}}, {"reduce_prod", {In::kSum}},       {"reduce_and", {In::kBool}},
      {"reduce_or", {In::kBool}},   {"reduce_max", {In::kOwn, false}}, {"reduce_min", {In::kOwn, false}},
      {"cumsum", {In::kCount}},     {"cumprod", {In::kSum}},
  };
  return rules[FindPrim(prim)];
}

}  // namespace

const char* NumpyName(const std::string& prim) {
  // The registry's names of reductions begin so, NumPy's do not.
  return prim.c_str() + (prim.starts_with("reduce_") ? sizeof "reduce_" - 1 : 0);
}

Value ReduceAxes(const std::string& prim, const Operand& x, std::optional<Ints> axes, bool keepdims) {
  const char* name = NumpyName(prim);
  const Ints dims = AxesOrAll(x, axes, name);
  DType dtype = x.dtype().dtype;
  const ReductionRule& rule = RuleOf(prim);
  if (rule.in == In::kCount || rule.in == In::kSum)
    dtype = IsBool(dtype) && rule.in == In::kCount ? CountDType(Size(x.dims(), dims)) : SumDType(dtype);
  if (rule.in == In::kBool && !IsBool(dtype)) return ReduceAxes(prim, Astype(x, DType::kBool), axes, keepdims);
  const Dims from = x.dims();
  if (!rule.empty) {
    for (int64_t d : dims) {
      if (from[d] == Dim(0))
        throw ValueError(name, ": axis ", d, " of an array of shape ", ShapeText(from),
                         " has no elements; expected at least one");
    }
  }
  const Prim& reduction = FindPrim(prim);
  const Attrs attrs = {{"dims", dims}};
  if (!keepdims && !dims.empty()) {
    if (auto y = RunAtOnce(reduction, {dtype, false}, attrs, {&x, 1})) return *std::move(y);
  }
  Site site({x});
  Builder& b = site.b();
  Atom a = site.Use(x, dtype);
  if (!dims.empty()) a = b.Emit1(reduction, {a}, attrs);
  if (keepdims) a = KeepDims(b, a, from, dims);
  return site.Finish(a);
}

Value MeanAxes(const Operand& x, std::optional<Ints> axes, bool keepdims) {
  const Ints dims = AxesOrAll(x, axes, "mean");
  const WeakDType t = ToInexact(x.dtype());
  // The sum and the count of 16-bit floats in 32 bits: either may not fit where the mean does.
  const DType in = ByteWidth(t.dtype) < 4 ? DType::kF32 : t.dtype;
  const Dims from = x.dims();
  Site site({x});
  Builder& b = site.b();
  const Atom a = site.Use(x, in);
  Atom y = ReduceSum(b, a, dims);
  const Dim count = Size(from, dims);
  if (count.is_static()) {
    y = b.Emit1(FindPrim("div"), {y, Atom::Scalar(in, static_cast<double>(count.value()))});
  } else {
    for (int64_t d : dims) {
      const Atom n = Convert(b, b.Emit1(FindPrim("dim_size"), {a}, {{"dim", d}}), in);
      y = b.Emit1(FindPrim("div"), {y, BroadcastAtom(b, n, b.TypeOf(y).dims)});
    }
  }
  if (keepdims) y = KeepDims(b, y, from, dims);
  return site.Finish(Convert(b, y, t.dtype));
}

Value ArgReduce(const std::string& prim, const Operand& x, std::optional<int64_t> axis, bool keepdims) {
  Value flat;
  const Value value = x.ToValue();
  const Dims from = value.dims();
  if (!axis) flat = Reshape(value, {Dim(-1)});
  const Value& v = axis ? value : flat;
  const int64_t dim = axis ? CheckAxis(*axis, v.rank(), prim.c_str()) : 0;
  if (v.dims()[dim] == Dim(0))
    throw ValueError(prim, ": axis ", dim, " of an array of shape ", ShapeText(v.dims()),
                     " has no elements; expected at least one");
  const Prim& reduction = FindPrim(prim);
  const Attrs attrs = {{"dim", dim}, {"dtype", CountDType(v.dims()[dim])}};
  if (!keepdims) {
    const Operand operand(v);
    if (auto y = RunAtOnce(reduction, {v.dtype(), false}, attrs, {&operand, 1})) return *std::move(y);
  }
  Site site({v});
  Builder& b = site.b();
  Atom y = b.Emit1(reduction, {site.Use(v)}, attrs);
  if (keepdims) {
    Dims kept = from;
    if (axis)
      kept[dim] = Dim(1);
    else
      kept = Dims(from.size(), Dim(1));
    y = Reshape(b, y, kept);
  }
  return site.Finish(y);
}

Value Cumulative(const std::string& prim, const Operand& x, std::optional<int64_t> axis, bool reverse) {
  Value v = x.ToValue();
  if (!axis && v.rank() != 1) v = Reshape(v, {Dim(-1)});
  const int64_t dim = CheckAxis(axis.value_or(0), v.rank(), prim.c_str());
  DType dtype = v.dtype();
  const In in = RuleOf(prim).in;
  if (IsBool(dtype) && in != In::kOwn) dtype = in == In::kCount ? CountDType(v.dims()[dim]) : DefaultInt();
  Site site({v});
  const Atom a = site.Use(v, dtype);
  return site.Finish(site.b().Emit1(FindPrim(prim), {a}, {{"dim", dim}, {"reverse", reverse}}));
}

}  // namespace weft
