"""What documentation shows runs, and everything public is documented: a summary, what each parameter is, what comes
back, and an example whose output is checked. The quickstart of the README runs, too."""

import ast
import builtins
import contextlib
import doctest
import importlib
import inspect
import io
import json
import linecache
import os
import pathlib
import re
import shutil
import subprocess
import sys
import types

import pytest

import weft
import weft.numpy as wnp


def public_modules(module, seen):
    """The names of a module and of the modules that it shows."""
    seen.append(module.__name__)
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, types.ModuleType) and value.__name__ not in seen:
            public_modules(value, seen)
    return seen


MODULES = sorted(public_modules(weft, []))
# Members of these classes are public, too.
CLASSES = [weft.Array, weft.IR, weft.ShapeDtype, weft.custom_jvp, weft.custom_vjp, type(weft.autograph)]
CLASSES += [weft.Primitive, weft.Linear, weft.ir.Interpreter, weft.ir.Operation, weft.ir.Value, weft.ir.Literal]
CLASSES += [
    type(weft.script(lambda x: x)),
    type(wnp.zeros(1).at[0]),
    type(weft.jit(abs).lower(1.0)),
    type(weft.jit(abs).lower(1.0).compile()),
]
# NumPy's and optree's own.
FOREIGN = ("numpy", "optree", "ml_dtypes")


def members(holder, name):
    """(name, object, signature or None) of what a class shows, that written in C++ included."""
    for member, raw in vars(holder).items():
        if member.startswith("_"):
            continue
        value = raw.__func__ if isinstance(raw, (staticmethod, classmethod)) else raw
        if callable(value) or isinstance(value, (property, types.GetSetDescriptorType)):
            yield f"{name}.{member}", value


def everything():
    """(name, object) of all that is public, each object once."""
    seen = set()
    found = []

    def add(name, value):
        if id(value) not in seen:
            seen.add(id(value))
            found.append((name, value))

    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, types.ModuleType) or not callable(value):
                continue
            if getattr(value, "__module__", None) == "collections.abc":  # an alias
                continue
            if (getattr(value, "__module__", None) or "").split(".")[0] in FOREIGN:
                continue
            if type(value).__name__ == "_Scalar" or type(value).__module__ == "typing":  # dtypes, aliases
                continue
            add(f"{module_name}.{name}", value)
            if module_name == "weft.scipy.stats":
                for member in members(value, f"{module_name}.{name}"):
                    add(*member)
    for cls in CLASSES:
        for member in members(cls, cls.__name__):
            add(*member)
    return found


EVERYTHING = everything()


def parameters(value):
    """The names of the parameters that a docstring must describe."""
    if inspect.isclass(value):
        if value.__init__ is object.__init__ or issubclass(value, (BaseException, weft.Array)):
            return []
        if value.__module__ == "weft.ir" and value.__name__ != "Interpreter":
            return []  # made by functions
        if value.__module__.startswith("weft.scipy") or value.__name__ in ("Lowered", "Compiled", "IR", "Partial"):
            return []  # made by functions, or of none
        if issubclass(value, (int, str)) or "Enum" in type(value).__name__ or getattr(value, "_is_protocol", False):
            return []
    elif not callable(value):
        return []
    try:
        signature = inspect.signature(value)
    except ValueError:
        return []
    return [p for p in signature.parameters if p not in of_itself(value)]


def of_itself(function):
    """What methods call the object or class that they belong to."""
    return ("self", "cls") if "." in getattr(function, "__qualname__", "") else ("self",)


def described(doc):
    """The names in the section Args."""
    section = re.search(r"^Args:\n(.*?)(?=^\S|\Z)", doc, re.M | re.S)
    entries = re.findall(r"^ {4}((?:\*{0,2}\w+)(?:, \*{0,2}\w+)*): \S", section[1], re.M) if section else []
    return [name.strip().lstrip("*") for entry in entries for name in entry.split(",")]


