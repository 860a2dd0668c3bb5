// Where the user's Python program is: its frames as a Loc, innermost first, without the frames of the weft package.
#ifndef WEFT_PYTHON_NATIVE_FRAMES_H_
#define WEFT_PYTHON_NATIVE_FRAMES_H_

#include <string>

#include "ir/loc.h"

namespace weft::python {

// Costs about 0.1 us when the same place was seen before: places are cached by code object and instruction.
Loc UserLoc();
// While one exists, this is where the user's program is, whatever runs: what a rule writes comes from the equation that
// it replaces.
class ScopedUserLoc {
 public:
  explicit ScopedUserLoc(Loc loc);
  ~ScopedUserLoc();
  ScopedUserLoc(const ScopedUserLoc&) = delete;

 private:
  const Loc* before_;
  Loc loc_;
};
// Names a part of the program, until the part ends: what is recorded meanwhile by the same trace has the names as the
// first step of its location, before those of transforms: "model.py:12 (loss) via named_scope(layer/norm), jvp". What a
// trace inside records has the names that are opened in it; those around are in the location from which it was opened.
void OpenNamedScope(const std::string& name);
void CloseNamedScope();
// Whether a step of a location is such names.
bool IsNamedScope(const std::string& step);
// The function of the package that the user's program called and that is running: "normal". Empty where what runs is an
// operator, a method, or a function that the package made.
std::string CalledFunction();
// Whether the package called the operation that is being made; false where the user did.
bool InPackage();
// Frames of files under this folder belong to the package, not to the user.
void SetPackageFolder(const std::string& folder);

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_FRAMES_H_
