"""Errors as values, beside JAX's checkify: one text of programs for both, with the same messages."""

import pathlib
import types

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import _weft
from weft._checks import interpreter
from weft.experimental import checkify

jax = pytest.importorskip("jax")

TEXT = (pathlib.Path(__file__).parent / "checkify_programs.py").read_text()


class _Either(types.SimpleNamespace):
    """Weft under JAX's names."""

    def __getattr__(self, name):
        return getattr(weft.lax, name) if hasattr(weft.lax, name) else getattr(weft, name)


def _programs(module, arrays, lax, checks):
    names = {"jax": module, "jnp": arrays, "np": np, "lax": lax, "C": checks}
    exec(compile(TEXT, "checkify_programs.py", "exec"), names)
    return {name: f for name, f in names.items() if isinstance(f, types.FunctionType) and name != "get"}


def _theirs():
    from jax.experimental import checkify as theirs

    return _programs(jax, jax.numpy, jax.lax, theirs)


THEIRS, MINE = _theirs(), _programs(weft, wnp, _Either(), checkify)


@pytest.mark.parametrize("name", THEIRS)
def test_program(name):
    try:
        theirs, error = THEIRS[name](), None
    except Exception as raised:
        theirs, error = None, raised
    if error is not None:
        with pytest.raises(type(error)):
            MINE[name]()
        return
    with weft.jax_semantics():  # whose messages have no line
        mine = MINE[name]()
    found, expected = weft.tree.leaves(mine), jax.tree.leaves(theirs)
    assert len(found) == len(expected), (mine, theirs)
    for a, b in zip(found, expected, strict=True):
        if isinstance(b, str):
            assert a.replace("array(", "Array(") == b
        elif hasattr(b, "shape") and name != "div":  # an integer by 0 is not defined
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-6)


def test_the_users_line():
    def f(x):
        checkify.check(x > 0, "not positive")  # here
        return x

    error, _ = checkify.checkify(f)(wnp.array(-1.0))
    with pytest.raises(
        checkify.JaxRuntimeError,
        match=r"not positive \(`check` "
        r"failed\)\n.*checkify_test.py:\d+ in test_the",
    ):
        error.throw()


def test_outside_of_checkify_a_program_raises_when_it_runs():
    def f(x):
        checkify.check(x > 0, "not positive: {} and {y}", x, y=2 * x)
        return x

    with pytest.raises(RuntimeError, match=r"not positive: -1.0 and -2.0"):
        weft.jit(f)(wnp.array(-1.0))
    with pytest.raises(RuntimeError, match=r"not positive: \[-2.0 -2.0\] and"):
        weft.vmap(f)(wnp.array([-2.0, -2.0]))
    assert weft.jit(f)(wnp.array(1.0)) == 1.0


def test_the_text_of_a_check_is_read_back():
    def f(x):
        checkify.check(x > 0, "not positive: {}", x)
        return x + 1

    text = weft.make_ir(f)(wnp.array(1.0)).text
    again = weft.parse_ir(text)
    assert again.text == text and again(wnp.array(1.0)) == 2.0
    with pytest.raises(RuntimeError, match=r"not positive: -1\.0"):
        again(wnp.array(-1.0))


def test_checks_of_weft_are_checks_of_users():
    def f(x):
        weft.debug.check(x > 0, "{} of {}", x.sum(), x)
        return x

    error, _ = checkify.checkify(f)(wnp.array([1.0, -1.0]))
    assert error.get() == "0.0 of [ 1. -1.] (`check` failed)"


def test_derivatives_keep_their_rules():
    @weft.custom_vjp
    def clipped(x):
        checkify.check(x < 10, "too large: {}", x)
        return x * x

    clipped.defvjp(lambda x: (x * x, x), lambda x, g: (wnp.clip(g * 2 * x, -1, 1),))

    def loss(x):
        error, y = checkify.checkify(clipped)(x)
        return y, error

    slope, error = weft.grad(loss, has_aux=True)(wnp.array(20.0))
    assert slope == 1.0 and error.get() == "too large: 20.0 (`check` failed)"
    slope, error = weft.jit(weft.grad(loss, has_aux=True))(wnp.array(2.0))
    assert slope == 1.0 and error.get() is None


