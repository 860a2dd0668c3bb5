"""Archives of the system in the place of its shared libraries."""

_ARCHIVES = [
    "absl_" + name
    for name in [
        "base",
        "city",
        "exponential_biased",
        "hash",
        "hashtablez_sampler",
        "int128",
        "low_level_hash",
        "raw_hash_set",
        "raw_logging_internal",
        "strings",
        "strings_internal",
        "synchronization",
        "throw_delegate",
    ]
] + [
    "boost_context",
    "md",
    "protobuf-lite",
    "stdc++",
]

# linkopts of a cc_binary that runs where the system's packages are not installed: what the archives define is not looked
# for in shared libraries, which are then left out.
STATIC_LIBRARIES = [
    "-static-libgcc",
    "-Wl,--as-needed",
    "-Wl,--start-group",
] + ["-l:lib%s.a" % name for name in _ARCHIVES] + ["-Wl,--end-group"]

# linkopts of such a binary with //lowering:checked_malloc: what malloc does not give the compiler is an exception.
CHECKED_MALLOC = ["-Wl,--wrap=malloc"]

# Of a cc_binary that has MLIR and LLVM inside, as far as it uses them, and shows none of it: it is loaded in half the
# time, since nothing of them is looked up by name, and another LLVM in the process does not meet this one.
MLIR_INSIDE = dict(
    additional_linker_inputs = ["@llvm//:archives"],
    linkopts = [
        "-L$(BINDIR)/external/llvm/archives",
        "-Wl,--exclude-libs,ALL",
        "-Wl,--gc-sections",
    ],
)
