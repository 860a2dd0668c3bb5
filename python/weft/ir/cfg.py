"""Programs as control-flow graphs of blocks with arguments: weft.ir.to_cfg."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._core.errors import type_error, value_error
from .._core.ir_view import Literal, Operation
from ..program import IR
from .dominance import dominates, immediate_dominators

__all__ = ["Block", "BlockValue", "Cfg", "Instruction", "Operand", "compute", "read"]


class BlockValue:
    """A value of a control-flow graph: an argument of a block, or a result of an instruction.

    Example:
        >>> weft.ir.to_cfg(weft.make_ir(lambda x: x)(1.0)).entry.arguments
        [x: f32[]]
    """

    __slots__ = ("name", "type")

    def __init__(self, name: str, type_: str):
        self.name, self.type = name, type_

    def __repr__(self) -> str:
        return f"{self.name}: {self.type}"


Operand = BlockValue | Literal
# What makes a program of a graph: weft.ir.structuring, which stands above, sets it.
_STRUCTURED: list[Callable[[Cfg], IR]] = []


class Instruction:
    """An operation in a block: what it reads and makes there.

    Example:
        >>> cfg = weft.ir.to_cfg(weft.make_ir(lambda x: x + 1)(1.0))
        >>> cfg.entry.instructions[0]
        add_1 = add x 1.0:f32
    """

    __slots__ = ("operation", "operands", "results")

    def __init__(self, operation: Operation, operands: Sequence[Operand], results: Sequence[BlockValue]):
        self.operation, self.operands, self.results = operation, list(operands), list(results)

    def __repr__(self) -> str:
        made = ", ".join(r.name for r in self.results)
        return f"{made} = {' '.join([self.operation.primitive, *map(_name, self.operands)])}"


def _check_operands(block: Block, instruction: Instruction) -> None:
    """Whether an instruction reads what its operation takes; a number may stand for a value, and a value for one."""
    takes = instruction.operation.operands
    fits = len(takes) == len(instruction.operands) and all(
        str(given.type) == str(taken.type)
        or (
            (isinstance(given, Literal) or isinstance(taken, Literal))
            and str(given.type).partition("[")[0] == str(taken.type).partition("[")[0]
        )
        for given, taken in zip(instruction.operands, takes)
    )
    if not fits:
        given, wanted = (", ".join(str(v.type) for v in values) for values in (instruction.operands, takes))
        raise value_error(
            f"Cfg: in {block.name}, {instruction.operation.primitive} is given ({given}), and the operation takes "
            f"({wanted})"
        )


def _name(value: Operand) -> str:
    return value.name if isinstance(value, BlockValue) else repr(value)


class Block:
    """Instructions that run one after the other, and where control goes then. Where several edges meet, the arguments
    say which value it is (a phi). `predicate` is None where there is one edge; otherwise the first of `edges` is taken
    where it is true. `returns` are the results of the program where it ends here.

    Example:
        >>> cfg = weft.ir.to_cfg(weft.make_ir(lambda x: weft.cond(x > 0, wnp.sin, wnp.cos, x))(1.0))
        >>> [block.name for block in cfg.blocks], [block.name for block, values in cfg.entry.edges]
        (['entry', 'true_1', 'false_2', 'join_3'], ['true_1', 'false_2'])
    """

    __slots__ = ("name", "arguments", "instructions", "predicate", "edges", "returns")

    def __init__(self, name: str, arguments: Sequence[BlockValue]):
        self.name, self.arguments = name, list(arguments)
        self.instructions: list[Instruction] = []
        self.predicate: Operand | None = None
        self.edges: list[tuple[Block, list[Operand]]] = []
        self.returns: list[Operand] | None = None

    def jump(self, to: Block, *values: Operand) -> None:
        """Ends the block: control goes to another one.

        Args:
            to: the block.
            *values: its arguments.

        Example:
            >>> cfg = weft.ir.Cfg("f32[]")
            >>> cfg.entry.jump(cfg.add_block("next", "f32[]"), *cfg.entry.arguments)
            >>> print(cfg.text.splitlines()[1])
              jump next_1(x0)
        """
        self.edges = [(to, list(values))]

    def branch(self, predicate: Operand, on_true: tuple, on_false: tuple) -> None:
        """Ends the block: control goes to one of two.

        Args:
            predicate: a boolean.
            on_true: a block and its arguments.
            on_false: the same, where the predicate is false.

        Example:
            >>> cfg = weft.ir.Cfg("bool[]")
            >>> yes, no = cfg.add_block("yes"), cfg.add_block("no")
            >>> cfg.entry.branch(cfg.entry.arguments[0], (yes,), (no,))
            >>> print(cfg.text.splitlines()[1])
              branch x0 yes_1() no_2()
        """
        self.predicate = predicate
        self.edges = [(block, list(values)) for block, *values in (on_true, on_false)]

    def __repr__(self) -> str:
        return f"<block {self.name}>"

    def lines(self) -> Iterator[str]:
        """The block as text.

        Returns: iterator of str.

        Example:
            >>> list(weft.ir.to_cfg(weft.make_ir(lambda x: x)(1.0)).entry.lines())
            ['entry(x: f32[]):', '  return x']
        """
        yield f"{self.name}({', '.join(map(repr, self.arguments))}):"
        for instruction in self.instructions:
            yield f"  {instruction!r}"
        targets = [f"{block.name}({', '.join(map(_name, values))})" for block, values in self.edges]
        if self.returns is not None:
            yield f"  return {', '.join(map(_name, self.returns))}"
        elif self.predicate is not None:
            yield f"  branch {_name(self.predicate)} {' '.join(targets)}"
        else:
            yield f"  jump {' '.join(targets)}"


class Cfg:
    """A program as blocks. The first is where it begins; its arguments are the program's.

    Example:
        >>> ir = weft.make_ir(lambda x: weft.while_loop(lambda c: c < 9, lambda c: c * 2, x))(1.0)
        >>> cfg = weft.ir.to_cfg(ir)
        >>> print(cfg, end="")
        entry(x: f32[]):
          jump loop_1(x)
        loop_1(x_1: f32[]):
          lt_2 = lt x_1 9.0:f32
          branch lt_2 body_2() exit_3()
        body_2():
          mul_3 = mul x_1 2.0:f32
          jump loop_1(mul_3)
        exit_3():
          return x_1
        >>> cfg.to_ir()(3.0)
        Array(12., dtype=float32)
    """

    def __init__(self, *types: str, names: Sequence[str] = ()):
        self.blocks: list[Block] = []
        self._values = 0
        self.name = "f"
        entry = self.add_block("entry")
        for i, type_ in enumerate(types):
            entry.arguments.append(BlockValue(names[i] if i < len(names) else f"x{i}", type_))

    @property
    def entry(self) -> Block:
        """The block in which the program begins.

        Example:
            >>> weft.ir.Cfg("f32[]").entry
            <block entry>
        """
        return self.blocks[0]

    def add_block(self, name: str, *types: str, hints: Sequence[str] = ()) -> Block:
        """Adds a block.

        Args:
            name: what it is called; a number follows.
            *types: of its arguments.
            hints: what these are called.

        Returns: weft.ir.Block.

        Example:
            >>> weft.ir.Cfg().add_block("loop", "f32[]").arguments
            [v_1: f32[]]
        """
        number = f"_{len(self.blocks)}" if self.blocks else ""
        block = Block(name + number, ())
        block.arguments = [self.value(hints[i] if i < len(hints) else "v", t) for i, t in enumerate(types)]
        self.blocks.append(block)
        return block

    def value(self, hint: str, type_: str) -> BlockValue:
        """A further value.

        Args:
            hint: what it is called; a number follows.
            type_: its type.

        Returns: weft.ir.BlockValue.

        Example:
            >>> weft.ir.Cfg().value("a", "f32[]")
            a_1: f32[]
        """
        self._values += 1
        return BlockValue(f"{_stem(hint)}_{self._values}", type_)

    def emit(self, block: Block, operation: Operation, *operands: Operand) -> list[BlockValue]:
        """Appends an instruction to a block.

        Args:
            block: the block.
            operation: what it computes: one of another program.
            *operands: what it reads, of the types that it reads there.

        Returns: list of weft.ir.BlockValue: what it makes, of the types that it makes there.

        Example:
            >>> cfg = weft.ir.Cfg("f32[]")
            >>> sin = weft.make_ir(wnp.sin)(1.0).walk()[0]
            >>> cfg.emit(cfg.entry, sin, cfg.entry.arguments[0])
            [sin_1: f32[]]
        """
        if not isinstance(operation, Operation):
            raise type_error(f"Cfg.emit: expected a weft.ir.Operation, got {operation!r}")
        results = [self.value(operation.primitive, str(r.type)) for r in operation.results]
        block.instructions.append(Instruction(operation, operands, results))
        return results

    @property
    def text(self) -> str:
        """The blocks as text.

        Example:
            >>> weft.ir.to_cfg(weft.make_ir(lambda x: x)(1.0)).text
            'entry(x: f32[]):\\n  return x\\n'
        """
        return "".join(f"{line}\n" for block in self.blocks for line in block.lines())

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Cfg of {len(self.blocks)} blocks>"

    # What holds of it.

    def verify(self) -> None:
        """Checks the graph: each block ends, edges give what the arguments of their block are, instructions read what
        their operations take, every value is defined once, and its definition dominates each use: no way leads to the
        use past it.

        Raises:
            ValueError: the graph is wrong; the message names block and value.

        Example:
            >>> cfg = weft.ir.Cfg("f32[]")
            >>> later = cfg.add_block("later", "f32[]")
            >>> cfg.entry.returns = [later.arguments[0]]
            >>> try:
            ...     cfg.verify()
            ... except ValueError as error:
            ...     print(str(error).partition(", and")[0])
            Cfg: entry uses v_1, which later_1 defines
        """
        defined: dict[BlockValue, tuple[Block, int]] = {}
        for block in self.blocks:
            made = [(a, -1) for a in block.arguments]
            made += [(r, i) for i, instruction in enumerate(block.instructions) for r in instruction.results]
            for value, at in made:
                if value in defined:
                    raise value_error(f"Cfg: {value.name} is defined in {defined[value][0].name} and in {block.name}")
                defined[value] = (block, at)
            self._check_end(block)
            for instruction in block.instructions:
                _check_operands(block, instruction)
        above = immediate_dominators(self.entry, self.successors)
        for block in self.blocks:
            if block not in above:
                continue  # nothing leads there
            uses = [(x, i) for i, instruction in enumerate(block.instructions) for x in instruction.operands]
            end = [*([block.predicate] if block.predicate is not None else []), *(block.returns or ())]
            end += [v for _, values in block.edges for v in values]
            for value, at in [*uses, *((x, len(block.instructions)) for x in end)]:
                if isinstance(value, Literal):
                    continue
                if value not in defined:
                    raise value_error(f"Cfg: {block.name} uses {value.name}, which no block defines")
                home, place = defined[value]
                if home is block and place >= at:
                    raise value_error(f"Cfg: {block.name} uses {value.name} before it is defined there")
                if not dominates(above, home, block):
                    raise value_error(
                        f"Cfg: {block.name} uses {value.name}, which {home.name} defines, and {block.name} can be "
                        "reached without it: the definition of a value dominates its uses"
                    )

    def _check_end(self, block: Block) -> None:
        ways = {0: block.returns is not None, 1: block.predicate is None, 2: block.predicate is not None}
        if len(block.edges) > 2 or not ways[len(block.edges)] or (block.edges and block.returns is not None):
            raise value_error(f"Cfg: {block.name} does not end in one of jump, branch and return")
        if block.predicate is not None and str(block.predicate.type) != "bool[]":
            raise value_error(f"Cfg: {block.name} branches by a {block.predicate.type}; expected a bool[]")
        for to, values in block.edges:
            if to not in self.blocks:
                raise value_error(f"Cfg: {block.name} goes to {to.name}, which is no block of the graph")
            if to is self.entry:
                raise value_error(f"Cfg: {block.name} goes to {to.name}, where the program begins")
            given, expected = [str(v.type) for v in values], [a.type for a in to.arguments]
            if given != expected:
                raise value_error(
                    f"Cfg: {block.name} gives ({', '.join(given)}) to {to.name}, which takes ({', '.join(expected)})"
                )

    @staticmethod
    def successors(block: Block) -> list[Block]:
        """Where control may go from a block.

        Args:
            block: the block.

        Returns: list of weft.ir.Block.

        Example:
            >>> weft.ir.Cfg.successors(weft.ir.Cfg().entry)
            []
        """
        return [to for to, _ in block.edges]

    # What it computes.

    def run(self, *args: Any) -> list:
        """Runs it, block after block.

        Args:
            *args: an array for each argument of the first block.

        Returns: list of arrays.

        Raises:
            TypeError: the number of arguments is wrong.

        Example:
            >>> weft.ir.to_cfg(weft.make_ir(lambda x: x + 1)(1.0)).run(2.0)
            [Array(3., dtype=float32)]
        """
        if len(args) != len(self.entry.arguments):
            raise type_error(f"Cfg.run: the program takes {len(self.entry.arguments)} values, got {len(args)}")
        env: dict[BlockValue, Any] = {}
        block, values = self.entry, list(args)
        while True:
            env.update(zip(block.arguments, values))
            compute(block, env)
            if block.returns is not None:
                return [read(v, env) for v in block.returns]
            taken = 0 if block.predicate is None or bool(read(block.predicate, env)) else 1
            block, operands = block.edges[taken]
            values = [read(v, env) for v in operands]

    def to_ir(self) -> IR:
        """The program with branches and loops as regions again. It is verified first.

        Returns: weft.IR.

        Raises:
            ValueError: the graph is wrong.
            NotImplementedError: a loop is entered or left in several places, or never left.

        Example:
            >>> ir = weft.make_ir(lambda x: weft.cond(x > 0, wnp.sin, wnp.cos, x))(1.0)
            >>> weft.ir.to_cfg(ir).to_ir() == ir
            True
        """
        self.verify()
        return _STRUCTURED[0](self)


def read(value: Operand, env: dict[BlockValue, Any]) -> Any:
    """The array that a value is."""
    return value.array if isinstance(value, Literal) else env[value]


def compute(block: Block, env: dict[BlockValue, Any]) -> None:
    """Runs the instructions of a block."""
    for instruction in block.instructions:
        op = instruction.operation
        with op.at("cfg"):
            out = op.bind(*(read(x, env) for x in instruction.operands))
        env.update(zip(instruction.results, (out,) if len(instruction.results) == 1 else out))


def _stem(name: str) -> str:
    stem, _, number = name.rpartition("_")
    return stem if stem and number.isdigit() else name.lstrip("%") or "v"
