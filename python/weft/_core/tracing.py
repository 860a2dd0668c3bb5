"""From a Python function of trees to a traced function of leaves."""

from __future__ import annotations

import collections
import functools
import inspect
import sys
import traceback
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _weft
from . import options, stateful, traced_calls, watching
from . import tree as _tree
from .errors import PACKAGE, foreign, recursion_error, type_error, value_error
from .shapes import FLOAT0, ShapeDtype


def check_callable(function: Any, what: str) -> None:
    """Raises TypeError unless it can be called."""
    if not callable(function):
        raise type_error(f"{what}: expected a function, got {_short(function)} of type '{type(function).__name__}'")


def call_name(function: Callable) -> str:
    """What to call a function in messages: as Python does."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    return name if isinstance(name, str) else "f"


def ir_name(function: Callable) -> str:
    """What to call a function in the IR, where a name is a word."""
    name = call_name(function)
    return name if name.isidentifier() else "f"


def _name_in_programs(name: str) -> str:
    """What a program is called that is traced from a function of this name: as JAX does where its meaning counts."""
    return "_lambda_" if name == "<lambda>" and _tree.jax_semantics() else name


def as_positional(function: Callable, args: tuple, kwargs: dict, what: str) -> tuple:
    """The arguments of a call by position, with defaults in the places of those not given, for rules that know no
    names."""
    code = getattr(function, "__code__", None)
    if not kwargs and code and len(args) == code.co_argcount and not hasattr(function, "__wrapped__"):
        return args  # Nothing is left to a default; asking for a signature takes longer than a small call.
    try:
        signature = inspect.signature(function)
    except ValueError:  # Some functions written in C have none.
        if kwargs:
            raise type_error(f"{what}: '{call_name(function)}' does not say what its arguments are called")
        return args
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise type_error(f"{what}: the arguments do not fit '{call_name(function)}': {error}")
    bound.apply_defaults()
    named = [f"'{name}'" for name in bound.kwargs if name in kwargs]
    if named:
        raise type_error(
            f"{what}: '{call_name(function)}' takes {', '.join(named)} by keyword alone; rules take arguments by "
            "position"
        )
    return bound.args


def positions_of(function: Callable, names: Sequence[str], what: str, where="nondiff_argnames") -> tuple[int, ...]:
    """Where the parameters of these names stand."""
    if isinstance(names, str):
        names = (names,)
    parameters = list(inspect.signature(function).parameters) if names else []
    for name in names:
        if name not in parameters:
            raise value_error(f"{what}: {where} has '{name}', which is no argument of '{call_name(function)}'")
    return tuple(parameters.index(name) for name in names)


class Flat:
    """A call taken apart: the function, the leaves of its arguments and their names; once traced, the structure of
    its result. `plain`: each argument is one array, given by position."""

    __slots__ = ("function", "leaves", "specs", "names", "plain", "in_tree", "out_tree", "name", "paths", "float0s")

    function: Callable
    leaves: list
    specs: list
    names: list[str]
    plain: bool
    in_tree: Any
    out_tree: Any
    name: str
    float0s: Sequence[int]  # which results are zeros of dtype bool in place of arrays of dtype float0

    def __init__(self) -> None:
        self.plain = False
        self.float0s = ()


def leaf_names(
    function: Callable, args: tuple, kwargs: dict, positions: Sequence[int] | None = None, tree: Any = None
) -> list[str]:
    """A readable name for each leaf of the arguments: x, params['w'][0], ... `tree`: of (args, kwargs), where arguments
    are no leaves."""
    positional, varargs = _positional_names(function)
    names = []

    def paths(base: str, arg: Any, part: int, i: int) -> list[str]:
        if _weft.is_operand(arg):
            return [base]
        return [base + path for path in _tree.path_texts(tree.child(part).child(i))]

    for place, arg in enumerate(args):
        i = positions[place] if positions is not None else place
        base = positional[i] if i < len(positional) else f"{varargs}[{i - len(positional)}]" if varargs else f"arg{i}"
        names += paths(base, arg, 0, place)
    for i, key in enumerate(sorted(kwargs)):
        names += paths(key, kwargs[key], 1, i)
    return names


def _positional_names(function: Callable) -> tuple[Sequence[str], str | None]:
    """What the parameters are called that take arguments by position, and what takes the rest of them."""
    if type(function) is types.FunctionType and not function.__dict__:
        code = function.__code__  # a signature takes as long as a small gradient
        n = code.co_argcount
        rest = code.co_varnames[n + code.co_kwonlyargcount] if code.co_flags & inspect.CO_VARARGS else None
        return code.co_varnames[:n], rest
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return positional, next((p.name for p in parameters if p.kind == p.VAR_POSITIONAL), None)


def without_deleted(tree: Any) -> Any:
    """The tree with types in the places of arrays whose memory was given away: a program can be made for them."""
    gone = lambda x: isinstance(x, _weft.Array) and not isinstance(x, _weft.Tracer) and x.is_deleted()
    if not any(map(gone, _tree.leaves(tree))):
        return tree
    return _tree.map(lambda x: ShapeDtype.like(x) if gone(x) else x, tree)


def flat_function(
    function: Callable,
    args: tuple,
    kwargs: dict,
    positions: Sequence[int] | None = None,
    original: Callable | None = None,
    what: str = "",
    hint: str = "",
    apart: Sequence[list] = (),
) -> Flat:
    """Takes a call apart. `apart` says that it has been: the leaves, and the trees of what is no list, tuple or dict.
    Raises TypeError for a leaf that is no array, RecursionError for a container that contains itself, naming the
    argument."""
    flat = Flat()
    flat.function = function
    flat.name = call_name(original or function)
    flat.out_tree = None
    if not apart and not kwargs and _tree.are_arrays(args):
        flat.plain = True
        flat.leaves = flat.specs = list(args)
        flat.in_tree = _arguments_tree(len(args))
        named = _positional_names(original or function)[0] if positions is None else ()
        if len(args) <= len(named):
            flat.names = list(named[: len(args)])
        else:
            flat.names = leaf_names(original or function, args, kwargs, positions)
        return flat
    try:
        if apart:
            flat.leaves, flat.in_tree = apart[0], _tree.assembled((args, kwargs), iter(apart[1]))
        else:
            flat.leaves, flat.in_tree = _tree.flatten((args, kwargs))
    except RecursionError:
        each = leaf_names(original or function, (0,) * len(args), dict.fromkeys(kwargs, 0), positions)
        for name, arg in zip(each, [*args, *(kwargs[key] for key in sorted(kwargs))]):
            place = _tree.inside_itself(arg)
            if place is not None:
                raise recursion_error(
                    f"{what}argument {name} of '{flat.name}' is a container that contains itself: {name}{place} is "
                    "around that place"
                ) from None
        raise
    flat.names = leaf_names(original or function, args, kwargs, positions, flat.in_tree)
    flat.specs = flat.leaves
    for i, (leaf, name) in enumerate(zip(flat.leaves, flat.names)):
        if stateful.is_reference(leaf):
            raise type_error(
                f"{what}argument {name} of '{flat.name}' is a reference, {leaf!r}, which is not taken here; "
                f"give what it "
                "holds, ref[...]"
            )
        if not _weft.is_operand(leaf) and not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
            raise type_error(
                f"{what}argument {name} of '{flat.name}' is {_short(leaf)} of type '{type(leaf).__name__}'; "
                f"expected an array, a number, or a container of them{hint}"
            )
        if is_float0(leaf):
            flat.leaves[i] = np.zeros(leaf.shape, bool)
        elif isinstance(leaf, (np.ndarray, np.generic)) and not _weft.is_operand(leaf):
            kind = "array" if isinstance(leaf, np.ndarray) else "scalar"
            raise type_error(
                f"{what}argument {name} of '{flat.name}' is a NumPy {kind} of dtype {leaf.dtype}, which has no "
                f"counterpart; expected a bool, integer, float or complex dtype{hint}"
            )
    return flat


def is_float0(leaf: Any) -> bool:
    """Whether it is an array of JAX's dtype of derivatives of integers; inside of traced functions they are zeros of
    dtype bool."""
    return isinstance(leaf, np.ndarray) and leaf.dtype == FLOAT0


def with_float0s(flat: Flat, values: Sequence[Any]) -> list[Any]:
    """The results of a function, with those of dtype float0 as it returned them."""
    out = list(values)
    for i in flat.float0s:
        out[i] = np.zeros(out[i].shape, FLOAT0)
    return out


@functools.cache
def _arguments_tree(count: int) -> _tree.TreeDef:
    """The structure of (args, kwargs) with so many arrays and nothing else."""
    return _tree.structure(((0,) * count, {}))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def trace_flat(
    flat: Flat,
    kind: str,
    known: bool | Sequence[bool],
    axes: Sequence[tuple] = (),
    varying: Sequence[str] = (),
    differentiated: Sequence[bool] = (),
    concrete: bool = True,
    finish: Callable[[list], list] | None = None,
    computes_known: bool = False,
):
    """Traces the function; sets flat.out_tree. `known`: which parameters may give their numbers to Python. `axes`:
    named axes that are bound inside, with their sizes, whether they belong to a mesh, and whether that is pmap's.
    `varying`: mesh axes over which all that the function captures is to vary. `differentiated`: the parameters with
    respect to which a derivative is taken (tracer/differentiated.h). `concrete`: it is what runs, so that an effect
    whose result Python asks for may happen at once. `finish`: what becomes of the leaves of the result.
    `computes_known`: what depends on no parameter, or on known arrays among them alone, is computed at once, and is no
    part of the function."""

    number = 0

    def run(leaves):
        nonlocal number
        if options.checking_leaks.used and options.checking_leaks.value:
            number = _weft.current_trace()
        args, kwargs = (tuple(leaves), {}) if flat.plain else _tree.unflatten(flat.in_tree, leaves)
        result = call_traced(flat.function, args, kwargs, flat.name, kind)
        results = flatten_result(flat, result, keeps_float0=kind == "jit")
        return results if finish is None else finish(results)

    mask = [known] * len(flat.leaves) if isinstance(known, bool) else list(known)
    hints = [name if name.isidentifier() else "" for name in flat.names]
    traced = _weft.trace(
        run,
        flat.specs,
        hints,
        _name_in_programs(flat.name),
        kind,
        mask,
        axes,
        list(varying),
        list(differentiated),
        concrete and known is not False,
        computes_known,
        flat.names,
    )
    if number:
        watching.check_leaks(number, flat.name, kind)
    return traced


def call_traced(function: Callable, args: tuple, kwargs: dict, name: str, kind: str) -> Any:
    """A function of the user's called on traced values; `name` and `kind` are for messages."""
    begun = traced_calls.begin(args, kwargs, name, kind)
    try:
        result = function(*args, **kwargs)
        traced_calls.settle()
        return result
    except TypeError as error:
        if _UNHASHABLE in str(error):
            raise type_error(
                f"{kind}: '{name}' {_AS_A_KEY} or a member of a set; its number "
                "is not known while the function is traced, and arrays have no hash",
                error.__traceback__,
            ) from None
        raise foreign(error)  # the arguments do not fit its parameters
    except RecursionError as error:
        if not str(error).startswith("maximum recursion depth exceeded"):  # not the interpreter's own
            raise
        where = _recurring_line(error)
        raise RecursionError(
            f"{kind}: tracing '{name}' went deeper than Python's recursion limit ({sys.getrecursionlimit()}) "
            f"at {where}. A function that calls itself in a branch of cond is decorated with @weft.jit: the call "
            f"is then traced once, not followed"
        ) from None
    finally:
        traced_calls.end(begun)


