// The CPU that code is made for.
#ifndef WEFT_LOWERING_KERNEL_TARGET_H_
#define WEFT_LOWERING_KERNEL_TARGET_H_

#include <map>
#include <string>

namespace weft {

struct Target {
  std::string triple = "x86_64-unknown-linux-gnu";
  std::string cpu;             // LLVM's name, "znver4"
  std::string features;        // "+avx2,+fma,-avx512f,...": what the name implies and the CPU lacks is taken away
  int vector_bytes = 32;       // 32: AVX2, 64: AVX-512
  bool fused_products = true;  // sums of reductions may take up products that are not rounded
  bool masked_bytes = false;   // masked loads and stores of 8- and 16-bit elements (AVX-512 BW)
  bool f16c = true;            // instructions that convert f16
  bool fma = true;             // a * b + c in one instruction

  // This machine. WEFT_CPU=avx2|avx512|baseline overrides it.
  static const Target& Host();
  // A CPU that LLVM calls `cpu` and that has those of the features that are true. Virtual machines often lack some that
  // every CPU of that name has.
  static Target Of(const std::string& cpu, const std::map<std::string, bool>& features);
  // A named level: "baseline" (x86-64 with SSE4.2), "avx2", "avx512".
  static Target Level(const std::string& name);

  std::string ToString() const { return "cpu:" + cpu + ":" + features + (fused_products ? "" : ":unfused"); }
};

}  // namespace weft
#endif  // WEFT_LOWERING_KERNEL_TARGET_H_
