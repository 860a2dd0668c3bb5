#include "tracer/axes.h"

#include <map>
#include <mutex>

#include "base/fork_safe_mutex.h"
#include "ir/error.h"
#include "tracer/context.h"
#include "tracer/trace.h"

namespace weft {
namespace {

std::vector<NamedAxis>& Bound() { return Context().axes; }

const NamedAxis* Find(const std::string& name) {
  const auto& bound = Bound();
  for (size_t i = bound.size(); i-- > 0;) {
    if (bound[i].name == name) return &bound[i];
  }
  return nullptr;
}

}  // namespace

ScopedAxes::ScopedAxes(const std::vector<NamedAxis>& axes) : before_(Bound().size()) {
  Bound().insert(Bound().end(), axes.begin(), axes.end());
}

ScopedAxes::~ScopedAxes() { Bound().resize(before_); }

const NamedAxis& AxisNamed(const std::string& name, const std::string& what) {
  if (const NamedAxis* axis = Find(name)) return *axis;
  std::string known;
  for (const NamedAxis& a : Bound()) known += (known.empty() ? "" : ", ") + ("'" + a.name + "'");
  throw UserError(ErrorKind::kName, CurrentLoc(), what, ": nothing binds the axis '", name, "' here; ",
                  known.empty() ? "no axes are bound" : "bound are " + known,
                  ". Axes are bound by vmap(..., axis_name=...), pmap and shard_map");
}

const std::vector<NamedAxis>& BoundAxes() { return Bound(); }
bool AxisIsBound(const std::string& name) { return Find(name) != nullptr; }

std::vector<std::string> AxesOfPmap() {
  std::vector<std::string> names;
  for (const NamedAxis& a : Bound()) {
    if (a.pmap && Find(a.name) == &a) names.push_back(a.name);
  }
  return names;
}

uint64_t AxesKey() {
  const auto& bound = Bound();
  if (bound.empty()) return 0;
  std::string text;
  for (const NamedAxis& a : bound) text += a.name + (a.pmap ? "*" : a.mesh ? "!" : "=") + a.size.ToString() + ";";
  static auto& mutex = *new ForkSafeMutex;
  static auto& keys = *new std::map<std::string, uint64_t>();
  std::lock_guard<ForkSafeMutex> lock(mutex);
  return keys.emplace(text, keys.size() + 1).first->second;
}

}  // namespace weft
