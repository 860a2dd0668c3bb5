"""Archives of the system, for programs that run where its packages are not installed."""

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

# linkopts of a cc_binary: what the archives define is not looked for in shared libraries, which are then left out.
STATIC_LIBRARIES = [
    "-static-libgcc",
    "-Wl,--as-needed",
    "-Wl,--start-group",
] + ["-l:lib%s.a" % name for name in _ARCHIVES] + ["-Wl,--end-group"]
