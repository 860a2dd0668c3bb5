"""jax.api_util, and what libraries take of jax._src.util."""

from __future__ import annotations

import functools
import inspect
import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .._core import tree as _tree
from .._core.errors import type_error, value_error
from . import linear_util as lu
from .core import get_aval
from .debug_infos import debug_info  # noqa: F401
from .treedefs import spec_of, tree_flatten

_MORE = 11  # elements that are read of a sequence that is longer than another one, to say how long it is


def _lists(args: Sequence[Iterable[Any]]) -> tuple[list[list[Any]], int | None]:
    """The sequences, and the number of the first that is not as long as the first. One may have no end."""
    iterators, rows = [iter(arg) for arg in args], list[list[Any]]()
    end = object()
    row = [next(iterator, end) for iterator in iterators]
    while not any(one is end for one in row):
        rows.append(row)
        row = [next(iterator, end) for iterator in iterators]
    lists = [[row[n] for row in rows] for n in range(len(args))]
    for one, iterator, last in zip(lists, iterators, row):
        if last is not end:
            one += [last, *itertools.islice(iterator, _MORE - 1)]
    return lists, next((n for n, one in enumerate(lists) if len(one) != len(lists[0])), None)


def safe_map(*args: Any) -> list[Any]:
    """map() of sequences that must be equally long."""
    if len(args) < 2:
        raise type_error("safe_map requires at least 2 arguments")
    f = args[0]
    lists, wrong = _lists(args[1:])
    if wrong is not None:
        which = "longer" if len(lists[wrong]) > len(lists[0]) else "shorter"
        raise value_error(f"safe_map() argument {wrong + 1} is {which} than argument 1")
    return [f(*row) for row in zip(*lists)]


def safe_zip(*args: Iterable[Any]) -> list[tuple[Any, ...]]:
    """zip() of sequences that must be equally long."""
    if not args:
        raise type_error("safe_zip requires at least 1 argument")
    lists, wrong = _lists(args)
    if wrong is not None:
        capped = min(map(len, lists)) + _MORE
        said = [f"{len(one)}{'+' * (len(one) == capped)}" for one in lists]
        note = [str(n) for n, one in enumerate(lists) if len(one) == capped]
        raise value_error(
            f"safe_zip() argument {wrong} has length {said[wrong]} but argument 0 has length {said[0]}. All lengths: "
            f"({', '.join(said)})" + (f". Note: length capped for argument(s) {', '.join(note)}" if note else "")
        )
    return list(zip(*lists))


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The first and the second members of pairs."""
    listed = list(pairs)
    return tuple(a for a, _ in listed), tuple(b for _, b in listed)


def partition_list(choice: Sequence[bool], values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The values that are not chosen, and those that are."""
    return [v for c, v in zip(choice, values) if not c], [v for c, v in zip(choice, values) if c]


def merge_lists(choice: Sequence[bool], others: Sequence[Any], chosen: Sequence[Any]) -> list[Any]:
    """What partition_list has taken apart."""
    first, second = iter(others), iter(chosen)
    return [next(second) if c else next(first) for c in choice]


