"""Texts with a traced value in them: what asks for their characters never sees what stands for the value. A loop over a
known range is unrolled then, as where a number is asked for; otherwise that is an error."""

# ruff: noqa: SIM300, UP031, UP032

import numpy as np
import pytest

import weft

PROGRAMS = []
PARAMETERS = {f"w{i}": i + 1.0 for i in range(3)}


class Layers:
    w0, w1, w2 = 1.0, 2.0, 3.0


def program(function):
    PROGRAMS.append(function)
    return function


@program
def key_of_a_dict(x):
    for i in range(3):
        x = x * PARAMETERS[f"w{i}"] + PARAMETERS.get("w{}".format(i), 100.0)
    return x


@program
def key_that_is_stored(x):
    found = {}
    for i in range(3):
        found["k%d" % i] = x * i
    return sum(found.values())


@program
def name_of_an_attribute(x):
    layers = Layers()
    for i in range(3):
        x = x + getattr(layers, f"w{i}") + (1 if hasattr(layers, f"w{i + 1}") else 0)
        setattr(layers, f"w{i}", 2.0)
        x = x + layers.w0
    return x


@program
def length(x):
    for i in range(8, 12):
        x = x + len(f"{i}") + len(str(i)) + len(repr(i)) + len("%d" % i)
    return x


@program
def comparisons(x):
    for i in range(3):
        x = x + (1 if f"w{i}" == "w1" else 2) * (3 if "w2" != f"w{i}" else 4) + (5 if f"{i}" < "1" else 6)
    return x


@program
def methods(x):
    for i in range(3):
        x = x + (1 if f"w{i}".endswith("1") else 2) + len(",".join([f"{i}", "a"]).split(",")) + int(f"w{i}"[-1])
    return x


@program
def membership(x):
    for i in range(3):
        x = x + (1 if "1" in f"w{i}" else 2) + (1 if f"w{i}" in "w1w2" else 3) + (1 if f"w{i}" in PARAMETERS else 5)
        x = x + ("w0", "w1", "w2").index(f"w{i}") + (1 if f"w{i}" not in ["w1"] else 2)
    return x


@program
def numbers(x):
    for i in range(3):
        x = x + int(str(i)) + float("%d.5" % i)
    return x


@program
def characters(x):
    for i in range(3):
        x = x + sum(1 for c in f"{i}{i}" if c != "1")
    return x


@program
def patterns(x):
    for i in range(3):
        match f"w{i}":
            case "w1":
                x = x + 1
            case _:
                x = x + 3
    return x


@program
def truth(x):
    for i in range(3):
        x = x + (1 if f"{i}" else 2)
    return x


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_characters_are_those_of_the_value(function):
    expected = function(np.float32(1.5))
    np.testing.assert_allclose(weft.jit(function, autograph=True)(1.5), expected)
    np.testing.assert_allclose(weft.vmap(weft.autograph(function))(np.float32([1.5, 1.5]))[1], expected)


ASKING = {
    "length": lambda t: len(t),
    "key": lambda t: {"a": 1}.get(t),
    "equal": lambda t: t == "1.0",
    "order": lambda t: t < "1.0",
    "in": lambda t: t in "1.0",
    "part": lambda t: t[0],
    "method": lambda t: t.upper(),
    "number": lambda t: int(t),
    "characters": lambda t: [*t],
    "repeated": lambda t: t * 2,
    "template": lambda t: t % (),
    "width": lambda t: format(t, ">9"),
    "set": lambda t: {t},
}


@pytest.mark.parametrize("what", ASKING)
@pytest.mark.parametrize("make", [lambda x: f"{x}", lambda x: str(x), lambda x: repr(x), lambda x: "%s" % x])
def test_where_it_is_not_known_it_is_an_error(what, make):
    asks = ASKING[what]

    def f(x):
        asks(make(x))
        return x

    with pytest.raises(weft.TracerError, match="characters are not known"):
        weft.jit(f, autograph=True)(1.0)


def test_texts_are_still_shown(capfd):
    def f(x):
        for i in range(2):
            print("step " + f"{i}: " + str(x) + ",", repr(i))
            x = x + 1
        assert x > 0, f"negative: {x}"
        return x

    assert weft.jit(f, autograph=True)(1.0) == 3
    weft.effects_barrier()
    assert capfd.readouterr().out.splitlines() == ["step 0: 1.0, 0", "step 1: 2.0, 1"]
    with pytest.raises(RuntimeError, match="negative: -3"):
        weft.jit(f, autograph=True)(-5.0)
