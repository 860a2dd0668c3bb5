"""From source to program (S2-18): the syntax tree, what is known of each variable, names in single assignment, control
flow as functions, types, the program. And what becomes of a construct that has no place in one (S2-20).

./bazelw run //examples:s2_18_script
"""

import warnings

import numpy as np

import weft
import weft.numpy as wnp


@weft.script
def foo1(x, y):
    if x < y:
        s = x + y
    else:
        s = wnp.square(y)
    return s


@weft.script
def foo2(s):
    for i in range(10):
        s += i
    return s


print(foo1.stages(1.0, 2.0))
for name in ("ssa", "types", "ir"):
    print(f"foo2, {name}:", foo2.stage(name, 0.5), sep="\n")
assert foo1(1.0, 2.0) == 3 and foo1(3.0, 2.0) == 4 and foo2(0.5) == 45.5
assert "cond" in foo1.stage("ir", 1.0, 2.0) and "scan" in foo2.stage("ir", 0.5)
assert "s.2 = phi(s.1, s.2) + i.1" in foo2.stage("ssa")
assert "after it s: f16[]" in foo1.stage("types", np.float16(1), np.float16(2))  # of other arguments, other types


# A handler around a traced condition: exceptions are raised while tracing, not while the program runs. Python runs it.
@weft.script
def guarded(x):
    try:
        if x < 0:
            raise ValueError("negative")
        return wnp.sqrt(x)
    except ValueError:
        return x


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert [guarded(4.0), guarded(-1.0), guarded(9.0)] == [2, -1, 3]
print(*(warning.message for warning in caught))
(fallback,) = guarded.explain("fallbacks")
print(fallback)
assert len(caught) == 1 and fallback["calls"] == 3
try:
    weft.script(guarded.__wrapped__, strict=True)(4.0)
except weft.autograph.ConversionError as error:
    print("strict:", error)
else:
    raise AssertionError("it was converted")
