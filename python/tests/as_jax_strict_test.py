"""What JAX refuses and Weft takes, under weft.as_jax, random keys as JAX shows them, and options about indices and
dtypes: each program gives under JAX what it gives on Weft."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from as_jax_both import both

OUTCOME = """
def outcome(f, *args, **kwargs):
    try:
        x = f(*args, **kwargs)
    except Exception as error:
        # Which of TypeError and ValueError it is differs between JAX's own functions; Weft's are both.
        kinds = [IndexError, NotImplementedError, OverflowError]
        return next((kind.__name__ for kind in kinds if isinstance(error, kind)), "an error of arguments")
    return [str(leaf.dtype) for leaf in jax.tree.leaves(x)]

def says(f, *texts):
    try:
        f()
    except Exception as error:
        return [text in str(error) for text in texts]
    return "nothing is raised"
"""


def test_transfers_of_what_fills_arrays():
    found = both(
        """
        def allowed(f):
            try:
                f()
                return True
            except Exception as error:
                return not isinstance(error, RuntimeError)
        makes = {
            "ones": lambda: jnp.ones(3), "zeros": lambda: jnp.zeros(3), "full": lambda: jnp.full(3, 2.0),
            "zeros_like": lambda: jnp.zeros_like(np.ones(3)), "lax.full": lambda: lax.full((2,), 0.0),
            "eye": lambda: jnp.eye(3), "arange of an integer": lambda: jnp.arange(5),
            "arange of NumPy's number": lambda: jnp.arange(np.float32(5)), "iota": lambda: lax.iota("int32", 3),
            "in a program": lambda: jax.jit(lambda: jnp.ones(3))(),
        }
        with jax.transfer_guard("disallow"):
            for name, make in makes.items():
                out[name] = allowed(make)
        out["without a guard"] = allowed(makes["ones"])
        """
    )
    assert not found["ones"] and found["arange of an integer"] and found["without a guard"]


def test_operands_of_lax_have_one_dtype_and_kinds_that_a_function_takes():
    both(
        OUTCOME
        + """
operands = {
    "half": jnp.ones(3, "float16"), "single": jnp.ones(3), "small": jnp.ones(3, "int8"), "whole": jnp.ones(3, "int32"),
    "bool": jnp.ones(3, bool), "complex": jnp.ones(3, "complex64"), "matrix": jnp.ones((3, 3)), "1": 1, "1.0": 1.0,
    "NumPy's": np.float32(1),
}
two = '''add sub mul div rem max atan2 nextafter eq ne lt bitwise_and bitwise_or bitwise_xor shift_left
shift_right_logical shift_right_arithmetic igamma igammac complex'''.split()
for name in two:
    for a, x in operands.items():
        for b, y in operands.items():
            if a == b == "complex" and name in ("lt", "max", "atan2"):
                continue  # Weft has none of complex numbers
            out[f"{name} {a} {b}"] = outcome(getattr(lax, name), x, y)
one = '''exp log tanh logistic sin cos tan asin acos atan sinh cosh asinh acosh atanh sqrt rsqrt cbrt floor ceil
is_finite erf erfc erf_inv lgamma digamma neg sign square abs real imag conj bitwise_not population_count clz'''.split()
for name in one:
    for a, x in operands.items():
        out[f"{name} {a}"] = outcome(getattr(lax, name), x)
for a, x in operands.items():
    out[f"select {a}"] = outcome(lax.select, operands["bool"], operands["single"], x)
    out[f"clamp {a}"] = outcome(lax.clamp, x, operands["single"], x)
"""
    )


def test_words_of_what_lax_refuses():
    both(
        OUTCOME
        + """
