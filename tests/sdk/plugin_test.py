"""The SDK as somebody uses it who has no tree of Weft: installed, built against with CMake and with the compiler alone,
loaded by `weft opt`, by a program and by Python."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import primitives as prim

_ROOT = Path.cwd()  # of the runfiles


def _run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    return done.returncode, done.stdout + done.stderr


def _must(*command, **options):
    status, text = _run(*command, **options)
    assert status == 0, f"{command}\n{text}"
    return text


@pytest.fixture(scope="session")
def sdk(tmp_path_factory):
    """The installed SDK, moved after it was installed: nothing in it may name the folder."""
    folder = tmp_path_factory.mktemp("sdk")
    _must(sys.executable, _ROOT / "sdk/install.py", f"--prefix={folder / 'first'}")
    (folder / "first").rename(folder / "moved")
    return folder / "moved"


@pytest.fixture(scope="session")
def built(sdk, tmp_path_factory):
    """The example, built by CMake."""
    sources = tmp_path_factory.mktemp("example")
    for file in (_ROOT / "examples/plugin").iterdir():
        shutil.copy(file, sources)
    build = sources / "build"
    _must("cmake", "-S", sources, "-B", build, f"-DCMAKE_PREFIX_PATH={sdk}")
    _must("cmake", "--build", build, "-j2")
    return build


@pytest.fixture(scope="session")
def loaded(built):
    return weft.load_plugin(built / "example.so")


def _compiled(sdk, folder, source, name="made", include=None):
    """A plugin, built without CMake."""
    (folder / f"{name}.cc").write_text('#include "sdk/plugin.h"\nusing namespace weft;\n' + source, encoding="utf-8")
    flags = subprocess.run(
        ["pkg-config", "--cflags", "weft"],
        env={**os.environ, "PKG_CONFIG_PATH": str(sdk / "lib/pkgconfig")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    before = [] if include is None else [f"-I{include}"]
    _must("g++", *before, *flags, "-fPIC", "-shared", "-O0", folder / f"{name}.cc", "-o", folder / f"{name}.so")
    return folder / f"{name}.so"


def _program(folder, text):
    (folder / "f.weft").write_text(text, encoding="utf-8")
    return folder / "f.weft"


_TANH = "fn f(x: f64[3]) -> (f64[3]) {\n  a: f64[3] = tanh x\n  return a\n}\n"


def test_pass_in_opt(sdk, built, tmp_path):
    program = _program(tmp_path, _TANH)
    weft_ = sdk / "bin/weft"
    text = _must(weft_, "opt", program, f"--load={built / 'example.so'}", "--passes=tanh-to-logistic")
    assert "logistic" in text and "tanh " not in text
    assert "tanh-to-logistic: Compute tanh" in _must(weft_, "opt", "--list", "--load", built / "example.so")
    status, text = _run(weft_, "opt", program, "--passes=tanh-to-logistic")
    assert status == 1 and "there is no pass 'tanh-to-logistic'" in text


def test_primitive_and_rule_in_opt(sdk, built, tmp_path):
    program = _program(
        tmp_path, "fn f(x: f64[3]) -> (f64[3]) {\n  a: f64[3] = neg x\n  b: f64[3] = softsign a\n  return b\n}\n"
    )
    weft_, load = sdk / "bin/weft", f"--load={built / 'example.so'}"
    lines = _must(weft_, "opt", program, load, "--passes=simplify,dce").splitlines()
    assert [line.split("= ")[1].split()[0] for line in lines if "=" in line] == ["softsign", "neg"]
    assert "softsign" not in _must(weft_, "opt", program, load, "--passes=optimize")
    np.save(tmp_path / "x.npy", np.array([-1.0, 0.5, 3.0]))
    for more in ([], ["--interpret"]):
        _must(weft_, "run", program, load, "--inputs", tmp_path / "x.npy", "--outputs", tmp_path / "out", *more)
        np.testing.assert_allclose(np.load(tmp_path / "out/0.npy"), [0.5, -1 / 3, -0.75], rtol=1e-15)
    status, text = _run(weft_, "opt", program)
    assert status == 1 and "softsign" in text and "f.weft:3" in text


def test_program_of_ones_own(built):
    text = _must(built / "program", built / "example.so")
    assert "logistic" in text and "tanh " not in text


def test_what_was_added(loaded, built):
    assert loaded.name == "example"
    assert loaded.passes == ("tanh-to-logistic",)
    assert loaded.primitives == ("softsign", "lerp")
    assert set(loaded.rules) == {"softsign-of-neg", "lerp-of-same"}
    assert weft.load_plugin(str(built / "example.so")) == loaded  # a second time nothing is added
    assert "tanh-to-logistic" in weft.ir.passes() and "softsign-of-neg" in weft.ir.rules()


def test_pass_in_python(loaded):
    f = weft.jit(lambda x: wnp.tanh(x), passes=["tanh-to-logistic"])
    assert "logistic" in f.lower(1.0).as_text("optimized")
    np.testing.assert_allclose(f(0.3), np.tanh(0.3), rtol=1e-6)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_primitive_under_transforms(loaded, dtype, jitted):
    wrap = weft.jit if jitted else lambda f: f
    x = np.linspace(-3, 3, 8).astype(dtype)  # without 0, where the second derivative jumps
    rtol = 1e-6 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(wrap(prim.softsign)(x), x / (1 + abs(x)), rtol=rtol)
    slope = 1 / (1 + abs(x)) ** 2
    first = weft.grad(lambda v: prim.softsign(v))
    np.testing.assert_allclose(wrap(weft.vmap(first))(x), slope, rtol=rtol)
    np.testing.assert_allclose(wrap(weft.grad(lambda v: prim.softsign(v).sum()))(x), slope, rtol=rtol)
    second = wrap(weft.vmap(weft.grad(first)))(x)
    np.testing.assert_allclose(second, -2 * np.sign(x) / (1 + abs(x)) ** 3, rtol=10 * rtol, atol=10 * rtol)
    loop = wrap(lambda v: weft.fori_loop(0, 3, lambda i, c: prim.softsign(c), v))
    np.testing.assert_allclose(loop(x), x / (1 + 3 * abs(x)), rtol=10 * rtol)


def test_expansion_gives_the_rules(loaded):
    x, y = np.array([1.0, 2.0]), np.array([3.0, -2.0])
    f = lambda a, b: prim.lerp(a, b, t=0.25)
    np.testing.assert_allclose(weft.jit(f)(x, y), [1.5, 1.0])
    np.testing.assert_allclose(weft.grad(lambda a: f(a, y).sum())(x), [0.75, 0.75])
    np.testing.assert_allclose(weft.vmap(f, in_axes=(0, None))(x, y[0]), [1.5, 2.25])
    np.testing.assert_allclose(weft.jvp(f, (x, y), (y, x))[1], [2.5, -1.0])
    with pytest.raises(ValueError, match="no attribute 'u'"):
        prim.lerp(x, y, u=0.25)
    with pytest.raises(TypeError, match=r"softsign.*operand"):
        prim.softsign(x, y)
    with pytest.raises(TypeError, match=r"softsign: operand 0 is i\d+\[3\]; .*f32"):
        prim.softsign(np.arange(3))
    with pytest.raises(TypeError, match=r"lerp of \(f64\[2\], f64\[3\]\): "):
        prim.lerp(x, np.ones(3), t=0.25)


def test_on_a_mesh(loaded):
    """What it computes is cut over the devices."""
    mesh = weft.make_mesh((4,), ("i",))
    x = np.linspace(-2, 2, 8)
    cut = weft.device_put(x, weft.NamedSharding(mesh, weft.P("i")))
    y = weft.jit(lambda v: prim.lerp(prim.softsign(v), v, t=0.5))(cut)
    assert len(y.sharding.device_set) == 4
    np.testing.assert_allclose(y, 0.5 * (x / (1 + abs(x)) + x), rtol=1e-14)
    total = weft.shard_map(
        lambda v: weft.lax.psum(prim.softsign(v).sum(), "i"), mesh=mesh, in_specs=weft.P("i"), out_specs=weft.P()
    )
    np.testing.assert_allclose(total(x), (x / (1 + abs(x))).sum(), atol=1e-14)


def test_programs_hold_it(loaded):
    ir = weft.make_ir(prim.softsign)(np.ones(3))
    assert [op.name for op in ir.walk()] == ["softsign"]
    assert weft.parse_ir(ir.text).text == ir.text


def test_licence_of_a_rule(loaded):
    f = lambda x: prim.lerp(x, x, t=0.5) * 3
    with_licence = weft.jit(f, licence="no-nan").lower(np.ones(2)).as_text("optimized")
    without = weft.jit(f).lower(np.ones(2)).as_text("optimized")
    assert "sub" in without and "sub" not in with_licence
    off = ["lerp-of-same", "sub-itself"]  # what it expands to holds x - x
    assert "sub" in weft.jit(f, licence="no-nan", disable=off).lower(np.ones(2)).as_text("optimized")


_PASS = 'WEFT_PLUGIN(made) { RegisterPass({"PASS", "", [](FnRef f) { return f; }}); }\n'


@pytest.mark.parametrize(("macro", "more"), [("MAJOR", 1), ("MAJOR", -1), ("MINOR", 99)])
def test_another_version(sdk, tmp_path, macro, more):
    (tmp_path / "sdk").mkdir()
    text = (sdk / "include/weft/sdk/version.h").read_text(encoding="utf-8")
    today = {part: int(re.search(rf"SDK_{part} (\d+)", text)[1]) for part in ("MAJOR", "MINOR")}
    other = today | {macro: today[macro] + more}
    changed = re.sub(rf"(SDK_{macro}) \d+", rf"\1 {other[macro]}", text)
    (tmp_path / "sdk/version.h").write_text(changed, encoding="utf-8")
    plugin = _compiled(sdk, tmp_path, _PASS, include=tmp_path)
    version, mine = (f"{v['MAJOR']}.{v['MINOR']}" for v in (other, today))
    with pytest.raises(ValueError, match=rf"'made'.*built for version {version} .* this is version {mine}"):
        weft.load_plugin(plugin)
    status, text = _run(sdk / "bin/weft", "opt", _program(tmp_path, _TANH), f"--load={plugin}")
    assert status == 1 and f"version {version}" in text and len(text.splitlines()) == 1


def test_other_headers_of_the_same_version(sdk, tmp_path):
    changed = tmp_path / "include"
    shutil.copytree(sdk / "include/weft", changed)
    header = changed / "ir/prim.h"
    text = header.read_text(encoding="utf-8")
    header.write_text(text.replace("struct Prim {\n", "struct Prim {\n  double more = 0;\n"), encoding="utf-8")
    plugin = _compiled(sdk, tmp_path, _PASS, include=changed)
    with pytest.raises(ValueError, match="with other headers than this Weft's"):
        weft.load_plugin(plugin)


def test_what_is_no_plugin(sdk, tmp_path):
    (tmp_path / "text.so").write_text("hello", encoding="utf-8")
    with pytest.raises(ValueError, match="is no shared library"):
        weft.load_plugin(tmp_path / "text.so")
    with pytest.raises(ValueError, match=r"no plugin of Weft: it has no WEFT_PLUGIN"):
        weft.load_plugin(np._core._multiarray_umath.__file__)
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        weft.load_plugin(tmp_path / "missing.so")
    with pytest.raises(ValueError, match="is a folder; expected a file"):
        weft.load_plugin(tmp_path)
    with pytest.raises(TypeError, match="the path must be a text or a path, got 3"):
        weft.load_plugin(3)


def test_a_function_that_is_not_there(sdk, tmp_path):
    source = "namespace weft { void NotThere(); }\nWEFT_PLUGIN(made) { NotThere(); }\n"
    with pytest.raises(ValueError, match=r"'made' cannot be loaded.*undefined symbol.*NotThere"):
        weft.load_plugin(_compiled(sdk, tmp_path, source))


# What a plugin does wrong while it registers, and what is said of it.
_WRONG = [
    ('RegisterPass({"dce", "", [](FnRef f) { return f; }});', "there is a pass named 'dce' already"),
    ('RegisterPass({"a,b", "", [](FnRef f) { return f; }});', "'a,b' is none"),
    ('RegisterPass({"nothing", "", nullptr});', "'nothing' has no function"),
    ('RegisterRule(FormulaRule{"r", Licence::kExact, "no_such(x)", "x"});', "no primitive named 'no_such'"),
    ('RegisterRule(FormulaRule{"r", Licence::kExact, "exp(x", "x"});', "'exp\\(x'"),
    ('RegisterRule(FormulaRule{"r", Licence::kExact, "exp(x)", "y"});', "a letter that its pattern has not"),
    ('RegisterRule(SimplifyRule{"r", "no_such", Licence::kExact, [](Builder&, const Eqn&, const Atoms&) '
     "-> std::optional<Atom> { return std::nullopt; }, nullptr});", "'r' names no primitive: there is no 'no_such'"),
    ('RegisterRule(FormulaRule{"mul-one", Licence::kExact, "exp(x)", "exp(x)"});', "rule named 'mul-one' already"),
    ('Prim p; p.name = "sin"; RegisterPrimitive(p, [](Builder&, const Atoms& x, const Attrs&) { return x; });',
     "a primitive named 'sin' already"),
    ('Prim p; p.name = "two words"; RegisterPrimitive(p, [](Builder&, const Atoms& x, const Attrs&) { return x; });',
     "'two words' is no word"),
    ('Prim p; p.name = "empty"; RegisterPrimitive(p, nullptr);', "'empty' has no expansion"),
    ('Prim p; p.name = "loop"; p.region_use = RegionUse::kCounted; RegisterPrimitive(p, [](Builder&, const Atoms& x, '
     "const Attrs&) { return x; });", "'loop' has regions"),
    ('Prim p; p.name = "backwards"; p.num_operands = 1; p.partials = [](Builder& b, const Atoms& x, const Atom&) '
     "-> OptionalAtoms { return {x[0]}; }; RegisterPrimitive(p, [](Builder& b, const Atoms& x, const Attrs&) -> Atoms "
     "{ return {Reverse(b, x[0], {0})}; });", "'backwards' has partial derivatives.*it expands into reverse"),
    ('throw std::runtime_error("a sad plugin");', "a sad plugin"),
]  # fmt: skip


@pytest.fixture(scope="session")
def wrong(sdk, tmp_path_factory):
    """One plugin with all of them: an environment variable says which."""
    cases = "".join(f"case {i}: {{ {body} break; }}\n" for i, (body, _) in enumerate(_WRONG))
    source = f"""#include <cstdlib>
