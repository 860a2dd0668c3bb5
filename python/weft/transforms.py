"""Transforms of programs: each takes a weft.IR and gives one, to look at and to compile.

>>> ir = weft.make_ir(lambda a, b: a * b)(1.5, 2.5)
>>> d = weft.transforms.grad(ir, wrt=0)
>>> weft.compile(d)(1.5, 2.5)
Array(2.5, dtype=float32)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._core import tree as _tree
from ._core.errors import type_error, value_error
from ._core.shapes import ShapeDtype
from .arguments import is_integer
from .batching import vmap as _vmap
from .derivatives import grad as _grad
from .derivatives import jvp as _jvp
from .derivatives import value_and_grad as _value_and_grad
from .program import IR, make_ir

__all__ = ["grad", "jvp", "value_and_grad", "vmap"]


def grad(ir: IR, wrt: int | Sequence[int] = 0) -> IR:
    """The gradient of a program, as a program of the same arguments.

    Args:
        ir: the program; it returns one number.
        wrt: which arguments it is differentiated with respect to: their places, from 0 on.

    Returns: weft.IR, which returns one gradient, or a tuple of them where wrt is a sequence.

    Raises:
        TypeError: ir is no program, or wrt no place of an argument.
        ValueError: there is no such argument.

    Example:
        >>> ir = weft.make_ir(lambda a, b: a * b)(1.5, 2.5)
        >>> print(weft.transforms.grad(ir, wrt=0), end="")
        fn f(a: f32[], b: f32[]) -> (f32[]) {
          return b
        }
    """
    places = _wrt("grad", ir, wrt)
    return _transformed("grad", ir, lambda f: _grad(f, places))


def value_and_grad(ir: IR, wrt: int | Sequence[int] = 0) -> IR:
    """The result of a program and its gradient.

    Args:
        ir: the program; it returns one number.
        wrt: which arguments it is differentiated with respect to: their places, from 0 on.

    Returns: weft.IR, which returns a pair.

    Raises:
        TypeError: ir is no program, or wrt no place of an argument.
        ValueError: there is no such argument.

    Example:
        >>> ir = weft.make_ir(lambda a, b: a * b)(1.5, 2.5)
        >>> weft.transforms.value_and_grad(ir, wrt=1)(1.5, 2.0)
        (Array(3., dtype=float32, weak_type=True), Array(1.5, dtype=float32))
    """
    places = _wrt("value_and_grad", ir, wrt)
    return _transformed("value_and_grad", ir, lambda f: _value_and_grad(f, places))


def jvp(ir: IR) -> IR:
    """The forward derivative of a program: (arguments, tangents of all of them) -> (result, tangent).

    Args:
        ir: the program.

    Returns: weft.IR of twice as many arguments.

    Raises:
        TypeError: ir is no program.

    Example:
        >>> weft.transforms.jvp(weft.make_ir(lambda x: x * x)(1.0))(3.0, 1.0)
        (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    specs, _ = arguments_of(_checked("jvp", ir))
    n = len(specs)
    both = lambda *args: _jvp(ir, args[:n], args[n:])
    return make_ir(both)(*specs, *specs)


def vmap(ir: IR, size: Any = None) -> IR:
    """A program over a leading dimension of all its arguments.

    Args:
        ir: the program.
        size: of that dimension: a number, or the text of a symbolic size; None: "batch".

    Returns: weft.IR.

    Raises:
        TypeError: ir is no program.

    Example:
        >>> weft.transforms.vmap(weft.make_ir(wnp.sin)(1.0), 3).out_types
        ['f32[3]']
    """
    specs, named = arguments_of(_checked("vmap", ir))
    batched = lambda s: ShapeDtype(("batch" if size is None else size, *s.shape), s.dtype)
    return make_ir(_vmap(ir))(*_tree.map(batched, specs), **_tree.map(batched, named))


def arguments_of(ir: IR) -> tuple[tuple, dict]:
    """Types in the places of a program's arguments."""
    specs = [ShapeDtype(p.type.shape, p.type.dtype) for p in ir.parameters[: len(ir.parameters) - len(ir.constants)]]
    return (tuple(specs), {}) if ir._in_tree is None else _tree.unflatten(ir._in_tree, specs)


def _checked(what: str, ir: IR) -> IR:
    if not isinstance(ir, IR):
        raise type_error(f"transforms.{what}: expected a weft.IR, which weft.make_ir makes, got '{type(ir).__name__}'")
    return ir


def _wrt(what: str, ir: IR, wrt: Any) -> int | tuple[int, ...]:
    """Checked places of arguments."""
    number = len(arguments_of(_checked(what, ir))[0])
    places = list(wrt) if isinstance(wrt, (tuple, list, range)) else [wrt]
    if not all(map(is_integer, places)):
        raise type_error(
            f"transforms.{what}: wrt is {wrt!r} of type '{type(wrt).__name__}'; expected the place of an argument, 0 "
            "for the first one, or a tuple of them"
        )
    for place in map(int, places):
        if not -number <= place < number:
            raise value_error(
                f"transforms.{what}: wrt has {place}, but '{ir.__name__}' takes {number} positional "
                f"argument{'' if number == 1 else 's'}"
            )
    return tuple(map(int, places)) if isinstance(wrt, (tuple, list, range)) else int(wrt)


def _transformed(what: str, ir: IR, transform: Callable[[Callable[..., Any]], Callable[..., Any]]) -> IR:
    args, kwargs = arguments_of(_checked(what, ir))
    return make_ir(transform(ir))(*args, **kwargs)