x = jnp.ones((2, 3))
calls = {
    "add": (lambda: lax.add(0, 0.0), "lax.add requires arguments to have the same dtypes, got int32, float32.", "jnp"),
    "rem": (lambda: lax.rem(0, 0.0), "rem requires arguments to have the same dtypes, got int32, float32."),
    "sin": (lambda: lax.sin(1), "sin does not accept dtype int32. Accepted dtypes are subtypes of floating, complexfl"),
    "ranks": (lambda: lax.add(x, x[0]), "add: arrays must have", "same number of dimensions, got {1, 2}"),
    "axis": (lambda: lax.argmax(x, -1, np.int32), "Invalid axis -1 for operand"),
    "slice": (lambda: lax.dynamic_slice(x, (np.int32(0), np.int16(0)), (1, 1)), "integers of the same type"),
    "update": (lambda: lax.dynamic_update_slice(x, x, (np.int32(0), np.int16(0))), "integers of the same type"),
    "window": (lambda: lax.reduce_window(x, 0.0, lax.add, (0, 1), (1, 1), "VALID"), "must have every element be"),
    "init": (lambda: lax.reduce_window(x, jnp.ones(1), lax.add, (1, 1), (1, 1), "VALID"), "init_values to be scalars"),
    "structures": (lambda: lax.reduce({"x": x}, {"y": 0.0}, lambda a, b: a, [0]), "must have the same tree structure"),
    "sum": (lambda: jnp.sum(x, where=jnp.ones((2, 3), int)), "jnp.sum: where must be None or a boolean array"),
    "max": (lambda: jnp.max(x, where=jnp.ones((2, 3), int), initial=0), "where must be None or a boolean array"),
    "mean": (lambda: jnp.mean(x, where=jnp.ones((2, 3), int)), "where must be None or a boolean array"),
    "clip": (lambda: jnp.clip(jnp.ones(2) * 1j), "Complex values have no ordering and cannot be clipped"),
    "hypot": (lambda: jnp.hypot(1j, 1.0), "jnp.hypot is not well defined for complex-valued inputs"),
    "arange": (lambda: jnp.arange(2j), "Passing complex start/stop/step to jnp.arange is no longer supported"),
    "stop": (lambda: jax.jit(jnp.arange)(3), "It arose in the jnp.arange argument 'stop'"),
    "start": (lambda: jax.jit(lambda n: jnp.arange(n, 3))(0), "It arose in the jnp.arange argument 'start'"),
    "mgrid": (lambda: jax.jit(lambda a: jnp.mgrid[a:3])(0), "slice start of jnp.mgrid"),
    "classes": (lambda: jax.jit(jax.nn.one_hot)(1, 3), "in jax.nn.one_hot argument `num_classes`"),
    "length": (lambda: jax.jit(lambda n: lax.scan(lambda c, x: (c, x), 0, None, n))(2), "The `length` argument to "),
    "zeros": (lambda: jax.jit(jnp.zeros)(3), "Shapes must be 1D sequences", "\\nIf using `jit`, try using `static"),
    "list": (lambda: x[[0, 1]], "Using a non-tuple sequence for multidimensional indexing", "arr[array(seq)]"),
    "at": (lambda: x.at[[0, 1]].set(0), "Using a non-tuple sequence for multidimensional indexing is not allowed"),
    "tensordot": (lambda: jnp.tensordot(x, x[0], 2), "Number of tensordot axes", "exceeds input ranks"),
    "lengths": (lambda: jnp.tensordot(x, x, ([0], [0, 1])), "tensordot requires axes lists to have equal length"),
    "vectorize": (lambda: jnp.vectorize(jnp.dot, signature="(k),(k)->()")(x, None), "Cannot pass None at locations"),
    "sizes": (lambda: jnp.vectorize(jnp.dot, signature="(n,m),(m,k)->(n,n)")(x, x.T[:, :1]), "inconsistent size for"),
    "excluded": (lambda: jnp.vectorize(jnp.dot, excluded={-1}), "excluded={-1} contains negative numbers"),
    "fftfreq": (lambda: jnp.fft.fftfreq([0, 1]), "The n argument of jax.numpy.fft.fftfreq only takes an int."),
    "seed": (lambda: jax.random.PRNGKey(np.arange(4)), "PRNGKey accepts a scalar seed"),
    "seed of a key": (lambda: jax.random.key(jax.random.key(0)), "key accepts a scalar seed"),
    "callable": (lambda: lax.fori_loop(0, 1, 42, 0), "lax.fori_loop", "callable"),
    "contains": (lambda: 1 in jnp.array(1), "Array.__contains__: search array must be one-dimensional"),
    "var": (lambda: jnp.var(x * 1j, dtype="float32"),),
    "correction": (lambda: jnp.var(x, ddof=1, correction=0),),
    "eight": (lambda: jnp.ones(2, "float8_e5m2") + x[0, 0], "8-bit floats do not support implicit promotion"),
}
for name, (call, *texts) in calls.items():
    out[name] = says(call, *texts), outcome(call)
