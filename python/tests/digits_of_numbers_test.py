"""Python's floats keep all their digits until they get a dtype: beside 64-bit arrays they are what numpy.float64 of
them is, in every function of several numbers, in results of branches and in carries of loops."""

import itertools

import numpy as np
import pytest

import weft
import weft.lax as lax
import weft.nn as nn
import weft.numpy as wnp
import weft.random as random
from weft.scipy import special, stats

X = np.array([0.7, 0.3])
SORTED = np.sort(X)
FOUR = [0.3, 1.7, 2.3, 3.7]

# What stands beside the float decides alone, or the float is an argument that numbers are not computed from.
APART = {
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "meshgrid",  # each for itself
    "angle", "copy", "ediff1d", "extract", "full_like", "nan_to_num", "roll", "unique", "pad",  # the first one's dtype
    "histogram_bin_edges", "insert", "percentile", "quantile", "nanpercentile", "nanquantile",
    "corrcoef", "cov", "intersect1d", "setdiff1d", "setxor1d",  # the third one is a flag
    "clip", "where",  # two of Python's numbers alone
    "multivariate_normal.logpdf", "multivariate_normal.pdf",
    "sph_harm_y",  # degree and order are integers
}  # fmt: skip


def functions():
    for module in (wnp, special):
        for name in module.__all__:
            if callable(getattr(module, name)) and not isinstance(getattr(module, name), type):
                yield name, getattr(module, name)
    for name in stats.__all__:
        distribution = getattr(stats, name)
        for method in ("pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf"):
            if hasattr(distribution, method) and not isinstance(distribution, type):
                yield f"{name}.{method}", getattr(distribution, method)


def equal(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


def applied(f, args):
    try:
        out = f(*args)
        return [np.asarray(x) for x in (out if isinstance(out, (tuple, list)) else [out]) if isinstance(x, weft.Array)]
    except (TypeError, ValueError, IndexError, NotImplementedError):
        return None


def test_functions_of_several_numbers():
    compared = set()
    with np.errstate(all="ignore"):
        for (name, f), n in itertools.product(functions(), (2, 3, 4)):
            wide = applied(f, [np.float64(v) for v in FOUR[:n]]) if name not in APART else None
            for mask in itertools.product((False, True), repeat=n) if wide is not None else []:
                if not any(mask) or all(mask):
                    continue
                given = applied(f, [np.float64(v) if w else v for v, w in zip(FOUR, mask)])
                if given is not None:
                    compared.add(name)
                    for a, b in zip(wide, given, strict=True):
                        assert a.dtype == b.dtype, (name, mask)
                        np.testing.assert_allclose(b, a, rtol=1e-14, err_msg=f"{name} {mask}")
    assert len(compared) > 80, compared


def loop(body):
    return lambda v: lax.fori_loop(0, 2, body, v)


@pytest.mark.parametrize(
    "f",
    [
        lambda v: wnp.where(X > 0.5, X, v),
        lambda v: wnp.select([X > 0.5], [X], v),
        lambda v: wnp.piecewise(X, [X > 0.5], [v, 0.1]),
        lambda v: wnp.pad(X, 1, constant_values=v),
        lambda v: wnp.insert(X, 1, v),
        lambda v: wnp.put(X, 0, v, inplace=False),
        lambda v: wnp.fill_diagonal(np.eye(2), v, inplace=False),
        lambda v: wnp.choose(np.array([0, 1]), [X, v]),
        lambda v: wnp.r_[X, v],
        lambda v: wnp.hstack([X, v]),
        lambda v: wnp.stack([X[0], v]),
        lambda v: wnp.interp(v, SORTED, X),
        lambda v: wnp.quantile(X, v),
        lambda v: wnp.percentile(X, v),
        lambda v: wnp.searchsorted(SORTED, v),
        lambda v: wnp.digitize(v, SORTED),
        lambda v: wnp.isin(X, v),
        lambda v: wnp.isclose(X, v, rtol=0, atol=1e-12),
        lambda v: wnp.array_equal(X[1], v),
        lambda v: wnp.gradient(X, v),
        lambda v: wnp.diff(X, prepend=v),
        lambda v: wnp.histogram(X, bins=3, range=(v, 0.9))[1],
        lambda v: wnp.linspace(v, X, 3),
        lambda v: wnp.linspace(v, 1, 3, dtype="float64"),
        lambda v: wnp.logspace(v, 1, 3, dtype="float64"),
        lambda v: wnp.geomspace(v, 1, 3, dtype=np.float64),
        lambda v: wnp.einsum("i,->i", X, v),
        lambda v: wnp.tensordot(X, v, 0),
        lambda v: wnp.array(X).at[0].set(v),
        lambda v: nn.standardize(X, mean=v, variance=v),
        lambda v: random.truncated_normal(random.key(0), v, 0.9, (2,), "float64"),
        lambda v: lax.cond(True, lambda: v, lambda: X[0]),
        lambda v: lax.cond(False, lambda: X[0], lambda: v),
        lambda v: lax.switch(1, [lambda: X[0], lambda: v, lambda: 0.5]),
        lambda v: lax.scan(lambda c, y: (c + y, c), v, X)[0],
        lambda v: lax.scan(lambda c, y: (v, c), X[0], X)[0],
        loop(lambda i, c: c + X[0]),
        lambda v: lax.while_loop(lambda c: c < 1, lambda c: c + X[0], v),
        lambda v: weft.jit(lambda x: lax.cond(x[0] > 0, lambda: v, lambda: x[0]))(X),
        lambda v: weft.grad(lambda x: lax.scan(lambda c, y: (v * c, c), x, None, length=2)[0])(np.float64(1)),
    ],
)  # fmt: skip
def test_a_number_among_64_bits(f):
    assert equal(f(0.3), f(np.float64(0.3)))


@pytest.mark.parametrize("name", ["gcd", "lcm", "fmod", "isin", "where", "append", "floor_divide", "maximum", "dot"])
def test_integers_beyond_32_bits(name):
    x, large = np.array([1, 3 * 2**40, 2**41 + 1]), 2**40
    args = (x > 5, x, large) if name == "where" else (x, large)
    given, wanted = getattr(wnp, name)(*args), getattr(np, name)(*args)
    assert equal(given, wanted), given


def test_integers_have_to_fit():
    bytes_ = np.array([1, 44], np.int8)
    for f in (wnp.isin, wnp.fmax, wnp.dot, wnp.append, wnp.searchsorted, wnp.kron):
        with pytest.raises(OverflowError, match="300 does not fit i8"):
            f(bytes_, 300)


def test_attention_of_64_bits():
    q, k, v = np.random.default_rng(0).standard_normal((3, 1, 4, 2, 8))
    logits = np.einsum("btnh,bsnh->bnts", q, k) / np.sqrt(8)
    weights = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    given = nn.dot_product_attention(q, k, v)
    assert given.dtype == np.float64
    np.testing.assert_allclose(np.asarray(given), np.einsum("bnts,bsnh->btnh", weights, v), rtol=1e-13)


def test_float_of_a_traced_integer_is_what_x64_says():
    @weft.jit(autograph=True)
    def third(n):
        return float(n) / 3

    assert third(np.int32(1)).dtype == np.float32
    with weft.enable_x64():
        assert float(third(np.int32(1))) == 1 / 3
