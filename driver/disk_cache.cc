#include "driver/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <tuple>
#include <vector>

#include "base/digest.h"
#include "base/environment.h"
#include "base/fork_safe_mutex.h"

namespace weft {
namespace {

constexpr char kMagic[] = "weft artifact 1\n";
constexpr char kUnfinished[] = ".new-";

// How many bytes the entries of the folder may take together.
uint64_t Limit() {
  static const auto limit = static_cast<uint64_t>(EnvironmentNumber("WEFT_CACHE_BYTES", 0, int64_t{4} << 30));
  return limit;
}

// The folder and those above it, for this user alone where they are not there.
void MakeFolders(const std::string& path) {
  for (size_t end = 1; end <= path.size(); ++end) {
    if (end == path.size() || path[end] == '/') mkdir(path.substr(0, end).c_str(), 0700);
  }
}

// What is wrong with a folder whose contents are run; nullptr: nothing.
const char* ProblemOfFolder(const struct stat& info) {
  if (info.st_uid != geteuid()) return "belongs to somebody else";
  if ((info.st_mode & 022) != 0) return "can be written by others";
  return nullptr;
}

// The same for the folders above it: whoever may rename in one of them may put another folder in our place. In one with
// the sticky bit, as /tmp has it, only owners rename what is theirs.
std::string ProblemAbove(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  if (real == nullptr) return std::string("cannot be resolved: ") + std::strerror(errno);
  std::string above = real;
  std::free(real);
  while (above.size() > 1) {
    above.resize(std::max<size_t>(1, above.rfind('/')));
    struct stat info;
    if (stat(above.c_str(), &info) != 0) return "lies in " + above + ", which cannot be looked at";
    if (info.st_uid != geteuid() && info.st_uid != 0) return "lies in " + above + ", which belongs to somebody else";
    if ((info.st_mode & 022) != 0 && (info.st_mode & S_ISVTX) == 0)
      return "lies in " + above + ", which can be written by others";
  }
  return "";
}

// Where the environment says that it is; empty: there is to be none.
std::string FolderPath() {
  if (const char* given = std::getenv("WEFT_CACHE_DIR"); given != nullptr && *given != '\0')
    return std::strcmp(given, "off") == 0 ? "" : given;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return std::string(cache) + "/weft";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? std::string(home) + "/.cache/weft" : "";
}

// The folder, made if need be, judged, and held open: all files are named from there, so what is judged is what is
// used, whatever happens to its name later.
class Folder {
 public:
  static Folder& Get() {
    static auto& folder = *new Folder;
    return folder;
  }

  // -1 where there is none that is ours alone.
  int Descriptor() {
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    struct stat info;
    // A program may close all files that it does not know, and open others in their place.
    if (fd_ >= 0 && (fstat(fd_, &info) != 0 || info.st_dev != device_ || info.st_ino != inode_)) {
      fd_ = -1;
      looked_ = false;
    }
    if (!looked_) Open();
    return fd_;
  }
  const std::string& path() const { return path_; }

 private:
  void Open() {
    looked_ = true;
    Limit();  // whose value is complained about where it is none
    path_ = FolderPath();
    if (path_.empty()) return;
    MakeFolders(path_);
    struct stat info;
    std::string problem;
    const int fd = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
      const int why = errno;
      const bool there = lstat(path_.c_str(), &info) == 0;
      problem = !there                   ? "cannot be made"
                : !S_ISDIR(info.st_mode) ? "is not a folder"
                                         : std::string("cannot be opened: ") + std::strerror(why);
    } else if (fstat(fd, &info) != 0) {
      problem = "cannot be looked at";
    } else if (const char* own = ProblemOfFolder(info)) {
      problem = own;
    } else {
      problem = ProblemAbove(path_);
      if (problem.empty() && faccessat(fd, ".", W_OK | X_OK, 0) != 0) problem = "cannot be written";
    }
    if (problem.empty()) {
      fd_ = fd;
      device_ = info.st_dev, inode_ = info.st_ino;
      return;
    }
    std::fprintf(stderr, "weft: the cache folder %s %s; compiling without it\n", path_.c_str(), problem.c_str());
    if (fd >= 0) close(fd);
  }

