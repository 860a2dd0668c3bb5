"""Everything of jax.random and jax.nn.initializers beside Weft: equal keys give equal numbers, whoever made the
parameters (Python, NumPy in 32 or 64 bits, Weft)."""

import inspect

import ml_dtypes  # noqa: F401  # NumPy knows bfloat16 by its name then
import numpy as np
import pytest

import weft
import weft.numpy as wnp

jax = pytest.importorskip("jax")

# What jax.random has and Weft has not, and why.
LACKING = {
    "random_gamma_p": "a primitive of JAX; Weft's gamma numbers are programs of other operations",
}
# What is tested for itself: keys.
OF_KEYS = {"PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split", "wrap_key_data"}

RATES = np.float32([0.05, 0.3, 1.0, 1.7, 5.5, 30.0])
CHANCES = np.float32([0.1, 0.5, 0.6, 0.9, 0.01, 0.99])
LOGITS = np.log(np.float32([[0.1, 0.2, 0.7], [0.4, 0.4, 0.2]]))
COV = np.float32([[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 1.5]])
FLOATS = ("float32", "float16", "bfloat16")
INTEGERS = ("int32", "int8", "uint8", "uint16")

# Sampler -> calls: arguments after the key, keywords, dtypes. Arrays and floats among the arguments are given in every
# kind.
CALLS = {
    "ball": [((3,), {"shape": (5,)}, FLOATS), ((2, 1.5), {"shape": (5,)}, FLOATS[:1])],
    "bernoulli": [((CHANCES,), {}, [None]), ((0.3,), {"shape": (40,)}, [None]), ((CHANCES,), {"mode": "high"}, [None])],
    "beta": [((RATES, 2.5), {}, FLOATS)],
    "binomial": [((20, CHANCES), {"shape": (7, 6)}, FLOATS[:1]), ((200.0, CHANCES), {"shape": (7, 6)}, FLOATS[:1])],
    "bits": [((), {"shape": (9,)}, ("uint8", "uint16", "uint32"))],
    "categorical": [
        ((LOGITS,), {}, [None]),
        ((LOGITS,), {"axis": 0, "shape": (4, 3)}, [None]),
        ((LOGITS,), {"shape": (2, 2), "replace": False}, [None]),
        ((LOGITS,), {"mode": "high"}, [None]),
    ],
    "cauchy": [((), {"shape": (30,)}, FLOATS)],
    "chisquare": [((RATES,), {}, FLOATS)],
    "choice": [
        ((10,), {"shape": (6,)}, [None]),
        ((3000,), {"shape": (7,), "replace": False}, [None]),
        ((3,), {"shape": (20,), "p": np.float32([0.2, 0.3, 0.5])}, [None]),
        ((4,), {"shape": (3,), "p": np.float32([0.2, 0.3, 0.4, 0.1]), "replace": False}, [None]),
        ((np.arange(12, dtype=np.int32).reshape(3, 4),), {"shape": (2,), "axis": 1}, [None]),
    ],
    "dirichlet": [((RATES,), {"shape": (3,)}, FLOATS)],
    "double_sided_maxwell": [((0.5, 2.0), {"shape": (5,)}, FLOATS), ((RATES, 2.0), {}, FLOATS[:1])],
    "exponential": [((), {"shape": (30,)}, FLOATS)],
    "f": [((3.5, 2.5), {"shape": (20,)}, FLOATS)],
    "gamma": [((RATES,), {"shape": (20, 6)}, FLOATS), ((2.5,), {"shape": (3, 2)}, FLOATS[:1])],
    "generalized_normal": [((RATES,), {"shape": (6,)}, FLOATS)],
    "geometric": [((CHANCES,), {"shape": (7, 6)}, ("int32", "int8"))],
    "gumbel": [((), {"shape": (30,)}, FLOATS), ((), {"shape": (30,), "mode": "high"}, FLOATS[:1])],
    "laplace": [((), {"shape": (30,)}, FLOATS)],
    "loggamma": [((RATES,), {"shape": (20, 6)}, FLOATS)],
    "logistic": [((), {"shape": (30,)}, FLOATS)],
    "lognormal": [((RATES,), {}, FLOATS)],
    "maxwell": [((), {"shape": (30,)}, FLOATS)],
    "multinomial": [((20, np.float32([[0.2, 0.3, 0.5], [0.0, 0.1, 0.9]])), {}, FLOATS[:1])],
    "multivariate_normal": [
        ((np.zeros(3, "float32"), COV), {"shape": (4,), "method": "cholesky"}, ["float32", None]),
        ((np.zeros(3, "float32"), COV), {"method": "eigh"}, [None]),
        ((np.zeros(3, "float32"), COV), {"method": "svd"}, [None]),
    ],
    "normal": [((), {"shape": (30,)}, (*FLOATS, "complex64"))],
    "orthogonal": [((n,), {"m": m, "shape": (2,)}, ("float32", "complex64")) for n, m in ((3, 3), (3, 5), (5, 3))],
    "pareto": [((RATES,), {}, FLOATS)],
    "permutation": [
        ((20,), {}, [None]),
        ((np.arange(12, dtype=np.int32).reshape(4, 3),), {"axis": 1}, [None]),
        ((np.arange(12, dtype=np.int32).reshape(4, 3),), {"independent": True}, [None]),
    ],
    "poisson": [((RATES,), {"shape": (20, 6)}, ("int32", "int16")), ((50.5,), {"shape": (20,)}, ["int32"])],
    "rademacher": [((), {"shape": (30,)}, ("int32", "int8", "float32"))],
    "randint": [(((30,), -3, 100), {}, ("int32", "int8", "int16")), (((30,), 3, 100), {}, INTEGERS)],
    "rayleigh": [((RATES,), {}, FLOATS)],
    "t": [((RATES,), {"shape": (6,)}, FLOATS)],
    "triangular": [((-1.0, 0.5, 3.0), {"shape": (30,)}, FLOATS[:1])],
    "truncated_normal": [((-1.0, 2.0), {"shape": (30,)}, FLOATS)],
    "uniform": [((), {"shape": (30,)}, FLOATS), ((), {"shape": (30,), "minval": -2.0, "maxval": 5.0}, FLOATS[:1])],
    "wald": [((RATES,), {"shape": (6,)}, FLOATS[:1])],
    "weibull_min": [((1.5, RATES), {"shape": (6,)}, FLOATS)],
}
# jax.random computes these by steps that lose digits, or that are rounded each in 16 bits: by how much they may
# differ, in eps of the dtype, where 32 are not enough.
LOOSE = {"wald": 2e4, "generalized_normal": 300.0}
LOOSE_IN_16_BITS = 400.0
EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 2.0**-52, "complex128": 2.0**-52}

