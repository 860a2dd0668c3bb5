// What the subcommands of `weft` do, apart from the parsing of the command line. Each raises weft::Error.
#ifndef WEFT_DRIVER_COMMAND_LINE_COMMANDS_H_
#define WEFT_DRIVER_COMMAND_LINE_COMMANDS_H_

#include <string>
#include <vector>

#include "ir/fn.h"

namespace weft {

// Loads plugins (sdk/plugin.h), in order.
void LoadPlugins(const std::vector<std::string>& paths);

// A program in text or protobuf form, told apart by its first bytes.
FnRef LoadProgram(const std::string& path);

struct OptCommand {
  std::string file;
  std::string passes;  // see command_passes.h
  bool timing = false;
  std::vector<std::string> dump_after;  // names of passes; "all"
  bool print_locations = false;
  bool list = false;
  bool binary = false;
  std::string output = "-";
  void Run() const;
};

struct RunCommand {
  std::string file;
  std::vector<std::string> inputs;
  std::string outputs;
  bool interpret = false;  // by the backend "interpreter"
  std::string device;      // of a bundle; see driver/bundle/bundle.h
  void Run() const;
};

struct ExportCommand {
  std::string file;
  std::string target = "cpu";
  bool emulation = false;
  std::string output;
  void Run() const;
};

struct DumpCommand {
  std::string file;
  std::string stage = "ir";
  std::string target = "cpu";  // a backend; see driver/backend.h
  void Run() const;
};

void RunOpsCommand();

}  // namespace weft
#endif  // WEFT_DRIVER_COMMAND_LINE_COMMANDS_H_
