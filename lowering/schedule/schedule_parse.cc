// The text of a schedule, read back.
#include <algorithm>
#include <cctype>
#include <climits>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "ir/error.h"
#include "lowering/abi/descriptors.h"
#include "lowering/schedule/schedule.h"

namespace weft {
namespace {

using Step = Schedule::Step;
using Value = Schedule::Value;

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  Schedule Read() {
    Schedule::Frame next;  // what is said of a frame before it begins
    while (!AtEnd() && !Take("kernels")) {
      if (Take("donated")) {
        for (int i : Numbers()) {
          next.donated.resize(std::max(next.donated.size(), static_cast<size_t>(i) + 1), false);
          next.donated[static_cast<size_t>(i)] = true;
        }
        if (Take("places")) next.places = Numbers();
        continue;
      }
      if (out_.frames.empty() && Take("string")) {
        out_.strings.push_back(Quoted());
        continue;
      }
      if (!Take(out_.frames.empty() ? "program" : "function")) Fail("a program or function");
      out_.frames.push_back(std::exchange(next, {}));
      frame_ = &out_.frames.back();
      frame_->name = RestOfLine();
      while (Peek() == '%') ReadValue();
      for (const Value& v : frame_->values) {
        for (int w : v.within) Known(w);
      }
      while (!Take("end")) frame_->body.steps.push_back(ReadStep());
      for (const Value& v : frame_->values) {
        if (!frame_->donated.empty() && v.kind == Value::Kind::kParam &&
            static_cast<size_t>(v.index) >= frame_->donated.size())
          frame_->donated.resize(static_cast<size_t>(v.index) + 1, false);
      }
    }
    if (out_.frames.empty()) Fail("a program");
    out_.Number();
    return std::move(out_);
  }

 private:
  void Skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool AtEnd() {
    Skip();
    return at_ == text_.size();
  }
  char Peek() {
    Skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  [[noreturn]] void Fail(const std::string& wanted) {
    size_t begin = text_.rfind('\n', at_ == 0 ? 0 : at_ - 1);
    begin = begin == std::string::npos ? 0 : begin + 1;
    const size_t line = static_cast<size_t>(std::count(text_.begin(), text_.begin() + static_cast<int64_t>(at_), '\n'));
    throw Error(ErrorKind::kParse, "schedule: expected " + wanted + " in line " + std::to_string(line + 1) + ": " +
                                       text_.substr(begin, text_.find('\n', begin) - begin));
  }
  static bool OfWord(char c) {
    return !std::isspace(static_cast<unsigned char>(c)) && std::strchr("()[]{},:=@<>\"%", c) == nullptr;
  }
  std::string Word() {
    Skip();
    const size_t begin = at_;
    while (at_ < text_.size() && OfWord(text_[at_]) && text_.compare(at_, 2, "->") != 0) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  // Whether a word or sign comes next; then it is read.
  bool Take(const char* what) {
    Skip();
    const size_t begin = at_, n = std::strlen(what);
    if (text_.compare(begin, n, what) != 0) return false;
    if (OfWord(what[0]) && std::strcmp(what, "->") != 0 && begin + n < text_.size() && OfWord(text_[begin + n]))
      return false;  // the beginning of a longer word
    at_ += n;
    return true;
  }
  void Want(const char* what) {
    if (!Take(what)) Fail("'" + std::string(what) + "'");
  }
  int64_t Number() {
    Skip();
    const size_t begin = at_;
    int64_t n = 0;
    if (!absl::SimpleAtoi(Word(), &n)) {
      at_ = begin;
      Fail("a number");
    }
    return n;
  }
  std::vector<int> Numbers() {
    std::vector<int> numbers;
    while (std::isdigit(static_cast<unsigned char>(Peek()))) numbers.push_back(static_cast<int>(Number()));
    return numbers;
  }
  Dim Size() {
    Skip();
    const size_t begin = at_;
    if (const std::optional<Dim> d = Dim::Parse(Word())) return *d;
    at_ = begin;
    Fail("a size");
  }
  std::string Quoted() {
    Want("\"");
    std::string raw, out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') raw += text_[at_++];
      if (at_ < text_.size()) raw += text_[at_++];
    }
    Want("\"");
    if (!absl::CUnescape(raw, &out)) Fail("a quoted text");
    return out;
  }
  std::string RestOfLine() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string rest = text_.substr(at_, end - at_);
    at_ = end;
    return rest;
  }
  void Known(int v) {
    if (v < 0 || static_cast<size_t>(v) >= frame_->values.size())
      Fail("a value of the frame, not %" + std::to_string(v));
  }
  int Ref() {
    Want("%");
    const int64_t v = Number();
    Known(static_cast<int>(std::min<int64_t>(v, INT_MAX)));
    return static_cast<int>(v);
  }

  void ReadValue() {
    Want("%");
    if (Number() != static_cast<int64_t>(frame_->values.size())) Fail("values in order");
    Want(":");
    Value v;
    if (Take("param")) {
      v.kind = Value::Kind::kParam;
      v.index = static_cast<int>(Number());
    } else if (Take("result")) {
      v.kind = Value::Kind::kResult;
      v.index = static_cast<int>(Number());
    } else if (Take("constant")) {
      v.kind = Value::Kind::kConstant;
    } else if (Take("moving")) {
      v.kind = Value::Kind::kMoving;
      Want("in");
      while (Take("%")) v.within.push_back(static_cast<int>(Number()));
    } else if (!Take("temporary")) {
      Fail("a kind of value");
    }
    if (v.index < 0) Fail("a number that is not negative");
    Want(",");
    v.bytes = Size();
    Want("bytes");
    frame_->values.push_back(std::move(v));
  }

