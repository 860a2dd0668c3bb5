// Who makes code of programs and runs them. Each backend is a class of its own file, and one row of the list in
// backend.cc; nobody else knows which there are.
#ifndef WEFT_DRIVER_BACKEND_H_
#define WEFT_DRIVER_BACKEND_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "driver/compile_request.h"
#include "driver/device.h"
#include "ir/fn.h"
#include "ir/tensor.h"
#include "lowering/abi/artifact.h"
#include "lowering/bundle/bundle.h"

namespace weft {

// A program that is ready to run. Immutable; any number of threads may run it at once.
class LoadedProgram {
 public:
  virtual ~LoadedProgram() = default;
  // One tensor per parameter, of its dtype and rank. Results are fresh arrays, or arguments. Donated arguments whose
  // memory nobody else holds are overwritten; of others a copy. Raises kType for arguments that do not fit, kRuntime
  // when the program fails.
  virtual Tensors Run(Tensors args) const = 0;
  // By parameter: a donated argument whose memory the program has a use for. Empty: none was donated.
  virtual std::vector<bool> UsesDonated() const { return {}; }
  // Named numbers about the code.
  virtual std::vector<std::pair<std::string, double>> Facts() const = 0;
  // The code, if it is for a CPU; else null.
  virtual const Artifact* artifact() const { return nullptr; }
  // Whether the code came from the disk cache.
  virtual bool from_disk() const { return false; }
};

class Backend {
 public:
  virtual ~Backend() = default;
  // For messages: "a CPU", "cuda:sm_90a".
  virtual std::string Description() const = 0;
  // The devices of this process that its programs run on, in order. Empty: programs run on none of them.
  virtual std::vector<Device> Devices() const { return {}; }
  // Whether programs for a mesh take and give the blocks that this process holds of arrays; else arrays as wholes.
  virtual bool TakesBlocks() const { return true; }
  // Where arrays on these devices lie. Raises kUnsupported where there are none.
  virtual const DeviceMemory& Memory() const;
  // The names of what StageText gives, in the order in which they are made.
  virtual std::vector<std::string> Stages() const = 0;
  // A form of `optimized`, the request's program after its passes, on the way to code, as text.
  virtual std::string StageText(const CompileRequest& request, const FnRef& optimized,
                                const std::string& stage) const = 0;
  // Begins to make what running the program takes besides its code, in a thread of its own; what is returned waits for
  // that when it goes. Null: nothing.
  virtual std::shared_ptr<void> Prepare(const Fn& program) const;
  // Makes code and loads it. Raises kUnsupported where programs do not run in this process.
  virtual std::unique_ptr<const LoadedProgram> Load(const CompileRequest& request, const FnRef& optimized) const = 0;
  // Runs the code on the host in place of its device, with every access checked. Raises kUnsupported unless there is
  // such an emulation.
  virtual Tensors Emulate(const CompileRequest& request, const FnRef& optimized, const Tensors& args) const;
  // Puts the code into a bundle, with `emulation` also what Emulate runs. Raises kUnsupported for a backend without
  // code that could be written.
  virtual void Export(const CompileRequest& request, const FnRef& optimized, bool emulation, Bundle* bundle) const;
};

// Raises kValue, naming those that there are, when there is no such backend.
std::shared_ptr<const Backend> FindBackend(const std::string& name);

// The text of a stage: "ir", "optimized", or one of the backend's. Raises kValue for another name, and what compiling
// raises.
std::string StageText(const CompileRequest& request, const std::string& stage);
// Every stage of some backend, each once.
const std::vector<std::string>& AllStages();

// Each backend's row of the list in backend.cc: the backend of this name, null if the name is another's.
std::shared_ptr<const Backend> CpuBackend(const std::string& name);
std::shared_ptr<const Backend> InterpreterBackend(const std::string& name);
std::shared_ptr<const Backend> OperationsBackend(const std::string& name);
std::shared_ptr<const Backend> GpuBackend(const std::string& name);

}  // namespace weft
#endif  // WEFT_DRIVER_BACKEND_H_
