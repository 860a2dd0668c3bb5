// Random programs under random chains of transforms.
//
//   chains_test                          300 fixed seeds, chains of up to 3 transforms (continuous integration)
//   chains_test --count=10000 --depth=4  a full run; failing programs are shrunk and written to --keep=DIR as .weft
//   files
#include <cstdio>
#include <fstream>
#include <string>

#include "ir/text_printer.h"
#include "tests/property/laws.h"
#include "tests/property/random_fn.h"
#include <CLI/CLI.hpp>

namespace weft {
namespace {

int Main(int argc, char** argv) {
  long count = 300, depth = 3, first = 0;
  std::string keep;
  CLI::App app("Random programs under random chains of transforms");
  // Of an option given twice the last counts: Bazel puts a target's own arguments in front.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--count", count, "How many programs")->check(CLI::PositiveNumber);
  app.add_option("--depth", depth, "The longest chain")->check(CLI::PositiveNumber);
  app.add_option("--first", first, "The first seed")->check(CLI::NonNegativeNumber);
  app.add_option("--keep", keep, "A folder for shrunk failing programs")->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  long failed = 0;
  for (long seed = first; seed < first + count; ++seed) {
    std::mt19937 rng(static_cast<unsigned>(seed));
    RandomFnOptions options;
    options.loops = seed % 3 == 0;
    const FnRef f = RandomFn(rng, options);
    std::vector<std::string> chain;
    const long links = 1 + static_cast<long>(rng() % static_cast<unsigned>(depth));
    std::string names;
    for (long i = 0; i < links; ++i) {
      chain.push_back(ChainLinks()[rng() % ChainLinks().size()]);
      names += (i ? "," : "") + chain.back();
    }
    const std::string violation = CheckChain(f, chain, static_cast<unsigned>(seed));
    if (violation.empty()) continue;
    ++failed;
    const FnRef small = Shrink(f, chain, static_cast<unsigned>(seed));
    const std::string text = "# seed " + std::to_string(seed) + ", chain " + names + "\n# " +
                             CheckChain(small, chain, static_cast<unsigned>(seed)).substr(0, 400) + "\n" +
                             Print(*small);
    std::fprintf(stderr, "seed %ld, %s: %s\n%s\n", seed, names.c_str(), violation.c_str(), text.c_str());
    if (!keep.empty()) std::ofstream(keep + "/seed" + std::to_string(seed) + ".weft") << text;
  }
  std::printf("%ld programs, %ld failed\n", count, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
