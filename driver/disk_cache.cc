#include "driver/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <tuple>
#include <vector>

#include "ir/environment.h"
#include "lowering/digest.h"

namespace weft {
namespace {

constexpr char kMagic[] = "weft artifact 1\n";

// The folder and those above it, for this user alone where they are not there.
void MakeFolders(const std::string& path) {
  for (size_t end = 1; end <= path.size(); ++end) {
    if (end == path.size() || path[end] == '/') mkdir(path.substr(0, end).c_str(), 0700);
  }
}

// The folder, made if need be; empty when there is none that is ours alone.
const std::string& Folder() {
  static const std::string* folder = [] {
    auto* path = new std::string;
    if (const char* given = std::getenv("WEFT_CACHE_DIR"); given != nullptr && *given != '\0') {
      if (std::strcmp(given, "off") == 0) return path;
      *path = given;
    } else {
      const char* cache = std::getenv("XDG_CACHE_HOME");
      const char* home = std::getenv("HOME");
      if (cache != nullptr && *cache != '\0')
        *path = std::string(cache) + "/weft";
      else if (home != nullptr && *home != '\0')
        *path = std::string(home) + "/.cache/weft";
      else
        return path;
    }
    MakeFolders(*path);
    struct stat info;
    const char* problem = nullptr;
    if (lstat(path->c_str(), &info) != 0)
      problem = "cannot be made";
    else if (!S_ISDIR(info.st_mode))
      problem = "is not a folder";
    else if (info.st_uid != geteuid())
      problem = "belongs to somebody else";
    else if ((info.st_mode & 022) != 0)
      problem = "can be written by others";
    else if (access(path->c_str(), W_OK | X_OK) != 0)
      problem = "cannot be written";
    if (problem != nullptr) {
      std::fprintf(stderr, "weft: the cache folder %s %s; compiling without it\n", path->c_str(), problem);
      path->clear();
    }
    return path;
  }();
  return *folder;
}

std::string PathOf(const std::string& key) { return Folder() + "/" + Sha256(key) + ".weft"; }

// How many bytes the entries of the folder may take together.
uint64_t Limit() {
  static const auto limit = static_cast<uint64_t>(EnvironmentNumber("WEFT_CACHE_BYTES", 0, int64_t{4} << 30));
  return limit;
}

// Removes entries, those first that nobody has read or written for the longest time, when all take more than the limit;
// then down to three quarters of it, so that this is rare. Other processes may do the same: what has gone is no error.
void RemoveOldest(uint64_t written) {
  static std::mutex mutex;
  static uint64_t total = 0;  // as far as this process knows
  static bool counted = false;
  std::lock_guard<std::mutex> lock(mutex);
  total += written;
  if (counted && total <= Limit()) return;
  struct Entry {
    timespec used;
    uint64_t bytes;
    std::string path;
  };
  std::vector<Entry> entries;
  counted = true;
  total = 0;
  std::error_code failure;
  for (const auto& file : std::filesystem::directory_iterator(Folder(), failure)) {
    struct stat info;
    if (file.path().extension() != ".weft" || lstat(file.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode))
      continue;
    entries.push_back({info.st_atim, static_cast<uint64_t>(info.st_size), file.path().string()});
    total += entries.back().bytes;
  }
  if (total <= Limit()) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.used.tv_sec, a.used.tv_nsec) < std::tie(b.used.tv_sec, b.used.tv_nsec);
  });
  for (const Entry& e : entries) {
    if (total <= Limit() / 4 * 3) break;
    unlink(e.path.c_str());
    total -= e.bytes;
  }
}

}  // namespace

std::optional<Artifact> ReadCachedArtifact(const std::string& key) {
  if (Folder().empty()) return std::nullopt;
  const int fd = open(PathOf(key).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  struct stat info;
  std::string bytes;
  // Code is some kilobytes. What is far larger is damaged, and its size is not to be trusted with memory.
  constexpr off_t kLargest = off_t{256} << 20;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() && info.st_size <= kLargest) {
    bytes.resize(static_cast<size_t>(info.st_size));
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = read(fd, bytes.data() + done, bytes.size() - done);
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
    bytes.resize(done);
    // Read now, whether or not the file system keeps that time itself.
    const timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
    futimens(fd, times);
  }
  close(fd);
  // magic, digest, length of the key, key, artifact
  const size_t magic = sizeof kMagic - 1;
  if (bytes.size() < magic + 64 + 8 || bytes.compare(0, magic, kMagic) != 0) return std::nullopt;
  const std::string body = bytes.substr(magic + 64);
  if (Sha256(body) != bytes.substr(magic, 64)) return std::nullopt;
  uint64_t length;
  std::memcpy(&length, body.data(), 8);
  if (length != key.size() || body.size() < 8 + length || body.compare(8, length, key) != 0) return std::nullopt;
  Artifact artifact;
  if (!Artifact::Parse(body.substr(8 + length), &artifact)) return std::nullopt;
  return artifact;
}

void WriteCachedArtifact(const std::string& key, const Artifact& artifact) {
  if (Folder().empty()) return;
  const uint64_t length = key.size();
  std::string body(reinterpret_cast<const char*>(&length), 8);
  body += key;
  body += artifact.Serialize();
  const std::string bytes = kMagic + Sha256(body) + body;
  std::string temporary = Folder() + "/.new-XXXXXX";
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  size_t done = 0;
  while (fd >= 0 && done < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  if (fd >= 0) close(fd);
  if (fd >= 0 && done == bytes.size() && rename(temporary.c_str(), PathOf(key).c_str()) == 0) {
    RemoveOldest(bytes.size());
    return;
  }
  if (fd >= 0) unlink(temporary.c_str());
  static std::once_flag once;
  std::call_once(once, [] {
    std::fprintf(stderr, "weft: cannot write to the cache folder %s; compiling without it\n", Folder().c_str());
  });
}

}  // namespace weft
