// NumPy's .npz files: arrays by name.
#ifndef WEFT_DRIVER_NPZ_H_
#define WEFT_DRIVER_NPZ_H_

#include <map>
#include <string>

namespace weft {

// The bytes of each .npy file in an archive as np.savez writes it, by name. Raises kParse naming `name` for damaged
// archives and compressed ones (np.savez_compressed).
std::map<std::string, std::string> ParseNpz(const std::string& bytes, const std::string& name);

}  // namespace weft
#endif  // WEFT_DRIVER_NPZ_H_
