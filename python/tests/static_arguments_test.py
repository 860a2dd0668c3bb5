"""Which static values share a program: those of one type with the same bits, however deep they are."""

import collections
import dataclasses
import decimal
import enum
import fractions
import pickle

import numpy as np
import pytest

import weft
import weft.numpy as wnp


class Colour(enum.IntEnum):
    RED = 1


class Name(enum.StrEnum):
    A = "a"


class Integer(int):
    pass


class Text(str):
    __slots__ = ()


class Real(float):
    pass


Pair = collections.namedtuple("Pair", "x y")
Other = collections.namedtuple("Other", "x y")


@dataclasses.dataclass(frozen=True)
class Options:
    scale: object
    label: object = dataclasses.field(default=None, compare=False)


@dataclasses.dataclass(frozen=True)
class Nested:
    inner: object


QUIET = float("nan")
SIGNED = -QUIET
OTHER_NAN = np.uint64(0x7FF8000000000001).view(np.float64).item()

# Values that == says are equal to others of their list, or not to themselves; each is a program of its own.
DIFFERENT = {
    "numbers": [0, 0.0, -0.0, False, 0j, complex(-0.0, 0.0), complex(0.0, -0.0), np.float32(0), np.float32(-0.0)],
    "ones": [1, True, 1.0, 1 + 0j, Colour.RED, Integer(1), Real(1.0), decimal.Decimal(1), fractions.Fraction(1)],
    "numpy": [np.int32(1), np.int64(1), np.uint8(1), np.float64(1), np.float32(1), np.bool_(True), np.complex64(1), 1],
    "nans": [QUIET, SIGNED, OTHER_NAN, np.float32("nan"), np.float64("nan")],
    "texts": ["a", Name.A, Text("a"), b"a"],
    "decimals": [decimal.Decimal("1.0"), decimal.Decimal("1.00"), decimal.Decimal("-0"), decimal.Decimal("0")],
    "ranges": [range(0), range(5, 5), range(1, 2), range(1, 2, 5), range(0, 4, 2), range(0, 3, 2)],
    "dates": [np.datetime64("2020"), np.datetime64("2020-01"), np.datetime64("2020-01-01")],
}

WRAPS = {
    "itself": lambda v: v,
    "tuple": lambda v: (v,),
    "tuple of tuples": lambda v: (3, ("x", (v, None))),
    "named tuple": lambda v: Pair(2, v),
    "frozen set": lambda v: frozenset([v, "x", ("y",)]),
    "set in a tuple": lambda v: ((frozenset([frozenset([v])]),), 1),
    "dataclass": lambda v: Options(v),
    "dataclass in a dataclass": lambda v: Nested((Options(v), 2)),
}


def again(value):
    """Another object that is the same value."""
    if type(value) is float:
        return np.float64(value).item()
    if isinstance(value, np.generic):
        return value.copy() if value.dtype.kind != "M" else np.array([value])[0]
    if type(value) is complex:
        return complex(value.real, value.imag)
    if isinstance(value, range):
        return range(value.start, value.stop, value.step)
    if isinstance(value, decimal.Decimal):
        return decimal.Decimal(str(value))
    return value


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("kind", DIFFERENT)
@pytest.mark.parametrize("how", ["position", "name", "auto"])
def test_each_has_its_own_program(kind, wrap, how):
    traced = []

    def model(x, *, static):
        traced.append(static)
        return x + len(traced)

    if how == "position":
        f = weft.jit(lambda x, static: model(x, static=static), static_argnums=1)
        call = lambda v: f(0, v)
    else:
        f = weft.jit(model, static_argnames="static", **({"capture": "auto"} if how == "auto" else {}))
        call = lambda v: f(0, static=v)
    values = DIFFERENT[kind]
    for _ in range(3):
        for i, value in enumerate(values):
            assert call(WRAPS[wrap](again(value))) == i + 1, value
    assert len(traced) == len(values)
    for value, seen in zip(values, traced):
        assert "set" in wrap or repr(seen) == repr(WRAPS[wrap](value))  # sets have no order


def test_what_users_say_is_equal_is():
    class Any:
        def __init__(self, v):
            self.v = v

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

    f = weft.jit(lambda x, s: x * s.v, static_argnums=1)
    assert f(2, Any(3)) == 6 and f(2, Any(4)) == 6 and f._cache_size() == 1
    # Fields that == does not look at, tuples of one class, sets and keywords in another order.
    g = weft.jit(lambda x, **s: x, static_argnames=("a", "b"))
    g(1, a=Options(1, "label"), b=frozenset([1, 2, 3]))
    g(1, b=frozenset([3, 2, 1]), a=Options(1, "other"))
    assert g._cache_size() == 1
    g(1, a=Pair(1, 2), b=0)
    g(1, a=Other(1, 2), b=0)
    assert g._cache_size() == 3


