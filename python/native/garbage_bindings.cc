// What Python's garbage collector is not to look at.
#include "python/native/bindings.h"

namespace weft::python {

void BindGarbage(py::module_& m) {
  // gc.freeze() for the objects of the oldest generation alone, but for those that are given: these and the others
  // become young. No collection looks at objects that are put aside; what they hold is there until the process ends.
  m.def("freeze_old_objects", [](const py::list& but) {
    const py::module_ gc = py::module_::import("gc");
    const py::list young[] = {but, gc.attr("get_objects")(0), gc.attr("get_objects")(1)};
    gc.attr("freeze")();
    for (const py::list& objects : young) {
      for (py::handle object : objects) {
        if (!PyObject_GC_IsTracked(object.ptr())) continue;
        PyObject_GC_UnTrack(object.ptr());
        PyObject_GC_Track(object.ptr());  // in the youngest generation
      }
    }
  });
}

}  // namespace weft::python