out["a common dtype"] = issubclass(jax.dtypes.TypePromotionError, ValueError)
"""
    )


def test_keys_are_of_a_dtype_that_knows_its_name_and_size():
    both(
        """
for impl in ("threefry2x32", "rbg", "unsafe_rbg"):
    key = jax.random.key(7, impl=impl)
    keys = jax.random.split(key, 6).reshape(2, 3)
    dtype = key.dtype
    out[impl] = [
        str(dtype), dtype.name, dtype.itemsize, key.nbytes, keys.nbytes, dtype == keys.dtype,
        dtype == jax.random.key_dtype(impl), jax.random.key(7, dtype=impl).dtype == dtype,
        jax.random.key(7, dtype=dtype).dtype == dtype, str(jax.random.key_impl(key)),
        jnp.issubdtype(dtype, jax.dtypes.prng_key), jnp.issubdtype(dtype, np.generic), jnp.issubdtype(dtype, np.number),
        str(jax.eval_shape(lambda k: k.T, keys).dtype), shown(jax.random.key_data(jax.jit(lambda k: k[0])(keys))),
    ]
    try:
        jax.random.key(7, impl=impl, dtype=dtype)
    except ValueError as error:
        out[f"{impl}: both"] = "Cannot specify both `impl` and `dtype`" in str(error)
key = jax.random.key(1)
out["made"] = [shown(jax.random.key_data(f((2,), dtype=key.dtype))) for f in (jnp.zeros, jnp.ones)]
out["full"] = shown(jax.random.key_data(jnp.full((2,), 9, dtype=key.dtype)))
out["like"] = shown(jax.random.key_data(jnp.ones_like(jax.random.split(key))))
out["close"] = bool(jnp.isclose(key, key))
out["dtypes differ"] = jax.random.key(0, impl="rbg").dtype == key.dtype
"""
    )


def test_options_about_keys_indices_and_wide_dtypes():
    both(
        """
from jax._src import config
def raises(f):
    try:
        return shown(f())
    except Exception as error:
        return "an IndexError" if isinstance(error, IndexError) else isinstance(error, ValueError)
key = jax.random.PRNGKey(0)
with config.random_seed_offset(3):
    out["offset"] = shown(jax.random.key_data(jax.random.key(4))), shown(jax.random.PRNGKey(4))
for level in ("allow", "warn", "error"):
    with jax.legacy_prng_key(level), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        out[level] = [raises(lambda: jax.random.uniform(key)), len(told) > 0]
        out[f"{level}: typed"] = shown(jax.random.uniform(jax.random.key(0)))
x = jnp.arange(6.0).reshape(2, 3)
indices = [5, -3, (0, 7), (slice(None), 4), (..., -4), (None, 2), (np.arange(2), 9), (1, 2), (slice(0, 9), 1), -1]
for on in (False, True):
    with config.check_static_indices(on):
        for index in indices:
            for name, f in {"eager": lambda: x[index], "jit": lambda: jax.jit(lambda x: x[index])(x),
                            "get": lambda: x.at[index].get()}.items():
                found = raises(f)
                out[f"{on} {index} {name}"] = found if found is False or found == "an IndexError" else "a value"
for mode in (config.ExplicitX64Mode.WARN, config.ExplicitX64Mode.ERROR, config.ExplicitX64Mode.ALLOW):
    with config.explicit_x64_dtypes(mode):
        for dtype in ("int64", "uint64", "float64", "complex128", "int32", "float32"):
            try:
                out[f"{mode.name} {dtype}"] = str(jnp.array(1, dtype).dtype), str(jnp.zeros(2, dtype).dtype)
            except ValueError as error:
                out[f"{mode.name} {dtype}"] = "Explicitly requested dtype" in str(error)
        out[f"{mode.name}"] = str(jnp.array(1).dtype), str(jnp.array(1.5).dtype), str(jnp.ones(1).dtype)
