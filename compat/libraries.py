"""Libraries for JAX on Weft: `./bazelw run //compat:libraries` runs a program of each and writes docs/compatibility.md.

./bazelw run //compat:libraries                        # all programs on Weft, beside the numbers that JAX gave
./bazelw run //compat:libraries -- optax_training      # some of them; the table stays
./bazelw run //compat:libraries -- --jax [program ...] # JAX runs them, and reference.json gets its numbers
"""

import ast
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import environments

import weft

HERE = Path(__file__).resolve().parent


class Library(NamedTuple):
    """A library: its distribution, the module that is imported, and its program."""

    distribution: str
    module: str
    program: str


# By number of users, as far as downloads tell.
LIBRARIES = [
    Library("optax", "optax", "optax_training"),
    Library("chex", "chex", "chex_checks"),
    Library("flax", "flax.linen", "flax_linen_training"),
    Library("flax", "flax.nnx", "flax_nnx_training"),
    Library("orbax-checkpoint", "orbax.checkpoint", "orbax_checkpoints"),
    Library("equinox", "equinox", "equinox_training"),
    Library("dm-haiku", "haiku", "haiku_training"),
    Library("numpyro", "numpyro", "numpyro_nuts"),
    Library("diffrax", "diffrax", "diffrax_odes"),
    Library("einops", "einops", "einops_shapes"),
    Library("jaxtyping", "jaxtyping", "jaxtyping_annotations"),
    Library("tfp-nightly", "tensorflow_probability.substrates.jax", "tfp_substrate"),
    Library("distrax", "distrax", "distrax_distributions"),
    Library("jaxopt", "jaxopt", "jaxopt_solvers"),
    Library("lineax", "lineax", "lineax_solvers"),
    Library("optimistix", "optimistix", "optimistix_solvers"),
    Library("blackjax", "blackjax", "blackjax_samplers"),
    Library("jraph", "jraph", "jraph_network"),
    Library("rlax", "rlax", "rlax_losses"),
    Library("jmp", "jmp", "jmp_precision"),
    Library("treescope", "treescope", "treescope_views"),
    Library("penzai", "penzai", "penzai_model"),
    Library("dm_pix", "dm_pix", "dm_pix_images"),
    Library("jaxlie", "jaxlie", "jaxlie_poses"),
    Library("e3nn-jax", "e3nn_jax", "e3nn_harmonics"),
    Library("dynamiqs", "dynamiqs", "dynamiqs_systems"),
    Library("quax", "quax", "quax_arrays"),
]
MOST_USED = LIBRARIES[:9]  # eight distributions

# Program -> why it does not run.
NOT_YET = {"quax_arrays": "its arrays are values of JAX's traces, whose objects Weft does not have"}

