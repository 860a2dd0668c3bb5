"""Pictures of programs: what is in them, that folding loses nothing and makes no circle, that boxes lie apart."""

import os
import re
import shutil
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import weft
import weft.numpy as wnp

_SVG = "{http://www.w3.org/2000/svg}"

needs_graphviz = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")


def _loops_and_branches(x, w):
    def loop(x):
        return weft.while_loop(lambda c: c[0, 0] < 3, lambda c: wnp.tanh(c @ w) + x, x)

    return weft.cond(x[0, 0] > 0, loop, lambda x: wnp.sort(x) * 2, x).sum(0)


def _layers(ws, x):
    for w in ws:
        h = wnp.tanh(x @ w)
        g = 1 / (1 + wnp.exp(-(x @ w)))
        x = h * g + x * (1 - g)
        x = (x - x.mean(-1, keepdims=True)) / wnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return (x**2).sum()


def _matrix():
    return np.ones((4, 4), np.float32)


def _small():
    return weft.make_ir(_loops_and_branches)(_matrix(), _matrix())


def _large():
    ir = weft.make_ir(weft.grad(_layers))([_matrix()] * 8, np.ones((2, 4), np.float32))
    assert ir.num_eqns > 400
    return ir


def _nodes(dot):
    return dict(re.findall(r'^\s*(\w+) \[label="((?:[^"\\]|\\.)*)"', dot, re.MULTILINE))


def _boxes(dot):
    """The labels of what stands for operations."""
    lines = [line for line in dot.splitlines() if re.match(r"\s*n\d+ \[", line)]
    return _nodes("\n".join(line for line in lines if "ellipse" not in line and "plaintext" not in line))


def _edges(dot):
    return re.findall(r"^\s*(\w+) -> (\w+)", dot, re.MULTILINE)


def _drawn(svg, kind):
    return [g for g in ET.fromstring(svg).iter(f"{_SVG}g") if g.get("class") == kind]


@needs_graphviz
def test_every_operation_is_a_box():
    ir = _small()
    ops = ir.walk()
    svg = ir.to_svg()
    texts = ["".join(t.text or "" for t in list(g.iter(f"{_SVG}text"))[:1]) for g in _drawn(svg, "node")]
    for name in {op.name for op in ops}:
        assert texts.count(name) == sum(op.name == name for op in ops), name
    clusters = sum(1 + len(op.regions) for op in ops if op.regions)
    assert len(_drawn(svg, "cluster")) == clusters
    assert "IPython" not in svg and ir._repr_svg_() == svg


def test_edges_are_operands():
    ir = weft.make_ir(lambda x, y: (wnp.sin(x) * y, wnp.sin(x) * y + x))(1.0, 2.0)
    dot = ir.to_svg(layout=False)
    names = {node: label.split("\\n")[0] for node, label in _nodes(dot).items()}
    found = sorted((names[a], names[b]) for a, b in _edges(dot))
    expected = [
        ("x", "sin"), ("x", "sin"), ("sin", "mul"), ("sin", "mul"), ("y", "mul"), ("y", "mul"), ("mul", "add"),
        ("x", "add"), ("mul", "return"), ("add", "return"),
    ]  # fmt: skip
    assert found == sorted(expected)


def test_data_and_operations_take_turns():
    dot = _small().to_svg(values=True, layout=False)
    data = {name for name, rest in re.findall(r"(n\d+) \[(.*)\];", dot) if "ellipse" in rest}
    edges = [(a, b) for a, b in _edges(dot) if f"{a} -> {b} [style=dashed" not in dot]  # but into regions
    assert edges
    assert all((a in data) != (b in data) for a, b in edges)
    ir = _small()
    values = sum(len(op.results) + sum(len(r.parameters) for r in op.regions) for op in ir.walk()) + len(ir.parameters)
    assert len(data) == values


