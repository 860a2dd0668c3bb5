"""The names of JAX's public modules that Weft's modules of the same names have, by introspection: what is lacking
stands here with its reason, and what is new in JAX makes this test fail."""

import importlib
import types

import numpy as np
import pytest

import weft
import weft.numpy as wnp

jax = pytest.importorskip("jax")

_PRIMITIVES = "a primitive of JAX: weft.primitives has Weft's"
_DTYPES = "a dtype that Weft has not"
_SHAPES = "says a shape: eval_shape does for every function"
_ATTRIBUTES = "names an attribute of XLA's operations"
_TOKENS = "tokens of XLA's effects: Weft orders effects itself"

# Module -> name that Weft lacks -> why.
LACKING = {
    "jax.numpy": {
        "ComplexWarning": "NumPy's, from numpy.exceptions",
        "character": "an abstract type of texts, which no array has",
        "flexible": "an abstract type of texts, which no array has",
        "object_": "arrays of objects",
        **dict.fromkeys(
            [
                "float6_e2m3fn",
                "float6_e3m2fn",
                "int1",
                "uint1",
            ],
            _DTYPES,
        ),
    },
    "jax.numpy.linalg": {},
    "jax.numpy.fft": {},
    "jax.lax": {
        "AccuracyMode": _ATTRIBUTES,
        "ConvGeneralDilatedDimensionNumbers": "an alias for annotations",
        "DotAlgorithm": _ATTRIBUTES,
        "DotAlgorithmPreset": _ATTRIBUTES,
        "DotDimensionNumbers": "an alias for annotations",
        "PrecisionLike": "an alias for annotations",
        "Tolerance": _ATTRIBUTES,
        "after_all": _TOKENS,
        "create_token": _TOKENS,
        "dce_sink": _TOKENS,
        "precv": "point to point over processes: ppermute",
        "psend": "point to point over processes: ppermute",
        "shape_as_value": "symbolic sizes are values",
    },
    "jax.lax.linalg": {
        "EigImplementation": _ATTRIBUTES,
        "EighImplementation": _ATTRIBUTES,
        "SvdAlgorithm": _ATTRIBUTES,
    },
    "jax.nn": {},
    "jax.nn.initializers": {"Initializer": "a protocol for annotations"},
    "jax.random": {},
    "jax.ref": {},
    "jax.debug": {
        "DebugEffect": "effects are ordered by the program itself",
        "OrderedDebugEffect": "effects are ordered by the program itself",
    },
    "jax.errors": {
        "InconclusiveDimensionOperation": "TracerError says it of symbolic sizes",
        "JaxprTypeError": "InternalError says it of programs",
    },
    "jax.experimental.checkify": {},
    "jax.tree_util": {},
    "jax.flatten_util": {},
    "jax.image": {},
    "jax.ops": {},
    "jax.scipy.cluster.vq": {},
    "jax.scipy.fft": {},
    "jax.scipy.integrate": {},
    "jax.scipy.interpolate": {},
    "jax.scipy.linalg": {},
    "jax.scipy.ndimage": {},
    "jax.scipy.optimize": {},
    "jax.scipy.signal": {},
    "jax.scipy.sparse.linalg": {},
    "jax.scipy.spatial.transform": {},
    "jax.scipy.special": {},
    "jax.scipy.stats": {},
}


@pytest.mark.parametrize("module", LACKING)
def test_names(module):
    theirs = importlib.import_module(module)
    mine = importlib.import_module(module.replace("jax", "weft", 1))
    names = set()
    for name, value in ((n, getattr(theirs, n)) for n in dir(theirs) if not n.startswith("_")):
        foreign = isinstance(value, types.ModuleType) and not value.__name__.startswith("jax")
        if not foreign and not hasattr(mine, name) and not name.endswith("_p"):
            names.add(name)
    assert names == set(LACKING[module])


def test_methods_of_distributions():
    for name, theirs in vars(importlib.import_module("jax.scipy.stats")).items():
        if isinstance(theirs, types.ModuleType) and not name.startswith("_"):
            mine = getattr(weft.scipy.stats, name)
            for method in (m for m in dir(theirs) if not m.startswith("_") and callable(getattr(theirs, m))):
                assert hasattr(mine, method), f"{name}.{method}"


def test_vectors_of_another_dtype_make_trees_of_that():
    _, tree_of = weft.flatten_util.ravel_pytree({"a": wnp.ones(2), "b": wnp.ones(())})
    for dtype in ("float16", "complex64", "float64"):
        assert {str(x.dtype) for x in weft.tree.leaves(tree_of(wnp.zeros(3, dtype)))} == {dtype}
    _, tree_of = weft.flatten_util.ravel_pytree({"a": wnp.ones(2), "b": wnp.ones((), "int32")})
    assert [str(x.dtype) for x in weft.tree.leaves(tree_of(wnp.zeros(3)))] == ["float32", "int32"]
    with pytest.raises(TypeError, match="a vector of float32"):
        tree_of(wnp.zeros(3, "float16"))


@pytest.mark.parametrize("length", [7, 7.0, np.float64(7), np.int64(7)])
def test_lengths_of_scans(length):
    step = lambda c, _: (c + 1, c)
    last, all_of_them = weft.jit(lambda c: weft.lax.scan(step, c, None, length=length))(0)
    assert last == 7 and all_of_them.shape == (7,)