# Tests of libraries' own that were run with `pytest -p weft.as_jax`: module, which of them, how many passed of how many
# (without those that fail with JAX), and what is left.
OWN_TESTS = [
    ("optax", "losses, projections, assignment, transforms, trees", 2161, 2161, ""),
    ("chex", "assertions, dataclasses, dimensions, variants, backends", 611, 611, ""),
    ("rlax", "all but clipping", 715, 715, ""),
    ("distrax", "utilities, five distributions, two bijectors", 2875, 2875, ""),
    ("jraph", "models", 73, 73, ""),
    ("jmp", "all", 97, 97, ""),
    (
        "lineax",
        "operators, norms, arrays, inverses, singular and well-posed matrices, adjoints, vmap in vmap",
        1047,
        1049,
        "`vmap(f)(x) is x`; that forward mode of a `custom_vjp` is an error",
    ),
    (
        "equinox",
        "trees, filters, modules, enumerations, layers, loops, callbacks, serialisation, jit, errors, derivatives, "
        "scans, primitives, shardings",
        386,
        392,
        "a function is traced once more for its gradient; tangents that are no arrays; the constants of "
        "`closure_convert` are other objects; numbers come out of `jvp` as arrays",
    ),
    (
        "flax",
        "linen and nnx: modules, layers, attention, transforms, states, graphs, rngs, metrics, bridges, summaries, "
        "designs",
        2207,
        2249,
        "objects that change, as hijax has them (`nnx.Variable(hijax=True)`); a dtype of its own; last digits inside "
        "and outside of `jit`; operations are counted otherwise in summaries",
    ),
    (
        "haiku",
        "layers, networks, data structures, lifting, stacks of layers, filters, summaries, half precision",
        399,
        403,
        "the text of XLA's own program",
    ),
    ("numpyro", "gradients, automatic guides, transforms, spectral densities, modules, utilities", 688, 688, ""),
    (
        "diffrax",
        "adjoints, stochastic equations, step sizes, interpolation, terms, saved steps, solvers, events, convergence",
        354,
        355,
        "constants of an implicit solver's first stage are no constants of its `closure_convert`",
    ),
    (
        "optimistix",
        "minimisers, roots, LBFGS's operators, Cauchy points, derivatives, SciPy's interface",
        509,
        510,
        "`asarray(x) is x`",
    ),
    (
        "jaxopt",
        "Anderson acceleration, bisection, block descent, conditionals, line search, proximal operators, "
        "projections, losses, linear solvers, loops, perturbations, trees, quadratic programs, Broyden's method",
        147,
        150,
        "a numerical derivative through a solver that stops at a tolerance (in 64 bits the numbers are JAX's); a "
        "gradient where 1e9 cancels 1e9",
    ),
    (
        "penzai",
        "core, layers, tools, views",
        247,
        250,
        "`wrap(x).unwrap() is x`; the last digits inside and outside of `jit`",
    ),
    (
        "blackjax",
        "resampling, metrics, proposals, trajectories, integrators, diagnostics, noisy gradients, optimizers, "
        "adaptation, sequential Monte Carlo",
        556,
        557,
        "a tolerance of 1e-7",
    ),
    ("dynamiqs", "core, arrays, utilities, two solvers", 254, 254, ""),
    ("dm_pix", "its interface; the others need TensorFlow", 80, 80, ""),
    ("tensorflow_probability", "beta, normal, categorical and Dirichlet distributions", 143, 143, ""),
    ("einops", "all but other frameworks", 38, 38, ""),
    ("jaxtyping", "decorators, generators, serialisation", 48, 48, ""),
    ("e3nn_jax", "signals on spheres, harmonics, gates, batch norms, points and voxels, irreps", 398, 398, ""),
    ("jaxlie", "operations, broadcasting, derivatives, examples, axioms of groups, logarithms", 278, 278, ""),
    ("orbax", "handlers, layouts, paths, arrays of NumPy", 76, 76, ""),
]

# Chains of steps in single precision: relative to 1 + the number.
TOLERANCE = 1e-3
_KEPT = 300  # numbers of a program that are compared


def condensed(numbers: list[float]) -> list[float]:
    """At most _KEPT of the numbers, evenly spaced, and the sum of their absolute values."""
    step = -(-len(numbers) // _KEPT)
    return [*numbers[:: max(step, 1)], sum(map(abs, numbers))]


def mark(program: str) -> str:
    """What changes when the text of a program does, but for its comments."""
    tree = ast.parse((HERE / "programs" / f"{program}.py").read_text(encoding="utf-8"))
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:12]


def environment(path: object) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**clean, "PYTHONPATH": str(path), "JAX_PLATFORMS": "cpu"}


def _run(command: list[str], path: object) -> dict:
    done = subprocess.run(command, capture_output=True, text=True, env=environment(path))
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"program"')]
    if not lines:
        return {"error": f"ended with {done.returncode}", "trace": done.stderr[-3000:]}
    return json.loads(lines[-1])


