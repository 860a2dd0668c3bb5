// Random programs under random chains of transforms.
//
//   chains_test                     300 fixed seeds, chains of up to 3 transforms (continuous integration)
//   chains --count=10000 --depth=4  a full run; failing programs are shrunk and written to --keep=DIR as .weft files
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "ir/text_printer.h"
#include "tests/property/laws.h"
#include "tests/property/random_fn.h"

namespace weft {
namespace {

long Option(int argc, char** argv, const std::string& name, long fallback) {
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg.rfind("--" + name + "=", 0) == 0) return std::atol(arg.c_str() + name.size() + 3);
  }
  return fallback;
}

std::string Folder(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg.rfind("--keep=", 0) == 0) return arg.substr(7);
  }
  return "";
}

int Main(int argc, char** argv) {
  const long count = Option(argc, argv, "count", 300), depth = Option(argc, argv, "depth", 3),
             first = Option(argc, argv, "first", 0);
  const std::string keep = Folder(argc, argv);
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
