"""What a program loads: what it uses, and no more of what takes time to load."""

import json
import os
import subprocess
import sys

import pytest

import weft

BEGIN = """
import sys, json
import weft
import weft.numpy as wnp
"""
END = """
print("LOADED", json.dumps(sorted(sys.modules)))
"""

# There is no need of these before a program says their names.
LATER = {
    "weft.experimental": "weft.experimental.jet",
    "weft.flatten_util": "weft.flatten_util.ravel_pytree(1.0)",
    "weft.image": "weft.image.ResizeMethod",
    "weft.ir": "weft.ir.rules()",
    "weft.lax": "weft.lax.add(1, 1)",
    "weft.nn": "weft.nn.relu(1.0)",
    "weft.ops": "weft.ops.segment_sum",
    "weft.primitives": "weft.primitives.sin",
    "weft.random": "weft.random.key(0)",
    "weft.transforms": "weft.transforms.grad(weft.make_ir(abs)(1.0))",
    "weft.scipy": "weft.scipy.special.erf(1.0)",
}
# Conversion of Python's control flow, and libraries that only it needs.
AUTOGRAPH = {
    "beniget",
    "gast",
    "weft.autograph.aliases",
    "weft.autograph.analysis",
    "weft.autograph.branches",
    "weft.autograph.conversion",
    "weft.autograph.loops",
    "weft.autograph.memory",
    "weft.autograph.rewrite",
}


def loaded(program: str) -> set[str]:
    """The modules of a new process after a program."""
    folder = os.path.dirname(os.path.dirname(weft.__file__))
    out = subprocess.run(
        [sys.executable, "-c", BEGIN + program + END],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([folder, *sys.path])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert out.returncode == 0, out.stderr
    (line,) = [line for line in out.stdout.splitlines() if line.startswith("LOADED ")]
    return {*json.loads(line.removeprefix("LOADED "))}


def of_autograph(modules: set[str]) -> set[str]:
    """Those that convert; weft.autograph itself and its errors are there at once."""
    door = {"weft.autograph", "weft.autograph.errors"}
    return {m for m in modules if m.startswith("weft.autograph") and m not in door} | (modules & AUTOGRAPH)


def test_import():
    modules = loaded("")
    assert "weft._core.tracing" in modules and "weft.autograph" in modules
    assert not modules & {*LATER}
    assert not of_autograph(modules)


def test_jax_programs_load_what_they_ask_for():
    # What reads the metadata of packages takes a tenth of the time until jax is there; words are for errors.
    later = {"importlib.metadata", "weft.as_jax.distributions", "weft.as_jax.table.words"}
    tools = {"weft.ir", "weft.ir.key_reuse", "ipaddress"}
    modules = loaded(
        "import weft.as_jax; weft.as_jax.install()\nimport jax, jax.numpy as jnp\njax.jit(lambda x: x * 2)(jnp.ones(2))"
    )
    assert "weft.as_jax.wording" in modules and not modules & (later | tools)
    asked = "import weft.as_jax, importlib.metadata\nweft.as_jax.install()\nassert importlib.metadata.version('jax')"
    failed = "\ntry:\n    weft.numpy.ones(6).reshape(5)\nexcept TypeError as error:\n    str(error)"
    assert later <= loaded(asked + failed)


def test_threads_of_numpys_blas_do_not_wait_by_spinning_for_long(monkeypatch):
    monkeypatch.delenv("OPENBLAS_THREAD_TIMEOUT", raising=False)
    said = "import os\nprint(os.environ['OPENBLAS_THREAD_TIMEOUT'])"
    run = lambda: subprocess.run([sys.executable, "-c", "import weft\n" + said], capture_output=True, text=True)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.path.dirname(os.path.dirname(weft.__file__)), *sys.path]))
    assert run().stdout == "20\n"
    monkeypatch.setenv("OPENBLAS_THREAD_TIMEOUT", "26")  # somebody's choice counts
    assert run().stdout == "26\n"


