"""What tests of chosen containers compare with: the plain Python function, and the line that an error names."""

import linecache
import os

import numpy as np
import pytest

import weft

# A condition that holds, one that does not, and a smaller number for a second condition.
XS = (1.5, -1.5, 0.5)


def numbers(value):
    """A result with NumPy's numbers for all leaves."""
    if isinstance(value, dict):
        return {k: numbers(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [numbers(v) for v in value]
    return np.asarray(value, float)


def assert_same(got, want):
    got, want = numbers(got), numbers(want)
    assert weft.tree.structure(got) == weft.tree.structure(want), (got, want)
    for g, w in zip(weft.tree.leaves(got), weft.tree.leaves(want)):
        np.testing.assert_allclose(g, w, rtol=1e-6)


def assert_refused(function, words, line):
    """`line`: the text of the line that the message names."""
    with pytest.raises(TypeError) as info:
        weft.jit(function, autograph=True)(XS[0])
    message = str(info.value)
    assert words in message, message
    code = function.__code__
    own = range(code.co_firstlineno, _last(code) + 1)
    (number,) = [n for n in own if linecache.getline(code.co_filename, n).strip() == line]
    assert f"{os.path.basename(code.co_filename)}:{number}" in message, message


def _last(code):
    inner = [c for c in code.co_consts if hasattr(c, "co_lines")]
    return max([line for _, _, line in code.co_lines() if line is not None] + [_last(c) for c in inner])
