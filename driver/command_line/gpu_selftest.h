// `weft selftest --gpu`: runs compiled programs on the card at hand, compares what they give with what NumPy computed,
// and measures. Needs neither the compiler nor Python.
//
// What is run is one uncompressed .zip, written by tests/gpu/selftest_cases.py:
//   cases.txt              "targets sm_90a sm_80", the first that the card runs is taken; then "KIND NAME RELATIVE
//   ABSOLUTE",
//                          the tolerances
//   NAME.sm_90a.weftb      the program, for each target
//   NAME.in.0.npy ...      its arguments; along their first dimension they are repeated to the size that it takes
//   NAME.out.0.npy ...     its results, in the same way
#ifndef WEFT_DRIVER_COMMAND_LINE_GPU_SELFTEST_H_
#define WEFT_DRIVER_COMMAND_LINE_GPU_SELFTEST_H_

#include <string>

namespace weft {

struct SelftestCommand {
  bool gpu = false;
  std::string cases;  // the file; empty: selftest.zip beside the executable
  std::string json;   // where the report goes besides standard output; empty: nowhere
  // Whether everything was right; what was not is in the report. Raises kValue for a file that is not there, kParse for
  // a damaged one, kRuntime where there is no card that could run it.
  bool Run() const;
};

}  // namespace weft
#endif  // WEFT_DRIVER_COMMAND_LINE_GPU_SELFTEST_H_
