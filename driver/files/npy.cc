#include "driver/files/npy.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>
#include <vector>

#include "driver/files/files.h"
#include "ir/error.h"

namespace weft {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicSize = 6;
constexpr int kMaxRank = 64;

// What the file says, if it can be that; else the first dtype of numbers that is written so.
std::optional<DType> DTypeOfDescr(const std::string& descr, DType wanted) {
  std::optional<DType> found;
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (RowOf(dtype).npy == nullptr || descr != RowOf(dtype).npy) continue;
    if (dtype == wanted) return wanted;
    if (!found && descr[0] != 'V' && !IsOpaque(dtype)) found = dtype;
  }
  return found;
}

// Reads the Python dictionary of the header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class Header {
 public:
  Header(const std::string& text, const std::string& name) : text_(text), name_(name) {
    Expect('{');
    while (!Accept('}')) {
      const std::string key = QuotedText();
      Expect(':');
      if (key == "descr") {
        descr = QuotedText();
      } else if (key == "fortran_order") {
        fortran_order = Truth();
      } else if (key == "shape") {
        shape = Sizes();
      } else {
        Fail("an entry '" + key + "'");
      }
      if (!Accept(',')) {
        Expect('}');
        break;
      }
    }
    SkipSpace();
    if (pos_ != text_.size()) Fail("something after its header");
    if (!descr || !fortran_order || !shape) Fail("a header without 'descr', 'fortran_order' or 'shape'");
  }

  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<Shape> shape;

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw UserError(ErrorKind::kParse, {}, name_, ": not an array that can be read: it has ", what);
  }
  void SkipSpace() {
    while (pos_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[pos_]))) ++pos_;
  }
  bool Accept(char c) {
    SkipSpace();
    if (pos_ >= text_.size() || text_[pos_] != c) return false;
    ++pos_;
    return true;
  }
  void Expect(char c) {
    if (!Accept(c)) Fail("a malformed header (a structured type, perhaps)");
  }
  std::string QuotedText() {
    SkipSpace();
    const char quote = pos_ < text_.size() ? text_[pos_] : '\0';
    const size_t end = quote == '\'' || quote == '"' ? text_.find(quote, pos_ + 1) : std::string::npos;
    if (end == std::string::npos) Fail("a malformed header (a structured type, perhaps)");
    std::string value = text_.substr(pos_ + 1, end - pos_ - 1);
    pos_ = end + 1;
    return value;
  }
  bool Truth() {
    SkipSpace();
    for (bool value : {true, false}) {
      const char* word = value ? "True" : "False";
      if (text_.compare(pos_, std::strlen(word), word) == 0) {
        pos_ += std::strlen(word);
        return value;
      }
    }
    Fail("a malformed 'fortran_order'");
  }
  Shape Sizes() {
    Shape sizes;
    Expect('(');
    while (!Accept(')')) {
      SkipSpace();
      int64_t size = 0;
      const auto result = std::from_chars(text_.data() + pos_, text_.data() + text_.size(), size);
      if (result.ec != std::errc() || size < 0 || sizes.size() >= kMaxRank) Fail("a malformed 'shape'");
      pos_ = static_cast<size_t>(result.ptr - text_.data());
      sizes.push_back(size);
      if (!Accept(',')) {
        Expect(')');
        break;
      }
    }
    return sizes;
  }

  const std::string& text_;
  const std::string& name_;
  size_t pos_ = 0;
};

// Column-major to row-major.
Tensor FromFortranOrder(const Tensor& t) {
  Tensor out(t.dtype(), t.shape());
  const int width = ByteWidth(t.dtype()), rank = t.rank();
  std::vector<int64_t> strides(rank, 1), index(rank, 0);
  for (int d = 1; d < rank; ++d) strides[d] = strides[d - 1] * t.shape()[d - 1];
  for (int64_t i = 0, n = t.size(); i < n; ++i) {
    int64_t from = 0;
    for (int d = 0; d < rank; ++d) from += index[d] * strides[d];
    std::memcpy(out.data<char>() + i * width, t.data<char>() + from * width, width);
    for (int d = rank - 1; d >= 0 && ++index[d] == t.shape()[d]; --d) index[d] = 0;
  }
  return out;
}

}  // namespace