  // The name in front of an entry of a call, with its colon, if there is one.
  const char* Field(const Step& s) {
    Skip();
    const size_t begin = at_;
    const std::string name = Word();
    if (name.empty() || !Take(":")) {
      at_ = begin;
      return nullptr;
    }
    const char* field = s.kind == Step::Kind::kCall ? abi::FieldNamed(s.index, name) : nullptr;
    if (field == nullptr) Fail("an entry of the step; it has none called '" + name + "'");
    return field;
  }

  // Calls `item` for each of a list that `sign` begins.
  template <class F>
  void List(const char* sign, const F& item) {
    if (!Take(sign)) return;
    do item();
    while (Take(","));
  }

  Step ReadStep() {
    Number();
    Want(":");
    Step s;
    size_t blocks = 0, most = 0;
    if (Take("kernel")) {
      const std::string name = Word();
      int64_t index = 0;
      if (name.empty() || name[0] != 'k' || !absl::SimpleAtoi(name.substr(1), &index)) Fail("the name of a kernel");
      s.index = static_cast<int>(index);
    } else if (Take("copy")) {
      s.kind = Step::Kind::kCopy;
      s.copy = Take("result")  ? Schedule::Copy::kResult
               : Take("start") ? Schedule::Copy::kStart
                               : (Want("data"), Schedule::Copy::kData);
    } else if (Take("call")) {
      s.kind = Step::Kind::kCall;
      const std::string name = Word();
      while (s.index < WEFT_OP_COUNT && name != abi::StepName(s.index)) ++s.index;
      if (s.index == WEFT_OP_COUNT) Fail("the name of an operation of the runtime");
    } else if (Take("if")) {
      s.kind = Step::Kind::kIf;
      s.predicate = Ref();
      const std::optional<DType> dtype = ParseDType(Word());
      if (!dtype) Fail("a dtype");
      s.dtype = *dtype;
      blocks = 1, most = SIZE_MAX;
    } else if (Take("while")) {
      s.kind = Step::Kind::kWhile;
      s.predicate = Ref();
      blocks = most = 2;
    } else if (Take("for")) {
      s.kind = Step::Kind::kFor;
      s.trips = Size();
      blocks = most = 1;
    } else if (Take("checked")) {
      s.kind = Step::Kind::kChecked;
      blocks = most = 2;
    } else {
      Fail("a step");
    }
    if (Take("runs")) s.function = static_cast<int>(Number());
    s.reverse = Take("reverse");
    s.can_fail = Take("can_fail");
    List("(", [&] {
      const Schedule::Access access = Take("->")   ? Schedule::Access::kWrite
                                      : Take("<>") ? Schedule::Access::kUpdate
                                      : Take("@")  ? Schedule::Access::kPoint
                                                   : Schedule::Access::kRead;
      s.uses.push_back({Ref(), access});
    });
    if (!s.uses.empty()) Want(")");
    if (s.kind == Step::Kind::kCopy && (s.uses.size() != 2 || s.uses[0].access != Schedule::Access::kWrite ||
                                        s.uses[1].access != Schedule::Access::kRead))
      Fail("what is written and what is read");
    List("[", [&] {
      const char* const field = Field(s);
      if (Peek() == '%')
        s.desc.push_back(Schedule::Entry::Place(Ref()));
      else if (Take("result"))
        s.desc.push_back(Schedule::Entry::ResultNumber(Ref()));
      else if (Take("left_in"))
        s.desc.push_back(Schedule::Entry::LeftIn(static_cast<int>(Number())));
      else if (Take("overwritten"))
        s.desc.push_back(Schedule::Entry::Overwritten(static_cast<int>(Number())));
      else
        s.desc.push_back(Size());
      s.desc.back().field = field;
    });
    if (!s.desc.empty()) Want("]");
    List("may", [&] {
      const int result = Ref();
      Want("=");
      s.may_share.push_back({result, Ref()});
    });
    List("slices", [&] {
      const int value = Ref();
      Want("of");
      const int base = Ref();
      Want("by");
      s.slices.push_back({value, base, Size()});
    });
    if (Take("cost") && !absl::SimpleAtod(Word(), &s.cost)) Fail("a cost");
    if (Take("moves")) s.bytes_moved = Number();
    if (Take("note")) s.note = Quoted();
    while (Take("{")) {
      s.blocks.emplace_back();
      while (!Take("}")) s.blocks.back().steps.push_back(ReadStep());
    }
    if (s.blocks.size() < blocks || s.blocks.size() > most) Fail("another number of blocks");
    return s;
  }

  const std::string& text_;
  size_t at_ = 0;
  Schedule out_;
  Schedule::Frame* frame_ = nullptr;
};

}  // namespace

Schedule Schedule::Parse(const std::string& text) { return Reader(text).Read(); }

}  // namespace weft
