"""Functions take the arguments of JAX's, under their names and with their meaning."""

import collections
import dataclasses
import enum
import inspect

import numpy as np
import pytest

import weft
import weft.numpy as wnp

jax = pytest.importorskip("jax", reason="the signatures are compared with JAX's")

MODULES = {
    "lax": (weft.lax, jax.lax),
    "random": (weft.random, jax.random),
    "nn": (weft.nn, jax.nn),
    "tree_util": (weft.tree_util, jax.tree_util),
}

# Parameters of JAX's that Weft's functions do not take, and why: everywhere,
LEFT_OUT = {
    "out_sharding": "results are placed by with_sharding_constraint",
    "sharding": "results are placed by with_sharding_constraint",
    "accuracy": "element-wise functions have one accuracy, and are called in C++ with positional arguments",
    "out_dtype": "element-wise functions are called in C++ with positional arguments",
}
# and of some functions.
LEFT_OUT_OF = {
    "lax.scan": {"_split_transpose": "private"},
}


def common():
    for name, (ours, theirs) in MODULES.items():
        for function in sorted(dir(theirs)):
            if not function.startswith("_") and hasattr(ours, function):
                yield f"{name}.{function}", getattr(ours, function), getattr(theirs, function)


def missing(name, ours, theirs):
    """The parameters that ours lacks; None where one of the two has no signature to compare."""
    try:
        own, wanted = inspect.signature(ours).parameters, inspect.signature(theirs).parameters
    except (TypeError, ValueError):
        return None
    named = [p.name for p in wanted.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    if any(p.kind == p.VAR_KEYWORD for p in own.values()):
        return []
    return [p for p in named if p not in own and p not in LEFT_OUT and p not in LEFT_OUT_OF.get(name, ())]


def test_parameters_have_the_names_of_jax():
    compared = {
        name: found
        for name, ours, theirs in common()
        if callable(theirs) and not inspect.isclass(theirs) and (found := missing(name, ours, theirs)) is not None
    }
    assert len(compared) > 230, len(compared)
    assert not {name: found for name, found in compared.items() if found}


def test_parameters_stand_where_those_of_jax_do():
    # A positional argument means the same in both.
    wrong = {}
    for name, ours, theirs in common():
        if inspect.isclass(theirs) or missing(name, ours, theirs) is None:
            continue
        own, wanted = (
            [
                p.name
                for p in inspect.signature(f).parameters.values()
                if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name not in LEFT_OUT
            ]
            for f in (ours, theirs)
        )
        if name not in LEFT_OUT_OF and any(a != b for a, b in zip(own, wanted)):
            wrong[name] = own, wanted
    assert not wrong


def test_what_is_left_out_is_left_out():
    names = {name: (ours, theirs) for name, ours, theirs in common()}
    for name, table in LEFT_OUT_OF.items():
        ours, theirs = (inspect.signature(f).parameters for f in names[name])
        assert all(p in theirs and p not in ours for p in table), name


RNG = np.random.default_rng(5)
X = RNG.normal(size=(4, 5)).astype("float32")
QUERY = RNG.normal(size=(2, 5, 4, 8)).astype("float32")
KEY, VALUE = RNG.normal(size=(2, 2, 6, 2, 8)).astype("float32")
SMALL = np.full((2, 3), 100, "int8")
LOGITS = np.array([[0.1, 0.2, 0.3], [1.0, 2.0, 3.0]], "float32")
IMAGES, KERNELS = RNG.integers(-100, 100, (1, 2, 7)).astype("int8"), RNG.integers(-100, 100, (3, 2, 3)).astype("int8")
ROW = np.arange(1.0, 6.0, dtype="float32").reshape(1, 5, 1)
FILTER = np.arange(1.0, 5.0, dtype="float32").reshape(4, 1, 1)
OVER = (((0,), (1,)), ((), ()))
HALF = X.astype("float16")


def call(path, *args, **kwargs):
    """A case: the function and its arguments, arrays as NumPy's."""
    text = ", ".join([path] + [f"{k}={v.shape if isinstance(v, np.ndarray) else v}" for k, v in kwargs.items()])
    return pytest.param(path, args, kwargs, id=text)


CASES = [
    call("lax.dot", X, X.T, dimension_numbers=OVER, precision="highest"),
    call("lax.dot", SMALL, SMALL.T, preferred_element_type="int32"),
    call("lax.dot", HALF, HALF.T, preferred_element_type="float32"),
    call("lax.dot", X, X.T, preferred_element_type="float16"),
    call("lax.dot_general", SMALL, SMALL.T, (((1,), (0,)), ((), ())), preferred_element_type="int32"),
    call("lax.conv_general_dilated", IMAGES, KERNELS, (1,), "SAME", preferred_element_type="int32"),
    call("lax.conv", IMAGES, KERNELS, (1,), "SAME", preferred_element_type="int32"),
    call("lax.conv_with_general_padding", IMAGES, KERNELS, (1,), [(1, 0)], None, (2,), preferred_element_type="int32"),
    call("lax.conv_transpose", ROW, FILTER, (2,), [(1, 2)]),
    call("lax.conv_transpose", ROW, FILTER, (2,), [(1, 2)], use_consistent_padding=True),
    call("lax.conv_transpose", ROW, FILTER, (3,), [(0, 2)], (2,), use_consistent_padding=True),
    call("lax.conv_transpose", ROW, FILTER, (2,), "SAME", use_consistent_padding=True),
    call("lax.sort", X, 0, True),
    call("lax.sort", (np.array([1, 1, 0], "int32"), np.array([3, 2, 1], "int32")), 0, False, 2),
    call("lax.sort", (np.array([1, 1, 0], "int32"), np.array([3, 2, 1], "int32")), is_stable=True, num_keys=1),
    call("lax.top_k", X, 2, axis=0),
    call("lax.top_k", X.reshape(2, 2, 5), 2, axis=-2),
    call("lax.approx_max_k", X, 2, 0, recall_target=0.9),
    call("lax.dynamic_slice", X, (-2, -3), (1, 2)),
    call("lax.dynamic_slice", X, (np.array(-2), -3), (1, 2), allow_negative_indices=(False, True)),
    call("lax.dynamic_slice_in_dim", X, np.array(-2), 2, allow_negative_indices=False),
    call("lax.dynamic_index_in_dim", X, np.array(-2), 1, False, allow_negative_indices=False),
    call("lax.dynamic_update_slice", X, X[:1, :2], (np.array(-2), -3), allow_negative_indices=(False, True)),
    call("lax.dynamic_update_slice_in_dim", X, X[:2] + 1, np.array(-3), 0, allow_negative_indices=False),
    call("lax.dynamic_update_index_in_dim", X, X[0], np.array(-3), 0, allow_negative_indices=False),
    call("lax.unstack", x=X, axis=1),
    call("nn.standardize", X, where=X > -0.5),
    call("nn.standardize", X, 0, np.float32(0.3), where=X > -0.5),
    call("nn.standardize", X, mean=np.float32(0.3), algorithm="stable"),
    call("nn.dot_product_attention", QUERY, KEY, VALUE, query_seq_lengths=np.array([3, 5], "int32")),
    call("nn.dot_product_attention", QUERY, KEY, VALUE, key_value_seq_lengths=np.array([3, 5], "int32")),
    call("nn.dot_product_attention", QUERY, KEY, VALUE, local_window_size=1, implementation="xla"),
    call("nn.dot_product_attention", QUERY, KEY, VALUE, local_window_size=(2, 0), is_causal=True),
    call("nn.dot_product_attention", QUERY, KEY, VALUE, return_residual=True, is_causal=True),
    call("nn.dot_product_attention", QUERY[0], KEY[0], VALUE[0], return_residual=True),
    *[call("random.orthogonal", n, (2,), m=m) for n, m in ((3, 2), (2, 3), (3, 3))],
    *[call("random.gumbel", (100,), mode=mode) for mode in ("low", "high")],
    *[call("random.bernoulli", np.float32(0.2), (100,), mode=mode) for mode in ("low", "high")],
    *[call("random.categorical", LOGITS, shape=(7, 2), mode=mode) for mode in ("low", "high")],
    *[call("random.categorical", LOGITS, shape=s, replace=False) for s in ((2, 2), (3, 1, 2), None)],
    call("random.categorical", LOGITS.T, 0, (2, 2), False, mode="high"),
    call("random.choice", 9, (4,), False, np.arange(1, 10, dtype="float32") / 45, mode="high"),
]


@pytest.mark.parametrize("path,args,kwargs", CASES)
def test_arguments_mean_what_they_mean_in_jax(path, args, kwargs):
    name, function = path.split(".")
    results = []
    for package, numpy, module in zip((weft, jax), (wnp, jax.numpy), MODULES[name]):
        given = [numpy.asarray(x) if isinstance(x, np.ndarray) else x for x in args]
        key = [package.random.key(3)] if name == "random" else []
        results.append(package.tree.leaves(getattr(module, function)(*key, *given, **kwargs)))
    assert len(results[0]) == len(results[1])
    for ours, theirs in zip(*results):
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, 2e-3 if ours.dtype == "float16" else 5e-5, 5e-5)


