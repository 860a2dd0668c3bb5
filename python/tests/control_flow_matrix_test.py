"""Each construct of Python's control flow, three ways: traced on its numbers (un-jitted grad), converted
(weft.autograph), and by hand (cond, scan, while_loop). Every cell has an expected outcome: the value and the gradient,
against central differences of the plain Python function in f64, or an error with a name.

The table in docs/control_flow.md is written by this test:
    WEFT_WRITE_TABLE=1 ./bazelw run //python:control_flow_matrix_test -- --test_filter=table
"""

import asyncio
import contextlib
import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft.autograph import ConversionError, StructureError

DOCUMENT = Path("docs/control_flow.md")
BEGIN, END = "<!-- the table begins -->\n", "<!-- the table ends -->\n"


@dataclasses.dataclass
class Row:
    construct: str
    python: Callable  # of x and perhaps more; its gradient is by x
    hand: Callable
    args: list[tuple]
    # What is raised instead of a value: concrete, converted, by hand; with words of the message.
    errors: tuple = (None, None, None)
    same: bool = True  # converted and by hand are one IR


ROWS: list[Row] = []


def row(construct, *args, hand, errors=(None, None, None), same=True):
    def add(function):
        ROWS.append(Row(construct, function, hand, [a if isinstance(a, tuple) else (a,) for a in args], errors, same))
        return function

    return add


def both(error, words):
    """Refused by conversion and by hand."""
    return (None, (error, words), (error, words))


def converted(error, words):
    """Refused by conversion only."""
    return (None, (error, words), None)


# --- Branches ---------------------------------------------------------------------------------------------------------


@row(
    "`if`, `elif`, `else`",
    3.0,
    1.5,
    -1.0,
    hand=lambda x: weft.cond(x > 2, lambda: x * x, lambda: weft.cond(x > 1, lambda: x * 3, lambda: -x)),
)
def _(x):
    if x > 2:
        y = x * x
    elif x > 1:
        y = x * 3
    else:
        y = -x
    return y


@row("`if` without `else`", 1.0, -1.0, hand=lambda x: weft.cond(x > 0, lambda: x * 3, lambda: x))
def _(x):
    if x > 0:
        x = x * 3
    return x


@row("conditional expression", 1.0, -1.0, hand=lambda x: weft.cond(x > 0, lambda: x * 3, lambda: -x))
def _(x):
    return x * 3 if x > 0 else -x


@row(
    "`and`, `or`, `not`",
    0.5,
    3.0,
    -1.0,
    -4.0,
    hand=lambda x: weft.cond(
        weft.cond(
            weft.cond(x > 0, lambda: x < 1, lambda: x > 0),
            lambda: True,
            lambda: ~weft.cond(x > -2, lambda: True, lambda: x > 2),
        ),
        lambda: x * 2,
        lambda: x * 5,
    ),
    same=False,
)
def _(x):
    if (x > 0 and x < 1) or not (x > -2 or x > 2):
        return x * 2
    return x * 5


@row(
    "chained comparison",
    0.5,
    3.0,
    -1.0,
    hand=lambda x: weft.cond(weft.cond(x > 0, lambda: x < 1, lambda: x > 0), lambda: x * 2, lambda: x * 5),
    same=False,
)
def _(x):
    if 0 < x < 1:
        return x * 2
    return x * 5


@row(
    "early `return`",
    2.0,
    -2.0,
    hand=lambda x: weft.cond(x > 0, lambda: x * x, lambda: -x * 3),
)
def _(x):
    if x > 0:
        return x * x
    y = -x
    return y * 3


@row("condition that is not traced", (2.0, "up"), (2.0, "down"), hand=lambda x, mode: x * 2 if mode == "up" else -x)
def _(x, mode):
    if mode == "up":
        return x * 2
    return -x


@row("variable of one branch, not read", 2.0, -2.0, hand=lambda x: x * 2)
def _(x):
    if x > 0:
        unused = x * 3  # noqa: F841
    return x * 2


