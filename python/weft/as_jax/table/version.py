"""The version of JAX whose names are served."""

VERSION = "0.10.2"
VERSION_INFO = tuple(map(int, VERSION.split(".")))