"""
    )


def test_complex_numbers_are_ordered_by_their_parts():
    both(
        """
rng = np.random.default_rng(0)
z = np.array([a + 1j * b for a in (-1.0, 0.0, 2.0) for b in (-2.0, 0.0, 1.0)], "complex64")
x, y = np.meshgrid(z, z)
for name in "less less_equal greater greater_equal maximum minimum fmax fmin".split():
    found = getattr(jnp, name)(x, y)
    if name not in ("fmax", "fmin"):
        np.testing.assert_array_equal(found, getattr(np, name)(x, y))
    out[name] = shown(found), str(found.dtype), shown(getattr(jnp, name)(x, 1.0))
for name in ("lt", "le", "gt", "ge"):
    compared = getattr(__import__("operator"), name)
    array = jnp.asarray(x)
    np.testing.assert_array_equal(compared(array, y), compared(x, y))
    found = compared(array, 1.0), compared(0.5, array), jax.jit(compared)(array, y), jax.vmap(compared)(array, y)
    out[f"operator {name}"] = [shown(f) for f in found]
    try:
        getattr(jax.lax, name)(array, array)
    except TypeError:
        out[f"lax.{name}"] = "refused"
ordered = np.sort(z)
for side in ("left", "right"):
    found = jnp.searchsorted(ordered, z, side=side)
    np.testing.assert_array_equal(found, np.searchsorted(ordered, z, side=side))
    out[side] = shown(found)
out["gradient"] = shown(jax.grad(lambda a: jnp.real(jnp.maximum(a * (1 + 2j), 3 + 1j)))(4.0))
"""
    )


def test_what_libraries_ask_of_arrays_keys_and_functions():
    """device_get of keys and traced values, shardings of types, the name of the class of jitted functions, generators
    of a program's own, keys that are chosen and set."""
    both(
        """
keys = jax.random.split(jax.random.key(0), 3)
for impl in ("threefry2x32", "rbg"):
    some = jax.random.split(jax.random.key(0, impl=impl), 4)
    got = jax.device_get({"keys": some, "x": jnp.ones(2)})
    out[f"{impl} got"] = shown(jax.random.key_data(got["keys"])), type(got["x"]).__name__
    out[f"{impl} filled"] = shown(jax.random.key_data(some.at[9].get(mode="fill")))
    out[f"{impl} set"] = shown(jax.random.key_data(some.at[1:3].set(jax.random.key(7, impl=impl))))
out["traced"] = shown(jax.vmap(jax.grad(lambda x: jnp.sin(jax.device_get(x))))(jnp.ones(3)))
out["shardings"] = [
    (jax.typeof(x).sharding.is_fully_replicated, shown(tuple(jax.typeof(x).sharding.spec)))
    for x in (jnp.ones((2, 3)), np.ones(2), 1.0, jax.device_put(jnp.ones(2), jax.devices()[0]))
]

@jax.tree_util.register_pytree_node_class
class Container:  # as distrax and others have it: what is no array is no leaf
    def __init__(self, **fields):
        self.fields = fields
    def tree_flatten(self):
        names = sorted(self.fields)
        values = [self.fields[n] for n in names]
        data = [type(v) is object or isinstance(v, (jax.Array, jax.core.Tracer)) for v in values]
        rest = [None if d else v for v, d in zip(values, data)]
        return [v if d else None for v, d in zip(values, data)], (names, data, rest)
    @classmethod
    def tree_unflatten(cls, aux, children):
        names, data, rest = aux
        return cls(**{n: c if d else r for n, c, d, r in zip(names, children, data, rest)})

x = jnp.arange(6.0).reshape(2, 3)
made = jax.vmap(lambda row: Container(a=row * 2, b=3, c=row.sum()))(x)
out["container"] = shown(made.fields["a"]), made.fields["b"], shown(made.fields["c"])
out["taken"] = shown(jax.vmap(lambda c: c.fields["a"] + c.fields["b"])(made))
out["mapped"] = shown(jax.vmap(lambda c: c.fields["c"], in_axes=(0,), out_axes=0)(made))
out["jitted"] = shown(jax.jit(lambda c: Container(d=c.fields["a"], e="text"))(made).fields["d"])
out["segments"] = [
    shown(f(jnp.float32(2.5), jnp.array([0, 1, 1]), 3)) for f in (jax.ops.segment_max, jax.ops.segment_sum)
], shown(jax.ops.segment_sum(jnp.ones((1, 2)), jnp.array([0, 1, 1]), 3))

class Called:
    def __init__(self):
        self.tag = 5
    def __call__(self, x):
        return x * 2.0

def plain(x):
    return x * 2.0

plain.tag = 7
for name in "vmap grad value_and_grad jacfwd jacrev hessian jit checkpoint custom_jvp custom_vjp".split():
    out[f"attributes {name}"] = [getattr(getattr(jax, name)(f), "tag", None) for f in (Called(), plain)]
out["class"] = type(jax.jit(lambda x: x)).__name__ == "PjitFunction", "PjitFunction" in str(type(jax.jit(lambda x: x)))

from jax._src.random import prng, threefry2x32

def doubled(f):
    return lambda key, *more: jnp.stack([f(key[0], *more), f(key[1], *more)])

own = prng.PRNGImpl(
    key_shape=(2, 2),
    seed=lambda seed: jnp.stack([threefry2x32.threefry_seed(seed), threefry2x32.threefry_seed(seed ^ 3)]),
    split=lambda key, shape: jax.vmap(threefry2x32.threefry_split, (0, None), len(shape))(key, shape),
    random_bits=lambda key, width, shape: threefry2x32.threefry_random_bits(key[1], width, shape),
    fold_in=doubled(threefry2x32.threefry_fold_in),
    tag="own",
)
key = prng.random_seed(5, impl=own)
out["own"] = [
    key.shape, str(key.dtype), shown(jax.random.uniform(key, (3,))), shown(jax.random.normal(jax.random.split(key)[1])),
    shown(jax.random.bits(jax.random.fold_in(key, 9), (2,))), jax.random.split(key, (2, 3)).shape,
    shown(jax.vmap(lambda k: jax.random.randint(k, (), 0, 100))(jax.random.split(key, 4))), key._impl is own,
    shown(jax.jit(lambda k: jax.random.permutation(k, 5))(key)),
]
"""
    )


