"""Runs a program and writes down all numbers that it ends with.

python run_public.py program.py found.npz                    # under JAX
python -m weft.as_jax run_public.py program.py found.npz     # on Weft

What is written: every array and number of the program's global variables, by name and place; the numbers that it
printed; its memory at the peak. Last it prints how many seconds, and seconds of the processor, that took, by which the
process ran longer than the program does.

With SAMPLED=1 in the environment it also says how much processor time went into code that is neither JAX's nor Weft's:
the imports of other libraries, the program itself, NumPy, plots.

With NUDGED=values in the environment JAX's random numbers and its grids are larger by the last bit, with
NUDGED=functions what each exponential, logarithm, sine or product of matrices gives: what then changes, any rounding
error changes.
"""

import builtins
import contextlib
import dataclasses
import functools
import io
import json
import os
import re
import runpy
import signal
import sys
import time
import traceback
import warnings

import numpy as np

# Of a larger array every n-th number is kept.
_KEPT = 200_000
# A sign behind a digit is that of an imaginary part.
_A_NUMBER = re.compile(
    r"(?:(?<![\w.])|(?<=\d)(?=[-+]))[-+]?\d+\.\d*(?:[eE][-+]?\d+)?|(?<![\w.])[-+]?\d+(?:[eE][-+]?\d+)?(?![\w.])"
)
# What a trace of a function has collected, in an order of its own: parts of solvers' states.
_OF_A_TRACE = ".fn.consts["


