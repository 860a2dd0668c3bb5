#include "python/native/frames.h"

#include <Python.h>
#include <frameobject.h>

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/hash/hash.h"
#include "tracer/trace.h"

namespace weft::python {
namespace {

constexpr int kMaxFrames = 8;       // of the user, kept in a location
constexpr int kMaxEagerFrames = 3;  // when nothing is recorded, only an error could show the location
constexpr int kMaxWalk = 48;        // frames looked at
constexpr std::string_view kBetweenFolder = "autograph/";
// Python's own, of which decorators are made: @weft.named_scope("norm").
constexpr std::string_view kBetweenFile = "/contextlib.py";

std::string& PackageFolder() {
  static auto& folder = *new std::string();
  return folder;
}

struct Place {
  PyCodeObject* code;
  int instruction;
  friend bool operator==(const Place& a, const Place& b) { return a.code == b.code && a.instruction == b.instruction; }
};

struct Places {
  std::array<Place, kMaxFrames> place;
  int n = 0;
  Loc base;  // of the open trace: who called the function that is being traced
  friend bool operator==(const Places& a, const Places& b) {
    return a.n == b.n && a.base == b.base && std::equal(a.place.begin(), a.place.begin() + a.n, b.place.begin());
  }
  template <class H>
  friend H AbslHashValue(H h, const Places& p) {
    static_assert(sizeof(Loc) == sizeof(uintptr_t));
    h = H::combine(std::move(h), std::bit_cast<uintptr_t>(p.base));
    for (int i = 0; i < p.n; ++i) h = H::combine(std::move(h), p.place[i].code, p.place[i].instruction);
    return h;
  }
};

// Keys hold references to code objects, so that an address is not reused while it is here.
using Cache = std::unordered_map<Places, Loc, absl::Hash<Places>>;
Cache& TheCache() {
  static auto& cache = *new Cache();
  return cache;
}

// kBetween: what stands between two frames of the user: what converted functions call (weft.autograph), decorators.
enum class Whose { kUser, kPackage, kBetween };

Whose Owner(PyCodeObject* code) {
  static auto& known = *new std::unordered_map<PyCodeObject*, Whose>();
  if (auto it = known.find(code); it != known.end()) return it->second;
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (file == nullptr) {
    PyErr_Clear();
    file = "";
  }
  const std::string& folder = PackageFolder();
  // A generated file ("<string>" in dataclasses and namedtuple) is nobody's.
  Whose owner = Whose::kUser;
  if (!folder.empty() && std::string(file).compare(0, folder.size(), folder) == 0) {
    const bool between = std::string(file).compare(folder.size(), kBetweenFolder.size(), kBetweenFolder) == 0;
    owner = between ? Whose::kBetween : Whose::kPackage;
  } else if (std::string_view(file).ends_with(kBetweenFile)) {
    owner = Whose::kBetween;
  }
  Py_INCREF(code);
  known.emplace(code, owner);
  return owner;
}

// Of the package, and hands on what the user gave as it is.
bool PassesOn(PyCodeObject* code) {
  constexpr struct {
    std::string_view file, function;  // no function: all of the file's
  } kPassOn[] = {{"as_jax/arguments.py", ""}, {"numpy/_choosing.py", "where"}};
  const char *file = PyUnicode_AsUTF8(code->co_filename), *function = PyUnicode_AsUTF8(code->co_name);
  if (file == nullptr || function == nullptr) {
    PyErr_Clear();
    return false;
  }
  return std::any_of(std::begin(kPassOn), std::end(kPassOn), [&](const auto& row) {
    return std::string_view(file).ends_with(row.file) && (row.function.empty() || row.function == function);
  });
}

Loc MakeLoc(const Places& places) {
  const auto frame = [&](int i, Loc caller) {
    PyCodeObject* code = places.place[i].code;
    const char* file = PyUnicode_AsUTF8(code->co_filename);
    const char* function = PyUnicode_AsUTF8(code->co_qualname);
    PyErr_Clear();
    const int line = PyCode_Addr2Line(code, places.place[i].instruction);
    return Loc::File(file ? file : "?", line, function ? function : "?", caller);
  };
  Loc loc = places.base;
  // What is traced is no Python function of the user's (weft.vmap(wnp.sin)): these frames are those of `base` again.
  if (loc && frame(0, loc.caller()) == Loc::File(loc.file(), loc.line(), loc.function(), loc.caller())) return loc;
  for (int i = places.n; i-- > 0;) loc = frame(i, loc);
  return loc;
}

thread_local const Loc* t_place = nullptr;

struct NamedScope {
  std::string names;  // with those around it
  const Trace* trace;
};
thread_local std::vector<NamedScope> t_scopes;

constexpr std::string_view kNamedScope = "named_scope(";

bool IsInScope() { return !t_scopes.empty() && t_scopes.back().trace == Trace::Current(); }

Loc InScope(Loc loc) { return IsInScope() ? loc.Through(std::string(kNamedScope) + t_scopes.back().names + ")") : loc; }

}  // namespace

void OpenNamedScope(const std::string& name) {
  t_scopes.push_back({IsInScope() ? t_scopes.back().names + "/" + name : name, Trace::Current()});
}
void CloseNamedScope() {
  if (!t_scopes.empty()) t_scopes.pop_back();
}
bool IsNamedScope(const std::string& step) { return step.starts_with(kNamedScope); }

ScopedUserLoc::ScopedUserLoc(Loc loc) : before_(t_place), loc_(loc) { t_place = &loc_; }
ScopedUserLoc::~ScopedUserLoc() { t_place = before_; }

void SetPackageFolder(const std::string& folder) { PackageFolder() = folder; }

bool InPackage() {
  if (!PyGILState_Check()) return false;
  PyFrameObject* frame = PyEval_GetFrame();  // borrowed
  PyFrameObject* owned = nullptr;
  bool in_package = false;
  for (int i = 0; frame != nullptr && i < kMaxWalk; ++i) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    Py_DECREF(code);  // `known` of Owner() keeps it
    in_package = Owner(code) == Whose::kPackage && !PassesOn(code);
    if (in_package || Owner(code) == Whose::kUser) break;
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_XDECREF(owned);
    frame = owned = back;
  }
  Py_XDECREF(owned);
  return in_package;
}

