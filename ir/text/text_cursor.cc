#include "ir/text/text_cursor.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "absl/strings/escaping.h"

namespace weft {
namespace {

// The part of `line` around `column` that fits a screen, with a caret under the column.
std::string LineWithCaret(const std::string& line, size_t column) {
  constexpr size_t kReach = 60;
  const size_t begin = column > kReach ? column - kReach : 0, end = std::min(line.size(), column + kReach);
  std::string shown = begin > 0 ? "..." : "", pad(shown.size(), ' ');
  for (size_t i = begin; i < end; ++i) {
    const unsigned char c = static_cast<unsigned char>(line[i]);
    shown += c == '\t' || (c >= 32 && c != 127) ? line[i] : '?';
    // Continuation bytes of UTF-8 take no column of their own.
    if (i < column && (c & 0xC0) != 0x80) pad += c == '\t' ? '\t' : ' ';
  }
  if (end < line.size()) shown += "...";
  return "  " + shown + "\n  " + pad + "^";
}

}  // namespace

void TextCursor::Fail(size_t at, const std::string& message) const {
  at = std::min(at, text_.size());
  const size_t line_begin = at == 0 ? 0 : text_.rfind('\n', at - 1) + 1;  // npos + 1 == 0
  const size_t line_end = std::min(text_.find('\n', at), text_.size());
  const std::string line = text_.substr(line_begin, line_end - line_begin);
  const auto number = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(line_begin), '\n') + 1;
  throw UserError(ErrorKind::kParse, {}, file_.empty() ? "<text>" : file_, ":", number, ":", at - line_begin + 1, ": ",
                  message, "\n", LineWithCaret(line, at - line_begin));
}

std::string TextCursor::Found() const {
  if (AtEnd()) return "found the end of the text";
  const char c = text_[pos_];
  if (c == '\n') return "found the end of the line";
  if (IsWordPart(c)) {
    size_t end = pos_;
    while (end < text_.size() && IsWordPart(text_[end]) && end - pos_ < 40) ++end;
    return "found '" + text_.substr(pos_, end - pos_) + "'";
  }
  if (c > 32 && c < 127) return std::string("found '") + c + "'";
  return "found a byte that no text of this form has";
}

void TextCursor::Expected(const std::string& what) const { Fail(pos_, "expected " + what + ", " + Found()); }

std::string TextCursor::NumberToken() {
  const size_t begin = pos_;
  if (Peek() == '-') ++pos_;
  const bool hex = Peek() == '0' && (Peek(1) == 'x' || Peek(1) == 'X');
  while (IsWordPart(Peek()) || Peek() == '.' ||
         (!hex && pos_ > begin && (Peek() == '+' || Peek() == '-') &&
          (text_[pos_ - 1] == 'e' || text_[pos_ - 1] == 'E'))) {
    ++pos_;
  }
  if (pos_ == begin || pos_ - begin > kMaxWord) {
    pos_ = begin;
    Expected("a number");
  }
  return text_.substr(begin, pos_ - begin);
}

std::string TextCursor::ElementToken() {
  if (Peek() != '(') return NumberToken();
  ++pos_;
  SkipLines();
  std::string text = "(" + NumberToken();
  ExpectInside(',', " between the real and the imaginary part");
  SkipLines();
  text += "," + NumberToken();
  ExpectInside(')', " after the imaginary part");
  return text + ")";
}

std::string TextCursor::String() {
  const size_t at = pos_++;
  while (!AtEnd() && Peek() != '"' && Peek() != '\n') pos_ += Peek() == '\\' && pos_ + 1 < text_.size() ? 2 : 1;
  if (AtEnd() || Peek() != '"') Fail(at, "this string has no end");
  const std::string quoted = text_.substr(at + 1, pos_++ - at - 1);
  std::string value, error;
  if (!absl::CUnescape(quoted, &value, &error)) Fail(at, "malformed string: " + error);
  return value;
}

int64_t TextCursor::Int(const std::string& token, size_t at) const {
  int64_t value = 0;
  const auto result = std::from_chars(token.data(), token.data() + token.size(), value);
  if (result.ec == std::errc::result_out_of_range) Fail(at, token + " does not fit a 64-bit integer");
  if (result.ec != std::errc() || result.ptr != token.data() + token.size())
    Fail(at, "'" + token + "' is not an integer");
  return value;
}

int TextCursor::LineAt(size_t at) {
  line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(line_pos_),
                                       text_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
  line_pos_ = at;
  return line_;
}

}  // namespace weft
