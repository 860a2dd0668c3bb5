"""Runs programs of compat/programs and prints their numbers: a line of JSON for each.

python run_program.py optax_training ...                    # under JAX
python -m weft.as_jax run_program.py optax_training ...     # on Weft
"""

import importlib
import json
import pathlib
import sys
import time
import traceback
import warnings

import numpy as np


def numbers_of(tree) -> list[float]:
    """The numbers in a tree of arrays; complex ones as pairs."""
    import jax

    found: list[float] = []
    for leaf in jax.tree_util.tree_leaves(tree):
        leaf = np.asarray(leaf)
        if np.iscomplexobj(leaf):
            leaf = np.stack([leaf.real, leaf.imag])
        found.extend(map(float, leaf.ravel()))
    return found


def main(names) -> None:
    """Runs the programs."""
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(pathlib.Path(__file__).parent / "programs"))
    for name in names:
        start = time.perf_counter()
        try:
            result = {"numbers": numbers_of(importlib.import_module(name).program())}
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}".splitlines()[0], "trace": traceback.format_exc()}
        print(json.dumps({"program": name, "seconds": time.perf_counter() - start, **result}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
