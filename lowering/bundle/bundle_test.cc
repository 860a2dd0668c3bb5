// Bundles as bytes: what is read is what was written, and bytes that were changed are refused.
#include "lowering/bundle/bundle.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>

#include "base/dtype.h"
#include "lowering/abi/steps.h"

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
  a.kernels = {{"k0", 2, 128, 0, false}};
  abi::EncodeWords(abi::Launch<abi::Owned>{0, {{1, true}, {0, false}}, 48}, &a.plan.desc);
  // The sum of x's columns, thrice.
  const GpuMatmul product{DType::kF32, DType::kF32, 1, 3, 2, 2, 0, 0, 1, 3, 0, 0, 3, 1, 0, 2, 1};
  abi::EncodeWords(abi::Product<abi::Owned>{0, 0, 1, product, 48}, &a.plan.desc);
  abi::EncodeWords(abi::Copy<abi::Owned>{1, 0, 24}, &a.plan.desc);
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
  EXPECT_EQ(b.gpu->plan.desc, Sample().gpu->plan.desc);
  std::string steps;
  b.gpu->ForEachStep([&](const auto& step) { steps += std::to_string(step.bytes) + " "; });
  EXPECT_EQ(steps, "48 48 24 ");
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

// What a plan for a GPU must not say, each alone, and the word of the message that says so.
TEST(Bundle, PlansForGpusAreChecked) {
  using Change = void (*)(GpuArtifact&);
  const auto replace = [](GpuArtifact& a, const auto& step) {
    a.plan.desc.clear();
    abi::EncodeWords(step, &a.plan.desc);
  };
  static const auto kReplace = replace;
  const std::pair<const char*, Change> changes[] = {
      {"launch: kernel is 1", [](GpuArtifact& a) { kReplace(a, abi::Launch<abi::Owned>{1, {}, 0}); }},
      {"operands[0].place is 2", [](GpuArtifact& a) { kReplace(a, abi::Launch<abi::Owned>{0, {{2, true}}, 0}); }},
      {"launch: bytes is -1", [](GpuArtifact& a) { kReplace(a, abi::Launch<abi::Owned>{0, {}, -1}); }},
      {"copy: place", [](GpuArtifact& a) { kReplace(a, abi::Copy<abi::Owned>{1, 0, 25}); }},
      {"copy: from is 9", [](GpuArtifact& a) { kReplace(a, abi::Copy<abi::Owned>{1, 9, 8}); }},
      {"product: place",
       [](GpuArtifact& a) {
         kReplace(a, abi::Product<abi::Owned>{0, 0, 1, {.dtype = DType::kF32, .m = 7, .x_m = 1}, 0});
       }},
      {"product: it begins before",
       [](GpuArtifact& a) {
         kReplace(a, abi::Product<abi::Owned>{0, 0, 1, {.dtype = DType::kF32, .m = 2, .x_m = -1}, 0});
       }},
      {"sort: a step of another kind", [](GpuArtifact& a) { kReplace(a, abi::Sort<abi::Owned>{{1}, 0, {}, 0}); }},
      {"there is no step", [](GpuArtifact& a) { a.plan.desc = {1000}; }},
      {"copy: bytes is missing", [](GpuArtifact& a) { a.plan.desc.pop_back(); }},
      {"a kernel of no block", [](GpuArtifact& a) { a.kernels[0].blocks = 0; }},
      {"a kernel of no block", [](GpuArtifact& a) { a.kernels[0].threads = 2048; }},
      {"a slot has no place", [](GpuArtifact& a) { a.plan.slots[0].place = Artifact::Place::kMoving; }},
      {"a slot lies nowhere", [](GpuArtifact& a) { a.plan.slots[0].index = 2; }},
  };
  for (const auto& [message, change] : changes) {
    Bundle b = Sample();
    change(*b.gpu);
    const std::string error = ErrorOf(b.Serialize());
    EXPECT_NE(error.find(message), std::string::npos) << message << ": " << error;
  }
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
  abi::EncodeWords(abi::Kernel<abi::Owned>{{0, 3, 2}, {}}, &a.desc);
  abi::EncodeWords(abi::Call<abi::Owned>{0, {0, 2}, {1}, {0}}, &a.desc);
  Artifact::Function f;
  f.slots = {{Artifact::Place::kArena, 0}, {Artifact::Place::kParam, 1}, {Artifact::Place::kResult, 0}};
  f.buffers = {{Size(16), 0, 0, 0}};
  f.arena_bytes = 64;
  f.first_word = static_cast<int64_t>(a.desc.size());
  abi::EncodeWords(abi::TapeStart<abi::Owned>{0}, &a.desc);
  abi::EncodeWords(abi::Copy<abi::Owned>{2, 0, 16}, &a.desc);
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
      [](Artifact& a) { a.functions[0].slots.pop_back(); },
      [](Artifact& a) { a.functions[0].slots[1].index = 2; },
      [](Artifact& a) { a.functions[0].slots[2].index = 1; },
      [](Artifact& a) { a.functions[0].first_word = 1; },
      [](Artifact& a) { a.functions[0].first_word = -1; },
      [](Artifact& a) { a.functions[0].first_word = 100; },
      [](Artifact& a) { a.functions[0].buffers[0].bytes = Size(15); },
      [](Artifact& a) { a.desc[0] = WEFT_OP_LOOP; },
      [](Artifact& a) { a.desc[0] = WEFT_OP_COUNT + 100; },
      [](Artifact& a) { a.desc[2] = 5; },
      [](Artifact& a) { a.desc[3] = -1; },
      [](Artifact& a) { a.desc.back() = -1; },
      [](Artifact& a) { a.desc.back() = 17; },
      [](Artifact& a) { a.desc.pop_back(); },
      [](Artifact& a) { a.desc.push_back(0); },
      [](Artifact& a) { abi::EncodeWords(abi::Product<abi::Owned>{}, &a.desc); },
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
      [](Artifact& a) { a.desc_patches = {{static_cast<int64_t>(a.desc.size()), Size(1)}}; },
      [](Artifact& a) { a.desc_patches = {{-1, Size(1)}}; },
      [](Artifact& a) { a.desc_patches = {{2, Size(1)}}; },
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
