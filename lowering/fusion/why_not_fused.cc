#include <utility>

#include "ir/prim.h"
#include "lowering/fusion/fusion.h"

namespace weft {

std::vector<std::string> WhyNotFused(const Fn& fn, const FusionPolicy& policy) {
  std::vector<std::string> sentences;
  const auto name = [&](int i) {
    const Eqn& e = fn.eqns()[static_cast<size_t>(i)];
    return e.prim->name + (e.loc ? " at " + e.loc.ToString() : "");
  };
  for (const BlockPlan::Note& note : Fuse(fn, policy).notes)
    sentences.push_back(name(note.eqn) + " is not computed with " + name(note.other) + ": " + note.why);
  for (const Eqn& e : fn.eqns()) {
    for (const FnRef& region : e.regions) {
      for (std::string& sentence : WhyNotFused(*region, policy)) sentences.push_back(std::move(sentence));
    }
  }
  return sentences;
}

}  // namespace weft