@row(
    "variable of one branch, read",
    2.0,
    hand=lambda x: weft.cond(x > 0, lambda: (x * 3,), lambda: ()),
    errors=(None, (UnboundLocalError, "'y' is read"), (TypeError, "structure")),
)
def _(x):
    if x > 0:
        y = x * 3
    return y


@row(
    "branches of different shapes",
    2.0,
    -2.0,
    hand=lambda x: weft.cond(x > 0, lambda: wnp.ones(3, "float64") * x, lambda: wnp.ones(2, "float64") * x).sum(),
    errors=(None, (TypeError, "result 'y'"), (TypeError, "shape")),
)
def _(x):
    if x > 0:
        y = wnp.ones(3, "float64") * x
    else:
        y = wnp.ones(2, "float64") * x
    return y.sum()


@row(
    "branches of different structures",
    2.0,
    -2.0,
    hand=lambda x: weft.cond(x > 0, lambda: (x, x), lambda: x),
    errors=(None, (StructureError, "'y' is a tuple"), (TypeError, "structure")),
)
def _(x):
    if x > 0:
        y = (x, x)
    else:
        y = x
    return y[0] if isinstance(y, tuple) else y * 2


@row("`match` on a Python value", (2.0, "up"), (2.0, "down"), hand=lambda x, k: x * x if k == "up" else -x)
def _(x, k):
    match k:
        case "up":
            return x * x
        case _:
            return -x


@row(
    "`match` on a traced value",
    3.0,
    hand=lambda x: weft.cond(x == 1, lambda: x * x, lambda: -x),
    errors=converted(ConversionError, "`match`"),
)
def _(x):
    match x:
        case 1:
            return x * x
        case _:
            return -x


@row(
    "`in` a tuple",
    (1.5, 2),
    (1.5, 3),
    hand=lambda x, n: weft.cond((n == 1) | (n == 2), lambda: x * 3, lambda: x * x),
)
def _(x, n):
    if n in (1, 2):
        return x * 3
    return x * x


@row(
    "`max` with a key, `sorted`",
    3.0,
    -3.5,
    hand=lambda x: weft.cond(x * x > 4, lambda: x, lambda: -2.0) + wnp.sort(wnp.stack([x, 1.0]))[0],
    same=False,
)
def _(x):
    return max(-2.0, x, key=lambda v: v * v) + sorted([x, 1.0])[0]


# --- for --------------------------------------------------------------------------------------------------------------


@row("`for` over a range", 2.0, hand=lambda x: weft.fori_loop(0, 4, lambda i, y: y * x + i, x))
def _(x):
    y = x
    for i in range(4):
        y = y * x + i
    return y


@row(
    "`for` over a traced range",
    (2.0, 4),
    (2.0, 0),
    hand=lambda x, n: weft.fori_loop(0, n, lambda i, y: y * x + i, x),
)
def _(x, n):
    y = x
    for i in range(n):
        y = y * x + i
    return y


XS = np.array([1.0, 2.0, 3.0])


@row("`for` over an array", (2.0, XS), hand=lambda x, xs: weft.scan(lambda y, row: (y * x + row, None), x, xs)[0])
def _(x, xs):
    y = x
    for row in xs:
        y = y * x + row
    return y


@row(
    "`for` over `enumerate` and `zip` of arrays",
    (2.0, XS, XS),
    hand=lambda x, xs, ys: weft.scan(
        lambda t, r: (t * x + r[0] * r[1][0] * r[1][1], None), x, (wnp.arange(3), (xs, ys))
    )[0],
)
def _(x, xs, ys):
    t = x
    for i, (a, b) in enumerate(zip(xs, ys)):
        t = t * x + i * a * b
    return t


@row("`for` over a Python list (unrolled)", 2.0, hand=lambda x: ((x * x + 1) * x + 5) * x + 2)
def _(x):
    y = x
    for k in [1, 5, 2]:
        y = y * x + k
    return y


