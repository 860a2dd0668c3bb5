#include "backends/cpu/distributed/open_mpi.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace weft::cpu {

const OpenMpi& OpenMpi::Get() {
  static const OpenMpi mpi = [] {
    // Its plug-ins look for its symbols among the global ones.
    void* library = nullptr;
    std::string why;
    for (const char* name : {"libmpi.so.40", "libmpi.so.20", "libmpi.so.12", "libmpi.so"}) {
      library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
      if (library != nullptr) break;
      if (why.empty()) why = dlerror();
    }
    if (library == nullptr)
      throw std::runtime_error("Open MPI's library cannot be loaded (" + why +
                               "); Debian's package libopenmpi3 has it, openmpi-bin the program mpirun");
    const auto symbol = [&](const char* name) {
      void* address = dlsym(library, name);
      if (address == nullptr)
        throw std::runtime_error(std::string("the MPI library that was found is not Open MPI: it lacks ") + name);
      return address;
    };
    OpenMpi m{};
    const auto bind = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol(name));
    };
    bind(m.init_thread, "MPI_Init_thread");
    bind(m.initialized, "MPI_Initialized");
    bind(m.finalize, "MPI_Finalize");
    bind(m.abort, "MPI_Abort");
    bind(m.comm_rank, "MPI_Comm_rank");
    bind(m.comm_size, "MPI_Comm_size");
    bind(m.comm_set_errhandler, "MPI_Comm_set_errhandler");
    bind(m.isend, "MPI_Isend");
    bind(m.irecv, "MPI_Irecv");
    bind(m.test, "MPI_Test");
    bind(m.error_string, "MPI_Error_string");
    m.world = symbol("ompi_mpi_comm_world");
    m.byte = symbol("ompi_mpi_byte");
    m.errors_return = symbol("ompi_mpi_errors_return");
    return m;
  }();
  return mpi;
}

}  // namespace weft::cpu
