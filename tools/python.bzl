"""Python tests."""

def weft_py_test(name, srcs, deps = [], args = [], **kwargs):
    """A py_test whose files pytest runs. The files need no main part, and one that holds no test fails.

    Args:
      name: of the test; --test_filter=WORDS selects as pytest's -k does.
      srcs: files with test_* functions (or unittest classes).
      deps: py_library targets.
      args: more arguments for pytest.
      **kwargs: as for py_test.
    """
    native.py_test(
        name = name,
        srcs = srcs + ["//tools:pytest_main.py"],
        main = "//tools:pytest_main.py",
        args = ["$(rootpath %s)" % src for src in srcs] + args,
        deps = deps,
        **kwargs
    )
