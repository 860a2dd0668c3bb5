#include "backends/loaded_code.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "lowering/abi/code_image.h"

namespace weft {
namespace {

// The system says that there is no memory where there are too many mappings.
std::string MappingsText() {
  int64_t most = 0, mappings = 0;
  std::ifstream limit("/proc/sys/vm/max_map_count"), maps("/proc/self/maps");
  if (!(limit >> most)) return "";
  for (std::string line; std::getline(maps, line);) ++mappings;
  if (mappings < most - 16) return "";
  return " (the process has " + std::to_string(mappings) + " mappings of memory; the system allows " +
         std::to_string(most) + ", vm.max_map_count. Each compiled program that is alive takes some: drop functions " +
         "that are needed no more, and weft.jit's that are made again and again)";
}

// Reads an image from its beginning to its end.
class Reader {
 public:
  explicit Reader(const std::string& image) : image_(image) {}
  const char* Take(uint64_t bytes) {
    if (bytes > image_.size() - at_) throw std::runtime_error("compiled code is damaged: it is cut short");
    const char* here = image_.data() + at_;
    at_ += bytes;
    return here;
  }
  template <class T>
  T Next() {
    T value;
    std::memcpy(&value, Take(sizeof(T)), sizeof(T));
    return value;
  }
  // `bytes` from place `at` lie in an image of `size` bytes.
  static void Within(uint64_t at, uint64_t bytes, uint64_t size) {
    if (at > size || bytes > size - at)
      throw std::runtime_error("compiled code is damaged: a place lies outside of it");
  }

 private:
  const std::string& image_;
  uint64_t at_ = 0;
};

// Memory of the system's, given back unless it is taken.
struct Mapping {
  explicit Mapping(uint64_t size) : bytes(size) {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      const int why = errno;
      throw std::runtime_error(std::string("cannot load compiled code: ") + std::strerror(why) + MappingsText());
    }
    address = static_cast<char*>(memory);
  }
  ~Mapping() {
    if (address != nullptr) munmap(address, bytes);
  }
  Mapping(const Mapping&) = delete;

  char* address = nullptr;
  uint64_t bytes;
};

uint64_t WholePages(uint64_t bytes) { return (bytes + kCodePage - 1) / kCodePage * kCodePage; }

}  // namespace

LoadedCode::LoadedCode(const std::string& image) {
  Reader reader(image);
  const auto header = reader.Next<CodeImageHeader>();
  constexpr uint64_t kMost = uint64_t{1} << 31;  // as far as code reaches
  if (header.magic != kCodeImageMagic || header.code_bytes > kMost || header.memory_bytes > kMost ||
      header.data_bytes > header.memory_bytes)
    throw std::runtime_error("compiled code is damaged: its header is wrong");
  const uint64_t code = WholePages(header.code_bytes);
  Mapping mapping(code + WholePages(header.memory_bytes));
  std::memcpy(mapping.address, reader.Take(header.code_bytes), header.code_bytes);
  std::memcpy(mapping.address + code, reader.Take(header.data_bytes), header.data_bytes);
  const auto word = [&](uint64_t at) {
    Reader::Within(at, sizeof(uint64_t), mapping.bytes);
    return mapping.address + at;
  };
  const auto next_name = [&] {
    const auto record = reader.Next<CodeImageName>();
    return std::pair(std::string(reader.Take(record.length), record.length), record.at);
  };
  for (uint64_t i = 0; i < header.num_imports; ++i) {
    const auto [name, at] = next_name();
    void* function = dlsym(RTLD_DEFAULT, name.c_str());
    if (function == nullptr) throw std::runtime_error("compiled code needs '" + name + "', which the process lacks");
    std::memcpy(word(at), &function, sizeof function);
  }
  for (uint64_t i = 0; i < header.num_rebases; ++i) {
    char* place = word(reader.Next<uint64_t>());
    uint64_t address;
    std::memcpy(&address, place, sizeof address);
    address += reinterpret_cast<uint64_t>(mapping.address);
    std::memcpy(place, &address, sizeof address);
  }
  for (uint64_t i = 0; i < header.num_symbols; ++i) {
    auto [name, at] = next_name();
    Reader::Within(at, 0, mapping.bytes);
    symbols_.emplace(std::move(name), at);
  }
  if (code > 0 && mprotect(mapping.address, code, PROT_READ | PROT_EXEC) != 0) {
    const int why = errno;
    throw std::runtime_error(std::string("cannot make compiled code executable: ") + std::strerror(why) +
                             MappingsText());
  }
  memory_ = std::exchange(mapping.address, nullptr);
  bytes_ = mapping.bytes;
}

LoadedCode::~LoadedCode() { munmap(memory_, bytes_); }

void* LoadedCode::Find(const std::string& name) const {
  const auto found = symbols_.find(name);
  return found == symbols_.end() ? nullptr : memory_ + found->second;
}

}  // namespace weft
