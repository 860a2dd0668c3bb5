"""weft.as_jax: types of a library's own (hijax), with primitives on them, keys that are used twice, carries of
loops, and derivatives by keys. Programs run under JAX, too, where it is installed."""

from as_jax_both import both, lines

# An interval, with its width as a type's parameter, and primitives on it with rules.
_INTERVALS = """
import dataclasses
from jax.experimental.hijax import HiPrimitive, HiType, VJPHiPrimitive, register_hitype
from jax.core import ShapedArray

@dataclasses.dataclass(frozen=True)
class Interval:
    low: object
    high: object

@dataclasses.dataclass(frozen=True)
class IntervalType(HiType):
    shape: tuple
    def lo_ty(self):
        return [ShapedArray(self.shape, np.dtype("float32"))] * 2
    def lower_val(self, value):
        return [value.low, value.high]
    def raise_val(self, low, high):
        return Interval(low, high)
    def to_tangent_aval(self):
        return self
    def vspace_zero(self):
        return Interval(jnp.zeros(self.shape), jnp.zeros(self.shape))
    def vspace_add(self, x, y):
        return Interval(x.low + y.low, x.high + y.high)
    def str_short(self, short_dtypes=False, **_):
        return "Interval"
    def leading_axis_spec(self):
        return 0
    def inc_rank(self, size, spec):
        return IntervalType((size, *self.shape))
    def dec_rank(self, size, spec):
        return IntervalType(self.shape[1:])

register_hitype(Interval, lambda x: IntervalType(jnp.shape(x.low)))

class Made(HiPrimitive):
    def abstract_eval(self, low, high):
        return IntervalType(low.shape), set()
    def to_lojax(self, low, high):
        return Interval(low, high)
    def jvp(self, primals, tangents):
        return made(*primals), made(*tangents)
    def transpose(self, ct, low, high):
        return [end(ct, 0), end(ct, 1)]

class End(HiPrimitive):
    def abstract_eval(self, x, *, which):
        return ShapedArray(x.shape, np.dtype("float32")), set()
    def to_lojax(self, x, *, which):
        return x.high if which else x.low
    def jvp(self, primals, tangents, *, which):
        return end(*primals, which), 10 * end(*tangents, which)  # ten times, to see who is asked
    def transpose(self, ct, x, *, which):
        return [made(*((jnp.zeros_like(ct), ct) if which else (ct, jnp.zeros_like(ct))))]

made_p, end_p = Made("made"), End("end")
made = lambda low, high: made_p.bind(low, high)
end = lambda x, which: end_p.bind(x, which=which)
one, two = jnp.float32(1.0), jnp.float32(2.0)
"""


def test_values_of_own_types_pass_through_transforms():
    found = both(
        _INTERVALS
        + """
x = Interval(one, two)
out["type"] = repr(jax.typeof(x)), x == jax.jit(lambda x: x)(x)
out["jit"] = float(jax.jit(lambda x: end(x, 0) + 3 * end(x, 1))(x))
y = jax.jit(lambda a, b: made(a * b, a + b))(one, two)
out["made"] = type(y).__name__, float(y.low), float(y.high)
out["jvp"] = [float(v) for v in jax.jvp(lambda a: end(made(a, a * a), 1), (two,), (one,))]
out["grad"] = float(jax.grad(lambda a: end(made(a, a * a), 1) + end(made(a, a), 0))(two))
value, slope = jax.jvp(lambda x: end(x, 1), (x,), (Interval(one, two),))
out["tangents"] = float(value), float(slope)
"""
    )
    assert found["jvp"] == [4.0, 40.0] and found["grad"] == 50.0


def test_values_of_own_types_in_branches_and_loops():
    # JAX takes them inside of jit alone.
    found = lines(
        _INTERVALS
        + """
x = Interval(one, two)
out["cond"] = float(end(jax.lax.cond(True, lambda x: x, lambda x: made(end(x, 1), end(x, 0)), x), 1))
out["vmap"] = jax.vmap(lambda a: end(made(a, 2 * a), 1))(jnp.arange(3.0)).tolist()
step = lambda c, _: (made(end(c, 0) + 1, end(c, 1) * 2), end(c, 1))
out["scan"] = [float(end(lax.scan(step, x, None, length=3)[0], which)) for which in (0, 1)]
""",
        "-m",
        "weft.as_jax",
    )
    assert found == {"cond": 2.0, "vmap": [0.0, 2.0, 4.0], "scan": [4.0, 16.0]}


