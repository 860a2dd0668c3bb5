"""Functions of Python that programs name by number: in other processes, when they are let go, and what they return."""

import gc
import os
import pickle
import subprocess
import sys
import weakref

import numpy as np
import pytest

import weft
import weft.numpy as wnp

SCALAR = weft.ShapeDtype((), "float32")


def twice(x):
    return weft.pure_callback(lambda v: v * 2, SCALAR, x)


def in_another_process(program, path, **environment):
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, str(path)], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- Other processes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["pickle", "exchange", "text"])
def test_a_program_that_moved_calls_nothing_of_its_new_process(form, tmp_path):
    program = weft.make_ir(lambda x: twice(x) + 1)(1.0)
    forms = {
        "pickle": (pickle.dumps(program), "pickle.loads(data)"),
        "exchange": (program.serialize(), "weft.deserialize_ir(data)"),
        "text": (program.text.encode(), "weft.parse_ir(data.decode())"),
    }
    data, read = forms[form]
    (tmp_path / "program").write_bytes(data)
    out = in_another_process(
        f"""
import pickle, sys, weft
S = weft.ShapeDtype((), "float32")
own = [weft.make_ir(lambda x: weft.pure_callback(lambda v: v - 1, S, x))(1.0) for _ in range(20)]
data = open(sys.argv[1], "rb").read()
program = {read}
for run in (program, weft.jit(program)):
    try:
        print("gave", run(5.0))
    except RuntimeError as e:
        assert "belongs to another process" in str(e), e
        print("refused")
""",
        tmp_path / "program",
    )
    assert out.split() == ["refused", "refused"]


def test_a_policy_that_moved_is_refused(tmp_path):
    f = weft.checkpoint(lambda x: wnp.sin(wnp.sin(x)), policy=lambda prim, *_, **__: prim.name == "sin")
    (tmp_path / "program").write_bytes(weft.make_ir(f)(1.0).serialize())
    for policies in (0, 5):
        out = in_another_process(
            f"""
import sys, weft, weft.numpy as wnp
kept = [weft.checkpoint(wnp.sin, policy=lambda *_, **__: True) for _ in range({policies})]
program = weft.deserialize_ir(open(sys.argv[1], "rb").read())
try:
    print("gave", weft.grad(program)(1.0))
except ValueError as e:
    assert "belongs to another process" in str(e), e
    print("refused")
""",
            tmp_path / "program",
        )
        assert out.split() == ["refused"]


def test_a_batching_rule_that_moved_is_refused(tmp_path):
    f = weft.custom_batching.custom_vmap(wnp.sin)
    f.def_vmap(lambda size, batched, x: (wnp.sin(x), True))
    (tmp_path / "program").write_bytes(weft.make_ir(f)(1.0).serialize())
    out = in_another_process(
        """
import sys, weft, weft.numpy as wnp
for _ in range(5):
    g = weft.custom_batching.custom_vmap(wnp.cos)
    g.def_vmap(lambda size, batched, x: (wnp.cos(x), True))
    g(1.0)
program = weft.deserialize_ir(open(sys.argv[1], "rb").read())
try:
    print("gave", weft.vmap(program)(wnp.ones(3)))
except NotImplementedError as e:
    assert "is not known in this process" in str(e), e
    print("refused")
""",
        tmp_path / "program",
    )
    assert out.split() == ["refused"]


def test_a_child_has_its_parents_callbacks_and_numbers_of_its_own():
    program = weft.make_ir(twice)(1.0)
    reads = []
    for _ in range(2):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            own = weft.make_ir(twice)(1.0)
            with os.fdopen(write, "w") as out:
                print(float(program(4.0)), own.text.split("callback=")[1].split(",")[0], file=out)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as lines:
            reads.append(lines.read().split())
        assert os.waitpid(child, 0)[1] == 0
    own = weft.make_ir(twice)(1.0).text.split("callback=")[1].split(",")[0]
    assert [value for value, _ in reads] == ["8.0", "8.0"]
    assert len({own, *(number for _, number in reads)}) == 3


