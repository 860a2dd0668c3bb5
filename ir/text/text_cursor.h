// A place in a text that moves forward: characters, words, numbers, strings, and errors that show the line.
#ifndef WEFT_IR_TEXT_TEXT_CURSOR_H_
#define WEFT_IR_TEXT_TEXT_CURSOR_H_

#include <string>

#include "ir/error.h"

namespace weft {

class TextCursor {
 protected:
  // Both have to outlive the cursor. `file` names the text in errors; empty: "<text>".
  TextCursor(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  static constexpr size_t kMaxWord = 4096;
  static bool IsDigit(char c) { return c >= '0' && c <= '9'; }
  static bool IsWordStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  static bool IsWordPart(char c) { return IsWordStart(c) || IsDigit(c); }

  // --- Errors: of kind kParse, with the line and a caret ---

  [[noreturn]] void Fail(size_t at, const std::string& message) const;
  [[noreturn]] void Expected(const std::string& what) const;  // at this place
  // Runs `body`, turning the user's mistakes that it reports into errors at a place of the text.
  template <class Body>
  void Guarded(size_t at, Body&& body) const {
    try {
      body();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInternal) throw;
      Fail(at, error.message());
    }
  }

  // --- Characters ---

  bool AtEnd() const { return pos_ >= text_.size(); }
  char Peek(size_t ahead = 0) const { return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0'; }
  // Blanks and a comment, but not the end of the line.
  void SkipSpace() {
    while (!AtEnd() && (Peek() == ' ' || Peek() == '\t' || Peek() == '\r')) ++pos_;
    if (Peek() == '#') {
      while (!AtEnd() && Peek() != '\n') ++pos_;
    }
  }
  void SkipLines() {
    for (SkipSpace(); Peek() == '\n'; SkipSpace()) ++pos_;
  }
  bool Accept(char c) {
    SkipSpace();
    if (Peek() != c || AtEnd()) return false;
    ++pos_;
    return true;
  }
  // Inside brackets, where line ends mean nothing.
  bool AcceptInside(char c) {
    SkipLines();
    return Accept(c);
  }
  void Expect(char c, const std::string& why) {
    if (!Accept(c)) Expected(std::string("'") + c + "'" + why);
  }
  void ExpectInside(char c, const std::string& why) {
    SkipLines();
    Expect(c, why);
  }
  std::string PeekWord() const {
    size_t end = pos_;
    if (!IsWordStart(Peek())) return "";
    while (end < text_.size() && IsWordPart(text_[end]) && end - pos_ < kMaxWord) ++end;
    return text_.substr(pos_, end - pos_);
  }
  std::string Word(const std::string& what) {
    SkipSpace();
    std::string word = PeekWord();
    if (word.empty()) Expected(what);
    if (word.size() >= kMaxWord) Fail(pos_, "this name is too long");
    pos_ += word.size();
    return word;
  }
  // 12  -0.5e+3  0x7fc00001  -inf  nan  true
  std::string NumberToken();
  // A number, or two in parentheses.
  std::string ElementToken();
  std::string String();  // in quotation marks, with C's escapes
  int64_t Int(const std::string& token, size_t at) const;
  // The number of the line of a place; places are asked for in order.
  int LineAt(size_t at);

  const std::string& text_;
  size_t pos_ = 0;

 private:
  std::string Found() const;

  const std::string& file_;
  size_t line_pos_ = 0;
  int line_ = 1;
};

}  // namespace weft
#endif  // WEFT_IR_TEXT_TEXT_CURSOR_H_
