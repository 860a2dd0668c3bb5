// The buffer protocol of arrays: read-only, no copy.
#include <memory>
#include <string>
#include <vector>

#include "python/native/array_slots.h"

namespace weft::python {
namespace {

struct Exported {
  Tensor tensor;  // so that the memory is seen to have another holder
  std::vector<Py_ssize_t> shape, strides;
};

}  // namespace

int GetBuffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  return Guarded([&] {
    if (IsGone(self)) {
      SetPythonException(PyExc_BufferError, DeletedText(self));
      return -1;
    }
    const Value& v = ValueOf(self);
    if (v.traced()) {
      SetPythonException(PyExc_BufferError, "a traced value has no memory");
      return -1;
    }
    const Tensor& t = v.tensor();
    const char* format = BufferFormat(t.dtype());
    if (format == nullptr) {
      SetPythonException(PyExc_BufferError, std::string("no buffer format for ") + Name(t.dtype()));
      return -1;
    }
    if (flags & PyBUF_WRITABLE) {
      SetPythonException(PyExc_BufferError, "arrays are read-only");
      return -1;
    }
    auto exported = std::make_unique<Exported>();
    exported->tensor = t;
    exported->shape.assign(t.shape().begin(), t.shape().end());
    for (int64_t s : RowMajorStrides(t.shape())) exported->strides.push_back(s * ByteWidth(t.dtype()));
    view->buf = const_cast<void*>(t.raw());
    view->obj = Py_NewRef(self);
    view->len = t.bytes();
    view->itemsize = ByteWidth(t.dtype());
    view->readonly = 1;
    view->ndim = t.rank();
    view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format) : nullptr;
    view->shape = flags & PyBUF_ND ? exported->shape.data() : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? exported->strides.data() : nullptr;
    view->suboffsets = nullptr;
    view->internal = exported.release();
    return 0;
  });
}

void ReleaseBuffer(PyObject*, Py_buffer* view) { delete static_cast<Exported*>(view->internal); }

const char* BufferFormat(DType t) { return RowOf(t).buffer; }

}  // namespace weft::python
