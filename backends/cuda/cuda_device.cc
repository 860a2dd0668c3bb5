#include "backends/cuda/cuda_device.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "base/dtype.h"

namespace weft::cuda {
namespace {

constexpr size_t kWorkspace = 32 << 20;  // what cuBLASLt recommends for Hopper

DevicePointer Address(const void* p) { return reinterpret_cast<DevicePointer>(p); }

// Destroys what a call of CUDA made.
struct Owned {
  void* handle = nullptr;
  int (*destroy)(void*) = nullptr;
  explicit Owned(int (*d)(void*)) : destroy(d) {}
  ~Owned() {
    if (handle != nullptr) destroy(handle);
  }
  Owned(const Owned&) = delete;
};

}  // namespace

Card Card::Find(int ordinal) {
  const DriverApi& api = DriverApi::Get();
  int count = 0, device = 0, major = 0, minor = 0;
  api.Check(api.DeviceGetCount(&count), "counting the devices");
  if (ordinal < 0 || ordinal >= count)
    throw std::runtime_error("cuda: there is no device " + std::to_string(ordinal) + "; the driver has " +
                             std::to_string(count));
  api.Check(api.DeviceGet(&device, ordinal), "opening the device");
  api.Check(api.DeviceGetAttribute(&major, 75, device), "asking for the compute capability");
  api.Check(api.DeviceGetAttribute(&minor, 76, device), "asking for the compute capability");
  Card card;
  card.capability = 10 * major + minor;
  char name[256] = "";
  if (api.DeviceGetName(name, sizeof name, device) == 0) card.name = name;
  api.Check(api.DriverGetVersion(&card.driver_version), "asking for the driver's version");
  return card;
}

bool Card::Runs(const std::string& sm) const {
  const bool exact = !sm.empty() && sm.back() == 'a';
  const int wanted = std::atoi(sm.c_str() + 3);
  return exact ? capability == wanted : capability >= wanted;
}

CudaDevice::CudaDevice(const GpuArtifact& program, int ordinal) : api_(DriverApi::Get()) {
  const Card card = Card::Find(ordinal);
  if (!card.Runs(program.sm))
    throw std::runtime_error("cuda: the program is compiled for " + program.sm + "; device " + std::to_string(ordinal) +
                             " (" + card.name + ") is " + card.SmName());
  try {
    api_.Check(api_.DeviceGet(&device_, ordinal), "opening the device");
    api_.Check(api_.DevicePrimaryCtxRetain(&context_, device_), "making a context");
    api_.Check(api_.CtxSetCurrent(context_), "entering the context");
    api_.Check(api_.StreamCreate(&stream_, 1), "making a stream");  // 1: apart from the default stream
    if (!program.kernels.empty()) {
      // 5, 6: the buffer for errors and its size.
      std::string log(8192, '\0');
      int options[] = {5, 6};
      void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
      const int status = api_.ModuleLoadDataEx(&module_, program.ptx.c_str(), 2, options, values);
      try {
        api_.Check(status, "compiling the program's PTX");
      } catch (const std::runtime_error& error) {
        throw std::runtime_error(std::string(error.what()) + " " + log.c_str());
      }
      for (const GpuKernel& k : program.kernels)
        api_.Check(api_.ModuleGetFunction(&kernels_[k.name], module_, k.name.c_str()), "finding a kernel");
    }
    bool multiplies = false;
    program.ForEachStep(StepVisitor{[](const auto&) {}, [&](const abi::Product<abi::InWords>&) { multiplies = true; }});
    if (multiplies) {
      lt_ = &LtApi::Get();
      if (const int status = lt_->Create(&lt_handle_); status != 0)
        throw std::runtime_error("cuda: cuBLASLt is installed, but cannot be used: cublasLtCreate gives status " +
                                 std::to_string(status));
      api_.Check(api_.MemAlloc(&workspace_, kWorkspace), "taking memory for products");
    }
  } catch (...) {
    Close();
    throw;
  }
}

CudaDevice::~CudaDevice() { Close(); }

void CudaDevice::Close() {
  // Copies of an abandoned run may be under way.
  if (stream_ != nullptr) api_.StreamSynchronize(stream_);
  if (lt_handle_ != nullptr) lt_->Destroy(lt_handle_);
  if (workspace_ != 0) api_.MemFree(workspace_);
  if (module_ != nullptr) api_.ModuleUnload(module_);
  if (stream_ != nullptr) api_.StreamDestroy(stream_);
  if (context_ != nullptr) api_.DevicePrimaryCtxRelease(device_);
}

void* CudaDevice::Allocate(int64_t bytes) {
  DevicePointer p = 0;
  api_.Check(api_.MemAlloc(&p, static_cast<size_t>(std::max<int64_t>(bytes, 1))), "taking device memory");
  return reinterpret_cast<void*>(p);
}
void CudaDevice::Free(void* address) { api_.MemFree(Address(address)); }
void CudaDevice::CopyIn(void* to, const void* from, int64_t bytes) {
  if (bytes > 0)
    api_.Check(api_.MemcpyHtoDAsync(Address(to), from, static_cast<size_t>(bytes), stream_), "a copy to the device");
}
void CudaDevice::CopyOut(void* to, const void* from, int64_t bytes) {
  if (bytes > 0)
    api_.Check(api_.MemcpyDtoHAsync(to, Address(from), static_cast<size_t>(bytes), stream_), "a copy from the device");
}
void CudaDevice::CopyWithin(void* to, const void* from, int64_t bytes) {
  if (bytes > 0)
    api_.Check(api_.MemcpyDtoDAsync(Address(to), Address(from), static_cast<size_t>(bytes), stream_), "a copy");
}
void CudaDevice::Synchronize() { api_.Check(api_.StreamSynchronize(stream_), "running the program"); }

double CudaDevice::Milliseconds(const std::function<void()>& work) {
  Owned begin(api_.EventDestroy), end(api_.EventDestroy);
  float milliseconds = 0;
  api_.Check(api_.EventCreate(&begin.handle, 0), "making an event");
  api_.Check(api_.EventCreate(&end.handle, 0), "making an event");
  api_.Check(api_.EventRecord(begin.handle, stream_), "recording an event");
  work();
  api_.Check(api_.EventRecord(end.handle, stream_), "recording an event");
  api_.Check(api_.EventSynchronize(end.handle), "running the program");
  api_.Check(api_.EventElapsedTime(&milliseconds, begin.handle, end.handle), "reading the time");
  return milliseconds;
}

void CudaDevice::Launch(const GpuKernel& kernel, const std::vector<Operand>& operands) {
  std::vector<DevicePointer> pointers;
  for (const Operand& o : operands) pointers.push_back(Address(o.address));
  std::vector<void*> arguments;
  for (DevicePointer& p : pointers) arguments.push_back(&p);
  api_.Check(api_.LaunchKernel(kernels_.at(kernel.name), static_cast<unsigned>(kernel.blocks), 1, 1,
                               static_cast<unsigned>(kernel.threads), 1, 1, 0, stream_, arguments.data(), nullptr),
             "launching a kernel");
}

void CudaDevice::Matmul(const GpuMatmul& p, const void* x, const void* y, void* out) {
  // cudaDataType_t, cublasComputeType_t and the type of alpha and beta.
  struct Types {
    DType dtype;
    int data, compute, scale;
  };
  static constexpr Types kTypes[] = {{DType::kF16, 2, 68, 0}, {DType::kBF16, 14, 68, 0}, {DType::kF32, 0, 68, 0},
                                     {DType::kF64, 1, 70, 1}, {DType::kC64, 4, 68, 4},   {DType::kC128, 5, 70, 5}};
  const auto* types =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Types& t) { return t.dtype == p.dtype; });
  if (types == std::end(kTypes))
    throw std::runtime_error(std::string("cuda: cuBLASLt multiplies no ") + Name(p.dtype) +
                             "; expected f16, bf16, f32, f64, c64 or c128");
  if (p.dtype != p.out_dtype)
    throw std::runtime_error(std::string("cuda: a product of ") + Name(p.dtype) + " into " + Name(p.out_dtype) +
                             " is not supported yet; expected one dtype");
  auto laid_out = [](int64_t rows, int64_t row, int64_t columns, int64_t column) {
    const std::optional<ColumnMajor> m = ColumnMajor::Of(rows, row, columns, column);
    if (!m) throw std::runtime_error("cuda: the program has a product that cuBLASLt cannot describe");
    return *m;
  };
  // Results are column by column. Where one lies row by row, its transpose is computed: y' x'.
  const ColumnMajor z = laid_out(p.m, p.out_m, p.n, p.out_n);
  struct Side {
    const void* data;
    ColumnMajor matrix;
    int64_t batch;
  };
  Side a{x, laid_out(p.m, p.x_m, p.k, p.x_k), p.x_batch}, b{y, laid_out(p.k, p.y_k, p.n, p.y_n), p.y_batch};
  if (z.transposed) {
    a.matrix.transposed = !a.matrix.transposed, b.matrix.transposed = !b.matrix.transposed;
    std::swap(a, b);
  }

  Owned operation(lt_->MatmulDescDestroy), la(lt_->MatrixLayoutDestroy), lb(lt_->MatrixLayoutDestroy),
      lc(lt_->MatrixLayoutDestroy), preference(lt_->MatmulPreferenceDestroy);
  LtApi::Check(lt_->MatmulDescCreate(&operation.handle, types->compute, types->scale), "describing a product");
  auto layout = [&](Owned& made, const ColumnMajor& m) {
    LtApi::Check(lt_->MatrixLayoutCreate(&made.handle, types->data, static_cast<uint64_t>(m.high),
                                         static_cast<uint64_t>(m.wide), m.step),
                 "describing a matrix");
  };
  auto transpose = [&](int attribute, const ColumnMajor& m) {
    const int32_t value = m.transposed ? 1 : 0;  // CUBLAS_OP_T, CUBLAS_OP_N
    LtApi::Check(lt_->MatmulDescSetAttribute(operation.handle, attribute, &value, sizeof value),
                 "describing a product");
  };
  auto batched = [&](Owned& made, int64_t stride) {
    const int32_t count = static_cast<int32_t>(p.batch);
    // 5, 6: CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT and STRIDED_BATCH_OFFSET.
    LtApi::Check(lt_->MatrixLayoutSetAttribute(made.handle, 5, &count, sizeof count), "describing a matrix");
    LtApi::Check(lt_->MatrixLayoutSetAttribute(made.handle, 6, &stride, sizeof stride), "describing a matrix");
  };
  layout(la, a.matrix), layout(lb, b.matrix), layout(lc, z);
  transpose(3, a.matrix);  // CUBLASLT_MATMUL_DESC_TRANSA
  transpose(4, b.matrix);  // CUBLASLT_MATMUL_DESC_TRANSB
  batched(la, a.batch), batched(lb, b.batch), batched(lc, p.out_batch);
  LtApi::Check(lt_->MatmulPreferenceCreate(&preference.handle), "choosing an algorithm");
  const uint64_t workspace = kWorkspace;  // 1: CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
  LtApi::Check(lt_->MatmulPreferenceSetAttribute(preference.handle, 1, &workspace, sizeof workspace),
               "choosing an algorithm");
  LtHeuristic found{};
  int count = 0;
  LtApi::Check(lt_->MatmulAlgoGetHeuristic(lt_handle_, operation.handle, la.handle, lb.handle, lc.handle, lc.handle,
                                           preference.handle, 1, &found, &count),
               "choosing an algorithm");
  if (count == 0) throw std::runtime_error("cuda: cuBLASLt has no algorithm for a product of the program");
  const double one[2] = {1, 0}, zero[2] = {0, 0};
  const float one_f[2] = {1, 0}, zero_f[2] = {0, 0};
  const bool wide = types->compute == 70;
  LtApi::Check(lt_->Matmul(lt_handle_, operation.handle, wide ? static_cast<const void*>(one) : one_f, a.data,
                           la.handle, b.data, lb.handle, wide ? static_cast<const void*>(zero) : zero_f, out, lc.handle,
                           out, lc.handle, found.algorithm, reinterpret_cast<void*>(workspace_), kWorkspace, stream_),
               "a product");
}

}  // namespace weft::cuda
