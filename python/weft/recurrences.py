"""Recurrences over sequences, as Theano's scan has them: weft.recurrence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import _weft
from ._core.errors import type_error, value_error
from ._core.tracing import check_callable
from .api import stop_gradient
from .arguments import is_integer
from .control import cond, scan
from .program import eval_shape

__all__ = ["recurrence"]


def recurrence(
    step: Callable[..., Any],
    sequences: Sequence[Any] = (),
    initial: Sequence[Any] = (),
    constants: Sequence[Any] = (),
    *,
    length: int | None = None,
    reverse: bool = False,
    until: Callable[..., Any] | None = None,
    truncate_gradient: int | None = None,
) -> Any:
    """Outputs that depend on earlier ones and on sequences, step by step. It is one weft.scan.

    The step takes, in this order: of each sequence its elements at the taps, of each output that has initial values its
    earlier values at the taps, the constants. It returns the new outputs.

    Args:
        step: function of these, which returns an array, or a list of one for each entry of `initial`.
        sequences: arrays that are read along their first axis, each by itself, or as (array, taps): taps=[-1, 0] gives
            the step x[t - 1] and x[t]. The loop has the steps for which all of them exist.
        initial: for each output: its value before the first step, which the step then takes; (values, taps), of which
            values has those before the first step along its first axis, oldest first, and taps=[-2, -1] says which
            earlier outputs the step takes; or None, where it takes none.
        constants: further arguments of every step.
        length: the number of steps; without it that of the sequences.
        reverse: whether to go from the end of the sequences to their beginning.
        until: function of what the step returns: whether this step is the last one. Outputs behind it are zero.
        truncate_gradient: how many steps derivatives go back through, from the last one that was taken; None: all. With
            until the steps are counted first, so that they run twice.

    Returns: the outputs of all steps along a new first axis, as step returns them: an array or a list. With until a
        pair of that and the number of steps that were taken.

    Raises:
        TypeError: the step returns another number of outputs than there are entries in initial, or one of another type
            than its initial values; until gives no single truth.
        ValueError: a tap is no earlier output, there are too few initial values, or nothing says the length.

    Example:
        >>> fibonacci = weft.recurrence(lambda a, b: a + b, initial=[(wnp.array([0, 1]), [-2, -1])], length=6)
        >>> fibonacci
        Array([1, 2, 3, 5, 8, 13], dtype=int32)
        >>> squares = wnp.array([1, 4, 9, 16])
        >>> weft.recurrence(lambda before, x: x - before, sequences=[(squares, [-1, 0])], initial=[None])
        Array([3, 5, 7], dtype=int32)
        >>> weft.recurrence(lambda x: 2 * x, initial=[1], length=6, until=lambda x: x > 10)
        (Array([ 2,  4,  8, 16,  0,  0], dtype=int32), Array(4, dtype=int32))
    """
    check_callable(step, "recurrence")
    inputs, steps = _inputs(sequences, length)
    windows = [_window(i, entry) for i, entry in enumerate(initial)]
    one = [True]  # whether the step returns an array by itself

    def outputs_of(carry: tuple, x: tuple) -> list:
        earlier = [carry[i][tap] for i, (_, taps) in enumerate(windows) for tap in taps]
        out = step(*x, *earlier, *constants)
        one[0] = not isinstance(out, (tuple, list))
        outputs = [out] if one[0] else list(out)
        if len(outputs) != len(windows):
            raise type_error(
                f"recurrence: the step returns {len(outputs)} outputs, but initial has {len(windows)} entries"
            )
        for i, (output, (values, _)) in enumerate(zip(outputs, windows)):
            _check_output(i, output, values)
        return outputs

    def moved(carry: tuple, outputs: Sequence) -> tuple:
        return tuple((*values[1:], out) if values else () for values, out in zip(carry, outputs))

    def body(state: tuple, x: tuple, first: Any = None) -> tuple:
        """One step. Through those before `first` no derivative goes back."""
        carry, going, count = state

        def taken(carry: tuple) -> tuple:
            outputs = outputs_of(carry, x)
            if first is not None:
                outputs = [_select(count < first, stop_gradient(out), out) for out in outputs]
            more = going if until is None else going & ~_flag(until(*outputs))
            return moved(carry, outputs), more, count + 1, tuple(outputs)

        if until is None:
            carry, going, count, outputs = taken(carry)
            return (carry, going, count), outputs

        def left(carry: tuple) -> tuple:
            zeros = tuple(_weft.zeros(out) for out in _types(taken, carry))
            return carry, going, count, zeros

        carry, going, count, outputs = cond(going, taken, left, carry)
        return (carry, going, count), outputs

    state = (tuple(values for values, _ in windows), _weft.astype(True, "bool"), _weft.astype(0, "int32"))
    kept = steps if truncate_gradient is None else _whole(truncate_gradient, "truncate_gradient")
    first = max(steps - kept, 0)
    outputs: tuple
    if first == 0:
        state, outputs = scan(body, state, inputs, length=steps, reverse=reverse)
    elif until is not None:
        counted: Any = stop_gradient(scan(body, state, inputs, length=steps, reverse=reverse))[0][2]
        last = lambda state, x: body(state, x, counted - kept)
        state, outputs = scan(last, state, inputs, length=steps, reverse=reverse)
    else:
        halves = [tuple(x[:first] for x in inputs), tuple(x[first:] for x in inputs)]
        if reverse:
            halves = [tuple(x[steps - first :] for x in inputs), tuple(x[: steps - first] for x in inputs)]
        early: tuple
        late: tuple
        state, early = stop_gradient(scan(body, state, halves[0], length=first, reverse=reverse))
        state, late = scan(body, state, halves[1], length=steps - first, reverse=reverse)
        begin, end = (late, early) if reverse else (early, late)
        outputs = tuple(_weft.concatenate([x, y], 0) for x, y in zip(begin, end))
    result = outputs[0] if one[0] else list(outputs)
    return result if until is None else (result, state[2])


def _check_output(i: int, output: Any, values: tuple) -> None:
    """Whether an output is an array of the type of its initial values."""
    if not _weft.is_operand(output):
        raise type_error(
            f"recurrence: the step returns {output!r} of type '{type(output).__name__}' as output {i}; expected an "
            "array"
        )
    shape = tuple(_weft.abstract(output)[0])
    if values and shape != tuple(_weft.abstract(values[-1])[0]):
        raise type_error(
            f"recurrence: output {i} is {_weft.abstract(output)[3]}, its initial values are "
            f"{_weft.abstract(values[-1])[3]}; the shapes must agree"
        )


def _select(condition: Any, yes: Any, no: Any) -> Any:
    return cond(condition, lambda: yes, lambda: no)


def _flag(x: Any) -> Any:
    if not _weft.is_operand(x) or _weft.abstract(x)[0]:
        given = _weft.abstract(x)[3] if _weft.is_operand(x) else f"{x!r} of type '{type(x).__name__}'"
        raise type_error(f"recurrence: until must give one truth, got {given}")
    return _weft.astype(x, "bool")


def _types(function: Callable[..., Any], carry: tuple) -> Any:
    return eval_shape(function, carry)[3]


def _whole(value: Any, name: str) -> int:
    if not is_integer(value) or int(value) < 1:
        raise value_error(f"recurrence: {name} must be a number of steps, 1 or more, got {value!r}")
    return int(value)


def _inputs(sequences: Sequence[Any], length: int | None) -> tuple[tuple, int]:
    """What a scan goes along: for each sequence and tap the elements of all steps."""
    read: list[tuple[Any, list[int]]] = []
    for i, entry in enumerate(sequences):
        array, taps = _with_taps(f"sequence {i}", entry, [0])
        read.append((_weft.array(array, None, True), taps))
    sizes = []
    for i, (array, taps) in enumerate(read):
        shape = _weft.abstract(array)[0]
        if not shape:
            raise value_error(f"recurrence: sequence {i} is a single number; it needs a first axis to go along")
        sizes.append(shape[0] + min(0, *taps, 0) - max(0, *taps, 0))
    if not sizes and length is None:
        raise value_error("recurrence: give length= where there are no sequences")
    for i, size in enumerate(sizes):
        if size < 0:
            raise value_error(
                f"recurrence: sequence {i} has {_weft.abstract(read[i][0])[0][0]} elements, and its taps {read[i][1]} "
                "leave no step for which all exist"
            )
    steps = min(sizes) if length is None else _whole(length, "length")
    for i, size in enumerate(sizes):
        if size < steps:
            raise value_error(f"recurrence: sequence {i} has elements for {size} steps, expected {steps}")
    inputs = []
    for array, taps in read:
        begin = -min(0, *taps, 0)
        inputs += [array[begin + tap : begin + tap + steps] for tap in taps]
    return tuple(inputs), steps


def _with_taps(what: str, entry: Any, otherwise: list[int]) -> tuple[Any, list[int]]:
    """An entry, and its taps where it is a pair of both."""
    if not isinstance(entry, tuple):
        return entry, otherwise
    if len(entry) != 2 or not isinstance(entry[1], (tuple, list, range)) or not all(map(is_integer, entry[1])):
        found = f"taps {entry[1]!r}" if len(entry) == 2 else f"{len(entry)} members"
        raise type_error(f"recurrence: {what} is a tuple with {found}; expected an array, or (array, list of taps)")
    return entry[0], list(map(int, entry[1]))


def _window(i: int, entry: Any) -> tuple[tuple, list[int]]:
    """The last values of an output, oldest first, and which of them the step takes."""
    if entry is None:
        return (), []
    if not isinstance(entry, tuple):
        return (_weft.array(entry, None, True),), [-1]
    values, taps = _with_taps(f"output {i}", entry, [-1])
    wrong = [tap for tap in taps if tap >= 0]
    if wrong or not taps:
        raise value_error(f"recurrence: the taps of output {i} must be negative, got {taps}")
    values = _weft.array(values, None, True)
    shape = _weft.abstract(values)[0]
    if not shape or shape[0] < -min(taps):
        raise value_error(
            f"recurrence: output {i} has the tap {min(taps)}, so it needs {-min(taps)} initial values, got "
            f"{shape[0] if shape else 'a single number'}"
        )
    return tuple(values[k] for k in range(shape[0] + min(taps), shape[0])), taps
