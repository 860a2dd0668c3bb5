"""Which pass and which rule change a result: weft.ir.bisect, and `weft bisect` on the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _weft
from .._core import tree as _tree
from .._core.errors import type_error
from ..compiled import jit
from ..optimization import Plan, plan_of, run_own
from ..program import IR
from .rewriting import counted

__all__ = ["Culprit", "bisect"]


class Culprit(NamedTuple):
    """What changes a result.

    Attributes:
        where: "nothing", "the program", "a pass" or "compilation".
        pass_: the name of the pass; empty where none does.
        rule: the name of the rule; empty where the pass has none.
        operation: what the rule replaced.
        stack: the user's lines of that, innermost first.

    Example:
        >>> ir = weft.make_ir(lambda x: x * 1)(2.0)
        >>> weft.ir.bisect(ir, [2.0], [2.0]).where
        'nothing'
    """

    where: str
    pass_: str = ""
    rule: str = ""
    operation: str = ""
    stack: str = ""

    def __str__(self) -> str:
        if self.where == "nothing":
            return "nothing changes the result"
        if self.where == "the program":
            return "the program itself, as it stands, gives another result than expected"
        if self.where == "compilation":
            return "compiled code gives another result than the interpreter, for the program after all passes"
        text = f"the pass '{self.pass_}' changes the result"
        if self.rule:
            text += f": its rule '{self.rule}', where it replaces '{self.operation}'"
            text += f"\n{self.stack}" if self.stack else ""
        return text


def bisect(
    ir: IR,
    inputs: Sequence[Any],
    expected: Any,
    *,
    passes: Sequence[Any] | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    exact: bool = False,
) -> Culprit:
    """Finds what changes a result on its way through the compiler: the interpreter runs the program after each pass,
    until it gives something else than expected, and then after each application of a rule of that pass.

    Args:
        ir: the program.
        inputs: its arguments, flat.
        expected: its results: an array, or a list of them.
        passes: as for weft.jit; None: the default passes.
        rtol: how far results may be off, relative.
        atol: how far results may be off, absolute.
        exact: whether every bit counts, the sign of a zero among them.

    Returns: weft.ir.Culprit, which prints as a sentence.

    Raises:
        TypeError: the number of results or a shape is not that of the program.

    Example:
        >>> @weft.rewrite("sin")
        ... def wrong(x):
        ...     return x
        >>> ir = weft.make_ir(lambda x: wnp.sin(x) + 1)(0.5)
        >>> found = weft.ir.bisect(ir, [0.5], wnp.sin(0.5) + 1, passes=["cse", wrong, "optimize"])
        >>> print(str(found).splitlines()[0])
        the pass 'wrong' changes the result: its rule 'wrong', where it replaces 'sin'
    """
    if not isinstance(ir, IR):
        raise type_error(f"bisect: expected a program (weft.make_ir), got {ir!r} of type '{type(ir).__name__}'")
    wanted = [np.asarray(x) for x in _tree.leaves(expected)]
    arguments = [*inputs, *ir.constants]
    if len(wanted) != len(ir.out_types):
        raise type_error(f"bisect: expected has {len(wanted)} results, the program {len(ir.out_types)}")

    def right(program: IR, backend: str = "interpreter") -> bool:
        run = jit(lambda *x: tuple(_weft.apply(program._fn, list(x))), backend=backend, optimize="none")
        results = [np.asarray(x) for x in run(*arguments)]
        for i, (got, want) in enumerate(zip(results, wanted)):
            if got.shape != want.shape:
                raise type_error(f"bisect: expected result {i} has the shape {want.shape}, the program's {got.shape}")
        return all(_same(got, want, rtol, atol, exact) for got, want in zip(results, wanted))

    if not right(ir):
        return Culprit("the program")
    plan = plan_of("bisect", None, passes, None) or Plan(("optimize",), frozenset())
    before = ir
    for name, step in plan.steps():
        after = run_own(step, before, name) if callable(step) else Plan((step,), frozenset()).run(before)
        if not right(after):
            return _rule_of(name, step, before, right)
        before = after
    return Culprit("nothing") if right(before, "cpu") else Culprit("compilation")


def _rule_of(name: str, step: Any, before: IR, right: Callable[[IR], bool]) -> Culprit:
    """The first application of a rule after which the result is another one."""
    if not isinstance(step, str):

        def is_right(most: int) -> bool:
            with counted(most):
                return right(step(before))

        with counted(None) as all_of_them:
            step(before)
        most, found = _first_wrong(is_right, all_of_them.found)
        return Culprit("a pass", name, *found[most - 1]) if most else Culprit("a pass", name)
    applied = _weft.run_passes(before._fn, [name])[1]
    after = lambda n: before._with(_weft.run_passes(before._fn, [name], most=n)[0])
    most, _ = _first_wrong(lambda n: right(after(n)), applied)
    if not most:
        return Culprit("a pass", name)
    _, rule, operation, _, stack, *_ = applied[most - 1]
    return Culprit("a pass", name, rule, operation, stack)


def _first_wrong(right: Callable[[int], bool], applied: list) -> tuple[int, list]:
    """The smallest number of applications that is not right; 0 where it is not the rules."""
    low, high = 0, len(applied)
    if not right(0) or right(high):
        return 0, applied
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if right(middle) else (low, middle)
    return high, applied


def _same(got: np.ndarray, want: np.ndarray, rtol: float, atol: float, exact: bool) -> bool:
    if exact:
        return got.dtype == want.dtype and got.tobytes() == want.tobytes()
    if np.issubdtype(got.dtype, np.inexact):
        return bool(np.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True))
    return bool(np.array_equal(got, want))
