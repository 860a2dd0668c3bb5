"""Element-wise primitives at extremes: the interpreter, compiled code and mpmath within the accuracy that
docs/operations.md states, for every float dtype; and complex ones, on their branch cuts too, beside NumPy.

Goes through `weft ops`, so a primitive that is added is tested, or has a reason here why not.
"""

import ctypes
import functools
import itertools
import re
import subprocess
import tempfile
from pathlib import Path

import mpmath
import numpy as np
import pytest

mpmath.mp.dps = 40
inf, nan = np.inf, np.nan
WEFT = "driver/weft"
FLOATS = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": np.float32}
COMPLEXES = {"c64": np.complex64, "c128": np.complex128}


class Operation:
    """What `weft ops` says of a primitive."""

    def __init__(self, entry: str):
        self.name = entry.split("\n", 1)[0]
        self.operands = int(re.search(r"- operands: (\d+)", entry)[1])
        self.types = re.search(r"- types of the first: (.*)", entry)[1]
        formula = re.search(r"- exact value: `(.*)`", entry)
        self.formula = formula[1] if formula else None
        bound = re.search(r"- accuracy of compiled code: (.*)", entry)
        self.ulps = None
        if bound:
            self.ulps = 0.5 if "rounded correctly" in bound[1] else float(re.search(r"[\d.]+", bound[1])[0])


@functools.cache
def operations() -> dict[str, Operation]:
    text = subprocess.run([WEFT, "ops"], capture_output=True, text=True, check=True).stdout
    section = text.split("\n## element-wise\n")[1].split("\n## ")[0]
    return {o.name: o for o in map(Operation, section.split("\n### ")[1:])}


# Primitives that make no number by rounding: other tests say what they are.
NOT_ROUNDED = {
    "and or xor not shift_left shift_right_logical shift_right_arithmetic": "integers alone",
    "population_count clz threefry2x32": "integers alone",
    "eq ne lt le gt ge is_finite": "booleans: python/tests compares them with NumPy's",
    "convert bitcast": "python/tests/promotion_test.py",
    "complex real imag conj select clamp stop_gradient": "moves numbers",
    "integer_pow": "an exponent of its own: test_integer_powers",
    "nextafter": "a step, not a number: test_nextafter",
    "round": "an attribute of its own: test_rounding",
}
LEFT_OUT = {name for names in NOT_ROUNDED for name in names.split()}


def erfc(x):
    """Where mpmath's own is too slow: less than any number, or 2 less that."""
    if abs(x) < 1000:
        return mpmath.erfc(x)
    return mpmath.mpf(10) ** -40000 if x > 0 else mpmath.mpf(2)


def at(zero: float, above: float, below: float):
    """What a function is of 0, of infinity and of minus infinity."""
    return lambda x: nan if x != x else zero if x == 0 else above if x > 0 else below


def odd(above: float):
    return lambda x: x if x == 0 else above * np.sign(x)


def gamma_log(x):
    return mpmath.log(abs(mpmath.gamma(x))) if x < 0 or x < 60 else mpmath.loggamma(x)


def polygamma(order: int):
    """mpmath's, and for large numbers, for which it takes long, the first terms of the asymptotic series."""

    def function(x):
        if abs(x) < 1e6:
            return mpmath.psi(order, x)
        if x < 0:
            raise ValueError("a pole")  # numbers of that size are whole
        if order == 0:
            return mpmath.log(x) - 1 / (2 * x) - 1 / (12 * x * x)
        return 1 / x + 1 / (2 * x * x) + 1 / (6 * x**3)

    return function


def power(x, w):
    if x < 0 and w != mpmath.floor(w):
        raise ValueError("no real power")
    return x**w


def near_1(x):
    """The inverse of erf where mpmath's own gets: beyond, by the logarithm of the tail."""
    if abs(x) == 1:
        return float(mpmath.sign(x)) * inf
    if abs(x) < 0.9:
        return mpmath.erfinv(x)
    tail = mpmath.log(1 - abs(x))
    start = mpmath.sqrt(-tail)
    root = mpmath.findroot(lambda y: mpmath.log(mpmath.erfc(y)) - tail, start, tol=1e-60)
    return mpmath.sign(x) * root