@pytest.mark.parametrize("value", [[1], {1: 2}, {1}, ([1],), (1, {2}), (frozenset([1]), [2]), np.ones(2), Options([1])])
def test_what_has_no_hash_is_refused(value):
    with pytest.raises(ValueError, match=r"static argument 1 of .* is not hashable"):
        weft.jit(lambda x, s: x, static_argnums=1)(1, value)


def test_what_raises_while_it_is_compared_or_hashed():
    class Bad:
        def __init__(self, at):
            self.at = at

        def __hash__(self):
            if self.at == "hash":
                raise ArithmeticError("hash")
            return 5

        def __eq__(self, other):
            raise ArithmeticError("eq")

    f = weft.jit(lambda x, s: x, static_argnums=1)
    with pytest.raises(ArithmeticError, match="hash"):
        f(1, (Bad("hash"),))
    f(1, (Bad("eq"),))
    with pytest.raises(ArithmeticError, match="eq"):
        f(1, (Bad("eq"),))


# --- Static parts of containers ---------------------------------------------------------------------------------------


@dataclasses.dataclass
class Layer:
    w: object
    static: object = dataclasses.field(metadata={"static": True})


class Box:
    def __init__(self, content, static):
        self.content, self.static = content, static


weft.tree.register_dataclass(Layer)
weft.tree_util.register_pytree_node(Box, lambda b: ((b.content,), b.static), lambda s, c: Box(c[0], s))

CONTAINERS = {
    "dataclass": lambda v: Layer(1.0, v),
    "registered": lambda v: Box(1.0, v),
    "deep": lambda v: {"a": [Box(Layer(1.0, (2, v)), "x")], "b": 1.0},
    "key": lambda v: {v: 1.0},
    "key in a list": lambda v: [{"x": {v: 1.0}}],
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("kind", ["numbers", "ones", "numpy", "texts", "decimals"])
def test_static_fields_and_keys(container, kind):
    traced, make = [], CONTAINERS[container]

    @weft.jit
    def f(tree):
        traced.append(repr(weft.tree.structure(tree)))
        return weft.tree.leaves(tree)[0] * 0 + len(traced)

    values = DIFFERENT[kind]
    for _ in range(3):
        for i, value in enumerate(values):
            assert f(make(again(value))) == i + 1
    assert len(traced) == len(values)


@pytest.mark.parametrize("container", ["dataclass", "registered", "deep"])
@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"x": v}, lambda v: {v}, lambda v: ([2, {"y": [v]}],)])
def test_static_parts_that_have_no_hash(container, wrap):
    traced, make = [], CONTAINERS[container]
    f = weft.jit(lambda tree: traced.append(1) or weft.tree.leaves(tree)[0] * 0 + len(traced))
    for _ in range(2):
        for i, value in enumerate(DIFFERENT["numbers"]):
            assert f(make(wrap(value))) == i + 1
    assert len(traced) == len(DIFFERENT["numbers"])


@pytest.mark.parametrize("value", [np.ones(3), wnp.ones(3), (1, [np.ones(())])])
def test_static_parts_that_are_arrays(value):
    f = weft.jit(lambda tree: weft.tree.leaves(tree)[0] + 1)
    with pytest.raises(TypeError, match="a static part of an argument is an array"):
        for _ in range(2):
            f(Layer(1.0, again_deep(value)))
    assert f(Layer(1.0, "fine")) == 2


def again_deep(value):
    return (1, [np.ones(())]) if isinstance(value, tuple) else value + 0


