"""Bad input of every kind: an error that says what is wrong and where, or the right result. Never a crash, a hang or a
silent wrong number. errors_test.py has the wording of single messages; here are the families."""

import inspect
import operator
import warnings

import numpy as np
import pytest

import weft
import weft.lax as lax
import weft.numpy as wnp
from weft import nn, random

X = wnp.ones((2, 3))
NAN, INF = float("nan"), float("inf")


def here():
    """The line of the caller, as messages name it."""
    return f"bad_input_test.py:{inspect.currentframe().f_back.f_lineno}"


class Unhashable:
    __hash__ = None


class HashRaises:
    def __hash__(self):
        raise RuntimeError("no hash")


# --- One error each, eager and traced ---------------------------------------------------------------------------------

# What is wrong, the exception, a part of the message.
MISTAKES = {
    # shapes
    "add": (lambda: X + wnp.ones(2), TypeError, "3 against 2"),
    "where": (lambda: wnp.where(X > 0, wnp.ones(2), 1), TypeError, "do not broadcast"),
    "concatenate nothing": (lambda: wnp.concatenate([]), ValueError, "at least one"),
    "concatenate axis": (lambda: wnp.concatenate([X, X], axis=5), IndexError, "axis 5"),
    "stack": (lambda: wnp.stack([X, wnp.ones(3)]), TypeError, r"array 1 has shape \(3,\)"),
    "reshape": (lambda: X.reshape(4), TypeError, "6 elements"),
    "reshape -1 twice": (lambda: X.reshape(-1, -1), ValueError, "more than one"),
    "reshape -1 unclear": (lambda: wnp.zeros((0,)).reshape(-1, 0), ValueError, "ambiguous"),
    "transpose": (lambda: wnp.transpose(X, (0, 0)), ValueError, "twice"),
    "squeeze": (lambda: wnp.squeeze(X, 0), ValueError, "size 2"),
    "expand_dims": (lambda: wnp.expand_dims(X, 7), IndexError, "axis 7"),
    "broadcast_to": (lambda: wnp.broadcast_to(X, (3, 2)), TypeError, r"\(3, 2\)"),
    "matmul": (lambda: X @ X, TypeError, "3 columns against 2 rows"),
    "matmul of a number": (lambda: X @ wnp.ones(()), TypeError, "at least one dimension"),
    "fft type": (lambda: weft.lax.fft(X, "DCT", (3,)), ValueError, "fft_type must be one of FFT, IFFT, RFFT, IRFFT"),
    "fft lengths": (
        lambda: weft.lax.fft(wnp.ones(3), "RFFT", (4,)),
        TypeError,
        r"RFFT of an array of shape \(3,\): its last sizes must be fft_lengths \(4,\)",
    ),
    "orthogonal of one dimension": (
        lambda: weft.nn.initializers.orthogonal()(weft.random.key(0), (5,)),
        ValueError,
        r"shape is \(5,\); expected at least two dimensions",
    ),
    "einsum": (lambda: wnp.einsum("ij->k", X), ValueError, "no operand has"),
    "einsum sizes": (
        lambda: wnp.einsum("pq,qr->pr", wnp.ones((2, 3)), wnp.ones((4, 2))),
        TypeError,
        "'pq,qr->pr' index 'q' is 3 in operand 0 and 4 in operand 1",
    ),
    "einsum diagonal": (
        lambda: wnp.einsum("ij,ii->j", wnp.ones((3, 2)), wnp.ones((1, 3))),
        TypeError,
        "index 'i' is both 1 and 3 in operand 1",
    ),
    "negative size of zeros": (lambda: wnp.zeros((2, -1)), ValueError, r"zeros: the shape \(2, -1\)"),
    "einsum letters": (lambda: wnp.einsum("i&->i", X), ValueError, "'&'"),
    "negative size": (lambda: wnp.zeros((-1,)), ValueError, "negative"),
    "size that is no integer": (lambda: wnp.zeros("a"), TypeError, "integer"),
    "more elements than can be counted": (lambda: wnp.ones((2**40, 2**40)), ValueError, r"2\^63"),
    "more elements than can be counted, later": (
        lambda: wnp.broadcast_to(X[0, 0], (2**31, 2**31, 2**31)).sum(),
        ValueError,
        r"2\^63",
    ),
    "convolution channels": (
        lambda: lax.conv_general_dilated(wnp.ones((1, 2, 5)), wnp.ones((1, 1, 3)), (1,), "VALID"),
        TypeError,
        "c is 2",
    ),
    "convolution stride": (
        lambda: lax.conv_general_dilated(wnp.ones((1, 1, 5)), wnp.ones((1, 1, 3)), (0,), "VALID"),
        ValueError,
        "stride",
    ),
    "top_k": (lambda: lax.top_k(X, 5), ValueError, "0 to 3"),
    "cholesky": (lambda: wnp.linalg.cholesky(X), ValueError, "square"),
    "svd": (lambda: wnp.linalg.svd(wnp.ones(3)), ValueError, "matrix"),
    "fft": (lambda: wnp.fft.fft(wnp.zeros(3), n=0), ValueError, "positive"),
    # dtypes
    "not of floats": (lambda: ~X, TypeError, "f32|integer"),
    "order of complex numbers": (lambda: wnp.asarray(1j) < 2, TypeError, "c64|complex"),
    "parts that are no integer": (lambda: wnp.array_split(X, 2.5), TypeError, "indices_or_sections.*2.5"),
    "no parts": (lambda: wnp.split(X, 0), ValueError, "indices_or_sections.*at least 1.*0"),
    "less than no parts": (lambda: wnp.array_split(X, -1), ValueError, "indices_or_sections.*at least 1.*-1"),
    "parts beyond all memory": (lambda: wnp.array_split(X, 2**40), ValueError, "indices_or_sections.*1099511627776"),
    "unknown dtype": (lambda: X.astype("U5"), TypeError, "'U5'"),
    "Python integer too large": (lambda: wnp.ones(3, "int8") + 300, OverflowError, "300 does not fit i8"),
    "Python integer too large for all": (lambda: wnp.ones(3, int) + 2**70, OverflowError, "does not fit i32"),
    "negative to unsigned": (lambda: wnp.ones(3, "uint8") + (-1), OverflowError, "-1 does not fit u8"),
    "integer to a negative power": (lambda: wnp.asarray([2, 0]) ** -1, TypeError, "negative power"),
    "random integers of floats": (lambda: random.uniform(random.key(0), (3,), dtype=int), TypeError, "float dtype"),
    "key": (lambda: random.normal(wnp.ones(3), (2,)), TypeError, "expected a key"),
    # indices
    "index": (lambda: X[5], IndexError, "index 5 is out of bounds for axis 0 of size 2"),
    "negative index": (lambda: X[0, -4], IndexError, "index -4"),
    "too many indices": (lambda: X[0, 0, 0], IndexError, "3 for an array of 2"),
    "index text": (lambda: X["a"], TypeError, "'a'"),
    "index float": (lambda: X[1.5], TypeError, "1.5"),
    "index float array": (lambda: X[wnp.ones(2)], TypeError, "f32"),
    "mask": (lambda: X[wnp.asarray([True, False, True])], IndexError, r"\(3,\)"),
    "ellipses": (lambda: X[..., ..., 0], IndexError, "one ellipsis"),
    "slice step": (lambda: X[::0], ValueError, "step"),
    "update": (lambda: X.at[0].set(wnp.ones(7)), TypeError, r"\(7,\)"),
    "update rank": (lambda: X.at[0, 0, 0].set(1.0), IndexError, "too many indices"),
    "index of nothing": (lambda: wnp.zeros((0,))[wnp.asarray([0])], IndexError, "size 0"),
    # structure
    "branches of different structure": (
        lambda: weft.cond(X[0, 0] > 0, lambda v: v, lambda v: (v, v), X),
        TypeError,
        "a tuple of length 2",
    ),
    "branches of different dtype": (
        lambda: weft.cond(X[0, 0] > 0, lambda v: v, lambda v: v.astype(int), X),
        TypeError,
        r"i32\[2,3\], of true_fun f32\[2,3\]",
    ),
    "condition": (lambda: weft.cond(X, lambda v: v, lambda v: v, X), TypeError, "single boolean"),
    "index of a switch": (
        lambda: weft.switch(1.5, [lambda x: x, lambda x: 2 * x], X),
        TypeError,
        r"single integer, got f32\[\]",
    ),
    "argnames unknown": (lambda: weft.grad(wnp.sum, argnames="q")(X), ValueError, "no argument of 'sum'"),
    "argnames and argnums": (lambda: weft.grad(wnp.sum, 1, argnames="a")(X), ValueError, "one of them"),
    "jacobian of no argument": (
        lambda: weft.jacfwd(wnp.sin, ())(X),
        ValueError,
        r"jacfwd: argnums is \(\); expected at least",
    ),
    "jacrev of no argument": (
        lambda: weft.jacrev(wnp.sin, ())(X),
        ValueError,
        r"jacrev: argnums is \(\); expected at least",
    ),
    "grad of no argument": (lambda: weft.grad(wnp.sum, ())(X), ValueError, r"grad: argnums is \(\); expected at least"),
    "argnums of another type": (lambda: weft.grad(wnp.sum, 1.0)(X), TypeError, "argnums is 1.0 of type 'float'"),
    "argnums that is a name": (lambda: weft.jacfwd(wnp.sin, "x")(X), TypeError, "argnums is 'x' of type 'str'"),
    "jacobian argnums": (lambda: weft.jacfwd(lambda x: x, 2)(X), ValueError, "argnums has 2"),
    "no branches": (lambda: weft.switch(0, [], X), ValueError, "no functions"),
    "carry structure": (lambda: weft.while_loop(lambda c: c < 3, lambda c: (c, c), X[0, 0]), TypeError, "length 2"),
    "carry shape": (lambda: weft.while_loop(lambda c: True, lambda c: X, X[0]), TypeError, "shapes must agree"),
    "while condition": (lambda: weft.while_loop(lambda c: c, lambda c: c, X), TypeError, "one boolean"),
    "scan lengths": (lambda: weft.scan(lambda c, y: (c, y), 0.0, (wnp.ones(3), X)), ValueError, "2 slices, expected 3"),
    "scan of a number": (lambda: weft.scan(lambda c, y: (c, y), 0.0, X[0, 0]), ValueError, "axis"),
    "scan without a pair": (lambda: weft.scan(lambda c, y: c, 0.0, X), TypeError, "pair"),
    "vmap sizes": (lambda: weft.vmap(lambda a, b: a)(X, wnp.ones(4)), ValueError, "2 .* and 4"),
    "vmap of a number": (lambda: weft.vmap(lambda a: a)(X[0, 0]), ValueError, "0 dimensions"),
    "vmap in_axes": (lambda: weft.vmap(lambda a: a, in_axes=(0, 0))(X), ValueError, "2 entries"),
    "vmap in_axes structure": (lambda: weft.vmap(lambda a: a, in_axes=({"a": 0},))({"b": X}), ValueError, "prefix"),
    "vmap in_axes type": (lambda: weft.vmap(lambda a: a, in_axes="0")(X), TypeError, "integers and None"),
    "vmap out_axes": (lambda: weft.vmap(lambda a: a, out_axes=5)(X), ValueError, "out_axes has 5"),
    "vmap out_axes None": (lambda: weft.vmap(lambda a: a, out_axes=None)(X), ValueError, "depends on a mapped"),
    "grad of an array": (lambda: weft.grad(lambda v: v)(X), TypeError, "scalar"),
    "grad of integers": (lambda: weft.grad(lambda v: v.sum())(wnp.ones(2, int)), TypeError, "float"),
    "grad argnums": (lambda: weft.grad(lambda v: v.sum(), argnums=2)(X), ValueError, "argnums has 2"),
    "tangent": (lambda: weft.jvp(lambda v: v, (X,), (wnp.ones(3),)), TypeError, r"f32\[3\]"),
    "tangents": (lambda: weft.jvp(lambda v: v, (X,), (X, X)), TypeError, "tangents are a tuple of length 2"),
    "cotangent": (lambda: weft.vjp(lambda v: v, X)[1](wnp.ones(3)), TypeError, r"f32\[3\]"),
    "argument that is no array": (lambda: weft.jit(lambda v: v)("text"), TypeError, "'text' of type 'str'"),
    "leaf that is no array": (
        lambda: weft.jit(lambda v: v)({"a": object()}),
        TypeError,
        "jit: argument v.'a'. of '<lambda>' is <object",
    ),
    "leaf of a keyword": (lambda: weft.jit(lambda v, w: v)(1.0, w=[1, "s"]), TypeError, "jit: argument w.1. of"),
    "leaf behind a static argument": (
        lambda: weft.jit(lambda n, *v: v, static_argnums=0)("s", 1.0, "t"),
        TypeError,
        "jit: argument v.1. of",
    ),
    "result that is no array": (lambda: weft.jit(lambda v: [v, "text"])(X), TypeError, r"result \[1\]"),
    "array of objects": (lambda: weft.jit(lambda v: v)(np.array([object()])), TypeError, "dtype object"),
    "array of texts": (lambda: wnp.asarray(np.array(["a"])), TypeError, "no counterpart"),
    "array of dates": (lambda: wnp.asarray(np.array(["2020-01-01"], "datetime64[D]")), TypeError, "no counterpart"),
    "long doubles": (lambda: wnp.asarray(np.ones(3, np.longdouble)), TypeError, "no counterpart"),
    "records": (lambda: wnp.asarray(np.zeros(3, [("a", "f4")])), TypeError, "no counterpart"),
    "ragged list": (lambda: wnp.array([[1, 2], [3]]), (TypeError, ValueError), "shape"),
    "None": (lambda: wnp.array(None), TypeError, "no counterpart|None"),
    # static arguments
    "static list": (lambda: weft.jit(lambda a, b: a, static_argnums=1)(X, [1]), ValueError, "'list'.*not hashable"),
    "static array": (lambda: weft.jit(lambda a, b: a, static_argnums=1)(X, X), ValueError, "not hashable"),
    "static NumPy array": (
        lambda: weft.jit(lambda a, b: a, static_argnums=1)(X, np.ones(3)),
        ValueError,
        "not hashable",
    ),
    "static by name": (lambda: weft.jit(lambda a, b: a, static_argnames="b")(X, b={}), ValueError, "'b'.*not hashable"),
    "static object": (lambda: weft.jit(lambda a, b: a, static_argnums=1)(X, Unhashable()), ValueError, "Unhashable"),
    "static hash": (lambda: weft.jit(lambda a, b: a, static_argnums=1)(X, HashRaises()), Exception, "hash"),
    "static name": (lambda: weft.jit(lambda a, b: a, static_argnames="c"), ValueError, "'c'"),
    "static number": (lambda: weft.jit(lambda a, b: a, static_argnums=7), ValueError, "has 7"),
    # numbers of the wrong kind or size
    "start of a slice": (lambda: lax.dynamic_slice(X, (0, 1.9), (1, 1)), TypeError, "start index 1 has dtype float32"),
    "as many shifts as axes": (lambda: wnp.roll(X, (1, 2, 3), (0, 1)), ValueError, "3 shifts for 2 axes"),
    "ends to trim": (lambda: wnp.trim_zeros(X[0], 1), TypeError, "trim must be"),
    "the triangle of a number": (lambda: wnp.tril_indices_from(3), ValueError, r"a matrix is needed, got shape \(\)"),
    "a number has no dimensions": (lambda: lax.index_in_dim(2, 0), IndexError, "axis 0 is out of range"),
    "a number has nothing to collapse": (
        lambda: lax.dynamic_slice_in_dim(2, 0, 1),
        IndexError,
        "axis 0 is out of range",
    ),
    "NaN as a place": (lambda: lax.dynamic_index_in_dim(X, NAN, 0), TypeError, "start index 0 has dtype float32"),
    "True as a place": (
        lambda: lax.dynamic_update_slice(X, X[:1], (True, 0)),
        TypeError,
        "start index 0 has dtype bool",
    ),
    "factor beyond the dtype": (lambda: wnp.dot(wnp.array([6, 1], "uint8"), -1), OverflowError, "-1 does not fit"),
    "mean as a boolean": (lambda: wnp.mean(X, dtype=bool), TypeError, "got bool"),
    "nothing convolved": (lambda: wnp.convolve(wnp.ones(3), wnp.zeros(0)), ValueError, r"shapes \(3,\) and \(0,\)"),
    "number convolved": (lambda: wnp.correlate(wnp.ones(()), wnp.ones(3)), ValueError, r"shapes \(\) and \(3,\)"),
    "triangle of a vector": (lambda: wnp.triu(wnp.ones(3)), ValueError, r"triu: two dimensions.*\(3,\)"),
    "derivative of negative order": (
        lambda: wnp.polyder(wnp.ones(2), -1),
        ValueError,
        "m must not be negative, got -1",
    ),
    "integral of negative order": (lambda: wnp.polyint(wnp.ones(2), -1), ValueError, "m must not be negative, got -1"),
    "constants of integration": (lambda: wnp.polyint(wnp.ones(2), 2, k=[1, 2, 3]), ValueError, r"2, got shape \(3,\)"),
    "places in a number": (lambda: wnp.nonzero(wnp.ones(())), ValueError, "atleast_1d"),
    "masked array": (lambda: wnp.sum(np.ma.array([1.0, 2.0], mask=[0, 1])), ValueError, "masked arrays"),
    "dictionary": (lambda: wnp.asarray({"a": 1}), TypeError, "type 'dict'"),
    # random numbers
    "key as a number": (lambda: float(random.key(1)), TypeError, "random keys are no numbers"),
    "key as a condition": (lambda: bool(random.key(1)), TypeError, "random keys are no numbers"),
    "key as a NumPy array": (lambda: np.asarray(random.split(random.key(1))), TypeError, "key_data"),
    "key as a list": (lambda: random.key(1).tolist(), TypeError, "key_data"),
    "permutation of 2.5": (lambda: random.permutation(random.key(0), 2.5), TypeError, "single float32"),
    "categorical": (
        lambda: random.categorical(random.key(0), wnp.zeros((3, 4)), shape=(3, 5)),
        ValueError,
        r"\(3,\) without axis -1 do not broadcast to \(3, 5\)",
    ),
    "fold_in": (lambda: random.fold_in(random.key(0), -1), OverflowError, "got -1"),
    # text
    "text": (lambda: weft.parse_ir("fn f("), weft.ParseError, "1:6"),
    "no text": (lambda: weft.parse_ir(""), weft.ParseError, "expected a function"),
    "zeros as text": (lambda: weft.parse_ir("\0\0"), weft.ParseError, "expected a function"),
    "text that is none": (lambda: weft.parse_ir(None), TypeError, "str"),
    # counts of arguments
    "missing argument": (lambda: weft.jit(lambda a, b: a)(X), TypeError, "missing 1 required"),
    "surplus argument": (lambda: weft.jit(lambda a: a)(X, X), TypeError, "takes 1 positional"),
    "unknown keyword": (lambda: weft.jit(lambda a: a)(X, b=X), TypeError, "'b'"),
    "no function": (lambda: weft.jit(3), TypeError, "expected a function"),
}


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake, traced):
    body, exception, text = MISTAKES[mistake]
    with pytest.raises(exception, match=text) as info:
        if traced:
            weft.jit(lambda unused: (body(), unused))(1.0)
        else:
            body()
    assert not isinstance(info.value, weft.InternalError)
    # The user's line: in the message, or else in the traceback, whose last frames are then Python.
    line = body.__code__.co_firstlineno
    places = [(str(entry.path), entry.lineno + 1) for entry in info.traceback]
    first = range(line, line + 8)
    assert any(f"bad_input_test.py:{n}" in str(info.value) for n in first) or any(
        path.endswith("bad_input_test.py") and n in first for path, n in places
    )
    assert not weft._weft.is_tracing()
    assert (X + 1)[0, 0] == 2  # and life goes on


