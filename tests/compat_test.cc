// Programs that released versions wrote still load and still are what they were: tests/compat/v<version>/NAME.weftpb
// beside NAME.weft, its text with locations. A .weftpb is never changed; when the printed form changes, `weft opt
// NAME.weftpb
// --print-locations` writes the text anew.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "ir/exchange/serialize.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"

namespace weft {
namespace {

std::string Read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(CompatTest, OldProgramsLoad) {
  int programs = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("tests/compat")) {
    if (entry.path().extension() != ".weftpb") continue;
    SCOPED_TRACE(entry.path().string());
    FnRef fn;
    ASSERT_NO_THROW(fn = Deserialize(Read(entry.path())));
    EXPECT_NO_THROW(Verify(*fn));
    std::filesystem::path text = entry.path();
    const std::string expected = Read(text.replace_extension(".weft"));
    EXPECT_TRUE(ParseFn(expected)->StructurallyEquals(*fn));
    EXPECT_EQ(Print(*fn, {.locations = true}), expected);
    ++programs;
  }
  EXPECT_GE(programs, 5);
}

}  // namespace
}  // namespace weft
