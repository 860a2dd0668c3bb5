"""JAX's words for an error, after Weft's: programs look for them (`pytest.raises(match=...)`), and people search. Where
programs compare a message whole, or how it begins, JAX's stands in the place of Weft's, which is a note."""

from __future__ import annotations

import collections
import functools
import re
from collections.abc import Callable
from typing import Any

from .. import _weft, errors
from .._core import errors as _errors
from .._core.errors import MissingRule

_DTYPES = {"f": "float", "i": "int", "u": "uint", "c": "complex", "bf": "bfloat"}


@functools.cache
def _compiled() -> list[tuple[re.Pattern[str], str]]:
    """The patterns and JAX's words: compiled with the first error, as most programs have none."""
    from .table import words, words_of_arrays, words_of_products, words_of_shardings

    tables = (
        words_of_arrays.FIRST,
        words_of_products.WORDS,
        words.WORDS,
        words_of_arrays.WORDS,
        words_of_shardings.WORDS,
    )
    return [(re.compile(pattern, re.DOTALL), said) for table in tables for pattern, said in table]


def _type(text: str) -> str:
    """f32[3] -> float32[3]."""
    found = re.fullmatch(r"(bf|[fiuc])(\d+)(.*)", text, re.DOTALL)
    return f"{_DTYPES[found[1]]}{found[2]}{found[3]}" if found else text


@functools.lru_cache(maxsize=512)
def _found(table: Callable[[], list[tuple[re.Pattern[str], str]]], head: str) -> str:
    """What a table says for a message without its lines. Programs that try things out raise the same ones often."""
    for pattern, words in table():
        found = pattern.search(head)
        if found:
            groups = [group or "" for group in found.groups()]
            named = {f"type{i}": _type(text) for i, text in enumerate(groups)}
            kinds = {f"kind{i}": _DTYPES.get(text, text) for i, text in enumerate(groups)}
            shapes = {f"shape{i}": _shape(text) for i, text in enumerate(groups)}
            return words.format(*groups, **named, **kinds, **shapes)
    return ""


def in_jax_words(message: str) -> str:
    """What JAX says where Weft says this; empty where the table has no entry."""
    return _found(_compiled, message.split("\n  at ", 1)[0])


@functools.cache
def _compiled_whole() -> list[tuple[re.Pattern[str], str]]:
    from .table import whole_words

    return [(re.compile(pattern, re.DOTALL), said) for pattern, said in whole_words.WHOLE]


def _whole(message: str) -> str:
    """JAX's message where it stands in the place of this one; empty where it does not."""
    return _broadcast(message) or _found(_compiled_whole, message.split("\n  at ", 1)[0])


def _shape(text: str) -> str:
    """3,4 -> (3, 4)."""
    return f"({text.replace(',', ', ')}{',' * (',' not in text)})"


def _mismatches(message: str) -> str:
    """Of arguments that do not fit a compiled program: JAX lists all."""
    found = re.findall(r"for argument (\S+) (\S+), got ([^;\s]+)", message.split("\n  at ", 1)[0])
    if not found or "the program was compiled for argument" not in message:
        return ""
    lines = [f"Argument '{name}' compiled with {_type(a)} and called with {_type(b)}" for name, a, b in found]
    return (
        "Argument types differ from the types for which this computation was compiled. The mismatches are:\n"
        + "\n".join(lines)
    )


def _sizes(message: str) -> str:
    """Of mapped sizes that differ: JAX says how many axes have each."""
    head = message.split("\n  at ", 1)[0]
    found = re.match(r"vmap: mapped sizes of '[^']*' differ: (\d+) \((axis_size)?", head)
    if not found:
        return ""
    axes = re.findall(r"\n  (\d+): (axis \d+) of argument (.*), (\w+\[.*\])(, given by name)?", head)
    said = f"  * the `axis_size` argument was {found[1]};\n" if found[2] else ""
    counts = collections.Counter(size for size, *_ in axes)
    for n, (size, count) in enumerate(counts.most_common()):
        axis, name, kind, named = next(rest for other, *rest in axes if other == size)
        many = f"{'some' if n else 'most'} axes ({count} of them) had size {size}, e.g."
        which = f"one axis had size {size}:" if count == 1 else many
        argument = f"kwargs['{name}']" if named else f"argument {name}"
        said += f"  * {which} {axis} of {argument} of type {_type(kind)};\n"
    return "vmap got inconsistent sizes for array axes to be mapped:\n" + said.rstrip(";\n")


