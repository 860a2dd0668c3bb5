"""The arrows of the Python package, as functions from sources to what is wrong with their imports.

    _weft -> _core -> _sharding -> transforms -> numpy -> lax -> random -> nn -> scipy
                                             autograph, beside all of them and asked for by its door alone

Imports are read with `ast`, those inside functions too: such an import hides an arrow, and is allowed only where
something is to be loaded late (IN_FUNCTIONS). What runs when a module is imported may form no circle: the order in
which Python reads modules would decide what works.
"""

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

PACKAGE = "weft"

# Room -> its folders, which end in "/", and modules. Of several that fit a module the longest counts.
ROOMS: dict[str, tuple[str, ...]] = {
    "the package itself": ("__init__", "__main__"),
    # Errors, trees, tracing. _operations and _tracing are what old pickles name.
    "core": ("_core/", "_pickled", "_operations", "_tracing"),
    # What users import of it, what all above say alike about arguments, and collectives over named axes.
    "outer core": (
        "arguments",
        "collectives",
        "errors",
        "index_groups",
        "positional_axes",
        "ragged_exchange",
        "tree",
        "tree_util",
        "typing",
    ),
    "sharding": ("_sharding/",),
    "transforms": (
        "_debugger",
        "_key_uses",
        "ad_checkpoint",
        "aot",
        "_state/",
        "api",
        "batching",
        "callbacks",
        "compiled",
        "compiling",
        "closure_conversion",
        "config",
        "control",
        "custom",
        "custom_batching",
        "custom_derivatives",
        "custom_primitive",
        "debug",
        "derivatives",
        "described",
        "distributed",
        "implicit",
        "jacobians",
        "jitted",
        "linear_calls",
        "ir/",
        "mesh",
        "optimization",
        "options",
        "parallel",
        "partitioning",
        "plugins",
        "primitives",
        "program",
        "pullbacks",
        "recording",
        "recurrences",
        "ref",
        "scripted",
        "static_arguments",
        "symbolic_zeros",
        "taylor",
        "transforms",
    ),
    "numpy": ("numpy/",),
    # What both lax and scipy name, made of operations.
    "special functions": ("_matrix_functions/", "_special/"),
    "lax": ("lax/",),
    # StableHLO written and read, with operations of lax. weft.ir asks for it when a program is.
    "stablehlo": ("_stablehlo/",),
    "random": ("random/",),
    "nn": ("nn/",),
    "scipy": ("scipy/",),
    "on numpy": ("flatten_util", "image", "ops"),
    # Programs interpreted with errors as values, for weft.experimental.checkify.
    "checks": ("_checks/",),
    "experimental": ("experimental/",),
    # JAX's names, for JAX's programs. Nobody imports it.
    "as_jax": ("as_jax/",),
    # weft.autograph is there at once, and reads the rest when a function is to be converted.
    "autograph's door": ("autograph/__init__", "autograph/errors"),
    "autograph": ("autograph/",),
}

_CORES = {"core", "outer core"}
_TRANSFORMS = {*_CORES, "sharding", "autograph's door", "transforms"}

# Room -> the rooms that it may import; every room may import itself and the native module, but "the package itself"
# is for nobody: what it gathers is imported from where it is.
ARROWS: dict[str, set[str]] = {
    "the package itself": {*ROOMS},
    "core": set(),
    "outer core": {"core"},
    "sharding": _CORES,
    "transforms": _TRANSFORMS,
    "numpy": _TRANSFORMS,
    "special functions": {*_TRANSFORMS, "numpy"},
    "lax": {*_TRANSFORMS, "numpy", "special functions"},
    "stablehlo": {*_TRANSFORMS, "numpy", "lax"},
    "random": {*_TRANSFORMS, "numpy", "lax"},
    "nn": {*_TRANSFORMS, "numpy", "random", "lax"},
    "scipy": {*_TRANSFORMS, "numpy", "nn", "random", "lax", "on numpy", "special functions"},
    "on numpy": {*_TRANSFORMS, "numpy"},
    "checks": {*_TRANSFORMS, "numpy"},
    "experimental": {*_TRANSFORMS, "numpy", "on numpy", "checks"},
    "as_jax": {
        *_TRANSFORMS,
        "the package itself",
        "numpy",
        "special functions",
        "lax",
        "stablehlo",
        "random",
        "nn",
        "scipy",
        "on numpy",
        "experimental",
    },
    "autograph's door": {"core"},
    "autograph": {*_TRANSFORMS, "numpy"},
}

