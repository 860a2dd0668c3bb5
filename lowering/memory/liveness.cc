#include "lowering/memory/liveness.h"

#include <algorithm>
#include <sstream>
#include <unordered_map>

namespace weft {
namespace {

using Access = Schedule::Access;
using Block = Schedule::Block;
using Step = Schedule::Step;
using Use = Schedule::Use;
using Value = Schedule::Value;

// What a block does with a value that others know, too.
struct Touch {
  int value = 0, times = 0;
  bool reads_first = false;  // reads what it was before the block
  bool overwrites = false;   // writes all of it for certain
};
using Touches = std::vector<Touch>;

// From the last step to the first, with the values that live.
class Walk {
 public:
  Walk(const Schedule::Frame& frame, Liveness::Frame* out) : frame_(frame), out_(*out) {
    const size_t n = frame.values.size();
    out_.ranges.resize(n);
    out_.points.resize(n);
    end_.assign(n, kDead);
    times_.assign(n, 0);
    found_.assign(n, -1);
  }

  void Run() {
    // Whoever runs the frame knows its parameters, results and constants, too.
    for (size_t v = 0; v < frame_.values.size(); ++v)
      times_[v] =
          frame_.values[v].kind == Value::Kind::kTemporary || frame_.values[v].kind == Value::Kind::kMoving ? 0 : 1;
    Schedule::ForEachStep(frame_.body, [&](const Step& s) {
      ForEachUse(s, [&](const Use& u) { ++times_[static_cast<size_t>(u.value)]; });
    });
    Summarise(frame_.body);
    for (size_t v = 0; v < frame_.values.size(); ++v) {
      if (frame_.values[v].kind == Value::Kind::kResult) end_[v] = frame_.body.last;
    }
    Through(frame_.body);
    for (size_t v = 0; v < frame_.values.size(); ++v) {
      if (end_[v] != kDead) Lived(static_cast<int>(v), frame_.body.first);
      std::vector<Liveness::Range>& ranges = out_.ranges[v];
      std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      size_t kept = 0;
      for (size_t i = 0; i < ranges.size(); ++i) {
        if (kept > 0 && ranges[i].first <= ranges[kept - 1].last)
          ranges[kept - 1].last = std::max(ranges[kept - 1].last, ranges[i].last);
        else
          ranges[kept++] = ranges[i];
      }
      ranges.resize(kept);
    }
  }

 private:
  static constexpr int kDead = -1;

  // The uses of the step itself, and of what values that move point into. In the order in which they happen.
  template <class F>
  void ForEachUse(const Step& s, const F& f) const {
    for (const Use& u : s.uses) {
      if (u.access == Access::kRead) Reach(u, f);
    }
    if (s.kind == Step::Kind::kIf || s.kind == Step::Kind::kWhile) Reach({s.predicate, Access::kRead}, f);
    for (const Use& u : s.uses) {
      if (u.access != Access::kRead) Reach(u, f);
    }
    for (const Schedule::Slice& m : s.slices) f(Use{m.value, Access::kPoint});
  }
  template <class F>
  void Reach(const Use& u, const F& f) const {
    f(u);
    if (u.access == Access::kPoint) return;
    for (int w : frame_.values[static_cast<size_t>(u.value)].within)
      Reach({w, u.access == Access::kRead ? Access::kRead : Access::kUpdate}, f);
  }

  // ---- What blocks touch -----------------------------------------------------------------------------------------

  const Touches& Summarise(const Block& block) {
    for (const Step& s : block.steps) {
      for (const Block& b : s.blocks) Summarise(b);
    }
    Touches& touches = touches_[&block];
    auto touch = [&](int v) -> Touch& {
      int& at = found_[static_cast<size_t>(v)];
      if (at < 0) {
        at = static_cast<int>(touches.size());
        touches.push_back({v});
      }
      return touches[static_cast<size_t>(at)];
    };
    for (const Step& s : block.steps) {
      ForEachUse(s, [&](const Use& u) {
        Touch& t = touch(u.value);
        ++t.times;
        if (u.access == Access::kWrite || u.access == Access::kPoint)
          t.overwrites = true;
        else
          t.reads_first |= !t.overwrites;
      });
      for (const Block& b : s.blocks) {
        for (const Touch& inner : touches_.at(&b)) {
          Touch& t = touch(inner.value);
          t.times += inner.times;
          t.reads_first |= inner.reads_first && !t.overwrites;
          t.overwrites |= inner.overwrites && s.kind == Step::Kind::kChecked;
        }
      }
    }
    for (const Touch& t : touches) found_[static_cast<size_t>(t.value)] = -1;
    // What nobody outside knows need not be looked at there.
    touches.erase(std::remove_if(touches.begin(), touches.end(),
                                 [&](const Touch& t) { return t.times == times_[static_cast<size_t>(t.value)]; }),
                  touches.end());
    return touches;
  }

  // ---- Backwards -------------------------------------------------------------------------------------------------

  int& End(int v) { return end_[static_cast<size_t>(v)]; }
  // From `first` to where the range that is open ends.
  void Lived(int v, int first) { out_.ranges[static_cast<size_t>(v)].push_back({first, End(v)}); }
  void Read(int v, int at) {
    if (End(v) == kDead) End(v) = at;
  }
  void ReadPredicate(const Step& s, int at) {
    Reach({s.predicate, Access::kRead}, [&](const Use& u) { Read(u.value, at); });
  }
  void Write(int v, int at) {
    if (End(v) == kDead) End(v) = at;
    Lived(v, at);
    End(v) = kDead;
  }
  void Point(int v, int first, int last) {
    if (End(v) != kDead) Lived(v, first);
    End(v) = kDead;
    out_.points[static_cast<size_t>(v)] = {first, last};
  }

