"""weft.as_jax: arrays of dtypes of a library's own, with the library's primitives, and numbers and arrays with a dtype.
Programs run under JAX, too, where it is installed."""

from as_jax_both import both

# Dates: two numbers each, of a class of the library's own outside of programs.
_DATES = """
from jax._src import core, dtypes
from jax._src.interpreters import batching, mlir, pxla

class Rules:
    @staticmethod
    def physical_element_aval(dtype):
        return core.ShapedArray((2,), jnp.dtype("int32"))
    @staticmethod
    def global_sharded_result_handler(aval, sharding, committed):
        made = pxla.global_result_handlers[core.ShapedArray](core.physical_aval(aval), sharding, committed)
        return made.wrap(lambda data: Dates(aval.shape, data))

class Date(dtypes.ExtendedDType):
    type, name, _rules = dtypes.extended, "date", Rules
    def __hash__(self):
        return hash(Date)
    def __eq__(self, other):
        return type(other) is Date
    def __repr__(self):
        return "date"
    __str__ = __repr__

class Dates:
    def __init__(self, shape, data):
        self.shape, self.data = shape, data

def stored(xs, shardings, layouts, copies):
    places = [sharding._addressable_device_assignment[0] for sharding in shardings]
    of = jax._src.sharding_impls.make_single_device_sharding
    return [pxla.batched_device_put(core.typeof(x.data), of(d), [x.data], [d]) for x, d in zip(xs, places)]

core.pytype_aval_mappings[Dates] = lambda x: core.ShapedArray(x.shape, Date(), sharding=None)
pxla.shard_arg_handlers[Dates] = stored
mlir._constant_handlers[Dates] = lambda x, aval: jax._src.array._array_mlir_constant_handler(x.data, aval)
dtypes.register_canonicalize_value_handler(Dates, None)

counted_p, later_p, day_p = map(core.Primitive, ("counted", "later", "day"))
counted_p.def_abstract_eval(lambda *, shape: core.ShapedArray(shape, Date()))
later_p.def_abstract_eval(lambda x: core.ShapedArray(x.shape, Date()))
day_p.def_abstract_eval(lambda x: core.ShapedArray(x.shape, jnp.dtype("int32")))

def count(*, shape):
    days = jnp.arange(int(np.prod(shape)), dtype="int32").reshape(shape)
    return jnp.stack([days, 100 + days], -1)

mlir.register_lowering(counted_p, mlir.lower_fun(count, False))
mlir.register_lowering(later_p, mlir.lower_fun(lambda x: jnp.ones((*x.shape, 2), "int32"), False))
mlir.register_lowering(day_p, mlir.lower_fun(lambda x: jnp.full(x.shape, x.size, "int32"), False))
for primitive in (later_p, day_p):
    batching.defvectorized(primitive)
counted = lambda *shape: counted_p.bind(shape=shape)
later, day = later_p.bind, day_p.bind
words = lambda x: (type(x).__name__, list(x.shape), np.asarray(x.data).tolist())
"""


def test_primitives_on_arrays_of_a_dtype_of_ones_own():
    found = both(
        _DATES
        + """
dates = jax.jit(lambda: counted(2, 3))()
date = jax.jit(lambda: counted())()
out["made"] = words(dates)
out["identity"] = words(jax.jit(lambda x: x)(dates))
out["closed over"] = words(jax.jit(lambda: date)())
out["several"] = shown(jax.jit(lambda: day(later(counted(3))))())
out["scan"] = words(jax.jit(lambda x: lax.scan(lambda c, d: (c, later(d)), None, x)[1])(dates))
out["vmap"] = shown(jax.vmap(jax.jit(lambda x: day(later(x))))(dates))
moving = {
    "slice": lambda x: lax.slice_in_dim(x, 1, 3, axis=1),
    "transposed": lambda x: x.T,
    "row": lambda x: x[1],
    "part": lambda x: x[:, 1:3],
    "select": lambda x: lax.select(jnp.array([[True, False, True]] * 2), x, x),
}
for name, f in moving.items():
    out[name] = words(jax.jit(f)(dates))
out["set"] = words(jax.jit(lambda x, y: x.at[0, np.array([0, 2])].set(y))(dates, date))
out["dynamic slice"] = words(jax.jit(lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, axis=1))(dates, 1))
out["equal"] = shown(jax.jit(lambda x, y: (x == y, x != y))(dates, date))
out["type"] = core.ShapedArray((3, 4), Date()).str_short()
"""
    )
    assert found["made"][0] == "Dates" and found["equal"][0].startswith("[[ True")


def test_numbers_and_arrays_with_a_dtype():
    both(
        """
        import pickle
        from jax._src import dtypes, literals

        of = {"i4": literals.TypedInt(3, np.dtype("int32")),
              "i8": literals.TypedInt(3, np.dtype("int64")),
              "f8": literals.TypedFloat(2.5, np.dtype("float64")),
              "c8": literals.TypedComplex(1j, np.dtype("complex64"))}
        for name, x in of.items():
            again = pickle.loads(pickle.dumps(x))
            out[name] = [str(dtypes.dtype(x)), str(dtypes.canonicalize_value(x).dtype), str(jax.device_put(x).dtype),
                         type(again).__name__, str(again.dtype), again == x, repr(x), x + 1 == again + 1]
        x = literals.TypedNdArray(np.array([1.0]), aval=jax.core.ShapedArray((1,), np.dtype("float64"), weak_type=True))
        out["array"] = [str(jax.device_put(x).dtype), bool(x.weak_type), str(x.aval)]
        """
    )


def test_dtypes_of_operations_on_two():
    both(
        """
        kinds = ["bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "bfloat16", "float32",
                 "complex64"]
        for x64 in (False, True):
            with jax.enable_x64(x64):
                wide = kinds + (["int64", "uint64", "float64", "complex128"] if x64 else [])
                of = {k: jnp.ones(2, k) for k in wide}
                out[f"{x64}"] = [[[str((of[a] + of[b]).dtype), str(jnp.result_type(a, b)),
                                   str(jax.eval_shape(jnp.multiply, of[a], of[b]).dtype),
                                   str(jnp.where(True, of[a], of[b]).dtype)] for a in wide] for b in wide]
        """
    )


def test_dtypes_that_two_have_together():
    found = both(
        """
        kinds = ["bool", "int4", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "float16", "bfloat16",
                 "float32", "float64", "complex64", "complex128", "float8_e4m3fn", bool, int, float, complex]
        def together(a, b):
            try:
                return str(jnp.promote_types(a, b))
            except (TypeError, ValueError) as error:
                return type(error).__name__
        for x64 in (False, True):
            for mode in ("standard", "strict"):
                with jax.enable_x64(x64), jax.numpy_dtype_promotion(mode):
                    out[f"{x64} {mode}"] = [[together(a, b) for a in kinds] for b in kinds]
        import ml_dtypes
        six = np.dtype(ml_dtypes.float6_e2m3fn)
        out["6 bits"] = together(six, six), together(six, int), together("float32", six), together("bool", six)
        out["is"] = [jnp.isdtype(six, k) for k in ("real floating", "numeric", "integral", six, ("bool", six))]
        """
    )
    assert found["6 bits"][2] == "TypePromotionError"
