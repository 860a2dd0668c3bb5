#include "python/jit_donation.h"

#include <Python.h>

#include <string>

#include "driver/executable.h"
#include "python/array.h"
#include "python/errors.h"

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

}  // namespace

std::vector<bool> MayGive(const Entry& entry, const Arguments& a) {
  std::vector<bool> give(a.leaves.size(), false);
  for (size_t i = 0; i < a.leaves.size(); ++i) {
    const Leaf& leaf = a.leaves[i];
    if (!leaf.donated || leaf.array == nullptr || BlocksOf(leaf.array) != nullptr || PeekValue(leaf.array).traced())
      continue;
    for (size_t k = 0; k < a.leaves.size(); ++k) {
      if (k != i && a.leaves[k].array == leaf.array) {
        throw ValueError(Donated(entry, i), " is donated, and the same array is also passed as argument ",
                         entry.traced.fn->params()[k].name.empty() ? "number " + std::to_string(k + 1)
                                                                   : entry.traced.fn->params()[k].name);
      }
    }
    const bool pinned = reinterpret_cast<ArrayObject*>(leaf.array)->pinned;
    const Tensor& t = PeekValue(leaf.array).tensor();
    give[i] = !pinned && MayOverwrite(t);
    if (!give[i]) {
      Warn("jit: " + Donated(entry, i) +
           (t.owner().use_count() > 1 || pinned
                ? " was not donated: a NumPy array, DLPack or buffer export, or another array shares its memory"
                : " was not donated: its memory belongs to another library"));
    }
  }
  return give;
}

void WarnOfUseless(const Entry& entry) {
  if (entry.cut) return;
  const std::vector<bool> uses = entry.program->UsesDonated();
  for (size_t i = 0; i < uses.size(); ++i) {
    if (entry.donated[i] && !uses[i] && !(entry.deletions[i]->type.size() == Dim(0)))
      Warn("jit: donating " + Donated(entry, i) + " brings nothing: no result or temporary fits its memory");
  }
}

}  // namespace weft::python
