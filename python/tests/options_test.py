"""Options that find out what a program does: each has JAX's effect, in both ways to set it."""

import contextlib
import gc
import itertools
import logging
import warnings

import numpy as np
import pytest

import weft
import weft.numpy as wnp

jax = pytest.importorskip("jax")


def _outcome(module, arrays, option, value, program, by_config):
    """ "ok", or the names of the classes of what it raises that Python has."""
    x, wide = arrays.ones(3), arrays.ones((2, 3))
    names = {"x": x, "wide": wide, "i": arrays.ones(3, "int32"), "np": np, "jax": module, "jnp": arrays}
    try:
        if by_config:
            name = "jax_check_tracer_leaks" if option == "checking_leaks" else f"jax_{option}"
            before = module.config.read(name) if module is weft else getattr(module.config, name)
            module.config.update(name, value)
            try:
                exec(program, names)
            finally:
                module.config.update(name, before)
        else:
            scope = getattr(module, option)
            with scope() if option == "checking_leaks" else scope(value):
                exec(program, names)
    except Exception as error:
        return {c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"} - {"object", "BaseException"}
    return "ok"


LEAK = "kept = []\njax.jit(lambda a: (kept.append(a), a)[1])(x)"

# (option, value, program, whether it is set by config.update too)
PROGRAMS = [
    *(
        ("numpy_rank_promotion", "raise", program)
        for program in (
            "x + wide",
            "wide * 2",
            "wide + jnp.ones(())",
            "wide @ x",
            "jnp.maximum(x, wide)",
            "x < wide",
            "jnp.where(x > 0, wide, 0)",
            "jax.jit(lambda a, b: a + b)(x, wide)",
            "x + x",
            "wide[0] + x",
        )
    ),
    *(
        ("numpy_dtype_promotion", "strict", program)
        for program in (
            "x + i",
            "x + 1",
            "i + 1.5",
            "i * 2",
            "x * 2j",
            "x + (x > 0)",
            "(x > 0) + 1",
            "jnp.where(x > 0, x, i)",
            "jnp.where(x > 0, x, 0)",
            "jnp.concatenate([x, i])",
            "jnp.stack([x, i])",
            "x @ i",
            "jnp.result_type('int32', 'float32')",
            "jnp.sqrt(i)",
            "i / i",
            "i ** 2",
            "jnp.mean(i)",
            "jnp.arange(3) + i",
            "x.astype('int32') + i",
            "jnp.asarray(1) + jnp.asarray(1.0)",
            "jax.jit(lambda a, b: a + b)(x, i)",
            "jnp.ones(3, 'float16') + x",
            "jnp.ones(3, 'int8') + i",
            "jnp.ones(3, 'float16') * 2.5",
            "x > i",
            "x > 0",
        )
    ),
    *(
        (f"transfer_guard{direction}", level, program)
        for direction in ("", "_host_to_device")
        for level in ("disallow", "disallow_explicit", "allow", "log")
        for program in (
            "jnp.sin(np.ones(3))",
            "x + 1",
            "x + x",
            "jax.jit(lambda a: a * 2)(np.ones(3))",
            "jax.jit(lambda a: a * 2 + 1)(x)",
            "jax.device_put(np.ones(3))",
            "np.asarray(x + x)",
            "jax.device_get(x)",
            "jnp.array(np.ones(3))",
        )
    ),
    ("transfer_guard_device_to_host", "disallow", "np.asarray(x + x)"),
    ("no_tracing", True, "jax.jit(lambda a: a * 3)(x)"),
    ("no_tracing", True, "x + x"),
    ("no_execution", True, "jax.jit(lambda a: a * 3)(x)"),
    ("no_execution", True, "x + x"),
    ("no_execution", True, "jax.eval_shape(lambda a: a + 1, x)"),
    ("no_execution", True, "jax.jit(lambda a: a * 3).lower(x)"),
    ("checking_leaks", True, LEAK),
    ("checking_leaks", True, "kept = {}\njax.jit(lambda a: kept.setdefault('a', a) * 2)(x)"),
    ("checking_leaks", True, "kept = {}\njax.jit(lambda a: kept.setdefault('a', ((a,), 2))[0][0] * 2)(x)"),
    ("checking_leaks", True, "jax.jit(lambda a: a * 3)(x)"),
    ("checking_leaks", True, LEAK.replace("jax.jit", "jax.vmap")),
    ("debug_infs", True, "x / jnp.zeros(3)"),
    ("debug_infs", True, "jax.jit(lambda a: jnp.log(a - 1))(x)"),
    ("debug_infs", True, "jnp.zeros(3) / jnp.zeros(3)"),
    ("debug_infs", True, "jnp.log(x)"),
    ("default_matmul_precision", "float32", "wide @ x"),
    ("default_matmul_precision", "no such", "wide @ x"),
    ("default_device", "no such", "x + x"),
    ("default_device", None, "x + x"),
    ("numpy_rank_promotion", "no such", "x + x"),
    ("numpy_dtype_promotion", "no such", "x + x"),
    ("transfer_guard", "no such", "x + x"),
    ("explain_cache_misses", True, "jax.jit(lambda a: a * 3)(x)"),
    ("log_compiles", True, "jax.jit(lambda a: a * 3)(x)"),
]

# JAX traces operations outside of jitted functions too.
APART = {("no_tracing", "x + x")}


@pytest.mark.parametrize("by_config", [False, True])
@pytest.mark.parametrize(("option", "value", "program"), PROGRAMS)
def test_outcome(option, value, program, by_config):
    theirs = _outcome(jax, jax.numpy, option, value, program, by_config)
    mine = _outcome(weft, wnp, option, value, program, by_config)
    if (option, program) in APART:
        assert mine == "ok"
    elif theirs == "ok" or mine == "ok":
        assert mine == theirs, (mine, theirs)
    else:
        assert theirs <= mine, "JAX's kinds of exceptions"


def test_messages_name_what_met_and_the_line():
    here = "options_test.py"
    cases = [
        (weft.numpy_rank_promotion("raise"), lambda: wnp.ones((2, 3)) + wnp.ones(3), r"add: .*\(2, 3\) \(3,\)"),
        (weft.numpy_dtype_promotion("strict"), lambda: wnp.ones(2) + wnp.arange(2), "f32 and i32"),
        (weft.no_execution(), lambda: wnp.ones(2) * wnp.ones(2), "'"),
        (weft.no_tracing(), lambda: weft.jit(lambda a: a)(1.0), r"a: f32\[\] \(weak\)"),
        (weft.transfer_guard("disallow"), lambda: wnp.sin(np.ones(3)), r"ndarray\[3\]; put it there before"),
        (weft.debug_infs(), lambda: wnp.log(wnp.array(0.0)), "'log' gives an infinity"),
    ]
    for scope, program, text in cases:
        with scope, pytest.raises((ValueError, RuntimeError, FloatingPointError), match=text) as error:
            program()
        assert here in str(error.value)


def test_ranks_are_warned_of():
    with weft.numpy_rank_promotion("warn"), warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert (wnp.ones((2, 3)) + wnp.ones(3)).shape == (2, 3)
    assert len(found) == 1 and "rank promotion for add on shapes (2, 3) (3,)" in str(found[0].message)


def test_logs(caplog):
    def foo(a, n):
        return a * n

    with caplog.at_level(logging.INFO, "weft"):
        f = weft.jit(foo, static_argnums=1)
        with weft.log_compiles():
            f(wnp.ones(3), 2)
            f(wnp.ones(3), 2)
        said = [r.getMessage() for r in caplog.records]
        assert [text.split()[0] for text in said] == ["Finished", "Compiling"] and "(a: f32[3], 1=2)" in said[1]
        caplog.clear()
        with weft.explain_cache_misses():
            f(wnp.ones(4), 2)
            f(wnp.ones(4), 3)
            f(1.0, 3)
            weft.jit(foo)(1.0, 2)
        texts = [r.getMessage() for r in caplog.records]
        assert "* at a, now f32[4] and before f32[3]" in texts[0]
        assert "* at 1, now 3 and before 2" in texts[1] and "now f32" not in texts[1]
        assert "* at a, now f32[] (weak) and before f32[4]" in texts[2]
        assert "never seen function" in texts[3] and "'foo' at " in texts[3]
        caplog.clear()
        weft.jit(lambda x: weft.debug.log("x is {} and {y}", x, y=2 * x))(wnp.array(3.0))
        assert caplog.records[0].getMessage() == "x is 3.0 and 6.0"
        with weft.transfer_guard("log"):
            wnp.sin(np.ones(2))
        assert "host-to-device transfer: ndarray[2]" in caplog.records[-1].getMessage()


def test_a_thread_has_its_own():
    import concurrent.futures

    with weft.numpy_rank_promotion("raise"), concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: (wnp.ones((2, 3)) + wnp.ones(3)).shape).result() == (2, 3)
    weft.config.numpy_rank_promotion = "raise"
    try:
        with concurrent.futures.ThreadPoolExecutor(1) as pool, pytest.raises(ValueError):
            pool.submit(lambda: wnp.ones((2, 3)) + wnp.ones(3)).result()
        with weft.numpy_rank_promotion("allow"):
            assert (wnp.ones((2, 3)) + wnp.ones(3)).shape == (2, 3)
    finally:
        weft.config.numpy_rank_promotion = "allow"


