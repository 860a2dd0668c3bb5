"""The command `weft`: programs in files looked at, optimised, run, compiled, and searched for what changes a result.

    weft opt PROGRAM [--passes=grad(0),cse] [--disable=RULE,...] [--print-locations] [--timing] [--dump-after=PASS,...]
    weft opt --list
    weft run PROGRAM --inputs in.npz [--outputs FOLDER] [--interpret]
    weft run f.weftb --inputs in.npz [--outputs FOLDER] [--device=cpu|cuda|emulation]
    weft dump PROGRAM --stage=STAGE
    weft export PROGRAM -o f.weftb
    weft bisect PROGRAM --inputs in.npz --expect out.npz
    weft why PROGRAM QUESTION [--line=LINE]
    weft ops [NAME ...]
    weft sdk

PROGRAM is a text or a binary file of a program (docs/ir.md) or a text of StableHLO, "-" standard input; `run` takes
bundles, compiled programs as `export` writes them, too. Files of arrays are .npz or .npy, in the order of parameters
and results. --load FILE runs a Python file first, which may register passes and rules, or loads a plugin, a shared
library (weft.load_plugin).
"""

from __future__ import annotations

import argparse
import re
import runpy
import struct
import sys
import tokenize
import traceback
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import _weft, transforms
from ._core.errors import value_error
from ._core.ir_view import USER_PRIMITIVES
from .compiled import jit
from .ir import from_stablehlo, to_cfg, to_dataflow, to_stablehlo
from .ir.bisecting import bisect
from .ir.pipelines import pipeline
from .ir.reasons import why
from .optimization import Plan, passes, plan_of
from .plugins import load_plugin, sdk
from .program import IR, PassRecord, deserialize_ir, parse_ir
from .transforms import arguments_of

# How a text of StableHLO begins, after comments and aliases.
_STABLEHLO = re.compile(r'(?:\s|//[^\n]*\n|[#!][^\n]*\n)*"?(?:module|builtin\.module|func\.func)\b')

_BUNDLE = b"weft bundle\n"  # how a bundle begins


def _program(path: str) -> IR:
    data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    if data.startswith(_BUNDLE):
        raise value_error(
            f"{path} is a bundle, a compiled program, which `weft run` takes; expected a program in text or binary form"
        )
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return deserialize_ir(data)
    if _STABLEHLO.match(text):
        return from_stablehlo(text, path)
    return parse_ir(text, path) if "fn " in text else deserialize_ir(data)


def _arrays(paths: Sequence[str], names: Sequence[str] = ()) -> list[np.ndarray]:
    """The arrays of files; of an .npz that has just these names in their order, otherwise in its own."""
    arrays: list[np.ndarray] = []
    for path in paths:
        try:
            arrays += _arrays_of(path, names)
        except FileNotFoundError:
            raise
        except _DAMAGED as error:
            raise value_error(f"{path} is not a whole .npz or .npy file of numbers: {error or type(error).__name__}")
    return arrays


