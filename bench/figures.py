"""The figures Weft is held to, beside JAX in the same run.

    ./bazelw run //bench:figures                       # print the table
    ./bazelw run //bench:figures -- --write            # and put it into docs/benchmarks.md
    ./bazelw run //bench:figures -- --only=call,softmax

Each figure is measured for both, one after the other in turns, and the median of the ratios of neighbouring
measurements is what counts: what else the machine does falls on both. Measurements that need a fresh process (import,
first result, compilation, memory) start one for each. JAX runs without a compilation cache of its own, as installed;
in these processes Weft's disk cache is off too.
"""

from __future__ import annotations

import argparse
import atexit
import functools
import importlib.metadata
import importlib.util
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time

HERE = pathlib.Path(__file__).resolve().parent


# Of ours and of theirs, and the ratio.
Measured = tuple[float, float, float]


def interleaved(ours, theirs, repeats: int, inner: int = 1) -> Measured:
    """Median seconds of ours and of theirs, and the median of their ratios."""
    ours(), theirs()
    a, b = [], []
    for _ in range(repeats):
        for run, times in ((ours, a), (theirs, b)):
            begin = time.perf_counter()
            for _ in range(inner):
                run()
            times.append((time.perf_counter() - begin) / inner)
    return statistics.median(a), statistics.median(b), statistics.median(x / y for x, y in zip(a, b))


def measured_on() -> str:
    """What stands above a table: the machine and the peer."""
    facts = pathlib.Path("/proc/cpuinfo").read_text()
    models = (line.split(":")[1].strip() for line in facts.splitlines() if line.startswith("model name"))
    machine = f"{os.cpu_count()} cores ({next(models, platform.processor())}, "
    machine += "AVX-512)" if "avx512f" in facts else "AVX2)"
    return f"Measured on {machine}, beside JAX {importlib.metadata.version('jax')}.\n\n"


def with_section(page: str, name: str, text: str) -> str:
    """The page with what stands between the marks of section `name` replaced."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, rest = page.split(begin)
    return before + begin + "\n" + text + "\n" + end + rest.split(end)[1]


# --- Programs that both run: `np` is the library's numpy, `lib` the library ---

PROGRAMS = textwrap.dedent("""
    import numpy

    def chain20(np):
        def f(x):  # 5 times 4 operations
            for i in range(5):
                x = np.sqrt(np.abs(x * 0.99 + 0.01 * (i + 1)))
            return x
        return f

    def softmax(np):
        def f(x):
            e = np.exp(x - x.max(axis=1, keepdims=True))
            return e / e.sum(axis=1, keepdims=True)
        return f
""")

WEFT = "import weft as lib, weft.numpy as np\n"
JAX = "import jax as lib, jax.numpy as np\n"


@functools.cache
def _bytecode() -> str:
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return folder.name


def fresh(library: str, body: str, **env: str) -> dict:
    """Runs `body` in a new process after the library's imports; it assigns `result`."""
    script = (
        PROGRAMS
        + "\nimport time\nbegin = time.perf_counter()\n"
        + library
        + textwrap.dedent(body)
        + "\nimport json\nprint('RESULT', json.dumps(result))\n"
    )
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "WEFT_CACHE_DIR": "off",
        "PYTHONPATH": os.pathsep.join(sys.path),
        # Both have their modules as bytecode, as they have when installed, whatever the environment says.
        "PYTHONPYCACHEPREFIX": _bytecode(),
        **env,
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line[7:])
    raise RuntimeError(f"the measured process failed:\n{done.stderr[-3000:]}")


def fresh_ratios(body: str, repeats: int) -> dict[str, Measured]:
    """What processes of ours and of theirs assign to `result`, by its keys."""
    fresh(WEFT, body), fresh(JAX, body)  # writes the bytecode
    pairs = [(fresh(WEFT, body), fresh(JAX, body)) for _ in range(repeats)]
    measured = {}
    for key in pairs[0][0]:
        a, b = [ours[key] for ours, _ in pairs], [theirs[key] for _, theirs in pairs]
        measured[key] = (statistics.median(a), statistics.median(b), statistics.median(x / y for x, y in zip(a, b)))
    return measured


