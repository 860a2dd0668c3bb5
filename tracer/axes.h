// The named axes that are bound where the user's program is being traced: batch elements of vmap(axis_name=), axes of a
// mesh.
//
//   ScopedAxes scope({{"i", Dim(8), false}});
//   AxisNamed("i", "psum").size;               // 8; raises kName for a name that nothing binds
//
// Like the stack of traces they belong to the thread. An inner binding of a name hides the outer one.
#ifndef WEFT_TRACER_AXES_H_
#define WEFT_TRACER_AXES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/dim.h"

namespace weft {

struct NamedAxis {
  std::string name;
  Dim size;
  bool mesh = false;  // of a mesh: types say which values vary over it
  bool pmap = false;  // of a mesh that pmap made: derivatives inside are those of one device, as under vmap
};

// Binds axes for a scope.
class ScopedAxes {
 public:
  explicit ScopedAxes(const std::vector<NamedAxis>& axes);
  ~ScopedAxes();
  ScopedAxes(const ScopedAxes&) = delete;

 private:
  size_t before_;
};

// Raises kName with the user's line, naming `what`.
const NamedAxis& AxisNamed(const std::string& name, const std::string& what);
bool AxisIsBound(const std::string& name);
// All that are bound here, the innermost last: for a scope in which they are bound again.
const std::vector<NamedAxis>& BoundAxes();
// The axes of pmap that are bound here.
std::vector<std::string> AxesOfPmap();
// A number that stands for what is bound now, for the keys of caches of traced functions: equal for equal bindings.
uint64_t AxesKey();

}  // namespace weft
#endif  // WEFT_TRACER_AXES_H_
