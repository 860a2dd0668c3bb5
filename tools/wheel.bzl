"""A wheel, from the files of a package and its native module."""

def _release_transition_impl(_settings, _attr):
    return {
        "//command_line_option:compilation_mode": "opt",
        "//python:layout": True,
    }

_release_transition = transition(
    implementation = _release_transition_impl,
    inputs = [],
    outputs = [
        "//command_line_option:compilation_mode",
        "//python:layout",
    ],
)

def _release_file_impl(ctx):
    files = ctx.attr.src[0][DefaultInfo].files.to_list()
    if len(files) != 1:
        fail("%s gives %d files, one is expected" % (ctx.attr.src[0].label, len(files)))
    output = ctx.actions.declare_file(ctx.label.name + "/" + files[0].basename)
    ctx.actions.symlink(output = output, target_file = files[0])
    return [DefaultInfo(files = depset([output]), runfiles = ctx.runfiles(files = [output]))]

_release_file = rule(
    implementation = _release_file_impl,
    doc = "The file of another target, built with -c opt and laid out (//python:layout) whatever the command line says.",
    attrs = {
        "src": attr.label(cfg = _release_transition, mandatory = True),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
)

def weft_wheel(name, summary, files, module, smoke, requires = [], scripts = [], sdk = None, **kwargs):
    """`./bazelw run` of it writes dist/weft-VERSION-*.whl, installs that elsewhere, and tries it.

    Args:
      name: of the target. The version is the `__version__` of the package's `__init__.py`.
      summary: one line on what it is.
      files: labels of the files that the package consists of, below this BUILD file's folder.
      module: label of the native module in this BUILD file; it is built with -c opt, and its name is its place.
      smoke: a Python script that must succeed with the wheel installed, and nothing else of this tree.
      requires: requirements on other packages.
      scripts: commands that the wheel installs, as in "weft=weft.__main__:main".
      sdk: (program, library): labels of what writes the SDK below --prefix and of the library in it, built with -c opt;
        the wheel has it below the package.
      **kwargs: as for py_binary.
    """
    # "manual": //... does not compile everything a second time.
    _release_file(
        name = name + "_module",
        src = module,
        tags = ["manual"],
    )
    sdk_data, sdk_arguments = [], []
    if sdk:
        _release_file(
            name = name + "_sdk_library",
            src = sdk[1],
            tags = ["manual"],
        )
        sdk_data = [sdk[0], ":" + name + "_sdk_library"]
        sdk_arguments = ["--sdk=%s.py=$(rootpath :%s_sdk_library)" % (sdk[0].lstrip("/").replace(":", "/"), name)]
    native.filegroup(
        name = name + "_files",
        srcs = files,
    )
    native.py_binary(
        name = name,
        srcs = ["//tools:build_wheel.py"],
        main = "//tools:build_wheel.py",
        data = [":" + name + "_files", ":" + name + "_module", smoke] + sdk_data,
        tags = ["manual"],
        args = [
            "'--summary=%s'" % summary,
            "--strip_prefix=" + native.package_name() + "/",
            "--module=$(rootpath :%s_module)=%s" % (name, module.split(":")[-1]),
            "--smoke=$(rootpath %s)" % smoke,
        ] + sdk_arguments + ["'--requires=%s'" % r for r in requires] + ["--script=" + script for script in scripts] + ["$(rootpaths :%s_files)" % name],
        **kwargs
    )
