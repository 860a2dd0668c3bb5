// Random programs under random chains of transforms.
//
//   chains_test                          300 fixed seeds, chains of up to 3 transforms (continuous integration)
//   chains_test --count=10000 --depth=4  a full run
//   chains_test seed7.weft               a failing program again, under its chain
//
// Failing programs are shrunk and written as .weft files to --keep=DIR: in a test of Bazel, to the outputs that it
// keeps.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "driver/files/files.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "tests/property/laws.h"
#include "tests/property/random_fn.h"
#include <CLI/CLI.hpp>

namespace weft {
namespace {

struct Case {
  unsigned seed;
  std::vector<std::string> chain;
  FnRef program;
};

Case Draw(unsigned seed, long depth) {
  std::mt19937 rng(seed);
  RandomFnOptions options;
  options.loops = seed % 3 == 0;
  Case c{seed, {}, RandomFn(rng, options)};
  const long links = 1 + static_cast<long>(rng() % static_cast<unsigned>(depth));
  for (long i = 0; i < links; ++i) c.chain.push_back(ChainLinks()[rng() % ChainLinks().size()]);
  return c;
}

// What was kept: "# seed 7, chain grad,vmap", comments, the program.
Case Read(const std::string& path) {
  const std::string text = ReadFile(path);
  unsigned seed = 0;
  char chain[200] = "";
  if (std::sscanf(text.c_str(), "# seed %u, chain %199[a-z,]", &seed, chain) != 2)
    throw ValueError(path, " does not begin as in '# seed 7, chain grad,vmap'");
  const std::vector<std::string> links = absl::StrSplit(chain, ',');
  for (const std::string& link : links) {
    if (absl::c_find(ChainLinks(), link) == ChainLinks().end())
      throw ValueError(path, ": there is no '", link, "' among ", absl::StrJoin(ChainLinks(), ", "));
  }
  return {seed, links, ParseFn(text, {.file = path})};
}

// Whether its laws hold. If not, it is shrunk and kept in a folder, if there is one.
bool Check(const Case& c, const std::string& keep) {
  const std::string violation = CheckChain(c.program, c.chain, c.seed);
  if (violation.empty()) return true;
  const FnRef small = Shrink(c.program, c.chain, c.seed);
  const std::string names = absl::StrJoin(c.chain, ",");
  // In comments: what a violation says may have several lines.
  std::string why = CheckChain(small, c.chain, c.seed).substr(0, 400);
  for (size_t at = 0; (at = why.find('\n', at)) != std::string::npos; at += 3) why.replace(at, 1, "\n# ");
  const std::string text =
      "# seed " + std::to_string(c.seed) + ", chain " + names + "\n# " + why + "\n" + Print(*small);
  std::fprintf(stderr, "seed %u, %s: %s\n%s\n", c.seed, names.c_str(), violation.c_str(), text.c_str());
  if (!keep.empty()) WriteFile(keep + "/seed" + std::to_string(c.seed) + ".weft", text);
  return false;
}

int Main(int argc, char** argv) {
  long count = 300, depth = 3, first = 0;
  std::vector<std::string> files;
  const char* outputs = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  std::string keep = outputs == nullptr ? "" : outputs;
  CLI::App app("Random programs under random chains of transforms");
  // Of an option given twice the last counts: Bazel puts a target's own arguments in front.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--count", count, "How many programs")->check(CLI::PositiveNumber);
  app.add_option("--depth", depth, "The longest chain")->check(CLI::PositiveNumber);
  app.add_option("--first", first, "The first seed")->check(CLI::NonNegativeNumber);
  app.add_option("--keep", keep, "A folder for shrunk failing programs")->check(CLI::ExistingDirectory);
  app.add_option("files", files, "Programs that were kept, instead of random ones")
      ->check(CLI::ExistingFile)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  CLI11_PARSE(app, argc, argv);
  if (!files.empty()) count = static_cast<long>(files.size());
  long failed = 0;
  try {
    for (long i = 0; i < count; ++i) {
      const Case c =
          files.empty() ? Draw(static_cast<unsigned>(first + i), depth) : Read(files[static_cast<size_t>(i)]);
      if (!Check(c, keep)) ++failed;
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "chains_test: %s\n", error.what());
    return 2;
  }
  std::printf("%ld programs, %ld failed\n", count, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