# Options that change what a traced function does: (values, a program, its arguments).
OF_TRACES = {
    "numpy_rank_promotion": (("allow", "warn", "raise"), lambda a, b: a + b, lambda: (wnp.ones((2, 3)), wnp.ones(3))),
    "numpy_dtype_promotion": (("standard", "strict"), lambda a, b: a + b, lambda: (wnp.ones(3), wnp.arange(3))),
    "debug_key_reuse": (
        (False, True),
        lambda k: weft.random.bits(k) + weft.random.bits(k),
        lambda: (weft.random.key(0),),
    ),
    "threefry_partitionable": ((True, False), lambda k: weft.random.bits(k, (3,)), lambda: (weft.random.key(0),)),
    "enable_x64": ((False, True), lambda n: n + weft.numpy.arange(2), lambda: (1,)),
    "jax_semantics": ((False, True), lambda x: x * np.float64(2), lambda: (wnp.ones(2, "float32"),)),
}


@pytest.mark.parametrize("name", OF_TRACES)
def test_programs_of_all_settings_are_kept_apart(name):
    values, program, arguments = OF_TRACES[name]

    def outcome(f, value):
        with getattr(weft, name)(value), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                return repr(f(*arguments()))
            except Exception as error:
                return type(error)
            finally:
                said.append(len(warned))

    said = []
    alone = {value: outcome(weft.jit(program), value) for value in values}
    assert len(set(alone.values())) > 1
    for order in itertools.permutations(values):
        f = weft.jit(program)
        said.clear()
        assert [outcome(f, value) for value in order] == [alone[value] for value in order]
        assert said == [int(value == "warn") for value in order]