@pytest.mark.parametrize(
    "what,error,text",
    [
        (lambda: weft.random.key(0, impl="mt"), ValueError, "impl must be one of threefry2x32, rbg, .*, got 'mt'"),
        (lambda: weft.random.PRNGKey(0, impl="mt"), ValueError, "PRNGKey: impl"),
        (lambda: weft.random.wrap_key_data(wnp.zeros(2, "uint32"), impl="rbg"), TypeError, "wrap_key_data"),
        (lambda: weft.random.key(0, impl="threefry2x32", dtype=weft.random.key(0).dtype), ValueError, "one of them"),
        (lambda: weft.random.key(0, dtype="float32"), TypeError, "dtype must be None or that of random keys"),
        (lambda: weft.random.gumbel(weft.random.key(0), mode="fine"), ValueError, "gumbel: mode must be"),
        (lambda: weft.random.bernoulli(weft.random.key(0), mode="fine"), ValueError, "bernoulli: mode must be"),
        (lambda: weft.random.choice(weft.random.key(0), 3, mode="fine"), ValueError, "choice: mode must be"),
        (
            lambda: weft.random.categorical(weft.random.key(0), wnp.ones(3), shape=(4,), replace=False),
            ValueError,
            "4 different indices of 3",
        ),
        (
            lambda: weft.nn.dot_product_attention(QUERY, KEY, VALUE, implementation="cudnn"),
            NotImplementedError,
            "implementation must be None or 'xla', got 'cudnn'",
        ),
        (lambda: weft.nn.standardize(X, algorithm="exact"), ValueError, "algorithm must be 'fast' or 'stable'"),
        (
            lambda: weft.lax.dot(np.ones(2, "int32"), np.ones(2, "int32"), preferred_element_type="int8"),
            TypeError,
            "int8 is narrower than the operands' int32",
        ),
        (
            lambda: weft.lax.dynamic_slice(X, (-1, 0), (1, 1), allow_negative_indices=False),
            ValueError,
            "start index -1 is negative",
        ),
        (
            lambda: weft.lax.dynamic_slice(X, (0, 0), (1, 1), allow_negative_indices=(False,)),
            ValueError,
            "one for each of 2 dimensions",
        ),
        (lambda: weft.lax.top_k(X, 2, axis=2), IndexError, "top_k"),
    ],
)
def test_what_is_not_taken_is_refused(what, error, text):
    with pytest.raises(error, match=text):
        what()


