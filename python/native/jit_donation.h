// Arguments of a jitted function that are given away.
#ifndef WEFT_PYTHON_NATIVE_JIT_DONATION_H_
#define WEFT_PYTHON_NATIVE_JIT_DONATION_H_

#include <vector>

#include "python/native/jit_cache.h"

namespace weft::python {

// Whether nobody else refers to the memory of a concrete array.
bool MayGive(const Value& v);
// Which donated arguments can be given away. Raises ValueError for one that is passed twice; warns for one whose memory
// somebody else holds.
std::vector<bool> MayGive(const Entry& entry, const Arguments& a);

// As JAX has it: of donated arguments only those are given away in whose memory a result fits, each in that of one.
void KeepUseless(Entry& entry);
// Once per compiled version.
void WarnOfUseless(const Entry& entry);

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_JIT_DONATION_H_
