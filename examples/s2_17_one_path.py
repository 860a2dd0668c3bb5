"""The trap of tracing (S2-17): a function that runs once and is recorded keeps the path that it took, and Python's
other decisions are gone. Weft has no such silent recordings: under jit a decision on a traced value is an error, and
with capture="auto" a recording knows its decisions, finds out that they would have been others, and is not used.

./bazelw run //examples:s2_17_one_path
"""

import weft
import weft.numpy as wnp

runs = []


def f(x):
    runs.append(x)
    if x > 0:
        return x * 2
    return -x


# The trap, made by hand: what a recording of f(3.0) holds, the operations of its path and no more. It computes
# something wrong for a number for which Python would take the other path, and nothing says so.
recording = weft.make_ir(lambda x: x * 2)(3.0)
print("a recording of f(3.0):", recording, sep="\n")
assert recording(3.0) == f(3.0) and recording(-1.0) == -2 != f(-1.0)

# Weft, traced: the number is not known, and the message says what to do.
try:
    weft.jit(f)(3.0)
except weft.TracerError as error:
    print("jit:", str(error).splitlines()[0])
else:
    raise AssertionError("one path was recorded")

# Weft, recorded: Python runs once for each path, not for each call, and never is the wrong path taken.
recorded = weft.jit(f, capture="auto")
runs.clear()
for x in (3.0, 4.0, -1.0, -2.0, 5.0, -3.0, 0.0):
    assert recorded(x) == (x * 2 if x > 0 else -x)
print(recorded.explain())
assert len(runs) == 2


# The guard sees numbers that Python took out in other ways, too.
def rows(x):
    return x[: int(x[0])].sum()


guarded = weft.jit(rows, capture="auto")
for first in (1, 2, 3, 1, 2):
    assert guarded(wnp.array([first, 10, 100, 1000])) == [0, 1, 12, 113][first]
assert "Python ran 3 times" in guarded.explain()

# And converted from its source, the function is one program with both paths.
both = weft.script(f)
assert both(3.0) == 6 and both(-1.0) == 1 and "cond" in both.stage("ir", 3.0)
