// What each transform costs per equation of its input, for programs of 1,000 to 100,000 equations: straight-line, and
// as the body of loops. A transform is held to 5 us per equation, and must not cost more per equation of a longer
// program.
//
//   ./bazelw run //bench:transforms
//   ./bazelw run //bench:transforms -- jvp scan       # one row, one program
//
// prints the table of docs/benchmarks.md. grad and linearize count as one transform, though they are compositions, and
// jet as one, whatever its coefficients; only the passes before compilation are held to 5 us each. What is above its
// limit is printed bold.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "bench/long_programs.h"
#include "transforms/ad/grad.h"
#include "transforms/ad/jet.h"
#include "transforms/ad/jvp.h"
#include "transforms/ad/split.h"
#include "transforms/ad/transpose.h"
#include "transforms/batch/vmap.h"
#include "transforms/opt/condense.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

FnRef Tangents(const FnRef& f) { return Condense(Jvp(f, {true}).fn); }

FnRef LinearHalf(const FnRef& f) { return Split(Tangents(f), {false, true}, {false, true}).unknown; }

struct Row {
  const char* name;
  int passes;  // of 5 us each
  const char* input;
  std::function<FnRef(const FnRef&)> prepare;
  std::function<void(const FnRef&)> run;
};

const std::vector<Row>& Rows() {
  const auto same = [](const FnRef& f) { return f; };
  const auto jvp = [](const FnRef& f) { return Jvp(f, {true}).fn; };
  static const auto& rows = *new std::vector<Row>{
      {"jvp", 1, "", same, jvp},
      {"jet, order 2: three coefficients", 1, "", same, [](const FnRef& f) { Jet(f, {true}, 2); }},
      {"vmap", 1, "", same, [](const FnRef& f) { Vmap(f, {{0}, {0}, Dim(32)}); }},
      {"condense", 1, "jvp", jvp, [](const FnRef& f) { Condense(f); }},
      {"split", 1, "jvp, condense", Tangents, [](const FnRef& f) { Split(f, {false, true}, {false, true}); }},
      {"transpose", 1, "linear half", LinearHalf,
       [](const FnRef& f) {
         Mask linear(f->params().size(), false);
         linear.back() = true;
         TransposeLinearHalf(f, linear);
       }},
      {"inline", 1, "jvp", jvp, [](const FnRef& f) { InlineEveryCall(f); }},
      {"fold", 1, "jvp", jvp, [](const FnRef& f) { FoldConstants(f); }},
      {"simplify", 1, "jvp", jvp, [](const FnRef& f) { Simplify(f); }},
      {"cse", 1, "jvp", jvp, [](const FnRef& f) { EliminateCommonSubexpressions(f); }},
      {"dce", 1, "jvp", jvp, [](const FnRef& f) { EliminateDeadCode(f); }},
      {"hoist", 1, "jvp", jvp, [](const FnRef& f) { HoistConstants(f); }},
      {"linearize: jvp, condense, split", 1, "", same, [](const FnRef& f) { Linearize(f, {true}); }},
      {"grad: linearize, transpose, condense", 1, "", same, [](const FnRef& f) { Grad(f, {.wrt = {true}}); }},
      {"the twelve passes before compilation", 12, "jvp", jvp, [](const FnRef& f) { Optimize(f); }},
  };
  return rows;
}

// Transforms run on one thread; its time does not count what else the machine does.
double ThreadSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// The fastest of runs that take a second together, and of three at least.
double Seconds(const std::function<void()>& run) {
  double best = 1e30, total = 0;
  for (int i = 0; i < 3 || (total < 1 && i < 200); ++i) {
    const double begin = ThreadSeconds();
    run();
    const double s = ThreadSeconds() - begin;
    best = std::min(best, s);
    total += s;
  }
  return best;
}

int Main(int argc, char** argv) {
  const std::string only = argc > 1 ? argv[1] : "", only_program = argc > 2 ? argv[2] : "";
  using bench::Program;
  std::vector<Program> programs;
  for (const Program& p :
       {Program{"straight", bench::ChainFunction}, Program{"scan", bench::InScan}, Program{"while", bench::InWhile}}) {
    if (std::string(p.name).find(only_program) != std::string::npos) programs.push_back(p);
  }
  std::printf("| µs per equation | of |");
  for (const Program& p : programs) std::printf(" %s, 1,000 | 10,000 | 100,000 |", p.name);
  std::printf("\n|---|---|");
  for (size_t i = 0; i < 3 * programs.size(); ++i) std::printf("---|");
  std::printf("\n");
  for (const Row& row : Rows()) {
    if (std::string(row.name).find(only) == std::string::npos) continue;
    std::printf("| %s | %s |", row.name, row.input[0] != 0 ? row.input : "the program");
    for (const Program& p : programs) {
      for (int length : {1000, 10000, 100000}) {
        const FnRef f = row.prepare(p.make(length));
        const double s = Seconds([&] { row.run(f); }) / static_cast<double>(f->NumEqns());
        const double limit = 5e-6 * row.passes;
        std::printf(s > limit ? " **%.2f** |" : " %.2f |", s * 1e6);
        std::fflush(stdout);
      }
    }
    std::printf("\n");
  }
  return 0;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
