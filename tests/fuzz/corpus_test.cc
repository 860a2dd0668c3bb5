// Runs a fuzz target, linked in beside this file, on every file of its corpus: what fuzzing once found stays found.
// The first argument is the folder of the corpus.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::string corpus_folder;

TEST(FuzzCorpusTest, EveryFilePasses) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus_folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    SCOPED_TRACE(entry.path().string());
    EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()), 0);
    ++files;
  }
  EXPECT_GT(files, 10);
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 2) return 2;
  corpus_folder = argv[1];
  return RUN_ALL_TESTS();
}
