// `weft-run`: what a machine needs of Weft to run compiled programs, in one file. No compiler, no Python, no library
// but the system's C library and, opened when they are needed, the driver and cuBLASLt; for programs for CPUs also
// libweft_cpu.so, which lies beside this file and needs oneDNN and OpenBLAS.
//
//   weft-run run f.weftb --inputs in.npz          as `weft run`, of a bundle
//   weft-run selftest --gpu                       as `weft selftest`
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "driver/bundle/cpu_library.h"
#include "driver/command_line/command_line.h"
#include "driver/command_line/gpu_selftest.h"
#include "driver/files/array_files.h"
#include "driver/files/files.h"
#include <CLI/CLI.hpp>

namespace {

using weft::kFailure;
using weft::kSuccess;
using weft::kUsage;

void RunOnCpu(const std::string& bytes, const std::string& file, const std::vector<std::string>& inputs,
              const std::string& outputs) {
  std::error_code none;
  const std::string beside =
      (std::filesystem::read_symlink("/proc/self/exe", none).parent_path() / "libweft_cpu.so").string();
  // OpenBLAS would start threads when it is loaded, and wait for ever where there is no memory for them.
  setenv("OPENBLAS_NUM_THREADS", "1", /*overwrite=*/0);
  void* library = dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw std::runtime_error(
        file + " is for cpu, which needs libweft_cpu.so beside this program, and its libraries: " + dlerror());
  auto* run = reinterpret_cast<WeftRunCpuBundle*>(dlsym(library, "weft_run_cpu_bundle"));
  if (run == nullptr) throw std::runtime_error(beside + " is of another version of Weft");
  std::vector<const char*> names;
  for (const std::string& name : inputs) names.push_back(name.c_str());
  if (const char* failure = run(bytes.data(), bytes.size(), file.c_str(), names.data(), names.size(), outputs.c_str()))
    throw std::runtime_error(failure);
}

int Main(int argc, char** argv) {
  CLI::App app("Runs compiled programs.", "weft-run");
  app.require_subcommand(1);

  std::string file, device, outputs;
  std::vector<std::string> inputs;
  CLI::App* run_app = app.add_subcommand("run", "Run a bundle");
  run_app->add_option("FILE", file, "The bundle, made by `weft export` or export()")->required();
  run_app->add_option("--inputs", inputs, "One .npy file per parameter, or one .npz file with arrays of their names");
  run_app->add_option("--device", device, "cpu, cuda, or emulation: a GPU's kernels on the CPU, checked")
      ->check(CLI::IsMember({"cpu", "cuda", "emulation"}));
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
      const std::string bytes = weft::ReadFile(file);
      const weft::Bundle bundle = weft::ParseBundle(bytes, file);
      if (bundle.cpu && (device.empty() || device == "cpu"))
        RunOnCpu(bytes, file, inputs, outputs);
      else
        weft::PutResults(weft::RunGpuBundle(bundle, weft::ReadArguments(bundle, inputs), device), outputs);
    }
    if (selftest_app->parsed() && !selftest.Run()) return kFailure;
  } catch (const std::exception& error) {
    std::cerr << "weft-run: " << weft::TextOf(error) << "\n";
    return kFailure;
  }
  return kSuccess;
}

}  // namespace

int main(int argc, char** argv) {
  weft::Begin();
  return weft::Finish("weft-run", Main(argc, argv));
}
