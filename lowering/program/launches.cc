#include "lowering/program/launches.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lowering/abi/product_cost.h"
#include "lowering/abi/product_form.h"
#include "lowering/program/touches.h"

namespace weft {
namespace {

using Slots = std::vector<Artifact::Slot>;
using Buffers = std::vector<Artifact::Buffer>;

// A launch is a function that has a call for each of its kernels, and LLVM's time grows faster than a function.
constexpr size_t kMostKernels = 256;

// Joins the kernels and short products of one frame.
class Joiner {
 public:
  Joiner(const Program& program, const Slots& slots, const Buffers& buffers, bool offsets_are_known,
         double least_nanoseconds)
      : memory_(program, slots, buffers, offsets_are_known),
        least_nanoseconds_(least_nanoseconds),
        touched_in_(slots.size(), 0),
        written_in_(slots.size(), 0) {}

  // Returns how many launches there are.
  int64_t Join(Steps* steps) {
    int64_t launches = 0;
    Steps joined;
    for (Step& s : *steps) {
      if (s.kind == Step::Kind::kOp) s.cost = CostOfProduct(s);
      if (s.kind == Step::Kind::kByRows || (s.kind != Step::Kind::kKernel && s.cost < 0)) {
        launches += Close(&joined);
        if (s.kind == Step::Kind::kByRows)
          launches += std::min<int64_t>(KernelsIn(s.blocks[0]), 1);
        else
          for (Steps& block : s.blocks) launches += Join(&block);
        joined.push_back(std::move(s));
        continue;
      }
      if (s.kind == Step::Kind::kOp) s.rows = RowsOfStep(s);
      const std::vector<Touch> touches = memory_.TouchesOf(s);
      const bool apart = std::none_of(touches.begin(), touches.end(), [&](const Touch& t) { return Meets(t); });
      if (!apart || moves_ || open_.size() == kMostKernels) launches += Close(&joined);
      for (const Touch& t : touches) Note(t);
      open_.push_back(std::move(s));
    }
    launches += Close(&joined);
    *steps = std::move(joined);
    return launches;
  }

 private:
  static int64_t KernelsIn(const Steps& steps) {
    return std::count_if(steps.begin(), steps.end(), [](const Step& s) { return s.kind == Step::Kind::kKernel; });
  }

  // Ends the launch that is open.
  int64_t Close(Steps* out) {
    double cost = 0;
    bool known = true;
    for (const Step& s : open_) {
      known = known && s.cost >= 0;
      cost += std::max(s.cost, 0.0);
    }
    int64_t launches = KernelsIn(open_);
    if (open_.size() > 1 && (cost >= least_nanoseconds_ || !known)) {
      Step together;
      together.kind = Step::Kind::kTogether;
      together.desc = open_[0].desc;
      together.cost = known ? cost : -1;
      together.blocks.push_back(std::move(open_));
      out->push_back(std::move(together));
      launches = std::min<int64_t>(launches, 1);
    } else {
      std::move(open_.begin(), open_.end(), std::back_inserter(*out));
    }
    open_.clear();
    in_arena_.clear();
    moves_ = false;
    ++launch_;
    return launches;
  }

  // Of a product that one thread computes; -1 of others, and of other operations.
  double CostOfProduct(const Step& s) const {
    if (!FrameMemory::IsProduct(s) || !memory_.offsets_are_known()) return -1;
    const double cost = NanosecondsOf(memory_.ProductOf(s));
    return cost < kProductOfThreads ? cost : -1;
  }

  // What a thread takes of a product.
  Step::Rows RowsOfStep(const Step& s) const {
    const RowsOfProduct all = RowsOf(memory_.ProductOf(s));
    const auto parts = std::clamp<int64_t>(static_cast<int64_t>(s.cost / kPartOfProduct), 1, all.count);
    const int64_t each = (all.count + parts - 1) / parts;
    return {.count = all.count, .step = all.step, .most = (each + all.step - 1) / all.step * all.step};
  }

  // Whether `t` writes what a kernel of the open launch touches, or touches what one writes.
  bool Meets(const Touch& t) const {
    if (memory_.Moves(t)) return !open_.empty();  // it points into what another may touch
    if ((t.writes ? touched_in_ : written_in_)[t.slot] == launch_) return true;
    if (!memory_.IsInArena(t)) return false;
    return std::any_of(in_arena_.begin(), in_arena_.end(), [&](const Touch& o) {
      return (t.writes || o.writes) && o.slot != t.slot && memory_.MayOverlap(t, o);
    });
  }
  void Note(const Touch& t) {
    touched_in_[t.slot] = launch_;
    moves_ |= memory_.Moves(t);
    if (t.writes) written_in_[t.slot] = launch_;
    if (memory_.IsInArena(t)) in_arena_.push_back(t);
  }

  const FrameMemory memory_;
  const double least_nanoseconds_;
  // The launch that is open, which kernels may still join.
  Steps open_;
  int64_t launch_ = 1;
  bool moves_ = false;                            // it touches what moves
  std::vector<int64_t> touched_in_, written_in_;  // by slot: the last launch that did
  std::vector<Touch> in_arena_;
};

}  // namespace

void JoinLaunches(Program* program, double least_nanoseconds) {
  Artifact& a = program->artifact;
  a.counters.launches =
      Joiner(*program, a.slots, a.buffers, a.arena_bytes >= 0, least_nanoseconds).Join(&program->steps);
  for (size_t f = 0; f < a.functions.size(); ++f) {
    const Artifact::Function& function = a.functions[f];
    a.counters.launches +=
        Joiner(*program, function.slots, function.buffers, function.arena_bytes >= 0, least_nanoseconds)
            .Join(&program->functions[f]);
  }
}

}  // namespace weft