def c_power(x, w):
    """C's: NumPy's takes the square root for 0.5, which keeps the sign of -0."""
    library = ctypes.CDLL("libm.so.6")
    library.pow.restype, library.pow.argtypes = ctypes.c_double, [ctypes.c_double] * 2
    return library.pow(float(x), float(w))


# name: (mpmath's function of finite numbers that are not 0, NumPy's of the others)
UNARY = {
    "abs": (abs, np.abs),
    "acos": (mpmath.acos, np.arccos),
    "acosh": (mpmath.acosh, np.arccosh),
    "asin": (mpmath.asin, np.arcsin),
    "asinh": (mpmath.asinh, np.arcsinh),
    "atan": (mpmath.atan, np.arctan),
    "atanh": (mpmath.atanh, np.arctanh),
    "cbrt": (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), np.cbrt),
    "ceil": (mpmath.ceil, np.ceil),
    "cos": (mpmath.cos, np.cos),
    "cosh": (mpmath.cosh, np.cosh),
    "digamma": (polygamma(0), at(nan, inf, nan)),
    "erf": (mpmath.erf, odd(1.0)),
    "erf_inv": (near_1, odd(nan)),
    "erfc": (erfc, at(1.0, 0.0, 2.0)),
    "exp": (mpmath.exp, np.exp),
    "exp2": (lambda x: mpmath.mpf(2) ** x, np.exp2),
    "expm1": (mpmath.expm1, np.expm1),
    "floor": (mpmath.floor, np.floor),
    "lgamma": (gamma_log, at(inf, inf, inf)),
    "log": (mpmath.log, np.log),
    "log10": (mpmath.log10, np.log10),
    "log1p": (mpmath.log1p, np.log1p),
    "log2": (lambda x: mpmath.log(x) / mpmath.log(2), np.log2),
    "logistic": (lambda x: 1 / (1 + mpmath.exp(-x)), at(0.5, 1.0, 0.0)),
    "logistic_density": (lambda x: mpmath.sech(x / 2) ** 2 / 4, at(0.25, 0.0, 0.0)),
    "neg": (lambda x: -x, np.negative),
    "normal_cdf": (lambda x: erfc(-x / mpmath.sqrt(2)) / 2, at(0.5, 1.0, 0.0)),
    "normal_density": (
        lambda x: mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi),
        at(float(1 / mpmath.sqrt(2 * mpmath.pi)), 0.0, 0.0),
    ),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), lambda x: 1 / np.sqrt(x)),
    "sech_squared": (lambda x: mpmath.sech(x) ** 2, at(1.0, 0.0, 0.0)),
    "sign": (mpmath.sign, odd(1.0)),
    "sin": (mpmath.sin, np.sin),
    "sinh": (mpmath.sinh, np.sinh),
    "sqrt": (mpmath.sqrt, np.sqrt),
    "square": (lambda x: x * x, np.square),
    "tan": (mpmath.tan, np.tan),
    "tanh": (mpmath.tanh, np.tanh),
    "trigamma": (polygamma(1), at(inf, 0.0, inf)),
    "trunc": (lambda x: mpmath.sign(x) * mpmath.floor(abs(x)), np.trunc),
}
BINARY = {
    "add": (lambda x, w: x + w, np.add),
    "atan2": (mpmath.atan2, np.arctan2),
    "div": (lambda x, w: x / w, np.divide),
    "log_quotient": (lambda x, w: mpmath.log(x / w), lambda x, w: np.log(x / w)),
    "max": (max, np.maximum),
    "min": (min, np.minimum),
    "mul": (lambda x, w: x * w, np.multiply),
    "pow": (power, c_power),
    "rem": (lambda x, w: mpmath.sign(x) * mpmath.fmod(abs(x), abs(w)), np.fmod),
    "sub": (lambda x, w: x - w, np.subtract),
}


@np.vectorize
def complex_log1p(z):  # NumPy's loses digits where |1 + z| is near 1
    with mpmath.workprec(1200):
        y = complex(mpmath.log(1 + mpmath.mpc(z))) if np.isfinite(z) and z != -1 else complex(nan, nan)
    return complex(y.real, np.copysign(y.imag, z.imag))  # mpmath's zeros have no sign


