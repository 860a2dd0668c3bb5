#include "driver/commands.h"

#include <filesystem>
#include <iostream>
#include <map>
#include <memory>

#include "driver/bundle.h"
#include "driver/command_passes.h"
#include "driver/executable.h"
#include "driver/files.h"
#include "driver/gpu.h"
#include "driver/npy.h"
#include "driver/npz.h"
#include "ir/eval.h"
#include "ir/op_reference.h"
#include "ir/serialize.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "transforms/pass.h"

namespace weft {
FnRef LoadProgram(const std::string& path) {
  const std::string bytes = ReadFile(path);
  if (IsSerialized(bytes)) return Deserialize(bytes);
  return ParseFn(bytes, {.file = path == "-" ? "<stdin>" : path});
}

namespace {

std::shared_ptr<Executable> CompileOptimized(const FnRef& fn) {
  CompileOptions options;
  options.pipeline_name = "default";
  options.passes = {Optimize};
  return Compile(fn, options);
}

}  // namespace

void OptCommand::Run() const {
  if (list) {
    std::cout << ListCommandPasses();
    return;
  }
  const FnRef fn = RunCommandPasses(LoadProgram(file), passes);
  WriteFile(output, binary ? Serialize(*fn) : Print(*fn, {.locations = print_locations}));
}

namespace {

// An argument that a program takes.
struct Wanted {
  std::string name;
  Type type;
};

// One .npy file per argument, or one .npz file with arrays of the arguments' names, or of np.savez's own (arr_0, ...).
Tensors ReadArguments(const std::string& program, const std::vector<Wanted>& wanted,
                      const std::vector<std::string>& inputs) {
  Tensors arguments;
  const bool archive =
      inputs.size() == 1 && inputs[0].size() > 4 && inputs[0].compare(inputs[0].size() - 4, 4, ".npz") == 0;
  if (archive) {
    const std::map<std::string, std::string> files = ParseNpz(ReadFile(inputs[0]), inputs[0]);
    for (size_t i = 0; i < wanted.size(); ++i) {
      auto it = files.find(wanted[i].name);
      if (it == files.end()) it = files.find("arr_" + std::to_string(i));
      if (it == files.end())
        throw ValueError(program, ": ", inputs[0], " has no array '", wanted[i].name, "' (nor 'arr_", i, "')");
      arguments.push_back(ParseNpy(it->second, wanted[i].type.dtype, inputs[0] + ": " + it->first));
    }
    return arguments;
  }
  if (inputs.size() != wanted.size()) {
    Types types;
    for (const Wanted& w : wanted) types.push_back(w.type);
    throw ValueError(program, " takes ", wanted.size(), " arrays (", ToString(types), "), --inputs names ",
                     inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) arguments.push_back(ReadNpy(inputs[i], wanted[i].type.dtype));
  return arguments;
}

Tensors RunBundleFile(const std::string& bytes, const RunCommand& command) {
  Bundle bundle;
  try {
    bundle = Bundle::Parse(bytes);
  } catch (const std::invalid_argument& failure) {
    throw UserError(ErrorKind::kParse, {}, command.file, ": ", failure.what());
  }
  if (command.interpret) throw ValueError("run: a bundle holds no program that could be interpreted");
  std::vector<Wanted> wanted;
  for (const Bundle::Value& v : bundle.params) {
    if (!v.is_constant)
      wanted.push_back({v.name, Type{static_cast<DType>(v.dtype), Dims(v.shape.begin(), v.shape.end()), {}}});
  }
  return RunBundle(bundle, ReadArguments(bundle.name, wanted, command.inputs), command.device);
}

Tensors RunProgramFile(const RunCommand& command) {
  const FnRef fn = LoadProgram(command.file);
  if (!command.device.empty()) throw ValueError("run: --device is for bundles; ", command.file, " is a program");
  std::vector<Wanted> wanted;
  for (const Param& p : fn->params()) wanted.push_back({p.name, p.type});
  const Tensors arguments = ReadArguments(fn->name(), wanted, command.inputs);
  BindSymbols(*fn, arguments);  // the same message for a wrong argument either way
  return command.interpret ? Eval(*fn, arguments) : CompileOptimized(fn)->Run(arguments);
}

}  // namespace

void RunCommand::Run() const {
  const std::string bytes = file == "-" ? "" : ReadFile(file);
  const Tensors results = Bundle::IsBundle(bytes) ? RunBundleFile(bytes, *this) : RunProgramFile(*this);
  if (outputs.empty()) {
    for (const Tensor& t : results) std::cout << t.type() << " " << FormatTensors("{}", {t}) << "\n";
    return;
  }
  std::error_code error;
  std::filesystem::create_directories(outputs, error);
  if (error) throw ValueError("cannot make the folder ", outputs, ": ", error.message());
  for (size_t i = 0; i < results.size(); ++i)
    WriteNpy((std::filesystem::path(outputs) / (std::to_string(i) + ".npy")).string(), results[i]);
}

void ExportCommand::Run() const { WriteFile(output, MakeBundle(LoadProgram(file), target, {}, twins).Serialize()); }

void DumpCommand::Run() const {
  const FnRef fn = LoadProgram(file);
  if (!target.empty()) {
    std::cout << GpuStage(fn, target, stage);
    return;
  }
  if (stage == "ir" || stage == "optimized") {
    std::cout << Print(stage == "ir" ? *fn : *Optimize(fn));
    return;
  }
  std::cout << CompileOptimized(fn)->Stage(stage);
}

void RunOpsCommand() { std::cout << OperationReference(); }

}  // namespace weft