Loc UserLoc() {
  if (t_place != nullptr) return *t_place;
  if (!PyGILState_Check()) return {};
  PyFrameObject* frame = PyEval_GetFrame();  // borrowed
  Places places;
  int most = kMaxEagerFrames;
  if (const Trace* trace = Trace::Current()) {
    places.base = trace->loc();
    most = kMaxFrames;
  }
  PyFrameObject* owned = nullptr;
  for (int i = 0; frame != nullptr && i < kMaxWalk && places.n < most; ++i) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    Py_DECREF(code);  // the frame keeps it
    const Whose owner = Owner(code);
    if (owner == Whose::kUser) places.place[places.n++] = {code, PyFrame_GetLasti(frame)};
    // The package called the user's function in order to trace it: what lies above is in `base`.
    if (owner == Whose::kPackage && places.n > 0) break;
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_XDECREF(owned);
    frame = owned = back;
  }
  Py_XDECREF(owned);
  if (places.n == 0) return InScope(places.base);
  Cache& cache = TheCache();
  if (auto it = cache.find(places); it != cache.end()) return InScope(it->second);
  if (cache.size() > 200000) {
    for (auto& [key, loc] : cache) {
      for (int i = 0; i < key.n; ++i) Py_DECREF(key.place[i].code);
    }
    cache.clear();
  }
  for (int i = 0; i < places.n; ++i) Py_INCREF(places.place[i].code);
  return InScope(cache.emplace(places, MakeLoc(places)).first->second);
}

std::string CalledFunction() {
  if (!PyGILState_Check()) return {};
  // The package's last frame before the user's first.
  PyCodeObject* called = nullptr;
  bool by_user = false;
  PyFrameObject* frame = PyEval_GetFrame();  // borrowed
  PyFrameObject* owned = nullptr;
  for (int i = 0; frame != nullptr && i < kMaxWalk && !by_user; ++i) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    Py_DECREF(code);  // `known` of Owner() keeps it
    const Whose owner = Owner(code);
    if (owner == Whose::kUser) by_user = true;
    if (owner == Whose::kBetween) break;
    if (owner == Whose::kPackage) called = code;
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_XDECREF(owned);
    frame = owned = back;
  }
  Py_XDECREF(owned);
  if (!by_user || called == nullptr) return {};
  const char* name = PyUnicode_AsUTF8(called->co_name);
  const bool of_module = name && PyUnicode_Compare(called->co_name, called->co_qualname) == 0;
  PyErr_Clear();
  return of_module && *name != '_' && *name != '<' ? name : "";
}

}  // namespace weft::python