def test_one_key_beside_several():
    both(
        """
        with jax.numpy_rank_promotion("raise"):
            for impl in ("rbg", "threefry2x32"):
                key = jax.random.key(0, impl=impl)
                keys = jax.random.split(key, 3)
                out[impl] = [x.tolist() for x in (key == keys, keys == key, keys != key, keys == keys, keys == keys[1])]
        """
    )


def test_dtypes_of_the_array_api():
    both(
        """
        for x64 in (False, True):
            with jax.enable_x64(x64):
                info = jnp.__array_namespace_info__()
                kinds = (None, "bool", "integral", ("real floating", "complex floating"))
                out[str(x64)] = [{name: str(d) for name, d in info.dtypes(kind=kind).items()} for kind in kinds]
        """
    )


def test_shapes_and_types_of_lax_that_jax_takes_or_refuses():
    both(
        OUTCOME
        + """
x = jnp.arange(6.0).reshape(3, 2)
out["any order"] = shown(lax.broadcast_in_dim(x, (2, 3, 4), (1, 0)))
out["no such"] = says(lambda: lax.broadcast_in_dim(x[0], (2, 3), (2,)), "must be a subset of output dimensions")
weak = lambda f: bool(f.weak_type)
out["weak"] = [weak(lax.real(1j)), weak(lax.imag(1j)), weak(lax.is_finite(1.0)), weak(lax.real(x * 1j))]
one = lambda weak: lax.full_like(jnp.asarray(1), 1) if not weak else jnp.asarray(1)
out["sums"] = [weak(lax.reduce(jnp.asarray(3) + jnp.zeros(2, int), i, lax.add, (0,))) for i in (1, np.int32(1))]
out["wraps"] = [int(lax.convert_element_type(2**32 + 5, "int32")), int(lax.convert_element_type(200, "int8"))]
image, kernel = jnp.ones((1, 1, 4)), jnp.ones((1, 1, 2))
out["ranks"] = outcome(lambda: lax.conv_general_dilated(image, kernel[0], (1,), "VALID"))
out["padding"] = outcome(lambda: lax.conv_general_dilated(image, kernel, (1,), (3, 3)))
"""
    )


