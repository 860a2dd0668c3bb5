#include "driver/files/npz.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "ir/error.h"
#include <boost/crc.hpp>

namespace weft {
namespace {

// The parts of a ZIP archive that all of them have (APPNOTE.TXT 4.3): before each file, in the directory, at the end.
constexpr uint64_t kFileHeader = 30, kEntry = 46, kEnd = 22, kMostComment = 65535;
constexpr uint64_t kFileMark = 0x04034b50, kEntryMark = 0x02014b50, kEndMark = 0x06054b50;

// A little-endian number.
uint64_t Number(const std::string& bytes, uint64_t at, int width) {
  uint64_t v = 0;
  for (int i = width; i-- > 0;) v = v << 8 | static_cast<unsigned char>(bytes[at + static_cast<uint64_t>(i)]);
  return v;
}

}  // namespace

NpzArchive::NpzArchive(const std::string& path) : path_(path) {
  fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (fd_ < 0 || fstat(fd_, &info) != 0) throw ValueError("cannot read ", path, ": ", std::strerror(errno));
  try {
    if (!S_ISREG(info.st_mode)) Fail("this is no file");
    size_ = static_cast<uint64_t>(info.st_size);
    ReadDirectory();
  } catch (...) {
    close(fd_);
    throw;
  }
}

NpzArchive::~NpzArchive() { close(fd_); }

void NpzArchive::Fail(const std::string& why) const { throw UserError(ErrorKind::kParse, {}, path_, ": ", why); }

std::string NpzArchive::Bytes(uint64_t at, uint64_t size) const {
  if (at > size_ || size > size_ - at) Fail("the archive ends early");
  std::string bytes(size, '\0');
  for (uint64_t done = 0; done < size;) {
    const ssize_t n = pread(fd_, bytes.data() + done, size - done, static_cast<off_t>(at + done));
    if (n == 0) Fail("the archive ends early");
    if (n < 0 && errno != EINTR) Fail(std::string("cannot be read: ") + std::strerror(errno));
    if (n > 0) done += static_cast<uint64_t>(n);
  }
  return bytes;
}

void NpzArchive::ReadDirectory() {
  if (size_ < kEnd) Fail("this is no .npz archive");
  const uint64_t tail_size = std::min(size_, kEnd + kMostComment);
  const std::string tail = Bytes(size_ - tail_size, tail_size);
  uint64_t end = tail_size - kEnd;
  while (Number(tail, end, 4) != kEndMark) {
    if (end-- == 0) Fail("this is no .npz archive");
  }
  const uint64_t count = Number(tail, end + 10, 2), bytes = Number(tail, end + 12, 4);
  const uint64_t begin = Number(tail, end + 16, 4);
  if (begin == 0xffffffff) Fail("archives beyond 4 GiB are not read");
  const std::string directory = Bytes(begin, bytes);
  // Where each file lies with its header. Files that share bytes would be read to more than the archive holds.
  std::vector<std::pair<uint64_t, uint64_t>> taken = {{begin, begin + bytes}};
  uint64_t at = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (bytes - at < kEntry || Number(directory, at, 4) != kEntryMark) Fail("its directory is damaged");
    const uint64_t name_size = Number(directory, at + 28, 2), extra = Number(directory, at + 30, 2),
                   comment = Number(directory, at + 32, 2);
    if (bytes - at < kEntry + name_size + extra + comment) Fail("its directory is damaged");
    std::string name = directory.substr(at + kEntry, name_size);
    if (!IsUtf8(name)) Fail("its directory is damaged: a name that is no UTF-8");
    File file;
    file.checksum = static_cast<uint32_t>(Number(directory, at + 16, 4));
    file.size = Number(directory, at + 20, 4);
    const uint64_t header = Number(directory, at + 42, 4);
    if (file.size == 0xffffffff || header == 0xffffffff) Fail("archives beyond 4 GiB are not read");
    if (Number(directory, at + 10, 2) != 0) Fail("'" + name + "' is compressed; np.savez writes it uncompressed");
    const std::string own = Bytes(header, kFileHeader);
    if (Number(own, 0, 4) != kFileMark) Fail("'" + name + "' is damaged");
    file.begin = header + kFileHeader + Number(own, 26, 2) + Number(own, 28, 2);
    if (file.begin > size_ || file.size > size_ - file.begin) Fail("the archive ends early");
    taken.emplace_back(header, file.begin + file.size);
    if (name.size() > 4 && name.compare(name.size() - 4, 4, ".npy") == 0) name.resize(name.size() - 4);
    if (!files_.emplace(name, file).second) Fail("it has two files '" + name + "'");
    at += kEntry + name_size + extra + comment;
  }
  std::sort(taken.begin(), taken.end());
  for (size_t i = 1; i < taken.size(); ++i) {
    if (taken[i].first < taken[i - 1].second) Fail("it is damaged: files in it lie over each other");
  }
}

std::string NpzArchive::Read(const std::string& name) const {
  const File& file = files_.at(name);
  std::string content = Bytes(file.begin, file.size);
  boost::crc_32_type sum;
  sum.process_bytes(content.data(), content.size());
  if (sum.checksum() != file.checksum) Fail("'" + name + "' is damaged: its checksum differs");
  return content;
}

}  // namespace weft