COMPLEX = {
    "abs": np.abs, "add": np.add, "cos": np.cos, "div": np.divide, "exp": np.exp, "log": np.log, "mul": np.multiply,
    "neg": np.negative, "pow": np.power, "sin": np.sin, "sqrt": np.sqrt, "square": np.square, "sub": np.subtract,
    "tanh": np.tanh, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "cosh": np.cosh, "exp2": lambda z: np.exp(z * np.log(np.longdouble(2))), "expm1": np.expm1,
    "log1p": complex_log1p, "logistic": lambda z: 1 / (1 + np.exp(-z)), "rsqrt": lambda z: 1 / np.sqrt(z),
    "sinh": np.sinh, "tan": np.tan,
}  # fmt: skip


def declared_as(formula: str, operands: str):
    """What the registry says the value is, as mpmath computes it."""
    return eval(f"lambda {operands}: {formula}", vars(mpmath))


def at_special_points(function):
    """The same of 0, infinities and NaN."""

    def value(*x):
        if any(v != v for v in x):
            return nan
        try:
            y = np.float64(function(*map(mpmath.mpf, map(float, x))))
            # mpmath's zero has no sign: an odd function keeps that of the operand.
            is_odd = len(x) == 1 and y == 0 and function(mpmath.mpf(-0.5)) == -function(mpmath.mpf(0.5))
            return np.copysign(y, x[0]) if is_odd else y
        except (ValueError, ZeroDivisionError, TypeError):  # a TypeError: complex
            return nan

    return value


for declared in operations().values():
    if declared.formula is not None:
        of_mpmath = declared_as(declared.formula, "x" if declared.operands == 1 else "x, w")
        table = UNARY if declared.operands == 1 else BINARY
        table.setdefault(declared.name, (of_mpmath, at_special_points(of_mpmath)))


def test_every_primitive_is_here():
    assert set(operations()) == LEFT_OUT | set(UNARY) | set(BINARY), (
        "say `formula` of a new one, in its row of ir/prims/"
    )
    for o in operations().values():
        assert o.name in LEFT_OUT or o.operands == (1 if o.name in UNARY else 2)
        assert o.name in LEFT_OUT or o.ulps is not None, o.name
        assert o.name in LEFT_OUT or ("c64" in o.types) == (o.name in COMPLEX), o.name


def numbers(dtype: str) -> np.ndarray:
    """Both signs of zeros, subnormal numbers, the ends of the range, steps to 1 and ordinary ones; infinities, NaN."""
    if dtype == "bf16":
        kind, ends, eps = np.float32, [1e-40, 1.2e-38, 1e-20, 1e20, 1e38, 3.38e38], 2.0**-7
    else:
        kind = FLOATS[dtype]
        info, eps = np.finfo(kind), np.finfo(kind).eps
        ends = [info.smallest_subnormal, 3 * info.smallest_subnormal, float(info.tiny) / 3, info.tiny, info.max]
        ends += {
            "f64": [1e-300, 1e-150, 1e-77, 1e77, 1e150, 1e300],
            "f32": [1e-37, 1e-20, 1e-10, 1e10, 1e20, 1e38],
            "f16": [1e-4, 1e-3, 300, 1e3, 4e4],
        }[dtype]
    near = [1 - eps, 1 + eps, 1 - 40 * eps, 1 + 40 * eps, 0.99, 1.01]
    plain = [1e-6, 1e-3, 0.07, 0.25, 0.4, 0.5, 0.6, 0.75, 1, 1.4616, 1.5, 2, 2.5, 3, np.pi / 2, 4, 5.6, 7, 8.5, 10, 17]
    plain += [20, 31, 45, 50, 64, 88, 89, 100, 104, 127, 150, 360, 368, 709, 745, 1000, 3000]
    with np.errstate(over="ignore"):
        sizes = np.array(ends + near + plain).astype(kind)
    sizes = sizes[np.isfinite(sizes)]
    x = np.concatenate([[0.0, -0.0, inf, -inf, nan], sizes, -sizes]).astype(kind)
    return x if dtype != "bf16" else ((x.view(np.uint32) >> 16) << 16).view(np.float32)


