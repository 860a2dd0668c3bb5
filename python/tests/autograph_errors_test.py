"""Converted Python control flow: mistakes, and constructs that are refused. Each message names the user's line."""

import os

import numpy as np
import pytest

import weft
import weft.numpy as wnp

ConversionError = weft.autograph.ConversionError
StructureError = weft.autograph.StructureError


def line_of(text):
    with open(__file__) as file:
        for number, line in enumerate(file, 1):
            if line.rstrip().endswith("# " + text):
                return f"{os.path.basename(__file__)}:{number}"
    raise AssertionError(text)


def test_variable_of_one_branch():
    def unused(x):
        if x > 0:
            y = x * 2  # noqa: F841
        return x

    assert weft.jit(unused, autograph=True)(1.0).item() == 1

    def used(x):
        if x > 0:  # one branch
            y = x * 2
        return y  # read here

    assert weft.autograph(used)(1.0) == 2.0
    with pytest.raises(UnboundLocalError, match="'y'") as info:
        weft.jit(used, autograph=True)(1.0)
    assert line_of("one branch") in str(info.value) and line_of("read here") in str(info.value)
    with pytest.raises(UnboundLocalError, match="'y'"):
        weft.autograph(used)(-1.0)

    def of_a_loop(n):
        while n > 0:  # may not run
            n = n - 1
            last = n
        last += 1  # read after
        return last

    assert weft.autograph(of_a_loop)(3) == 1
    with pytest.raises(UnboundLocalError, match="'last'") as info:
        weft.jit(of_a_loop, autograph=True)(3)
    assert line_of("may not run") in str(info.value) and line_of("read after") in str(info.value)

    def before_it_is_there(n):
        for i in range(n):
            if i > 0:
                t = t + 1  # noqa: F821  # too early
            t = i  # noqa: F841
        return n

    with pytest.raises(UnboundLocalError, match="'t'") as info:
        weft.jit(before_it_is_there, autograph=True)(3)
    assert line_of("too early") in str(info.value)


def test_branches_that_differ():
    def shapes(x):
        if x.sum() > 0:  # shapes differ
            y = x
        else:
            y = x.sum()
        return y

    with pytest.raises(TypeError, match=r"'y'.*f32\[3\].*f32\[\]|'y'.*f32\[\].*f32\[3\]") as info:
        weft.jit(shapes, autograph=True)(wnp.ones(3))
    assert line_of("shapes differ") in str(info.value)

    def structures(x):
        if x > 0:  # structures differ
            y = (x, x)
        else:
            y = x
        return y

    with pytest.raises(StructureError, match=r"'y' is a tuple of \(f32\[\], f32\[\]\) .* f32\[\]") as info:
        weft.jit(structures, autograph=True)(1.0)
    assert line_of("structures differ") in str(info.value)

    def constants(x):
        if x > 0:  # constants differ
            mode = "up"
        else:
            mode = "down"
        return {"up": x, "down": -x}[mode]

    with pytest.raises(StructureError, match=r"'mode' is 'up' on one path and 'down' on the other") as info:
        weft.jit(constants, autograph=True)(1.0)
    assert line_of("constants differ") in str(info.value)

    def nothing(x):  # noqa: RET503
        if x > 0:  # nothing on the other
            return x

    with pytest.raises(StructureError, match=r"the returned value is f32\[\] .* None") as info:
        weft.jit(nothing, autograph=True)(1.0)
    assert line_of("nothing on the other") in str(info.value)


def test_loops_that_change_types():
    def shape(x, n):
        for _ in range(n):  # shape changes
            x = wnp.concatenate([x, x])
        return x

    with pytest.raises(TypeError, match=r"`for`: carry 'x' is f32\[2\] on entry but f32\[4\]") as info:
        weft.jit(shape, autograph=True)(wnp.ones(2), 3)
    assert line_of("shape changes") in str(info.value)

    def dtype(x, n):
        total = wnp.zeros((), "int32")
        while n > 0:  # dtype changes
            total = total + x
            n = n - 1
        return total

    with pytest.raises(TypeError, match=r"`while`: carry 'total' is i32\[\] on entry but f32\[\]") as info:
        weft.jit(dtype, autograph=True)(wnp.asarray(1.0), 3)
    assert line_of("dtype changes") in str(info.value)

    def weak(x, n):
        total = wnp.zeros((), "int32")
        for _ in range(n):  # weak type changes
            total = total * 0.5
        return total

    with pytest.raises(TypeError, match=r"'total' is i32\[\] on entry but f32\[\]") as info:
        weft.jit(weak, autograph=True)(1.0, 3)
    assert line_of("weak type changes") in str(info.value)

    def structure(x, n):
        for _ in range(n):  # structure changes
            x = (x, 1)
        return x

    with pytest.raises(StructureError, match=r"'x' is f32\[\] on entry but a tuple") as info:
        weft.jit(structure, autograph=True)(1.0, 3)
    assert line_of("structure changes") in str(info.value)

    def grows(x, n):
        ys = []
        for i in range(n):  # list grows
            ys.append(x + i)
        return ys

    with pytest.raises(StructureError, match=r"'ys' is a list of \(\) on entry but a list of \(f32\[\]\)") as info:
        weft.jit(grows, autograph=True)(1.0, 3)
    assert line_of("list grows") in str(info.value)

    def constant(x, n):
        mode = "a"
        for _ in range(n):  # constant changes
            x = x * 2
            mode = "b"
        return x, mode

    with pytest.raises(StructureError, match=r"'mode' holds 'a' on entry but 'b'") as info:
        weft.jit(constant, autograph=True)(1.0, 3)
    assert line_of("constant changes") in str(info.value)


