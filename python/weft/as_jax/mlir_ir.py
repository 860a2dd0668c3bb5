"""jax.extend.mlir.ir: programs of StableHLO built operation by operation, and printed as text.

The text is what weft.ir.from_stablehlo reads, and what JAX and XLA read.
A context, a location and a dialect are asked for as MLIR asks for them, and have no effect: there is one of each."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TextIO

import numpy as np

from .._core.errors import type_error, value_error
from .._stablehlo.attributes import ints, quoted, tensor_of
from .._stablehlo.types import ELEMENTS, dense, element

__all__ = [
    "ArrayAttr",
    "Attribute",
    "BF16Type",
    "Block",
    "BoolAttr",
    "ComplexType",
    "Context",
    "DenseElementsAttr",
    "DenseI64ArrayAttr",
    "F16Type",
    "F32Type",
    "F64Type",
    "FlatSymbolRefAttr",
    "InsertionPoint",
    "IntegerAttr",
    "IntegerType",
    "Location",
    "Module",
    "Operation",
    "RankedTensorType",
    "Region",
    "StringAttr",
    "SymbolTable",
    "Type",
    "Value",
]


class _Written:
    """What is its text."""

    def __init__(self, text: str):
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._text})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Written) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


class Type(_Written):
    """A type of a value or of an element."""

    @classmethod
    def parse(cls, text: str, context: Any = None) -> Type:
        """The type that a text says."""
        del context
        return Type(text)


class IntegerType(Type):
    """An integer of some bits; of one bit: a truth value."""

    @classmethod
    def get_signless(cls, width: int, context: Any = None) -> IntegerType:
        """What StableHLO calls signed."""
        del context
        return cls(f"i{width}")

    @classmethod
    def get_unsigned(cls, width: int, context: Any = None) -> IntegerType:
        """An integer without a sign."""
        del context
        return cls(f"ui{width}")

    @property
    def width(self) -> int:
        return int(str(self).lstrip("ui"))


class _FloatType(Type):
    _name = ""

    @classmethod
    def get(cls, context: Any = None) -> Type:
        """The type."""
        del context
        return cls(cls._name)


class F16Type(_FloatType):
    """float16."""

    _name = "f16"


class BF16Type(_FloatType):
    """bfloat16."""

    _name = "bf16"


class F32Type(_FloatType):
    """float32."""

    _name = "f32"


class F64Type(_FloatType):
    """float64."""

    _name = "f64"


class ComplexType(Type):
    """A complex number."""

    @classmethod
    def get(cls, element_type: Type) -> ComplexType:
        """The type whose parts have a type."""
        return cls(f"complex<{element_type}>")


class RankedTensorType(Type):
    """The type of an array."""

    def __init__(self, shape: Sequence[int], element_type: Type):
        self.shape, self.element_type = [int(n) for n in shape], element_type
        if str(element_type) not in ELEMENTS:
            raise value_error(f"RankedTensorType.get: invalid tensor element type: {element_type}")
        super().__init__(tensor_of(self.shape, str(element_type)))

    @classmethod
    def get(cls, shape: Sequence[int], element_type: Type, encoding: Any = None, loc: Any = None) -> RankedTensorType:
        """The type of arrays of a shape."""
        del encoding, loc
        return cls(shape, element_type)

    rank = property(lambda self: len(self.shape))
    dtype = property(lambda self: ELEMENTS[str(self.element_type)])


class Attribute(_Written):
    """What an operation is told besides its operands."""

    @classmethod
    def parse(cls, text: str, context: Any = None) -> Attribute:
        """The attribute that a text says."""
        del context
        return Attribute(text)


class IntegerAttr(Attribute):
    """An integer of a type."""

    @classmethod
    def get(cls, type: Type, value: int) -> IntegerAttr:
        """The attribute of an integer."""
        return cls(f"{int(value)} : {type}")


class BoolAttr(Attribute):
    """True or false."""

    @classmethod
    def get(cls, value: bool, context: Any = None) -> BoolAttr:
        """The attribute of a truth value."""
        del context
        return cls("true" if value else "false")


class StringAttr(Attribute):
    """A text."""

    @classmethod
    def get(cls, value: str, context: Any = None) -> StringAttr:
        """The attribute of a text."""
        del context
        return cls(quoted(value))


class FlatSymbolRefAttr(Attribute):
    """The name of a function."""

    @classmethod
    def get(cls, value: str, context: Any = None) -> FlatSymbolRefAttr:
        """The attribute of a name."""
        del context
        return cls(f"@{value}")


class DenseI64ArrayAttr(Attribute):
    """Integers."""

    @classmethod
    def get(cls, values: Sequence[int], context: Any = None) -> DenseI64ArrayAttr:
        """The attribute of some integers."""
        del context
        return cls(ints([int(n) for n in values]))


class ArrayAttr(Attribute):
    """Several attributes."""

    @classmethod
    def get(cls, attributes: Sequence[Attribute], context: Any = None) -> ArrayAttr:
        """The attribute of several."""
        del context
        return cls(f"[{', '.join(map(str, attributes))}]")


class DenseElementsAttr(Attribute):
    """The elements of an array."""

    def __init__(self, array: Any, type_: RankedTensorType):
        self.type = type_
        super().__init__(f"{dense(array)} : {type_}")

    @classmethod
    def get(
        cls,
        array: Any,
        signless: bool = True,
        type: Type | None = None,
        shape: Sequence[int] | None = None,
        context: Any = None,
    ) -> DenseElementsAttr:
        """The elements of a NumPy array, of its own type or of another of the same meaning."""
        del signless, context
        found = np.asarray(array)
        kind = type.element_type if isinstance(type, RankedTensorType) else type
        if kind is None:
            kind = Type(element(str(found.dtype)))
        if str(kind) not in ELEMENTS:
            raise value_error(f"DenseElementsAttr.get: type {kind} is no type of elements")
        found = found.astype(ELEMENTS[str(kind)], copy=False)
        sizes = type.shape if isinstance(type, RankedTensorType) else found.shape if shape is None else shape
        return cls(
            np.broadcast_to(found, tuple(sizes)) if found.ndim == 0 else found.reshape(tuple(sizes)),
            RankedTensorType(sizes, kind),
        )


class Value:
    """A result of an operation, or an argument of a block."""

    def __init__(self, type_: Type, owner: Any):
        self.type, self.owner = type_, owner

    def __str__(self) -> str:
        return f"Value({self.type})"

    __repr__ = __str__


class Block:
    """Operations one after another, and the arguments that they see."""

    def __init__(self, types: Sequence[Type]):
        self.arguments = [Value(type_, self) for type_ in types]
        self.operations: list[Operation] = []

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)


class _Blocks(list):
    """The blocks of a region."""

    def append(self, *types: Type) -> Block:  # type: ignore[override]
        """A new block, whose arguments have types."""
        super().append(Block(types))
        return self[-1]


class Region:
    """What an operation runs inside of itself."""

    def __init__(self) -> None:
        self.blocks = _Blocks()


class _Around(threading.local):
    def __init__(self) -> None:
        self.blocks: list[Block] = []


_around = _Around()


class InsertionPoint:
    """Where operations go: the end of a block."""

    def __init__(self, block: Block):
        if not isinstance(block, Block):
            raise type_error(f"InsertionPoint: block must be a Block, got {block!r}")
        self.block = block

    @classmethod
    def at_block_begin(cls, block: Block) -> InsertionPoint:
        """The start of a block, which must be empty."""
        if block.operations:
            raise value_error(
                "InsertionPoint.at_block_begin: the block has operations already; use InsertionPoint(block)"
            )
        return cls(block)

    def __enter__(self) -> InsertionPoint:
        _around.blocks.append(self.block)
        return self

    def __exit__(self, *_: Any) -> None:
        _around.blocks.pop()


class _NoEffect:
    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


class Context(_NoEffect):
    """MLIR's context."""

    allow_unregistered_dialects = False


