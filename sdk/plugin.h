// What a plugin includes: all that can be registered, and WEFT_PLUGIN, the function that does it.
//
//   WEFT_PLUGIN(example) {
//     RegisterPass({"twice-tanh", "What it does.", [](FnRef fn) { return ...; }});
//     RegisterRule(FormulaRule{"example-rule", Licence::kAccurate, "tanh(-x)", "-tanh(x)"});
//     RegisterPrimitive(...);
//   }
//
// Built as a shared library that links with nothing of Weft: the Weft that loads it (`weft opt --load=`,
// `weft.load_plugin`) has it all inside. docs/extend_in_cpp.md is the guide.
#ifndef WEFT_SDK_PLUGIN_H_
#define WEFT_SDK_PLUGIN_H_

#include <cstddef>
#include <cstdint>

#include "ir/builder.h"
#include "ir/error.h"
#include "ir/extensions.h"
#include "ir/licences.h"
#include "ir/ops.h"
#include "ir/prim.h"
#include "ir/prim_table.h"
#include "ir/verify.h"
#include "sdk/version.h"
#include "transforms/opt/pass.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/simplify.h"
#include "transforms/opt/stable_rules.h"

namespace weft {

// What a plugin was built with, as plain bytes that are read from its file before any of its code runs.
struct PluginHeader {
  char magic[16];
  uint32_t major, minor;  // of the SDK
  uint64_t layout;        // of the structures that both sides see
  char name[64];
};
inline constexpr char kPluginMagic[] = "\x7fWEFT PLUGIN \x01\x02";
static_assert(sizeof(kPluginMagic) == sizeof(PluginHeader::magic));

// The sizes of what plugins and Weft hand each other, and the ABI of the compiler, in one number: a header that changed
// without its version, and another standard library, are found by it.
constexpr uint64_t PluginLayout() {
  uint64_t hash = 14695981039346656037ULL;
  const uint64_t sizes[] = {sizeof(Prim),
                            sizeof(Fn),
                            sizeof(Eqn),
                            sizeof(Builder),
                            sizeof(Type),
                            sizeof(Tensor),
                            sizeof(Attrs),
                            sizeof(Atom),
                            sizeof(Atoms),
                            sizeof(OptionalAtoms),
                            sizeof(Dim),
                            sizeof(Loc),
                            sizeof(Param),
                            sizeof(Sig),
                            sizeof(Sample),
                            sizeof(JvpContext),
                            sizeof(BatchContext),
                            sizeof(EvalContext),
                            sizeof(TransposeContext),
                            sizeof(RegionRules),
                            sizeof(SimplifyRule),
                            sizeof(FormulaRule),
                            sizeof(Pass),
                            sizeof(Error),
                            sizeof(Mesh),
                            uint64_t{kNumDTypes},
                            uint64_t{_GLIBCXX_USE_CXX11_ABI},
                            uint64_t{__GXX_ABI_VERSION}};
  for (const uint64_t size : sizes) hash = (hash ^ size) * 1099511628211ULL;
  return hash;
}

}  // namespace weft

// One in each plugin, before the body that registers what it has. The name is a word.
#define WEFT_PLUGIN(plugin_name)                                                                               \
  extern "C" __attribute__((used, visibility("default"), aligned(16)))                                         \
  const ::weft::PluginHeader weft_plugin_header = {"\x7fWEFT PLUGIN \x01\x02", WEFT_SDK_MAJOR, WEFT_SDK_MINOR, \
                                                   ::weft::PluginLayout(), #plugin_name};                      \
  extern "C" __attribute__((used, visibility("default"))) void weft_plugin_register()

#endif  // WEFT_SDK_PLUGIN_H_
