"""What weft.debug.breakpoint opens: frames of Python as they were when the program was traced, with the values that
their traced variables have when it runs."""

from __future__ import annotations

import cmd
import inspect
import pprint
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from types import FrameType
from typing import IO, Any

from . import _weft
from ._core import tree as _tree
from ._core.errors import PACKAGE


class Frame:
    """A frame of Python: its place, source, and variables, some of whose values are filled in later."""

    def __init__(self, frame: FrameType):
        self.file, self.line = frame.f_code.co_filename, frame.f_lineno
        self.globals = frame.f_globals
        self.source, self.at = _source(frame)
        self._kept: list[tuple[str, Any, Any]] = []  # name, leaves, structure; or the value itself, None
        self.traced: list[Any] = []
        for name, value in frame.f_locals.items():
            try:
                leaves, tree = _tree.flatten(value)
            except Exception:  # what is no container of Weft's is shown as it is
                leaves, tree = [], None
            if tree is None or not any(map(_weft.is_traced, leaves)):
                self._kept.append((name, value, None))
            else:
                self._kept.append((name, [None if _weft.is_traced(leaf) else leaf for leaf in leaves], tree))
                self.traced += [leaf for leaf in leaves if _weft.is_traced(leaf)]

    def variables(self, values: Sequence[Any]) -> dict[str, Any]:
        """The variables, with these values for the traced ones."""
        rest = iter(values)
        found = {}
        for name, kept, tree in self._kept:
            if tree is not None:
                kept = _tree.unflatten(tree, [next(rest) if leaf is None else leaf for leaf in kept])
            found[name] = kept
        return found


def _source(frame: FrameType) -> tuple[list[str], int | None]:
    """The lines of the function, and which of them runs."""
    try:
        lines, start = inspect.getsourcelines(frame)
    except (OSError, TypeError):
        return [], None
    at = frame.f_lineno - max(start, 1)
    return ("".join(lines).split("\n"), at) if at < len(lines) else ([], None)


def frames_here(filter_frames: bool, most: int | None) -> list[Frame]:
    """The frames that call, the innermost first: the user's, or all of them."""
    found = []
    frame = sys._getframe(2)
    while frame is not None:
        if not filter_frames or not frame.f_code.co_filename.startswith((PACKAGE, "<frozen")):
            found.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return [Frame(f) for f in found[:most]]


class Debugger(cmd.Cmd):
    """The commands: p, pp, l(ist), u(p), d(own), bt, c(ontinue), q(uit); anything else is an expression."""

    def __init__(
        self, frames: Sequence[tuple[Frame, dict[str, Any]]], name: str, stdin: IO[str] | None, stdout: IO[str] | None
    ):
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.intro, self.prompt = f"Entering {name}:", f"({name}) "
        self._frames, self._at = frames, 0

    def _say(self, text: str) -> None:
        print(text, file=self.stdout)

    def _show(self, expression: str, shown: Callable[[Any], str]) -> None:
        frame, variables = self._frames[self._at]
        try:
            self._say(shown(eval(expression, {}, {**frame.globals, **variables})))
        except Exception as error:
            self._say(f"*** {traceback.format_exception_only(error)[-1].strip()}")

    def _context(self, around: int) -> None:
        frame, _ = self._frames[self._at]
        self._say(f"> {frame.file}({frame.line})")
        if frame.at is not None:
            for i, line in enumerate(frame.source):
                if frame.at - around - 1 <= i <= frame.at + around:
                    self._say(("->  " if i == frame.at else "    ") + line)

    def emptyline(self) -> bool:
        """Nothing; the base class would repeat the last command."""
        return False

    def default(self, line: str) -> None:
        """Evaluates an expression."""
        self._show(line, repr)

    def do_p(self, arg: str) -> None:
        """p expression: prints its value."""
        self._show(arg, repr)

    def do_pp(self, arg: str) -> None:
        """pp expression: prints its value over several lines."""
        self._show(arg, pprint.pformat)

    def _move(self, by: int, end: str) -> None:
        if 0 <= self._at + by < len(self._frames):
            self._at += by
        else:
            self._say(end)
        self._context(2)

    def do_up(self, _: str) -> None:
        """u(p): to the frame that called this one."""
        self._move(1, "At topmost frame.")

    def do_down(self, _: str) -> None:
        """d(own): to the frame that this one called."""
        self._move(-1, "At bottommost frame.")

    def do_list(self, _: str) -> None:
        """l(ist): the lines around."""
        self._context(5)

    def do_where(self, _: str) -> None:
        """w(here), bt: the frames, the innermost last."""
        self._say("Traceback:")
        for frame, _values in reversed(self._frames):
            self._say(f'  File "{frame.file}", line {frame.line}')
            self._say("    <no source>" if frame.at is None else f"    {frame.source[frame.at].strip()}")

    def do_continue(self, _: str) -> bool:
        """c(ontinue): the program goes on."""
        return True

    def do_quit(self, _: str) -> None:
        """q(uit): ends Python."""
        sys.exit(0)

    do_u, do_d, do_l, do_w, do_bt = do_up, do_down, do_list, do_where, do_where
    do_c = do_cont = do_continue
    do_q = do_exit = do_EOF = do_quit


_one_at_a_time = threading.Lock()


def run(frames: list[Frame], values: Sequence[Any], name: str, stdin: IO[str] | None, stdout: IO[str] | None) -> None:
    """Opens a debugger on the frames, with these values of all traced variables."""
    rest = list(values)
    filled = []
    for frame in frames:
        mine, rest = rest[: len(frame.traced)], rest[len(frame.traced) :]
        filled.append((frame, frame.variables(mine)))
    with _one_at_a_time:
        Debugger(filled, name, stdin, stdout).cmdloop()
