// What the command lines of `weft` and `weft-run` have in common.
#ifndef WEFT_DRIVER_COMMAND_LINE_H_
#define WEFT_DRIVER_COMMAND_LINE_H_

#include <cstdio>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>

namespace weft {

enum ExitCode { kSuccess = 0, kFailure = 1, kUsage = 2 };

// Reads the arguments. A first word that is no command is named: CLI11 would say that a command is missing.
inline void Parse(CLI::App& app, int argc, char** argv) {
  std::string names;
  bool known = argc < 2 || argv[1][0] == '-';
  for (const CLI::App* command : app.get_subcommands({})) {
    names += (names.empty() ? "" : ", ") + command->get_name();
    known = known || command->get_name() == argv[1];
  }
  if (!known) {
    throw CLI::ExtrasError(app.get_name() + ": there is no command '" + argv[1] + "'; there are " + names,
                           CLI::ExitCodes::ExtrasError);
  }
  app.parse(argc, argv);
}

// The exit status, when all is done: what was printed and could not be written is a failure, which shows when the
// buffers are written.
inline int Finish(const char* program, int status) {
  std::cout.flush();
  if (status == kSuccess && (!std::cout || std::ferror(stdout) != 0)) {
    std::cerr << program << ": cannot write to standard output\n";
    return kFailure;
  }
  return status;
}

}  // namespace weft
#endif  // WEFT_DRIVER_COMMAND_LINE_H_