def test_every_user_line_of_a_chain_of_calls():
    def inner(x):
        return x @ wnp.ones((7, 2))

    def outer(x):
        return inner(x * 2)

    for transform in [weft.jit, weft.vmap, weft.make_ir, lambda f: weft.jit(weft.vmap(f))]:
        with pytest.raises(TypeError) as info:
            transform(outer)(wnp.ones((4, 3)))
        line = inner.__code__.co_firstlineno + 1
        assert f"bad_input_test.py:{line} in" in str(info.value)
        assert f"bad_input_test.py:{outer.__code__.co_firstlineno + 1} in" in str(info.value)


# --- Traced values where numbers are needed ---------------------------------------------------------------------------

NUMBERS = {
    "if": lambda x: 1 if x.sum() > 0 else 2,
    "while": lambda x: [None for _ in iter(lambda: bool(x.sum() > 0), False)],
    "and": lambda x: (x.sum() > 0) and x,
    "not": lambda x: not x.sum(),
    "float": lambda x: float(x.sum()),
    "int": lambda x: int(x.sum()),
    "complex": lambda x: complex(x.sum()),
    "index": lambda x: [1, 2, 3][x[0].astype(int)],
    "range": lambda x: range(x[0].astype(int)),
    "shape": lambda x: wnp.zeros(x[0].astype(int)),
    "item": lambda x: x[0].item(),
    "tolist": lambda x: x.tolist(),
    "NumPy": lambda x: np.asarray(x),
    "NumPy function": lambda x: np.sin(x),
    "list.index": lambda x: [1.0].index(x[0]),
    "format": lambda x: f"{x[0]:.3f}",
    "mask": lambda x: x[x > 0],
    "nonzero": lambda x: wnp.nonzero(x),
    "unique": lambda x: wnp.unique(x),
    "static argument": lambda x: weft.jit(lambda n: wnp.zeros(n), static_argnums=0)(x[0]),
    "hash": lambda x: {x: 1},
    "reshape": lambda x: x.reshape(x[0].astype(int), -1),
    "arange": lambda x: wnp.arange(x[0]),
}


