"""Of libraries: the headers that they offer, and their object files."""

def _public_headers_impl(ctx):
    files = []
    for library in ctx.attr.libraries:
        files += [f for f in library[CcInfo].compilation_context.direct_public_headers if f.extension == "h"]
    return [DefaultInfo(files = depset(files), runfiles = ctx.runfiles(files = files))]

public_headers = rule(
    implementation = _public_headers_impl,
    doc = "What the `hdrs` of the libraries say; not those of what they depend on.",
    attrs = {"libraries": attr.label_list(providers = [CcInfo], mandatory = True)},
)

def _objects_impl(ctx):
    files = []
    for library in ctx.attr.libraries:
        for linked in library[CcInfo].linking_context.linker_inputs.to_list():
            for part in linked.libraries:
                files += part.pic_objects or part.objects or []
    return [DefaultInfo(files = depset(files))]

objects = rule(
    implementation = _objects_impl,
    doc = "The object files of the libraries and of what they depend on: a shared library of these has all of them, " +
          "where archives would leave out what nobody calls.",
    attrs = {"libraries": attr.label_list(providers = [CcInfo], mandatory = True)},
)
