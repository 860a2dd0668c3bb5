#include "lowering/memory/assignment.h"

#include <algorithm>
#include <climits>
#include <optional>
#include <sstream>
#include <tuple>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_set.h"

namespace weft {
namespace {

using Buffer = Assignment::Buffer;
using Pair = Assignment::Pair;
using Place = Assignment::Buffer::Place;
using Step = Schedule::Step;
using Value = Schedule::Value;
using Why = Assignment::Pair::Why;

// A range of one of the values of a buffer. Those of a buffer begin and end in the same order, so that the ones which
// meet another are neighbours.
struct Lived {
  int first = 0, last = 0, value = 0;
  friend bool operator<(const Lived& a, const Lived& b) {
    return std::tie(a.first, a.last, a.value) < std::tie(b.first, b.last, b.value);
  }
};
using Lives = absl::btree_set<Lived>;

class Assigner {
 public:
  // `done`: of the frames behind this one, those that it calls among them.
  Assigner(const Schedule::Frame& frame, const Liveness::Frame& live, const std::vector<Assignment::Frame>& done)
      : frame_(frame), live_(live) {
    const std::vector<bool>& donated = frame.donated;
    for (size_t v = 0; v < frame.values.size(); ++v) {
      const Value& value = frame.values[v];
      static constexpr Place kPlaces[] = {Place::kArena, Place::kParam, Place::kResult, Place::kConstant,
                                          Place::kMoving};
      Group g;
      g.buffer.place = kPlaces[static_cast<int>(value.kind)];
      g.buffer.index = value.index;
      g.buffer.bytes = value.bytes;
      g.buffer.values = {static_cast<int>(v)};
      for (const Liveness::Range& r : live.ranges[v]) g.lives.insert({r.first, r.last, static_cast<int>(v)});
      g.donated = value.kind == Value::Kind::kParam && static_cast<size_t>(value.index) < donated.size() &&
                  donated[static_cast<size_t>(value.index)] && !(value.bytes == Dim(0));
      if (g.donated) donated_.push_back(static_cast<int>(v));
      groups_.push_back(std::move(g));
      parent_.push_back(static_cast<int>(v));
    }
    Schedule::ForEachStep(frame.body, [&](const Step& s) {
      if (s.kind == Step::Kind::kCopy) {
        copies_.push_back({Pair::Kind::kCopy, Why::kTaken, s.first, s.uses[0].value, s.uses[1].value});
        allowed_.insert({s.first, s.uses[0].value, s.uses[1].value});
        is_result_.push_back(s.copy == Schedule::Copy::kResult);
      }
      const auto may_share = [&](int result, int operand) {
        in_place_.push_back({Pair::Kind::kInPlace, Why::kTaken, s.first, result, operand});
        allowed_.insert({s.first, result, operand});
      };
      for (const Schedule::MayShare& m : s.may_share) may_share(m.result, m.operand);
      if (s.function < 0) return;
      // What the function leaves in the memory of its parameters.
      const auto first_result = std::find_if(
          s.uses.begin(), s.uses.end(), [](const Schedule::Use& u) { return u.access != Schedule::Access::kRead; });
      for (const Buffer& b : done[static_cast<size_t>(s.function)].buffers) {
        if (b.place == Place::kParam && b.result >= 0)
          may_share((first_result + b.result)->value, s.uses[static_cast<size_t>(b.index)].value);
      }
    });
  }

  Assignment::Frame Run() {
    // A copy that goes away saves a step, so copies come first, and of these the ones into a given place. Then a result
    // of the program may find a donated parameter, before temporaries join it that live while the parameter does.
    for (bool results : {true, false}) {
      for (size_t i = 0; i < copies_.size(); ++i) {
        if (is_result_[i] == results) Try(copies_[i]);
      }
    }
    if (!donated_.empty()) LeaveResultsInParams();
    for (Pair& p : in_place_) {
      if (!tried_.contains({p.at, p.result, p.operand})) Try(p);
    }
    if (!donated_.empty()) UseRoomOfParams();
    return Finish();
  }

