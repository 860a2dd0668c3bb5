"""weft.config.jax_semantics: where Weft differs from JAX on purpose, both meanings (docs/jax_programs.md)."""

import collections
import dataclasses
import warnings
from typing import Any

import numpy as np
import pytest

import weft
import weft.numpy as wnp


@pytest.fixture(params=[False, True], ids=["weft", "jax"])
def jax_mode(request):
    with weft.jax_semantics(request.param):
        yield request.param


def test_it_is_off_by_default():
    assert weft.config.jax_semantics is False


def test_setting_and_scope():
    weft.config.jax_semantics = True
    try:
        assert weft.config.jax_semantics and wnp.asarray(np.ones(1)).dtype == "float32"
        with weft.jax_semantics(False):
            assert not weft.config.jax_semantics and wnp.asarray(np.ones(1)).dtype == "float64"
        assert weft.config.jax_semantics
    finally:
        weft.config.update("jax_semantics", False)
    assert weft.config.read("jax_semantics") is False


WIDE = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0)])
@pytest.mark.parametrize("scalar", [False, True], ids=["array", "scalar"])
def test_64_bit_numpy_data(jax_mode, dtype, shape, scalar):
    x = np.ones(shape, dtype)
    if scalar:
        if shape:
            pytest.skip("scalars have no shape")
        x = x[()]
    wanted = WIDE[dtype] if jax_mode else dtype
    narrow = wnp.zeros(shape, WIDE[dtype])
    ways = {
        "asarray": lambda: wnp.asarray(x),
        "operand": lambda: narrow + x,
        "reflected": lambda: x + narrow,
        "argument of jit": lambda: weft.jit(lambda v: v)(x),
        "captured by jit": lambda: weft.jit(lambda v: v + x)(narrow),
        "in a list": lambda: wnp.asarray([x, x]),
        "in a tree": lambda: weft.jit(lambda t: t["a"][0])({"a": [x]}),
        "under vmap": lambda: weft.vmap(lambda v: v * x)(wnp.zeros((2, *shape), WIDE[dtype])),
        "in a branch": lambda: weft.cond(True, lambda: wnp.asarray(x), lambda: wnp.asarray(x)),
        "device_put": lambda: weft.device_put(x),
    }
    if scalar:
        del ways["reflected"]  # NumPy's own method
    for way, make in ways.items():
        assert str(make().dtype) == wanted, way
    if dtype == "float64":
        tangent = weft.jvp(lambda v: v * 2, (x,), (x,))[1]
        assert str(tangent.dtype) == wanted


@pytest.mark.parametrize("dtype", WIDE)
def test_64_bits_asked_for_by_name(jax_mode, dtype):
    wanted = WIDE[dtype] if jax_mode else dtype
    for name in (dtype, np.dtype(dtype), getattr(np, dtype), getattr(wnp, dtype)):
        made = [wnp.zeros(2, name), wnp.ones(2).astype(name), wnp.array([1], name), getattr(wnp, dtype)(1)]
        made += [wnp.full(2, 1, name), wnp.asarray(np.ones(2, "int8"), name), weft.jit(lambda x: x.astype(name))(1)]  # noqa: B023
        assert {str(x.dtype) for x in made} == {wanted}


def test_values_of_narrowed_data():
    x = np.array([1.1, 1e300, -np.inf])
    with weft.jax_semantics(), np.errstate(over="ignore"):
        assert np.array_equal(wnp.asarray(x), np.array([1.1, np.inf, -np.inf], "float32"))
        assert np.array_equal(wnp.asarray(np.array([2**32 + 5, -1])), [5, -1])  # as NumPy's astype
        # Elements of another byte order, and with gaps.
        assert np.array_equal(wnp.asarray(np.arange(6.0).astype(">f8")[::2]), [0, 2, 4])
        with pytest.raises(OverflowError, match="does not fit"):
            wnp.array([2**40])
    # What the caller has is as it was.
    assert x.dtype == "float64" and x[0] == 1.1


def test_x64_keeps_64_bits(jax_mode):
    with weft.enable_x64():
        assert wnp.asarray(np.ones(1)).dtype == "float64"
        assert wnp.zeros(1, "int64").dtype == "int64"
        assert weft.jit(lambda x: x)(np.float64(1)).dtype == "float64"


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "uint32", "int64", "uint64"])
def test_floats_made_of_integers(dtype):
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    for f in ("sqrt", "sin", "mean", "true_divide"):
        for x64 in (False, True):
            x = np.ones(3, dtype)
            operands = [x, x] if f == "true_divide" else [x]
            with jax.enable_x64(x64):
                expected = getattr(jnp, f)(*map(jnp.asarray, operands)).dtype
            with weft.jax_semantics(True), weft.enable_x64(x64):
                assert getattr(wnp, f)(*map(wnp.asarray, operands)).dtype == expected, (f, x64)
    with weft.enable_x64(True):
        assert wnp.sqrt(wnp.ones(3, dtype)).dtype == "float64"


