"""Derivatives where there is none: the table of docs/derivatives.md, against Weft and against JAX."""

import pathlib

import numpy as np
import pytest

import weft
import weft.numpy as wnp

DOC = pathlib.Path("docs/derivatives.md")


def rows():
    text = DOC.read_text().split("<!-- the table begins -->")[1].split("<!-- the table ends -->")[0]
    for line in text.strip().splitlines()[2:]:
        expression, x, derivative, other = (cell.strip() for cell in line.strip("|").split("|"))
        yield expression.strip("`"), float(x), float(derivative), other


TABLE = list(rows())


def names(np_, **more):
    every = {name: getattr(np_, name) for name in dir(np_) if not name.startswith("__")}
    return every | more | {"inf": np.inf, "nan": np.nan, "linalg": np_.linalg}


def derivative(grad, expression, scope, x):
    return float(grad(eval(f"lambda x: {expression}", scope))(np.float32(x)))


@pytest.mark.parametrize("expression,x,expected,other", TABLE, ids=[f"{row[0]} at {row[1]}" for row in TABLE])
def test_row(expression, x, expected, other):
    scope = names(wnp, nn=weft.nn, lax=weft.lax)
    got = derivative(weft.grad, expression, scope, x)
    assert got == pytest.approx(expected, rel=1e-6, nan_ok=True)
    assert derivative(lambda f: weft.jit(weft.grad(f)), expression, scope, x) == pytest.approx(
        got, rel=1e-6, nan_ok=True
    )
    forward = lambda f: lambda x: weft.jvp(f, (x,), (np.float32(1),))[1]
    assert derivative(forward, expression, scope, x) == pytest.approx(got, rel=1e-6, nan_ok=True)
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    theirs = derivative(jax.grad, expression, names(jnp, nn=jax.nn, lax=jax.lax), x)
    wanted = float(other.split(",")[0]) if other else got
    assert theirs == pytest.approx(wanted, rel=1e-6, nan_ok=True), "JAX"


def test_the_table_is_long_and_has_the_promised_rows():
    functions = " ".join(row[0] for row in TABLE)
    for name in ("abs", "maximum", "nn.relu", "sqrt", "linalg.norm", "sort", "clip", "max(stack", "power", "where"):
        assert name in functions


def safe_sqrt(x):
    positive = x > 0
    return wnp.where(positive, wnp.sqrt(wnp.where(positive, x, 1.0)), 0.0)


def test_where_and_nan():
    xs = np.array([-1.0, 0.0, 4.0], "float32")
    naive = weft.vmap(weft.grad(lambda x: wnp.where(x > 0, wnp.sqrt(x), 0.0)))(xs).tolist()
    assert np.isnan(naive[0]) and np.isnan(naive[1]) and naive[2] == 0.25
    for transformed in (
        weft.vmap(weft.grad(safe_sqrt)),
        weft.jit(weft.vmap(weft.grad(safe_sqrt))),
        weft.grad(lambda x: safe_sqrt(x).sum()),
        lambda x: weft.jvp(safe_sqrt, (x,), (np.ones(3, "float32"),))[1],
    ):
        assert transformed(xs).tolist() == [0, 0, 0.25]
    second = weft.vmap(weft.grad(weft.grad(safe_sqrt)))(xs).tolist()
    assert second == [0, 0, pytest.approx(-1 / 32)]
    branch = weft.grad(lambda x: weft.cond(x > 0, lambda: wnp.sqrt(x), lambda: 0.0))
    assert [float(branch(x)) for x in xs] == [0, 0, 0.25]


@pytest.mark.parametrize(
    "f,x,expected",
    [
        (lambda x: wnp.sinc(x), 0.0, 0.0),
        (lambda x: wnp.logaddexp(x, -np.inf), 0.3, 1.0),
        (lambda x: weft.nn.logsumexp(wnp.stack([x, -np.inf + 0 * x])), 0.3, 1.0),
        (lambda x: weft.nn.softplus(x), 100.0, 1.0),
        (lambda x: weft.nn.sigmoid(x), -200.0, 0.0),
        (lambda x: weft.scipy.special.xlogy(x, 0.0 * x + 1.0), 0.0, 0.0),
        (lambda x: wnp.abs(x + 0j), 0.0, 0.0),
    ],
)
def test_library_functions_are_safe(f, x, expected):
    assert float(weft.grad(f)(np.float32(x))) == pytest.approx(expected, abs=1e-6)