 private:
  struct Group {
    Buffer buffer;
    Lives lives;
    bool donated = false;
  };

  int Root(int v) {
    while (parent_[static_cast<size_t>(v)] != v) {
      int& up = parent_[static_cast<size_t>(v)];
      up = parent_[static_cast<size_t>(up)];
      v = up;
    }
    return v;
  }
  Group& Of(int v) { return groups_[static_cast<size_t>(Root(v))]; }

  void Try(Pair p) {
    p.why = Join(p.result, p.operand);
    pairs_.push_back(p);
  }

  // ---- What may lie together --------------------------------------------------------------------------------------

  // Whether the step at `at` may write `result` over `operand`.
  bool Allowed(int at, int result, int operand) const { return allowed_.contains({at, result, operand}); }

  // `a` and `b` live at the same time. They may where the later one takes the earlier one's place step by step.
  bool MayMeet(const Lived& a, const Lived& b) const {
    const Lived &x = a.first <= b.first ? a : b, &y = a.first <= b.first ? b : a;
    if (x.last > y.last) return false;
    constexpr int kMostSteps = 4;
    if (x.last - y.first >= kMostSteps) return false;
    for (int at = y.first; at <= x.last; ++at) {
      if (!Allowed(at, y.value, x.value)) return false;
    }
    return true;
  }

  bool Meet(const Lives& few, const Lives& many) const {
    for (const Lived& r : few) {
      for (auto at = many.upper_bound({r.last, INT_MAX, INT_MAX}); at != many.begin();) {
        --at;
        if (at->last < r.first) break;
        if (!MayMeet(*at, r)) return true;
      }
    }
    return false;
  }

  static bool AtMost(const Dim& a, const Dim& b) {
    const std::optional<int64_t> x = a.TryValue(), y = b.TryValue();
    return a == b || (x && y && *x <= *y);
  }

  // Whether a result can be left in the memory of a parameter.
  bool LieAlike(int param, int result) const {
    if (frame_.places.empty()) return true;
    const size_t params = frame_.donated.size();
    return frame_.places[static_cast<size_t>(param)] == frame_.places[params + static_cast<size_t>(result)];
  }

  static bool Ours(const Group& g) {
    switch (g.buffer.place) {
      case Place::kConstant: return false;
      case Place::kParam: return g.donated;
      default: return true;
    }
  }