def test_numpy_arrays_are_not_assigned_to():
    def f(x, n):
        out = np.zeros(3)
        for i in range(n):  # into NumPy
            out[0] = i
        return out

    with pytest.raises(ConversionError, match="'out' is a NumPy array") as info:
        weft.jit(f, autograph=True)(1.0, 2)
    assert line_of("into NumPy") in str(info.value)


_WRITTEN = 0


def _refused():
    """Functions of (x, n) with a construct that is refused under a traced condition, and what the message says."""

    def in_try(x, n):
        try:
            if x > 0:  # refused
                x = x * 2
        except ValueError:
            pass
        return x

    def raises(x, n):
        if x < 0:  # refused
            raise ValueError("negative")
        return x

    def writes_global(x, n):
        global _WRITTEN
        while n > 0:  # refused
            _WRITTEN = n
            n = n - 1
        return x

    def deletes(x, n):
        y = x
        if x > 0:  # refused
            del y
        return x

    def reads_locals(x, n):
        if x > 0:  # refused
            x = len(sorted(locals())[-1])
        return x

    def imports(x, n):
        if x > 0:  # refused
            import math

            x = x * math.pi
        return x

    def leaves_try(x, n):
        for i in range(n):  # refused
            try:
                if i == 3:
                    break
            except ValueError:
                pass
        return x

    def assigns_inside(x, n):
        y = 0
        return x if x > 0 else (y := x) + y  # refused

    def filters(x, n):
        return sum([i for i in range(3) if x > i])  # refused

    def matches(x, n):
        match x:  # refused
            case 1:
                return x
        return -x

    def computed(x, n):
        boxes = [type("Box", (), {})()]
        if x > 0:  # refused
            boxes[0].value = x
        return x

    def comprehension_over_traced_range(x, n):
        return [i * x for i in range(n)]  # refused

    return {
        in_try: "try/except",
        raises: "`raise`",
        writes_global: "global '_WRITTEN'",
        deletes: "deletes 'y'",
        reads_locals: r"locals\(\)",
        imports: "`import`",
        leaves_try: "try/except",
        assigns_inside: "assigns 'y' with :=",
        filters: "length of a comprehension",
        matches: "`match`",
        computed: "attribute of a computed object",
        comprehension_over_traced_range: "length of this range is traced",
    }


@pytest.mark.parametrize("function", _refused(), ids=lambda f: f.__name__)
def test_refused_constructs(function):
    (message,) = [m for f, m in _refused().items() if f.__name__ == function.__name__]
    first = function.__code__.co_firstlineno
    with open(__file__) as file:
        lines = file.readlines()
    (line,) = [n for n in range(first, first + 12) if lines[n - 1].rstrip().endswith("# refused")][:1]
    with pytest.raises(ConversionError, match=message) as info:
        weft.jit(function, autograph=True)(2.0, 3)
    assert f"{os.path.basename(__file__)}:{line}" in str(info.value), str(info.value)
    # With plain numbers it is Python.
    assert weft.autograph(function)(2.0, 3) == function(2.0, 3)


def test_functions_that_cannot_be_converted():
    def generator(x):
        yield x

    async def coroutine(x):
        return x

    for function, word in [(generator, "yield"), (coroutine, "async")]:
        with pytest.raises(ConversionError, match=word) as info:
            weft.autograph(function)
        assert f"{os.path.basename(__file__)}:{function.__code__.co_firstlineno}" in str(info.value)
    # Called by others they are left as they are.
    assert weft.jit(lambda x: sum(generator(x)) + 0.0, autograph=True)(1.5).item() == 1.5
    namespace = {}
    exec("def f(x): return x", namespace)
    with pytest.raises(ConversionError, match="source of 'f' is not available"):
        weft.autograph(namespace["f"])
    with pytest.raises(TypeError, match="expected a function"):
        weft.autograph(3)


def test_recursion_under_a_traced_condition_ends():
    def endless(n):
        return 1 if n < 2 else n * endless(n - 1)

    with pytest.raises(RecursionError, match="'endless'"):
        weft.jit(endless, autograph=True)(5)
    assert weft.autograph(endless)(5) == 120