@pytest.mark.parametrize("use", NUMBERS)
def test_traced_values_as_numbers(use):
    for transform in [weft.jit, weft.vmap, weft.make_ir]:
        argument = wnp.ones((2, 3)) if transform is weft.vmap else wnp.ones(3)
        with pytest.raises((TypeError, ValueError)) as info:  # TracerError is a TypeError
            transform(NUMBERS[use])(argument)
        assert not isinstance(info.value, weft.InternalError)
        assert any(str(e.path).endswith("bad_input_test.py") for e in info.traceback)
        assert not weft._weft.is_tracing()


@pytest.mark.parametrize("kind", ["list", "dict", "deep"])
def test_containers_without_end(kind):
    tree: list | dict = [] if kind != "dict" else {}
    if kind == "dict":
        tree["x"] = tree
    elif kind == "list":
        tree.append(tree)
    else:
        for _ in range(100_000):
            tree = [tree]
    for take in (weft.jit(lambda x: 1.0), weft.tree.leaves):
        with pytest.raises(RecursionError):
            take(tree)


def test_escaped_tracers():
    for transform in [weft.jit, weft.vmap, weft.make_ir]:
        kept = []

        def leak(x):
            kept.append(x * 2)  # noqa: B023
            return x

        transform(leak)(wnp.ones((3, 3) if transform is weft.vmap else 3))
        (tracer,) = kept
        line = f"bad_input_test.py:{leak.__code__.co_firstlineno + 1}"
        uses = [
            lambda v: v + 1,
            lambda v: weft.jit(lambda x: x + v)(1.0),
            lambda v: weft.grad(lambda x: (x + v).sum())(wnp.ones(3)),
            lambda v: weft.scan(lambda c, y: (c + v, y), wnp.ones(3), wnp.ones(2)),
            lambda v: weft.jit(lambda x: x)(v),
            float,
            bool,
            np.asarray,
            lambda v: v[0],
            lambda v: wnp.stack([v, v]),
        ]
        for use in uses:
            with pytest.raises(weft.TracerError, match=r"escaped|ended") as info:
                use(tracer)
            assert line in str(info.value)
        assert "Tracer" in repr(tracer)
        kept.clear()


