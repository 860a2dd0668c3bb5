"""Positions and names of arguments, as a parameter such as argnums or static_argnums says them."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from . import _weft
from ._core import stateful
from ._core import tree as _tree
from ._core.errors import not_concrete, type_error, value_error
from ._core.names import wraps
from ._core.tracing import call_name, positions_of

_T = TypeVar("_T")

if TYPE_CHECKING:
    from typing_extensions import TypeIs


class _Held:
    """What is no array, or a flag, in an argument that is not differentiated or mapped, or in aux: a container without
    leaves, handed on."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


_tree.register(_Held, lambda held: ((), held.value), lambda value, _: _Held(value))


def is_fixed(leaf: Any) -> bool:
    """Whether an argument that is not differentiated or mapped goes to the function as it is: a flag, a number of
    Python's, or what is no array at all (a mode, a function, a configuration). Programs that differ in numbers share
    their code (transforms/opt/numbers.h), so a new one is not compiled anew."""
    return _is_flag(leaf) or isinstance(leaf, _NUMBERS)


# Python's numbers, not NumPy's.
_NUMBERS = (int, float, complex)


def _is_flag(leaf: Any) -> bool:
    """Whether it is a flag, or no array at all."""
    return isinstance(leaf, bool) or not (_weft.is_operand(leaf) or (hasattr(leaf, "shape") and hasattr(leaf, "dtype")))


def _is_known(leaf: Any) -> bool:
    """Whether it is an object that no trace makes."""
    return not (_weft.is_traced(leaf) or stateful.is_reference(leaf))


def hold(tree: Any, fixed: Callable[[Any], bool] = is_fixed) -> Any:
    """The tree with what is fixed held: no leaf any more."""
    return _tree.map(lambda leaf: _Held(leaf) if fixed(leaf) else leaf, tree)


def released(tree: Any) -> Any:
    """The tree with what is held in its place again."""
    return _tree.map(
        lambda leaf: leaf.value if isinstance(leaf, _Held) else leaf, tree, is_leaf=lambda v: isinstance(v, _Held)
    )


