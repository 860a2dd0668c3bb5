"""Programs with regions as control-flow graphs: weft.ir.to_cfg."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .._core import ir_view as _view
from .._core.errors import not_implemented, type_error
from .._core.ir_view import Literal, Operation, Value
from ..program import IR
from .cfg import Block, BlockValue, Cfg, Operand
from .loops import as_while, at_most, is_boolean

__all__ = ["to_cfg"]


def to_cfg(ir: IR) -> Cfg:
    """The program as a control-flow graph: branches and loops are edges between blocks, and what they carry are
    arguments of blocks. Calls are inlined.

    Args:
        ir: the program.

    Returns: weft.ir.Cfg.

    Raises:
        TypeError: it is no program.
        NotImplementedError: the program calls itself, or was made by reverse mode of a while loop.

    Example:
        >>> f = lambda x: weft.cond(x > 0, lambda v: v, lambda v: -v, x)
        >>> print(weft.ir.to_cfg(weft.make_ir(f)(1.0)), end="")
        entry(x: f32[]):
          gt_1 = gt x 0.0:f32
          branch gt_1 true_1() false_2()
        true_1():
          jump join_3(x)
        false_2():
          neg_2 = neg x
          jump join_3(neg_2)
        join_3(v_3: f32[]):
          return v_3
    """
    if not isinstance(ir, IR):
        raise type_error(f"to_cfg: expected a weft.IR, as weft.make_ir gives, got {ir!r}")
    view = ir._view
    cfg = Cfg(*(str(p.type) for p in view.parameters), names=[p.name for p in view.parameters])
    cfg.name = ir.__name__
    end, results = _Lowering(cfg).block(ir, cfg.entry.arguments, cfg.entry)
    end.returns = results
    cfg.verify()
    return cfg


class _Lowering:
    """Each method takes the block in which control is, and returns the one in which it is then, with values."""

    def __init__(self, cfg: Cfg):
        self._cfg = cfg

    def block(self, ir: IR, values: Iterable[Operand], at: Block) -> tuple[Block, list[Operand]]:
        env: dict[Value, Operand] = dict(zip(ir._view.parameters, values, strict=True))
        of = lambda x: x if isinstance(x, Literal) else env[x]
        for op in ir._view.operations:
            at, results = self._operation(op, [of(x) for x in op.operands], at)
            env.update(zip(op.results, results, strict=True))
        return at, [of(x) for x in ir._view.results]

    def _operation(self, op: Operation, x: list[Operand], at: Block) -> tuple[Block, list[Operand]]:
        use = _view.region_use(op.name)
        if use in (_view.CALL, _view.WITH_RULES):
            region = op.regions[1] if op.name == "custom_linear" and len(op.regions) > 1 else op.regions[0]
            return self.block(region, x, at)
        if use == _view.BRANCHES:
            return self._branches(op, x, at)
        if use == _view.UNCOUNTED and op.name == "while" and len(op.results) == op.attributes["num_carry"]:
            return self._while(op, x, at)
        if op.name == "scan":
            return self.block(as_while(op), x, at)
        if use != _view.NONE:
            stack = op.location.stack
            raise not_implemented(
                f"to_cfg: '{op.primitive}' has no form as blocks: it calls itself, runs on several devices, or was "
                "made by reverse mode of a loop" + (f"\n{stack}" if stack else "")
            )
        return at, list(self._cfg.emit(at, op, *x))

    def _branches(self, op: Operation, x: list[Operand], at: Block) -> tuple[Block, list[Operand]]:
        index, operands = x[0], x[1:]
        if isinstance(index, Literal):
            taken = int(np.clip(int(np.asarray(index.array)), 0, len(op.regions) - 1))
            return self.block(op.regions[taken], operands, at)
        boolean = is_boolean(op.operands[0])
        join_types = [str(r.type) for r in op.results]
        ends: list[tuple[Block, list[Operand]]] = []
        for i, region in enumerate(op.regions[:-1] if not boolean else op.regions[1:]):
            predicate: Operand = index
            if not boolean:
                at, (predicate,) = self.block(at_most(op.operands[0], i), [index], at)
            on_true, on_false = self._cfg.add_block("true"), self._cfg.add_block("false")
            at.branch(predicate, (on_true,), (on_false,))
            ends.append(self.block(region, operands, on_true))
            at = on_false
        ends.append(self.block(op.regions[0 if boolean else -1], operands, at))
        join = self._cfg.add_block("join", *join_types)
        for end, results in ends:
            end.jump(join, *results)
        return join, list(join.arguments)

    def _while(self, op: Operation, x: list[Operand], at: Block) -> tuple[Block, list[Operand]]:
        n = op.attributes["num_carry"]
        types, hints = [str(r.type) for r in op.results], [v.name if isinstance(v, BlockValue) else "c" for v in x[:n]]
        head = self._cfg.add_block("loop", *types, hints=hints)
        at.jump(head, *x[:n])
        carried: list[Operand] = [*head.arguments]
        decides, (again,) = self.block(op.regions[0], [*carried, *x[n:]], head)
        body, leave = self._cfg.add_block("body"), self._cfg.add_block("exit")
        decides.branch(again, (body,), (leave,))
        latch, results = self.block(op.regions[1], [*carried, *x[n:]], body)
        latch.jump(head, *results)
        return leave, carried
