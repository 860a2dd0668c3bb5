"""The version of the SDK, stated here alone.

A plugin runs in a Weft of the same first number and of the same or a later second one. The first number grows with every
change that a plugin would have to be built anew for: a function or a structure of the installed headers that changes or
goes. The second grows where something comes in addition.
"""

SDK_MAJOR = 2
SDK_MINOR = 0
