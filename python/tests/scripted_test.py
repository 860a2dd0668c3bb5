"""jit(capture="script") and weft.script: the stages of a function, and what Python runs where conversion cannot."""

import concurrent.futures
import pickle
import sys
import warnings

import numpy as np
import pytest

import weft
import weft.numpy as wnp

X = np.arange(1, 4, dtype=np.float32)


def newton(a):
    x = a
    steps = 0
    while abs(x * x - a) > 1e-6 * a:
        x = 0.5 * (x + a / x)
        steps += 1
    return x, steps


def raising(x):
    if x > 0:
        raise ValueError("positive")
    return -x


def shapes(x):
    if x.sum() > 0:
        y = x
    else:
        y = wnp.zeros(1)
    return y


def maybe(x):
    if x > 0:
        y = x
    return y


class Folded:
    def __init__(self, x):
        self.x = x

    @property
    def value(self):
        return self.x if self.x > 0 else -self.x


def with_property(x):
    return Folded(x).value * 2


def generated(x):
    yield x


def searching(x):
    try:
        if x > 2:
            return x
    except KeyError:
        pass
    return -x


def countdown(x):
    return x if x < 1 else countdown(x - 1)


def growing(x):
    ys = [x]
    while ys[-1] < 10:
        ys.append(ys[-1] * 2)
    return wnp.stack(ys)


