"""Plugins in C++: passes, rules and operations that are built outside of Weft."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from . import _weft
from ._core.errors import type_error, value_error

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Plugin", "load_plugin", "sdk"]


class Plugin(NamedTuple):
    """What a plugin has added.

    Attributes:
        name: what it calls itself.
        path: its file.
        passes: names for jit(passes=[...]).
        rules: names of rules, which apply from now on; jit(disable=[...]) leaves them out.
        primitives: names of operations, which are functions of weft.primitives.

    Example:
        >>> weft.plugins.Plugin("mine", "mine.so", ("my-pass",), (), ()).passes
        ('my-pass',)
    """

    name: str
    path: str
    passes: tuple[str, ...]
    rules: tuple[str, ...]
    primitives: tuple[str, ...]


def load_plugin(path: str | os.PathLike[str]) -> Plugin:
    """Loads a plugin, a shared library built with Weft's SDK (docs/extend_in_cpp.md), into this process. It stays; to
    load it again only tells what it has added. Functions that were compiled before are as they were.

    Args:
        path: the file.

    Returns: weft.plugins.Plugin.

    Raises:
        TypeError: the path is none.
        ValueError: the file is not there, is no plugin, was built for another version of the SDK, or adds a name that
            is taken.

    Example:
        >>> try:
        ...     weft.load_plugin("no_such_plugin.so")
        ... except ValueError as error:
        ...     print(str(error).splitlines()[0])
        load_plugin: the plugin 'no_such_plugin.so' cannot be read: No such file or directory
    """
    try:
        file = os.fsdecode(os.fspath(path))
    except TypeError:
        raise type_error(f"load_plugin: the path must be a text or a path, got {path!r}") from None
    name, where, passes, rules, primitives = _weft.load_plugin(file)
    return Plugin(name, where, tuple(passes), tuple(rules), tuple(primitives))


def sdk() -> Path:
    """The folder of the SDK that came with this package: headers, library, CMake package and pkg-config file, of
    which plugins are built (docs/extend_in_cpp.md). `weft sdk` prints it: cmake -DCMAKE_PREFIX_PATH=$(weft sdk).

    Returns: pathlib.Path.

    Raises:
        ValueError: the package was not installed from a wheel.

    Example:
        >>> try:
        ...     print((weft.plugins.sdk() / "include").is_dir())
        ... except ValueError:
        ...     print(True)
        True
    """
    from pathlib import Path  # with what it imports a fiftieth of the time until weft is there

    folder = Path(__file__).parent / "sdk"
    if not folder.is_dir():
        raise value_error(
            "sdk: this package runs from its sources, which wheels alone bring the SDK beside; "
            "./bazelw run -c opt //sdk:install -- --prefix=FOLDER writes one"
        )
    return folder