@row("`for` whose variable indexes a list (unrolled)", (2.0, [3.0, 4.0]), hand=lambda x, ws: x * ws[0] * ws[1])
def _(x, ws):
    for i in range(len(ws)):
        x = x * ws[i]
    return x


@row(
    "nested loops",
    1.5,
    hand=lambda x: weft.fori_loop(0, 3, lambda i, y: weft.fori_loop(0, 2, lambda j, y: y * x + i * j, y), x),
)
def _(x):
    y = x
    for i in range(3):
        for j in range(2):
            y = y * x + i * j
    return y


@row(
    "`continue`",
    1.5,
    hand=lambda x: weft.fori_loop(0, 5, lambda i, y: weft.cond(i % 2 == 0, lambda: y, lambda: y * x + i), x),
)
def _(x):
    y = x
    for i in range(5):
        if i % 2 == 0:
            continue
        y = y * x + i
    return y


@row(
    "`for` with `break`",
    1.5,
    9.0,
    hand=lambda x: weft.while_loop(
        lambda c: (c[0] < 6) & ~c[2],
        lambda c: weft.cond(c[1] > 20, lambda: (c[0] + 1, c[1], True), lambda: (c[0] + 1, c[1] * x + c[0], False)),
        (0, x, False),
    )[1],
    same=False,
)
def _(x):
    y = x
    for i in range(6):
        if y > 20:
            break
        y = y * x + i
    return y


@row(
    "`for` ... `else`",
    1.5,
    9.0,
    hand=lambda x: (lambda c: weft.cond(c[2], lambda: c[1], lambda: -c[1]))(
        weft.while_loop(
            lambda c: (c[0] < 6) & ~c[2],
            lambda c: weft.cond(c[1] > 100, lambda: (c[0] + 1, c[1], True), lambda: (c[0] + 1, c[1] * x, False)),
            (0, x, False),
        )
    ),
    same=False,
)
def _(x):
    y = x
    for _ in range(6):
        if y > 100:
            break
        y = y * x
    else:
        y = -y
    return y


@row(
    "`return` from a loop",
    1.5,
    9.0,
    0.5,
    hand=lambda x: (lambda c: weft.cond(c[2], lambda: c[1] * 3, lambda: -c[1]))(
        weft.while_loop(
            lambda c: (c[0] < 6) & ~c[2],
            lambda c: (lambda y: (c[0] + 1, y, y > 10))(c[1] * x),
            (0, x, False),
        )
    ),
    same=False,
)
def _(x):
    y = x
    for _ in range(6):
        y = y * x
        if y > 10:
            return y * 3
    return -y


@row(
    "`return` in the `else` of a loop",
    1.5,
    9.0,
    hand=lambda x: (lambda c: weft.cond(c[2], lambda: c[1] + 1, lambda: -c[1]))(
        weft.while_loop(
            lambda c: (c[0] < 4) & ~c[2],
            lambda c: (lambda y: (c[0] + 1, y, y > 30))(c[1] * 2),
            (0, x, False),
        )
    ),
    same=False,
)
def _(x):
    y = x
    for _ in range(4):
        y = y * 2
        if y > 30:
            break
    else:
        return -y
    return y + 1


