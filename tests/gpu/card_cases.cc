#include "tests/gpu/card_cases.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "driver/files/files.h"
#include "driver/files/npy.h"
#include "lowering/bundle/bundle.h"
#include "lowering/gpu/lower.h"

namespace weft {
namespace {

constexpr int64_t kMostBytes = 256 << 10;
// Both compute the same kernels in the same order; elementary functions are another library's.
constexpr double kUnits = 100;

std::vector<Bundle::Value> Values(const Tensors& tensors) {
  std::vector<Bundle::Value> values;
  for (const Tensor& t : tensors) {
    const Shape& shape = t.shape();
    values.push_back({"", static_cast<int32_t>(t.dtype()), {shape.begin(), shape.end()}, false, ""});
  }
  return values;
}

}  // namespace

void KeepForCard(const FnRef& fn, const Tensors& args, const Tensors& results) {
  const char* folder = std::getenv("WEFT_GPU_CASES");
  if (folder == nullptr || !std::filesystem::is_directory(folder)) return;
  int64_t bytes = 0;
  double relative = 0, absolute = 0;
  for (const Tensors* tensors : {&args, &results}) {
    for (const Tensor& t : *tensors) {
      bytes += t.bytes();
      if (t.size() == 0) return;
    }
  }
  if (bytes > kMostBytes) return;
  for (const Tensor& t : results) {
    if (!IsInexact(t.dtype())) continue;
    const double unit = kUnits * std::ldexp(1.0, 1 - RowOf(t.dtype()).digits);
    relative = std::max(relative, ByteWidth(t.dtype()) == 2 ? unit / 25 : unit);
    for (int64_t i = 0; i < t.size(); ++i) {
      if (const double size = std::abs(t.Get(i)); std::isfinite(size)) absolute = std::max(absolute, relative * size);
    }
  }
  Bundle bundle;
  bundle.name = fn->name();
  bundle.params = Values(args);
  bundle.results = Values(results);
  bundle.gpu = LowerGpu(fn, GpuTarget::Named("cuda:sm_90a"), {.ptx = true});
  static int number = 0;
  const std::string name = std::to_string(getpid()) + "_" + std::to_string(number++), path = folder + ("/" + name);
  WriteFile(path + ".sm_90a.weftb", bundle.Serialize());
  for (size_t i = 0; i < args.size(); ++i) WriteNpy(path + ".in." + std::to_string(i) + ".npy", args[i]);
  for (size_t i = 0; i < results.size(); ++i) WriteNpy(path + ".out." + std::to_string(i) + ".npy", results[i]);
  std::ofstream(folder + std::string("/cases.txt"), std::ios::app)
      << "check " << name << " " << relative << " " << absolute << "\n";
}

}  // namespace weft
