"""Linear functions that come with their transpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _weft
from ._core import tree as _tree
from ._core.errors import type_error
from ._core.shapes import ShapeDtype
from ._core.tracing import check_callable, flat_function, trace_flat
from .implicit import like

__all__ = ["linear_call"]


def linear_call(
    fun: Callable[[Any, Any], Any],
    fun_transpose: Callable[[Any, Any], Any],
    residual_args: Any,
    linear_args: Any,
) -> Any:
    """A call of a function that is linear in a part of its arguments, whose transpose the caller gives.

    Forward mode applies fun to the tangents of linear_args; reverse mode applies fun_transpose to the cotangent of the
    result. Derivatives with respect to residual_args are those of fun as it is written. Whether one is the transpose of
    the other is not looked at.

    Args:
        fun: (residual_args, linear_args) -> out, linear in linear_args.
        fun_transpose: (residual_args, cotangent of out) -> cotangent of linear_args.
        residual_args: array, number, or tree of them.
        linear_args: array or tree of arrays of float or complex dtype.

    Returns: out, array or tree of arrays of float or complex dtype.

    Raises:
        TypeError: a linear argument or a result is of integers; fun_transpose returns something that is not like
            linear_args.

    Example:
        >>> divide = lambda x, y: weft.custom_derivatives.linear_call(
        ...     lambda y, x: x / y, lambda y, ct: ct / y, y, x)
        >>> weft.grad(divide)(6.0, 3.0)
        Array(0.33333334, dtype=float32, weak_type=True)
    """
    what = "linear_call"
    check_callable(fun, f"{what}: fun")
    check_callable(fun_transpose, f"{what}: fun_transpose")
    residuals, residual_tree = _tree.flatten(residual_args)
    linear, linear_tree = _tree.flatten(linear_args)
    linear = [_weft.array(leaf, None, False) for leaf in linear]
    for leaf in linear:
        _check_inexact(what, "linear_args has", leaf)
    given = _tree.unflatten(linear_tree, linear)
    forward = flat_function(fun, (_tree.unflatten(residual_tree, residuals), given), {})
    map_ = trace_flat(forward, what, known=False)
    cotangents = [ShapeDtype(shape, dtype) for shape, dtype, _ in _weft.result_specs(map_)]
    for cotangent in cotangents:
        _check_inexact(what, f"'{forward.name}' returns", cotangent)
    structure = forward.out_tree
    assert structure is not None

    def back(residuals: Any, cotangent: Any) -> Any:
        return like(what, fun_transpose(residuals, cotangent), given, "fun_transpose", "linear_args")

    transposed = flat_function(back, (residual_args, _tree.unflatten(structure, cotangents)), {})
    out = _weft.linear_call([trace_flat(transposed, what, known=False), map_], residuals, linear)
    return _tree.unflatten(structure, out)


def _check_inexact(what: str, where: str, leaf: Any) -> None:
    _, dtype, _, text = _weft.abstract(leaf)
    if not _weft.is_inexact(dtype):
        raise type_error(f"{what}: {where} {text}; expected a float or complex dtype, which linear maps are of")
