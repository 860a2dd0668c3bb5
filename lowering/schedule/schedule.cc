#include "lowering/schedule/schedule.h"

#include <algorithm>
#include <sstream>

#include "absl/strings/escaping.h"

namespace weft {
namespace {

using Step = Schedule::Step;
using Value = Schedule::Value;

void NumberBlock(Schedule::Block& block, int& at) {
  block.first = at++;
  for (Step& s : block.steps) {
    s.first = s.last = at++;
    for (Schedule::Block& b : s.blocks) NumberBlock(b, at);
    if (!s.blocks.empty()) s.last = at++;
  }
  block.last = at++;
}

class Writer {
 public:
  std::string Text(const Schedule& schedule) {
    WriteDonated(schedule.frames[0]);
    for (const std::string& s : schedule.strings) out_ << "string \"" << absl::CEscape(s) << "\"\n";
    for (size_t f = 0; f < schedule.frames.size(); ++f) {
      const Schedule::Frame& frame = schedule.frames[f];
      if (f != 0) WriteDonated(frame);
      out_ << (f == 0 ? "program " : "function ") << frame.name << "\n";
      for (size_t v = 0; v < frame.values.size(); ++v) WriteValue(static_cast<int>(v), frame.values[v]);
      WriteBlock(frame.body, 1);
      out_ << "end\n";
    }
    return out_.str();
  }

 private:
  void WriteDonated(const Schedule::Frame& frame) {
    if (std::find(frame.donated.begin(), frame.donated.end(), true) == frame.donated.end()) return;
    out_ << "donated";
    for (size_t i = 0; i < frame.donated.size(); ++i) {
      if (frame.donated[i]) out_ << " " << i;
    }
    if (!frame.places.empty()) out_ << " places";
    for (int place : frame.places) out_ << " " << place;
    out_ << "\n";
  }

  void WriteValue(int v, const Value& value) {
    out_ << "  %" << v << ": ";
    switch (value.kind) {
      case Value::Kind::kTemporary: out_ << "temporary"; break;
      case Value::Kind::kParam: out_ << "param " << value.index; break;
      case Value::Kind::kResult: out_ << "result " << value.index; break;
      case Value::Kind::kConstant: out_ << "constant"; break;
      case Value::Kind::kMoving:
        out_ << "moving in";
        for (int w : value.within) out_ << " %" << w;
        break;
    }
    out_ << ", " << value.bytes << " bytes\n";
  }

  void WriteUses(const std::vector<Schedule::Use>& uses) {
    if (uses.empty()) return;
    static const char* kSigns[] = {"%", "-> %", "<> %", "@ %"};
    const char* comma = " (";
    for (const Schedule::Use& u : uses) {
      out_ << comma << kSigns[static_cast<int>(u.access)] << u.value;
      comma = ", ";
    }
    out_ << ")";
  }

  void WriteBlock(const Schedule::Block& block, int indent) {
    for (const Step& s : block.steps) WriteStep(s, indent);
  }

  void WriteStep(const Step& s, int indent) {
    static const char* kCopies[] = {"result", "start", "data"};
    out_ << std::string(static_cast<size_t>(2 * indent), ' ') << s.first << ": ";
    switch (s.kind) {
      case Step::Kind::kKernel: out_ << "kernel k" << s.index; break;
      case Step::Kind::kCopy: out_ << "copy " << kCopies[static_cast<int>(s.copy)]; break;
      case Step::Kind::kCall: out_ << "call " << abi::StepName(s.index); break;
      case Step::Kind::kIf: out_ << "if %" << s.predicate << " " << Name(s.dtype); break;
      case Step::Kind::kWhile: out_ << "while %" << s.predicate; break;
      case Step::Kind::kFor: out_ << "for " << s.trips; break;
      case Step::Kind::kChecked: out_ << "checked"; break;
    }
    if (s.function >= 0) out_ << " runs " << s.function;
    if (s.reverse) out_ << " reverse";
    if (s.can_fail) out_ << " can_fail";
    WriteUses(s.uses);
    if (!s.desc.empty()) {
      const char* comma = " [";
      for (const Schedule::Entry& e : s.desc) {
        out_ << comma;
        if (e.field != nullptr) out_ << e.field << ": ";
        switch (e.kind) {
          case Schedule::Entry::Kind::kNumber: out_ << e.number; break;
          case Schedule::Entry::Kind::kPlace: out_ << "%" << e.value; break;
          case Schedule::Entry::Kind::kResultNumber: out_ << "result %" << e.value; break;
          case Schedule::Entry::Kind::kLeftIn: out_ << "left_in " << e.value; break;
          case Schedule::Entry::Kind::kOverwritten: out_ << "overwritten " << e.value; break;
        }
        comma = ", ";
      }
      out_ << "]";
    }
    const char* comma = " may ";
    for (const Schedule::MayShare& m : s.may_share) {
      out_ << comma << "%" << m.result << " = %" << m.operand;
      comma = ", ";
    }
    comma = " slices ";
    for (const Schedule::Slice& m : s.slices) {
      out_ << comma << "%" << m.value << " of %" << m.base << " by " << m.stride;
      comma = ", ";
    }
    if (s.cost >= 0) out_ << " cost " << s.cost;
    if (s.bytes_moved > 0) out_ << " moves " << s.bytes_moved;
    if (!s.note.empty()) out_ << " note \"" << absl::CEscape(s.note) << "\"";
    for (const Schedule::Block& b : s.blocks) {
      out_ << " {\n";
      WriteBlock(b, indent + 1);
      out_ << std::string(static_cast<size_t>(2 * indent), ' ') << "}";
    }
    out_ << "\n";
  }

  std::ostringstream out_;
};

}  // namespace

void Schedule::Number() {
  for (Frame& f : frames) {
    int at = 0;
    NumberBlock(f.body, at);
  }
}

std::string Schedule::ToString() const { return Writer().Text(*this); }

bool HoldsChecks(const Schedule::Block& block) {
  return std::any_of(block.steps.begin(), block.steps.end(), [](const Step& s) {
    return s.kind == Step::Kind::kChecked || std::any_of(s.blocks.begin(), s.blocks.end(), HoldsChecks);
  });
}

}  // namespace weft
