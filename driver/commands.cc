#include "driver/commands.h"

#include <filesystem>
#include <functional>
#include <iostream>
#include <utility>

#include "absl/strings/str_join.h"
#include "driver/files.h"
#include "driver/npy.h"
#include "ir/eval.h"
#include "ir/op_reference.h"
#include "ir/serialize.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "ir/verify.h"

namespace weft {
namespace {

// A pass and one line about it, for the list.
struct CommandPass {
  std::string name, summary;
  std::function<FnRef(const FnRef&)> run;
};

// What only the command line needs.
FnRef RoundTrip(const FnRef& fn) {
  for (const FnRef& back : {ParseFn(Print(*fn)), Deserialize(Serialize(*fn))}) {
    if (!back->StructurallyEquals(*fn)) {
      throw UserError(ErrorKind::kInternal, {}, "the program changes when it is written and read:\n", Print(*fn), "becomes\n", Print(*back));
    }
  }
  return fn;
}

const std::vector<CommandPass>& Passes() {
  static const auto& passes = *new std::vector<CommandPass>{
      {"print", "prints the program as it is at this point", [](const FnRef& fn) {
         std::cout << Print(*fn) << "\n";
         return fn;
       }},
      {"roundtrip", "checks that text and protobuf form read back as the same program", RoundTrip},
      {"verify", "checks the program (done after every pass anyway)", [](const FnRef& fn) {
         Verify(*fn);
         return fn;
       }},
  };
  return passes;
}

const CommandPass& FindPass(const std::string& name) {
  for (const CommandPass& pass : Passes()) {
    if (pass.name == name) return pass;
  }
  throw ValueError("there is no pass '", name, "'; there are ",
                   absl::StrJoin(Passes(), ", ", [](std::string* out, const CommandPass& p) { *out += p.name; }));
}

}  // namespace

FnRef LoadProgram(const std::string& path) {
  const std::string bytes = ReadFile(path);
  if (IsSerialized(bytes)) return Deserialize(bytes);
  return ParseFn(bytes, {.file = path == "-" ? "<stdin>" : path});
}

void OptCommand::Run() const {
  if (list) {
    for (const CommandPass& pass : Passes()) std::cout << pass.name << ": " << pass.summary << "\n";
    return;
  }
  std::vector<const CommandPass*> found;
  for (const std::string& name : passes) found.push_back(&FindPass(name));
  FnRef fn = LoadProgram(file);
  for (const CommandPass* pass : found) {
    fn = pass->run(fn);
    Verify(*fn);
  }
  WriteFile(output, binary ? Serialize(*fn) : Print(*fn, {.locations = print_locations}));
}

void RunCommand::Run() const {
  const FnRef fn = LoadProgram(file);
  if (inputs.size() != fn->params().size()) {
    throw ValueError(fn->name(), " takes ", fn->params().size(), " arrays (", ToString(fn->ParamTypes()), "), --inputs names ", inputs.size());
  }
  Tensors arguments;
  for (size_t i = 0; i < inputs.size(); ++i) arguments.push_back(ReadNpy(inputs[i], fn->params()[i].type.dtype));
  if (!interpret) throw UserError(ErrorKind::kUnsupported, {}, "compiled execution is not built into this tool yet; use --interpret");
  const Tensors results = Eval(*fn, arguments);
  if (outputs.empty()) {
    for (const Tensor& t : results) std::cout << t.type() << " " << FormatTensors("{}", {t}) << "\n";
    return;
  }
  std::error_code error;
  std::filesystem::create_directories(outputs, error);
  if (error) throw ValueError("cannot make the folder ", outputs, ": ", error.message());
  for (size_t i = 0; i < results.size(); ++i) WriteNpy((std::filesystem::path(outputs) / (std::to_string(i) + ".npy")).string(), results[i]);
}

void DumpCommand::Run() const {
  const FnRef fn = LoadProgram(file);
  if (stage == "ir") {
    std::cout << Print(*fn);
    return;
  }
  throw UserError(ErrorKind::kUnsupported, {}, "stage '", stage, "' is not built into this tool yet");
}

void RunOpsCommand() { std::cout << OperationReference(); }

}  // namespace weft
