// Buffers of random programs, of every operation's samples, and of loops that record: run step by step over memory that
// knows whose it is (memory_checker.h). And the text of their schedules, read back.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

#include "ir/prim.h"
#include "ir/samples/recursive_samples.h"
#include "ir/samples/sample_fns.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "lowering/program/program.h"
#include "tests/property/memory_checker.h"
#include "tests/property/random_fn.h"
#include "transforms/ad/grad.h"
#include "transforms/ad/jvp.h"
#include "transforms/batch/vmap.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

struct Case {
  FnRef fn;
  FusionPolicy policy;
  std::vector<bool> donated;
  Schedule MakeSchedule() const { return BuildSchedule(*WithoutCalls(fn), policy, donated); }
};

Case RandomCase(unsigned seed) {
  std::mt19937 rng(seed);
  RandomFnOptions options;
  options.max_eqns = 30;
  options.loops = seed % 2 == 0;
  Case c;
  c.fn = RandomFn(rng, options);
  if (seed % 3 == 0) c.fn = Optimize(c.fn);
  c.policy.fuse = seed % 5 != 0;
  c.policy.distinct_buffers = seed % 7 == 6;
  for (size_t i = 0; seed % 4 == 0 && i < c.fn->params().size(); ++i) c.donated.push_back(rng() % 2 == 0);
  return c;
}

FnRef GradOf(const FnRef& f) {
  Mask wrt(f->params().size(), false);
  wrt[0] = true;
  return Grad(f, {.wrt = wrt});
}

// Loops that record, of known and unknown length: forwards and backwards, of first and second order, batched, inside
// one another, with branches that read what was recorded.
std::vector<FnRef> Recording() {
  const FnRef square = ParseFn(
      "fn f(x: f64[]) {\n  y = while[num_carry=1] x (c: f64[]) { p = lt c 100:f64; return p } (c: f64[]) { d = mul c "
      "c; "
      "return d }\n  return y\n}\n");
  const FnRef nested = ParseFn(
      "fn f(x: f64[]) {\n  y = while[num_carry=1] x (c: f64[]) { p = lt c 100:f64; return p } (c: f64[]) {\n"
      "    e = while[num_carry=1] c (g: f64[]) { q = lt g 9:f64; return q } (g: f64[]) { h = mul g g; k = sin g; "
      "m = add h k; return m }\n    d = mul e c; return d }\n  return y\n}\n");
  const FnRef branches = ParseFn(
      "fn f(x: f64[], w: f64[4,4]) {\n  y = scan[num_consts=1, num_carry=1, length=<5>, reverse=false] w x "
      "(w: f64[4,4], c: f64[]) {\n    p = gt c 0:f64\n    d = cond p c w (c: f64[], w: f64[4,4]) { s = sin c; return s "
      "} "
      "(c: f64[], w: f64[4,4]) {\n      e = broadcast[dims=[], shape=<4>] c\n      g = contract[spec=\"az,z->a\"] w e\n"
      "      h = tanh g\n      i = contract[spec=\"az,z->a\"] w h\n      k = reduce_sum[dims=[0]] i\n      return k }\n"
      "    m = sub d 1:f64\n    return m }\n  return y\n}\n");
  std::vector<FnRef> fns = {branches, GradOf(branches), Optimize(GradOf(branches)), GradOf(GradOf(branches))};
  for (const FnRef& f : {square, nested, ParseFn(kPower), ParseFn(kTree)}) {
    fns.push_back(f);
    fns.push_back(GradOf(f));
    if (f->params().size() == 1) fns.push_back(Vmap(GradOf(f), {{0}, {0}, Dim(3)}));
  }
  fns.push_back(GradOf(GradOf(square)));
  return fns;
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (unsigned seed = 0; seed < 2000; ++seed) cases.push_back(RandomCase(seed));
  for (const FnRef& f : Recording()) {
    for (const bool donate : {false, true})
      cases.push_back({f, {}, std::vector<bool>(donate ? f->params().size() : 0, true)});
  }
  for (const Prim* prim : AllPrims()) {
    for (const FnRef& f : SampleFns(*prim)) {
      // Collectives run on devices, and what calls outwards inside a function.
      if (!f->FreeAxes().empty() || f->OutwardCalls() > 0 || !f->Symbols().empty()) continue;
      cases.push_back({f, {}, {}});
      cases.push_back({f, {}, std::vector<bool>(f->params().size(), true)});
    }
  }
  return cases;
}

// The first problem of a few runs of every frame.
std::string Problem(const Schedule& schedule, const Program& program, unsigned seed) {
  std::mt19937 rng(seed);
  for (size_t f = 0; f < schedule.frames.size(); ++f) {
    for (int run = 0; run < 4; ++run) {
      const std::string problem = MemoryProblem(schedule, program, f, rng);
      if (!problem.empty()) return "frame " + std::to_string(f) + ", " + problem;
    }
  }
  return "";
}