def on_weft(python: Path, program: str) -> dict:
    """What a program gives on Weft: its numbers, or an error; JAX is not there."""
    weft_folder = Path(weft.__file__).parent.parent  # where the native module is, too
    return _run([str(python), "-m", "weft.as_jax", str(HERE / "run_program.py"), program], weft_folder)


def under_jax(python: Path, program: str) -> dict:
    """The same under JAX."""
    return _run([str(python), str(HERE / "run_program.py"), program], environments.folder_with_jax())


def difference(program: str, found: dict, references: dict) -> float:
    """The largest difference from JAX's numbers, relative to 1 + the number. Raises ValueError where the two cannot be
    compared."""
    reference = references.get(program)
    if reference is None or reference["program"] != mark(program):
        raise ValueError(
            f"{program}: the program has changed since JAX ran it; run //compat:libraries -- --jax {program}"
        )
    if "error" in found:
        raise ValueError(f"{found['error']}\n{found['trace']}")
    theirs, ours = reference["numbers"], condensed(found["numbers"])
    if len(theirs) != len(ours):
        raise ValueError(f"{program}: JAX gives {len(theirs)} numbers, Weft {len(ours)}")
    worst = 0.0
    for a, b in zip(theirs, ours):
        if a == b or (a != a and b != b):
            continue
        apart = abs(a - b) / (1 + abs(a))
        worst = max(worst, apart if apart == apart else float("inf"))
    return worst


def references() -> dict:
    """The numbers that JAX gave."""
    return json.loads((HERE / "reference.json").read_text(encoding="utf-8"))


