#include "python/native/jit_donation.h"

#include <Python.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "driver/executable.h"
#include "python/native/array.h"
#include "python/native/errors.h"
#include "tracer/context.h"

namespace weft::python {
namespace {

// "the argument x ([f32[3]) of 'step'"
std::string Donated(const Entry& entry, size_t i) {
  const std::string& how = entry.deletions[i]->how;
  return how.substr(how.find("argument ")) + ", " + entry.deletions[i]->type.ToString() + ",";
}

void Warn(const std::string& text) {
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) throw PythonError();
}

// Some of the donated arguments: what a warning says of all of them at once.
struct SomeDonated {
  int count = 0;
  std::string first;

  void Add(const Entry& entry, size_t i) {
    if (count++ == 0) first = Donated(entry, i);
  }
  std::string Text(const char* of_one, const char* of_many) const {
    if (count == 1) return first + of_one;
    return std::to_string(count) + " arguments" + of_many + "; the first is " + first.substr(0, first.size() - 1);
  }
};

}  // namespace

bool MayGive(const Value& v) {
  const auto& shards = v.shards();
  if (shards == nullptr) return MayOverwrite(v.tensor());
  return shards.use_count() == 1 && shards->HoldsAlone();
}

std::vector<bool> MayGive(const Entry& entry, const Arguments& a) {
  std::vector<bool> give(a.leaves.size(), false);
  SomeDonated shared, borrowed;
  // Arrays that are leaves more than once, with these leaves: absl's hash tables do not survive that memory runs out.
  std::vector<std::pair<PyObject*, size_t>> places;
  places.reserve(a.leaves.size());
  for (size_t i = 0; i < a.leaves.size(); ++i) {
    if (a.leaves[i].array != nullptr) places.emplace_back(a.leaves[i].array, i);
  }
  std::sort(places.begin(), places.end());
  const auto alone = [&](size_t at) {
    return (at == 0 || places[at - 1].first != places[at].first) &&
           (at + 1 == places.size() || places[at + 1].first != places[at].first);
  };
  std::vector<std::pair<PyObject*, size_t>> twice;
  for (size_t at = 0; at < places.size(); ++at) {
    if (!alone(at)) twice.push_back(places[at]);
  }
  for (size_t i = 0; i < a.leaves.size(); ++i) {
    const Leaf& leaf = a.leaves[i];
    if (!leaf.donated || leaf.array == nullptr || PeekValue(leaf.array).traced()) continue;
    const auto at = std::lower_bound(twice.begin(), twice.end(), std::pair(leaf.array, size_t{0}));
    size_t k = i;
    if (at != twice.end() && at->first == leaf.array) k = at->second != i ? at->second : (at + 1)->second;
    if (k != i) {
      throw UserError(On(Setting::kJaxSemantics) ? ErrorKind::kRuntime : ErrorKind::kValue, {}, Donated(entry, i),
                      " is donated, and the same array is also passed as argument ",
                      entry.traced.fn->params()[k].name.empty() ? "number " + std::to_string(k + 1)
                                                                : entry.traced.fn->params()[k].name);
    }
    const bool pinned = reinterpret_cast<ArrayObject*>(leaf.array)->pinned;
    const Value& v = PeekValue(leaf.array);
    give[i] = !pinned && MayGive(v);
    if (give[i] && i < entry.useless.size() && entry.useless[i]) {
      give[i] = false;
      continue;
    }
    if (give[i]) continue;
    const bool alone = v.shards() == nullptr && v.tensor().owner().use_count() == 1;
    (pinned || !alone ? shared : borrowed).Add(entry, i);
  }
  constexpr const char* kShared = " not donated: a NumPy array, DLPack or buffer export, or another array shares ";
  constexpr const char* kBorrowed = " not donated: ";
  if (shared.count > 0)
    Warn("jit: " + shared.Text((std::string(" was") + kShared + "its memory").c_str(),
                               (std::string(" were") + kShared + "their memory").c_str()));
  if (borrowed.count > 0)
    Warn("jit: " +
         borrowed.Text((std::string(" was") + kBorrowed + "its memory belongs to another library").c_str(),
                       (std::string(" were") + kBorrowed + "their memory belongs to another library").c_str()));
  return give;
}

void KeepUseless(Entry& entry) {
  std::vector<std::pair<DType, Dim>> results;
  for (const Type& t : entry.traced.fn->ResultTypes()) results.emplace_back(t.dtype, t.size());
  entry.useless.resize(entry.donated.size(), false);
  for (size_t i = 0; i < entry.deletions.size(); ++i) {
    const Type& t = entry.deletions[i]->type;
    if (!entry.donated[i]) continue;
    const auto fits = std::find(results.begin(), results.end(), std::pair(t.dtype, t.size()));
    entry.useless[i] = fits == results.end();
    entry.donated[i] = !entry.useless[i];
    if (fits != results.end()) results.erase(fits);
  }
}

void WarnOfUseless(const Entry& entry) {
  const std::vector<bool> uses = entry.program->UsesDonated();
  SomeDonated useless;
  for (size_t i = 0; i < uses.size(); ++i) {
    const bool kept = i < entry.useless.size() && entry.useless[i];
    if ((kept || (entry.donated[i] && !uses[i])) && !(entry.deletions[i]->type.size() == Dim(0))) useless.Add(entry, i);
  }
  if (useless.count == 0) return;
  // Programs written for JAX filter its warnings by their beginning.
  const std::string beginning = On(Setting::kJaxSemantics) ? "Some donated buffers were not usable: " : "";
  Warn(beginning + "jit: donating " +
       useless.Text(" brings nothing: no result or temporary fits its memory",
                    " brings nothing: no result or temporary fits their memory"));
}

}  // namespace weft::python