def test_own_types_with_other_tangents_are_refused():
    found = lines(
        _INTERVALS
        + """
@dataclasses.dataclass(frozen=True)
class Count:
    n: object

class CountType(HiType):
    def __eq__(self, other):
        return isinstance(other, CountType)
    def __hash__(self):
        return 0
    def lo_ty(self):
        return [ShapedArray((), np.dtype("int32"))]
    def lower_val(self, value):
        return [value.n]
    def raise_val(self, n):
        return Count(n)
    def to_tangent_aval(self):
        return self

class Rounded(HiPrimitive):
    def abstract_eval(self, x):
        return CountType(), set()
    def to_lojax(self, x):
        return Count(x.astype("int32"))
    def jvp(self, primals, tangents):
        return rounded.bind(*primals), rounded.bind(*tangents)

register_hitype(Count, lambda _: CountType())
rounded = Rounded("rounded")
out["value"] = int(jax.jit(rounded.bind)(two).n)
try:
    jax.jvp(lambda x: rounded.bind(x).n, (two,), (one,))
except NotImplementedError as error:
    out["error"] = str(error)
""",
        "-m",
        "weft.as_jax",
    )
    assert found["value"] == 2 and found["error"].startswith("weft.as_jax: the tangents of")


def test_operations_with_own_rules():
    found = both(
        """
        from jax.experimental.hijax import VJPHiPrimitive

        class Power(VJPHiPrimitive):
            def __init__(self, aval, n):
                self.in_avals, self.out_aval, self.params = (aval,), aval, dict(n=n)
                super().__init__()
            def expand(self, x):
                return x ** self.n
            def vjp_fwd(self, moving, x):
                out["moving"] = list(moving)
                return self(x), x
            def vjp_bwd_retval(self, x, ct):
                return (100 * ct * self.n * x ** (self.n - 1),)
            def batch(self, axis_data, args, dims):
                return power(args[0], self.n), dims[0]

        class Scaled(VJPHiPrimitive):
            def __init__(self, aval):
                self.in_avals, self.out_aval, self.params = (aval, aval), aval, {}
                super().__init__()
            def expand(self, x, y):
                return x * y
            def vjp_fwd(self, moving, x, y):
                return self(x, y), (x, y)
            def vjp_bwd(self, kept, ct, dx, dy):
                x, y = kept
                dx.accum(ct * y)
                dx.accum(ct)
                if hasattr(dy, "accum"):
                    dy.accum(ct * x)

        class Twice(VJPHiPrimitive):
            def __init__(self, aval):
                self.in_avals, self.out_aval, self.params = (aval,), aval, {}
                super().__init__()
            def expand(self, x):
                return 2 * x
            def jvp(self, primals, tangents):
                return self(*primals), 7 * tangents[0]

        class Rooted(VJPHiPrimitive):
            def __init__(self, aval):
                self.in_avals, self.out_aval, self.params = (aval, aval), aval, {}
                super().__init__()
            def expand(self, x, y):
                return jnp.sqrt(x) * y
            def lin(self, nzs_in, x, y):
                moves.append(tuple(nzs_in))
                return self(x, y), (jnp.sqrt(x), y)
            def linearized(self, residuals, dx, dy):
                root, y = residuals
                return 100 * dy * root

        moves = []
        rooted = lambda x, y: Rooted(jax.typeof(x))(x, y)
        power = lambda x, n: Power(jax.typeof(x), n)(x)
        scaled = lambda x, y: Scaled(jax.typeof(x))(x, y)
        two, three = jnp.float32(2.0), jnp.float32(3.0)
        out["value"] = float(power(two, 3)), float(jax.jit(lambda x: power(x, 4))(two))
        out["grad"] = float(jax.grad(lambda x: power(x, 3))(two)), float(jax.jit(jax.grad(lambda x: power(x, 2)))(two))
        out["vmap"] = jax.vmap(lambda x: power(x, 2))(jnp.arange(3.0)).tolist()
        out["sums"] = [float(g) for g in jax.grad(scaled, (0, 1))(two, three)]
        out["first"] = float(jax.grad(scaled)(two, three))
        out["jvp"] = [float(v) for v in jax.jvp(lambda x: Twice(jax.typeof(x))(x), (two,), (three,))]
        nine = jnp.float32(9.0)
        value, along = jax.linearize(lambda y: rooted(nine, y), two)
        out["lin"] = float(value), float(along(three)), moves
        out["lin jit"] = float(jax.jit(lambda y: jax.linearize(lambda y: rooted(nine, y), y)[1](y))(two))
        for name, make in {"no types": lambda: type("A", (VJPHiPrimitive,), {})(),
                           "no expand": lambda: type("B", (Twice,), {"expand": VJPHiPrimitive.expand})(
                               jax.typeof(two))(two)}.items():
            try:
                make()
            except (AttributeError, NotImplementedError):
                out[name] = True
        """
    )
    assert found["grad"] == [1200.0, 400.0] and found["sums"] == [4.0, 2.0] and found["no types"] and found["no expand"]


