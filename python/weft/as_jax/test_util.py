"""jax.test_util: derivatives against difference quotients."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

import weft

from .._core import tree as _tree
from .._core.errors import value_error
from .meshes import AxisType, make_mesh

# Tolerances, by the bits of the dtype: of values and of derivatives.
_TOLERANCES = {8: 1e-1, 16: 1e-2, 32: 2e-3, 64: 1e-5}

# Of numbers that should be the same, by the bits of the dtype.
_ROUNDING = {8: 1e-1, 16: 1e-3, 32: 1e-6, 64: 1e-15}
_EXACT = dict.fromkeys(_ROUNDING, 0.0)

# A number, or one for each dtype, of which those that are not named have their own.
Tolerance = float | Mapping[Any, float]


def _tolerance(tree: Any, given: Tolerance | None, of_bits: Mapping[int, float] = _TOLERANCES) -> float:
    """The largest that one of the arrays has."""
    if given is not None and not isinstance(given, Mapping):
        return given
    named = {np.dtype(dtype): tolerance for dtype, tolerance in (given or {}).items()}

    def of(x: Any) -> float:
        own = 10 * of_bits[16] if _array(x).dtype == ml_dtypes.bfloat16 else of_bits.get(_bits(x), of_bits[32])
        return named.get(_array(x).dtype, own)

    return max(map(of, _tree.leaves(tree)), default=of_bits[32])


def _array(x: Any) -> np.ndarray[Any, Any]:
    """As NumPy's array of the dtype that it has in programs."""
    return np.asarray(weft.numpy.asarray(x))


def _bits(x: Any) -> int:
    dtype = _array(x).dtype
    return dtype.itemsize * (4 if dtype.kind == "c" else 8)


def _random_like(rng: np.random.Generator, x: Any) -> Any:
    x = _array(x)
    values = rng.standard_normal(x.shape)
    if np.iscomplexobj(x):
        values = values + 1j * rng.standard_normal(x.shape)
    return values.astype(x.dtype)


def _dot(a: Any, b: Any) -> Any:
    """The sum of products, in double precision: a sum of numbers of 16 bits would round more than what it compares."""
    return sum(np.vdot(_wide(x), _wide(y)) for x, y in zip(_tree.leaves(a), _tree.leaves(b)))


def _wide(x: Any) -> np.ndarray[Any, Any]:
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _close(a: Any, b: Any, atol: float, rtol: float, err_msg: str) -> None:
    for x, y in zip(_tree.leaves(a), _tree.leaves(b), strict=True):
        x, y = (a.astype(np.float32) if a.dtype == ml_dtypes.bfloat16 else a for a in map(np.asarray, (x, y)))
        # Rounding grows with the number of elements that were summed on the way.
        scale = max(x.size, 1)
        np.testing.assert_allclose(x, y, atol=atol * scale, rtol=rtol * scale, err_msg=err_msg)


def check_close(
    xs: Any, ys: Any, atol: Tolerance | None = None, rtol: Tolerance | None = None, err_msg: str = ""
) -> None:
    """Raises AssertionError where the arrays of two trees differ by more than a tolerance for their dtypes."""
    if _tree.structure(xs) != _tree.structure(ys):
        raise value_error(f"check_close: the trees {_tree.structure(xs)} and {_tree.structure(ys)} differ")
    for x, y in zip(_tree.leaves(xs), _tree.leaves(ys)):
        assert np.shape(x) == np.shape(y), f"{np.shape(x)} and {np.shape(y)}"
        of_bits = _EXACT if all(_array(a).dtype.kind in "biu" for a in (x, y)) else _ROUNDING
        absolute, relative = (_tolerance([x, y], given, of_bits) for given in (atol, rtol))
        _close(x, y, absolute, relative, err_msg)


def _difference(f: Callable[..., Any], args: Sequence[Any], tangents: Any, eps: float) -> Any:
    """The difference quotient of f along the tangents: two central ones, of f(x + eps t) - f(x - eps t) as JAX takes
    it and of half the step, extrapolated to steps of 0 (Richardson)."""
    whole, half = _quotient(f, args, tangents, eps), _quotient(f, args, tangents, eps / 2)
    with np.errstate(invalid="ignore"):
        return _tree.map(lambda a, b: b + (b - a) / 3, whole, half)


def _quotient(f: Callable[..., Any], args: Sequence[Any], tangents: Any, eps: float) -> Any:
    moved = lambda step: _tree.map(
        lambda x, t: _array(x) + np.asarray(step * t, _array(x).dtype), tuple(args), tangents
    )
    out, step = [f(*moved(s)) for s in (eps, -eps)], 2 * eps
    return _tree.map(lambda a, b: _difference_of(np.asarray(a), np.asarray(b)) / step, *out)


