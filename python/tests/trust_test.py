"""What docs/trust.md promises of pickles and programs from elsewhere."""

import io
import pickle

import numpy as np
import pytest

import weft
import weft.numpy as wnp


def test_pickles_call_functions_of_weft_alone():
    """So that an unpickler which admits only names that it knows can read them."""
    mesh = weft.Mesh(weft.devices()[:1], ("x",))
    things = [
        wnp.arange(3),
        weft.make_ir(lambda x: weft.cond(x > 0, lambda v: v, lambda v: -v, x))(1.0)._fn,
        weft.Dim("n") + 1,
        weft.ShapeDtype(("n", 3)),
        weft.make_ir(lambda x: {"a": wnp.sin(x), "b": (x,)})(1.0),
        wnp.bfloat16.dtype,
        wnp.arange(3).dtype,
        wnp.float32,
        wnp.sin,
        mesh,
        weft.NamedSharding(mesh, weft.PartitionSpec("x")),
    ]

    named = set()

    class Noting(pickle.Unpickler):
        def find_class(self, module, name):
            named.add(module if module.startswith("weft") else f"{module}.{name}")
            return super().find_class(module, name)

    for thing in things:
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            Noting(io.BytesIO(pickle.dumps(thing, protocol))).load()
    # What pickles of Python's own objects and of NumPy's arrays call is there, too; no `eval`, no `getattr`.
    others = {name for name in named if not name.startswith("weft")}
    assert others <= {
        "copyreg._reconstructor",
        "copyreg.__newobj__",
        "_codecs.encode",
        "builtins.object",
        "optree.PyTreeSpec",
    } | {name for name in others if name.startswith(("numpy.", "ml_dtypes."))}, others
    assert "weft._pickled" in named


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "builtins.eval",
        "system",
        "",
        "wnp.",
        "wnp.load",
        "wnp.nothing",
        "weft.numpy.linalg.inv",
        "weft.jit",
        "weft.nothing.sin",
        "weft.primitives.sin",
    ],
)
def test_a_pickle_names_an_operation_and_nothing_else(name):
    """What it gives may be called by the pickle."""
    from weft import _pickled

    assert _pickled.operation("wnp.sin") is wnp.sin and _pickled.operation("weft.lax.sin") is weft.lax.sin
    with pytest.raises((ValueError, ModuleNotFoundError)):
        _pickled.operation(name)


def test_names_that_are_no_text(capsys):
    """In bytes: a ParseError, and no other one later, when somebody looks at the program."""
    data = weft.make_ir(lambda parameter_name: wnp.sin(parameter_name))(1.0).serialize()
    at = data.index(b"parameter_name")
    with pytest.raises(weft.ParseError, match="a parameter's name that is no UTF-8"):
        weft.deserialize_ir(with_digest(data[:at] + b"\xff" + data[at + 1 :]))
    # Names of files need be none: they are shown in messages.
    at = data.index(b"trust_test.py")
    program = weft.deserialize_ir(with_digest(data[:at] + b"\xff" + data[at + 1 :]))
    assert "sin" in str(program) and np.asarray(program(0.0)) == 0
    # Strings neither: the text form writes their bytes with escapes.
    weft.parse_ir('fn f(x: f32[]) -> (f32[]) { debug_print[format="\\xff{}"] x; return x }')(1.0)
    assert capsys.readouterr().out.startswith("\\xff1")
    with pytest.raises(RuntimeError, match=r"\\xffno"):
        weft.parse_ir('fn f(x: bool[]) -> (bool[]) { assert[message="\\xffno"] x; return x }')(False)


def with_digest(data):
    """The exchange form with changed bytes and the digest that fits them (ir/exchange/weft.proto)."""

    def varint(at):
        value, shift = 0, 0
        while True:
            byte = data[at]
            value |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                return value, at

    at = 0
    while at < len(data):
        key, at = varint(at)
        if key & 7 == 2:
            size, at = varint(at)
            if key >> 3 == 3:
                digest = 0xCBF29CE484222325
                for byte in data[at : at + size]:
                    digest = (digest ^ byte) * 0x100000001B3 % 2**64
            at += size
        elif key & 7 == 1:
            return data[:at] + digest.to_bytes(8, "little") + data[at + 8 :]
        else:
            _, at = varint(at)
    raise AssertionError("no digest")
