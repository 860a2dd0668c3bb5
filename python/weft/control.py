"""Control flow that becomes part of the program: cond, switch, while_loop, fori_loop, scan, map. Python's own `if` and
`for` decide while a function is traced; these decide while it runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from . import _weft
from ._core import copied as _copied
from ._core import stateful
from ._core import tree as _tree
from ._core.errors import type_error, value_error
from ._core.facts import carry_differs, knowing, knowing_branches, knowing_carry, knowing_condition, of_result
from ._core.shapes import ShapeDtype
from ._core.tracing import LEAF_TREE, Flat, call_name, check_callable, flat_function, trace_flat
from ._sharding import agreement
from ._sharding.typed import place_of, without_dims
from .arguments import concrete, count, flag, is_integer

_C = TypeVar("_C")
_Y = TypeVar("_Y")

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


_NOTHING: Any = object()


def _in_python() -> bool:
    """Whether control flow runs step by step in Python, because weft.disable_jit() says so."""
    return _weft.disable_jit()


def _asked(kind: Callable[[Any], Any], x: Any) -> Any:
    """The Python value of a predicate or a bound; None where it is traced and unknown, so that Python cannot decide by
    it and the program has to."""
    try:
        return kind(x)
    except _weft.TracerError:
        return None


def cond(
    pred: Any, true_fun: Callable[..., _C], false_fun: Callable[..., _C], *operands: Any, operand: Any = _NOTHING
) -> _C:
    """true_fun(*operands) if pred else false_fun(*operands), decided when the program runs; only the chosen one runs.

    Args:
        pred: one boolean, or one number: whether it is not 0.
        true_fun: function of the operands.
        false_fun: function of the operands.
        *operands: arrays, numbers or trees of them.
        operand: an older spelling of a single operand.

    JAX's older cond(pred, true_operand, true_fun, false_operand, false_fun) is taken, too.

    Returns: what the functions return; Python numbers take the dtype that the other function gives.

    Raises:
        TypeError: pred is no single boolean or number, or the results differ in structure, shape or dtype; the message
            names the result.

    Example:
        >>> weft.cond(True, lambda x: x + 1, lambda x: x - 1, 10.0)
        Array(11., dtype=float32, weak_type=True)
    """
    if operand is not _NOTHING:
        operands = (*operands, operand)
    if len(operands) == 2 and callable(operands[1]) and not (callable(true_fun) and callable(false_fun)):
        of_true, on_true, (of_false, on_false) = true_fun, false_fun, operands
        return cond(pred, lambda: on_true(of_true), lambda: on_false(of_false))
    if _in_python() and (chosen := _asked(bool, pred)) is not None:
        return (true_fun if chosen else false_fun)(*operands)
    if stateful.references is not None:
        return stateful.references.branches(_branches, pred, [false_fun, true_fun], operands, "cond")
    return _branches(pred, [false_fun, true_fun], operands, "cond")


def switch(index: Any, branches: Sequence[Callable[..., _C]], *operands: Any, operand: Any = _NOTHING) -> _C:
    """branches[index](*operands), decided when the program runs; only the chosen one runs.

    Args:
        index: one integer; out of range it is limited to it.
        branches: functions of the operands, one at least.
        *operands: arrays, numbers or trees of them.
        operand: an older spelling of a single operand.

    Returns: what the functions return.

    Raises:
        ValueError: there are no functions.
        TypeError: index is no single integer, or the results differ in structure, shape or dtype.

    Example:
        >>> weft.switch(1, [lambda x: x, lambda x: x * 10], 3.0)
        Array(30., dtype=float32, weak_type=True)
    """
    if not branches:
        raise value_error("switch: no functions to choose from")
    if operand is not _NOTHING:
        operands = (*operands, operand)
    shape, dtype, _, text = _weft.abstract(index) if _weft.is_operand(index) else ((), "", False, repr(index))
    if not dtype or shape or _weft.dtype_kind(dtype) not in ("signed", "unsigned"):
        raise type_error(f"switch: the index must be a single integer, got {text}")
    for branch in branches:
        check_callable(branch, "switch")
    if len(branches) == 1:
        return branches[0](*operands)
    if _in_python() and (chosen := _asked(int, index)) is not None:
        return branches[min(max(chosen, 0), len(branches) - 1)](*operands)
    if stateful.references is not None:
        index = _weft.astype(index, "int32")
        return stateful.references.branches(_branches, index, list(branches), operands, "switch")
    return _branches(_weft.astype(index, "int32"), list(branches), operands, "switch")


def _where_the_first_is_weak(branches: list) -> list[int]:
    """The results that are weak in JAX: those of the first branch, where all branches have one dtype."""
    dtypes = zip(*([spec[1] for spec in _weft.result_specs(branch)] for branch in branches))
    same = [len({*each}) == 1 for each in dtypes]
    return [i for i, weak in enumerate(branches[0].weak_results) if weak and i < len(same) and same[i]]


def _branches(index, functions: list[Callable], operands: tuple, what: str):
    # Where devices of a mesh may choose differently, whatever a branch reads counts as different on them.
    asked = agreement.is_asked()
    varying = _weft.varying(index)
    if varying:
        operands = _tree.map(lambda leaf: _weft.pvary(leaf, varying), operands)
    for function in functions:
        check_callable(function, what)
    flats = [flat_function(f, operands, {}) for f in functions]
    traced: list = []
    suspended = None
    for flat in flats:
        try:
            traced.append(trace_flat(flat, what, known=False, varying=varying))
        except _weft.RecursionPending as pending:
            traced.append(None)
            suspended = pending
    if suspended is not None:
        # A function that is being traced called itself here, and what it returns is not known yet. The other branches
        # say what this one returns; then the function is traced once more (python/native/jit.cc).
        finished = [i for i, function in enumerate(traced) if function is not None]
        if not finished:
            raise suspended
        flats = [flats[finished[0]]] * len(flats)
        traced = [traced[finished[0]]] * len(traced)
    names = [f"'{flat.name}'" for flat in flats]
    if len(set(names)) < len(names):  # lambdas are told apart by their place
        names = ["false_fun", "true_fun"] if what == "cond" else [f"branch {i}" for i in range(len(flats))]
    for flat, name in zip(flats[1:], names[1:]):
        if flat.out_tree != flats[0].out_tree:
            error = type_error(
                f"{what}: {names[0]} returns {_tree.in_words(flats[0].out_tree)}, {name} "
                f"{_tree.in_words(flat.out_tree)}"
            )
            raise knowing(error, kind="branches", what=what, trees=[flat.out_tree for flat in flats])
    if asked and agreement.check_branches is not None:
        agreement.check_branches(what, traced, varying)
    first_is_weak = _where_the_first_is_weak(traced) if _tree.jax_semantics() else []
    with knowing_branches(what, [flat.out_tree for flat in flats], traced):
        out = _weft.cond(index, traced, flats[0].leaves, names, _tree.path_texts(flats[0].out_tree), what)
    for i in first_is_weak:
        out[i] = _weft.weak(out[i])
    return _tree.unflatten(flats[0].out_tree, out)


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], _C], init_val: Any, *, strategy: str = "tape"
) -> _C:
    """carry = init_val; while cond_fun(carry): carry = body_fun(carry).

    The carry keeps its structure, shapes and dtypes from step to step (a Python number takes the dtype that the body
    gives it). All derivatives work through it, of any order and under vmap. In reverse mode the loop records what its
    gradient needs on a tape that grows with the number of trips (`weft.make_ir(weft.grad(f))(x).stage("schedule")`
    shows the bytes per trip).

    Args:
        cond_fun: (carry) -> one boolean.
        body_fun: (carry) -> carry.
        init_val: the first carry: array, number or tree of them.
        strategy: of reverse mode: "tape"; or "recount", which runs the loop once more, first only to count, so that the
            tape never grows while it is written.

    Returns: the last carry.

    Raises:
        TypeError: the condition is no single boolean, or the carry changes its structure, shape or dtype.

    Example:
        >>> weft.while_loop(lambda x: x < 100, lambda x: 3 * x, 1)
        Array(243, dtype=int32, weak_type=True)
        >>> weft.grad(lambda x: weft.while_loop(lambda c: c < 10, lambda c: c * 2, x))(1.0)
        Array(16., dtype=float32, weak_type=True)
    """
    if strategy not in ("tape", "recount"):
        counted = "; a loop whose number of steps is known, fori_loop or scan, takes 'binomial(k)'"
        raise value_error(
            f"while_loop: strategy={strategy!r}; expected 'tape' or 'recount'"
            + (counted if str(strategy).startswith("binomial") else "")
        )
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
    check_callable(cond_fun, what)
    check_callable(body_fun, what)
    if _in_python():
        init_val = _copied.without_numpy(init_val, (bool, int, float, complex))
        while go_on := _asked(bool, cond_fun(init_val)):
            init_val = body_fun(init_val)
        if go_on is not None:
            return init_val
    if stateful.references is not None:
        return stateful.references.while_loop(_loop_while, cond_fun, body_fun, init_val, what, paths, strategy)
    return _loop_while(cond_fun, body_fun, init_val, what, paths, strategy)


def _loop_while(
    cond_fun: Callable, body_fun: Callable, init_val: Any, what: str, paths: Sequence[str] | None, strategy: str
) -> Any:
    asked = agreement.is_asked()
    carry, tree = _tree.flatten(init_val)
    paths = _tree.path_texts(tree) if paths is None else list(paths)
    varying: list[str] = []
    while True:
        for _ in range(3 + len(carry)):
            body = _flat_over(body_fun, carry, _tree.structure((init_val,)))
            traced = trace_flat(body, "while_loop", known=False, varying=varying)
            if body.out_tree != tree:
                raise carry_differs(what, body_fun, body.name, tree, body.out_tree)
            if asked and agreement.check_carry is not None and not varying:
                agreement.check_carry(what, carry, traced)
            begun = carry
            with knowing_carry(what, body_fun, tree, carry, traced):
                carry, again = _promoted(carry, traced, what, paths)
            if not again:
                break
        test = _flat_over(cond_fun, begun if _tree.jax_semantics() else carry, _tree.structure((init_val,)))
        condition = trace_flat(test, "while_loop", known=False, varying=varying)
        if test.out_tree != LEAF_TREE:
            error = type_error(f"{what}: the condition must return one boolean, got {_tree.in_words(test.out_tree)}")
            raise of_result(error, "condition", test.out_tree, condition)
        # Where devices of a mesh may go on for longer than others, all that the loop reads counts as different on them.
        differ = _weft.result_varying(condition, 0)[0] if condition.num_results == 1 else []
        if set(differ) <= set(varying):
            break
        varying = differ
        carry = [_weft.pvary(leaf, varying) for leaf in carry]
    with knowing_condition(condition):
        return _tree.unflatten(tree, _weft.while_loop(carry, condition, traced, strategy))


def _promoted(carry: list, traced: Any, what: str, paths: Sequence[str]) -> tuple[list, bool]:
    """The carry as the body returns it, and whether that is to be traced once more. As in JAX it is not where a weakly
    typed leaf only stops to be one: inside of the body it stays weak."""
    promoted, again = _weft.promote_carry(carry, traced, what, paths)
    if again and _tree.jax_semantics():
        # What got another dtype is no Python number's any more.
        promoted = [b if _kind(a)[1] == _kind(b)[1] else _weft.strong(b) for a, b in zip(carry, promoted)]
        again = any(_kind(a) != _kind(b) for a, b in zip(carry, promoted))
    return promoted, again


def _kind(x: Any) -> tuple:
    shape, dtype, _, _ = _weft.abstract(x)
    return shape, dtype, _weft.varying(x)


def _known_integer(x):
    """A Python integer for what is one whose number is known."""
    known = isinstance(x, (_weft.Array, np.ndarray)) and not _weft.is_traced(x) and x.ndim == 0
    return int(x) if known or is_integer(x) else x


def _check_unroll(unroll: Any, what: str) -> None:
    # It has no effect, but a mistake is one.
    if _weft.is_traced(unroll):
        concrete(int, unroll, f"{what}: unroll")  # raises
    if unroll is not None and not isinstance(unroll, bool):
        count(unroll, f"{what}: unroll")


def _snapshots(strategy: str, what: str) -> int:
    """How many states reverse mode stores: k of "binomial(k)"; 0 for every one."""
    if strategy in ("tape", "recount"):
        return 0
    match = re.fullmatch(r"binomial\((\d+)\)", strategy) if isinstance(strategy, str) else None
    if match is None or not 1 <= int(match[1]) < 2**31:
        raise value_error(
            f"{what}: strategy={strategy!r}; expected 'tape', 'recount' or 'binomial(k)' for some k from 1 to 2^31 - 1"
        )
    return int(match[1])


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], _C],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
    strategy: str = "tape",
) -> _C:
    """carry = init_val; for i in range(lower, upper): carry = body_fun(i, carry).

    With known integers as bounds this is a scan, with traced bounds a while_loop; all derivatives work through both.
    The index of a scan is weak, like a Python number; that of a while_loop has the dtype of the bounds, and is weak
    where `lower` is.

    Args:
        lower: the first index, an integer, traced ones too; or a float, if `upper` is one.
        upper: the one after the last.
        body_fun: (index, carry) -> carry.
        init_val: the first carry: array, number or tree of them.
        unroll: a boolean or an integer that is not negative, without effect.
        strategy: what reverse mode does with the states of the loop. "tape" keeps what the gradient needs of every
            step. "binomial(k)" keeps k states and runs the steps between them again, by a schedule that no other beats:
            memory does not grow with the number of steps, and (k + r)! / (k! r!) steps cost r more forward passes (1001
            steps, 10 snapshots: 4). Derivatives of higher order keep this bound. "recount" is while_loop's, for traced
            bounds.

    Returns: the last carry.

    Raises:
        TypeError: a bound is no single number, no integer dtype holds both or one is a float, or the carry changes its
            structure, shape or dtype.
        ValueError: there is no such strategy; or "binomial(k)" with traced bounds: which states to store follows from
            the number of steps.

    Source: Griewank and Walther, "Algorithm 799: Revolve", ACM TOMS 26, 2000.

    Example:
        >>> f = lambda x: weft.fori_loop(0, 1000, lambda i, c: c + 1e-3 * wnp.sin(c), x, strategy="binomial(10)")
        >>> weft.grad(f)(0.0)
        Array(2.7169204, dtype=float32, weak_type=True)
        >>> weft.fori_loop(0, 5, lambda i, x: x * 2.0, 1.0)
        Array(32., dtype=float32, weak_type=True)
    """
    _check_unroll(unroll, "fori_loop")
    return loop_count(lower, upper, body_fun, init_val, "fori_loop", strategy=strategy)


def loop_count(
    lower,
    upper,
    body_fun: Callable,
    init_val: Any,
    what: str,
    paths: Sequence[str] | None = None,
    strategy: str = "tape",
):
    """fori_loop; `what` and `paths` as in loop_while."""
    check_callable(body_fun, what)
    kinds = set()
    for name, bound in (("lower", lower), ("upper", upper)):
        shape, dtype, _, text = _weft.abstract(bound)
        kinds.add(kind := _weft.dtype_kind(dtype))
        if shape or kind not in ("signed", "unsigned", "float"):
            raise type_error(f"{what}: {name} must be a single integer or float, got {text}")
    floats = "float" in kinds
    snapshots = _snapshots(strategy, what)
    if _in_python() and not floats:
        first, end = _asked(int, lower), _asked(int, upper)
        if first is not None and end is not None:
            value = init_val
            for i in range(first, end):
                value = body_fun(i, value)
            return value
    dtype = _weft.result_type(lower, upper)
    if (floats and kinds != {"float"}) or (not floats and _weft.dtype_kind(dtype) not in ("signed", "unsigned")):
        raise type_error(
            f"{what}: lower is {_weft.abstract(lower)[3]} and upper is {_weft.abstract(upper)[3]}; expected dtypes "
            f"that one integer dtype holds, or two floats"
        )
    start, stop = (None, None) if floats else (_known_integer(lower), _known_integer(upper))
    if isinstance(start, int) and isinstance(stop, int):
        # The index is what a Python integer is: weak, and of the default dtype unless that of the bounds is wider.
        default = _weft.result_type(int)
        dtype = default if np.can_cast(dtype, default) else np.dtype("int64")
        length = max(stop - start, 0)

        def step(carry, i):
            return body_fun(i, carry), None

        step.__name__ = call_name(body_fun)

        if snapshots:  # the counter is a carry: an array of all its values would grow with the number of steps

            def count(state, _):
                i, carry = state
                return (i + 1, body_fun(i, carry)), None

            count.__name__ = call_name(body_fun)
            names = _tree.path_texts(_tree.structure(init_val)) if paths is None else list(paths)
            first = (_weft.weak(_weft.full((), start, dtype)), init_val)
            return loop_scan(count, first, None, length, False, what, ["the counter", *names], snapshots)[0][1]
        steps = _weft.iota((length,), 0, dtype)
        if start:
            steps = steps + start
        return loop_scan(step, init_val, _weft.weak(steps), length, False, what, paths)[0]
    if snapshots:
        raise value_error(
            f"{what}: strategy={strategy!r} with a traced bound: which states to store follows from the number of "
            f"steps, which has to be known when the loop is traced"
        )

    lower, upper = _weft.array(lower, None, False), _weft.array(upper, None, False)

    def condition(state):
        return state[0] < state[1]

    def body(state):
        i, end, carry = state
        return i + 1, end, body_fun(i, carry)

    body.__name__ = call_name(body_fun)
    # As in JAX, the index is weak where the lower bound is and has its dtype already.
    weak = lower.weak_type and lower.dtype == dtype
    init = (lower if weak else lower.astype(dtype), upper.astype(dtype), init_val)
    if paths is None:
        paths = _tree.path_texts(_tree.structure(init_val))
    return loop_while(condition, body, init, what, ["the counter", "the bound", *paths], strategy)[2]


def scan(
    f: Callable[[Any, Any], tuple[_C, _Y]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    strategy: str = "tape",
) -> tuple[_C, _Y]:
    """Carries a value along the first axis of arrays: for each slice x of xs, carry, y = f(carry, x).

    The whole loop is one equation, whatever its length.

    Args:
        f: (carry, slice) -> (carry, y); the carry keeps its structure, shapes and dtypes.
        init: the first carry: array, number or tree of them.
        xs: array or tree of arrays of one size along their first axis; None where length is given.
        length: the number of steps, where xs does not say; otherwise it must agree.
        reverse: whether to go from the last slice to the first.
        unroll: a boolean or an integer that is not negative, without effect.
        strategy: what reverse mode keeps: "tape" something of every step, "binomial(k)" k carries (see fori_loop).

    Returns: pair of the last carry and the stacked ys.

    Raises:
        TypeError: f returns no pair, or the carry changes its structure, shape or dtype.
        ValueError: sizes differ, or nothing says how many steps there are.

    Example:
        >>> total, partial = weft.scan(lambda c, x: (c + x, c + x), 0.0, wnp.arange(4.0))
        >>> total, partial
        (Array(6., dtype=float32), Array([0., 1., 3., 6.], dtype=float32))
    """
    _check_unroll(unroll, "scan")
    reverse = flag(reverse, "scan: reverse")
    return loop_scan(f, init, xs, length, reverse, "scan", snapshots=_snapshots(strategy, "scan"))


def loop_scan(
    f: Callable,
    init: Any,
    xs: Any,
    length: Any,
    reverse: bool,
    what: str,
    paths: Sequence[str] | None = None,
    snapshots: int = 0,
):
    """scan; `what` and `paths` as in loop_while; snapshots: how many carries reverse mode stores, 0 for all."""
    check_callable(f, what)
    if stateful.references is not None and not _in_python():
        run = stateful.references.scan
        return run(_loop_scan, f, init, xs, length, reverse, what, paths, snapshots)
    return _loop_scan(f, init, xs, length, reverse, what, paths, snapshots)


def _loop_scan(
    f: Callable,
    init: Any,
    xs: Any,
    length: Any,
    reverse: bool,
    what: str,
    paths: Sequence[str] | None,
    snapshots: int,
) -> Any:
    asked = agreement.is_asked()
    carry, carry_tree = _tree.flatten(init)
    xs_leaves, xs_tree = _tree.flatten(xs)
    for leaf, path in zip(xs_leaves, _tree.path_texts(xs_tree)):
        shape = _weft.abstract(leaf)[0]
        if not shape:
            raise value_error(f"{what}: xs{path} is a single number; every array of xs needs a first axis to go along")
        if length is None:
            length = shape[0]
        elif shape[0] != length:
            raise value_error(f"{what}: xs{path} has {shape[0]} slices, expected {length}")
    if length is None:
        raise value_error(f"{what}: give length= when xs has no arrays")
    if isinstance(length, float) and length.is_integer():
        length = int(length)
    elif not isinstance(length, int):
        length = count(length, f"{what}: length")
    if _in_python() and isinstance(length, int):  # a symbolic number of steps has no value yet
        return _scan_in_python(f, init, xs, length, reverse)
    slices = []
    for leaf in xs_leaves:
        shape, dtype, weak, _ = _weft.abstract(leaf)
        place = without_dims(place_of(leaf), [0], len(shape))
        slices.append(ShapeDtype(shape[1:], dtype, weak_type=weak, varying=_weft.varying(leaf), sharding=place))
    carry_paths = _tree.path_texts(carry_tree) if paths is None else list(paths)
    for _ in range(3 + len(carry)):
        flat = Flat()
        flat.function, flat.name = f, call_name(f)
        flat.leaves = flat.specs = carry + slices
        flat.names = [""] * len(flat.leaves)
        flat.in_tree = _tree.structure(((carry_tree.unflatten(carry), xs_tree.unflatten(slices)), {}))
        flat.out_tree = None
        traced = trace_flat(flat, "scan", known=False)
        out_tree = flat.out_tree
        if out_tree.type is not tuple or out_tree.num_children != 2:
            error = type_error(f"{what}: '{flat.name}' must return a pair (carry, y), got {_tree.in_words(out_tree)}")
            raise of_result(error, "pair", out_tree, traced)
        out_carry, y_tree = out_tree.children()
        if out_carry != carry_tree:
            raise carry_differs(what, f, flat.name, carry_tree, out_carry)
        if asked and agreement.check_carry is not None:
            agreement.check_carry(what, carry, traced)
        with knowing_carry(what, f, carry_tree, carry, traced):
            carry, again = _promoted(carry, traced, what, carry_paths)
        if not again:
            break
    out = _weft.scan(carry, xs_leaves, traced, length, reverse, snapshots)
    n = len(carry)
    return _tree.unflatten(carry_tree, out[:n]), _tree.unflatten(y_tree, out[n:])


def _scan_in_python(f: Callable, init: Any, xs: Any, length: int, reverse: bool):
    value, xs, ys = _copied.without_numpy(init), _copied.without_numpy(xs), []
    for i in reversed(range(length)) if reverse else range(length):
        value, y = f(value, _tree.map(lambda leaf: leaf[i], xs))  # noqa: B023
        ys.append(y)
    if not ys:
        raise value_error("scan: a loop of no steps cannot run in Python (weft.disable_jit): its results have no types")
    if reverse:
        ys.reverse()
    return value, _tree.map(lambda *leaves: _copied.stack(leaves, 0), *ys)


def map(f: Callable[[Any], _C], xs: Any, *, batch_size: int | None = None) -> _C:
    """A function applied to each slice along the first axis, one after the other; the results are stacked.

    Args:
        f: (slice) -> result.
        xs: array or tree of arrays of one size along their first axis.
        batch_size: accepted, without effect on results.

    Returns: tree of stacked results.

    Raises:
        ValueError: sizes differ, or xs has no arrays.

    Example:
        >>> weft.map(lambda x: x.sum(), wnp.array([[1, 2], [3, 4]]))
        Array([3, 7], dtype=int32)
    """
    del batch_size
    return scan(lambda _, x: (None, f(x)), None, xs)[1]
