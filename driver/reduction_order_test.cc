// Floating-point sums and products have the interpreter's bits, whatever they are computed beside, in which dimension
// the vector lies, and for which CPU the code is (ir/prims/reduction_order.h).
#include "ir/prims/reduction_order.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>

#include "driver/executable.h"
#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"
#include "ir/text/printer.h"
#include "lowering/abi/cpu_features.h"

namespace weft {
namespace {

Tensor Drawn(DType dtype, const Shape& shape, std::mt19937& rng) {
  Tensor t(dtype, shape);
  std::uniform_real_distribution<double> d(0.5, 1.5);
  for (int64_t i = 0; i < t.size(); ++i)
    t.Set(i, IsComplex(dtype) ? std::complex<double>(d(rng), d(rng) - 1) : std::complex<double>(d(rng)));
  return t;
}

// Operands made of x by operations that are rounded correctly, so that the order alone could change a bit.
using Body = std::function<Atom(Builder& b, const Atom& x)>;
struct NamedBody {
  const char* name;
  bool computes;
  Body body;
};

Atom Repeated(Builder& b, Atom x, int times) {
  for (int i = 0; i < times; ++i) x = Sub(b, Mul(b, x, x), Div(b, x, Add(b, x, x)));
  return x;
}

const std::vector<NamedBody>& Bodies() {
  static const auto& bodies = *new std::vector<NamedBody>{
      {"x", false, [](Builder&, const Atom& x) { return x; }},
      {"x * x", true,
       [](Builder& b, const Atom& x) { return Mul(b, x, x); }},  // no product is taken in without rounding
      {"few operations", true, [](Builder& b, const Atom& x) { return Repeated(b, x, 2); }},
      {"many operations", true, [](Builder& b, const Atom& x) { return Repeated(b, x, 8); }},
      // The vector lies where memory is contiguous, which is along another dimension than the last.
      {"transposed", false,
       [](Builder& b, const Atom& x) {
         Ints perm;
         for (int d = b.TypeOf(x).rank(); d-- > 0;) perm.push_back(d);
         return Transpose(b, x, perm);
       }},
      {"strided", false,
       [](Builder& b, const Atom& x) {
         Ints start, limit, strides;
         for (const Dim& d : b.TypeOf(x).dims) {
           start.push_back(0);
           limit.push_back(d.value());
           strides.push_back(2);
         }
         return Slice(b, x, start, limit, strides);
       }},
  };
  return bodies;
}

std::vector<Target> Targets() {
  std::vector<Target> targets;
  for (const char* level : {"baseline", "avx2", "avx512"}) {
    Target t = Target::Level(level);
    if (LackingFeature(t.ToString()).empty()) targets.push_back(std::move(t));
  }
  return targets;
}

Tensor Compiled(const FnRef& fn, const Target& target, const Tensor& x) {
  CompileRequest request{fn};
  request.passes = {};
  request.use_cache = request.use_disk_cache = false;
  request.target = target;
  return Compile(request)->Run({x})[0];
}

std::vector<Ints> OneDimensionEach(size_t rank) {
  std::vector<Ints> all;
  for (size_t d = 0; d < rank; ++d) all.push_back({static_cast<int64_t>(d)});
  return all;
}

void ExpectSameBits(DType dtype, const Shape& shape, const Ints& dims, const NamedBody& body, const char* op,
                    std::mt19937& rng) {
  Builder b("f");
  const Atom x = b.Parameter({dtype, Dims(shape.begin(), shape.end()), {}}, "x");
  const FnRef f = b.Build({Reduce(b, op, body.body(b, x), dims)});
  const Tensor in = Drawn(dtype, shape, rng), want = Eval(*f, {in})[0];
  for (const Target& target : Targets()) {
    const Tensor got = Compiled(f, target, in);
    EXPECT_EQ(std::memcmp(got.raw(), want.raw(), static_cast<size_t>(want.bytes())), 0)
        << body.name << " for " << target.vector_bytes << " bytes\n"
        << Print(*f);
  }
}

TEST(ReductionOrder, OneDimensionOfAnything) {
  std::mt19937 rng(1);
  for (const Shape& shape : {Shape{5}, {8}, {16}, {33}, {100}, {130}, {3000}, {40, 7}, {7, 40}, {90, 70}, {3, 9, 20}}) {
    for (const Ints& dims : OneDimensionEach(shape.size())) {
      for (const NamedBody& body : Bodies()) ExpectSameBits(DType::kF32, shape, dims, body, "reduce_sum", rng);
    }
  }
}

TEST(ReductionOrder, OtherDTypesAndProducts) {
  std::mt19937 rng(2);
  for (DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128, DType::kF16, DType::kBF16}) {
    for (const Shape& shape : {Shape{100}, {70, 6}, {6, 70}}) {
      for (const Ints& dims : OneDimensionEach(shape.size())) {
        for (const NamedBody& body : Bodies()) {
          // A kernel keeps the digits of f32 where 16 bits are computed, and the interpreter those of f64 in products
          // of complex numbers.
          if ((ByteWidth(dtype) == 2 || IsComplex(dtype)) && body.computes) continue;
          for (const char* op : {"reduce_sum", "reduce_prod"}) ExpectSameBits(dtype, shape, dims, body, op, rng);
        }
      }
    }
  }
}

TEST(ReductionOrder, NeighboursCountAsOneDimensionAndSizesOfOneAsNone) {
  std::mt19937 rng(3);
  const NamedBody& itself = Bodies()[0];
  const NamedBody& many = Bodies()[3];
  struct Case {
    Shape shape;
    Ints dims;
  };
  for (const Case& c : {Case{{50, 3}, {0, 1}},
                        {{5, 1, 20}, {0, 2}},
                        {{100, 1}, {0}},
                        {{1, 100}, {1}},
                        {{4, 6, 30}, {1, 2}},
                        {{30, 4, 6}, {0, 2}},
                        {{9, 5, 10}, {0, 1}}}) {
    for (const NamedBody* body : {&itself, &many})
      ExpectSameBits(DType::kF32, c.shape, c.dims, *body, "reduce_sum", rng);
  }
}

// Several sums in one kernel, of which some are in f64.
TEST(ReductionOrder, SumsOfTwoDTypesBesideEachOther) {
  std::mt19937 rng(4);
  for (const Ints& dims : {Ints{0}, {1}}) {
    for (const bool transposed : {false, true}) {
      Builder b("f");
      Atom x = b.Parameter({DType::kF32, {50, 90}, {}}, "x");
      if (transposed) x = Transpose(b, x, {1, 0});
      const Atom wide = Convert(b, x, DType::kF64);
      const FnRef f =
          b.Build({Reduce(b, "reduce_sum", x, dims), Reduce(b, "reduce_sum", Div(b, wide, Add(b, wide, wide)), dims),
                   Reduce(b, "reduce_max", x, dims)});
      const Tensor in = Drawn(DType::kF32, {50, 90}, rng);
      const Tensors want = Eval(*f, {in});
      for (const Target& target : Targets()) {
        CompileRequest request{f};
        request.passes = {};
        request.use_cache = request.use_disk_cache = false;
        request.target = target;
        const Tensors got = Compile(request)->Run({{in}});
        for (size_t i = 0; i < want.size(); ++i)
          EXPECT_EQ(std::memcmp(got[i].raw(), want[i].raw(), static_cast<size_t>(want[i].bytes())), 0)
              << i << " for " << target.vector_bytes << " bytes\n"
              << Print(*f);
      }
    }
  }
}

TEST(ReductionOrder, LanesAreSetByShapeAndDType) {
  const auto lanes = [](DType t, Dims sizes, Ints dims) {
    return LanesOfReduction(Type{t, std::move(sizes), {}}, dims);
  };
  EXPECT_EQ(lanes(DType::kF32, {8}, {0}), 64);
  EXPECT_EQ(lanes(DType::kC64, {8}, {0}), 64);
  EXPECT_EQ(lanes(DType::kF64, {8}, {0}), 32);
  EXPECT_EQ(lanes(DType::kF32, {7}, {0}), 1);
  EXPECT_EQ(lanes(DType::kF32, {100, 3}, {0}), 1);
  EXPECT_EQ(lanes(DType::kF32, {100, 1}, {0}), 64);
  EXPECT_EQ(lanes(DType::kF32, {100, 3}, {0, 1}), 64);
  EXPECT_EQ(lanes(DType::kF32, {Dim::Symbol("n")}, {0}), 64);
  EXPECT_EQ(lanes(DType::kI32, {100}, {0}), 0);
}

}  // namespace
}  // namespace weft
