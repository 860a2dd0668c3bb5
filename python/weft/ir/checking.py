"""Whether a rule keeps what programs mean: weft.ir.check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _weft
from .._core import tree as _tree
from .._core.errors import type_error, value_error
from .._core.shapes import ShapeDtype
from ..compiled import jit
from ..config import enable_x64
from ..program import make_ir
from .rewriting import Rewrite

__all__ = ["check"]

_SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-3, -1e-3, 30.0, -30.0, 1e-30, 1e30, -1e30, np.inf, -np.inf, np.nan]


def check(
    rule: Rewrite,
    fun: Callable[..., Any],
    *args: Any,
    rtol: float = 1e-6,
    atol: float = 1e-14,
    finite: bool = False,
    samples: int = 100,
    seed: int = 0,
) -> None:
    """Tries a rule: the function with and without it, on special values (zeros of both signs, infinities, NaN, large
    and small numbers) and on random ones of many magnitudes, beside the function computed in 64 bits.

    A result of the rule is right if it is as near to that of 64 bits as the bounds say, or no farther than without the
    rule: it may be more accurate than what it replaces. Where an argument is finite and above 100 and 64 bits overflow,
    a finite result is not judged.

    Args:
        rule: the rule.
        fun: a function of arrays in whose program it applies, for any float dtype.
        *args: arrays, numbers or weft.ShapeDtype: what it is called with.
        rtol: how far a result may be off, relative.
        atol: how far a result may be off, absolute: what 64 bits lose where numbers of about 1 cancel.
        finite: whether only finite arguments are tried, of no more than 1000.
        samples: how many random arguments are tried.
        seed: of the random numbers.

    Returns: None.

    Raises:
        ValueError: the rule does not apply to the program, or changes a result; the message has the arguments, what the
            function gives with and without the rule, and the rule's line.

    Example:
        >>> @weft.rewrite("log(add(1, exp(x)))")
        ... def softplus(x):
        ...     return wnp.logaddexp(x, 0.0)
        >>> weft.ir.check(softplus, lambda x: wnp.log(1 + wnp.exp(x)), 1.0)
    """
    if not isinstance(rule, Rewrite):
        raise type_error(f"check: expected a rule of weft.rewrite, got {rule!r}")
    ir = make_ir(fun)(*args)
    after = rule(ir)
    if rule.applied == 0:
        raise value_error(f"check: {rule!r} does not apply to the program\n{ir.text}")
    specs = [ShapeDtype(p.type.shape, p.type.dtype) for p in ir.parameters[: len(ir.in_types) - len(ir.constants)]]
    tree = _tree.structure(args)
    with enable_x64():
        wide = make_ir(fun)(*_tree.unflatten(tree, [_widened(s) for s in specs]))
    runs = [
        jit(lambda *x, p=p: tuple(_weft.apply(p._fn, [*x, *p.constants])), optimize="none", backend="interpreter")
        for p in (ir, after, wide)
    ]
    random = np.random.default_rng(seed)
    for trial in range(samples + len(_SPECIAL)):
        values = [_values(s, random, trial, finite) for s in specs]
        exact = [v.astype(_widened(s).dtype) for v, s in zip(values, specs)]
        plain, ruled = (runs[i](*values) for i in (0, 1))
        with enable_x64():
            true = runs[2](*exact)
        for before, with_rule, truth in zip(plain, ruled, true):
            if not _right(np.asarray(before), np.asarray(with_rule), np.asarray(truth), rtol, atol, _is_large(exact)):
                shown = ", ".join(np.array2string(v, threshold=8) for v in values)
                raise value_error(
                    f"the rewrite '{rule.name}' ({rule._place}) changes a result: of {shown} the function gives "
                    f"{before}, with the rule {with_rule}; in 64 bits {truth}"
                )


def _widened(spec: ShapeDtype) -> ShapeDtype:
    """The same in 64 bits, where it is a float."""
    wide = {"f": "float64", "c": "complex128"}.get(np.dtype(spec.dtype).kind)
    return spec if wide is None else ShapeDtype(spec.shape, wide)


def _values(spec: ShapeDtype, random: np.random.Generator, trial: int, finite: bool) -> np.ndarray:
    shape, dtype = tuple(int(d) for d in spec.shape), np.dtype(spec.dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        low = 0 if dtype.kind == "u" else -9
        return random.integers(low, 10, shape).astype(dtype)
    special = [v for v in _SPECIAL if not finite or (np.isfinite(v) and abs(v) <= 1000)]
    if trial < len(special):
        drawn = random.choice(special, shape) if trial else np.full(shape, special[0])
        drawn = np.where(random.random(shape) < 0.5, drawn, special[trial])
    else:
        limit = 3 if finite else 8
        drawn = random.normal(size=shape) * 10 ** random.uniform(-limit, limit, shape)
        drawn = np.clip(drawn, -1000, 1000) if finite else drawn
    return np.asarray(drawn).astype(dtype)


def _is_large(arguments: list[np.ndarray]) -> bool:
    return any(np.any(np.isfinite(a) & (np.abs(a) > 100)) for a in arguments)


def _right(before: np.ndarray, with_rule: np.ndarray, truth: np.ndarray, rtol: float, atol: float, large: bool) -> bool:
    if before.dtype.kind not in "fc":
        return bool(np.array_equal(before, with_rule))
    with np.errstate(all="ignore"):
        wide = truth.astype(before.dtype).astype(truth.dtype)  # what overflows in the narrow type is infinite
        near = np.isclose(with_rule, wide, rtol=rtol, atol=atol, equal_nan=True)
        nearer = np.abs(with_rule - truth) <= np.abs(before - truth)
        same = (with_rule == before) | (np.isnan(with_rule) & np.isnan(before))
        overflowed = ~np.isfinite(truth) & np.isfinite(with_rule) & large
    return bool(np.all(near | nearer | same | overflowed))
