#include "ir/samples/sample_fns.h"

#include <bit>
#include <limits>
#include <string>

#include "ir/builder.h"
#include "ir/ops.h"

namespace weft {

FnRef SampleFn(const Prim& prim, const Sample& sample) {
  Builder b(prim.name);
  Atoms operands(sample.operands.size());
  for (const auto& [index, value] : sample.values) {
    if (value.size() <= kMaxLiteralElements && value.type() == sample.operands[index]) operands[index] = Atom(value);
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].is_literal()) operands[i] = b.Parameter(sample.operands[i]);
  }
  return b.Build(b.Emit(prim, operands, sample.attrs, sample.regions), /*keep_dead=*/true);
}

std::vector<FnRef> SampleFns(const Prim& prim) {
  std::vector<FnRef> list;
  if (!prim.samples) return list;
  for (const Sample& sample : prim.samples()) list.push_back(SampleFn(prim, sample));
  return list;
}

std::set<std::string> PrimsOf(const Fn& fn) {
  std::set<std::string> names;
  for (const Eqn& e : fn.eqns()) {
    names.insert(e.prim->name);
    for (const FnRef& region : e.regions) names.merge(PrimsOf(*region));
  }
  return names;
}

FnRef OnDevices(const Prim& prim, const Sample& sample) {
  const Mesh mesh{sample.axes};
  const size_t n = mesh.axes.size();
  Strings names;
  for (const Mesh::Axis& a : mesh.axes) names.push_back(a.name);
  const Type x = sample.operands.empty() ? Type{DType::kF32, {}, {}} : sample.operands[0];
  Type local = x, whole = x;
  for (size_t i = n; i-- > 0;) {
    local.dims.insert(local.dims.begin(), Dim(1));
    whole.dims.insert(whole.dims.begin(), Dim(mesh.axes[i].size));
  }
  local.varying = UnionOfAxes({}, names);
  auto cut = [&](int rank) {
    Sharding s;
    for (int d = 0; d < rank; ++d) s.dims.push_back(d < static_cast<int>(n) ? Strings{names[d]} : Strings{});
    return s;
  };
  Builder body("device");
  const Atom block = Reshape(body, body.Parameter(local), x.dims);
  const Atom y = body.Emit1(prim, sample.operands.empty() ? Atoms{} : Atoms{block}, sample.attrs);
  Dims shape(n, Dim(1));
  const Dims dims = body.TypeOf(y).dims;
  shape.insert(shape.end(), dims.begin(), dims.end());
  const FnRef region = body.Build({Pvary(body, Reshape(body, y, shape), names)});
  Builder b("devices");
  return b.Build(b.Emit(FindPrim("spmd"), {b.Parameter(whole)},
                        {{"mesh", mesh},
                         {"in_shardings", Shardings{cut(whole.rank())}},
                         {"out_shardings", Shardings{cut(static_cast<int>(shape.size()))}}},
                        {region}));
}

namespace {

template <class T>
void AddOddValues(Atoms& list) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {Limits::max(), Limits::lowest(), T(0), T(1)};
  if constexpr (std::is_floating_point_v<T>) {
    for (T value : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), -Limits::quiet_NaN(), T(-0.0), T(0.1),
                    Limits::denorm_min(), Limits::min(), T(1) / 3}) {
      values.push_back(value);
    }
  }
  for (T value : values) list.push_back(Atom(Tensor::Scalar(DTypeOf<T>(), value)));
  list.push_back(Atom(Tensor::FromVector<T>({static_cast<int64_t>(values.size())}, values)));
  list.push_back(Atom(Tensor::FromVector<T>({2, 1, 2}, {values.begin(), values.begin() + 4})));
}

// Every bit pattern of a narrow type, eight at a time.
template <class Bits>
void AddAllPatterns(DType dtype, int stride, Atoms& list) {
  for (int base = 0; base < 1 << BitWidth(dtype); base += stride) {
    Tensor t(dtype, {8});
    for (int i = 0; i < 8; ++i) t.data<Bits>()[i] = static_cast<Bits>(base + i);
    list.push_back(Atom(t));
  }
}

template <class T>
using BitsOf = decltype(T().bits());

Atoms OddLiterals() {
  Atoms list;
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    VisitDType(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (IsOpaque(dtype)) return;
      if constexpr ((kIsInteger<T> && !std::is_same_v<T, bool>) || std::is_floating_point_v<T>) AddOddValues<T>(list);
      if constexpr (kIsSmallFloat<T>) AddAllPatterns<BitsOf<T>>(dtype, sizeof(T) == 1 ? 8 : 1000, list);
    });
  }
  for (uint32_t bits : {0x7fc00001u, 0x7f800001u, 0xffffffffu}) list.push_back(Atom(Tensor::Scalar(DType::kF32, bits)));
  for (uint64_t bits : {0x7ff8000000000001u, 0x7ff0000000000001u, ~uint64_t{0}})
    list.push_back(Atom(Tensor::Scalar(DType::kF64, bits)));
  for (bool value : {false, true}) list.push_back(Atom(Tensor::Scalar(DType::kBool, value)));
  list.push_back(Atom(Tensor::Zeros(DType::kBool, {3})));
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  list.push_back(
      Atom(Tensor::FromVector<std::complex<float>>({2, 2}, {{1.5f, -0.0f}, {inf, nan}, {-nan, -inf}, {0, 1e-45f}})));
  list.push_back(Atom(Tensor::Scalar(DType::kC128, std::complex<double>(0.1, -1e300))));
  list.push_back(Atom(Tensor::Scalar(DType::kKey, uint64_t{0x0123456789abcdef})));
  list.push_back(Atom(Tensor(DType::kF32, {0, 5})));
  list.push_back(Atom(Tensor(DType::kKey, {0})));
  list.push_back(Atom(Tensor::Zeros(DType::kI8, {1, 1, 1, 64})));
  return list;
}

}  // namespace

FnRef KitchenSinkFn() {
  Builder b("kitchen sink <lambda>");
  const Dim n = Dim::Symbol("n"), m = Dim::Symbol("batch_2");
  const Atom x = b.Parameter({DType::kF32, {n, 3}}, "x");
  const Atom w = b.Parameter({DType::kF64, {n * 2 + m * n - 1, Dim(4)}}, "params['w']", Param::Kind::kConstant);
  const Atom unnamed = b.Parameter({DType::kC64, {}}, "");
  const Atom sharded = b.Parameter({DType::kBF16, {8, 0}, {"data", "model"}}, "return");
  const Atom again = b.Parameter({DType::kI32, {}}, "x");
  b.set_loc(Loc::File("model.py", 12, "loss", Loc::File("train \"x\".py", 40, "<module>"))
                .Through("jvp")
                .Through("transpose"));
  const Prim& mul = FindPrim("mul");
  const Atom dead = b.Emit1(mul, {x, x});
  b.set_loc(Loc::File("other.py", 1, ""));
  const Atom y = b.Emit1(mul, {x, Atom::Scalar(DType::kF32, 2)});
  b.set_loc({});
  const Atom z = b.Emit1(mul, {unnamed, unnamed});
  (void)dead;
  Atoms results = {y, w, z, sharded, again};
  for (const Atom& literal : OddLiterals()) results.push_back(literal);
  return b.Build(results, /*keep_dead=*/true);
}

}  // namespace weft
