// Equality and hash of static arguments: which values mean the same program. Python's == is wider: 1 == True == 1.0 and
// 0.0 == -0.0, also inside tuples; and narrower: NaN is not itself.
//
// The same are values of one type with the same bits (numbers of Python and NumPy, ranges, decimals) or the same parts
// (tuples, frozensets, dataclasses, trees' static parts). Of all other types it is what their == says.
#ifndef WEFT_PYTHON_NATIVE_STATIC_KEYS_H_
#define WEFT_PYTHON_NATIVE_STATIC_KEYS_H_

#include <Python.h>

#include <cstdint>

namespace weft::python {

// Both may run Python code, and raise what it raises.
bool SameStatic(PyObject* a, PyObject* b);
// Equal for values that are the same. Raises TypeError for what has no hash.
uint64_t StaticHash(PyObject* o);

// What weft.tree's structures are an instance of, and (object) -> (what == compares, what hash() reads) as tuples, or
// None unless the class is a dataclass whose == Python has made.
void SetStaticKinds(PyObject* tree_type, PyObject* fields_hook);

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_STATIC_KEYS_H_
