// No two buffers that are alive at the same time share memory, in the plans of random programs. Which buffers are alive
// is read from the schedule's text, not from the planner's own notes.
#include <gtest/gtest.h>

#include <random>
#include <regex>
#include <set>
#include <sstream>

#include "lowering/schedule/schedule.h"
#include "tests/property/random_fn.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

struct Range {
  int first = -1, last = -1;
  void Add(int step) {
    if (first < 0) first = step;
    last = step;
  }
};

// By buffer: the first and last step whose line names a slot of it. A buffer that a loop's body reads but that was made
// before the loop lives until the loop ends.
std::vector<Range> Lifetimes(const Artifact& a) {
  std::vector<Range> ranges(a.buffers.size());
  struct Loop {
    size_t indent;
    int begin;
    std::set<size_t> mentioned;
  };
  std::vector<Loop> open;
  std::istringstream lines(a.schedule);
  std::string line;
  std::getline(lines, line);  // "steps"
  int last_step = 0;
  auto close = [&](size_t indent) {
    while (!open.empty() && indent <= open.back().indent) {
      for (size_t b : open.back().mentioned) {
        if (ranges[b].first < open.back().begin) ranges[b].Add(last_step);
        if (open.size() > 1) open[open.size() - 2].mentioned.insert(b);
      }
      open.pop_back();
    }
  };
  const std::regex slot("\\bs([0-9]+)\\b");
  while (std::getline(lines, line) && line.rfind("arena", 0) != 0) {
    const size_t indent = line.find_first_not_of(' ');
    const std::string text = line.substr(line.find(':') + 2);
    close(indent);
    const int step = std::stoi(line.substr(indent));
    last_step = std::max(last_step, step);
    if (text.rfind("for", 0) == 0 || text.rfind("while", 0) == 0) open.push_back({indent, step, {}});
    for (std::sregex_iterator it(text.begin(), text.end(), slot), end; it != end; ++it) {
      const Artifact::Slot* s = &a.slots[std::stoul((*it)[1])];
      while (s->place == Artifact::Place::kMoving) s = &a.slots[static_cast<size_t>(s->index)];
      if (s->place != Artifact::Place::kArena) continue;
      ranges[static_cast<size_t>(s->index)].Add(step);
      for (Loop& l : open) l.mentioned.insert(static_cast<size_t>(s->index));
    }
  }
  close(0);
  return ranges;
}

// The first pair of buffers that are alive together and overlap, or "".
std::string Overlap(const Artifact& a, const std::vector<Range>& alive, const std::vector<int64_t>& offsets) {
  for (size_t i = 0; i < a.buffers.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (alive[i].first < 0 || alive[j].first < 0) continue;
      if (alive[i].last < alive[j].first || alive[j].last < alive[i].first) continue;
      const int64_t n = a.buffers[i].bytes.constant, m = a.buffers[j].bytes.constant;
      if (n == 0 || m == 0 || offsets[i] + n <= offsets[j] || offsets[j] + m <= offsets[i]) continue;
      return "buffers " + std::to_string(j) + " and " + std::to_string(i) + " of\n" + a.schedule;
    }
  }
  return "";
}

Artifact PlanOf(unsigned seed) {
  std::mt19937 rng(seed);
  RandomFnOptions options;
  options.max_eqns = 30;
  options.loops = seed % 2 == 0;
  FnRef f = RandomFn(rng, options);
  if (seed % 3 == 0) f = Optimize(f);
  FusionPolicy policy;
  policy.fuse = seed % 5 != 0;
  std::vector<bool> donated;
  for (size_t i = 0; seed % 4 == 0 && i < f->params().size(); ++i) donated.push_back(rng() % 2 == 0);
  return BuildProgram(*WithoutCalls(f), policy, donated).artifact;
}

TEST(Arena, BuffersThatLiveTogetherLieApart) {
  int pairs = 0, buffers = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    const Artifact a = PlanOf(seed);
    ASSERT_GE(a.arena_bytes, 0);
    std::vector<int64_t> offsets;
    for (const Artifact::Buffer& b : a.buffers) {
      offsets.push_back(b.offset);
      EXPECT_GE(b.offset, 0);
      EXPECT_EQ(b.offset % 64, 0);
      EXPECT_LE(b.offset + b.bytes.constant, a.arena_bytes);
    }
    const std::vector<Range> alive = Lifetimes(a);
    ASSERT_EQ(Overlap(a, alive, offsets), "") << "seed " << seed;
    for (size_t i = 0; i < alive.size(); ++i) {
      if (alive[i].first < 0) continue;
      ++buffers;
      ASSERT_LE(a.buffers[i].first, alive[i].first) << "buffer " << i << " of\n" << a.schedule;
      ASSERT_GE(a.buffers[i].last, alive[i].last) << "buffer " << i << " of\n" << a.schedule;
      for (size_t j = 0; j < i; ++j) pairs += offsets[i] == offsets[j];
    }
  }
  EXPECT_GT(buffers, 5000);
  EXPECT_GT(pairs, 500) << "memory is never used twice";
}

// The check above sees a planner that is wrong: one that forgets the last step of lives, or places everything at 0.
TEST(Arena, ABrokenPlannerIsNoticed) {
  int shortened = 0, stacked = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    Artifact a = PlanOf(seed);
    const std::vector<Range> alive = Lifetimes(a);
    std::vector<int64_t> bytes, offsets(a.buffers.size(), 0);
    for (const Artifact::Buffer& b : a.buffers) bytes.push_back(b.bytes.constant);
    stacked += !Overlap(a, alive, offsets).empty();
    std::vector<Artifact::Buffer> cut = a.buffers;
    for (Artifact::Buffer& b : cut) b.last = b.first;
    PlanArena(cut, bytes, &offsets);
    shortened += !Overlap(a, alive, offsets).empty();
  }
  EXPECT_GT(stacked, 150);
  EXPECT_GT(shortened, 30);
}

}  // namespace
}  // namespace weft
