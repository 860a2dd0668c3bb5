// A compiled program as a file, "f.weftb": what to run, and all that it needs, without the compiler.
//
//   WriteFile("f.weftb", bundle.Serialize());
//   Bundle b = Bundle::Parse(ReadFile("f.weftb"));
#ifndef WEFT_LOWERING_BUNDLE_BUNDLE_H_
#define WEFT_LOWERING_BUNDLE_BUNDLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lowering/abi/artifact.h"
#include "lowering/abi/gpu_artifact.h"

namespace weft {

struct Bundle {
  struct Value {
    std::string name;
    int32_t dtype = 0;  // weft::DType
    std::vector<int64_t> shape;
    bool is_constant = false;  // the program brings it along
    std::string constant;
  };
  std::string name;
  std::vector<Value> params, results;
  // One of the two.
  std::optional<GpuArtifact> gpu;
  std::optional<Artifact> cpu;

  // A magic line, the SHA-256 of what follows, and a protocol buffer (bundle.proto). Throws std::invalid_argument
  // beyond 2 GiB.
  std::string Serialize() const;
  // Throws std::invalid_argument for bytes that are damaged, foreign or of a later version.
  static Bundle Parse(const std::string& bytes);
  static bool IsBundle(const std::string& bytes);
};

}  // namespace weft
#endif  // WEFT_LOWERING_BUNDLE_BUNDLE_H_