def test_rbg_under_vmap():
    # JAX draws what mapped keys give from the first of them.
    both(
        """
for impl in ("rbg", "unsafe_rbg"):
    keys = jax.random.split(jax.random.key(3, impl=impl), 3)
    out[impl] = [jax.vmap(jax.random.bits)(keys).tolist(), jax.random.bits(keys[1], (2,)).tolist()]
    out[impl] += [jax.random.key_data(jax.vmap(jax.random.split)(keys)).tolist()]
"""
    )


def test_numpy_refuses_what_jax_refuses():
    """Lists in products of arrays, diagonals beyond the integers, a number for random.choice's shape, sums of 16 bits
    where an option says that there are none."""
    refused = both(
        """
        x = jnp.ones(3)
        half = jnp.ones(3, "bfloat16")

        def kind(f):
            try:
                f()
            except (OverflowError, TypeError, ValueError) as error:
                return "too large" if isinstance(error, OverflowError) else "an error of arguments"

        products = ["cross", "dot", "inner", "kron", "matmul", "outer", "vdot"]
        out["lists"] = [kind(lambda f=getattr(jnp, name): f([1.0, 2.0, 3.0], x)) for name in products]
        out["second"] = [kind(lambda f=getattr(jnp, name): f(x, (1.0, 2.0, 3.0))) for name in products]
        out["tensordot"] = kind(lambda: jnp.tensordot([1.0, 2.0, 3.0], x, 1))
        out["diagonals"] = [kind(lambda k=k: jnp.tri(3, k=k)) for k in (2**40, -(2**40), 2, 2**31 - 1)]
        out["of arrays"] = [kind(lambda f=f: f(jnp.ones((2, 2)), k=2**40)) for f in (jnp.tril, jnp.triu)]
        key = jax.random.key(0)
        out["choice"] = [kind(lambda s=s: jax.random.choice(key, 5, s)) for s in (2, (2,), [2])]
        with jax.allow_f16_reductions(False):
            out["sums"] = [
                kind(lambda a=a: jax.lax.reduce_sum(a, [0])) for a in (x, half, half[None], half.astype("float16"))
            ]
        out["allowed"] = kind(lambda: jax.lax.reduce_sum(half, [0]))
        """
    )
    assert refused["lists"] == ["an error of arguments"] * 7 and refused["allowed"] is None


def test_masked_arrays_and_whole_powers():
    both(
        """
        out["unmasked"] = jnp.array(np.ma.array([1, 2], mask=[True, False])).tolist()
        whole = [2, np.int32(3), jnp.int32(2), np.array(4)]
        names = lambda f, x: [e.primitive.name for e in jax.make_jaxpr(f)(x).eqns]
        out["powers"] = [names(lambda x, p=p: jnp.power(x, p), 2.0) for p in whole]
        out["values"] = [float(jax.jit(lambda x, p=p: jnp.power(x, p))(1.5)) for p in [*whole, -2, 0, 0.5, 2.0]]
        bases = [jnp.arange(3, dtype="int8"), jnp.ones(2, bool), jnp.ones(2, "bfloat16"), 2, 2.0]
        run = [lambda f: f, jax.jit]
        results = [wrap(lambda p=p: jnp.power(x, p))() for x in bases for p in whole for wrap in run]
        out["dtypes"] = [[str(x.dtype), bool(x.weak_type)] for x in results]
        out["steps"] = names(lambda x: x + jnp.arange(1, 5), jnp.ones(4, int))
        """
    )