PLAIN = {
    "jit": "weft.jit(lambda x: x * 2 + 1)(3.0)",
    "grad": "weft.jit(weft.grad(lambda x: x * x))(3.0)",
    "vmap": "weft.jit(weft.vmap(lambda x: wnp.sin(x)))(wnp.ones(3))",
    "branches and loops by hand": """
weft.jit(lambda x: weft.cond(x > 0, lambda v: -v, lambda v: v, x))(3.0)
weft.jit(lambda x: weft.fori_loop(0, 3, lambda i, c: c * 2, x))(3.0)
weft.jit(lambda x: weft.scan(lambda c, _: (c + 1, c), x, None, 3))(3.0)
""",
    "Python's own branch": "weft.jit(lambda x: x if x.shape == () else -x)(3.0)",
    "a branch on a traced value": """
def f(x):
    if x > 0:
        return x
    return -x
try:
    weft.jit(f)(3.0)
except weft.TracerError as error:
    assert "Use weft.cond" in str(error), error
else:
    raise AssertionError
""",
    "recorded": "weft.jit(lambda x: x if x > 0 else -x, capture='auto')(3.0)",
    "a mesh": "weft.jit(lambda x: x * 2)(weft.device_put(wnp.ones(2), weft.devices()[0]))",
    "unroll": "weft.autograph.unroll(range(3))",
}


@pytest.mark.parametrize("program", PLAIN)
def test_what_converts_nothing_loads_no_conversion(program):
    modules = loaded(PLAIN[program])
    assert not of_autograph(modules)
    assert not modules & {*LATER}


CONVERTED = {
    "jit": "assert weft.jit(f, autograph=True)(-3.0) == 3",
    "script": "assert weft.jit(f, capture='script')(-3.0) == 3",
    "autograph": "assert weft.jit(weft.autograph(f))(-3.0) == 3",
    "to_source": "weft.autograph.to_source(f)",
}


@pytest.mark.parametrize("way", CONVERTED)
def test_conversion_is_loaded_when_it_is_asked_for(way, tmp_path):
    (tmp_path / "given.py").write_text("def f(x):\n    if x < 0:\n        return -x\n    return x\n")
    start = f"sys.path.insert(0, {str(tmp_path)!r})\nfrom given import f\n"
    assert of_autograph(loaded(start + CONVERTED[way])) >= AUTOGRAPH


@pytest.mark.parametrize("module", LATER)
def test_what_is_loaded_later_is_there_by_its_name(module):
    assert module in loaded(LATER[module])


def test_conversion_that_begins_in_the_middle_of_a_trace(tmp_path):
    """Containers that a traced condition chooses, in a process that has converted nothing when the trace begins: what
    is written to them reaches all that they may be, also what only the traced function's arguments hold."""
    (tmp_path / "given.py").write_text(
        """
def chosen(x, parts):
    o = parts["a"] if x > 0 else parts["b"]
    o[0] = 10 * x
    return o

def f(x, parts):
    import weft
    weft.autograph(chosen)(x, parts)
    return parts["a"][0], parts["b"][0]
"""
    )
    program = f"""
sys.path.insert(0, {str(tmp_path)!r})
from given import f
results = {{}}
for x in (2.0, -2.0):
    a, b = weft.jit(lambda x, a, b: f(x, {{"a": [a], "b": [b]}}))(x, 1.0, 3.0)
    results[x] = float(a), float(b)
assert results == {{2.0: (20.0, 3.0), -2.0: (1.0, -20.0)}}, results
# As an argument, which nothing but the call holds.
a, b = weft.jit(lambda x, parts: f(x, parts))(2.0, {{"a": [1.0], "b": [3.0]}})
assert (float(a), float(b)) == (20.0, 3.0), (a, b)
from weft.autograph import aliases
assert not aliases._scope.links and not aliases._scope.linked and not aliases._scope.origins
"""
    loaded(program)