def first_result() -> dict[str, Measured]:
    return fresh_ratios(
        """
        imported = time.perf_counter()
        x = numpy.ones(3, numpy.float32)
        float(lib.jit(lambda x: (x * 2 + 1).sum())(x))
        end = time.perf_counter()
        result = {"whole": end - begin, "import": imported - begin, "first result": end - imported}
    """,
        7,
    )


def compile_digits() -> dict[str, Measured]:
    return fresh_ratios(
        """
        import digits_program
        digits = digits_program.of(lib, np)
        state, images, labels = digits_program.arguments(digits)
        lib.jit(lambda x: x + 1)(images)   # what every process pays once is in the line above

        def step(*arguments):
            global traced
            results = digits.step(*arguments)
            traced = time.perf_counter()
            return results

        step = lib.jit(step)
        begin = time.perf_counter()
        numpy.asarray(step(state, images, labels)[1])
        end = time.perf_counter()
        result = {"whole": end - begin, "trace": traced - begin, "compile": end - traced}
    """,
        5,
    )


def compile_programs() -> Measured:
    """Trace, compilation and first run of the gradient of each program of bench/programs.py, in a process of its own.

    Geometric means over the programs, of the median times and of the median ratios.
    """
    import programs

    measured = []
    for program in programs.PROGRAMS:
        body = f"""
            import programs
            lib.jit(lambda x: x + 1)(numpy.ones(3, numpy.float32))  # what every process pays once
            function, arguments = programs.{program.__name__}(lib, np)
            gradient = lib.jit(lib.grad(function))
            begin = time.perf_counter()
            for leaf in lib.tree_util.tree_leaves(gradient(*arguments)):
                numpy.asarray(leaf)
            result = {{"whole": time.perf_counter() - begin}}
        """
        measured.append(fresh_ratios(body, 3)["whole"])
        print(f"    {program.__name__}: {measured[-1][2]:.3f}", flush=True)
    ours, theirs, ratio = (statistics.geometric_mean(column) for column in zip(*measured))
    return ours, theirs, ratio


def alone(body: str, repeats: int) -> Measured:
    """Median seconds of ours in processes of its own, without the peer: it would take minutes, or not end."""
    ours = statistics.median(fresh(WEFT, body)["whole"] for _ in range(repeats))
    return ours, math.nan, math.nan


def blocks() -> Measured:
    """Trace, compilation and first run of a chain of 250 blocks, each of which reduces what the one before made."""
    return alone(
        """
        lib.jit(lambda x: x + 1)(numpy.ones(3, numpy.float32))  # what every process pays once

        def chain(x):
            for _ in range(250):
                y = np.tanh(x) * 0.5
                x = y + np.sum(y, axis=1, keepdims=True)
            return x

        x = numpy.ones((64, 64), numpy.float32)
        begin = time.perf_counter()
        numpy.asarray(lib.jit(chain)(x))
        result = {"whole": time.perf_counter() - begin}
    """,
        5,
    )


def shared_functions() -> Measured:
    """The IR of the gradient of 17 jitted functions, each of which calls the next twice: 2^17 calls, if inlined."""
    return alone(
        """
        lib.jit(lambda x: x + 1)(numpy.ones(3, numpy.float32))  # what every process pays once

        def calling(f):
            return lib.jit(lambda x: f(x) * 0.5 + f(np.sin(x)))

        f = lib.jit(lambda x: np.tanh(x) * x)
        for _ in range(17):
            f = calling(f)
        x = numpy.float32(0.3)
        begin = time.perf_counter()
        lib.make_ir(lib.grad(f))(x)
        result = {"whole": time.perf_counter() - begin}
    """,
        5,
    )


