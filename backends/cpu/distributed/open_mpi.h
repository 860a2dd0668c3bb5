// The functions of Open MPI that Weft calls, from the library found at run time: neither the build nor a program of one
// process needs it. Handles are pointers and constants are addresses in the library, as in all versions since 1.0.
#ifndef WEFT_BACKENDS_CPU_DISTRIBUTED_OPEN_MPI_H_
#define WEFT_BACKENDS_CPU_DISTRIBUTED_OPEN_MPI_H_

namespace weft::cpu {

struct OpenMpi {
  // Raises std::runtime_error where the library is missing or something else than Open MPI.
  static const OpenMpi& Get();

  int (*init_thread)(int*, char***, int required, int* provided);
  int (*initialized)(int*);
  int (*finalize)();
  int (*abort)(void* comm, int code);
  int (*comm_rank)(void* comm, int*);
  int (*comm_size)(void* comm, int*);
  int (*comm_set_errhandler)(void* comm, void* handler);
  int (*isend)(const void*, int count, void* type, int to, int tag, void* comm, void** request);
  int (*irecv)(void*, int count, void* type, int from, int tag, void* comm, void** request);
  int (*test)(void** request, int* flag, void* status);  // status may be null
  int (*error_string)(int code, char* text, int* length);
  void *world, *byte, *errors_return;
};

constexpr int kMpiThreadMultiple = 3;
constexpr int kMpiMaxErrorString = 256;

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_DISTRIBUTED_OPEN_MPI_H_
