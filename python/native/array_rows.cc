// Arrays as sequences of their rows: len(), iteration, and what NumPy's functions of several arrays ask.
#include "python/native/array.h"
#include "python/native/array_slots.h"
#include "python/native/convert.h"
#include "python/native/placed.h"
#include "tracer/index_ops.h"

namespace weft::python {

Py_ssize_t Length(PyObject* self) {
  return Guarded([&]() -> Py_ssize_t {
    const Value& v = ValueOf(self);
    if (v.rank() == 0) throw TypeError("len() of an array of no dimensions");
    return v.dims()[0].value("len()");
  });
}

// NumPy's functions of several arrays (lexsort) take one for a sequence of its rows.
PyObject* RowAt(PyObject* self, Py_ssize_t i) {
  return Guarded([&]() -> PyObject* {
    const Value& v = ValueOf(self);
    if (v.rank() == 0 || i < 0 || i >= v.dims()[0].value("an index"))
      throw UserError(ErrorKind::kIndex, {}, "index ", i, " is out of bounds");
    Ref key(Check(PyLong_FromSsize_t(i)));
    return GetItemObject(self, key.get());
  });
}

PyObject* Iterate(PyObject* self) {
  return Guarded([&]() -> PyObject* {
    const Value& v = ValueOf(self);
    if (v.rank() == 0) throw TypeError("iteration over an array of no dimensions");
    const int64_t n = v.dims()[0].value("iteration");
    Ref list(Check(PyList_New(n)));
    const std::shared_ptr<Shards>& shards = v.shards();
    if (v.traced() || (shards && !v.complete())) {
      for (int64_t i = 0; i < n; ++i) PyList_SET_ITEM(list.get(), i, WrapValue(GetItem(Operand(v), {Index::Int(i)})));
      return PyObject_GetIter(list.get());
    }
    // Copies of rows: no program for each of them, and none keeps all of the array. As in JAX those of an array that is
    // cut are on no device in particular, whatever dimension is cut.
    const Tensor t = shards ? shards->Assembled() : v.tensor();
    const Placement* place = v.placement();
    if (shards)
      place = place->sharding.Axes().empty() && place->sharding.partial.empty() ? &Everywhere(*place) : nullptr;
    const Shape row(t.shape().begin() + 1, t.shape().end());
    int64_t bytes = ByteWidth(t.dtype());
    for (int64_t size : row) bytes *= size;
    for (int64_t i = 0; i < n; ++i) {
      void* data = static_cast<char*>(const_cast<void*>(t.raw())) + i * bytes;
      const Value part(Tensor(t.dtype(), row, t.owner(), data).Copy(), v.weak());
      PyList_SET_ITEM(list.get(), i, WrapValue(place ? Place(part, *place) : part));
    }
    return PyObject_GetIter(list.get());
  });
}

}  // namespace weft::python
