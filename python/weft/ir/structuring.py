"""Branches and loops as regions, of a control-flow graph: weft.ir.Cfg.to_ir."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import _weft
from .._core.errors import not_implemented
from .._core.shapes import ShapeDtype
from ..control import cond, while_loop
from ..program import IR, make_ir
from .cfg import _STRUCTURED, Block, BlockValue, Cfg, compute, read
from .dominance import dominates, immediate_dominators, reverse_postorder

__all__ = ["set_structuring", "structured"]

_Env = dict[BlockValue, Any]


class _Loop(NamedTuple):
    head: Block
    blocks: frozenset[Block]
    decides: Block  # the only block with an edge that leaves
    stays: int  # which of its edges does not


class _Stop(NamedTuple):
    """Where a walk ended: at an edge to a block, with the values that it gives, or where the program does."""

    block: Block | None
    values: list


def structured(cfg: Cfg) -> IR:
    """The program. A walk along the edges traces it: a branch is a cond of both ways up to where they meet, a loop is a
    while over the arguments of its first block."""
    walker = _Walker(cfg)

    def f(*args: Any) -> Any:
        return tuple(walker.walk(cfg.entry, list(args), {}, frozenset(), None).values)

    f.__name__ = cfg.name
    traced = make_ir(f)(*(_spec(a.type) for a in cfg.entry.arguments))
    return IR(traced._fn, traced._captures)


def _spec(type_: str) -> ShapeDtype:
    parameter = _weft.parse_fn(f"fn f(x: {type_}) -> ({type_}) {{ return x }}", "").var_types[0]
    return ShapeDtype(parameter.shape, parameter.dtype)


class _Walker:
    def __init__(self, cfg: Cfg):
        self._above = immediate_dominators(cfg.entry, cfg.successors)
        blocks = [b for b in cfg.blocks if b in self._above]
        before: dict[Any, list[Any]] = {b: [] for b in blocks}
        for b in blocks:
            for to in cfg.successors(b):
                before[to].append(b)
        # From the end backwards: where all ways from a block meet again.
        end = object()
        ends = [b for b in blocks if b.returns is not None]
        self._meets = immediate_dominators(end, lambda b: ends if b is end else before[b])
        self._end = end
        self._loops: dict[Block, _Loop] = {}
        for head in blocks:
            latches = [b for b in before[head] if dominates(self._above, head, b)]
            if latches:
                self._loops[head] = self._loop(head, latches, before)
        # What goes back must go to the first block of a loop: otherwise it is entered in several places.
        order = {b: i for i, b in enumerate(reverse_postorder(cfg.entry, cfg.successors))}
        for b, i in order.items():
            for to in cfg.successors(b):
                if order[to] <= i and not dominates(self._above, to, b):
                    raise not_implemented(
                        f"Cfg.to_ir: the loop through {to.name} and {b.name} is entered in several places"
                    )

    def _loop(self, head: Block, latches: Sequence[Block], before: dict[Block, list[Block]]) -> _Loop:
        inside, new = {head}, list(latches)
        while new:
            b = new.pop()
            if b not in inside:
                inside.add(b)
                new += before[b]
        leaving = [(b, i) for b in inside for i, (to, _) in enumerate(b.edges) if to not in inside]
        ends = [b for b in inside if b.returns is not None]
        if len(leaving) != 1 or ends:
            how = "never left" if not leaving and not ends else "left in several places"
            raise not_implemented(
                f"Cfg.to_ir: the loop of {head.name} is {how}; a loop that becomes a region is left by one edge"
            )
        decides, edge = leaving[0]
        return _Loop(head, frozenset(inside), decides, 1 - edge)

    def walk(self, block: Block, values: list, env: _Env, until: frozenset[Any], loop: _Loop | None) -> _Stop:
        """Goes on from an edge to a block, up to an edge to one of `until`. `loop` is the one that the walk is inside
        of: it is known that the loop goes on."""
        first = loop is not None and block is loop.head
        while True:
            if block in until and not first:
                return _Stop(block, values)
            inner = self._loops.get(block)
            if inner is not None and not first:
                values = self._run(inner, values, env)
                self._to_decision(inner, values, env)
                block, operands = inner.decides.edges[1 - inner.stays]
                values = [read(v, env) for v in operands]
                continue
            first = False
            env.update(zip(block.arguments, values))
            compute(block, env)
            if block.returns is not None:
                return _Stop(None, [read(v, env) for v in block.returns])
            taken = 0
            if loop is not None and block is loop.decides:
                taken = loop.stays
            elif block.predicate is not None:
                stop = self._branch(block, env, until, loop)
                if stop.block is None:
                    return stop
                block, values = stop.block, stop.values
                continue
            block, operands = block.edges[taken]
            values = [read(v, env) for v in operands]

    def _branch(self, block: Block, env: _Env, until: frozenset[Any], loop: _Loop | None) -> _Stop:
        meets = self._meets[block]
        targets = until | {meets}

        def way(edge: int) -> Any:
            to, operands = block.edges[edge]

            def branch() -> tuple:
                inside = dict(env)
                return tuple(self.walk(to, [read(v, inside) for v in operands], inside, targets, loop).values)

            return branch

        assert block.predicate is not None
        values = list(cond(read(block.predicate, env), way(0), way(1)))
        return _Stop(meets if isinstance(meets, Block) else None, values)

    def _to_decision(self, loop: _Loop, values: list, env: _Env) -> Any:
        """From the head of a loop to where it is decided whether it goes on: the predicate of that."""
        block = loop.head
        while True:
            env.update(zip(block.arguments, values))
            compute(block, env)
            if block is loop.decides:
                again = read(block.predicate, env) if block.predicate is not None else True
                return again if loop.stays == 0 else ~again
            if block.predicate is not None:
                stop = self._branch(block, env, frozenset([loop.decides]), None)
                assert stop.block is not None
                block, values = stop.block, stop.values
                continue
            block, operands = block.edges[0]
            values = [read(v, env) for v in operands]
            inner = self._loops.get(block)
            while inner is not None:
                values = self._run(inner, values, env)
                self._to_decision(inner, values, env)
                block, operands = inner.decides.edges[1 - inner.stays]
                values = [read(v, env) for v in operands]
                inner = self._loops.get(block)

    def _run(self, loop: _Loop, values: list, env: _Env) -> list:
        """The arguments of the loop's head when it ends."""

        def again(carry: tuple) -> Any:
            return self._to_decision(loop, list(carry), dict(env))

        def body(carry: tuple) -> tuple:
            return tuple(self.walk(loop.head, list(carry), dict(env), frozenset([loop.head]), loop).values)

        return list(while_loop(again, body, tuple(values)))


def set_structuring() -> None:
    """Lets Cfg.to_ir, which stands below, use this."""
    _STRUCTURED.append(structured)
