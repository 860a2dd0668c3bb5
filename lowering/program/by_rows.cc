#include "lowering/program/by_rows.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lowering/abi/product_cost.h"
#include "lowering/abi/product_form.h"
#include "lowering/kernel/loop_plan.h"
#include "lowering/kernel/row_units.h"
#include "lowering/program/touches.h"

namespace weft {
namespace {

constexpr size_t kMostMembers = 64;
// Steps that are moved out of the way of one group: each is compared with every step after it.
constexpr size_t kMostMoved = 16;
// Fewer rows are not cut, and parts are not smaller: each packs the other factor anew.
constexpr int64_t kFewestRows = 32;
constexpr int64_t kFewestRowsOfPart = 64;
// What all rows take is in the last cache when the next step reads it, up to so many bytes: then each thread takes its
// rows at once. Of more, as many rows as stay in the caches of one core.
constexpr int64_t kInLastCache = 16 << 20;
constexpr int64_t kInCacheOfCore = 1 << 20;

// A touch, and how far apart the rows are in it; 0: every row may touch all of it.
struct RowTouch {
  Touch touch;
  int64_t bytes = 0;
};
using RowTouches = std::vector<RowTouch>;

// A step of a group.
struct Member {
  size_t at = 0;  // in the steps
  RowTouches touches;
  Step::Rows rows;
  std::optional<KernelSpec> kernel;  // in place of its own
};

struct Group {
  std::vector<Member> members;
  std::vector<size_t> before, after;  // steps that come before it, and after it
  int64_t rows = 1, step = 1;
  size_t end = 0;  // of the steps that have been looked at
};

class Maker {
 public:
  Maker(Program* program, const Target& target, const std::vector<Artifact::Slot>& slots,
        const std::vector<Artifact::Buffer>& buffers, double least_nanoseconds, std::vector<int>* uses)
      : program_(program),
        target_(target),
        memory_(*program, slots, buffers, /*offsets_are_known=*/true),
        least_nanoseconds_(least_nanoseconds),
        uses_(uses) {}

  void Make(Steps* steps) {
    Steps out;
    out.reserve(steps->size());
    for (size_t i = 0; i < steps->size();) {
      Step& s = (*steps)[i];
      for (Steps& block : s.blocks) Make(&block);
      std::optional<Group> block;
      if (FrameMemory::IsProduct(s)) block = BlockFrom(*steps, i);
      if (!block) {
        out.push_back(std::move(s));
        ++i;
        continue;
      }
      for (const size_t at : block->before) out.push_back(std::move((*steps)[at]));
      out.push_back(Joined(*block, steps));
      for (const size_t at : block->after) out.push_back(std::move((*steps)[at]));
      i = block->end;
    }
    *steps = std::move(out);
  }

 private:
  // The group that begins with the product `first`, if one is worth while.
  std::optional<Group> BlockFrom(const Steps& steps, size_t first) {
    Group block;
    const RowsOfProduct of_first = RowsOf(memory_.ProductOf(steps[first]));
    block.rows = of_first.count;
    block.step = of_first.step;
    if (block.rows < (of_first.step > 1 ? kFewestRows : 2)) return {};
    std::optional<Member> member = MemberOf(steps[first], block.rows);
    if (!member) return {};
    member->at = first;
    block.members.push_back(std::move(*member));

    // As long as something follows, up to the last one that follows.
    Group found;
    for (size_t at = first + 1; at < steps.size() && block.members.size() < kMostMembers; ++at) {
      const Step& s = steps[at];
      if (s.kind != Step::Kind::kKernel && !FrameMemory::IsProduct(s)) break;
      const std::vector<Touch> touches = memory_.TouchesOf(s);
      const auto meets = [&](size_t other) {
        const std::vector<Touch> others = memory_.TouchesOf(steps[other]);
        return std::any_of(touches.begin(), touches.end(), [&](const Touch& t) {
          return std::any_of(others.begin(), others.end(), [&](const Touch& o) { return memory_.Meets(t, o); });
        });
      };
      const bool meets_after = std::any_of(block.after.begin(), block.after.end(), meets);
      const bool meets_members =
          std::any_of(block.members.begin(), block.members.end(), [&](const Member& m) { return meets(m.at); });
      if (!meets_after && (meets_members || FrameMemory::IsProduct(s))) {
        member = MemberOf(s, block.rows);
        if (member && GoesAlong(block, *member)) {
          member->at = at;
          block.members.push_back(std::move(*member));
          if (meets_members) {
            found = block;
            found.end = at + 1;
          }
          continue;
        }
      }
      if (block.before.size() + block.after.size() == kMostMoved) break;
      (meets_after || meets_members ? block.after : block.before).push_back(at);
    }
    if (found.members.empty() || CostOf(found, steps) < least_nanoseconds_) return {};
    return found;
  }

