#include "lowering/kernel/target.h"

#include <cstdlib>

#include "ir/error.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"

namespace weft {

Target Target::Level(const std::string& name) {
  Target t;
  if (name == "baseline") {
    t.cpu = "x86-64-v2";
    t.features = "+sse4.2,+popcnt";
    t.vector_bytes = 16;
    t.f16c = false;
    t.fma = false;
  } else if (name == "avx2") {
    t.cpu = "x86-64-v3";
    t.features = "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe";
  } else if (name == "avx512") {
    t.cpu = "x86-64-v4";
    t.features = "+avx512f,+avx512bw,+avx512vl,+avx512dq,+avx512cd,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe";
    t.vector_bytes = 64;
    t.masked_bytes = true;
  } else {
    throw ValueError("target: unknown level \"", name, "\"; expected baseline, avx2 or avx512");
  }
  return t;
}

Target Target::Of(const std::string& cpu, const std::map<std::string, bool>& features) {
  const auto has = [&](const char* f) {
    const auto found = features.find(f);
    return found != features.end() && found->second;
  };
  Target t = Level(has("avx512f") && has("avx512bw") && has("avx512vl") && has("avx512dq") ? "avx512"
                   : has("avx2") && has("fma") && has("f16c")                              ? "avx2"
                                                                                           : "baseline");
  t.cpu = cpu;
  // What is lacking comes last: it takes what needs it away too.
  std::string present, lacking;
  for (const auto& [name, is_there] : features) (is_there ? present : lacking) += (is_there ? ",+" : ",-") + name;
  t.features = (present + lacking).substr(features.empty() ? 0 : 1);
  return t;
}

const Target& Target::Host() {
  static const Target* host = [] {
    if (const char* level = std::getenv("WEFT_CPU"); level != nullptr && *level != '\0') {
      const std::string name = level;
      if (name != "baseline" && name != "avx2" && name != "avx512")
        throw ValueError("WEFT_CPU is '", name, "'; expected baseline, avx2 or avx512");
      return new Target(Level(name));
    }
    std::map<std::string, bool> features;
    for (const auto& f : llvm::sys::getHostCPUFeatures()) features[f.first().str()] = f.second;
    return new Target(Of(llvm::sys::getHostCPUName().str(), features));
  }();
  return *host;
}

}  // namespace weft
