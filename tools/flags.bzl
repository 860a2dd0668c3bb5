"""Flags of this repository's own, which rules can set: Starlark's transitions do not set --define."""

def _bool_flag_impl(_ctx):
    return []

# As //package:name on the command line.
bool_flag = rule(
    implementation = _bool_flag_impl,
    doc = "A flag that is on or off; a config_setting names it in flag_values.",
    build_setting = config.bool(flag = True),
)
