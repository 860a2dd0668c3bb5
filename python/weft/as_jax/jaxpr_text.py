"""Programs as text, as JAX writes them: an equation a line, what fits into a line in one.

    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = cos b in (c,) }

Jitted functions that are called several times, and long ones, stand in front, under their name.

A text is laid out from parts: strings, breaks, and groups, whose breaks are all spaces where the group fits, or all
new lines.
"""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

_WIDTH = 80


class _Break(NamedTuple):
    """A new line, or this text where the group around fits into a line."""

    flat: str


class _Group(NamedTuple):
    """Parts whose breaks are alike; new lines in it are indented by so much more."""

    parts: list[Any]
    indent: int
    is_group: bool


class _Note(NamedTuple):
    """What is said behind a line."""

    text: str


def _group(*parts: Any) -> _Group:
    return _Group(list(parts), 0, True)


def _nest(*parts: Any) -> _Group:
    return _Group(list(parts), 2, False)


def _joined(parts: Iterable[Any], separator: Sequence[Any]) -> list[Any]:
    out: list[Any] = []
    for part in parts:
        out += [*separator, part] if out else [part]
    return out


def _fits(parts: list[tuple[int, bool, Any]], room: int) -> bool:
    """Whether what comes next, the last part first, fits into a line of which so much is left."""
    parts = list(parts)
    while parts and room >= 0:
        indent, flat, part = parts.pop()
        if isinstance(part, str):
            room -= len(part)
        elif isinstance(part, _Break):
            if not flat:
                return True
            room -= len(part.flat)
        elif isinstance(part, _Group):
            parts += [(indent, flat, inner) for inner in reversed(part.parts)]
    return room >= 0


def _laid_out(whole: Any) -> str:
    lines, line, notes = [""][:0], "", [""][:0]

    def end() -> None:
        lines.append(line.rstrip() + (f" # {' '.join(notes)}" if notes else ""))
        notes.clear()

    parts: list[tuple[int, bool, Any]] = [(0, False, whole)]
    while parts:
        indent, flat, part = parts.pop()
        if isinstance(part, str):
            line += part
        elif isinstance(part, _Note):
            notes.append(part.text)
        elif isinstance(part, _Break) and flat:
            line += part.flat
        elif isinstance(part, _Break):
            end()
            line = " " * indent
        else:
            inside = indent + part.indent
            here = [(inside, flat, inner) for inner in reversed(part.parts)]
            if part.is_group and not flat:
                on_one_line = _fits([(inside, True, inner) for inner in reversed(part.parts)], _WIDTH - len(line))
                here = [(inside, on_one_line, inner) for inner in reversed(part.parts)]
            parts += here
    end()
    return "\n".join(lines)


class Shown:
    """What is written of programs, and what their variables are called: in the order in which they are written."""

    def __init__(self, source_info: bool = False, print_shapes: bool = True, name_stack: bool = False):
        self._source_info, self._shapes, self._name_stack = source_info, print_shapes, name_stack
        self._names: dict[Any, str] = {}
        self._numbers = itertools.count()
        self._in_front: dict[Any, str] = {}  # jitted functions by what they compute: what they are called

    def _name(self, atom: Any) -> str:
        if hasattr(atom, "val"):
            return repr(atom)
        if atom not in self._names:
            taken = self._in_front.values()
            self._names[atom] = next(name for name in map(letters, self._numbers) if name not in taken)
        return self._names[atom]

    def _call_alike(self, inner: Sequence[Any], outer: Sequence[Any]) -> None:
        """Arguments and results of a jitted function are called as those of its call."""
        taken = set[int]()
        for ours, theirs in zip(inner, outer):
            is_free = not hasattr(ours, "val") and ours not in self._names
            if is_free and not hasattr(theirs, "val") and id(theirs) not in taken:
                taken.add(id(theirs))
                self._names[ours] = self._name(theirs)

    def _variables(self, atoms: Sequence[Any], separator: str = "", typed: bool = False) -> Any:
        name = lambda v: f"{self._name(v)}:{v.aval.str_short(short_dtypes=True)}" if typed else self._name(v)
        return _nest(_group(*_joined(map(name, atoms), [separator, _group(_Break(" "))])))

    def value(self, value: Any) -> Any:
        """The value of a parameter."""
        if isinstance(value, tuple) and value and all(hasattr(v, "eqns") for v in value):
            inner = _joined((self.program(getattr(v, "jaxpr", v)) for v in value), [_Break(" ")])
            return _group(_nest("(", _Break(""), *inner), _Break(""), ")")
        if hasattr(value, "eqns"):
            return self.program(getattr(value, "jaxpr", value))
        if isinstance(value, frozenset):
            return f"frozenset({{{', '.join(map(repr, sorted(value)))}}})"
        return re.sub(r" at 0x([0-9a-fA-F]+)", lambda found: " at 0x" + "X" * len(found[1]), str(value))

    def parameters(self, params: Mapping[str, Any]) -> Any:
        """[name=value ...]: the name of a function first, then in alphabetical order."""
        if not params:
            return ""
        ordered = sorted(params, key=lambda name: (name != "name", name))
        pairs = _joined((_Group([f"{name}=", self.value(params[name])], 0, False) for name in ordered), [_Break(" ")])
        return _group(_nest("[", _Break(""), *pairs), _Break(""), "]")

    def equation(self, eqn: Any) -> Any:
        """c:f32[] = mul[...] a b; of references b:f32[] <- a[...]"""
        if "index" in eqn.params and eqn.primitive.name in ("get", "swap", "addupdate"):
            return self._of_reference(eqn)
        params = eqn.shown_params
        if "name" in eqn.params and "jaxpr" in eqn.params:
            if name := self._in_front.get(_key_of(eqn)):
                params["jaxpr"] = name
            else:
                inside = eqn.params["jaxpr"].jaxpr
                self._call_alike(inside.invars, eqn.invars)
                self._call_alike(inside.outvars, eqn.outvars)
        left = [self._variables(eqn.outvars, typed=self._shapes), " = "] if eqn.outvars else []
        notes = [_Note(f"[{eqn.source_info.name_stack}]")] if self._name_stack else []
        notes += [_Note(str(eqn.source_info))] if self._source_info else []
        of_call = self.parameters(params)
        return _Group([*left, str(eqn.primitive), of_call, " ", self._variables(eqn.invars), *notes], 0, False)

    def _of_reference(self, eqn: Any) -> Any:
        from .ref_equations import text_of_place

        ref, *values = (self._name(v) for v in eqn.invars)
        place = text_of_place(ref, eqn.params["index"])
        if eqn.primitive.name == "addupdate":
            return _Group([f"{place} += {values[0]}"], 0, False)
        read = [v for v in eqn.outvars if self._names.get(v) != "_"]
        result = [self._variables(read, typed=self._shapes)] if read else []
        if eqn.primitive.name == "get":
            return _Group([*(result or ["_"]), f" <- {place}"], 0, False)
        return _Group([*result, ", " if read else "", place, f" <- {place}, " if read else " <- ", values[0]], 0, False)

    def program(self, jaxpr: Any) -> Any:
        """{ lambda a:f32[3] ; b:f32[3]. let ... in (c,) }"""
        constants = self._variables(jaxpr.constvars, typed=self._shapes)
        arguments = self._variables(jaxpr.invars, typed=self._shapes)
        read = {atom for eqn in jaxpr.eqns for atom in eqn.invars} | set(jaxpr.outvars)
        self._names.update((v, "_") for eqn in jaxpr.eqns for v in eqn.outvars if v not in read)
        equations = _joined(map(self.equation, jaxpr.eqns), [_Break("; ")])
        end = ",)" if len(jaxpr.outvars) == 1 else ")"
        results = ["in (", self._variables(jaxpr.outvars, ","), end]
        head = ["{ lambda ", constants, "; ", arguments, ". let"]
        return _group(_nest(*head, _nest(_Break(" "), *equations), _Break(" "), *results), " }")

    def whole(self, jaxpr: Any) -> Any:
        """A program, after the jitted functions that stand in front of it."""
        found = _to_name(jaxpr)
        for key, (name, _) in found.items():
            taken = set(self._in_front.values())
            names = itertools.chain([name], (f"{name}{n}" for n in itertools.count(1)))
            self._in_front[key] = next(free for free in names if free not in taken)
        lets = [["let ", self._in_front[key], " = ", self.program(inner), " in"] for key, (_, inner) in found.items()]
        parts = [_Group(let, 0, False) for let in lets] + [self.program(jaxpr)]
        return _Group(_joined(parts, [_Break(" ")]), 0, False)


