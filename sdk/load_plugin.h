// Loads plugins (sdk/plugin.h) into this process.
//
//   LoadedPlugin p = LoadPlugin("build/example.so");   // p.passes == {"twice-tanh"}
#ifndef WEFT_SDK_LOAD_PLUGIN_H_
#define WEFT_SDK_LOAD_PLUGIN_H_

#include <string>
#include <vector>

namespace weft {

// What a plugin has added.
struct LoadedPlugin {
  std::string name, path;
  std::vector<std::string> passes, rules, primitives;
};

// Loads a plugin and lets it register what it has; one that is there already is only told of. It stays until the
// process ends. Raises kValue, before any code of the file runs, for a file that is no plugin and for one that was
// built for another version of the SDK; and for one that asks for what this Weft has not. What a plugin raises while it
// registers is raised with its name; what it had registered before stays.
const LoadedPlugin& LoadPlugin(const std::string& path);

}  // namespace weft
#endif  // WEFT_SDK_LOAD_PLUGIN_H_