def test_programs_of_the_two_meanings_are_kept_apart():
    traced = []

    @weft.jit
    def f(x):
        traced.append(x.dtype)
        return x + np.float64(1)

    x = wnp.ones(2)
    results = []
    for _ in range(2):
        with weft.jax_semantics(False):
            results.append(str(f(x).dtype))
        with weft.jax_semantics(True):
            results.append(str(f(x).dtype))
    assert results == ["float64", "float32"] * 2 and len(traced) == 2


def test_dataclasses(jax_mode):
    @dataclasses.dataclass
    class Point:
        x: float
        y: float

    leaves = weft.tree.leaves([Point(1.0, 2.0)])
    assert len(leaves) == (1 if jax_mode else 2)
    if jax_mode:
        with pytest.raises(TypeError, match="Point"):
            weft.jit(lambda p: 1)(Point(1.0, 2.0))
    else:
        assert weft.jit(lambda p: p.x + p.y)(Point(1.0, 2.0)) == 3

    # A registered one is a container in both.
    @dataclasses.dataclass
    class Registered:
        x: float

    weft.tree.register_dataclass(Registered)
    assert weft.jit(lambda p: p.x)(Registered(1.0)) == 1


def test_order_of_dictionaries(jax_mode):
    tree = {"b": 1.0, "a": {"d": (2.0, 3.0), "c": None}, "e": [{"z": 4.0, "y": 5.0}]}

    def keys(tree):
        if isinstance(tree, dict):
            return [(key, keys(value)) for key, value in tree.items()]
        return [keys(x) for x in tree] if isinstance(tree, (list, tuple)) else None

    def in_order(tree):
        if isinstance(tree, dict):
            return {key: in_order(tree[key]) for key in sorted(tree)}
        return type(tree)(map(in_order, tree)) if isinstance(tree, (list, tuple)) else tree

    wanted = keys(in_order(tree)) if jax_mode else keys(tree)
    assert wanted != keys(in_order(tree)) or jax_mode
    assert keys(weft.tree.map(lambda x: x, tree)) == wanted
    assert keys(weft.tree.unflatten(weft.tree.structure(tree), weft.tree.leaves(tree))) == wanted
    assert keys(weft.jit(lambda: tree)()) == wanted
    assert keys(weft.grad(lambda t: sum(weft.tree.leaves(t)))(tree)) == wanted
    assert keys(weft.vmap(lambda i: weft.tree.map(lambda x: x * i, tree))(wnp.ones(2))) == wanted
    # OrderedDict keeps its own in both, and leaves are in the order of sorted keys.
    ordered = collections.OrderedDict(b=1, a=2)
    assert list(weft.tree.map(lambda x: x, ordered)) == ["b", "a"]
    assert weft.tree.leaves({"b": 1, "a": 2}) == [2, 1]
    assert weft.tree.structure(tree) == weft.tree.structure(in_order(tree))


def test_containers_inside_registered_classes_keep_their_parts():
    class Box:
        def __init__(self, x, tag):
            self.x, self.tag = x, tag

    weft.tree.register(Box, lambda b: ((b.x,), b.tag), lambda tag, xs: Box(*xs, tag))
    for on in (False, True):
        with weft.jax_semantics(on):
            for tag in (1, True, 0.0, -0.0):
                again = weft.tree.map(lambda x: x + 1, {"k": Box({"b": 1, "a": 2}, tag)})["k"]
                assert again.x == {"a": 3, "b": 2} and again.tag is tag
                assert list(again.x) == (["a", "b"] if on else ["b", "a"])


class _Plain:
    def __init__(self, x):
        self.x = x


class _WithKeys(_Plain):
    pass


@dataclasses.dataclass
class _Fields:
    x: Any


weft.tree.register(_Plain, lambda b: ((b.x,), None), lambda _, xs: _Plain(*xs))
weft.tree_util.register_pytree_with_keys(_WithKeys, lambda b: ((("x", b.x),), None), lambda _, xs: _WithKeys(*xs))
weft.tree.register_dataclass(_Fields)
_Named = collections.namedtuple("_Named", "x")
# What holds a dictionary, and the way to it.
HOLDERS = {
    "list": (lambda d: [0, d], lambda t: t[1]),
    "tuple": (lambda d: (d, 0), lambda t: t[0]),
    "deque": (lambda d: collections.deque([d]), lambda t: t[0]),
    "dict": (lambda d: {"k": d}, lambda t: t["k"]),
    "OrderedDict": (lambda d: collections.OrderedDict(k=d), lambda t: t["k"]),
    "defaultdict": (lambda d: collections.defaultdict(int, k=d), lambda t: t["k"]),
    "namedtuple": (_Named, lambda t: t.x),
    "registered": (_Plain, lambda t: t.x),
    "with keys": (_WithKeys, lambda t: t.x),
    "dataclass": (_Fields, lambda t: t.x),
}