def write_references(found: dict) -> None:
    """Writes reference.json: a line for each program."""
    lines = []
    for program in sorted(found):
        entry = dict(found[program])
        numbers = ", ".join(
            f"{x:.7g}" if x == x and abs(x) != float("inf") else json.dumps(x) for x in entry.pop("numbers")
        )
        lines.append(f'"{program}": {json.dumps(entry)[:-1]}, "numbers": [{numbers}]}}')
    (HERE / "reference.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def versions() -> dict[str, str]:
    """Distribution -> version, as the lists pin them."""
    lines = [line for path in HERE.glob("requirements*.txt") for line in path.read_text().splitlines() if "==" in line]
    return dict(line.split("==") for line in lines)


def _describe(program: str) -> str:
    doc = ast.get_docstring(ast.parse((HERE / "programs" / f"{program}.py").read_text(encoding="utf-8")))
    return " ".join((doc or "").split("\n\n")[0].split()).rstrip(".")


_HEAD = """# Libraries for JAX on Weft

`./bazelw run //compat:libraries` installs these libraries, without JAX, into an environment of its own and runs a
program of each under [`weft.as_jax`](jax_programs.md). The programs are in `compat/programs/`, the numbers that JAX
{jax} gave in `compat/reference.json` (`--jax` makes them anew). A program has JAX's numbers if each differs by at
most {tolerance:g} · (1 + its size): rounding errors of single precision add up over steps. CI runs the first {count}
(`//compat:libraries_test`).

This page is written by that command.

| library | version | its program | largest difference |
|---|---|---|---|
"""


_OWN_HEAD = """
## Their own tests

Tests of the libraries' sources that passed with `pytest -p weft.as_jax`, counted on 2026-11-27; not all of them were
run. What failed was run with JAX {jax}, too, and does not count where it fails there, nor does what took longer than a
limit of half a minute:

"""


# Tests of JAX's own, without those of accelerators and of Pallas: what they are of, how many passed of how many that
# pass with JAX, and what is left. They ran on eight devices of the CPU
# (XLA_FLAGS=--xla_force_host_platform_device_count=8): JAX's tests ask for so many, and leave some out where they are
# not there. Each row is of whole files; exports and guards are export_test, jaxpr_effects_test,
# array_interoperability_test, transfer_guard_test and garbage_collection_guard_test; the row of jax.nn is nn_test,
# stax_test, optimizers_test, experimental_rnn_test and roofline_test; that of arrays array_test, layout_test,
# memories_test, multi_device_test and device_test.
JAX_TESTS = [
    (
        "the API and its transforms",
        3895,
        4020,
        "counters of lowerings, errors where Weft has an answer, messages in other words, forward rules that "
        "`remat` takes for others",
    ),
    (
        "`jax.lax`",
        4354,
        4384,
        "complex functions of infinities, errors where Weft has an answer, HLO of loops",
    ),
    (
        "`jax.numpy`",
        6713,
        6742,
        "equations of jaxprs (means, indices), tangents of dtypes of one's own, messages",
    ),
    (
        "linear algebra",
        1149,
        1163,
        "signs of Schur's vectors, the precision of JAX's own factorisations, messages",
    ),
    (
        "`jax.scipy`",
        1836,
        1837,
        "a minimiser at a tolerance",
    ),
    (
        "`jax.random`",
        976,
        989,
        "addresses of keys, messages, `blocked_sampler`",
    ),
    (
        "references and types of one's own",
        353,
        391,
        "equations of references in derivatives and loops, primitives over axes that a type maps, logs in "
        "rules of derivatives",
    ),
    (
        "sparse arrays",
        1059,
        1059,
        "",
    ),
    (
        "`jax.nn`, stax, optimizers, LSTM, rooflines",
        624,
        627,
        "`scatter_apply` as an equation, rings of one device, what softmax keeps",
    ),
    (
        "callbacks, checks, debuggers",
        399,
        424,
        "errors where Weft has an answer, pictures of shardings",
    ),
    (
        "exports, effects, exchange of arrays, guards",
        229,
        279,
        "sizes that are quotients, several platforms, tokens of effects, memory that is not aligned",
    ),
    (
        "`jit` over meshes (`pjit`), types that say how values lie",
        828,
        885,
        "counters of traces for other devices, types of the mesh of a result, texts of jaxprs, `shard_alike`",
    ),
    (
        "`shard_map`",
        423,
        440,
        "specs of equations under `vmap`, errors where Weft has an answer, collectives in two parts in StableHLO",
    ),
    (
        "`pmap`",
        261,
        265,
        "policies of `checkpoint` that name operations of derivatives",
    ),
    (
        "arrays on devices, memories, layouts, several devices",
        259,
        269,
        "layouts other than row-major, slices that turn dimensions that are cut",
    ),
    (
        "meshes over tori",
        84,
        84,
        "",
    ),
]

# Files of them without a row: what they are of, how many tests, and why.
JAX_TESTS_OF_XLA = [
    ("C functions as XLA's custom calls", 70, "their arguments are structures of XLA's C headers"),
    ("accuracies of XLA's operations", 43, "there is one implementation of each"),
    ("XLA's cache of executables, executables as bytes", 57, "what is compiled is Weft's, which WEFT_CACHE_DIR keeps"),
    ("attributes and names in HLO", 88, "programs are Weft's IR"),
    ("sources and tracebacks in HLO, printers of jaxlib", 56, "they are of MLIR's locations and of jaxlib's objects"),
    (
        "backends, profiles and garbage collection of jaxlib",
        39,
        "there is one backend, Weft's; its profiles are in docs/benchmarks.md",
    ),
    ("files and versions of JAX's own packages", 18, "they read JAX's sources"),
    ("arrays of strings", 7, "arrays hold numbers"),
    (
        "sizes that are quotients, remainders and extremes of open sizes",
        2455,
        "the file computes some when it is imported, and an open size is a polynomial of names",
    ),
]

_JAX_HEAD = """
## JAX's own tests

Tests of JAX {jax} that pass with `pytest -p weft.as_jax`, of those that pass with JAX itself, counted in one go on
2026-11-28, those of accelerators and Pallas left out, of generated ones ten each (JAX's default), on eight devices of
the CPU: {passed:,} of {of:,} ({share:.2f} %). Why the others stay is in
[what only JAX's own tests look at](differences_from_jax.md):

| | passed | of | left |
|---|---|---|---|
"""

_XLA_HEAD = """
Files that are not counted, as most of their tests are of XLA, jaxlib or what JAX alone has:

"""

# Code cells of JAX's documentation: how many run with JAX, how many of them under weft.as_jax.
JAX_CELLS = (820, 809)

_CELLS = """
## JAX's documentation

Of {of:,} code cells in JAX {jax}'s documentation that run with JAX itself, {ours:,} ({share:.1f} %) run under
`weft.as_jax`, counted on 2026-11-28: each page in one process on eight devices of the CPU, its cells in order and
each on its own, one that is to raise if it raises under both; Pallas, offloading to the host, and cells that JAX did
not reach in its time are left out. Left: foreign functions of XLA (5), errors where Weft has an answer (6).
"""


def _jax_tests(jax: str) -> str:
    """The part of the page about JAX's own tests."""
    passed, of = (sum(row[i] for row in JAX_TESTS) for i in (1, 2))
    text = _JAX_HEAD.format(jax=jax, passed=passed, of=of, share=100 * passed / of)
    for which, ours, every, left in JAX_TESTS:
        text += f"| {which} | {ours:,} | {every:,} | {left} |\n"
    text += _XLA_HEAD
    for which, count, why in JAX_TESTS_OF_XLA:
        text += f"- {which} ({count}): {why}\n"
    of, ours = JAX_CELLS
    return text + _CELLS.format(of=of, ours=ours, share=100 * ours / of, jax=jax)


def table(rows: dict[str, str]) -> str:
    """docs/compatibility.md."""
    pinned = versions()
    text = _HEAD.format(jax=pinned["jax"], tolerance=TOLERANCE, count=len(MOST_USED))
    for library in LIBRARIES:
        version = pinned[library.distribution]
        text += f"| {library.module} | {version} | {_describe(library.program)} | {rows[library.program]} |\n"
    text += _OWN_HEAD.format(jax=pinned["jax"])
    for module, which, passed, of, left in OWN_TESTS:
        text += f"- {module}: {passed:,} of {of:,} ({which}){f'; left: {left}' if left else ''}\n"
    return text + _jax_tests(pinned["jax"])


def main(arguments: list[str]) -> int:
    """Runs programs; the exit code says whether all have JAX's numbers."""
    names = [name for name in arguments if not name.startswith("-")] or [library.program for library in LIBRARIES]
    python = environments.python_with("requirements.txt")
    known = references()
    if "--jax" in arguments:
        for name in names:
            found = under_jax(python, name)
            if "error" in found:
                print(found["trace"])
                return 1
            known[name] = {"program": mark(name), "numbers": condensed(found["numbers"])}
            print(f"{name}: {len(found['numbers'])} numbers, {found['seconds']:.1f} s", flush=True)
            write_references(known)
        return 0
    rows, bad = {}, []
    for name in names:
        try:
            worst = difference(name, on_weft(python, name), known)
            rows[name] = f"{worst:.1g}"
            if worst > TOLERANCE or name in NOT_YET:
                bad.append(name)  # also what runs against expectation: NOT_YET is to be changed
        except ValueError as error:
            rows[name] = f"does not run: {NOT_YET.get(name, str(error).splitlines()[0])}"
            if name not in NOT_YET:
                print(error)
                bad.append(name)
        print(f"{name}: {rows[name]}", flush=True)
    if len(names) == len(LIBRARIES):
        page = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", HERE.parent)) / "docs" / "compatibility.md"
        page.write_text(table(rows), encoding="utf-8")
    print(f"{len(names) - len(bad)} of {len(names)} as expected" + (f"; not: {', '.join(bad)}" if bad else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