_LONG = 10  # equations


def _key_of(eqn: Any) -> Any:
    """Equal for calls of the same jitted function."""
    program = getattr(eqn.params["jaxpr"], "_fn", None)
    return eqn.params["name"], id(eqn.params["jaxpr"]) if program is None else program.text()


def _to_name(jaxpr: Any) -> dict[Any, tuple[str, Any]]:
    """The jitted functions that stand in front: those that are written several times, and long ones."""
    found: dict[Any, tuple[str, Any]] = {}
    inside: dict[Any, list[Any]] = {}
    counts = collections.Counter[Any]()
    programs = collections.deque([(None, jaxpr)])
    while programs:
        around, program = programs.popleft()
        for eqn in program.eqns:
            for inner in _inner(eqn):
                if "name" not in eqn.params or "jaxpr" not in eqn.params:
                    programs.append((around, inner))
                    continue
                key = _key_of(eqn)
                counts[key] += 1
                inside.setdefault(around, []).append(key)
                if key not in found:
                    found[key] = str(eqn.params["name"]).strip("<>"), inner
                    programs.append((key, inner))
    for key in found:  # those around come first
        if counts[key] > 1:
            counts.update(inside.get(key, ()))
    return {key: named for key, named in found.items() if counts[key] > 1 or len(named[1].eqns) > _LONG}


def _inner(eqn: Any) -> list[Any]:
    """The programs inside of an equation."""
    values = [v for value in eqn.shown_params.values() for v in (value if isinstance(value, tuple) else [value])]
    return [getattr(value, "jaxpr", value) for value in values if hasattr(value, "eqns")]


def letters(n: int) -> str:
    """a, b, ..., z, ba, bb, ..."""
    text = chr(97 + n % 26)
    return text if n < 26 else letters(n // 26) + text


def text_of(jaxpr: Any, **settings: Any) -> str:
    """A program as text."""
    return _laid_out(Shown(**settings).whole(jaxpr))


def text_of_equation(eqn: Any, jaxpr: Any = None) -> str:
    """An equation as text, with the names that the text of a program has."""
    shown = Shown()
    if jaxpr is not None:
        shown.whole(jaxpr)
    return _laid_out(shown.equation(eqn))


class JaxprPpContext(Shown):
    """What variables are called in a text."""


class JaxprPpSettings(NamedTuple):
    """What a text says besides."""

    print_shapes: bool = True
    source_info: bool = False
    name_stack: bool = False
    custom_pp_eqn_rules: bool = True
    print_effects: bool = False


def pp_kv_pair(k: str, v: Any, context: JaxprPpContext, settings: JaxprPpSettings) -> str:
    """A parameter of an equation as a text has it."""
    del settings
    return _laid_out(_Group([f"{k}=", context.value(v)], 0, False))
