#include "driver/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace weft {
namespace {

constexpr char kMagic[] = "weft artifact 1\n";

uint32_t Rotate(uint32_t v, int by) { return v >> by | v << (32 - by); }

// The folder, made if need be; empty when there is none that is ours alone.
const std::string& Folder() {
  static const std::string* folder = [] {
    auto* path = new std::string;
    std::string parent;
    if (const char* given = std::getenv("WEFT_CACHE_DIR"); given != nullptr && *given != '\0') {
      if (std::strcmp(given, "off") == 0) return path;
      *path = given;
    } else {
      const char* cache = std::getenv("XDG_CACHE_HOME");
      const char* home = std::getenv("HOME");
      if (cache != nullptr && *cache != '\0')
        parent = cache;
      else if (home != nullptr && *home != '\0')
        parent = std::string(home) + "/.cache";
      else
        return path;
      mkdir(parent.c_str(), 0700);
      *path = parent + "/weft";
    }
    mkdir(path->c_str(), 0700);
    struct stat info;
    const char* problem = nullptr;
    if (lstat(path->c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
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

}  // namespace

// FIPS 180-4.
std::string Sha256(const std::string& bytes) {
  static constexpr uint32_t k[64] = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
      0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
      0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
      0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
  uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string padded = bytes;
  padded += '\x80';
  while (padded.size() % 64 != 56) padded += '\0';
  const uint64_t bits = static_cast<uint64_t>(bytes.size()) * 8;
  for (int i = 7; i >= 0; --i) padded += static_cast<char>(bits >> (8 * i));
  for (size_t at = 0; at < padded.size(); at += 64) {
    uint32_t w[64];
    for (int i = 0; i < 16; ++i) {
      w[i] = 0;
      for (int b = 0; b < 4; ++b) w[i] = w[i] << 8 | static_cast<unsigned char>(padded[at + 4 * i + b]);
    }
    for (int i = 16; i < 64; ++i) {
      const uint32_t a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + w[i - 7] + (Rotate(a, 7) ^ Rotate(a, 18) ^ a >> 3) + (Rotate(b, 17) ^ Rotate(b, 19) ^ b >> 10);
    }
    uint32_t v[8];
    std::memcpy(v, h, sizeof v);
    for (int i = 0; i < 64; ++i) {
      const uint32_t t1 = v[7] + (Rotate(v[4], 6) ^ Rotate(v[4], 11) ^ Rotate(v[4], 25)) +
                          ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
      const uint32_t t2 =
          (Rotate(v[0], 2) ^ Rotate(v[0], 13) ^ Rotate(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
      for (int j = 7; j > 0; --j) v[j] = v[j - 1];
      v[4] += t1;
      v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; ++i) h[i] += v[i];
  }
  char text[65];
  for (int i = 0; i < 8; ++i) std::snprintf(text + 8 * i, 9, "%08x", h[i]);
  return text;
}

std::optional<Artifact> ReadCachedArtifact(const std::string& key) {
  if (Folder().empty()) return std::nullopt;
  const int fd = open(PathOf(key).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  struct stat info;
  std::string bytes;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid()) {
    bytes.resize(static_cast<size_t>(info.st_size));
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = read(fd, bytes.data() + done, bytes.size() - done);
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
    bytes.resize(done);
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
  if (fd >= 0 && done == bytes.size() && rename(temporary.c_str(), PathOf(key).c_str()) == 0) return;
  if (fd >= 0) unlink(temporary.c_str());
  static std::once_flag once;
  std::call_once(once, [] {
    std::fprintf(stderr, "weft: cannot write to the cache folder %s; compiling without it\n", Folder().c_str());
  });
}

}  // namespace weft