class Location(_NoEffect):
    """Where in a source an operation comes from; texts do not say it."""

    @classmethod
    def unknown(cls, context: Any = None) -> Location:
        """No place."""
        del context
        return cls()

    @classmethod
    def name(cls, name: str, childLoc: Any = None, context: Any = None) -> Location:
        """A place that has a name."""
        del name, childLoc, context
        return cls()


class Operation:
    """An operation, which goes to the end of the block that an InsertionPoint chose."""

    def __init__(
        self,
        name: str,
        operands: Sequence[Value],
        results: Sequence[Type],
        attributes: Mapping[str, Attribute] | None = None,
        regions: int = 0,
        outside: bool = False,
    ):
        self.name, self.operands = name, list(operands)
        self.results = [Value(type_, self) for type_ in results]
        self.attributes = dict(attributes or {})
        self.regions = [Region() for _ in range(regions)]
        if not outside:
            if not _around.blocks:
                raise value_error(f"{name}: an operation needs a place: with ir.InsertionPoint(block)")
            _around.blocks[-1].operations.append(self)

    @property
    def result(self) -> Value:
        """The one result."""
        if len(self.results) != 1:
            raise value_error(f"{self.name} has {len(self.results)} results; use .results")
        return self.results[0]

    @property
    def operation(self) -> Operation:
        return self

    def __str__(self) -> str:
        return "\n".join(self._lines(_Names(), ""))

    def print(self, file: TextIO | None = None, **_: Any) -> None:
        """Writes the text to a file, or to where print writes."""
        print(self, file=file)

    def _lines(self, names: _Names, indent: str) -> Iterator[str]:
        operands = ", ".join(names.of(x) for x in self.operands)
        left = f"{', '.join(names.new(x) for x in self.results)} = " if self.results else ""
        told = ", ".join(f"{name} = {value}" for name, value in self.attributes.items())
        head = f"{indent}{left}{quoted(self.name)}({operands})" + (f" <{{{told}}}>" if told else "")
        types = ", ".join(str(x.type) for x in self.operands), ", ".join(str(x.type) for x in self.results)
        tail = f" : ({types[0]}) -> ({types[1]})"
        if not self.regions:
            yield head + tail
            return
        yield head + " ({"
        for i, region in enumerate(self.regions):
            if i:
                yield f"{indent}}}, {{"
            for block in region.blocks:
                yield from block_lines(block, names, f"{indent}  ")
        yield f"{indent}}}){tail}"


