"""S1-12: loops and branches as blocks with arguments (phi), three loops deep, and back; a use that its definition does
not dominate is refused."""

import weft


def model(x):
    """Three nested loops, a branch in the innermost."""

    def innermost(c):
        return weft.fori_loop(0, 3, lambda i, v: weft.cond(v > 5, lambda u: u - 3, lambda u: u + x, v), c)

    def middle(c):
        return weft.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, innermost(s[1])), (0, c))[1]

    return weft.fori_loop(0, 4, lambda i, c: middle(c), x)


def in_python(x):
    c = x
    for _ in range(4 * 2 * 3):
        c = c - 3 if c > 5 else c + x
    return c


def main():
    cfg = weft.ir.to_cfg(weft.make_ir(model)(1.5))
    print(cfg)
    back = cfg.to_ir()
    print(back)
    assert [op.depth for op in back.walk() if op.name == "while"] == [0, 1, 2]
    for x in (0.5, 1.5, 2.0):
        assert float(cfg.run(x)[0]) == float(back(x)) == in_python(x)

    # What the innermost body computes is not there after the loops.
    body = next(block for block in cfg.blocks if any(i.operation.name == "sub" for i in block.instructions))
    last = next(block for block in cfg.blocks if block.returns is not None)
    last.returns = [body.instructions[0].results[0]]
    try:
        cfg.verify()
    except ValueError as error:
        print(error)
    else:
        raise AssertionError("the use was not refused")


if __name__ == "__main__":
    main()