Tensor ParseNpy(const std::string& bytes, DType wanted, const std::string& name) {
  const auto fail = [&](const std::string& problem) { return UserError(ErrorKind::kParse, {}, name, ": ", problem); };
  if (bytes.size() < kMagicSize + 4 || bytes.compare(0, kMagicSize, kMagic) != 0) throw fail("not an .npy file");
  const int version = static_cast<unsigned char>(bytes[kMagicSize]);
  if (version < 1 || version > 3) throw fail("version " + std::to_string(version) + " of the .npy format is not known");
  const size_t length_bytes = version == 1 ? 2 : 4, begin = kMagicSize + 2 + length_bytes;
  if (bytes.size() < begin) throw fail("truncated .npy file");
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i)
    length |= static_cast<size_t>(static_cast<unsigned char>(bytes[kMagicSize + 2 + i])) << (8 * i);
  if (bytes.size() - begin < length) throw fail("truncated .npy file");
  const std::string text = bytes.substr(begin, length);
  const Header header(text, name);

  std::string descr = *header.descr;
  const char order = descr.empty() ? '\0' : descr[0];
  if (order != '<' && order != '>' && order != '|' && order != '=')
    throw fail("element type '" + descr + "' is not supported");
  const std::optional<DType> dtype = DTypeOfDescr(descr.substr(1), wanted);
  if (!dtype) throw fail("element type '" + descr + "' is not supported");

  int64_t size = 1, byte_size = 0;
  bool empty = false;
  for (int64_t n : *header.shape) {
    empty |= n == 0;
    if (__builtin_mul_overflow(size, n, &size)) throw fail("an array of more than 2^63 elements");
  }
  if (empty) size = 0;
  if (__builtin_mul_overflow(size, ByteWidth(*dtype), &byte_size)) throw fail("an array of more than 2^63 bytes");
  const size_t data = begin + length;
  if (bytes.size() - data != static_cast<size_t>(byte_size)) {
    throw fail("the array needs " + std::to_string(byte_size) + " bytes, the file has " +
               std::to_string(bytes.size() - data));
  }
  Tensor t(*dtype, *header.shape);
  if (byte_size > 0) std::memcpy(t.raw(), bytes.data() + data, static_cast<size_t>(byte_size));
  if (order == '>') {
    const int width = IsComplex(*dtype) ? ByteWidth(*dtype) / 2 : ByteWidth(*dtype);
    for (char* p = t.data<char>(); p != t.data<char>() + byte_size; p += width) std::reverse(p, p + width);
  }
  if (IsBool(*dtype)) t = t.WithNumbersAlone();
  if (!t.HasNumbersAlone()) throw fail(std::string("it holds numbers that are beyond ") + Name(*dtype));
  if (*header.fortran_order && t.rank() > 1) t = FromFortranOrder(t);
  if (wanted == DType::kKey && *dtype == DType::kU32 && t.rank() > 0 && t.shape().back() == 2) {
    Tensor keys(DType::kKey, Shape(t.shape().begin(), t.shape().end() - 1));
    if (keys.bytes() > 0) std::memcpy(keys.raw(), t.raw(), static_cast<size_t>(keys.bytes()));
    return keys;
  }
  return t;
}

std::string NpyBytes(const Tensor& tensor) {
  const DTypeRow& row = RowOf(tensor.dtype());
  const std::string descr = row.npy == nullptr ? "" : std::string(row.bytes == 1 ? "|" : "<") + row.npy;
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (int64_t size : tensor.shape()) header += std::to_string(size) + ",";
  header += "), }";
  const size_t prefix = kMagicSize + 4;
  while ((prefix + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string bytes(kMagic, kMagicSize);
  bytes += '\x01';
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 255);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.append(static_cast<const char*>(tensor.raw()), static_cast<size_t>(tensor.bytes()));
  return bytes;
}

Tensor ReadNpy(const std::string& path, DType wanted) { return ParseNpy(ReadFile(path), wanted, path); }
void WriteNpy(const std::string& path, const Tensor& tensor) { WriteFile(path, NpyBytes(tensor)); }

}  // namespace weft