def test_clear_caches():
    traces = []
    f = weft.jit(lambda x: (traces.append(1), x)[1])
    f(1.0), f(2.0)
    weft.clear_caches()
    f(3.0)
    assert len(traces) == 2


def test_live_arrays_of_plain_containers():
    kept = {"w": wnp.ones(5) + 1, "b": (wnp.zeros(5) + 1, 2)}
    gc.collect()  # after which Python keeps no account of what holds no container
    alive = {id(x) for x in weft.live_arrays()}
    assert {id(kept["w"]), id(kept["b"][0])} <= alive


def test_live_arrays():
    class Holder:
        pass

    here, holder, many = wnp.ones(3), Holder(), [wnp.zeros(4)]
    holder.x = wnp.ones(5)
    alive = {id(x) for x in weft.live_arrays()}
    assert {id(here), id(holder.x), id(many[0])} <= alive
    count = sum(x.shape == (4321,) for x in weft.live_arrays())
    gone = wnp.ones(4321)
    assert sum(x.shape == (4321,) for x in weft.live_arrays()) == count + 1
    del gone
    assert sum(x.shape == (4321,) for x in weft.live_arrays()) == count


def test_settings_that_there_are_not():
    with pytest.raises(AttributeError, match="no setting 'numpy_rank_promotoin'"):
        weft.config.numpy_rank_promotoin = "raise"
    with pytest.raises(ValueError, match="no setting"):
        weft.config.update("jax_no_such", 1)


def test_scopes_end_in_any_order():
    first, second = weft.no_tracing(), weft.no_tracing(False)
    first.__enter__()
    second.__enter__()
    assert not weft.config.no_tracing
    first.__exit__(None, None, None)
    assert not weft.config.no_tracing
    second.__exit__(None, None, None)
    with contextlib.suppress(RuntimeError), weft.no_tracing():
        weft.jit(lambda x: x)(1.0)
        raise AssertionError


def test_shardings(capsys):
    found = []
    weft.debug.inspect_array_sharding({"a": wnp.ones(2)}, callback=found.append)
    weft.jit(lambda x: weft.debug.inspect_array_sharding(x, callback=found.append))(1.0)
    assert len(found) == 2 and all(isinstance(s, weft.Sharding) for s in found)
    assert "CPU 0" in weft.debug.visualize_sharding((4, 2), wnp.ones((4, 2)).sharding)
    capsys.readouterr()


def test_options_without_effect_say_so():
    from weft.as_jax import settings

    with pytest.warns(UserWarning, match="jax_enable_recoverability has no effect in Weft"):
        settings.config.update("jax_enable_recoverability", True)
    settings.config.update("jax_threefry_partitionable", True)  # as it is
    with pytest.raises(ValueError, match="numpy_rank_promotion must be one of"):
        settings.config.update("jax_numpy_rank_promotion", "no such")
    with settings.numpy_rank_promotion("raise"):
        assert settings.config.jax_numpy_rank_promotion == "raise" and settings.numpy_rank_promotion.value == "raise"
