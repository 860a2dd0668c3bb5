"""More programs for control_flow_matrix_test.py: variables, functions, and statements that stay Python's."""

import asyncio
import contextlib

import numpy as np
from control_flow_programs import ROWS, XS, both, converted, row

import weft
import weft.numpy as wnp
from weft.autograph import ConversionError, StructureError

__all__ = ["ROWS"]  # those of both files

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
    errors=(None, (UnboundLocalError, "'last' is read"), (TypeError, "returns")),
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
        (TypeError, "returns"),
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
    errors=(None, (StructureError, "structure"), (TypeError, "returns")),
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
    errors=converted(RecursionError, "'power' calls itself"),
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
