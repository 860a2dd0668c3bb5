"""Mistakes: each raises the right exception, says what was given and expected, and names the user's line."""

import pickle
import threading

import numpy as np
import pytest

import weft
import weft.numpy as wnp


def line_of(text):
    with open(__file__) as file:
        for number, line in enumerate(file, 1):
            if line.rstrip().endswith("# " + text):
                return f"errors_test.py:{number}"
    raise AssertionError(text)


def test_shapes():
    with pytest.raises(TypeError, match=r"\(2,\) and \(3,\) do not broadcast"):
        wnp.ones(2) + wnp.ones(3)
    with pytest.raises(TypeError, match=r"matmul.*2 columns against 3 rows"):
        wnp.ones((2, 2)) @ wnp.ones((3, 2))
    with pytest.raises(TypeError, match=r"reshape.*6 elements"):
        wnp.ones((2, 3)).reshape(4)
    with pytest.raises(IndexError, match="axis 2"):
        wnp.ones((2, 3)).sum(axis=2)
    with pytest.raises(TypeError, match="concatenate: array 1"):
        wnp.concatenate([wnp.ones((2, 2)), wnp.ones((2, 3))])
    with pytest.raises(ValueError, match=r"einsum.*names 1 operands, got 2"):
        wnp.einsum("ij->i", wnp.ones((2, 2)), wnp.ones(2))
    with pytest.raises(TypeError, match=r"index 'j'|index '"):
        wnp.einsum("ij,jk->ik", wnp.ones((2, 3)), wnp.ones((2, 2)))


def test_user_line_while_tracing():
    def model(x):
        y = wnp.sin(x)
        return y @ wnp.ones((7, 2))  # bad product

    with pytest.raises(TypeError, match="matmul") as info:
        weft.jit(model)(wnp.ones(3))
    assert line_of("bad product") in str(info.value)


def test_tracer_as_bool():
    def model(x):
        if x.sum() > 0:  # bad if
            return x
        return -x

    for transform in [weft.jit, weft.make_ir, weft.vmap]:
        with pytest.raises(weft.TracerError, match=r"weft.cond") as info:
            transform(model)(wnp.ones((2, 3)))
        assert line_of("bad if") in str(info.value) and "argument 'x'" in str(info.value)
        assert isinstance(info.value, TypeError)


def test_tracer_as_number():
    for f in [
        float,
        int,
        complex,
        lambda x: range(x.astype(int)),
        lambda x: x.item(),
        np.asarray,
        lambda x: np.sin(x),
        lambda x: x.tolist(),
    ]:
        with pytest.raises(weft.TracerError):
            weft.jit(lambda x: f(x) and x)(1.0)  # noqa: B023
    with pytest.raises(weft.TracerError, match="static"):
        weft.jit(lambda n: wnp.zeros(n))(3)


def test_escaped_tracer():
    kept = []

    def leak(x):
        kept.append(x * 2)  # leaked
        return x

    weft.jit(leak)(wnp.ones(3))
    for use in [
        lambda v: v + 1,
        lambda v: weft.jit(lambda x: x + v)(1.0),
        float,
        lambda v: wnp.sin(v),
        lambda v: v[0],
        bool,
    ]:
        with pytest.raises(weft.TracerError, match=r"escaped|ended") as info:
            use(kept[0])
        assert line_of("leaked") in str(info.value) and "'leak'" in str(info.value)
    assert repr(kept[0]) == "Tracer<f32[3]>" and kept[0].shape == (3,)


def test_arguments_that_are_no_arrays():
    with pytest.raises(TypeError, match=r"'abc' of type 'str'.*static"):
        weft.jit(lambda x: x)("abc")
    with pytest.raises(TypeError, match=r"argument x\['a'\] of 'g' is 'abc'"):

        def g(x):
            return 1.0

        weft.grad(g)({"a": "abc"})
    with pytest.raises(TypeError, match=r"result.*of '<lambda>'|result"):
        weft.jit(lambda x: "text")(1.0)
    with pytest.raises(TypeError, match=r"\[1\]"):
        weft.jit(lambda x: (x, object()))(1.0)
    with pytest.raises(TypeError, match="expected a function"):
        weft.jit(3)


def test_traces_close_after_an_error():
    def bad(x):
        raise RuntimeError("mine")

    for transform in [weft.jit, weft.grad, weft.vmap, weft.make_ir]:
        with pytest.raises(RuntimeError, match="mine"):
            transform(bad)(wnp.ones(3))
    assert not weft._weft.is_tracing()
    assert isinstance(wnp.ones(3) + 1, weft.Array) and not isinstance(wnp.ones(3) + 1, weft.Tracer)


def test_bad_dtypes():
    with pytest.raises(TypeError, match="'float99'"):
        wnp.ones(3, "float99")
    with pytest.raises(TypeError):
        ~wnp.ones(3)
    with pytest.raises(TypeError):
        wnp.ones(3) & 1
    with pytest.raises(TypeError):
        _ = wnp.asarray(1j) < 2