def test_lengths_that_are_not_whole():
    with pytest.raises(TypeError, match="length"):
        weft.lax.scan(lambda c, _: (c, None), 0, None, length=7.5)


def test_the_client_of_a_device():
    client = weft.devices()[0].client
    assert client.platform == "cpu" and client.device_count() == len(weft.devices())
    assert client.local_devices() == weft.local_devices() and client.process_index() == 0


TREE = {"b": [1, (2, None)], "a": 3}


def test_one_level_of_a_tree():
    mine, theirs = weft.tree_util, jax.tree_util
    for tree in (TREE, [1, None, (2,)], (1, 2), None, {"x": TREE}):
        children, _ = mine.flatten_one_level(tree)
        assert list(children) == list(theirs.flatten_one_level(tree)[0])
        keyed = mine.flatten_one_level_with_keys(tree)[0]
        assert [(str(k), v) for k, v in keyed] == [(str(k), v) for k, v in theirs.flatten_one_level_with_keys(tree)[0]]
    with pytest.raises(ValueError, match="container"):
        mine.flatten_one_level(1)
    structure = weft.tree.structure(TREE)
    first, second = mine.treedef_children(structure)
    assert mine.treedef_is_leaf(first) and not mine.treedef_is_leaf(second)
    assert mine.treedef_tuple([first, second]) == weft.tree.structure((3, [1, (2, None)]))
    for cls in (list, dict, tuple, int, np.ndarray, mine.Partial):
        assert mine.is_tree_node(cls) == (cls not in (int, np.ndarray))
    assert mine.tree_reduce_associative(lambda a, b: f"({a}{b})", [1, 2, 3, 4, 5]) == "(((12)(34))5)"
    assert mine.default_registry.flatten_one_level(TREE) == mine.flatten_one_level(TREE)


NUMBERS = [("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC"), ("HWCN", "OWIH", "WNHC")]


@pytest.mark.parametrize("numbers", NUMBERS, ids="-".join)
@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 2), (0, 0)]], ids=str)
def test_shapes_of_convolutions(numbers, padding):
    sizes = {"N": 4, "C": 3, "O": 5, "I": 3, "H": 9, "W": 8}
    kernel = {**sizes, "H": 3, "W": 2}
    lhs, rhs = [sizes[c] for c in numbers[0]], [kernel[c] for c in numbers[1]]
    mine, theirs = weft.lax, jax.lax
    assert mine.conv_general_permutations(numbers) == tuple(map(tuple, theirs.conv_general_permutations(numbers)))
    for strides in [(1, 1), (2, 3)]:
        for name in ("conv_general_shape_tuple", "conv_transpose_shape_tuple"):
            shape = getattr(mine, name)(lhs, rhs, strides, padding, numbers)
            assert shape == tuple(map(int, getattr(theirs, name)(lhs, rhs, strides, padding, numbers))), name
        dims = jax.lax.conv_dimension_numbers(tuple(lhs), tuple(rhs), numbers)
        x, k = np.ones(lhs, "float32"), np.ones(rhs, "float32")
        real = jax.lax.conv_general_dilated(x, k, strides, padding, dimension_numbers=dims).shape
        assert mine.conv_general_shape_tuple(lhs, rhs, strides, padding, numbers) == real


def test_shapes_of_windows():
    for padding in ("SAME", "VALID", "SAME_LOWER"):
        pads = weft.lax.padtype_to_pads((9, 8), (3, 2), (2, 3), padding)
        assert pads == [tuple(map(int, p)) for p in jax.lax.padtype_to_pads((9, 8), (3, 2), (2, 3), padding)]
        assert weft.lax.conv_shape_tuple((4, 3, 9, 8), (5, 3, 3, 2), (2, 3), padding) == tuple(
            map(int, jax.lax.conv_shape_tuple((4, 3, 9, 8), (5, 3, 3, 2), (2, 3), padding))
        )
    assert weft.lax.conv_shape_tuple((4, 3, 9), (5, 3, 3), (2,), [(1, 0)], 2) == (2, 5, 4)
    for dilations in ({}, {"base_dilation": (2, 1), "window_dilation": (1, 3)}):
        given = (9, 8), (3, 2), (2, 3), [(1, 0), (2, 2)]
        shape = weft.lax.reduce_window_shape_tuple(*given, **dilations)
        assert shape == tuple(map(int, jax.lax.reduce_window_shape_tuple(*given, **dilations)))
    for call, error, message in (
        (lambda: weft.lax.conv_shape_tuple((4, 3, 9), (5, 3, 3), (1,), [(0, 0)] * 2), TypeError, "2 pairs of padding"),
        (lambda: weft.lax.conv_shape_tuple((4, 3, 9), (5, 3, 3), (1,), [(-9, -1)]), ValueError, "takes more than"),
        (lambda: weft.lax.conv_shape_tuple((4, 3, 9), (5, 3, 3), (1,), [(0, 0)], 3), ValueError, "3 groups"),
        (lambda: weft.lax.conv_general_permutations(("NHH", "HIO", "NHC")), TypeError, "once each"),
        (lambda: weft.lax.padtype_to_pads((3,), (2,), (1,), "HALF"), ValueError, "padding must be"),
    ):
        with pytest.raises(error, match=message):
            call()