def new_number() -> Measured:
    """A program that differs from others in a number only."""
    import itertools

    import numpy

    jax, jnp, weft, wnp, _ = both()
    x, y = wnp.asarray(numpy.ones(1000, numpy.float32)), jnp.ones(1000)
    numbers = (0.1 + 0.001 * i for i in itertools.count())

    def ours():
        c = next(numbers)
        weft.jit(lambda x: wnp.sin(x) * c + x)(x)

    def theirs():
        c = next(numbers)
        jax.jit(lambda x: jnp.sin(x) * c + x)(y).block_until_ready()

    return interleaved(ours, theirs, 21)


def memory() -> dict[str, Measured]:
    return fresh_ratios(
        """
        import digits_program
        digits = digits_program.of(lib, np)
        state, images, labels = digits_program.arguments(digits)
        step = lib.jit(digits.step)
        for _ in range(200):
            state, value = step(state, images, labels)
        numpy.asarray(value)
        status = open("/proc/self/status").read()   # ru_maxrss would count the process that started this one
        result = {"whole": int(status.split("VmHWM:")[1].split()[0]) / 1024}
    """,
        3,
    )


def both():
    import jax
    import jax.numpy as jnp

    import weft
    import weft.numpy as wnp

    scope: dict = {}
    exec(PROGRAMS, scope)  # noqa: S102: the same text runs in fresh processes
    return jax, jnp, weft, wnp, scope


def call() -> Measured:
    import numpy

    jax, jnp, weft, wnp, _ = both()
    f, g = weft.jit(lambda x, y: x + y), jax.jit(lambda x, y: x + y)
    x, y = wnp.asarray(numpy.ones(4, numpy.float32)), wnp.asarray(numpy.ones(4, numpy.float32))
    u, v = jnp.ones(4), jnp.ones(4)
    return interleaved(lambda: f(x, y), lambda: g(u, v), 31, inner=2000)


def trace_op() -> Measured:
    """Seconds for one traced element-wise operation: 2,000 of them, less what tracing nothing takes.

    Each function is new, since JAX remembers the traces of those it has seen.
    """
    import numpy

    jax, _, weft, _, _ = both()
    x = numpy.ones(4, numpy.float32)

    def chain(v):
        for _ in range(1000):
            v = v * v
            v = v + v
        return v

    def nothing(v):
        return v

    a = interleaved(lambda: weft.make_ir(lambda v: chain(v))(x), lambda: jax.make_jaxpr(lambda v: chain(v))(x), 15)
    b = interleaved(lambda: weft.make_ir(lambda v: nothing(v))(x), lambda: jax.make_jaxpr(lambda v: nothing(v))(x), 15)
    ours, theirs = (a[0] - b[0]) / 2000, (a[1] - b[1]) / 2000
    return ours, theirs, ours / theirs


def step_time() -> Measured:
    import digits_program

    jax, jnp, weft, wnp, _ = both()
    ours_of, theirs_of = digits_program.of(weft, wnp), digits_program.of(jax, jnp)
    f, g = weft.jit(ours_of.step), jax.jit(theirs_of.step)
    _, images, labels = digits_program.arguments(ours_of)
    holder = {"f": f(*digits_program.arguments(ours_of))[0], "g": g(*digits_program.arguments(theirs_of))[0]}
    wi, wy, ji, jy = wnp.asarray(images), wnp.asarray(labels), jnp.asarray(images), jnp.asarray(labels)

    def ours():
        holder["f"], value = f(holder["f"], wi, wy)
        return value

    def theirs():
        holder["g"], value = g(holder["g"], ji, jy)
        return value.block_until_ready()

    return interleaved(ours, theirs, 31, inner=100)


def array_program(name: str, shape: tuple, repeats: int, inner: int = 1) -> Measured:
    import numpy

    jax, jnp, weft, wnp, scope = both()
    x = numpy.random.default_rng(0).standard_normal(shape).astype(numpy.float32)
    f, g = weft.jit(scope[name](wnp)), jax.jit(scope[name](jnp))
    wx, jx = wnp.asarray(x), jnp.asarray(x)
    numpy.testing.assert_allclose(numpy.asarray(f(wx)), numpy.asarray(g(jx)), rtol=2e-4, atol=1e-6)
    return interleaved(lambda: f(wx), lambda: g(jx).block_until_ready(), repeats, inner)


