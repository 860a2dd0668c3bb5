// Any text: ParseFn reads it or refuses it with kParse; what it reads verifies and round-trips.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "ir/error.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::FnRef fn;
  try {
    fn = weft::ParseFn(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const weft::Error& error) {
    if (error.kind() == weft::ErrorKind::kParse) return 0;
    std::cerr << error.what() << "\n";
    std::abort();
  }
  weft::Verify(*fn);
  const std::string text = weft::Print(*fn);
  const weft::FnRef back = weft::ParseFn(text);
  if (weft::Print(*back) != text || !back->StructurallyEquals(*fn)) {
    std::cerr << text << "became\n" << weft::Print(*back);
    std::abort();
  }
  return 0;
}
