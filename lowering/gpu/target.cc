#include "lowering/gpu/target.h"

#include <cmath>
#include <sstream>

#include "ir/error.h"

namespace weft {
namespace {

// The cards that are typical for an architecture; figures from NVIDIA's data sheets (A100 SXM, L40S, H100 SXM).
bool Typical(const std::string& sm, GpuTarget* t) {
  t->sm = sm;
  if (sm == "sm_80") {
    t->sm_count = 108;
    t->l2_bytes = 40 << 20;
    t->hbm_gb_per_s = 2039;
  } else if (sm == "sm_89") {
    t->sm_count = 142;
    t->threads_per_sm = 1536;
    t->l2_bytes = 96 << 20;
    t->hbm_gb_per_s = 864;
  } else if (sm != "sm_90a") {
    return false;
  }
  return true;
}

}  // namespace

GpuTarget GpuTarget::Named(const std::string& name) {
  if (name.find('\n') != std::string::npos) return Parse(name);
  GpuTarget t;
  if (name.rfind("cuda:", 0) != 0 || !Typical(name.substr(5), &t))
    throw ValueError("target: there is no target \"", name,
                     "\"; expected cuda:sm_80, cuda:sm_89, cuda:sm_90a or a description of several lines that begins "
                     "with \"cuda sm_...\"");
  return t;
}

GpuTarget GpuTarget::Parse(const std::string& text) {
  std::istringstream in(text);
  std::string line;
  GpuTarget t;
  bool first = true;
  int number = 0;
  while (std::getline(in, line)) {
    ++number;
    line = line.substr(0, line.find('#'));
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos) continue;
    line = line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
    auto fail = [&](const std::string& why) -> Error {
      return ValueError("target: line ", number, " of the description, \"", line, "\": ", why);
    };
    if (first) {
      if (line.rfind("cuda ", 0) != 0 || !Typical(line.substr(5), &t))
        throw fail("expected \"cuda sm_80\", \"cuda sm_89\" or \"cuda sm_90a\"");
      first = false;
      continue;
    }
    const size_t colon = line.find(':');
    if (colon == std::string::npos) throw fail("expected \"key: number\"");
    const std::string key = line.substr(0, colon), value = line.substr(colon + 1);
    double v = 0;
    size_t used = 0;
    try {
      v = std::stod(value, &used);
    } catch (const std::exception&) {
      throw fail("the value is no number");
    }
    if (value.find_first_not_of(" \t", used) != std::string::npos) throw fail("the value is no number");
    if (!(v > 0) || v > 1e15) throw fail("the value must be positive");
    if (key == "hbm_gb_per_s") {
      t.hbm_gb_per_s = v;
      continue;
    }
    if (v != std::floor(v)) throw fail("the value must be an integer");
    int64_t GpuTarget::* member = key == "sm_count"                 ? &GpuTarget::sm_count
                                  : key == "threads_per_sm"         ? &GpuTarget::threads_per_sm
                                  : key == "shared_bytes_per_block" ? &GpuTarget::shared_bytes_per_block
                                  : key == "l2_bytes"               ? &GpuTarget::l2_bytes
                                                                    : nullptr;
    if (member == nullptr)
      throw fail("no such key; expected sm_count, threads_per_sm, shared_bytes_per_block, l2_bytes or hbm_gb_per_s");
    t.*member = static_cast<int64_t>(v);
  }
  if (first) throw ValueError("target: the description is empty");
  return t;
}

std::string GpuTarget::Description() const {
  std::ostringstream out;
  out << "cuda " << sm << "\nsm_count: " << sm_count << "\nthreads_per_sm: " << threads_per_sm
      << "\nshared_bytes_per_block: " << shared_bytes_per_block << "\nl2_bytes: " << l2_bytes
      << "\nhbm_gb_per_s: " << hbm_gb_per_s << "\n";
  return out.str();
}

}  // namespace weft
