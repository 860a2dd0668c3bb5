// A GPU as code generation sees it: from a text description, so that compiling needs no device.
//
//   GpuTarget h100 = GpuTarget::Named("cuda:sm_90a");
//   GpuTarget mine = GpuTarget::Parse("cuda sm_90a\nsm_count: 114\nhbm_gb_per_s: 2000\n");
#ifndef WEFT_LOWERING_GPU_TARGET_H_
#define WEFT_LOWERING_GPU_TARGET_H_

#include <cstdint>
#include <string>

namespace weft {

struct GpuTarget {
  std::string sm = "sm_90a";               // as ptxas names it
  int64_t sm_count = 132;                  // multiprocessors
  int64_t threads_per_sm = 2048;           // resident at once
  int64_t shared_bytes_per_block = 49152;  // without asking the driver for more
  int64_t l2_bytes = 50 << 20;
  double hbm_gb_per_s = 3350;

  // "cuda:sm_80", "cuda:sm_89" or "cuda:sm_90a" (the card that is typical for it), or a text description: a first line
  // "cuda SM" and lines "key: number" for what differs, with the members above as keys. Raises kValue.
  static GpuTarget Named(const std::string& name);
  static GpuTarget Parse(const std::string& text);

  std::string ToString() const { return "cuda:" + sm; }
  std::string Description() const;  // Parse reads it back
};

}  // namespace weft
#endif  // WEFT_LOWERING_GPU_TARGET_H_
