#include "tests/property/memory_checker.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "ir/error.h"

namespace weft {
namespace {

using Access = Schedule::Access;
using Step = Schedule::Step;
using Use = Schedule::Use;
using Value = Schedule::Value;

class Run {
 public:
  Run(const Schedule& schedule, const Program& program, size_t frame, std::mt19937& rng)
      : frame_(schedule.frames[frame]),
        slot_(program.slots[frame]),
        slots_(frame == 0 ? program.artifact.slots : program.artifact.functions[frame - 1].slots),
        buffers_(frame == 0 ? program.artifact.buffers : program.artifact.functions[frame - 1].buffers),
        donated_(frame_.donated),
        rng_(rng),
        version_(frame_.values.size(), 0),
        stands_for_(frame_.values.size()) {
    for (size_t v = 0; v < stands_for_.size(); ++v) stands_for_[v] = static_cast<int>(v);
  }

  std::string Problem() {
    ForEachOf({Value::Kind::kParam, Value::Kind::kConstant}, [&](int v) { Stamp(v); });
    Steps(frame_.body);
    at_ = frame_.body.last;
    ForEachOf({Value::Kind::kResult}, [&](int v) { Check(v); });
    ForEachOf({Value::Kind::kParam, Value::Kind::kConstant}, [&](int v) {
      const auto i = static_cast<size_t>(frame_.values[static_cast<size_t>(v)].index);
      const bool given =
          frame_.values[static_cast<size_t>(v)].kind == Value::Kind::kParam && i < donated_.size() && donated_[i];
      if (!given) Check(v);
    });
    return problem_;
  }

 private:
  struct Owner {
    int value = -1;
    int64_t version = 0;
    friend auto operator<=>(const Owner&, const Owner&) = default;
  };
  // A place: memory of one kind, and where in it.
  struct Where {
    std::pair<int, int64_t> memory{-1, 0};
    int64_t offset = 0;
  };
  static constexpr int kTape = 100;

  template <class F>
  void ForEachOf(std::vector<Value::Kind> kinds, const F& f) {
    for (size_t v = 0; v < frame_.values.size(); ++v) {
      if (slot_[v] >= 0 && std::count(kinds.begin(), kinds.end(), frame_.values[v].kind) > 0) f(static_cast<int>(v));
    }
  }

  int64_t BytesOf(int v) const { return frame_.values[static_cast<size_t>(v)].bytes.value("a size"); }
  void Wrong(const std::string& what, int v) {
    if (problem_.empty()) problem_ = "step " + std::to_string(at_) + ": %" + std::to_string(v) + " " + what;
  }

  Where WhereIs(int v) {
    const int s = slot_[static_cast<size_t>(v)];
    if (s < 0) {
      Wrong("has no slot", v);
      return {};
    }
    const Artifact::Slot& slot = slots_[static_cast<size_t>(s)];
    if (slot.place == Artifact::Place::kMoving) {
      const auto at = points_.find(s);
      if (at == points_.end()) Wrong("points nowhere yet", v);
      return at == points_.end() ? Where() : at->second;
    }
    if (slot.place == Artifact::Place::kArena) {
      const Artifact::Buffer& b = buffers_[static_cast<size_t>(slot.index)];
      if (BytesOf(v) > b.bytes.constant) Wrong("is larger than its buffer", v);
      return {{0, 0}, b.offset};
    }
    return {{static_cast<int>(slot.place), slot.index}, 0};
  }

  Owner OwnerOf(int v) const {
    const int who = stands_for_[static_cast<size_t>(v)];
    return {who, version_[static_cast<size_t>(who)]};
  }
  std::vector<Owner>& MemoryOf(const Where& w, int64_t bytes) {
    std::vector<Owner>& m = memory_[w.memory];
    if (m.size() < static_cast<size_t>(w.offset + bytes)) m.resize(static_cast<size_t>(w.offset + bytes));
    return m;
  }
  void Stamp(int v) {
    const Where w = WhereIs(v);
    std::vector<Owner>& m = MemoryOf(w, BytesOf(v));
    for (int64_t i = 0; i < BytesOf(v); ++i) m[static_cast<size_t>(w.offset + i)] = OwnerOf(v);
  }
  void Check(int v) {
    const Where w = WhereIs(v);
    const std::vector<Owner>& m = MemoryOf(w, BytesOf(v));
    for (int64_t i = 0; i < BytesOf(v); ++i) {
      const Owner& o = m[static_cast<size_t>(w.offset + i)];
      if (o == OwnerOf(v)) continue;
      const auto copied = copied_.find(o);
      if (copied != copied_.end() && copied->second == OwnerOf(v)) continue;
      return Wrong(o.value < 0 ? "is read before it is written"
                               : "is read after %" + std::to_string(o.value) + " was written over it",
                   v);
    }
  }
  bool Overlap(int v, int w) {
    const Where a = WhereIs(v), b = WhereIs(w);
    return a.memory == b.memory && a.offset < b.offset + BytesOf(w) && b.offset < a.offset + BytesOf(v);
  }
  // Another array of the same value: what was there is old.
  void Renew(int v) {
    if (stands_for_[static_cast<size_t>(v)] == v) ++version_[static_cast<size_t>(v)];
  }

