#include "lowering/program/launches.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lowering/abi/product_cost.h"
#include "lowering/abi/steps.h"

namespace weft {
namespace {

using Place = Artifact::Place;
using Slots = std::vector<Artifact::Slot>;
using Buffers = std::vector<Artifact::Buffer>;

// A launch is a function that has a call for each of its kernels, and LLVM's time grows faster than a function.
constexpr size_t kMostKernels = 256;

// Joins the kernels and short products of one frame.
class Joiner {
 public:
  Joiner(const Program& program, const Slots& slots, const Buffers& buffers, bool offsets_are_known,
         double least_nanoseconds)
      : program_(program),
        slots_(slots),
        buffers_(buffers),
        offsets_are_known_(offsets_are_known),
        least_nanoseconds_(least_nanoseconds),
        touched_in_(slots.size(), 0),
        written_in_(slots.size(), 0) {}

  // Returns how many launches there are.
  int64_t Join(Steps* steps) {
    int64_t launches = 0;
    Steps joined;
    for (Step& s : *steps) {
      if (s.kind == Step::Kind::kOp) s.cost = CostOfProduct(s);
      if (s.kind != Step::Kind::kKernel && s.cost < 0) {
        launches += Close(&joined);
        for (Steps& block : s.blocks) launches += Join(&block);
        joined.push_back(std::move(s));
        continue;
      }
      if (s.kind == Step::Kind::kOp) s.parts = std::max(1, static_cast<int>(s.cost / kPartOfProduct));
      const std::vector<Touch> touches = TouchesOf(s);
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
  struct Touch {
    size_t slot = 0;
    bool writes = false;
  };

  // Ends the launch that is open.
  int64_t Close(Steps* out) {
    double cost = 0;
    bool known = true;
    for (const Step& s : open_) {
      known = known && s.cost >= 0;
      cost += std::max(s.cost, 0.0);
    }
    int64_t launches =
        std::count_if(open_.begin(), open_.end(), [](const Step& s) { return s.kind == Step::Kind::kKernel; });
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
    if (s.index != WEFT_OP_CONTRACT || !offsets_are_known_) return -1;
    const auto told = abi::Decode<abi::Contract<abi::InWords>>(program_.artifact.desc.data() + s.desc);
    double cost = 1;
    for (const auto& factors : {told.batch, told.m, told.n, told.k}) {
      for (const auto& factor : factors) cost *= static_cast<double>(factor.size);
    }
    cost = ProductNanoseconds(cost, 1, 1, std::max(ByteWidth(told.dtype), ByteWidth(told.result_dtype)));
    return cost < kProductOfThreads ? cost : -1;
  }

  std::vector<Touch> TouchesOf(const Step& s) const {
    if (s.kind == Step::Kind::kOp) {
      const auto product = abi::Decode<abi::Contract<abi::InWords>>(program_.artifact.desc.data() + s.desc);
      return {{static_cast<size_t>(product.x), false},
              {static_cast<size_t>(product.y), false},
              {static_cast<size_t>(product.result), true}};
    }
    const auto told = abi::Decode<abi::Kernel<abi::InWords>>(program_.artifact.desc.data() + s.desc);
    const KernelSpec& kernel = program_.kernels[static_cast<size_t>(s.index)];
    std::vector<Touch> touches;
    for (size_t i = 0; i < told.operands.size(); ++i)
      touches.push_back({static_cast<size_t>(told.operands[i]), kernel.written[i]});
    return touches;
  }

  // Whether `t` writes what a kernel of the open launch touches, or touches what one writes.
  bool Meets(const Touch& t) const {
    if (slots_[t.slot].place == Place::kMoving) return !open_.empty();  // it points into what another may touch
    if ((t.writes ? touched_in_ : written_in_)[t.slot] == launch_) return true;
    if (slots_[t.slot].place != Place::kArena) return false;
    return std::any_of(in_arena_.begin(), in_arena_.end(), [&](const Touch& o) {
      return (t.writes || o.writes) && o.slot != t.slot && MayOverlap(BufferOf(t), BufferOf(o));
    });
  }
  void Note(const Touch& t) {
    touched_in_[t.slot] = launch_;
    moves_ |= slots_[t.slot].place == Place::kMoving;
    if (t.writes) written_in_[t.slot] = launch_;
    if (slots_[t.slot].place == Place::kArena) in_arena_.push_back(t);
  }

  const Artifact::Buffer& BufferOf(const Touch& t) const { return buffers_[static_cast<size_t>(slots_[t.slot].index)]; }
  // Buffers that are alive at the same time are apart. Others are unless they have been put into the same room.
  bool MayOverlap(const Artifact::Buffer& a, const Artifact::Buffer& b) const {
    if (a.first <= b.last && b.first <= a.last) return false;
    return !offsets_are_known_ || (a.offset < b.offset + b.bytes.constant && b.offset < a.offset + a.bytes.constant);
  }

  const Program& program_;
  const Slots& slots_;
  const Buffers& buffers_;
  const bool offsets_are_known_;
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
