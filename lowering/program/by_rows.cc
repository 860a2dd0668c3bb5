#include "lowering/program/by_rows.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lowering/abi/product_cost.h"
#include "lowering/abi/product_form.h"
#include "lowering/kernel/loop_plan.h"
#include "lowering/kernel/row_units.h"
#include "lowering/program/touches.h"

namespace weft {
namespace {

constexpr size_t kMostMembers = 32;
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

// How a step is cut in rows.
struct Cut {
  Step::Rows rows;
  std::vector<int64_t> bytes;        // by touch
  std::optional<KernelSpec> kernel;  // in place of its own
};

// A step of a group.
struct Member {
  size_t at = 0;  // in the steps
  RowTouches touches;
  const Cut* cut = nullptr;
};

struct Group {
  std::vector<Member> members;
  std::vector<size_t> before, after;  // steps that come before it, and after it
  int64_t rows = 1, step = 1;
  size_t end = 0;  // of the steps that are in it or have been moved
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
      std::optional<Group> group;
      if (FrameMemory::IsProduct(s)) group = GroupFrom(*steps, i);
      if (!group) {
        out.push_back(std::move(s));
        ++i;
        continue;
      }
      for (const size_t at : group->before) out.push_back(std::move((*steps)[at]));
      out.push_back(Joined(*group, steps));
      for (const size_t at : group->after) out.push_back(std::move((*steps)[at]));
      i = group->end;
    }
    *steps = std::move(out);
  }

 private:
  // The group that begins with the product `first`, if one is worth while.
  std::optional<Group> GroupFrom(const Steps& steps, size_t first) {
    Group group;
    const RowsOfProduct of_first = RowsOf(memory_.ProductOf(steps[first]));
    group.rows = of_first.count;
    group.step = of_first.step;
    if (group.rows < (of_first.step > 1 ? kFewestRows : 2)) return {};
    std::optional<Member> member = MemberOf(steps[first], group.rows);
    if (!member) return {};
    member->at = first;
    group.members.push_back(std::move(*member));

    // As long as something follows; what has been looked at after the last one that does is left where it is.
    size_t members = 0, before = 0, after = 0;
    for (size_t at = first + 1; at < steps.size() && group.members.size() < kMostMembers; ++at) {
      const Step& s = steps[at];
      if (s.kind != Step::Kind::kKernel && !FrameMemory::IsProduct(s)) break;
      const std::vector<Touch> touches = memory_.TouchesOf(s);
      const auto meets = [&](size_t other) {
        const std::vector<Touch> others = memory_.TouchesOf(steps[other]);
        return std::any_of(touches.begin(), touches.end(), [&](const Touch& t) {
          return std::any_of(others.begin(), others.end(), [&](const Touch& o) { return memory_.Meets(t, o); });
        });
      };
      const bool meets_after = std::any_of(group.after.begin(), group.after.end(), meets);
      const bool meets_members =
          std::any_of(group.members.begin(), group.members.end(), [&](const Member& m) { return meets(m.at); });
      if (!meets_after && (meets_members || FrameMemory::IsProduct(s))) {
        member = MemberOf(s, group.rows);
        if (member && GoesAlong(group, *member)) {
          member->at = at;
          group.members.push_back(std::move(*member));
          if (meets_members) {
            members = group.members.size(), before = group.before.size(), after = group.after.size();
            group.end = at + 1;
          }
          continue;
        }
      }
      if (group.before.size() + group.after.size() == kMostMoved) break;
      (meets_after || meets_members ? group.after : group.before).push_back(at);
    }
    group.members.resize(members);
    group.before.resize(before);
    group.after.resize(after);
    if (members == 0 || CostOf(group, steps) < least_nanoseconds_) return {};
    return group;
  }

  // Nothing of a step that cannot be run by rows.
  std::optional<Member> MemberOf(const Step& s, int64_t rows) {
    const std::vector<Touch> touches = memory_.TouchesOf(s);
    if (std::any_of(touches.begin(), touches.end(), [&](const Touch& t) { return memory_.Moves(t); })) return {};
    const std::optional<Cut>& cut = CutOf(s, rows);
    if (!cut) return {};
    Member member;
    member.cut = &*cut;
    for (size_t i = 0; i < touches.size(); ++i) member.touches.push_back({touches[i], cut->bytes[i]});
    // What a step touches in two ways has rows where they are the same.
    for (RowTouch& a : member.touches) {
      for (RowTouch& b : member.touches) {
        if (a.touch.slot == b.touch.slot && a.bytes != b.bytes) a.bytes = b.bytes = 0;
      }
    }
    return member;
  }

