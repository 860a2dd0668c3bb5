"""Wrong calls: the kind of the exception that JAX raises, and a message that says what was given, what was
expected, and the user's line."""

import builtins
import pathlib
import re
import types

import numpy as np
import pytest

import weft
import weft.numpy as wnp

jax = pytest.importorskip("jax")

FILE = "users_program.py"
_PROGRAMS: dict = {}
exec((pathlib.Path(__file__).parent / "exceptions_programs.py").read_text(), _PROGRAMS)
MESSAGES: dict[str, str] = _PROGRAMS["MESSAGES"]


class _Either(types.SimpleNamespace):
    """weft.lax, with what JAX has there and Weft above it."""

    def __getattr__(self, name):
        return getattr(weft.lax, name) if hasattr(weft.lax, name) else getattr(weft, name)


class _Weft(types.SimpleNamespace):
    def __getattr__(self, name):
        return getattr(weft, name)


MINE = {"jax": _Weft(lax=_Either()), "jnp": wnp, "np": np}
THEIRS = {"jax": jax, "jnp": jax.numpy, "np": np}

# What is raised elsewhere in JAX, by its assertions or by what stands below it.
OTHER_KINDS = {
    "ArithmeticError": ValueError,
    "AssertionError": TypeError,
    "ZeroDivisionError": ValueError,
}


def _raised(program, names):
    try:
        exec(compile(program, FILE, "exec"), {**names, "LEAK": []})
    except Exception as error:
        return error
    return None


def _kinds(error):
    """The classes that a program can catch it by: Python's, and those of jax.errors that Weft has too."""
    for cls in type(error).__mro__:
        if cls.__name__ in OTHER_KINDS and cls.__module__ == "builtins":
            yield OTHER_KINDS[cls.__name__]
        elif cls.__module__ == "builtins" and cls not in (object, BaseException):
            yield getattr(builtins, cls.__name__)
        elif cls.__name__ in weft.errors.__all__:
            yield getattr(weft.errors, cls.__name__)


@pytest.mark.parametrize("program", MESSAGES)
def test_wrong_call(program):
    theirs = _raised(program, THEIRS)
    with weft.jax_semantics():
        mine = _raised(program, MINE)
    assert mine is not None
    if theirs is not None:
        for kind in _kinds(theirs):
            assert isinstance(mine, kind), (type(mine), type(theirs), str(theirs))
    # The same outside of JAX's meaning, where the kind is the one that fits.
    own = _raised(program, MINE)
    assert isinstance(mine, type(own)) or type(own) is type(mine), (type(own), type(mine))
    for error in (mine, own):
        first, *lines = str(error).splitlines()
        assert first == MESSAGES[program]
        assert any(re.match(rf"  at {FILE}:1 in ", line) for line in lines), lines


def test_there_are_enough_of_them():
    assert len(MESSAGES) >= 200


def test_structures_in_words():
    words = lambda tree: weft._core.tree.in_words(weft.tree.structure(tree))
    assert words(1.0) == "an array"
    assert words((1, 2)) == "a tuple of length 2: (an array, an array)"
    assert words({"a": 1, "b": [1, 2]}) == "a dict with the keys 'a', 'b': ('a': an array, 'b': a list of length 2)"
    assert words(()) == "an empty tuple" and words(None) == "None"
    assert words([[1, (2, {"c": 3})]]).startswith(
        "a list of length 1: (a list of length 2: (an array, a tuple of length 2"
    )
    assert words(list(range(9))).endswith("an array, ...)")


def test_lambdas_are_called_as_in_python():
    with pytest.raises(TypeError, match="'<lambda>'"):
        weft.grad(lambda x: (x, x))(1.0)
    with pytest.raises(weft.TracerError, match="'<lambda>'"):
        weft.jit(lambda x: float(x))(1.0)
    assert "fn f(" in weft.make_ir(lambda x: x)(1.0).text
