"""argmax and argmin beside NumPy: lines short, long and side by side, of every kind of number, NaN among them."""

import numpy as np
import pytest

import weft as wf
import weft.numpy as wnp

# Around the widths that loops work by: 32 lanes, 64 columns, blocks of 4,096.
SHAPES = [
    (1, 1),
    (3, 5),
    (7, 64),
    (5, 65),
    (4, 200),
    (2, 9000),
    (130, 3),
    (9000, 2),
    (3, 4, 70),
    (2, 100, 129),
    (100, 64),
]
DTYPES = ["float32", "float64", "float16", "int32", "int8", "uint8", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_is_numpys_place(name, dtype):
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        # Few values, so that the first of several is asked for.
        x = rng.integers(0, 2 if dtype == "bool" else 50, shape).astype(dtype)
        with_nan = x.copy()
        if np.issubdtype(x.dtype, np.floating):
            with_nan.flat[rng.integers(0, x.size, 3)] = np.nan
        for axis in range(len(shape)):
            f = wf.jit(lambda x, axis=axis: getattr(wnp, name)(x, axis=axis))
            for operand in (x, with_nan):
                assert np.array_equal(np.asarray(f(operand)), getattr(np, name)(operand, axis=axis)), (shape, axis)
