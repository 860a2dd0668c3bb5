"""Functions of jax.lax that are one equation of JAX's and several of Weft's: a scope around their calls says which
equations belong together, and the view of a program shows them as one, which holds what it computes."""

from __future__ import annotations

import collections
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import weft

from .. import _weft
from .hidden_scopes import ONE_EQUATION

SEVERAL = ("bessel_i0e", "bessel_i1e", "cumlogsumexp", "rng_uniform", "scaled_dot", "scatter_sub", "select_n")
# Module -> its functions that are one equation, and what JAX calls it.
_FUNCTIONS = {
    "jax.lax": {name: name for name in SEVERAL},
    "jax.scipy.special": {"i0e": "bessel_i0e", "i1e": "bessel_i1e"},
}
# What is shown -> which operation inside of it has its parameters, unless it is one of the same name.
SAYS_HOW = {"scatter_sub": "scatter_add"}
_FUNCTIONS["jax._src.lax.lax"] = _FUNCTIONS["jax.lax"]


# Functions of jax.numpy, and what they are over no axes: an equation, which computes nothing.
_OVER_NONE = {"sum": "reduce_sum", "prod": "reduce_prod", "max": "reduce_max", "min": "reduce_min"}


class _Turns(threading.local):
    """Calls that follow each other have scopes of two names in turn: where one ends, the next begins."""

    odd = False


_turns = _Turns()


def in_one_equation(module: str, name: str, function: Any) -> Any:
    """What a module serves under a name; in programs, its calls are one equation each."""
    if module == "jax.numpy" and name in _OVER_NONE:
        return _over_none(function, getattr(weft.lax, _OVER_NONE[name]))
    shown = _FUNCTIONS.get(module, {}).get(name)
    if shown is None:
        return function
    if shown == "cumlogsumexp":
        function = _of_integers(function)
    return _in_scope(shown, function)


def _over_none(function: Callable[..., Any], reduce: Callable[..., Any]) -> Callable[..., Any]:
    """A function that reduces; over no axes its result is in programs an equation, too."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        out = function(*args, **kwargs)
        axis = args[1] if len(args) > 1 else kwargs.get("axis")
        over_none = isinstance(axis, (tuple, list)) and not axis
        return reduce(out, ()) if over_none and _weft.is_traced(out) else out

    return called


def _of_integers(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of floats; where it is given integers, its results are integers, as JAX's types say."""

    @functools.wraps(function)
    def called(operand: Any, *args: Any, **kwargs: Any) -> Any:
        x = _weft.array(operand, None, False)
        if _weft.dtype_kind(x.dtype) not in ("signed", "unsigned"):
            return function(x, *args, **kwargs)
        return function(x.astype(weft.numpy.result_type(float)), *args, **kwargs).astype(x.dtype)

    return called


def _in_scope(shown: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if not _weft.is_tracing():
            return function(*args, **kwargs)
        _turns.odd = not _turns.odd
        with weft.named_scope(f"{ONE_EQUATION}{shown}.{int(_turns.odd)}"):
            return function(*args, **kwargs)

    return called


class Computed:
    """What an equation computes, as a program of Weft's operations; it is no program inside of the equation to those
    who look for some.

    Attributes:
        run: the program as a function of the operands.
        program: the program.
    """

    def __init__(self, name: str, run: Callable[..., Any], program: Any):
        self.run, self.program = _in_scope(name, run), program


def _scope_of(eqn: Any) -> str:
    """The scope of a call that an equation is a part of; a derivative is several equations in JAX, too."""
    if any(step in ("jvp", "transpose", "jet") for each in eqn.steps for step in each):
        return ""
    names = [name for each in eqn.steps for step in each for name in step.partition("(")[2].rstrip(")").split("/")]
    return next((name for name in names if name.startswith(ONE_EQUATION)), "")


def _operands(result: Any, part: Sequence[Any]) -> list[Any]:
    """The variables from outside that equations read, in the order in which an expression of the result has them."""
    makers = {id(v): eqn for eqn in part for v in eqn.outvars}
    found: dict[int, Any] = {}
    ahead, seen = [result], set[int]()
    while ahead:
        atom = ahead.pop()
        maker = makers.get(id(atom))
        if maker is None and not hasattr(atom, "val"):
            found.setdefault(id(atom), atom)
        if maker is not None and id(maker) not in seen:
            seen.add(id(maker))
            ahead += reversed(maker.invars)
    return list(found.values())


def as_one_equation(
    eqns: list[Any], results: Sequence[Any], merged: Callable[[str, list[Any], list[Any], list[Any]], Any]
) -> list[Any]:
    """The equations, in which those of a call are one: merged(its name, its operands, its results, the equations)."""
    scopes = [_scope_of(eqn) for eqn in eqns]
    if not any(scopes):
        return eqns
    uses = collections.Counter(id(atom) for eqn in eqns for atom in eqn.invars)
    uses.update(id(atom) for atom in results)
    kept: list[Any] = []
    start = 0
    while start < len(eqns):
        end = start + 1
        while scopes[start] and end < len(eqns) and scopes[end] == scopes[start]:
            end += 1
        part = eqns[start:end]
        inside = collections.Counter(id(atom) for eqn in part for atom in eqn.invars)
        made = [v for eqn in part for v in eqn.outvars]
        outvars = [v for v in made if uses[id(v)] > inside[id(v)]]
        name = scopes[start].removeprefix(ONE_EQUATION).rpartition(".")[0]
        if name and len(outvars) == 1 and [eqn.primitive.name for eqn in part] != [name]:
            invars = _operands(outvars[0], part)
            part = [merged(name, invars, outvars, part)]
        kept += part
        start = end
    return kept
