"""A program as Python: the source that makes it again, in terms of weft.primitives."""

from __future__ import annotations

import keyword
import re

_RESERVED = {"prim", "float"}


def _identifier(text: str, taken: set[str], fallback: str) -> str:
    word = re.sub(r"\W", "_", text, flags=re.ASCII) or fallback
    if word[0].isdigit():
        word = "_" + word
    name, n = word, 1
    while name in taken or keyword.iskeyword(name) or name in _RESERVED:
        name, n = f"{word}_{n}", n + 1
    taken.add(name)
    return name


def _letters(index: int) -> str:
    text, n = "", index + 1
    while n > 0:
        text, n = chr(ord("a") + (n - 1) % 26) + text, (n - 1) // 26
    return text


def _attribute(kind: str, value) -> str:
    if kind == "float":
        return repr(value) if value == value and abs(value) != float("inf") else f"float({str(value)!r})"
    if kind in ("bool", "int", "string", "list of ints"):
        return repr(list(value)) if kind == "list of ints" else repr(value)
    if kind in ("mesh", "list of shardings"):
        return f"prim.{kind.removeprefix('list of ')}({value!r})"
    maker = {"shape": "sizes", "list of types": "types", "dtype": "dtype", "list of strings": "names"}[kind]
    return f"prim.{maker}({', '.join(repr(item) for item in value)})"


class _Writer:
    def __init__(self, locations: bool):
        self.locations = locations
        self.lines: list[str] = ["from weft import primitives as prim"]
        self.written: dict = {}
        self.names: set[str] = set()

    def name_for(self, fn) -> str:
        return _identifier(fn.name, self.names, "f")

    def write(self, fn, own: str | None = None) -> str:
        """Writes the function after those that are its regions; returns its name, a free one unless it is given."""
        if fn in self.written:
            return self.written[fn]
        eqns, lines = fn.eqns, []
        values: dict[str, str] = {}
        # A value with the name of a region would hide it, also where the region is used before.
        regions_of = [[self.write(region) for region in e["regions"]] for e in eqns]
        taken: set[str] = {name for regions in regions_of for name in regions}
        for i, hint in enumerate(fn.param_names):
            values[f"%{i}"] = _identifier(hint, taken, "x")
        letters = 0

        def operand(text: str) -> str:
            return values[text.split(":")[0]] if text.startswith("%") else f"prim.literal({text!r})"

        for e, regions in zip(eqns, regions_of, strict=True):
            arguments = [operand(text) for text in e["operands"]]
            if regions:
                arguments.append(f"regions=[{', '.join(regions)}]")
            arguments += [f"{k}={_attribute(e['attr_kinds'][k], v)}" for k, v in e["attr_values"].items()]
            results = []
            for text in e["results"]:
                name = _letters(letters)
                while name in taken or keyword.iskeyword(name) or name in _RESERVED:
                    letters += 1
                    name = _letters(letters)
                letters += 1
                taken.add(name)
                values[text.split(":")[0]] = name
                results.append(name)
            primitive = e["name"] + ("_" if keyword.iskeyword(e["name"]) else "")
            line = f"prim.{primitive}({', '.join(arguments)})"
            if results:
                line = f"{', '.join(results)} = {line}"
            lines.append(f"    {line}" + (f"  # {e['location']}" if self.locations and e["location"] else ""))
        parameters = [values[f"%{i}"] for i in range(len(fn.param_names))]
        returned = [operand(text) for text in fn.results]
        lines.append("    return " + (returned[0] if len(returned) == 1 else f"({', '.join(returned)})"))
        name = own or self.name_for(fn)
        kinds = [
            f"prim.constant({text!r})" if is_constant else repr(text)
            for text, is_constant in zip(fn.param_types, fn.constants)
        ]
        self.lines += ["", "", f"@prim.function({', '.join(kinds)})", f"def {name}({', '.join(parameters)}):", *lines]
        self.written[fn] = name
        return name


def to_python(fn, locations: bool = False) -> tuple[str, str]:
    """(source, name): Python that defines the program as a function of that name: its own, which no region takes from
    it, with a number where Python or the source needs the name."""
    writer = _Writer(locations)
    name = writer.write(fn, writer.name_for(fn))
    return "\n".join(writer.lines) + "\n", name