@row(
    "range with a traced step",
    (1.5, 2),
    (1.5, -1),
    hand=lambda x, s: weft.fori_loop(0, -((0 - 5 * wnp.sign(s)) // s), lambda i, y: y * x + i * s, x),
    same=False,
)
def _(x, s):
    y = x
    for i in range(0, 5 if s > 0 else -5, s):
        y = y * x + i
    return y


@row(
    "range with a traced step of 0",
    (1.5, 0),
    hand=lambda x, s: (weft.debug.check(s != 0, "step must not be zero"), x)[1],
    errors=((ValueError, "must not be zero"), (RuntimeError, "must not be zero"), (RuntimeError, "must not be zero")),
)
def _(x, s):
    for i in range(0, 5, s):
        x = x * i
    return x


# --- while ------------------------------------------------------------------------------------------------------------


@row("`while`", 1.5, 30.0, hand=lambda x: weft.while_loop(lambda y: y < 20, lambda y: y * x + 1, x))
def _(x):
    y = x
    while y < 20:
        y = y * x + 1
    return y


@row(
    "`while` ... `else` with `break`",
    1.5,
    9.0,
    hand=lambda x: (lambda c: weft.cond(c[2], lambda: c[1], lambda: -c[1]))(
        weft.while_loop(
            lambda c: (c[0] < 5) & ~c[2],
            lambda c: (lambda y: (c[0] + 1, y, y > 1000))(c[1] * x),
            (0, x, False),
        )
    ),
    same=False,
)
def _(x):
    y, i = x, 0
    while i < 5:
        i += 1
        y = y * x
        if y > 1000:
            break
    else:
        y = -y
    return y


@row(
    "`while True` with `return`",
    1.5,
    hand=lambda x: weft.while_loop(lambda y: ~(y > 50), lambda y: y * x, x * x),
    same=False,
)
def _(x):
    y = x
    while True:
        y = y * x
        if y > 50:
            return y


@row("`while` that is not traced (unrolled)", 2.0, hand=lambda x: x * 2 * 2 * 2)
def _(x):
    k = 0
    while k < 3:
        x = x * 2
        k += 1
    return x


# --- Variables --------------------------------------------------------------------------------------------------------


@row(
    "unpacking and several variables",
    1.5,
    hand=lambda x: weft.fori_loop(0, 5, lambda _, c: (c[1], c[0] + c[1] * x), (x, 1.0))[1],
)
def _(x):
    a, b = x, 1.0
    for _ in range(5):
        a, b = b, a + b * x
    return b


@row("integer that becomes a float", 1.5, hand=lambda x: weft.fori_loop(0, 3, lambda i, t: t + x, 0))
def _(x):
    t = 0
    for _ in range(3):
        t += x
    return t


@row(
    "loop that changes a dtype",
    (1.5, 3),
    hand=lambda x, n: weft.fori_loop(0, n, lambda i, t: t + x, np.zeros((), "int32")),
    errors=both(TypeError, "is i32.. on entry but f64"),
)
def _(x, n):
    t = np.zeros((), "int32")
    for _ in range(n):
        t = t + x
    return t


@row(
    "loop that changes a shape",
    (1.5, 3),
    hand=lambda x, n: weft.fori_loop(0, n, lambda i, v: wnp.concatenate([v, v]), wnp.ones(1, "float64") * x).sum(),
    errors=both(TypeError, r"is f\d\d\[1\] on entry but f\d\d\[2\]"),
)
def _(x, n):
    v = wnp.ones(1, "float64") * x
    for _ in range(n):
        v = wnp.concatenate([v, v])
    return v.sum()


@row(
    "variable from a loop that surely runs",
    (1.5, XS),
    hand=lambda x, xs: weft.fori_loop(0, 3, lambda i, _: wnp.asarray(xs)[i] * x, 0.0),
    same=False,
)
def _(x, xs):
    for i in range(3):
        last = xs[i] * x
    return last


@row(
    "variable from a loop that may not run",
    (1.5, 3),
    hand=lambda x, n: weft.fori_loop(0, n, lambda i, _: x * i, None),
    errors=(None, (UnboundLocalError, "'last' is read"), (TypeError, "structure")),
)
def _(x, n):
    for i in range(n):
        last = x * i
    return last


@row("annotation without a value", 1.5, -1.5, hand=lambda x: weft.cond(x > 0, lambda: x * 2, lambda: x * 3))
def _(x):
    if x > 0:
        z: float
        z = x * 2
    else:
        z: float = x * 3
    return z


@row(
    "variable first assigned before the `break` of `while True`",
    1.5,
    9.0,
    hand=lambda x: (lambda c: c[1])(
        weft.while_loop(
            lambda c: ~c[2],
            lambda c: (lambda y: (y, weft.cond(y > 20, lambda: y + 1, lambda: c[1]), y > 20))(c[0] * 2),
            (x, 0.0 * x, False),
        )
    ),
    same=False,
)
def _(x):
    y = x
    while True:
        y = y * 2
        if y > 20:
            r = y + 1
            break
    return r


class Box:
    def __init__(self):
        self.value = 1.0
        self.items = []

    def grow(self, by):
        self.value = self.value * by

    def put(self, item):
        self.items.append(item)

    @property
    def size(self):
        return self.value if self.value > 0 else -self.value


@row(
    "attributes, items of lists and dicts",
    (1.5, 3),
    hand=lambda x, n: (lambda c: c[0] + c[1] + c[2])(
        weft.fori_loop(0, n, lambda i, c: (c[0] * x, c[1] + x, c[2] * 2.0), (1.0, 0.0, x))
    ),
)
def _(x, n):
    box, d, items = Box(), {"a": 0.0}, [x]
    for _ in range(n):
        box.value = box.value * x
        d["a"] += x
        items[0] = items[0] * 2.0
    return box.value + d["a"] + items[0]


@row(
    "attribute that a called method changes, in a branch",
    1.5,
    -1.5,
    hand=lambda x: weft.cond(x > 0, lambda: 1.0 * x, lambda: 1.0) * x,
)
def _(x):
    box = Box()
    if x > 0:
        box.grow(x)
    return box.value * x


@row(
    "attribute that a called method changes, in a loop",
    (1.5, 3),
    hand=lambda x, n: weft.fori_loop(0, n, lambda i, v: v * x, 1.0),
)
def _(x, n):
    box = Box()
    for _ in range(n):
        box.grow(x)
    return box.value


@row(
    "list that a called method lets grow, in one branch",
    1.5,
    hand=lambda x: sum(weft.cond(x > 0, lambda: [x], list)),
    errors=(
        None,
        (StructureError, "'box.items' is a list .* A function that is called there"),
        (TypeError, "structure"),
    ),
)
def _(x):
    box = Box()
    if x > 0:
        box.put(x)
    return sum(box.items)


@row(
    "iterator from outside, gone through in a branch",
    1.5,
    hand=lambda x: weft.cond(x > 0, lambda: x * 2.0, lambda: x),
    errors=converted(StructureError, "iterator from outside"),
)
def _(x):
    items = iter([2.0])
    if x > 0:
        x = x * next(items)
    return x


@row("list that grows, known length (unrolled)", 1.5, hand=lambda x: sum([x * 0, x * 1, x * 2]))
def _(x):
    ys = []
    for i in range(3):
        ys.append(x * i)
    return sum(ys)


@row(
    "list that grows, traced length",
    (1.5, 3),
    hand=lambda x, n: weft.fori_loop(0, n, lambda i, ys: [*ys, x * i], [])[0],
    errors=(None, (StructureError, "structure"), (TypeError, "structure")),
)
def _(x, n):
    ys = []
    for i in range(n):
        ys.append(x * i)
    return sum(ys)


# --- Functions --------------------------------------------------------------------------------------------------------


def helper(x):
    if x > 0:
        return x * x
    return -x


@row(
    "function that is called",
    2.0,
    -2.0,
    hand=lambda x: weft.cond(x > 0, lambda: x * x, lambda: -x) + 1,
)
def _(x):
    return helper(x) + 1


@row(
    "nested function, `nonlocal`",
    1.5,
    hand=lambda x: weft.fori_loop(0, 3, lambda i, t: t + x * i, x),
)
def _(x):
    total = x

    def add(by):
        nonlocal total
        total = total + x * by

    for i in range(3):
        add(i)
    return total


@row(
    "lambda with a condition",
    2.0,
    -2.0,
    hand=lambda x: weft.cond(x > 0, lambda: x * 2, lambda: x) + 1,
)
def _(x):
    relu = lambda v: v * 2 if v > 0 else v
    return relu(x) + 1


def power(x, n):
    if n < 1:
        return x
    return x * power(x, n - 1)


@row(
    "recursion that a traced value ends",
    (1.5, 3),
    hand=lambda x, n: weft.fori_loop(0, n, lambda i, y: x * y, x),
    errors=converted(RecursionError, "'power' seems to call itself"),
)
def _(x, n):
    return power(x, n)


@row("comprehension over a range", 1.5, hand=lambda x: sum([x * 0, x * 1, x * 2]))
def _(x):
    return sum([x * i for i in range(3)])


@row(
    "comprehension with a traced condition",
    1.5,
    hand=lambda x: sum(wnp.where(x > i, x * i, 0.0) for i in range(3)),
    errors=converted(ConversionError, "length of a comprehension"),
)
def _(x):
    return sum([x * i for i in range(3) if x > i])


@row(
    "property with a traced condition",
    1.5,
    hand=lambda x: weft.cond(x > 0, lambda: x, lambda: -x),
    errors=converted(weft.TracerError, "bool"),
)
def _(x):
    box = Box()
    box.value = x
    return box.size


def halves(x):
    while x > 1:
        x = x / 2
        yield x


@row(
    "generator with a traced condition",
    5.0,
    hand=lambda x: weft.while_loop(lambda c: c[0] > 1, lambda c: (c[0] / 2, c[1] + c[0] / 2), (x, 0.0))[1],
    errors=converted(weft.TracerError, "bool"),
)
def _(x):
    return sum(halves(x))


async def later(x):
    return x * 2


@row("`async` function, run by Python", 2.0, hand=lambda x: x * 2)
def _(x):
    return asyncio.run(later(x))


# --- Statements that stay Python's ------------------------------------------------------------------------------------


@row("`with`", 2.0, -2.0, hand=lambda x: weft.cond(x > 0, lambda: x * x, lambda: -x * 2), same=False)
def _(x):
    with contextlib.nullcontext():
        if x > 0:
            return x * x
        y = -x
    return y * 2


@row(
    "`try` around a traced condition",
    2.0,
    hand=lambda x: weft.cond(x > 0, lambda: x * x, lambda: x),
    errors=converted(ConversionError, "try/except"),
)
def _(x):
    try:
        if x > 0:
            x = x * x
    except ValueError:
        pass
    return x


@row(
    "`raise` under a traced condition",
    2.0,
    hand=lambda x: (weft.debug.check(x > 0, "positive"), x * x)[1],
    errors=converted(ConversionError, "`raise`"),
)
def _(x):
    if x < 0:
        raise ValueError("negative")
    return x * x


@row(
    "`del` under a traced condition",
    2.0,
    hand=lambda x: x * x,
    errors=converted(ConversionError, "deletes 'y'"),
)
def _(x):
    y = x
    if x > 0:
        del y
    return x * x


SEEN = 0.0


@row(
    "`global` written under a traced condition",
    2.0,
    hand=lambda x: x * x,
    errors=converted(ConversionError, "global 'SEEN'"),
)
def _(x):
    global SEEN
    if x > 0:
        SEEN = x
    return x * x


@row("`assert` that holds", 2.0, hand=lambda x: (weft.debug.check(x > 0, "positive"), x * x)[1], same=False)
def _(x):
    assert x > 0, "positive"
    return x * x


@row(
    "`assert` that fails",
    -2.0,
    hand=lambda x: (weft.debug.check(x > 0, "not positive"), x * x)[1],
    errors=((AssertionError, "not positive"), (RuntimeError, "not positive"), (RuntimeError, "not positive")),
)
def _(x):
    assert x > 0, "not positive"
    return x * x


@row("`print`", 2.0, hand=lambda x: (weft.debug.print("x = {}", x), x * x)[1])
def _(x):
    print("x =", x)
    return x * x


# --- The cells --------------------------------------------------------------------------------------------------------

COLUMNS = ("traced on its numbers", "converted", "by hand")


def _static(args):
    return tuple(i for i, a in enumerate(args) if isinstance(a, str))


def _leaves(args):
    return [np.asarray(a) if isinstance(a, float) else a for a in args]


def outcomes(r: Row, column: int, args):
    """What the cell's ways of computing give: pairs of value and gradient."""
    function = (r.python, weft.autograph(r.python), r.hand)[column]
    if static := _static(args):
        (k,) = static
        inner, value = function, args[k]
        function = lambda *rest: inner(*rest[:k], value, *rest[k:])
        args = tuple(a for i, a in enumerate(args) if i != k)
    ways = [weft.value_and_grad(function)]
    if column:
        ways.append(weft.jit(weft.value_and_grad(function)))
    for way in ways:
        yield way(*_leaves(args))


def expected(r: Row, args):
    """The value, and the slope by central differences in f64 with Richardson's correction."""
    f = lambda x: float(r.python(x, *args[1:]))
    slopes = [(f(args[0] + h) - f(args[0] - h)) / (2 * h) for h in (1e-4, 2e-4)]
    return f(args[0]), (4 * slopes[0] - slopes[1]) / 3


def _reverse_through_while() -> bool:
    try:
        return float(weft.grad(lambda x: weft.while_loop(lambda c: c < 10, lambda c: c * 2, x))(1.0)) == 16
    except weft.DerivativeError:
        return False


REVERSE_THROUGH_WHILE = _reverse_through_while()


@pytest.mark.parametrize("column", range(3), ids=("concrete", "converted", "by_hand"))
@pytest.mark.parametrize("r", ROWS, ids=lambda r: r.construct.replace("`", ""))
def test_cell(r: Row, column: int):
    error = r.errors[column]
    for args in r.args:
        if error is not None:
            kind, words = error
            with pytest.raises(kind, match=words):
                list(outcomes(r, column, args))
            continue
        value, slope = expected(r, args)
        function = (r.python, weft.autograph(r.python), r.hand)[column]
        np.testing.assert_allclose(float(function(*_leaves(args))), value, rtol=1e-5, err_msg=str(args))
        try:
            results = list(outcomes(r, column, args))
        except weft.DerivativeError as lacking:
            if REVERSE_THROUGH_WHILE or "while" not in str(lacking):
                raise
            pytest.xfail("reverse mode through while")
        for got, gradient in results:
            np.testing.assert_allclose(float(got), value, rtol=1e-5, err_msg=str(args))
            np.testing.assert_allclose(float(gradient), slope, rtol=1e-4, atol=1e-6, err_msg=str(args))


@pytest.mark.parametrize(
    "r", [r for r in ROWS if r.same and not any(r.errors)], ids=lambda r: r.construct.replace("`", "")
)
def test_converted_and_by_hand_are_one_program(r: Row):
    args = r.args[0]
    static = _static(args) or None
    ir = weft.make_ir(weft.autograph(r.python), static_argnums=static)(*_leaves(args))
    assert ir == weft.make_ir(r.hand, static_argnums=static)(*_leaves(args)), ir


def table() -> str:
    lines = ["| construct | " + " | ".join(COLUMNS) + " | one IR |", "|---|---|---|---|---|"]
    for r in ROWS:
        cells = []
        for error in r.errors:
            cells.append("value, gradient" if error is None else f"`{error[0].__name__}`")
        one = "" if any(r.errors) else "yes" if r.same else "no"
        lines.append(f"| {r.construct} | {' | '.join(cells)} | {one} |")
    return "\n".join(lines) + "\n"


def test_table(request):
    text = DOCUMENT.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    now, after = rest.split(END)
    if os.environ.get("WEFT_WRITE_TABLE"):
        source = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", ".")) / DOCUMENT
        source.write_text(before + BEGIN + table() + END + after, encoding="utf-8")
        return
    assert now == table(), "WEFT_WRITE_TABLE=1 ./bazelw run //python:control_flow_matrix_test"