# --- Results where NumPy has one --------------------------------------------------------------------------------------

REDUCTIONS = [
    "sum",
    "prod",
    "max",
    "min",
    "argmax",
    "argmin",
    "mean",
    "var",
    "std",
    "any",
    "all",
    "cumsum",
    "cumprod",
    "sort",
    "median",
    "ptp",
    "nansum",
    "nanmean",
]
ODD = {
    "empty": np.zeros((0,), np.float32),
    "empty integers": np.zeros((0,), np.int32),
    "empty booleans": np.zeros((0,), bool),
    "no rows": np.zeros((0, 3), np.float32),
    "no columns": np.zeros((3, 0), np.float32),
    "no dimensions": np.ones((), np.float32),
    "NaN": np.array([1, np.nan, 0, -np.inf, np.inf], np.float32),
    "all NaN": np.full((2, 3), np.nan, np.float32),
    "signed zeros": np.array([0.0, -0.0, 0.0], np.float32),
    "one": np.ones((1, 1, 1), np.float32),
}


def outcome(f, x):
    """The array, or the word "error"."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(f(x))
    except (ValueError, TypeError, IndexError, ZeroDivisionError):
        return "error"


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_odd_arrays_reduce_as_in_numpy(name, kind):
    x = ODD[kind]
    for axis in [None, *range(x.ndim)]:
        if axis is None and name in ("sort",):
            continue

        def theirs(v, axis=axis):
            return getattr(np, name)(v, axis=axis)

        def ours(v, axis=axis):
            return getattr(wnp, name)(v, axis=axis)

        want = outcome(theirs, x)
        for f in [ours, weft.jit(ours)]:
            got = outcome(f, x)
            if isinstance(want, str):
                assert isinstance(got, str), (axis, got)
                continue
            assert not isinstance(got, str), (axis, want)
            assert got.shape == want.shape
            np.testing.assert_array_equal(got, want.astype(got.dtype))


ELEMENTWISE = [
    "sin",
    "exp",
    "log",
    "sqrt",
    "tanh",
    "floor",
    "sign",
    "abs",
    "negative",
    "isnan",
    "isfinite",
    "square",
    "reciprocal",
    "log1p",
    "expm1",
]


@pytest.mark.parametrize("kind", ODD)
def test_odd_arrays_elementwise_as_in_numpy(kind):
    x = ODD[kind]
    for name in ELEMENTWISE:
        if x.dtype == bool and name in ("negative", "sign"):
            continue
        want = outcome(getattr(np, name), x)
        for f in [getattr(wnp, name), weft.jit(getattr(wnp, name))]:
            got = np.asarray(f(x))
            assert got.shape == want.shape, name
            np.testing.assert_allclose(got, want.astype(got.dtype), rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 0), (0, 2, 5), (3, 0), (0, 4)])
def test_linear_algebra_of_nothing(shape):
    x = np.zeros(shape, np.float32)
    square = shape[-1] == shape[-2]
    names = ["qr", "svdvals", "pinv"] + ["cholesky", "eigvalsh", "inv", "det", "slogdet"] * square
    for name in names:
        want = outcome(getattr(np.linalg, name), x) if name != "svdvals" else np.linalg.svd(x, compute_uv=False)
        for f in [getattr(wnp.linalg, name), weft.jit(getattr(wnp.linalg, name))]:
            if name in ("qr", "slogdet"):
                got, expected = f(x), getattr(np.linalg, name)(x)
                assert [g.shape for g in got] == [w.shape for w in expected], name
            else:
                np.testing.assert_array_equal(np.asarray(f(x)), want, err_msg=name)


@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize("name", ["cholesky", "eigh", "svd", "svdvals", "qr", "inv", "det", "pinv"])
def test_linear_algebra_of_nan_ends_quietly(name, value, capfd):
    for n in [1, 3, 40]:
        x = np.eye(n, dtype=np.float32)
        x[0, 0] = value
        for f in [getattr(wnp.linalg, name), weft.jit(getattr(wnp.linalg, name))]:
            leaves = [np.asarray(v) for v in weft.tree.leaves(f(x))]
            if name not in ("inv", "det", "cholesky", "qr") or np.isnan(value):
                assert any(np.isnan(v).any() for v in leaves)
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")  # LAPACK prints about illegal values


def test_functions_of_nothing():
    e = wnp.zeros((0,))
    for f in [lambda f: f, weft.jit]:
        assert f(nn.softmax)(e).shape == f(nn.log_softmax)(e).shape == (0,)
        assert f(nn.logsumexp)(e) == -INF
        assert (f(lambda a, b: a @ b)(wnp.zeros((2, 0)), wnp.zeros((0, 3)))).tolist() == [[0, 0, 0]] * 2
        assert f(lambda a, b: a @ b)(wnp.zeros((0, 2)), wnp.zeros((2, 3))).shape == (0, 3)
        assert f(lambda a: wnp.concatenate([a, a]))(e).shape == (0,)
        assert f(lambda a: a[wnp.zeros((0,), int)])(e).shape == (0,)
        assert f(lambda a: a.at[wnp.zeros((0,), int)].set(1.0))(e).shape == (0,)
        assert f(lambda a: weft.scan(lambda c, y: (c + y, y * 2), 1.0, a))(e)[0] == 1
        assert f(weft.vmap(lambda a: a * 2))(wnp.zeros((0, 3))).shape == (0, 3)
        assert f(weft.grad(lambda a: (a * a).sum()))(e).shape == (0,)
        assert f(lambda a: lax.conv_general_dilated(a, wnp.ones((1, 1, 3)), (1,), "SAME"))(
            wnp.zeros((0, 1, 5))
        ).shape == (
            0,
            1,
            5,
        )
        assert f(lambda a: wnp.fft.fft(a))(wnp.zeros((0, 4))).shape == (0, 4)
        assert f(lambda k: random.normal(k, (0,)))(random.key(0)).shape == (0,)
        assert f(lambda a: wnp.sort(a))(e).shape == (0,)
        assert f(lambda a: wnp.pad(a, 2))(e).tolist() == [0, 0, 0, 0]


# --- Numbers at the edges ---------------------------------------------------------------------------------------------

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_edges(dtype):
    info = np.iinfo(dtype)
    values = [info.min, info.min + 1, -1, 0, 1, 2, info.max - 1, info.max]
    values = np.array([v for v in values if info.min <= v <= info.max], dtype)
    a, b = (v.reshape(-1) for v in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        for f in [lambda f: f, weft.jit]:
            for name in ["add", "subtract", "multiply"]:
                np.testing.assert_array_equal(np.asarray(f(getattr(wnp, name))(a, b)), getattr(np, name)(a, b))
            some = b != 0  # NumPy gives 0, XLA and Weft all ones
            quotient, rest = np.asarray(f(wnp.floor_divide)(a, b)), np.asarray(f(wnp.remainder)(a, b))
            overflow = (a == info.min) & (b == values[2]) & (info.min < 0)  # -min: NumPy's result varies
            keep = some & ~overflow
            np.testing.assert_array_equal(quotient[keep], np.floor_divide(a, b)[keep])
            np.testing.assert_array_equal(rest[keep], np.remainder(a, b)[keep])
            np.testing.assert_array_equal(np.asarray(f(wnp.abs)(a)), np.abs(a))
            np.testing.assert_array_equal(np.asarray(f(wnp.max)(a)), a.max())


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons_with_integers_beyond_the_dtype(dtype, name):
    """As in NumPy; JAX takes the number modulo 2^bits."""
    x, compare = np.array([0, 1, 127], dtype), getattr(operator, name)

    def all_of(v):
        numbers = [-(2**40), -1, 200, 300, 2**40, 2**63]
        return [compare(v, n) for n in numbers] + [compare(n, v) for n in numbers]

    for mine in (all_of, weft.jit(all_of)):
        np.testing.assert_array_equal(np.array([np.asarray(r) for r in mine(wnp.asarray(x))]), np.array(all_of(x)))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_beyond_the_width_and_conversions(dtype):
    info = np.iinfo(dtype)
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 3.9, -3.9, 0.0], np.float32)
    want = [0, info.max, info.min, info.max, info.min, 3, -3 if info.min < 0 else 0, 0]
    width = np.dtype(dtype).itemsize * 8
    ones = np.ones(4, dtype)
    by = np.array([0, width - 1, width, min(info.max, 127)], dtype)
    for f in [lambda f: f, weft.jit]:
        assert np.asarray(f(lambda v: v.astype(dtype))(wnp.asarray(x))).tolist() == want
        low = np.asarray(f(lambda a, b: a << b)(ones, by))
        assert low[0] == 1 and low[2:].tolist() == [0, 0]
        assert int(low[1]) % 2**width == 2 ** (width - 1)


INDEX_DTYPES = {
    "int8": [0, -1, -128, 127],
    "uint8": [0, 200, 255],
    "int32": [0, 4, 5, -1, -5, -6, 2**31 - 1, -(2**31)],
    "uint32": [0, 4, 5, 2**31, 2**32 - 1],
    "int64": [0, -1, 5, 2**31, 2**32, 2**32 + 1, -(2**32), 2**62, 2**63 - 1, -(2**63)],
    "uint64": [0, 3, 2**32 + 2, 2**63, 2**64 - 1],
}


@pytest.mark.parametrize("dtype", INDEX_DTYPES)
def test_indices_out_of_bounds(dtype):
    n, x = 5, np.arange(5, dtype=np.float32)
    for index in INDEX_DTYPES[dtype]:
        wrapped = index + n if index < 0 else index
        inside = 0 <= wrapped < n
        clipped = min(max(wrapped, 0), n - 1)
        for at in [np.array([index], dtype), np.dtype(dtype).type(index)]:
            get = weft.jit(lambda v, i: v[i])
            assert np.asarray(get(x, at)).reshape(-1)[0] == clipped, index
            put = np.asarray(weft.jit(lambda v, i: v.at[i].set(9.0))(x, at))
            add = np.asarray(weft.jit(lambda v, i: v.at[i].add(9.0))(x, at))
            for got, value in [(put, 9), (add, x[clipped] + 9)]:
                want = x.copy()
                if inside:
                    want[wrapped] = value
                assert got.tolist() == want.tolist(), index
            fill = np.asarray(weft.jit(lambda v, i: wnp.take(v, i, mode="fill"))(x, at)).reshape(-1)[0]
            assert fill == clipped if inside else np.isnan(fill), index
            clip = np.asarray(weft.jit(lambda v, i: wnp.take(v, i, mode="clip"))(x, at)).reshape(-1)[0]
            assert clip == clipped or (clip == 0 and index < 0), index
            wrap = np.asarray(weft.jit(lambda v, i: wnp.take(v, i, mode="wrap"))(x, at)).reshape(-1)[0]
            assert wrap == index % n, index
        start = weft.jit(lambda v, i: lax.dynamic_slice(v, (i,), (2,)))(x, np.dtype(dtype).type(index))
        first = min(max(wrapped, 0), n - 2)
        assert np.asarray(start).tolist() == [first, first + 1], index
        new = weft.jit(lambda v, i: lax.dynamic_update_slice(v, wnp.full(2, 9.0), (i,)))(x, np.dtype(dtype).type(index))
        assert np.flatnonzero(np.asarray(new) == 9).tolist() == [first, first + 1], index


def test_branch_numbers_out_of_range():
    branches = [lambda v: v, lambda v: v * 10, lambda v: v * 100]
    for f in [lambda f: f, weft.jit]:
        for index, want in [(-5, 1), (0, 1), (1, 10), (2, 100), (3, 100), (2**31 - 1, 100)]:
            assert f(lambda i: weft.switch(i, branches, 1.0))(index) == want


# --- Sizes that are there only at run time ----------------------------------------------------------------------------


def test_arguments_that_do_not_fit_a_symbolic_program():
    ir = weft.make_ir(lambda x, y: x * 2 + y)(
        weft.ShapeDtype(("n", 3), "float32"), weft.ShapeDtype(("n", 3), "float32")
    )
    assert ir(np.ones((0, 3), np.float32), np.ones((0, 3), np.float32)).shape == (0, 3)
    for bad in [
        (np.ones((2, 3), np.float32), np.ones((3, 3), np.float32)),
        (np.ones((2, 4), np.float32), np.ones((2, 4), np.float32)),
        (np.ones(3, np.float32), np.ones(3, np.float32)),
        (np.ones((2, 3), np.float64), np.ones((2, 3), np.float32)),
        (np.ones((2, 3), np.float32),),
    ]:
        with pytest.raises(TypeError):
            ir(*bad)


# --- Foreign text and bytes -------------------------------------------------------------------------------------------


def samples():
    return [
        weft.make_ir(lambda x: wnp.sin(x) * 2 + 1)(1.0),
        weft.make_ir(lambda x: weft.scan(lambda c, y: (c + y, c), 0.0, x))(wnp.ones(3)),
        weft.make_ir(lambda x: weft.cond(x > 0, lambda v: v, lambda v: -v, x))(1.0),
    ]


def test_text_with_a_piece_missing():
    """Every prefix and every text without one of its lines or characters is refused with a place, or is a program."""
    for ir in samples():
        text = ir.text
        lines = text.splitlines(keepends=True)
        broken = [text[:i] for i in range(len(text))]
        broken += ["".join(lines[:i] + lines[i + 1 :]) for i in range(len(lines))]
        broken += [text[:i] + text[i + 1 :] for i in range(len(text))]
        broken += [text[:i] + chr(0xE9) + text[i:] for i in range(0, len(text), 7)]
        refused = 0
        for t in broken:
            try:
                back = weft.parse_ir(t)
            except weft.ParseError as error:
                refused += 1
                assert "<text>:" in str(error)
            else:
                assert weft.parse_ir(back.text).text == back.text
        assert refused > len(text) / 2


def test_pickles_of_every_protocol():
    import copy
    import pickle

    things = [*(ir._fn for ir in samples()), weft.ShapeDtype(("n", 3)), wnp.arange(3).dtype]
    for thing in things:
        # Python itself refuses classes with slots below protocol 2.
        for protocol in range(2 if isinstance(thing, weft.ShapeDtype) else 0, pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(thing, protocol)) == thing
        assert copy.copy(thing) == copy.deepcopy(thing) == thing
    array = wnp.arange(6).reshape(2, 3)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(array, protocol)).tolist() == array.tolist()
    for ir in samples():
        make, arguments = ir._fn.__reduce__()
        for i in range(len(arguments[0].rstrip())):
            with pytest.raises(weft.ParseError):
                make(arguments[0][:i], "")


def test_arrays_from_wrong_pickles():
    import pickle

    array = wnp.arange(6).reshape(2, 3)
    assert pickle.loads(pickle.dumps(array)).tolist() == array.tolist()
    make, arguments = array.__reduce_ex__(2)[:2]
    for i, a in enumerate(arguments):
        wrong = {bytes: b"123", tuple: (7, 9), str: "nothing"}.get(type(a))
        if wrong is None:
            continue
        with pytest.raises((ValueError, TypeError)):
            make(*arguments[:i], wrong, *arguments[i + 1 :])


def test_steps_of_any_size():
    for step in [5, 2**31, 2**62, 2**63 - 1]:
        for f in both(lambda v: lax.slice(v, (1,), (5,), (step,))):  # noqa: B023
            assert np.asarray(f(wnp.arange(5))).tolist() == [1]


def both(f):
    """Eager and compiled."""
    return [f, weft.jit(f)]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "bool"])
def test_approximate_extremes_are_of_floats(dtype):
    for f in (weft.lax.approx_max_k, weft.lax.approx_min_k):
        with pytest.raises(TypeError, match=rf"{f.__name__}: operand is \w+\[3\]; expected a floating-point dtype"):
            f(wnp.array([1, 0, 1], dtype=dtype), 1)


@pytest.mark.parametrize("transform", [weft.jit, weft.grad, weft.value_and_grad, weft.vmap])
def test_what_cannot_be_called(transform):
    for what in (3, "f") if transform is weft.jit else (3, None, "f"):  # jit(None, ...) makes a decorator
        with pytest.raises(TypeError, match=rf"\w+: expected a function, got {what!r} of type '{type(what).__name__}'"):
            transform(what)


def test_programs_of_other_types():
    with pytest.raises(TypeError, match="parse_ir: text must be a string, got 'NoneType'"):
        weft.parse_ir(None)
    with pytest.raises(TypeError, match="deserialize_ir: data must be bytes, got 'str'"):
        weft.deserialize_ir("text")
    with pytest.raises(ValueError, match="static_argnums has -3, but 'f' takes 2"):

        def f(x, y):
            return x

        weft.jit(f, static_argnums=-3)
    with pytest.raises(TypeError, match="argnums is 'x' of type 'str'"):
        weft.grad(lambda x: x, argnums="x")(1.0)


@pytest.mark.parametrize(
    ("name", "call"),
    {
        "value_and_grad": lambda: weft.value_and_grad(3),
        "jacfwd": lambda: weft.jacfwd(3),
        "jacrev": lambda: weft.jacrev(3),
        "hessian": lambda: weft.hessian(3),
        "jvp": lambda: weft.jvp(3, (1.0,), (1.0,)),
        "vjp": lambda: weft.vjp(3, 1.0),
        "linearize": lambda: weft.linearize(3, 1.0),
        "linear_transpose": lambda: weft.linear_transpose(3, 1.0),
        "jet": lambda: weft.jet(3, (1.0,), ((1.0,),)),
        "make_ir": lambda: weft.make_ir(3),
        "eval_shape": lambda: weft.eval_shape(3, 1.0),
        "checkpoint": lambda: weft.checkpoint(3),
        "scan": lambda: weft.scan(3, 0.0, X),
        "custom_jvp": lambda: weft.custom_jvp(3),
        "custom_vjp": lambda: weft.custom_vjp(3),
        "defjvp": lambda: weft.custom_jvp(lambda x: x).defjvp(3),
        "defvjp": lambda: weft.custom_vjp(lambda x: x).defvjp(3, 4),
    }.items(),
)
def test_what_is_no_function_is_said_by_name(name, call):
    with pytest.raises(TypeError, match=f"{name}: expected a function, got 3 of type 'int'"):
        call()


def test_endless_recursion_names_its_line():
    def endless(x):
        return endless(x) + 1

    line = endless.__code__.co_firstlineno + 1
    with pytest.raises(RecursionError, match=rf"bad_input_test\.py:{line}\. A function"):
        weft.jit(endless)(1.0)


def test_a_function_of_elements_gives_elements():
    with pytest.raises(TypeError, match=r"apply: the function gave f32\[2\] for one element"):
        X.at[np.array([0, 0]), 0].apply(lambda v: wnp.ones(2))


def test_dtypes_are_not_mistaken_for_equal_objects():
    wnp.zeros(3, np.int8(2))
    with pytest.raises(TypeError, match=r"2\.0 is not a dtype"):
        wnp.zeros(3, 2.0)


def test_reshape_names_its_arguments():
    with pytest.raises(TypeError, match="reshape: there is no argument 'foo'"):
        X.reshape(2, 3, foo=1)


def test_names_that_are_no_utf8():
    """Lone surrogates, as in names of files that Python could not decode."""

    def fails(x):
        raise ValueError("\udc80bad")

    with pytest.raises(ValueError, match=r"^\udc80bad"):
        weft.jit(lambda x: weft.pure_callback(fails, weft.ShapeDtype((), "float32"), x))(1.0)
    f = weft.jit(lambda **k: k["\ud800"] * 2, static_argnames="\ud800")
    assert f(**{"\ud800": 3}) == 6
    with pytest.raises(ValueError, match="not hashable"):
        f(**{"\ud800": []})


def test_a_name_that_is_no_text():
    class Named:
        __name__ = 5

        def __call__(self, x, y=None):
            return x

    assert weft.jit(Named())(2.0) == 2
    with pytest.raises(ValueError, match="not hashable"):
        weft.jit(Named(), static_argnums=1)(2.0, [])


def test_a_hash_that_raises():
    class Unhashed:
        def __hash__(self):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        weft.jit(lambda x, s: x, static_argnums=1)(1.0, Unhashed())


def test_more_numbers_than_an_array_holds():
    with pytest.raises(ValueError, match=r"more numbers than an array holds\n  at .*bad_input_test\.py"):
        wnp.arange(1e20)
    with pytest.raises(ValueError, match="the step must not be 0"):
        wnp.arange(0.0, 1.0, 0.0)
