// Bundles as bytes: what is read is what was written, and bytes that were changed are refused.
#include "lowering/bundle/bundle.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "base/dtype.h"

namespace weft {
namespace {

Bundle Sample() {
  Bundle b;
  b.name = "f";
  b.params = {{"x", static_cast<int32_t>(DType::kF32), {2, 3}, false, ""},
              {"w", static_cast<int32_t>(DType::kF64), {1}, true, std::string(8, 'w')}};
  b.results = {{"", static_cast<int32_t>(DType::kF32), {2, 3}, false, ""}};
  GpuArtifact a;
  a.sm = "sm_80";
  a.ptx = ".version 8.0";
  a.plan.slots = {{Artifact::Place::kParam, 0}, {Artifact::Place::kResult, 0}};
  GpuStep step;
  step.kind = GpuStep::Kind::kCopy;
  step.slots = {1, 0};
  step.written = {1, 0};
  step.bytes = 24;
  a.steps = {step};
  b.gpu = a;
  return b;
}

std::string ErrorOf(const std::string& bytes) {
  try {
    Bundle::Parse(bytes);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Bundle, IsReadAsWritten) {
  const Bundle b = Bundle::Parse(Sample().Serialize());
  EXPECT_EQ(b.name, "f");
  ASSERT_EQ(b.params.size(), 2u);
  EXPECT_EQ(b.params[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(b.params[1].constant, "wwwwwwww");
  ASSERT_TRUE(b.gpu.has_value());
  EXPECT_EQ(b.gpu->ptx, ".version 8.0");
  ASSERT_EQ(b.gpu->steps.size(), 1u);
  EXPECT_EQ(b.gpu->steps[0].bytes, 24);
}

TEST(Bundle, EveryChangedByteIsSeen) {
  const std::string whole = Sample().Serialize();
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const int with : {1, 0x80, 0xff}) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ with);
      EXPECT_NE(ErrorOf(bytes), "") << "byte " << i;
    }
  }
}

TEST(Bundle, EveryMissingByteIsSeen) {
  const std::string whole = Sample().Serialize();
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_NE(ErrorOf(whole.substr(0, size)), "") << size;
  EXPECT_NE(ErrorOf(whole + "x"), "");
}

TEST(Bundle, TypesAreThoseThatThereAre) {
  Bundle b = Sample();
  b.params[0].dtype = kNumDTypes;
  EXPECT_EQ(ErrorOf(b.Serialize()), "the bundle is damaged: an array of no type");
}

// --- Of a CPU ---

SizeExpr Size(int64_t n) {
  SizeExpr e;
  e.constant = n;
  return e;
}

Bundle SampleOfCpu() {
  Bundle b;
  b.name = "f";
  b.params = {{"x", static_cast<int32_t>(DType::kF32), {2, 3}, false, ""}};
  b.results = {{"", static_cast<int32_t>(DType::kF32), {6}, false, ""}};
  Artifact a;
  a.code = "code";
  a.params = {{static_cast<uint8_t>(DType::kF32), {Size(2), Size(3)}}};
  a.results = {{static_cast<uint8_t>(DType::kF32), {Size(6)}}};
  a.constants = std::string(128, 'c');
  a.buffers = {{Size(64), 0, 1, 0}, {Size(60), 1, 2, 64}};
  a.arena_bytes = 128;
  a.slots = {{Artifact::Place::kParam, 0},
             {Artifact::Place::kResult, 0},
             {Artifact::Place::kArena, 1},
             {Artifact::Place::kConstant, 64},
             {Artifact::Place::kMoving, 0}};
  a.desc = {1, 2, 3};
  Artifact::Function f;
  f.slots = {{Artifact::Place::kArena, 0}, {Artifact::Place::kParam, 3}};
  f.buffers = {{Size(8), 0, 0, 0}};
  f.arena_bytes = 64;
  a.functions = {f};
  b.cpu = a;
  return b;
}

TEST(BundleOfCpu, IsReadAsWritten) {
  const Bundle b = Bundle::Parse(SampleOfCpu().Serialize());
  ASSERT_TRUE(b.cpu.has_value());
  EXPECT_EQ(b.cpu->PlanProblem(), "");
  EXPECT_EQ(b.cpu->slots.size(), 5u);
  EXPECT_EQ(b.cpu->functions.size(), 1u);
}

// What a plan must not say, each alone.
TEST(BundleOfCpu, PlansAreChecked) {
  using Change = void (*)(Artifact&);
  constexpr int64_t kFar = int64_t{1} << 62;
  const Change changes[] = {
      [](Artifact& a) { a.slots[0].index = 1; },
      [](Artifact& a) { a.slots[0].index = -1; },
      [](Artifact& a) { a.slots[1].index = 1; },
      [](Artifact& a) { a.slots[2].index = 2; },
      [](Artifact& a) { a.slots[2].index = -1; },
      [](Artifact& a) { a.slots[3].index = 129; },
      [](Artifact& a) { a.slots[3].index = -64; },
      [](Artifact& a) { a.slots[4].place = static_cast<Artifact::Place>(5); },
      [](Artifact& a) { a.slots[4].place = static_cast<Artifact::Place>(255); },
      [](Artifact& a) { a.buffers[0].offset = -64; },
      [](Artifact& a) { a.buffers[0].offset = 128; },
      [](Artifact& a) { a.buffers[1].offset = kFar; },
      [](Artifact& a) { a.buffers[1].bytes = Size(65); },
      [](Artifact& a) { a.buffers[1].bytes = Size(-1); },
      [](Artifact& a) { a.buffers[1].bytes = Size(kFar); },
      [](Artifact& a) { a.buffers[1].bytes.terms = {{1, {0}}}; },
      [](Artifact& a) { a.buffers[1].last = 0; },
      [](Artifact& a) { a.buffers[1].first = -1; },
      [](Artifact& a) { a.arena_bytes = 64; },
      [](Artifact& a) { a.arena_bytes = -2; },
      [](Artifact& a) { a.functions[0].slots[0].index = 1; },
      [](Artifact& a) { a.functions[0].slots[1].index = -1; },
      [](Artifact& a) { a.functions[0].buffers[0].offset = 60; },
      [](Artifact& a) { a.functions[0].arena_bytes = 4; },
      [](Artifact& a) { a.params[0].dims[0] = Size(3); },
      [](Artifact& a) { a.params[0].dims[0] = Size(-2); },
      [](Artifact& a) { a.params[0].dims.pop_back(); },
      [](Artifact& a) { a.params[0].dims[0].terms = {{1, {}}}; },
      [](Artifact& a) { a.params[0].dtype = static_cast<uint8_t>(DType::kF64); },
      [](Artifact& a) { a.params[0].dtype = 200; },
      [](Artifact& a) { a.params.push_back(a.params[0]); },
      [](Artifact& a) { a.params.clear(); },
      [](Artifact& a) { a.results[0].dims[0] = Size(7); },
      [](Artifact& a) { a.results.push_back(a.results[0]); },
      [](Artifact& a) { a.symbols = {"n"}; },
      [](Artifact& a) { a.donated = {1}; },
      [](Artifact& a) { a.donated = {0, 0}; },
      [](Artifact& a) { a.result_in = {1}; },
      [](Artifact& a) { a.result_in = {-2}; },
      [](Artifact& a) { a.result_in = {0, 0}; },
      [](Artifact& a) { a.desc_patches = {{3, Size(1)}}; },
      [](Artifact& a) { a.desc_patches = {{-1, Size(1)}}; },
      [](Artifact& a) { a.desc_patches = {{0, {0, {{1, {0}}}}}}; },
      [](Artifact& a) { a.conditions = {{{0, {{1, {7}}}}, 0, Size(1), ""}}; },
      [](Artifact& a) { a.conditions = {{Size(1), 0, {0, {{1, {-1}}}}, ""}}; },
  };
  int number = 0;
  for (const Change& change : changes) {
    Bundle b = SampleOfCpu();
    change(*b.cpu);
    EXPECT_NE(ErrorOf(b.Serialize()).find("the bundle is damaged"), std::string::npos) << "change " << number;
    ++number;
  }
}

TEST(BundleOfCpu, NamesAreText) {
  for (int which = 0; which < 2; ++which) {
    Bundle b = SampleOfCpu();
    (which == 0 ? b.name : b.params[0].name) = "\xff";
    EXPECT_NE(ErrorOf(b.Serialize()), "");
  }
}

}  // namespace
}  // namespace weft