def test_empty_and_nan():
    with pytest.raises(ValueError, match="no elements"):
        wnp.zeros((0,)).max()
    with pytest.raises(ValueError):
        wnp.argmax(wnp.zeros((0,)))
    assert wnp.zeros((0,)).sum().item() == 0 and wnp.zeros((0, 3)).sum(0).tolist() == [0, 0, 0]
    assert np.isnan(wnp.asarray([1.0, np.nan]).max().item()) and np.isnan(wnp.zeros((0,)).mean().item())
    assert (wnp.zeros((2, 0)) @ wnp.zeros((0, 3))).tolist() == [[0] * 3] * 2
    assert weft.grad(lambda x: (x * wnp.zeros((0,))).sum())(2.0).item() == 0


def test_no_derivative():
    with pytest.raises((weft.DerivativeError, TypeError)):
        weft.grad(lambda x: wnp.nextafter(x, x + 1))(1.0)


def test_operations_count_their_arguments():
    with pytest.raises(TypeError, match="sin: takes 1 argument, got 2"):
        wnp.sin(1.0, 2.0)
    with pytest.raises(TypeError, match="positional"):
        wnp.sin(x=1.0)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("call", [weft.pure_callback, weft.io_callback])
@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_a_callback_stays_one(interrupt, call, jitted):
    def callback(x):
        raise interrupt("stop", 7)

    def f(x):
        return weft.fori_loop(0, 3, lambda i, c: call(callback, weft.ShapeDtype((), "float32"), c), x)

    with pytest.raises(interrupt) as caught:
        (weft.jit(f) if jitted else f)(1.0)
    assert caught.value.args == ("stop", 7)
    assert caught.traceback[-1].name == "callback"
    # An ordinary exception passes too, afterwards.
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        weft.jit(lambda x: call(lambda v: 1 / 0, weft.ShapeDtype((), "float32"), x))(1.0)


