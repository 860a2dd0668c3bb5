// Kernels that are launched together (lowering/program/launches.h): of random programs, and of an optimizer's updates.
#include "lowering/program/launches.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "lowering/abi/steps.h"
#include "lowering/program/program.h"
#include "tests/property/random_fn.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

struct Bytes {
  int64_t begin = 0, end = 0;
  bool written = false;
  size_t kernel = 0;
  bool Meets(const Bytes& o) const { return begin < o.end && o.begin < end; }
};

// The slots that a kernel or a product reads and writes.
std::vector<std::pair<size_t, bool>> OperandsOf(const Program& program, const Step& s) {
  const int64_t* desc = program.artifact.desc.data() + s.desc;
  std::vector<std::pair<size_t, bool>> all;
  if (s.kind == Step::Kind::kOp) {
    const auto told = abi::Decode<abi::Contract<abi::InWords>>(desc);
    all = {{told.x, false}, {told.y, false}, {told.result, true}};
  } else {
    const auto told = abi::Decode<abi::Kernel<abi::InWords>>(desc);
    for (size_t i = 0; i < told.operands.size(); ++i)
      all.emplace_back(told.operands[i], program.kernels[static_cast<size_t>(s.index)].written[i]);
  }
  return all;
}

// Where the operands of step number `kernel` of a launch lie. Everything but the arena is in rooms of its own.
std::vector<Bytes> BytesOf(const Program& program, const Step& s, size_t kernel) {
  const Artifact& a = program.artifact;
  std::vector<Bytes> all;
  for (const auto& [operand, written] : OperandsOf(program, s)) {
    const Artifact::Slot& slot = a.slots[operand];
    constexpr int64_t kRoom = int64_t{1} << 40;
    Bytes b{.written = written, .kernel = kernel};
    if (slot.place == Artifact::Place::kArena) {
      const Artifact::Buffer& buffer = a.buffers[static_cast<size_t>(slot.index)];
      b.begin = buffer.offset;
      b.end = buffer.offset + buffer.bytes.constant;
    } else {
      EXPECT_NE(slot.place, Artifact::Place::kMoving);
      b.begin = kRoom * (1 + slot.index * 4 + static_cast<int>(slot.place));
      b.end = b.begin + 1;
    }
    all.push_back(b);
  }
  return all;
}

struct Found {
  int64_t kernels = 0, launches = 0, together = 0;
  int64_t products = 0;  // in launches
  std::string problem;
};

void Look(const Program& program, const Steps& steps, std::vector<int64_t>* order, Found* found) {
  for (const Step& s : steps) {
    if (s.kind == Step::Kind::kKernel) ++found->kernels, ++found->launches;
    if (s.kind != Step::Kind::kTogether) {
      order->push_back(s.desc);
      for (const Steps& block : s.blocks) Look(program, block, order, found);
      continue;
    }
    ++found->together;
    std::vector<Bytes> all;
    const int64_t before = found->kernels;
    for (const Step& k : s.blocks[0]) {
      ++(k.kind == Step::Kind::kOp ? found->products : found->kernels);
      order->push_back(k.desc);
      for (const Bytes& b : BytesOf(program, k, order->size())) all.push_back(b);
    }
    if (found->kernels > before) ++found->launches;
    for (const Bytes& x : all) {
      for (const Bytes& y : all) {
        if (x.kernel != y.kernel && x.written && x.Meets(y))
          found->problem = "a kernel writes what another of its launch touches";
      }
    }
  }
}

// The program's launches, where all that may run together does.
Found LaunchesOf(const FnRef& fn, const std::vector<bool>& donated, const FusionPolicy& policy = {}) {
  Program program = BuildProgram(*WithoutCalls(fn), policy, donated);
  std::vector<int64_t> before, after;
  Found alone, found;
  Look(program, program.steps, &before, &alone);
  JoinLaunches(&program, /*least_nanoseconds=*/0);
  Look(program, program.steps, &after, &found);
  EXPECT_EQ(before, after) << "steps in another order";
  EXPECT_EQ(alone.kernels, found.kernels);
  EXPECT_EQ(program.artifact.counters.launches, found.launches);
  return found;
}