  // Nothing of a step that cannot be run by rows.
  std::optional<Member> MemberOf(const Step& s, int64_t rows) {
    Member member;
    const std::vector<Touch> touches = memory_.TouchesOf(s);
    if (std::any_of(touches.begin(), touches.end(), [&](const Touch& t) { return memory_.Moves(t); })) return {};
    std::vector<int64_t> bytes;
    if (s.kind == Step::Kind::kOp) {
      const ContractWords product = memory_.ProductOf(s);
      const RowsOfProduct cut = RowsOf(product);
      if (cut.count != rows || !IsWorthCutting(product, cut)) return {};
      member.rows.step = cut.step;
      const int64_t width = ByteWidth(product.dtype), result_width = ByteWidth(product.result_dtype);
      bytes = {cut.x * width, cut.y * width, cut.result * result_width};
    } else {
      const KernelSpec& own = program_->kernels[static_cast<size_t>(s.index)];
      if (s.cost < 0) return {};
      KernelSpec kernel = InRows(own, rows);
      std::optional<RowUnits> units = UnitsOfRows(kernel, PlanLoops(kernel, target_), rows);
      if (!units || units->step > kFewestRowsOfPart) return {};
      member.rows.step = units->step;
      member.rows.units = units->units;
      bytes = std::move(units->bytes);
      if (kernel.row != own.row) member.kernel = std::move(kernel);
    }
    for (size_t i = 0; i < touches.size(); ++i) member.touches.push_back({touches[i], bytes[i]});
    // What one step touches twice, written once: by the same rows or not at all.
    for (RowTouch& a : member.touches) {
      for (RowTouch& b : member.touches) {
        if (a.touch.slot == b.touch.slot && a.bytes != b.bytes) a.bytes = b.bytes = 0;
      }
    }
    return member;
  }

  // Threads share a long product of few rows by its columns.
  static bool IsWorthCutting(const ContractWords& product, const RowsOfProduct& cut) {
    if (cut.step == 1 || NanosecondsOf(product) < kProductOfThreads) return true;
    constexpr int64_t kManyRows = 512;
    int64_t points = 1;
    for (const auto& dims : {product.m, product.n}) {
      for (const ProductDimension& d : dims) points *= d.size;
    }
    return cut.count >= kManyRows || 2 * cut.count >= points / cut.count;
  }

  // Whether all that `member` and those before it both touch, and one of them writes, is by the same rows.
  bool GoesAlong(const Group& block, const Member& member) const {
    for (const Member& m : block.members) {
      for (const RowTouch& a : m.touches) {
        for (const RowTouch& b : member.touches) {
          if (!memory_.Meets(a.touch, b.touch)) continue;
          if (a.bytes == 0 || a.bytes != b.bytes || !memory_.BeginTogether(a.touch, b.touch)) return false;
        }
      }
    }
    return true;
  }

  double CostOf(const Group& block, const Steps& steps) const {
    double cost = 0;
    for (const Member& m : block.members) {
      const Step& s = steps[m.at];
      cost += s.kind == Step::Kind::kOp ? NanosecondsOf(memory_.ProductOf(s)) : s.cost;
    }
    return cost;
  }

