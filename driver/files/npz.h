// NumPy's .npz files: arrays by name.
#ifndef WEFT_DRIVER_FILES_NPZ_H_
#define WEFT_DRIVER_FILES_NPZ_H_

#include <cstdint>
#include <map>
#include <string>

namespace weft {

// An archive as np.savez writes it. What it says of itself is checked when it is opened; the files in it are read when
// they are asked for, so an archive takes no more memory than what is wanted of it.
class NpzArchive {
 public:
  // Raises kParse naming `path` for damaged archives, for those whose files lie over each other or have one name, and
  // for compressed ones (np.savez_compressed); kValue where there is no such file.
  explicit NpzArchive(const std::string& path);
  ~NpzArchive();
  NpzArchive(const NpzArchive&) = delete;

  // By the name of the array: without ".npy".
  bool Has(const std::string& name) const { return files_.count(name) != 0; }
  // The bytes of a file that it has. Raises kParse where they are damaged.
  std::string Read(const std::string& name) const;

 private:
  struct File {
    uint64_t begin = 0, size = 0;
    uint32_t checksum = 0;
  };

  [[noreturn]] void Fail(const std::string& why) const;
  std::string Bytes(uint64_t at, uint64_t size) const;
  void ReadDirectory();

  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;  // of the archive
  std::map<std::string, File> files_;
};

}  // namespace weft
#endif  // WEFT_DRIVER_FILES_NPZ_H_