def untyped(function):
    """What has no type in a function that is written in Python (the stubs say those of C++)."""
    if not isinstance(function, types.FunctionType):
        return []
    signature = inspect.signature(function)
    names = [
        p.name for p in signature.parameters.values() if p.annotation is p.empty and p.name not in of_itself(function)
    ]
    gaps = [f"parameter {name} has no type" for name in names]
    return gaps if signature.return_annotation is not signature.empty else [*gaps, "its result has no type"]


def missing(value):
    doc = inspect.getdoc(value)
    if not doc:
        return ["no docstring"]
    gaps = []
    if not re.match(r"\S.*[.:?)](\s|$)", doc.split("\n\n")[0], re.S):
        gaps.append("no summary")
    names = parameters(value)
    gaps += [f"parameter {name} is not described" for name in names if name not in described(doc)]
    if not names or "kwargs" not in names:
        gaps += [f"there is no parameter {name}" for name in described(doc) if names and name not in names]
    if callable(value) and not inspect.isclass(value) and not re.search(r"^Returns: \S", doc, re.M):
        gaps.append("what it returns is not said")
    if isinstance(value, property):
        gaps += untyped(value.fget)
    elif isinstance(value, types.FunctionType):
        gaps += untyped(value)
    if ">>> " not in doc:
        gaps.append("no example")
    if callable(value) and len(doc.strip().split("\n")) < 3:
        gaps.append("no more than a line")
    return gaps


def test_everything_public_is_described():
    assert {"weft.lax.linalg", "weft.nn.initializers", "weft.numpy.fft", "weft.scipy.stats"} < set(MODULES)
    assert len(EVERYTHING) > 700, len(EVERYTHING)
    gaps = [f"{name}: {', '.join(found)}" for name, value in EVERYTHING if (found := missing(value))]
    assert not gaps, f"{len(gaps)} of {len(EVERYTHING)} are not described:\n" + "\n".join(gaps)


# One group per module, so that a failure names its place and sharding works.
GROUPS = sorted({name.rsplit(".", 1)[0] for name, _ in EVERYTHING})


