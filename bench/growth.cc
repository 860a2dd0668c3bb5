// What each pass and stage before code generation costs per equation, for programs of 1,000, 10,000 and 100,000
// equations, and how that grows from the shortest to the longest. It is to grow by half at most. Beside it a hundred
// programs of 1,000, one after the other: what they take more than one of them is waiting for memory.
//
//   ./bazelw run --config=release //bench:growth
//   ./bazelw run --config=release //bench:growth -- cse loops     # one row, one program
//   ./bazelw run --config=release //bench:growth -- cse loops 1000    # once, of this length, for bench/growth_work.py;
//                                                                        with a fifth word what comes before is alone
//
// What grows more is marked.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
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

// What is timed; its result lives until all of a run is timed, so that many programs take as much memory as a long one.
using Timed = std::function<std::shared_ptr<void>()>;

template <class F>
Timed Keep(F run) {
  return [run = std::move(run)]() mutable -> std::shared_ptr<void> {
    using Result = decltype(run());
    if constexpr (std::is_void_v<Result>) {
      run();
      return nullptr;
    } else {
      return std::make_shared<Result>(run());
    }
  };
}

struct Row {
  std::string name;
  // Of what it is given: it may not be called twice with the same.
  std::function<Timed(const FnRef&)> prepare;
};

template <class F>
Row Of(std::string name, F run) {
  return {std::move(name), [run = std::move(run)](const FnRef& f) { return Keep([=] { return run(f); }); }};
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
           return Rewrite(f, [](Builder&, const Eqn&, const Atoms&) -> std::optional<Atoms> { return std::nullopt; });
         }),
      Of("trace", [](const FnRef& f) { Record(*f); }),
      Of("print", [](const FnRef& f) { return Print(*f); }),
      {"parse", [](const FnRef& f) { return Keep([text = Print(*f)] { return ParseFn(text); }); }},
      Of("write bytes", [](const FnRef& f) { return Serialize(*f); }),
      {"read bytes", [](const FnRef& f) { return Keep([bytes = Serialize(*f)] { return Deserialize(bytes); }); }},
      {"hash", [](const FnRef& f) { return Keep([copy = ParseFn(Print(*f))] { (void)copy->StructuralHash(); }); }},
      {"compare",
       [](const FnRef& f) { return Keep([=, copy = ParseFn(Print(*f))] { (void)copy->StructurallyEquals(*f); }); }},
      Of("verify", [](const FnRef& f) { Verify(*f); }),
      Of("cost", [](const FnRef& f) { CostOf(*f); }),
      Of("loop memory", [](const FnRef& f) { LoopMemory(*f); }),
      Of("ordinals",
         [](const FnRef& f) {
           Ints callbacks;
           return WithOrdinals(f, &callbacks);
         }),
      Of("jvp", [](const FnRef& f) { return Jvp(f, AllOf(f)); }),
      Of("jet", [](const FnRef& f) { return Jet(f, AllOf(f), 2); }),
      Of("grad",
         [](const FnRef& f) {
           Mask first = AllOf(f, false);
           first[0] = true;
           return Grad(f, {.wrt = first});
         }),
      Of("vmap",
         [](const FnRef& f) {
           VmapOptions o{{}, {}, 8};
           o.in_axes.assign(f->params().size(), 0);
           o.out_axes.assign(1, 0);
           return Vmap(f, o);
         }),
  };
  for (const Pass& p : AllPasses()) rows.push_back(Of(p.name, [run = p.run](const FnRef& f) { return run(f); }));
  rows.push_back(Of("all passes", [](const FnRef& f) { return Optimize(f); }));
  rows.push_back({"all passes of grad", [](const FnRef& f) {
                    Mask first = AllOf(f, false);
                    first[0] = true;
                    return Keep([g = Grad(f, {.wrt = first})] { return Optimize(g); });
                  }});
  rows.push_back(Of("expand calls", [](const FnRef& f) { return WithoutCalls(f); }));
  rows.push_back(Of("fusion", [](const FnRef& f) { return Fuse(*f, {}); }));
  rows.push_back(Of("schedule", [](const FnRef& f) { return BuildSchedule(*f, {}); }));
  rows.push_back({"liveness", [](const FnRef& f) {
                    return Keep([schedule = BuildSchedule(*f, {})] { return FindLiveness(schedule); });
                  }});
  rows.push_back({"buffers", [](const FnRef& f) {
                    const Schedule schedule = BuildSchedule(*f, {});
                    return Keep(
                        [schedule, liveness = FindLiveness(schedule)] { return AssignBuffers(schedule, liveness); });
                  }});
  rows.push_back(Of("all of the program", [](const FnRef& f) { return BuildProgram(*f, {}); }));
  return rows;
}

double Now() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

// Microseconds per equation of `programs` programs of `length` equations, one after the other: the median of five runs,
// each long enough to be timed. Of one short program, all is in the caches from the second repeat on; of many, nothing
// is, as of a long one.
double Measure(const Row& row, FnRef (*make)(int), int length, int programs = 1) {
  std::vector<FnRef> fns;
  int64_t eqns = 0;
  for (int i = 0; i < programs; ++i) {
    fns.push_back(make(length));
    eqns += fns.back()->NumEqns();
  }
  std::vector<double> times;
  for (int run = 0; run < 5; ++run) {
    double spent = 0;
    int repeats = 0;
    while (spent < 3000 && repeats < 100) {
      std::vector<Timed> timed;
      std::vector<std::shared_ptr<void>> results;
      for (const FnRef& f : fns) timed.push_back(row.prepare(f));
      results.reserve(timed.size());
      const double begin = Now();
      for (const Timed& run_one : timed) results.push_back(run_one());
      spent += Now() - begin;
      ++repeats;
    }
    times.push_back(spent / repeats);
  }
  std::sort(times.begin(), times.end());
  return times[2] / static_cast<double>(eqns);
}

int Main(int argc, char** argv) {
  const std::string only_row = argc > 1 ? argv[1] : "", only_program = argc > 2 ? argv[2] : "";
  const int only_length = argc > 3 ? std::atoi(argv[3]) : 0;
  const bench::Program programs[] = {{"straight", bench::ChainFunction},
                                     {"one loop", bench::InScan},
                                     {"loops", bench::Loops},
                                     {"products", bench::Products}};
  if (only_length == 0)
    std::printf(
        "| microseconds per equation | program | 1,000 | 10,000 | 100,000 | growth | 100 programs of 1,000 | growth "
        "from there |\n|---|---|---|---|---|---|---|---|\n");
  for (const Row& row : Rows()) {
    if (!only_row.empty() && row.name != only_row) continue;
    for (const bench::Program& p : programs) {
      if (!only_program.empty() && p.name != only_program) continue;
      if (only_length > 0) {
        const FnRef f = p.make(only_length);
        const Timed timed = row.prepare(f);
        if (argc == 4) timed();
        std::printf("%lld\n", static_cast<long long>(f->NumEqns()));
        continue;
      }
      double per[3];
      for (int i = 0; i < 3; ++i) per[i] = Measure(row, p.make, i == 0 ? 1000 : i == 1 ? 10000 : 100000);
      const double many = Measure(row, p.make, 1000, 100), growth = per[2] / per[0], from_many = per[2] / many;
      const auto mark = [](double g) { return g > 1.5 ? "**" : ""; };
      std::printf("| %s | %s | %.3f | %.3f | %.3f | %s%.2f%s | %.3f | %s%.2f%s |\n", row.name.c_str(), p.name, per[0],
                  per[1], per[2], mark(growth), growth, mark(growth), many, mark(from_many), from_many,
                  mark(from_many));
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
