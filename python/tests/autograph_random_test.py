"""Random programs full of control flow: the converted function gives what Python gives, and so does its derivative.

40 programs run as a test. More, from another seed on:

    ./bazelw run //python -- python/tests/autograph_random_test.py 1000 500
"""

import linecache
import random
import sys

import numpy as np
import pytest

import weft

ARGUMENTS = [(1.0, 2.0, 3), (-2.0, 4.0, 0), (5.0, -3.0, 5)]


class Program:
    """The source of f(a, b, n), floats and an integer, made of assignments, branches, loops and jumps."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.loops = 0
        self.emit(0, "def f(a, b, n):")
        for line in [
            "a, b, c, t0 = a * 1.0, b * 1.0, a * b, 0.0",
            "d = {'x': a}",
            "total = 0.0",
            "def add(v):",
            "    nonlocal total",
            "    total = total + v",
            "class Box:",
            "    def __init__(self): self.n, self.ys = a, [a, b]",
            "    def add(self, v):",
            "        if v > 0: self.n = self.n + v",
            "        else: self.ys[0] = self.ys[0] - v",
            "    def swap(self): self.ys.reverse()",
            "box = Box()",
        ]:
            self.emit(1, line)
        self.block(1, ["a", "b", "c", "t0", "n"], depth=3, in_loop=False)
        self.emit(1, "return (a + b + c + t0 + d['x'] + total + box.n + 2 * box.ys[0] - box.ys[1]) * 1.0")
        self.source = "\n".join(self.lines) + "\n"
        self.name = f"<program {seed}>"

    def function(self):
        linecache.cache[self.name] = len(self.source), None, self.source.splitlines(True), self.name
        namespace: dict = {}
        exec(compile(self.source, self.name, "exec"), namespace)
        return namespace["f"]

    def emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def value(self, names):
        return self.random.choice([*names, str(self.random.randint(-3, 3))])

    def expression(self, names) -> str:
        kind = self.random.random()
        if kind < 0.35:
            return self.value(names)
        if kind < 0.8:
            return f"({self.value(names)} {self.random.choice('+-')} {self.value(names)})"
        if kind < 0.9:
            return f"({self.value(names)} if {self.condition(names)} else {self.value(names)})"
        return f"({self.value(names)} * {self.random.randint(-2, 2)})"

    def condition(self, names) -> str:
        pick = lambda: self.random.choice(names)
        number = self.random.randint
        plain = f"{pick()} {self.random.choice(['<', '>', '<=', '==', '!='])} {number(-6, 9)}"
        return self.random.choice(
            [plain] * 6
            + [
                f"({plain} and {pick()} > {number(-5, 5)})",
                f"({plain} or {pick()} < {number(-5, 5)})",
                f"not ({plain})",
                f"{number(-5, 0)} < {pick()} < {number(0, 9)}",
                f"{pick()} {self.random.choice(['in', 'not in'])} ({number(-5, 5)}, {pick()}, {number(-5, 5)})",
                f"({plain} or {pick()})",
                f"max({pick()}, {pick()}) > {number(-5, 5)}",
            ]
        )

    def block(self, at: int, names, depth: int, in_loop: bool) -> None:
        names = list(names)
        choose = self.random.choice
        for _ in range(self.random.randint(1, 4)):
            kind = self.random.random()
            if kind < 0.4 or depth == 0:
                target = choose(["a", "b", "c", "t0", "t1", "t2"])
                if kind < 0.1 and target in names:
                    self.emit(at, f"{target} {choose('+-')}= {self.expression(names)}")
                elif kind < 0.15 and target != "a":
                    self.emit(at, f"{target}, a = {self.expression(names)}, {self.expression(names)}")
                else:
                    self.emit(at, f"{target} = {self.expression(names)}")
                if target not in names:
                    names.append(target)
            elif kind < 0.65:
                self.branch(at, "if", names, depth, in_loop)
                if self.random.random() < 0.3:
                    self.branch(at, "elif", names, depth, in_loop)
                if self.random.random() < 0.5:
                    self.emit(at, "else:")
                    self.block(at + 1, names, depth - 1, in_loop)
            elif kind < 0.86:
                self.loop(at, names, depth, in_loop)
            elif kind < 0.92 and in_loop:
                self.emit(at, f"if {self.condition(names)}:")
                self.emit(at + 1, choose(["break", "continue"]))
            elif kind < 0.95:
                self.emit(at, f"if {self.condition(names)}:")
                self.emit(at + 1, f"return {self.expression(names)} * 1.0")
            elif kind < 0.97:
                self.emit(at, f"d['x'] = {self.expression(names)} * 1.0")
            elif kind < 0.985:
                self.emit(at, f"add({self.expression(names)})")
            else:
                self.emit(at, choose([f"box.add({self.expression(names)})", "box.swap()"]))

    def branch(self, at: int, word: str, names, depth: int, in_loop: bool) -> None:
        self.emit(at, f"{word} {self.condition(names)}:")
        self.block(at + 1, names, depth - 1, in_loop)

    def loop(self, at: int, names, depth: int, in_loop: bool) -> None:
        i = f"i{self.loops}"
        self.loops += 1
        if self.random.random() < 0.6:
            self.emit(at, f"for {i} in range({self.random.choice(['4', 'n', 'n + 1', '1, 6, 2', 'n, 0, -1'])}):")
        else:
            also = f" and {self.condition(names)}" if self.random.random() < 0.4 else ""
            self.emit(at, f"{i} = 0")
            self.emit(at, f"while {i} < {self.random.choice(['4', 'n', 'n + 2'])}{also}:")
            self.emit(at + 1, f"{i} += 1")
        self.block(at + 1, [*names, i], depth - 1, True)
        if self.random.random() < 0.3:
            self.emit(at, "else:")
            self.block(at + 1, names, depth - 1, in_loop)


def check(seed: int) -> None:
    program = Program(seed)
    f = program.function()
    converted, compiled = weft.autograph(f), weft.jit(f, autograph=True)
    slope_converted = weft.jit(lambda a, b, n: weft.jvp(lambda a, b: converted(a, b, n), (a, b), (1.0, 0.5))[1])
    for a, b, n in ARGUMENTS:
        want = f(a, b, n)
        assert repr(converted(a, b, n)) == repr(want), program.source
        if abs(want) > 1e6:  # beyond what f32 holds
            continue
        np.testing.assert_allclose(float(compiled(a, b, n)), want, 1e-4, 1e-4, err_msg=program.source)
        # The path that Python takes, differentiated without conversion.
        slope = weft.jvp(lambda a, b: f(a, b, n), (a, b), (1.0, 0.5))[1]  # noqa: B023
        np.testing.assert_allclose(float(slope_converted(a, b, n)), float(slope), 1e-4, 1e-4, err_msg=program.source)


@pytest.mark.parametrize("seed", range(40))
def test_random_program(seed):
    check(seed)


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:])
    for k in range(first, first + count):
        check(k)
    print(f"{count} programs, all agree")
