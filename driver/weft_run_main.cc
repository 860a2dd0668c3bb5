// `weft-run`: what a machine with a GPU needs of Weft, in one file. No compiler, no Python, no library but the system's
// C library and, opened when they are needed, the driver and cuBLASLt.
//
//   weft-run run f.weftb --inputs in.npz          as `weft run`, for programs for GPUs
//   weft-run selftest --gpu                       as `weft selftest`
#include <iostream>
#include <string>
#include <vector>

#include "driver/array_files.h"
#include "driver/command_line.h"
#include "driver/files.h"
#include "driver/gpu_selftest.h"
#include <CLI/CLI.hpp>

namespace {

using weft::kFailure;
using weft::kSuccess;
using weft::kUsage;

int Main(int argc, char** argv) {
  CLI::App app("Runs compiled programs on an NVIDIA GPU.", "weft-run");
  app.require_subcommand(1);

  std::string file, device, outputs;
  std::vector<std::string> inputs;
  CLI::App* run_app = app.add_subcommand("run", "Run a bundle");
  run_app->add_option("FILE", file, "The bundle, made by `weft export` or export()")->required();
  run_app->add_option("--inputs", inputs, "One .npy file per parameter, or one .npz file with arrays of their names");
  run_app->add_option("--device", device, "cuda, or twin, the kernels on the CPU")
      ->check(CLI::IsMember({"cuda", "twin"}));
  run_app->add_option("--outputs", outputs, "A folder for the results, 0.npy, 1.npy ...; without it they are printed");

  weft::SelftestCommand selftest;
  CLI::App* selftest_app = app.add_subcommand("selftest", "Check the card at hand, and measure");
  selftest_app->add_flag("--gpu", selftest.gpu, "The GPU");
  selftest_app->add_option("--cases", selftest.cases, "What to run; without it selftest.zip beside this program");
  selftest_app->add_option("--json", selftest.json, "A file for the report as JSON");

  try {
    weft::Parse(app, argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kSuccess : kUsage;
  }
  try {
    if (run_app->parsed()) {
      const weft::Bundle bundle = weft::ParseBundle(weft::ReadFile(file), file);
      weft::PutResults(weft::RunGpuBundle(bundle, weft::ReadArguments(bundle, inputs), device), outputs);
    }
    if (selftest_app->parsed() && !selftest.Run()) return kFailure;
  } catch (const std::exception& error) {
    std::cerr << "weft-run: " << error.what() << "\n";
    return kFailure;
  }
  return kSuccess;
}

}  // namespace

int main(int argc, char** argv) { return weft::Finish("weft-run", Main(argc, argv)); }