  ForkSafeMutex mutex_;
  bool looked_ = false;
  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::string path_;
};

std::string NameOf(const std::string& key) { return Sha256(key) + ".weft"; }

// Removes entries, those first that nobody has read or written for the longest time, when all take more than the limit;
// then down to three quarters of it, so that this is rare. Other processes may do the same: what has gone is no error.
void RemoveOldest(int folder, uint64_t written) {
  static auto& mutex = *new ForkSafeMutex;
  static uint64_t total = 0;  // as far as this process knows
  static bool counted = false;
  std::lock_guard<ForkSafeMutex> lock(mutex);
  total += written;
  if (counted && total <= Limit()) return;
  struct Entry {
    timespec used;
    uint64_t bytes;
    std::string name;
  };
  std::vector<Entry> entries;
  counted = true;
  total = 0;
  // A descriptor of its own: reading moves its place.
  const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* list = again >= 0 ? fdopendir(again) : nullptr;
  if (list == nullptr) {
    if (again >= 0) close(again);
    counted = false;
    return;
  }
  constexpr time_t kStale = 3600;  // no write takes an hour: its process was ended
  const time_t now = time(nullptr);
  while (const dirent* file = readdir(list)) {
    const std::string name = file->d_name;
    struct stat info;
    if (fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) continue;
    if (name.compare(0, sizeof kUnfinished - 1, kUnfinished) == 0) {
      if (now - info.st_mtim.tv_sec > kStale) unlinkat(folder, name.c_str(), 0);
      continue;
    }
    if (name.size() < 5 || name.compare(name.size() - 5, 5, ".weft") != 0) continue;
    entries.push_back({info.st_atim, static_cast<uint64_t>(info.st_size), name});
    total += entries.back().bytes;
  }
  closedir(list);
  if (total <= Limit()) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.used.tv_sec, a.used.tv_nsec) < std::tie(b.used.tv_sec, b.used.tv_nsec);
  });
  for (const Entry& e : entries) {
    if (total <= Limit() / 4 * 3) break;
    unlinkat(folder, e.name.c_str(), 0);
    total -= e.bytes;
  }
}

// A new file in the folder that nobody else writes to.
int OpenUnfinished(int folder, std::string* name) {
  static std::atomic<uint64_t> counter{0};
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  for (int attempt = 0; attempt < 100; ++attempt) {
    *name =
        kUnfinished + std::to_string(getpid()) + "-" + std::to_string(now.tv_nsec) + "-" + std::to_string(++counter);
    const int fd = openat(folder, name->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

}  // namespace

std::optional<Artifact> ReadCachedArtifact(const std::string& key) {
  const int folder = Folder::Get().Descriptor();
  if (folder < 0) return std::nullopt;
  const int fd = openat(folder, NameOf(key).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
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
  if (!Artifact::Parse(body.substr(8 + length), &artifact) || !artifact.PlanProblem().empty()) return std::nullopt;
  return artifact;
}

void WriteCachedArtifact(const std::string& key, const Artifact& artifact) {
  const int folder = Folder::Get().Descriptor();
  if (folder < 0) return;
  const uint64_t length = key.size();
  std::string body(reinterpret_cast<const char*>(&length), 8);
  body += key;
  body += artifact.Serialize();
  const std::string bytes = kMagic + Sha256(body) + body;
  std::string temporary;
  const int fd = OpenUnfinished(folder, &temporary);
  size_t done = 0;
  while (fd >= 0 && done < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  if (fd >= 0) close(fd);
  if (fd >= 0 && done == bytes.size() && renameat(folder, temporary.c_str(), folder, NameOf(key).c_str()) == 0) {
    RemoveOldest(folder, bytes.size());
    return;
  }
  if (fd >= 0) unlinkat(folder, temporary.c_str(), 0);
  static std::once_flag once;
  std::call_once(once, [] {
    std::fprintf(stderr, "weft: cannot write to the cache folder %s; compiling without it\n",
                 Folder::Get().path().c_str());
  });
}

}  // namespace weft
