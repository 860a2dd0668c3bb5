#include "driver/commands.h"

#include <filesystem>
#include <iostream>
#include <memory>

#include "driver/command_passes.h"
#include "driver/executable.h"
#include "driver/files.h"
#include "driver/gpu.h"
#include "driver/npy.h"
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

void RunCommand::Run() const {
  const FnRef fn = LoadProgram(file);
  if (inputs.size() != fn->params().size()) {
    throw ValueError(fn->name(), " takes ", fn->params().size(), " arrays (", ToString(fn->ParamTypes()),
                     "), --inputs names ", inputs.size());
  }
  Tensors arguments;
  for (size_t i = 0; i < inputs.size(); ++i) arguments.push_back(ReadNpy(inputs[i], fn->params()[i].type.dtype));
  BindSymbols(*fn, arguments);  // the same message for a wrong argument either way
  const Tensors results = interpret ? Eval(*fn, arguments) : CompileOptimized(fn)->Run(arguments);
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