def asks_for_hash(error: TypeError) -> bool:
    """Whether a traced value was taken as a key."""
    text = str(error)
    return _UNHASHABLE in text or _AS_A_KEY in text


_AS_A_KEY = "takes a traced value as a key of a dict"
# What Python says about hash(x).
_UNHASHABLE = f"unhashable type: '{_weft.Tracer.__module__}.{_weft.Tracer.__qualname__}'"


def _recurring_line(error: RecursionError) -> str:
    """The user's line that occurs most often in the traceback."""
    lines = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    users = [at for at in lines if not at[0].startswith((PACKAGE, "<frozen"))]
    ((file, line), _), *_ = collections.Counter(users or lines).most_common(1)
    return f"{file}:{line}"


class _Float0:
    """An array of dtype float0 among results: its shape is part of their structure, as there is nothing to compute."""

    def __init__(self, shape: tuple[int, ...]):
        self.shape = shape


_tree.register(_Float0, lambda held: ((), held.shape), lambda shape, _: np.zeros(shape, FLOAT0))


def flatten_result(flat: Flat, result: Any, keeps_float0: bool = False) -> list:
    """The leaves of a result; sets flat.out_tree. Arrays of dtype float0 are zeros of dtype bool in programs;
    `keeps_float0`: they come out as they are."""
    leaves, flat.out_tree = _tree.flatten(result)
    if any(map(is_float0, leaves)):
        flat.float0s = () if keeps_float0 else [i for i, leaf in enumerate(leaves) if is_float0(leaf)]
        put = (lambda x: _Float0(x.shape)) if keeps_float0 else (lambda x: _weft.full(x.shape, 0, "bool"))
        leaves, flat.out_tree = _tree.flatten(_tree.map(lambda x: put(x) if is_float0(x) else x, result))
    for i, leaf in enumerate(leaves):
        if not _weft.is_operand(leaf):
            path = _tree.path_texts(flat.out_tree)[i]
            if stateful.is_reference(leaf):
                stateful.references.refuse_result(flat.name, leaf, path, "tracing")
            raise type_error(
                f"the result{path and ' ' + path} of '{flat.name}' is {_short(leaf)} of type '{type(leaf).__name__}'; "
                "a traced function returns arrays, numbers, or containers of them"
            )
    return leaves


# The structure of a single array or number.
LEAF_TREE = _tree.structure(0)
