"""Settings and meshes of `with` statements belong to their thread, with the versions of jitted functions that they lead
to; what is set in weft.config is for all threads."""

import threading

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import P

SECONDS = 60
MESH = weft.make_mesh((1,), ("x",))
OTHER = weft.make_mesh((1,), ("y",))


def current_mesh():
    from weft.mesh import current_mesh

    return current_mesh()


# What sets it, what a thread sees of it, inside and outside.
SETTINGS = {
    "enable_x64": (lambda: weft.enable_x64(True), lambda: str(wnp.array(1.0).dtype), "float64", "float32"),
    "disable_jit": (lambda: weft.disable_jit(True), lambda: is_traced(), False, True),
    "debug_nans": (lambda: weft.debug_nans(True), lambda: finds_nans(), True, False),
    "mesh": (lambda: MESH, lambda: current_mesh(), MESH, None),
}


def is_traced():
    seen = []
    weft.jit(lambda x: seen.append(weft._weft.is_tracing()) or x)(1.0)
    return seen[0]


def finds_nans():
    try:
        weft.jit(lambda x: wnp.log(x))(-1.0)
        wnp.log(wnp.array(-1.0))
        return False
    except FloatingPointError:
        return True


@pytest.mark.parametrize("others", [1, 2])
@pytest.mark.parametrize("name", SETTINGS)
def test_a_with_statement_is_of_its_thread(name, others):
    scope, look, inside, outside = SETTINGS[name]
    assert look() == outside
    opened, looked = threading.Barrier(others + 1), threading.Barrier(others + 1)
    seen = [None] * others

    def other(i):
        opened.wait(SECONDS)
        seen[i] = [look()]
        if i == 1:
            with scope():
                seen[i].append(look())
            seen[i].append(look())
        looked.wait(SECONDS)

    threads = [threading.Thread(target=other, args=(i,), daemon=True) for i in range(others)]
    for thread in threads:
        thread.start()
    with scope():
        assert look() == inside
        opened.wait(SECONDS)
        looked.wait(SECONDS)
        assert look() == inside
    for thread in threads:
        thread.join(SECONDS)
    assert look() == outside
    assert seen == [[outside], [outside, inside, outside]][:others]


@pytest.mark.parametrize("name", ["enable_x64", "disable_jit", "debug_nans"])
def test_nested_and_repeated(name):
    make = getattr(weft, name)
    read = lambda: weft.config.read(f"jax_{name}")
    assert not read()
    scope = make(True)
    with scope:
        with make(False):
            assert not read()
            with scope:  # the same object again
                assert read()
            assert not read()
        assert read()
    assert not read()
    with make(False):
        assert not read()
    # Of generators, which end in any order.
    scopes = [make(on) for on in (True, False, True)]
    for s in scopes:
        s.__enter__()
    scopes[2].__exit__(None, None, None)
    assert not read()
    scopes[0].__exit__(None, None, None)
    assert not read()
    scopes[1].__exit__(None, None, None)
    assert not read()


@pytest.mark.parametrize("name", ["enable_x64", "disable_jit", "debug_nans"])
def test_what_config_sets_is_for_all_threads(name):
    read = lambda: weft.config.read(f"jax_{name}")
    seen = []

    def other():
        seen.append(read())
        with getattr(weft, name)(False):
            seen.append(read())
            weft.config.update(f"jax_{name}", True)  # for others, and here afterwards
            seen.append(read())
        seen.append(read())

    weft.config.update(f"jax_{name}", True)
    try:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(SECONDS)
        assert seen == [True, False, False, True] and read()
    finally:
        weft.config.update(f"jax_{name}", False)
    assert not read()


def test_a_scope_that_ends_in_another_thread_is_refused():
    scope = weft.enable_x64()
    thread = threading.Thread(target=scope.__enter__)
    thread.start()
    thread.join()
    with pytest.raises(RuntimeError, match="must end in the thread in which it began"):
        scope.__exit__(None, None, None)
    with pytest.raises(RuntimeError, match="must end in the thread in which it began"):
        MESH.__exit__()


@pytest.mark.parametrize("count", [2, 3])
def test_versions_of_a_jitted_function(count):
    """Threads with and without 64 bits call one function; each gets its own version, and its dtype."""
    traced, start = [], threading.Barrier(count)

    @weft.jit
    def f(n):
        traced.append(weft.config.x64)
        return wnp.arange(3) * 0.5 + n

    seen = [None] * count

    def body(i):
        start.wait(SECONDS)
        with weft.enable_x64(i % 2 == 1):
            seen[i] = {str(f(2.0).dtype) for _ in range(20)}

    threads = [threading.Thread(target=body, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert seen == [{"float64"} if i % 2 else {"float32"} for i in range(count)]
    assert sorted(traced) == [False, True] and f._cache_size() == 2


@pytest.mark.parametrize("count", [2, 3])
def test_meshes_of_threads(count):
    """A spec means the mesh around the thread that calls."""
    f, start = weft.jit(lambda x: weft.with_sharding_constraint(x * 2, P(None))), threading.Barrier(count)
    meshes, seen = [MESH, OTHER, MESH], [None] * count

    def body(i):
        with meshes[i]:
            start.wait(SECONDS)
            for _ in range(10):
                seen[i] = f(wnp.ones(4)).sharding.mesh
                assert seen[i] == meshes[i]

    threads = [threading.Thread(target=body, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert seen == meshes[:count] and f._cache_size() == 2
    with pytest.raises(ValueError, match="mesh"):
        f(wnp.ones(4))


def test_recorded_paths_know_the_settings():
    f = weft.jit(lambda n: wnp.arange(3) * 0.5 + n if n > 0 else wnp.arange(3) * 1.5, capture="auto")
    for _ in range(2):
        assert str(f(2.0).dtype) == "float32"
        with weft.enable_x64():
            assert str(f(2.0).dtype) == "float64"


def test_callbacks_have_the_settings_of_their_caller():
    seen = []
    f = weft.jit(lambda x: weft.pure_callback(lambda v: seen.append(weft.config.x64) or np.float32(1), SHAPE, x))
    f(1.0)
    with weft.enable_x64():
        f(wnp.float32(1.0))
        with weft.enable_x64(False):
            f(1.0)
    assert seen == [False, True, False]


SHAPE = weft.ShapeDtype((), "float32")
