"""Implementations that programs give Weft's own operations (Primitive.def_impl), to watch them or to compute otherwise.

They are called where the operation is bound to arrays, and for each equation of a derivative that runs outside of
traced functions: while there are any, such derivatives run equation by equation. Compiled programs take no notice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _weft

given: dict[str, Callable[..., Any]] = {}  # by JAX's name
# Operations that only run the function inside of them.
_CALLS = frozenset(["call", "jit", "remat"])
_native = _weft.apply_derivative


def give(name: str, rule: Callable[..., Any] | None) -> None:
    """From now on the operation is computed by this function; None: by Weft."""
    if rule is None:
        given.pop(name, None)
    else:
        given[name] = rule
    module: Any = _weft
    module.apply_derivative = _apply if given else _native


def _apply(program: Any, operands: Sequence[Any]) -> Any:
    if _weft.is_tracing():
        return _native(program, operands)
    from . import jaxprs

    return _run(jaxprs.of_program(program), operands)


def _run(jaxpr: Any, operands: Sequence[Any]) -> list[Any]:
    from . import jaxprs

    values: dict[Any, Any] = dict(zip(jaxpr.invars, operands, strict=True))
    read = lambda atom: jaxprs.value_of(atom, values)
    for eqn in jaxpr.eqns:
        arguments = [read(atom) for atom in eqn.invars]
        if eqn.primitive.name in _CALLS and len(eqn.params.get("regions", ())) == 1:
            results: Sequence[Any] = _run(eqn.params["regions"][0].jaxpr, arguments)
        else:  # loops and branches as they are
            found = eqn.primitive.bind(*arguments, **eqn.primitive.get_bind_params(eqn.params))
            results = found if isinstance(found, (list, tuple)) else [found]
        values.update(zip(eqn.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]