def test_run_state():
    both(
        """
        from jax._src.state.discharge import run_state

        def body(refs):
            x, y = refs
            y[...] = x[...] * 2
            x[...] += jnp.float32(1)

        start = jnp.float32(3), jnp.zeros(())
        out["run"] = [float(v) for v in run_state(body)(start)]
        out["jit"] = [float(v) for v in jax.jit(run_state(body))(start)]
        """
    )


def test_keys_that_are_used_twice():
    found = both(
        """
        from jax.errors import KeyReuseError
        from jax.experimental.key_reuse import _core

        def outcome(f, *args):
            try:
                _core.check_key_reuse(f, *args)
                return "once"
            except KeyReuseError:
                return "twice"

        key = jax.random.key(0)
        programs = {
            "split": lambda k: [jax.random.bits(x) for x in jax.random.split(k)],
            "fold_in": lambda k: (jax.random.fold_in(k, 1), jax.random.fold_in(k, 2), jax.random.bits(k)),
            "clone": lambda k: (jax.random.bits(k), jax.random.bits(jax.random.clone(k))),
            "two": lambda k: (jax.random.normal(k), jax.random.uniform(k)),
            "split and draw": lambda k: (jax.random.split(k), jax.random.uniform(k)),
            "cond": lambda k: lax.cond(True, jax.random.uniform, lambda k: 1.0, k) + jax.random.uniform(k),
            "scan": lambda k: lax.scan(lambda c, _: (c, jax.random.bits(k)), 0, None, length=3),
            "map": lambda k: lax.map(jax.random.bits, jax.random.split(k, 3)),
            "while": lambda k: lax.while_loop(lambda x: x < 9, lambda x: x + jax.random.uniform(k), 0.0),
            "slice": lambda k: (lambda ks: (jax.random.bits(ks[0]), jax.random.bits(ks[0])))(jax.random.split(k)),
            "gamma": lambda k: jax.random.gamma(k, 2.0) + jax.random.gamma(k, 2.0),
        }
        for name, f in programs.items():
            out[name] = outcome(f, key)
        out["signature"] = repr(_core.function_type_signature(jax.random.split, key))
        with jax.debug_key_reuse(True):
            for name in ("two", "map"):
                try:
                    jax.jit(programs[name])(jax.random.key(1))
                    out[name + " in jit"] = "once"
                except KeyReuseError:
                    out[name + " in jit"] = "twice"
        """
    )
    assert found["two in jit"] == "twice" and found["map"] == "once"


