# Configuration of lit for `weft` (https://llvm.org/docs/CommandGuide/lit.html). tests/lit_test.py gives the parameters.
import lit.formats

config.name = "weft"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".weft"]
config.test_exec_root = lit_config.params["output"]
config.substitutions.append((r"(?<![.\w])weft\b", lit_config.params["weft"]))
config.substitutions.append((r"\bFileCheck\b", "FileCheck-19"))