@pytest.mark.parametrize("outer", HOLDERS)
@pytest.mark.parametrize("inner", HOLDERS)
def test_dictionaries_in_containers_of_all_kinds(jax_mode, outer, inner):
    (out, into), (hold, at) = HOLDERS[outer], HOLDERS[inner]
    for keys in ("ba", "ab", (2, 1), (1, 2), ("b", "a", "c"), ((1, 2), (1, 1))):
        for made in (dict, lambda pairs: collections.defaultdict(int, pairs)):
            tree = out(hold(made((key, n) for n, key in enumerate(keys))))
            for is_leaf in (None, lambda node: False):
                found = at(into(weft.tree.map(lambda x: x + 1, tree, is_leaf=is_leaf)))
                assert found == {key: n + 1 for n, key in enumerate(keys)}
                assert list(found) == (sorted(keys) if jax_mode else list(keys))


def test_named_tuples_are_registered_without_a_warning():
    cls = collections.namedtuple("Tagged", "x tag")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        weft.tree.register(cls, lambda t: ((t.x,), t.tag), lambda tag, xs: cls(*xs, tag))
    assert not said and weft.tree.map(lambda x: x + 1, cls(1, "a")) == cls(2, "a")


def test_known_indices_out_of_bounds(jax_mode):
    x = wnp.arange(6).reshape(2, 3)
    whole = np.arange(6).reshape(2, 3)
    cases = [(5, whole[1]), (-7, whole[0]), ((0, 9), 2), ((slice(None), 9), [2, 5])]
    for index, wanted in cases:
        if jax_mode:
            assert np.array_equal(x[index], wanted)
            assert np.array_equal(weft.jit(lambda v: v[index])(x), wanted)  # noqa: B023
        else:
            with pytest.raises(IndexError, match="out of bounds"):
                x[index]
    # Loops over arrays end in both.
    assert [int(v) for v in x[0]] == [0, 1, 2] and len(list(x)) == 2


def test_python_integers_that_do_not_fit(jax_mode):
    x = wnp.array([1], "int8")
    if not jax_mode:
        with pytest.raises(OverflowError):
            x + 300
        with pytest.raises(OverflowError):
            wnp.full(2, 300, "int8")
        return
    assert (x + 300).tolist() == [45] and (x + 300).dtype == "int8"
    assert wnp.full(2, 300, "int8").tolist() == [44, 44]
    assert (wnp.array([1], "uint32") + -2).tolist() == [2**32 - 1]
    assert not (x == 300).any()  # 300 stays 300 in comparisons
    with pytest.raises(OverflowError):
        wnp.array([1, 2]) + 2**40


def test_types_as_text(jax_mode):
    x = wnp.ones((2, 3))
    assert str(weft.typeof(x)) == "float32[2,3]"
    assert repr(weft.typeof(x)) == ("ShapedArray(float32[2,3])" if jax_mode else "ShapeDtype((2, 3), float32)")
    wanted = "ShapeDtypeStruct(shape=(3,), dtype=float32)" if jax_mode else "ShapeDtype((3,), float32)"
    assert repr(weft.eval_shape(lambda x: x.sum(0), x)) == wanted


def test_the_meanings_agree_with_jax():
    """What the rows above say of JAX is so."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    assert jnp.asarray(np.ones(1)).dtype == "float32" and (jnp.ones(1) * np.float64(2)).dtype == "float32"
    assert list(jax.tree.map(lambda x: x, {"b": 1, "a": 2})) == ["a", "b"]
    assert int(jnp.arange(3)[9]) == 2 and int(jnp.arange(3)[-9]) == 0
    assert (jnp.array([1], "int8") + 300).tolist() == [45] and jnp.full(2, 300, "int8").tolist() == [44, 44]
    assert repr(jax.typeof(jnp.ones((2, 3)))) == "ShapedArray(float32[2,3])"
    assert repr(jax.ShapeDtypeStruct((3,), "float32")) == "ShapeDtypeStruct(shape=(3,), dtype=float32)"

    @dataclasses.dataclass
    class Point:
        x: float

    assert len(jax.tree.leaves([Point(1.0)])) == 1
