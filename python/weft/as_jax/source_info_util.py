"""jax.extend.source_info_util, and where equations say they come from."""

from __future__ import annotations

from typing import NamedTuple


def register_exclusion(path: str) -> None:
    """Nothing: Weft's messages name the user's lines, of libraries too."""
    del path


class SourceInfo(NamedTuple):
    """Where an equation comes from.

    Attributes:
        name_stack: what jax.named_scope calls the part of the program, inside of the transforms: "block/jvp(norm)".
        traceback: the user's line, and the transforms.
    """

    name_stack: str
    traceback: str

    def __str__(self) -> str:
        return self.traceback


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """The user's line."""
    del num_frames
    return source_info.traceback