def _peak_memory() -> int:
    """In KiB. Not getrusage: its peak is at least that of the process that this one was forked from."""
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def _numbers(leaf) -> tuple[np.ndarray, str] | None:
    import jax

    if isinstance(leaf, jax.Array):
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
    elif not isinstance(leaf, np.ndarray | np.generic | bool | int | float | complex):
        return None
    try:
        found = np.asarray(leaf)
    except (RuntimeError, OverflowError):  # an array whose memory was given away
        return None
    if found.dtype.kind == "V" or str(found.dtype) in ("bfloat16", "float16"):
        found = found.astype(np.float32)  # a bfloat16 has the kind of a structure in NumPy
    if found.dtype.kind not in "biufc":
        return None
    shape = "x".join(map(str, found.shape))
    flat = found.ravel()
    return flat[:: max(-(-flat.size // _KEPT), 1)], f"{found.dtype}[{shape}]"


def ends_with(variables: dict) -> dict[str, tuple[np.ndarray, str]]:
    """Place -> numbers, and their type."""
    import jax

    found = {}
    for name, value in variables.items():
        if name.startswith("_") or callable(value):
            continue
        if isinstance(value, list | tuple) and len(value) > 8 and all(isinstance(x, int | float) for x in value):
            value = np.array(value, float)  # what a loop has collected is one array
        try:
            leaves = jax.tree_util.tree_flatten_with_path(value)[0]
        except (ValueError, TypeError):  # what a library registered, and cannot take apart
            continue
        for path, leaf in leaves:
            place = name + jax.tree_util.keystr(path)
            numbers = None if _OF_A_TRACE in place else _numbers(leaf)
            if numbers is not None:
                found[place] = numbers
    return found


def _nudged(make):
    import jax.numpy as jnp

    def larger(x):
        return jnp.nextafter(x, jnp.inf) if getattr(x, "dtype", None) in (jnp.float32, jnp.float64) else x

    return functools.wraps(make)(lambda *args, **kwargs: larger(make(*args, **kwargs)))


def nudge_values() -> None:
    """Every random number and every point of a grid becomes the next larger one."""
    import jax

    for module, names in ((jax.random, ("normal", "uniform")), (jax.numpy, ("linspace", "logspace", "geomspace"))):
        for name in names:
            setattr(module, name, _nudged(getattr(module, name)))


# Functions whose last bit no standard fixes, and sums of products, whose order none does.
_ROUNDED = (
    *("exp", "exp2", "expm1", "log", "log1p", "logistic", "pow", "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin"),
    *("acos", "atan", "atan2", "rsqrt", "cbrt", "erf", "erfc", "erf_inv", "lgamma", "digamma", "dot_general"),
)


def nudge_functions() -> None:
    """What the functions give becomes larger by about the last bit, in derivatives, too: JAX compiles them so."""
    import jax
    import jax.numpy as jnp
    from jax._src.interpreters import mlir

    def rounded(rule):
        def larger(x):
            return x * (1 + jnp.finfo(x.dtype).eps) if jnp.issubdtype(x.dtype, jnp.floating) else x

        def lower(ctx, *operands, **parameters):
            (result,) = rule(ctx, *operands, **parameters)
            again = ctx.replace(primitive=None, avals_in=ctx.avals_out, tokens_out=None)
            return mlir.lower_fun(larger, multiple_results=False)(again, result)

        return lower

    for name in _ROUNDED:
        primitive = getattr(jax.lax, f"{name}_p")
        for rules in (mlir._lowerings, *mlir._platform_specific_lowerings.values()):
            if primitive in rules:
                entry = rules[primitive]
                rules[primitive] = dataclasses.replace(entry, rule=rounded(entry.rule))


class OtherCode:
    """Processor time of a program on Weft in code that is neither JAX's nor Weft's, by samples of the stack. It is at
    least that: of a long call in C straight from such code nobody knows whose it is, and it is not counted."""

    _PERIOD = 0.002  # seconds

    def __init__(self):
        import weft

        self.seconds, self._kinds = 0.0, {}
        self._weft = os.path.dirname(weft.__file__) + os.sep
        self._library = os.path.dirname(os.__file__) + os.sep
        beside = os.path.dirname(os.path.dirname(np.__file__))
        self._tools = tuple(os.path.join(beside, name) + os.sep for name in ("numpy", "scipy"))
        self._last = time.process_time()
        signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, self._PERIOD, self._PERIOD)

    def stop(self) -> float:
        """The seconds."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        return self.seconds

    def _kind(self, file: str) -> str:
        """Whose code: "weft", "other", or "any": that of Python and NumPy, which runs for whoever calls it."""
        if file not in self._kinds:
            own = file.startswith(self._library) and "site-packages" not in file
            shared = own or file.startswith(("<frozen", *self._tools))
            self._kinds[file] = "weft" if file.startswith(self._weft) else "any" if shared else "other"
        return self._kinds[file]

    def _sample(self, number, frame) -> None:
        now = time.process_time()
        seconds, straight = now - self._last, True
        while frame is not None:
            kind, importing = self._kind(frame.f_code.co_filename), frame.f_code.co_name == "<module>"
            if kind == "weft":
                break
            if kind == "other" or importing:
                if importing or not straight or seconds < 3 * self._PERIOD:
                    self.seconds += seconds
                break
            straight, frame = False, frame.f_back
        self._last = time.process_time()  # without what the sample itself took


def main(program: str, out: str, *arguments: str) -> None:
    """Runs the program."""
    others = OtherCode() if os.environ.get("SAMPLED") else None
    warnings.simplefilter("ignore")
    os.environ["MPLBACKEND"] = "Agg"
    builtins.display = lambda *values, **options: None  # a notebook has it
    sys.argv = [program, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(program)))
    printed, variables, report = io.StringIO(), {}, {}
    nudged = os.environ.get("NUDGED")
    if nudged:
        {"values": nudge_values, "functions": nudge_functions}[nudged]()
    try:
        with contextlib.redirect_stdout(printed):
            variables = runpy.run_path(program, run_name="__main__")
            import jax

            jax.block_until_ready([v for v in variables.values() if isinstance(v, jax.Array) and not v.is_deleted()])
    except (Exception, SystemExit) as error:
        if not isinstance(error, SystemExit) or error.code:
            report["error"] = f"{type(error).__name__}: {error}"[:2000]
            report["trace"] = traceback.format_exc()[-4000:]
    begun, report["memory"] = (time.time(), time.process_time()), _peak_memory()
    if others is not None:
        report["others"] = others.stop()
    found = ends_with(variables)
    text = [float(number) for number in _A_NUMBER.findall(printed.getvalue())]
    if text:
        found["(printed)"] = (np.array(text[:_KEPT]), "text")
    report["types"] = [[place, kind] for place, (_, kind) in found.items()]
    np.savez(out, report=np.array(json.dumps(report)), **{f"n{i}": n for i, (n, _) in enumerate(found.values())})
    print(json.dumps({"written": [time.time() - begun[0], time.process_time() - begun[1]]}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
