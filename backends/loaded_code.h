// Compiled code in memory, ready to run.
//
//   LoadedCode code(artifact.code);
//   auto* main = reinterpret_cast<WeftMain>(code.Find("weft_main"));
#ifndef WEFT_BACKENDS_LOADED_CODE_H_
#define WEFT_BACKENDS_LOADED_CODE_H_

#include <cstdint>
#include <map>
#include <string>

namespace weft {

// Lives as long as its functions may run. Each has variables of its own, also where two are of equal bytes. It takes
// one mapping of memory, which the system joins with those of others where they lie side by side.
class LoadedCode {
 public:
  // `image`: as lowering/abi/code_image.h says. Throws std::runtime_error where it is damaged, or cannot be mapped.
  explicit LoadedCode(const std::string& image);
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;

  // The address of a symbol; null where there is none of that name.
  void* Find(const std::string& name) const;

 private:
  char* memory_ = nullptr;
  uint64_t bytes_ = 0;
  std::map<std::string, uint64_t> symbols_;
};

}  // namespace weft
#endif  // WEFT_BACKENDS_LOADED_CODE_H_
