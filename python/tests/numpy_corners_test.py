"""Corners of NumPy's functions: ufuncs' methods, bits as other dtypes, directives of r_ and c_, functions in pad, what
polyfit knows, places that are traced; against NumPy, SciPy and JAX."""

import functools

import numpy as np
import pytest

import weft
import weft.numpy as wnp

jax = pytest.importorskip("jax")

UFUNCS = [
    "add",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "subtract",
]
BINARY = [name for name in UFUNCS if name != "negative"]


def numbers(name, shape, seed=0):
    """Of a dtype that the function takes."""
    kind = "int32" if name.startswith("bitwise") else "float32"
    return (np.random.default_rng(seed).standard_normal(shape) * 4).astype(kind)


def close(mine, theirs):
    theirs = np.asarray(theirs)
    assert np.shape(mine) == theirs.shape
    np.testing.assert_allclose(np.asarray(mine, theirs.dtype), theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", UFUNCS)
def test_functions_that_are_ufuncs(name):
    mine, theirs = getattr(wnp, name), getattr(np, name)
    assert isinstance(mine, wnp.ufunc)
    assert (mine.nin, mine.nout, mine.nargs) == (theirs.nin, theirs.nout, theirs.nargs - 1)
    assert mine.identity == getattr(jax.numpy, name).identity


def test_functions_that_are_none():
    for name in ("sin", "sum", "where", "power"):
        assert not isinstance(getattr(wnp, name), wnp.ufunc)
    with pytest.raises(AttributeError, match="'sin' is no ufunc"):
        _ = wnp.sin.reduce


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("transform", ["none", "jit"])
def test_methods_of_ufuncs(name, transform):
    mine, theirs = getattr(wnp, name), getattr(np, name)
    run = weft.jit if transform == "jit" else lambda f: f
    x, y = numbers(name, (4, 3)), numbers(name, (2,), 1)
    whole = name not in ("subtract",)
    for axis in (0, -1, *((None, (0, 1)) if whole else ())):
        for keepdims in (False, True):
            close(
                run(lambda x, axis=axis, keepdims=keepdims: mine.reduce(x, axis, keepdims=keepdims))(x),
                theirs.reduce(x, axis, keepdims=keepdims),
            )
    if mine.identity is not None:
        mask = x > 0
        close(run(lambda x: mine.reduce(x, 1, where=x > 0))(x), theirs.reduce(x, 1, where=mask))
    close(run(lambda x: mine.reduce(x, 0, initial=2))(x), theirs.reduce(x, 0, initial=2))
    close(run(lambda x: mine.accumulate(x, 1))(x), theirs.accumulate(x, 1).astype(x.dtype))
    close(run(mine.outer)(x, y), theirs.outer(x, y))
    close(run(lambda x: mine.reduceat(x, np.array([0, 2, 1])))(x), theirs.reduceat(x, [0, 2, 1]).astype(x.dtype))
    changed = x.copy()
    theirs.at(changed, [0, 2, 0], y[0])
    close(run(lambda x: mine.at(x, wnp.array([0, 2, 0]), y[0], inplace=False))(x), changed)


def test_negative_has_at():
    x = wnp.arange(4.0)
    assert wnp.negative.at(x, wnp.array([1, 3]), inplace=False).tolist() == [0.0, -1.0, 2.0, -3.0]


DTYPES = [
    "bool",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "uint32",
    "int32",
    "uint64",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("own", DTYPES)
def test_bits_as_other_dtypes(own):
    raw = np.random.default_rng(0).integers(0, 255, 64).astype(np.uint8)
    x = (raw % 2 if own == "bool" else raw).view(own).reshape(2, -1)
    for to in DTYPES[1:]:
        seen = np.asarray(wnp.asarray(x).view(to))
        assert seen.dtype == to and seen.shape == x.view(to).shape and seen.tobytes() == x.view(to).tobytes(), to
        back = np.asarray(wnp.asarray(seen).view(own)) if own != "bool" else x
        assert back.tobytes() == x.tobytes(), to
    assert np.asarray(wnp.asarray(x).byteswap()).tobytes() == x.byteswap().tobytes()


@pytest.mark.parametrize("own", [name for name in DTYPES if name[0] in "uif"])
def test_bits_along_an_axis(own):
    raw = np.random.default_rng(0).integers(0, 255, 64).astype(np.uint8).view(own)
    with jax.enable_x64(True):
        for to in (name for name in DTYPES if name[0] in "uif"):
            ratio = np.dtype(to).itemsize // np.dtype(own).itemsize
            x = raw.reshape(-1, ratio) if ratio > 1 else raw
            theirs = np.asarray(jax.lax.bitcast_convert_type(x, to))
            mine = np.asarray(weft.jit(functools.partial(weft.lax.bitcast_convert_type, new_dtype=to))(x))
            assert mine.shape == theirs.shape and mine.tobytes() == theirs.tobytes(), to


def test_bits_that_do_not_fit():
    with pytest.raises(TypeError, match="4 elements of uint8 make one of float32"):
        weft.lax.bitcast_convert_type(wnp.zeros(3, "uint8"), "float32")
    with pytest.raises(ValueError, match="must be a multiple"):
        wnp.zeros(3, "uint8").view("uint32")
    with pytest.raises(ValueError, match="a number of 32 bits cannot be seen as int8"):
        wnp.float32(1).view("int8")


DIRECTIVES = ["0", "-1", "1,2", "0,2", "0,2,0", "1,2,0", "0,3,1", "0,4,-1", "0,4,-2", "r", "c"]


@pytest.mark.parametrize("directive", DIRECTIVES)
@pytest.mark.parametrize("name", ["r_", "c_"])
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_directives(name, directive):
    square = np.arange(6).reshape(2, 3)
    for parts in (([1, 2, 3], [4, 5, 6]), (square, square)):
        try:
            theirs = np.asarray(getattr(np, name)[(directive, *parts)])
        except ValueError:
            with pytest.raises((ValueError, TypeError, IndexError)):
                getattr(wnp, name)[(directive, *map(wnp.array, parts))]
        else:
            np.testing.assert_array_equal(getattr(wnp, name)[(directive, *map(wnp.array, parts))], theirs)
    with pytest.raises(ValueError, match="could not understand directive 'nonsense'"):
        getattr(wnp, name)["nonsense", wnp.ones(2)]


@pytest.mark.parametrize("columns", [(), (3,)])
@pytest.mark.parametrize("weights", [False, True])
def test_what_polyfit_knows(columns, weights):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(9), rng.standard_normal((9, *columns))
    more = {"w": rng.uniform(1, 2, 9)} if weights else {}
    for kind in ({"cov": True}, {"cov": "unscaled"}):
        for mine, theirs in zip(wnp.polyfit(x, y, 2, **kind, **more), np.polyfit(x, y, 2, **kind, **more)):
            if theirs.ndim == 2 and columns and kind["cov"] == "unscaled" and mine.ndim == 3:
                mine = mine[:, :, 0]
            np.testing.assert_allclose(mine, theirs, rtol=1e-9)
    for mine, theirs in zip(wnp.polyfit(x, y, 2, full=True, **more), np.polyfit(x, y, 2, full=True, **more)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)
    with pytest.raises(ValueError, match="must exceed order"):
        wnp.polyfit(x[:3], y[:3], 2, cov=True)


def test_leading_zeros_of_polynomials():
    a, b = np.array([0.0, 0.0, 1.0, 2.0]), np.array([0.0, 1.0, 3.0])
    np.testing.assert_array_equal(wnp.polymul(a, b, trim_leading_zeros=True), np.polymul(a, b))
    for u, v in (([2.0, 3.0, 1.0], [1.0, 1.0]), ([1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 1.0]), ([1.0, 0.5], [1.0, 2.0, 3.0])):
        for mine, theirs in zip(wnp.polydiv(np.array(u), np.array(v), trim_leading_zeros=True), np.polydiv(u, v)):
            np.testing.assert_allclose(mine, theirs)
    with pytest.raises(weft.TracerError):
        weft.jit(lambda x: wnp.polymul(x, x, trim_leading_zeros=True))(a)


def test_functions_in_pad():
    def theirs(vector, width, axis, kwargs):
        value = kwargs.get("padder", 10) + axis
        vector[: width[0]], vector[-width[1] :] = value, value

    def mine(vector, width, axis, kwargs):
        value = kwargs.get("padder", 10) + axis
        return vector.at[: width[0]].set(value).at[-width[1] :].set(value)

    for shape, width, more in (((2, 3), 2, {}), ((2, 3, 4), ((1, 2), (3, 1), (1, 1)), {"padder": 100})):
        x = np.arange(np.prod(shape)).reshape(shape)
        np.testing.assert_array_equal(wnp.pad(wnp.array(x), width, mine, **more), np.pad(x, width, theirs, **more))


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_pad_with_traced_numbers(dtype):
    x = np.ones((2, 2), dtype)
    for values in (lambda s: s, lambda s: [s, s + 1], lambda s: (s, 5), lambda s: ((s, s + 1), (0, s))):
        got = weft.jit(lambda s, values=values: wnp.pad(wnp.array(x), 1, constant_values=values(s)))(2.0)
        np.testing.assert_array_equal(got, np.pad(x, 1, constant_values=values(2)))


def test_places_that_are_traced():
    x = np.arange(12).reshape(3, 4)
    for axis in (None, 0, 1):
        for place in ([0], [1, -1], [1, 0]):
            delete = weft.jit(functools.partial(wnp.delete, axis=axis, assume_unique_indices=True))
            np.testing.assert_array_equal(delete(x, np.array(place)), np.delete(x, place, axis))
        for place in (0, 2, -1):
            np.testing.assert_array_equal(
                weft.jit(functools.partial(wnp.insert, values=7, axis=axis))(x, place), np.insert(x, place, 7, axis)
            )
            np.testing.assert_array_equal(
                weft.jit(functools.partial(wnp.delete, axis=axis))(x, place), np.delete(x, place, axis)
            )
    for k in (-9, -1, 0, 2, 9):
        for name in ("eye", "tri"):
            np.testing.assert_array_equal(
                weft.jit(functools.partial(getattr(wnp, name), 3, 4))(k), getattr(np, name)(3, 4, k)
            )
        for name in ("tril", "triu"):
            np.testing.assert_array_equal(weft.jit(getattr(wnp, name))(x, k), getattr(np, name)(x, k))
    with pytest.raises(TypeError, match="eye: k must be an integer"):
        weft.jit(lambda k: wnp.eye(3, k=k))(1.5)


def test_small_arguments():
    x = wnp.ones((2, 3, 4))
    assert (wnp.size(x, (0, -1)), wnp.size(x, ())) == (8, 1)
    with pytest.raises(ValueError, match="repeated axis"):
        wnp.size(x, (1, -2))
    assert wnp.argsort(wnp.array([3.0, 1.0, 2.0]), dtype="int16").dtype == "int16"
    with pytest.raises(TypeError, match="argsort: dtype"):
        wnp.argsort(wnp.ones(2), dtype="float32")
    xp, fp = wnp.array([1.0, 2.0, 4.0]), wnp.array([10.0, 20.0, 30.0])
    ends = wnp.interp(wnp.array([0.0, 3.0, 6.0]), xp, fp, left="extrapolate", right="extrapolate")
    assert ends.tolist() == [0.0, 25.0, 40.0]
    assert wnp.interp(wnp.array([0.0, 6.0]), xp, fp, left="extrapolate").tolist() == [0.0, 30.0]
    with pytest.raises(ValueError, match="'extrapolate'"):
        wnp.interp(1.0, xp, fp, left="nearest")
    assert not wnp.iscomplexobj(None) and wnp.iscomplexobj(1j) and wnp.iscomplexobj([1j])
    assert weft.nn.log_softmax(wnp.ones(3), where=wnp.zeros(3, bool)).tolist() == [-np.inf] * 3
    for shape in ((3, 0), (0, 3), (0, 0)):
        assert weft.nn.initializers.orthogonal()(weft.random.key(0), shape).shape == shape


class HasShape:
    """What says its shape and dtype, and cannot be an array."""

    shape, dtype = (2, 3), np.dtype("int8")

    def __jax_array__(self):
        raise ValueError("asked for its elements")


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like"])
def test_arrays_like_what_has_a_shape(name):
    like = getattr(wnp, name)(HasShape())
    assert like.shape == (2, 3) and like.dtype == "int8"


@pytest.mark.parametrize("method", ["bicubic-pytorch", "area", "cubic", "lanczos3", "linear"])
@pytest.mark.parametrize("antialias", [True, False])
def test_images_of_other_sizes(method, antialias):
    for rows in (1, 5):
        x = np.random.default_rng(0).standard_normal((rows, 3)).astype(np.float32)
        for new in ((2, 3), (9, 7), (13, 1)):
            mine, theirs = (m.image.resize(x, new, method, antialias=antialias) for m in (weft, jax))
            np.testing.assert_allclose(mine, theirs, atol=2e-6)
    with pytest.raises(TypeError):
        weft.image.resize(x, [10.5, 3], method)


def test_the_finest_gumbel_numbers():
    mine, theirs = (np.asarray(m.random.gumbel(m.random.key(3), (5000,), mode="highest")) for m in (weft, jax))
    np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_special_values_of_special_functions():
    special = pytest.importorskip("scipy.special")
    mine = weft.scipy.special
    for at in (
        (0, 1, 1, 1),
        (1, 0, 1, 1),
        (2, 1, 5, 1),
        (1, 1, 4, 1),
        (0.3, 0.2, 1.5, 1),
        (2, 1, 3.5, 1),
        (1, 1, 2, 1),
        (0.45, 0.7, 0.45, 1.5),
        (-2, 0.7, 1.4, 4),
        (0.5, -2, 3, 1),
        (-2, 3, 1.5, 0.95),
    ):
        np.testing.assert_allclose(mine.hyp2f1(*map(float, at)), special.hyp2f1(*at), rtol=1e-6, err_msg=str(at))
    for n in (0, 1, 5):
        for k in (0, 1, 2, 7):
            for repetition in (False, True):
                np.testing.assert_allclose(
                    mine.comb(float(n), float(k), repetition=repetition), special.comb(n, k, repetition=repetition)
                )


# --- Options look at the user's operations ----------------------------------------------------------------------------


def test_options_do_not_look_inside_of_functions():
    with weft.numpy_dtype_promotion("strict"):
        wnp.modf(wnp.array([1, 2], "uint32"))
        wnp.signbit(wnp.array([True]))
        wnp.sign(wnp.array([1j]))
        wnp.unique(wnp.array([3, 1]))
        for function in (lambda x, y: x + y, lambda x, y: wnp.arctan2(x, y), lambda *xs: wnp.concatenate(xs)):
            for run in (lambda f: f, weft.jit):
                with pytest.raises(weft.errors.TypePromotionError):
                    run(function)(wnp.ones(2), wnp.arange(2))
        with pytest.raises(weft.errors.TypePromotionError):
            wnp.result_type("int32", "float32")
    with weft.numpy_rank_promotion("raise"):
        wnp.vander(wnp.arange(3))
        wnp.digitize(wnp.ones((2, 2)), wnp.array([0.0, 2.0]))
        wnp.cov(wnp.ones((2, 4)))
        for function in (lambda x, y: x * y, lambda x, y: wnp.maximum(x, y)):
            for run in (lambda f: f, weft.jit):
                with pytest.raises(ValueError, match="numpy_rank_promotion"):
                    run(function)(wnp.ones(2), wnp.ones((2, 2)))
    x = np.ones(2)
    with weft.transfer_guard("disallow"):
        wnp.arange(3)
        for function in (lambda: wnp.sin(1.0), lambda: wnp.sin(x), lambda: wnp.hypot(x, x)):
            with pytest.raises(RuntimeError, match="Disallowed"):
                function()


def test_options_before_functions():
    for option in (
        weft.default_matmul_precision("highest"),
        weft.default_device(weft.devices()[0]),
        weft.numpy_rank_promotion("raise"),
        weft.debug_infs(True),
        weft.enable_x64(True),
    ):

        @option
        def doubled(x):
            return x + x

        assert doubled(2) == 4 and doubled(3) == 6


@pytest.mark.parametrize("name", ["segment_sum", "segment_prod", "segment_min", "segment_max"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float32"])
def test_segments_without_rows_hold_the_neutral_element(name, dtype):
    if dtype == "bool" and name in ("segment_sum", "segment_prod"):
        return
    data, ids = np.array([1, 0, 1, 1], dtype), np.array([0, 0, 2, -1])
    of = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}[name[8:]]
    info = None if dtype == "bool" else np.finfo(dtype) if dtype == "float32" else np.iinfo(dtype)
    least, most = (False, True) if info is None else (-np.inf, np.inf) if dtype == "float32" else (info.min, info.max)
    neutral = {"sum": 0, "prod": 1, "min": most, "max": least}[name[8:]]
    expected = np.full(4, neutral, dtype)
    for i, value in zip(ids, data, strict=True):
        if i >= 0:
            expected[i] = of(expected[i], value)
    np.testing.assert_array_equal(getattr(weft.ops, name)(data, ids, 4), expected)


@pytest.mark.parametrize(("shape", "mask"), [((3,), (0,)), ((3, 4), (0, 4)), ((3, 4), (3, 0)), ((3, 4, 5), (3, 0))])
def test_masks_without_elements(shape, mask):
    x, chosen = np.ones(shape, "float32"), np.empty(mask, bool)
    assert wnp.asarray(x)[chosen].shape == x[chosen].shape
    with pytest.raises(IndexError):
        wnp.asarray(x)[np.ones((2, *mask[1:]), bool)]


@pytest.mark.parametrize("arguments", [(3 + 2j,), (1j, 3), (0, 3 + 1j, 1), (0, 2, 0.5 + 0j)])
def test_complex_ranges(arguments):
    np.testing.assert_allclose(wnp.arange(*arguments), np.arange(*arguments))


@pytest.mark.parametrize("name", ["quantile", "percentile", "nanquantile", "nanpercentile"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_weighted_quantiles(name, axis):
    rng = np.random.default_rng(0)
    a, weights = rng.normal(size=(4, 5)), rng.integers(0, 3, (4, 5)).astype("float64") + np.eye(4, 5)
    if "nan" in name:
        a[1, 2] = np.nan
    q = np.array([0.0, 0.1, 0.5, 0.9, 1.0]) * (100 if "percentile" in name else 1)
    for w in (weights, None, *([weights[0] if axis == -1 else weights[:, 0] + 1] if axis is not None else [])):
        for keepdims in (False, True):
            options = {"axis": axis, "weights": w, "method": "inverted_cdf", "keepdims": keepdims}
            # NumPy's own do not take weights of one axis where they leave NaN out.
            full = w if w is None or w.ndim == 2 else np.broadcast_to(w if axis == -1 else w[:, None], a.shape)
            expected = getattr(np, name)(a, q, **{**options, "weights": full})
            for run in (lambda f, *args: f(*args), lambda f, *args: weft.jit(f)(*args)):
                got = run(lambda a, q, options=options: getattr(wnp, name)(a, q, **options), a, q)
                np.testing.assert_allclose(got, expected)
    with pytest.raises(ValueError, match="weights need method='inverted_cdf'"):
        getattr(wnp, name)(a, q, weights=weights)
    with pytest.raises(ValueError, match="weights must have the shape"):
        getattr(wnp, name)(a, q, method="inverted_cdf", weights=weights[:2])


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("rest", [0, 1])
def test_the_last_condition_of_piecewise_that_holds_counts(count, rest):
    x = np.arange(-4, 5)
    conditions = [x > -3, x % 2 == 0, x > 1][:count]
    functions = [10, lambda v: v * v, 20, lambda v: -v][: count + rest]
    np.testing.assert_array_equal(wnp.piecewise(x, conditions, functions), np.piecewise(x, conditions, functions))


@pytest.mark.parametrize(
    ("shape", "steps", "axis"),
    [
        ((3, 10), (3, 1), -1),
        ((2, 3), (3,), 0),
        ((3, 4, 5), (4, 5), 0),
        ((3, 4, 5), (3, 5), 1),
        ((3, 4, 5), (3, 3, 5), 1),
    ],
)
def test_trapezoid_with_an_array_of_distances(shape, steps, axis):
    rng = np.random.default_rng(0)
    y, dx = rng.normal(size=shape), rng.normal(size=steps)
    np.testing.assert_allclose(wnp.trapezoid(y, dx=dx, axis=axis), np.trapezoid(y, dx=dx, axis=axis), rtol=1e-12)
    x = np.sort(rng.normal(size=shape[axis]))
    np.testing.assert_allclose(wnp.trapezoid(y, x, axis=axis), np.trapezoid(y, x, axis=axis), rtol=1e-12)


def test_derivatives_of_interp_where_places_are_close():
    for dtype in ("float32", "float64"):
        x = np.exp(np.linspace(-90, -20, 400)).astype(dtype)
        for more in ({}, {"left": 0.0, "right": 1.0}, {"period": 0.59}):
            slope = weft.grad(lambda z, more=more: wnp.sum(wnp.interp(z, z, wnp.ones_like(z), **more)))(x)
            assert np.isfinite(slope).all(), (dtype, more)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std", "all", "any", "nansum", "nanmax"])
def test_masks_hold_booleans(name):
    x, more = wnp.ones(3), {"initial": 0.0} if (name[0] == "m" and name != "mean") or name == "nanmax" else {}
    function = getattr(wnp, name)
    function(x, where=wnp.array([True, False, True]), **more)
    with pytest.raises(ValueError, match=f"^{name}: where must be None or a boolean array, got int32"):
        function(x, where=wnp.array([1, 0, 1], "int32"), **more)


def test_arguments_of_vectorized_functions():
    f = wnp.vectorize(lambda x, y: x if y is None else x + y)
    np.testing.assert_array_equal(f(wnp.arange(3), None), np.arange(3))
    np.testing.assert_array_equal(f(wnp.arange(3), 1), np.arange(3) + 1)
    with pytest.raises(ValueError, match="None"):
        wnp.vectorize(wnp.dot, signature="(k),(k)->()")(wnp.ones(2), None)
    with pytest.raises(ValueError, match=r"'n' of .* is both 2 and 3"):
        wnp.vectorize(wnp.dot, signature="(n,m),(m,k)->(n,n)")(wnp.ones((2, 4)), wnp.ones((4, 3)))
    with pytest.raises(TypeError, match="positions and names"):
        wnp.vectorize(wnp.dot, excluded={1.5})
    with pytest.raises(ValueError, match="negative"):
        wnp.vectorize(wnp.dot, excluded={-1})


def test_places_whose_sizes_are_traced():
    sizes = (2, 3, 4)
    found = weft.jit(wnp.unravel_index)(wnp.arange(24), sizes)
    for ours, theirs in zip(found, np.unravel_index(np.arange(24), sizes)):
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(weft.errors.ConcretizationTypeError, match="ravel_multi_index"):
        weft.jit(lambda i: wnp.ravel_multi_index((i, i), (3, 3), mode="raise"))(1)
    assert wnp.mgrid[()].shape == np.mgrid[()].shape and wnp.ogrid[()] == []


def test_complex_numbers_that_have_no_order():
    with pytest.raises(ValueError, match="no order"):
        wnp.clip(wnp.array([1j]), 0, 1)
    with pytest.raises(ValueError, match="no order"):
        wnp.clip(1.0, None, 1j)
    with pytest.raises(ValueError, match="hypot"):
        wnp.hypot(1j, 1.0)
    with pytest.raises(TypeError):
        wnp.array([1j]) < 1.0  # noqa: B015


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "maximum", "minimum"])
def test_functions_order_complex_numbers_by_their_parts(name):
    parts = [-np.inf, -1.0, -0.0, 0.0, 2.0, np.nan]
    with np.errstate(invalid="ignore"):
        z = np.array([complex(a, b) for a in parts for b in parts])
        x, y = np.meshgrid(z, z)
        expected = getattr(np, name)(x, y)
    for f in (getattr(wnp, name), weft.jit(getattr(wnp, name))):
        np.testing.assert_array_equal(f(x, y), expected)


@pytest.mark.parametrize("length", [2, 3, 9])
def test_loops_of_extremes_of_booleans(length):
    flags = np.arange(length) % 3 == 1
    for name in ("maximum", "minimum", "logical_or", "logical_and"):
        f = getattr(wnp, name)
        step = lambda c, x, f=f: (f(c, x),) * 2
        last, all_of_them = weft.scan(step, wnp.array(False), flags)
        expected = getattr(np, name).accumulate(np.concatenate([[False], flags]))[1:]
        np.testing.assert_array_equal(all_of_them, expected)
        assert bool(last) == expected[-1] and all_of_them.dtype == "bool"
        np.testing.assert_array_equal(
            getattr(wnp, name).accumulate(wnp.array(flags)), getattr(np, name).accumulate(flags)
        )
    for name in ("add", "multiply"):  # which count
        counted = getattr(wnp, name).accumulate(wnp.array(flags))
        np.testing.assert_array_equal(counted, getattr(np, name).accumulate(flags))
        assert counted.dtype == "int32"


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint2"])
def test_kinds_of_dtypes_that_numpy_lacks(name):
    import ml_dtypes

    scalar = getattr(ml_dtypes, name)
    kind = wnp.integer if "int" in name else wnp.floating
    for dtype in (scalar, np.dtype(scalar), name):
        assert wnp.issubdtype(dtype, kind) and wnp.issubdtype(dtype, wnp.number) and wnp.issubdtype(dtype, scalar)
        assert not wnp.issubdtype(dtype, wnp.complexfloating) and not wnp.issubdtype(dtype, np.float32)


@pytest.mark.parametrize("made", [np.array, wnp.array, tuple, list])
def test_shapes_that_are_arrays(made):
    x = wnp.arange(6)
    assert wnp.reshape(x, made([2, 3])).shape == x.reshape(made([-1, 3])).shape == (2, 3)
    assert wnp.broadcast_to(1.0, made([2, 3])).shape == wnp.zeros(made([2, 3])).shape == (2, 3)
    assert weft.jit(lambda x: wnp.reshape(x, made([3, 2])))(x).shape == (3, 2)
    if made in (np.array, wnp.array):
        for wrong in (made([2.0, 3.0]), made([[2], [3]])):
            with pytest.raises(TypeError):
                wnp.reshape(x, wrong)


@pytest.mark.parametrize("num", [0, 1, 2])
@pytest.mark.parametrize("endpoint", [False, True])
def test_the_step_of_linspace(num, endpoint):
    start, stop = np.ones((2, 2)), np.zeros(2)
    want = np.linspace(start, stop, num, endpoint=endpoint, retstep=True)
    got = wnp.linspace(start, stop, num, endpoint=endpoint, retstep=True)
    for x, y in zip(got, want):
        assert x.shape == np.shape(y)
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("shapes", [((2, 3), (4,)), ((), (3, 2)), ((2, 1, 2), (2,)), ((0,), (3,))])
def test_setxor1d_of_any_shapes_that_are_unique(shapes):
    rng = np.random.default_rng(0)
    a, b = (rng.permutation(20)[: int(np.prod(shape))].reshape(shape) for shape in shapes)
    expected = np.setxor1d(a, b, assume_unique=True)
    np.testing.assert_array_equal(wnp.setxor1d(wnp.array(a), wnp.array(b), assume_unique=True), expected)


@pytest.mark.parametrize("equal_nan", [True, False])
def test_unique_complex_numbers_that_hold_nans(equal_nan):
    parts = [0.0, 1.0, np.nan]
    x = np.array([complex(re, im) for re in parts for im in parts] * 2, "complex64")
    expected = np.unique(x, return_index=True, return_counts=True, equal_nan=equal_nan)
    found = wnp.unique(wnp.array(x), return_index=True, return_counts=True, equal_nan=equal_nan)
    assert [f.shape for f in found] == [e.shape for e in expected]
    np.testing.assert_array_equal(found[2], expected[2])


def test_an_array_is_itself():
    x = wnp.arange(3)
    assert wnp.asarray(x) is x and wnp.asarray(x, "int32") is x and wnp.array(x, copy=False) is x
    assert wnp.array(x) is not x and wnp.asarray(x, "float32") is not x
    assert wnp.isdtype(np.dtype("float32"), np.dtype("float32"))
    assert not wnp.isdtype(np.dtype("float32"), np.dtype("datetime64[s]"))


def test_the_axis_of_a_range_that_is_permuted():
    with pytest.raises(IndexError, match="axis 3 is out of range"):
        weft.random.permutation(weft.random.key(0), 10, axis=3)


def test_choices_and_what_is_put():
    a = np.array([[0, 1, 1, 0], [1, 0, 0, 1], [0, 0, 1, 1]])
    for choices in ([np.float32(7), np.arange(4, dtype="float32")], [a[0], a[:, :1]], [a, 5]):
        np.testing.assert_array_equal(wnp.choose(a, choices), np.choose(a, choices))

    assert wnp.put(wnp.arange(3), wnp.array([0, 2]), wnp.zeros(0), inplace=False).tolist() == [0, 1, 2]
    with pytest.raises(weft.TracerError, match="choose: whether an index is out of range"):
        weft.jit(lambda a: wnp.choose(a, [1, 2]))(a)


def test_bytes_of_no_elements():
    for dtype in ("uint16", "int64", "complex64"):
        assert wnp.zeros((0, 4), dtype).byteswap().shape == (0, 4)


@pytest.mark.parametrize("mode", ["maximum", "minimum"])
def test_padding_with_extremes_of_complex_numbers(mode):
    z = np.array([[1 + 2j, 3 - 1j, 3 + 0j]], "complex64")
    np.testing.assert_array_equal(wnp.pad(z, ((1, 1), (2, 1)), mode=mode), np.pad(z, ((1, 1), (2, 1)), mode=mode))


def test_negative_indices_that_do_not_wrap_and_are_promised_to_be_within_bounds():
    x = wnp.array([10, 20, 30])
    at = x.at[wnp.array([-1, 2, 5])]
    assert at.get(mode="promise_in_bounds", wrap_negative_indices=False).tolist() == [10, 30, 30]
