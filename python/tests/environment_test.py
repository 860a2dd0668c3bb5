"""What environment variables may be: every one of docs/environment.md, with values that it cannot be. Such a value is
named, with what was expected, and nothing hangs or takes it for another in silence."""

import os
import re
import subprocess
import sys

import pytest

# Something that reads the variable, and values that it cannot be.
COMPILE = "weft.jit(lambda v: wnp.sin(v) * 2)(np.zeros(3000000, np.float32))"
LOOP = "weft.grad(lambda v: weft.lax.while_loop(lambda c: c < 9, lambda c: c * c + 1, v))(2.0)"
RECURSE = (
    "f = weft.jit(lambda n: weft.lax.cond(n > 0, lambda: f(n - 1) + 1, lambda: n * 0)); weft.jit(f)(np.float32(3))"
)
CUDA = "weft.jit(lambda v: v + 1).lower(np.zeros(3, np.float32), target='cuda:sm_80').export('/dev/null')"
NUMBERS = ("0", "-5", "1e10", "many", "3.5", "99999999999999999999")
WRONG = {
    "WEFT_CACHE_DIR": (COMPILE, ("/dev/null", "/proc/version/x")),
    "WEFT_CACHE_BYTES": (COMPILE, NUMBERS[1:]),
    "WEFT_NUM_THREADS": (COMPILE, (*NUMBERS, "99999")),
    "WEFT_NUM_CPU_DEVICES": ("weft.devices()", (*NUMBERS, "99999")),
    "WEFT_DEADLINE": ("weft.distributed.initialize()", ("0", "-5", "1e10", "many", "nan", "inf")),
    "WEFT_CPU": (COMPILE, ("avx3", "native")),
    "WEFT_TAPE_BYTES": (LOOP, NUMBERS[1:]),
    "WEFT_MAX_RECURSION": (RECURSE, NUMBERS),
    "WEFT_INTERPRET": (COMPILE, ("2", "-1", "yes")),
}
# Names of files: one that is not there is named by whoever opens it (gpu_test.py, tests/gpu, as_jax_test.py).
OF_FILES = {"WEFT_LIBDEVICE", "WEFT_LIBCUDA", "WEFT_LIBCUBLASLT", "WEFT_AS_JAX_LOG"}


def test_every_variable_is_here():
    with open("docs/environment.md") as page:
        table = [line.split("|")[1] for line in page if line.startswith("| `")]
    assert set(re.findall(r"`(WEFT_\w+)`", "".join(table))) == set(WRONG) | OF_FILES


def run(program, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}
    env |= {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
    program = "import numpy as np, weft, weft.numpy as wnp\n" + program
    return subprocess.run([sys.executable, "-P", "-c", program], env=env, capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in WRONG for value in WRONG[name][1]])
def test_values_that_it_cannot_be(name, value, tmp_path):
    done = run(WRONG[name][0], **{"WEFT_CACHE_DIR": str(tmp_path / "cache"), name: value})
    lines = [line for line in done.stderr.splitlines() if not line.startswith(" ")]  # not those of tracebacks
    said = [line for line in lines if (value if name == "WEFT_CACHE_DIR" else name) in line]
    assert len(said) == 1, done.stderr
    assert value in said[0] and re.search("expected|compiling without it", said[0]), said
    assert done.returncode == 0 or "ValueError" in said[0], done.stderr


@pytest.mark.parametrize("name", WRONG)
def test_an_empty_value_is_none(name, tmp_path):
    environment = {"XDG_CACHE_HOME": str(tmp_path), name: ""}
    done = run(WRONG[name][0], **environment)
    assert done.returncode == 0 and done.stderr == "", done.stderr


@pytest.mark.parametrize("seconds", [0, -5, 1e10, float("nan"), float("inf"), 10**400, "soon", [1]])
def test_deadlines_that_a_caller_gives(seconds):
    import weft

    with pytest.raises(ValueError, match=r"distributed.initialize: the deadline is .*; expected a number of seconds"):
        weft.distributed.initialize(deadline=seconds)