def quietly(function, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", weft.autograph.FallbackWarning)
        return function(*args, **kwargs)


# --- Stages -----------------------------------------------------------------------------------------------------------


def test_every_stage_prints():
    f = weft.script(newton)
    stages = f.stages(2.0)
    assert list(stages) == ["source", "ast", "analysed", "ssa", "converted", "types", "ir"]
    assert all(f"--- {name} ---\n{text.rstrip()}" in str(stages) for name, text in stages.items())
    assert stages["source"].startswith("def newton(a):\n    x = a\n")
    assert stages["ast"].startswith("FunctionDef(\n  name='newton'") and "While(" in stages["ast"]
    assert stages["converted"] == weft.autograph.to_source(newton)
    assert stages["ir"] == weft.make_ir(weft.autograph(newton))(2.0).text
    for name in ("optimized", "schedule", "asm"):
        assert f.stage(name, 2.0) == f.lower(2.0).stage(name)
    with pytest.raises(ValueError, match="parsed"):
        f.stage("parsed", 2.0)


def line(text, start):
    (found,) = [row for row in text.splitlines() if row.strip().startswith(start)]
    return found


def test_definitions_and_uses():
    text = weft.script(newton).stage("analysed")
    assert "defines x.2; reads x.1|x.2, a.1" in line(text, "x = 0.5")
    assert "reads x.1|x.2" in line(text, "return")
    assert "this `while` leaves x, steps" in line(text, "while")
    ssa = weft.script(newton).stage("ssa")
    assert "x.2 = 0.5 * (phi(x.1, x.2) + a.1 / phi(x.1, x.2))" in ssa
    assert "steps.2 = phi(steps.1, steps.2) + 1" in ssa and "return (phi(x.1, x.2), phi(steps.1, steps.2))" in ssa


def test_single_assignment():
    """Every name of the stage is assigned in one place."""

    def f(x, n):
        y = x
        for i in range(n):
            if x > i:
                y, z = y + 1, i
            else:
                z = 2
            y += z
        x = y
        return x + y

    text = weft.script(f).stage("ssa")
    heads = [row.strip().split(" = ")[0] for row in text.splitlines() if " = " in row]
    names = [n for h in heads for n in h.strip("()").split(", ")]
    assert len(names) == len(set(names)) and set(names) == {"y.1", "y.2", "y.3", "z.1", "z.2", "x.2"}, text


def test_what_stays_pythons_what_is_written_and_what_may_be_one():
    def f(x, self, p):
        ys = [x]
        zs = ys if p else self.kept
        try:
            if x > 0:
                ys[0] = x
        except ValueError:
            pass
        for _ in range(3):
            self.n = x
            zs.append(x)

        def inner():
            return ys

        return inner()

    text = weft.script(f).stage("analysed")
    assert "stays Python's: it is inside the try/except of line" in line(text, "if x > 0")
    assert "writes to self.n, zs" in line(text, "for _")
    assert "# shared with functions inside: ys" in text
    assert "# may be one object: self.kept, ys, zs" in text


def test_types_of_names_by_line():
    def f(x, n):
        count = 0
        for row in x:
            y = row.astype("float16")
            count += y.ndim
        total = {"sum": x.sum(0), "n": count}
        total["sum"] = total["sum"] * n
        if n > 0:
            w = x[0]
        else:
            w = x[1]
        return w, total

    text = weft.script(f).stage("types", wnp.ones((4, 3)), 2)
    assert "# x: f32[4,3]; n: i32[] (weak)" in line(text, "def f")
    assert "count: int" in line(text, "count = 0") and "y: f16[3]" in line(text, "y = row")
    assert "row: f32[3]" in line(text, "for row")
    assert "after it w: f32[3]" in line(text, "if n > 0")
    assert "total: {'sum': f32[3], 'n': i32[]" in line(text, "total = {")
    assert "result: (f32[3], {'sum': f32[3], 'n': i32[]" in line(text, "return w")


def test_types_differ_with_the_arguments():
    f = weft.script(lambda x: x + 1)
    assert "x: f32[3]; result: f32[3]" in f.stage("types", X) and "x: i32[]" in f.stage("types", 1)


def test_types_leave_the_tracer_of_python_alone():
    before = sys.gettrace()
    weft.script(newton).stage("types", 2.0)
    assert sys.gettrace() is before


def test_stages_of_methods_and_static_arguments():
    class Model:
        def step(self, x, mode):
            y = x if mode == "same" else -x
            return y * 2

    f = weft.script(Model().step, static_argnums=1)
    assert "y: f32[3]" in f.stage("types", X, "other") and "neg" in f.stage("ir", X, "other")
    assert "neg" not in f.stage("ir", X, "same")


def test_no_source_has_no_stages():
    space: dict = {}
    exec("def f(x):\n    return x if x > 0 else -x", space)
    f = weft.script(space["f"])
    with pytest.raises(weft.autograph.ConversionError, match="source"):
        f.stage("source")
    assert quietly(f, -2.0).item() == 2 and f.explain("fallbacks")[0]["error"] == "SourceError"


# --- Calls ------------------------------------------------------------------------------------------------------------


def test_it_is_like_a_jitted_function():
    f = weft.script(newton)
    root, steps = f(2.0)
    assert np.isclose(root, 2**0.5) and steps == newton(2.0)[1] and f.explain("fallbacks") == []
    assert f.__name__ == "newton" and f.__wrapped__ is newton and f.explain()[0]["calls"] == 1
    assert f.eval_shape(2.0)[0].shape == () and np.isclose(f.lower(2.0).compile()(9.0)[0], 3)
    assert np.allclose(weft.vmap(f)(wnp.array([4.0, 9.0]))[0], [2, 3])
    assert np.isclose(weft.grad(lambda a: f(a)[0])(4.0), 0.25, atol=1e-4)
    f.clear_cache()
    assert f.explain() == []
    again = pickle.loads(pickle.dumps(weft.script(newton, strict=True)))
    assert np.isclose(again(9.0)[0], 3) and again._strict

    class Number(float):
        @weft.script
        def times(self, y):
            return self * y

    assert Number(2).times(3.0) == Number.times(2.0, 3.0) == 6


def test_bad_options():
    with pytest.raises(ValueError, match="strict=True is for capture='script', got capture='trace'"):
        weft.jit(newton, strict=True)
    with pytest.raises(ValueError, match="'trace', 'script' or 'auto', got 'graph'"):
        weft.jit(newton, capture="graph")
    with pytest.raises(ValueError, match="'rules' or 'fallbacks', got 'rule'"):
        weft.script(newton).explain("rule")
    with pytest.raises(
        ValueError, match=r"stage: there are source, ast, .* there is no stage 'sources'.*there are ir, "
    ):
        weft.script(newton).stage("sources", 2.0)
    with pytest.raises(TypeError, match="written in Python"):
        weft.script(abs)


# --- Fallbacks --------------------------------------------------------------------------------------------------------

UNSUPPORTED = [
    (shapes, X, TypeError, "shape"),
    (maybe, 2.0, UnboundLocalError, "'y'"),
    (with_property, -2.0, weft.TracerError, r"bool\(\) of a traced value"),
    (searching, 3.0, weft.autograph.ConversionError, "try/except"),
    (countdown, 3.5, RecursionError, "calls itself"),
    (growing, 1.0, weft.autograph.StructureError, "'ys'"),
]


@pytest.mark.parametrize("function,x,error,words", UNSUPPORTED, ids=lambda v: getattr(v, "__name__", ""))
def test_python_runs_what_cannot_be_converted(function, x, error, words):
    f = weft.script(function)
    with pytest.warns(weft.autograph.FallbackWarning, match=words) as caught:
        out = f(x)
    assert len(caught) == 1 and __file__ in str(caught[0].message) and caught[0].filename == __file__
    expected = np.asarray(function(wnp.asarray(x)), np.float32)
    np.testing.assert_allclose(out, expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it has been said
        np.testing.assert_allclose(f(x), expected)
    (found,) = f.explain("fallbacks")
    assert found["calls"] == 2 and found["file"] == __file__ and found["line"] > 0, found
    with pytest.raises(error, match=words):
        weft.script(function, strict=True)(x)
    with pytest.raises(error, match=words):
        f.lower(x)  # there is no program


def test_results_are_what_compiled_code_gives():
    """Arrays, with the dtypes of the program, for numbers too."""

    def f(x):
        if x > 0:
            raise ValueError
        return {"half": x / 2, "n": 3, "x": x}

    out = quietly(weft.script(f), -1)
    assert [(k, str(v.dtype), v.weak_type) for k, v in out.items()] == [
        ("half", "float32", True),
        ("n", "int32", True),
        ("x", "int32", True),
    ]


def test_a_generator_is_run_by_python_when_it_is_called():
    f = weft.script(generated)
    with pytest.warns(weft.autograph.FallbackWarning, match="yield"), pytest.raises(TypeError, match="generator"):
        f(1.0)  # whose result is no array
    with pytest.raises(weft.autograph.ConversionError, match="yield"):
        weft.script(generated, strict=True)


def test_what_the_trace_changed_is_put_back():
    log, state = [], {"n": 0}

    def f(x):
        log.append("begun")
        state["n"] += 1
        y = x * 2
        if y > 0:
            raise ValueError("positive")
        return y

    g = weft.script(f)
    for n in range(1, 4):
        assert quietly(g, -1.0) == -2
        assert log == ["begun"] * n and state == {"n": n}


def test_exceptions_of_the_program_are_raised():
    f = weft.script(raising)
    assert quietly(f, -2.0) == 2
    with pytest.raises(ValueError, match="positive"):
        f(2.0)
    assert f.explain("fallbacks")[0]["calls"] == 2

    @weft.script
    def wrong(x):
        return x @ wnp.ones(7)

    with pytest.raises((TypeError, ValueError)):  # no construct, and no fallback
        wrong(X)
    assert wrong.explain("fallbacks") == []


def test_one_warning_for_each_construct_and_function():
    def f(x, which):
        if which:
            if x > 0:
                raise ValueError
        elif x.sum() > 5:
            raise KeyError
        return x

    g = weft.script(static_argnums=1)(f)
    with pytest.warns(weft.autograph.FallbackWarning) as caught:
        for _ in range(2):
            for which, x in ((True, -1.0), (False, X * 0), (False, np.zeros(5, np.float32)), (True, -2)):
                g(x, which)
    assert len(caught) == 2
    assert sorted(found["calls"] for found in g.explain("fallbacks")) == [4, 4]
    g.clear_cache()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        g(-1.0, True)
    assert sum(found["calls"] for found in g.explain("fallbacks")) == 9


def test_other_signatures_stay_compiled():
    def f(x):
        if x.ndim == 0 and x > 0:
            raise ValueError
        return x * 2

    g = weft.script(f)
    quietly(g, -1.0), g(X), g(X)
    assert g.explain("fallbacks")[0]["calls"] == 1 and [v["calls"] for v in g.explain()] == [2]


def test_derivatives_go_through_python():
    f = weft.script(raising)
    assert quietly(weft.grad(f), -2.0) == -1 and f.explain("fallbacks")[0]["calls"] == 1
    assert quietly(weft.value_and_grad(f), -3.0)[0] == 3


@pytest.mark.parametrize("inside", [weft.jit, weft.vmap, lambda f: weft.jit(weft.grad(lambda x: f(x).sum()))])
def test_inside_of_a_program_there_is_no_falling_back(inside):
    f = weft.script(raising)
    x = np.float32(-1) if inside is not weft.vmap else -X
    with pytest.raises(weft.autograph.ConversionError, match="`raise`"):
        quietly(inside(f), x)


def test_what_python_would_not_heed_is_strict():
    for options in ({"deterministic": True}, {"backend": "interpreter"}, {"passes": ["optimize"]}):
        f = weft.script(raising, **options)
        with pytest.raises(weft.autograph.ConversionError, match="`raise`"):
            f(-1.0)


def test_without_jit():
    f = weft.script(raising)
    with weft.disable_jit(), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f(wnp.array(-2.0)) == 2
    assert f.explain("fallbacks") == []


def test_mutated_arguments_are_the_callers_own():
    def f(xs):
        xs[0] = xs[0] * 2
        if xs[0] > 0:
            raise ValueError
        return xs

    xs = [-1.0]
    assert quietly(weft.script(f), xs) == [-2.0] and xs == [-1.0]


def test_threads_count_every_call():
    f = weft.script(raising)
    quietly(f, -1.0)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(v == 1 for v in pool.map(lambda _: f(-1.0), range(200)))
    assert f.explain("fallbacks")[0]["calls"] == 201
