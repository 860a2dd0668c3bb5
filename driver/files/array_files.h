// The arrays of `weft run`: arguments from files, results to files or to standard output.
#ifndef WEFT_DRIVER_FILES_ARRAY_FILES_H_
#define WEFT_DRIVER_FILES_ARRAY_FILES_H_

#include <string>
#include <vector>

#include "driver/bundle/bundle.h"

namespace weft {

// An argument that a program takes.
struct Wanted {
  std::string name;
  Type type;
};

// One .npy file per argument, or one .npz file with arrays of the arguments' names, or of np.savez's own (arr_0, ...).
Tensors ReadArguments(const std::string& program, const std::vector<Wanted>& wanted,
                      const std::vector<std::string>& inputs);
// Of a bundle: what it does not bring along.
Tensors ReadArguments(const Bundle& bundle, const std::vector<std::string>& inputs);

// Raises kParse, which names the file, for bytes that are no bundle of this version.
Bundle ParseBundle(const std::string& bytes, const std::string& file);

// 0.npy, 1.npy ... in a folder, which is made where it is missing; printed where `folder` is empty.
void PutResults(const Tensors& results, const std::string& folder);

}  // namespace weft
#endif  // WEFT_DRIVER_FILES_ARRAY_FILES_H_
