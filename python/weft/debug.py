"""Looking into compiled code."""

from __future__ import annotations

import builtins
import re
import string
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from . import _weft
from ._core import tree as _tree
from ._core.errors import index_error, key_error, type_error, value_error
from ._sharding.arrays import picture_of, visualize_array_sharding
from .arguments import text as _text
from .callbacks import call_with_sharding, io_callback

__all__ = [
    "breakpoint",
    "callback",
    "check",
    "inspect_array_sharding",
    "log",
    "print",
    "visualize_array_sharding",
    "visualize_sharding",
]


def print(fmt: str, *args: Any, ordered: bool = True, **kwargs: Any) -> None:
    """Prints when the program runs: outside jit at once, inside whenever the compiled code gets there. Prints keep
    their order; under vmap each lane prints.

    Args:
        fmt: text with fields: {} in order, {0}, or {name}, with the format specifications of Python's numbers, which
            apply to every element: {loss:.3f}.
        *args: arrays, numbers or trees of them.
        ordered: accepted: prints are always in order.
        **kwargs: arrays, numbers or trees of them, for fields with names.

    Returns: None.

    Raises:
        IndexError: there is no argument for a field.
        KeyError: there is no argument of a field's name.
        TypeError: an argument is no array or number, or fmt no text.
        ValueError: fmt or a specification in it is malformed, or there is no field for an argument.

    Example:
        >>> weft.debug.print("{} {x:6.2f}", 1, x=wnp.array(2.5))
        1   2.50
    """
    del ordered
    _text(fmt, "debug.print: fmt")
    try:
        fields = list(string.Formatter().parse(fmt))
    except ValueError as error:
        raise value_error(f"debug.print: {fmt!r} is malformed: {error}") from None
    text, values, at, used = [], [], 0, set[int | str]()
    for literal, field, spec, conversion in fields:
        text.append(literal.replace("{", "{{").replace("}", "}}") if "{" in literal or "}" in literal else literal)
        if field is None:
            continue
        if conversion not in (None, "r", "s"):
            raise value_error(f"debug.print: there is no conversion !{conversion}")
        if field == "":
            if at >= len(args):
                raise index_error(f"debug.print: {fmt!r} has more fields than the {len(args)} arguments")
            value, at = args[at], at + 1
            used.add(at - 1)
        elif field.isdigit():
            if int(field) >= len(args):
                raise index_error(f"debug.print: {fmt!r} names argument {field} of {len(args)}")
            value = args[int(field)]
            used.add(int(field))
        else:
            if field not in kwargs:
                raise key_error(f"debug.print: {fmt!r} names '{field}', which is no argument")
            value = kwargs[field]
            used.add(field)
        leaves = _tree.leaves(value)
        if _tree.jax_semantics() and len(leaves) == 1 and not _weft.is_operand(leaves[0]):
            # What is no array is written into the text, as JAX does.
            text.append(format(leaves[0], spec or "").replace("{", "{{").replace("}", "}}"))
            continue
        for leaf in leaves:
            if not _weft.is_operand(leaf):
                raise type_error(f"debug.print: {leaf!r} is no array or number; put it into the format string")
            if spec and "," in spec and re.search(r"(^|[-+ <>=^])0\d*,", spec):
                raise value_error(f"debug.print: zero padding and commas together are not supported, got {spec!r}")
            if spec:
                example = {"complex": 1j, "float": 1.0}.get(_weft.dtype_kind(_weft.abstract(leaf)[1]), 1)
                try:
                    format(example, spec)
                except ValueError as error:
                    raise value_error(f"debug.print: {fmt!r}: {error}") from None
        one = "{:" + spec + "}" if spec else "{}"
        text.append(", ".join(one for _ in leaves) if len(leaves) != 1 else one)
        values += leaves
    if unused := [name for name in (*range(len(args)), *kwargs) if name not in used]:
        names = ", ".join(f"'{name}'" if isinstance(name, str) else str(name) for name in unused)
        raise value_error(
            f"debug.print: {fmt!r} has no field for argument {names}; is it an f-string, filled in already?"
        )
    if _tree.jax_semantics():
        _print_by_python(fmt, args, kwargs)
    else:
        _weft.bind("debug_print", values, {"format": "".join(text)})


def _print_by_python(fmt: str, args: tuple, kwargs: dict[str, Any]) -> None:
    """What JAX does: Python's format of the arrays, with NumPy's options of now, into what sys.stdout is when the
    program runs."""
    leaves, tree = _tree.flatten((args, kwargs))
    moving = [_weft.is_operand(leaf) for leaf in leaves]
    options = np.get_printoptions()

    def show(*values: Any) -> None:
        rest = iter(values)
        every = [next(rest) if on else leaf for on, leaf in zip(moving, leaves)]
        given, named = _tree.unflatten(tree, every)
        with np.printoptions(**options):
            text = fmt.format(*given, **named)
        builtins.print(text)

    callback(show, *[leaf for on, leaf in zip(moving, leaves) if on])


