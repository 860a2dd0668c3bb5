#include "lowering/abi/cpu_features.h"

namespace weft {

std::string LackingFeature(const std::string& target) {
  // Signs and names stand between commas and colons.
  const auto asks = [&](const std::string& feature) {
    const std::string sign_and_name = "+" + feature;
    for (size_t at = 0; (at = target.find(sign_and_name, at)) != std::string::npos; ++at) {
      const size_t end = at + sign_and_name.size();
      if (end == target.size() || target[end] == ',' || target[end] == ':') return true;
    }
    return false;
  };
  // What a code generator chooses by itself. The compiler's query takes literals only; it asks the operating system too
  // whether it keeps the registers.
#define WEFT_FEATURE(name) \
  if (asks(name) && !__builtin_cpu_supports(name)) return name;
  WEFT_FEATURE("sse3")
  WEFT_FEATURE("ssse3")
  WEFT_FEATURE("sse4.1")
  WEFT_FEATURE("sse4.2")
  WEFT_FEATURE("sse4a")
  WEFT_FEATURE("popcnt")
  WEFT_FEATURE("movbe")
  WEFT_FEATURE("avx")
  WEFT_FEATURE("xop")
  WEFT_FEATURE("fma4")
  WEFT_FEATURE("tbm")
  WEFT_FEATURE("avx2")
  WEFT_FEATURE("fma")
  WEFT_FEATURE("f16c")
  WEFT_FEATURE("bmi")
  WEFT_FEATURE("bmi2")
  WEFT_FEATURE("lzcnt")
  WEFT_FEATURE("gfni")
  WEFT_FEATURE("avxvnni")
  WEFT_FEATURE("avx512f")
  WEFT_FEATURE("avx512bw")
  WEFT_FEATURE("avx512cd")
  WEFT_FEATURE("avx512dq")
  WEFT_FEATURE("avx512vl")
  WEFT_FEATURE("avx512ifma")
  WEFT_FEATURE("avx512vbmi")
  WEFT_FEATURE("avx512vbmi2")
  WEFT_FEATURE("avx512vnni")
  WEFT_FEATURE("avx512bitalg")
  WEFT_FEATURE("avx512vpopcntdq")
  WEFT_FEATURE("avx512bf16")
  WEFT_FEATURE("avx512fp16")
#undef WEFT_FEATURE
  return "";
}

}  // namespace weft
