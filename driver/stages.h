// The stages of a program's compilation that can be looked at, by name: what `weft dump --stage=` and IR.stage take.
//
//   CheckStage("asm");                 // fine
//   CheckStage("asm", "cuda:sm_90a");  // raises: there is none for a GPU
#ifndef WEFT_DRIVER_STAGES_H_
#define WEFT_DRIVER_STAGES_H_

#include <string>
#include <vector>

namespace weft {

// Of all targets, in the order in which a program goes through them.
std::vector<std::string> AllStages();
// Raises kValue where compiling for `target`, a GPU, or for this CPU if there is none, has no such stage.
void CheckStage(const std::string& stage, const std::string& target = "");

}  // namespace weft
#endif  // WEFT_DRIVER_STAGES_H_