def check(condition: Any, message: str, *args: Any) -> None:
    """Raises an error when the program runs and a condition does not hold.

    Args:
        condition: booleans of any shape; all must hold.
        message: what the error says; {} stands for the next of args.
        *args: arrays, numbers or trees of them.

    Returns: None.

    Raises:
        RuntimeError: the condition does not hold.

    Example:
        >>> weft.debug.check(wnp.array([1, 2]) > 0, "not positive: {}", 3)
    """
    _weft.bind("assert", [_weft.astype(condition, "bool"), *_tree.leaves(args)], {"message": message})


def callback(function: Callable[..., Any], *args: Any, ordered: bool = True, **kwargs: Any) -> None:
    """Calls a function of Python when the program runs; what it returns is ignored.

    Args:
        function: takes the arguments as arrays.
        *args: arrays, numbers or trees of them.
        ordered: accepted: calls are always in order.
        **kwargs: further ones, by name.

    Returns: None.

    Raises:
        Exception: what the function raises passes through, with a note of the line that calls debug.callback.

    Example:
        >>> weft.debug.callback(lambda x: print("got", x), 3)
        got 3
    """

    def call(*args, **kwargs) -> None:
        function(*args, **kwargs)

    io_callback(call, None, *args, ordered=ordered, **kwargs)


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = True,
    token: Any = None,
    stdin: IO[str] | None = None,
    stdout: IO[str] | None = None,
) -> Any:
    """Opens a debugger when the program runs and comes to this place: it shows the lines and the variables of the
    functions that were being called when it was traced, with the values that traced ones have now.

    Its commands: `p x` and `pp x` print an expression, `l` lists the lines, `bt` the frames, `u` and `d` go to the
    caller and back, `c` continues, `q` ends Python.

    Args:
        backend: None or "cli", a debugger in the terminal.
        filter_frames: whether Weft's own frames are left out.
        num_frames: how many frames are there, the innermost first; None: all.
        ordered: accepted: calls are always in order.
        token: arrays, or a tree of them: the debugger opens once they are there, and they are given back.
        stdin: where commands are read, a file; None: from the terminal.
        stdout: where answers are written, a file; None: to the terminal.

    Returns: token.

    Raises:
        ValueError: there is no such debugger.
        SystemExit: when the program runs: the command was q.

    Example:
        >>> import io
        >>> commands, answers = io.StringIO("p y * 10\\nc\\n"), io.StringIO()
        >>> @weft.jit
        ... def f(x):
        ...     y = x + 1
        ...     weft.debug.breakpoint(stdin=commands, stdout=answers)
        ...     return y
        >>> _ = f(1)
        >>> print(answers.getvalue().splitlines()[1])
        (wdb) Array(20, dtype=int32)
    """
    from . import _debugger  # which most programs do not load

    if backend not in (None, "cli"):
        raise value_error(f"debug.breakpoint: backend must be None or 'cli', got {backend!r}")
    frames = _debugger.frames_here(filter_frames, num_frames)
    name = "jdb" if _tree.jax_semantics() else "wdb"

    def opened(_: Any, values: list[Any]) -> None:
        _debugger.run(frames, values, name, stdin, stdout)

    callback(opened, _tree.leaves(token), [x for frame in frames for x in frame.traced])
    return token


def log(fmt: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Writes into the log "weft" when the program runs, at the level of information.

    Args:
        fmt: text with fields, as for print.
        *args: arrays, numbers or trees of them.
        ordered: accepted: logs keep their order.
        **kwargs: arrays, numbers or trees of them, for fields with names.

    Returns: None.

    Raises:
        TypeError: fmt is no text.

    Example:
        >>> weft.debug.log("loss {}", wnp.array(1.0))
    """
    text = _text(fmt, "debug.log: fmt")

    def write(*args: Any, **kwargs: Any) -> None:
        import logging  # which most programs do not load

        logging.getLogger("weft").info("%s", text.format(*args, **kwargs))

    callback(write, *args, ordered=ordered, **kwargs)


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], None]) -> None:
    """Calls a function with the sharding of each array of a tree: of arrays at once, of traced values when the program
    has run to them.

    Args:
        value: arrays, or a tree of them.
        callback: takes a weft.Sharding.

    Returns: None.

    Raises:
        TypeError: value holds no array.

    Example:
        >>> weft.debug.inspect_array_sharding(wnp.ones(2), callback=print)
        SingleDeviceSharding(device=CpuDevice(id=0))
    """
    for leaf in _tree.leaves(value):
        if not isinstance(leaf, _weft.Array):
            raise type_error(f"debug.inspect_array_sharding: expected arrays, got {leaf!r}")
        if _weft.is_traced(leaf):
            call_with_sharding(callback, leaf)
        else:
            callback(leaf.sharding)


def visualize_sharding(shape: Any, sharding: Any, *, use_color: bool = False) -> str:
    """Prints a picture of who holds what of an array of one or two dimensions.

    Args:
        shape: the shape of the array.
        sharding: how it lies on devices.
        use_color: accepted, without effect.

    Returns: the picture, a string.

    Raises:
        ValueError: the shape has other dimensions.

    Example:
        >>> picture = weft.debug.visualize_sharding((4,), wnp.zeros(4).sharding)
        ┌───────┐
        │ CPU 0 │
        └───────┘
    """
    del use_color
    return picture_of(tuple(shape), sharding, "visualize_sharding: the shape")