# (module, what it imports inside a function) -> why it is loaded late.
IN_FUNCTIONS: dict[tuple[str, str], str] = {
    ("as_jax/extended_dtypes", "weft.as_jax.devices"): "few programs have handlers, and it imports this module",
    ("as_jax/jaxpr_text", "weft.as_jax.ref_equations"): "few programs have references",
    ("positional_axes", "weft.numpy._reductions"): "few collectives look for extremes of complex numbers",
    ("distributed", "weft.random"): "few arrays are made of keys, and it is made of jitted functions",
    ("autograph/__init__", "weft.autograph.conversion"): "most programs convert nothing",
    ("autograph/__init__", "weft.autograph.stages"): "few functions are looked at on the way of their conversion",
    ("program", "weft.ir.pictures"): "few programs are drawn",
    ("compiled", "weft.ir.stablehlo"): "few programs are written as StableHLO",
    ("ir/stablehlo", "weft._stablehlo.reading"): "few programs are read from StableHLO, and it needs lax",
    ("ir/stablehlo", "weft._stablehlo.writing"): "few programs are written as StableHLO, and it needs lax",
    ("_core/watching", "logging"): "most programs log nothing",
    ("debug", "logging"): "most programs log nothing",
    ("debug", "weft._debugger"): "most programs stop nowhere",
    ("jitted", "weft.ir.key_reuse"): "few programs look for keys that are used twice",
    ("as_jax/callbacks", "logging"): "most programs log nothing",
    ("as_jax/effects", "weft._checks.interpreter"): "few programs have checks, and it needs weft.numpy",
    ("as_jax/transfers", "logging"): "most programs log nothing",
    ("as_jax/test_util", "unittest"): "few programs skip tests",
    ("as_jax/export_places", "weft.ir.stablehlo"): "few programs are written as StableHLO",
    ("as_jax/finder", "weft.as_jax.distributions"): "few programs ask for versions, and it needs importlib.metadata",
    ("as_jax/settings", "weft.as_jax.numpy_errors"): "few programs note such errors, and it needs weft.numpy",
    ("as_jax/numpy_errors", "weft.as_jax.settings"): "the options need it first, where one of them is set",
    ("as_jax/own_impls", "weft.as_jax.jaxprs"): "few programs watch operations, and it imports this module",
    ("as_jax/wording", "weft.as_jax.structures"): "most programs have no error",
    ("plugins", "pathlib"): "few programs ask for the SDK, and it imports much",
    ("as_jax/wording", "weft.as_jax.table.words"): "most programs have no error",
    ("as_jax/wording", "weft.as_jax.table.whole_words"): "most programs have no error",
    ("as_jax/wording", "weft.as_jax.table.words_of_arrays"): "most programs have no error",
    ("as_jax/wording", "weft.as_jax.table.words_of_products"): "most programs have no error",
    ("as_jax/wording", "weft.as_jax.table.words_of_shardings"): "most programs have no error",
    ("numpy/_ufunc_methods", "weft.numpy._ufunc"): "few programs ask functions for methods of ufuncs",
    ("random/_keys", "weft.random._generators"): "few programs ask for other generators, and they need lax",
    ("numpy/_dtypes", "ml_dtypes"): "only programs that name the narrowest floats need it installed",
}


