"""Programs for control_flow_matrix_test.py: each construct of Python's control flow as a function, the same by hand,
and what is expected of it traced on its numbers, converted, and by hand. Here branches and loops."""

import dataclasses
from collections.abc import Callable

import numpy as np

import weft
import weft.numpy as wnp
from weft.autograph import ConversionError, StructureError


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
    errors=(None, (UnboundLocalError, "'y' is read"), (TypeError, "returns")),
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
    errors=(None, (StructureError, "'y' is a tuple"), (TypeError, "returns")),
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