@pytest.mark.parametrize("name", ["sin", "log", "sqrt", "exp", "tanh", "arccos", "gamma", "cumsum", "sum"])
def test_nans_of_operations_are_found_where_there_are_some(name):
    f = getattr(wnp, name, None) or getattr(weft.scipy.special, name)
    for x in (wnp.array([0.5, 0.7]), wnp.array([0.5, np.nan]), wnp.array([np.inf, -np.inf]), wnp.array([-2.5, 3.0])):
        error, y = weft.jit(checkify.checkify(f, errors=checkify.nan_checks))(x)
        assert (error.get() is not None) == bool(np.isnan(np.asarray(y)).any()), (name, x)


def _is_f32(ir):
    return all(p.type.dtype == "float32" for p in [*ir.parameters, *ir.results])


def test_every_operation_that_makes_a_nan_of_numbers_is_looked_at():
    numbers = np.array([0, -0.0, 1, -1, 0.5, -2.5, 3, 1e30, -1e30, 3e38, -3e38, 1e-30, -1e-40], np.float32)
    rng = np.random.default_rng(0)
    texts = _weft.sample_programs()
    makes_nans = set()
    for name in (p["name"] for p in _weft.primitives() if p["elementwise"]):
        programs = [ir for ir in map(weft.parse_ir, texts[name]) if _is_f32(ir)]
        for ir in programs[:1]:
            for _ in range(20):
                given = [rng.choice(numbers, size=p.type.shape).astype(np.float32) for p in ir.parameters]
                if np.isnan(np.asarray(ir(*given))).any():
                    makes_nans.add(name)
    assert {"log", "sqrt", "div"} <= makes_nans <= set(interpreter._NAN)


def test_gradients_of_loops():
    def f(x):
        return weft.lax.fori_loop(0, 3, lambda i, c: wnp.sqrt(c) + 1, x)

    error, _ = checkify.checkify(weft.grad(f), errors=checkify.float_checks)(wnp.array(4.0))
    assert error.get() is None
    error, slope = checkify.checkify(weft.grad(f), errors=checkify.nan_checks)(wnp.array(-4.0))
    assert error.get() == "nan generated by primitive: sqrt." and np.isnan(slope)

    def g(x):
        return weft.lax.while_loop(lambda c: c < 100, lambda c: c * c, x)

    error, slope = checkify.checkify(weft.grad(g), errors=checkify.all_checks)(wnp.array(3.0))
    assert error.get() is None and slope == weft.grad(g)(3.0)


def test_references_inside():
    total = weft.new_ref(0.0)

    def f(x):
        total[...] += x
        checkify.check(total[...] < 3, "total is {}", total[...])
        return x

    checked = checkify.checkify(f)
    assert [checked(wnp.array(x))[0].get() is None for x in (1.0, 1.5, 1.0)] == [True, True, False]
    assert total[...] == 3.5
    assert weft.jit(checked)(wnp.array(1.0))[0].get() == "total is 4.5 (`check` failed)"
    assert total[...] == 4.5


def test_mistakes():
    with pytest.raises(TypeError, match=r"errors is a set like checkify\.all_checks"):
        checkify.checkify(lambda x: x, errors=["nan"])
    with pytest.raises(TypeError, match="pred must be one boolean, got f32"):
        checkify.check(wnp.array(1.0), "x")
    for check in (checkify.check, checkify.debug_check):  # as str.format has it
        with pytest.raises(IndexError, match="has a field without an argument"):
            check(wnp.array(True), "x {}")
        with pytest.raises(KeyError, match="has a field without an argument"):
            check(wnp.array(True), "x {x}", y=wnp.array(1.0))
    with pytest.raises(TypeError, match="expected an Error"):
        checkify.check_error("no error")
    with pytest.raises(TypeError, match="must be arrays, got 'text'"):
        checkify.check(wnp.array(True), "x {}", "text")