# --- Array operations beside NumPy and PyTorch, too, where they are installed ---


def operations() -> dict:
    """name: (program of (np, lib, *arrays), arrays); the programs use what NumPy, JAX and PyTorch spell alike."""
    import numpy

    rng = numpy.random.default_rng(0)

    def f32(*shape):
        return rng.standard_normal(shape).astype(numpy.float32)

    def update(np, x, i, u):
        if hasattr(x, "at"):
            return x.at[i].add(u)
        if hasattr(x, "index_add"):
            return x.index_add(0, i, u)
        x = x.copy()
        np.add.at(x, i, u)
        return x

    places = rng.integers(0, 100_000, 1_000_000).astype(numpy.int32)
    return {
        "sum of 10⁷": (lambda np, x: x.sum(), [f32(10_000_000)]),
        "sum of squares of 10⁷": (lambda np, x: (x * x).sum(), [f32(10_000_000)]),
        "argmax of 10⁷": (lambda np, x: x.argmax() if np is numpy else np.argmax(x), [f32(10_000_000)]),
        "sums of the columns of 10⁵ × 64": (lambda np, x: x.sum(0), [f32(100_000, 64)]),
        "sums of the rows of 4096 × 1024": (lambda np, x: x.sum(1), [f32(4096, 1024)]),
        "x.T + x of 2048 × 2048": (lambda np, x: x.T + x, [f32(2048, 2048)]),
        "x * 2 + 1 of 10⁷": (lambda np, x: x * 2 + 1, [f32(10_000_000)]),
        "exp of 10⁶": (lambda np, x: np.exp(x), [f32(1_000_000)]),
        "softmax of 1024 × 1024": (
            lambda np, x: (
                (lambda e: e / e.sum(1, keepdims=True))(np.exp(x - x.max(1, keepdims=True)))
                if np.__name__ != "torch"
                else np.softmax(x, 1)
            ),
            [f32(1024, 1024)],
        ),
        "product of 512 × 512": (lambda np, x, y: x @ y, [f32(512, 512), f32(512, 512)]),
        "65536 rows of 64 of 65536": (lambda np, x, i: x[i], [f32(65536, 64), rng.integers(0, 65536, 65536)]),
        "10⁶ additions to places of 10⁵": (update, [f32(100_000), places, f32(1_000_000)]),
    }


def table_of_operations() -> list[str]:
    import numpy

    jax, jnp, weft, wnp, _ = both()
    try:
        import torch  # type: ignore[import-not-found]
    except ImportError:
        torch = None
    others = ["JAX", "NumPy"] + (["PyTorch"] if torch else [])
    rows = ["| operation | Weft | " + " | ".join(f"{o}: time, ratio" for o in others) + " |"]
    rows.append("|---|---|" + "---|" * len(others))
    for name, (program, arrays) in operations().items():

        def call(program, np, jit, values, wait=lambda x: x):
            run = jit(functools.partial(program, np))
            return lambda: wait(run(*values))

        calls = [
            call(program, wnp, weft.jit, [wnp.array(a) for a in arrays]),
            call(program, jnp, jax.jit, [jnp.asarray(a) for a in arrays], lambda x: x.block_until_ready()),
            call(program, numpy, lambda f: f, arrays),
        ]
        if torch:
            calls.append(call(program, torch, lambda f: f, [torch.from_numpy(a) for a in arrays]))
        want = numpy.asarray(calls[2]())
        for other in calls:
            numpy.testing.assert_allclose(numpy.asarray(other()), want, rtol=1e-3, atol=1e-2)
            other()
        times: list[list[float]] = [[] for _ in calls]
        for _ in range(31):
            for run, into in zip(calls, times):
                begin = time.perf_counter()
                run()
                into.append(time.perf_counter() - begin)
        cells = [f"{statistics.median(times[0]) * 1e3:.3g} ms"]
        for other_times in times[1:]:
            ratio = statistics.median(a / b for a, b in zip(times[0], other_times))
            cells.append(f"{statistics.median(other_times) * 1e3:.3g} ms, {ratio:.2f}")
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
        print(rows[-1], flush=True)
    return rows