def run(dtype: str, names: list[str], operands: list[np.ndarray], interpret: bool, attrs: str = "") -> list[np.ndarray]:
    """The results of one equation for each name, all in one program."""
    shape = f"[{operands[0].size}]"
    outside = "f32" if dtype == "bf16" else dtype  # NumPy's files hold no bf16
    inputs = [f"x{i}" for i in range(len(operands))]
    lines, results = [], []
    values = inputs
    if dtype == "bf16":
        lines += [f"  w{i}: bf16{shape} = convert[dtype=bf16] x{i}" for i in range(len(operands))]
        values = [f"w{i}" for i in range(len(operands))]
    for name in names:
        real = {"c64": "f32", "c128": "f64"}.get(dtype, dtype) if name == "abs" else dtype
        lines.append(f"  y_{name}: {real}{shape} = {name}{attrs} {' '.join(values)}")
        results.append((f"y_{name}", real))
    if dtype == "bf16":
        lines += [f"  z_{name}: f32{shape} = convert[dtype=f32] y_{name}" for name in names]
        results = [(f"z_{name}", "f32") for name in names]
    parameters = ", ".join(f"{x}: {outside}{shape}" for x in inputs)
    program = (
        f"fn f({parameters}) -> ({', '.join(t + shape for _, t in results)}) {{\n"
        + "\n".join(lines)
        + f"\n  return {', '.join(r for r, _ in results)}\n}}\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for x, value in zip(inputs, operands, strict=True):
            files.append(Path(folder) / f"{x}.npy")
            np.save(files[-1], value)
        command = [WEFT, "run", "-", *(["--interpret"] if interpret else []), "--inputs", *map(str, files)]
        command += ["--outputs", f"{folder}/out"]
        done = subprocess.run(command, input=program, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, program + done.stderr
        found = sorted((Path(folder) / "out").iterdir(), key=lambda p: int(re.search(r"\d+", p.name)[0]))
        return [np.load(path) for path in found]


def exact(name: str, x: tuple[float, ...]):
    """The value, as a number of mpmath or as a float: infinite, NaN, or a zero with its sign."""
    function, special = UNARY.get(name) or BINARY[name]
    if all(np.isfinite(v) and v != 0 for v in x):
        try:
            value = function(*(mpmath.mpf(float(v)) for v in x))
            return nan if isinstance(value, mpmath.mpc) else value
        except (ValueError, ZeroDivisionError):
            pass  # a pole, or outside the domain
        if name in ("digamma", "trigamma", "lgamma"):
            return nan if name == "digamma" else inf
    with np.errstate(all="ignore"):
        return float(special(*map(np.float64, x)))


def last_place(value, dtype: str):
    """The distance of neighbouring numbers there."""
    digits, least = {"f64": (53, -1074), "f32": (24, -149), "f16": (11, -24), "bf16": (8, -133)}[dtype]
    if value == 0:
        return mpmath.mpf(2) ** least
    exponent = int(mpmath.floor(mpmath.log(abs(value), 2)))
    return mpmath.mpf(2) ** max(exponent - digits + 1, least)


LARGEST = {
    "f64": float(np.finfo("f8").max),
    "f32": float(np.finfo("f4").max),
    "f16": 65504.0,
    "bf16": 2.0**127 * (2 - 2.0**-7),
}


# What the reference says of their roots.
NEAR_ROOTS = {"digamma", "lgamma"}


def error(got: float, value, dtype: str, floor: float = 0.0) -> float:
    """In units of the last place, at least those of `floor`; infinite where a NaN, an infinity or the sign of a zero is
    wrong."""
    got = float(got)
    if isinstance(value, float) and value != value:
        return 0.0 if got != got else inf
    if isinstance(value, float) and (value == 0 or abs(value) == inf):
        return 0.0 if got == value and np.signbit(got) == np.signbit(value) else inf
    value = mpmath.mpf(value)
    if got != got:
        return inf
    if abs(got) == inf:
        # Past the largest number by half a place, or nearly so.
        edge = LARGEST[dtype]
        return 0.0 if np.sign(got) == mpmath.sign(value) and abs(value) >= edge else inf
    return float(abs(mpmath.mpf(got) - value) / last_place(max(abs(value), mpmath.mpf(floor)), dtype))


def least_normal(dtype: str) -> float:
    return {"f64": 2.0**-1022, "f16": 2.0**-14}.get(dtype, 2.0**-126)


def compare(dtype: str, names: list[str], operands: list[np.ndarray]) -> None:
    interpreted, compiled = (run(dtype, names, operands, interpret) for interpret in (True, False))
    wrong = []
    for name, a, b in zip(names, interpreted, compiled, strict=True):
        bound = operations()[name].ulps
        # The interpreter computes in double: of narrower numbers all but ties are rounded correctly.
        of_interpreter = max(bound, 2) if dtype == "f64" and bound > 0.5 else 0.501
        of_compiled = bound if dtype in ("f32", "f64") else max(0.51, bound * 2.0**-13 + 0.5)
        for i, point in enumerate(zip(*operands, strict=True)):
            value = exact(name, point)
            floor = 1.0 if name in NEAR_ROOTS else 0.0
            errors = [error(y, value, dtype, floor) for y in (a[i], b[i])]
            if errors[0] > of_interpreter or errors[1] > of_compiled:
                wrong.append(
                    f"{name} {dtype} at {point}: {a[i]} interpreted, {b[i]} compiled, exact "
                    f"{mpmath.nstr(mpmath.mpf(value), 20)}; off by {errors[0]:.3g} and {errors[1]:.3g}"
                )
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:60])


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_operand(dtype: str) -> None:
    compare(dtype, sorted(UNARY), [numbers(dtype)])