def test_carries_that_begin_weak_are_traced_once():
    # Inside of the body a Python number stays weak, so that it takes the dtype of what it meets.
    found = both(
        """
        half = jnp.ones(3, jnp.bfloat16)
        def scanned(init, xs, step):
            traces = []
            def body(carry, x):
                traces.append(0)
                return step(carry, x)
            return kinds(jax.lax.scan(body, init, xs)), len(traces)
        def kinds(tree):
            return [[str(x.dtype), x.weak_type, x.tolist()] for x in jax.tree.leaves(tree)]
        out["one"] = scanned(0.0, half, lambda c, x: (c + jnp.float32(0.5), c * x))
        out["two"] = scanned((0, 1.0), half, lambda c, x: ((c[0] + 1, c[1] + c[0] * jnp.float32(0.5)), c[1] * x))
        out["wider"] = scanned(0, jnp.arange(3.0), lambda c, x: (c + x, c))
        out["nested"] = scanned(
            0.0, half, lambda c, x: (jax.lax.fori_loop(0, 2, lambda _, d: d + jnp.float32(1), c), c * x)
        )
        out["while"] = kinds(
            jax.lax.while_loop(lambda c: c[1] * half.sum() < 9, lambda c: (c[0] + 1, c[1] + jnp.float32(1.5)), (0, 0.0))
        )
        out["gradient"] = kinds(
            jax.grad(lambda a: jax.lax.scan(lambda c, x: (c * a + x, c * x), 0.0, jnp.arange(3.0))[0])(2.0)
        )
        """
    )
    assert found["one"] == [[["float32", False, 1.5], ["bfloat16", False, [0.0, 0.5, 1.0]]], 1]
    assert found["wider"][1] == 2


def test_references_to_values_of_own_types():
    both(
        _INTERVALS
        + """
from jax._src.state.discharge import run_state
x = Interval(jnp.arange(3.0), jnp.arange(3.0) + 1)

ends = lambda x: (end(x, 0), end(x, 1))

def program(x):
    ref = jax.new_ref(x)
    low, high = ends(ref[...])
    ref[...] = made(low - 1, high * 2)
    return ends(ref[...]), ends(jax.freeze(ref))

out["outside"] = shown(program(x))
out["jit"] = shown(jax.jit(program)(x))
made_empty = jax.jit(lambda: jax.freeze(jax.empty_ref(IntervalType((2,)))))()
out["empty"] = type(made_empty).__name__, made_empty.low.shape

@run_state
def moved(refs):
    refs[1][...] = end(refs[0][...], 1)

out["run_state"] = shown(moved((x, jnp.zeros(3)))[1])
"""
    )


def test_arrays_of_dtypes_of_a_librarys_own():
    both(
        """
import dataclasses
from jax._src import dtypes
from jax.core import ShapedArray

class pair(dtypes.extended):
    pass

class Rules:
    allow_conversion = True
    @staticmethod
    def physical_element_aval(dtype):
        return ShapedArray((2,), np.dtype("int32"))

@dataclasses.dataclass(frozen=True)
class Pair(dtypes.ExtendedDType):
    name: str = "pair"
    type: type = pair
    _rules: type = Rules

@dataclasses.dataclass(frozen=True)
class Other(Pair):
    name: str = "other"

def program(x):
    y = lax.convert_element_type(x, Pair())
    out["type"] = [y.shape, isinstance(y.dtype, Pair), y.dtype == Pair(), y[1].shape]
    for name, wrong in {
        "another": lambda: lax.convert_element_type(y, Other()),
        "its dtype": lambda: lax.convert_element_type(x.astype("float32"), Pair()),
        "its shape": lambda: lax.convert_element_type(x[:, :1], Pair()),
        "back": lambda: lax.convert_element_type(y, "float32"),
    }.items():
        try:
            wrong()
        except ValueError as error:
            out[name] = str(error).split(" convert")[0].removeprefix("convert_element_type: ")
    return lax.convert_element_type(y, "int32") + 1

out["there and back"] = shown(jax.jit(program)(jnp.arange(6).reshape(3, 2)))
out["kinds"] = [dtypes.issubdtype(Pair(), kind) for kind in (pair, dtypes.extended, np.number, dtypes.prng_key)]
"""
    )


def test_derivatives_with_respect_to_keys():
    found = both("""
for impl in ("threefry2x32", "rbg", "unsafe_rbg"):
    key = jax.random.key(3, impl=impl)
    for name, keys in {"one": key, "several": jax.random.split(key, 3)}.items():
        zero = jax.grad(lambda x: 1.0, allow_int=True)(keys)
        out[f"{impl} {name}"] = [list(zero.shape), str(zero.dtype)]
    both = jax.grad(lambda t: t["x"] * 2, allow_int=True)({"x": 1.0, "key": key})
    out[impl] = [float(both["x"]), str(both["key"].dtype)]
""")
    assert found["rbg several"] == [[3], "[('float0', 'V')]"]
