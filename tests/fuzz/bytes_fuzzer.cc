// Any bytes, as a whole file and as the module within a file whose digest fits: Deserialize reads them or refuses them
// with kParse; what it reads verifies and round-trips through both forms.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "ir/error.h"
#include "ir/exchange/serialize.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"

namespace {

void Try(const std::string& bytes) {
  weft::FnRef fn;
  try {
    fn = weft::Deserialize(bytes);
  } catch (const weft::Error& error) {
    if (error.kind() == weft::ErrorKind::kParse) return;
    std::cerr << error.what() << "\n";
    std::abort();
  }
  weft::Verify(*fn);
  const std::string again = weft::Serialize(*fn);
  const std::string text = weft::Print(*fn);
  if (weft::Serialize(*weft::Deserialize(again)) != again || !weft::ParseFn(text)->StructurallyEquals(*fn)) {
    std::cerr << text;
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  Try(bytes);
  Try(weft::WrapModule(bytes));
  return 0;
}