  // Puts the buffers of both values together, if that may be.
  Why Join(int result, int operand) {
    const int r = Root(result), o = Root(operand);
    if (r == o) return Why::kTaken;
    Group &a = groups_[static_cast<size_t>(r)], &b = groups_[static_cast<size_t>(o)];
    // What points into other memory may be where a result has to go, but is never written over.
    if (!Ours(a) || !Ours(b) || frame_.values[static_cast<size_t>(operand)].kind == Value::Kind::kMoving)
      return Why::kNotOurs;
    const bool a_fixed = a.buffer.place != Place::kArena, b_fixed = b.buffer.place != Place::kArena;
    Dim bytes = a.buffer.bytes;
    if (a_fixed && b_fixed) {
      Group &param = a.donated ? a : b, &home = a.donated ? b : a;
      if (param.buffer.place != Place::kParam || home.buffer.place != Place::kResult || param.buffer.result >= 0)
        return Why::kTwoPlaces;
      if (!(a.buffer.bytes == b.buffer.bytes)) return Why::kTooSmall;
      if (!LieAlike(param.buffer.index, home.buffer.index)) return Why::kTwoPlaces;
    } else if (a_fixed) {
      if (!AtMost(b.buffer.bytes, a.buffer.bytes)) return Why::kTooSmall;
    } else if (AtMost(a.buffer.bytes, b.buffer.bytes) ||
               a.buffer.bytes == frame_.values[static_cast<size_t>(result)].bytes) {
      bytes = b.buffer.bytes;  // a pair's result fits into its operand
    } else if (b_fixed || !AtMost(b.buffer.bytes, a.buffer.bytes)) {
      return Why::kTooSmall;
    }
    for (const auto& [place, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
      if (place->buffer.place != Place::kMoving || other->lives.empty()) continue;
      const Liveness::Range& points = live_.points[static_cast<size_t>(place->buffer.values[0])];
      if (other->lives.begin()->first < points.first || other->lives.rbegin()->last > points.last)
        return Why::kTwoPlaces;
    }
    const bool a_has_few = a.lives.size() <= b.lives.size();
    if (Meet(a_has_few ? a.lives : b.lives, a_has_few ? b.lives : a.lives)) return Why::kLivesOn;
    // The place of one stays, and the other's values come to it.
    const bool keep_a = a_fixed && !(b_fixed && b.donated);
    Group &kept = keep_a ? a : b, &gone = keep_a ? b : a;
    if (a_fixed && b_fixed) kept.buffer.result = gone.buffer.index;
    kept.buffer.bytes = bytes;
    if (kept.lives.size() < gone.lives.size()) std::swap(kept.lives, gone.lives);
    kept.lives.insert(gone.lives.begin(), gone.lives.end());
    if (kept.buffer.values.size() < gone.buffer.values.size() && kept.buffer.place != Place::kMoving)
      std::swap(kept.buffer.values, gone.buffer.values);
    kept.buffer.values.insert(kept.buffer.values.end(), gone.buffer.values.begin(), gone.buffer.values.end());
    gone.lives.clear();
    gone.buffer.values.clear();
    parent_[static_cast<size_t>(keep_a ? o : r)] = keep_a ? r : o;
    return Why::kTaken;
  }

  // ---- Donated parameters -----------------------------------------------------------------------------------------

  // The results of the program that are still in memory of their own, those that are written first in front.
  std::vector<int> FreeResults() {
    std::vector<int> results;
    for (size_t v = 0; v < frame_.values.size(); ++v) {
      if (frame_.values[v].kind == Value::Kind::kResult && Of(static_cast<int>(v)).buffer.place == Place::kResult)
        results.push_back(static_cast<int>(v));
    }
    std::stable_sort(results.begin(), results.end(), [&](int a, int b) { return FirstOf(a) < FirstOf(b); });
    return results;
  }
  int FirstOf(int v) {
    const Lives& lives = Of(v).lives;
    return lives.empty() ? 0 : lives.begin()->first;
  }

  void LeaveResultsInParams() {
    // Where a step writes one over the other anyway ...
    for (Pair& p : in_place_) {
      if (Of(p.operand).donated && Of(p.result).buffer.place == Place::kResult &&
          Of(p.operand).buffer.bytes == Of(p.result).buffer.bytes) {
        Try(p);
        tried_.insert({p.at, p.result, p.operand});
      }
    }
    // ... and where one is dead before the other is written.
    for (int r : FreeResults()) {
      for (int p : donated_) {
        if (!(Of(p).buffer.bytes == Of(r).buffer.bytes) || Of(p).buffer.result >= 0 ||
            !LieAlike(Of(p).buffer.index, Of(r).buffer.index))
          continue;
        Pair pair{Pair::Kind::kDonation, Why::kTaken, FirstOf(r), r, p};
        pair.why = Join(r, p);
        if (pair.why == Why::kTaken) {
          pairs_.push_back(pair);
          break;
        }
      }
    }
  }

  // What has no place yet, in memory that no result is left in any more: the smallest that holds it.
  void UseRoomOfParams() {
    std::vector<std::pair<int64_t, int>> rooms;
    for (int p : donated_) rooms.emplace_back(frame_.values[static_cast<size_t>(p)].bytes.TryValue().value_or(-1), p);
    std::sort(rooms.begin(), rooms.end());
    std::vector<int> homeless;
    for (size_t v = 0; v < frame_.values.size(); ++v) {
      const int i = static_cast<int>(v);
      if (Root(i) == i && Of(i).buffer.place == Place::kArena && !Of(i).lives.empty()) homeless.push_back(i);
    }
    std::stable_sort(homeless.begin(), homeless.end(), [&](int a, int b) { return FirstOf(a) < FirstOf(b); });
    constexpr int kMostRooms = 16;
    for (int v : homeless) {
      const Dim bytes = Of(v).buffer.bytes;
      int looked_at = 0;
      for (auto room = std::lower_bound(rooms.begin(), rooms.end(), std::pair(bytes.TryValue().value_or(-1), 0));
           room != rooms.end() && looked_at < kMostRooms; ++room) {
        if (!AtMost(bytes, Of(room->second).buffer.bytes)) continue;
        ++looked_at;
        Pair pair{Pair::Kind::kDonation, Why::kTaken, FirstOf(v), v, room->second};
        pair.why = Join(v, room->second);
        if (pair.why != Why::kTaken) continue;
        pairs_.push_back(pair);
        break;
      }
    }
  }

  Assignment::Frame Finish() {
    Assignment::Frame out;
    out.buffer.assign(frame_.values.size(), -1);
    std::vector<int> roots;
    for (size_t v = 0; v < groups_.size(); ++v) {
      if (Root(static_cast<int>(v)) == static_cast<int>(v)) roots.push_back(static_cast<int>(v));
    }
    std::stable_sort(roots.begin(), roots.end(), [&](int a, int b) { return FirstOf(a) < FirstOf(b); });
    for (int v : roots) {
      Group& g = groups_[static_cast<size_t>(v)];
      if (!g.lives.empty()) {
        g.buffer.first = g.lives.begin()->first;
        g.buffer.last = g.lives.rbegin()->last;
      } else if (g.buffer.place == Place::kArena) {
        g.buffer.bytes = 0;  // nobody looks at it
      }
      for (int member : g.buffer.values) out.buffer[static_cast<size_t>(member)] = static_cast<int>(out.buffers.size());
      out.buffers.push_back(std::move(g.buffer));
    }
    out.pairs = std::move(pairs_);
    return out;
  }

  const Schedule::Frame& frame_;
  const Liveness::Frame& live_;
  std::vector<Group> groups_;  // by the value that stands for it
  std::vector<int> parent_;    // by value
  std::vector<int> donated_;   // values
  std::vector<Pair> copies_, in_place_, pairs_;
  std::vector<bool> is_result_;  // by copy
  absl::flat_hash_set<std::tuple<int, int, int>> allowed_, tried_;
};

}  // namespace

Assignment AssignBuffers(const Schedule& schedule, const Liveness& liveness) {
  Assignment all;
  all.frames.resize(schedule.frames.size());
  for (size_t f = schedule.frames.size(); f-- > 0;)
    all.frames[f] = Assigner(schedule.frames[f], liveness.frames[f], all.frames).Run();
  return all;
}

std::string Assignment::ToString() const {
  static const char* kPlaces[] = {"arena", "param", "result", "constant", "moving"};
  static const char* kKinds[] = {"copy", "in place", "donation"};
  static const char* kWhys[] = {"taken", "not taken, the operand lives on",
                                "not taken, the operand is not ours to write",
                                "not taken, the operand's memory is too small", "not taken, both have a place"};
  std::ostringstream out;
  for (size_t f = 0; f < frames.size(); ++f) {
    out << "frame " << f << "\n";
    for (size_t b = 0; b < frames[f].buffers.size(); ++b) {
      const Buffer& buffer = frames[f].buffers[b];
      out << "  b" << b << ": " << kPlaces[static_cast<int>(buffer.place)];
      if (buffer.place == Place::kParam || buffer.place == Place::kResult) out << " " << buffer.index;
      out << ", " << buffer.bytes << " bytes";
      if (buffer.place == Place::kArena) out << ", steps " << buffer.first << " to " << buffer.last;
      if (buffer.result >= 0) out << ", result " << buffer.result << " is left in it";
      out << ":";
      for (int v : buffer.values) out << " %" << v;
      out << "\n";
    }
    for (const Pair& p : frames[f].pairs) {
      out << "  " << p.at << ": %" << p.result << " = %" << p.operand << ", " << kKinds[static_cast<int>(p.kind)]
          << ", " << kWhys[static_cast<int>(p.why)] << "\n";
    }
  }
  return out.str();
}

}  // namespace weft
