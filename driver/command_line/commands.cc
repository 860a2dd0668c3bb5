#include "driver/command_line/commands.h"

#include <iostream>
#include <memory>

#include "driver/bundle/bundle.h"
#include "driver/command_line/command_passes.h"
#include "driver/executable.h"
#include "driver/files/array_files.h"
#include "driver/files/files.h"
#include "ir/eval/eval.h"
#include "ir/exchange/serialize.h"
#include "ir/samples/op_reference.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "sdk/load_plugin.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

FnRef ProgramOf(const std::string& bytes, const std::string& path) {
  if (IsSerialized(bytes)) return Deserialize(bytes);
  return ParseFn(bytes, {.file = path == "-" ? "<stdin>" : path});
}

}  // namespace

void LoadPlugins(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) LoadPlugin(path);
}

FnRef LoadProgram(const std::string& path) { return ProgramOf(ReadFile(path), path); }

void OptCommand::Run() const {
  if (list) {
    std::cout << ListCommandPasses();
    return;
  }
  const FnRef fn = RunCommandPasses(LoadProgram(file), passes, {.timing = timing, .dump_after = dump_after});
  WriteFile(output, binary ? Serialize(*fn) : Print(*fn, {.locations = print_locations}));
}

namespace {

Tensors RunBundleFile(const std::string& bytes, const RunCommand& command) {
  const Bundle bundle = ParseBundle(bytes, command.file);
  if (command.interpret) throw ValueError("run: a bundle holds no program that could be interpreted");
  return RunBundle(bundle, ReadArguments(bundle, command.inputs), command.device);
}

Tensors RunProgramFile(const std::string& bytes, const RunCommand& command) {
  const FnRef fn = ProgramOf(bytes, command.file);
  if (!command.device.empty()) throw ValueError("run: --device is for bundles; ", command.file, " is a program");
  std::vector<Wanted> wanted;
  for (const Param& p : fn->params()) wanted.push_back({p.name, p.type});
  const Tensors arguments = ReadArguments(fn->name(), wanted, command.inputs);
  BindSymbols(*fn, arguments);  // the same message for a wrong argument either way
  CompileRequest request{fn};
  if (command.interpret) request.backend = "interpreter", request.passes = {};  // as it stands
  return Compile(request)->Run(arguments);
}

}  // namespace

void RunCommand::Run() const {
  const std::string bytes = ReadFile(file);
  const Tensors results = Bundle::IsBundle(bytes) ? RunBundleFile(bytes, *this) : RunProgramFile(bytes, *this);
  PutResults(results, outputs);
}

void ExportCommand::Run() const {
  CompileRequest request{LoadProgram(file)};
  request.backend = target;
  WriteFile(output, MakeBundle(request, {}, emulation).Serialize());
}

void DumpCommand::Run() const {
  CompileRequest request{LoadProgram(file)};
  request.backend = target;
  std::cout << StageText(request, stage);
}

void RunOpsCommand() { std::cout << OperationReference(); }

}  // namespace weft
