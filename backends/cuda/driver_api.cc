#include "backends/cuda/driver_api.h"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace weft::cuda {
namespace {

// Opens the library that an environment variable has chosen, or the first of `names` that there is.
void* Open(const char* variable, const char* chosen, std::vector<std::string> names, const std::string& need) {
  if (chosen != nullptr && *chosen != '\0') {
    if (std::string(chosen) == "none") throw std::runtime_error(need + ": " + variable + " says that there is none");
    names = {chosen};
  }
  std::string why;
  for (const std::string& name : names) {
    if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    if (why.empty()) why = dlerror();
  }
  throw std::runtime_error(need + ": " + why);
}

template <class F>
void Find(void* library, const char* symbol, F** function) {
  *function = reinterpret_cast<F*>(dlsym(library, symbol));
  if (*function == nullptr)
    throw std::runtime_error(std::string("cuda: the library that was found lacks ") + symbol +
                             "; it is too old, or none of NVIDIA's");
}

DriverApi Load() {
  // Not "libcuda.so", which in a toolkit is a stub to link with.
  void* library = Open("WEFT_LIBCUDA", std::getenv("WEFT_LIBCUDA"), {"libcuda.so.1"},
                       "cuda: there is no NVIDIA driver on this machine");
  DriverApi api;
#define WEFT_FIND(symbol, name, parameters) Find(library, #symbol, &api.name);
  WEFT_CUDA_DRIVER(WEFT_FIND)
  const int status = api.Init(0);
  if (status == 34)
    throw std::runtime_error("cuda: the driver that was found is the toolkit's stub, which only serves to link with");
  if (status == 100) throw std::runtime_error("cuda: the driver finds no GPU");
  api.Check(status, "starting the driver");
  int version = 0;
  api.Check(api.DriverGetVersion(&version), "asking for the driver's version");
  if (version < 12000)
    throw std::runtime_error("cuda: the driver is of CUDA " + std::to_string(version / 1000) + "." +
                             std::to_string(version % 1000 / 10) +
                             ", too old for the PTX of this program, which needs 12.0 or later");
  return api;
}

LtApi LoadLt() {
  void* library = Open("WEFT_LIBCUBLASLT", std::getenv("WEFT_LIBCUBLASLT"),
                       {"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.13",
                        "/usr/local/cuda/lib64/libcublasLt.so.12"},
                       "cuda: the program multiplies matrices, which needs cuBLASLt");
  LtApi api;
  WEFT_CUBLASLT(WEFT_FIND)
  return api;
}

}  // namespace

// A failure is found anew each time: a function-local static whose initialisation throws stays uninitialised.
const DriverApi& DriverApi::Get() {
  static const DriverApi api = Load();
  return api;
}

const LtApi& LtApi::Get() {
  static const LtApi api = LoadLt();
  return api;
}

void DriverApi::Check(int status, const char* what) const {
  if (status == 0) return;
  const char *name = nullptr, *text = nullptr;
  if (GetErrorName(status, &name) != 0 || name == nullptr) name = "unknown error";
  if (GetErrorString(status, &text) != 0 || text == nullptr) text = "";
  throw std::runtime_error(std::string("cuda: ") + what + " failed: " + name + " (" + std::to_string(status) + ") " +
                           text);
}

void LtApi::Check(int status, const char* what) {
  if (status != 0)
    throw std::runtime_error(std::string("cuda: ") + what + " failed: cuBLASLt status " + std::to_string(status));
}

}  // namespace weft::cuda
