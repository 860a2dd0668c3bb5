// A small array runs one kernel for all shapes (driver/operation_kernels.h). Operations whose result is exact, or
// correctly rounded, have the same bits in the reference interpreter, and so have reductions: it does them until
// compiling pays.
#include "python/native/eager.h"

#include <Python.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/hash/hash.h"
#include "driver/executable.h"
#include "driver/operation_kernels.h"
#include "ir/ops.h"
#include "ir/prim.h"
#include "python/native/nans.h"
#include "python/native/run.h"
#include "tracer/context.h"
#include "tracer/ops.h"

namespace weft::python {
namespace {

// Elements of the largest arrays; programs for larger ones are compiled for their shape (run.cc).
constexpr int64_t kSmall = 8192;
// Elements that the interpreter visits before a kernel is compiled, each call counting as some: about the time of
// compiling.
constexpr double kInterpreted = 1e6;
constexpr int64_t kElementsOfACall = 32;

struct Key {
  const Prim* prim;
  uint32_t operands;  // the dtype of the operation, and of each operand its dtype and whether it is a number
  Attrs attrs;
  friend bool operator==(const Key& a, const Key& b) {
    return a.prim == b.prim && a.operands == b.operands && a.attrs == b.attrs;
  }
  template <class H>
  friend H AbslHashValue(H h, const Key& k) {
    return H::combine(std::move(h), k.prim, k.operands, k.attrs);
  }
};

struct Kernel {
  FnRef fn;
  bool exact = false;
  double interpreted = 0;
  DType result = DType::kF32;
  std::shared_ptr<Executable> code;  // null: not compiled yet
};

// Python's lock guards it.
using KernelsByKey = std::unordered_map<Key, std::shared_ptr<Kernel>, absl::Hash<Key>>;
KernelsByKey& Kernels() {
  static auto& kernels = *new KernelsByKey();
  return kernels;
}

struct Given {
  const Tensor* tensor;  // of an operand, or the number's
  bool number;           // beside arrays: of no dimensions
};
using Givens = std::array<Given, 2>;

// By the reference, as ir/eval/eval.h does it, without a program around it.
Tensor Interpreted(const Prim& prim, const Kernel& kernel, const Attrs& attrs, const Givens& given, size_t count,
                   const Shape& shape) {
  Tensors in;
  Types types;
  for (size_t i = 0; i < count; ++i) {
    in.push_back(*given[i].tensor);
    types.push_back(in.back().type());
  }
  const Mask literal(count, false);
  static const std::vector<FnRef>& no_regions = *new std::vector<FnRef>();
  const Sig sig{prim, types, literal, attrs, no_regions};
  const Types results = {Type{kernel.result, Dims(shape.begin(), shape.end()), {}}};
  return prim.eval(EvalContext{sig, results, {}}, in)[0];
}

// A reduction of a small array, by the reference: what the program of one operation would do (run.cc).
std::optional<Tensor> Reduced(const Prim& prim, DType dtype, const Attrs& attrs, const Operand& x) {
  if (x.is_scalar() || x.value().traced()) return std::nullopt;
  const Tensor& t = x.value().tensor();
  if (t.dtype() != dtype || !prim.dtypes.Has(dtype) || IsStored(dtype) || IsOpaque(dtype) || t.size() > kSmall)
    return std::nullopt;
  const Types operands = {t.type()};
  static const Mask& literal = *new Mask(1, false);
  static const std::vector<FnRef>& no_regions = *new std::vector<FnRef>();
  const Sig sig{prim, operands, literal, attrs, no_regions};
  const Types results = InferTypes(sig);
  return prim.eval(EvalContext{sig, results, {}}, {t})[0];
}

std::optional<Tensor> Run(const Prim& prim, DType dtype, const Attrs& attrs, Operands xs) {
  if (SettingsHere().HasAny(kSettingsOfRuns)) return std::nullopt;
  if (prim.family == Family::kReduction && xs.size() == 1) return Reduced(prim, dtype, attrs, xs[0]);
  if (InterpretAlways() || xs.empty() || xs.size() > 2 || !prim.is_elementwise() || !prim.dtypes.Has(dtype) ||
      IsStored(dtype) || IsOpaque(dtype))
    return std::nullopt;
  const Shape* shape = nullptr;
  bool fits = true, alike = true;
  for (const Operand& x : xs) {
    if (x.is_scalar()) continue;
    const Value& v = x.value();
    if (v.traced() || IsStored(v.dtype()) || IsOpaque(v.dtype())) return std::nullopt;
    alike &= v.dtype() == dtype;
    const Shape& its = v.tensor().shape();
    if (its.empty()) continue;
    if (shape == nullptr)
      shape = &its;
    else
      fits &= *shape == its;
  }
  const bool exact = InterpretedHasSameBits(prim, dtype);
  if (exact && !(fits && alike)) return std::nullopt;
  if (!fits) {
    const Dims joint = BroadcastShapes(xs, prim.name.c_str());
    std::array<Value, 2> wide;
    std::array<Operand, 2> operands = {xs[0], xs[1]};
    for (size_t i = 0; i < 2; ++i) {
      if (xs[i].rank() == 0) continue;
      wide[i] = BroadcastTo(xs[i], joint);
      operands[i] = Operand(wide[i]);
    }
    return Run(prim, dtype, attrs, operands);
  }
  static const Shape& none = *new Shape();
  const bool numbers_alone = shape == nullptr;
  if (numbers_alone) shape = &none;
  const int64_t n = NumElements(*shape);
  if (n == 0 || n > kSmall) return std::nullopt;

  std::array<Tensor, 2> numbers;
  Givens given{};
  uint32_t key = static_cast<uint32_t>(dtype) + 1;
  for (size_t i = 0; i < xs.size(); ++i) {
    if (xs[i].is_scalar()) numbers[i] = NumberTensor(dtype, xs[i].scalar());
    given[i].tensor = xs[i].is_scalar() ? &numbers[i] : &xs[i].value().tensor();
    given[i].number = !numbers_alone && given[i].tensor->rank() == 0;
    key = key << 8 | static_cast<uint32_t>(given[i].tensor->dtype()) << 1 | static_cast<uint32_t>(given[i].number);
  }
  std::shared_ptr<Kernel> kernel;
  {
    std::shared_ptr<Kernel>& known = Kernels()[Key{&prim, key, attrs}];
    if (!known) {
      auto made = std::make_shared<Kernel>();
      std::array<KernelOperand, 2> operands{};
      for (size_t i = 0; i < xs.size(); ++i) operands[i] = {given[i].tensor->dtype(), given[i].number};
      made->fn = OperationOnRows(prim, dtype, attrs, absl::MakeConstSpan(operands).first(xs.size()));
      made->exact = exact;
      if (made->fn) made->result = made->fn->TypeOf(made->fn->results()[0]).dtype;
      known = std::move(made);
    }
    kernel = known;
  }
  if (!kernel->fn) return std::nullopt;  // the error is raised where the operands' own shapes are
  if (kernel->exact && !kernel->code && kernel->interpreted < kInterpreted) {
    kernel->interpreted += static_cast<double>(n + kElementsOfACall);
    return Interpreted(prim, *kernel, attrs, given, xs.size(), *shape);
  }
  if (!kernel->code) {
    std::shared_ptr<Executable> code;
    {
      const Unlocked unlocked;  // compiling takes long
      code = Compile({kernel->fn});
    }
    kernel->code = std::move(code);
  }
  Tensors in;
  in.reserve(xs.size());
  for (size_t i = 0; i < xs.size(); ++i) in.push_back(given[i].number ? *given[i].tensor : AsRow(*given[i].tensor));
  return OfShape(kernel->code->RunOwned(std::move(in))[0], *shape);
}

}  // namespace

void InstallOperations() { SetOperationRunner(Run); }

}  // namespace weft::python