  // Steps are looked at from every product before them.
  const std::optional<Cut>& CutOf(const Step& s, int64_t rows) {
    const bool is_kernel = s.kind == Step::Kind::kKernel;
    const auto [known, is_new] = cuts_.try_emplace({is_kernel, is_kernel ? s.index : s.desc, rows});
    if (is_new) known->second = is_kernel ? CutOfKernel(s, rows) : CutOfProduct(memory_.ProductOf(s), rows);
    return known->second;
  }

  std::optional<Cut> CutOfKernel(const Step& s, int64_t rows) const {
    if (s.cost < 0) return {};  // sizes are symbolic
    const KernelSpec& own = program_->kernels[static_cast<size_t>(s.index)];
    KernelSpec kernel = InRows(own, rows);
    std::optional<RowUnits> units = UnitsOfRows(kernel, PlanLoops(kernel, target_), rows);
    if (!units || units->step > kFewestRowsOfPart) return {};
    Cut cut{{.count = rows, .step = units->step, .units = units->units}, std::move(units->bytes), {}};
    if (kernel.row != own.row) cut.kernel = std::move(kernel);
    return cut;
  }

  static std::optional<Cut> CutOfProduct(const ContractWords& product, int64_t rows) {
    const RowsOfProduct all = RowsOf(product);
    if (all.count != rows || !IsWorthCutting(product, all)) return {};
    const int64_t width = ByteWidth(product.dtype), result_width = ByteWidth(product.result_dtype);
    return Cut{{.count = rows, .step = all.step}, {all.x * width, all.y * width, all.result * result_width}, {}};
  }

  // Threads share a long product of few rows by its columns, and few long products of a stack one by one.
  static bool IsWorthCutting(const ContractWords& product, const RowsOfProduct& cut) {
    constexpr int64_t kManyProducts = 16, kManyRows = 512;
    const double nanoseconds = NanosecondsOf(product);
    if (cut.step == 1)
      return cut.count >= kManyProducts || nanoseconds < static_cast<double>(cut.count) * kProductOfThreads;
    if (nanoseconds < kProductOfThreads || cut.count >= kManyRows) return true;
    int64_t points = 1;
    for (const auto& dims : {product.m, product.n}) {
      for (const ProductDimension& d : dims) points *= d.size;
    }
    return 2 * cut.count >= points / cut.count;
  }

  // Whether all that `member` and those before it both touch, and one of them writes, is by the same rows.
  bool GoesAlong(const Group& group, const Member& member) const {
    for (const Member& m : group.members) {
      for (const RowTouch& a : m.touches) {
        for (const RowTouch& b : member.touches) {
          if (!memory_.Meets(a.touch, b.touch)) continue;
          if (a.bytes == 0 || a.bytes != b.bytes || !memory_.BeginTogether(a.touch, b.touch)) return false;
        }
      }
    }
    return true;
  }

  double CostOf(const Group& group, const Steps& steps) const {
    double cost = 0;
    for (const Member& m : group.members) {
      const Step& s = steps[m.at];
      cost += s.kind == Step::Kind::kOp ? NanosecondsOf(memory_.ProductOf(s)) : s.cost;
    }
    return cost;
  }

  Step Joined(const Group& group, Steps* steps) {
    Step joined;
    joined.kind = Step::Kind::kByRows;
    joined.desc = (*steps)[group.members[0].at].desc;
    joined.cost = CostOf(group, *steps);
    joined.blocks.emplace_back();
    std::map<size_t, int64_t> bytes_of_row;
    joined.rows = {.count = group.rows, .step = group.step};
    for (const Member& m : group.members) {
      Step& s = (*steps)[m.at];
      s.rows = m.cut->rows;
      joined.rows.step = std::lcm(joined.rows.step, s.rows.step);
      for (const RowTouch& t : m.touches) bytes_of_row[t.touch.slot] = std::max(bytes_of_row[t.touch.slot], t.bytes);
      if (m.cut->kernel) s.index = NumberOf(*m.cut->kernel, s.index);
      joined.blocks[0].push_back(std::move(s));
    }
    int64_t bytes = 0;
    for (const auto& [slot, of_row] : bytes_of_row) bytes += of_row;
    const int64_t step = joined.rows.step, fewest = group.step > 1 ? kFewestRowsOfPart : 1;
    const int64_t most = bytes * group.rows > kInLastCache ? std::max(fewest, kInCacheOfCore / bytes) : group.rows;
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
  std::vector<int>* uses_;                                                 // by kernel, the steps that call it
  std::map<std::tuple<bool, int64_t, int64_t>, std::optional<Cut>> cuts_;  // of kernels and products, by rows
  std::map<std::string, int> made_;                                        // by key, kernels in rows
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