  Step Joined(const Group& block, Steps* steps) {
    Step joined;
    joined.kind = Step::Kind::kByRows;
    joined.desc = (*steps)[block.members[0].at].desc;
    joined.cost = CostOf(block, *steps);
    joined.blocks.emplace_back();
    std::map<size_t, int64_t> bytes_of_row;
    joined.rows = {.count = block.rows, .step = block.step};
    for (const Member& m : block.members) {
      Step& s = (*steps)[m.at];
      s.rows = m.rows;
      s.rows.count = block.rows;
      joined.rows.step = std::lcm(joined.rows.step, m.rows.step);
      for (const RowTouch& t : m.touches) bytes_of_row[t.touch.slot] = std::max(bytes_of_row[t.touch.slot], t.bytes);
      if (m.kernel) s.index = NumberOf(*m.kernel, s.index);
      joined.blocks[0].push_back(std::move(s));
    }
    int64_t bytes = 0;
    for (const auto& [slot, of_row] : bytes_of_row) bytes += of_row;
    const int64_t step = joined.rows.step, fewest = block.step > 1 ? kFewestRowsOfPart : 1;
    const int64_t most = bytes * block.rows > kInLastCache ? std::max(fewest, kInCacheOfCore / bytes) : block.rows;
    joined.rows.most = (most + step - 1) / step * step;
    return joined;
  }

  // The number of a kernel in rows, in place of `own`, its other form, that steps elsewhere may have.
  int NumberOf(const KernelSpec& kernel, int own) {
    const auto [known, is_new] = made_.emplace(kernel.Key(), static_cast<int>(program_->kernels.size()));
    if (is_new) {
      program_->kernels.push_back(kernel);
      uses_->push_back(0);
    }
    --(*uses_)[static_cast<size_t>(own)];
    ++(*uses_)[static_cast<size_t>(known->second)];
    return known->second;
  }

  Program* program_;
  const Target& target_;
  const FrameMemory memory_;
  const double least_nanoseconds_;
  std::vector<int>* uses_;           // by kernel, the steps that call it
  std::map<std::string, int> made_;  // by key, kernels in rows
};

template <class F>
void ForEachKernel(Steps* steps, const F& f) {
  for (Step& s : *steps) {
    if (s.kind == Step::Kind::kKernel) f(&s);
    for (Steps& block : s.blocks) ForEachKernel(&block, f);
  }
}
template <class F>
void ForEachKernel(Program* program, const F& f) {
  ForEachKernel(&program->steps, f);
  for (Steps& steps : program->functions) ForEachKernel(&steps, f);
}

// Of kernels that all steps have in rows the other form goes.
void DropUnused(const std::vector<int>& uses, Program* program) {
  std::vector<int> to(uses.size(), 0);
  int kept = 0;
  for (size_t k = 0; k < uses.size(); ++k) {
    to[k] = kept;
    if (uses[k] == 0) continue;
    if (static_cast<size_t>(kept) != k) program->kernels[static_cast<size_t>(kept)] = std::move(program->kernels[k]);
    ++kept;
  }
  if (static_cast<size_t>(kept) == uses.size()) return;
  program->kernels.resize(static_cast<size_t>(kept));
  ForEachKernel(program, [&](Step* s) { s->index = to[static_cast<size_t>(s->index)]; });
}

}  // namespace

void JoinByRows(Program* program, const Target& target, double least_nanoseconds) {
  Artifact& a = program->artifact;
  std::vector<int> uses(program->kernels.size(), 0);
  ForEachKernel(program, [&](const Step* s) { ++uses[static_cast<size_t>(s->index)]; });
  if (a.arena_bytes >= 0) Maker(program, target, a.slots, a.buffers, least_nanoseconds, &uses).Make(&program->steps);
  for (size_t f = 0; f < a.functions.size(); ++f) {
    const Artifact::Function& function = a.functions[f];
    if (function.arena_bytes >= 0)
      Maker(program, target, function.slots, function.buffers, least_nanoseconds, &uses).Make(&program->functions[f]);
  }
  DropUnused(uses, program);
  a.counters.kernels = static_cast<int64_t>(program->kernels.size());
}

}  // namespace weft