def test_processes_share_the_code_of_a_program_with_callbacks(tmp_path):
    program = """
import sys, weft, weft.numpy as wnp
S = weft.ShapeDtype((), "float32")
more = int(sys.argv[1])
own = [weft.make_ir(lambda x: weft.pure_callback(lambda v: v - 1, S, x))(1.0) for _ in range(more)]
def f(x):
    a = weft.pure_callback(lambda v: v * (2 + more), S, x)
    return a + 10 * weft.pure_callback(lambda v: v * (3 + more), S, x + 1)
print(float(weft.jit(f)(1.0)))
"""
    folder = tmp_path / "cache"
    assert float(in_another_process(program, 0, WEFT_CACHE_DIR=str(folder))) == 62
    before = sorted(folder.glob("*.weft"))
    assert before
    assert float(in_another_process(program, 1, WEFT_CACHE_DIR=str(folder))) == 83
    assert sorted(folder.glob("*.weft")) == before


# --- When they are let go ---------------------------------------------------------------------------------------------


class Callback:
    def __init__(self, factor=2):
        self.factor = factor

    def __call__(self, v):
        return np.asarray(v) * np.float32(self.factor)


def gone(reference):
    gc.collect()
    return reference() is None


def call_eagerly(callback):
    weft.pure_callback(callback, SCALAR, 1.0)


def call_for_effect(callback):
    weft.io_callback(callback, SCALAR, 1.0)


def call_in_debug(callback):
    weft.debug.callback(callback, np.float32(1))


def call_with_many(callback):
    weft.pure_callback(callback, weft.ShapeDtype((20000,), "float32"), wnp.ones(20000))


def call_jitted(callback):
    weft.jit(lambda x: weft.pure_callback(callback, SCALAR, x) + 1)(1.0)


def call_in_a_loop(callback):
    weft.fori_loop(0, 3, lambda i, c: weft.pure_callback(callback, SCALAR, c), 1.0)


def call_under_vmap(callback):
    weft.vmap(lambda x: weft.pure_callback(callback, SCALAR, x))(wnp.ones(3))


def call_under_grad(callback):
    weft.grad(lambda x: weft.pure_callback(callback, SCALAR, weft.lax.stop_gradient(x)) * x)(1.0)


@pytest.mark.parametrize(
    "call",
    [
        call_eagerly,
        call_for_effect,
        call_in_debug,
        call_with_many,
        call_jitted,
        call_in_a_loop,
        call_under_vmap,
        call_under_grad,
    ],
)
def test_a_callback_is_let_go_with_the_program(call):
    callback = Callback()
    reference = weakref.ref(callback)
    call(callback)
    del callback
    assert gone(reference)


def test_a_failing_callback_is_let_go():
    callback = Callback("no number")
    reference = weakref.ref(callback)
    with pytest.raises(ValueError, match="no number"):
        weft.pure_callback(callback, SCALAR, 1.0)
    del callback
    assert gone(reference)


def test_a_policy_is_let_go_with_the_program():
    class Policy:
        def __call__(self, prim, *_, **__):
            return prim.name == "sin"

    policy = Policy()
    reference = weakref.ref(policy)
    f = weft.checkpoint(lambda x: wnp.sin(wnp.sin(x)), policy=policy)
    program = weft.make_ir(f)(1.0)
    del policy, f
    gc.collect()
    expected = np.cos(np.sin(1.0)) * np.cos(1.0)
    np.testing.assert_allclose(np.asarray(weft.grad(program)(1.0)), expected, rtol=1e-6)
    del program
    assert gone(reference)


def test_a_policy_has_one_number_as_long_as_it_lives():
    def policy(prim, *_, **__):
        return True

    texts = set()
    for _ in range(3):
        texts.add(weft.make_ir(weft.checkpoint(lambda x: wnp.sin(x), policy=policy))(1.0).text)
        gc.collect()
    assert len(texts) == 1


def programs(f):
    """What may keep a program, as functions of one number."""
    ir = weft.make_ir(f)(1.0)
    jitted = weft.jit(f)
    jitted(1.0)
    outer = weft.jit(lambda x: jitted(x))
    outer(1.0)
    lanes = weft.make_ir(weft.vmap(f))(wnp.ones(2))
    _, pullback = weft.vjp(lambda x: x * f(weft.lax.stop_gradient(x)), 3.0)
    return {
        "ir": ir,
        "parsed": weft.parse_ir(ir.text),
        "moved": pickle.loads(pickle.dumps(ir)),
        "jitted": jitted,
        "outer": outer,
        "of ir": weft.jit(ir),
        "lowered": weft.jit(f).lower(1.0).compile(),
        "region": weft.make_ir(lambda x: weft.cond(x > 0, f, lambda x: x, x))(1.0),
        "lanes": lambda x: lanes(wnp.full(2, x))[0],
        "pullback": lambda x: pullback(np.float32(1))[0] / 3 * x,
    }


