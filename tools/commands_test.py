"""docs/ir.md names every command of `weft`, and no other."""

import re

from tools import tree


def test_documented():
    program = (tree.workspace() / "driver/command_line/weft_main.cc").read_text(encoding="utf-8")
    commands = set(re.findall(r'add_subcommand\("(\w+)"', program))
    assert commands, "no command was found"
    page = (tree.workspace() / "docs/ir.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `weft (\w+)", page, re.MULTILINE)) == commands
