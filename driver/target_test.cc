// Code is made of instructions that the CPU has, and runs on no other.
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "driver/executable.h"
#include "ir/builder.h"
#include "ir/error.h"
#include "ir/text/parser.h"
#include "lowering/abi/cpu_features.h"

namespace weft {
namespace {

std::shared_ptr<const Executable> CompileFor(const FnRef& f, const Target& target) {
  CompileRequest options;
  options.passes = {};
  options.use_cache = false;
  options.use_disk_cache = false;
  options.target = target;
  return Compile(options.For(f));
}

// The first register or instruction of AVX-512 in assembly; empty when there is none.
std::string FirstOfAvx512(const std::string& assembly) {
  static const std::regex pattern("%zmm|%k[0-7]|%[xy]mm(1[6-9]|2[0-9]|3[01])|vpternlog|vprol|vpror");
  std::smatch found;
  return std::regex_search(assembly, found, pattern) ? found.str() : "";
}

// What AVX-512 has instructions for: rotations, masked bytes, products and conversions of i64, powers of two.
const char* const kPrograms[] = {
    "fn f(a: u32[999], b: u32[999]) -> (u32[999], u32[999]) { c, d = threefry2x32 a b a b; return c, d }",
    "fn f(x: i8[1001], y: i8[1001]) -> i8[1001] { z = add x y; return z }",
    "fn f(x: i64[1000], y: i64[1000]) -> i64[1000] { z = mul x y; return z }",
    "fn f(x: f64[1000]) -> i64[1000] { z = convert[dtype=i64] x; return z }",
    "fn f(x: f32[1000]) -> f32[1000] { y = exp x; z = erf y; return z }",
};

TEST(Target, InstructionsThatAVirtualMachineTakesAwayAreNotUsed) {
  std::map<std::string, bool> features;
  for (const char* f : {"sse4.2", "popcnt", "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe"})
    features[f] = true;
  const Target whole = [&] {
    auto all = features;
    for (const char* f : {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}) all[f] = true;
    return Target::Of("znver4", all);
  }();
  EXPECT_EQ(whole.vector_bytes, 64);
  for (const char* f : {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}) features[f] = false;
  const Target reduced = Target::Of("znver4", features);
  EXPECT_EQ(reduced.vector_bytes, 32);
  for (const char* text : kPrograms) {
    const FnRef f = ParseFn(text);
    EXPECT_EQ(FirstOfAvx512(CompileFor(f, reduced)->Stage("asm")), "") << text;
    EXPECT_NE(FirstOfAvx512(CompileFor(f, whole)->Stage("asm")), "") << text;
  }
}

TEST(Target, CodeForAnotherCpuIsLookedAtButNotRun) {
  Target other = Target::Level("baseline");
  other.features += ",+fma4";  // of one family of CPUs, none made since 2017
  if (LackingFeature(other.ToString()).empty()) GTEST_SKIP() << "this CPU has them";
  const auto program = CompileFor(ParseFn("fn f(x: f32[3]) -> f32[3] { y = exp x; return y }"), other);
  EXPECT_NE(program->Stage("asm").find("weft_main"), std::string::npos);
  try {
    program->Run({Tensor::Full(DType::kF32, {3}, 1)});
    FAIL() << "it ran";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kRuntime);
    EXPECT_STREQ(e.what(), "the program was compiled for a CPU with fma4, which this one lacks");
  }
}

TEST(Target, FeaturesAreReadBySignAndWholeName) {
  for (const char* target : {"", "cpu:x", "cpu:x:-fma4", "cpu:x:+fma4a,-fma4", "cpu:x:+sse4.2,-fma4:unfused"})
    EXPECT_EQ(LackingFeature(target), "") << target;
  if (__builtin_cpu_supports("fma4")) GTEST_SKIP() << "this CPU has fma4";
  for (const char* target : {"cpu:x:+fma4", "cpu:x:+sse4.2,+fma4,-avx", "cpu:x:+fma4:unfused"})
    EXPECT_EQ(LackingFeature(target), "fma4") << target;
}

TEST(Target, TheHostHasWhatItIsSaidToHave) { EXPECT_EQ(LackingFeature(Target::Host().ToString()), ""); }

}  // namespace
}  // namespace weft
