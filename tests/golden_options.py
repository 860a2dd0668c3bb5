"""The flag --update-golden of golden_test.py."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the expected outputs in the source tree")