@pytest.mark.parametrize("which", list(programs(twice)))
def test_whoever_keeps_a_program_keeps_its_callbacks(which):
    callback = Callback()
    reference = weakref.ref(callback)
    kept = programs(lambda x, c=callback: weft.pure_callback(c, SCALAR, x))[which]
    del callback
    gc.collect()
    weft.pure_callback(lambda v: v, SCALAR, 1.0)
    assert float(kept(5.0)) == 10.0
    del kept
    assert gone(reference)


def test_two_callbacks_are_never_mistaken_for_each_other():
    for k in range(50):
        assert float(weft.pure_callback(lambda v, k=k: np.float32(k), SCALAR, 1.0)) == k
        assert float(weft.jit(lambda x, k=k: weft.pure_callback(lambda v: np.float32(k), SCALAR, x))(1.0)) == k


# --- What they return -------------------------------------------------------------------------------------------------


def returning(value, dtype, call, jitted):
    def f(x):
        return call(lambda v: value, weft.ShapeDtype(np.shape(value), dtype), x)

    return (weft.jit(f) if jitted else f)(1.0)


FORMS = [(call, jitted) for call in (weft.pure_callback, weft.io_callback) for jitted in (False, True)]


@pytest.mark.parametrize(("call", "jitted"), FORMS)
@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, "float32"),
        (1, "uint8"),
        (255, "uint8"),
        (2**63, "uint64"),
        (1.5, "float32"),
        (1.5, "float64"),
        (1.5, "bfloat16"),
        (1.5, "complex64"),
        (1 + 2j, "complex64"),
        (True, "bool"),
        (np.float64(1.5), "float32"),
        (np.float64(1.5), "float64"),
        (np.int64(5), "int32"),
        (np.uint64(5), "uint32"),
        (np.complex128(1j), "complex64"),
        (np.bool_(True), "bool"),
        (np.array([1, -(2**31)]), "int32"),
    ],
)
def test_what_a_callback_may_return(value, dtype, call, jitted):
    got = returning(value, dtype, call, jitted)
    assert str(got.dtype) == dtype
    np.testing.assert_array_equal(np.asarray(got.astype("complex128")), np.asarray(value, "complex128"))


@pytest.mark.parametrize(("call", "jitted"), FORMS)
@pytest.mark.parametrize(
    ("value", "dtype", "said"),
    [
        (np.complex64(1 + 2j), "float32", r"c64\[\]"),
        (np.float32("nan"), "int32", r"f32\[\]"),
        (np.int32(300), "uint8", r"i32\[\]"),
        (np.float32(1), "float64", r"f32\[\]"),
        (np.float32(1), "float16", r"f32\[\]"),
        (np.float16(1), "float32", r"f16\[\]"),
        (np.int64(3), "float32", r"i64\[\]"),
        (np.int64(3), "uint32", r"i64\[\]"),
        (np.uint64(3), "int32", r"u64\[\]"),
        (np.int8(3), "int32", r"i8\[\]"),
        (np.bool_(True), "float32", r"bool\[\]"),
        (np.int64(2**40), "int32", r"i64\[\] with numbers that do not fit"),
        (np.array([0, 2**32], "uint64"), "uint32", r"u64\[2\] with numbers that do not fit"),
        (300, "uint8", "the Python number 300, which does not fit"),
        (-1, "uint32", "the Python number -1, which does not fit"),
        (1.5, "int32", r"the Python number 1\.5"),
        (1j, "float32", "the Python number 1j"),
        (True, "float32", "the Python number True"),
        (1, "bool", "the Python number 1"),
    ],
)
def test_a_callback_that_returns_another_dtype_is_refused(value, dtype, said, call, jitted):
    with pytest.raises(RuntimeError, match=rf"result 0 of a callback is {said}; expected "):
        returning(value, dtype, call, jitted)