# What NumPy, zipfile and zlib raise for files that they cannot read.
_DAMAGED = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def _arrays_of(path: str, names: Sequence[str]) -> list[np.ndarray]:
    loaded = np.load(path, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return [loaded]
    with loaded:
        arrays = [loaded[name] for name in (names if {*names} == {*loaded.files} else loaded.files)]
    if not all(isinstance(x, np.ndarray) for x in arrays):  # files that do not begin as .npy are bytes
        raise value_error("it holds files that are no arrays")
    return arrays


def _inputs(ir: IR, paths: Sequence[str]) -> list[np.ndarray]:
    arrays = _arrays(paths, ir._fn.param_names)
    if len(arrays) != len(ir.in_types):
        raise value_error(
            f"'{ir.__name__}' takes {len(ir.in_types)} arrays ({', '.join(ir.in_types)}), {len(arrays)} are given by "
            "--inputs"
        )
    return arrays


def _words(text: str | None) -> list[str] | None:
    return None if text is None else [word for word in text.split(",") if word]


def _numbers(name: str, arguments: Sequence[str]) -> list[int]:
    if not all(text.isdecimal() for text in arguments):
        raise value_error(f"weft opt: {name}({','.join(arguments)}): expected numbers, as in {name}(0)")
    return [int(text) for text in arguments]


def _grad(ir: IR, arguments: Sequence[str]) -> IR:
    return transforms.grad(ir, _numbers("grad", arguments) or 0)


def _jvp(ir: IR, arguments: Sequence[str]) -> IR:
    if arguments:
        raise value_error(f"weft opt: jvp({','.join(arguments)}): jvp takes no argument")
    return transforms.jvp(ir)


def _vmap(ir: IR, arguments: Sequence[str]) -> IR:
    if len(arguments) != 1:
        raise value_error(f"weft opt: vmap({','.join(arguments)}): expected one size, as in vmap(8)")
    return transforms.vmap(ir, _numbers("vmap", arguments)[0])


# Transforms, which may stand among passes: what they are called, and what they do with a program.
_TRANSFORMS: dict[str, tuple[Callable[[IR, Sequence[str]], IR], str]] = {
    "grad": (_grad, "(PARAMETER,...): the gradient of the result, of the first parameter where none is given"),
    "jvp": (_jvp, "forward mode, with a tangent for each parameter"),
    "vmap": (_vmap, "(SIZE): every parameter and result has a leading axis of that size"),
}


def _transform(name: str, arguments: Sequence[str]) -> Callable[[IR], IR]:
    run, _ = _TRANSFORMS[name]
    return lambda ir: run(ir, arguments)


_STEP = re.compile(r"([^,()]+)(?:\(([^()]*)\))?(?:,|$)")


def _steps(text: str) -> list[tuple[str, list[str] | None]]:
    """What --passes says: names, with the arguments that stand behind them."""
    found: list[tuple[str, list[str] | None]] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise value_error(f"weft opt: --passes={text}: expected names between commas, as in grad(0),cse")
        name, arguments = match[1].strip(), match[2]
        if arguments is not None and name not in _TRANSFORMS:
            raise value_error(
                f"weft opt: {match[0].rstrip(',')}: {', '.join(_TRANSFORMS)} take arguments, passes do not"
            )
        found.append((name, None if arguments is None else [a.strip() for a in arguments.split(",") if a.strip()]))
        at = match.end()
    return found


def _list() -> None:
    for name in ["optimize", *passes()]:
        print(name)
    for name, (_, about) in _TRANSFORMS.items():
        print(f"{name}{'' if about.startswith('(') else ': '}{about}")


def _opt(options: argparse.Namespace) -> int:
    if options.list:
        _list()
        return 0
    if options.program is None:
        print("weft opt: expected PROGRAM, a file, or --list", file=sys.stderr)
        return 2
    disabled, own = _words(options.disable), passes()
    parts: list[Plan | Callable[[IR], IR] | None] = []  # plans, and transforms of programs
    for name, arguments in _steps("optimize" if options.passes is None else options.passes):
        if name in _TRANSFORMS and name not in own:
            parts.append(_transform(name, arguments or ()))
        else:
            parts.append(plan_of("weft opt", None, [name], disabled))
    if not parts:
        plan_of("weft opt", None, None, disabled)  # an error where there is no such rule
    wanted = _words(options.dump_after) or []
    for name in wanted:
        if name != "all":
            plan_of("weft opt", None, [name], None)  # an error where there is no such pass
    after = _program(options.program)
    records: list[PassRecord] = []
    for part in parts:
        if isinstance(part, Plan):
            after = part.run(after, records=records if wanted or options.timing else None)
        elif part is not None:
            after = part(after)
    for record in records:
        if "all" in wanted or record.name in wanted:
            print(f"# after {record.name}\n{record.text}", file=sys.stderr)
    if options.timing:
        _print_table(records)
    sys.stdout.write(after.text_with_locations() if options.print_locations else after.text)
    return 0


def _print_table(records: Sequence[PassRecord]) -> None:
    total = sum(r.milliseconds for r in records)
    print(f"{'ms':>10}  {'share':>7}  {'equations':>10}  {'left':>10}  pass", file=sys.stderr)
    for r in records:
        share = 100 * r.milliseconds / total if total > 0 else 0.0
        print(
            f"{r.milliseconds:10.3f}  {share:6.1f}%  {r.equations_before:10}  {r.equations_after:10}  {r.name}",
            file=sys.stderr,
        )
    print(f"{total:10.3f}  {100:6.1f}%  {'':10}  {'':10}  together", file=sys.stderr)


def _is_bundle(path: str) -> bool:
    if path == "-":
        return False
    with open(path, "rb") as file:
        return file.read(len(_BUNDLE)) == _BUNDLE


def _run(options: argparse.Namespace) -> None:
    results = _results_of_bundle(options) if _is_bundle(options.program) else _results_of_program(options)
    if options.outputs:
        folder = Path(options.outputs)
        folder.mkdir(parents=True, exist_ok=True)
        for i, result in enumerate(results):
            np.save(folder / f"{i}.npy", np.asarray(result))
        return
    for i, result in enumerate(results):
        print(f"result {i}: {_weft.abstract(result)[3]}\n{np.asarray(result)}")


def _results_of_bundle(options: argparse.Namespace) -> Sequence[Any]:
    if options.interpret:
        raise value_error("--interpret: a bundle holds no program that could be interpreted")
    return _weft.run_bundle(options.program, options.inputs, options.device or "")


def _results_of_program(options: argparse.Namespace) -> Sequence[Any]:
    if options.device:
        raise value_error(f"--device is for bundles; {options.program} is a program")
    ir = _program(options.program)
    backend = "interpreter" if options.interpret else "cpu"
    return jit(lambda *x: tuple(_weft.apply(ir._fn, list(x))), backend=backend)(*_inputs(ir, options.inputs))


# Forms of a program that are no stages of its compilation.
_FORMS: dict[str, Callable[[IR], str]] = {
    "blocks": lambda ir: to_cfg(ir).text,
    "dataflow": lambda ir: to_dataflow(ir).text,
    "stablehlo": to_stablehlo,
    "svg": IR.to_svg,
}


def _dump(options: argparse.Namespace) -> None:
    ir = _program(options.program)
    form = _FORMS.get(options.stage)
    stages = [*("ir", "optimized"), *(s.name for s in pipeline("cpu") if s.kind == "stage"), *_FORMS]
    if options.stage not in stages:
        raise value_error(f"weft dump: there is no stage {options.stage!r}; there are {', '.join(stages)}")
    sys.stdout.write(ir.stage(options.stage) if form is None else form(ir))


def _export(options: argparse.Namespace) -> None:
    ir = _program(options.program)
    args, kwargs = arguments_of(ir)
    jit(ir).lower(*args, **kwargs).export(options.output)


def _bisect(options: argparse.Namespace) -> int:
    ir = _program(options.program)
    found = bisect(
        ir,
        _inputs(ir, options.inputs),
        _arrays(options.expect),
        passes=_words(options.passes),
        rtol=options.rtol,
        atol=options.atol,
        exact=options.exact,
    )
    print(found)
    return 0 if found.where == "nothing" else 1


def _why(options: argparse.Namespace) -> None:
    line = int(options.line) if options.line is not None and options.line.isdecimal() else options.line
    for sentence in why(_program(options.program), options.question, line):
        print(sentence)


def _ops(options: argparse.Namespace) -> None:
    known = {
        name: {"family": "weft.Primitive", "doc": "Defined by a file that was loaded."} for name in USER_PRIMITIVES
    }
    known |= {p["name"]: p for p in _weft.primitives()}
    for name in options.names or known:
        if name not in known:
            raise value_error(f"there is no operation '{name}'")
        print(f"{name} ({known[name]['family']}): {known[name]['doc']}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("weft", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Any, about: str, program: bool = True) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=about, description=about)
        sub.set_defaults(run=run)
        if program:
            sub.add_argument("program", metavar="PROGRAM")
        sub.add_argument(
            "--load", action="append", default=[], metavar="FILE", help="Python to run, or a plugin to load, first"
        )
        return sub

    sub = command("opt", _opt, "the program after passes and transforms", program=False)
    sub.add_argument("program", metavar="PROGRAM", nargs="?")
    sub.add_argument("--passes", help="names in order, as in grad(0),cse; the default ones without it")
    sub.add_argument("--list", action="store_true", help="the passes and transforms that there are")
    sub.add_argument("--disable", help="names of rules and passes that do not run")
    sub.add_argument("--print-locations", action="store_true", help="with the user's line of every operation")
    sub.add_argument(
        "--timing", action="store_true", help="what each pass took, and how many equations it left, on standard error"
    )
    sub.add_argument(
        "--dump-after", metavar="PASS,...", help="the program after these passes, or after all, on standard error"
    )
    sub = command("run", _run, "results")
    sub.add_argument("--inputs", nargs="*", default=[], metavar="FILE")
    sub.add_argument("--outputs", metavar="FOLDER", help="for 0.npy, 1.npy ...; without it they are printed")
    sub.add_argument("--interpret", action="store_true", help="by the reference interpreter")
    sub.add_argument("--device", choices=("cpu", "cuda", "emulation"), help="of a bundle; what it is for without this")
    sub = command("dump", _dump, "the program at a stage of compilation")
    sub.add_argument("--stage", required=True, help="of compilation, or blocks, dataflow, stablehlo, svg: other forms")
    sub = command("export", _export, "a bundle: the compiled program as a file")
    sub.add_argument("-o", "--output", required=True, metavar="FILE")
    sub = command("bisect", _bisect, "the pass and the rule that change a result")
    sub.add_argument("--inputs", nargs="*", default=[], metavar="FILE")
    sub.add_argument("--expect", nargs="+", required=True, metavar="FILE", help="the right results")
    sub.add_argument("--passes", help="names in order; the default ones without it")
    sub.add_argument("--rtol", type=float, default=1e-5)
    sub.add_argument("--atol", type=float, default=1e-6)
    sub.add_argument("--exact", action="store_true", help="every bit counts")
    sub = command("why", _why, "why something did not happen, or is kept, a sentence for each operation")
    sub.add_argument("question", help="'not fused', 'not folded', 'kept', or the name of a rule: why it did not apply")
    sub.add_argument("--line", help="a number, or FILE:NUMBER")
    sub = command("ops", _ops, "the operations", program=False)
    sub.add_argument("names", nargs="*", metavar="NAME")
    command(
        "sdk", lambda _: print(sdk()), "the folder of the SDK, which a wheel brings, for plugins in C++", program=False
    )
    return parser


def _load(file: str) -> None:
    """Runs a file of Python, or loads a plugin."""
    if Path(file).suffix == ".so":
        load_plugin(file)
        return
    try:
        runpy.run_path(file)
    except OSError:
        raise
    except Exception as error:
        at = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        place = f"{file}:{at[-1].lineno}" if at else file
        kind = "" if isinstance(error, (ValueError, TypeError)) else f"{type(error).__name__}: "
        text = str(error).partition("\n  at <frozen runpy>")[0]  # below are the lines that load the file
        raise value_error(f"--load {place}: {kind}{text}") from None


def _message(error: Exception) -> str:
    """What is printed of an error: without the lines of Python's that call the command, with its notes."""
    around, text = _weft.user_stack(), str(error)
    if around and text.endswith(around):
        text = text.removesuffix(around).rstrip("\n")
    return "\n".join([text.removeprefix("main: "), *getattr(error, "__notes__", ())])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; the exit status: 0, 1 for an error (and where bisect found something), 2 for wrong usage."""
    options = _parser().parse_args(arguments)
    try:
        for file in getattr(options, "load", ()):
            _load(file)
        return options.run(options) or 0
    except (OSError, ValueError, TypeError, RuntimeError, NotImplementedError) as error:
        print(f"weft: {_message(error)}", file=sys.stderr)
    except Exception as error:
        if not getattr(error, "__notes__", ()):  # not of a pass or a rule of the user's
            raise
        print(f"weft: {type(error).__name__}: {_message(error)}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