def _mapped_axis(message: str) -> str:
    """Of a mapped axis that an argument has not: JAX says how many dimensions it had to have."""
    found = re.match(r"vmap: in_axes maps axis (-?\d+) of argument .*, which is \w+\[([\d,]*)\]", message)
    if not found:
        return ""
    axis, shape = int(found[1]), tuple(map(int, filter(None, found[2].split(","))))
    return (
        f"vmap was requested to map its argument along axis {axis}, which implies that its rank should be at least "
        f"{axis + 1 if axis >= 0 else -axis}, but is only {len(shape)} (its shape is {shape})"
    )


def _not_an_array(message: str) -> str:
    """Of a type as an argument: JAX names its shape."""
    found = re.search(
        r"argument (\S+) of '[^']*' is ShapeDtypeStruct\(shape=\((.*?)\), dtype=(\w+).*? of type 'ShapeDtype'; exp",
        message.split("\n  at ", 1)[0],
    )
    if not found:
        return ""
    sizes = ",".join(re.findall(r"\d+", found[2]))
    return (
        f"Argument '{found[1]}' of shape {found[3]}[{sizes}] of type <class 'jax._src.core.ShapeDtypeStruct'> is not a "
        "valid JAX type."
    )


def _ranks(message: str) -> str:
    """Of a sharding for more dimensions than a value has."""
    found = re.match(
        r"(?:\w+: )??(with_sharding_constraint|\w+: (?:in|out)_shardings).*?: (P\(.*\)) has (\d+) entries "
        r"for an array of shape (\(.*?\))",
        message,
    )
    if not found:
        return ""
    where = f"pjit {'arguments' if ': in_' in found[1] else 'outputs'}" if ": " in found[1] else f"{found[1]} arguments"
    return (
        f"One of {where} was given the sharding of Sharding NamedSharding(spec={found[2]}) is "
        f"only valid for values of rank at least {found[3]}, but was applied to a value of rank "
        f"{len(re.findall(r'[0-9]+', found[4]))}"
    )


def _replication(message: str) -> str:
    """Of a result that differs between devices: JAX says along which axes it may, and along which it does."""
    found = re.search(
        r"of '([^']*)' may differ between the devices along (.*?), but its out_specs entry, (P\(.*?\)), does not name "
        r".*?: it is \w+\[[^\]]*\]\{([^}]*)\}",
        message.split("\n  at ", 1)[0],
    )
    if not found:
        return ""
    may, differ = (",".join(re.findall(r"'(\w+)'", text)) for text in (found[3], found[2]))
    return (
        f"shard_map applied to the function '{found[1]}' was given out_specs which require replication which can't be "
        f"statically inferred given the mesh: out_specs is {found[3]} which implies that the corresponding output "
        f"value is only varying across mesh axes {{{may}}} and not {{{differ}}}, but it was inferred to be possibly "
        f"varying over {{{found[4]}}}"
    )


_NO_BROADCAST = re.compile(r"(?:\w+: )*?(\w+): shapes (\(.*?\)) and (\(.*?\)) do not broadcast")


def _broadcast(message: str) -> str:
    """Of shapes that do not broadcast: JAX says it otherwise where they have as many dimensions."""
    found = _NO_BROADCAST.match(message)
    if not found:
        return ""
    operation, *shapes = found.groups()
    ranks = {len(re.findall(r"\d+", shape)) for shape in shapes}
    if len(ranks) == 1 and operation not in ("where", "broadcast_shapes"):
        return f"{operation} got incompatible shapes for broadcasting: {', '.join(shapes)}."
    return f"Incompatible shapes for broadcasting: shapes=[{', '.join(shapes)}]"


