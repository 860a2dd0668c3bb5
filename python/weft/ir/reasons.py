"""Why something of a program is as it is, a sentence for each operation: weft.ir.why, and `weft why`."""

from __future__ import annotations

import re

from .. import _weft
from .._core.errors import type_error, value_error
from .._core.ir_view import Literal, Operation, Value
from .._core.tracing import flat_function, trace_flat
from ..ad_checkpoint import residuals_of
from ..arguments import licences_of
from ..optimization import _DEFAULT, Applied, plan_here, rules
from ..program import IR
from ..transforms import arguments_of

__all__ = ["why"]


def why(ir: IR, question: str, line: int | str | None = None) -> list[str]:
    """Answers a question about the operations of a line, a sentence for each.

    Args:
        ir: the program, as weft.make_ir or weft.parse_ir gives it.
        question: "not fused": why an operation and what it reads are not computed together, by one kernel.
            "not folded": why it is not computed before the program runs.
            "kept": why the gradient of the program keeps a value between its passes.
            The name of a rule (weft.ir.rules()): why it did not apply.
        line: of the user's: a number, or "model.py:12"; None: every line.

    Returns: list of str.

    Raises:
        TypeError: ir is no program.
        ValueError: there is no such question or rule.

    Example:
        >>> ir = weft.make_ir(lambda x: wnp.exp(x @ x))(wnp.ones((3, 3)))
        >>> weft.ir.why(ir, "not fused")[0].split(": ")[-1]
        'its operand comes from contract'
    """
    if not isinstance(ir, IR):
        raise type_error(f"why: expected a program (weft.make_ir), got {ir!r} of type '{type(ir).__name__}'")
    asked = _Asked(ir, line)
    if question == "not fused":
        return asked.not_fused()
    if question == "not folded":
        return asked.not_folded()
    if question == "kept":
        return asked.kept()
    if question in rules():
        return [asked.not_applied(question)]
    raise value_error(
        f"why: the question is 'not fused', 'not folded', 'kept' or the name of a rule, got {question!r}; "
        "weft.ir.rules() lists the rules"
    )


class _Asked:
    def __init__(self, ir: IR, line: int | str | None):
        self._ir = ir
        self._pattern = (
            ""
            if line is None
            else rf":{line}(?!\d)"
            if isinstance(line, int)
            else rf"(?<![\w.]){re.escape(line)}(?!\d)"
        )
        self._place = "the program" if line is None else f"line {line}" if isinstance(line, int) else line
        self._at = "in the program" if line is None else f"at {self._place}"
        self._plan = plan_here(None) or _DEFAULT

    def _is_of(self, text: str) -> bool:
        return re.search(self._pattern, text) is not None

    def _left(self, sentences: list[str], otherwise: str) -> list[str]:
        """The sentences, or what is to say without one."""
        if sentences:
            return sentences
        if not any(self._is_of(str(op.location)) for op in self._ir.walk()):
            return ["the program has no operation" + (f" of {self._place}" if self._pattern else "")]
        left = any(self._is_of(str(op.location)) for op in self._plan.run(self._ir).walk())
        return [otherwise if left else f"no operation of {self._place} is left in the optimized program"]

    def not_fused(self) -> list[str]:
        found = _weft.why_not_fused(self._plan.run(self._ir)._fn)
        return self._left(
            [sentence for sentence in found if self._is_of(sentence)],
            f"every operation of {self._place} is computed with what it reads",
        )

    def not_folded(self) -> list[str]:
        found = _weft.why_not_folded(self._plan.run(self._ir)._fn)
        return self._left(
            [sentence for sentence in found if self._is_of(sentence.split(" is not folded: ")[0])],
            f"every operation of {self._place} is folded",
        )

    def kept(self) -> list[str]:
        args, kwargs = arguments_of(self._ir)
        flat = flat_function(self._ir, args, kwargs)
        active = [_weft.is_inexact(_weft.abstract(leaf)[1]) for leaf in flat.leaves]
        traced = trace_flat(flat, "why", known=False)
        forward, backward, number = _weft.vjp(traced, active)
        residuals = residuals_of(forward, traced.num_results, [str(p.name) for p in self._ir.parameters])
        sentences = []
        for residual, parameter in zip(residuals, IR(backward).parameters[:number]):
            reader = _first_reader(parameter)
            sentence = f"{residual!r}, {residual.bytes} bytes, is kept: {reader}"
            if self._is_of(sentence):
                sentences.append(sentence)
        return sentences or [f"the gradient keeps nothing of {self._place}"]

    def not_applied(self, rule: str) -> str:
        by_name = {row[0]: row for row in _weft.simplify_rules()}
        _, licence, pattern, *_ = by_name.get(rule, (rule, "exact", "", "", "", ""))
        here = self._applied()
        times = sum(a.rule == rule for a in here)
        if times:
            return f"'{rule}' applies {self._at}, {times} time{'s' if times > 1 else ''}"
        if rule in self._plan.disabled:
            return f"'{rule}' is disabled here"
        licensed = _weft.with_licences(licences_of(licence), self._applied)
        if any(a.rule == rule for a in licensed):
            return f"'{rule}' needs the licence {licence!r} {self._at}: weft.jit(f, licence={licence!r})"
        there = [_described(op) for op in self._ir.walk() if self._is_of(str(op.location))]
        what = f", which replaces {pattern}," if pattern else ""
        if not there:
            return f"'{rule}'{what} finds no operation: the program has none of {self._place}"
        sentence = f"'{rule}'{what} finds nothing of its form {self._at}, where there is {'; '.join(there)}"
        others = sorted({a.rule for a in here})
        return sentence + (f" (rules that applied there: {', '.join(others)})" if others else "")

    def _applied(self) -> list[Applied]:
        applied: list[Applied] = []
        self._plan.run(self._ir, applied)
        return [a for a in [*self._ir.opt_trail(), *applied] if self._is_of(a.stack)]


def _first_reader(value: Value) -> str:
    if not value.users:
        return "the backward pass returns it"
    op = value.users[0]
    of = f", in the derivative of {op.location.derivative_of}" if op.location.derivative_of else ""
    return f"the backward pass reads it for {op.primitive}{of} at {op.location}"


def _described(op: Operation) -> str:
    def word(operand: Value | Literal) -> str:
        if isinstance(operand, Literal):
            return str(operand)
        return operand.definition.primitive if operand.definition is not None else operand.name

    return f"{op.primitive} of {', '.join(map(word, op.operands))}" if op.operands else op.primitive