class Import(NamedTuple):
    """One import of a module: `target` is its name; `runs`: whether it does when the importing module is imported."""

    target: str
    line: int
    in_function: bool
    runs: bool


def name_of(module: str) -> str:
    """The name of a module that is called as the tables here call it: "numpy/__init__" -> "weft.numpy"."""
    return ".".join([PACKAGE, *module.removesuffix("__init__").strip("/").split("/")]).rstrip(".")


def room_of(module: str) -> str | None:
    """The room of a module; None: the tables do not know it."""
    found = [
        (len(part), room)
        for room, parts in ROOMS.items()
        for part in parts
        if part == module or (part.endswith("/") and module.startswith(part))
    ]
    return max(found)[1] if found else None


def imports(module: str, text: str, sources: Mapping[str, str]) -> list[Import]:
    """What a module imports. `sources`: module -> text of all of them, to tell modules from what is in them."""
    names = {name_of(other) for other in sources} | {f"{PACKAGE}._weft"}
    around = name_of(module).split(".")
    if not module.endswith("__init__"):
        around = around[:-1]
    found: list[Import] = []

    def visit(node: ast.AST, in_function: bool, runs: bool) -> None:
        for child in ast.iter_child_nodes(node):
            inside = in_function or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            checked = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            if isinstance(child, ast.Import):
                found.extend(Import(a.name, child.lineno, inside, runs and not inside) for a in child.names)
            elif isinstance(child, ast.ImportFrom):
                parent = child.module or ""
                if child.level:
                    above = around[: len(around) - (child.level - 1)]
                    parent = ".".join([*above, *([child.module] if child.module else [])])
                for alias in child.names:
                    whole = f"{parent}.{alias.name}"
                    target = whole if whole in names else parent
                    found.append(Import(target, child.lineno, inside, runs and not inside))
            visit(child, inside, runs and not checked)

    visit(ast.parse(text), False, True)
    return found


def violations(module: str, text: str, sources: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the imports of one module: arrows, and imports in functions."""
    here = f"python/{PACKAGE}/{module}.py"
    room = room_of(module)
    if room is None:
        yield f"{here}: no room of the package has this module (see tools/python_layering.py)"
        return
    modules = {name_of(other): other for other in sources}
    for found in imports(module, text, sources):
        where = f"{here}:{found.line}: import of {found.target}"
        if found.in_function and (module, found.target) not in IN_FUNCTIONS:
            yield f"{where}: inside a function; import it where the module begins, or say why not in IN_FUNCTIONS"
        if found.target == f"{PACKAGE}._weft" or found.target.split(".")[0] != PACKAGE:
            continue
        if found.target not in modules:
            yield f"{where}: there is no such module"
            continue
        other = room_of(modules[found.target])
        if (module, found.target) not in IN_FUNCTIONS and other not in {room, *ARROWS[room]}:
            yield f"{where}: '{room}' may not see '{other}'"


def cycle(sources: Mapping[str, str]) -> list[str] | None:
    """Modules each of which imports the next one while it is imported, the last one the first; None: there are none.

    A package's own module counts as imported by whoever imports a module of that package from outside."""
    modules = {name_of(module): module for module in sources}
    graph: dict[str, list[str]] = {}
    for name, module in modules.items():
        to: dict[str, None] = {}
        for found in imports(module, sources[module], sources):
            parts = found.target.split(".")
            for n in range(1, len(parts) + 1) if found.runs else ():
                target = ".".join(parts[:n])
                is_around = target == found.target or not f"{name}.".startswith(f"{target}.")
                if target in modules and target not in (name, PACKAGE) and is_around:
                    to[target] = None
        graph[name] = list(to)
    done: set[str] = set()

    def walk(at: str, path: list[str]) -> list[str] | None:
        if at in path:
            return path[path.index(at) :]
        if at in done:
            return None
        for target in graph[at]:
            if found := walk(target, [*path, at]):
                return found
        done.add(at)
        return None

    for name in graph:
        if found := walk(name, []):
            return found
    return None