#include <stdexcept>
WEFT_PLUGIN(bad) {{ switch (std::atoi(std::getenv("WRONG_CASE"))) {{ {cases} }} }}
"""
    return _compiled(sdk, tmp_path_factory.mktemp("wrong"), source)


@pytest.mark.parametrize("case", range(len(_WRONG)))
def test_what_cannot_be_registered(wrong, tmp_path, monkeypatch, case):
    plugin = tmp_path / "bad.so"  # one for each case: what is loaded once is not loaded again
    plugin.write_bytes(wrong.read_bytes() + bytes([case]))
    monkeypatch.setenv("WRONG_CASE", str(case))
    with pytest.raises((ValueError, RuntimeError), match=rf"the plugin 'bad' .*{_WRONG[case][1]}"):
        weft.load_plugin(plugin)


@pytest.fixture(scope="session")
def broken(sdk, tmp_path_factory):
    """Passes, rules and operations each of which breaks a promise."""
    source = """
FnRef Another(FnRef) {
  Builder b("g");
  return b.Build({b.Parameter({DType::kF64, {Dim(2)}}, "x")});
}
std::optional<Atom> WrongType(Builder& b, const Eqn&, const Atoms& x) { return Convert(b, x[0], DType::kF64); }
std::optional<Atom> Throws(Builder&, const Eqn&, const Atoms&) { throw ValueError("no idea"); }
Atoms Twice(Builder& b, const Atoms& x, const Attrs&) { return {b.Emit1(FindPrim("endless"), x)}; }
Atoms F64(Builder& b, const Atoms& x, const Attrs&) { return {Convert(b, x[0], DType::kF64)}; }
Prim Unary(const char* name) { Prim p; p.name = name; p.family = Family::kElementwise; p.num_operands = 1;
                               p.infer = [](const Sig& s) -> Types { return {s.operands[0]}; };
                               return p; }