@pytest.mark.parametrize("dtype", FLOATS)
def test_two_operands(dtype: str) -> None:
    x = numbers(dtype)
    x = x[:: max(1, x.size // 45)] if x.size > 45 else x
    x = np.concatenate([numbers(dtype)[:9], x])
    first, second = np.array(list(itertools.product(x, x))).T.astype(x.dtype)
    compare(dtype, sorted(BINARY), [first.copy(), second.copy()])


INTERPRETED = pytest.mark.parametrize("interpret", [True, False])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@INTERPRETED
def test_rounding(dtype: str, interpret: bool) -> None:
    x = np.concatenate([numbers(dtype), np.arange(-20, 21).astype(FLOATS[dtype]) / 4])
    even = run(dtype, ["round"], [x], interpret, '[mode="even"]')[0]
    np.testing.assert_array_equal(even, np.rint(x))
    np.testing.assert_array_equal(np.signbit(even), np.signbit(np.rint(x)))
    away = run(dtype, ["round"], [x], interpret, '[mode="away"]')[0]
    whole = np.trunc(x)
    with np.errstate(invalid="ignore"):
        expected = np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)
    np.testing.assert_array_equal(away, np.where(np.isinf(x), x, expected))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@INTERPRETED
def test_nextafter(dtype: str, interpret: bool) -> None:
    x, y = np.array(list(itertools.product(numbers(dtype)[:30], repeat=2))).T.astype(FLOATS[dtype])
    got = run(dtype, ["nextafter"], [x.copy(), y.copy()], interpret)[0]
    with np.errstate(all="ignore"):
        expected = np.nextafter(x, y)
    np.testing.assert_array_equal(got, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("exponent", [-3, -1, 0, 1, 2, 3, 5, 10])
@INTERPRETED
def test_integer_powers(dtype: str, exponent: int, interpret: bool) -> None:
    x = numbers(dtype)
    x = x[np.isfinite(x) & (x != 0)]
    got = run(dtype, ["integer_pow"], [x], interpret, f"[y={exponent}]")[0]
    bound = operations()["integer_pow"].ulps
    least, most = least_normal(dtype), LARGEST[dtype]
    for v, y in zip(x, got, strict=True):
        value = mpmath.mpf(float(v)) ** exponent
        # By squaring, then inverted: what overflows on the way is 0 in the end, and what vanishes is infinite.
        size = abs(mpmath.mpf(float(v))) ** abs(exponent)
        if least < size < most and least < abs(value) < most:
            assert error(y, value, dtype) <= bound, (float(v), exponent, y)


PARTS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 1e-3, -1e-8, 20.0]
FAR = {"c64": [1e-30, -1e-38, 1e18, -3e30, 80.0], "c128": [1e-150, -1e-300, 1e150, -1e300, 700.0]}
UNUSUAL = [complex(a, b) for a in (inf, -inf, nan, 1.0, -0.0) for b in (inf, -inf, nan, -1.0, 0.0)]


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_complex_numbers(dtype: str) -> None:
    """On the branch cuts too, on both sides of them: NumPy keeps the signs of zeros. Infinities, NaN: interpreted and
    compiled code agree."""
    kind = COMPLEXES[dtype]
    points = np.array([complex(a, b) for a in PARTS + FAR[dtype] for b in PARTS + FAR[dtype]], kind)
    every = np.concatenate([points, np.array(UNUSUAL, kind)])
    pairs = np.array(list(itertools.product(every[::3], every[::5])), kind)
    wrong = []
    for names, operands in (
        ([n for n in sorted(COMPLEX) if n in UNARY], [every]),
        ([n for n in sorted(COMPLEX) if n in BINARY], [pairs[:, 0].copy(), pairs[:, 1].copy()]),
    ):
        interpreted, compiled = (run(dtype, names, operands, interpret) for interpret in (True, False))
        for name, a, b in zip(names, interpreted, compiled, strict=True):
            eps = float(np.finfo(kind).eps)
            near = lambda x, y, bound: (np.abs(x - y) <= bound) | (x == y) | (np.isnan(x) & np.isnan(y))
            with np.errstate(all="ignore"):
                wide = [x.astype(np.complex128) for x in operands]
                exact = np.asarray(COMPLEX[name](*wide))
                usual = np.all([np.isfinite(x) for x in operands], axis=0)
                # What overflows, in the result or on the way, is another matter.
                usual &= np.isfinite(exact) & (np.abs(exact) < np.finfo(kind).max / 4)
                if name == "exp2":  # whose angle is rounded in radians
                    usual &= np.abs(wide[0].imag) < 8
                products = [np.abs(x.real) + np.abs(x.imag) for x in wide]
                if name in ("mul", "square", "div"):
                    size = products[0] * products[-1]
                    usual &= (size < np.finfo(kind).max / 4) & ((products[-1] > 1e-100) | (dtype == "c64"))
                # NumPy's library is another one, and good to a few places; of powers the logarithm's
                # places are multiplied.
                of_power = np.nan_to_num(np.abs(wide[1] * np.log(wide[0]))) if name == "pow" else 0
                bound = (8 + 8 * of_power) * (2.0**-52 if dtype == "c128" else 2.0**-23) * np.abs(exact)
                bound = bound + 16 * np.finfo(kind).smallest_subnormal
                for which, y in (("interpreted", a), ("compiled", b)):
                    bad = usual & ~near(y.astype(np.complex128), exact, bound)
                    wrong += [
                        f"{name} {which} of {[x[i] for x in operands]}: {y[i]}, NumPy {exact[i]}"
                        for i in np.flatnonzero(bad)[:5]
                    ]
                both = near(a, b, 4 * eps * np.abs(a)) | (np.isinf(np.abs(a)) & np.isinf(np.abs(b)))
                both |= np.isnan(np.abs(a)) & np.isnan(np.abs(b))
                # Single precision: products of parts overflow, where those of the interpreter do not.
                both |= ~usual & (name in ("mul", "square"))
                wrong += [
                    f"{name} of {[x[i] for x in operands]}: {a[i]} interpreted, {b[i]} compiled"
                    for i in np.flatnonzero(~both)[:5]
                ]
    assert not wrong, "\n".join(wrong)


def test_powers_of_complex_zero() -> None:
    x = np.zeros(5, np.complex64)
    w = np.array([0, 1, 1 + 1j, -1, 1j], np.complex64)
    for interpret in (True, False):
        got = run("c64", ["pow"], [x, w], interpret)[0]
        np.testing.assert_array_equal(got[:3], [1, 0, 0])
        assert np.isnan(got[3:]).all()


MATRICES = [
    np.array([[3.0, 1.0, -0.5], [0.25, -2.0, 1.0], [1.0, 0.5, 5.0]]),
    np.array([[2.0, 1.0], [1.0, -3.0], [0.5, 0.25], [1.0, 1.0]]),
    np.array([[2.0, 1.0, -1.0, 0.5], [1.0, 3.0, 0.5, 0.25]]),
    np.outer([1.0, 2.0, 3.0], [1.0, -1.0, 0.5]),
]


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**-500, 1.0, 2.0**500, 2.0**1000])
@pytest.mark.parametrize("factor", ["svd", "qr", "eigh", "eig"])
@INTERPRETED
def test_factors_of_matrices_of_any_size(factor: str, scale: float, interpret: bool) -> None:
    """Those of the matrix times a power of 2: what is unitary is the same, what is not has the factor."""
    for a in MATRICES if factor in ("svd", "qr") else [m for m in MATRICES if m.shape == (3, 3)]:
        kind = "c128" if factor == "eig" else "f64"
        a = (a + a.T if factor == "eigh" else a).astype(np.complex128 if factor == "eig" else np.float64)
        m, n, k = *a.shape, min(a.shape)
        attrs, types = {
            "svd": ("[compute_uv=true]", [f"f64[{m},{k}]", f"f64[{k}]", f"f64[{k},{n}]"]),
            "qr": ("", [f"f64[{m},{k}]", f"f64[{k},{n}]"]),
            "eigh": ("", [f"f64[{n}]", f"f64[{n},{n}]"]),
            "eig": ("[compute_v=true]", [f"c128[{n}]", f"c128[{n},{n}]"]),
        }[factor]
        names = [f"y{i}" for i in range(len(types))]
        program = (
            f"fn f(x: {kind}[{m},{n}]) -> ({', '.join(types)}) {{\n  "
            + ", ".join(f"{y}: {t}" for y, t in zip(names, types, strict=True))
            + f" = {factor}{attrs} x\n  return {', '.join(names)}\n}}\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            np.save(f"{folder}/x.npy", a * scale)
            command = [WEFT, "run", "-", *(["--interpret"] if interpret else []), "--inputs", f"{folder}/x.npy"]
            done = subprocess.run(
                [*command, "--outputs", f"{folder}/out"], input=program, capture_output=True, text=True
            )
            assert done.returncode == 0, program + done.stderr
            got = [np.load(path) for path in sorted((Path(folder) / "out").iterdir())]
        size = np.abs(a).max()
        if factor == "qr":
            expected = np.linalg.qr(a)[1] * scale
            np.testing.assert_allclose(np.abs(got[1]) / scale, np.abs(expected) / scale, rtol=0, atol=1e-13 * size)
            np.testing.assert_allclose(got[0] @ (got[1] / scale), a, rtol=0, atol=1e-13 * size)
        elif factor == "svd":
            np.testing.assert_allclose(got[1] / scale, np.linalg.svd(a)[1], rtol=0, atol=1e-13 * size)
            np.testing.assert_allclose((got[0] * (got[1] / scale)) @ got[2], a, rtol=0, atol=1e-13 * size)
        elif factor == "eigh":
            np.testing.assert_allclose(got[0] / scale, np.linalg.eigvalsh(a), rtol=0, atol=1e-13 * size)
        else:
            values = np.sort_complex(np.linalg.eigvals(a))
            np.testing.assert_allclose(np.sort_complex(got[0] / scale), values, rtol=0, atol=1e-7 * size)


@pytest.mark.parametrize("bad", [nan, inf])
@INTERPRETED
def test_values_of_matrices_that_are_not_finite(bad: float, interpret: bool) -> None:
    x = MATRICES[0].copy()
    x[1, 2] = x[2, 1] = bad
    for factor, attrs in (("svd", "[compute_uv=false]"), ("eigh", "")):
        types = "f64[3]" if factor == "svd" else "f64[3], f64[3,3]"
        results = "y: f64[3]" if factor == "svd" else "y: f64[3], z: f64[3,3]"
        program = f"fn f(x: f64[3,3]) -> ({types}) {{\n  {results} = {factor}{attrs} x\n"
        program += f"  return {'y' if factor == 'svd' else 'y, z'}\n}}\n"
        with tempfile.TemporaryDirectory() as folder:
            np.save(f"{folder}/x.npy", x)
            command = [WEFT, "run", "-", *(["--interpret"] if interpret else []), "--inputs", f"{folder}/x.npy"]
            done = subprocess.run(
                [*command, "--outputs", f"{folder}/out"], input=program, capture_output=True, text=True
            )
            assert done.returncode == 0, program + done.stderr
            for path in (Path(folder) / "out").iterdir():
                assert np.isnan(np.load(path)).all()
