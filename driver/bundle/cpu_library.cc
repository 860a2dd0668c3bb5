#include "driver/bundle/cpu_library.h"

#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "driver/bundle/bundle.h"
#include "driver/command_line/command_line.h"
#include "driver/files/array_files.h"

extern "C" __attribute__((visibility("default"))) const char* weft_run_cpu_bundle(const char* bytes, size_t size,
                                                                                  const char* file,
                                                                                  const char* const* inputs,
                                                                                  size_t count, const char* outputs) {
  static std::string& failure = *new std::string;
  try {
    const weft::Bundle bundle = weft::ParseBundle(std::string(bytes, size), file);
    const std::vector<std::string> files(inputs, inputs + count);
    weft::PutResults(weft::RunBundle(bundle, weft::ReadArguments(bundle, files), "cpu"), outputs);
    std::cout.flush();
    if (std::cout) return nullptr;
    failure = "cannot write to standard output";
  } catch (const std::exception& error) {
    failure = weft::TextOf(error);
  }
  return failure.c_str();
}
