#include "driver/files/files.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>

#include "ir/error.h"

namespace weft {

std::string ReadFile(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream in(path, std::ios::binary);
  std::string bytes;
  try {  // a folder opens, but cannot be read: an exception of the buffer
    if (in) bytes.assign(std::istreambuf_iterator<char>(in), {});
  } catch (const std::ios_base::failure&) {
    in.setstate(std::ios::badbit);
  }
  if (!in) throw ValueError("cannot read ", path, ": ", std::strerror(errno));
  return bytes;
}

void WriteFile(const std::string& path, const std::string& bytes) {
  if (path == "-") {
    std::cout.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush();
    if (!std::cout) throw UserError(ErrorKind::kRuntime, {}, "cannot write to standard output");
    return;
  }
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush();
  if (!out) throw ValueError("cannot write ", path, ": ", std::strerror(errno));
}

}  // namespace weft