def test_dtypes_of_64_bits_that_become_32_bits_are_warned_of():
    """Where somebody asks for one, not where the package does, or where types are compared."""
    warned = both(
        """
        import warnings

        def times(f):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                f()
            return len({str(w.message)[:42] for w in seen if "Explicitly requested dtype" in str(w.message)})

        x, key, spec = jnp.ones(3), jax.random.key(0), jax.ShapeDtypeStruct((3,), np.float64)
        asked = {
            "zeros": lambda: jnp.zeros(3, "float64"), "empty": lambda: jnp.empty(2, dtype=np.int64),
            "array": lambda: jnp.array(3.0, dtype=np.float64), "astype": lambda: x.astype("float64"),
            "arange": lambda: jnp.arange(3, dtype="int64"), "scalar": lambda: jnp.float64(3),
            "convert": lambda: jax.lax.convert_element_type(x, np.float64),
            "uniform": lambda: jax.random.uniform(key, (3,), dtype=np.float64),
        }
        quiet = {
            "classes": lambda: (jnp.zeros(3, float), jnp.zeros(3, int)), "arrays": lambda: jnp.asarray(np.ones(3)),
            "mixed": lambda: x + np.ones(3), "jit": lambda: jax.jit(lambda a: a)(np.ones(3)),
            "text": lambda: jax.jit(lambda a: a + np.arange(3.0)).lower(x).as_text(),
            "types": lambda: jax.eval_shape(lambda a: a, spec), "info": lambda: jnp.finfo("float64"),
            "indices": lambda: x[np.array([1])], "promoted": lambda: jnp.promote_types("float64", "int32"),
        }
        out["asked"] = {name: times(f) for name, f in asked.items()}
        out["quiet"] = {name: times(f) for name, f in quiet.items()}
        """
    )
    assert set(warned["asked"].values()) == {1} and set(warned["quiet"].values()) == {0}


def test_lists_in_place_of_arrays():
    refused = both(
        """
        def kind(f, x):
            try:
                f(x)
            except TypeError as error:
                return "requires ndarray or scalar arguments" in str(error)

        names = ["sum", "prod", "max", "mean", "median", "any", "argmin", "cumsum", "nanmax", "sort", "ravel", "flip"]
        for name in names:
            f = getattr(jnp, name)
            out[name] = [kind(f, x) for x in ([1.0, 2.0], (1, 2), [jnp.ones(2)], np.ones(2), jnp.ones(2))]
        taken = ["array", "stack", "hstack", "lexsort", "ndim", "shape"]
        out["taken"] = [kind(getattr(jnp, name), [jnp.ones(2), jnp.ones(2)]) for name in taken]
        """
    )
    assert refused["sum"] == [True, True, True, None, None]


def test_functions_of_piecewise_are_traced_once():
    found = both(
        """
        traced = []
        def negative(x):
            traced.append(1)
            return -x
        tenfold = lambda v: v * 10
        x = jnp.array([-2.0, 3.0, 0.5])
        for _ in range(3):
            out["pieces"] = jnp.piecewise(x, [x < 0, x > 1], [negative, 7, tenfold]).tolist()
            negative_again = jnp.piecewise(x, [x < 0], [negative]).tolist()
        out["again"], out["traced"] = negative_again, len(traced)
        more = jnp.piecewise(x, jnp.stack([x < 0, x > 1]), [1, lambda v, k: v + k, 0], 3.0)
        out["more"] = more.tolist()
        out["slope"] = jax.grad(lambda x: jnp.piecewise(x, [x < 0], [negative, lambda v: v * v]).sum())(x).tolist()
        """
    )
    assert found["pieces"] == [2.0, 7.0, 5.0]


def test_arguments_by_position():
    both(
        OUTCOME
        + """
x = jnp.arange(12.0).reshape(3, 4)
for name in ("percentile", "quantile", "nanpercentile", "nanquantile"):
    out[name] = getattr(jnp, name)(x, 0.5, 0, None, False, "linear", True).tolist()
for name in ("median", "nanmedian"):
    out[name] = getattr(jnp, name)(x, 0, None, False, True).tolist()
out["ptp"], out["stack"] = jnp.ptp(x, 0, None, True).tolist(), str(jnp.stack([x, x], 1, None, "int32").dtype)
out["round"] = [f(x / 8, 0, None).tolist() for f in (jnp.round, jnp.around)]
out["outer"], out["signs"] = jnp.outer(x, x, None).shape, [jnp.isneginf(x, None).tolist(), jnp.isposinf(x, None).shape]
out["refused"] = [outcome(jnp.ptp, x, 0, None, True, 5), outcome(jnp.median, x, 0, None, False, True, keepdims=True)]
"""
    )