class _LastDigits(doctest.OutputChecker):
    """Functions of 32-bit floats may differ in the last digit between processors with and without fused products."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        number = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?")
        if len({"".join(number.sub("#", text).split()) for text in (want, got)}) > 1:
            return False
        pairs = zip(map(float, number.findall(want)), map(float, number.findall(got)))
        return all(abs(a - b) <= 3e-7 * abs(a) for a, b in pairs)


@pytest.mark.parametrize("group", GROUPS)
def test_examples(group):
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(checker=_LastDigits(), verbose=False)
    out = io.StringIO()
    for name, value in EVERYTHING:
        doc = inspect.getdoc(value) if name.rsplit(".", 1)[0] == group else None
        if doc:
            # builtins: functions such as weft.debug.print must not hide Python's.
            globs = {"weft": weft, "wnp": wnp, "__builtins__": builtins, "__name__": "__main__"}
            runner.run(parser.get_doctest(doc, globs, name, None, None), out=out.write)
    assert not runner.failures, out.getvalue()
    assert runner.tries or group == "weft.scipy"


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_described(name):
    module = importlib.import_module(name)
    doc = module.__doc__
    assert (doc and doc.strip().split("\n")[0].endswith((".", ":", ",", "-"))) or len(doc.split("\n")) > 1, name
    runner, out = doctest.DocTestRunner(verbose=False), io.StringIO()
    case = doctest.DocTestParser().get_doctest(doc, {"weft": weft, "wnp": wnp}, name, None, None)
    runner.run(case, out=out.write)
    assert not runner.failures, out.getvalue()


class _Gaps:
    """What the test must notice."""

    def undescribed(x: int, y: int) -> int:
        """The sum.

        Args:
            x: a number.

        Returns: a number.

        Example:
            >>> 1 + 1
            2
        """

    def without_example(x: int) -> int:
        """The same.

        Args:
            x: a number.

        Returns: a number.
        """

    def silent(x: int) -> int:
        """The same.

        Args:
            x: a number.

        Example:
            >>> 1
            1
        """

    def outdated(x: int) -> int:
        """The same.

        Args:
            x: a number.
            z: what was a parameter once.

        Returns: a number.

        Example:
            >>> 1
            1
        """

    def untyped(x, y: int):
        """The sum.

        Args:
            x: a number.
            y: a number.

        Returns: a number.

        Example:
            >>> 1 + 1
            2
        """


def test_a_gap_is_noticed():
    assert missing(_Gaps.untyped) == ["parameter x has no type", "its result has no type"]
    assert missing(_Gaps.undescribed) == ["parameter y is not described"]
    assert missing(_Gaps.without_example) == ["no example"]
    assert missing(_Gaps.silent) == ["what it returns is not said"]
    assert missing(_Gaps.outdated) == ["there is no parameter z"]
    assert missing(lambda x: x) == ["no docstring"]


def test_quickstart():
    readme = next(p for p in (pathlib.Path(__file__).parents[i] / "README.md" for i in range(5)) if p.exists())
    code = re.search(r"```python\n(.*?)```", readme.read_text(), re.S)
    assert code is not None
    lines = [line for line in code[1].splitlines() if line.strip()]
    assert len(lines) <= 40
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code[1], "README.md", "exec"), {"__name__": "__main__"})
    assert "(8, 3)" in out.getvalue() and "fn loss" in out.getvalue() and "kernel" in out.getvalue()


@pytest.mark.parametrize(("page", "least"), [("control_flow", 3), ("extend_from_python", 20), ("program_forms", 8)])
def test_pages_do_what_they_say(page, least, tmp_path, monkeypatch):
    """A page's code runs from top to bottom: Python in one process, files and commands in a folder, and what a block
    of text behind them shows is what they print."""
    text = pathlib.Path(f"docs/{page}.md").read_text()
    examples = re.findall(r"^```(python|c|sh|text)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(examples) > least
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("page")
    printed = ""
    for kind, code in examples:
        out = io.StringIO()
        if kind == "python":
            (tmp_path / "page.py").write_text(code)
            linecache.checkcache()
            with contextlib.redirect_stdout(out):
                exec(compile(code, "page.py", "exec"), module.__dict__)
            printed = out.getvalue()
        elif kind == "c":
            (tmp_path / re.match(r"// (\S+)", code)[1]).write_text(code)
        elif kind == "sh":
            if "cc " in code and shutil.which("cc") is None:
                pytest.skip("no C compiler")
            path = os.pathsep.join(p for p in sys.path if p)
            command = code.replace("python -m", f"{sys.executable} -m")
            run = subprocess.run(
                ["bash", "-ec", command], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
            )
            assert run.returncode == 0, run.stderr
            printed = run.stdout
        else:
            assert printed.rstrip().startswith(code.rstrip()), printed


def test_the_tutorial_does_what_it_shows(tmp_path, monkeypatch):
    """The notebook from top to bottom: what its cells print, and the values of their last lines."""
    cells = json.loads(pathlib.Path("docs/tutorial.ipynb").read_text())["cells"]
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("notebook")
    count = 0
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        count += 1
        source = "".join(cell["source"])
        (tmp_path / f"cell_{count}.py").write_text(source)
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) and not source.endswith(";") else None
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(tree, f"cell_{count}.py", "exec"), module.__dict__)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), f"cell_{count}.py", "eval"), module.__dict__)
                if value is not None:
                    print(repr(value))
        shown = "".join(
            "".join(output["text"])
            if output["output_type"] == "stream"
            else "".join(output["data"]["text/plain"]) + "\n"
            for output in cell["outputs"]
        )
        assert out.getvalue() == shown, source
    assert count > 25


def test_the_example_of_saved_residuals_prints_what_it_says(capsys):
    text = pathlib.Path("docs/derivatives.md").read_text()
    example = re.search(r"```python\n(def f\(w, x\):.*?)```", text, re.DOTALL)[1]
    names = {"checkpoint_name": weft.ad_checkpoint.checkpoint_name, "wnp": wnp, "weft": weft}
    names |= {"w": wnp.ones((8, 4)), "x": wnp.ones((16, 8))}
    exec(compile(example, "model.py", "exec"), names)
    assert [f"# {line}" for line in capsys.readouterr().out.splitlines()] == re.findall("^# .*", example, re.MULTILINE)
