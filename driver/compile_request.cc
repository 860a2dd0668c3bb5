#include "driver/compile_request.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "ir/extensions.h"
#include "transforms/opt/rule_watch.h"

namespace weft {

CompileRequest CompileRequest::For(FnRef fn) const {
  CompileRequest other = *this;
  other.program = std::move(fn);
  return other;
}

std::string CompileRequest::Key() const {
  std::string key = "backend " + backend + "\npasses " + absl::StrJoin(passes, ",") + "\nlicences " +
                    licences.ToString() + "\ndonated ";
  for (bool d : donated) key += d ? '1' : '0';
  key += "\ntarget " + target.ToString() + " " + std::to_string(target.vector_bytes) + "\nfusion";
  fusion.ForEachField([&](auto value) { key += " " + std::to_string(value); });
  if (const std::string extensions = ExtensionsKey(); !extensions.empty()) key += "\nextensions " + extensions;
  return key;
}

FnRef CompileRequest::Optimized(const PassObserver& observe) const {
  const ScopedLicences scope(licences);
  const NoRuleWatch of_who_traces;
  return RunPasses(program, passes, observe);
}

}  // namespace weft
