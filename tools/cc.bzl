"""C++ targets that start from precompiled headers of others.

Parsing the standard library and Abseil takes a second per file, MLIR twelve. third_party/headers lists what is common;
each list is compiled once per configuration, with that configuration's flags. A file includes what it uses all the
same: a compiler that cannot use the result (other flags, another compiler) reads the list as text.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    context = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context

    # The compiler looks for NAME.gch first and takes NAME where that does not fit, so both lie side by side.
    text = ctx.actions.declare_file(ctx.file.hdr.basename)
    ctx.actions.symlink(output = text, target_file = ctx.file.hdr)
    binary = ctx.actions.declare_file(ctx.file.hdr.basename + ".gch")

    fragment = ctx.fragments.cpp
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = ctx.file.hdr.path,
        output_file = binary.path,
        user_compile_flags = ["-x", "c++-header"] + fragment.copts + fragment.cxxopts + ctx.attr.copts,
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
        preprocessor_defines = context.defines,
        use_pic = True,
    )
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
        ),
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        inputs = depset([ctx.file.hdr], transitive = [context.headers, toolchain.all_files]),
        outputs = [binary],
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling %s" % ctx.file.hdr.short_path,
    )
    # Nothing to link: who uses a library says so itself.
    own = cc_common.create_compilation_context(headers = depset([text, binary, ctx.file.hdr]))
    return [cc_common.merge_cc_infos(cc_infos = [
        CcInfo(compilation_context = own),
        CcInfo(compilation_context = context),
    ])]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    doc = "A header of includes, compiled; weft_cc_library and weft_cc_test name it in `headers`.",
    attrs = {
        "hdr": attr.label(allow_single_file = [".h"], mandatory = True),
        "copts": attr.string_list(doc = "flags that the files which start from it have besides the common ones"),
        "deps": attr.label_list(providers = [CcInfo]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def _starting_from(headers, copts, deps):
    return dict(
        copts = ["-include", "$(BINDIR)/third_party/headers/%s.h" % headers] + copts,
        deps = deps + ["//third_party/headers:" + headers],
    )

def weft_cc_library(name, srcs = [], headers = "common", copts = [], deps = [], **kwargs):
    """A cc_library whose files start from the precompiled third_party/headers/HEADERS.h.

    Args:
      name: of the target.
      srcs: its files; a library of headers alone has nothing to start.
      headers: "common", "mlir", "python" or "test".
      copts: as for cc_library.
      deps: as for cc_library.
      **kwargs: as for cc_library.
    """
    start = _starting_from(headers, copts, deps) if srcs else dict(copts = copts, deps = deps)
    native.cc_library(name = name, srcs = srcs, **dict(kwargs, **start))

def weft_cc_binary(name, srcs, headers = "common", copts = [], deps = [], **kwargs):
    """A cc_binary, in the same way."""
    native.cc_binary(name = name, srcs = srcs, **dict(kwargs, **_starting_from(headers, copts, deps)))

def weft_cc_test(name, srcs, copts = [], deps = [], **kwargs):
    """A cc_test, in the same way, from the headers of tests."""
    native.cc_test(name = name, srcs = srcs, **dict(kwargs, **_starting_from("test", copts, deps)))
