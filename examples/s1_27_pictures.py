"""S1-27: pictures of a program: operations, data and operations, and steps with the buffers that they read and write.

Writes model.svg, data.svg and buffers.svg into the folder that is given (without one, a temporary one).
"""

import pathlib
import sys
import tempfile

import weft
import weft.numpy as wnp


def model(w, x):
    """A loop, a branch and some layers."""
    x = weft.fori_loop(0, 10, lambda i, c: wnp.tanh(c @ w), x)
    x = weft.cond(x.sum() > 0, lambda v: v / v.max(), lambda v: v, x)
    return (x**2).mean()


def main(folder):
    w, x = wnp.ones((4, 4)), wnp.ones((2, 4))
    ir = weft.make_ir(weft.value_and_grad(model))(w, x)
    for name, picture in {
        "model": ir.to_svg(),
        "data": ir.to_svg(values=True),
        "buffers": ir.to_svg(buffers=True),
    }.items():
        path = folder / f"{name}.svg"
        path.write_text(picture, encoding="utf-8")
        print(f"{path}: {len(picture)} bytes")
        assert picture.rstrip().endswith("</svg>")
    boxes = ir.to_svg(layout=False, most=None)
    assert all(f'"{op.name}' in boxes for op in ir.walk())
    folded = ir.to_svg(layout=False, most=10)
    assert folded.count("label") < boxes.count("label")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(pathlib.Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(pathlib.Path(temporary))