def test_a_class_that_is_taken_apart_otherwise_each_time():
    class Odd:
        def __init__(self, *content):
            self.content = content

    times = []

    def flatten(odd):
        times.append(1)
        return odd.content[: 1 + len(times) % 2], None

    weft.tree_util.register_pytree_node(Odd, flatten, lambda _, children: Odd(*children))
    f = weft.jit(lambda odd, s=0, *, more=None: sum(odd.content) + s, static_argnames="s")
    # With one part, then with two, each time what that call was taken apart into: once.
    for n, want in enumerate([3.0, 1.0, 3.0, 1.0], 1):
        assert f(Odd(1.0, 2.0)) == want and len(times) == n
    del times[:]
    for n, want in enumerate([8.0, 6.0, 8.0], 1):
        assert f(Odd(1.0, 2.0), s=5) == want and len(times) == n
    del times[:]
    # In containers of Python's own, and by keyword; what the function gives back is what was taken apart.
    same = weft.jit(lambda *trees, **more: (trees, more))
    for _ in range(4):
        first, second, third = Odd(1.0, 2.0), Odd(3.0, 4.0), Odd(5.0, 6.0)
        before = len(times)
        trees, more = same(first, [{"b": second, "a": (None, 7.0)}, {1: 8.0}], k=third)
        taken_apart = len(times) - before
        assert taken_apart in (3, 6)  # when it is traced, the result is taken apart too
        kept = trees[0], trees[1][0]["b"], more["k"]
        assert trees[1][0]["a"] == (None, 7.0) and trees[1][1] == {1: 8.0}
        assert [odd.content[0] for odd in kept] == [1.0, 3.0, 5.0]
    assert taken_apart == 3


def test_fields_of_results_are_those_of_the_call():
    f = weft.jit(lambda b: Box(b.content + 1, b.static))
    for value in (0.0, -0.0, 0, False, np.float32(0), QUIET, "a", Name.A):
        got = f(Box(1.0, value)).static
        assert type(got) is type(value) and repr(got) == repr(value)


def test_zeros_decide_what_is_computed():
    f = weft.jit(lambda x, s: wnp.arctan2(s * wnp.ones(()), x), static_argnums=1)
    assert f(-1.0, 0.0) == np.float32(np.pi) and f(-1.0, -0.0) == -np.float32(np.pi)
    g = weft.jit(lambda x, s: x + wnp.array(s[0]).astype("float32") * 0 + (1 if s[0] is True else 2), static_argnums=1)
    assert [float(g(0.0, (v,))) for v in (True, 1, 1.0, True)] == [1, 2, 2, 1]


@pytest.mark.parametrize("kind", ["static_argnames", "donate_argnames"])
@pytest.mark.parametrize("name", ["a", "args"])
def test_what_is_given_by_position_alone_has_no_name(kind, name):
    def f(a, /, b, *args, **kwargs):
        return b

    with pytest.raises(ValueError, match=f"'{name}', which 'f' takes by position alone"):
        weft.jit(f, **{kind: ("b", name)})
    weft.jit(f, **{kind: ("b", "more")})


def _pickled_function(x, n, *, m=1):
    return x * n + m


def test_jitted_functions_are_pickled():
    cases = [
        (weft.jit(_pickled_function, static_argnums=1, static_argnames="m"), (2.0, 3), {"m": 4}),
        (weft.jit(_pickled_function, donate_argnums=0, deterministic=True), (wnp.ones(3), 3.0), {}),
        (weft.jit(weft.jit(_pickled_function)), (2.0, 3.0), {}),
    ]
    for jitted, args, kwargs in cases:
        again = pickle.loads(pickle.dumps(jitted))
        for name in ("_static_argnums", "_static_argnames", "_donate_argnums", "_deterministic", "_backend", "_inline"):
            assert getattr(again, name) == getattr(jitted, name), name
        fresh = [weft.device_put(a + 0) if isinstance(a, weft.Array) else a for a in args]
        assert np.array_equal(again(*fresh, **kwargs), jitted(*args, **kwargs))
    with pytest.raises(TypeError, match="passes of its own"):
        pickle.dumps(weft.jit(_pickled_function, optimize="fast_compile"))


class _NoEquality:
    def __init__(self, error):
        self.error = error

    def __hash__(self):
        return 1

    def __eq__(self, other):
        raise self.error


@pytest.mark.parametrize("wrap", [lambda s: s, lambda s: (1, s), lambda s: (1, (s, s)), lambda s: frozenset([s])])
def test_what_raises_when_compared_is_the_cause_of_the_error_in_jax(wrap):
    f = weft.jit(lambda x, s: x, static_argnums=1)
    with weft.jax_semantics():
        error = RuntimeError("no equality")
        f(1.0, wrap(_NoEquality(error)))
        with pytest.raises(ValueError, match=r"by __eq__: that of '_NoEquality' raised RuntimeError") as found:
            f(1.0, wrap(_NoEquality(error)))
        assert found.value.__cause__ is error
    g = weft.jit(lambda x, s: x, static_argnums=1)
    with weft.jax_semantics():
        interrupt = KeyboardInterrupt()
        g(1.0, wrap(_NoEquality(interrupt)))
        with pytest.raises(KeyboardInterrupt):
            g(1.0, wrap(_NoEquality(interrupt)))
