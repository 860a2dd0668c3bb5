// Between Python objects and values: dtypes, NumPy arrays and scalars, the buffer protocol, DLPack, Python numbers.
#ifndef WEFT_PYTHON_NATIVE_CONVERT_H_
#define WEFT_PYTHON_NATIVE_CONVERT_H_

#include <Python.h>

#include <optional>

#include "python/native/errors.h"
#include "tracer/site.h"

namespace weft::python {

// Imports NumPy. Call once.
bool InitConvert();
// (object): called with what becomes an array of Weft's without being asked to, where Setting::kWatchTransfers is on;
// may raise. `rank_hook`: (what, shapes), called with operands of different ranks, where Setting::kWatchRanks is.
void SetWatchers(PyObject* transfer_hook, PyObject* rank_hook);
void WatchTransfer(PyObject* object);

// NumPy's dtype object (new reference); for bfloat16 and 8-bit floats that of ml_dtypes where it is installed, else
// the name as a string.
PyObject* DTypeObject(DType dtype);
// What arrays of random keys say their dtype is: a text, or what else stands for it from now on.
void SetKeyDTypeObject(PyObject* object);
// What Python is asked where JAX's meaning depends on an option of JAX's: `narrowing` whether a dtype of 64 bits stays
// as it is, though x64 is off, or an exception; `bounds` whether a known index out of bounds is an error. Null: no.
enum class Question : uint8_t { kNarrowing, kBounds };
void SetQuestion(Question which, PyObject* function);
// The answer; arguments as for a call.
bool Ask(Question which, PyObject* argument);
// float32, "float32", "f32", np.float32, np.dtype("float32"), float, weft dtype names. Raises kType naming `what`.
DType DTypeFrom(PyObject* object, const char* what);
std::string NumpyName(DType dtype);  // "float32"

bool IsNumpyArray(PyObject* object);
bool IsNumpyScalar(PyObject* object);
// A Python bool, int, float or complex, but not NumPy's scalars that inherit from them.
bool IsPythonNumber(PyObject* object);
// ... of a class that derives from Python's: IntEnum and the like. (NumPy's float64 is a float, too, and none of
// these.)
bool IsNumberOfOwnClass(PyObject* object);
Scalar ScalarFrom(PyObject* number);
// Whether an integer (Scalar::Kind::kInt) is one of a dtype of integers.
bool Fits(const Scalar& integer, DType dtype);

// Whether an array shares the memory of a NumPy array: where nobody can ever write to that, or for the time of one
// call, in which the caller promises not to.
enum class Sharing { kConstant, kDuringCall };
// Whether 64 bits become 32 where JAX's meaning is asked for (Canonical in tracer/promote.h): not on the way to a dtype
// that is checked or converted later.
enum class Width { kCanonical, kOwn };
// The array that a NumPy array or scalar holds. Raises kType naming `what` for dtypes without a counterpart (strings,
// objects, dates). The other byte order is turned round.
Tensor TensorFromBuffer(PyObject* object, Sharing sharing, const char* what, Width width = Width::kCanonical);
// While a function is traced: an earlier copy of the same elements at the address `from`, if there is one and they are
// still the same, otherwise a tensor of our own. So a program holds an array once that it captures several times.
Tensor KeptOnce(Tensor t, const void* from);
// Like TensorFromBuffer, by NumPy's rules for anything: nested lists of numbers and arrays.
Tensor TensorFromAnything(PyObject* object, const char* what, bool* weak);
// A NumPy array that shares the tensor's memory, read-only.
inline constexpr const char* kKeyIsNoNumber =
    "random keys are no numbers; weft.random.key_data gives the words of a key";
// Raises TypeError for a tape.
void RefuseTape(DType dtype);
PyObject* NumpyFromTensor(const Tensor& tensor);
PyObject* PythonNumber(const Tensor& scalar);

// The method by which an object says which array it stands for: __weft_array__, or JAX's name of it. Null: it has none.
const char* ArrayMethodOf(PyObject* object);

// Whether OperandHolder::Set takes it: an array, a number, or a NumPy array or scalar of a dtype with a counterpart.
bool IsOperand(PyObject* object);

// An operand taken from a Python object: converted values live here.
class OperandHolder {
 public:
  // False for objects that are no operands (nothing is set): lists, strings, None.
  bool Set(PyObject* object);
  const Operand& operand() const { return operand_; }

 private:
  Value temporary_;
  Operand operand_ = Operand(Scalar());
};

// Dimensions: an int, or a sequence of ints and symbolic dimensions.
Dims DimsFrom(PyObject* object, const char* what);
// ... of a result of reshape, one of which may be -1.
Dims NewDimsFrom(PyObject* object);
int64_t IntFrom(PyObject* object, const char* what);
// None, an int or a sequence of ints.
std::optional<Ints> AxesFrom(PyObject* object, const char* what);
PyObject* ShapeObject(const Value& value);
PyObject* DimObject(const Dim& dim);
std::string Repr(PyObject* object);
// A Python string as UTF-8, with escapes for what has no form there (lone surrogates, as in names of files); the repr
// of anything else.
std::string Text(PyObject* object);

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_CONVERT_H_
