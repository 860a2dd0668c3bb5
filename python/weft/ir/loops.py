"""Control flow made simpler: loops of known length as loops that go on while a condition holds; indices compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _weft, primitives
from .._core.errors import not_implemented
from .._core.ir_view import Literal, Operation, Value
from .._core.shapes import ShapeDtype
from ..control import while_loop
from ..program import IR, make_ir

__all__ = ["as_while", "at_most", "is_boolean"]


def as_while(op: Operation) -> IR:
    """The program of a `scan` alone, of its operands, as a `while` over a counter, the carries and what is stacked."""
    if op.trips is None:
        raise not_implemented(
            f"a scan over {op._kinds['length'][1][0]} elements, a number that only a call tells, stays"
        )
    if op.trips == 0:
        return _never(op)
    length, at, carried = op.trips, op.attributes["num_consts"], op.attributes["num_carry"]
    body, reverse = op.regions[0], op.attributes["reverse"]

    def loop(*operands: Any) -> Any:
        constants, carry, xs = operands[:at], operands[at : at + carried], operands[at + carried :]
        stacked = tuple(_zeros(v.type) for v in op.results[carried:])
        # What the body reads is a constant of the loop; values cross by its operands alone.
        n = 1 + carried + len(stacked)

        def step(state: tuple) -> tuple:
            i, inside = state[0], state[1 : 1 + carried]
            place = length - 1 - i if reverse else i
            out = _weft.apply(body._fn, [*constants, *inside, *(x[place] for x in xs)])
            rows = (y.at[place].set(row) for y, row in zip(state[1 + carried : n], out[carried:]))
            return (i + 1, *out[:carried], *rows)

        out = while_loop(lambda state: state[0] < length, step, (np.zeros((), "int32"), *carry, *stacked))
        return tuple(out[1:])

    return make_ir(loop)(*map(_shaped, op.operands))


def _never(op: Operation) -> IR:
    """The same of a `scan` over nothing: its carries, and stacks of no rows."""
    at, carried = op.attributes["num_consts"], op.attributes["num_carry"]

    def loop(*operands: Any) -> Any:
        return (*operands[at : at + carried], *(_zeros(v.type) for v in op.results[carried:]))

    return make_ir(loop)(*map(_shaped, op.operands))


def _zeros(type_: Any) -> Any:
    dims = str(type_).partition("[")[2].rstrip("]")
    number = primitives.literal(f"0:{str(type_).partition('[')[0]}")
    return primitives.broadcast(number, shape=primitives.sizes(*filter(None, dims.split(","))), dims=[])


def _shaped(operand: Value | Literal) -> ShapeDtype:
    like = operand.array if isinstance(operand, Literal) else operand.type
    return ShapeDtype(like.shape, like.dtype)


def at_most(index: Value | Literal, i: int) -> IR:
    """The program that says whether an index is at most i."""
    return make_ir(lambda x: x <= i)(_shaped(index))


def is_boolean(index: Value | Literal) -> bool:
    """Whether what chooses a branch is a boolean, and not the number of one."""
    return _shaped(index).dtype == np.bool_
