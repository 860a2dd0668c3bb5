#include "driver/stages.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "ir/error.h"

namespace weft {
namespace {

struct Stage {
  const char* name;
  bool on_cpu, on_gpu;
};

constexpr Stage kStages[] = {
    {"ir", true, true},   {"optimized", true, true}, {"fusion", true, false}, {"schedule", true, true},
    {"mlir", true, true}, {"llvm", true, true},      {"asm", true, false},    {"ptx", false, true},
};

}  // namespace

std::vector<std::string> AllStages() {
  std::vector<std::string> names;
  for (const Stage& s : kStages) names.emplace_back(s.name);
  return names;
}

void CheckStage(const std::string& stage, const std::string& target) {
  const bool gpu = !target.empty();
  std::vector<std::string> names;
  bool elsewhere = false;
  for (const Stage& s : kStages) {
    const bool here = gpu ? s.on_gpu : s.on_cpu;
    if (here && stage == s.name) return;
    if (here) names.emplace_back(s.name);
    elsewhere |= stage == s.name;
  }
  if (elsewhere && !gpu) {
    throw ValueError("the stage '", stage,
                     "' is of programs for a GPU: it needs a target, as in cuda:sm_90a; for a CPU there are ",
                     absl::StrJoin(names, ", "));
  }
  throw ValueError("there is no stage '", stage, "' for ", gpu ? target : "a CPU", "; there are ",
                   absl::StrJoin(names, ", "));
}

}  // namespace weft