def test_keys_take_the_names_of_their_generator_and_dtype():
    key = weft.random.key(7, impl="threefry2x32")
    words = weft.random.PRNGKey(7, impl="threefry2x32")
    for same in (weft.random.key(7, dtype=key.dtype), weft.random.wrap_key_data(key_bits_array=words, impl=None)):
        np.testing.assert_array_equal(np.asarray(weft.random.key_data(same)), np.asarray(words))


def test_the_high_mode_reaches_what_the_low_one_does_not():
    # Of 2^21 numbers about 95 exceed 10. In float32 those of the low mode lie on a grid of about 2^23 exp(-10) = 381
    # places, so that some coincide; the high mode's has 2^23 times as many.
    key = weft.random.key(11)
    low, high = (np.asarray(weft.random.gumbel(key, (2**21,), mode=mode)) for mode in ("low", "high"))
    for numbers in (low, high):
        assert abs(numbers.mean() - np.euler_gamma) < 5 * np.pi / np.sqrt(6 * 2**21)
    tails = [numbers[numbers > 10] for numbers in (low, high)]
    assert all(60 < len(tail) < 135 for tail in tails)
    assert len(np.unique(tails[0])) < len(tails[0]) and len(np.unique(tails[1])) == len(tails[1])
    # Certain events stay certain, though sums of two numbers are rounded.
    assert bool(weft.random.bernoulli(key, 1.0, (2**21,), mode="high").all())
    assert not bool(weft.random.bernoulli(key, 0.0, (2**21,), mode="high").any())


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
@pytest.mark.parametrize("name", ["gumbel", "laplace", "logistic", "cauchy"])
def test_distributions_come_in_every_float_dtype(name, dtype):
    numbers = getattr(weft.random, name)(weft.random.key(1), (1000,), dtype)
    assert str(numbers.dtype) == dtype and np.isfinite(np.asarray(numbers).astype("float64")).all()


