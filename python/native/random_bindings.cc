// Keys and random bits, for weft.random.
#include "ir/random_ops.h"
#include "python/native/bindings.h"
#include "tracer/site.h"

namespace weft::python {
namespace {

// A key of either form: key[...] as it is, or u32[...,2], the form without a type of its own.
Atom KeyAtom(Builder& b, const Atom& key) {
  const Type type = b.TypeOf(key);
  if (type.dtype == DType::kKey) return key;
  if (type.dtype == DType::kU32 && type.rank() >= 1 && type.dims.back() == Dim(2)) return RandomWrap(b, key);
  throw TypeError("random: expected a key (weft.random.key or PRNGKey), got ", type);
}

py::object Wrap(Value v) { return Take(WrapValue(std::move(v))); }

Value KeyValue(py::handle key) {
  if (!IsArray(key.ptr()) && !IsNumpyArray(key.ptr()))
    throw TypeError("random: expected a key (weft.random.key or PRNGKey), got ", Repr(key.ptr()));
  return ValueFrom(key, "random");
}

// Where integers have 32 bits, the lower ones of a Python integer count, as in JAX.
Value SeedFrom(py::handle seed) {
  int overflow = 0;
  const auto wide = PyLong_CheckExact(seed.ptr()) && !X64() ? PyLong_AsLongLongAndOverflow(seed.ptr(), &overflow) : 0;
  if (wide == 0 || overflow != 0) return ValueFrom(seed, "random.key");
  return Value(Tensor::Scalar<uint32_t>(DType::kU32, static_cast<uint32_t>(wide)));
}

void CheckSingle(Builder& b, const Atom& key, const char* what) {
  if (b.TypeOf(key).rank() != 0)
    throw TypeError(what, ": one key is needed, got an array of keys ", b.TypeOf(key), "; use weft.vmap");
}

}  // namespace

void BindRandom(py::module_& m) {
  m.def("random_key", [](py::handle seed, bool typed) {
    const Value s = SeedFrom(seed);
    if (!IsInteger(s.dtype()) || s.rank() != 0)
      throw TypeError("random.key: the seed must be one integer, got ", s.type());
    Site site({s});
    const Atom key = RandomKey(site.b(), site.Use(s));
    return Wrap(site.Finish(typed ? key : RandomUnwrap(site.b(), key)));
  });
  m.def("random_unwrap", [](py::handle key) {
    const Value k = KeyValue(key);
    Site site({k});
    return Wrap(site.Finish(RandomUnwrap(site.b(), KeyAtom(site.b(), site.Use(k)))));
  });
  m.def("random_wrap", [](py::handle words) {
    const Value k = KeyValue(words);
    Site site({k});
    return Wrap(site.Finish(KeyAtom(site.b(), site.Use(k))));
  });
  m.def("random_split", [](py::handle key, py::handle shape) {
    const Value k = KeyValue(key);
    Site site({k});
    const Atom a = KeyAtom(site.b(), site.Use(k));
    CheckSingle(site.b(), a, "random.split");
    const Atom keys = RandomSplit(site.b(), a, DimsFrom(shape.ptr(), "random.split"));
    return Wrap(site.Finish(k.dtype() == DType::kKey ? keys : RandomUnwrap(site.b(), keys)));
  });
  m.def("random_fold_in", [](py::handle key, py::handle data) {
    const Value k = KeyValue(key), d = ValueFrom(data, "random.fold_in");
    Site site({k, d});
    const Atom a = KeyAtom(site.b(), site.Use(k));
    CheckSingle(site.b(), a, "random.fold_in");
    const Atom folded = RandomFoldIn(site.b(), a, site.Use(d));
    return Wrap(site.Finish(k.dtype() == DType::kKey ? folded : RandomUnwrap(site.b(), folded)));
  });
  m.def("random_bits", [](py::handle key, int width, py::handle shape) {
    const Value k = KeyValue(key);
    Site site({k});
    const Atom a = KeyAtom(site.b(), site.Use(k));
    CheckSingle(site.b(), a, "random.bits");
    return Wrap(site.Finish(RandomBits(site.b(), a, width, DimsFrom(shape.ptr(), "random.bits"))));
  });
  // Uniform in [0, 1): the high bits of a random integer as the mantissa of a number in [1, 2), minus 1.
  m.def("random_uniform01", [](py::handle key, py::handle shape, py::handle dtype) {
    const Value k = KeyValue(key);
    const DType t = DTypeFrom(dtype.ptr(), "random.uniform");
    if (!kFloats.Has(t)) throw TypeError("random.uniform: a float dtype is needed, got ", t);
    const int bits = BitWidth(t), mantissa = RowOf(t).digits - 1;
    const int drawn = mantissa < 8 ? 8 : bits;  // bf16 needs 7 bits: one byte is drawn for each
    Site site({k});
    Builder& b = site.b();
    const Atom a = KeyAtom(b, site.Use(k));
    CheckSingle(b, a, "random.uniform");
    Atom raw = RandomBits(b, a, drawn, DimsFrom(shape.ptr(), "random.uniform"));
    const DType drawn_type = b.DTypeOf(raw), word = bits == 16 ? DType::kU16 : bits == 32 ? DType::kU32 : DType::kU64;
    raw = b.Emit1(FindPrim("shift_right_logical"), {raw, Atom::Scalar(drawn_type, drawn - mantissa)});
    raw = Convert(b, raw, word);
    const int64_t one = int64_t{RowOf(t).max_exponent} << mantissa;  // the exponent's bias
    raw = b.Emit1(FindPrim("or"), {raw, NumberLiteral(word, Scalar::Int(one))});
    const Atom unit = b.Emit1(FindPrim("bitcast"), {raw}, {{"dtype", t}});
    return Wrap(site.Finish(b.Emit1(FindPrim("sub"), {unit, Atom::Scalar(t, 1)})));
  });
}

}  // namespace weft::python