@pytest.mark.parametrize("most", [1, 5, 60])
def test_folding_loses_nothing_and_makes_no_circle(most):
    ir = _large()
    dot = ir.to_svg(most=most, layout=False)
    labels = _nodes(dot)
    inside = sum(int(n) for label in labels.values() for n in re.findall(r"(\d+) operations", label))
    folded = sum("operations" in label for label in labels.values())
    assert inside + len(_boxes(dot)) - folded == ir.num_eqns
    assert folded <= max(most, 1)
    edges = _edges(dot)
    order, left = set(), dict.fromkeys(labels)
    while left:
        ready = [n for n in left if all(a in order for a, b in edges if b == n)]
        assert ready, "boxes wait for each other"
        order.update(ready)
        for n in ready:
            del left[n]


@needs_graphviz
def test_a_large_program_can_be_read():
    """Few boxes, none over another, on a page that can be looked at."""
    svg = _large().to_svg()
    boxes = []
    for node in _drawn(svg, "node"):
        points = [p.split(",") for shape in node.iter(f"{_SVG}polygon") for p in shape.get("points").split()]
        if points:
            xs, ys = [float(x) for x, _ in points], [float(y) for _, y in points]
            boxes.append((min(xs), min(ys), max(xs), max(ys)))
    assert 10 < len(boxes) < 80
    for i, (x0, y0, x1, y1) in enumerate(boxes):
        for u0, v0, u1, v1 in boxes[:i]:
            assert x1 <= u0 or u1 <= x0 or y1 <= v0 or v1 <= y0
    width, height = (float(ET.fromstring(svg).get(side).rstrip("pt")) for side in ("width", "height"))
    assert width < 4000 and height < 4000


def test_nothing_is_folded_where_that_is_asked():
    ir = _large()
    dot = ir.to_svg(most=None, layout=False)
    assert "operations" not in dot
    assert len(_boxes(dot)) == ir.num_eqns


def test_buffers():
    ir = _small()
    dot = ir.to_svg(buffers=True, layout=False)
    nodes = _nodes(dot)
    buffers = {name for name in nodes if re.fullmatch(r"f\d+b\d+", name)}
    stage = ir.stage("buffers").split("\narena")[0]
    assert len(buffers) == len(re.findall(r"^  b\d+: ", stage, re.MULTILINE)) >= 5
    assert all((a in buffers) != (b in buffers) for a, b in _edges(dot))
    assert any("tanh, add" in label for label in nodes.values())
    read = {a for a, _ in _edges(dot)}
    written = {b for _, b in _edges(dot)}
    for name in buffers:
        assert name in read | written, nodes[name]
        if "result" in nodes[name]:
            assert name in written
    # Of steps that only copy a buffer onto itself there is none.
    assert "copy result" not in dot


@needs_graphviz
@pytest.mark.parametrize("f", [lambda x: x, lambda x: (x, 3.0), lambda x: weft.jit(wnp.sin)(x), weft.vmap(wnp.cumsum)])
@pytest.mark.parametrize("how", [{}, {"values": True}, {"buffers": True}])
def test_programs_of_any_form(f, how):
    svg = weft.make_ir(f)(_matrix()).to_svg(**how)
    assert ET.fromstring(svg).tag == f"{_SVG}svg"


@needs_graphviz
def test_texts_with_quotes_and_backslashes():
    def f(x):
        weft.debug.print('a "quoted" \\ {}', x)
        return x

    assert ET.fromstring(weft.make_ir(f)(1.0).to_svg()).tag == f"{_SVG}svg"


def test_bad_input(monkeypatch):
    ir = weft.make_ir(lambda x: x)(1.0)
    for most in (0, -3):
        with pytest.raises(ValueError, match="most must be 1 or more"):
            ir.to_svg(most=most)
    for most in ("all", 1.5, True):
        with pytest.raises(TypeError, match="most must be an integer or None"):
            ir.to_svg(most=most)
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(RuntimeError, match="the package graphviz"):
        ir.to_svg()
    assert ir._repr_svg_() is None