FIGURES = {
    # name: what, measurement, unit, scale, the bound on the ratio or on our own value
    "import": ("import and first jitted result, new process", first_result, "ms", 1e3, "ratio ≤ 0.35"),
    "compile": ("trace + compile of the digits training step", compile_digits, "ms", 1e3, "ratio ≤ 0.25"),
    "programs": ("trace + compile of ten gradients, geometric mean", compile_programs, "ms", 1e3, "ratio ≤ 0.12"),
    "blocks": (
        "trace + compile of a chain of 250 blocks [tanh, *, row sum, +] of 64 × 64",
        blocks,
        "ms",
        1e3,
        "≤ 500 ms",
    ),
    "shared": ("gradient of 17 functions, each calling the next twice", shared_functions, "ms", 1e3, "≤ 100 ms"),
    "number": ("jit of sin(x) * c + x and its call, new c each time", new_number, "ms", 1e3, "≤ 2.5 ms"),
    "call": ("call of a compiled function of 2 small arrays", call, "µs", 1e6, "≤ 1.5 µs"),
    "trace": ("one traced element-wise operation", trace_op, "µs", 1e6, "≤ 1.5 µs"),
    "step": ("digits training step, batch 32", step_time, "µs", 1e6, "ratio ≤ 0.9"),
    "memory": ("peak memory of a process that trains", memory, "MiB", 1, "ratio ≤ 1"),
    "chain": (
        "20 fused element-wise operations on 10⁷ floats",
        lambda: array_program("chain20", (10_000_000,), 15),
        "ms",
        1e3,
        "ratio ≤ 0.9",
    ),
    "softmax": (
        "softmax of 1024 × 1024",
        # Ten calls in a row: the threads of either library sleep while the other works, and waking the processor of one
        # can take a virtual machine as long as a call.
        lambda: array_program("softmax", (1024, 1024), 31, inner=10),
        "µs",
        1e6,
        "ratio ≤ 0.7",
    ),
}

# Of figures that are sums, what they are sums of: from the same processes, so these take no time of their own.
PARTS = {
    "import": {"import": "of that, the import", "first result": "and the first jitted result"},
    "compile": {
        "trace": "of that, the trace (until the traced function returns)",
        "compile": "and what follows (compilation, and the first run)",
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(FIGURES), help="names of figures, separated by commas")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    parser.add_argument("--operations", action="store_true", help="also array operations beside NumPy and PyTorch")
    options = parser.parse_args()
    if importlib.util.find_spec("jax") is None:
        sys.exit("the figures compare with JAX, which is not installed in this environment")
    rows = ["| figure | Weft | JAX | ratio | to reach |", "|---|---|---|---|---|"]
    print("\n".join(rows))
    for name in options.only.split(","):
        what, measure, unit, scale, bound = FIGURES[name]
        measured = measure()
        parts = measured if isinstance(measured, dict) else {"whole": measured}
        for part, (ours, theirs, ratio) in parts.items():
            label, limit = (what, bound) if part == "whole" else (f"– {PARTS[name][part]}", "")
            beside = "– | –" if math.isnan(theirs) else f"{theirs * scale:.3g} {unit} | {ratio:.2f}"
            rows.append(f"| {label} | {ours * scale:.3g} {unit} | {beside} | {limit} |")
            print(rows[-1], flush=True)
    more = []
    if options.operations or options.write:
        print("\nArray operations, ratio = Weft's time / theirs")
        more = table_of_operations()
    if options.write:
        target = pathlib.Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", HERE.parent)) / "docs" / "benchmarks.md"
        page = with_section(target.read_text(), "figures", measured_on() + "\n".join(rows))
        target.write_text(with_section(page, "operations", "\n".join(more)))
        print(f"wrote {target}")


if __name__ == "__main__":
    main()