def _difference_of(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> Any:
    """a - b, where equal infinities differ by 0."""
    with np.errstate(invalid="ignore"):
        return np.where(a == b, np.zeros((), a.dtype), a - b)


def _eps(args: Any, given: float | None) -> float:
    if given is not None:
        return given
    return 5e-7 if all(_bits(x) >= 64 for x in _tree.leaves(args)) else 5e-4


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: Tolerance | None = None,
    rtol: Tolerance | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compares a function's forward derivative with a difference quotient along a random direction.

    Raises:
        AssertionError: they differ.
    """
    atol, rtol = _tolerance(args, atol), _tolerance(args, rtol)
    rng = np.random.default_rng(0)
    tangents = _tree.map(lambda x: _random_like(rng, x), tuple(args))
    value, tangent = f_jvp(tuple(args), tangents)
    _close(value, f(*args), atol, rtol, f"{err_msg} values of jvp".strip())
    _close(tangent, _difference(f, args, tangents, _eps(args, eps)), atol, rtol, f"{err_msg} tangents of jvp".strip())


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: Tolerance | None = None,
    rtol: Tolerance | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compares a function's reverse derivative with a difference quotient along random directions.

    Raises:
        AssertionError: they differ.
    """
    atol, rtol = _tolerance(args, atol), _tolerance(args, rtol)
    rng = np.random.default_rng(0)
    value, pull = f_vjp(*args)
    _close(value, f(*args), atol, rtol, f"{err_msg} values of vjp".strip())
    tangents = _tree.map(lambda x: _random_like(rng, x), tuple(args))
    moved = _difference(f, args, tangents, _eps(args, eps))
    cotangents = _tree.map(lambda x: _random_like(rng, x), value)
    pulled = pull(weft.tree.map(lambda c, v: weft.numpy.asarray(c).astype(v.dtype), cotangents, value))
    one, other = (
        np.real(_dot(tangents, _tree.map(np.conj, pulled))),
        np.real(_dot(_tree.map(np.conj, cotangents), moved)),
    )
    np.testing.assert_allclose(one, other, atol=atol, rtol=rtol, err_msg=f"{err_msg} cotangents of vjp".strip())


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: Tolerance | None = None,
    rtol: Tolerance | None = None,
    eps: float | None = None,
) -> None:
    """Compares a function's derivatives up to an order with difference quotients of those one lower.

    Args:
        f: the function.
        args: a tuple of its arguments.
        order: the highest order.
        modes: some of "fwd", "rev" and "lin", which is linearize.
        atol: absolute tolerance, or a dictionary from dtypes to them; None: by the dtype.
        rtol: relative tolerance, or such a dictionary; None: by the dtype.
        eps: the step of the difference quotients; None: by the dtype.

    Raises:
        AssertionError: they differ.
    """
    args = tuple(args)

    def check(f: Callable[..., Any], args: tuple[Any, ...], left: int, done: str) -> None:
        if "fwd" in modes:
            forward = lambda primals, tangents: weft.jvp(f, primals, tangents)
            check_jvp(f, forward, args, atol, rtol, eps, f"jvp{done}")
            if left > 1:
                rng = np.random.default_rng(left)
                fixed = _tree.map(lambda x: _random_like(rng, x), args)
                check(lambda *xs: weft.jvp(f, xs, fixed), args, left - 1, f" of jvp{done}")
        if "rev" in modes:
            check_vjp(f, lambda *xs: weft.vjp(f, *xs), args, atol, rtol, eps, f"vjp{done}")
            if left > 1:
                rng = np.random.default_rng(left)
                value = f(*args)
                fixed = _tree.map(lambda x: _random_like(rng, x), value)

                def reverse(*xs: Any) -> Any:
                    out, pull = weft.vjp(f, *xs)
                    return out, pull(fixed)

                check(reverse, args, left - 1, f" of vjp{done}")

        if "lin" in modes:
            check_jvp(
                f, lambda primals, tangents: _by_linearize(f, primals, tangents), args, atol, rtol, eps, f"lin{done}"
            )
            if left > 1:
                rng = np.random.default_rng(left)
                along = _tree.map(lambda x: _random_like(rng, x), args)
                check(lambda *xs: _by_linearize(f, xs, along), args, left - 1, f" of lin{done}")

    check(f, args, order, "")


def _by_linearize(f: Callable[..., Any], primals: tuple[Any, ...], tangents: Any) -> tuple[Any, Any]:
    value, push = weft.linearize(f, *primals)
    return value, push(*tangents)


def create_mesh(
    mesh_shape: Sequence[int], axis_names: Sequence[str], iota_order: bool = False, axis_types: Any = None
) -> weft.Mesh:
    """A mesh for a test, whose axes are of type Auto unless axis_types say otherwise. Raises unittest.SkipTest where
    there are too few devices."""
    size, there = math.prod(mesh_shape), weft.devices()
    if len(there) < size:
        import unittest  # which most programs do not load

        raise unittest.SkipTest(f"Test requires {size} global devices and found {len(there)}.")
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    types = (AxisType.Auto,) * len(names) if axis_types is None else axis_types
    devices = sorted(there, key=lambda device: device.id)[:size] if iota_order else None
    return make_mesh(tuple(mesh_shape), names, types, devices=devices)
