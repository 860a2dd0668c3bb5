"""Programs that run on Weft and, where it is installed, under JAX."""

import json
import os
import subprocess
import sys
import textwrap

HEAD = """
import json, os, warnings
warnings.simplefilter("ignore")
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P
out = {}
def shown(x):
    return json.loads(json.dumps(jax.tree.map(str, x), default=str))
"""


def environment_of(**more):
    """The environment of a process that finds what this one imports."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more}


def run(*arguments, check=True, **environment):
    """Python with these arguments."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment_of(**environment),
        timeout=600,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def lines(code, *arguments, **environment):
    """What a program puts into `out`."""
    done = run(*arguments, "-c", HEAD + textwrap.dedent(code) + "\nprint(json.dumps(out))", **environment)
    return json.loads(done.stdout.splitlines()[-1])


def both(code, **environment):
    """What a program puts into `out` on Weft; the same as under JAX."""
    ours = lines(code, "-m", "weft.as_jax", **environment)
    try:
        import jax  # noqa: F401
    except ImportError:
        return ours
    theirs = lines(code, JAX_PLATFORMS="cpu", **environment)
    differing = {name: (ours.get(name), theirs.get(name)) for name in {**ours, **theirs}}
    differing = {name: pair for name, pair in differing.items() if pair[0] != pair[1]}
    assert not differing, f"on Weft, and under JAX: {differing}"
    return ours
