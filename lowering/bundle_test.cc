// Bundles as bytes: what is read is what was written, and bytes that were changed are refused.
#include "lowering/bundle.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "ir/dtype.h"

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

}  // namespace
}  // namespace weft
