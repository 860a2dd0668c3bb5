// The command-line tool `weft`: look at programs, transform them, run them, without Python.
//
//   weft opt f.weft --passes=grad(0),cse      a program after named passes
//   weft opt f.weft --load=mine.so --passes=mine
//   weft run f.weft --inputs x.npy y.npy      its results
//   weft dump f.weft --stage=mlir             a stage of its compilation
//   weft dump f.weft --stage=ptx --target=cuda:sm_90a
//   weft export f.weft --target=cuda:sm_90a -o f.weftb
//   weft run f.weftb --inputs in.npz          the compiled program, without the compiler
//   weft selftest --gpu --cases=selftest.zip  whether the card at hand computes what NumPy does, and how fast
//   weft ops                                  the reference of all operations
#include <iostream>
#include <string>
#include <vector>

#include "driver/backend.h"
#include "driver/command_line/command_line.h"
#include "driver/command_line/commands.h"
#include "driver/command_line/gpu_selftest.h"
#include "ir/error.h"
#include "lowering/program/explicit_form.h"
#include <CLI/CLI.hpp>

namespace {

using weft::kFailure;
using weft::kSuccess;
using weft::kUsage;

int Main(int argc, char** argv) {
  CLI::App app("Looks at, transforms and runs Weft programs.", "weft");
  app.require_subcommand(1);
  app.footer("FILE holds a program in text or protobuf form; - is standard input. docs/ir.md describes the text form.");

  weft::OptCommand opt;
  CLI::App* opt_app = app.add_subcommand("opt", "Print a program after named passes");
  opt_app->add_option("FILE", opt.file, "The program")->required();
  opt_app->add_option("--passes", opt.passes, "Passes in order, as in grad(0),cse,dce; see --list");
  opt_app->add_flag("--timing", opt.timing, "What each pass took, and how many equations it left, on standard error");
  opt_app
      ->add_option("--dump-after", opt.dump_after,
                   "The program after each of these passes, or after all, on standard error")
      ->delimiter(',')
      ->allow_extra_args(false);  // the next word may be FILE
  opt_app->add_flag("--print-locations", opt.print_locations, "The user's line of each equation, as a comment");
  opt_app->add_flag("--list", opt.list, "List the passes there are, and do nothing else");
  opt_app->add_option("-o,--output", opt.output, "Where to write the program")->capture_default_str();
  opt_app->add_flag("--binary", opt.binary, "Write the protobuf form");
  opt_app->get_option("FILE")->required(false);

  weft::RunCommand run;
  CLI::App* run_app = app.add_subcommand("run", "Run a program on .npy arrays");
  run_app->add_option("FILE", run.file, "The program")->required();
  run_app->add_option("--inputs", run.inputs,
                      "One .npy file per parameter, constants included, or one .npz file with arrays of their names");
  run_app
      ->add_option("--device", run.device,
                   "Where a bundle runs: cpu, cuda, or emulation: a GPU's kernels on the CPU, checked")
      ->check(CLI::IsMember({"cpu", "cuda", "emulation"}));
  run_app->add_option("--outputs", run.outputs,
                      "A folder for the results, 0.npy, 1.npy ...; without it they are printed");
  run_app->add_flag("--interpret", run.interpret, "Use the reference interpreter instead of compiled code");

  weft::ExportCommand bundle;
  CLI::App* export_app = app.add_subcommand("export", "Compile a program into a file that runs without the compiler");
  export_app->add_option("FILE", bundle.file, "The program")->required();
  export_app->add_option("--target", bundle.target, "cpu, or a GPU as in cuda:sm_90a")->capture_default_str();
  export_app->add_flag("--emulation", bundle.emulation,
                       "For a GPU: also code that emulates its kernels on this CPU, for --device=emulation");
  export_app->add_option("-o,--output", bundle.output, "The bundle")->required();

  weft::DumpCommand dump;
  CLI::App* dump_app = app.add_subcommand("dump", "Print a stage of a program's compilation");
  dump_app->add_option("FILE", dump.file, "The program")->required();
  dump_app->add_option("--stage", dump.stage, "What to print")
      ->check(CLI::IsMember(weft::AllStages()))
      ->capture_default_str();
  dump_app->add_option("--target", dump.target, "cpu, or a GPU as in cuda:sm_90a")->capture_default_str();

  weft::SelftestCommand selftest;
  CLI::App* selftest_app = app.add_subcommand("selftest", "Check the card at hand, and measure");
  selftest_app->add_flag("--gpu", selftest.gpu, "The GPU");
  selftest_app->add_option("--cases", selftest.cases, "What to run; without it selftest.zip beside this program");
  selftest_app->add_option("--json", selftest.json, "A file for the report as JSON");

  // A program may hold what a plugin defines, whatever is done with it.
  std::vector<std::string> plugins;
  for (CLI::App* command : {opt_app, run_app, export_app, dump_app}) {
    command->add_option("--load", plugins, "A plugin to load first: a shared library (docs/extend_in_cpp.md)")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  CLI::App* ops_app = app.add_subcommand("ops", "Print the reference of all operations as Markdown");

  try {
    weft::Parse(app, argc, argv);
    if (!opt.list && opt_app->parsed() && opt.file.empty()) throw CLI::RequiredError("FILE");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kSuccess : kUsage;
  }
  try {
    weft::LoadPlugins(plugins);
    if (opt_app->parsed()) opt.Run();
    if (run_app->parsed()) run.Run();
    if (export_app->parsed()) bundle.Run();
    if (dump_app->parsed()) dump.Run();
    if (ops_app->parsed()) weft::RunOpsCommand();
    if (selftest_app->parsed() && !selftest.Run()) return kFailure;
  } catch (const std::exception& error) {
    std::cerr << "weft: " << weft::TextOf(error) << "\n";
    return kFailure;
  }
  return kSuccess;
}

}  // namespace

int main(int argc, char** argv) {
  weft::Begin();
  weft::RegisterExplicitMemory();
  return weft::Finish("weft", Main(argc, argv));
}
