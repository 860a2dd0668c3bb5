"""The text of StableHLO programs taken apart: generic operations, and the short forms that people and JAX write."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from .._core.errors import value_error
from .types import ELEMENTS, OtherType, TensorType, TupleType

__all__ = ["Dense", "Function", "Op", "Region", "parse"]


class Dense:
    """The value of an attribute that is an array: its text, and its type."""

    __slots__ = ("content", "type")

    def __init__(self, content: str, type_: Any):
        self.content, self.type = content, type_


class Op:
    """An operation of a text. `values` are what stands between operands and attributes without a name of its own."""

    __slots__ = ("name", "operands", "results", "attributes", "values", "regions", "operand_types", "types", "line")

    def __init__(self, name: str, line: int):
        self.name, self.line = name, line
        self.operands: list[str] = []
        self.results: list[str] = []
        self.attributes: dict[str, Any] = {}
        self.values: list[Any] = []
        self.regions: list[Region] = []
        self.operand_types: list[Any] = []
        self.types: list[Any] = []


class Region:
    """Operations inside one, and what they take."""

    __slots__ = ("arguments", "types", "ops")

    def __init__(self, arguments: list[str], types: list[Any], ops: list[Op]):
        self.arguments, self.types, self.ops = arguments, types, ops


class Function:
    """A function of a text. `types`: of its results; None where that is not read."""

    __slots__ = ("name", "body", "types", "public", "line")

    def __init__(self, name: str, body: Region, types: Sequence[Any] | None, public: bool, line: int):
        self.name, self.body, self.types, self.public, self.line = name, body, types, public, line


_SPACE = re.compile(r"(?:\s+|//[^\n]*)*")
_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
_WORD = re.compile(r"[A-Za-z_][\w$.]*")
_SYMBOL = re.compile(r'@(?:[\w$.-]+|"[^"]*")')
_NUMBER = re.compile(r"0x[0-9A-Fa-f]+|[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_DIMENSION = re.compile(r"(\d+|\?)x")
_FORMAT = re.compile(r"e\d+m\d+")
_PAIRS = {"<": ">", "(": ")", "[": "]", "{": "}"}


def parse(text: str, file: str = "") -> list[Function]:
    """The functions of a text. Raises: ValueError: it is no such text; the message has the line."""
    parser = _Parser(text, file)
    try:
        return parser.module()
    except RecursionError:
        raise value_error(f"{file or 'StableHLO'}:{parser.line()}: brackets are nested too deep") from None


class _Parser:
    def __init__(self, text: str, file: str):
        self.text, self.at, self.file = text, 0, file
        self._lines = [m.end() for m in re.finditer("\n", text)]

    # What is next.

    def line(self) -> int:
        return bisect.bisect_right(self._lines, self.at) + 1

    def fail(self, expected: str) -> NoReturn:
        self.space()
        shown = self.text[self.at : self.at + 30].partition("\n")[0]
        got = f", got {shown!r}" if shown else ", and the text ends"
        raise value_error(f"{self.file or 'StableHLO'}:{self.line()}: expected {expected}{got}")

    def space(self) -> None:
        if self.at < len(self.text) and self.text[self.at] not in " \n\t\r/":  # mostly there is none
            return
        found = _SPACE.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def ahead(self, word: str) -> bool:
        self.space()
        return self.text.startswith(word, self.at)

    def take(self, word: str) -> bool:
        if self.ahead(word):
            after = self.at + len(word)
            if (
                word[-1].isalnum()
                and after < len(self.text)
                and (self.text[after].isalnum() or self.text[after] in "_.")
            ):
                return False
            self.at = after
            return True
        return False

    def need(self, word: str) -> None:
        if not self.take(word):
            self.fail(f"'{word}'")

    def match(self, pattern: re.Pattern) -> str | None:
        self.space()
        found = pattern.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found.group(1) if pattern is _STRING else found.group()

    def must(self, pattern: re.Pattern, expected: str) -> str:
        found = self.match(pattern)
        return self.fail(expected) if found is None else found

    def several(self, one: Callable[[], Any], end: str) -> list:
        """What stands between commas up to `end`, which is taken."""
        found: list = []
        while not self.take(end):
            if found:
                self.need(",")
            found.append(one())
        return found

    def string(self) -> str:
        text = self.must(_STRING, "a string")
        codes = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
        return _ESCAPE.sub(lambda m: codes[m[1]] if m[1] in codes else chr(int(m[1], 16)), text)

    def balanced(self) -> str:
        """Everything from an opening bracket to its end."""
        self.space()
        start, open_ = self.at, []
        while self.at < len(self.text):
            c = self.text[self.at]
            if c == '"':
                self.string()
                continue
            if c in _PAIRS:
                open_.append(_PAIRS[c])
            elif open_ and c == open_[-1] and self.text[self.at - 1] != "-":  # not the end of ->
                open_.pop()
            self.at += 1
            if not open_:
                return self.text[start + 1 : self.at - 1]
        self.at = start
        return self.fail("a bracket that is closed")

    # Functions.

    def module(self) -> list[Function]:
        functions: list[Function] = []
        self._functions_until("", functions)
        if not functions:
            self.fail("a function: func.func")
        return functions

    def _functions_until(self, end: str, functions: list[Function]) -> None:
        while True:
            self.space()
            if end and self.take(end):
                return
            if self.at == len(self.text):
                if end:
                    self.fail(f"'{end}'")
                return
            if self.ahead("#") or self.ahead("!"):  # an alias of an attribute or a type
                self.at = self.text.find("\n", self.at) % (len(self.text) + 1)
            elif self.take("sdy.mesh"):  # how devices are arranged
                self.must(_SYMBOL, "the name of a mesh")
                self.need("=")
                self.balanced()
                if self.ahead("{"):
                    self.balanced()
            elif self.take("builtin.module") or self.take("module"):
                self.match(_SYMBOL)
                if self.take("attributes"):
                    self.balanced()
                self.need("{")
                self._functions_until("}", functions)
                self._location()
            elif self.take("func.func"):
                functions.append(self._function())
            elif self.ahead('"builtin.module"') or self.ahead('"func.func"'):
                self._generic_functions(self.op(), functions)
            else:
                self.fail("a function: func.func")

    def _generic_functions(self, op: Op, functions: list[Function]) -> None:
        if op.name == "func.func" and op.regions:
            public = op.attributes.get("sym_visibility", "public") != "private"
            functions.append(Function(str(op.attributes.get("sym_name")), op.regions[0], None, public, op.line))
        elif op.regions:
            for inner in op.regions[0].ops:
                self._generic_functions(inner, functions)

    def _function(self) -> Function:
        line = self.line()
        private = self.take("private")
        _ = private or self.take("public") or self.take("nested")
        name = self.must(_SYMBOL, "the name of a function")[1:].strip('"')
        names: list[str] = []
        types: list[Any] = []

        def argument() -> None:
            names.append(self.must(_VALUE, "a parameter"))
            self.need(":")
            types.append(self.type())
            if self.ahead("{"):
                self.balanced()
            self._location()

        self.need("(")
        self.several(argument, ")")
        results = self._some_types() if self.take("->") else []
        if self.take("attributes"):
            self.balanced()
        self.need("{")
        body = Region(names, types, self._ops())
        self._location()
        return Function(name, body, results, not private, line)

    def _ops(self) -> list[Op]:
        found: list[Op] = []
        while not self.take("}"):
            found.append(self.op())
        return found

    def _region(self) -> Region:
        """What follows an opening brace."""
        names: list[str] = []
        types: list[Any] = []
        if self.take("^"):
            self.must(_WORD, "the name of a block")
            if self.take("("):
                self.several(lambda: self._argument(names, types), ")")
            self.need(":")
        return Region(names, types, self._ops())

    def _argument(self, names: list[str], types: list[Any]) -> None:
        names.append(self.must(_VALUE, "an argument"))
        self.need(":")
        types.append(self.type())
        self._location()

    def _location(self) -> None:
        if self.take("loc"):
            self.balanced()

    # Operations.

    def op(self) -> Op:
        self.space()
        results: list[str] = []
        if self.ahead("%"):
            while True:
                name = self.must(_VALUE, "a result")
                if self.take(":"):
                    count = int(self.must(_NUMBER, "a number of results"))
                    results += [f"{name}#{i}" for i in range(count)]
                else:
                    results.append(name)
                if not self.take(","):
                    break
            self.need("=")
        line = self.line()
        if self.ahead('"'):
            op = Op(self.string(), line)
            self._generic(op)
        else:
            op = Op(self.must(_WORD, "an operation"), line)
            _FORMS.get(op.name.removeprefix("stablehlo."), _Parser._short)(self, op)
        op.results = results
        if len(results) == 1:  # `tensor<i1>, tensor<f32>`: of a select the types of what it reads, the last its own
            op.types = op.types[-1:]
        self._location()
        return op

    def _generic(self, op: Op) -> None:
        self.need("(")
        op.operands = self.several(lambda: self.must(_VALUE, "an operand"), ")")
        while True:
            if self.take("<{"):
                op.attributes.update(self._dictionary())
                self.need(">")
            elif self.ahead("{"):
                self.need("{")
                op.attributes.update(self._dictionary())
            elif self.take("("):
                op.regions = self.several(self._braced_region, ")")
            else:
                break
        self._types(op)

    def _braced_region(self) -> Region:
        self.need("{")
        return self._region()

    def _dictionary(self) -> dict[str, Any]:
        """What follows an opening brace."""
        found: dict[str, Any] = {}

        def entry() -> None:
            key = self.string() if self.ahead('"') else self.must(_WORD, "the name of an attribute")
            found[key] = self.attribute() if self.take("=") else True

        self.several(entry, "}")
        return found

    def _short(self, op: Op) -> None:
        """The usual short form: operands, words, and attributes as `name = value`, in any order."""
        while not self.take(":"):
            self.space()
            if (value := self.match(_VALUE)) is not None:
                op.operands.append(value)
            elif self.take("<{"):
                op.attributes.update(self._dictionary())
                self.need(">")
            elif self.take("{"):
                if self.ahead("^"):
                    op.regions.append(self._region())
                else:
                    op.attributes.update(self._dictionary())
            elif self.ahead("@"):
                op.attributes["callee"] = self.attribute()
            elif self.ahead("[") or self.ahead("<"):
                op.values.append(self.balanced())
            elif self.ahead("dense") or self.ahead('"'):
                op.values.append(self.attribute())
                if isinstance(op.values[-1], Dense):  # it has a type, with which the operation ends
                    op.types = [op.values[-1].type]
                    return
            elif (word := self.match(_WORD)) is not None:
                if self.take("="):
                    op.attributes[word] = self.attribute(typed=False)
                elif "." in word:
                    self.fail(f"the types of {op.name}, not another operation")
                else:
                    op.values.append(word)
            elif not (self.take(",") or self.take("(") or self.take(")")):
                self.fail(f"an operand, an attribute or the types of {op.name}")
        self._type_list(op)

    def _types(self, op: Op) -> None:
        self.need(":")
        self._type_list(op)

    def _type_list(self, op: Op) -> None:
        """`(A, B) -> C`, `A, B` or `A`: of operands and results, where the last says what the result is."""
        before = self._some_types()
        if self.take("->"):
            op.operand_types, op.types = before, self._some_types()
        else:
            op.types = before

    def _some_types(self) -> list[Any]:
        if self.take("("):
            return self.several(self._attributed, ")")
        found = [self.type()]
        while self.take(","):
            found.append(self.type())
        return found

    def _attributed(self) -> Any:
        found = self.type()
        if self.ahead("{"):
            self.balanced()
        self._location()
        return found

    # Short forms of their own.

    def _return(self, op: Op) -> None:
        while (value := self.match(_VALUE)) is not None:
            op.operands.append(value)
            self.take(",")
        if self.take(":"):
            self._type_list(op)

    def _while(self, op: Op) -> None:
        names: list[str] = []

        def carry() -> None:
            names.append(self.must(_VALUE, "a carry"))
            self.need("=")
            op.operands.append(self.must(_VALUE, "an operand"))

        self.need("(")
        self.several(carry, ")")
        if self.take(":"):
            self._type_list(op)
        if self.take("attributes"):
            self.need("{")
            op.attributes.update(self._dictionary())
        for word in ("cond", "do"):
            self.need(word)
            self.need("{")
            op.regions.append(Region(names, op.types, self._ops()))

    def _reduce(self, op: Op) -> None:
        inits: list[str] = []
        while self.take("("):
            op.operands.append(self.must(_VALUE, "an operand"))
            self.need("init")
            self.need(":")
            inits.append(self.must(_VALUE, "a value to begin with"))
            self.need(")")
            self.take(",")
        op.operands += inits
        applied = self.must(_WORD, "an operation") if self.take("applies") else None
        self.need("across")
        self.need("dimensions")
        self.need("=")
        op.attributes["dimensions"] = self.attribute()
        if self.take("{"):
            op.attributes.update(self._dictionary())
        self._types(op)
        if applied is not None:
            result = TensorType((), op.types[0].dtype) if isinstance(op.types[0], TensorType) else op.types[0]
            inner, back = Op(applied, op.line), Op("stablehlo.return", op.line)
            inner.operands, inner.results, inner.types = ["%x", "%y"], ["%z"], [result]
            back.operands = ["%z"]
            op.regions = [Region(["%x", "%y"], [result, result], [inner, back])]
            return
        self.need("reducer")
        pairs: list[tuple[list[str], list[Any]]] = []
        while self.take("("):
            pairs.append(([], []))
            self.several(lambda: self._argument(*pairs[-1]), ")")
        self.need("{")
        # Of each operand the two elements; the region takes the first ones of all, then the second ones.
        names = [pair[0][k] for k in (0, 1) for pair in pairs]
        types = [pair[1][k] for k in (0, 1) for pair in pairs]
        op.regions = [Region(names, types, self._ops())]

    # Types and attributes.

    def type(self) -> Any:
        if self.take("tensor<"):
            shape: list[int | None] = []
            while (found := _DIMENSION.match(self.text, self.at)) is not None:
                shape.append(None if found[1] == "?" else int(found[1]))
                self.at = found.end()
            dtype = self._element()
            if self.take(","):  # an encoding, which says nothing of values
                self.attribute()
            self.need(">")
            return TensorType(tuple(shape), dtype)
        if self.take("tuple<"):
            return TupleType(tuple(self.several(self.type, ">")))
        self.space()
        start = self.at
        if self.take("("):
            self.several(self.type, ")")
            self.need("->")
            if self.take("("):
                self.several(self.type, ")")
            else:
                self.type()
        else:
            self.take("!")
            self.must(_WORD, "a type")
            if self.ahead("<"):
                self.balanced()
        return OtherType(self.text[start : self.at])

    def _element(self) -> str:
        self.space()
        start = self.at
        self.take("!")
        name = self.must(_WORD, "an element type")
        if self.ahead("<"):
            self.balanced()
            name = self.text[start : self.at].replace(" ", "")
        if name not in ELEMENTS:
            self.at = start
            self.fail(f"an element type that Weft has ({', '.join(ELEMENTS)})")
        return ELEMENTS[name]

    def attribute(self, typed: bool = True) -> Any:
        """The value of an attribute. `typed`: a number may say of which type it is."""
        self.space()
        if self.ahead('"'):
            return self.string()
        if self.ahead("@"):
            return self.must(_SYMBOL, "a symbol")[1:].strip('"')
        if self.ahead("#"):
            return self._dialect_attribute()
        if self.take("dense<"):
            end = self.text.find(">", self.at)  # no element has one
            content = self.text[self.at : end]
            self.at = end % (len(self.text) + 1)
            self.need(">")
            self.need(":")
            return Dense(content, self.type())
        if self.take("array<"):
            self.must(_WORD, "an element type")
            if not self.take(":"):
                self.need(">")
                return []
            return self.several(self._scalar, ">")
        if self.take("["):
            found = self.several(self.attribute, "]")
            return (found, self.attribute()) if self.take("x") else found  # [0] x [1]: of both operands
        if self.take("{"):
            return self._dictionary()
        if self.ahead("tensor<") or self.ahead("!") or self.ahead("("):
            return self.type()
        if self.ahead("<"):
            return self.balanced()
        return self._scalar(typed)

    def _scalar(self, typed: bool = True) -> Any:
        if self.take("true"):
            return True
        if self.take("false"):
            return False
        if (word := self.match(_FORMAT)) is not None:
            return word
        if (number := self.match(_NUMBER)) is not None:
            value: Any = int(number, 16) if number.startswith("0x") else float(number) if "." in number else int(number)
            if typed and self.take(":"):
                self.type()
            return value
        return self.must(_WORD, "the value of an attribute")

    def _dialect_attribute(self) -> Any:
        """`#stablehlo<precision DEFAULT>`: the word; `#stablehlo.gather<offset_dims = [0]>`: a dictionary; of other
        dialects the text."""
        self.need("#")
        name = self.must(_WORD, "the name of an attribute")
        if not self.ahead("<"):
            return name
        inside = self.balanced().strip()
        if name == "stablehlo":
            return inside.split()[-1].strip("<>")
        if not name.startswith("stablehlo.") or name.endswith(".conv"):
            return inside
        return _Parser(inside + "}", self.file)._dictionary()

    def _convolution(self, op: Op) -> None:
        self.need("(")
        op.operands = self.several(lambda: self.must(_VALUE, "an operand"), ")")
        self.need("dim_numbers")
        self.need("=")
        start = self.at
        self.balanced()
        self.need("x")
        self.balanced()
        self.need("->")
        self.balanced()
        op.attributes["dimension_numbers"] = self.text[start : self.at]
        self.need(",")
        self.need("window")
        self.need("=")
        self.need("{")
        window = self._dictionary()
        names = {
            "stride": "window_strides",
            "pad": "padding",
            "lhs_dilate": "lhs_dilation",
            "rhs_dilate": "rhs_dilation",
            "reverse": "window_reversal",
        }
        for key in window:
            if key not in names:
                raise value_error(f"{self.file or 'StableHLO'}:{op.line}: {op.name}: there is no '{key}' of a window")
        op.attributes.update({names[k]: v for k, v in window.items()})
        if self.take("{"):
            op.attributes.update(self._dictionary())
        self._types(op)


_FORMS: dict[str, Callable[[_Parser, Op], None]] = {
    "return": _Parser._return,
    "func.return": _Parser._return,
    "while": _Parser._while,
    "reduce": _Parser._reduce,
    "convolution": _Parser._convolution,
}