_WHO = r"(argument|operand|its mesh|its functions' mesh|the mesh of a call inside|the mesh)(?: number)? ?"
_PLACE = _WHO + r"((?:[^\[\],]|\[[^\]]*\])*?)(?:, (\w+\[[^\]]*\]),)? on \[([\d, ]*)\]"
_HOLDERS = {
    "its mesh": "sharding_constraint inside jit",
    "its functions' mesh": "shard_map inside jit",
    "the mesh": "context mesh",
    "the mesh of a call inside": "jit inside jit",
}


def _devices(message: str) -> str:
    """Of arguments that lie on different devices: JAX names two of them, their types and their devices."""
    head = message.split("\n  at ", 1)[0]
    found = re.search(r"^(?:jit: )?'?(.+?)'?(?:: operands lie on| is for) several sets of devices", head)
    if not found:
        return ""
    function = "<lambda>" if found[1] == "_lambda_" else found[1]
    said = []
    for who, name, kind, ids in re.findall(_PLACE, head[found.end() :]):
        which = _HOLDERS.get(who) or f"argument {name} of {function} with shape {_type(kind)} and"
        said.append(f"{which} {'with ' if who in _HOLDERS else ''}device ids [{ids}] on platform CPU")
    said.sort(key=lambda words: not words.startswith("argument"))
    return f"Received incompatible devices for jitted computation. Got {' and '.join(said)}"


def _text(error: BaseException) -> str:
    if len(error.args) == 1 and (words := _whole(str(error.args[0]))):
        return words
    facts = getattr(error, "facts", None)
    if facts is not None:
        from .structures import said

        if words := said(facts):
            head, separator, stack = str(error.args[0]).partition("\n  at ")
            return f"{head}\nJAX says: {words}{separator}{stack}"
    return _with_words(" ".join(map(str, error.args)) if len(error.args) == 1 else str(error.args))


def _with_address(error: BaseException) -> str:
    """... and where JAX's documentation explains errors of this class."""
    name = type(error).__name__
    head, separator, stack = _text(error).partition("\n  at ")
    return f"{head}\nSee https://docs.jax.dev/en/latest/errors.html#jax.errors.{name}{separator}{stack}"


# Classes that JAX's documentation explains.
_EXPLAINED = {
    "ConcretizationTypeError",
    "KeyReuseError",
    "NonConcreteBooleanIndexError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "UnexpectedTracerError",
}


class _Notes:
    """The notes of an exception whose message is JAX's: Weft's own, with the lines, is the first."""

    def __get__(self, error: BaseException | None, kind: Any = None) -> Any:
        if error is None:
            return self
        if "__notes__" not in error.__dict__:
            said = str(error.args[0]) if len(error.args) == 1 else ""
            if not said or not _whole(said):
                raise AttributeError("__notes__")
            error.__dict__["__notes__"] = [said]
        return error.__dict__["__notes__"]

    def __set__(self, error: BaseException, notes: Any) -> None:
        error.__dict__["__notes__"] = notes


def _with_words(message: str) -> str:
    if "\nJAX says: " in message:  # of an exception that passed through a trace
        return message
    words = (
        _whole(message)
        or _ranks(message)
        or _not_an_array(message)
        or _mapped_axis(message)
        or _devices(message)
        or _replication(message)
        or in_jax_words(message)
        or _mismatches(message)
        or _sizes(message)
    )
    if not words:
        return message
    head, separator, stack = message.partition("\n  at ")
    return f"{head}\nJAX says: {words}{separator}{stack}"


def install() -> None:
    """From now on the exceptions that Weft alone raises say it in JAX's words, too."""
    derivatives: Any = _weft.DerivativeError
    derivatives.__bases__ = (TypeError, ValueError)  # as the operation has it in JAX
    kinds: list[Any] = [MissingRule, derivatives, *(getattr(errors, name) for name in errors.__all__)]
    for kind in kinds:
        if kind.__module__ != "builtins":
            kind.__str__ = _with_address if kind.__name__ in _EXPLAINED else _text
            kind.__notes__ = _Notes()
    _errors.in_other_words = _with_words
    _weft.set_wording(_with_words)
