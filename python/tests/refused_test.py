"""Arguments that have no meaning are refused, as NumPy and JAX refuse them, by name and with the user's line."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import weft
import weft.lax as lax
import weft.numpy as wnp

X = np.arange(6, dtype=np.float32).reshape(2, 3)
V = np.array([3, 1, 2], np.float32)
CYCLE: list = []
CYCLE.append([CYCLE])


def refused(error, message, f):
    with pytest.raises(error, match=f"(?s){message}.*refused_test.py:"):
        f()


@pytest.mark.parametrize("name", ["quantile", "nanquantile", "percentile", "nanpercentile"])
def test_quantiles_outside(name):
    f, whole = getattr(wnp, name), 100 if "percentile" in name else 1
    for q in (-0.2, whole + 0.5, np.array([0.5, -1])):
        with pytest.raises(ValueError):
            getattr(np, name)(V, q)
        refused(ValueError, rf"{name}: q must be in \[0, {whole}\], got", lambda q=q: f(V, q))
    for q in (-0.2 * whole, 1.2 * whole, 0.25 * whole, np.nan):  # a traced one counts as the nearer end
        want = np.asarray(getattr(jnp, name)(V, q))
        np.testing.assert_allclose(np.asarray(weft.jit(f)(V, q)), want, rtol=1e-6)
    for method in ("lower", "nearest"):
        assert np.isnan(np.asarray(f(V, np.float32(np.nan), method=method)))
    refused(TypeError, f"{name}: q is .* of type 'list'", lambda: f(V, [0, 1]))


NUMBERS = {
    "((5,), (1,)), ((), ())": (IndexError, "contracting axis 5 of lhs is out of range for an array of 2 dimensions"),
    "((1,), (7,)), ((), ())": (IndexError, "contracting axis 7 of rhs is out of range"),
    "((1,), (1,)), ((0,), (5,))": (IndexError, "batch axis 5 of rhs is out of range"),
    "((1, 1), (1, 1)), ((), ())": (ValueError, "names axis 1 of lhs, an array of 2 dimensions, twice"),
    "((1,), ()), ((), ())": (ValueError, "1 contracting axes of lhs and 0 of rhs"),
    "(1, 1)": (TypeError, "four lists of integers"),
}


@pytest.mark.parametrize("numbers", NUMBERS)
def test_dimension_numbers(numbers):
    error, message = NUMBERS[numbers]
    given = eval(numbers)
    refused(error, f"dot_general: dimension_numbers.*{message}", lambda: lax.dot_general(X, X, given))
    with pytest.raises((TypeError, ValueError, IndexError)):
        jax.lax.dot_general(X, X, given)


def test_dtypes_that_do_not_hold_a_value():
    ones = wnp.ones((2, 3), "int8")
    refused(
        TypeError,
        "dynamic_update_slice: update has dtype float64, the operand int8",
        lambda: lax.dynamic_update_slice(ones, np.array([[300.7]]), (0, 0)),
    )
    refused(
        TypeError,
        "dynamic_update_slice: update has dtype complex64",
        lambda: lax.dynamic_update_slice(wnp.ones((2, 3)), np.array([[1 + 2j]], "complex64"), (0, 0)),
    )
    refused(
        TypeError,
        "dynamic_update_slice: update has dtype int8",
        lambda: lax.dynamic_update_slice_in_dim(X, np.ones((1, 3), "int8"), 0, 0),
    )
    refused(TypeError, "pad: padding_value has dtype float32", lambda: lax.pad(ones, np.float32(0.5), [(1, 1, 0)] * 2))
    assert lax.dynamic_update_slice(X, wnp.array([[7.0]]), (0, 1))[0, 1] == 7
    assert lax.dynamic_update_index_in_dim(X[0], 5.0, 1, 0)[1] == 5
    assert lax.pad(ones, 0, [(1, 1, 0)] * 2).dtype == "int8"


CASES = {
    "packbits": (TypeError, "packbits: a must be", lambda: wnp.packbits(X), lambda: np.packbits(X)),
    "rot90": (ValueError, "axes must be different", lambda: wnp.rot90(X, 1, (0, -2)), lambda: np.rot90(X, 1, (0, -2))),
    "histogram bins": (ValueError, "bins must be at least 1", lambda: wnp.histogram(X, 0), lambda: np.histogram(X, 0)),
    "histogram edges": (
        ValueError,
        "must not decrease",
        lambda: wnp.histogram(X, np.array([2.0, 1.0])),
        lambda: np.histogram(X, [2.0, 1.0]),
    ),
    "from_dlpack": (TypeError, "from_dlpack: x is 3 of type 'int'", lambda: wnp.from_dlpack(3), None),
    "poly": (TypeError, "poly: seq_of_zeros is .* of type 'list'", lambda: wnp.poly([1.0, 2.0]), None),
    "a size": (TypeError, "ShapeDtype: shape has 2.5", lambda: weft.ShapeDtype((2.5,), "float32"), None),
    "argmax": (TypeError, "index_dtype must be an integer dtype", lambda: lax.argmax(X, 0, "float32"), None),
    "argmin": (ValueError, "index_dtype int8 does not hold", lambda: lax.argmin(wnp.ones(300), 0, "int8"), None),
    "tree.map": (TypeError, "tree.map: f", lambda: weft.tree.map(3, [1]), None),
    "print '{'": (ValueError, "debug.print: '{' is malformed", lambda: weft.debug.print("{", 1), None),
    "print ':foo'": (ValueError, "debug.print: .*foo", lambda: weft.debug.print("{:foo}", 1), None),
    "fori_loop": (TypeError, "positional argument", lambda: weft.fori_loop(0, 3, lambda i: i, 1.0), None),
    "a traced key": (TypeError, "traced value as a key of a dict", lambda: weft.jit(lambda x: {x: 1})(1.0), None),
    "a cycle in jit": (RecursionError, "contains itself", lambda: weft.make_ir(lambda c: 1)(CYCLE), None),
    "a cycle in a tree": (
        RecursionError,
        r"contains itself: what is at \[0\]\[0\]",
        lambda: weft.tree.leaves(CYCLE),
        None,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refused(name):
    error, message, ours, numpys = CASES[name]
    refused(error, re.escape(message) if "'{'" in message else message, ours)
    if numpys is not None:
        with pytest.raises(error):
            numpys()


def test_a_mask_of_ix():
    mask, rows = np.array([True, False, True]), np.array([1, 0])
    want = np.arange(9).reshape(3, 3)[np.ix_(rows, mask)]
    np.testing.assert_array_equal(np.asarray(wnp.arange(9).reshape(3, 3)[wnp.ix_(rows, mask)]), want)
    with pytest.raises(weft.TracerError):
        weft.jit(lambda m: wnp.ix_(m)[0])(mask)
