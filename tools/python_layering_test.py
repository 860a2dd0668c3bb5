"""Every import of the Python package follows its arrows, and what runs at import forms no circle."""

import pytest

from tools import python_layering as layering
from tools import tree

ROOT = "python/weft/"


def package() -> dict[str, str]:
    """Module -> text."""
    found = {}
    for path in tree.files(".py"):
        name = path.as_posix()
        if name.startswith(ROOT):
            found[name.removeprefix(ROOT).removesuffix(".py")] = (tree.workspace() / path).read_text(encoding="utf-8")
    assert len(found) > 50, "the package was not found"
    return found


def test_arrows():
    sources = package()
    found = [line for module, text in sources.items() for line in layering.violations(module, text, sources)]
    assert not found, "\n" + "\n".join(found)


def test_no_circle():
    found = layering.cycle(package())
    assert found is None, " -> ".join([*found, found[0]])


def test_tables_say_what_is_there():
    sources = package()
    for room, parts in layering.ROOMS.items():
        for part in parts:
            assert any(module == part or (part.endswith("/") and module.startswith(part)) for module in sources), (
                f"'{room}' names {part}, which is not there"
            )
    assert {*layering.ROOMS} == {*layering.ARROWS}
    late = {
        (module, found.target)
        for module, text in sources.items()
        for found in layering.imports(module, text, sources)
        if found.in_function
    }
    assert late == {*layering.IN_FUNCTIONS}


def test_every_folder_is_a_package():
    """Without a module of its own Python takes a folder for a namespace, and looks for it along the whole path."""
    sources = package()
    folders = {module.rpartition("/")[0] for module in sources} - {""}
    assert not [folder for folder in sorted(folders) if f"{folder}/__init__" not in sources]


def test_rooms_have_an_order():
    """No room sees one that sees it, at any distance; the package itself sees all."""
    below = {room: {*to} - {room} for room, to in layering.ARROWS.items() if room != "the package itself"}
    while below:
        lowest = [room for room, to in below.items() if not to & {*below}]
        assert lowest, f"these see each other: {sorted(below)}"
        for room in lowest:
            del below[room]


# --- The functions themselves -----------------------------------------------------------------------------------------

MODULES = """
__init__ control compiled mesh
_core/errors _core/tree/__init__ _core/tree/paths _sharding/meshes
numpy/__init__ numpy/_shape lax/__init__ random/__init__ nn/__init__ nn/_attention scipy/special
autograph/__init__ autograph/conversion autograph/loops
"""
EMPTY = dict.fromkeys(MODULES.split(), "")


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("_core/errors", "import os"),
        ("_core/errors", "from .. import _weft"),
        ("_core/tree/paths", "from ... import _weft"),
        ("_core/tree/paths", "from ..errors import type_error"),
        ("_core/tree/__init__", "from .paths import DictKey"),
        ("_sharding/meshes", "from .._core import tree as _tree"),
        ("control", "from ._core.errors import type_error"),
        ("compiled", "from . import _weft, control"),
        ("compiled", "from .autograph import autograph"),
        ("mesh", "from ._sharding.meshes import Mesh"),
        ("numpy/_shape", "from .. import control"),
        ("numpy/_shape", "import numpy as np"),
        ("lax/__init__", "from ..numpy._shape import tile"),
        ("lax/__init__", "import weft.numpy._shape"),
        ("nn/_attention", "from .. import numpy as wnp"),
        ("nn/__init__", "from .. import random"),
        ("scipy/special", "from ..nn import softmax"),
        ("autograph/loops", "from .. import control, numpy as wnp"),
        ("__init__", "from . import nn, scipy"),
    ],
)
def test_allowed(module, line):
    assert list(layering.violations(module, line + "\n", EMPTY)) == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("_core/errors", "from ..control import cond"),
        ("_core/errors", "from .._sharding import meshes"),
        ("_core/errors", "from .. import numpy as wnp"),
        ("_core/errors", "from ..autograph import autograph"),
        ("_sharding/meshes", "from ..compiled import jit"),
        ("control", "from . import numpy as wnp"),
        ("control", "from weft.numpy import where"),
        ("compiled", "from .autograph.loops import for_"),
        ("numpy/_shape", "from ..lax import tile"),
        ("numpy/_shape", "from .. import vmap"),
        ("numpy/_shape", "import weft"),
        ("numpy/_shape", "import weft.lax"),
        ("random/__init__", "from ..nn import softmax"),
        ("nn/_attention", "from ..scipy import special"),
        ("autograph/__init__", "from .loops import for_"),
        ("autograph/__init__", "from ..control import cond"),
        ("autograph/loops", "from ..lax import psum"),
        ("control", "from .batchin import vmap"),
        ("somewhere", "import os"),
        ("control", "if True:\n    pass\ndef f():\n    import os"),
        ("control", "class A:\n    def f(self):\n        from ._core.errors import type_error"),
        ("control", "f = lambda: 0\nasync def g():\n    import os"),
    ],
)
def test_refused(module, line):
    assert len(list(layering.violations(module, line + "\n", EMPTY))) == 1


@pytest.mark.parametrize(
    ("changed", "circle"),
    [
        ({"control": "from . import compiled", "compiled": "from .control import cond"}, {"control", "compiled"}),
        ({"control": "import weft.compiled", "compiled": "import weft.control as c"}, {"control", "compiled"}),
        (
            {"control": "from .mesh import M", "mesh": "from .compiled import j", "compiled": "import weft.control"},
            None,
        ),
        ({"numpy/_shape": "from ..nn._attention import a", "nn/__init__": "from ..numpy import _shape"}, None),
        ({"control": "from .control import cond"}, set()),
        ({"control": "from . import compiled", "compiled": "def f():\n    from .control import cond"}, set()),
        ({"control": "import typing\nif typing.TYPE_CHECKING:\n    from . import compiled"}, set()),
        ({"numpy/__init__": "from . import _shape", "numpy/_shape": "from . import __version__"}, None),
        ({"numpy/__init__": "from ._shape import tile", "numpy/_shape": "from .. import numpy"}, None),
        ({"__init__": "from .control import cond", "control": "from . import _weft"}, set()),
    ],
)
def test_circles(changed, circle):
    """`circle`: the modules in it; None: there is one; no modules: there is none."""
    found = layering.cycle(EMPTY | changed)
    if circle:
        assert {name.removeprefix("weft.") for name in found} == circle
    else:
        assert (found is None) == (circle is not None)
