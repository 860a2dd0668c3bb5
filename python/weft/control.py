"""Control flow that becomes part of the program: cond, switch, while_loop, fori_loop, scan, map.

Python's own `if` and `for` decide while a function is traced; these decide while it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import _weft
from . import tree as _tree
from ._tracing import Flat, ShapeDtype, call_name, flat_function, trace_flat

__all__ = ["cond", "fori_loop", "map", "scan", "switch", "while_loop"]


def _flat_over(function: Callable, leaves: list, in_tree, names: Sequence[str] = ()) -> Flat:
    """A call with arguments that are flat already; in_tree is that of the tuple of arguments."""
    flat = Flat()
    flat.function = lambda *args: function(*args)
    flat.name = call_name(function)
    flat.leaves = flat.specs = leaves
    flat.in_tree = _tree.structure((in_tree.unflatten(leaves), {}))
    flat.names = list(names) or [""] * len(leaves)
    flat.out_tree = None
    return flat


def _result_paths(tree) -> list[str]:
    return [path for path, _ in _tree.flatten_with_path(tree.unflatten([0] * tree.num_leaves))]


def cond(pred, true_fun: Callable, false_fun: Callable, *operands):
    """true_fun(*operands) if pred else false_fun(*operands); only the one that is chosen runs.

    pred is a single boolean (or number: whether it is not 0). Both functions must return the same structure, shapes and
    dtypes; TypeError names the result where they differ.
    """
    return _branches(pred, [false_fun, true_fun], operands, "cond")


def switch(index, branches: Sequence[Callable], *operands):
    """branches[index](*operands); an index out of range is clamped."""
    if not branches:
        raise ValueError("switch: no functions to choose from")
    if len(branches) == 1:
        return branches[0](*operands)
    return _branches(_weft.astype(index, "int32"), list(branches), operands, "switch")


def _branches(index, functions: list[Callable], operands: tuple, what: str):
    flats = [flat_function(f, operands, {}) for f in functions]
    traced: list = []
    suspended = None
    for flat in flats:
        try:
            traced.append(trace_flat(flat, what, known=False))
        except _weft.RecursionPending as pending:
            traced.append(None)
            suspended = pending
    if suspended is not None:
        # A function that is being traced called itself here, and what it returns is not known yet. The other branches
        # say what this one returns; then the function is traced once more (python/jit.cc).
        finished = [i for i, function in enumerate(traced) if function is not None]
        if not finished:
            raise suspended
        flats = [flats[finished[0]]] * len(flats)
        traced = [traced[finished[0]]] * len(traced)
    for flat in flats[1:]:
        if flat.out_tree != flats[0].out_tree:
            raise TypeError(
                f"{what}: '{flats[0].name}' returns the structure {flats[0].out_tree}, '{flat.name}' {flat.out_tree}"
            )
    names = [f"'{flat.name}'" for flat in flats]
    out = _weft.cond(index, traced, flats[0].leaves, names, _result_paths(flats[0].out_tree))
    return _tree.unflatten(flats[0].out_tree, out)


def while_loop(cond_fun: Callable, body_fun: Callable, init_val: Any, *, strategy: str = "tape"):
    """carry = init_val; while cond_fun(carry): carry = body_fun(carry); returns carry.

    The carry keeps its structure, shapes and dtypes from step to step (a Python number takes the dtype that the body
    gives it). All derivatives work through it, of any order and under vmap. In reverse mode the loop records what its
    gradient needs on a tape that grows with the number of trips (`weft.make_ir(weft.grad(f))(x).stage("schedule")`
    shows the bytes per trip); strategy="recount" runs the loop once more, first only to count, so that the tape never
    grows while it is written.

        weft.grad(lambda x: weft.while_loop(lambda c: c < 10, lambda c: c * 2, x))(1.0)   # 16.0
    """
    if strategy not in ("tape", "recount"):
        raise ValueError(f"while_loop: strategy={strategy!r}; expected 'tape' or 'recount'")
    return loop_while(cond_fun, body_fun, init_val, "while_loop", strategy=strategy)


def loop_while(
    cond_fun: Callable,
    body_fun: Callable,
    init_val: Any,
    what: str,
    paths: Sequence[str] | None = None,
    strategy: str = "tape",
):
    """while_loop for whoever is called `what` in messages; `paths`: what to call the leaves of the carry."""
    carry, tree = _tree.flatten(init_val)
    paths = _result_paths(tree) if paths is None else list(paths)
    for _ in range(3):
        body = _flat_over(body_fun, carry, _tree.structure((init_val,)))
        traced = trace_flat(body, "while_loop", known=False)
        if body.out_tree != tree:
            raise TypeError(f"{what}: the carry has the structure {tree}, '{body.name}' returns {body.out_tree}")
        carry, again = _weft.promote_carry(carry, traced, what, paths)
        if not again:
            break
    test = _flat_over(cond_fun, carry, _tree.structure((init_val,)))
    condition = trace_flat(test, "while_loop", known=False)
    return _tree.unflatten(tree, _weft.while_loop(carry, condition, traced, strategy))


def fori_loop(lower, upper, body_fun: Callable, init_val: Any):
    """carry = init_val; for i in range(lower, upper): carry = body_fun(i, carry); returns carry.

    With Python integers as bounds this is a scan, with traced bounds a while_loop; all derivatives work through both.
    """
    return loop_count(lower, upper, body_fun, init_val, "fori_loop")


def loop_count(lower, upper, body_fun: Callable, init_val: Any, what: str, paths: Sequence[str] | None = None):
    """fori_loop; `what` and `paths` as in loop_while."""
    known = isinstance(lower, int) and isinstance(upper, int)
    if known:
        length = max(upper - lower, 0)

        def step(carry, i):
            return body_fun(i, carry), None

        steps = _weft.iota((length,), 0, "int32") + lower if lower else _weft.iota((length,), 0, "int32")
        return loop_scan(step, init_val, steps, length, False, what, paths)[0]

    from . import numpy as wnp

    lower, upper = wnp.asarray(lower), wnp.asarray(upper)
    dtype = wnp.result_type(lower, upper)

    def condition(state):
        return state[0] < state[1]

    def body(state):
        i, end, carry = state
        return i + 1, end, body_fun(i, carry)

    init = (lower.astype(dtype), upper.astype(dtype), init_val)
    if paths is None:
        paths = _result_paths(_tree.structure(init_val))
    return loop_while(condition, body, init, what, ["the counter", "the bound", *paths])[2]


def scan(f: Callable, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False, unroll: int = 1):
    """Carries a value along the first axis of xs: for each slice x, carry, y = f(carry, x). Returns (carry, stacked
    ys).

    The whole loop is one equation, whatever its length. The carry keeps its structure, shapes and dtypes. xs may be
    None when length is given; reverse goes from the last slice to the first. unroll is accepted and has no effect.

        total, partial = weft.scan(lambda c, x: (c + x, c + x), 0.0, xs)
    """
    del unroll
    return loop_scan(f, init, xs, length, reverse, "scan")


def loop_scan(
    f: Callable, init: Any, xs: Any, length: Any, reverse: bool, what: str, paths: Sequence[str] | None = None
):
    """scan; `what` and `paths` as in loop_while."""
    carry, carry_tree = _tree.flatten(init)
    xs_leaves, xs_tree = _tree.flatten(xs)
    for leaf, (path, _) in zip(xs_leaves, _tree.flatten_with_path(xs)):
        shape = _weft.abstract(leaf)[0]
        if not shape:
            raise ValueError(f"{what}: xs{path} is a single number; every array of xs needs a first axis to go along")
        if length is None:
            length = shape[0]
        elif shape[0] != length:
            raise ValueError(f"{what}: xs{path} has {shape[0]} slices, expected {length}")
    if length is None:
        raise ValueError(f"{what}: give length= when xs has no arrays")
    slices = []
    for leaf in xs_leaves:
        shape, dtype, weak, _ = _weft.abstract(leaf)
        slices.append(ShapeDtype(shape[1:], dtype, weak_type=weak))
    carry_paths = _result_paths(carry_tree) if paths is None else list(paths)
    for _ in range(3):
        flat = Flat()
        flat.function, flat.name = f, call_name(f)
        flat.leaves = flat.specs = carry + slices
        flat.names = [""] * len(flat.leaves)
        flat.in_tree = _tree.structure(((carry_tree.unflatten(carry), xs_tree.unflatten(slices)), {}))
        flat.out_tree = None
        traced = trace_flat(flat, "scan", known=False)
        out_tree = flat.out_tree
        if out_tree.type is not tuple or out_tree.num_children != 2:
            raise TypeError(f"{what}: '{flat.name}' must return a pair (carry, y), got the structure {out_tree}")
        out_carry, y_tree = out_tree.children()
        if out_carry != carry_tree:
            raise TypeError(f"{what}: the carry has the structure {carry_tree}, '{flat.name}' returns {out_carry}")
        carry, again = _weft.promote_carry(carry, traced, what, carry_paths)
        if not again:
            break
    out = _weft.scan(carry, xs_leaves, traced, length, reverse)
    n = len(carry)
    return _tree.unflatten(carry_tree, out[:n]), _tree.unflatten(y_tree, out[n:])


def map(f: Callable, xs: Any):
    """f applied to each slice of xs along its first axis, one after the other; results are stacked."""
    return scan(lambda _, x: (None, f(x)), None, xs)[1]