  void Steps(const Schedule::Block& block) {
    for (const Step& s : block.steps) {
      if (!problem_.empty()) return;
      at_ = s.first;
      One(s);
    }
  }
  int Chance(int64_t n) { return static_cast<int>(rng_() % static_cast<unsigned>(std::max<int64_t>(n, 1))); }

  void One(const Step& s) {
    switch (s.kind) {
      case Step::Kind::kIf:
        Check(s.predicate);
        return Steps(s.blocks[static_cast<size_t>(Chance(static_cast<int64_t>(s.blocks.size())))]);
      case Step::Kind::kWhile:
        for (int trips = Chance(4);; --trips) {
          Steps(s.blocks[0]);
          if (!problem_.empty()) return;
          at_ = s.blocks[0].last;
          Check(s.predicate);
          if (trips == 0 || !problem_.empty()) return;
          Steps(s.blocks[1]);
        }
      case Step::Kind::kFor: return Loop(s);
      case Step::Kind::kChecked: Steps(s.blocks[0]); return Steps(s.blocks[1]);
      default: return Simple(s);
    }
  }

  void Loop(const Step& s) {
    for (const Use& u : s.uses) {
      if (u.access == Access::kRead) Check(u.value);
    }
    for (const Use& u : s.uses) {
      if (u.access != Access::kRead) Renew(u.value), Stamp(u.value);
    }
    const int64_t trips = s.trips.value("trips");
    const int64_t run = std::min<int64_t>(trips, Chance(4));
    for (int64_t i = 0; i < run && problem_.empty(); ++i) {
      const int64_t iteration = s.reverse ? trips - 1 - i : i;
      for (const Schedule::Slice& m : s.slices) {
        Where w = WhereIs(m.base);
        w.offset += iteration * m.stride.value("a stride");
        points_[slot_[static_cast<size_t>(m.value)]] = w;
        stands_for_[static_cast<size_t>(m.value)] = stands_for_[static_cast<size_t>(m.base)];
      }
      Steps(s.blocks[0]);
    }
  }

  void Simple(const Step& s) {
    for (const Use& u : s.uses) {
      if (u.access == Access::kRead || u.access == Access::kUpdate) Check(u.value);
    }
    const bool is_copy = s.kind == Step::Kind::kCopy;
    const auto may_share = [&](int result, int operand) {
      return is_copy || std::any_of(s.may_share.begin(), s.may_share.end(), [&](const Schedule::MayShare& m) {
               return m.result == result && m.operand == operand;
             });
    };
    for (const Use& w : s.uses) {
      if (w.access != Access::kWrite && w.access != Access::kUpdate) continue;
      for (const Use& other : s.uses) {
        if (other.value == w.value || other.access == Access::kPoint || !Overlap(w.value, other.value)) continue;
        if (other.access != Access::kRead || !may_share(w.value, other.value))
          Wrong("is written over %" + std::to_string(other.value), w.value);
        if (is_copy && WhereIs(w.value).offset != WhereIs(other.value).offset)
          Wrong("is half of what it copies", w.value);
      }
    }
    for (const Use& u : s.uses) {
      if (u.access == Access::kPoint) {
        Point(u.value);
      } else if (u.access != Access::kRead) {
        Renew(u.value);
        // A copy onto itself leaves what was there, for whoever reads it under its old name, too.
        if (is_copy && OwnerOf(u.value).value == u.value) copied_[OwnerOf(u.value)] = OwnerOf(s.uses[1].value);
        Stamp(u.value);
      }
    }
  }

  // At a row of a tape, or, of a row that is read, where it was copied to.
  void Point(int v) {
    const std::vector<int>& within = frame_.values[static_cast<size_t>(v)].within;
    const auto i = static_cast<size_t>(v);
    const bool is_read = within.size() > 1, copied = is_read && Chance(2) == 1;
    stands_for_[i] = copied ? within[1] : v;
    Where& w = points_[slot_[i]];
    w = copied ? WhereIs(within[1]) : Where{{kTape, rows_++}, 0};
    if (!copied && is_read) Renew(v), Stamp(v);
  }

  const Schedule::Frame& frame_;
  const std::vector<int>& slot_;
  const std::vector<Artifact::Slot>& slots_;
  const std::vector<Artifact::Buffer>& buffers_;
  const std::vector<bool> donated_;
  std::mt19937& rng_;
  std::vector<int64_t> version_;   // by value: how often it was written
  std::vector<int> stands_for_;    // by value: of a slice, the array
  std::map<int, Where> points_;    // slot -> where it points
  std::map<Owner, Owner> copied_;  // what is a copy of what, until either is written again
  std::map<std::pair<int, int64_t>, std::vector<Owner>> memory_;
  int64_t rows_ = 0;
  int at_ = 0;
  std::string problem_;
};

}  // namespace

std::string MemoryProblem(const Schedule& schedule, const Program& program, size_t frame, std::mt19937& rng) {
  return Run(schedule, program, frame, rng).Problem();
}

}  // namespace weft