def split_list(values: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """Parts of given sizes, and the rest."""
    rest, parts = list(values), []
    for n in sizes:
        parts.append(rest[:n])
        rest = rest[n:]
    return [*parts, rest]


def argnums_partial(f: Any, dyn_argnums: Any, args: Sequence[Any], **_: Any) -> tuple[Any, tuple[Any, ...]]:
    """The function of the arguments that are named, and these arguments."""
    chosen = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    chosen = tuple(n % len(args) for n in chosen)

    def called(*dynamic: Any, **kwargs: Any) -> Any:
        full = list(args)
        for n, value in zip(chosen, dynamic, strict=True):
            full[n] = value
        return f(*full, **kwargs)

    return lu.wrap_init(called), tuple(args[n] for n in chosen)


def flatten_fun(f: Any, in_tree: Any) -> tuple[Any, Callable[[], Any]]:
    """A function of (args, kwargs) as one of leaves, and what says the structure of its result once it has run."""
    out: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        args, kwargs = _tree.unflatten(spec_of(in_tree), leaves)
        found, tree = tree_flatten(lu.called(f)(*args, **kwargs))
        out[:] = [tree]
        return found

    return lu.wrap_init(flat), lambda: out[0]


def flatten_fun_nokwargs(f: Any, in_tree: Any) -> tuple[Any, Callable[[], Any]]:
    """flatten_fun of a function without keyword arguments."""
    out: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        found, tree = tree_flatten(lu.called(f)(*_tree.unflatten(spec_of(in_tree), leaves)))
        out[:] = [tree]
        return found

    return lu.wrap_init(flat), lambda: out[0]


def infer_argnums_and_argnames(sig: inspect.Signature, argnums: Any, argnames: Any) -> tuple[Any, Any]:
    """Positions and names of arguments, each completed by the other."""
    if argnums is None and argnames is None:
        return (), ()
    by_position = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
    parameters = [p for p in sig.parameters.values() if p.kind in by_position]
    if argnums is not None:
        nums = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        names = tuple(parameters[i].name for i in nums if -len(parameters) <= i < len(parameters))
        return nums, names if argnames is None else _ensure_str_tuple(argnames)
    names = _ensure_str_tuple(argnames)
    return tuple(i for i, p in enumerate(parameters) if p.name in names), names


def resolve_argnums(
    fun: Any,
    signature: inspect.Signature | None,
    donate_argnums: Any,
    donate_argnames: Any,
    static_argnums: Any,
    static_argnames: Any,
) -> tuple[tuple[int, ...], tuple[str, ...], tuple[int, ...], tuple[str, ...]]:
    """Which arguments are donated and which static, by position and by name."""
    if signature is None:
        nums = [_ensure_index_tuple(n or ()) for n in (donate_argnums, static_argnums)]
        return nums[0], (), nums[1], _ensure_str_tuple(static_argnames or ())
    static, static_names = infer_argnums_and_argnames(signature, static_argnums, static_argnames)
    donated, donated_names = infer_argnums_and_argnames(signature, donate_argnums, donate_argnames)
    if set(static_names) & set(donated_names):
        raise value_error("static_argnames and donate_argnames cannot intersect")
    return rebase_donate_argnums(donated, static), donated_names, static, static_names


def resolve_kwargs(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of a call by position, those with defaults too."""
    if isinstance(fun, functools.partial):
        return tuple(inspect.signature(lambda *a, **k: None).bind(*args, **kwargs).args)
    bound = inspect.signature(fun).bind(*args, **kwargs)
    bound.apply_defaults()
    named = [name for name in bound.kwargs if name in kwargs]
    if named:
        raise type_error(f"The following keyword arguments could not be resolved to positions: {', '.join(named)}")
    return tuple(bound.args)


def rebase_donate_argnums(donate_argnums: Iterable[int], static_argnums: Iterable[int]) -> tuple[int, ...]:
    """Positions of donated arguments among those that are not static."""
    donated, static = set(donate_argnums), sorted(set(static_argnums))
    if donated & set(static):
        raise value_error(f"static_argnums {tuple(static)} and donate_argnums {tuple(donated)} cannot intersect")
    return tuple(sorted(n - sum(s < n for s in static) for n in donated))


def donation_vector(
    donate_argnums: Iterable[int], donate_argnames: Iterable[str], in_tree: Any, kws: bool = True
) -> tuple[bool, ...]:
    """For each leaf of (args, kwargs) whether it is donated."""
    donated: list[bool] = []
    spec = spec_of(in_tree)
    args_tree, kwargs_tree = spec.children() if kws else (spec, None)
    for i, part in enumerate(args_tree.children()):
        donated += [i in donate_argnums] * part.num_leaves
    if kwargs_tree is not None:
        for name, part in zip(kwargs_tree.entries(), kwargs_tree.children()):
            donated += [name in donate_argnames] * part.num_leaves
    return tuple(donated)


def shaped_abstractify(x: Any) -> Any:
    """The type of a value."""
    return get_aval(x)


_ensure_index = lambda x: tuple(map(operator.index, x)) if isinstance(x, Iterable) else operator.index(x)
_ensure_index_tuple = lambda x: tuple(map(operator.index, x)) if isinstance(x, Iterable) else (operator.index(x),)
_ensure_str_tuple = lambda x: (x,) if isinstance(x, str) else tuple(x)