def test_an_interrupt_in_one_thread_is_none_of_anothers():
    def callback(x):
        raise KeyboardInterrupt(float(x)) if x % 2 else ValueError(float(x))

    f = weft.jit(lambda x: weft.pure_callback(callback, weft.ShapeDtype((), "float32"), x))
    seen = {}

    def run(i):
        try:
            f(np.float32(i))
        except BaseException as error:
            seen[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(8):
        assert type(seen[i]) is (KeyboardInterrupt if i % 2 else ValueError)
        assert str(float(i)) in str(seen[i])


# --- Arguments of other kinds -----------------------------------------------------------------------------------------

_LONE = "\ud800"  # half of a surrogate pair: a Python string that UTF-8 cannot say
_X = wnp.ones((2, 3))


def _stage(name):
    return weft.make_ir(lambda x: x + 1)(_X).stage(name)


def _over_lanes(function):
    return weft.vmap(function, axis_name="i")(wnp.ones((2, 2)))


# Each would be refused by pybind11 in words of C++, were it passed on.
OTHER_KINDS = {
    "stage of None": (lambda: _stage(None), TypeError, "IR.stage: name must be a string, got 'NoneType'"),
    "stage of 3": (lambda: _stage(3), TypeError, "IR.stage: name must be a string, got 'int'"),
    "lowered stage": (lambda: weft.jit(wnp.sin).lower(_X).stage(3), TypeError, "Lowered.stage: name must be a string"),
    "stage for a GPU": (
        lambda: weft.jit(wnp.sin).lower(_X, target="cuda:sm_90a").stage(None),
        TypeError,
        "Lowered.stage: name must be a string",
    ),
    "text": (lambda: weft.parse_ir(_LONE), ValueError, r"parse_ir: text .* half of a surrogate pair, '\\ud800'"),
    "file": (lambda: weft.parse_ir("", _LONE), ValueError, "parse_ir: file .* half of a surrogate pair"),
    "dimension": (lambda: weft.Dim(None), TypeError, r"Dim: text must be a string such as 'n' or '2\*n\+1', got None"),
    "size": (lambda: weft.ShapeDtype((_LONE,), "float32"), TypeError, "Dim: text must be a string"),
    "static_argnames": (lambda: weft.jit(lambda x: x, static_argnames=_LONE)(1), ValueError, r"\\ud800"),
    "policy": (
        lambda: weft.checkpoint(wnp.sin, policy=_LONE),
        ValueError,
        "checkpoint: policy must be a text; it has half",
    ),
    "name": (lambda: weft.ad_checkpoint.checkpoint_name(_X, _LONE), ValueError, "name: the string '.ud800' is no text"),
    "subscripts": (lambda: wnp.einsum(_LONE, _X), ValueError, "einsum: subscripts: the string '.ud800' is no text"),
    "holomorphic": (lambda: weft.grad(wnp.sin, holomorphic=[]), TypeError, "grad: holomorphic must be True or False"),
    "reverse of scan": (
        lambda: weft.scan(lambda c, x: (c, x), 0.0, _X, reverse="no"),
        TypeError,
        "scan: reverse must be True or False, got 'no'",
    ),
    "reverse of cumsum": (
        lambda: weft.lax.cumsum(_X, reverse="no"),
        TypeError,
        "cumsum: reverse: True or False is needed, got 'no'",
    ),
    "keepdims": (lambda: wnp.nanmax(_X, keepdims="no"), TypeError, "max: keepdims: True or False is needed, got 'no'"),
    "copy": (lambda: wnp.array(2.0, copy="no"), TypeError, "array: copy: True or False is needed, got 'no'"),
    "symmetric": (
        lambda: weft.lax.custom_linear_solve(lambda x: x, _X, lambda f, b: b, symmetric=[]),
        TypeError,
        "custom_linear_solve: symmetric must be True or False",
    ),
    "iota": (lambda: weft.lax.broadcasted_iota("int32", (2, 3), None), TypeError, "dimension: an integer is needed"),
    "top_k": (lambda: weft.lax.top_k(_X, 2**70), ValueError, f"the integer {2**70} does not fit 64 bits"),
    "pad": (lambda: wnp.pad(_X, 2**70), ValueError, f"pad: the integer {2**70} does not fit 64 bits"),
    "gathered axis": (
        lambda: _over_lanes(lambda x: weft.lax.all_gather(x, "i", axis=None)),
        TypeError,
        "all_gather: axis must be an integer, got None",
    ),
    "gathered axis far away": (
        lambda: _over_lanes(lambda x: weft.lax.all_gather(x, "i", axis=2**70)),
        ValueError,
        f"all_gather: axis must fit 64 bits, got {2**70}",
    ),
    "is_leaf": (lambda: weft.tree.leaves([1], is_leaf=3), TypeError, "tree: is_leaf must be a function or None, got 3"),
    "unflatten": (
        lambda: weft.tree.unflatten(weft.tree.structure([1]), None),
        TypeError,
        "tree.unflatten: leaves must be a sequence of them, got None",
    ),
    "register": (
        lambda: weft.tree.register(type("Own", (), {}), 3, lambda aux, children: None),
        TypeError,
        "register: flatten_function must be a function, got 3",
    ),
    "tiled": (
        lambda: _over_lanes(lambda x: weft.lax.all_gather(x, "i", tiled="no")),
        TypeError,
        "all_gather: tiled must be True or False, got 'no'",
    ),
    "scatter_dimension": (
        lambda: _over_lanes(lambda x: weft.lax.psum_scatter(x, "i", scatter_dimension=None)),
        TypeError,
        "psum_scatter: scatter_dimension must be an integer, got None",
    ),
    "split_axis": (
        lambda: _over_lanes(lambda x: weft.lax.all_to_all(x, "i", None, 0)),
        TypeError,
        "all_to_all: split_axis must be an integer, got None",
    ),
}


@pytest.mark.parametrize("mistake", OTHER_KINDS)
def test_arguments_of_other_kinds(mistake):
    call, exception, message = OTHER_KINDS[mistake]
    with pytest.raises(exception, match=message) as info:
        call()
    assert "Invoked with" not in str(info.value)


def test_large_integers_are_named_by_their_place():
    f = weft.jit(lambda a, d: a)
    for compiled in (False, True):
        if compiled:
            f(1, {"b": [1, 2]})
        with pytest.raises(OverflowError, match=r"^argument a: the Python integer 1099511627776 does not fit i32"):
            f(2**40, {"b": [1, 2]})
        with pytest.raises(OverflowError, match=r"^argument d\['b'\]\[1\]: the Python integer"):
            f(1, {"b": [1, -(2**40)]})


def test_a_traced_value_cannot_be_pickled():
    with pytest.raises(weft.errors.ConcretizationTypeError, match="pickle"):
        weft.jit(lambda x: pickle.dumps(x))(1.0)


KEYS = {
    "add": lambda k: k + 1,
    "subtract": lambda k: 1 - k,
    "multiply": lambda k: k * k,
    "power": lambda k: k**2,
    "remainder": lambda k: k % 2,
    "floor_divide": lambda k: k // 2,
    "right_shift": lambda k: k >> 1,
    "less": lambda k: k < k,
    "neg": lambda k: -k,
    "sin": wnp.sin,
    "maximum": lambda k: wnp.maximum(k, 0),
}


@pytest.mark.parametrize("name", KEYS)
def test_arithmetic_of_random_keys_names_the_operation(name):
    for compute in (KEYS[name], weft.jit(KEYS[name]), weft.vmap(KEYS[name])):
        key = weft.random.key(0)
        with pytest.raises(TypeError, match=rf"^{name}: random keys and tapes have no numeric value; got .*key"):
            compute(weft.random.split(key) if compute is not KEYS[name] else key)