class _Names:
    """What values are called in a text."""

    def __init__(self) -> None:
        self._names: dict[Value, str] = {}
        self._numbers = itertools.count()

    def new(self, value: Value) -> str:
        self._names[value] = f"%{next(self._numbers)}"
        return self._names[value]

    def of(self, value: Value) -> str:
        if value not in self._names:
            raise value_error(f"{value} is used where it is not defined: before its operation, or in another function")
        return self._names[value]


def block_lines(block: Block, names: _Names, indent: str) -> Iterator[str]:
    """The text of a block inside of an operation."""
    if block.arguments:
        yield f"{indent}^bb0({', '.join(f'{names.new(x)}: {x.type}' for x in block.arguments)}):"
    for operation in block.operations:
        yield from operation._lines(names, indent)


class FunctionOperation(Operation):
    """A function of a module."""

    def __init__(self, name: str, types: Sequence[Type], visibility: str | None):
        super().__init__("func.func", [], [], regions=1)
        self.symbol, self.visibility = name, visibility
        self.entry_block = self.regions[0].blocks.append(*types)
        self.arguments = self.entry_block.arguments
        self.types: list[Type] = []  # of what it returns

    def _lines(self, names: _Names, indent: str) -> Iterator[str]:
        del names
        own = _Names()
        taken = ", ".join(f"{own.new(x)}: {x.type}" for x in self.arguments)
        given = ", ".join(map(str, self.types))
        visible = f"{self.visibility} " if self.visibility else ""
        yield f"{indent}func.func {visible}@{self.symbol}({taken}) -> ({given}) {{"
        for operation in self.entry_block.operations:
            yield from operation._lines(own, f"{indent}  ")
        yield f"{indent}}}"


class _ModuleOperation(Operation):
    def __init__(self) -> None:
        super().__init__("builtin.module", [], [], regions=1, outside=True)
        self.body = self.regions[0].blocks.append()

    def _lines(self, names: _Names, indent: str) -> Iterator[str]:
        yield f"{indent}module {{"
        yield from block_lines(self.body, names, f"{indent}  ")
        yield f"{indent}}}"


class Module:
    """Functions."""

    def __init__(self) -> None:
        self.operation = _ModuleOperation()

    @classmethod
    def create(cls, loc: Any = None) -> Module:
        """A module without functions."""
        del loc
        return cls()

    @property
    def body(self) -> Block:
        """Where its functions go."""
        return self.operation.body

    def __str__(self) -> str:
        return str(self.operation)


class SymbolTable:
    """The functions of a module by name."""

    def __init__(self, operation: Any):
        self._block: Block = operation.operation.body
        self._known: dict[str, FunctionOperation] = {}
        self._refresh()

    def _refresh(self) -> None:
        for found in self._block:
            if isinstance(found, FunctionOperation):
                self._known.setdefault(found.symbol, found)

    def __getitem__(self, name: str) -> FunctionOperation:
        self._refresh()
        return self._known[name]

    def __contains__(self, name: str) -> bool:
        self._refresh()
        return name in self._known

    def insert(self, operation: FunctionOperation) -> StringAttr:
        """Puts a function in, under another name if its own is taken, and gives the name."""
        self._refresh()
        wanted = operation.symbol
        candidates: Callable[[], Iterator[str]] = lambda: (f"{wanted}_{i}" for i in itertools.count())
        if self._known.get(wanted, operation) is not operation:
            operation.symbol = next(name for name in candidates() if name not in self._known)
        self._known[operation.symbol] = operation
        if operation not in self._block.operations:
            self._block.operations.append(operation)
        return StringAttr.get(operation.symbol)
