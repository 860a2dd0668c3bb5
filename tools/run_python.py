"""Python's command line with the dependencies of its py_binary importable: `./bazelw run //python -- script.py args`.

Takes what `python` takes (a script, -c, -m, nothing for a prompt), in the folder where bazelw was called.
"""

import os
import sys

os.chdir(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
# Bazel's stub has put the dependencies into PYTHONPATH, which a new interpreter reads.
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
