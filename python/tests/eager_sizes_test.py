"""Operations outside jit on arrays that are too large to be interpreted: code for all sizes, with the bits of code for
the one size, which jit makes."""

import itertools

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import _weft, nn

# Of two sizes each, and of one that both dimensions have.
SHAPES = [(161, 67), (153, 71), (83, 150), (109, 109), (123, 123)]
DTYPES = ["float32", "float64", "int32", "complex64"]

# Of one array; of two.
ONE = {
    "mod a number": lambda x: x % 0.7,
    "floor_divide a number": lambda x: x // 3,
    "where": lambda x: wnp.where(x > 0.5, x, 0),
    "clip": lambda x: wnp.clip(x, -1, 1),
    "isfinite": wnp.isfinite,
    "modf": lambda x: wnp.modf(x)[0],
    "sign": wnp.sign,
    "softplus": nn.softplus,
    "gelu": nn.gelu,
    "celu": nn.celu,
    "softmax": nn.softmax,
    "tril": wnp.tril,
    "triu": lambda x: wnp.triu(x, 1),
    "transposed": lambda x: wnp.where(x.T > 0.5, x.T, 1),
    "stretched": lambda x: x * x[:, :1] - x[:1],
    "mean of rows": lambda x: x.mean(1),
    "variance": lambda x: x.var(0),
    "cumsum": lambda x: wnp.cumsum(x % 2, 0),
    "sort": lambda x: wnp.sort(x, 0),
    "argsort": wnp.argsort,
    "median": lambda x: wnp.median(x, 1),
    "integers as floats": lambda x: x.astype("float32"),
    "gradient": weft.grad(lambda x: (wnp.sin(x) * x).sum().real),
}
TWO = {
    "mod": lambda x, y: x % y,
    "floor_divide": lambda x, y: x // y,
    "divmod": lambda x, y: wnp.divmod(x, y)[1],
    "fmod": wnp.fmod,
    "divide": lambda x, y: x / y,
    "where of two": lambda x, y: wnp.where(x > y, x, y),
    "copysign": wnp.copysign,
    "heaviside": wnp.heaviside,
    "side by side": lambda x, y: wnp.concatenate([x, y], 1),
    "rows of one": lambda x, y: x // y[:1],
    "outer": lambda x, y: wnp.outer(x[0], y[:, 0]),
    "of two dtypes": lambda x, y: x % y.astype("float32"),
}
PROGRAMS = {**{name: (1, f) for name, f in ONE.items()}, **{name: (2, f) for name, f in TWO.items()}}
# Several operations, which jit sees together, and so may round less often; and a number that it knows.
SEVERAL = {"mod a number", "clip", "modf", "softplus", "gelu", "celu", "softmax", "variance", "gradient", "stretched"}
# Which have a number made of a size (a mean), or no argument that tells one (the mask of tril).
BY_SIZE = {"mean of rows", "variance", "softmax", "argsort", "sort", "median", "tril", "triu"}
# What NumPy computes element by element, or exactly.
IN_NUMPY = {
    "mod": np.mod,
    "floor_divide": np.floor_divide,
    "where of two": lambda x, y: np.where(x > y, x, y),
    "copysign": np.copysign,
    "heaviside": np.heaviside,
    "side by side": lambda x, y: np.concatenate([x, y], 1),
    "rows of one": lambda x, y: x // y[:1],
    "outer": lambda x, y: np.outer(x[0], y[:, 0]),
    "where": lambda x: np.where(x > 0.5, x, 0).astype(x.dtype),
    "tril": np.tril,
    "triu": lambda x: np.triu(x, 1),
    "sort": lambda x: np.sort(x, 0),
    "argsort": lambda x: np.argsort(x, kind="stable"),
}


def given(count, shape, dtype):
    rng = np.random.default_rng(len(shape) + shape[0])
    arrays = []
    for _ in range(count):
        x = rng.normal(size=shape) * 3
        x = x + 1j * rng.normal(size=shape) if dtype.startswith("complex") else x
        x = x.astype(dtype)
        x[x == 0] = 1
        arrays.append(wnp.asarray(x))
    return arrays


def takes(f, arrays):
    try:
        f(*arrays)
    except (TypeError, ValueError, NotImplementedError):
        return False
    return True


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_code_serves_all_sizes_and_has_the_bits_of_jit(name):
    count, f = PROGRAMS[name]
    ran = 0
    for dtype in DTYPES:
        with weft.enable_x64(dtype == "float64"):
            arrays = [given(count, shape, dtype) for shape in SHAPES]
            if not takes(f, arrays[0]):
                continue
            ran += 1
            takes(f, arrays[3])  # whose two sizes are one symbol
            before = _weft.codes_generated()
            found = [np.asarray(f(*each)) for each in arrays]
            assert name in BY_SIZE or dtype == "complex64" or _weft.codes_generated() == before, dtype
            for each, out in zip(arrays, found):
                jitted = np.asarray(weft.jit(f)(*each))
                assert (out.dtype, out.shape) == (jitted.dtype, jitted.shape), dtype
                if name in SEVERAL:
                    np.testing.assert_allclose(out, jitted, rtol=2e-6, atol=2e-6)
                else:
                    assert out.tobytes() == jitted.tobytes(), (dtype, out.shape)
                if name in IN_NUMPY and dtype != "complex64":
                    wanted = IN_NUMPY[name](*map(np.asarray, each))
                    assert np.array_equal(out, wanted.astype(out.dtype)), (dtype, out.shape)
    assert ran, "no dtype"


@pytest.mark.parametrize("rows", [16, 17, 200])
@pytest.mark.parametrize("columns", [2, 3, 15])
def test_short_rows_are_known(rows, columns):
    def distances(x, y):
        return x[:, None, :] - y[None]

    def beside(x, y):
        return wnp.concatenate([x, x], -1)

    for f, n in itertools.product((distances, beside), (1000, 1001)):
        x = wnp.asarray(np.random.default_rng(n).normal(size=(n, columns)).astype(np.float32))
        y = x[:rows]
        assert np.asarray(f(x, y)).tobytes() == np.asarray(weft.jit(f)(x, y)).tobytes()


def test_sizes_that_an_operation_needs_stay_numbers():
    for n in (5000, 5003, 5005):
        x = np.arange(n, dtype=np.float32)
        for f in (lambda v: v[1:] - v[:-1], lambda v: v[::-1] % 7, lambda v: v.reshape(-1, 1) % 7, lambda v: v[-1] % v):
            assert np.array_equal(np.asarray(f(wnp.asarray(x[1:]))), np.asarray(f(x[1:])))


def test_programs_of_no_elements_and_of_one():
    for shape in ((0, 5000), (5000, 0), (1, 5000), (5000, 1)):
        x = wnp.ones(shape, np.float32)
        out = wnp.where(x % 0.7 > 0.1, x // 0.3, x)
        assert np.array_equal(np.asarray(out), np.full(shape, 3, np.float32))