def releasing(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of arguments in which some leaves are held."""

    def called(*args, **kwargs):
        args, kwargs = released((args, kwargs))
        return function(*args, **kwargs)

    return called


def hold_others(
    function: Callable[..., Any], args: tuple, kwargs: dict, argnums: int | Sequence[int]
) -> tuple[Callable[..., Any], tuple, dict]:
    """The call with what is fixed held, outside `argnums`."""
    if len(args) == 1 and not kwargs:
        return function, args, kwargs
    nums = [n % max(len(args), 1) for n in ([argnums] if isinstance(argnums, int) else argnums)]
    others = [a for i, a in enumerate(args) if i not in nums]
    if not others and not kwargs:
        return function, args, kwargs
    if not any(map(is_fixed, _tree.leaves((others, kwargs)))):
        return function, args, kwargs
    return releasing(function), tuple(a if i in nums else hold(a) for i, a in enumerate(args)), hold(kwargs)


def holding_aux(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that returns (value, aux), with what no traced value is in aux held: it comes back as it is."""

    def holding(*args, **kwargs):
        out = function(*args, **kwargs)
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            return out
        fixed = _is_flag if stateful.references is not None and stateful.references.end_results() else _is_known
        return out[0], hold(out[1], fixed)

    return holding


def joined(given: Any) -> Any:
    """What was given; numbers in lists and tuples that are not known are one array."""
    if isinstance(given, (list, tuple)) and any(map(_weft.is_traced, _tree.leaves(given))):
        return _weft.array(given, None, False)
    return given


def is_integer(value: Any) -> TypeIs[int]:
    """Whether it is one integer, Python's or NumPy's, where several may be given."""
    return isinstance(value, (int, np.integer))


def check_axes(axes: Any, what: str) -> None:
    """Raises TypeError unless the leaves of what in_axes or out_axes says are integers: None says that nothing is
    mapped."""
    for axis in _tree.leaves(axes):
        if not is_integer(axis) or isinstance(axis, bool):
            raise type_error(f"{what} must hold integers and None, got {axis!r}")


def integer(value: Any, what: str) -> int:
    """One integer, as the argument `what` names it: Python's, NumPy's, or a known array of one."""
    try:
        return _integer(value, what)
    except _weft.TracerError as error:
        raise not_concrete(what, error) from None


def _integer(value: Any, what: str) -> int:
    try:
        return operator.index(value)
    except _weft.TracerError:
        raise
    except TypeError:
        raise type_error(f"{what} must be an integer, got {value!r}") from None


def concrete(kind: Callable[[Any], _T], value: Any, what: str) -> _T:
    """A number of a kind of Python's, as the argument `what` names it, of a value that may be traced."""
    try:
        return kind(value)
    except _weft.TracerError as error:
        raise not_concrete(what, error) from None


def int64(value: Any, what: str) -> int:
    """One integer that C++ can hold, as the argument `what` names it."""
    n = integer(value, what)
    if not -(2**63) <= n < 2**63:
        raise value_error(f"{what} must fit 64 bits, got {n}")
    return n


def flag(value: Any, what: str) -> bool:
    """True or False, as the argument `what` names it, or a number that stands for one."""
    if not isinstance(value, (bool, int, np.bool_)):
        raise type_error(f"{what} must be True or False, got {value!r}")
    return bool(value)


def text(value: Any, what: str) -> str:
    """A string that UTF-8 can say, as the argument `what` names it."""
    if not isinstance(value, str):
        raise type_error(f"{what} must be a string, got '{type(value).__name__}'")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise value_error(
            f"{what} must be a text; it has half of a surrogate pair, {value[error.start]!r}, at position {error.start}"
        ) from None
    return value


def count(value: Any, what: str) -> Any:
    """A number of elements, as the argument `what` names it; a symbolic size stays one."""
    if isinstance(value, _weft.Dim):
        return value
    n = integer(value, what)
    if n < 0:
        raise value_error(f"{what} must not be negative, got {n}")
    return n


def sizes(shape: Any, what: str) -> tuple[Any, ...]:
    """The sizes of a new array, one or several, as the argument `what` names them; symbolic ones stay."""
    known = isinstance(shape, np.ndarray) or (isinstance(shape, _weft.Array) and not _weft.is_traced(shape))
    given = np.asarray(shape).tolist() if known else shape
    several = isinstance(given, (tuple, list)) or (hasattr(given, "__len__") and not hasattr(given, "dtype"))
    given = tuple(given) if several and not isinstance(given, (str, bytes, dict, set)) else (given,)
    checked = tuple(n if isinstance(n, _weft.Dim) else _integer(n, f"{what}: a size") for n in given)
    if any(n < 0 for n in checked if isinstance(n, int)):
        raise value_error(f"{what}: the shape {checked} has a negative size")
    if any(n >= 2**63 for n in checked if isinstance(n, int)):
        raise value_error(f"{what}: a size must fit 64 bits, got {max(n for n in checked if isinstance(n, int))}")
    return checked


def one_of(value: Any, names: Iterable[Any], what: str) -> Any:
    """A word, as the argument `what` names it, out of those that mean something."""
    names = tuple(names)
    if value not in names:
        raise value_error(f"{what} must be one of {', '.join(map(repr, names))}, got {value!r}")
    return value


def axes_of(axis: Any, rank: int, what: str) -> list[int]:
    """One axis or several different ones of an array, counted from the front; `what` is the function."""
    axes = [_weft.check_axis(d, rank, what) for d in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    if len(set(axes)) < len(axes):
        raise value_error(f"{what}: axis {axis} names an axis twice")
    return axes


def ints(value: int | Iterable[int] | None, what: str) -> tuple[int, ...]:
    """Positions, as the argument `what` names them: one, several, or None."""
    if value is None:
        return ()
    if is_integer(value):
        return (value,)
    given = (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    if not all(map(is_integer, given)):
        raise type_error(f"{what} is {value!r}; expected an integer or several")
    return given


def names_of(value: str | Iterable[str] | None, what: str) -> tuple[str, ...]:
    """Names of arguments, one, several, or None, that `what` was given."""
    if value is None:
        return ()
    names = (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    if not all(isinstance(name, str) for name in names):
        raise type_error(f"{what} is {value!r}; expected the name of an argument, or several")
    return names


def checked_argnums(argnums: Any, what: str) -> int | tuple[int, ...]:
    """Positions of arguments, as a Python integer or a tuple of them."""
    try:
        return operator.index(argnums)
    except TypeError:
        pass
    try:
        nums = tuple(operator.index(n) for n in argnums)
    except TypeError:
        raise type_error(
            f"{what}: argnums is {argnums!r} of type '{type(argnums).__name__}'; expected an integer or a tuple of them"
        ) from None
    if not nums:
        raise value_error(f"{what}: argnums is {argnums!r}; expected at least one argument")
    return nums


def positions(argnums: int | Sequence[int], count: int, name: str, what: str) -> list[int]:
    """Where argnums points to in a call of the function `name` with `count` positional arguments."""
    if isinstance(argnums, int) and 0 <= argnums < count:
        return [argnums]
    nums = [argnums] if isinstance(argnums, int) else list(argnums)
    for n in nums:
        if not -count <= n < count:
            raise value_error(f"{what}: argnums has {n}, but '{name}' was called with {count} positional arguments")
    nums = [n % count for n in nums]
    for n in nums:
        if nums.count(n) > 1:
            raise value_error(f"{what}: argnums is {argnums!r}, which has argument {n} of '{name}' twice")
    return nums


def licences_of(licence: str | Iterable[str] | None) -> int:
    """What rewriting may change, as the native module has it."""
    if licence is None:
        return _weft.licences_named([])
    names = [licence] if isinstance(licence, str) or not isinstance(licence, Iterable) else list(licence)
    for name in names:
        if not isinstance(name, str):
            raise type_error(f"jit: licence is a name or several, got {name!r}")
    return _weft.licences_named(names)


def of_chosen(
    function: Callable[..., Any], args: tuple, kwargs: dict, argnums: int | Sequence[int], what: str
) -> tuple[Callable[..., Any], tuple]:
    """The function of the arguments that argnums names alone, and those arguments."""
    nums = positions(argnums, len(args), call_name(function), what)

    def called(*chosen):
        full = list(args)
        for n, a in zip(nums, chosen, strict=True):
            full[n] = a
        return function(*full, **kwargs)

    called.__name__ = called.__qualname__ = call_name(function)
    return called, tuple(args[n] for n in nums)


def by_name(
    transform: Callable[..., Any], fun: Callable[..., Any], argnums, argnames: str | Sequence[str], what: str
) -> Callable[..., Any]:
    """transform(function, argnums) with respect to arguments with these names, however they are passed."""
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
    if argnums != 0:
        raise value_error(f"{what}: got argnums={argnums!r} and argnames={argnames!r}; expected one of them")
    positions = positions_of(fun, names, what, "argnames")

    @wraps(fun)
    def called(*args, **kwargs):
        places: list[Any] = [
            name if name in kwargs else position for name, position in zip(names, positions, strict=True)
        ]
        for name, place in zip(names, places, strict=True):
            if not isinstance(place, str) and place >= len(args):
                raise value_error(f"{what}: argnames has '{name}', but '{call_name(fun)}' was called without it")

        def of_named(*chosen):
            full, keywords = list(args), dict(kwargs)
            for place, value in zip(places, chosen, strict=True):
                if isinstance(place, str):
                    keywords[place] = value
                else:
                    full[place] = value
            return fun(*full, **keywords)

        of_named.__name__ = of_named.__qualname__ = call_name(fun)
        of_named.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
        )
        chosen = [kwargs[place] if isinstance(place, str) else args[place] for place in places]
        return transform(of_named, 0 if isinstance(argnames, str) else tuple(range(len(names))))(*chosen)

    return called