  void Through(const Block& block) {
    const int around = block_end_;
    block_end_ = block.last;
    for (size_t i = block.steps.size(); i-- > 0;) Before(block.steps[i]);
    block_end_ = around;
  }

  void Before(const Step& s) {
    switch (s.kind) {
      case Step::Kind::kIf: return BeforeIf(s);
      case Step::Kind::kWhile: return BeforeWhile(s);
      case Step::Kind::kFor: return BeforeFor(s);
      case Step::Kind::kChecked: Through(s.blocks[1]); return Through(s.blocks[0]);
      default: break;
    }
    std::vector<Use> uses;
    ForEachUse(s, [&](const Use& u) { uses.push_back(u); });
    for (size_t i = uses.size(); i-- > 0;) {
      const Use& u = uses[i];
      switch (u.access) {
        case Access::kWrite:
          // What lies in other memory is read there.
          if (!frame_.values[static_cast<size_t>(u.value)].within.empty()) Read(u.value, block_end_);
          Write(u.value, s.first);
          break;
        case Access::kPoint: Point(u.value, s.first, block_end_); break;
        default: Read(u.value, s.first); break;
      }
    }
  }

  // What a step with blocks touches: where the value lives afterwards, a new range begins at the end of the step.
  struct Around {
    Touch touch;          // of all blocks
    bool after = false;   // lives behind the step
    bool before = false;  // and before it
    Touch in[2];          // of a loop's blocks
  };
  std::vector<Around> Enter(const Step& s) {
    std::vector<Around> around;
    for (size_t b = 0; b < s.blocks.size(); ++b) {
      for (const Touch& t : touches_.at(&s.blocks[b])) {
        int& at = found_[static_cast<size_t>(t.value)];
        if (at < 0) {
          at = static_cast<int>(around.size());
          around.emplace_back();
          around.back().touch.value = t.value;
        }
        Around& a = around[static_cast<size_t>(at)];
        if (b < 2) a.in[b] = t;
      }
    }
    for (Around& a : around) {
      const int v = a.touch.value;
      found_[static_cast<size_t>(v)] = -1;
      a.after = End(v) != kDead;
      if (a.after) Lived(v, s.last);
    }
    return around;
  }

  void BeforeIf(const Step& s) {
    std::vector<Around> around = Enter(s);
    for (const Block& b : s.blocks) {
      for (const Around& a : around) End(a.touch.value) = a.after ? b.last : kDead;
      Through(b);
      for (Around& a : around) {
        if (End(a.touch.value) == kDead) continue;
        Lived(a.touch.value, b.first);
        a.before = true;
      }
    }
    for (const Around& a : around) End(a.touch.value) = a.before ? s.first : kDead;
    ReadPredicate(s, s.first);
  }

  void BeforeFor(const Step& s) {
    for (const Use& u : s.uses) {
      if (u.access != Access::kRead) Reach({u.value, Access::kRead}, [&](const Use& r) { Read(r.value, s.last); });
    }
    const Block& body = s.blocks[0];
    const std::vector<Around> around = Enter(s);
    for (const Around& a : around) End(a.touch.value) = a.after || a.in[0].reads_first ? s.last : kDead;
    Through(body);
    for (const Around& a : around) {
      if (a.after && End(a.touch.value) == kDead) End(a.touch.value) = s.first;  // there may be no iteration
    }
    for (const Schedule::Slice& m : s.slices) Point(m.value, body.first, body.last);
    for (const Use& u : s.uses) {
      if (u.access != Access::kRead) Write(u.value, s.first);
    }
    for (const Use& u : s.uses) {
      if (u.access == Access::kRead) Reach(u, [&](const Use& r) { Read(r.value, s.first); });
    }
  }

  void BeforeWhile(const Step& s) {
    const Block &test = s.blocks[0], &body = s.blocks[1];
    const std::vector<Around> around = Enter(s);
    for (const Around& a : around) {
      const bool read = a.in[0].reads_first || (!a.in[0].overwrites && (a.after || a.in[1].reads_first));
      End(a.touch.value) = read ? s.last : kDead;
    }
    Through(body);
    for (const Around& a : around) {
      if (a.after && End(a.touch.value) == kDead) End(a.touch.value) = test.last;
    }
    ReadPredicate(s, test.last);
    Through(test);
    for (const Around& a : around) {
      if (End(a.touch.value) != kDead) Lived(a.touch.value, s.first), End(a.touch.value) = s.first;
    }
  }

  const Schedule::Frame& frame_;
  Liveness::Frame& out_;
  std::vector<int> end_;    // by value: where the range that is open ends
  std::vector<int> times_;  // by value: its uses in the frame
  std::vector<int> found_;  // by value: its place in the list that is being made, -1
  std::unordered_map<const Block*, Touches> touches_;
  int block_end_ = 0;
};

}  // namespace

Liveness FindLiveness(const Schedule& schedule) {
  Liveness all;
  for (const Schedule::Frame& frame : schedule.frames) {
    all.frames.emplace_back();
    Walk(frame, &all.frames.back()).Run();
  }
  return all;
}

std::string Liveness::ToString() const {
  std::ostringstream out;
  for (size_t f = 0; f < frames.size(); ++f) {
    out << "frame " << f << "\n";
    for (size_t v = 0; v < frames[f].ranges.size(); ++v) {
      out << "  %" << v << ":";
      const char* comma = " ";
      for (const Range& r : frames[f].ranges[v]) {
        out << comma << r.first << " to " << r.last;
        comma = ", ";
      }
      if (frames[f].ranges[v].empty()) out << " never";
      out << "\n";
    }
  }
  return out.str();
}

}  // namespace weft