KINDS = {
    "Python": lambda v: v,
    "NumPy": np.float32,
    "NumPy in 64 bits": np.float64,
    "Weft": lambda v: wnp.asarray(v, "float32"),
}


def in_kind(value, kind: str):
    if isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
        return KINDS[kind](value)
    return value


@pytest.fixture(autouse=True)
def partitionable():
    with jax.threefry_partitionable(True):
        yield


def compare(got, want, eps_many: float) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want)
        return
    eps = EPS.get(got.dtype.name, 2.0**-23)
    kind = np.complex128 if got.dtype.kind == "c" else np.float64

    np.testing.assert_allclose(got.astype(kind), want.astype(kind), rtol=eps_many * eps, atol=4 * eps)


def public(module) -> set[str]:
    return {n for n, v in vars(module).items() if not n.startswith("_") and not inspect.ismodule(v)}


def test_all_of_the_module_is_here():
    theirs = public(jax.random)
    assert theirs - public(weft.random) == set(LACKING)
    assert theirs - set(LACKING) - OF_KEYS == set(CALLS), "each sampler has its calls in the table"


@pytest.mark.parametrize("name", CALLS)
def test_the_numbers_of_jax(name):
    for number, (args, keywords, dtypes) in enumerate(CALLS[name]):
        for dtype in dtypes:
            more = keywords if dtype is None else {**keywords, "dtype": dtype}
            # JAX takes no parameters that are wider than the result.
            narrowed = [np.asarray(v).astype(dtype) if dtype and isinstance(v, np.ndarray) else v for v in args]
            if name in ("poisson", "geometric", "multivariate_normal", "binomial"):
                narrowed = args
            want = getattr(jax.random, name)(jax.random.key(number), *narrowed, **more)
            narrow = dtype in ("float16", "bfloat16")
            for kind in KINDS:
                given = [in_kind(v, kind) for v in args]
                named = {k: in_kind(v, kind) for k, v in more.items()}
                if kind != "Python" and not any(
                    a is not b for a, b in zip([*given, *named.values()], [*args, *more.values()])
                ):
                    continue
                got = getattr(weft.random, name)(weft.random.key(number), *given, **named)
                compare(got, want, LOOSE.get(name, LOOSE_IN_16_BITS if narrow else 32.0))


@pytest.mark.parametrize("name", ["gamma", "loggamma", "poisson", "binomial", "multinomial", "beta"])
def test_keys_of_words_and_transforms(name):
    args, keywords, _ = CALLS[name][0]
    draw = lambda key: getattr(weft.random, name)(key, *args, **keywords)
    want = np.asarray(draw(weft.random.key(5)))
    np.testing.assert_array_equal(draw(weft.random.PRNGKey(5)), want)
    np.testing.assert_allclose(weft.jit(draw)(weft.random.key(5)), want, rtol=1e-5)
    keys = weft.random.split(weft.random.key(5), 3)
    many = weft.jit(weft.vmap(draw))(keys)
    for key, numbers in zip(keys, many):
        np.testing.assert_allclose(numbers, draw(key), rtol=1e-5)