def test_parameters_of_operations_are_named_in_their_words():
    assert list(inspect.signature(weft.lax.nextafter).parameters) == ["x1", "x2"]
    assert list(inspect.signature(weft.lax.add).parameters) == ["x", "y"]
    assert weft.lax.nextafter.__doc__.startswith("The next representable number after x1 towards x2.")
    assert weft.lax.pow.__doc__.startswith("x to the power y.")


def test_trees_take_what_counts_as_a_leaf():
    tree = {"a": [1, 2], "b": {"c": 3}}

    def is_list(node):
        return isinstance(node, list)

    ours, theirs = weft.tree_util, jax.tree_util
    assert ours.tree_reduce(lambda x, y: x + y, [[1], [2]], initializer=[0], is_leaf=lambda n: n in ([1], [2])) == [
        0,
        1,
        2,
    ]
    assert ours.tree_reduce(lambda x, y: x + y, [1, 2], 10) == theirs.tree_reduce(lambda x, y: x + y, [1, 2], 10)
    # An empty container is no leaf, and false as one.
    assert ours.tree_all([[], 1]) and not ours.tree_all([[], 1], is_leaf=lambda n: n == [])
    assert theirs.tree_all([[], 1]) and not theirs.tree_all([[], 1], is_leaf=lambda n: n == [])
    assert ours.tree_structure(tree, is_list).num_leaves == theirs.tree_structure(tree, is_list).num_leaves == 2
    for name in ("tree_leaves_with_path", "tree_flatten_with_path"):
        own, wanted = (getattr(module, name)(tree, is_list) for module in (ours, theirs))
        own, wanted = (own, wanted) if name == "tree_leaves_with_path" else (own[0], wanted[0])
        assert [(ours.keystr(p), leaf) for p, leaf in own] == [(theirs.keystr(p), leaf) for p, leaf in wanted]
    own, wanted = (
        module.tree_map_with_path(f=lambda p, x, m=module: (m.keystr(p), x), tree=tree, is_leaf=is_list)
        for module in (ours, theirs)
    )
    assert own == wanted == {"a": ("['a']", [1, 2]), "b": {"c": ("['b']['c']", 3)}}
    assert ours.tree_map(f=lambda x: x, tree=tree) == tree


