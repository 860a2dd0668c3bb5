"""Containers that a traced condition chooses (weft/autograph/aliases.py): what is written to them reaches what was
chosen, and the other way round, or is refused at the user's line. The oracle is the plain Python function."""

import dataclasses
import linecache
import pathlib
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from autograph_aliases_oracle import XS, assert_refused, assert_same

import weft

StructureError = weft.autograph.StructureError


@dataclasses.dataclass
class Holder:
    o: list


# --- Ways to choose x ways to write -----------------------------------------------------------------------------------

CHOICES = {
    "conditional expression": "o = a if x > 0 else b",
    "if": "if x > 0:\n    o = a\nelse:\n    o = b",
    "if without else": "o = b\nif x > 0:\n    o = a",
    "early return": "def pick(p, q):\n    if x > 0:\n        return p\n    return q\no = pick(a, b)",
    "and in the condition": "o = a if x > 0 and x < 10 else b",
    "attribute": "s = Holder(b)\nif x > 0:\n    s.o = a\no = s.o",
    "item": "s = {'o': b}\nif x > 0:\n    s['o'] = a\no = s['o']",
    "nonlocal": "o = b\ndef pick():\n    nonlocal o\n    if x > 0:\n        o = a\npick()",
    "elif": "if x > 1:\n    o = a\nelif x > 0:\n    o = b\nelse:\n    o = [x, 4.0]",
    "nested": "o = (a if x > 1 else b) if x > 0 else a",
    "if in if": "o = b\nif x * x > 1:\n    if x > 0:\n        o = a",
    "choice of a choice": "p = a if x > 1 else b\no = p if x > 0 else a",
    "max": "o = max(a, b, key=lambda v: v[0])",
    "element of a tuple": "_, o = (b, a) if x > 0 else (a, b)",
}
# Which of several it is, no condition outside of the statement says.
UNKNOWN_CHOICES = {
    "for": "o = b\nfor i in range(3):\n    if x > i:\n        o = a",
    "while": "o, t = b, x\nwhile t < 1:\n    o, t = a, t + 1",
}
WRITES = {
    "item": "o[0] = 7.0",
    "item, in place": "o[1] += x",
    "slice": "o[:] = [5.0, x]",
    "reverse": "o.reverse()",
    "sort": "o.sort()",
    "in a function": "put(o)",
    "by another name": "p = o\np[0] = 7.0",
    "in a lambda": "(lambda l: l.__setitem__(0, 7.0))(o)",
    "what was chosen from": "a[0] = 7.0",
    "what was chosen from, in a function": "put(b)",
    "in a branch": "if x * x > 1:\n    o[0] = 7.0",
    "in a branch, what was chosen from": "if x * x > 1:\n    put(a)",
    "in a loop": "for i in range(2):\n    o[i] = o[i] * 2",
}
LENGTHS = {
    "append": "o.append(x)",
    "+=": "o += [x]",
    "del": "del o[0]",
    "pop": "y = o.pop()",
    "insert": "o.insert(0, x)",
    "clear": "o.clear()",
    "in a function": "list.append(o, x)",
    "in a comprehension": "[o.append(v) for v in (1.0, x)]",
    "by another name": "p = o; p.append(x)",
    "what was chosen from": "a.append(x)",
}


def program_of(*parts):
    body = "a, b = [x, 1.0], [2 * x, 3.0]\ndef put(l):\n    l[0] = 7.0\n" + "\n".join(parts) + "\nreturn a, b, o"
    text = "def program(x):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    name = f"/aliases/{abs(hash(text))}.py"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    space = {"Holder": Holder}
    exec(compile(text, name, "exec"), space)
    return space["program"]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("choice", CHOICES)
def test_what_is_written_reaches_what_was_chosen(choice, write):
    program = program_of(CHOICES[choice], WRITES[write])
    for x in XS:
        assert_same(weft.jit(program, autograph=True)(x), program(x))


@pytest.mark.parametrize("write", LENGTHS)
@pytest.mark.parametrize("choice", {**CHOICES, **UNKNOWN_CHOICES})
def test_a_length_cannot_depend_on_a_traced_value(choice, write):
    text = {**CHOICES, **UNKNOWN_CHOICES}[choice]
    assert_refused(program_of(text, LENGTHS[write]), "a list changes its length or its keys here", LENGTHS[write])


@pytest.mark.parametrize("choice", UNKNOWN_CHOICES)
def test_choices_that_no_condition_tells(choice):
    program = program_of(UNKNOWN_CHOICES[choice])
    for x in XS:
        assert_same(weft.jit(program, autograph=True)(x), program(x))
    for write in ("o[0] = 7.0", "a[0] = 7.0"):
        assert_refused(program_of(UNKNOWN_CHOICES[choice], write), "a list changes here", write)


def test_lanes_and_slopes():
    def f(x):
        a, b = [x], [2 * x]
        o = a if x > 0 else b
        o[0] = o[0] * x
        return a[0] + 10 * b[0]

    xs = np.array(XS)
    np.testing.assert_allclose(np.asarray(weft.vmap(weft.autograph(f))(xs)), [f(x) for x in XS], rtol=1e-6)
    slopes = weft.vmap(weft.grad(weft.autograph(f)))(xs)
    np.testing.assert_allclose(np.asarray(slopes), [(f(x + 1e-5) - f(x - 1e-5)) / 2e-5 for x in XS], rtol=1e-4)


def test_what_nothing_writes_to_is_the_program_by_hand():
    def f(x, a, b):
        o = a if x > 0 else b
        return o[0] * o[1]

    def by_hand(x, a, b):
        o = weft.cond(x > 0, lambda: a, lambda: b)
        return o[0] * o[1]

    arguments = 1.0, [1.0, 2.0], [3.0, 4.0]
    assert weft.make_ir(weft.autograph(f))(*arguments) == weft.make_ir(by_hand)(*arguments)


def test_a_write_is_a_cond_for_each_that_was_chosen_from():
    def f(x):
        a, b = [x], [2 * x]
        o = a if x > 0 else b
        o[0] = 7.0
        return a, b

    def by_hand(x):
        a, b = x, 2 * x
        test = x > 0
        weft.cond(test, lambda: a, lambda: b)
        return [weft.cond(test, lambda: 7.0, lambda: a)], [weft.cond(test, lambda: b, lambda: 7.0)]

    texts = [weft.make_ir(g)(1.0).stage("optimized") for g in (weft.autograph(f), by_hand)]
    assert [text.count(" cond") + text.count(" select") for text in texts] == [2, 2], texts


def test_nothing_stays_linked_after_a_trace():
    from weft.autograph import aliases

    kept = []

    def f(x):
        a, b = [x], [2 * x]
        kept.append(a if x > 0 else b)
        return x

    weft.jit(f, autograph=True)(1.0)
    with pytest.raises(ZeroDivisionError):
        weft.jit(lambda x: f(x) / (1 // 0), autograph=True)(1.0)
    assert not aliases._scope.links and not aliases._scope.linked and not aliases._scope.origins
