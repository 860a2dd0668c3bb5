// Arrays of one element as Python's numbers.
#include <complex>
#include <string>

#include "python/native/array_slots.h"
#include "python/native/convert.h"
#include "tracer/context.h"
#include "tracer/ops.h"

namespace weft::python {
Tensor OneElement(PyObject* self, const char* why) {
  const Value& v = ValueOf(self);
  const Type type = v.type();
  if (type.dtype == DType::kKey) throw TypeError(why, ": ", kKeyIsNoNumber);
  if (v.traced() && !v.home()->open()) return Demand(v, why);  // raises
  if (!type.is_static() || !(type.size() == Dim(1))) {
    if (std::string(why) == "bool()") {
      throw ValueError("the truth value of an array of shape ", ShapeText(type.dims),
                       " is ambiguous: use .any() or .all()");
    }
    throw TypeError(why, ": only arrays of one element can be converted to a Python number, got shape ",
                    ShapeText(type.dims));
  }
  return Demand(v, why);
}

namespace {

// ... of which JAX wants that the array has no dimensions.
Tensor OneNumber(PyObject* self, const char* why) {
  const Value& v = ValueOf(self);
  const bool one = v.type().is_static() && v.type().size() == Dim(1);
  if (one && v.rank() != 0 && v.dtype() != DType::kKey && On(Setting::kJaxSemantics)) {
    throw TypeError(why, ": only arrays of no dimensions can be converted to a Python number, got shape ",
                    ShapeText(v.type().dims));
  }
  return OneElement(self, why);
}

}  // namespace

int BoolSlot(PyObject* self) {
  return Guarded([&]() -> int {
    const Tensor t = OneElement(self, "bool()");
    return t.Get(0) != std::complex<double>(0);
  });
}

PyObject* IntSlot(PyObject* self) {
  return Guarded([&]() -> PyObject* {
    Ref number(Check(PythonNumber(OneNumber(self, "int()"))));
    if (PyComplex_Check(number.get())) throw TypeError("int() of a complex number");
    return PyNumber_Long(number.get());
  });
}

PyObject* FloatSlot(PyObject* self) {
  return Guarded([&]() -> PyObject* {
    Ref number(Check(PythonNumber(OneNumber(self, "float()"))));
    if (PyComplex_Check(number.get())) throw TypeError("float() of a complex number");
    return PyNumber_Float(number.get());
  });
}

PyObject* IndexSlot(PyObject* self) {
  return Guarded([&]() -> PyObject* {
    const Value& v = ValueOf(self);
    if (!IsInteger(v.dtype()) || v.rank() != 0) {
      throw TypeError("only integer arrays of no dimensions can be used as an index, got ", v.type());
    }
    return PythonNumber(Demand(v, "an index"));
  });
}

PyObject* ComplexMethod(PyObject* self, PyObject*) {
  return Guarded([&]() -> PyObject* {
    const std::complex<double> c = OneNumber(self, "complex()").Get(0);
    return PyComplex_FromDoubles(c.real(), c.imag());
  });
}

}  // namespace weft::python