def test_trees_are_transposed_by_the_structure_of_their_first_part():
    trees = [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    for module in (weft.tree_util, jax.tree_util):
        outer = module.tree_structure([0, 0])
        turned = module.tree_transpose(outer_treedef=outer, inner_treedef=None, pytree_to_transpose=trees)
        assert turned == {"a": [1, 3], "b": [2, 4]}


def test_fields_of_dataclasses_are_dropped():
    for module in (weft.tree_util, jax.tree_util):

        @dataclasses.dataclass
        class Layer:
            w: int
            name: str = "dense"
            calls: int = 0
            log: list = dataclasses.field(default_factory=list, init=False)

        module.register_dataclass(nodetype=Layer, data_fields=["w"], meta_fields=["name"], drop_fields=["calls", "log"])
        leaves, structure = module.tree_flatten(Layer(2, "out", 7))
        assert leaves == [2]
        made = module.tree_unflatten(structure, [5])
        assert (made.w, made.name, made.calls) == (5, "out", 0)


def _described(module, tree):
    """What a program can ask of the paths of a tree."""
    described = []
    for path, leaf in module.tree_flatten_with_path(tree)[0]:
        assert isinstance(path, tuple)
        keys = [
            (
                type(key).__name__,
                repr(key),
                str(key),
                {n: getattr(key, n) for n in ("key", "idx", "name") if hasattr(key, n)},
            )
            for key in path
        ]
        texts = [module.keystr(path), module.keystr(path[:1]), module.keystr(path, simple=True, separator="/")]
        described.append((keys, texts, leaf))
    return described


def test_paths_are_tuples_of_keys():
    point = collections.namedtuple("point", "x y")
    tree = {
        "list": [1, (2, None)],
        "named": point(3, {"z": 4}),
        "ordered": collections.OrderedDict(b=5, a=6),
        "default": collections.defaultdict(int, {(1, 2): 7}),
    }
    assert _described(weft.tree_util, tree) == _described(jax.tree_util, tree)
    numbers = {3: [1], 5: 2}
    assert _described(weft.tree_util, numbers) == _described(jax.tree_util, numbers)
    assert _described(weft.tree_util, 1) == _described(jax.tree_util, 1) == [([], ["", "", ""], 1)]
    assert weft.tree_util.KeyPath == tuple[weft.tree_util.KeyEntry, ...]  # for annotations
    for module in (weft.tree, jax.tree):
        picked = module.map_with_path(lambda p, v: v if p[-1].key == "kernel" else 0 * v, {"kernel": 3, "bias": 4})
        assert picked == {"kernel": 3, "bias": 0}
        ((path, leaf),), structure = module.flatten_with_path({"w": [9]})
        assert len(path) == 2 and leaf == 9 and structure == module.structure({"w": [0]})
    for module in (weft.tree_util, jax.tree_util):
        assert module.DictKey("a") == module.DictKey("a") != module.DictKey("b")
        assert len({module.SequenceKey(1), module.SequenceKey(1), module.FlattenedIndexKey(1)}) == 2
        match module.GetAttrKey("w"):
            case module.GetAttrKey(name):
                assert name == "w"


def test_classes_give_their_children_keys():
    for module in (weft.tree_util, jax.tree_util):

        class Pair:
            def __init__(self, first, second):
                self.first, self.second = first, second

        class Kept(Pair):
            pass

        class Numbered(dict):
            pass

        @module.register_pytree_with_keys_class
        class Layer(Pair):
            def tree_flatten_with_keys(self, m=module):
                return ((m.GetAttrKey("first"), self.first), ("second", self.second)), "static"

            @classmethod
            def tree_unflatten(cls, data, children):
                assert data == "static"
                return cls(*children)

        def with_keys(pair, m=module):
            return iter([(m.DictKey("a"), pair.first), (m.DictKey("b"), pair.second)]), None

        module.register_pytree_with_keys(Pair, with_keys, lambda data, children: Pair(*children))
        module.register_pytree_node(
            Kept,
            lambda pair: ((pair.first, pair.second), None),
            lambda data, children: Kept(*children),
            flatten_with_keys_func=with_keys,
        )
        module.register_pytree_node(Numbered, lambda d: (list(d.values()), tuple(d)), lambda k, v: Numbered(zip(k, v)))
        tree = [Layer(1, Pair(2, [3])), Kept(4, 5), Numbered(x=6)]
        paths = [module.keystr(path) for path, _ in module.tree_leaves_with_path(tree)]
        assert paths == [
            "[0].first",
            "[0]second['a']",
            "[0]second['b'][0]",
            "[1]['a']",
            "[1]['b']",
            "[2][<flat index 0>]",
        ]
        assert module.tree_leaves(tree) == [1, 2, 3, 4, 5, 6]
        doubled = module.tree_map(lambda x: 2 * x, tree)
        assert isinstance(doubled[0], Layer) and doubled[0].second.second == [6] and doubled[2] == {"x": 12}
        with pytest.raises(ValueError, match="Pair"):
            module.register_pytree_with_keys(Pair, with_keys, lambda data, children: Pair(*children))


def test_messages_name_arguments_by_the_keys_of_classes():
    @weft.tree_util.register_pytree_with_keys_class
    class Model:
        def __init__(self, w):
            self.w = w

        def tree_flatten_with_keys(self):
            return ((weft.tree_util.GetAttrKey("w"), self.w),), None

        @classmethod
        def tree_unflatten(cls, data, children):
            return cls(*children)

    with pytest.raises(ValueError, match=r"argument model\.w\['a'\]\[0\] of"):
        weft.vmap(lambda model: 0)(Model({"a": [1.0]}))


def test_initialisers_take_a_dtype():
    ours, theirs = weft.nn.initializers, jax.nn.initializers
    for name in ours.__all__:
        own, wanted = (list(inspect.signature(getattr(m, name)).parameters) for m in (ours, theirs))
        assert own == [p for p in wanted if p not in LEFT_OUT], name
    key, their_key = weft.random.key(0), jax.random.key(0)
    for module, k in ((ours, key), (theirs, their_key)):
        made = [
            module.normal(0.02, "bfloat16"),
            module.uniform(np.float64(0.5), "bfloat16"),
            module.constant(3, "bfloat16"),
        ]
        made += [module.truncated_normal(np.float64(0.5), "bfloat16")]
        for init in made:
            assert init(k, (2,)).dtype == "bfloat16" and init(k, (2,), "float32").dtype == "float32"
            assert init(k, (2,), None).dtype == "float32"
    np.testing.assert_array_equal(ours.normal(0.02)(key, (3,)), theirs.normal(0.02)(their_key, (3,)))
    np.testing.assert_allclose(
        ours.variance_scaling(1.0, "fan_geo_avg", "normal")(key, (2, 3)),
        theirs.variance_scaling(1.0, "fan_geo_avg", "normal")(their_key, (2, 3)),
        rtol=1e-6,
    )


class _Pair(int):
    """A number that is registered as a container."""


class _Length(float):
    pass


class _Level(enum.IntEnum):
    ONE = 1


def test_numbers_of_own_classes_are_leaves_unless_they_are_registered():
    weft.tree_util.register_pytree_node(_Pair, lambda p: ((int(p) // 10, int(p) % 10), None), lambda _, c: tuple(c))
    f = weft.jit(lambda p, q: weft.tree.map(lambda v: v + 1, p))
    assert [int(v) for v in f(_Pair(34), 1)] == [4, 5]
    assert int(f(34, 1)) == 35 and [int(v) for v in f(_Pair(56), 1)] == [6, 7]
    assert [int(v) for v in f([_Pair(34), 5], 1)[0]] == [4, 5]
    assert float(f(_Length(2.5), 1)) == 3.5 and int(f(_Level.ONE, 1)) == 2 and float(f(np.float64(2), 1)) == 3
