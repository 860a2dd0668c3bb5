// What the command lines of `weft` and `weft-run` have in common.
#ifndef WEFT_DRIVER_COMMAND_LINE_COMMAND_LINE_H_
#define WEFT_DRIVER_COMMAND_LINE_COMMAND_LINE_H_

#include <cxxabi.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <typeinfo>

#include "base/out_of_memory.h"
#include <CLI/CLI.hpp>

namespace weft {

enum ExitCode { kSuccess = 0, kFailure = 1, kUsage = 2 };

// What no handler catches: memory that runs out where nothing may be thrown, or for the exception itself, above all. A
// sentence, and no core. Takes no memory, as throwing again would.
[[noreturn]] inline void EndWithoutHandler() noexcept {
  const std::type_info* type = ::abi::__cxa_current_exception_type();
  const bool memory =
      type == nullptr ? !CanAllocate(16 << 20) : *type == typeid(std::bad_alloc) || *type == typeid(OutOfMemory);
  const char* why = memory ? "weft: out of memory: the system gives no more\n"
                           : "weft: an internal error ends the program; please report it\n";
  (void)!write(STDERR_FILENO, why, std::strlen(why));
  _exit(kFailure);
}

// Before anything else. Paths are the user's: `bazel run` starts a program in a folder of Bazel's, and says where it
// was called. And a file that may grow no more is an error of the write, not the end of the process.
inline void Begin() {
  std::set_terminate(EndWithoutHandler);
  std::signal(SIGXFSZ, SIG_IGN);
  const char* called_in = std::getenv("BUILD_WORKING_DIRECTORY");
  std::error_code none;
  const std::string here = std::filesystem::current_path(none).string();
  // The variable goes on to whatever a program under `bazel run` starts, wherever it starts that.
  if (called_in != nullptr && here.find(".runfiles") != std::string::npos && chdir(called_in) != 0)
    std::cerr << "weft: cannot go to " << called_in << ": " << std::strerror(errno) << "\n";
}

// What a command's exception says.
inline std::string TextOf(const std::exception& error) {
  const auto* memory = dynamic_cast<const std::bad_alloc*>(&error);
  return memory != nullptr ? WhatFor(*memory, "the system gives no more") : error.what();
}

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
#endif  // WEFT_DRIVER_COMMAND_LINE_COMMAND_LINE_H_