def test_multinomial_counts_add_up_and_have_their_means():
    p = np.float32([0.1, 0.2, 0.3, 0.4])
    counts = np.asarray(weft.random.multinomial(weft.random.key(0), 50, p, shape=(4000, 4)))
    np.testing.assert_array_equal(counts.sum(-1), 50)
    spread = np.sqrt(50 * p * (1 - p) / 4000)
    assert (abs(counts.mean(0) - 50 * p) < 5 * spread).all()


SHAPES = [(6, 4), (4, 6), (3, 6, 4)]
SCALING = [
    ("fan_in", "normal", {}),
    ("fan_out", "uniform", {"out_axis": 0}),
    ("fan_avg", "truncated_normal", {"in_axis": 0, "out_axis": 0}),
    ("fan_geo_avg", "normal", {"batch_axis": 0}),
    ("fan_in", "normal", {"out_axis": 0}),
    ("fan_in", "uniform", {"in_axis": 0, "out_axis": 0}),
    ("fan_avg", "truncated_normal", {"in_axis": (0, 1)}),
]
INITIALIZERS = {
    "constant": [lambda i, kind: i.constant(kind(3.0))],
    "delta_orthogonal": [lambda i, kind: i.delta_orthogonal(kind(2.0))],
    "normal": [lambda i, kind: i.normal(kind(0.3))],
    "ones": [lambda i, kind: i.ones],
    "orthogonal": [lambda i, kind: i.orthogonal(kind(0.5)), lambda i, kind: i.orthogonal(kind(2.0), 0)],
    "truncated_normal": [lambda i, kind: i.truncated_normal(kind(0.3))],
    "uniform": [lambda i, kind: i.uniform(kind(0.3))],
    "variance_scaling": [
        lambda i, kind, mode=mode, distribution=distribution, axes=axes: i.variance_scaling(
            kind(2.0), mode, distribution, **axes
        )
        for mode, distribution, axes in SCALING
    ],
    "zeros": [lambda i, kind: i.zeros],
    **{
        f"{who}_{what}": [lambda i, kind, name=f"{who}_{what}": getattr(i, name)()]
        for who in ("glorot", "he", "kaiming", "lecun", "xavier")
        for what in ("normal", "uniform")
    },
}


def test_all_initializers_are_here():
    theirs = public(jax.nn.initializers) - {"Initializer"}  # a protocol for annotations
    assert theirs == set(INITIALIZERS) and theirs <= public(weft.nn.initializers)


def supported(make, dtype) -> bool:
    """Whether JAX makes such weights."""
    try:
        make(jax.nn.initializers, float)(jax.random.key(1), (3, 4, 4), dtype)
    except Exception:
        return False
    return True


@pytest.mark.parametrize("name", INITIALIZERS)
def test_the_weights_of_jax(name):
    for make in INITIALIZERS[name]:
        for dtype in ("float32", "float16", "bfloat16", "complex64", None):
            for shape in SHAPES:
                if name == "delta_orthogonal" and (len(shape) < 3 or shape[-1] < shape[-2]):
                    shape = (3, 4, 4)
                if not supported(make, dtype):
                    with pytest.raises(Exception) as refused:  # by JAX, and so here
                        make(weft.nn.initializers, float)(weft.random.key(1), shape, dtype)
                    assert isinstance(refused.value, (TypeError, ValueError, NotImplementedError))
                    continue
                want = make(jax.nn.initializers, float)(jax.random.key(1), shape, dtype)
                for kind in (float, np.float32, np.float64):
                    got = make(weft.nn.initializers, kind)(weft.random.key(1), shape, dtype)
                    got, want = np.asarray(got), np.asarray(want)
                    assert (got.dtype, got.shape) == (want.dtype, want.shape)
                    wide = np.complex128
                    eps = EPS.get(want.dtype.name, 2.0**-23)
                    largest = max(abs(want.astype(wide)).max(), 1e-9)
                    np.testing.assert_allclose(
                        got.astype(wide), want.astype(wide), rtol=16 * eps, atol=16 * eps * largest
                    )


def test_variance_scaling_of_a_vector_whose_axis_is_both():
    init = lambda lib: lib.nn.initializers.variance_scaling(1.0, "fan_in", "normal", in_axis=0, out_axis=0)
    np.testing.assert_allclose(
        init(weft)(weft.random.key(0), (5,)), np.asarray(init(jax)(jax.random.key(0), (5,))), rtol=1e-6
    )
    with pytest.raises(ValueError, match="two dimensions"):
        weft.nn.initializers.variance_scaling(1.0, "fan_in", "normal")(weft.random.key(0), (5,))
