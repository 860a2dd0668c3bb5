// The arguments of a call of a jitted function: taken apart into arrays and numbers, and the signature that decides
// whether two calls run the same code.
#ifndef WEFT_PYTHON_NATIVE_CALL_ARGUMENTS_H_
#define WEFT_PYTHON_NATIVE_CALL_ARGUMENTS_H_

#include <Python.h>

#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "python/native/convert.h"
#include "python/native/static_keys.h"
#include "tracer/value.h"

namespace weft::python {

// One argument array or number.
struct Leaf {
  PyObject* object = nullptr;  // what was given, alive during the call
  PyObject* array = nullptr;   // the same if it is an array object
  Scalar scalar = {};
  Tensor tensor = {};  // of a NumPy array
  bool donated = false;
};

// What decides whether two calls run the same code.
struct Signature {
  absl::InlinedVector<uint64_t, 32> tokens;
  absl::InlinedVector<Ref, 2> objects;  // static arguments, dictionary keys, trees of registered classes
  absl::InlinedVector<Dim, 1> symbolic;

  size_t Hash() const {
    uint64_t h = 0xcbf29ce484222325u;
    for (uint64_t t : tokens) h = (h ^ t) * 0x100000001b3u, h ^= h >> 29;
    return h;
  }
  bool operator==(const Signature& other) const {
    if (tokens != other.tokens || objects.size() != other.objects.size() || symbolic != other.symbolic) return false;
    for (size_t i = 0; i < objects.size(); ++i) {
      if (!SameStatic(objects[i].get(), other.objects[i].get())) return false;
    }
    return true;
  }
};

enum Token : uint64_t {
  kLeafToken = 1,
  kNumberToken,
  kNoneToken,
  kTupleToken,
  kListToken,
  kDictToken,
  kTreeToken,
  kStaticToken,
  kKeywordToken,
  kVaryingToken,
  kShardingToken
};

struct Arguments {
  Signature signature;
  bool placed = false;  // somebody said where one of them lies
  absl::InlinedVector<Leaf, 8> leaves;
  std::vector<Ref> apart;  // (leaves, tree) of each container that is none of Python's own
};

// A leaf of the arguments that no jitted function takes.
struct NoArray {
  PyObject* leaf;  // alive during the call
};

// Adds one positional or keyword argument. Raises NoArray for a leaf that is neither array nor number, and
// RecursionError for a container without end.
void FlattenArgument(PyObject* o, Arguments& a, bool donated);
// Adds a static argument, `which` of `function`. Raises kValue when it cannot be hashed.
void AddStatic(PyObject* o, Arguments& a, const std::string& which, PyObject* function);

// What a function is called in messages.
std::string NameOf(PyObject* function);

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_CALL_ARGUMENTS_H_
