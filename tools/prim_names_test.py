"""What the compiler knows of operations is said by traits (ir/prim.h) and tables, not by comparisons with their names.

Counted is every place that asks whether a primitive is a certain one, however it is spelled; each has a comment that
says why. Not counted are tables with a row per primitive, the patterns of the rewriting rules, and what they are made
of (RULES).
"""

import re

import pytest

from tools import tree

LIMIT = 39

NOT_THE_COMPILER = ("tests/", "examples/", "bench/", "compat/", "tools/", "docs/")
RULES = (
    "transforms/opt/simplify.cc",
    "transforms/opt/defined_by.h",
    "transforms/opt/depthwise.cc",
    "transforms/opt/vector_products.cc",
    "transforms/opt/formula.cc",
    "transforms/opt/same_value.h",
    "transforms/opt/singular.cc",
    "transforms/opt/stable_factors.cc",
    "transforms/opt/stable_limits.cc",
    "transforms/opt/stable_structure.cc",
    "transforms/opt/stable_moves.cc",
    "transforms/opt/stable_conversions.cc",
    "transforms/opt/stable_loops.cc",
    "transforms/opt/stable_quotients.cc",
    "transforms/opt/stable_variance.cc",
    "transforms/opt/shifted_exponentials.cc",
    "transforms/opt/reduction_rules.cc",
    "transforms/opt/guarded_branches.cc",
    "transforms/opt/algebra_rules.cc",
    "transforms/opt/collect_rules.cc",
    "transforms/opt/scale_rules.cc",
    "transforms/opt/known.cc",
    "transforms/opt/matrix_forms.cc",
    "transforms/opt/network.cc",
    "transforms/opt/product_rules.cc",
    "transforms/opt/system_rules.cc",
    "transforms/opt/part.h",
    "transforms/opt/part_rules.cc",
    "transforms/opt/loop_parts.cc",
    "transforms/opt/loops.cc",
    "ir/prim_table.h",
)


def primitives() -> set[str]:
    text = (tree.workspace() / "docs/operations.md").read_text(encoding="utf-8")
    return set(re.findall(r"^### (\w+)$", text, re.MULTILINE))


def patterns(names: set[str]) -> list[re.Pattern[str]]:
    one = r'"(?:' + "|".join(sorted(names)) + r')"'
    other = r"(?<!\bkind )(?<!\bkind)"  # kinds of transforms have such names too
    starts = {name[:n] for name in names for n in range(3, len(name) + 1)}
    start = r'"(?:' + "|".join(sorted(starts | {s + "_" for s in starts})) + r')"'
    return [
        re.compile(rf"{other}[!=]= *{one}"),
        re.compile(rf"{one} *[!=]= "),
        re.compile(rf"\bIs<{one}>"),
        re.compile(rf"[!=]= *&?(?:Try)?FindPrim\({one}"),
        re.compile(rf"(?:Try)?FindPrim\({one}\) *[!=]= "),
        re.compile(rf"\b(?:starts_with|ends_with|rfind|compare)\([^)]*{start}"),
        re.compile(r"\b(?:count|contains|find)\([^()]*prim(?:->|\.)name\)"),
        re.compile(r"\bprim *[!=]= *&(?!(?:prim|FindPrim)\b)\w"),  # `&prim` is the equation's own
    ]


def comparisons(text: str, looked_for: list[re.Pattern[str]]) -> list[tuple[int, str, bool]]:
    """Line, what it says, and whether a comment stands there or in the three lines above: an entry per comparison."""
    lines = text.splitlines()
    found = []
    for i, line in enumerate(lines):
        code = line.split("//")[0]
        reason = any("//" in above for above in lines[max(0, i - 3) : i + 1])
        for pattern in looked_for:
            found += [(i + 1, line.strip(), reason)] * len(pattern.findall(code))
    return found


def test_few_places_ask_for_names():
    looked_for = patterns(primitives())
    found, without = [], []
    read = 0
    for path in tree.files(".cc", ".h"):
        name = path.as_posix()
        if name.startswith(NOT_THE_COMPILER) or name.endswith("_test.cc") or name in RULES:
            continue
        read += 1
        for line, text, reason in comparisons((tree.workspace() / path).read_text(encoding="utf-8"), looked_for):
            found.append(f"{name}:{line}: {text}")
            if not reason:
                without.append(found[-1])
    assert read > 100, "the sources were not found"
    assert len(found) <= LIMIT, f"{len(found)} comparisons with names of primitives:\n" + "\n".join(found)
    assert not without, "without a comment that says why:\n" + "\n".join(without)


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ('if (e.prim->name == "scan") {', 1),
        ('if (name == "cond" || name != "while") {', 2),
        ('return Is<"contract">(*e.prim);', 1),
        ('return e.prim == &FindPrim("add");', 1),
        ("return e.prim == &sum;", 1),
        ('return name.rfind("scatter", 0) == 0;', 1),
        ('return name.starts_with("shift_");', 1),
        ("return kNames.count(e.prim->name);", 1),
        ('b.Emit(FindPrim("spmd"), x);', 0),
        ('{"add", {.on_float = Add}},', 0),
        ('static const PrimSet kSums{"contract", "reduce_sum"};', 0),
        ('if (name == "dtype") {', 0),
        ('if (step.kind == "transpose") {', 0),
        ('// if (name == "scan")', 0),
    ],
)
def test_what_counts(code, count):
    assert len(comparisons(code, patterns(primitives()))) == count


def test_a_reason_is_a_comment():
    looked_for = patterns(primitives())
    assert comparisons('if (name == "scan") {  // why', looked_for)[0][2]
    assert comparisons('// why\nif (name == "scan") {', looked_for)[0][2]
    assert not comparisons('// why\n\n\n\nif (name == "scan") {', looked_for)[0][2]
