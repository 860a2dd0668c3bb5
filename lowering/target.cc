#include "lowering/target.h"

#include <cstdlib>

#include "ir/error.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"

namespace weft {

Target Target::Level(const std::string& name) {
  Target t;
  if (name == "baseline") {
    t.cpu = "x86-64-v2";
    t.features = "+sse4.2";
    t.vector_bytes = 16;
    t.f16c = false;
  } else if (name == "avx2") {
    t.cpu = "x86-64-v3";
    t.features = "+avx2,+fma,+f16c";
  } else if (name == "avx512") {
    t.cpu = "x86-64-v4";
    t.features = "+avx512f,+avx512bw,+avx512vl,+avx512dq,+avx2,+fma,+f16c";
    t.vector_bytes = 64;
    t.masked_bytes = true;
  } else {
    throw ValueError("target: unknown level \"", name, "\"; expected baseline, avx2 or avx512");
  }
  return t;
}

const Target& Target::Host() {
  static const Target* host = [] {
    if (const char* level = std::getenv("WEFT_CPU"); level != nullptr && *level != '\0')
      return new Target(Level(level));
    llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
    auto has = [&](const char* f) { return features.lookup(f); };
    Target t = Level(has("avx512f") && has("avx512bw") && has("avx512vl") && has("avx512dq") ? "avx512"
                     : has("avx2") && has("fma") && has("f16c")                              ? "avx2"
                                                                                             : "baseline");
    t.cpu = llvm::sys::getHostCPUName().str();
    std::string list;
    for (const char* f :
         {"sse4.2", "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "popcnt", "avx512f", "avx512bw", "avx512vl",
          "avx512dq", "avx512cd", "avx512vbmi", "avx512vpopcntdq", "avx512bitalg"}) {
      if (has(f)) list += (list.empty() ? "+" : ",+") + std::string(f);
    }
    t.features = list;
    return new Target(t);
  }();
  return *host;
}

}  // namespace weft
