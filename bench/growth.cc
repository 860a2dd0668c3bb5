// What each pass and stage before code generation costs per equation, for programs of 1,000, 10,000 and 100,000
// equations, and how that grows from the shortest to the longest. It is to grow by half at most.
//
//   ./bazelw run --config=release //bench:growth
//   ./bazelw run --config=release //bench:growth -- cse loops     # one row, one program
//
// What grows more is marked.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/long_programs.h"
#include "ir/analysis/cost.h"
#include "ir/analysis/residuals.h"
#include "ir/exchange/serialize.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "lowering/program/program.h"
#include "tracer/trace.h"
#include "transforms/ad/grad.h"
#include "transforms/ad/jet.h"
#include "transforms/ad/jvp.h"
#include "transforms/ad/split.h"
#include "transforms/ad/transpose.h"
#include "transforms/batch/vmap.h"
#include "transforms/opt/ordinals.h"
#include "transforms/opt/pass.h"
#include "transforms/opt/rewrite.h"

namespace weft {
namespace {

struct Row {
  std::string name;
  // What is timed, of what it is given: it may not be called twice with the same.
  std::function<std::function<void()>(const FnRef&)> prepare;
};

Row Of(std::string name, std::function<void(const FnRef&)> run) {
  return {std::move(name), [run = std::move(run)](const FnRef& f) { return [=] { run(f); }; }};
}

// What tracing records, operation by operation; regions are there already.
void Record(const Fn& fn) {
  ScopedTrace scope(fn.name(), "jit");
  Values values;
  for (const Param& p : fn.params()) values.push_back(scope->Parameter(p.type, p.name));
  const auto of = [&](const Atom& a) { return a.is_var() ? values[a.id()] : Value(a.literal()); };
  Values operands;
  for (const Eqn& e : fn.eqns()) {
    operands.clear();
    for (const Atom& a : e.operands) operands.push_back(of(a));
    for (Value& v : Bind(*e.prim, operands, e.attrs, e.regions)) values.push_back(std::move(v));
  }
  Values results;
  for (const Atom& a : fn.results()) results.push_back(of(a));
  scope->Finish(results);
}

Mask AllOf(const FnRef& f, bool value = true) { return Mask(f->params().size(), value); }

std::vector<Row> Rows() {
  std::vector<Row> rows = {
      // What any pass costs that leaves the program as it is: memory that no cache holds, for the longest.
      Of("rewrite nothing",
         [](const FnRef& f) {
           Rewrite(f, [](Builder&, const Eqn&, const Atoms&) -> std::optional<Atoms> { return std::nullopt; });
         }),
      Of("trace", [](const FnRef& f) { Record(*f); }),
      Of("print", [](const FnRef& f) { Print(*f); }),
      {"parse", [](const FnRef& f) { return [text = Print(*f)] { ParseFn(text); }; }},
      Of("write bytes", [](const FnRef& f) { Serialize(*f); }),
      {"read bytes", [](const FnRef& f) { return [bytes = Serialize(*f)] { Deserialize(bytes); }; }},
      {"hash", [](const FnRef& f) { return [copy = ParseFn(Print(*f))] { (void)copy->StructuralHash(); }; }},
      {"compare",
       [](const FnRef& f) { return [=, copy = ParseFn(Print(*f))] { (void)copy->StructurallyEquals(*f); }; }},
      Of("verify", [](const FnRef& f) { Verify(*f); }),
      Of("cost", [](const FnRef& f) { CostOf(*f); }),
      Of("loop memory", [](const FnRef& f) { LoopMemory(*f); }),
      Of("ordinals",
         [](const FnRef& f) {
           Ints callbacks;
           WithOrdinals(f, &callbacks);
         }),
      Of("jvp", [](const FnRef& f) { Jvp(f, AllOf(f)); }),
      Of("jet", [](const FnRef& f) { Jet(f, AllOf(f), 2); }),
      Of("grad",
         [](const FnRef& f) {
           Mask first = AllOf(f, false);
           first[0] = true;
           Grad(f, {.wrt = first});
         }),
      Of("vmap",
         [](const FnRef& f) {
           VmapOptions o{{}, {}, 8};
           o.in_axes.assign(f->params().size(), 0);
           o.out_axes.assign(1, 0);
           Vmap(f, o);
         }),
  };
  for (const Pass& p : AllPasses()) rows.push_back(Of(p.name, [run = p.run](const FnRef& f) { run(f); }));
  rows.push_back(Of("all passes", [](const FnRef& f) { Optimize(f); }));
  rows.push_back(Of("all passes of grad", nullptr));
  rows.back().prepare = [](const FnRef& f) {
    Mask first = AllOf(f, false);
    first[0] = true;
    return [g = Grad(f, {.wrt = first})] { Optimize(g); };
  };
  rows.push_back(Of("expand calls", [](const FnRef& f) { WithoutCalls(f); }));
  rows.push_back(Of("fusion", [](const FnRef& f) { Fuse(*f, {}); }));
  rows.push_back(Of("schedule", [](const FnRef& f) { BuildSchedule(*f, {}); }));
  rows.push_back(
      {"liveness", [](const FnRef& f) { return [schedule = BuildSchedule(*f, {})] { FindLiveness(schedule); }; }});
  rows.push_back({"buffers", [](const FnRef& f) {
                    const Schedule schedule = BuildSchedule(*f, {});
                    return [schedule, liveness = FindLiveness(schedule)] { AssignBuffers(schedule, liveness); };
                  }});
  rows.push_back(Of("all of the program", [](const FnRef& f) { BuildProgram(*f, {}); }));
  return rows;
}

double Now() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

// Microseconds per equation: the median of five runs, each long enough to be timed.
double Measure(const Row& row, FnRef (*make)(int), int length) {
  const FnRef f = make(length);
  std::vector<double> times;
  for (int run = 0; run < 5; ++run) {
    double spent = 0;
    int repeats = 0;
    while (spent < 3000 && repeats < 100) {
      const std::function<void()> timed = row.prepare(f);
      const double begin = Now();
      timed();
      spent += Now() - begin;
      ++repeats;
    }
    times.push_back(spent / repeats);
  }
  std::sort(times.begin(), times.end());
  return times[2] / static_cast<double>(f->NumEqns());
}

int Main(int argc, char** argv) {
  const std::string only_row = argc > 1 ? argv[1] : "", only_program = argc > 2 ? argv[2] : "";
  const bench::Program programs[] = {{"straight", bench::ChainFunction},
                                     {"one loop", bench::InScan},
                                     {"loops", bench::Loops},
                                     {"products", bench::Products}};
  std::printf(
      "| microseconds per equation | program | 1,000 | 10,000 | 100,000 | growth |\n|---|---|---|---|---|---|\n");
  for (const Row& row : Rows()) {
    if (!only_row.empty() && row.name != only_row) continue;
    for (const bench::Program& p : programs) {
      if (!only_program.empty() && p.name != only_program) continue;
      double per[3];
      for (int i = 0; i < 3; ++i) per[i] = Measure(row, p.make, i == 0 ? 1000 : i == 1 ? 10000 : 100000);
      const double growth = per[2] / per[0];
      std::printf("| %s | %s | %.3f | %.3f | %.3f | %s%.2f%s |\n", row.name.c_str(), p.name, per[0], per[1], per[2],
                  growth > 1.5 ? "**" : "", growth, growth > 1.5 ? "**" : "");
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