TEST(Memory, NobodyWritesOverWhatIsReadLater) {
  int64_t taken = 0, pairs = 0;
  std::set<Schedule::Step::Kind> kinds;
  std::set<int> calls;
  unsigned seed = 0;
  for (const Case& c : Cases()) {
    const Schedule schedule = c.MakeSchedule();
    const Liveness liveness = FindLiveness(schedule);
    const Assignment assignment = AssignBuffers(schedule, liveness);
    const Program program = MakeProgram(*WithoutCalls(c.fn), schedule, assignment);
    ASSERT_EQ(Problem(schedule, program, seed), "")
        << "case " << seed << "\n"
        << Print(*c.fn) << schedule.ToString() << liveness.ToString() << assignment.ToString() << MemoryText(program);
    ASSERT_EQ(program.artifact.PlanProblem(), "");
    for (const Artifact::Buffer& b : program.artifact.buffers) {
      ASSERT_EQ(b.offset % 64, 0);
      ASSERT_LE(b.offset + b.bytes.constant, program.artifact.arena_bytes);
    }
    ++seed;
    for (const Schedule::Frame& frame : schedule.frames) {
      Schedule::ForEachStep(frame.body, [&](const Schedule::Step& s) {
        kinds.insert(s.kind);
        if (s.kind == Schedule::Step::Kind::kCall) calls.insert(s.index);
      });
    }
    for (const Assignment::Pair& p : assignment.frames[0].pairs) {
      ++pairs;
      taken += p.why == Assignment::Pair::Why::kTaken;
    }
  }
  EXPECT_GT(taken, pairs / 4);
  EXPECT_GE(kinds.size(), 6u);
  for (int op : {WEFT_OP_TAPE_NEW, WEFT_OP_TAPE_READ, WEFT_OP_TAPE_WRITE, WEFT_OP_CALL, WEFT_OP_BOX, WEFT_OP_SCATTER})
    EXPECT_EQ(calls.count(op), 1u) << abi::StepName(op);
}

TEST(Memory, ArenasAreSmall) {
  int64_t arena = 0, donated = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    Case c = RandomCase(seed);
    c.policy.distinct_buffers = false;
    const Artifact a = BuildProgram(*WithoutCalls(c.fn), c.policy, c.donated).artifact;
    arena += a.arena_bytes;
    donated += a.counters.donated;
  }
  // What these programs had when buffers were given out while steps were laid out.
  EXPECT_LE(arena, 416320);
  EXPECT_GE(donated, 375);
}

TEST(Memory, TextIsReadBack) {
  for (const Case& c : Cases()) {
    const Schedule schedule = c.MakeSchedule();
    const std::string text = schedule.ToString();
    const Schedule read = Schedule::Parse(text);
    ASSERT_EQ(read.ToString(), text);
    const Liveness liveness = FindLiveness(schedule), again = FindLiveness(read);
    ASSERT_EQ(again.ToString(), liveness.ToString()) << text;
    ASSERT_EQ(AssignBuffers(read, again).ToString(), AssignBuffers(schedule, liveness).ToString()) << text;
  }
}

// How many of 400 random programs the checker finds wrong after `spoil`.
int Noticed(const std::function<void(Schedule&, Liveness&)>& spoil, bool all_at_once = false) {
  int noticed = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const Case c = RandomCase(seed);
    const Schedule schedule = c.MakeSchedule();
    Schedule spoiled = schedule;
    Liveness liveness = FindLiveness(schedule);
    spoil(spoiled, liveness);
    Program program = MakeProgram(*WithoutCalls(c.fn), schedule, AssignBuffers(spoiled, liveness));
    for (Artifact::Buffer& b : program.artifact.buffers) b.offset = all_at_once ? 0 : b.offset;
    noticed += !Problem(schedule, program, seed).empty();
  }
  return noticed;
}

void EveryStep(Schedule::Block& block, const std::function<void(Schedule::Step&)>& f) {
  for (Schedule::Step& s : block.steps) {
    f(s);
    for (Schedule::Block& b : s.blocks) EveryStep(b, f);
  }
}

// The checker sees that a value is thought to die when it is written, at the end of its first range, or one step early;
// that kernels write over operands which they read elsewhere; and that everything lies in one place.
TEST(Memory, BrokenPlansAreNoticed) {
  EXPECT_EQ(Noticed([](Schedule&, Liveness&) {}), 0);
  EXPECT_GT(Noticed([](Schedule&, Liveness&) {}, true), 150);
  const auto ranges = [](Liveness& liveness, const std::function<void(std::vector<Liveness::Range>&)>& f) {
    for (auto& r : liveness.frames[0].ranges) f(r);
  };
  EXPECT_GT(Noticed([&](Schedule&, Liveness& l) {
              ranges(l, [](auto& r) {
                for (auto& one : r) one.last = one.first;
              });
            }),
            100);
  EXPECT_GT(
      Noticed([&](Schedule&, Liveness& l) { ranges(l, [](auto& r) { r.resize(std::min<size_t>(r.size(), 1)); }); }),
      10);
  EXPECT_GT(Noticed([&](Schedule&, Liveness& l) {
              ranges(l, [](auto& r) {
                for (auto& one : r) one.last = std::max(one.first, one.last - 1);
              });
            }),
            100);
  EXPECT_GT(Noticed([](Schedule& s, Liveness&) {
              EveryStep(s.frames[0].body, [](Schedule::Step& step) {
                for (const Schedule::Use& w : step.uses) {
                  for (const Schedule::Use& r : step.uses) {
                    if (w.access == Schedule::Access::kWrite && r.access == Schedule::Access::kRead)
                      step.may_share.push_back({w.value, r.value});
                  }
                }
              });
            }),
            50);
}

}  // namespace
}  // namespace weft
