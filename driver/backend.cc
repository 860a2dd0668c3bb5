#include "driver/backend.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "ir/error.h"
#include "ir/text/printer.h"

namespace weft {
namespace {

struct Row {
  const char* name;  // as a person would write it
  std::shared_ptr<const Backend> (*find)(const std::string& name);
};

constexpr Row kBackends[] = {
    {"cpu", CpuBackend},
    {"interpreter", InterpreterBackend},
    {"operations", OperationsBackend},
    {"cuda:sm_90a", GpuBackend},
};

std::vector<std::string> WithCommonStages(const Backend& backend) {
  std::vector<std::string> stages = {"ir", "optimized"};
  for (const std::string& s : backend.Stages()) stages.push_back(s);
  return stages;
}

bool Contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

const DeviceMemory& Backend::Memory() const {
  throw Error(ErrorKind::kUnsupported, "memory: programs for " + Description() + " run on no device of this process");
}

std::shared_ptr<void> Backend::Prepare(const Fn&) const { return nullptr; }

Tensors Backend::Emulate(const CompileRequest&, const FnRef&, const Tensors&) const {
  throw ValueError("emulate: the program is for ", Description(),
                   "; lower(..., target=\"cuda:sm_90a\") makes one for a GPU");
}

void Backend::Export(const CompileRequest&, const FnRef&, bool, Bundle*) const {
  throw Error(ErrorKind::kUnsupported, "export: " + Description() + " makes no code that could be written to a file");
}

std::shared_ptr<const Backend> FindBackend(const std::string& name) {
  for (const Row& row : kBackends) {
    if (auto found = row.find(name)) return found;
  }
  throw ValueError("there is no target or backend '", name, "'; there are ",
                   absl::StrJoin(kBackends, ", ", [](std::string* out, const Row& r) { *out += r.name; }),
                   " and other GPUs");
}

const std::vector<std::string>& AllStages() {
  static const auto& all = *new std::vector<std::string>([] {
    std::vector<std::string> stages;
    for (const Row& row : kBackends) {
      for (const std::string& s : WithCommonStages(*row.find(row.name))) {
        if (!Contains(stages, s)) stages.push_back(s);
      }
    }
    return stages;
  }());
  return all;
}

std::string StageText(const CompileRequest& request, const std::string& stage) {
  const std::shared_ptr<const Backend> backend = FindBackend(request.backend);
  const std::vector<std::string> stages = WithCommonStages(*backend);
  if (!Contains(stages, stage)) {
    std::string elsewhere;
    for (const Row& row : kBackends) {
      const auto other = row.find(row.name);
      if (elsewhere.empty() && Contains(other->Stages(), stage)) elsewhere = std::string("; '") + row.name + "' has it";
    }
    throw ValueError("there is no stage '", stage, "' for ", backend->Description(), "; there are ",
                     absl::StrJoin(stages, ", "), elsewhere);
  }
  if (stage == "ir") return Print(*request.program);
  const FnRef optimized = request.Optimized();
  return stage == "optimized" ? Print(*optimized) : backend->StageText(request, optimized, stage);
}

}  // namespace weft
