#include "driver/npz.h"

#include <cstdint>
#include <utility>

#include "ir/error.h"
#include <boost/crc.hpp>

namespace weft {
namespace {

// Little-endian numbers of a ZIP archive (APPNOTE.TXT 4.3).
class Zip {
 public:
  Zip(const std::string& bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  [[noreturn]] void Fail(const std::string& why) const { throw UserError(ErrorKind::kParse, {}, name_, ": ", why); }
  uint64_t Number(uint64_t at, int width) const {
    if (at + static_cast<uint64_t>(width) > bytes_.size()) Fail("the archive ends early");
    uint64_t v = 0;
    for (int i = width; i-- > 0;) v = v << 8 | static_cast<unsigned char>(bytes_[at + static_cast<uint64_t>(i)]);
    return v;
  }
  std::string Text(uint64_t at, uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) Fail("the archive ends early");
    return bytes_.substr(at, size);
  }
  // Where the end of the central directory begins.
  uint64_t End() const {
    if (bytes_.size() >= 22) {
      for (uint64_t at = bytes_.size() - 22;; --at) {
        if (Number(at, 4) == 0x06054b50) return at;
        if (at == 0 || bytes_.size() - at > 66000) break;
      }
    }
    Fail("this is no .npz archive");
  }

 private:
  const std::string& bytes_;
  const std::string& name_;
};

}  // namespace

std::map<std::string, std::string> ParseNpz(const std::string& bytes, const std::string& name) {
  const Zip zip(bytes, name);
  std::map<std::string, std::string> files;
  const uint64_t end = zip.End(), count = zip.Number(end + 10, 2);
  uint64_t at = zip.Number(end + 16, 4);
  for (uint64_t i = 0; i < count; ++i) {
    if (zip.Number(at, 4) != 0x02014b50) zip.Fail("its directory is damaged");
    const uint64_t method = zip.Number(at + 10, 2), name_size = zip.Number(at + 28, 2), extra = zip.Number(at + 30, 2),
                   comment = zip.Number(at + 32, 2);
    uint64_t size = zip.Number(at + 20, 4), local = zip.Number(at + 42, 4);
    std::string file = zip.Text(at + 46, name_size);
    if (size == 0xffffffff || local == 0xffffffff) zip.Fail("archives beyond 4 GiB are not read");
    if (method != 0) zip.Fail("'" + file + "' is compressed; np.savez writes it uncompressed");
    if (zip.Number(local, 4) != 0x04034b50) zip.Fail("'" + file + "' is damaged");
    const uint64_t data = local + 30 + zip.Number(local + 26, 2) + zip.Number(local + 28, 2);
    if (file.size() > 4 && file.compare(file.size() - 4, 4, ".npy") == 0) file.resize(file.size() - 4);
    std::string content = zip.Text(data, size);
    boost::crc_32_type sum;
    sum.process_bytes(content.data(), content.size());
    if (sum.checksum() != zip.Number(at + 16, 4)) zip.Fail("'" + file + "' is damaged: its checksum differs");
    files[file] = std::move(content);
    at += 46 + name_size + extra + comment;
  }
  return files;
}

}  // namespace weft
