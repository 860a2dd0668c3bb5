#include "sdk/load_plugin.h"

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <utility>

#include "base/digest.h"
#include "base/fork_safe_mutex.h"
#include "sdk/plugin.h"

namespace weft {
namespace {

std::string ReadWhole(const std::string& path) {
  // A folder opens, and cannot be read.
  if (std::filesystem::is_directory(path)) throw ValueError("the plugin '", path, "' is a folder; expected a file");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw ValueError("the plugin '", path, "' cannot be read: ", std::strerror(errno));
  std::ostringstream bytes;
  bytes << file.rdbuf();
  if (file.bad() || bytes.bad()) throw ValueError("the plugin '", path, "' cannot be read");
  return bytes.str();
}

std::string VersionText(uint32_t major, uint32_t minor) { return std::to_string(major) + "." + std::to_string(minor); }

// What the file says of itself. Looked for as bytes: nothing of it runs before it is known to fit.
PluginHeader HeaderOf(const std::string& path, const std::string& bytes) {
  if (bytes.size() < sizeof(Elf64_Ehdr) || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0)
    throw ValueError("the plugin '", path, "' is no shared library");
  const std::string magic(kPluginMagic, sizeof(kPluginMagic));
  const size_t at = bytes.find(magic);
  if (at == std::string::npos || at + sizeof(PluginHeader) > bytes.size()) {
    throw ValueError(
        "'", path, "' is a shared library, but no plugin of Weft: it has no WEFT_PLUGIN(name) { ... } (sdk/plugin.h)");
  }
  PluginHeader header;
  std::memcpy(&header, bytes.data() + at, sizeof(header));
  header.name[sizeof(header.name) - 1] = '\0';
  return header;
}

void CheckVersion(const std::string& path, const PluginHeader& header) {
  constexpr const char* kRemedy = "; build it again with the headers of this Weft (docs/extend_in_cpp.md)";
  const std::string made_for = VersionText(header.major, header.minor),
                    here = VersionText(WEFT_SDK_MAJOR, WEFT_SDK_MINOR);
  if (header.major != WEFT_SDK_MAJOR || header.minor > WEFT_SDK_MINOR) {
    throw ValueError("the plugin '", header.name, "' (", path, ") was built for version ", made_for,
                     " of Weft's SDK, and this is version ", here, ", which takes plugins of ",
                     VersionText(WEFT_SDK_MAJOR, 0), " to ", here, kRemedy);
  }
  if (header.layout != PluginLayout()) {
    throw ValueError("the plugin '", header.name, "' (", path, ") says that it was built for version ", made_for,
                     " of Weft's SDK, but with other headers than this Weft's, or by another kind of compiler",
                     kRemedy);
  }
}

// Lets libraries that are loaded find the functions of the one that this function is in, as they find those of a
// program: a Python module is loaded for itself alone.
void ShowOwnFunctions() {
  Dl_info own;
  if (dladdr(reinterpret_cast<const void*>(&LoadPlugin), &own) != 0 && own.dli_fname != nullptr)
    (void)dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);  // the program itself shows its functions anyway
}

template <class List, class NameOf>
std::vector<std::string> NamesOf(const List& list, const NameOf& name_of) {
  std::vector<std::string> names;
  for (const auto& item : list) names.emplace_back(name_of(item));
  return names;
}

// The names that there are now and were not before.
std::vector<std::string> Added(std::vector<std::string> now, const std::vector<std::string>& before) {
  const auto known = [&](const std::string& n) { return std::find(before.begin(), before.end(), n) != before.end(); };
  now.erase(std::remove_if(now.begin(), now.end(), known), now.end());
  return now;
}

struct Names {
  std::vector<std::string> passes = NamesOf(AllPasses(), [](const Pass& p) { return p.name; });
  std::vector<std::string> rules = NamesOf(SimplifyRules(), [](const SimplifyRule* r) { return r->name; });
  std::vector<std::string> primitives = NamesOf(AllPrims(), [](const Prim* p) { return p->name; });
};

std::unique_ptr<LoadedPlugin> Load(const std::string& path) {
  const std::string bytes = ReadWhole(path);
  const PluginHeader header = HeaderOf(path, bytes);
  CheckVersion(path, header);
  ShowOwnFunctions();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    throw ValueError("the plugin '", header.name, "' cannot be loaded: ", why == nullptr ? path.c_str() : why);
  }
  const auto run = reinterpret_cast<void (*)()>(dlsym(library, "weft_plugin_register"));
  if (run == nullptr) throw ValueError("the plugin '", header.name, "' (", path, ") has no WEFT_PLUGIN function");
  const Names before;
  NoteExtension("plugin " + Sha256(bytes));
  try {
    run();
  } catch (const Error& error) {
    throw Error(error.kind(), "the plugin '" + std::string(header.name) + "' (" + path + "): " + error.message());
  } catch (const std::exception& error) {
    throw Error(ErrorKind::kRuntime, "the plugin '" + std::string(header.name) + "' (" + path + "): " + error.what());
  }
  const Names after;
  return std::make_unique<LoadedPlugin>(LoadedPlugin{header.name, path, Added(after.passes, before.passes),
                                                     Added(after.rules, before.rules),
                                                     Added(after.primitives, before.primitives)});
}

}  // namespace

const LoadedPlugin& LoadPlugin(const std::string& path) {
  static auto& loading = *new ForkSafeMutex;
  static auto& loaded = *new std::map<std::string, std::unique_ptr<LoadedPlugin>>();
  char real[PATH_MAX];
  if (realpath(path.c_str(), real) == nullptr)
    throw ValueError("the plugin '", path, "' cannot be read: ", std::strerror(errno));
  const std::lock_guard<ForkSafeMutex> lock(loading);
  const auto it = loaded.find(real);
  if (it != loaded.end()) return *it->second;
  return *loaded.emplace(real, Load(real)).first->second;
}

}  // namespace weft
