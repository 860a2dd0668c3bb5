"""Protocol buffers by the protoc of the Debian packages."""

def weft_proto_library(name, src, visibility = None):
    """A cc_library with the message classes of one .proto file.

    For ir/fn.proto the header is "ir/fn.pb.h". Only serialisers include it (see tools/layering_test.py).

    Args:
      name: name of the cc_library.
      src: the .proto file.
      visibility: of the library.
    """
    if not src.endswith(".proto"):
        fail("weft_proto_library(src = %r): a .proto file is expected" % src)
    stem = src[:-len(".proto")]
    native.genrule(
        name = name + "_gen",
        srcs = [src],
        outs = [stem + ".pb.h", stem + ".pb.cc"],
        cmd = "/usr/bin/protoc --proto_path=. --cpp_out=$(GENDIR) $(location %s)" % src,
        message = "Generating protocol buffer code for",
        visibility = ["//visibility:private"],
    )
    native.cc_library(
        name = name,
        srcs = [stem + ".pb.cc"],
        hdrs = [stem + ".pb.h"],
        copts = ["-Wno-unused-parameter"],
        visibility = visibility,
        deps = ["//third_party:protobuf"],
    )
