// Every element-wise and reduction primitive in every dtype, as a GPU kernel run thread by thread with all checks,
// against the reference interpreter; with libdevice's functions where the toolkit is installed, and without.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>

#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/prim.h"
#include "ir/samples/drawn_tensors.h"
#include "ir/samples/sample_fns.h"
#include "tests/gpu/emulated.h"

namespace weft {
namespace {

// What raises kUnsupported: "operation: dtypes" in each line. docs/gpu.md tells of it.
constexpr char kWithoutRule[] =
    "abs: c128 c64\n"
    "acos: c128 c64\n"
    "acosh: c128 c64\n"
    "asin: c128 c64\n"
    "asinh: c128 c64\n"
    "atan: c128 c64\n"
    "atanh: c128 c64\n"
    "cos: c128 c64\n"
    "cosh: c128 c64\n"
    "digamma: bf16 f16 f32 f64\n"
    "div: c128 c64\n"
    "exp: c128 c64\n"
    "exp2: c128 c64\n"
    "expm1: c128 c64\n"
    "integer_pow: c64\n"
    "log: c128 c64\n"
    "log1p: c128 c64\n"
    "logistic: c128 c64\n"
    "pow: c128 c64\n"
    "rsqrt: c128 c64\n"
    "sin: c128 c64\n"
    "sinh: c128 c64\n"
    "sqrt: c128 c64\n"
    "tan: c128 c64\n"
    "tanh: c128 c64\n"
    "trigamma: bf16 f16 f32 f64\n";
constexpr char kNeedsLibdevice[] =
    "abs: c128 c64\n"
    "acos: c128 c64\n"
    "acosh: c128 c64 f64\n"
    "asin: c128 c64\n"
    "asinh: c128 c64 f64\n"
    "atan: c128 c64\n"
    "atanh: c128 c64 f64\n"
    "cbrt: f64\n"
    "cos: bf16 c128 c64 f16 f32 f64\n"
    "cosh: c128 c64\n"
    "digamma: bf16 f16 f32 f64\n"
    "div: c128 c64\n"
    "erf: f64\n"
    "erf_inv: f64\n"
    "erfc: f64\n"
    "exp: c128 c64\n"
    "exp2: c128 c64\n"
    "expm1: c128 c64\n"
    "integer_pow: c64\n"
    "lgamma: bf16 f16 f32 f64\n"
    "log: c128 c64\n"
    "log1p: c128 c64\n"
    "logistic: c128 c64\n"
    "normal_cdf: f64\n"
    "pow: c128 c64 f64\n"
    "rem: bf16 f16 f32 f64\n"
    "rsqrt: c128 c64\n"
    "sin: bf16 c128 c64 f16 f32 f64\n"
    "sinh: c128 c64\n"
    "sqrt: c128 c64\n"
    "tan: bf16 c128 c64 f16 f32 f64\n"
    "tanh: c128 c64\n"
    "trigamma: bf16 f16 f32 f64\n";

Tensors Arguments(const Prim& prim, const Sample& sample, const Fn& fn, std::mt19937& rng) {
  Tensors args;
  for (const Param& p : fn.params()) args.push_back(Draw(p.type, sample.low, sample.high, rng));
  (void)prim;
  return args;
}

// Larger than the primitive's own samples where those are all of one shape: rows that end in part of a block.
std::vector<Sample> Samples(const Prim& prim) {
  std::vector<Sample> list;
  for (const Sample& s : prim.samples()) {
    bool is_static = true;
    for (const Type& t : s.operands) {
      for (const Dim& d : t.dims) is_static = is_static && d.is_static();
    }
    if (!is_static) continue;
    list.push_back(s);
    if (!prim.is_elementwise() || !s.values.empty() || s.operands.empty() || s.operands[0].rank() != 1) continue;
    const DType dtype = s.operands[0].dtype;
    if (dtype != DType::kF32 && dtype != DType::kBF16 && dtype != DType::kU8 && dtype != DType::kC64) continue;
    for (const Dims& dims : {Dims{5, 72}, Dims{1030}}) {
      Sample larger = s;
      for (Type& t : larger.operands) {
        if (t.rank() == 1) t.dims = dims;
      }
      list.push_back(larger);
    }
  }
  return list;
}

bool UsesFloat8(const Sample& sample, const Fn& fn) {
  for (const Types& types : {sample.operands, fn.ResultTypes()}) {
    for (const Type& t : types) {
      if (IsFloat8(t.dtype)) return true;
    }
  }
  return false;
}

void CheckAll(const std::string& expected) {
  std::mt19937 rng(7);
  std::map<std::string, std::set<std::string>> without;
  int checked = 0;
  for (const Prim* prim : AllPrims()) {
    if (!prim->is_elementwise() && prim->family != Family::kReduction) continue;
    for (const Sample& sample : Samples(*prim)) {
      const FnRef fn = SampleFn(*prim, sample);
      const Tensors args = Arguments(*prim, sample, *fn, rng);
      const std::string dtype = Name(sample.operands.empty() ? DType::kF32 : sample.operands[0].dtype);
      Tensors got;
      try {
        got = RunEmulated(fn, args);
      } catch (const Error& error) {
        ASSERT_EQ(error.kind(), ErrorKind::kUnsupported) << prim->name << " " << dtype << ": " << error.what();
        // 8-bit floats are moved only: what converts them has no code.
        const std::string named =
            UsesFloat8(sample, *fn) && prim->family == Family::kReduction ? "convert" : prim->name;
        EXPECT_EQ(error.message().rfind(named + ": ", 0), 0u) << error.message();
        if (!UsesFloat8(sample, *fn)) without[prim->name].insert(dtype);
        continue;
      } catch (const std::exception& error) {
        ADD_FAILURE() << prim->name << " " << dtype << ": " << error.what();
        continue;
      }
      const Tensors want = Eval(*fn, args);
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_EQ(Difference(got[i], want[i], 12, 2), "") << prim->name << " " << ToString(fn->ParamTypes());
      ++checked;
    }
  }
  EXPECT_GT(checked, 500);
  std::string text;
  for (const auto& [name, dtypes] : without) {
    text += name + ":";
    for (const std::string& dtype : dtypes) text += " " + dtype;
    text += "\n";
  }
  EXPECT_EQ(text, expected);
}

// Rows that threads read in a loop, several elements in each pass and one by one at its end.
TEST(GpuPrimitives, LongRows) {
  std::mt19937 rng(3);
  const struct {
    Dims dims;
    Ints reduced;
  } rows[] = {{{259, 8}, {0}}, {{1200, 33}, {0}}, {{517, 64}, {0}}, {{2, 40000}, {1}}, {{2, 70001}, {1}}};
  for (const auto& [dims, reduced] : rows) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kI32}) {
      for (const char* op : {"reduce_sum", "reduce_max"}) {
        Builder b("f");
        const Atom x = b.Parameter({dtype, dims, {}});
        const FnRef fn = b.Build({Reduce(b, op, x, reduced)});
        const Tensors args = {Draw(fn->ParamTypes()[0], -2, 2, rng)};
        const Tensors got = RunEmulated(fn, args), want = Eval(*fn, args);
        // Of the interpreter's sums, which are rounded one after the other where numbers are f32.
        EXPECT_EQ(Difference(got[0], want[0], 12, dtype == DType::kBF16 ? 16 : 400), "")
            << op << ToString(fn->ParamTypes());
      }
    }
  }
}

TEST(GpuPrimitives, EqualTheInterpreterWithoutLibdevice) {
  setenv("WEFT_LIBDEVICE", "none", 1);
  CheckAll(kNeedsLibdevice);
}

TEST(GpuPrimitives, EqualTheInterpreterWithLibdevice) {
  unsetenv("WEFT_LIBDEVICE");
  if (FindLibdevice().empty()) GTEST_SKIP() << "there is no libdevice: the CUDA toolkit is not installed";
  CheckAll(kWithoutRule);
}

}  // namespace
}  // namespace weft