WEFT_PLUGIN(broken) {
  RegisterPass({"another", "", Another});
  RegisterPass({"none", "", [](FnRef) -> FnRef { return nullptr; }});
  RegisterPrimitive(Unary("odd"), [](Builder&, const Atoms& x, const Attrs&) { return x; });
  RegisterPrimitive(Unary("even"), [](Builder&, const Atoms& x, const Attrs&) { return x; });
  RegisterRule(SimplifyRule{"wrong-type", "odd", Licence::kExact, WrongType, nullptr});
  RegisterRule(SimplifyRule{"throws", "even", Licence::kExact, Throws, nullptr});
  RegisterPrimitive(Unary("endless"), Twice);
  RegisterPrimitive(Unary("says_else"), F64);
}
"""
    plugin = _compiled(sdk, tmp_path_factory.mktemp("broken"), source, "broken")
    weft.load_plugin(plugin)
    return prim


@pytest.mark.parametrize(
    ("run", "error", "message"),
    [
        (lambda p: weft.jit(wnp.sin, passes=["another"]), TypeError, "the pass 'another' changed the type of"),
        (lambda p: weft.jit(wnp.sin, passes=["none"]), ValueError, "the pass 'none' returned no program"),
        (lambda p: weft.jit(p.odd), TypeError, r"the rule 'wrong-type' replaces odd, which is f32\[3\].*f64\[3\]"),
        (lambda p: weft.jit(p.even), ValueError, "the rule 'throws' failed on even: no idea"),
        (lambda p: weft.jit(p.endless), ValueError, "the primitive 'endless' expands into itself"),
        (lambda p: weft.jit(p.says_else), TypeError, r"'says_else' has the result types \(f32\[3\]\), but it expands"),
    ],
)  # fmt: skip
def test_what_breaks_a_promise(broken, run, error, message):
    with pytest.raises(error, match=message):
        run(broken)(np.ones(3, np.float32))


def test_a_broken_rule_can_be_left_out(broken):
    f = weft.jit(broken.odd, disable=["wrong-type"])
    np.testing.assert_array_equal(f(np.ones(3, np.float32)), np.ones(3))


def _shown(file):
    lines = _must("nm", "-D", "--defined-only", file).splitlines()
    return {line.split()[2] for line in lines if line.split()[1] in "TDBR"}


def test_all_of_the_library_is_in_what_loads_plugins(sdk):
    """A plugin that builds is loaded: whatever a header declares is there."""
    library = {name for name in _shown(sdk / "lib/libweft.so") if re.match(r"_Z(T[ISV])?NK?[RO]?4weft", name)}
    assert len(library) > 500
    for host in (sdk / "bin/weft", weft._weft.__file__):
        assert not library - _shown(host), host


def test_headers_stand_alone(sdk, tmp_path):
    """Each header is includable, with what the SDK has and the packages that it names."""
    folder = sdk / "include/weft"
    headers = sorted(h.relative_to(folder).as_posix() for h in folder.rglob("*.h"))
    assert len(headers) > 50
    (tmp_path / "all.cc").write_text("".join(f'#include "{h}"\n' for h in headers), encoding="utf-8")
    _must("g++", "-std=c++20", "-fsyntax-only", f"-I{folder}", tmp_path / "all.cc")