TEST(Launches, NoKernelTouchesWhatAnotherWrites) {
  int64_t kernels = 0, launches = 0, together = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::mt19937 rng(seed);
    RandomFnOptions options;
    options.max_eqns = 30;
    options.loops = seed % 2 == 0;
    FnRef fn = RandomFn(rng, options);
    if (seed % 3 == 0) fn = Optimize(fn);
    std::vector<bool> donated;
    for (size_t i = 0; seed % 4 == 0 && i < fn->params().size(); ++i) donated.push_back(rng() % 2 == 0);
    const Found found = LaunchesOf(fn, donated);
    ASSERT_EQ(found.problem, "") << Print(*fn);
    kernels += found.kernels, launches += found.launches, together += found.together;
  }
  EXPECT_GT(together, 300);
  EXPECT_LT(launches, kernels);
}

// What each update reads and writes is its own, but for a number.
TEST(Launches, UpdatesOfManyParametersAreOne) {
  for (const int n : {2, 3, 200}) {
    std::string params = "rate: f32[]", body, results;
    for (int i = 0; i < n; ++i) {
      const std::string k = std::to_string(i), size = std::to_string(1000 + i % 3);
      params += ", p" + k + ": f32[" + size + "], g" + k + ": f32[" + size + "]";
      body += "  r" + k + " = broadcast[dims=[], shape=<" + size + ">] rate\n  s" + k + " = mul r" + k + " g" + k +
              "\n  q" + k + " = sub p" + k + " s" + k + "\n";
      results += (i > 0 ? ", q" : "q") + k;
    }
    const FnRef fn = ParseFn("fn f(" + params + ") {\n" + body + "  return " + results + "\n}\n");
    for (const bool donate : {false, true}) {
      const Found found = LaunchesOf(fn, std::vector<bool>(donate ? fn->params().size() : 0, true));
      EXPECT_EQ(found.kernels, n);
      EXPECT_EQ(found.launches, 1);
      EXPECT_EQ(found.problem, "");
    }
  }
}

TEST(Launches, WhatReadsWhatWasWrittenComesAfter) {
  const FnRef fn = ParseFn(
      "fn f(x: f32[64,64], y: f32[64,64]) {\n  a = reduce_sum[dims=[0,1]] x\n  b = reduce_sum[dims=[0,1]] y\n"
      "  c = broadcast[dims=[], shape=<64,64>] b\n  d = mul x c\n  e = reduce_max[dims=[0,1]] d\n"
      "  g = broadcast[dims=[], shape=<64,64>] e\n  h = add y g\n  return a, b, d, e, h\n}\n");
  const Found found = LaunchesOf(fn, {}, {.fuse = false});
  EXPECT_EQ(found.problem, "");
  EXPECT_EQ(found.kernels, 5);
  EXPECT_EQ(found.launches, 4);  // the two sums together
}

// q, k and v of an attention; what reads one of them comes after, and what every thread works at is by itself.
TEST(Launches, ProductsAreSideBySide) {
  const auto found = [](const std::string& n, const std::string& rest) {
    const std::string m = "f32[" + n + "," + n + "]";
    std::string text = "fn f(x: " + m + ", u: " + m + ", v: " + m + ", w: " + m + ") {\n";
    for (const auto& [result, operand] : {std::pair("a", "u"), {"b", "v"}, {"c", "w"}})
      text += std::string("  ") + result + " = contract[spec=\"ij,jk->ik\"] x " + operand + "\n";
    return LaunchesOf(ParseFn(text + rest), {});
  };
  const Found side_by_side = found("96", "  return a, b, c\n}\n");
  EXPECT_EQ(side_by_side.products, 3);
  EXPECT_EQ(side_by_side.together, 1);
  EXPECT_EQ(side_by_side.launches, 0);
  EXPECT_EQ(side_by_side.problem, "");
  const Found then = found("96", "  d = contract[spec=\"ij,jk->ik\"] a b\n  return c, d\n}\n");
  EXPECT_EQ(then.products, 3);
  const Found with_kernel = found("96", "  d = sin x\n  return a, b, c, d\n}\n");
  EXPECT_EQ(with_kernel.products, 3);
  EXPECT_EQ(with_kernel.launches, 1);
  EXPECT_EQ(with_kernel.together, 1);
  EXPECT_EQ(found("256", "  return a, b, c\n}\n").products, 0);
}

TEST(Launches, CheapKernelsAreCalledOneAfterTheOther) {
  Program program =
      BuildProgram(*ParseFn("fn f(x: f32[8], y: f32[9]) {\n  a = sin x\n  b = sin y\n  return a, b\n}\n"), {});
  JoinLaunches(&program);
  EXPECT_EQ(program.steps.size(), 2u);
  EXPECT_EQ(program.artifact.counters.launches, 2);
}

}  // namespace
}  // namespace weft
